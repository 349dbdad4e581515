//! Times the iterations of loops in loops while a stream is walked.
//!
//! The latest end of the events of an iteration is a running maximum of the innermost open loop,
//! which the loop around it takes over when the iteration ends. So each event is read once, however
//! deep it lies.

use super::busy::BusyTime;
use crate::Result;
use crate::questions::clock::{Starts, TimedEvent};
use crate::trace::{ColumnReader, Times};

/// Times the iterations of loops in loops.
pub(in crate::questions) struct Stopwatch<'a> {
    clock: Clock<'a>,
    /// The stream, then the current iterations of the open loops, outermost first.
    open: Vec<Open>,
    /// How far the events are read.
    read: u64,
    earliest: Option<i64>,
    /// Where events have durations.
    busy: Option<BusyTime>,
}

/// What is known of an iteration that has not ended.
#[derive(Clone, Copy, Default)]
struct Open {
    start: Option<i128>,
    /// The busy time of the stream before the start.
    busy_before: i128,
    /// The latest end of the events so far.
    latest: Option<i128>,
}

/// An iteration that has ended.
#[derive(Default)]
pub(in crate::questions) struct Lap {
    /// When it began.
    pub(in crate::questions) start: Option<i128>,
    /// How long it took.
    pub(in crate::questions) time: Option<i128>,
    /// For how much of that some event of the stream was open.
    pub(in crate::questions) busy: Option<i128>,
    /// Whether the time can be compared with that of others.
    pub(in crate::questions) is_full: bool,
}

impl<'a> Stopwatch<'a> {
    /// Returns `None` when there are no times.
    pub(in crate::questions) fn new(times: &'a Times) -> Option<Self> {
        let clock = Clock::new(times)?;
        Some(Self { clock, open: vec![Open::default()], read: 0, earliest: None, busy: None })
    }

    /// Also finds out how long events were open in an iteration.
    pub(super) fn with_busy_time(mut self) -> Result<Self> {
        if let Clock::Starts(starts) = &mut self.clock {
            self.busy = BusyTime::of(starts)?;
        }
        Ok(self)
    }

    /// The first iteration of a loop begins. Positions must not decrease from call to call.
    pub(in crate::questions) fn begin(&mut self, position: u64) -> Result<()> {
        self.read_to(position)?;
        let start = self.clock.start(position)?;
        self.open_iteration(start);
        Ok(())
    }

    fn open_iteration(&mut self, start: Option<i128>) {
        let busy_before = self.busy_before(start).unwrap_or(0);
        self.open.push(Open { start, busy_before, latest: None });
    }

    fn busy_before(&self, time: Option<i128>) -> Option<i128> {
        Some(self.busy.as_ref()?.before(time?))
    }

    /// An iteration of the innermost open loop ends, and unless it was its last one
    /// another begins.
    pub(in crate::questions) fn lap(&mut self, position: u64, is_last: bool) -> Result<Lap> {
        self.read_to(position)?;
        let ended = self.open.pop().unwrap_or_default();
        if let Some(outer) = self.open.last_mut() {
            outer.latest = outer.latest.max(ended.latest);
        }
        let ends_by_itself = is_last && self.clock.has_starts();
        let end = if ends_by_itself { ended.latest } else { self.clock.start(position)? };
        if !is_last {
            self.open_iteration(end);
        }
        let time = ended.start.zip(end).map(|(start, end)| end - start);
        // Where a clock goes back, an iteration may end before it begins.
        let busy =
            self.busy_before(end).filter(|_| time.is_some()).map(|busy| (busy - ended.busy_before).max(0));
        Ok(Lap { start: ended.start, time, busy, is_full: !ends_by_itself })
    }

    /// From the earliest start to the latest end of the stream; 0 if no start is known.
    pub(super) fn total(&mut self, end: u64) -> Result<i128> {
        self.read_to(end)?;
        if !self.clock.has_starts() {
            return Ok(self.clock.start(end)?.unwrap_or(0));
        }
        let latest = self.open.first().and_then(|stream| stream.latest);
        Ok(latest.zip(self.earliest).map_or(0, |(latest, earliest)| latest - i128::from(earliest)))
    }

    /// Reads the events before a position: all of them belong to the innermost open loop.
    fn read_to(&mut self, position: u64) -> Result<()> {
        let (Clock::Starts(starts), Some(innermost)) = (&mut self.clock, self.open.last_mut()) else {
            return Ok(());
        };
        for position in self.read..position.min(starts.events()) {
            let Some(TimedEvent { start, end, duration }) = starts.event(position)? else { continue };
            self.earliest = Some(self.earliest.map_or(start, |earliest| earliest.min(start)));
            innermost.latest = innermost.latest.max(Some(end));
            if let (Some(busy), Some(_)) = (&mut self.busy, duration) {
                busy.read(start.into(), end);
            }
        }
        self.read = self.read.max(position);
        Ok(())
    }
}

/// When things happen in a stream, by position.
pub(super) enum Clock<'a> {
    Starts(Starts<'a>),
    Durations { durations: ColumnReader<'a, i64>, events: u64 },
}

impl<'a> Clock<'a> {
    pub(super) fn new(times: &'a Times) -> Option<Self> {
        if let Some(starts) = Starts::of(times) {
            return Some(Clock::Starts(starts));
        }
        let durations = times.durations.as_ref()?;
        Some(Clock::Durations { durations: durations.reader(), events: durations.len() as u64 })
    }

    pub(super) fn has_starts(&self) -> bool {
        matches!(self, Clock::Starts(_))
    }

    /// When the event at a position began; with durations only, the time before it.
    pub(super) fn start(&mut self, position: u64) -> Result<Option<i128>> {
        match self {
            Clock::Starts(starts) => Ok(starts.start(position)?.map(i128::from)),
            Clock::Durations { durations, events } => {
                Ok(Some(durations.sum_before(position.min(*events) as usize)?.whole))
            }
        }
    }
}
