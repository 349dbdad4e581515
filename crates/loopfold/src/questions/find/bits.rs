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

    /// The set with `by` added to every place.
    fn up(&self, by: usize) -> Self;

    /// The set with `by` taken from every place; places before that fall out.
    fn down(&self, by: usize) -> Self;

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
        u64::from((self & other).count_ones())
    }

    fn up(&self, by: usize) -> Self {
        if by < 64 { self << by } else { 0 }
    }

    fn down(&self, by: usize) -> Self {
        if by < 64 { self >> by } else { 0 }
    }

    fn words(&self) -> usize {
        0
    }
}

/// A set of places that may be many: 64 to a word, no words of zeros at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wide(Vec<u64>);

impl Wide {
    fn trimmed(mut words: Vec<u64>) -> Self {
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        words.truncate(used);
        Self(words)
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
        Self::trimmed(self.pairs(other).map(|(left, right)| left & right).collect())
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

    fn up(&self, by: usize) -> Self {
        if self.0.is_empty() {
            return Self::default();
        }
        let (whole, part) = (by / 64, by % 64);
        let mut words = vec![0; self.0.len() + whole + 1];
        for (index, &word) in self.0.iter().enumerate() {
            words[index + whole] |= word << part;
            if part > 0 {
                words[index + whole + 1] |= word >> (64 - part);
            }
        }
        Self::trimmed(words)
    }

    fn down(&self, by: usize) -> Self {
        let (whole, part) = (by / 64, by % 64);
        let rest = self.0.get(whole..).unwrap_or_default();
        let moved = |index: usize| {
            let above = rest.get(index + 1).copied().unwrap_or(0);
            rest[index] >> part | if part > 0 { above << (64 - part) } else { 0 }
        };
        Self::trimmed((0..rest.len()).map(moved).collect())
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
        assert_eq!(left.is_empty(), a.is_empty());
        assert_eq!(left.down(by), bits(&a.iter().filter_map(|place| place.checked_sub(by)).collect()));
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
