//! Reads small inputs in the tests of sources.

use crate::{Context, Options, Source};
use loopfold::Trace;
use loopfold::trace::{Collector, Projection, TimesKept};

/// How to read.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) options: Options,
    pub(crate) key: Option<Vec<String>>,
}

impl Reading {
    /// Going on past damage.
    pub(crate) fn lenient() -> Self {
        Self { options: Options { lenient: true, ..Options::default() }, key: None }
    }

    /// With these keys for the events.
    pub(crate) fn by(key: &[&str]) -> Self {
        Self { key: Some(key.iter().map(ToString::to_string).collect()), ..Self::default() }
    }
}

/// What was read and how many things were wrong, or the error.
pub(crate) type Outcome = Result<(Trace, u64), String>;

/// Reads a text.
pub(crate) fn read(source: &dyn Source, text: impl AsRef<[u8]>, reading: Reading) -> Outcome {
    let projection = Projection { key: reading.key, ..Projection::default() };
    let mut collector = Collector::new(projection, TimesKept::All);
    let mut context = Context::new(&reading.options, &mut collector, "input", false);
    source.read(&mut text.as_ref(), &mut context).map_err(|error| error.to_string())?;
    let damage = context.into_damage().count;
    Ok((collector.finish().unwrap(), damage))
}

/// The names of the streams.
pub(crate) fn streams_of(outcome: &Outcome) -> Vec<&str> {
    outcome.as_ref().unwrap().0.streams.iter().map(|stream| stream.name.as_str()).collect()
}

/// The events of a stream as text.
pub(crate) fn events_of(outcome: &Outcome, stream: &str) -> Vec<String> {
    let trace = &outcome.as_ref().unwrap().0;
    let stream = trace.streams.iter().find(|candidate| candidate.name == stream).unwrap();
    stream.symbols.iter().map(|&symbol| trace.alphabet.label(symbol)).collect()
}

/// The starts and durations of a stream.
pub(crate) fn times_of(outcome: &Outcome, stream: &str) -> Vec<(i64, i64)> {
    let trace = &outcome.as_ref().unwrap().0;
    let stream = trace.streams.iter().find(|candidate| candidate.name == stream).unwrap();
    let values = |column: &Option<loopfold::trace::Column<i64>>, unknown| match column {
        Some(column) => column.values().unwrap(),
        None => vec![unknown; stream.symbols.len()],
    };
    let starts = values(&stream.times.starts, loopfold::trace::Times::UNKNOWN_START);
    starts.into_iter().zip(values(&stream.times.durations, -1)).collect()
}

/// A note about a stream.
pub(crate) fn note_of(outcome: &Outcome, stream: &str, key: &str) -> Option<String> {
    let trace = &outcome.as_ref().unwrap().0;
    let stream = trace.streams.iter().find(|candidate| candidate.name == stream).unwrap();
    stream.notes.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
}

/// How many things were wrong.
pub(crate) fn damage_of(outcome: &Outcome) -> u64 {
    outcome.as_ref().unwrap().1
}
