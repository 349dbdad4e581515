//! `auto`: looks at a stream and picks a folder.
//!
//! The stream is folded by `sequitur-runs` while it arrives. At its end the grammar tells
//! what kind of stream it was. Where nearly all of it is loops, or next to nothing of it
//! repeats, `outermost` may have done better and is fast, so it is tried too, and the one
//! whose rules take fewer bytes in an archive is kept. In between, where parts repeat but
//! not in loops, it would cost more than it could gain.
//!
//! Cost: that of `sequitur-runs`, and at most as much again. Trying needs the stream in
//! memory, up to 27 bytes an event; longer streams than [`LONGEST_TRIED`] are not tried,
//! so memory stays bounded.

use super::{Choice, Folded, Folder, Online, Outermost, SequiturRuns};
use crate::archive;
use crate::fold::FoldBuilder;
use crate::{Fold, Result, RuleId, Symbol};

/// The longest stream that is held in memory to try another folder.
const LONGEST_TRIED: u64 = 1 << 22;

/// The folder `auto`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto;

impl Folder for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        self.fold_and_tell(stream, builder).map(|folded| folded.root)
    }

    fn fold_and_tell(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<Folded> {
        let mut folding = Box::new(Choosing::new());
        folding.extend(stream)?;
        folding.finish(builder)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(Choosing::new()))
    }
}

/// What the grammar of a stream tells about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Long,
    Loops,
    Parts,
    Irregular,
}

impl Kind {
    fn of(fold: &Fold, events: u64) -> Self {
        let items = fold.items() as u64;
        match events {
            _ if events > LONGEST_TRIED => Kind::Long,
            _ if events >= 64 * items => Kind::Loops,
            _ if events >= 3 * items => Kind::Parts,
            _ => Kind::Irregular,
        }
    }

    /// Why sequitur-runs, where nothing else was tried.
    fn reason(self) -> &'static str {
        match self {
            Kind::Long => "too long to try others",
            Kind::Loops | Kind::Irregular => "smaller than outermost",
            Kind::Parts => "parts repeat, not only loops",
        }
    }
}

struct Choosing(Box<dyn Online>);

impl Choosing {
    fn new() -> Self {
        Self(super::sequitur_runs::begin())
    }
}

impl Online for Choosing {
    fn push(&mut self, symbol: Symbol) -> Result<()> {
        self.0.push(symbol)
    }

    fn extend(&mut self, symbols: &[Symbol]) -> Result<()> {
        self.0.extend(symbols)
    }

    fn events(&self) -> u64 {
        self.0.events()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        self.0.rules(builder)
    }

    fn finish(self: Box<Self>, builder: &mut FoldBuilder) -> Result<Folded> {
        let events = self.0.events();
        let first = made(|builder| self.0.finish(builder).map(|folded| folded.root))?;
        let kind = Kind::of(&first.0, events);
        let sequitur = Choice { folder: SequiturRuns.name(), why: kind.reason() };
        if matches!(kind, Kind::Long | Kind::Parts) {
            return take(first, sequitur, builder);
        }
        let symbols: Vec<Symbol> = first.0.unfold(first.1).collect();
        let outermost = Outermost::default();
        let second = made(|builder| outermost.fold(&symbols, builder))?;
        drop(symbols);
        if archive::coded_size(&second.0, second.1)? < archive::coded_size(&first.0, first.1)? {
            let choice = Choice { folder: outermost.name(), why: "smaller than sequitur-runs" };
            return take(second, choice, builder);
        }
        take(first, sequitur, builder)
    }
}

/// A fold of its own, and its root.
fn made(fold: impl FnOnce(&mut FoldBuilder) -> Result<RuleId>) -> Result<(Fold, RuleId)> {
    let mut builder = FoldBuilder::default();
    let root = fold(&mut builder)?;
    Ok((builder.finish(), root))
}

fn take((fold, root): (Fold, RuleId), choice: Choice, builder: &mut FoldBuilder) -> Result<Folded> {
    let renamed = builder.append_rules(&fold, Ok)?;
    Ok(Folded { root: renamed[root.index()], choice: Some(choice) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use loopfold_testing::{Rng, streams};

    fn symbols(stream: &[u32]) -> Vec<Symbol> {
        stream.iter().map(|&symbol| Symbol::from_raw(symbol)).collect()
    }

    /// The fold, which folder was chosen, and how many bytes its rules take.
    fn folded(stream: &[u32]) -> (Fold, Folded, usize) {
        let mut builder = FoldBuilder::default();
        let folded = Auto.fold_and_tell(&symbols(stream), &mut builder).unwrap();
        let fold = builder.finish();
        let size = archive::coded_size(&fold, folded.root).unwrap();
        (fold, folded, size)
    }

    fn size_by(folder: &dyn Folder, stream: &[u32]) -> usize {
        let (fold, root) = made(|builder| folder.fold(&symbols(stream), builder)).unwrap();
        archive::coded_size(&fold, root).unwrap()
    }

    #[test]
    fn nothing_is_lost_and_nothing_smaller_was_at_hand() {
        let mut rng = Rng::new(31);
        for round in 0..2_000 {
            let stream = streams::small(&mut rng, if round % 10 == 0 { 3_000 } else { 100 });
            let (fold, folded, size) = folded(&stream);
            assert!(fold.unfold(folded.root).eq(symbols(&stream)));
            assert!(size <= size_by(&SequiturRuns, &stream), "{stream:?}");
            let choice = folded.choice.unwrap();
            match choice.folder {
                "outermost" => assert_eq!(size, size_by(&Outermost::default(), &stream)),
                _ => assert_eq!(choice.folder, "sequitur-runs"),
            }
        }
    }

    #[test]
    fn data_without_structure_is_not_made_larger_by_rules() {
        let random = streams::random(100_000, 256, 5);
        let (_, folded, size) = folded(&random);
        assert_eq!(folded.choice.unwrap().folder, "outermost");
        assert!(size < 101_000, "{size} bytes for 100,000 bytes of entropy");
    }

    #[test]
    fn what_repeats_in_parts_is_left_to_sequitur_runs() {
        let mut rng = Rng::new(32);
        let parts: Vec<Vec<u32>> = (0..20).map(|seed| streams::random(30, 50, seed)).collect();
        let stream: Vec<u32> = (0..3_000).flat_map(|_| parts[rng.below(20)].clone()).collect();
        let choice = folded(&stream).1.choice.unwrap();
        assert_eq!((choice.folder, choice.why), ("sequitur-runs", Kind::Parts.reason()));
    }
}
