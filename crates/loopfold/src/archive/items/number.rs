//! Codes a number of any size as a few binary decisions.
//!
//! The number plus one is written as many bits: whether there are more, bit by bit, then
//! the bits themselves without the highest. Small numbers, which are the most, take few
//! decisions.

use crate::archive::bit_model::Flag;
use crate::archive::coder::Coder;

/// Numbers that depend on nothing but the numbers before.
pub(super) struct Number {
    more: [Flag; 64],
    bits: Vec<Flag>,
}

/// So many bits below the highest are learnt, the others are coded as random.
const LEARNT: u32 = 5;

impl Default for Number {
    fn default() -> Self {
        Self { more: [Flag::default(); 64], bits: vec![Flag::default(); 64 << LEARNT] }
    }
}

impl Number {
    pub(super) fn code(&mut self, coder: &mut impl Coder, number: u64) -> u64 {
        code_number(number, |decision, value| match decision {
            Decision::More { bits } => self.more[bits as usize].code(coder, value),
            Decision::Bit { bits, depth, high } if depth < LEARNT => {
                self.bits[(bits << LEARNT) as usize | high as usize].code(coder, value)
            }
            Decision::Bit { .. } => coder.even(value),
        })
    }
}

/// What is decided next of a number plus one.
#[derive(Clone, Copy)]
pub(super) enum Decision {
    /// Whether it has more than this many bits below the highest.
    More { bits: u32 },
    /// The next bit, of so many below the highest; so many are known, and `high` is all of
    /// the number that is known.
    Bit { bits: u32, depth: u32, high: u64 },
}

/// Codes a number by decisions. The largest number is taken for the one before it.
#[inline]
pub(super) fn code_number(number: u64, mut decide: impl FnMut(Decision, bool) -> bool) -> u64 {
    let wanted = number.saturating_add(1);
    let mut bits = 0;
    while bits < 63 && decide(Decision::More { bits }, wanted.ilog2() > bits) {
        bits += 1;
    }
    let mut high = 1u64;
    for depth in 0..bits {
        let value = wanted >> (bits - 1 - depth) & 1 == 1;
        high = high << 1 | u64::from(decide(Decision::Bit { bits, depth, high }, value));
    }
    high - 1
}
