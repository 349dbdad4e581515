//! Sizes and counts of a fold, and the costs of its events.

use crate::keys::distinct;
use crate::{JsonWriter, Labels, nanoseconds, rounded};
use loopfold::fold::{DurationSum, MetricSum};
use loopfold::questions::statistics::{CallStatistics, Statistics};
use loopfold::{Fold, StreamId, Symbol};
use std::io::{Result, Write};

/// The statistics of a fold, without the costs of its events.
#[derive(Debug)]
pub struct Stats<'a> {
    /// The fold.
    pub fold: &'a Fold,
    /// Its sizes and counts.
    pub statistics: &'a Statistics,
    /// Its calls.
    pub calls: &'a CallStatistics,
    /// The folders that made it.
    pub folder: &'a str,
    /// The trace, the archive and the execution.
    pub sizes: Sizes,
}

/// Sizes in bytes, how they compare, and the time of the execution.
#[derive(Debug)]
pub struct Sizes {
    /// The archive.
    pub archive: u64,
    /// How many of these are the index of functions.
    pub index: u64,
    /// How many of these are chunks of the events.
    pub chunks: u64,
    /// The traces, where that is known.
    pub trace: Option<u64>,
    /// How long the execution took, in nanoseconds.
    pub time: Option<u64>,
    /// Bytes of the traces for each second of it.
    pub trace_per_second: Option<f64>,
    /// Bytes of the archive for each second of it.
    pub archive_per_second: Option<f64>,
    /// How many times larger the traces are than the archive.
    pub ratio: Option<f64>,
    /// Rules for each distinct event.
    pub rules_per_event: Option<f64>,
}

/// The times of all events that count as the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventTimes {
    /// Their durations.
    pub durations: DurationSum,
    /// Their self times, where they are known.
    pub own: Option<DurationSum>,
}

/// The times of events.
#[derive(Debug)]
pub struct Durations {
    /// Each event, and all durations together.
    pub table: CostTable<EventTimes, i128>,
    /// The time in which some event was open, in nanoseconds.
    pub busy: Option<i128>,
    /// Whether events nest, so that durations count some time twice.
    pub nested: bool,
}

/// The cost of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventCost<S> {
    /// The event.
    pub symbol: Symbol,
    /// The sum over all its occurrences.
    pub sum: S,
    /// Its share in all events, if there is one.
    pub share: Option<f64>,
}

/// The events whose cost is known, in the order in which they are written.
#[derive(Debug)]
pub struct CostTable<S, T> {
    /// How many values are known.
    pub known: u64,
    /// Their sum.
    pub total: T,
    /// The events.
    pub events: Vec<EventCost<S>>,
}

/// Writes statistics, with the durations of events and their metrics by name.
pub fn stats<'a, W: Write>(
    out: &mut JsonWriter<W>,
    stats: &Stats<'_>,
    durations: Option<Durations>,
    metrics: impl IntoIterator<Item = (&'a str, CostTable<MetricSum, f64>)>,
) -> Result<()> {
    let &Stats { fold, statistics, calls, folder, ref sizes } = stats;
    let mut labels = Labels::new(fold.alphabet());
    let two_decimals = |number: Option<f64>| number.map(|number| rounded(number, 2));
    out.begin_object()?;
    out.field("streams", fold.streams().len())?;
    out.field("events", statistics.events)?;
    out.field("alphabet", statistics.alphabet)?;
    out.field("rules", statistics.rules)?;
    out.field("items", statistics.items)?;
    out.field("depth", statistics.depth)?;
    out.field("functions", calls.functions)?;
    out.field("nesting", calls.deepest)?;
    out.field("folder", folder)?;
    out.field("bytes", sizes.archive)?;
    out.field("index_bytes", sizes.index)?;
    out.field("chunk_bytes", sizes.chunks)?;
    out.field("time_ns", sizes.time)?;
    out.field("trace_bytes", sizes.trace)?;
    out.field("trace_bytes_per_second", two_decimals(sizes.trace_per_second))?;
    out.field("bytes_per_second", two_decimals(sizes.archive_per_second))?;
    out.field("ratio", two_decimals(sizes.ratio))?;
    out.field("rules_per_event", two_decimals(sizes.rules_per_event))?;
    streams(out, fold, statistics)?;
    counts(out, &mut labels, statistics)?;
    out.key("durations")?;
    match durations {
        None => out.value(None::<u64>)?,
        Some(Durations { table, busy, nested }) => {
            out.begin_object()?;
            costs(out, &mut labels, &table)?;
            out.field("total_ns", nanoseconds(table.total))?;
            out.field("busy_ns", busy.map(nanoseconds))?;
            out.field("nested", nested)?;
            out.end()?;
        }
    }
    out.key("metrics")?;
    out.begin_array()?;
    for (name, table) in metrics {
        out.begin_object()?;
        out.field("metric", name)?;
        out.field("total", table.total)?;
        costs(out, &mut labels, &table)?;
        out.end()?;
    }
    out.end()?;
    labels.cut_field(out)?;
    out.end()
}

fn streams<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, statistics: &Statistics) -> Result<()> {
    out.key("stream_list")?;
    out.begin_array()?;
    for (stream, its) in fold.streams().iter().zip(&statistics.streams) {
        out.begin_object()?;
        out.field("stream", stream.name())?;
        out.field("events", its.events)?;
        out.field("span_ns", its.span)?;
        out.field("folder", stream.folder())?;
        out.key("notes")?;
        out.begin_object()?;
        for index in distinct(stream.notes().iter().map(|(key, _)| key.as_str())) {
            let (key, value) = &stream.notes()[index];
            out.field(key, value)?;
        }
        out.end()?;
        out.end()?;
    }
    out.end()
}

fn counts<W: Write>(out: &mut JsonWriter<W>, labels: &mut Labels<'_>, statistics: &Statistics) -> Result<()> {
    out.key("counts")?;
    let Some(counts) = &statistics.counts else { return out.value(None::<u64>) };
    out.begin_array()?;
    for &(symbol, count) in counts {
        out.begin_object()?;
        out.key("event")?;
        labels.event(out, symbol)?;
        out.field("count", count)?;
        out.end()?;
    }
    out.end()
}

/// The sum of the costs of an event.
trait CostSum {
    /// How many values are known.
    fn known(&self) -> u64;

    /// Writes their sum and their mean.
    fn fields<W: Write>(&self, out: &mut JsonWriter<W>) -> Result<()>;
}

impl CostSum for EventTimes {
    fn known(&self) -> u64 {
        self.durations.known
    }

    fn fields<W: Write>(&self, out: &mut JsonWriter<W>) -> Result<()> {
        out.field("total_ns", nanoseconds(self.durations.total))?;
        out.field("mean_ns", self.durations.mean())?;
        out.field("self_ns", self.own.map(|own| nanoseconds(own.total)))
    }
}

impl CostSum for MetricSum {
    fn known(&self) -> u64 {
        self.known
    }

    fn fields<W: Write>(&self, out: &mut JsonWriter<W>) -> Result<()> {
        out.field("total", self.total)?;
        out.field("mean", self.mean())
    }
}

/// The fields that tables of durations and of metrics share.
fn costs<W: Write, S: CostSum, T>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    table: &CostTable<S, T>,
) -> Result<()> {
    out.field("known", table.known)?;
    out.key("events")?;
    out.begin_array()?;
    for EventCost { symbol, sum, share } in &table.events {
        out.begin_object()?;
        out.key("event")?;
        labels.event(out, *symbol)?;
        out.field("known", sum.known())?;
        out.field("share", *share)?;
        sum.fields(out)?;
        out.end()?;
    }
    out.end()
}

/// The streams of a fold that are listed, each by its number among all.
pub fn stream_list<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    listed: impl IntoIterator<Item = StreamId>,
) -> Result<()> {
    out.begin_object()?;
    out.field("streams", fold.streams().len())?;
    out.key("stream_list")?;
    out.begin_array()?;
    for number in listed {
        let stream = fold.stream(number);
        out.begin_object()?;
        out.field("number", number.index())?;
        out.field("stream", stream.name())?;
        out.field("title", stream.title())?;
        out.field("events", fold.length(stream.root()))?;
        out.field("format", stream.note("format"))?;
        out.end()?;
    }
    out.end()?;
    out.end()
}
