//! Gathers the times of the iterations of a loop, the last ones of occurrences apart from the
//! others: only at the end it is known whether enough others remain.

use super::phases::{Phase, phases};
use super::{Iteration, LoopTimes, Scope, Slowest};
use crate::bytes::{put_number, put_wide};
use crate::fold::{IterationSpread, Spread};
use crate::questions::wire::{Reader, put_list, put_signed};
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
    /// The first stream of those that others have read, and its phases.
    other_phases: Option<(StreamId, Vec<Phase>)>,
}

/// As bytes for another process, which adds them to its own.
impl Samples {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.others.put(out);
        self.lasts.put(out);
        let streams = self.streams.as_ref().map_or(&[][..], |streams| &streams[..]);
        put_list(out, streams, |out, &(stream, time)| {
            put_number(out, stream.index() as u64);
            put_signed(out, time);
        });
        put_signed(out, self.busy);
        out.push(u8::from(self.lacks_busy));
        put_list(out, self.first_phases(), |out, (stream, phases)| {
            put_number(out, stream.index() as u64);
            put_list(out, phases, |out, phase| {
                put_number(out, phase.first);
                put_number(out, phase.last);
                put_number(out, phase.median.to_bits());
            });
        });
    }

    /// Adds those of other streams.
    pub(super) fn absorb(&mut self, reader: &mut Reader) -> Result<()> {
        self.others.absorb(reader)?;
        self.lasts.absorb(reader)?;
        let streams = reader.list(|reader| Ok((stream(reader)?, reader.signed()?)))?;
        if let [least, most] = streams[..] {
            let known = self.streams.get_or_insert([least, most]);
            // The first one of those that are equal.
            known[0] = known[0].min_by_time(least, false);
            known[1] = known[1].min_by_time(most, true);
        }
        self.busy = self.busy.saturating_add(reader.signed()?);
        self.lacks_busy |= reader.byte()? > 0;
        let phases = reader.list(|reader| {
            let stream = stream(reader)?;
            let phase = |reader: &mut Reader| {
                let (first, last) = (reader.number()?, reader.number()?);
                Ok(Phase { first, last, median: f64::from_bits(reader.number()?) })
            };
            Ok((stream, reader.list(phase)?))
        })?;
        let first = self.other_phases.take().into_iter().chain(phases).min_by_key(|(stream, _)| *stream);
        self.other_phases = first;
        Ok(())
    }
}

fn stream(reader: &mut Reader) -> Result<StreamId> {
    StreamId::new(reader.number()? as usize)
}

/// A stream and its time.
trait StreamTime {
    /// The one with less time, or more; the first of equal ones.
    fn min_by_time(self, other: Self, more: bool) -> Self;
}

impl StreamTime for (StreamId, i128) {
    fn min_by_time(self, other: Self, more: bool) -> Self {
        let order = if more { other.1.cmp(&self.1) } else { self.1.cmp(&other.1) };
        if order.then(self.0.cmp(&other.0)).is_le() { self } else { other }
    }
}

impl Group {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.spread.count);
        if self.spread.count == 0 {
            return;
        }
        let Spread { total, minimum, maximum, squares, .. } = self.spread;
        [total, minimum, maximum].into_iter().for_each(|number| put_signed(out, number));
        put_list(out, squares, put_wide);
        put_list(out, self.slowest.as_ref(), |out, slowest| {
            put_number(out, slowest.stream.index() as u64);
            put_number(out, slowest.iteration);
            put_list(out, &slowest.outer, |out, &outer| put_number(out, outer));
            put_number(out, slowest.position);
        });
        // Their order makes no difference to a median.
        let mut values = self.times.values.clone();
        values.sort_unstable();
        let mut last = 0;
        put_list(out, values, |out, value| {
            put_signed(out, i128::from(value) - i128::from(last));
            last = value;
        });
    }

    fn absorb(&mut self, reader: &mut Reader) -> Result<()> {
        let count = reader.number()?;
        if count == 0 {
            return Ok(());
        }
        let (total, minimum, maximum) = (reader.signed()?, reader.signed()?, reader.signed()?);
        let squares = reader.list(Reader::wide)?.pop();
        let slowest = reader.list(|reader| {
            let (stream, iteration) = (stream(reader)?, reader.number()?);
            Ok(Slowest { stream, iteration, outer: reader.list(Reader::number)?, position: reader.number()? })
        })?;
        let is_slower = |slowest: &Slowest| {
            let known = self.slowest.as_ref().map(|known| known.stream);
            (maximum, Some(std::cmp::Reverse(slowest.stream)))
                > (self.spread.maximum, known.map(std::cmp::Reverse))
        };
        let first = self.spread.count == 0;
        if let Some(slowest) = slowest.into_iter().next().filter(|slowest| first || is_slower(slowest)) {
            self.slowest = Some(slowest);
        }
        self.spread.join(&Spread { count, total, minimum, maximum, squares })?;
        let mut last = 0;
        let values = reader.list(|reader| {
            last = reader.since(last)?;
            Ok(last)
        })?;
        self.times.values.extend(values);
        Ok(())
    }
}

/// Iterations that are compared with each other.
#[derive(Default)]
struct Group {
    spread: Spread,
    times: Even<i64, MOST_TIMES>,
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
    /// How many values are one when there are so many in the end, as a power of two.
    fn thinning_of(count: u64) -> u32 {
        let mut thinning = 0;
        while count.div_ceil(1 << thinning) >= MOST as u64 {
            thinning += 1;
        }
        thinning
    }

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

/// The most times of a loop that are kept.
const MOST_TIMES: usize = 1 << 22;

/// How many iterations are one sample if there are so many, as a power of two.
pub(super) fn thinning_of(count: u64) -> u32 {
    Even::<i64, MOST_TIMES>::thinning_of(count)
}

/// A time as 64 bits.
pub(super) fn narrow(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Samples {
    /// A stream begins before which so many other and last iterations are in other streams, of which others
    /// may have read some; of those, and of what comes, every `2^thinning`-th is kept.
    pub(super) fn begin_stream(&mut self, before: [u64; 2], thinning: [u32; 2]) {
        for ((group, before), thinning) in
            [&mut self.others, &mut self.lasts].into_iter().zip(before).zip(thinning)
        {
            group.times.count = before;
            group.times.thinning = thinning;
        }
    }

    /// How many other and last iterations there were, with those before the stream.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.others.times.count, self.lasts.times.count]
    }

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

    /// The first stream with times of iterations that lie in no other loop, and its phases.
    fn first_phases(&self) -> Option<(StreamId, Vec<Phase>)> {
        match (self.in_order.stream, &self.other_phases) {
            (Some(own), Some((other, phases))) if *other < own => Some((*other, phases.clone())),
            (Some(own), _) => Some((own, self.in_order.phases())),
            (None, other) => other.clone(),
        }
    }

    /// Returns `None` if no time is known.
    pub(super) fn summary(self, node: usize) -> Result<Option<LoopTimes>> {
        let (phases_stream, phases) = self.first_phases().unzip();
        let phases: Vec<Phase> = phases.unwrap_or_default();
        let Self { others, lasts, streams, busy, lacks_busy, .. } = self;
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
            phases_stream: phases_stream.filter(|_| !phases.is_empty()),
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
