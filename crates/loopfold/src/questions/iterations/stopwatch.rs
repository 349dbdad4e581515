//! Times the iterations of loops in loops while a stream is walked.
//!
//! The latest end of the events of an iteration is a running maximum of the innermost open loop,
//! which the loop around it takes over when the iteration ends. So each event is read once, however
//! deep it lies.

use crate::Result;
use crate::questions::clock::Starts;
use crate::trace::{ColumnReader, Times};

/// Times the iterations of loops in loops.
pub(in crate::questions) struct Stopwatch<'a> {
    clock: Clock<'a>,
    /// The stream, then the current iterations of the open loops, outermost first.
    open: Vec<Open>,
    /// How far the events are read.
    read: u64,
    earliest: Option<i64>,
}

/// What is known of an iteration that has not ended.
#[derive(Clone, Copy, Default)]
struct Open {
    began_at: u64,
    start: Option<i128>,
    /// The latest end of the events so far.
    latest: Option<i128>,
}

/// An iteration that has ended.
pub(in crate::questions) struct Lap {
    /// When it began.
    pub(in crate::questions) start: Option<i128>,
    /// How long it took.
    pub(in crate::questions) time: Option<i128>,
    /// Whether the time can be compared with that of others.
    pub(in crate::questions) is_full: bool,
    /// The position of its first event.
    pub(in crate::questions) began_at: u64,
}

impl<'a> Stopwatch<'a> {
    /// Returns `None` when there are no times.
    pub(in crate::questions) fn new(times: &'a Times) -> Option<Self> {
        Some(Self { clock: Clock::new(times)?, open: vec![Open::default()], read: 0, earliest: None })
    }

    /// The first iteration of a loop begins. Positions must not decrease from call to call.
    pub(in crate::questions) fn begin(&mut self, position: u64) -> Result<()> {
        self.read_to(position)?;
        let start = self.clock.start(position)?;
        self.open.push(Open { began_at: position, start, latest: None });
        Ok(())
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
            self.open.push(Open { began_at: position, start: end, latest: None });
        }
        let time = ended.start.zip(end).map(|(start, end)| end - start);
        Ok(Lap { start: ended.start, time, is_full: !ends_by_itself, began_at: ended.began_at })
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
            if let Some(start) = starts.start(position)? {
                self.earliest = Some(self.earliest.map_or(start, |earliest| earliest.min(start)));
                innermost.latest = innermost.latest.max(starts.end(position)?);
            }
        }
        self.read = self.read.max(position);
        Ok(())
    }
}

/// When things happen in a stream, by position.
enum Clock<'a> {
    Starts(Starts<'a>),
    Durations { durations: ColumnReader<'a, i64>, events: u64 },
}

impl<'a> Clock<'a> {
    fn new(times: &'a Times) -> Option<Self> {
        if let Some(starts) = Starts::of(times) {
            return Some(Clock::Starts(starts));
        }
        let durations = times.durations.as_ref()?;
        Some(Clock::Durations { durations: durations.reader(), events: durations.len() as u64 })
    }

    fn has_starts(&self) -> bool {
        matches!(self, Clock::Starts(_))
    }

    /// When the event at a position began; with durations only, the time before it.
    fn start(&mut self, position: u64) -> Result<Option<i128>> {
        match self {
            Clock::Starts(starts) => Ok(starts.start(position)?.map(i128::from)),
            Clock::Durations { durations, events } => {
                Ok(Some(durations.sum_before(position.min(*events) as usize)?.whole))
            }
        }
    }
}
