//! Finds paths of any function, by summaries of the nodes of a slice with a level for each
//! call.
//!
//! The summaries take one pass over the items of the slice, some tens of nanoseconds each,
//! times the levels of recursion that differ. The guide keeps the open frames; skipping a
//! stretch costs the levels of its summary.

use super::super::PathQuery;
use super::super::slice::{FunctionSlice, SliceItem};
use super::super::summary::frame::FrameState;
use super::super::summary::{Frames, NestedSummary, PathMonoid, StoreIndex, SummaryStore, SummaryView};
use super::reverse_scan::{EmitBlock, blocks_before};
use super::{Locator, PathEnds, PathGuide, PathMatcher, pass_slice_items};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::measure::bottom_up;
use crate::fold::{Grammar as _, Measure as _, Node};
use crate::{Error, Result, RuleId};
use std::sync::Arc;

/// Machine words that the levels of all rules may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

/// The summaries of all nodes of a slice for one path of its function.
pub(super) struct NestedMatcher<'a, S: FrameState> {
    slice: Arc<FunctionSlice<'a>>,
    monoid: PathMonoid<S>,
    store: SummaryStore<S>,
    /// Where the summary of each node is.
    indices: Vec<StoreIndex>,
}

impl<'a, S: FrameState> NestedMatcher<'a, S> {
    /// One pass over the slice.
    pub(super) fn new(slice: &Arc<FunctionSlice<'a>>, query: &PathQuery) -> Result<Self> {
        let monoid = PathMonoid::new(query);
        let mut store = SummaryStore::default();
        let add = |&(symbol, _): &(_, _)| store.add(&monoid.symbol(symbol), &monoid.blocks);
        let symbols = slice.steps().iter().map(add).collect::<Result<_>>()?;
        let mut scratch = NestedSummary::default();
        let indices = bottom_up(&**slice, symbols, |_, body, indices| {
            let items = body.iter().map(|&item| (indices[item.node().index()], slice.item_times(item)));
            let index = store.add_joined(items, &monoid, &mut scratch)?;
            if store.memory() > MOST_WORDS {
                return Err(Error::limit(
                    "calls are nested so deep that looking for this path takes more than a gigabyte of memory",
                ));
            }
            Ok(index)
        })?;
        Ok(Self { slice: slice.clone(), monoid, store, indices })
    }

    fn summary(&self, node: Node) -> SummaryView<'_, S> {
        self.store.get(self.indices[node.index()])
    }
}

impl<S: FrameState> PathMatcher for NestedMatcher<'_, S> {
    fn count(&self, rule: RuleId) -> u64 {
        self.slice.node(rule).map_or(0, |node| self.summary(node).count)
    }

    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_> {
        Box::new(Locator::new(&*self.slice, rule, NestedGuide { matcher: self, frames: Frames::default() }))
    }

    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>) {
        let brackets = |item: SliceItem| self.summary(item.node()).brackets();
        blocks_before(Cursor::at(&*self.slice, rule, position), brackets, emit);
    }
}

struct NestedGuide<'m, S: FrameState> {
    matcher: &'m NestedMatcher<'m, S>,
    /// The frames that are open.
    frames: Frames<S>,
}

/// A summary that is kept, or one that was made of such.
enum KeptOrMade<'m, S: FrameState> {
    Kept(SummaryView<'m, S>),
    Made(NestedSummary<S>),
}

impl<S: FrameState> KeptOrMade<'_, S> {
    #[inline]
    fn view(&self) -> SummaryView<'_, S> {
        match self {
            Self::Kept(view) => *view,
            Self::Made(summary) => summary.view(),
        }
    }
}

impl<'m, S: FrameState> Guide<SliceItem> for NestedGuide<'m, S> {
    type Value = KeptOrMade<'m, S>;

    #[inline]
    fn once(&self, item: SliceItem) -> Option<Self::Value> {
        match self.matcher.indices[item.node().index()] {
            StoreIndex::NOTHING => None,
            index => Some(KeptOrMade::Kept(self.matcher.store.get(index))),
        }
    }

    fn pass_items(&mut self, items: &[SliceItem], skip: &mut u64) -> usize {
        pass_slice_items(self, &self.matcher.slice, items, skip)
    }

    /// The pass over the slice has made all these powers, so none is too large now.
    fn repeated(&self, once: &Self::Value, times: u64) -> Option<Self::Value> {
        self.matcher.monoid.repeated(once.view(), times).ok().map(KeptOrMade::Made)
    }

    #[inline]
    fn count(&self, summary: &Self::Value) -> u64 {
        self.frames.count_in(summary.view())
    }

    #[inline]
    fn pass(&mut self, summary: &Self::Value) {
        self.frames.follow(summary.view(), &self.matcher.monoid.blocks);
    }
}

impl<S: FrameState> PathGuide<SliceItem> for NestedGuide<'_, S> {
    fn depth(&self) -> u64 {
        self.frames.depth()
    }
}
