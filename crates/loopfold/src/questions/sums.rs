//! Sums the durations and metrics of each symbol over the whole trace.
//!
//! Cost: one pass over the columns of times, a chunk at a time, and over the unfolded events; a
//! few nanoseconds a value, and memory for a chunk and the alphabet.

use super::clock::{Starts, TimedEvent};
use super::self_time::SelfTimes;
use crate::fold::reach::UsesBelow;
use crate::fold::{Additive, DurationSum, Fold, FoldedStream, MetricSum, StreamSums};
use crate::trace::{CHUNK, Column, Times};
use crate::{Error, Result, Symbol};

/// The sums of every event over all streams. Lists are indexed by symbol.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventSums {
    /// Durations. `None` when no stream knows any.
    pub durations: Option<Vec<DurationSum>>,
    /// Each metric, by its name, in the order in which streams have them.
    pub metrics: Vec<(String, Vec<MetricSum>)>,
}

impl EventSums {
    /// The sums of a metric.
    pub fn metric(&self, name: &str) -> Option<&[MetricSum]> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, sums)| &sums[..])
    }

    fn add(&mut self, symbols: usize, stream: &StreamSums) -> Result<()> {
        if let Some(sums) = &stream.durations {
            let all = self.durations.get_or_insert_with(|| vec![DurationSum::default(); symbols]);
            for (symbol, sum) in sums {
                all[symbol.index()].add(sum)?;
            }
        }
        for (name, sums) in &stream.metrics {
            check_tables(self.metrics.len() + 1, symbols)?;
            let place = self.metrics.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                self.metrics.push((name.clone(), vec![MetricSum::default(); symbols]));
                self.metrics.len() - 1
            });
            let (_, all) = &mut self.metrics[place];
            for (symbol, sum) in sums {
                all[symbol.index()].add(sum)?;
            }
        }
        Ok(())
    }
}

impl Fold {
    /// For every event, over all streams: how many durations and values of metrics are
    /// known, and their sums.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::trace::{Collector, Event, Sink, Timing};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// let read = collector.intern(&Event::named("read"))?;
    /// for duration in [Some(3), None, Some(4)] {
    ///     collector.push(stream, read, Timing { duration, ..Timing::UNKNOWN })?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let durations = fold.event_sums()?.durations.unwrap_or_default();
    /// assert_eq!((durations[0].known, durations[0].total), (2, 7));
    /// assert_eq!(durations[0].mean(), Some(3.5));
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn event_sums(&self) -> Result<EventSums> {
        let symbols = self.alphabet().len();
        let mut sums = EventSums::default();
        let mut summing = Summing::new(symbols);
        for stream in self.streams() {
            if let Some(stored) = stream.sums() {
                sums.add(symbols, stored)?;
            }
            sums.add(symbols, &summing.stream(self, stream)?)?;
        }
        Ok(sums)
    }
}

impl Fold {
    /// The same fold with a metric whose value depends on the event alone, such as the number of
    /// instructions of a path: as sums by event, in place of what the streams have of that metric.
    /// `values` are indexed by symbol; `None` if an event has no value.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::trace::{Collector, Event, Sink};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// for name in ["a", "b", "a"] {
    ///     collector.push_event(stream, &Event::named(name))?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let fold = fold.with_metric_of_events("instructions", &[Some(5.0), None])?;
    /// let sums = fold.event_sums()?;
    /// assert_eq!(sums.metric("instructions").map(|sums| (sums[0].known, sums[0].total)), Some((2, 10.0)));
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn with_metric_of_events(mut self, name: &str, values: &[Option<f64>]) -> Result<Self> {
        let mut all = Vec::new();
        let mut uses = UsesBelow::new(&self);
        for stream in self.streams() {
            uses.count(stream.root())?;
            let counts = self.alphabet().symbols().zip(uses.symbol_counts()?);
            let sum = |(symbol, known): (Symbol, u64)| {
                let value = values.get(symbol.index()).copied().flatten().filter(|_| known > 0)?;
                Some((symbol, MetricSum { known, total: value * known as f64 }))
            };
            all.push(counts.filter_map(sum).collect::<Vec<_>>());
        }
        for (stream, sums) in self.streams_mut().iter_mut().zip(all) {
            let metrics = &mut stream.sums.get_or_insert_default().metrics;
            metrics.retain(|(known, _)| known != name);
            metrics.push((name.to_string(), sums));
        }
        Ok(self)
    }
}

/// The sums of each stream. `None` for a stream without times.
pub(super) fn stream_sums_of(fold: &Fold) -> Result<Vec<Option<StreamSums>>> {
    let mut summing = Summing::new(fold.alphabet().len());
    let mut own = SelfTimes::new(fold.alphabet().len());
    let sums_of = |stream: &FoldedStream| {
        if stream.times().is_empty() {
            return Ok(stream.sums().cloned());
        }
        let mut sums = summing.stream(fold, stream)?;
        (sums.began, sums.ended) = extent(stream.times())?;
        sums.self_times = own.stream(fold, stream)?.map(|own| own.events);
        if let Some(stored) = stream.sums() {
            sums.join(stored, &mut Some)?;
        }
        Ok(Some(sums))
    };
    fold.streams().iter().map(sums_of).collect()
}

/// The earliest start and the latest end of the events of a stream.
pub(super) fn extent(times: &Times) -> Result<(Option<i64>, Option<i64>)> {
    let Some(mut starts) = Starts::of(times) else { return Ok((None, None)) };
    let (mut earliest, mut latest) = (None, None);
    for position in 0..starts.events() {
        if let Some(TimedEvent { start, end, .. }) = starts.event(position)? {
            earliest = Some(earliest.map_or(start, |earliest: i64| earliest.min(start)));
            latest = latest.max(Some(end));
        }
    }
    Ok((earliest, latest.and_then(|latest| i64::try_from(latest).ok())))
}

/// Sums streams one after the other; the tables by symbol are made once for all.
struct Summing {
    durations: Table<DurationSum>,
    metrics: Vec<Table<MetricSum>>,
    symbols: Vec<Symbol>,
}

impl Summing {
    fn new(symbols: usize) -> Self {
        Self {
            durations: Table::new(symbols),
            metrics: Vec::new(),
            symbols: vec![Symbol::from_raw(0); CHUNK],
        }
    }

    fn stream(&mut self, fold: &Fold, stream: &FoldedStream) -> Result<StreamSums> {
        let times = stream.times();
        let mut durations = times.durations.as_ref().map(Column::reader);
        let mut metrics: Vec<_> = times.metrics.iter().map(|(_, column)| column.reader()).collect();
        if durations.is_none() && metrics.is_empty() {
            return Ok(StreamSums::default());
        }
        check_lengths(fold, stream)?;
        let symbols = fold.alphabet().len();
        check_tables(metrics.len(), symbols)?;
        self.metrics.resize_with(metrics.len().max(self.metrics.len()), || Table::new(symbols));
        let mut events = fold.unfold(stream.root());
        for chunk in 0.. {
            let filled = events.fill(&mut self.symbols);
            let symbols = &self.symbols[..filled];
            if symbols.is_empty() {
                break;
            }
            if let Some(column) = &mut durations {
                self.durations.add(symbols, column.chunk(chunk)?);
            }
            for (table, column) in self.metrics.iter_mut().zip(&mut metrics) {
                table.add(symbols, column.chunk(chunk)?);
            }
        }
        let names = times.metrics.iter().map(|(name, _)| name.clone());
        Ok(StreamSums {
            durations: durations.map(|_| self.durations.take()),
            metrics: names.zip(self.metrics.iter_mut().map(Table::take)).collect(),
            ..StreamSums::default()
        })
    }
}

/// Fails unless every column has a value for every event.
pub(super) fn check_lengths(fold: &Fold, stream: &FoldedStream) -> Result<()> {
    if stream.times().lengths().any(|length| length as u64 != fold.length(stream.root())) {
        return Err(Error::invalid("a stream does not have as many times as events"));
    }
    Ok(())
}

/// Sums of metrics that are ever held, one for each metric and each symbol or rule: an
/// archive can claim many of both in few bytes.
const MOST_SUMS: usize = 1 << 25;

pub(super) fn check_tables(metrics: usize, each: usize) -> Result<()> {
    match metrics.checked_mul(each) {
        Some(sums) if sums <= MOST_SUMS => Ok(()),
        _ => {
            Err(Error::limit(format_args!("{metrics} metrics, each {each} times, are too many to be summed")))
        }
    }
}

/// Something to add values to.
pub(super) trait Summed: Copy + Default {
    type Cell: Copy;

    /// Adds a value if it is known.
    fn take(&mut self, value: Self::Cell);

    fn known(&self) -> u64;
}

impl Summed for DurationSum {
    type Cell = i64;

    fn take(&mut self, duration: i64) {
        if duration >= 0 {
            // Fewer than 2^64 values of less than 2^63.
            self.known += 1;
            self.total += i128::from(duration);
        }
    }

    fn known(&self) -> u64 {
        self.known
    }
}

impl Summed for MetricSum {
    type Cell = f64;

    fn take(&mut self, value: f64) {
        if !value.is_nan() {
            self.known += 1;
            self.total += value;
        }
    }

    fn known(&self) -> u64 {
        self.known
    }
}

/// A sum for every symbol, and which symbols have one.
pub(super) struct Table<S> {
    sums: Vec<S>,
    known: Vec<Symbol>,
}

impl<S: Summed> Table<S> {
    pub(super) fn new(symbols: usize) -> Self {
        Self { sums: vec![S::default(); symbols], known: Vec::new() }
    }

    fn add(&mut self, symbols: &[Symbol], values: &[S::Cell]) {
        symbols.iter().zip(values).for_each(|(&symbol, &value)| self.add_value(symbol, value));
    }

    #[inline]
    pub(super) fn add_value(&mut self, symbol: Symbol, value: S::Cell) {
        let sum = &mut self.sums[symbol.index()];
        let was_known = sum.known() > 0;
        sum.take(value);
        if !was_known && sum.known() > 0 {
            self.known.push(symbol);
        }
    }

    /// The sums that are known, by symbol; the table is empty afterwards.
    pub(super) fn take(&mut self) -> Vec<(Symbol, S)> {
        self.known.sort_unstable();
        let sums =
            self.known.drain(..).map(|symbol| (symbol, std::mem::take(&mut self.sums[symbol.index()])));
        sums.collect()
    }
}
