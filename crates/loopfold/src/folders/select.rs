//! Chooses among overlapping repeats of one period.

use super::Ties;
use crate::interrupt::Pace;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A stretch `start..end` with the period in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stretch {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// The parameters of a choice.
#[derive(Clone, Copy)]
pub(super) struct Selection {
    pub(super) period: u32,
    pub(super) ties: Ties,
    pub(super) min_times: u32,
}

impl Selection {
    pub(super) fn times(&self, stretch: Stretch) -> u32 {
        (stretch.end - stretch.start) / self.period
    }

    /// Calls `take` with each stretch chosen, cut to whole iterations; `take` returns
    /// what it really took of it. `stretches` are in order of their starts, each long enough by itself; of two
    /// that overlap, the one that is taken cuts the other, which remains if it is still
    /// long enough. Near-linear in the stretches.
    pub(super) fn choose(&self, stretches: &mut [Stretch], mut take: impl FnMut(Stretch) -> Stretch) {
        let overlap = |left: &Stretch, right: &Stretch| right.start < left.end;
        let mut pace = Pace::default();
        for cluster in stretches.chunk_by_mut(overlap) {
            pace.step();
            match (cluster, self.ties) {
                ([only], _) => {
                    take(self.whole(*only));
                }
                (cluster, Ties::Left) => self.choose_leftmost(cluster, &mut take),
                (cluster, Ties::Iterations) => self.choose_longest(cluster, &mut take),
            }
        }
    }

    /// A stretch cut to whole iterations.
    pub(super) fn whole(&self, stretch: Stretch) -> Stretch {
        Stretch { end: stretch.start + self.times(stretch) * self.period, ..stretch }
    }

    fn choose_leftmost(&self, cluster: &[Stretch], take: &mut impl FnMut(Stretch) -> Stretch) {
        let mut taken = 0;
        for &stretch in cluster {
            let rest = Stretch { start: stretch.start.max(taken), ..stretch };
            if rest.start < rest.end && self.times(rest) >= self.min_times {
                taken = take(self.whole(rest)).end;
            }
        }
    }

    fn choose_longest(&self, cluster: &mut [Stretch], take: &mut impl FnMut(Stretch) -> Stretch) {
        let candidate =
            |cluster: &[Stretch], at: usize| (self.times(cluster[at]), Reverse(cluster[at].start), at);
        let mut best: BinaryHeap<_> = (0..cluster.len()).map(|at| candidate(cluster, at)).collect();
        let mut done = vec![false; cluster.len()];
        while let Some((times, Reverse(start), at)) = best.pop() {
            let outdated = candidate(cluster, at) != (times, Reverse(start), at);
            if done[at] || outdated {
                continue;
            }
            done[at] = true;
            let Stretch { start, end } = take(self.whole(cluster[at]));
            // Overlaps are shorter than a period, so only direct neighbours can overlap.
            for neighbour in [at.wrapping_sub(1), at + 1] {
                let Some(stretch) = cluster.get_mut(neighbour).filter(|_| !done[neighbour]) else { continue };
                let before = *stretch;
                if neighbour < at {
                    stretch.end = stretch.end.min(start);
                } else {
                    stretch.start = stretch.start.max(end);
                }
                if *stretch == before {
                    continue;
                }
                if stretch.end > stretch.start && self.times(*stretch) >= self.min_times {
                    best.push(candidate(cluster, neighbour));
                } else {
                    done[neighbour] = true;
                }
            }
        }
    }
}
