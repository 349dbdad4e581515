//! Functions that are not recursive, as most: their frames need no levels.
//!
//! One [`Word`] is all there is to know of a node of the slice: the symbols of others do
//! nothing, and where a frame begins or ends, nothing goes on.
//!
//! One pass over the items of the slice, a few nanoseconds each. Memory: a word for each
//! node, of 24 bytes for paths of up to 32 blocks, of 40 for up to 64.

use super::PathQuery;
use super::frame::{FrameState, FrameWord as _, FrameWords as _, Word, Words};
use super::functions::Step;
use super::locate::{EmitBlock, Locator, PathEnds, PathGuide, PathMatcher, pass_slice_items};
use super::slice::{FunctionSlice, SliceItem};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::measure::bottom_up;
use crate::fold::{Grammar as _, Node};
use crate::{Error, Result, RuleId};
use std::borrow::Cow;
use std::sync::Arc;

/// The words of all nodes for a path of a function that is not recursive.
pub(super) struct Tame<'a, B: FrameState> {
    slice: Arc<FunctionSlice<'a>>,
    measure: Words<B>,
    words: Vec<Word<B>>,
}

/// Machine words that the words of long paths may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

impl<'a, B: FrameState> Tame<'a, B> {
    /// One pass over the slice; an error if there is too much to keep.
    pub(super) fn new(slice: &Arc<FunctionSlice<'a>>, query: &PathQuery) -> Result<Self> {
        let measure = Words::<B>::new(query);
        let symbols = slice.steps().iter().map(|&(symbol, step)| match step {
            Step::Block => measure.symbol(symbol),
            // Others than enters and leaves are only in recursive functions.
            _ => measure.seam().clone(),
        });
        let (mut memory, empty) = (0, measure.empty());
        let words = bottom_up(&**slice, symbols.collect(), |body, words| {
            let mut all = empty.clone();
            for &item in body {
                let once = &words[item.node().index()];
                match item.repeats() {
                    false => measure.append(&mut all, once),
                    true => measure.append(&mut all, &measure.repeated(once, slice.item_times(item))),
                }
            }
            memory += all.words();
            if memory > MOST_WORDS {
                return Err(Error::limit("looking for this path takes more than a gigabyte of memory"));
            }
            Ok(all)
        })?;
        Ok(Self { slice: slice.clone(), measure, words })
    }

    fn word(&self, node: Node) -> &Word<B> {
        &self.words[node.index()]
    }
}

impl<B: FrameState> PathMatcher for Tame<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.slice.node(rule).map_or(0, |node| self.word(node).count_after(&B::default()))
    }

    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_> {
        Box::new(Locator::new(&*self.slice, rule, TameGuide { tame: self, state: B::default() }))
    }

    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>) {
        let mut cursor = Cursor::at(&*self.slice, rule, position);
        while let Some(stretch) = cursor.peek_back() {
            if let Some(position) = cursor.enter_back() {
                // Before the frame itself is entered, there are no blocks of it.
                match self.slice.step(stretch.item.node()) {
                    Some((symbol, Step::Block)) if emit(symbol, position) => {}
                    _ => return,
                }
            }
        }
    }
}

struct TameGuide<'m, B: FrameState> {
    tame: &'m Tame<'m, B>,
    /// The state of the path in the frame that is open, if one is.
    state: B,
}

impl<'m, B: FrameState> Guide<SliceItem> for TameGuide<'m, B> {
    type Value = Cow<'m, Word<B>>;

    #[inline]
    fn once(&self, item: SliceItem) -> Option<Self::Value> {
        Some(Cow::Borrowed(self.tame.word(item.node())))
    }

    fn pass_items(&mut self, items: &[SliceItem], skip: &mut u64) -> usize {
        pass_slice_items(self, &self.tame.slice, items, skip)
    }

    fn repeated(&self, once: &Self::Value, times: u64) -> Option<Self::Value> {
        Some(Cow::Owned(self.tame.measure.repeated(once, times)))
    }

    fn count(&self, word: &Self::Value) -> u64 {
        word.count_after(&self.state)
    }

    fn pass(&mut self, word: &Self::Value) {
        self.tame.measure.follow(&mut self.state, word);
    }
}

impl<B: FrameState> PathGuide<SliceItem> for TameGuide<'_, B> {
    fn depth(&self) -> u64 {
        1
    }
}
