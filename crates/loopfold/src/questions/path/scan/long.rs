//! The scan for paths of many blocks, with gaps, or in which calls are blocks: symbol by
//! symbol, with any state of a frame.

use super::{BLOCK, Classes, ENTER, ENTER_OTHER, GROUP, LEAVE, NOTHING, Report};
use crate::Symbol;
use crate::questions::path::PathQuery;
use crate::questions::path::brackets::NestingLevels;
use crate::questions::path::functions::Step;
use crate::questions::path::summary::frame::{
    FrameMonoid as _, FrameState, FrameSummary as _, MonoidOf, SummaryOf,
};

/// Any other path: of more blocks, with gaps, or of calls.
#[derive(Clone, Debug)]
pub(super) struct LongPath<S: FrameState> {
    classes: Classes<u32>,
    monoid: MonoidOf<S>,
    /// The effect of a block of each class, from the first class of blocks on.
    blocks: Vec<SummaryOf<S>>,
    length: usize,
    pub(super) frames: LongFrames<S>,
    /// True if the last block was the last of an occurrence.
    matched: bool,
}

#[derive(Clone, Debug)]
pub(super) struct LongFrames<S> {
    /// Nothing in a frame of another function, and in none.
    state: Option<S>,
    below: Vec<Option<S>>,
    depth: u64,
}

impl<S> Default for LongFrames<S> {
    fn default() -> Self {
        Self { state: None, below: Vec::new(), depth: 0 }
    }
}

impl<S: FrameState> LongFrames<S> {
    pub(super) fn words(&self) -> usize {
        let states = self.below.iter().chain([&self.state]).flatten();
        states.map(S::heap_words).sum::<usize>() + 4 * self.below.len() + 4
    }
}

/// Added to the class of a block that then enters the function. No path has so many classes
/// that this could be one of them.
const THEN_ENTER: u32 = 1 << 31;
/// Added to the class of a block that then enters another function.
const THEN_ENTER_OTHER: u32 = 1 << 30;

impl<S: FrameState> LongPath<S> {
    pub(super) fn new(query: &PathQuery) -> Self {
        let mut classes = Classes::<u32>::new(query);
        let monoid = MonoidOf::<S>::new(query);
        let mut in_path: Vec<Symbol> = query.blocks().iter().flatten().copied().collect();
        in_path.sort_unstable();
        in_path.dedup();
        let is_other = |symbol: &Symbol| in_path.binary_search(symbol).is_err();
        let block = |&(symbol, step): &(Symbol, Step)| step.is_block().then_some(symbol);
        // All blocks that the path does not have do the same.
        let other = query.steps().iter().filter_map(block).find(is_other);
        let mut blocks = vec![other.map_or_else(|| monoid.empty(), |symbol| monoid.symbol(symbol))];
        for &symbol in &in_path {
            classes.set(symbol, u32::from(BLOCK) + blocks.len() as u32);
            blocks.push(monoid.symbol(symbol));
        }
        for &(symbol, step) in query.steps() {
            let then = match step {
                Step::BlockThenEnter => THEN_ENTER,
                Step::BlockThenEnterOther => THEN_ENTER_OTHER,
                _ => continue,
            };
            classes.set(symbol, classes.of(symbol) | then);
        }
        Self { classes, monoid, blocks, length: query.len(), frames: LongFrames::default(), matched: false }
    }

    pub(super) fn open_frames(&self) -> usize {
        self.frames.below.len()
    }

    pub(super) fn restart(&mut self) {
        (self.frames, self.matched) = (LongFrames::default(), false);
    }

    pub(super) fn feed(&mut self, symbols: &[Symbol], report: &mut Report<'_>) -> bool {
        let mut groups = symbols.chunks(GROUP).zip((0..).step_by(GROUP));
        groups.all(|(group, offset)| {
            let (mut hits, mut depths) = (0, [0; GROUP]);
            for (place, &symbol) in group.iter().enumerate() {
                let class = self.classes.of(symbol);
                if class != u32::from(NOTHING) {
                    // A block that also enters is not yet in its own call.
                    depths[place] = self.frames.depth;
                    self.step(class);
                    hits |= u32::from(self.matched) << place;
                }
            }
            report(offset, hits, &depths)
        })
    }

    fn step(&mut self, class: u32) {
        self.matched = false;
        match u8::try_from(class) {
            Ok(ENTER) => return self.enter(Some(S::default())),
            Ok(ENTER_OTHER) => return self.enter(None),
            Ok(LEAVE) => return self.leave(),
            _ => {}
        }
        let block = (class & !(THEN_ENTER | THEN_ENTER_OTHER)).checked_sub(BLOCK.into());
        let summary = block.and_then(|block| self.blocks.get(block as usize));
        if let (Some(summary), Some(state)) = (summary, &mut self.frames.state) {
            self.matched = summary.count_after(state) > 0;
            self.monoid.follow(state, summary);
        }
        match class & (THEN_ENTER | THEN_ENTER_OTHER) {
            0 => {}
            THEN_ENTER => self.enter(Some(S::default())),
            _ => self.enter(None),
        }
    }

    fn enter(&mut self, state: Option<S>) {
        let frames = &mut self.frames;
        frames.depth += u64::from(state.is_some());
        frames.below.push(std::mem::replace(&mut frames.state, state));
    }

    fn leave(&mut self) {
        let frames = &mut self.frames;
        frames.depth -= u64::from(frames.state.is_some());
        frames.state = frames.below.pop().flatten();
    }

    pub(super) fn pass_over(&mut self, calls: &NestingLevels) {
        (0..calls.leaves.min(self.frames.below.len() as u64 + 1)).for_each(|_| self.leave());
        (0..calls.enters).for_each(|_| self.enter(None));
        self.matched = false;
    }

    pub(super) fn states(&self) -> Vec<Option<usize>> {
        let longest = |state: &Option<S>| state.as_ref().map(|state| self.monoid.matched(state));
        let mut states: Vec<_> =
            self.frames.below.iter().chain([&self.frames.state]).skip(1).map(longest).collect();
        if let Some(innermost) = states.last_mut()
            && self.matched
        {
            *innermost = Some(self.length);
        }
        states
    }
}
