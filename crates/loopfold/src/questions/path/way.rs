//! Where a stretch leads, from outside of a function or from inside of it: whether frames
//! of the function need levels at all.
//!
//! A function is *tame* in a fold if, in every stream, it is entered only while it is not
//! open, and its blocks and exits come only while it is. Then a path is a plain sequence of
//! its own symbols, and where a frame begins or ends, nothing goes on. Its first symbol says
//! where a stretch can begin, its last one where it ends, and neighbours must agree: so a
//! body is looked at pair by pair, which no processor has to wait for.

use super::functions::Step;

/// Where a stretch of symbols of the function begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way(u8);

const BEGINS_INSIDE: u8 = 1;
const ENDS_INSIDE: u8 = 2;
/// It calls itself, or frames of others matter as well, which are told apart only by order.
const LOST: u8 = 4;

impl Way {
    pub(super) fn of(step: Step) -> Self {
        Self(match step {
            Step::Enter => ENDS_INSIDE,
            Step::Leave => BEGINS_INSIDE,
            Step::Block => BEGINS_INSIDE | ENDS_INSIDE,
            Step::EnterOther | Step::BlockThenEnter | Step::BlockThenEnterOther => LOST,
        })
    }

    /// True if it can be the way of a whole stream.
    pub(super) fn begins_outside(self) -> bool {
        self.0 & (BEGINS_INSIDE | LOST) == 0
    }

    /// The way of several stretches one after the other, each of them once or repeated;
    /// nothing if they do not agree.
    #[inline]
    pub(super) fn joined(mut ways: impl Iterator<Item = (Self, bool)>) -> Option<Self> {
        let (first, repeats) = ways.next()?;
        let mut wrong = if repeats { first.clashes(first) } else { first.0 & LOST };
        let mut last = first;
        for (next, repeats) in ways {
            wrong |= last.clashes(next) | if repeats { next.clashes(next) } else { 0 };
            last = next;
        }
        (wrong == 0).then_some(Self(first.0 & BEGINS_INSIDE | last.0 & ENDS_INSIDE))
    }

    /// Not 0 if the other cannot come next.
    #[inline]
    fn clashes(self, next: Self) -> u8 {
        (self.0 >> 1 ^ next.0) & BEGINS_INSIDE | (self.0 | next.0) & LOST
    }
}
