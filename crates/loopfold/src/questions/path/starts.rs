//! Where occurrences begin, for any way of looking for a path that tells only their ends.
//!
//! One pass over the rules for each function, with 24 bytes for each; then a way down the
//! rules for each block of a path.

use super::back::{self, FrameLevels, Nesting};
use super::functions::Step;
use super::locate::EmitBlock;
use super::{PathPlace, PathQuery};
use crate::fold::{Fold, Measure, Target, measure_rules};
use crate::{Result, Symbol};
use hashbrown::HashMap;

/// Where occurrences of paths of one function begin.
pub struct PathStarts<'a> {
    fold: &'a Fold,
    frames: Frames,
    rules: Vec<Option<FrameLevels>>,
}

impl<'a> PathStarts<'a> {
    /// Measures the frames of a path's function.
    pub fn new(fold: &'a Fold, query: &PathQuery) -> Result<Self> {
        let frames = Frames::new(query);
        let rules = measure_rules(fold, &frames)?;
        Ok(Self { fold, frames, rules })
    }

    /// The position of the first block of an occurrence, as
    /// [`PathFound::start`](super::PathFound::start) has it, of any path of the function.
    pub fn start(&self, query: &PathQuery, place: &PathPlace) -> Option<u64> {
        self.start_of(query, place, &mut PathMemory::default())
    }

    /// The same with a memory of other places of this path: what was looked at for the
    /// place before is not looked at again, however far the gaps of the path reach.
    pub fn start_of(&self, query: &PathQuery, place: &PathPlace, memory: &mut PathMemory) -> Option<u64> {
        let root = self.fold.streams().get(place.stream)?.root();
        let before = |emit: &mut EmitBlock<'_>| back::blocks(self, self.fold, root, place.end, emit);
        query.start(place, self.fold.symbol_at(root, place.end)?, memory, before)
    }
}

/// Where one path with gaps was known to begin, seen from the blocks before which a part of
/// it is looked for. Up to a few megabytes.
#[derive(Debug, Default)]
pub struct PathMemory {
    stream: usize,
    /// By the part and the position of the block before which it is looked for.
    starts: HashMap<(usize, u64), Option<u64>>,
}

impl PathMemory {
    const MOST: usize = 1 << 16;

    /// Begins to look for a place of a stream.
    pub(super) fn way(&mut self, stream: usize) -> Way<'_> {
        if self.stream != stream || self.starts.len() > Self::MOST {
            self.starts.clear();
            self.stream = stream;
        }
        Way { memory: self, waited: Vec::new(), start: None }
    }
}

/// The way back from the end of a path to its beginning.
pub(super) struct Way<'m> {
    memory: &'m mut PathMemory,
    /// Where parts were first looked for.
    waited: Vec<(usize, u64)>,
    /// Once the way is at its end: where the path begins, if anywhere.
    start: Option<Option<u64>>,
}

impl Way<'_> {
    pub(super) fn begins(&mut self, start: Option<u64>) {
        self.start = Some(start);
    }

    /// A part is looked for before a position, and nothing of it has been seen.
    pub(super) fn waits(&mut self, part: usize, position: u64) {
        self.start = self.memory.starts.get(&(part, position)).copied();
        if self.waited.last().is_none_or(|&(before, _)| before != part) {
            self.waited.push((part, position));
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.start.is_none()
    }

    /// Where the path begins, if that was found.
    pub(super) fn start(self) -> Option<u64> {
        let start = self.start.flatten();
        self.memory.starts.extend(self.waited.iter().map(|&waited| (waited, start)));
        start
    }
}

impl Nesting for PathStarts<'_> {
    fn frames(&self, target: Target) -> Option<FrameLevels> {
        match target {
            Target::Symbol(symbol) => self.frames.symbol(symbol),
            Target::Rule(rule) => self.rules[rule.index()],
        }
    }
}

/// The measure of what stretches do to the frames of a function; nothing where they do not
/// touch them.
struct Frames {
    /// For each symbol up to the last one that does something.
    symbols: Vec<Option<FrameLevels>>,
}

impl Frames {
    fn new(query: &PathQuery) -> Self {
        let used = query.symbols().map(|symbol| symbol.index() + 1).max().unwrap_or(0);
        let mut symbols = vec![None; used];
        for &(symbol, step) in query.steps() {
            symbols[symbol.index()] = Some(FrameLevels {
                leaves: u64::from(step == Step::Leave),
                enters: u64::from(step.is_enter()),
                has_block: step.is_block(),
            });
        }
        Self { symbols }
    }
}

impl FrameLevels {
    /// What two stretches do, one after the other.
    fn then(self, next: Self) -> Self {
        let lower = next.leaves.saturating_sub(self.enters);
        let higher = self.enters.saturating_sub(next.leaves);
        Self {
            leaves: self.leaves.saturating_add(lower),
            enters: next.enters.saturating_add(higher),
            // The lowest frame of each is that of both unless the other one goes below it.
            has_block: self.has_block && lower == 0 || next.has_block && higher == 0,
        }
    }

    /// A stretch that goes down is lowest in its last iteration, one that goes up in its first.
    fn repeated(self, times: u64) -> Self {
        let more = times.saturating_sub(1);
        let deeper = |by: u64, from: u64| from.saturating_add(by.saturating_mul(more));
        Self {
            leaves: deeper(self.leaves.saturating_sub(self.enters), self.leaves),
            enters: deeper(self.enters.saturating_sub(self.leaves), self.enters),
            ..self
        }
    }
}

impl Measure for Frames {
    type Value = Option<FrameLevels>;

    fn empty(&self) -> Option<FrameLevels> {
        None
    }

    fn symbol(&self, symbol: Symbol) -> Option<FrameLevels> {
        self.symbols.get(symbol.index()).copied().flatten()
    }

    fn join(&self, left: &Self::Value, right: &Self::Value) -> Result<Self::Value> {
        Ok(match (*left, *right) {
            (Some(left), Some(right)) => Some(left.then(right)),
            (left, right) => left.or(right),
        })
    }

    fn repeat(&self, value: &Self::Value, times: u64) -> Result<Self::Value> {
        Ok(value.filter(|_| times > 0).map(|once| once.repeated(times)))
    }
}
