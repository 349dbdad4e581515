//! The slowest iterations of a loop, and which parts of the body made them slow.
//!
//! The parts of a body are its events and inner loops. A part lasts from its start to the start of
//! the next part, the last one to the end of the iteration, so that the parts add up to the
//! iteration. An exception that follows an iteration is one more part of it. A part *grew* by how
//! much longer it took than its median, which is over all iterations that have it and that can be
//! compared.
//!
//! Cost: two walks through the stream; 8 bytes for each part of each iteration, of an even sample
//! of the iterations if these are more than four million.

use super::stopwatch::Clock;
use super::{Iteration, visit_iterations};
use crate::Result;
use crate::questions::nest::{IterationEnd, Nest, Visit};
use crate::trace::Times;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::ops::Range;

/// A slow iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowIteration {
    /// Which one it is, from 0, counted within its occurrence of the loop.
    pub iteration: u64,
    /// In which iterations of the loops around it it lies, the outermost first.
    pub outer: Vec<u64>,
    /// The positions of its events.
    pub events: Range<u64>,
    /// The kind of exception that it is or that follows it.
    pub kind: Option<usize>,
    /// When it began.
    pub start: Option<i128>,
    /// How long it took, in nanoseconds.
    pub time: i128,
    /// The parts that grew, those that grew most first. None for an odd iteration, which has other
    /// parts.
    pub grown: Vec<Grown>,
}

/// A part of an iteration that took longer than its median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grown {
    /// The node of the part. `None` for the exception that follows the iteration.
    pub node: Option<usize>,
    /// How long it took, in nanoseconds.
    pub time: i128,
    /// The median of that time; 0 for an exception.
    pub median: f64,
}

impl Grown {
    /// By how much it grew.
    pub fn by(&self) -> f64 {
        self.time as f64 - self.median
    }
}

/// The most times of parts that are kept.
const MOST_TIMES: u64 = 1 << 22;

/// The `most` slowest iterations of the loop at a node, the slowest first; of equal ones the first.
/// Last iterations of occurrences are left out if at least two others remain.
pub fn slow_iterations(nest: &Nest, times: &Times, node: usize, most: usize) -> Result<Vec<SlowIteration>> {
    if Clock::new(times).is_none() {
        return Ok(Vec::new());
    }
    let (mut found, mut count) = (Vec::new(), 0u64);
    visit_iterations(nest, times, |iteration| {
        if iteration.node == node {
            if let Some(time) = iteration.time {
                found.push((Reverse(time), count, iteration.is_full));
            }
            count += 1;
        }
        Ok(())
    })?;
    if found.iter().filter(|(.., is_full)| *is_full).count() >= 2 {
        found.retain(|(.., is_full)| *is_full);
    }
    found.sort_unstable();
    found.truncate(most);
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let order: HashMap<u64, usize> =
        found.iter().enumerate().map(|(place, &(_, at, _))| (at, place)).collect();
    let parts = Parts::of(nest, times, node, count, &order)?;
    let mut slow: Vec<Option<SlowIteration>> = vec![None; order.len()];
    let mut at = 0;
    visit_iterations(nest, times, |iteration| {
        if iteration.node == node {
            if let (Some(&place), Some(time)) = (order.get(&at), iteration.time) {
                slow[place] = Some(slow_iteration(&iteration, time, parts.grown(at)));
            }
            at += 1;
        }
        Ok(())
    })?;
    Ok(slow.into_iter().flatten().collect())
}

fn slow_iteration(iteration: &Iteration<'_>, time: i128, grown: Vec<Grown>) -> SlowIteration {
    SlowIteration {
        iteration: iteration.iteration,
        outer: iteration.outer.to_vec(),
        events: iteration.events.clone(),
        kind: iteration.kind,
        start: iteration.start,
        time,
        grown,
    }
}

/// The node of a part, unless it is an exception, and when it began.
type Begun = (Option<usize>, Option<i128>);

/// The times of the parts of iterations.
struct Parts {
    medians: HashMap<usize, f64>,
    /// Of each iteration that was asked for, the times of its parts.
    asked: HashMap<u64, Vec<(Option<usize>, i128)>>,
}

impl Parts {
    fn of(nest: &Nest, times: &Times, node: usize, count: u64, asked: &HashMap<u64, usize>) -> Result<Self> {
        let children: Vec<usize> = nest.children(nest.body(node)).collect();
        let stride = (count.saturating_mul(children.len() as u64)).div_ceil(MOST_TIMES).max(1);
        let mut kept: HashMap<usize, Vec<i64>> = HashMap::new();
        let mut parts = Self { medians: HashMap::new(), asked: HashMap::new() };
        let Some(mut clock) = Clock::new(times) else { return Ok(parts) };
        let (mut begun, mut at): (Vec<Begun>, u64) = (Vec::new(), 0);
        nest.walk(|visit| {
            match visit {
                Visit::Node { at, position } if children.binary_search(&at).is_ok() => {
                    begun.push((Some(at), clock.start(position)?));
                }
                Visit::IterationEnd(IterationEnd { node: ended, position, added, last, .. })
                    if ended == node =>
                {
                    if added > 0 {
                        begun.push((None, clock.start(position - added)?));
                    }
                    let end = if last { None } else { clock.start(position)? };
                    let its = lasted(&begun, end);
                    if at.is_multiple_of(stride) {
                        for (part, time) in its.iter().filter_map(|&(part, time)| part.zip(Some(time))) {
                            kept.entry(part).or_default().push(time.clamp(0, i64::MAX.into()) as i64);
                        }
                    }
                    if asked.contains_key(&at) {
                        parts.asked.insert(at, its);
                    }
                    begun.clear();
                    at += 1;
                }
                _ => {}
            }
            Ok(())
        })?;
        parts.medians = kept.into_iter().map(|(part, times)| (part, median(times))).collect();
        Ok(parts)
    }

    /// The parts that took longer than their medians, those that grew most first.
    fn grown(&self, at: u64) -> Vec<Grown> {
        let part = |&(node, time): &(Option<usize>, i128)| {
            let median = node.map_or(Some(0.0), |node| self.medians.get(&node).copied())?;
            Some(Grown { node, time, median }).filter(|grown| grown.by() > 0.0)
        };
        let mut grown: Vec<Grown> = self.asked.get(&at).into_iter().flatten().filter_map(part).collect();
        grown.sort_by(|one, other| other.by().total_cmp(&one.by()));
        grown
    }
}

/// How long each part lasted, where that is known.
fn lasted(begun: &[Begun], end: Option<i128>) -> Vec<(Option<usize>, i128)> {
    let ends = begun.iter().skip(1).map(|(_, start)| *start).chain([end]);
    begun.iter().zip(ends).filter_map(|(&(part, start), end)| Some((part, end? - start?))).collect()
}

fn median(mut times: Vec<i64>) -> f64 {
    let count = times.len();
    if count == 0 {
        return 0.0;
    }
    let (below, &mut middle, _) = times.select_nth_unstable(count / 2);
    let lower = below.iter().copied().max().filter(|_| count.is_multiple_of(2)).unwrap_or(middle);
    (lower as f64 + middle as f64) / 2.0
}
