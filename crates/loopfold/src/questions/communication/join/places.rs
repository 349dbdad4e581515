//! The places of a stream: all of its loops, and other stretches that repeat.

use super::Part;
use crate::questions::patterns::Holders;
use crate::questions::patterns::LoopCollapsed;
use std::cmp::Reverse;

/// Between which events of a stream the partners are.
#[derive(Clone, Copy)]
pub(super) struct Hull {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Hull {
    pub(super) fn of(index: u32) -> Self {
        Self { first: index, last: index }
    }

    pub(super) fn add(&mut self, index: u32) {
        self.first = self.first.min(index);
        self.last = self.last.max(index);
    }
}

/// Places that are tried, of those that may answer.
const MOST_TRIED: usize = 4;

/// Places that are examined to find these: an event may lie in many.
const MOST_SEEN: usize = 16;

/// The places of a stream.
pub(super) struct Places {
    stream: u32,
    /// Those that occur most often come first, so that a loop comes before what cuts through
    /// it, and of these the smallest. With how often each occurs.
    holders: Holders<u64>,
    /// Which are in a pattern already.
    is_joined: Vec<bool>,
}

impl Places {
    pub(super) fn new(stream: u32, shown: &LoopCollapsed, more: &[(u32, u32)]) -> Self {
        let loops = shown.loops().iter().map(|found| (found.start, found.end));
        let mut all: Vec<(u32, u32)> = loops.chain(more.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let with_times = |(start, end)| (start, end, shown.times(start as usize, end as usize));
        let mut all: Vec<(u32, u32, u64)> = all.into_iter().map(with_times).collect();
        all.sort_unstable_by_key(|&(start, end, times)| (Reverse(times), end - start, start));
        let holders = Holders::new(shown.symbols().len(), all);
        Self { stream, is_joined: vec![false; holders.all().len()], holders }
    }

    /// All of them: their numbers, stretches, and how often each occurs.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, Part, u64)> + '_ {
        (0..self.is_joined.len() as u32).map(|place| (place, self.part(place), self.times(place)))
    }

    pub(super) fn part(&self, place: u32) -> Part {
        let (start, end, _) = self.holders.all()[place as usize];
        Part { stream: self.stream, start, end }
    }

    /// How often a place occurs.
    pub(super) fn times(&self, place: u32) -> u64 {
        self.holders.all()[place as usize].2
    }

    /// Whether a place is in a pattern already.
    pub(super) fn is_joined(&self, place: u32) -> bool {
        self.is_joined[place as usize]
    }

    /// Takes a place for a pattern; false if another one has it.
    pub(super) fn join(&mut self, place: u32) -> bool {
        !std::mem::replace(&mut self.is_joined[place as usize], true)
    }

    /// The places that may match one with this many repetitions: of those that contain the
    /// stretch first the largest that are repeated as often, then the smallest that are
    /// repeated less often.
    pub(super) fn candidates(&self, hull: Hull, times: u64) -> impl Iterator<Item = u32> + '_ {
        let holding = self.holders.of(hull.first as usize);
        let more_often = holding.partition_point(|&place| self.times(place) > times);
        let as_often = holding.partition_point(|&place| self.times(place) >= times);
        let holds = move |&place: &u32| self.part(place).end > hull.last;
        let largest = holding[more_often..as_often].iter().copied().rev().take(MOST_SEEN).filter(holds);
        let smallest = holding[as_often..].iter().copied().take(MOST_SEEN).filter(holds);
        let others = holding[..more_often].iter().copied().take(MOST_SEEN).filter(holds);
        largest.take(MOST_TRIED).chain(smallest.take(MOST_TRIED)).chain(others.take(1))
    }
}
