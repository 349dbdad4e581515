//! Bugs that were found, each held down by a test that is named after it.

use crate::support::outermost;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::communication::Processes;
use loopfold::questions::{EventChoice, PathIndex, Room};
use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};

/// Levels of calls in a stored index were taken as they were, though calls cannot be nested in
/// every way. No search needs them: whatever older files or hostile ones say there is passed over.
#[test]
fn levels_in_a_stored_index_were_not_checked() {
    let mut collector = Collector::default();
    let stream = collector.stream("main").unwrap();
    let f = [Field { key: "function", value: Value::Text(b"f") }];
    collector.push(stream, &Event { role: Role::Enter, ..Event::named("f") }).unwrap();
    for name in ["B1", "B2", "B3"] {
        collector.push(stream, &Event { role: Role::Block, fields: &f, ..Event::named(name) }).unwrap();
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let index = PathIndex::of(&fold, 2).unwrap().unwrap();
    let stored = index.encode().unwrap();
    assert_eq!(PathIndex::decode(&stored, &fold).unwrap(), index);
    // A byte that says that it is not compressed, the fingerprint, a mark, how many segments were
    // asked for and are there, and their lengths.
    assert_eq!((stored[0], &stored[9..14]), (0, &[0, 2, 2, 2, 2][..]));
    // As it was: no mark, and three numbers with each segment. Seven calls are left, though there
    // is no lowest one that is.
    let segments = [2, 2, 2, 7, 9, 0, 2, 7, 9, 0];
    let older = [&stored[..9], &segments, &stored[14..]].concat();
    assert_eq!(PathIndex::decode(&older, &fold).unwrap(), index);
    assert_eq!(PathIndex::verify(&older, &fold).unwrap(), 2);
}

/// How often a function is called was counted by a pass over the fold for each of its symbols and
/// each stream. It comes with looking at the streams now, also for functions that are numbers.
#[test]
fn count_calls_made_a_pass_for_each_function_stream_and_symbol() {
    let mut collector = Collector::default();
    for (name, calls) in [("rank 0", 3), ("rank 1", 5)] {
        let stream = collector.stream(name).unwrap();
        for call in 0..calls {
            // Two symbols of one name.
            let line = [Field { key: "line", value: Value::Integer(call % 2) }];
            let message = [Field { key: "dest", value: Value::Integer(1) }];
            collector.push(stream, &Event { role: Role::Enter, fields: &line, ..Event::named("f") }).unwrap();
            collector.push(stream, &Event { role: Role::Enter, ..Event::integer(7) }).unwrap();
            let send = Event { role: Role::Send, fields: &message, ..Event::named("MPI_Send") };
            collector.push(stream, &send).unwrap();
            collector.push(stream, &Event { role: Role::Leave, ..Event::integer(7) }).unwrap();
            collector.push(stream, &Event { role: Role::Leave, ..Event::named("f") }).unwrap();
        }
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    for events in [0, 1 << 20] {
        let room = Room { events, ..Room::default() };
        let processes = Processes::of(&fold, &EventChoice::default(), room, &outermost).unwrap();
        let calls = |stream| ["f", "7", "g"].map(|name| processes.calls(stream, name));
        assert_eq!((calls(0), calls(1)), ([3, 3, 0], [5, 5, 0]));
    }
}
