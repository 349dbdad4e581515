//! The values of all nodes of a slice, and the guide that they make.
//!
//! Making the values is one pass over the items of the slice; see
//! [`values`](super::values) for what they take. The guide has the frames that are open.
//! Following a stretch costs the levels of its value.

use super::PathQuery;
use super::back::Pending;
use super::frame::{FrameState, FrameWords as _, Word};
use super::locate::{EmitBlock, Locator, PathEnds, PathGuide, PathMatcher, pass_slice_items};
use super::slice::{FunctionSlice, SliceItem};
use super::value::{Frames, Paths, Value, View};
use super::values::{Index, Values};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::measure::bottom_up;
use crate::fold::{Grammar as _, Measure as _, Node};
use crate::{Error, Result, RuleId};
use std::borrow::Cow;
use std::sync::Arc;

/// Machine words that the levels of all rules may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

/// The values of all nodes of a slice for one path of its function.
pub(super) struct Matcher<'a, B: FrameState> {
    slice: Arc<FunctionSlice<'a>>,
    paths: Paths<B>,
    values: Values<B>,
    /// Where the value of each node is.
    indices: Vec<Index>,
}

impl<'a, B: FrameState> Matcher<'a, B> {
    /// One pass over the slice.
    pub(super) fn new(slice: &Arc<FunctionSlice<'a>>, query: &PathQuery) -> Result<Self> {
        let paths = Paths::new(query);
        let mut values = Values::default();
        let add = |&(symbol, _): &(_, _)| values.add(&paths.symbol(symbol), &paths.words);
        let symbols = slice.steps().iter().map(add).collect::<Result<_>>()?;
        let mut value = Value::default();
        let indices = bottom_up(&**slice, symbols, |body, indices| {
            let index = index_of_body(slice, body, indices, &paths, &mut values, &mut value)?;
            if values.memory() > MOST_WORDS {
                return Err(Error::limit(
                    "calls are nested so deep that looking for this path takes more than a gigabyte of memory",
                ));
            }
            Ok(index)
        })?;
        Ok(Self { slice: slice.clone(), paths, values, indices })
    }

    /// The value of a node; `None` if that does nothing.
    fn value(&self, node: Node) -> Option<View<'_, B>> {
        match self.indices[node.index()] {
            Index::NOTHING => None,
            index => Some(self.values.get(index)),
        }
    }
}

/// The value of a body, kept if it does something. All its nodes have theirs. `value` is made
/// anew, with the memory it has.
fn index_of_body<B: FrameState>(
    slice: &FunctionSlice<'_>,
    body: &[SliceItem],
    indices: &[Index],
    paths: &Paths<B>,
    values: &mut Values<B>,
    value: &mut Value<B>,
) -> Result<Index> {
    let words = &paths.words;
    value.clear();
    // What happens in the frame that is current at the end, since calls changed it.
    let mut word: Option<Word<B>> = None;
    for &item in body {
        let index = indices[item.node().index()];
        if index == Index::NOTHING {
            continue;
        }
        if let Some(once) = values.word(index) {
            let next = match item.repeats() {
                false => Cow::Borrowed(once),
                true => Cow::Owned(words.repeated(once, slice.item_times(item))),
            };
            match &mut word {
                Some(word) => words.append(word, &next),
                None => word = Some(next.into_owned()),
            }
            continue;
        }
        if let Some(word) = word.take() {
            value.append_word(&word, words);
        }
        paths.append(value, values.get(index), slice.item_times(item))?;
    }
    match word {
        Some(word) if value.is_empty() => return values.add_word(word),
        Some(word) => value.append_word(&word, words),
        None => {}
    }
    values.add(value, words)
}

impl<B: FrameState> PathMatcher for Matcher<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.slice.node(rule).and_then(|node| self.value(node)).map_or(0, |value| value.count)
    }

    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_> {
        Box::new(Locator::new(&*self.slice, rule, FramesGuide { matcher: self, frames: Frames::default() }))
    }

    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>) {
        let mut cursor = Cursor::at(&*self.slice, rule, position);
        let mut pending = Pending::default();
        while let Some(stretch) = cursor.peek_back() {
            let Some(value) = self.value(stretch.item.node()) else {
                cursor.skip_back(stretch.times);
                continue;
            };
            let (leaves, enters) = (value.leaves, value.enters);
            let passed = pending.pass(leaves, enters, stretch.times);
            if passed > 0 {
                cursor.skip_back(passed);
            } else if pending.frames() == enters && !value.reaches_lowest() {
                // Nothing happens in the frame itself; if the stretch is as deep before as
                // behind, then nor does it in the other iterations.
                let passed = if leaves == enters { stretch.times } else { 1 };
                pending.take(leaves, enters, passed);
                cursor.skip_back(passed);
            } else if let Some(position) = cursor.enter_back() {
                // Before the frame itself is entered, there are no blocks of it.
                let Some((symbol, _)) = self.slice.step(stretch.item.node()) else { return };
                if pending.frames() != enters || !emit(symbol, position) {
                    return;
                }
                pending.take(leaves, enters, 1);
            }
        }
    }
}

struct FramesGuide<'m, B: FrameState> {
    matcher: &'m Matcher<'m, B>,
    /// The frames that are open.
    frames: Frames<B>,
}

/// A value that is kept, or one that was made of such.
enum KeptOrMade<'m, B: FrameState> {
    Kept(View<'m, B>),
    Made(Value<B>),
}

impl<B: FrameState> KeptOrMade<'_, B> {
    #[inline]
    fn view(&self) -> View<'_, B> {
        match self {
            Self::Kept(view) => *view,
            Self::Made(value) => value.view(),
        }
    }
}

impl<'m, B: FrameState> Guide<SliceItem> for FramesGuide<'m, B> {
    type Value = KeptOrMade<'m, B>;

    #[inline]
    fn once(&self, item: SliceItem) -> Option<Self::Value> {
        self.matcher.value(item.node()).map(KeptOrMade::Kept)
    }

    fn pass_items(&mut self, items: &[SliceItem], skip: &mut u64) -> usize {
        pass_slice_items(self, &self.matcher.slice, items, skip)
    }

    /// The pass over the slice has made all these powers, so none is too large now.
    fn repeated(&self, once: &Self::Value, times: u64) -> Option<Self::Value> {
        self.matcher.paths.repeated(once.view(), times).ok().map(KeptOrMade::Made)
    }

    #[inline]
    fn count(&self, value: &Self::Value) -> u64 {
        self.frames.count_in(value.view())
    }

    #[inline]
    fn pass(&mut self, value: &Self::Value) {
        self.frames.follow(value.view(), &self.matcher.paths.words);
    }
}

impl<B: FrameState> PathGuide<SliceItem> for FramesGuide<'_, B> {
    fn depth(&self) -> u64 {
        self.frames.depth()
    }
}
