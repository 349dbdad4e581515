//! Sets of places in a query, as bits. Queries of up to 64 events need one machine word
//! and no memory of their own; longer ones need a list of them, none when empty.

use std::fmt::Debug;

/// A set of places in a query.
pub(super) trait Bits: Clone + Debug + Default + PartialEq + Send + Sync {
    /// Adds a place.
    fn insert(&mut self, place: usize);

    /// True when no place is in the set.
    fn is_empty(&self) -> bool;

    /// The places in both sets.
    fn and(&self, other: &Self) -> Self;

    /// The places in one of the sets or both.
    fn or(&self, other: &Self) -> Self;

    /// How many places are in both sets.
    fn common(&self, other: &Self) -> u64;

    /// True when there are places in both sets.
    fn meets(&self, other: &Self) -> bool;

    /// The set with `by` added to every place.
    fn up(&self, by: usize) -> Self;

    /// The places for which the place `by` further on is in the other set.
    fn and_down(&self, other: &Self, by: usize) -> Self;

    /// Machine words of memory besides the value itself.
    fn words(&self) -> usize;
}

impl Bits for u64 {
    fn insert(&mut self, place: usize) {
        *self |= 1 << place;
    }

    fn is_empty(&self) -> bool {
        *self == 0
    }

    fn and(&self, other: &Self) -> Self {
        self & other
    }

    fn or(&self, other: &Self) -> Self {
        self | other
    }

    fn common(&self, other: &Self) -> u64 {
        let both = self & other;
        if both == 0 { 0 } else { count_ones(both) }
    }

    fn meets(&self, other: &Self) -> bool {
        self & other != 0
    }

    fn up(&self, by: usize) -> Self {
        if by < 64 { self << by } else { 0 }
    }

    fn and_down(&self, other: &Self, by: usize) -> Self {
        if by < 64 { self & other >> by } else { 0 }
    }

    fn words(&self) -> usize {
        0
    }
}

/// Out of line: mostly there is nothing to count, and not every processor counts at once.
#[inline(never)]
fn count_ones(bits: u64) -> u64 {
    bits.count_ones().into()
}

/// A set of places that may be many: 64 to a word, no words of zeros at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wide(Vec<u64>);

impl Wide {
    /// A set of up to `most` words; those that are zero at the end take no memory.
    fn of_words(most: usize, word: impl Fn(usize) -> u64) -> Self {
        let used = (0..most).rposition(|index| word(index) != 0).map_or(0, |last| last + 1);
        Self((0..used).map(word).collect())
    }

    fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u64, u64)> + 'a {
        self.0.iter().copied().zip(other.0.iter().copied())
    }
}

impl Bits for Wide {
    fn insert(&mut self, place: usize) {
        let word = place / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (place % 64);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn and(&self, other: &Self) -> Self {
        Self::of_words(self.0.len().min(other.0.len()), |index| self.0[index] & other.0[index])
    }

    fn or(&self, other: &Self) -> Self {
        let (short, long) = if self.0.len() < other.0.len() { (self, other) } else { (other, self) };
        let mut words = long.0.clone();
        words.iter_mut().zip(&short.0).for_each(|(word, more)| *word |= more);
        Self(words)
    }

    fn common(&self, other: &Self) -> u64 {
        self.pairs(other).map(|(left, right)| u64::from((left & right).count_ones())).sum()
    }

    fn meets(&self, other: &Self) -> bool {
        self.pairs(other).any(|(left, right)| left & right != 0)
    }

    fn up(&self, by: usize) -> Self {
        let (whole, part) = (by / 64, by % 64);
        let word = |index: usize| self.0.get(index).copied().unwrap_or(0);
        let moved = |index: usize| match index.checked_sub(whole) {
            None => 0,
            Some(index) if part == 0 => word(index),
            Some(0) => word(0) << part,
            Some(index) => word(index) << part | word(index - 1) >> (64 - part),
        };
        if self.0.is_empty() { Self::default() } else { Self::of_words(self.0.len() + whole + 1, moved) }
    }

    fn and_down(&self, other: &Self, by: usize) -> Self {
        let (whole, part) = (by / 64, by % 64);
        let rest = other.0.get(whole..).unwrap_or_default();
        let both = |index: usize| {
            let above = rest.get(index + 1).copied().unwrap_or(0);
            self.0[index] & (rest[index] >> part | if part > 0 { above << (64 - part) } else { 0 })
        };
        Self::of_words(self.0.len().min(rest.len()), both)
    }

    fn words(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::Rng;
    use std::collections::BTreeSet;

    fn bits<B: Bits>(places: &BTreeSet<usize>) -> B {
        let mut set = B::default();
        places.iter().for_each(|&place| set.insert(place));
        set
    }

    /// Compares every operation with that on a set of numbers.
    fn check<B: Bits>(size: usize, rng: &mut Rng) {
        let mut random = || -> BTreeSet<usize> { (0..rng.below(6)).map(|_| rng.below(size)).collect() };
        let (a, b) = (random(), random());
        let by = rng.below(size + 70);
        let (left, right): (B, B) = (bits(&a), bits(&b));
        assert_eq!(left.and(&right), bits(&(&a & &b)));
        assert_eq!(left.or(&right), bits(&(&a | &b)));
        assert_eq!(left.common(&right), (&a & &b).len() as u64);
        assert_eq!(left.meets(&right), !a.is_disjoint(&b));
        assert_eq!(left.is_empty(), a.is_empty());
        let near = rng.below(10);
        let further = a.iter().copied().filter(|place| b.contains(&(place + near))).collect();
        assert_eq!(left.and_down(&right, near), bits(&further));
        assert!(left.and_down(&right, size).is_empty());
        let moved = a.iter().map(|place| place + by).filter(|&place| size > 64 || place < 64).collect();
        assert_eq!(left.up(by), bits(&moved));
    }

    #[test]
    fn bits_are_sets() {
        let mut rng = Rng::new(61);
        for _ in 0..20_000 {
            check::<u64>(64, &mut rng);
            check::<Wide>(300, &mut rng);
        }
    }
}
