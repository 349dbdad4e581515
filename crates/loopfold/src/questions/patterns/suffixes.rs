//! The suffix array of a stream with the longest common prefixes (LCP) of neighbours, which
//! gives all repeats, and all places of a sequence.
//!
//! The array is built by induced sorting (Nong, Zhang and Chan), the prefixes by the algorithm
//! of Kasai et al. Both are linear; the recursion halves the stream each time. Memory: 8 bytes
//! an event, and during construction about 24.

use crate::interrupt::{Pace, blocks};
use crate::{Error, Result, Symbol};

/// All suffixes of a stream in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Suffixes {
    /// Where each begins.
    pub(super) starts: Vec<u32>,
    /// How many events each has in common with the one before it.
    pub(super) shared: Vec<u32>,
}

/// Positions fit 31 bits.
const LONGEST: usize = 1 << 31;

impl Suffixes {
    pub(super) fn of(stream: &[Symbol]) -> Result<Self> {
        if stream.len() > LONGEST {
            return Err(Error::limit(format_args!(
                "a stream of {} events, each repetition counted once; repeats are found in up to {LONGEST}",
                stream.len()
            )));
        }
        let (ranks, largest) = ranks(stream);
        let starts = sorted(&ranks, largest);
        let shared = shared(&ranks, &starts);
        Ok(Self { starts, shared })
    }

    /// Where a sequence that is not empty begins, in no particular order.
    pub(super) fn places(&self, stream: &[Symbol], sequence: &[Symbol]) -> &[u32] {
        let beginning = |start: u32| {
            let suffix = &stream[start as usize..];
            &suffix[..sequence.len().min(suffix.len())]
        };
        let first = self.starts.partition_point(|&start| beginning(start) < sequence);
        let count = self.starts[first..].partition_point(|&start| beginning(start) == sequence);
        &self.starts[first..first + count]
    }
}

/// The symbols as numbers from 0, without gaps, in their order; and the largest.
fn ranks(stream: &[Symbol]) -> (Vec<u32>, u32) {
    let mut distinct: Vec<Symbol> = stream.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |symbol: &Symbol| distinct.partition_point(|other| other < symbol) as u32;
    (stream.iter().map(rank).collect(), distinct.len().saturating_sub(1) as u32)
}

const EMPTY: u32 = u32::MAX;

/// Where the buckets of the symbols begin, and where in them the suffixes that are smaller
/// than the next one do.
struct Sorting<'a> {
    stream: &'a [u32],
    /// Whether each suffix is smaller than the one behind it.
    rises: Vec<bool>,
    falling: Vec<u32>,
    rising: Vec<u32>,
}

impl<'a> Sorting<'a> {
    fn new(stream: &'a [u32], largest: u32) -> Self {
        let length = stream.len();
        let mut rises = vec![false; length];
        for at in (0..length.saturating_sub(1)).rev() {
            let (one, next) = (stream[at], stream[at + 1]);
            rises[at] = if one == next { rises[at + 1] } else { one < next };
        }
        let buckets = largest as usize + 1;
        let (mut falling, mut rising) = (vec![0; buckets + 1], vec![0; buckets]);
        for (&symbol, &rises) in stream.iter().zip(&rises) {
            if rises {
                falling[symbol as usize + 1] += 1;
            } else {
                rising[symbol as usize] += 1;
            }
        }
        for bucket in 0..buckets {
            rising[bucket] += falling[bucket];
            falling[bucket + 1] += rising[bucket];
        }
        Self { stream, rises, falling, rising }
    }

    fn is_valley(&self, at: usize) -> bool {
        at > 0 && self.rises[at] && !self.rises[at - 1]
    }

    /// All suffixes in their order, from those that begin in valleys.
    fn induced(&self, valleys: impl Iterator<Item = u32>) -> Vec<u32> {
        let length = self.stream.len();
        let mut sorted = vec![EMPTY; length];
        let put = |sorted: &mut [u32], place: &mut u32, start: u32| {
            sorted[*place as usize] = start;
            *place += 1;
        };
        let mut places = self.rising.clone();
        for start in valleys {
            put(&mut sorted, &mut places[self.stream[start as usize] as usize], start);
        }
        let mut places = self.falling.clone();
        let last = length - 1;
        put(&mut sorted, &mut places[self.stream[last] as usize], last as u32);
        let mut pace = Pace::default();
        for rank in 0..length {
            pace.step();
            let Some(before) = self.before(sorted[rank]).filter(|&before| !self.rises[before]) else {
                continue;
            };
            put(&mut sorted, &mut places[self.stream[before] as usize], before as u32);
        }
        let mut places = self.falling.clone();
        for rank in (0..length).rev() {
            pace.step();
            let Some(before) = self.before(sorted[rank]).filter(|&before| self.rises[before]) else {
                continue;
            };
            let place = &mut places[self.stream[before] as usize + 1];
            *place -= 1;
            sorted[*place as usize] = before as u32;
        }
        sorted
    }

    fn before(&self, start: u32) -> Option<usize> {
        (start != EMPTY).then_some(start as usize).and_then(|start| start.checked_sub(1))
    }
}

/// The suffixes of a stream of numbers from 0 to the largest.
fn sorted(stream: &[u32], largest: u32) -> Vec<u32> {
    let length = stream.len();
    if length < 2 {
        return (0..length as u32).collect();
    }
    let sorting = Sorting::new(stream, largest);
    let valleys: Vec<u32> = (1..length).filter(|&at| sorting.is_valley(at)).map(|at| at as u32).collect();
    let by_first_part = sorting.induced(valleys.iter().copied());
    if valleys.is_empty() {
        return by_first_part;
    }
    // The stretches from valley to valley, numbered in their order.
    let mut number_of = vec![EMPTY; length];
    valleys.iter().zip(0..).for_each(|(&at, number)| number_of[at as usize] = number);
    let stretch = |number: u32| {
        let start = valleys[number as usize] as usize;
        let end = valleys.get(number as usize + 1).map_or(length, |&end| end as usize + 1);
        (&stream[start..end], end == length)
    };
    let mut names = vec![0; valleys.len()];
    let mut largest_name = 0;
    let in_order = by_first_part.iter().map(|&start| number_of[start as usize]);
    let mut previous = None;
    for number in in_order.filter(|&number| number != EMPTY) {
        let (events, is_last) = stretch(number);
        if let Some(previous) = previous {
            let (others, was_last) = stretch(previous);
            let same = events == others && !is_last && !was_last;
            largest_name += u32::from(!same);
        }
        names[number as usize] = largest_name;
        previous = Some(number);
    }
    let order = sorted(&names, largest_name);
    sorting.induced(order.into_iter().map(|number| valleys[number as usize]))
}

/// What neighbours have in common.
fn shared(stream: &[u32], starts: &[u32]) -> Vec<u32> {
    let mut rank_of = vec![0u32; starts.len()];
    starts.iter().zip(0..).for_each(|(&start, rank)| rank_of[start as usize] = rank);
    let mut shared = vec![0; starts.len()];
    let mut common = 0usize;
    for (start, &rank) in blocks(&rank_of).flatten().enumerate() {
        let Some(before) = rank.checked_sub(1) else {
            common = 0;
            continue;
        };
        let other = starts[before as usize] as usize;
        let pairs = stream[start + common..].iter().zip(&stream[other + common..]);
        common += pairs.take_while(|(one, other)| one == other).count();
        shared[rank as usize] = common as u32;
        common = common.saturating_sub(1);
    }
    shared
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use loopfold_testing::{Rng, streams};

    #[test]
    fn suffixes_are_in_order() {
        let mut rng = Rng::new(2);
        for _ in 0..5_000 {
            let stream = streams::small(&mut rng, 100);
            let symbols: Vec<Symbol> =
                stream.iter().map(|&raw| Symbol::new(raw as usize * 3).unwrap()).collect();
            let suffixes = Suffixes::of(&symbols).unwrap();
            let mut expected: Vec<u32> = (0..stream.len() as u32).collect();
            expected.sort_by_key(|&start| &stream[start as usize..]);
            assert_eq!(suffixes.starts, expected, "{stream:?}");
            for (pair, &shared) in suffixes.starts.windows(2).zip(suffixes.shared.iter().skip(1)) {
                let [one, other] = [pair[0], pair[1]].map(|start| &stream[start as usize..]);
                let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
                assert_eq!(shared as usize, common);
            }
            if !stream.is_empty() {
                let start = rng.below(stream.len());
                let end = rng.between(start + 1, stream.len());
                let mut places = suffixes.places(&symbols, &symbols[start..end]).to_vec();
                places.sort_unstable();
                let windows = stream.windows(end - start).enumerate();
                let expected = windows.filter(|(_, window)| *window == &stream[start..end]);
                assert!(places.iter().map(|&place| place as usize).eq(expected.map(|(at, _)| at)));
            }
        }
    }
}
