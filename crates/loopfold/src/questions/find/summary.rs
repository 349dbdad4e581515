//! Match summaries: the matches of a query in a stretch of a trace, as a monoid.
//!
//! For a query of m events, a stretch `u` is known by
//! * its *suffix overlaps*: the k, 0 < k < m, for which the query's first k events end `u`;
//! * its *prefix overlaps*: the k for which the query's events from k on begin `u`;
//! * its *infix matches*: the k for which `u` is the query's events from k on, but not its end;
//! * its length, which matters only while it has infix matches (else it counts as m);
//! * how often the query occurs in it, overlaps included.
//!
//! `u` and `v` concatenated: where a suffix overlap of `u` and a prefix overlap of `v` have the
//! same k, there is one more occurrence; a suffix overlap of `u` continues through `v` if `v`
//! has it as an infix match, and likewise to the left. Repeating a stretch without infix
//! matches changes nothing but the count, so a repeat costs O(log m) joins, whatever its times.
//!
//! A join is a dozen instructions for queries of up to 64 events, and m / 64 times that
//! for longer ones.

use super::bits::Bits;
use crate::fold::Measure;
use crate::fold::measure::power_until;
use crate::questions::query::Query;
use crate::{Result, Symbol};
use hashbrown::HashMap;
use std::convert::Infallible;

/// The matches of a query in a stretch.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::questions) struct MatchSummary<B> {
    /// How often the query occurs. That is never more than the events of the stretch,
    /// which the fold has checked to fit 64 bits.
    pub(in crate::questions) count: u64,
    suffixes: B,
    prefixes: B,
    infixes: B,
    length: u32,
}

impl<B: Bits> MatchSummary<B> {
    /// How often the query occurs when the stretch follows what left these suffixes.
    pub(in crate::questions) fn count_after(&self, suffixes: &B) -> u64 {
        self.count.saturating_add(suffixes.common(&self.prefixes))
    }

    /// Machine words of memory besides the value itself.
    pub(in crate::questions) fn words(&self) -> usize {
        self.suffixes.words() + self.prefixes.words() + self.infixes.words()
    }
}

/// The measure of [`MatchSummary`]s of one query.
#[derive(Clone, Debug)]
pub(in crate::questions) struct MatchMonoid<B> {
    query_length: u32,
    /// All places that suffixes, prefixes and infixes can have: 1 to m - 1.
    places: B,
    /// The symbols of the query in order, and which of the summaries each has.
    symbols: Vec<(Symbol, u32)>,
    /// The different summaries of symbols: a pattern stands for many symbols with one summary.
    summaries: Vec<MatchSummary<B>>,
    /// Any stretch without a symbol of the query.
    irrelevant: MatchSummary<B>,
}

impl<B: Bits> MatchMonoid<B> {
    /// The summaries of a query that fits the bits.
    pub(in crate::questions) fn new(query: &Query) -> Self {
        // Queries are shorter than `Query::LONGEST`.
        let query_length = query.len() as u32;
        let mut places = B::default();
        (1..query.len()).for_each(|place| places.insert(place));
        let none = B::default();
        let irrelevant = MatchSummary {
            count: 0,
            suffixes: none.clone(),
            prefixes: none.clone(),
            infixes: none,
            length: query_length,
        };
        let (symbols, sets) = symbols_by_places(query);
        let summaries = sets.iter().map(|places| summary_of_symbol(&irrelevant, places)).collect();
        Self { query_length, places, symbols, summaries, irrelevant }
    }

    /// How many events the query has.
    pub(in crate::questions) fn query_length(&self) -> usize {
        self.query_length as usize
    }

    /// The symbols of the query in order, and which of [`summaries`](Self::summaries) each has.
    pub(in crate::questions) fn symbols(&self) -> &[(Symbol, u32)] {
        &self.symbols
    }

    /// The different summaries of the query's symbols.
    pub(in crate::questions) fn summaries(&self) -> &[MatchSummary<B>] {
        &self.summaries
    }

    /// The summary of any stretch without a symbol of the query.
    pub(in crate::questions) fn irrelevant(&self) -> &MatchSummary<B> {
        &self.irrelevant
    }

    /// Joins a stretch to the end of another.
    #[inline]
    pub(in crate::questions) fn append(&self, summary: &mut MatchSummary<B>, next: &MatchSummary<B>) {
        summary.count = summary.count.saturating_add(next.count_after(&summary.suffixes));
        self.follow(&mut summary.suffixes, next);
        if summary.infixes.is_empty() {
            return;
        }
        let length = summary.length as usize;
        summary.prefixes.add(&summary.infixes, &next.prefixes, length);
        summary.infixes.keep(&next.infixes, length);
        summary.length =
            if summary.infixes.is_empty() { self.query_length } else { summary.length + next.length };
    }

    /// The summary of two stretches, one after the other.
    pub(in crate::questions) fn joined(
        &self,
        left: &MatchSummary<B>,
        right: &MatchSummary<B>,
    ) -> MatchSummary<B> {
        let mut summary = left.clone();
        self.append(&mut summary, right);
        summary
    }

    /// Converts the suffixes before a stretch to those behind it.
    #[inline]
    pub(in crate::questions) fn follow(&self, suffixes: &mut B, summary: &MatchSummary<B>) {
        suffixes.follow(&summary.infixes, summary.length as usize, &self.places, &summary.suffixes);
    }

    /// The summary of a stretch repeated `times` times.
    #[inline]
    pub(in crate::questions) fn repeated(&self, summary: &MatchSummary<B>, times: u64) -> MatchSummary<B> {
        match times {
            0 => self.empty(),
            1 => summary.clone(),
            _ if summary.infixes.is_empty() => without_infixes(summary, times),
            _ => self.squared(summary, times),
        }
    }

    /// Squares until no infixes are left.
    fn squared(&self, summary: &MatchSummary<B>, times: u64) -> MatchSummary<B> {
        let append = |summary: &mut MatchSummary<B>, next: &MatchSummary<B>| {
            self.append(summary, next);
            Ok(())
        };
        let settled =
            |square: &MatchSummary<B>, rest| square.infixes.is_empty().then(|| without_infixes(square, rest));
        let Ok::<_, Infallible>(power) = power_until(self.empty(), summary.clone(), times, append, settled);
        power
    }
}

/// The symbols of a query in order, with the number of the set of places that each has in it; and
/// these sets. Symbols of one pattern mostly share a set.
fn symbols_by_places(query: &Query) -> (Vec<(Symbol, u32)>, Vec<Vec<u32>>) {
    let at_place = |(place, event): (usize, &Vec<Symbol>)| -> Vec<(Symbol, u32)> {
        event.iter().map(|&symbol| (symbol, place as u32)).collect()
    };
    let mut occurring: Vec<(Symbol, u32)> = query.events().iter().enumerate().flat_map(at_place).collect();
    occurring.sort_unstable();
    let (mut symbols, mut sets) = (Vec::new(), Vec::<Vec<u32>>::new());
    let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut last = 0;
    for of_symbol in occurring.chunk_by(|left, right| left.0 == right.0) {
        let places = || of_symbol.iter().map(|&(_, place)| place);
        // Mostly the same as for the symbol before it.
        if !sets.get(last as usize).is_some_and(|set| set.iter().copied().eq(places())) {
            last = *numbers.entry(places().collect()).or_insert_with_key(|set| {
                sets.push(set.clone());
                sets.len() as u32 - 1
            });
        }
        symbols.push((of_symbol[0].0, last));
    }
    (symbols, sets)
}

/// The summary of a symbol that has these places in the query.
fn summary_of_symbol<B: Bits>(irrelevant: &MatchSummary<B>, places: &[u32]) -> MatchSummary<B> {
    let mut summary = irrelevant.clone();
    let last = irrelevant.length - 1;
    for &place in places {
        match place {
            0 if last == 0 => summary.count = 1,
            0 => summary.suffixes.insert(1),
            place if place == last => summary.prefixes.insert(last as usize),
            place => summary.infixes.insert(place as usize),
        }
    }
    if !summary.infixes.is_empty() {
        summary.length = 1;
    }
    summary
}

/// A stretch without infixes, repeated: each seam adds the same.
fn without_infixes<B: Bits>(summary: &MatchSummary<B>, times: u64) -> MatchSummary<B> {
    let seams = summary.suffixes.common(&summary.prefixes);
    let inside = summary.count.saturating_mul(times);
    MatchSummary { count: inside.saturating_add(seams.saturating_mul(times - 1)), ..summary.clone() }
}

impl<B: Bits> Measure for MatchMonoid<B> {
    type Value = MatchSummary<B>;

    fn empty(&self) -> MatchSummary<B> {
        let length = if self.places.is_empty() { self.query_length } else { 0 };
        MatchSummary { infixes: self.places.clone(), length, ..self.irrelevant.clone() }
    }

    fn symbol(&self, symbol: Symbol) -> MatchSummary<B> {
        match self.symbols.binary_search_by_key(&symbol, |&(symbol, _)| symbol) {
            Ok(at) => self.summaries[self.symbols[at].1 as usize].clone(),
            Err(_) => self.irrelevant.clone(),
        }
    }

    fn join(&self, left: &MatchSummary<B>, right: &MatchSummary<B>) -> Result<MatchSummary<B>> {
        Ok(self.joined(left, right))
    }

    fn repeat(&self, summary: &MatchSummary<B>, times: u64) -> Result<MatchSummary<B>> {
        Ok(self.repeated(summary, times))
    }

    #[inline]
    fn append(&self, value: &mut MatchSummary<B>, next: &MatchSummary<B>, times: u64) -> Result<()> {
        match times {
            1 => Self::append(self, value, next),
            times => Self::append(self, value, &self.repeated(next, times)),
        }
        Ok(())
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

    fn summary_of<B: Bits>(measure: &MatchMonoid<B>, stretch: &[Symbol]) -> MatchSummary<B> {
        stretch.iter().fold(measure.empty(), |summary, &symbol| {
            measure.join(&summary, &measure.symbol(symbol)).unwrap()
        })
    }

    /// The summary of a stretch by definition.
    fn defined<B: Bits>(query: &[Symbol], stretch: &[Symbol]) -> MatchSummary<B> {
        let (m, n) = (query.len(), stretch.len());
        let set = |holds: &dyn Fn(usize) -> bool| {
            let mut set = B::default();
            (1..m).filter(|&place| holds(place)).for_each(|place| set.insert(place));
            set
        };
        let infixes = set(&|k| k + n < m && query[k..k + n] == *stretch);
        MatchSummary {
            count: stretch.windows(m).filter(|window| *window == query).count() as u64,
            suffixes: set(&|k| stretch.ends_with(&query[..k])),
            prefixes: set(&|k| stretch.starts_with(&query[k..])),
            length: if infixes.is_empty() { m } else { n } as u32,
            infixes,
        }
    }

    fn check<B: Bits>(rng: &mut Rng, longest: usize) {
        let mut raw = streams::small(rng, longest);
        raw.push(0);
        let query = symbols(&raw);
        let measure: MatchMonoid<B> = MatchMonoid::new(&Query::of_symbols(&query).unwrap());
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
        let [a, b, c] = [&u, &v, &w].map(|stretch| summary_of(&measure, stretch));
        assert_eq!(a, defined(&query, &u), "{query:?}: {u:?}");
        let join = |left: &MatchSummary<B>, right: &MatchSummary<B>| measure.join(left, right).unwrap();
        assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)));
        assert_eq!(join(&a, &b), defined(&query, &[&u[..], &v].concat()), "{query:?}: {u:?} {v:?}");
        assert_eq!(join(&measure.empty(), &a), a);
        assert_eq!(join(&a, &measure.empty()), a);
        let times = rng.between(0, 20);
        let repeated = measure.repeat(&a, times as u64).unwrap();
        assert_eq!(repeated, defined(&query, &u.repeat(times)), "{query:?}: {u:?} {times} times");
    }

    #[test]
    fn summaries_are_what_they_are_defined_to_be_however_they_are_joined() {
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
        let measure: MatchMonoid<u64> = MatchMonoid::new(&query);
        let most = measure.repeat(&measure.symbol(Symbol::from_raw(0)), u64::MAX).unwrap();
        assert_eq!(most.count, u64::MAX);
        assert_eq!(measure.joined(&most, &most).count, u64::MAX);
    }
}
