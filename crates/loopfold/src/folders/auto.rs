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
