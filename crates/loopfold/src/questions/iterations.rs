//! The times of loops: how long their iterations took, and which was slowest.
//!
//! An iteration lasts from the start of its first event to the start of the next
//! iteration; the last one to the end of its last event, so that a pause after the loop
//! is not held against it. Where a source has durations but no starts, an iteration is
//! the sum of its durations.
//!
//! Cost: one look-up per iteration of every loop of the nest, at most the events; 8
//! bytes for each iteration, for the median. Of a loop of more than four million
//! iterations an even sample is kept, and its median is that of the sample.

use super::nest::{Nest, Node, Visit};
use crate::Result;
use crate::trace::{ColumnReader, Times};

/// The times of the iterations of one loop of a nest, over all its occurrences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopTimes {
    /// The node of the loop.
    pub node: usize,
    /// Its time in all, in nanoseconds.
    pub total: i128,
    /// How many iterations have a time.
    pub iterations: u64,
    /// Of the times of its iterations, the one in the middle (the lower of two).
    pub median: i64,
    /// The fastest iteration.
    pub minimum: i64,
    /// The slowest iteration.
    pub maximum: i64,
    /// Which iteration was slowest, from 0, counted within its occurrence.
    pub slowest: u64,
    /// Where the slowest iteration begins in the stream.
    pub slowest_at: u64,
}

/// The times of a stream and of the loops of its nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamTimes {
    /// The time of the whole stream, in nanoseconds.
    pub total: i128,
    /// The loops that have times, in the order of their nodes.
    pub loops: Vec<LoopTimes>,
}

/// The times of the loops of a nest in one of its streams; nothing when the stream
/// has no times.
pub fn loop_times(nest: &Nest, times: &Times) -> Result<Option<StreamTimes>> {
    let Some(mut clock) = Clock::new(times) else { return Ok(None) };
    let mut samples: Vec<Samples> = Vec::new();
    let mut sample_of = vec![usize::MAX; nest.nodes.len()];
    for (at, node) in nest.nodes.iter().enumerate() {
        if matches!(node, Node::Loop { .. }) {
            sample_of[at] = samples.len();
            samples.push(Samples { node: at, ..Samples::default() });
        }
    }

    // Where and when the current iterations of the open loops began, outermost first.
    let mut began: Vec<(u64, Option<i128>)> = Vec::new();
    let position = nest.walk(|visit| {
        match visit {
            Visit::Node { at, position } => {
                if sample_of[at] != usize::MAX {
                    began.push((position, clock.start(position)?));
                }
            }
            Visit::IterationEnd { node, iteration, last, position } => {
                let now = clock.start_or_end(position, last)?;
                if let (Some((began_at, Some(began))), Some(now)) = (began.pop(), now) {
                    samples[sample_of[node]].add(now - began, iteration, began_at);
                }
                if !last {
                    began.push((position, now));
                }
            }
        }
        Ok(())
    })?;
    let total = match (clock.start(0)?, clock.start_or_end(position, true)?) {
        (Some(start), Some(end)) => end - start,
        _ => 0,
    };
    let loops = samples.into_iter().filter_map(Samples::summary).collect();
    Ok(Some(StreamTimes { total, loops }))
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
    /// Every `2^thinning`-th time.
    times: Vec<i64>,
    thinning: u32,
    count: u64,
    total: i128,
    fastest: i64,
    slowest: (i64, u64, u64),
}

/// Times of a loop that are kept at the most.
const MOST_SAMPLES: usize = 1 << 22;

impl Samples {
    fn add(&mut self, time: i128, iteration: u64, position: u64) {
        let time = time.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if self.count == 0 || time > self.slowest.0 {
            self.slowest = (time, iteration, position);
        }
        self.fastest = if self.count == 0 { time } else { self.fastest.min(time) };
        self.total += i128::from(time);
        if self.count.trailing_zeros() >= self.thinning {
            self.times.push(time);
        }
        self.count += 1;
        if self.times.len() == MOST_SAMPLES {
            let mut index = 0;
            self.times.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.thinning += 1;
        }
    }

    fn summary(mut self) -> Option<LoopTimes> {
        let middle = self.times.len().checked_sub(1)? / 2;
        let (_, &mut median, _) = self.times.select_nth_unstable(middle);
        let (maximum, slowest, slowest_at) = self.slowest;
        Some(LoopTimes {
            node: self.node,
            total: self.total,
            iterations: self.count,
            median,
            minimum: self.fastest,
            maximum,
            slowest,
            slowest_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::{Outermost, fold_trace};
    use crate::trace::{Collector, Event, Sink};

    fn times_of(events: &[(&str, Option<i64>, Option<i64>)]) -> StreamTimes {
        let mut collector = Collector::default();
        let stream = collector.stream("s").unwrap();
        for &(name, start, duration) in events {
            collector.push(stream, &Event { start, duration, ..Event::named(name) }).unwrap();
        }
        let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
        let stream = &fold.streams()[0];
        loop_times(&Nest::of(&fold, stream.root(), 1000), stream.times()).unwrap().unwrap()
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
        assert_eq!((only.total, only.iterations), (57, 4));
        assert_eq!((only.minimum, only.median, only.maximum), (7, 10, 30));
        assert_eq!((only.slowest, only.slowest_at), (1, 3));
    }

    #[test]
    fn durations_alone_are_summed() {
        let events: Vec<_> =
            [1, 2, 3, 4].iter().flat_map(|&n| [("a", None, Some(n)), ("b", None, Some(10 * n))]).collect();
        let times = times_of(&events);
        assert_eq!(times.total, 110);
        assert_eq!((times.loops[0].median, times.loops[0].maximum, times.loops[0].slowest), (22, 44, 3));
    }

    #[test]
    fn starts_alone_reach_to_the_next_event() {
        let events: Vec<_> =
            (0..6).map(|n| (if n % 2 == 0 { "a" } else { "b" }, Some(n * n), None)).collect();
        let times = times_of(&events);
        assert_eq!(times.total, 25);
        assert_eq!((times.loops[0].minimum, times.loops[0].maximum), (4, 12));
    }
}
