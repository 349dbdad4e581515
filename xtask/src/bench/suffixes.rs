//! Counts hot subpaths in the unfolded events, with a suffix array and its longest common prefixes.
//!
//! Neighbours in the suffix array that share a prefix are an interval; the intervals are
//! a tree, and a subpath occurs as often as the interval of its suffixes is long. Along
//! an edge of the tree the count stays, so that an edge has at most one minimal hot
//! subpath, and it has one exactly if its longest subpath is hot and no edge above is.

use anyhow::Result;
use libsais::SuffixArrayConstruction;

/// Which subpaths are counted; every event costs 1.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) min_length: u64,
    pub(super) max_length: u64,
    pub(super) limit: u64,
}

/// How many minimal hot subpaths the streams have.
pub(super) fn minimal_hot(streams: &[Vec<u32>], wanted: Wanted) -> Result<u64> {
    let (mut text, ends) = joined(streams)?;
    let failed = |error| anyhow::anyhow!("libsais: {error:?}");
    let suffixes = SuffixArrayConstruction::for_text_mut(&mut text).in_owned_buffer32().single_threaded();
    let permuted = suffixes.run().map_err(failed)?.plcp_construction().single_threaded();
    let prefixes = permuted.run().map_err(failed)?.lcp_construction().single_threaded();
    let (suffixes, prefixes, ..) = prefixes.run().map_err(failed)?.into_parts();
    let mut intervals = Intervals { wanted, open: vec![Interval::default()] };
    for (at, &suffix) in suffixes.iter().enumerate() {
        let before = prefixes[at] as u64;
        let after = prefixes.get(at + 1).map_or(0, |&shared| shared as u64);
        intervals.close(before, at as u64);
        let end = ends[ends.partition_point(|&end| end < suffix as usize)];
        intervals.suffix(at as u64, (end - suffix as usize) as u64, before.max(after));
    }
    intervals.close(0, suffixes.len() as u64);
    Ok(intervals.open[0].minimal)
}

/// All streams in one text, each with an end of its own, so that no two share one; and
/// where the ends are.
fn joined(streams: &[Vec<u32>]) -> Result<(Vec<i32>, Vec<usize>)> {
    let distinct = streams.iter().flatten().max().map_or(0, |&most| most + 1);
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    for (index, stream) in (0..).zip(streams) {
        for &symbol in stream {
            text.push(i32::try_from(symbol)?);
        }
        ends.push(text.len());
        text.push(i32::try_from(distinct + index)?);
    }
    Ok((text, ends))
}

/// An open interval of suffixes with a common prefix.
#[derive(Clone, Copy, Default)]
struct Interval {
    /// The length of the prefix.
    shared: u64,
    first: u64,
    /// Minimal hot subpaths below, as if nothing above were hot.
    minimal: u64,
}

struct Intervals {
    wanted: Wanted,
    open: Vec<Interval>,
}

impl Intervals {
    /// Closes the intervals that share more than the next suffix, number `next`, does,
    /// and opens the one that it shares.
    fn close(&mut self, shared: u64, next: u64) {
        let mut first = next;
        let mut minimal = 0;
        while let Some(interval) = self.open.pop_if(|interval| interval.shared > shared) {
            let above = self.open.last().map_or(0, |interval| interval.shared).max(shared);
            first = interval.first;
            minimal = self.minimal_of(next - first, interval.shared, above, interval.minimal + minimal);
        }
        match self.open.last_mut() {
            Some(interval) if interval.shared == shared => interval.minimal += minimal,
            // The interval begins with the suffix before, or with what was closed.
            _ => self.open.push(Interval { shared, first: first.min(next.saturating_sub(1)), minimal }),
        }
    }

    /// Takes a suffix of `length` events that shares `above` of them with a neighbour.
    fn suffix(&mut self, at: u64, length: u64, above: u64) {
        let minimal = self.minimal_of(1, length, above, 0);
        if minimal == 0 {
            return;
        }
        match self.open.last_mut() {
            Some(interval) if interval.shared == above => interval.minimal += minimal,
            _ => self.open.push(Interval { shared: above, first: at, minimal }),
        }
    }

    /// The minimal hot subpaths of an edge from length `above` to `length` and below it.
    fn minimal_of(&self, count: u64, length: u64, above: u64, below: u64) -> u64 {
        let Wanted { min_length, max_length, limit } = self.wanted;
        let length = length.min(max_length);
        let hot = length > above && length >= min_length && count * length >= limit;
        if hot { 1 } else { below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::subpaths::{Hot, hot};
    use loopfold_testing::{Rng, streams};

    #[test]
    fn the_suffix_array_finds_what_a_plain_search_finds() {
        let mut rng = Rng::new(81);
        for _ in 0..2000 {
            let several: Vec<Vec<u32>> =
                (0..rng.between(1, 3)).map(|_| streams::small(&mut rng, 60)).collect();
            let min = rng.between(1, 4);
            let max = min + rng.below(20);
            let limit = rng.between(1, 40);
            let expected = hot(&several, |_| 1, Hot { min, max, limit: limit as u128 }, false).len() as u64;
            let wanted = Wanted { min_length: min as u64, max_length: max as u64, limit: limit as u64 };
            assert_eq!(minimal_hot(&several, wanted).unwrap(), expected, "{several:?} {min} {max} {limit}");
        }
    }
}
