//! The boundaries of the intervals into which a stream is divided while it is being
//! folded: a bit set with neighbours in both directions.
//!
//! A tree of words with 64 children each, so that finding a neighbour costs a few
//! steps however far away it is. Takes a little more than two bits a position.

/// Intervals that cover `0..length`, each live or dead.
pub(super) struct Intervals {
    levels: Vec<Vec<u64>>,
    /// Marks the boundaries at which a dead interval begins.
    dead: Vec<u64>,
}

impl Intervals {
    /// One live interval.
    pub(super) fn new(length: usize) -> Self {
        let mut levels = Vec::new();
        let mut bits = length + 1;
        loop {
            let words = bits / 64 + 1;
            levels.push(vec![0; words]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut intervals = Self { levels, dead: vec![0; length / 64 + 1] };
        intervals.divide(0);
        intervals.divide(length);
        intervals
    }

    /// Makes `position` a boundary.
    pub(super) fn divide(&mut self, mut position: usize) {
        for level in &mut self.levels {
            let word = &mut level[position / 64];
            let known = *word != 0;
            *word |= 1 << (position % 64);
            if known {
                break;
            }
            position /= 64;
        }
    }

    /// Makes the interval that begins at a boundary dead.
    pub(super) fn kill(&mut self, start: usize) {
        self.dead[start / 64] |= 1 << (start % 64);
    }

    /// Whether the interval that begins at a boundary is dead.
    pub(super) fn is_dead(&self, start: usize) -> bool {
        self.dead[start / 64] >> (start % 64) & 1 == 1
    }

    /// Where the interval that contains `position` begins.
    pub(super) fn start_of(&self, position: usize) -> usize {
        let (mut level, mut at) = (0, position);
        loop {
            let word = self.levels[level][at / 64] & (u64::MAX >> (63 - at % 64));
            if word != 0 {
                at = at / 64 * 64 + 63 - word.leading_zeros() as usize;
                break;
            }
            // Position 0 is a boundary, so there is always a word further left.
            at = at / 64 - 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            at = at * 64 + 63 - self.levels[level][at].leading_zeros() as usize;
        }
        at
    }

    /// The first boundary after `position`, which must lie before the end.
    pub(super) fn end_after(&self, position: usize) -> usize {
        let (mut level, mut at) = (0, position + 1);
        loop {
            let word = self.levels[level].get(at / 64).map_or(0, |word| word & (u64::MAX << (at % 64)));
            if word != 0 {
                at = at / 64 * 64 + word.trailing_zeros() as usize;
                break;
            }
            at = at / 64 + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            at = at * 64 + self.levels[level][at].trailing_zeros() as usize;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_equal_those_in_a_set() {
        let mut rng = Rng::new(3);
        for length in [1, 63, 64, 65, 4095, 4096, 5000, 300_000] {
            let mut intervals = Intervals::new(length);
            let mut set = BTreeSet::from([0, length]);
            for _ in 0..300 {
                let position = rng.below(length);
                assert_eq!(Some(&intervals.start_of(position)), set.range(..=position).next_back());
                assert_eq!(Some(&intervals.end_after(position)), set.range(position + 1..).next());
                let cut = rng.below(length);
                intervals.divide(cut);
                set.insert(cut);
            }
        }
    }
}
