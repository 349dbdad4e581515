//! The most frequent pair first: Re-Pair (Larsson and Moffat) on counted items.
//!
//! Runs of one symbol become one counted item. Then, again and again, the pair of
//! neighbours that occurs most often becomes a rule of two items, in all its places at
//! once; where the rule stands side by side with itself, that is one counted item, so loops
//! come out as loops. Among equally frequent pairs the newest is taken. It ends
//! when no pair occurs twice. At last rules that save no item are written in place.
//!
//! Neighbours never have the same target, so places of a pair cannot overlap, and a pair
//! gets all its places when the newer of its kinds appears.
//!
//! Cost: near-linear, 30 to 100 ns an event of real traces, mostly waiting for memory. A
//! working copy of 4 bytes an event (a run counts as one), up to 8 for the positions of
//! pairs and 6 while the most frequent of them is replaced; 32 a pair, which is up
//! to 16 an event where nothing occurs more than twice.

mod kinds;
mod pairs;
mod rules;
mod savings;
mod sequence;

use super::Folder;
use crate::fold::FoldBuilder;
use crate::{Result, RuleId, Symbol};
use hashbrown::HashMap;
use kinds::Kinds;
use pairs::{Groups, NONE, Pair, Pairs};
use sequence::{END, Sequence};

/// Replaces the most frequent pair of items first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repair;

impl Folder for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        super::check_length(stream)?;
        let mut replacing = Replacing::new(&[stream])?;
        replacing.run()?;
        let roots = rules::add(replacing.sequence, &replacing.kinds, builder)?;
        Ok(roots[0])
    }
}

/// The state of the work.
struct Replacing {
    kinds: Kinds,
    sequence: Sequence,
    pairs: Pairs,
    neighbours: Neighbours,
}

impl Replacing {
    fn new(streams: &[&[Symbol]]) -> Result<Self> {
        let mut kinds = Kinds::default();
        let mut sequence = Sequence::new();
        for stream in streams {
            for run in stream.chunk_by(|left, right| left == right) {
                sequence.push(kinds.of_symbol(run[0], run.len() as u32)?);
            }
            sequence.end_stream();
        }
        Ok(Self { kinds, sequence, pairs: Pairs::default(), neighbours: Neighbours::default() })
    }

    fn run(&mut self) -> Result<()> {
        self.pairs.find_all(&self.sequence, self.kinds.len());
        while let Some(pair) = self.pairs.most_frequent(&self.sequence) {
            self.replace(&pair)?;
            if self.sequence.is_sparse() {
                self.sequence.close_holes();
                self.pairs.find_all(&self.sequence, self.kinds.len());
            }
        }
        Ok(())
    }

    /// Makes a pair a rule.
    fn replace(&mut self, pair: &Pair) -> Result<()> {
        let once = self.kinds.add_rule(pair.left, pair.right)?;
        self.neighbours.make_room(self.kinds.len());
        let mut places = self.pairs.positions(pair).iter().map(|&at| at as usize).peekable();
        while let Some(at) = places.next() {
            let mut after = self.sequence.take_pair(at);
            let mut times = 1;
            while places.next_if_eq(&after).is_some() {
                after = self.sequence.take_pair(after);
                times += 1;
            }
            let kind = if times == 1 { once } else { self.kinds.of_last_rule(times)? };
            self.sequence.put(at, after, kind);
            let before = self.sequence.previous(at);
            self.neighbours.add(once, (self.sequence.kind(before), kind), before);
            self.neighbours.add(once, (kind, self.sequence.kind(after)), at);
        }
        self.neighbours.forget_numbers();
        self.pairs.add(&mut self.neighbours.groups);
        Ok(())
    }
}

/// The pairs around a new rule, as they are found.
#[derive(Default)]
struct Neighbours {
    groups: Groups,
    /// The group of each kind that stands before or after the rule.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The groups of pairs with the rule repeated.
    of_repeated: HashMap<(u32, u32), u32, foldhash::fast::RandomState>,
}

impl Neighbours {
    fn make_room(&mut self, kinds: usize) {
        if self.before.len() < kinds {
            let room = kinds + kinds / 2;
            self.before.resize(room, NONE);
            self.after.resize(room, NONE);
        }
    }

    /// Adds a position of a pair, one of which is the new rule, perhaps repeated.
    fn add(&mut self, once: u32, (left, right): (u32, u32), at: usize) {
        if left == END || right == END {
            return;
        }
        let number = if right == once {
            &mut self.before[left as usize]
        } else if left == once {
            &mut self.after[right as usize]
        } else {
            self.of_repeated.entry((left, right)).or_insert(NONE)
        };
        self.groups.add(number, (left, right), at as u32);
    }

    fn forget_numbers(&mut self) {
        for (left, right) in self.groups.pairs() {
            // One of the two is the new rule; to forget nothing there costs nothing.
            if let Some(number) = self.before.get_mut(left as usize) {
                *number = NONE;
            }
            if let Some(number) = self.after.get_mut(right as usize) {
                *number = NONE;
            }
        }
        if self.of_repeated.capacity() > 1024 {
            self.of_repeated = HashMap::default();
        }
        self.of_repeated.clear();
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
