//! How long processes compute before each call, and how long calls take.
//!
//! What a process computes before a call is the time since the last call ended, without the time in
//! which it did not run and without what recording that call took. Recorders measure both: the one
//! always (the metric [`OFF_CPU`]), the other for some calls (the metric [`RECORDING`]); for the
//! others it is the mean of those before calls at the same place of the program. What is left where
//! nothing is computed is what reading the clock takes, or all of recording if nothing was measured:
//! the least median of the gaps before a call, if that is at most [`MOST_OVERHEAD`].
//!
//! One walk over the events of every stream with its times, in step with the walk over the
//! program: O(events), O(nodes × processes) memory.

use super::program::{Node, Program};
use crate::trace::{OFF_CPU, RECORDING, Times};
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

/// What it takes where it was not measured and the program computes before every call, so that it
/// cannot be seen.
const USUAL_OVERHEAD: f64 = 150.0;

/// What is longer than so many medians is not usual.
const FAR: f64 = 16.0;

/// Samples kept of each node in a process; every second one is dropped when there are more.
const MOST_SAMPLES: usize = 512;

/// Fewer do not show what is usual.
const FEWEST_SAMPLES: usize = 8;

/// Some of many values, evenly spread over all.
#[derive(Clone, Debug)]
struct Samples<T> {
    values: Vec<T>,
    /// Values since the last one that was kept, and how many are between two that are.
    since: u32,
    left_out: u32,
}

impl<T> Default for Samples<T> {
    fn default() -> Self {
        Self { values: Vec::new(), since: 0, left_out: 0 }
    }
}

impl<T> Samples<T> {
    fn add(&mut self, value: T) {
        if self.since < self.left_out {
            self.since += 1;
            return;
        }
        self.since = 0;
        self.values.push(value);
        if self.values.len() > MOST_SAMPLES {
            let mut is_kept = false;
            self.values.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.left_out = 2 * self.left_out + 1;
        }
    }
}

/// Returns `None` if there are too few to say.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted.len() >= FEWEST_SAMPLES).then(|| sorted[sorted.len() / 2])
}

/// The mean of what is not far above the median. Calls that take long to record are measured more
/// often than others, so they would count too much.
fn usual(values: &[f64]) -> Option<f64> {
    let most = FAR * median(values)?;
    let near: Vec<f64> = values.iter().copied().filter(|&value| value <= most).collect();
    Some(near.iter().sum::<f64>() / near.len() as f64)
}

/// The gaps before a node in one process.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// Gaps, each with what recording the call before took; not a number if that was not measured.
    samples: Samples<(f64, f64)>,
    recording: Samples<f64>,
    not_measured: u64,
}

impl Gaps {
    /// Returns the gap, without what recording took if that is known.
    fn add(&mut self, gap: f64, recording: f64) -> f64 {
        self.samples.add((gap, recording));
        if recording.is_nan() {
            self.not_measured += 1;
            return gap;
        }
        self.recording.add(recording);
        (gap - recording).max(0.0)
    }

    /// The samples without what recording takes where it was not measured, too.
    fn without_recording(&self, usual: f64) -> Vec<f64> {
        let without =
            |&(gap, recording): &(f64, f64)| gap - if recording.is_nan() { usual } else { recording };
        self.samples.values.iter().map(without).collect()
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
        let metric = |wanted: &str| times.metrics.iter().find(|(name, _)| name == wanted);
        let mut off_cpu = metric(OFF_CPU).map(|(_, column)| column.reader());
        let mut recording = metric(RECORDING).map(|(_, column)| column.reader());
        let mut gaps = vec![Gaps::default(); program.nodes.len()];
        let (mut before, mut first): (Option<i64>, Option<i64>) = (None, None);
        let mut last = 0;
        for (event, (id, _)) in program.walk(process).enumerate() {
            let start = starts.get(event)?;
            if start == Times::UNKNOWN_START {
                continue;
            }
            let duration = durations.as_mut().map_or(Ok(0), |durations| durations.get(event))?.max(0);
            let away = off_cpu.as_mut().map_or(Ok(0.0), |column| column.get(event))?;
            let recorded = recording.as_mut().map_or(Ok(f64::NAN), |column| column.get(event))?;
            let node = &mut self.nodes[id][process];
            if let Some(before) = before {
                // An unknown metric is not a number, which is no maximum either.
                let gap = (start.saturating_sub(before) as f64 - away.max(0.0)).max(0.0);
                node.gaps += gaps[id].add(gap, recorded);
            }
            node.count += 1;
            node.inside += duration as f64;
            last = start;
            before = Some(start.saturating_add(duration));
            first = first.or(before);
        }
        self.subtract_recording(process, &gaps);
        self.total = self.total.max(first.map_or(0.0, |first| last.saturating_sub(first) as f64));
        Ok(())
    }

    /// Takes what recording costs out of all gaps of a process, and keeps some of them.
    fn subtract_recording(&mut self, process: usize, gaps: &[Gaps]) {
        let all: Vec<f64> = gaps.iter().flat_map(|gaps| gaps.recording.values.iter().copied()).collect();
        let of_all = usual(&all);
        let without = |gaps: &Gaps| {
            let usual = usual(&gaps.recording.values).or(of_all).unwrap_or(0.0);
            (usual, gaps.without_recording(usual))
        };
        let left: Vec<(f64, Vec<f64>)> = gaps.iter().map(without).collect();
        let least = left.iter().filter_map(|(_, left)| median(left)).fold(f64::INFINITY, f64::min);
        let rest = match of_all {
            _ if least <= MOST_OVERHEAD => least.max(0.0),
            Some(_) => 0.0,
            None => USUAL_OVERHEAD,
        };
        let kept = (4 * MOST_SAMPLES / self.nodes.first().map_or(1, Vec::len).max(1)).max(1);
        for (id, (gaps, (usual, left))) in gaps.iter().zip(left).enumerate() {
            let node = &mut self.nodes[id][process];
            let overhead = usual * gaps.not_measured as f64 + rest * node.count as f64;
            node.gaps = (node.gaps - overhead).max(0.0);
            let step = left.len().div_ceil(kept).max(1);
            let left = left.into_iter().step_by(step).map(|gap| (gap - rest).max(0.0));
            self.samples[id].extend(left);
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
