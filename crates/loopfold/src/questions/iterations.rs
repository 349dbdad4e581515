//! The times of loops: how long their iterations took, and which was slowest.
//!
//! An iteration lasts from the start of its first event to the start of the next iteration; the
//! last one to the end of its last event, so that a pause after the loop does not count. Where
//! a source has durations but no starts, an iteration is the sum of its durations.
//!
//! Cost: one look-up per iteration of every loop of the nest, at most the events; 8
//! bytes for each iteration, for the median. Of a loop of more than four million
//! iterations an even sample is kept, and its median is that of the sample.

use super::classes::Class;
use super::nest::{Nest, Node, OpenedLoop, Visit};
use crate::fold::{Fold, Spread, rule_uses};
use crate::trace::{ColumnReader, Times};
use crate::{Result, StreamId};

/// The times of the iterations of one loop of a nest, over all its occurrences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopTimes {
    /// The node of the loop.
    pub node: usize,
    /// The times of those iterations that have one, in nanoseconds.
    pub times: Spread,
    /// The median time of its iterations (the lower of two). `None` where only sums are known.
    pub median: Option<i64>,
    /// Which iteration was slowest. `None` where only sums are known.
    pub slowest: Option<Slowest>,
    /// Whether the times include other places of the same loop: sums do not distinguish them.
    pub shared: bool,
}

/// The slowest iteration of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slowest {
    /// Which one it is, from 0, counted within its occurrence of the loop.
    pub iteration: u64,
    /// Where it begins in the stream.
    pub position: u64,
}

/// The times of a stream and of the loops of its nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamTimes {
    /// The time of the whole stream, in nanoseconds.
    pub total: i128,
    /// The loops that have times, in the order of their nodes.
    pub loops: Vec<LoopTimes>,
}

/// The times of the loops of a nest in one of its streams. Returns `None` when the stream has
/// no times.
pub fn loop_times(nest: &Nest, times: &Times) -> Result<Option<StreamTimes>> {
    let Some(mut stopwatch) = Stopwatch::new(times) else { return Ok(None) };
    let mut samples: Vec<Samples> = Vec::new();
    let mut sample_of = vec![usize::MAX; nest.nodes.len()];
    for (at, node) in nest.nodes.iter().enumerate() {
        if matches!(node, Node::Loop { .. }) {
            sample_of[at] = samples.len();
            samples.push(Samples { node: at, ..Samples::default() });
        }
    }
    let position = nest.walk(|visit| {
        match visit {
            Visit::Node { at, position } => {
                if sample_of[at] != usize::MAX {
                    stopwatch.begin(position)?;
                }
            }
            Visit::IterationEnd { node, iteration, last, position } => {
                if let Some(lap) = stopwatch.lap(position, last)? {
                    let slowest = Slowest { iteration, position: lap.began_at };
                    samples[sample_of[node]].add(lap.time, slowest)?;
                }
            }
        }
        Ok(())
    })?;
    let total = stopwatch.total(position)?;
    let loops = samples.into_iter().filter_map(Samples::summary).collect();
    Ok(Some(StreamTimes { total, loops }))
}

/// The times of a class from sums, where there is no time for every event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummedTimes {
    /// The streams of the class that have a time, and that time in nanoseconds.
    pub streams: Vec<(StreamId, i128)>,
    /// All of these streams together, and the loops of the nest.
    pub all: StreamTimes,
}

/// The times of the loops of the nest of a class, which is cut at `limit` nodes, from the sums
/// of the fold. Returns `None` when no stream of the class has any.
pub fn summed_times(fold: &Fold, class: &Class, limit: usize) -> Result<Option<SummedTimes>> {
    let mut summed = SummedTimes::default();
    for &index in &class.streams {
        let Some(sums) = fold.stream(index).sums() else { continue };
        let time = sums.span().map(i128::from).or(sums.total_duration()?);
        if let Some(time) = time {
            summed.all.total = summed.all.total.saturating_add(time);
            summed.streams.push((index, time));
        }
    }
    if summed.streams.is_empty() {
        return Ok(None);
    }
    let (Some(sums), Ok(uses)) = (fold.rule_sums(), rule_uses(fold)) else { return Ok(Some(summed)) };
    let mut places = Vec::new();
    let nest = Nest::with_loops(fold, class.root, limit, |opened| places.push(opened));
    let repeated = nest.repetitions();
    for OpenedLoop { node, rule, item } in places {
        let Some(&times) = sums.loops.get(&(rule, item)) else { continue };
        let iterations_here = repeated[node].and_then(|here| here.checked_mul(class.streams.len() as u64));
        let iterations = uses[rule.index()].checked_mul(fold.body(rule)[item].times());
        let shared = iterations.is_none() || iterations != iterations_here;
        summed.all.loops.push(LoopTimes { node, times, median: None, slowest: None, shared });
    }
    Ok(Some(summed))
}

/// Times the iterations of loops in loops.
pub(super) struct Stopwatch<'a> {
    clock: Clock<'a>,
    /// Where and when the current iterations of the open loops began, outermost first.
    began: Vec<(u64, Option<i128>)>,
}

/// An iteration whose time is known.
pub(super) struct Lap {
    pub(super) time: i128,
    /// The position of its first event.
    pub(super) began_at: u64,
}

impl<'a> Stopwatch<'a> {
    /// Nothing when there are no times.
    pub(super) fn new(times: &'a Times) -> Option<Self> {
        Some(Self { clock: Clock::new(times)?, began: Vec::new() })
    }

    /// The first iteration of a loop begins.
    pub(super) fn begin(&mut self, position: u64) -> Result<()> {
        self.began.push((position, self.clock.start(position)?));
        Ok(())
    }

    /// An iteration of the innermost open loop ends, and unless it was its last one
    /// another begins.
    pub(super) fn lap(&mut self, position: u64, last: bool) -> Result<Option<Lap>> {
        let now = self.clock.start_or_end(position, last)?;
        let lap = match (self.began.pop(), now) {
            (Some((began_at, Some(began))), Some(now)) => Some(Lap { time: now - began, began_at }),
            _ => None,
        };
        if !last {
            self.began.push((position, now));
        }
        Ok(lap)
    }

    /// From the beginning of the stream to where it ends, if both are known.
    fn total(&mut self, end: u64) -> Result<i128> {
        Ok(match (self.clock.start(0)?, self.clock.start_or_end(end, true)?) {
            (Some(start), Some(end)) => end - start,
            _ => 0,
        })
    }
}

/// When things happen in a stream, by position.
enum Clock<'a> {
    Starts { starts: ColumnReader<'a, i64>, durations: Option<ColumnReader<'a, i64>>, events: u64 },
    Durations { durations: ColumnReader<'a, i64>, events: u64 },
}

impl<'a> Clock<'a> {
    fn new(times: &'a Times) -> Option<Self> {
        let durations = times.durations.as_ref();
        match &times.starts {
            Some(starts) => Some(Clock::Starts {
                starts: starts.reader(),
                durations: durations.map(|durations| durations.reader()),
                events: starts.len() as u64,
            }),
            None => durations.map(|durations| Clock::Durations {
                durations: durations.reader(),
                events: durations.len() as u64,
            }),
        }
    }

    /// When the event at a position began; with durations only, the time before it.
    fn start(&mut self, position: u64) -> Result<Option<i128>> {
        match self {
            Clock::Starts { starts, events, .. } if position < *events => {
                let start = starts.get(position as usize)?;
                Ok((start != Times::UNKNOWN_START).then_some(start.into()))
            }
            Clock::Starts { .. } => Ok(None),
            Clock::Durations { durations, events } => {
                Ok(Some(durations.sum_before(position.min(*events) as usize)?.whole))
            }
        }
    }

    /// When the event at a position began, or, if `end`, when the one before it ended.
    /// Without durations an event ends when the next one begins.
    fn start_or_end(&mut self, position: u64, end: bool) -> Result<Option<i128>> {
        if let Clock::Starts { starts, durations, events } = self
            && end
            && position > 0
            && position <= *events
        {
            let before = (position - 1) as usize;
            let duration = match durations {
                Some(durations) => durations.get(before)?,
                None => Times::UNKNOWN_DURATION,
            };
            let start = starts.get(before)?;
            if start != Times::UNKNOWN_START && duration != Times::UNKNOWN_DURATION {
                return Ok(Some(i128::from(start) + i128::from(duration)));
            }
            if position == *events {
                return Ok((start != Times::UNKNOWN_START).then_some(start.into()));
            }
        }
        self.start(position)
    }
}

#[derive(Default)]
struct Samples {
    node: usize,
    all: Spread,
    /// Every `2^thinning`-th time.
    times: Vec<i64>,
    thinning: u32,
    slowest: Slowest,
}

/// The most times that are kept of a loop.
const MOST_SAMPLES: usize = 1 << 22;

impl Samples {
    fn add(&mut self, time: i128, iteration: Slowest) -> Result<()> {
        if self.all.count == 0 || time > self.all.maximum {
            self.slowest = iteration;
        }
        if self.all.count.trailing_zeros() >= self.thinning {
            self.times.push(time.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        }
        self.all.add(time)?;
        if self.times.len() == MOST_SAMPLES {
            let mut index = 0;
            self.times.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.thinning += 1;
        }
        Ok(())
    }

    fn summary(mut self) -> Option<LoopTimes> {
        let middle = self.times.len().checked_sub(1)? / 2;
        let (_, &mut median, _) = self.times.select_nth_unstable(middle);
        Some(LoopTimes {
            node: self.node,
            times: self.all,
            median: Some(median),
            slowest: Some(self.slowest),
            shared: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::{Outermost, fold_trace};
    use crate::trace::{Collector, Event, Sink, Timing};

    fn times_of(events: &[(&str, Option<i64>, Option<i64>)]) -> StreamTimes {
        let mut collector = Collector::default();
        let stream = collector.stream("s").unwrap();
        for &(name, start, duration) in events {
            let symbol = collector.intern(&Event::named(name)).unwrap();
            collector.push(stream, symbol, Timing { start, duration, ..Timing::UNKNOWN }).unwrap();
        }
        let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
        let stream = &fold.streams()[0];
        loop_times(&fold.nest(stream.root(), 1000), stream.times()).unwrap().unwrap()
    }

    #[test]
    fn an_iteration_lasts_until_the_next_and_the_last_until_its_end() {
        let mut events = vec![("x", Some(0), Some(5))];
        for start in [10, 20, 50, 60] {
            events.extend([("a", Some(start), Some(2)), ("b", Some(start + 3), Some(4))]);
        }
        events.push(("y", Some(1000), Some(1)));
        let times = times_of(&events);
        assert_eq!(times.total, 1001);
        let [only] = &times.loops[..] else { panic!("{times:?}") };
        // Iterations of 10, 30, 10 and, to the end of its b, 7.
        assert_eq!((only.times.total, only.times.count), (57, 4));
        assert_eq!((only.times.minimum, only.median, only.times.maximum), (7, Some(10), 30));
        assert_eq!(only.slowest, Some(Slowest { iteration: 1, position: 3 }));
    }

    #[test]
    fn durations_alone_are_summed() {
        let events: Vec<_> =
            [1, 2, 3, 4].iter().flat_map(|&n| [("a", None, Some(n)), ("b", None, Some(10 * n))]).collect();
        let times = times_of(&events);
        assert_eq!(times.total, 110);
        let slowest = times.loops[0].slowest.map(|slowest| slowest.iteration);
        assert_eq!((times.loops[0].median, times.loops[0].times.maximum, slowest), (Some(22), 44, Some(3)));
    }

    #[test]
    fn starts_alone_reach_to_the_next_event() {
        let events: Vec<_> =
            (0..6).map(|n| (if n % 2 == 0 { "a" } else { "b" }, Some(n * n), None)).collect();
        let times = times_of(&events);
        assert_eq!(times.total, 25);
        assert_eq!((times.loops[0].times.minimum, times.loops[0].times.maximum), (4, 12));
    }
}
