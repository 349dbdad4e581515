//! What a stretch of a trace does to a query: the measure behind finding.
//!
//! For a query of m events, a stretch `u` is known by
//! * its *endings*: the k, 0 < k < m, for which the query's first k events end `u`;
//! * its *beginnings*: the k for which the query's events from k on begin `u`;
//! * its *insides*: the k for which `u` is the query's events from k on, but not its end;
//! * its length, which matters only while it has insides (else it counts as m);
//! * how often the query occurs in it, overlaps included.
//!
//! `u` and `v` side by side: where `u` has an ending and `v` a beginning at the same k,
//! there is one more occurrence; an ending of `u` goes on through `v` if `v` has it as an
//! inside, and likewise to the left. Repeating a stretch without insides changes nothing
//! but the count, so a repeat costs the logarithm of m at the most, whatever its times.
//!
//! A join is a dozen instructions for queries of up to 64 events, and m / 64 times that
//! for longer ones.

use super::bits::Bits;
use crate::questions::Query;
use crate::{Result, Symbol, fold::Measure};
use hashbrown::HashMap;

/// What a stretch does to a query.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::questions) struct Word<B> {
    /// How often the query occurs. That is never more than the events of the stretch,
    /// which the fold has checked to fit 64 bits.
    pub(in crate::questions) count: u64,
    endings: B,
    beginnings: B,
    insides: B,
    length: u32,
}

impl<B: Bits> Word<B> {
    /// How often the query occurs when the stretch follows what left these endings.
    pub(in crate::questions) fn count_after(&self, endings: &B) -> u64 {
        self.count.saturating_add(endings.common(&self.beginnings))
    }

    /// Machine words of memory besides the value itself.
    pub(in crate::questions) fn words(&self) -> usize {
        self.endings.words() + self.beginnings.words() + self.insides.words()
    }
}

/// The measure of [`Word`]s of one query.
#[derive(Clone, Debug)]
pub(in crate::questions) struct Words<B> {
    query_length: u32,
    /// All places that endings, beginnings and insides can have: 1 to m - 1.
    places: B,
    symbols: HashMap<Symbol, Word<B>>,
    /// Any stretch without a symbol of the query.
    foreign: Word<B>,
}

impl<B: Bits> Words<B> {
    /// The words of a query, which is no longer than its bits can tell.
    pub(in crate::questions) fn new(query: &Query) -> Self {
        // Queries are shorter than `Query::LONGEST`.
        let query_length = query.len() as u32;
        let mut places = B::default();
        (1..query.len()).for_each(|place| places.insert(place));
        let none = B::default();
        let foreign = Word {
            count: 0,
            endings: none.clone(),
            beginnings: none.clone(),
            insides: none,
            length: query_length,
        };
        let mut symbols: HashMap<Symbol, Word<B>> = HashMap::new();
        let last = query.len() - 1;
        for (place, event) in query.events().iter().enumerate() {
            for &symbol in event {
                let word = symbols.entry(symbol).or_insert_with(|| Word { length: 1, ..foreign.clone() });
                match place {
                    0 if last == 0 => word.count = 1,
                    0 => word.endings.insert(1),
                    place if place == last => word.beginnings.insert(last),
                    place => word.insides.insert(place),
                }
            }
        }
        symbols
            .values_mut()
            .filter(|word| word.insides.is_empty())
            .for_each(|word| word.length = query_length);
        Self { query_length, places, symbols, foreign }
    }

    /// How many events the query has.
    pub(in crate::questions) fn query_length(&self) -> usize {
        self.query_length as usize
    }

    /// The symbols of the query and their words.
    pub(in crate::questions) fn symbols(&self) -> impl Iterator<Item = (Symbol, &Word<B>)> {
        self.symbols.iter().map(|(&symbol, word)| (symbol, word))
    }

    /// The word of any stretch without a symbol of the query.
    pub(in crate::questions) fn foreign(&self) -> &Word<B> {
        &self.foreign
    }

    /// Joins a stretch to the end of another.
    #[inline]
    pub(in crate::questions) fn append(&self, word: &mut Word<B>, next: &Word<B>) {
        word.count = word.count.saturating_add(next.count_after(&word.endings));
        self.follow(&mut word.endings, next);
        if word.insides.is_empty() {
            return;
        }
        let length = word.length as usize;
        word.beginnings.add(&word.insides, &next.beginnings, length);
        word.insides.keep(&next.insides, length);
        word.length = if word.insides.is_empty() { self.query_length } else { word.length + next.length };
    }

    /// The word of two stretches, one after the other.
    pub(in crate::questions) fn joined(&self, left: &Word<B>, right: &Word<B>) -> Word<B> {
        let mut word = left.clone();
        self.append(&mut word, right);
        word
    }

    /// Turns the endings of what lies before a stretch into those behind it.
    #[inline]
    pub(in crate::questions) fn follow(&self, endings: &mut B, word: &Word<B>) {
        endings.follow(&word.insides, word.length as usize, &self.places, &word.endings);
    }

    /// The word of a stretch repeated `times` times.
    #[inline]
    pub(in crate::questions) fn repeated(&self, word: &Word<B>, times: u64) -> Word<B> {
        match times {
            0 => self.empty(),
            1 => word.clone(),
            _ if word.insides.is_empty() => without_insides(word, times),
            _ => self.squared(word, times),
        }
    }

    /// Squares until no insides are left.
    fn squared(&self, word: &Word<B>, times: u64) -> Word<B> {
        let (mut square, mut rest) = (word.clone(), times);
        let mut result = self.empty();
        loop {
            if square.insides.is_empty() {
                return self.joined(&result, &without_insides(&square, rest));
            }
            if rest & 1 == 1 {
                result = self.joined(&result, &square);
            }
            rest >>= 1;
            if rest == 0 {
                return result;
            }
            square = self.joined(&square, &square);
        }
    }
}

/// A stretch without insides, repeated: each seam adds the same.
fn without_insides<B: Bits>(word: &Word<B>, times: u64) -> Word<B> {
    let seams = word.endings.common(&word.beginnings);
    let inside = word.count.saturating_mul(times);
    Word { count: inside.saturating_add(seams.saturating_mul(times - 1)), ..word.clone() }
}

impl<B: Bits> Measure for Words<B> {
    type Value = Word<B>;

    fn empty(&self) -> Word<B> {
        let length = if self.places.is_empty() { self.query_length } else { 0 };
        Word { insides: self.places.clone(), length, ..self.foreign.clone() }
    }

    fn symbol(&self, symbol: Symbol) -> Word<B> {
        self.symbols.get(&symbol).unwrap_or(&self.foreign).clone()
    }

    fn join(&self, left: &Word<B>, right: &Word<B>) -> Result<Word<B>> {
        Ok(self.joined(left, right))
    }

    fn repeat(&self, word: &Word<B>, times: u64) -> Result<Word<B>> {
        Ok(self.repeated(word, times))
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::Wide;
    use super::*;
    use loopfold_testing::{Rng, streams};

    fn symbols(raw: &[u32]) -> Vec<Symbol> {
        raw.iter().map(|&raw| Symbol::from_raw(raw)).collect()
    }

    fn word_of<B: Bits>(measure: &Words<B>, stretch: &[Symbol]) -> Word<B> {
        stretch
            .iter()
            .fold(measure.empty(), |word, &symbol| measure.join(&word, &measure.symbol(symbol)).unwrap())
    }

    /// The word of a stretch by definition.
    fn defined<B: Bits>(query: &[Symbol], stretch: &[Symbol]) -> Word<B> {
        let (m, n) = (query.len(), stretch.len());
        let set = |holds: &dyn Fn(usize) -> bool| {
            let mut set = B::default();
            (1..m).filter(|&place| holds(place)).for_each(|place| set.insert(place));
            set
        };
        let insides = set(&|k| k + n < m && query[k..k + n] == *stretch);
        Word {
            count: stretch.windows(m).filter(|window| *window == query).count() as u64,
            endings: set(&|k| stretch.ends_with(&query[..k])),
            beginnings: set(&|k| stretch.starts_with(&query[k..])),
            length: if insides.is_empty() { m } else { n } as u32,
            insides,
        }
    }

    fn check<B: Bits>(rng: &mut Rng, longest: usize) {
        let mut raw = streams::small(rng, longest);
        raw.push(0);
        let query = symbols(&raw);
        let measure: Words<B> = Words::new(&Query::of_symbols(&query).unwrap());
        // Parts of the query, so that all sets are likely to have something in them.
        let part = |rng: &mut Rng| {
            let start = rng.below(query.len() + 1);
            let mut part = query[start..rng.between(start, query.len())].to_vec();
            if rng.one_in(3) {
                part.extend(symbols(&streams::small(rng, 6)));
            }
            part
        };
        let [u, v, w] = std::array::from_fn(|_| part(rng));
        let [a, b, c] = [&u, &v, &w].map(|stretch| word_of(&measure, stretch));
        assert_eq!(a, defined(&query, &u), "{query:?}: {u:?}");
        let join = |left: &Word<B>, right: &Word<B>| measure.join(left, right).unwrap();
        assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)));
        assert_eq!(join(&a, &b), defined(&query, &[&u[..], &v].concat()), "{query:?}: {u:?} {v:?}");
        assert_eq!(join(&measure.empty(), &a), a);
        assert_eq!(join(&a, &measure.empty()), a);
        let times = rng.between(0, 20);
        let repeated = measure.repeat(&a, times as u64).unwrap();
        assert_eq!(repeated, defined(&query, &u.repeat(times)), "{query:?}: {u:?} {times} times");
    }

    #[test]
    fn words_are_what_they_are_defined_to_be_however_they_are_joined() {
        let mut rng = Rng::new(62);
        for _ in 0..20_000 {
            check::<u64>(&mut rng, 63);
            check::<u32>(&mut rng, 31);
            check::<u64>(&mut rng, 5);
            check::<Wide>(&mut rng, 20);
        }
        for _ in 0..2_000 {
            check::<Wide>(&mut rng, 200);
        }
    }

    #[test]
    fn counts_stay_within_64_bits() {
        let query = Query::of_symbols(&symbols(&[0])).unwrap();
        let measure: Words<u64> = Words::new(&query);
        let most = measure.repeat(&measure.symbol(Symbol::from_raw(0)), u64::MAX).unwrap();
        assert_eq!(most.count, u64::MAX);
        assert_eq!(measure.joined(&most, &most).count, u64::MAX);
    }
}
