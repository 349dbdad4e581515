//! The sink that keeps a whole trace in memory.

use super::{Event, Intake, Projection, Sink, Stream, TimesKept, Timing, Trace};
use crate::{Error, Result, StreamId, Symbol};

/// The most events of a stream that is held in memory: folders that do so use 32-bit
/// positions, with one spare.
pub const STREAM_LIMIT: usize = u32::MAX as usize - 1;

/// Collects what a source pushes into a [`Trace`].
#[derive(Default)]
pub struct Collector {
    intake: Intake,
    symbols: Vec<Vec<Symbol>>,
}

opaque_debug!(Collector);

impl Collector {
    /// A collector that takes events as `projection` sees them.
    pub fn new(projection: Projection, times: TimesKept) -> Self {
        Self { intake: Intake::new(projection, times), symbols: Vec::new() }
    }

    /// The trace.
    pub fn finish(self) -> Result<Trace> {
        let streams = self.intake.streams.into_iter().zip(self.symbols);
        let stream = |(head, symbols): (super::intake::Head, Vec<Symbol>)| Stream {
            name: head.name,
            notes: head.notes,
            symbols,
            times: head.times,
        };
        Ok(Trace { alphabet: self.intake.alphabet, streams: streams.map(stream).collect() })
    }
}

impl Sink for Collector {
    fn stream(&mut self, name: &str) -> Result<StreamId> {
        let (stream, is_new) = self.intake.stream(name)?;
        if is_new {
            self.symbols.push(Vec::new());
        }
        Ok(stream)
    }

    fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()> {
        self.intake.describe(stream, key, value)
    }

    #[inline]
    fn intern(&mut self, event: &Event<'_>) -> Result<Symbol> {
        self.intake.intern(event)
    }

    #[inline]
    fn push(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> Result<()> {
        let symbols = self.symbols.get_mut(stream.index()).ok_or_else(super::intake::never_opened)?;
        if symbols.len() == STREAM_LIMIT {
            return Err(Error::limit(format_args!(
                "stream {}: more than {STREAM_LIMIT} events cannot be held in memory; \
                 the folder sequitur-runs need not",
                self.intake.streams[stream.index()].name
            )));
        }
        if self.intake.take(stream, symbol, timing)? {
            symbols.push(symbol);
        }
        Ok(())
    }

    fn projection(&self) -> &Projection {
        &self.intake.projection
    }

    fn wants_times(&self) -> bool {
        self.intake.wants_times()
    }

    fn stream_count(&self) -> usize {
        self.intake.streams.len()
    }

    fn events(&self) -> u64 {
        self.intake.events()
    }

    fn unseen_fields(&self) -> &[String] {
        self.intake.unseen_fields()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Column, Times};

    #[test]
    fn times_that_begin_late_are_filled_up() {
        let mut collector = Collector::default();
        let stream = collector.stream("a").unwrap();
        assert_eq!(collector.stream("a").unwrap(), stream);
        let [x, y] = ["x", "y"].map(|name| collector.intern(&Event::named(name)).unwrap());
        collector.push(stream, x, Timing::UNKNOWN).unwrap();
        let with_bytes = Timing { start: Some(5), metrics: &[("bytes", 8.0)], ..Timing::UNKNOWN };
        collector.push(stream, x, with_bytes).unwrap();
        collector.push(stream, y, Timing { duration: Some(7), ..Timing::UNKNOWN }).unwrap();
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

    #[test]
    fn symbols_and_streams_of_another_sink_are_refused() {
        let mut other = Collector::default();
        let stream = other.stream("a").unwrap();
        let symbol = other.intern(&Event::named("x")).unwrap();
        let mut collector = Collector::default();
        assert!(collector.push(stream, symbol, Timing::UNKNOWN).is_err());
        collector.stream("a").unwrap();
        assert!(collector.push(stream, symbol, Timing::UNKNOWN).is_err());
        collector.push_event(stream, &Event::named("y")).unwrap();
        assert_eq!(collector.events(), 1);
    }
}
