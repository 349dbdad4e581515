//! The stream of a thread while it is recorded.
//!
//! Every event goes to two grammars: one of the whole stream, from which the archive is made at
//! the end, and one of the present segment, which begins anew when the segment is written. So a
//! segment can be read alone, and the archive has the loops of the whole, not of its segments.
//! Times are kept for the present segment only; paths have none.
//!
//! Memory is O(distinct content) and a segment of times: 16 to 24 bytes an event before they are
//! compressed, in chunks of 32,768.

use crate::events::Timed;
use crate::{Error, Result};
use loopfold::Symbol;
use loopfold::folders::{Folder as _, Online, SequiturRuns};
use loopfold::trace::{Column, OFF_CPU, Times};

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

/// What is measured of the events of a segment.
#[derive(Clone, Debug, Default)]
struct Columns {
    starts: Column<i64>,
    durations: Column<i64>,
    /// Empty as long as it would have only zeros.
    off_cpu: Column<f64>,
}

impl Columns {
    fn push(&mut self, event: &Timed) -> Result<()> {
        if event.off_cpu > 0 && self.off_cpu.is_empty() {
            self.off_cpu.append_repeated(0.0, self.starts.len() as u64)?;
        }
        if event.off_cpu > 0 || !self.off_cpu.is_empty() {
            self.off_cpu.push(event.off_cpu as f64);
        }
        self.starts.push(event.start);
        self.durations.push(event.duration.max(Times::UNKNOWN_DURATION));
        Ok(())
    }

    /// Appends events whose times are not known.
    fn fill(&mut self, count: u64) -> Result<()> {
        self.starts.append_repeated(Times::UNKNOWN_START, count)?;
        self.durations.append_repeated(Times::UNKNOWN_DURATION, count)?;
        if !self.off_cpu.is_empty() {
            self.off_cpu.append_repeated(0.0, count)?;
        }
        Ok(())
    }

    fn times(self) -> Times {
        let filled = |column: Column<i64>| (!column.is_empty()).then_some(column);
        let has_metric = !self.off_cpu.is_empty();
        let metrics = if has_metric { vec![(OFF_CPU.to_string(), self.off_cpu)] } else { Vec::new() };
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
