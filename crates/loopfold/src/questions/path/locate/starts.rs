//! Finds where occurrences begin, given where they end.
//!
//! A [reverse scan](super::reverse_scan) emits the blocks of the frame in which an occurrence
//! ends, from the last to the first, and the path is matched against them backwards. Without
//! gaps the first block is as far back as the path is long. With gaps it is the last block with
//! which the path can begin, and [`PathMemory`] caches earlier results, so that many ends of
//! one path do not scan the same blocks again.
//!
//! One pass over the rules for each function, with 24 bytes for each; then a descent of the
//! rules for each block of a path.

use super::super::brackets::{HasBlock, Nesting};
use super::super::summary::gaps::parts_of;
use super::super::{PathPlace, PathQuery};
use super::reverse_scan::{EmitBlock, blocks_before};
use crate::fold::cursor::Cursor;
use crate::fold::measure::Measured;
use crate::fold::{Fold, Located as _};
use crate::{Result, StreamId, Symbol};
use hashbrown::HashMap;
use std::ops::Range;

/// Where occurrences of paths of one function begin.
pub struct PathStarts<'a> {
    fold: &'a Fold,
    nesting: Measured<Nesting<HasBlock>>,
}

opaque_debug!(PathStarts<'a>);

impl<'a> PathStarts<'a> {
    /// Measures the frames of a path's function.
    pub fn new(fold: &'a Fold, query: &PathQuery) -> Result<Self> {
        Ok(Self { fold, nesting: Measured::new(fold, Nesting::of_steps(query.steps()))? })
    }

    /// The position of the first block of an occurrence, as
    /// [`PathFound::start`](super::PathFound::start) has it, of any path of the function.
    pub fn start(&self, query: &PathQuery, place: &PathPlace) -> Option<u64> {
        self.start_of(query, place, &mut PathMemory::default())
    }

    /// The same with a memory of other places of this path: blocks that were examined for the
    /// place before are not examined again, whatever the length of the gaps.
    pub fn start_of(&self, query: &PathQuery, place: &PathPlace, memory: &mut PathMemory) -> Option<u64> {
        let root = self.fold.streams().get(place.stream.index())?.root();
        let last = self.fold.symbol_at(root, place.end)?;
        start_of(query, place, last, memory, |emit| {
            let brackets = |item| self.nesting.of(self.fold.located_target(item));
            blocks_before(Cursor::at(self.fold, root, place.end), brackets, emit);
        })
    }
}

/// Where an occurrence begins whose last block is known. `before` emits the blocks of its
/// frame before that, the last first.
pub(super) fn start_of(
    query: &PathQuery,
    place: &PathPlace,
    last: Symbol,
    memory: &mut PathMemory,
    before: impl FnOnce(&mut EmitBlock<'_>),
) -> Option<u64> {
    let mut matching = BackwardsMatch::new(query);
    let mut search = memory.search(place.stream);
    let mut pass = |block, position| {
        if matching.pass(block) {
            search.start = Some(Some(position));
        } else if let Some(part) = matching.waiting() {
            search.wait(part, position);
        } else if matching.is_lost() {
            search.start = Some(None);
        }
        search.start.is_none()
    };
    if pass(last, place.end) {
        let mut scanned = 0;
        before(&mut |block, position| {
            scanned += 1;
            pass(block, position) && (scanned < PathQuery::FURTHEST || !query.has_gaps())
        });
    }
    search.finish()
}

/// Where one path with gaps was known to begin, seen from the blocks before which a part of it
/// is searched for. Up to a few megabytes.
#[derive(Debug, Default)]
pub struct PathMemory {
    stream: Option<StreamId>,
    /// By the part and the position of the block before which it is searched for.
    starts: HashMap<(usize, u64), Option<u64>>,
}

impl PathMemory {
    const MOST: usize = 1 << 16;

    /// Begins to look for the start of an occurrence in a stream.
    fn search(&mut self, stream: StreamId) -> StartSearch<'_> {
        if self.stream != Some(stream) || self.starts.len() > Self::MOST {
            self.starts.clear();
            self.stream = Some(stream);
        }
        StartSearch { memory: self, waited: Vec::new(), start: None }
    }
}

/// A search for the beginning of one occurrence.
struct StartSearch<'m> {
    memory: &'m mut PathMemory,
    /// Where parts were first looked for.
    waited: Vec<(usize, u64)>,
    /// Once the search is over: where the path begins, if anywhere.
    start: Option<Option<u64>>,
}

impl StartSearch<'_> {
    /// A part is searched for before a position, and nothing of it has been seen.
    fn wait(&mut self, part: usize, position: u64) {
        self.start = self.memory.starts.get(&(part, position)).copied();
        if self.waited.last().is_none_or(|&(before, _)| before != part) {
            self.waited.push((part, position));
        }
    }

    /// Where the path begins, if that was found.
    fn finish(self) -> Option<u64> {
        let start = self.start.flatten();
        self.memory.starts.extend(self.waited.iter().map(|&waited| (waited, start)));
        start
    }
}

/// The latest beginning of a path, matched backwards from its end against the blocks of its
/// frame.
struct BackwardsMatch<'q> {
    blocks: &'q [Vec<Symbol>],
    /// The parts between gaps.
    parts: Vec<Range<usize>>,
    /// The part that is searched for.
    part: usize,
    /// How many of its blocks are still missing, for each match of it that has begun.
    missing: Vec<usize>,
}

impl<'q> BackwardsMatch<'q> {
    fn new(query: &'q PathQuery) -> Self {
        let parts = parts_of(query.len(), query.gaps());
        let part = parts.len() - 1;
        // The last part ends here and nowhere else.
        let missing = vec![parts[part].len()];
        Self { blocks: query.blocks(), parts, part, missing }
    }

    /// The part that is searched for, if nothing of it has been seen.
    fn waiting(&self) -> Option<usize> {
        (self.missing.is_empty() && self.part + 1 < self.parts.len()).then_some(self.part)
    }

    /// True if no block can make it a path any more.
    fn is_lost(&self) -> bool {
        self.missing.is_empty() && self.part + 1 == self.parts.len()
    }

    /// Passes a block; true if the path begins with it.
    fn pass(&mut self, block: Symbol) -> bool {
        let part = self.parts[self.part].clone();
        let fits = |missing: &usize| self.blocks[part.start + missing - 1].binary_search(&block).is_ok();
        let waiting = (self.part + 1 < self.parts.len()).then_some(part.len());
        let mut missing: Vec<usize> = self.missing.drain(..).chain(waiting).collect();
        missing.retain(fits);
        missing.iter_mut().for_each(|missing| *missing -= 1);
        if missing.first() == Some(&0) {
            let Some(before) = self.part.checked_sub(1) else { return true };
            self.part = before;
            missing.clear();
        }
        self.missing = missing;
        false
    }
}
