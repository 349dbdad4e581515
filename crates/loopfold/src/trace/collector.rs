//! The sink that keeps a whole trace in memory.

use super::{Alphabet, Column, Event, Projection, Sink, Stream, Times, Trace};
use crate::{Error, Result, StreamId, Symbol};
use hashbrown::HashMap;

/// Folders that hold a stream in memory use 32-bit positions, with one spare.
pub(crate) const STREAM_LIMIT: usize = u32::MAX as usize - 1;

/// Which times a collector keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimesKept {
    /// Start, duration and metrics of every event.
    #[default]
    All,
    /// None.
    None,
}

/// Collects what a source pushes into a [`Trace`].
#[derive(Default)]
pub struct Collector {
    trace: Trace,
    projection: Projection,
    times: TimesKept,
    by_name: HashMap<String, StreamId>,
    /// Fields that the projection names and no event has had so far.
    unseen: Vec<String>,
}

impl Collector {
    /// A collector that takes events as `projection` sees them.
    pub fn new(projection: Projection, times: TimesKept) -> Self {
        let unseen = projection.fields().map(String::from).collect();
        Self { projection, times, unseen, ..Self::default() }
    }

    /// The number of events collected so far.
    pub fn events(&self) -> u64 {
        self.trace.events()
    }

    /// The fields that the projection names but no event has had so far.
    pub fn unseen_fields(&self) -> &[String] {
        &self.unseen
    }

    /// The number of streams opened so far.
    pub fn stream_count(&self) -> usize {
        self.trace.streams.len()
    }

    /// The trace.
    pub fn finish(self) -> Result<Trace> {
        Ok(self.trace)
    }

    fn stream_mut(&mut self, stream: StreamId) -> Result<&mut Stream> {
        self.trace
            .streams
            .get_mut(stream.index())
            .ok_or_else(|| Error::invalid("a stream that was never opened"))
    }
}

impl Sink for Collector {
    fn stream(&mut self, name: &str) -> Result<StreamId> {
        if let Some(&stream) = self.by_name.get(name) {
            return Ok(stream);
        }
        let id = StreamId::new(self.trace.streams.len())?;
        self.trace.streams.push(Stream { name: name.to_string(), ..Stream::default() });
        self.by_name.insert(name.to_string(), id);
        Ok(id)
    }

    fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()> {
        let notes = &mut self.stream_mut(stream)?.notes;
        match notes.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value.to_string(),
            None => notes.push((key.to_string(), value.to_string())),
        }
        Ok(())
    }

    fn push(&mut self, stream: StreamId, event: &Event<'_>) -> Result<()> {
        let Self { trace: Trace { alphabet, streams }, projection, times, unseen, .. } = self;
        if !unseen.is_empty() {
            unseen.retain(|wanted| event.fields.iter().all(|field| field.key != wanted));
        }
        let stream = streams
            .get_mut(stream.index())
            .ok_or_else(|| Error::invalid("a stream that was never opened"))?;
        let before = stream.symbols.len();
        if before == STREAM_LIMIT {
            return Err(Error::limit(format_args!(
                "stream {}: more than {STREAM_LIMIT} events cannot be held in memory",
                stream.name
            )));
        }
        let previous = stream.symbols.last().copied();
        let symbol = intern(alphabet, projection, event, previous)?;
        stream.symbols.push(symbol);
        if *times == TimesKept::All {
            keep_times(&mut stream.times, before, event);
        }
        Ok(())
    }

    fn wants(&self, field: &str) -> bool {
        self.projection.wants(field)
    }

    fn wants_times(&self) -> bool {
        self.times == TimesKept::All
    }
}

fn intern(
    alphabet: &mut Alphabet,
    projection: &Projection,
    event: &Event<'_>,
    previous: Option<Symbol>,
) -> Result<Symbol> {
    projection.apply(event, |event| alphabet.intern(event, previous))
}

/// Appends the event's times. `before` events came earlier: a column that begins now
/// is filled up with unknowns, and one that this event has nothing for gets another.
fn keep_times(times: &mut Times, before: usize, event: &Event<'_>) {
    keep(&mut times.starts, before, event.start, Times::UNKNOWN_START);
    keep(&mut times.durations, before, event.duration, Times::UNKNOWN_DURATION);
    for (name, column) in &mut times.metrics {
        let value = event.metrics.iter().find(|(metric, _)| metric == name);
        column.push(value.map_or(f64::NAN, |&(_, value)| value));
    }
    for &(name, value) in event.metrics {
        if times.metrics.iter().all(|(known, _)| known != name) {
            let mut column = Column::default();
            (0..before).for_each(|_| column.push(f64::NAN));
            column.push(value);
            times.metrics.push((name.to_string(), column));
        }
    }
}

fn keep(column: &mut Option<Column<i64>>, before: usize, value: Option<i64>, unknown: i64) {
    match (column, value) {
        (Some(column), value) => column.push(value.unwrap_or(unknown)),
        (None, None) => {}
        (empty, Some(value)) => {
            let mut column = Column::default();
            (0..before).for_each(|_| column.push(unknown));
            column.push(value);
            *empty = Some(column);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_begin_late_are_filled_up() {
        let mut collector = Collector::default();
        let stream = collector.stream("a").unwrap();
        assert_eq!(collector.stream("a").unwrap(), stream);
        collector.push(stream, &Event::named("x")).unwrap();
        collector
            .push(stream, &Event { start: Some(5), metrics: &[("bytes", 8.0)], ..Event::named("x") })
            .unwrap();
        collector.push(stream, &Event { duration: Some(7), ..Event::named("y") }).unwrap();
        collector.describe(stream, "title", "main").unwrap();
        let trace = collector.finish().unwrap();
        let stream = &trace.streams[0];
        assert_eq!(stream.symbols.len(), 3);
        let values = |column: &Option<Column<i64>>| column.as_ref().unwrap().values().unwrap();
        assert_eq!(values(&stream.times.starts), [Times::UNKNOWN_START, 5, Times::UNKNOWN_START]);
        assert_eq!(values(&stream.times.durations), [-1, -1, 7]);
        let bytes = stream.times.metrics[0].1.values().unwrap();
        assert!(bytes[0].is_nan() && bytes[1] == 8.0 && bytes[2].is_nan());
        assert_eq!(stream.notes, [("title".to_string(), "main".to_string())]);
    }
}
