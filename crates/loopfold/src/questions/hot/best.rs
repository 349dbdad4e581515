//! Keeps the k costliest of the subpaths found, in a heap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A subpath that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Count times the cost of its events.
    pub(super) cost: u128,
    pub(super) count: u64,
    pub(super) events: Vec<u32>,
}

impl Ord for Candidate {
    /// The costliest first; among equals the shortest, then by symbols.
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.cost, &self.events, other)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn order(cost: u128, events: &[u32], other: &Candidate) -> Ordering {
    let by_length = || events.len().cmp(&other.events.len());
    other.cost.cmp(&cost).then_with(by_length).then_with(|| events.cmp(&other.events))
}

/// The best so far; the worst of them is at the top of the heap.
pub(super) struct Best {
    wanted: usize,
    found: u64,
    kept: BinaryHeap<Candidate>,
}

impl Best {
    pub(super) fn new(wanted: usize) -> Self {
        Self { wanted, found: 0, kept: BinaryHeap::new() }
    }

    /// One for as many, without any yet.
    pub(super) fn another(&self) -> Self {
        Self::new(self.wanted)
    }

    /// Takes note of a subpath that occurs `count` times and whose events cost `each`.
    pub(super) fn offer(&mut self, events: &[u32], count: u64, each: u128) {
        self.found += 1;
        let cost = u128::from(count).saturating_mul(each);
        if self.makes_room(cost, events) {
            self.kept.push(Candidate { cost, count, events: events.to_vec() });
        }
    }

    /// Whether one that costs so much is kept; a worse one no longer is, then.
    fn makes_room(&mut self, cost: u128, events: &[u32]) -> bool {
        if self.kept.len() < self.wanted {
            return true;
        }
        let is_better = self.kept.peek().is_some_and(|worst| order(cost, events, worst) == Ordering::Less);
        if is_better {
            self.kept.pop();
        }
        is_better
    }

    /// Adds those that were found elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        self.found += other.found;
        for candidate in other.kept {
            if self.makes_room(candidate.cost, &candidate.events) {
                self.kept.push(candidate);
            }
        }
    }

    /// How many were found, and the best of them in order.
    pub(super) fn finish(self) -> (u64, Vec<Candidate>) {
        (self.found, self.kept.into_sorted_vec())
    }
}
