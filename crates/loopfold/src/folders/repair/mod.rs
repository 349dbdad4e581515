//! Re-Pair (Larsson and Moffat) on counted items: replaces the most frequent pair first.
//!
//! Runs of one symbol become one counted item. Then the most frequent pair of neighbours
//! repeatedly becomes a rule of two items, in all its places at once; neighbouring uses of the
//! rule become one counted item, so loops are found as loops. Among equally frequent pairs the
//! one found last is taken. It ends when no pair occurs twice. Finally rules that do not pay
//! are inlined.
//!
//! Neighbours never have the same target, so places of a pair cannot overlap, and a pair
//! gets all its places when the newer of its kinds appears.
//!
//! Several streams of a trace are folded together, so a sequence that they share becomes one
//! rule. A symbol may stand for another sequence ([`Sequences`]): so loops that are known already
//! are items from the start, and their bodies are written once.
//!
//! Cost: near-linear, 30 to 70 ns an event of real traces, mostly waiting for memory, and 250
//! where there is nothing to find. Memory beside the streams: for every run of one symbol 4
//! bytes and 8 to 10 for where pairs are, in all up to 15 an event; 35 if all events are
//! different. A pair is counted again when it reaches the front of the queue; adversarial
//! streams in which many counts fall one by one could cost n^1.5.

mod by_left;
mod kinds;
mod neighbours;
mod pairs;
mod rules;
mod savings;
mod sequence;

use super::{FoldedRoot, Folder};
use crate::fold::FoldBuilder;
use crate::interrupt::Pace;
use crate::{Result, RuleId, Symbol};
use kinds::{Kinds, SymbolKinds};
use neighbours::Neighbours;
use pairs::{Pair, Pairs};
pub(super) use rules::Bodies;
use sequence::Sequence;

/// Replaces the most frequent pair of items first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repair;

impl Folder for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        super::check_length(stream)?;
        Ok(fold(&[stream], builder)?[0])
    }

    fn fold_together(
        &self,
        streams: &[&[Symbol]],
        builder: &mut FoldBuilder,
    ) -> Option<Result<Vec<FoldedRoot>>> {
        let cells: usize = streams.iter().map(|stream| stream.len() + 1).sum();
        let fold = || Ok(fold(streams, builder)?.into_iter().map(FoldedRoot::from).collect());
        (cells < u32::MAX as usize).then(fold)
    }
}

fn fold(streams: &[&[Symbol]], builder: &mut FoldBuilder) -> Result<Vec<RuleId>> {
    let events: usize = streams.iter().map(|stream| stream.len()).sum();
    let last = streams.iter().flat_map(|stream| stream.iter()).max();
    // Alphabets are rarely larger than streams; where they are, most of their symbols would take
    // memory for nothing.
    let mut sequences = Sequences::new(last.map_or(0, |last| last.index() + 1).min(events));
    let mut pace = Pace::default();
    for stream in streams {
        for run in stream.chunk_by(|left, right| left == right) {
            pace.steps(run.len());
            sequences.push(run[0].raw(), run.len() as u32)?;
        }
        sequences.end();
    }
    sequences.fold(streams.len(), &Bodies::default(), builder)
}

/// Sequences of counted symbols that are folded together.
pub(super) struct Sequences {
    of_symbols: SymbolKinds,
    kinds: Kinds,
    sequence: Sequence,
}

impl Sequences {
    /// No sequence. Symbols below `symbols` are found fastest.
    pub(super) fn new(symbols: usize) -> Self {
        let of_symbols = SymbolKinds::new(symbols);
        Self { of_symbols, kinds: Kinds::default(), sequence: Sequence::new() }
    }

    /// Appends a symbol to the last sequence. It must not be the one before it.
    pub(super) fn push(&mut self, symbol: u32, times: u32) -> Result<()> {
        self.sequence.push(self.of_symbols.kind(symbol, times, &mut self.kinds)?);
        Ok(())
    }

    /// Ends the last sequence.
    pub(super) fn end(&mut self) {
        self.sequence.end_stream();
    }

    /// Adds the rules of all sequences and returns those of the first `roots`. Some symbols stand
    /// for the others.
    pub(super) fn fold(
        self,
        roots: usize,
        bodies: &Bodies,
        builder: &mut FoldBuilder,
    ) -> Result<Vec<RuleId>> {
        let Self { of_symbols, kinds, sequence } = self;
        drop(of_symbols);
        let (pairs, neighbours) = (Pairs::default(), Neighbours::default());
        let replacing = Replacing { kinds, sequence, pairs, neighbours, pace: Pace::default() };
        let (sequence, kinds) = replacing.run()?;
        rules::add(sequence, &kinds, roots, bodies, builder)
    }
}

/// The state of the work.
struct Replacing {
    kinds: Kinds,
    sequence: Sequence,
    pairs: Pairs,
    neighbours: Neighbours,
    pace: Pace,
}

impl Replacing {
    fn run(mut self) -> Result<(Sequence, Kinds)> {
        self.pairs.find_all(&self.sequence, self.kinds.len());
        while let Some(pair) = self.pairs.most_frequent(&self.sequence) {
            self.replace(&pair)?;
            if self.sequence.is_sparse() {
                self.sequence.close_holes();
                self.pairs.find_all(&self.sequence, self.kinds.len());
            }
        }
        Ok((self.sequence, self.kinds))
    }

    /// Makes a pair a rule.
    fn replace(&mut self, pair: &Pair) -> Result<()> {
        let once = self.kinds.add_rule(pair.left, pair.right)?;
        self.neighbours.begin(once);
        let mut places = self.pairs.positions(pair).iter().map(|&at| at as usize).peekable();
        while let Some(at) = places.next() {
            self.pace.step();
            let mut after = self.sequence.take_pair(at);
            let mut times = 1;
            while places.next_if_eq(&after).is_some() {
                after = self.sequence.take_pair(after);
                times += 1;
            }
            let kind = if times == 1 { once } else { self.kinds.of_last_rule(times)? };
            self.sequence.put(at, after, kind);
            let before = self.sequence.previous(at);
            self.neighbours.add(self.sequence.kind(before), kind, before);
            self.neighbours.add(kind, self.sequence.kind(after), at);
        }
        self.pairs.add(&mut self.neighbours);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::{Rng, streams};

    /// Here, unlike outside of this crate's own tests, long holes are made of short ones.
    #[test]
    fn nothing_is_lost_in_holes() {
        let mut rng = Rng::new(73);
        for _ in 0..3000 {
            let stream = streams::small(&mut rng, 300);
            let symbols: Vec<Symbol> = stream.iter().map(|&raw| Symbol::from_raw(raw)).collect();
            let mut builder = FoldBuilder::default();
            let root = Repair.fold(&symbols, &mut builder).unwrap();
            assert!(builder.finish().unfold(root).eq(symbols), "{stream:?}");
        }
    }
}
