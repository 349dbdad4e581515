//! Cases of the corpus as traces.

use loopfold::Trace;
use loopfold::trace::{Collector, Event, Field, Name, Role, Sink, Timing, Value};
use loopfold_testing::corpus::{self, Case};

fn role_of(role: corpus::Role) -> Role {
    match role {
        corpus::Role::Plain => Role::Plain,
        corpus::Role::Enter => Role::Enter,
        corpus::Role::Leave => Role::Leave,
        corpus::Role::Block => Role::Block,
        corpus::Role::Send => Role::Send,
        corpus::Role::Receive => Role::Receive,
        corpus::Role::Collective => Role::Collective,
    }
}

/// Calls `then` with the event of a case.
fn with_event<T>(event: &corpus::Event, then: impl FnOnce(&Event<'_>) -> T) -> T {
    let value = |value| match value {
        &corpus::Value::Integer(number) => Value::Integer(number.try_into().unwrap()),
        corpus::Value::Text(text) => Value::Text(text),
    };
    let name = match &event.name {
        &corpus::Value::Integer(number) => Name::Integer(number.try_into().unwrap()),
        corpus::Value::Text(text) => Name::Text(text),
    };
    let field = |(key, text)| Field { key, value: value(text) };
    let fields: Vec<Field<'_>> = event.fields.iter().map(|(key, text)| field((key.as_str(), text))).collect();
    then(&Event { name, role: role_of(event.role), fields: &fields })
}

/// Pushes the events of a case with their times.
pub fn push(case: &Case, sink: &mut impl Sink) {
    for stream in &case.streams {
        let id = sink.stream(&stream.name).unwrap();
        for (event, timing) in stream.events.iter().zip(stream.timings()) {
            let symbol = with_event(event, |event| sink.intern(event)).unwrap();
            let timing = Timing { start: timing.start, duration: timing.duration, metrics: &timing.metrics };
            sink.push(id, symbol, timing).unwrap();
        }
    }
}

/// The trace that a case is.
pub fn trace_of(case: &Case) -> Trace {
    let mut collector = Collector::default();
    push(case, &mut collector);
    collector.finish().unwrap()
}
