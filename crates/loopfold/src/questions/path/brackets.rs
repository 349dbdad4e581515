//! How calls nest in a stretch.

use super::functions::Step;

/// Whether a stretch begins and ends inside of a frame of a function: all there is to know of
/// its nesting as long as the function is not recursive.
///
/// A function is *not recursive* in a fold if every stream enters it only while it is not
/// open, and has its blocks and exits only while it is. Then a path is a plain sequence of the
/// function's own symbols. The first of them says where a stretch can begin, the last one
/// where it ends, and neighbours must agree. So a body is checked pair by pair, and no pair
/// waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameBoundary(u8);

const BEGINS_INSIDE: u8 = 1;
const ENDS_INSIDE: u8 = 2;
/// It is recursive, or frames of other functions matter as well.
const RECURSIVE: u8 = 4;

impl FrameBoundary {
    pub(super) fn of(step: Step) -> Self {
        Self(match step {
            Step::Enter => ENDS_INSIDE,
            Step::Leave => BEGINS_INSIDE,
            Step::Block => BEGINS_INSIDE | ENDS_INSIDE,
            Step::EnterOther | Step::BlockThenEnter | Step::BlockThenEnterOther => RECURSIVE,
        })
    }

    /// True if it can be that of a whole stream.
    pub(super) fn begins_outside(self) -> bool {
        self.0 & (BEGINS_INSIDE | RECURSIVE) == 0
    }

    /// The boundary of several stretches one after the other, each of them once or repeated;
    /// `None` if they do not agree.
    #[inline]
    pub(super) fn joined(mut boundaries: impl Iterator<Item = (Self, bool)>) -> Option<Self> {
        let (first, repeats) = boundaries.next()?;
        let mut wrong = if repeats { first.disagrees(first) } else { first.0 & RECURSIVE };
        let mut last = first;
        for (next, repeats) in boundaries {
            wrong |= last.disagrees(next) | if repeats { next.disagrees(next) } else { 0 };
            last = next;
        }
        (wrong == 0).then_some(Self(first.0 & BEGINS_INSIDE | last.0 & ENDS_INSIDE))
    }

    /// Not 0 if the other cannot come next.
    #[inline]
    fn disagrees(self, next: Self) -> u8 {
        (self.0 >> 1 ^ next.0) & BEGINS_INSIDE | (self.0 | next.0) & RECURSIVE
    }
}
