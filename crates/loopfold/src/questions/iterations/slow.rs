//! The slowest iterations of a loop, and which parts of the body made them slow.
//!
//! The parts of a body are its events and inner loops; an exception that follows an iteration is
//! one more part of it. A part *spans* the time from its start to the start of the next part, the
//! last one to the end of the iteration, so that the parts add up to the iteration. Of this span,
//! the part itself takes what the union of the intervals of its own events covers
//! ([`PartTime::Inside`]), and the rest comes *after* it ([`PartTime::After`]): computation that is not
//! in the trace, or idle time. An event around the next part, such as a function and what it
//! calls, lasts longer than its span: only what lies in the span counts, so nothing counts twice.
//! Where no event of a part has a known duration, the span is not divided ([`PartTime::Span`]).
//! Where only durations are known, there is nothing after a part.
//!
//! A part *grew* by how much longer it took than its median, which is over all iterations, in all
//! streams of the class, that have it and that can be compared.
//!
//! The *gaps* of an iteration are what is not busy of it: the time in which no event was open.
//!
//! Cost: three walks through each stream, one of which reads the times of all events of the loop;
//! 48 bytes for each iteration, and 16 bytes for each part of each iteration, of an even sample of
//! the iterations if these are more than four million. If a clock goes back, 32 bytes for each
//! event of a part.

use super::samples::{median_of, narrow};
use super::stopwatch::Clock;
use super::{Iteration, visit_iterations};
use crate::questions::clock::Starts;
use crate::questions::nest::{IterationEnd, Nest, Visit};
use crate::trace::Times;
use crate::{Result, StreamId};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::ops::Range;

/// Which iterations are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowConfig {
    /// The most iterations.
    pub most: usize,
    /// Only those with these numbers. They are compared with the medians of all iterations.
    pub numbers: Option<Range<u64>>,
}

impl SlowConfig {
    /// So many of all iterations.
    pub const fn new(most: usize) -> Self {
        Self { most, numbers: None }
    }

    setters! {
        /// Only those with these numbers. They are compared with the medians of all iterations.
        numbers: Option<Range<u64>>,
    }
}

/// The slowest iterations of a loop, and the medians that they are compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowIterations {
    /// The median time of an iteration, in nanoseconds. `None` if no times are known.
    pub median: Option<f64>,
    /// The median busy time.
    pub busy_median: Option<f64>,
    /// The median time in which no event was open.
    pub gap_median: Option<f64>,
    /// The slowest first; of equal ones that of the first stream, and the first of that.
    pub iterations: Vec<SlowIteration>,
}

/// A slow iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowIteration {
    /// The stream that it is in.
    pub stream: StreamId,
    /// Which one it is, from 0, counted within its occurrence of the loop.
    pub iteration: u64,
    /// How many iterations it is: more than one if several are one exception of a loop.
    pub iterations: u64,
    /// In which iterations of the loops around it it lies, the outermost first.
    pub outer: Vec<u64>,
    /// The positions of its events.
    pub events: Range<u64>,
    /// The kind of exception that it is or that follows it.
    pub kind: Option<usize>,
    /// Whether it is the last one of its occurrence.
    pub is_last: bool,
    /// When it began.
    pub start: Option<i128>,
    /// How long it took, in nanoseconds.
    pub time: i128,
    /// For how much of that some event of the stream was open.
    pub busy: Option<i128>,
    /// The parts that grew, those that grew most first. None for an odd iteration, which has other
    /// parts.
    pub grown: Vec<Grown>,
}

/// Which time of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartTime {
    /// In which some event of the part was open.
    Inside,
    /// From then until the next part began, and between the events of the part.
    After,
    /// All of it, where no durations are known.
    Span,
}

impl PartTime {
    /// Its name for programs.
    pub fn id(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::After => "after",
            Self::Span => "span",
        }
    }
}

/// A part of an iteration that took longer than its median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grown {
    /// The node of the part. `None` for the exception that follows the iteration.
    pub node: Option<usize>,
    /// Which time of it.
    pub which: PartTime,
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

/// An iteration of the loop.
struct Found {
    time: Reverse<i128>,
    /// Which stream, and which iteration in it, counted over all occurrences.
    stream: usize,
    at: u64,
    busy: Option<i128>,
    is_full: bool,
    is_wanted: bool,
}

/// The slowest iterations of the loop at a node, over the streams of a class. Iterations that are
/// [not full](Iteration::is_full) are left out if at least two others remain, and of those that
/// [`SlowConfig::numbers`] selects if one other remains.
pub fn slow_iterations(
    nest: &Nest,
    streams: &[(StreamId, &Times)],
    node: usize,
    config: &SlowConfig,
) -> Result<SlowIterations> {
    let mut found = Vec::new();
    let mut counts = Vec::with_capacity(streams.len());
    for (stream, (_, times)) in streams.iter().enumerate() {
        counts.push(iterations_of(nest, times, node, (stream, config), &mut found)?);
    }
    let full = found.iter().filter(|found| found.is_full).count();
    let compared: Vec<&Found> = found.iter().filter(|found| found.is_full || full < 2).collect();
    let mut answer = SlowIterations {
        median: median_of_all(compared.iter().map(|found| Some(found.time.0))),
        busy_median: median_of_all(compared.iter().map(|found| found.busy)),
        gap_median: median_of_all(compared.iter().map(|found| Some(found.time.0 - found.busy?))),
        iterations: Vec::new(),
    };
    let slowest = slowest(found, config);
    // Which place an iteration of a stream has among the slowest.
    let mut order: Vec<HashMap<u64, usize>> = vec![HashMap::new(); streams.len()];
    for (place, found) in slowest.iter().enumerate() {
        order[found.stream].insert(found.at, place);
    }
    let mut parts = Parts::new(nest, node, counts.iter().sum(), &order);
    parts.with_last = full < 2;
    for (stream, (_, times)) in streams.iter().enumerate() {
        parts.read(times, stream)?;
    }
    let parts = parts.compared();
    let mut slow: Vec<Option<SlowIteration>> = vec![None; slowest.len()];
    for (stream, &(id, times)) in streams.iter().enumerate().filter(|(stream, _)| !order[*stream].is_empty())
    {
        let mut at = 0;
        visit_iterations(nest, times, |iteration| {
            if iteration.node == node {
                if let (Some(&place), Some(time)) = (order[stream].get(&at), iteration.time) {
                    slow[place] = Some(slow_iteration(id, &iteration, time, parts.grown((stream, at))));
                }
                at += 1;
            }
            Ok(())
        })?;
    }
    answer.iterations = slow.into_iter().flatten().collect();
    Ok(answer)
}

/// Adds the iterations of the loop in a stream. Returns how many there are.
fn iterations_of(
    nest: &Nest,
    times: &Times,
    node: usize,
    (stream, config): (usize, &SlowConfig),
    found: &mut Vec<Found>,
) -> Result<u64> {
    if Clock::new(times).is_none() {
        return Ok(0);
    }
    let mut count = 0;
    visit_iterations(nest, times, |iteration| {
        if iteration.node != node {
            return Ok(());
        }
        let is_wanted = config.numbers.as_ref().is_none_or(|numbers| iteration.is_in(numbers));
        found.extend(iteration.time.map(|time| Found {
            time: Reverse(time),
            stream,
            at: count,
            busy: iteration.busy,
            is_full: iteration.is_full,
            is_wanted,
        }));
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn slowest(mut found: Vec<Found>, config: &SlowConfig) -> Vec<Found> {
    found.retain(|found| found.is_wanted);
    let enough = if config.numbers.is_some() { 1 } else { 2 };
    if found.iter().filter(|found| found.is_full).count() >= enough {
        found.retain(|found| found.is_full);
    }
    found.sort_unstable_by_key(|found| (found.time, found.stream, found.at));
    found.truncate(config.most);
    found
}

/// The median of numbers. Returns `None` if one is not known.
fn median_of_all(numbers: impl Iterator<Item = Option<i128>>) -> Option<f64> {
    let mut numbers = numbers.map(|number| number.map(narrow)).collect::<Option<Vec<i64>>>()?;
    median_of(&mut numbers)
}

fn slow_iteration(
    stream: StreamId,
    iteration: &Iteration<'_>,
    time: i128,
    grown: Vec<Grown>,
) -> SlowIteration {
    SlowIteration {
        stream,
        iteration: iteration.iteration,
        iterations: iteration.iterations,
        outer: iteration.outer.to_vec(),
        events: iteration.events.clone(),
        kind: iteration.kind,
        is_last: iteration.is_last,
        start: iteration.start,
        time,
        busy: iteration.busy,
        grown,
    }
}

/// A part of an iteration: its node, unless it is an exception, and its events.
type Begun = (Option<usize>, Range<u64>);
/// A time of a part.
type TimeOfPart = (Option<usize>, PartTime, i128);

/// Reads the times of the parts of iterations.
struct Parts<'a> {
    nest: &'a Nest,
    node: usize,
    children: Vec<usize>,
    /// The iterations of each stream whose parts are kept.
    asked: &'a [HashMap<u64, usize>],
    /// Every so many iterations count for the medians.
    stride: u64,
    /// Whether last iterations count, too.
    with_last: bool,
    kept: HashMap<(usize, PartTime), Vec<i64>>,
    of_asked: HashMap<(usize, u64), Vec<TimeOfPart>>,
}

/// The times of the parts of some iterations, and the medians.
struct ComparedParts {
    medians: HashMap<(usize, PartTime), f64>,
    of_asked: HashMap<(usize, u64), Vec<TimeOfPart>>,
}

impl<'a> Parts<'a> {
    fn new(nest: &'a Nest, node: usize, count: u64, asked: &'a [HashMap<u64, usize>]) -> Self {
        let children: Vec<usize> = nest.children(nest.body(node)).collect();
        let times = count.saturating_mul(2 * children.len() as u64);
        let stride = times.div_ceil(MOST_TIMES).max(1);
        Self {
            nest,
            node,
            children,
            asked,
            stride,
            with_last: false,
            kept: HashMap::new(),
            of_asked: HashMap::new(),
        }
    }

    fn read(&mut self, times: &Times, stream: usize) -> Result<()> {
        let Some(mut spans) = Spans::new(times)? else { return Ok(()) };
        let (mut begun, mut at): (Vec<Begun>, u64) = (Vec::new(), 0);
        let (nest, node) = (self.nest, self.node);
        nest.walk(|visit| {
            match visit {
                Visit::Node { at, position } if self.children.binary_search(&at).is_ok() => {
                    end_part(&mut begun, position);
                    begun.push((Some(at), position..position));
                }
                Visit::IterationEnd(IterationEnd { node: ended, position, added, last, .. })
                    if ended == node =>
                {
                    end_part(&mut begun, position - added);
                    if added > 0 {
                        begun.push((None, position - added..position));
                    }
                    let is_full = !last || self.with_last || !spans.clock.has_starts();
                    let is_kept = is_full && at.is_multiple_of(self.stride);
                    let is_asked = self.asked[stream].contains_key(&at);
                    if is_kept || is_asked {
                        let its = spans.of_parts(&begun, last)?;
                        for &(part, which, time) in its.iter().filter(|_| is_kept) {
                            let Some(part) = part else { continue };
                            let time = time.clamp(0, i64::MAX.into()) as i64;
                            self.kept.entry((part, which)).or_default().push(time);
                        }
                        if is_asked {
                            self.of_asked.insert((stream, at), its);
                        }
                    }
                    begun.clear();
                    at += 1;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(())
    }

    fn compared(self) -> ComparedParts {
        let median = |(part, mut times): (_, Vec<i64>)| (part, median_of(&mut times).unwrap_or(0.0));
        ComparedParts { medians: self.kept.into_iter().map(median).collect(), of_asked: self.of_asked }
    }
}

/// The last part ends at a position.
fn end_part(begun: &mut [Begun], position: u64) {
    if let Some((_, events)) = begun.last_mut() {
        events.end = position;
    }
}

impl ComparedParts {
    /// The parts that took longer than their medians, those that grew most first.
    fn grown(&self, at: (usize, u64)) -> Vec<Grown> {
        let part = |&(node, which, time): &TimeOfPart| {
            let median = node.map_or(Some(0.0), |node| self.medians.get(&(node, which)).copied())?;
            Some(Grown { node, which, time, median }).filter(|grown| grown.by() > 0.0)
        };
        let mut grown: Vec<Grown> = self.of_asked.get(&at).into_iter().flatten().filter_map(part).collect();
        grown.sort_by(|one, other| other.by().total_cmp(&one.by()));
        grown
    }
}

/// Divides the spans of parts.
struct Spans<'a> {
    clock: Clock<'a>,
    /// Whether starts never decrease.
    is_sorted: bool,
    /// The intervals of a part, where they may.
    intervals: Vec<(i128, i128)>,
}

impl<'a> Spans<'a> {
    /// Returns `None` if there are no times.
    fn new(times: &'a Times) -> Result<Option<Self>> {
        let Some(mut clock) = Clock::new(times) else { return Ok(None) };
        let is_sorted = match &mut clock {
            Clock::Starts(starts) => starts.is_sorted()?,
            Clock::Durations { .. } => true,
        };
        Ok(Some(Self { clock, is_sorted, intervals: Vec::new() }))
    }

    /// The times of the parts of an iteration, where they are known. `last` if no iteration
    /// follows.
    fn of_parts(&mut self, parts: &[Begun], last: bool) -> Result<Vec<TimeOfPart>> {
        let mut times = Vec::with_capacity(2 * parts.len());
        for (index, (node, events)) in parts.iter().enumerate() {
            let start = self.clock.start(events.start)?;
            let is_end = last && index + 1 == parts.len();
            let end = match &mut self.clock {
                Clock::Starts(starts) if is_end => latest_end(starts, parts)?,
                clock => clock.start(events.end)?,
            };
            let Some((start, end)) = start.zip(end) else { continue };
            let span = end - start;
            match self.inside(events, start..end)? {
                Some(inside) => {
                    times.push((*node, PartTime::Inside, inside));
                    times.push((*node, PartTime::After, span - inside));
                }
                None => times.push((*node, PartTime::Span, span)),
            }
        }
        Ok(times)
    }

    /// How much of a span the union of the intervals of some events covers. Returns `None` if no
    /// duration is known.
    fn inside(&mut self, events: &Range<u64>, span: Range<i128>) -> Result<Option<i128>> {
        let starts = match &mut self.clock {
            Clock::Starts(starts) => starts,
            Clock::Durations { .. } => return Ok(Some(span.end - span.start)),
        };
        let mut union = Union::new(&span);
        let mut is_known = false;
        self.intervals.clear();
        for position in events.clone() {
            let (Some(start), Some(duration)) = (starts.start(position)?, starts.duration(position)?) else {
                continue;
            };
            is_known = true;
            let start = i128::from(start);
            match self.is_sorted {
                true => union.add(start, start + i128::from(duration)),
                false => self.intervals.push((start, start + i128::from(duration))),
            }
        }
        self.intervals.sort_unstable();
        self.intervals.iter().for_each(|&(start, end)| union.add(start, end));
        Ok(is_known.then_some(union.covered))
    }
}

/// The latest end of the events of an iteration.
fn latest_end(starts: &mut Starts<'_>, parts: &[Begun]) -> Result<Option<i128>> {
    let mut latest = None;
    for position in parts.iter().flat_map(|(_, events)| events.clone()) {
        latest = latest.max(starts.event(position)?.map(|event| event.end));
    }
    Ok(latest)
}

/// The measure of the union of intervals within a span. They come in the order of their starts.
struct Union {
    covered: i128,
    end: i128,
    most: i128,
}

impl Union {
    fn new(span: &Range<i128>) -> Self {
        Self { covered: 0, end: span.start, most: span.end }
    }

    fn add(&mut self, start: i128, end: i128) {
        let (start, end) = (start.max(self.end), end.min(self.most));
        if end > start {
            self.covered += end - start;
            self.end = end;
        }
    }
}
