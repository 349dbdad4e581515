//! The stream of a thread while it is recorded.
//!
//! Every event goes to two grammars: one of the whole stream, from which the archive is made at
//! the end, and one of the present segment, which begins anew when the segment is written. So a
//! segment can be read alone, and the archive has the loops of the whole, not of its segments.
//! Times are kept for the present segment only; paths have none.
//!
//! Memory is O(distinct content) and a segment of times: 16 to 24 bytes an event before they are
//! compressed, in chunks of 32,768.

use crate::events::{Between, Timed};
use crate::{Error, Result};
use loopfold::Symbol;
use loopfold::folders::{Folder as _, Online, SequiturRuns};
use loopfold::trace::{Column, OFF_CPU, RECORDING, Times};

/// A stream.
pub(crate) struct Stream {
    pub(crate) whole: Box<dyn Online>,
    segment: Box<dyn Online>,
    with_times: bool,
    columns: Columns,
    /// How many paths came since the last call: the columns do not have them yet.
    untimed: u64,
    symbols: Vec<Symbol>,
    unwritten: Unwritten,
    /// How many calls it has.
    calls: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("events", &self.whole.events()).finish_non_exhaustive()
    }
}

/// How many events are in no segment yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwritten {
    pub(crate) calls: u64,
    pub(crate) paths: u64,
}

impl std::ops::Add for Unwritten {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { calls: self.calls + other.calls, paths: self.paths + other.paths }
    }
}

fn grammar() -> Result<Box<dyn Online>> {
    SequiturRuns.online().ok_or_else(|| Error::new("no online folder"))
}

/// A metric that few events have: empty as long as none has it.
#[derive(Clone, Debug)]
struct Metric {
    name: &'static str,
    column: Column<f64>,
    /// What the others have.
    usual: f64,
}

impl Metric {
    fn new(name: &'static str, usual: f64) -> Self {
        Self { name, column: Column::default(), usual }
    }

    /// Appends the value of an event behind so many.
    fn push(&mut self, value: Option<u64>, events: u64) -> Result<()> {
        if value.is_some() && self.column.is_empty() {
            self.column.append_repeated(self.usual, events)?;
        }
        if value.is_some() || !self.column.is_empty() {
            self.column.push(value.map_or(self.usual, |value| value as f64));
        }
        Ok(())
    }

    fn fill(&mut self, count: u64) -> Result<()> {
        if !self.column.is_empty() {
            self.column.append_repeated(self.usual, count)?;
        }
        Ok(())
    }
}

/// What is measured of the events of a segment.
#[derive(Clone, Debug)]
struct Columns {
    starts: Column<i64>,
    durations: Column<i64>,
    off_cpu: Metric,
    recording: Metric,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            starts: Column::default(),
            durations: Column::default(),
            off_cpu: Metric::new(OFF_CPU, 0.0),
            recording: Metric::new(RECORDING, f64::NAN),
        }
    }
}

impl Columns {
    fn push(&mut self, event: &Timed) -> Result<()> {
        let events = self.starts.len() as u64;
        let Between { off_cpu, recording } = event.between;
        self.off_cpu.push((off_cpu > 0).then_some(off_cpu), events)?;
        self.recording.push(recording, events)?;
        self.starts.push(event.start);
        self.durations.push(event.duration.max(Times::UNKNOWN_DURATION));
        Ok(())
    }

    /// Appends events whose times are not known.
    fn fill(&mut self, count: u64) -> Result<()> {
        self.starts.append_repeated(Times::UNKNOWN_START, count)?;
        self.durations.append_repeated(Times::UNKNOWN_DURATION, count)?;
        self.off_cpu.fill(count)?;
        self.recording.fill(count)
    }

    fn times(self) -> Times {
        let filled = |column: Column<i64>| (!column.is_empty()).then_some(column);
        let metrics = [self.off_cpu, self.recording].into_iter().filter(|metric| !metric.column.is_empty());
        let metrics = metrics.map(|metric| (metric.name.to_string(), metric.column)).collect();
        Times { starts: filled(self.starts), durations: filled(self.durations), metrics }
    }
}

impl Stream {
    pub(crate) fn new(with_times: bool) -> Result<Self> {
        Ok(Self {
            whole: grammar()?,
            segment: grammar()?,
            with_times,
            columns: Columns::default(),
            untimed: 0,
            symbols: Vec::new(),
            unwritten: Unwritten::default(),
            calls: 0,
        })
    }

    /// Appends calls.
    pub(crate) fn calls(&mut self, events: &[Timed]) -> Result<()> {
        self.symbols.clear();
        self.symbols.extend(events.iter().map(|event| event.symbol));
        self.whole.extend(&self.symbols)?;
        self.segment.extend(&self.symbols)?;
        if self.with_times {
            let untimed = std::mem::take(&mut self.untimed);
            self.columns.fill(untimed)?;
            events.iter().try_for_each(|event| self.columns.push(event))?;
        }
        self.unwritten.calls += events.len() as u64;
        self.calls += events.len() as u64;
        Ok(())
    }

    /// Appends paths, entries and exits.
    pub(crate) fn paths(&mut self, symbols: &[Symbol]) -> Result<()> {
        self.whole.extend(symbols)?;
        self.segment.extend(symbols)?;
        self.untimed += symbols.len() as u64;
        self.unwritten.paths += symbols.len() as u64;
        Ok(())
    }

    /// What is in no segment yet, with its times.
    pub(crate) fn segment(&self) -> Result<(&dyn Online, Times)> {
        let mut columns = self.columns.clone();
        if self.with_times {
            columns.fill(self.untimed)?;
        }
        Ok((&*self.segment, columns.times()))
    }

    /// How many calls it has, written or not.
    pub(crate) fn count(&self) -> u64 {
        self.calls
    }

    pub(crate) fn unwritten(&self) -> Unwritten {
        self.unwritten
    }

    /// The segment is written.
    pub(crate) fn begin_segment(&mut self) -> Result<()> {
        self.segment = grammar()?;
        self.columns = Columns::default();
        self.untimed = 0;
        self.unwritten = Unwritten::default();
        Ok(())
    }
}
