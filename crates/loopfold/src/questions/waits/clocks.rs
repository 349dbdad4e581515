//! Checks the clocks of processes by their messages, and finds constant offsets that correct them.
//!
//! A message from s to r that s sends at S and r has received at R requires o_s + S ≤ o_r + R of
//! the offsets o: o_s ≤ o_r + (R − S). So does a collective operation for the process that ends
//! the wait of a member. For each ordered pair of processes only the least R − S counts. The
//! largest offsets that are not positive and fulfil all of these are shortest paths from a node
//! that reaches each process with 0 (Bellman and Ford): clocks that violate nothing stay as they
//! are. Then the processes that messages connect are shifted together, so that the lowest rank of
//! them has offset 0. A cycle of negative length contradicts all offsets: the clocks drift.
//!
//! O(pairs × processes) time in the worst case, O(pairs) memory.

use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Messages from one process to another that are received before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockViolation {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// How many messages.
    pub count: u64,
    /// The longest time by which one was received too early, in nanoseconds.
    pub worst: u64,
}

/// Constant offsets of the clocks of processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// What was added to the times of each process, in nanoseconds: those that were changed.
    pub changed: Vec<(u32, i64)>,
    /// The sender and the receiver of the messages that contradict constant offsets most: the
    /// clocks drift, and nothing was changed.
    pub drift: Option<(u32, u32)>,
}

/// The least difference of clocks for each sender and receiver.
pub(super) type Bounds = HashMap<(u32, u32), i64, foldhash::fast::RandomState>;

/// What messages say of clocks.
#[derive(Default)]
pub(super) struct Clocks {
    /// Those that are not 0.
    pub(super) offsets: BTreeMap<u32, i64>,
    pub(super) drift: Option<(u32, u32)>,
    pub(super) violations: HashMap<(u32, u32), (u64, u64), foldhash::fast::RandomState>,
    pub(super) bounds: Option<Bounds>,
}

impl Clocks {
    /// Clocks as they are; also collects what offsets have to fulfil.
    pub(super) fn measuring() -> Self {
        Self { bounds: Some(Bounds::default()), ..Self::default() }
    }

    /// What is added to the times of a process.
    pub(super) fn offset(&self, rank: u32) -> i64 {
        self.offsets.get(&rank).copied().unwrap_or(0)
    }

    /// Something enters at one process and must do so before another process leaves.
    #[inline]
    pub(super) fn observe(&mut self, from: u32, to: u32, enter: i64, leave: i64) {
        if let Some(bounds) = &mut self.bounds {
            let bound = bounds.entry((from, to)).or_insert(i64::MAX);
            *bound = (*bound).min(leave.saturating_sub(enter));
        }
    }

    /// A message is received; counts it if that is before it is sent.
    #[inline]
    pub(super) fn message(&mut self, from: u32, to: u32, enter: i64, leave: i64) {
        if leave < enter {
            let (count, worst) = self.violations.entry((from, to)).or_default();
            *count += 1;
            *worst = (*worst).max(leave.abs_diff(enter));
        }
    }

    /// The clocks with offsets that fulfil what was collected.
    pub(super) fn corrected(self) -> Self {
        let bounds = self.bounds.unwrap_or_default();
        let mut ranks: Vec<u32> = bounds.keys().flat_map(|&(from, to)| [from, to]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let index = |rank| ranks.partition_point(|&other| other < rank);
        let edge = |((from, to), bound)| Edge { from: index(from), to: index(to), bound };
        let mut edges: Vec<Edge> = bounds.into_iter().map(edge).collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        match shortest(&edges, ranks.len()) {
            Ok(distances) => {
                let lowest = lowest_connected(&edges, ranks.len());
                let shifted = |index: usize| {
                    let offset = distances[index] - distances[lowest[index]];
                    (ranks[index], offset.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
                };
                let offsets = (0..ranks.len()).map(shifted).filter(|&(_, offset)| offset != 0).collect();
                Self { offsets, ..Self::default() }
            }
            Err((from, to)) => Self { drift: Some((ranks[from], ranks[to])), ..Self::default() },
        }
    }

    pub(super) fn offsets(&self) -> Offsets {
        let changed = self.offsets.iter().map(|(&rank, &offset)| (rank, offset)).collect();
        Offsets { changed, drift: self.drift }
    }

    pub(super) fn violations(&self) -> Vec<ClockViolation> {
        let violation = |(&(from, to), &(count, worst)): (&(u32, u32), &(u64, u64))| ClockViolation {
            from,
            to,
            count,
            worst,
        };
        let mut all: Vec<ClockViolation> = self.violations.iter().map(violation).collect();
        all.sort_unstable_by_key(|one| (std::cmp::Reverse(one.count), one.from, one.to));
        all
    }
}

/// The offset of `from` is at most that of `to` plus the bound. Processes are numbered among those
/// that have bounds.
struct Edge {
    from: usize,
    to: usize,
    bound: i64,
}

/// The largest offsets that are not positive, or the pair with the least bound on a cycle that
/// contradicts them.
fn shortest(edges: &[Edge], processes: usize) -> Result<Vec<i128>, (usize, usize)> {
    let mut distances = vec![0i128; processes];
    let mut by: Vec<Option<usize>> = vec![None; processes];
    for _ in 0..=processes {
        let mut changed = false;
        for (index, edge) in edges.iter().enumerate() {
            let distance = distances[edge.to] + i128::from(edge.bound);
            if distance < distances[edge.from] {
                distances[edge.from] = distance;
                by[edge.from] = Some(index);
                changed = true;
            }
        }
        if !changed {
            return Ok(distances);
        }
    }
    Err(worst_on_cycle(edges, &by))
}

/// The edge with the least bound on a cycle of edges that shortened each other.
fn worst_on_cycle(edges: &[Edge], by: &[Option<usize>]) -> (usize, usize) {
    let mut state = vec![0usize; by.len()];
    for first in 0..by.len() {
        let mut at = first;
        while let Some(edge) = by[at].filter(|_| state[at] == 0) {
            state[at] = first + 1;
            at = edges[edge].to;
        }
        if state[at] != first + 1 {
            continue;
        }
        let mut worst: Option<&Edge> = None;
        let start = at;
        while let Some(edge) = by[at].map(|edge| &edges[edge]) {
            if worst.is_none_or(|worst| edge.bound < worst.bound) {
                worst = Some(edge);
            }
            at = edge.to;
            if at == start {
                break;
            }
        }
        if let Some(worst) = worst {
            return (worst.from, worst.to);
        }
    }
    (0, 0)
}

/// For each process the lowest one that edges connect it with.
fn lowest_connected(edges: &[Edge], processes: usize) -> Vec<usize> {
    let mut lowest: Vec<usize> = (0..processes).collect();
    fn find(lowest: &mut [usize], mut at: usize) -> usize {
        while lowest[at] != at {
            lowest[at] = lowest[lowest[at]];
            at = lowest[at];
        }
        at
    }
    for edge in edges {
        let (a, b) = (find(&mut lowest, edge.from), find(&mut lowest, edge.to));
        lowest[a.max(b)] = a.min(b);
    }
    (0..processes).map(|process| find(&mut lowest, process)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(messages: &[(u32, u32, i64, i64)]) -> Offsets {
        let mut clocks = Clocks::measuring();
        for &(from, to, enter, leave) in messages {
            clocks.observe(from, to, enter, leave);
        }
        clocks.corrected().offsets()
    }

    #[test]
    fn clocks_that_violate_nothing_stay() {
        assert_eq!(corrected(&[(0, 1, 5, 9), (1, 0, 5, 5)]), Offsets::default());
    }

    #[test]
    fn the_lowest_rank_keeps_its_clock() {
        // What 1 sends at 100 is received by 0 at 60: its clock is at least 40 ahead.
        assert_eq!(corrected(&[(1, 0, 100, 60)]).changed, [(1, -40)]);
        assert_eq!(corrected(&[(0, 1, 100, 60)]).changed, [(1, 40)]);
        assert_eq!(corrected(&[(0, 1, 100, 60), (1, 2, 10, 10)]).changed, [(1, 40), (2, 40)]);
        assert_eq!(corrected(&[(3, 2, 100, 60)]).changed, [(3, -40)]);
    }

    #[test]
    fn drift_is_a_negative_cycle() {
        let drifting = corrected(&[(0, 1, 100, 60), (1, 0, 100, 130), (2, 0, 5, 1)]);
        assert_eq!((drifting.changed, drifting.drift), (vec![], Some((0, 1))));
    }
}
