//! Sets of places in a query, as bits. Queries of up to 64 events need one machine word, or
//! half of one, and no memory of their own; longer ones need a list of them, none when empty.

use std::fmt::Debug;

/// A set of places in a query.
pub(in crate::questions) trait Bits:
    Clone + Debug + Default + PartialEq + Send + Sync
{
    /// Adds a place.
    fn insert(&mut self, place: usize);

    /// True when no place is in the set.
    fn is_empty(&self) -> bool;

    /// The last place in the set.
    fn last(&self) -> Option<usize>;

    /// How many places are in both sets.
    fn common(&self, other: &Self) -> u64;

    /// Keeps the places for which the place `by` further on is in the other set.
    fn keep(&mut self, other: &Self, by: usize);

    /// Adds the places of `from` for which the place `by` further on is in the other set.
    fn add(&mut self, from: &Self, other: &Self, by: usize);

    /// Keeps the places in `inside`, adds `by` to them, drops those that are not in
    /// `all` then, and adds the places of `more`.
    fn follow(&mut self, inside: &Self, by: usize, all: &Self, more: &Self);

    /// Machine words of memory besides the value itself.
    fn words(&self) -> usize;
}

/// Sets of as many places as a machine word has bits.
macro_rules! machine_words {
    ($($word:ty),*) => {$(
        impl Bits for $word {
            fn insert(&mut self, place: usize) {
                *self |= 1 << place;
            }

            fn is_empty(&self) -> bool {
                *self == 0
            }

            fn last(&self) -> Option<usize> {
                self.checked_ilog2().map(|place| place as usize)
            }

            #[inline]
            fn common(&self, other: &Self) -> u64 {
                let both = self & other;
                if both == 0 { 0 } else { count_ones(both.into()) }
            }

            #[inline]
            fn keep(&mut self, other: &Self, by: usize) {
                *self &= other.checked_shr(by as u32).unwrap_or(0);
            }

            #[inline]
            fn add(&mut self, from: &Self, other: &Self, by: usize) {
                *self |= from & other.checked_shr(by as u32).unwrap_or(0);
            }

            #[inline]
            fn follow(&mut self, inside: &Self, by: usize, all: &Self, more: &Self) {
                let moved = (*self & inside).checked_shl(by as u32).unwrap_or(0);
                *self = moved & all | more;
            }

            fn words(&self) -> usize {
                0
            }
        }
    )*};
}

machine_words!(u32, u64);

/// Out of line: mostly there is nothing to count, and not every processor counts at once.
#[inline(never)]
fn count_ones(bits: u64) -> u64 {
    bits.count_ones().into()
}

/// A set of places that may be many: 64 to a word, no words of zeros at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::questions) struct Wide(Vec<u64>);

impl Wide {
    fn trim(&mut self) {
        let used = self.0.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        self.0.truncate(used);
    }

    fn word(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Pairs of words of two sets, up to the end of the shorter one.
    fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u64, u64)> + 'a {
        self.0.iter().copied().zip(other.0.iter().copied())
    }

    /// The words with `by` taken from every place; places before that fall out.
    fn down(&self, by: usize) -> impl Iterator<Item = u64> + '_ {
        let (whole, part) = (by / 64, by % 64);
        (whole..self.0.len()).map(move |index| match part {
            0 => self.word(index),
            _ => self.word(index) >> part | self.word(index + 1) << (64 - part),
        })
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

    fn last(&self) -> Option<usize> {
        let word = self.0.last()?;
        Some((self.0.len() - 1) * 64 + word.last()?)
    }

    fn common(&self, other: &Self) -> u64 {
        self.pairs(other).map(|(left, right)| u64::from((left & right).count_ones())).sum()
    }

    fn keep(&mut self, other: &Self, by: usize) {
        self.0.truncate(other.0.len().saturating_sub(by / 64));
        self.0.iter_mut().zip(other.down(by)).for_each(|(word, other)| *word &= other);
        self.trim();
    }

    fn add(&mut self, from: &Self, other: &Self, by: usize) {
        for (index, (from, other)) in from.0.iter().zip(other.down(by)).enumerate() {
            let more = from & other;
            if more == 0 {
                continue;
            }
            if index >= self.0.len() {
                self.0.resize(index + 1, 0);
            }
            self.0[index] |= more;
        }
    }

    fn follow(&mut self, inside: &Self, by: usize, all: &Self, more: &Self) {
        if self.pairs(inside).all(|(word, inside)| word & inside == 0) {
            return self.0.clone_from(&more.0);
        }
        let (whole, part) = (by / 64, by % 64);
        let kept = self.0.len().min(inside.0.len());
        self.0.iter_mut().zip(&inside.0).for_each(|(word, inside)| *word &= inside);
        self.0.resize((kept + whole + 1).min(all.0.len()).max(more.0.len()), 0);
        // From the top, so that what is still needed is not yet written over.
        for index in (0..self.0.len()).rev() {
            let word = |index: usize| if index < kept { self.0[index] } else { 0 };
            let moved = match index.checked_sub(whole) {
                None => 0,
                Some(from) if part == 0 => word(from),
                Some(0) => word(0) << part,
                Some(from) => word(from) << part | word(from - 1) >> (64 - part),
            };
            self.0[index] = moved & all.word(index) | more.word(index);
        }
        self.trim();
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
        let furthest = if rng.one_in(2) { 4 } else { size };
        let near = rng.below(furthest);
        let most = if rng.one_in(2) { 6 } else { 2 * size };
        let mut random = || -> BTreeSet<usize> { (0..rng.below(most)).map(|_| rng.below(size)).collect() };
        let (a, b) = (random(), random());
        let (left, right): (B, B) = (bits(&a), bits(&b));
        assert_eq!(left.common(&right), (&a & &b).len() as u64);
        assert_eq!(left.is_empty(), a.is_empty());
        assert_eq!(left.last(), a.last().copied());
        let further: BTreeSet<usize> =
            a.iter().copied().filter(|place| b.contains(&(place + near))).collect();
        let mut kept = left.clone();
        kept.keep(&right, near);
        assert_eq!(kept, bits(&further), "{a:?} {b:?} {near}");
        kept.keep(&right, size);
        assert!(kept.is_empty());
        let (c, d) = (random(), random());
        let mut more = bits::<B>(&c);
        more.add(&left, &right, near);
        assert_eq!(more, bits(&(&c | &further)), "{a:?} {b:?} {c:?} {near}");
        let moved: BTreeSet<usize> = a.intersection(&b).map(|place| place + near).collect();
        let mut followed = left.clone();
        followed.follow(&right, near, &bits(&c), &bits(&d));
        assert_eq!(followed, bits(&(&(&moved & &c) | &d)), "{a:?} {b:?} {c:?} {d:?} {near}");
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
