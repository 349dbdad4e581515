//! The times of loops: how long their iterations took, and which was slowest.
//!
//! An iteration lasts from the start of its first event to the start of the next iteration of
//! the same occurrence of the loop. The last one has no next one: it lasts to the latest end of
//! its events, so that a pause after the loop does not count. An event whose duration is not
//! known ends when the next event of the stream begins, or at once if there is none. Where a
//! source has durations but no starts, an iteration is the sum of its durations.
//!
//! A last iteration lacks what comes between two iterations: the time from the end of its events
//! to the start of the next one. So it counts in sums, but the median, the fastest and the slowest
//! iteration leave out last ones if at least two others remain, in all occurrences of the loop
//! together. If iterations are sums of durations, the last one is as good as the others.
//!
//! The *busy* time of an iteration is the part of it in which some event of the stream is open:
//! what the union of the intervals of events whose durations are known covers.
//!
//! * `choice` finds the loop that is meant.
//! * `stopwatch` times iterations while a stream is walked.
//! * `busy` has the time in which some event was open.
//! * `samples` gathers their times, for the median.
//! * `divided` has the samples of some of the streams of a class, which others complete.
//! * `phases` are consecutive iterations between which the program changed its pace.
//! * `summed` has the times of loops where only sums are kept.
//! * `slow` finds the slowest iterations of a loop, and which parts of the body made them slow.
//!
//! Cost: one pass over the starts and durations, some 30 nanoseconds an event, and a step for each
//! occurrence of each node of the nest; 8 bytes for each iteration, for the median. Of a loop of
//! more than four million iterations an even sample is kept, and its median is that of the sample.

mod busy;
mod choice;
mod divided;
mod phases;
mod samples;
mod slow;
mod stopwatch;
mod summed;

pub use choice::{LoopPlace, WantedLoop, loop_places};
pub use divided::ClassSamples;
pub use phases::{LEAST_FACTOR, LEAST_ITERATIONS, LEAST_PART, MOST_PHASES, Phase, SIGNIFICANT, phase_starts};
pub use slow::{Grown, PartTime, SlowConfig, SlowIteration, SlowIterations, slow_iterations};
pub(super) use stopwatch::{Lap, Stopwatch};
pub use summed::summed_times;

use super::nest::{IterationEnd, Nest, Node, Visit};
use crate::fold::Spread;
use crate::trace::Times;
use crate::{Result, StreamId};
use std::ops::Range;

/// The times of the iterations of one loop of a nest, over all its occurrences in all streams of
/// a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopTimes {
    /// The node of the loop.
    pub node: usize,
    /// The times of those iterations that have one, in nanoseconds. The smallest and the largest
    /// leave out last iterations if at least two others remain.
    pub times: Spread,
    /// The median time of the same iterations, the mean of the middle two of an even number.
    /// `None` where only sums are known.
    pub median: Option<f64>,
    /// Which of these iterations was slowest. `None` where only sums are known.
    pub slowest: Option<Slowest>,
    /// The streams in which all iterations together took least and most time. `None` where only
    /// sums are known.
    pub streams: Option<[(StreamId, i128); 2]>,
    /// The busy time of all iterations together. `None` if it is not known of each.
    pub busy: Option<i128>,
    /// The [phases](phase_starts) of a loop that lies in no other one, if there are several, in
    /// the first stream that has times.
    pub phases: Vec<Phase>,
    /// That stream, if there are several phases.
    pub phases_stream: Option<StreamId>,
    /// What else the times include.
    pub scope: Scope,
}

/// What the times of a loop include besides its iterations in a nest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    #[default]
    Own,
    /// Other places of the same loop, since sums do not distinguish them.
    OtherPlaces,
    /// Other streams as well, which were left out when streams were chosen.
    OtherStreams,
}

/// The slowest iteration of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slowest {
    /// The stream that it is in.
    pub stream: StreamId,
    /// Which one it is, from 0, counted within its occurrence of the loop.
    pub iteration: u64,
    /// In which iterations of the loops around it it lies, the outermost first.
    pub outer: Vec<u64>,
    /// Where it begins in the stream.
    pub position: u64,
}

/// The times of the streams of a class and of the loops of its nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassTimes {
    /// The streams that have times, and the time of each in nanoseconds: from the earliest start
    /// to the latest end of its events.
    pub streams: Vec<(StreamId, i128)>,
    /// The loops that have times, in the order of their nodes.
    pub loops: Vec<LoopTimes>,
}

impl ClassTimes {
    /// The time of all streams together.
    pub fn total(&self) -> i128 {
        self.streams.iter().fold(0, |sum, (_, time)| sum.saturating_add(*time))
    }

    /// The times of the loop at a node.
    pub fn of_loop(&self, node: usize) -> Option<&LoopTimes> {
        let index = self.loops.binary_search_by_key(&node, |times| times.node).ok()?;
        Some(&self.loops[index])
    }
}

/// One iteration of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration<'a> {
    /// The node of the loop.
    pub node: usize,
    /// Which occurrence of the loop in the stream it belongs to, from 0.
    pub occurrence: u64,
    /// Which iteration of that occurrence it is, from 0.
    pub iteration: u64,
    /// In which iterations of the loops around it it lies, the outermost first.
    pub outer: &'a [u64],
    /// How many iterations it is: more than one if several are one exception of a loop.
    pub iterations: u64,
    /// The kind of exception that it is or that follows it, by its place among the kinds of its
    /// loop.
    pub kind: Option<usize>,
    /// The positions of its events.
    pub events: Range<u64>,
    /// Whether it is the last one of its occurrence.
    pub is_last: bool,
    /// Whether its time can be compared with that of others: false for a last iteration, unless
    /// iterations are sums of durations, and for several iterations.
    pub is_full: bool,
    /// When it began, if that is known; without starts, the durations of all events before it.
    pub start: Option<i128>,
    /// How long it took, in nanoseconds, if that is known.
    pub time: Option<i128>,
    /// For how much of that some event of the stream was open, if starts and durations are known.
    pub busy: Option<i128>,
}

impl Iteration<'_> {
    /// Whether it, or one of several that are one exception, has one of these numbers.
    pub fn is_in(&self, numbers: &Range<u64>) -> bool {
        let last = self.iteration + self.iterations.max(1) - 1;
        last >= numbers.start && self.iteration < numbers.end
    }
}

/// Calls `visit` with every iteration of every loop of a nest in one of its streams, in the order
/// in which they end. Returns the time of the whole stream, or `None` if it has no times.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::iterations::visit_iterations;
/// use loopfold::trace::{Collector, Event, Sink, Timing};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// let step = collector.intern(&Event::named("step"))?;
/// for start in [0, 27, 54] {
///     collector.push(stream, step, Timing { start: Some(start), duration: Some(2), ..Timing::UNKNOWN })?;
/// }
/// // (step)^3
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let stream = &fold.streams()[0];
/// let mut times = Vec::new();
/// let total = visit_iterations(&fold.nest(stream.root(), 100), stream.times(), |iteration| {
///     times.push((iteration.time, iteration.is_last));
///     Ok(())
/// })?;
/// assert_eq!(times, [(Some(27), false), (Some(27), false), (Some(2), true)]);
/// assert_eq!(total, Some(56));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn visit_iterations(
    nest: &Nest,
    times: &Times,
    mut visit: impl FnMut(Iteration<'_>) -> Result<()>,
) -> Result<Option<i128>> {
    let mut stopwatch = Stopwatch::new(times).map(Stopwatch::with_busy_time).transpose()?;
    let mut occurrences = vec![0u64; nest.nodes.len()];
    // Where the current iterations of the open loops began, and which they are, outermost first.
    let (mut began, mut open): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let end = nest.walk(|step| {
        match step {
            Visit::Node { at, position } => {
                if let Node::Loop { .. } | Node::Near { .. } = nest.nodes[at] {
                    occurrences[at] += 1;
                    began.push(position);
                    open.push(0);
                    stopwatch.as_mut().map_or(Ok(()), |stopwatch| stopwatch.begin(position))?;
                }
            }
            Visit::IterationEnd(end) => {
                let IterationEnd { node, iteration, iterations, kind, last: is_last, position, .. } = end;
                let lap = stopwatch.as_mut().map(|stopwatch| stopwatch.lap(position, is_last)).transpose()?;
                let Lap { start, time, busy, is_full } = lap.unwrap_or_default();
                let began_at = began.pop().unwrap_or(position);
                open.pop();
                visit(Iteration {
                    node,
                    occurrence: occurrences[node] - 1,
                    iteration,
                    outer: &open,
                    iterations,
                    kind,
                    events: began_at..position,
                    is_last,
                    is_full: is_full && iterations == 1,
                    start,
                    time,
                    busy,
                })?;
                if !is_last {
                    began.push(position);
                    open.push(iteration + iterations);
                }
            }
        }
        Ok(())
    })?;
    stopwatch.map(|mut stopwatch| stopwatch.total(end)).transpose()
}

/// The times of the loops of a nest, over those of its streams that have times. Returns `None`
/// when none has.
pub fn loop_times<'a>(
    nest: &Nest,
    streams: impl IntoIterator<Item = (StreamId, &'a Times)>,
) -> Result<Option<ClassTimes>> {
    let mut samples = ClassSamples::default();
    for (stream, times) in streams {
        samples.read(nest, stream, times, |_| ())?;
    }
    samples.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::{Outermost, fold_trace};
    use crate::trace::{Collector, Event, Sink, Timing};

    fn times_of(events: &[(&str, Option<i64>, Option<i64>)]) -> ClassTimes {
        let mut collector = Collector::default();
        let stream = collector.stream("s").unwrap();
        for &(name, start, duration) in events {
            let symbol = collector.intern(&Event::named(name)).unwrap();
            collector.push(stream, symbol, Timing { start, duration, ..Timing::UNKNOWN }).unwrap();
        }
        let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
        let own = &fold.streams()[0];
        loop_times(&fold.nest(own.root(), 1000), [(stream, own.times())]).unwrap().unwrap()
    }

    fn slowest(times: &LoopTimes) -> Option<(u64, u64)> {
        times.slowest.as_ref().map(|slowest| (slowest.iteration, slowest.position))
    }

    #[test]
    fn an_iteration_lasts_until_the_next_and_the_last_until_its_end() {
        let mut events = vec![("x", Some(0), Some(5))];
        for start in [10, 20, 50, 60] {
            events.extend([("a", Some(start), Some(2)), ("b", Some(start + 3), Some(4))]);
        }
        events.push(("y", Some(1000), Some(1)));
        let times = times_of(&events);
        assert_eq!(times.total(), 1001);
        let [only] = &times.loops[..] else { panic!("{times:?}") };
        // Iterations of 10, 30, 10 and, to the end of its b, 7.
        assert_eq!((only.times.total, only.times.count), (57, 4));
        assert_eq!((only.times.minimum, only.median, only.times.maximum), (10, Some(10.0), 30));
        assert_eq!(slowest(only), Some((1, 3)));
    }

    #[test]
    fn the_last_iteration_reaches_to_the_end_of_what_it_contains() {
        // The last b lies within the last a.
        let events = [("a", 10, 10), ("b", 12, 3), ("a", 30, 14), ("b", 32, 3)];
        let times = times_of(&events.map(|(name, start, duration)| (name, Some(start), Some(duration))));
        assert_eq!(times.total(), 34);
        let spread = times.loops[0].times;
        // With one other iteration only, the last one is compared with it.
        assert_eq!((spread.total, spread.minimum, spread.maximum), (34, 14, 20));
        assert_eq!(times.loops[0].median, Some(17.0));
    }

    #[test]
    fn durations_alone_are_summed() {
        let events: Vec<_> =
            [1, 2, 3, 4].iter().flat_map(|&n| [("a", None, Some(n)), ("b", None, Some(10 * n))]).collect();
        let times = times_of(&events);
        assert_eq!(times.total(), 110);
        let only = &times.loops[0];
        assert_eq!((only.median, only.times.maximum, slowest(only)), (Some(27.5), 44, Some((3, 6))));
    }

    #[test]
    fn starts_alone_reach_to_the_next_event() {
        let events: Vec<_> =
            (0..6).map(|n| (if n % 2 == 0 { "a" } else { "b" }, Some(n * n), None)).collect();
        let times = times_of(&events);
        assert_eq!(times.total(), 25);
        // From 0 to 4, to 16, and the last one to 25.
        let spread = times.loops[0].times;
        assert_eq!((spread.total, spread.minimum, spread.maximum), (25, 4, 12));
    }
}
