//! Finds where a path occurs, by a cursor along a stream that is guided by the summaries of the
//! stretches ahead.
//!
//! A [guide](PathGuide) has the state of the path before the cursor, so it knows for every
//! stretch ahead how many occurrences end in it. Stretches without any are skipped, repeats are
//! bisected, and the others are entered. Finding one occurrence costs at most the items of the
//! rules that are entered, and the logarithm of each repeat.

//!
//! There are three guides: [`nested`] for any function, [`flat`] for functions that are not
//! recursive, both on the slice of a function, and [`direct`] for a first short path of the
//! latter, on the fold itself. Where an occurrence begins is found by a [`reverse_scan`].

mod direct;
mod flat;
mod found;
mod nested;
mod reverse_scan;
mod starts;

use super::brackets::{Brackets, HasBlock};
use super::slice::{FunctionSlice, SliceItem};
use crate::RuleId;
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::{Grammar as _, Located};
pub use found::{PathFound, PathPlace, PathPlaces};
pub use reverse_scan::CallStacks;
use reverse_scan::EmitBlock;
pub use starts::{PathMemory, PathStarts};

/// Where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// The position of the last block.
    position: u64,
    /// How many frames of the function are open there.
    depth: u64,
}

/// The summaries of one path in all rules.
trait PathMatcher: Send + Sync {
    /// How often the path occurs in a rule that is a whole stream.
    fn count(&self, rule: RuleId) -> u64;

    /// The occurrences in a rule that is a whole stream, in order.
    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_>;

    /// Emits the blocks that lie before a position in the frame that is innermost there, from
    /// the last to the first. Blocks that do nothing to the path may be left out.
    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>);
}

/// Occurrences of a path in a stream, in order.
trait PathEnds {
    /// Skips `skip` occurrences and returns where the next one ends. If there are fewer, `skip`
    /// is the number of occurrences that are missing.
    fn next(&mut self, skip: &mut u64) -> Option<End>;
}

/// A guide to the ends of a path.
trait PathGuide<T>: Guide<T> {
    /// How many frames of the function are open.
    fn depth(&self) -> u64;
}

/// A cursor that goes from one occurrence to the next.
struct Locator<'m, L: Located, G> {
    cursor: Cursor<'m, L>,
    guide: G,
}

impl<'m, L: Located, G: PathGuide<L::Item>> Locator<'m, L, G> {
    /// From the beginning of a rule that is a whole stream, where the guide is.
    fn new(located: &'m L, rule: RuleId, guide: G) -> Self {
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

/// Skips the first items of a slice that have no more than `skip` occurrences, and returns how
/// many: where they lie is not looked up.
fn pass_slice_items<G: Guide<SliceItem>>(
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

/// The brackets of a rule of a function that is not recursive, seen from inside of the frame
/// that a reverse scan is in: all that is met there belongs to this frame, up to the symbol
/// that enters it.
fn inside_one_frame() -> Brackets<HasBlock> {
    Brackets::new(0, 0, HasBlock(true))
}
