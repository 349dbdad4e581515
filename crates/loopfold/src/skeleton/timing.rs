//! How long processes compute before each call, and how long calls take.
//!
//! What a process computes before a call is the time since the last call ended, without the time in
//! which it did not run (the metric [`OFF_CPU`], if the recorder has measured it) and without what
//! recording a call takes. Where nothing is computed, that is all there is: so it is the
//! least median of the gaps before a call, if that is at most [`MOST_OVERHEAD`].
//!
//! One walk over the events of every stream with its times, in step with the walk over the
//! program: O(events), O(nodes × processes) memory.

use super::program::{Node, Program};
use crate::trace::{OFF_CPU, Times};
use crate::{Fold, Result, StreamId};

/// The times of a node for one process, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeTimes {
    pub(super) count: u64,
    /// Between the end of the call before and this one, without what recording takes.
    pub(super) gaps: f64,
    /// In the call.
    pub(super) inside: f64,
}

/// The times of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    /// For each node and process.
    pub(super) nodes: Vec<Vec<NodeTimes>>,
    /// Gaps of each node, of all processes: as many as are needed for quantiles.
    samples: Vec<Vec<f64>>,
    /// From the end of the first call to the start of the last one, at most.
    pub(super) total: f64,
    /// Whether the times of calls are known.
    pub(super) is_known: bool,
}

/// Recording a call takes no longer, in nanoseconds.
const MOST_OVERHEAD: f64 = 500.0;

/// What it takes where the program computes before every call, so that it cannot be seen.
const USUAL_OVERHEAD: f64 = 150.0;

/// Samples kept of each node in a process; every second one is dropped when there are more.
const MOST_SAMPLES: usize = 512;

/// Fewer do not show what is usual.
const FEWEST_SAMPLES: usize = 8;

/// Gaps of a node in one process, evenly spread over all.
#[derive(Clone, Debug, Default)]
struct Samples {
    values: Vec<f64>,
    /// Gaps since the last one that was kept, and how many are between two that are.
    since: u32,
    left_out: u32,
}

impl Samples {
    fn add(&mut self, gap: f64) {
        if self.since < self.left_out {
            self.since += 1;
            return;
        }
        self.since = 0;
        self.values.push(gap);
        if self.values.len() > MOST_SAMPLES {
            let mut is_kept = false;
            self.values.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.left_out = 2 * self.left_out + 1;
        }
    }

    /// Returns `None` if there are too few to say.
    fn median(&self) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        (sorted.len() >= FEWEST_SAMPLES).then(|| sorted[sorted.len() / 2])
    }
}

impl Timing {
    pub(super) fn of(fold: &Fold, streams: &[StreamId], program: &Program) -> Result<Self> {
        let mut timing = Self {
            nodes: vec![vec![NodeTimes::default(); streams.len()]; program.nodes.len()],
            samples: vec![Vec::new(); program.nodes.len()],
            total: 0.0,
            is_known: streams.iter().all(|&id| fold.stream(id).times().starts.is_some()),
        };
        if timing.is_known {
            for (process, &id) in streams.iter().enumerate() {
                timing.add(fold.stream(id).times(), process, program)?;
            }
        }
        timing.add_up(program);
        Ok(timing)
    }

    fn add(&mut self, times: &Times, process: usize, program: &Program) -> Result<()> {
        let Some(starts) = &times.starts else { return Ok(()) };
        let mut starts = starts.reader();
        let mut durations = times.durations.as_ref().map(|durations| durations.reader());
        let off_cpu = times.metrics.iter().find(|(name, _)| name == OFF_CPU);
        let mut off_cpu = off_cpu.map(|(_, column)| column.reader());
        let mut samples = vec![Samples::default(); program.nodes.len()];
        let (mut before, mut first): (Option<i64>, Option<i64>) = (None, None);
        let mut last = 0;
        for (event, (id, _)) in program.walk(process).enumerate() {
            let start = starts.get(event)?;
            if start == Times::UNKNOWN_START {
                continue;
            }
            let duration = durations.as_mut().map_or(Ok(0), |durations| durations.get(event))?.max(0);
            let away = off_cpu.as_mut().map_or(Ok(0.0), |column| column.get(event))?;
            let since = before.map(|before| start.saturating_sub(before) as f64);
            // An unknown metric is not a number, which is no maximum either.
            let gap = since.map_or(0.0, |since| (since - away.max(0.0)).max(0.0));
            let node = &mut self.nodes[id][process];
            node.count += 1;
            node.gaps += gap;
            node.inside += duration as f64;
            if since.is_some() {
                samples[id].add(gap);
            }
            last = start;
            before = Some(start.saturating_add(duration));
            first = first.or(before);
        }
        self.subtract_overhead(process, &samples);
        let share = (4 * MOST_SAMPLES / program.processes.max(1)).max(1);
        for (all, own) in self.samples.iter_mut().zip(samples) {
            let step = own.values.len().div_ceil(share).max(1);
            all.extend(own.values.into_iter().step_by(step));
        }
        self.total = self.total.max(first.map_or(0.0, |first| last.saturating_sub(first) as f64));
        Ok(())
    }

    /// Takes what recording costs out of all gaps of a process.
    fn subtract_overhead(&mut self, process: usize, samples: &[Samples]) {
        let medians = samples.iter().filter_map(Samples::median);
        let least = medians.fold(f64::INFINITY, f64::min);
        let overhead = if least <= MOST_OVERHEAD { least } else { USUAL_OVERHEAD };
        for node in &mut self.nodes {
            let NodeTimes { count, gaps, .. } = &mut node[process];
            *gaps = (*gaps - overhead * *count as f64).max(0.0);
        }
    }

    /// The times of loops and branches are those of what is in them.
    fn add_up(&mut self, program: &Program) {
        for id in (0..program.nodes.len()).rev() {
            let Some(parent) = program.parents[id] else { continue };
            for process in 0..program.processes {
                let node = self.nodes[id][process];
                let around = &mut self.nodes[parent][process];
                around.gaps += node.gaps;
                around.inside += node.inside;
            }
        }
        debug_assert!(program.nodes.iter().zip(&self.nodes).all(|(node, times)| {
            matches!(node, Node::Call(_)) || times.iter().all(|one| one.count == 0)
        }));
    }

    /// The share of the time of all processes that a node takes.
    pub(super) fn share(&self, id: usize) -> f64 {
        let sum = |times: &[NodeTimes]| times.iter().map(|one| one.gaps + one.inside).sum::<f64>();
        let all = self.total * self.nodes.first().map_or(1, Vec::len) as f64;
        if all > 0.0 { (sum(&self.nodes[id]) / all).min(1.0) } else { 0.0 }
    }

    /// The share of the time of all processes that is computed before a node.
    pub(super) fn gap_share(&self, id: usize) -> f64 {
        let all = self.total * self.nodes.first().map_or(1, Vec::len) as f64;
        let gaps: f64 = self.nodes[id].iter().map(|one| one.gaps).sum();
        if all > 0.0 { gaps / all } else { 0.0 }
    }

    /// How long a node takes in all processes.
    pub(super) fn weight(&self, id: usize) -> f64 {
        self.nodes[id].iter().map(|one| one.gaps + one.inside).sum()
    }

    /// The mean gap of a node for a process.
    pub(super) fn gap(&self, id: usize, process: usize) -> f64 {
        let node = self.nodes[id][process];
        if node.count == 0 { 0.0 } else { node.gaps / node.count as f64 }
    }

    /// The mean gap of a node over all processes that execute it.
    pub(super) fn mean_gap(&self, id: usize) -> f64 {
        let count: u64 = self.nodes[id].iter().map(|one| one.count).sum();
        let gaps: f64 = self.nodes[id].iter().map(|one| one.gaps).sum();
        if count == 0 { 0.0 } else { gaps / count as f64 }
    }

    /// Gaps of a node at equal shares of all, the shortest first, such that their mean is that of
    /// all gaps.
    pub(super) fn quantiles(&self, id: usize, parts: usize) -> Vec<f64> {
        let mut sorted = self.samples[id].clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return vec![0.0; parts];
        }
        // The mean of each part, so that rare long gaps are not lost.
        let part = |nth: usize| {
            let (from, to) = (nth * sorted.len() / parts, ((nth + 1) * sorted.len()).div_ceil(parts));
            let part = &sorted[from.min(sorted.len() - 1)
                ..to.clamp(from + 1, sorted.len().max(from + 1)).min(sorted.len())];
            if part.is_empty() {
                sorted[sorted.len() - 1]
            } else {
                part.iter().sum::<f64>() / part.len() as f64
            }
        };
        let all: Vec<f64> = (0..parts).map(part).collect();
        let mean = all.iter().sum::<f64>() / parts as f64;
        let factor = if mean > 0.0 { self.mean_gap(id) / mean } else { 0.0 };
        all.into_iter().map(|gap| gap * factor).collect()
    }
}
