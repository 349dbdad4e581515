//! `auto`: chooses a folder by the entropy of a stream.
//!
//! The stream is folded by `sequitur-runs` while it arrives. This fold is normally kept: on
//! traces of real programs its archives are smaller than those of the folders that take loops
//! only, and on loops they are as small. But where hardly anything repeats, or a stream is
//! short, rules cost more than they save. To decide, `auto` compares the entropy of the
//! grammar's items with that of the bare symbols; where rules do not pay, it folds the stream
//! by `outermost` instead.
//!
//! The stored reason states only the result of the comparison, not how much of the stream
//! repeats: three iterations of a loop are most of a stream of seven events, though a rule for
//! them does not pay.
//!
//! Cost: that of `sequitur-runs`. Where rules do not pay, at most twice that, and the stream in
//! memory, at up to 27 bytes an event. Streams longer than [`LONGEST_TRIED`] are not folded
//! again, so memory stays bounded.

use super::{Choice, FoldedRoot, Folder, Online, Outermost, SequiturRuns};
use crate::fold::{FoldBuilder, Target};
use crate::{Fold, Result, RuleId, Symbol};
use hashbrown::HashMap;

/// The longest stream that is held in memory to be folded by another folder.
const LONGEST_TRIED: u64 = 1 << 22;

/// With fewer events an item than this, rules may not pay; with as many, two thirds of the
/// events are repeats of others.
const EVENTS_AN_ITEM: u64 = 3;

/// About what a rule costs besides its items: that it begins, and where it ends.
const BITS_A_RULE: f64 = 3.0;

const MUCH_REPEATS: &str = "much of it repeats";
const RULES_PAY: &str = "rules pay, if not by much";
const ONLY_LOOPS: &str = "rules beyond loops would not pay";
const TOO_LONG: &str = "too long to look at twice";

/// The folder `auto`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto;

impl Folder for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        self.fold_with_choice(stream, builder).map(|folded| folded.root)
    }

    fn fold_with_choice(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        let mut folding = Box::new(Choosing::new());
        folding.extend(stream)?;
        super::append(builder, folding.finish()?)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(Choosing::new()))
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

    fn finish(self: Box<Self>) -> Result<(Fold, FoldedRoot)> {
        let events = self.0.events();
        let (fold, FoldedRoot { root, .. }) = self.0.finish()?;
        let stay = |why| Some(Choice { folder: SequiturRuns.name(), why });
        let choice = if events > 0 && events >= EVENTS_AN_ITEM * fold.items() as u64 {
            stay(MUCH_REPEATS)
        } else if events > LONGEST_TRIED {
            stay(TOO_LONG)
        } else {
            let symbols: Vec<Symbol> = fold.unfold(root).collect();
            if bits_of_rules(&fold) > bits(symbols.iter().map(|&symbol| Target::Symbol(symbol))) {
                let outermost = Outermost::default();
                let choice = Some(Choice { folder: outermost.name(), why: ONLY_LOOPS });
                let mut builder = FoldBuilder::default();
                let root = outermost.fold(&symbols, &mut builder)?;
                return Ok((builder.finish(), FoldedRoot { root, choice }));
            }
            stay(RULES_PAY)
        };
        Ok((fold, FoldedRoot { root, choice }))
    }
}

/// About how many bits the rules take in an archive.
fn bits_of_rules(fold: &Fold) -> f64 {
    let targets = fold.all_items().iter().map(|item| item.target());
    bits(targets) + BITS_A_RULE * fold.rules().len() as f64
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
                let best = size_by(&Outermost::default(), &stream).min(size_by(&SequiturRuns, &stream));
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
    fn what_repeats_in_parts_is_left_to_sequitur_runs() {
        let mut rng = Rng::new(32);
        let parts: Vec<Vec<u32>> = (0..20).map(|seed| streams::random(30, 50, seed)).collect();
        let stream: Vec<u32> = (0..3_000).flat_map(|_| parts[rng.below(20)].clone()).collect();
        let choice = folded(&stream).1.choice;
        assert_eq!(choice, Some(Choice { folder: "sequitur-runs", why: MUCH_REPEATS }));
    }
}
