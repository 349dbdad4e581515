//! Looks up when events began.
//!
//! A look-up reads one chunk of a column, unless that chunk was read last; so places in order
//! cost a few nanoseconds each.

use super::find::{Found, Place};
use crate::fold::Fold;
use crate::trace::{ColumnReader, Times};
use crate::{Result, StreamId};

/// When the events of a stream began and ended, by position.
pub(super) struct Starts<'a> {
    starts: ColumnReader<'a, i64>,
    /// In a column that is too short the other values are unknown.
    durations: Option<(ColumnReader<'a, i64>, u64)>,
    events: u64,
}

impl<'a> Starts<'a> {
    /// Returns `None` if no starts are known.
    pub(super) fn of(times: &'a Times) -> Option<Self> {
        let starts = times.starts.as_ref()?;
        let durations = times.durations.as_ref();
        Some(Self {
            starts: starts.reader(),
            durations: durations.map(|durations| (durations.reader(), durations.len() as u64)),
            events: starts.len() as u64,
        })
    }

    /// Whether some durations may be known.
    pub(super) fn has_durations(&self) -> bool {
        self.durations.is_some()
    }

    /// How many events there are.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// When an event began. Returns `None` if that is not known, or there is no such event.
    #[inline]
    pub(super) fn start(&mut self, position: u64) -> Result<Option<i64>> {
        if position >= self.events {
            return Ok(None);
        }
        let start = self.starts.get(position as usize)?;
        Ok((start != Times::UNKNOWN_START).then_some(start))
    }

    /// How long an event took, if that is known.
    #[inline]
    pub(super) fn duration(&mut self, position: u64) -> Result<Option<i64>> {
        let Some((durations, _)) = self.durations.as_mut().filter(|(_, known)| position < *known) else {
            return Ok(None);
        };
        let duration = durations.get(position as usize)?;
        Ok((duration >= 0).then_some(duration))
    }

    /// When an event began, ended, and how long it took, if its start is known. One whose duration
    /// is not known ends when the next event of the stream begins, or at once if there is none or
    /// that begins earlier.
    #[inline]
    pub(super) fn event(&mut self, position: u64) -> Result<Option<TimedEvent>> {
        let Some(start) = self.start(position)? else { return Ok(None) };
        let duration = self.duration(position)?;
        let end = match duration {
            Some(duration) => i128::from(start) + i128::from(duration),
            None => self.start(position + 1)?.unwrap_or(start).max(start).into(),
        };
        Ok(Some(TimedEvent { start, end, duration }))
    }
}

/// An event whose start is known.
#[derive(Clone, Copy)]
pub(super) struct TimedEvent {
    pub(super) start: i64,
    pub(super) end: i128,
    pub(super) duration: Option<i64>,
}

/// The time that an event took: its start and its end.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    pub(super) position: u64,
    pub(super) start: i64,
    pub(super) end: i128,
}

impl Starts<'_> {
    /// Whether no event begins before one that comes before it in the stream.
    pub(super) fn is_sorted(&mut self) -> Result<bool> {
        let mut last = i64::MIN;
        for position in 0..self.events {
            if let Some(start) = self.start(position)? {
                if start < last {
                    return Ok(false);
                }
                last = start;
            }
        }
        Ok(true)
    }

    /// Calls `visit` with every event whose start and duration are known, in the order of the
    /// stream.
    pub(super) fn each_interval(&mut self, mut visit: impl FnMut(Interval)) -> Result<()> {
        for position in 0..self.events {
            if let (Some(start), Some(duration)) = (self.start(position)?, self.duration(position)?) {
                visit(Interval { position, start, end: i128::from(start) + i128::from(duration) });
            }
        }
        Ok(())
    }

    /// All intervals in the order of their starts, and of the stream where these are equal: for
    /// clocks that go back.
    pub(super) fn sorted_intervals(&mut self) -> Result<Vec<Interval>> {
        let mut intervals = Vec::new();
        self.each_interval(|interval| intervals.push(interval))?;
        // Stable, so that the order of the stream remains.
        intervals.sort_by_key(|interval| interval.start);
        Ok(intervals)
    }
}

/// Looks up when events of a fold began, in nanoseconds as the source has them.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::clock::EventClock;
/// use loopfold::trace::{Collector, Event, Sink, Timing};
///
/// let mut collector = Collector::default();
/// let (main, other) = (collector.stream("main")?, collector.stream("other")?);
/// let (a, b) = (collector.intern(&Event::named("a"))?, collector.intern(&Event::named("b"))?);
/// let at = |start| Timing { start: Some(start), ..Timing::UNKNOWN };
/// collector.push(main, a, at(100))?;
/// collector.push(main, b, at(130))?;
/// collector.push(other, a, at(90))?;
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let mut clock = EventClock::new(&fold);
/// assert_eq!(clock.start(main, 1)?, Some(130));
/// assert_eq!(clock.since_first(main, 1)?, Some(40));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct EventClock<'a> {
    fold: &'a Fold,
    /// The stream that was requested last: places mostly come in order.
    reader: Option<(StreamId, ColumnReader<'a, i64>)>,
    /// When the first event of the trace began, once that was requested.
    origin: Option<Option<i64>>,
}

opaque_debug!(EventClock<'a>);

impl<'a> EventClock<'a> {
    /// The clock of a fold.
    pub fn new(fold: &'a Fold) -> Self {
        Self { fold, reader: None, origin: None }
    }

    /// When an event of a stream began. Returns `None` if that is not known, or there is no such
    /// event.
    pub fn start(&mut self, stream: StreamId, position: u64) -> Result<Option<i64>> {
        let Some(starts) = &self.fold.stream(stream).times().starts else { return Ok(None) };
        if position >= starts.len() as u64 {
            return Ok(None);
        }
        if self.reader.as_ref().is_none_or(|(known, _)| *known != stream) {
            self.reader = Some((stream, starts.reader()));
        }
        let Some((_, reader)) = &mut self.reader else { return Ok(None) };
        let start = reader.get(position as usize)?;
        Ok((start != Times::UNKNOWN_START).then_some(start))
    }

    /// How long after the first of the streams' first events an event began.
    pub fn since_first(&mut self, stream: StreamId, position: u64) -> Result<Option<i128>> {
        let Some(start) = self.start(stream, position)? else { return Ok(None) };
        Ok(self.origin()?.map(|origin| i128::from(start) - i128::from(origin)))
    }

    /// When the first event of the trace began: the least start of the streams' first events.
    pub fn origin(&mut self) -> Result<Option<i64>> {
        if let Some(origin) = self.origin {
            return Ok(origin);
        }
        let mut origin = None;
        for stream in self.fold.stream_ids() {
            // Of a part of a stream the time counts from the beginning of the whole trace.
            let start = match self.fold.stream(stream).clock_zero() {
                Some(zero) => Some(zero),
                None => self.start(stream, 0)?,
            };
            origin = [origin, start].into_iter().flatten().min();
        }
        self.origin = Some(origin);
        Ok(origin)
    }

    /// The earliest of the first occurrences in these streams. Returns `None` if the start of
    /// one of them is unknown.
    pub fn earliest(&mut self, found: &Found<'_>, streams: &[StreamId]) -> Result<Option<Place>> {
        let mut earliest: Option<(i64, Place)> = None;
        for &stream in streams {
            let Some(first) = found.places_in(stream).next() else { continue };
            let Some(start) = self.start(stream, first.start)? else { return Ok(None) };
            if earliest.is_none_or(|(least, _)| start < least) {
                earliest = Some((start, first));
            }
        }
        Ok(earliest.map(|(_, first)| first))
    }
}
