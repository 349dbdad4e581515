//! Hashes of sequences, of which that of two one after the other, and of a repetition, follow
//! from those of the parts: the value of a polynomial with the elements as coefficients, modulo
//! the prime 2^61 - 1, at a fixed point.
//!
//! Joining is O(1), repeating O(log times).

use crate::fold::measure::power;
use std::convert::Infallible;

/// The hash of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SequenceHash {
    hash: u64,
    /// What the hash of a sequence before this one is multiplied by.
    factor: u64,
}

const MODULUS: u64 = (1 << 61) - 1;
const POINT: u64 = 0x0123_4567_89ab_cdef;

impl SequenceHash {
    /// That of nothing.
    pub(crate) const EMPTY: Self = Self { hash: 0, factor: 1 };

    /// That of one element.
    pub(crate) fn of(element: u64) -> Self {
        // Small numbers as large coefficients.
        let hash = element.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % MODULUS;
        Self { hash, factor: POINT }
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// This sequence, and then another.
    pub(crate) fn then(self, other: Self) -> Self {
        let (modulus, factor) = (u128::from(MODULUS), u128::from(other.factor));
        let hash = (u128::from(self.hash) * factor + u128::from(other.hash)) % modulus;
        Self { hash: hash as u64, factor: (u128::from(self.factor) * factor % modulus) as u64 }
    }

    pub(crate) fn repeated(self, times: u64) -> Self {
        let append = |all: &mut Self, more: &Self| {
            *all = all.then(*more);
            Ok::<(), Infallible>(())
        };
        let Ok(all) = power(Self::EMPTY, self, times, append);
        all
    }
}
