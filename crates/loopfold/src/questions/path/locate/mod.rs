//! Where a path occurs: a cursor along a stream, guided by what is known of each stretch
//! ahead.
//!
//! A [guide](PathGuide) has the state of the path behind the cursor, so it knows for every
//! stretch ahead how many occurrences end in it. What holds none is passed over, repeats are
//! bisected, and the rest is entered. Finding one occurrence costs at most the items of the
//! rules that are entered, and the logarithm of each repeat.

use super::slice::{FunctionSlice, SliceItem};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::{Grammar as _, Located};
use crate::{RuleId, Symbol};

/// Where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The position of the last block.
    pub(super) position: u64,
    /// How many frames of the function are open there.
    pub(super) depth: u64,
}

/// What is called with the symbol and the position of a block; false if it needs no more.
pub(super) type EmitBlock<'a> = dyn FnMut(Symbol, u64) -> bool + 'a;

/// What is known of one path in all rules.
pub(super) trait PathMatcher: Send + Sync {
    /// How often the path occurs in a rule that is a whole stream.
    fn count(&self, rule: RuleId) -> u64;

    /// The occurrences in a rule that is a whole stream, in order.
    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_>;

    /// Emits the blocks that lie before a position in the frame that is innermost there, from
    /// the last to the first. Blocks that do nothing to the path may be left out.
    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>);
}

/// Occurrences of a path in a stream, in order.
pub(super) trait PathEnds {
    /// Passes over `skip` occurrences and returns where the next one ends. When there are
    /// not so many, `skip` is what there is still to pass over.
    fn next(&mut self, skip: &mut u64) -> Option<End>;
}

/// A guide to the ends of a path.
pub(super) trait PathGuide<T>: Guide<T> {
    /// How many frames of the function are open.
    fn depth(&self) -> u64;
}

/// A cursor that goes from one occurrence to the next.
pub(super) struct Locator<'m, L: Located, G> {
    cursor: Cursor<'m, L>,
    guide: G,
}

impl<'m, L: Located, G: PathGuide<L::Item>> Locator<'m, L, G> {
    /// From the beginning of a rule that is a whole stream, where the guide is.
    pub(super) fn new(located: &'m L, rule: RuleId, guide: G) -> Self {
        Self { cursor: Cursor::new(located, rule), guide }
    }
}

impl<L: Located, G: PathGuide<L::Item>> PathEnds for Locator<'_, L, G> {
    fn next(&mut self, skip: &mut u64) -> Option<End> {
        let (position, item) = self.cursor.locate(&mut self.guide, skip)?;
        // A block that also enters is not yet in its own call.
        let depth = self.guide.depth();
        if let Some(block) = self.guide.once(item) {
            self.guide.pass(&block);
        }
        Some(End { position, depth })
    }
}

/// Passes over the first items of a slice that have no more than `skip` occurrences, and
/// returns how many: where they lie is not looked up.
pub(super) fn pass_slice_items<G: Guide<SliceItem>>(
    guide: &mut G,
    slice: &FunctionSlice<'_>,
    items: &[SliceItem],
    skip: &mut u64,
) -> usize {
    let mut pass = |item: SliceItem| {
        let Some(once) = guide.once(item) else { return true };
        let value = match item.repeats() {
            false => once,
            true => match guide.repeated(&once, slice.item_times(item)) {
                Some(value) => value,
                None => return false,
            },
        };
        let Some(rest) = skip.checked_sub(guide.count(&value)) else { return false };
        *skip = rest;
        guide.pass(&value);
        true
    };
    items.iter().position(|&item| !pass(item)).unwrap_or(items.len())
}
