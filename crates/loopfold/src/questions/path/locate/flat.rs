//! Finds paths of non-recursive functions, whose frames need no levels.
//!
//! A node of the slice has one summary of blocks: the symbols of other functions do nothing,
//! and an enter or a leave resets the path.
//!
//! One pass over the items of the slice, a few nanoseconds each. Memory: a summary for each
//! node, of 24 bytes for paths of up to 32 blocks, of 40 for up to 64.

use super::super::PathQuery;
use super::super::brackets::Brackets;
use super::super::functions::Step;
use super::super::slice::{FunctionSlice, SliceItem};
use super::super::summary::frame::{FrameMonoid as _, FrameState, FrameSummary as _, MonoidOf, SummaryOf};
use super::reverse_scan::{EmitBlock, blocks_before};
use super::{Locator, PathEnds, PathGuide, PathMatcher, inside_one_frame, pass_slice_items};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::measure::bottom_up;
use crate::fold::{Grammar as _, Node};
use crate::{Error, Result, RuleId};
use std::borrow::Cow;
use std::sync::Arc;

/// The summaries of all nodes for a path of a function that is not recursive.
pub(super) struct FlatMatcher<'a, S: FrameState> {
    slice: Arc<FunctionSlice<'a>>,
    monoid: MonoidOf<S>,
    summaries: Vec<SummaryOf<S>>,
}

/// Machine words that the summaries of long paths may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

impl<'a, S: FrameState> FlatMatcher<'a, S> {
    /// One pass over the slice.
    pub(super) fn new(slice: &Arc<FunctionSlice<'a>>, query: &PathQuery) -> Result<Self> {
        let monoid = MonoidOf::<S>::new(query);
        let symbols = slice.steps().iter().map(|&(symbol, step)| match step {
            Step::Block => monoid.symbol(symbol),
            _ => monoid.reset().clone(),
        });
        let (mut words, empty) = (0, monoid.empty());
        let summaries = bottom_up(&**slice, symbols.collect(), |_, body, summaries| {
            let mut all = empty.clone();
            for &item in body {
                let once = &summaries[item.node().index()];
                match item.repeats() {
                    false => monoid.append(&mut all, once),
                    true => monoid.append(&mut all, &monoid.repeated(once, slice.item_times(item))),
                }
            }
            words += all.heap_words();
            if words > MOST_WORDS {
                return Err(Error::limit("looking for this path takes more than a gigabyte of memory"));
            }
            Ok(all)
        })?;
        Ok(Self { slice: slice.clone(), monoid, summaries })
    }

    #[inline]
    fn summary(&self, node: Node) -> &SummaryOf<S> {
        &self.summaries[node.index()]
    }
}

impl<S: FrameState> PathMatcher for FlatMatcher<'_, S> {
    fn count(&self, rule: RuleId) -> u64 {
        self.slice.node(rule).map_or(0, |node| self.summary(node).count_after(&S::default()))
    }

    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_> {
        Box::new(Locator::new(&*self.slice, rule, FlatGuide { matcher: self, state: S::default() }))
    }

    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>) {
        let brackets = |item: SliceItem| match self.slice.step(item.node()) {
            Some((_, step)) => Brackets::of_step(step),
            None => inside_one_frame(),
        };
        blocks_before(Cursor::at(&*self.slice, rule, position), brackets, emit);
    }
}

struct FlatGuide<'m, S: FrameState> {
    matcher: &'m FlatMatcher<'m, S>,
    /// The state of the path in the frame that is open, if one is.
    state: S,
}

impl<'m, S: FrameState> Guide<SliceItem> for FlatGuide<'m, S> {
    type Value = Cow<'m, SummaryOf<S>>;

    #[inline]
    fn once(&self, item: SliceItem) -> Option<Self::Value> {
        Some(Cow::Borrowed(self.matcher.summary(item.node())))
    }

    fn pass_items(&mut self, items: &[SliceItem], skip: &mut u64) -> usize {
        pass_slice_items(self, &self.matcher.slice, items, skip)
    }

    fn repeated(&self, once: &Self::Value, times: u64) -> Option<Self::Value> {
        Some(Cow::Owned(self.matcher.monoid.repeated(once, times)))
    }

    #[inline]
    fn count(&self, summary: &Self::Value) -> u64 {
        summary.count_after(&self.state)
    }

    #[inline]
    fn pass(&mut self, summary: &Self::Value) {
        self.matcher.monoid.follow(&mut self.state, summary);
    }
}

impl<S: FrameState> PathGuide<SliceItem> for FlatGuide<'_, S> {
    fn depth(&self) -> u64 {
        1
    }
}
