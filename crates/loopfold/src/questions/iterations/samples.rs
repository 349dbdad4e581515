//! Gathers the times of the iterations of a loop, the last ones of occurrences apart from the
//! others: only at the end it is known whether enough others remain.

use super::phases::{Phase, phases};
use super::{Iteration, LoopTimes, Scope, Slowest};
use crate::fold::{IterationSpread, Spread};
use crate::{Result, StreamId};

/// The iterations of a loop in all streams.
#[derive(Default)]
pub(super) struct Samples {
    others: Group,
    lasts: Group,
    /// The stream that is read, and the time of its iterations so far.
    stream: Option<(StreamId, i128)>,
    /// The streams with the least and the most time of those that were read.
    streams: Option<[(StreamId, i128); 2]>,
    busy: i128,
    /// Whether the busy time of some iteration is not known.
    lacks_busy: bool,
    /// Of the first stream.
    in_order: InOrder,
}

/// Iterations that are compared with each other.
#[derive(Default)]
struct Group {
    spread: Spread,
    times: Even<i64, { 1 << 22 }>,
    slowest: Option<Slowest>,
}

/// An even sample of values, fewer than `MOST`: every `2^thinning`-th.
#[derive(Default)]
struct Even<T, const MOST: usize> {
    values: Vec<T>,
    /// How many were added.
    count: u64,
    thinning: u32,
}

impl<T, const MOST: usize> Even<T, MOST> {
    fn add(&mut self, value: T) {
        if self.count.trailing_zeros() >= self.thinning {
            self.values.push(value);
        }
        self.count += 1;
        if self.values.len() == MOST {
            let mut index = 0;
            self.values.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.thinning += 1;
        }
    }
}

/// A time as 64 bits.
pub(super) fn narrow(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Samples {
    pub(super) fn add(&mut self, stream: StreamId, iteration: &Iteration<'_>) -> Result<()> {
        let Some(time) = iteration.time else { return Ok(()) };
        let (_, total) = self.stream.get_or_insert((stream, 0));
        *total = total.saturating_add(time);
        self.busy = self.busy.saturating_add(iteration.busy.unwrap_or(0));
        self.lacks_busy |= iteration.busy.is_none();
        self.in_order.add(stream, iteration, time);
        let slowest = || Slowest {
            stream,
            iteration: iteration.iteration,
            outer: iteration.outer.to_vec(),
            position: iteration.events.start,
        };
        if iteration.is_full { &mut self.others } else { &mut self.lasts }.add(time, slowest)
    }

    /// All iterations of a stream were added.
    pub(super) fn end_stream(&mut self) {
        let Some(stream) = self.stream.take() else { return };
        let [least, most] = self.streams.get_or_insert([stream; 2]);
        if stream.1 < least.1 {
            *least = stream;
        }
        if stream.1 > most.1 {
            *most = stream;
        }
    }

    /// Returns `None` if no time is known.
    pub(super) fn summary(self, node: usize) -> Result<Option<LoopTimes>> {
        let Self { others, lasts, streams, busy, lacks_busy, in_order, .. } = self;
        let phases = in_order.phases();
        let times = IterationSpread { others: others.spread, lasts: lasts.spread }.summary()?;
        let mut compared =
            if others.spread.count >= IterationSpread::ENOUGH { others } else { others.with(lasts) };
        let slowest = compared.slowest.take();
        Ok(compared.median().map(|median| LoopTimes {
            node,
            times,
            median: Some(median),
            slowest,
            streams,
            busy: (!lacks_busy).then_some(busy),
            phases_stream: in_order.stream.filter(|_| !phases.is_empty()),
            phases,
            scope: Scope::Own,
        }))
    }
}

impl Group {
    fn add(&mut self, time: i128, iteration: impl FnOnce() -> Slowest) -> Result<()> {
        if self.spread.count == 0 || time > self.spread.maximum {
            self.slowest = Some(iteration());
        }
        self.times.add(narrow(time));
        self.spread.add(time)
    }

    /// The iterations of both.
    fn with(mut self, mut other: Self) -> Self {
        let is_slower = other.spread.count > 0 && other.spread.maximum > self.spread.maximum;
        if self.spread.count == 0 || is_slower {
            self.slowest = other.slowest;
        }
        self.times.values.append(&mut other.times.values);
        self
    }

    fn median(mut self) -> Option<f64> {
        median_of(&mut self.times.values)
    }
}

/// The median of some times, the mean of the middle two of an even number.
pub(super) fn median_of(times: &mut [i64]) -> Option<f64> {
    let count = times.len();
    if count == 0 {
        return None;
    }
    let (below, &mut middle, _) = times.select_nth_unstable(count / 2);
    let lower = below.iter().copied().max().filter(|_| count.is_multiple_of(2)).unwrap_or(middle);
    Some((i128::from(lower) + i128::from(middle)) as f64 / 2.0)
}

/// The iterations of a loop in one stream, in order: what its phases are made of.
#[derive(Default)]
struct InOrder {
    stream: Option<StreamId>,
    /// The numbers and times of those that can be compared.
    compared: Even<(u64, i64), { 1 << 18 }>,
    /// The number of the last one.
    last: u64,
}

impl InOrder {
    fn add(&mut self, stream: StreamId, iteration: &Iteration<'_>, time: i128) {
        if !iteration.outer.is_empty() || *self.stream.get_or_insert(stream) != stream {
            return;
        }
        self.last = iteration.iteration + iteration.iterations.max(1) - 1;
        if iteration.is_full {
            self.compared.add((iteration.iteration, narrow(time)));
        }
    }

    fn phases(&self) -> Vec<Phase> {
        phases(&self.compared.values, self.last)
    }
}
