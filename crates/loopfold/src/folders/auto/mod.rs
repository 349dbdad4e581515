//! `auto`: chooses a folder by what a stream looks like.
//!
//! A stream is folded by `sequitur-runs` while it arrives, so that memory is O(distinct content)
//! however long it is. When all streams are complete, they are folded again by `repair`, together
//! and from the loops that were found ([`refined`]): that finds rules that distant parts or
//! several streams have in common, and on control flow archives are 9 to 46 % smaller. What a
//! stream becomes depends on its events only, not on whether it came from a file or a pipe, or in
//! which portions.
//!
//! Where hardly anything repeats, rules cost more than they save, and take longest to find. Most
//! of such streams are recognised while they arrive ([`novelty`]) and are kept as they are, at 4
//! bytes an event, until they end or begin to repeat. For others `auto` compares the entropy of
//! the grammar's items with that of the bare symbols. If rules do not pay, the stream is folded by
//! `outermost` instead.
//!
//! The stored reason states only the result of the comparison, not how much of the stream
//! repeats: three iterations of a loop are most of a stream of seven events, though a rule for
//! them does not pay.
//!
//! Cost: that of `sequitur-runs`, and of `repair` on what is left once loops are written once.
//! The latter takes up to 15 bytes for each item of that. Traces of more than
//! [`refined::MOST_EVENTS`] events stay as `sequitur-runs` folds them, unless nearly all of them is
//! loops, so memory stays bounded. Where rules do not
//! pay, `outermost` takes up to 27 bytes an event.

mod novelty;
mod refined;

use super::{Choice, FoldedRoot, Folder, Online, Outermost, Repair, SequiturRuns};
use crate::fold::{FoldBuilder, Target};
use crate::{Fold, Result, RuleId, Symbol};
use hashbrown::HashMap;
use novelty::Novelty;

/// The longest stream that is unfolded to be folded by another folder.
const LONGEST_TRIED: u64 = 1 << 22;

/// The most events that are kept as they are. (Tests use a small limit.)
const MOST_KEPT: usize = if cfg!(test) { 1 << 17 } else { 1 << 24 };

/// With fewer events an item than this, rules may not pay; with as many, two thirds of the
/// events are repeats of others.
const EVENTS_AN_ITEM: u64 = 3;

/// About what a rule costs besides its items: that it begins, and where it ends.
const BITS_A_RULE: f64 = 3.0;

const MUCH_REPEATS: &str = "much of it repeats";
const RULES_PAY: &str = "rules pay, if not by much";
const ONLY_LOOPS: &str = "rules beyond loops would not pay";
const TOO_LONG: &str = "too long to look at twice";

/// The choice for a stream from what is noted of it.
pub(super) fn choice_of(folder: &str, why: &str) -> Option<Choice> {
    let folders = [SequiturRuns.name(), Repair.name(), Outermost::default().name()];
    let folder = folders.into_iter().find(|&known| known == folder)?;
    let why = [MUCH_REPEATS, RULES_PAY, ONLY_LOOPS, TOO_LONG].into_iter().find(|&known| known == why)?;
    Some(Choice { folder, why })
}

/// The folder `auto`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto;

/// As [`Auto`], without folding streams again once they are complete: for a trace that is read to
/// answer a question, where a smaller fold would take longer to make than it saves.
#[derive(Clone, Copy, Debug, Default)]
pub struct AutoOnline;

impl Folder for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        self.fold_with_choice(stream, builder).map(|folded| folded.root)
    }

    fn fold_with_choice(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        let (fold, folded) = fold_online(stream)?;
        match refined::refine(&fold, std::slice::from_ref(&folded))? {
            Some((fold, roots)) => super::append(builder, (fold, roots.into_iter().next().unwrap_or(folded))),
            None => super::append(builder, (fold, folded)),
        }
    }

    fn fold_together(
        &self,
        streams: &[&[Symbol]],
        builder: &mut FoldBuilder,
    ) -> Option<Result<Vec<FoldedRoot>>> {
        let mut fold_all = || {
            let mut apart = FoldBuilder::default();
            let fold = |stream: &&[Symbol]| super::append(&mut apart, fold_online(stream)?);
            let roots = streams.iter().map(fold).collect::<Result<Vec<FoldedRoot>>>()?;
            let apart = apart.finish();
            let (fold, roots) = refined::refine(&apart, &roots)?.unwrap_or((apart, roots));
            let renamed = builder.append_rules(&fold, Ok)?;
            Ok(roots.into_iter().map(|folded| folded.renamed(&renamed)).collect())
        };
        Some(fold_all())
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(Choosing::default()))
    }

    fn refine(&self, fold: &Fold, roots: &[FoldedRoot]) -> Result<Option<(Fold, Vec<FoldedRoot>)>> {
        refined::refine(fold, roots)
    }
}

impl Folder for AutoOnline {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        self.fold_with_choice(stream, builder).map(|folded| folded.root)
    }

    fn fold_with_choice(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        super::append(builder, fold_online(stream)?)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(Choosing::default()))
    }
}

fn fold_online(stream: &[Symbol]) -> Result<(Fold, FoldedRoot)> {
    let mut folding = Box::new(Choosing::default());
    folding.extend(stream)?;
    folding.finish()
}

/// A stream that arrives.
enum Choosing {
    /// Not long enough to know, or hardly anything repeats.
    Kept(Vec<Symbol>, Novelty),
    /// Folded by `sequitur-runs`.
    Folded(Box<dyn Online>),
}

impl Default for Choosing {
    fn default() -> Self {
        Self::Kept(Vec::new(), Novelty::default())
    }
}

/// Folds what was kept.
fn fold_kept(kept: &[Symbol]) -> Result<Box<dyn Online>> {
    let mut folding = super::sequitur_runs::begin();
    folding.extend(kept)?;
    Ok(folding)
}

impl Online for Choosing {
    fn push(&mut self, symbol: Symbol) -> Result<()> {
        match self {
            Self::Folded(folding) => folding.push(symbol),
            Self::Kept(..) => self.extend(&[symbol]),
        }
    }

    fn extend(&mut self, symbols: &[Symbol]) -> Result<()> {
        let mut rest = symbols;
        loop {
            match self {
                Self::Folded(folding) => return folding.extend(rest),
                Self::Kept(kept, novelty) => {
                    // Examined at the same places, in whichever portions the stream arrives.
                    let (now, later) =
                        rest.split_at(rest.len().min(Novelty::BLOCK - kept.len() % Novelty::BLOCK));
                    kept.extend_from_slice(now);
                    rest = later;
                    let is_whole = !now.is_empty() && kept.len().is_multiple_of(Novelty::BLOCK);
                    if is_whole
                        && (novelty.repeats(&kept[kept.len() - Novelty::BLOCK..]) || kept.len() >= MOST_KEPT)
                    {
                        *self = Self::Folded(fold_kept(kept)?);
                    }
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn events(&self) -> u64 {
        match self {
            Self::Kept(kept, _) => kept.len() as u64,
            Self::Folded(folding) => folding.events(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Kept(kept, novelty) => size_of_val(&kept[..]) + novelty.bytes(),
            Self::Folded(folding) => folding.bytes(),
        }
    }

    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        match self {
            Self::Folded(folding) => folding.rules(builder),
            Self::Kept(kept, _) if kept.len() < Novelty::BLOCK => fold_kept(kept)?.rules(builder),
            Self::Kept(kept, _) => Outermost::default().fold(kept, builder),
        }
    }

    fn finish(self: Box<Self>) -> Result<(Fold, FoldedRoot)> {
        match *self {
            Self::Kept(kept, _) if kept.len() >= Novelty::BLOCK => only_loops(&kept),
            Self::Kept(kept, _) => rules_or_loops(fold_kept(&kept)?),
            Self::Folded(folding) => rules_or_loops(folding),
        }
    }
}

/// The rules of a stream, or only its loops where rules do not pay.
fn rules_or_loops(folding: Box<dyn Online>) -> Result<(Fold, FoldedRoot)> {
    let events = folding.events();
    let (fold, FoldedRoot { root, .. }) = folding.finish()?;
    let why = if events > 0 && events >= EVENTS_AN_ITEM * fold.items() as u64 {
        MUCH_REPEATS
    } else if events > LONGEST_TRIED {
        TOO_LONG
    } else {
        let symbols: Vec<Symbol> = fold.unfold(root).collect();
        if bits_of_fold(&fold) > bits(symbols.iter().map(|&symbol| Target::Symbol(symbol))) {
            return only_loops(&symbols);
        }
        RULES_PAY
    };
    Ok((fold, FoldedRoot { root, choice: Some(Choice { folder: SequiturRuns.name(), why }) }))
}

fn only_loops(symbols: &[Symbol]) -> Result<(Fold, FoldedRoot)> {
    let outermost = Outermost::default();
    let choice = Some(Choice { folder: outermost.name(), why: ONLY_LOOPS });
    let mut builder = FoldBuilder::default();
    let root = outermost.fold(symbols, &mut builder)?;
    Ok((builder.finish(), FoldedRoot { root, choice }))
}

/// About how many bits some rules take in an archive.
fn bits_of_rules(fold: &Fold, rules: &[RuleId]) -> f64 {
    let items = rules.iter().flat_map(|&rule| fold.body(rule));
    bits(items.map(|item| item.target())) + BITS_A_RULE * rules.len() as f64
}

fn bits_of_fold(fold: &Fold) -> f64 {
    bits_of_rules(fold, &fold.rules().collect::<Vec<_>>())
}

/// The entropy of a sequence, taken as a whole, in bits.
fn bits(targets: impl Iterator<Item = Target>) -> f64 {
    let mut counts: HashMap<Target, u32> = HashMap::new();
    let mut length = 0u32;
    for target in targets {
        *counts.entry(target).or_default() += 1;
        length += 1;
    }
    // In the order of their counts, so that the sum is the same in every execution.
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable();
    let of_counts: f64 = counts.iter().map(|&count| f64::from(count) * f64::from(count).log2()).sum();
    f64::from(length) * f64::from(length).max(1.0).log2() - of_counts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use loopfold_testing::{Rng, streams};

    fn symbols(stream: &[u32]) -> Vec<Symbol> {
        stream.iter().map(|&symbol| Symbol::from_raw(symbol)).collect()
    }

    fn folded(stream: &[u32]) -> (Fold, FoldedRoot) {
        let mut builder = FoldBuilder::default();
        let folded = Auto.fold_with_choice(&symbols(stream), &mut builder).unwrap();
        (builder.finish(), folded)
    }

    fn size(fold: &Fold, root: RuleId) -> usize {
        crate::archive::coded_size(fold, &[root]).unwrap()
    }

    fn size_by(folder: &dyn Folder, stream: &[u32]) -> usize {
        let mut builder = FoldBuilder::default();
        let root = folder.fold(&symbols(stream), &mut builder).unwrap();
        size(&builder.finish(), root)
    }

    #[test]
    fn nothing_is_lost_and_the_choice_is_reported() {
        let mut rng = Rng::new(31);
        for round in 0..2_000 {
            let stream = streams::small(&mut rng, if round % 10 == 0 { 3_000 } else { 100 });
            let (fold, folded) = folded(&stream);
            assert!(fold.unfold(folded.root).eq(symbols(&stream)));
            let expected = match folded.choice.unwrap().folder {
                "outermost" => size_by(&Outermost::default(), &stream),
                "repair" => size_by(&Repair, &stream),
                _ => size_by(&SequiturRuns, &stream),
            };
            assert_eq!(size(&fold, folded.root), expected, "{stream:?}");
        }
    }

    /// Streams between one repeated part and only new symbols.
    #[test]
    fn the_smaller_candidate_is_chosen_or_one_nearly_as_small() {
        let mut rng = Rng::new(33);
        for repeated in 0..=10 {
            for alphabet in [4, 64, 1000] {
                let part = streams::random(40, alphabet, 7);
                let mut stream = Vec::new();
                while stream.len() < 20_000 {
                    if rng.below(10) < repeated {
                        stream.extend_from_slice(&part);
                    } else {
                        stream.extend((0..40).map(|_| rng.below(alphabet) as u32));
                    }
                }
                let (fold, folded) = folded(&stream);
                let folders: [&dyn Folder; 3] = [&Outermost::default(), &SequiturRuns, &Repair];
                let best = folders.map(|folder| size_by(folder, &stream)).into_iter().min().unwrap();
                let chosen = size(&fold, folded.root);
                assert!(chosen * 100 <= best * 115, "{chosen} bytes, {best} at best: {repeated} {alphabet}");
            }
        }
    }

    #[test]
    fn data_without_structure_is_not_made_larger_by_rules() {
        let random = streams::random(100_000, 256, 5);
        let (fold, folded) = folded(&random);
        assert_eq!(folded.choice, Some(Choice { folder: "outermost", why: ONLY_LOOPS }));
        assert!(size(&fold, folded.root) < 101_000, "of 100,000 bytes of entropy");
    }

    /// Reasons are true of short streams as well, whose rules hardly ever pay.
    #[test]
    fn a_short_stream_that_repeats_is_not_said_to_be_without_repeats() {
        let why = |stream: &[u32]| folded(stream).1.choice.unwrap().why;
        assert_eq!(why(&[0, 1, 0, 1, 0, 1, 2]), ONLY_LOOPS);
        assert_eq!(why(&[0, 1, 2, 0, 1, 2, 0, 1, 2]), RULES_PAY);
        assert_eq!(why(&[0; 7]), MUCH_REPEATS);
        assert_eq!(why(&[]), ONLY_LOOPS);
    }

    #[test]
    fn what_repeats_in_parts_is_left_to_repair() {
        let mut rng = Rng::new(32);
        let parts: Vec<Vec<u32>> = (0..20).map(|seed| streams::random(30, 50, seed)).collect();
        let stream: Vec<u32> = (0..3_000).flat_map(|_| parts[rng.below(20)].clone()).collect();
        let choice = folded(&stream).1.choice;
        assert_eq!(choice, Some(Choice { folder: "repair", why: MUCH_REPEATS }));
    }

    /// A stream of the given parts: what repeats, and what does not.
    fn mixed(parts: &[(bool, usize)], seed: u64) -> Vec<u32> {
        let part = |(number, &(repeats, length)): (u64, &(bool, usize))| match repeats {
            true => streams::control_flow(length, seed),
            false => streams::random(length, 1 << 30, seed + number),
        };
        (0..).zip(parts).flat_map(part).collect()
    }

    fn rules_of(folding: Box<Choosing>) -> (Vec<Symbol>, FoldedRoot, Fold) {
        let (fold, folded) = folding.finish().unwrap();
        (fold.unfold(folded.root).collect(), folded, fold)
    }

    /// In whichever portions a stream arrives, and whenever it begins or ends to repeat.
    #[test]
    fn the_choice_does_not_depend_on_portions() {
        let mut rng = Rng::new(34);
        let block = Novelty::BLOCK;
        let cases: [(&[(bool, usize)], &str); 8] = [
            (&[(true, 3 * block)], "sequitur-runs"),
            (&[(false, 3 * block)], "outermost"),
            (&[(false, block - 1)], "outermost"),
            (&[(false, block)], "outermost"),
            (&[(false, 3 * block), (true, 9 * block)], "sequitur-runs"),
            (&[(true, 9 * block), (false, block)], "sequitur-runs"),
            (&[(false, MOST_KEPT), (true, 30 * block)], "sequitur-runs"),
            (&[(false, MOST_KEPT + 1)], "outermost"),
        ];
        for (parts, expected) in cases {
            let stream = symbols(&mixed(parts, rng.next_u64() % 1000));
            let (unfolded, folded, fold) = {
                let mut whole = Box::new(Choosing::default());
                whole.extend(&stream).unwrap();
                rules_of(whole)
            };
            assert!(unfolded == stream, "{parts:?}");
            assert_eq!(folded.choice.as_ref().unwrap().folder, expected, "{parts:?}");
            for most in [100, block, 3 * block] {
                let mut portions = Box::new(Choosing::default());
                let mut rest = &stream[..];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(rng.between(1, most).min(rest.len()));
                    match now {
                        [only] => portions.push(*only).unwrap(),
                        _ => portions.extend(now).unwrap(),
                    }
                    rest = later;
                    if rng.one_in(1000) {
                        let (so_far, root) = portions.so_far().unwrap();
                        assert_eq!(so_far.length(root.root), portions.events());
                    }
                }
                let (_, other, rules) = rules_of(portions);
                assert_eq!((&other, &rules), (&folded, &fold), "{parts:?}");
            }
        }
    }
}
