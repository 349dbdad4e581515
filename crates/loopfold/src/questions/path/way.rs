//! Where a stretch leads, from outside of a function and from inside of it: whether frames
//! of the function need levels at all.
//!
//! A function is *tame* in a fold if, in every stream, it is entered only while it is not
//! open, and its blocks and exits come only while it is. Then a path is a plain sequence of
//! its own symbols, and where a frame begins or ends, nothing goes on.

use super::functions::Step;

/// Where a stretch leads: the lower two bits from outside of the function, the upper two
/// from inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way(u8);

pub(super) const OUTSIDE: u8 = 0;
const INSIDE: u8 = 1;
/// Once wrong, always wrong.
pub(super) const WRONG: u8 = 2;

impl Way {
    pub(super) const NONE: Self = Self::new(OUTSIDE, INSIDE);
    const ENTER: Self = Self::new(INSIDE, WRONG);
    const LEAVE: Self = Self::new(WRONG, OUTSIDE);
    const BLOCK: Self = Self::new(WRONG, INSIDE);
    pub(super) const LOST: Self = Self::new(WRONG, WRONG);

    const fn new(from_outside: u8, from_inside: u8) -> Self {
        Self(from_outside | from_inside << 2)
    }

    pub(super) fn of(step: Step) -> Self {
        match step {
            Step::Enter => Self::ENTER,
            Step::Leave => Self::LEAVE,
            Step::Block => Self::BLOCK,
            // It calls itself, or frames of others are told apart only by order.
            Step::EnterOther | Step::BlockThenEnter | Step::BlockThenEnterOther => Self::LOST,
        }
    }

    pub(super) fn from(self, place: u8) -> u8 {
        if place == WRONG { WRONG } else { self.0 >> (2 * place) & 3 }
    }

    #[inline]
    pub(super) fn then(self, next: Self) -> Self {
        Self::new(next.from(self.from(OUTSIDE)), next.from(self.from(INSIDE)))
    }

    /// The first symbol of the function is wrong outside or wrong inside, so a way leads on
    /// from one of the two at the most: what goes well twice always does.
    #[inline]
    pub(super) fn repeated(self, times: u64) -> Self {
        match times {
            0 => Self::NONE,
            1 => self,
            _ => self.then(self),
        }
    }
}
