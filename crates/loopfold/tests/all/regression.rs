//! Bugs that were found, each held down by a test that is named after it.

use crate::support::{id, outermost};
use loopfold::fold::FoldBuilder;
use loopfold::folders::{Folder, Folding, Online, Outermost, SequiturRuns, fold_trace};
use loopfold::questions::communication::Processes;
use loopfold::questions::path::PathIndex;
use loopfold::questions::patterns::{EventChoice, MemoryBudget};
use loopfold::trace::{Collector, Event, Field, Projection, Role, Sink, TimesKept, Timing, Value};
use loopfold::{Error, Result, RuleId, Symbol};

/// Levels of calls in a stored index were taken as they were, though calls cannot be nested in
/// every way. No search needs them, so an index has none: more numbers than the lengths are refused.
#[test]
fn levels_in_a_stored_index_were_not_checked() {
    let mut collector = Collector::default();
    let stream = collector.stream("main").unwrap();
    let f = [Field { key: "function", value: Value::Text(b"f") }];
    collector.push_event(stream, &Event { role: Role::Enter, ..Event::named("f") }).unwrap();
    for name in ["B1", "B2", "B3"] {
        collector.push_event(stream, &Event { role: Role::Block, fields: &f, ..Event::named(name) }).unwrap();
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let index = PathIndex::of(&fold, 2).unwrap().unwrap();
    let stored = index.encode().unwrap();
    assert_eq!(PathIndex::decode(&stored, &fold).unwrap(), index);
    // A byte that says that it is not compressed, the fingerprint, how many ranges were asked for
    // and are there, and their lengths.
    assert_eq!((stored[0], &stored[9..13]), (0, &[2, 2, 2, 2][..]));
    let with_levels = [&stored[..9], &[2, 2, 2, 7, 9, 0, 2, 7, 9, 0], &stored[13..]].concat();
    assert!(PathIndex::decode(&with_levels, &fold).unwrap_err().kind() == loopfold::ErrorKind::Damaged);
    assert!(PathIndex::verify(&with_levels, &fold).is_err());
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
            collector
                .push_event(stream, &Event { role: Role::Enter, fields: &line, ..Event::named("f") })
                .unwrap();
            collector.push_event(stream, &Event { role: Role::Enter, ..Event::integer(7) }).unwrap();
            let send = Event { role: Role::Send, fields: &message, ..Event::named("MPI_Send") };
            collector.push_event(stream, &send).unwrap();
            collector.push_event(stream, &Event { role: Role::Leave, ..Event::integer(7) }).unwrap();
            collector.push_event(stream, &Event { role: Role::Leave, ..Event::named("f") }).unwrap();
        }
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    for events in [0, 1 << 20] {
        let budget = MemoryBudget { events, ..MemoryBudget::default() };
        let processes = Processes::of(&fold, &EventChoice::default(), budget, &outermost).unwrap();
        let calls = |stream| ["f", "7", "g"].map(|name| processes.calls(id(stream), name));
        assert_eq!((calls(0), calls(1)), ([3, 3, 0], [5, 5, 0]));
    }
}

/// Folds until it has so many events, and then takes no more.
struct Bounded {
    events: u64,
}

impl Folder for Bounded {
    fn name(&self) -> &'static str {
        "bounded"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        SequiturRuns.fold(stream, builder)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(BoundedStream { most: self.events, inner: SequiturRuns.online()? }))
    }
}

struct BoundedStream {
    most: u64,
    inner: Box<dyn Online>,
}

impl Online for BoundedStream {
    fn push(&mut self, symbol: Symbol) -> Result<()> {
        if self.inner.events() == self.most {
            return Err(Error::limit("too many events"));
        }
        self.inner.push(symbol)
    }

    fn events(&self) -> u64 {
        self.inner.events()
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        self.inner.rules(builder)
    }
}

/// A worker that had failed to take symbols answered with the rules of those it had taken,
/// beside times of all events.
#[test]
fn so_far_reports_the_failure_of_a_worker() {
    for threads in [1, 2, 3] {
        let folder = Box::new(Bounded { events: 100 });
        let mut folding = Folding::with(folder, Projection::default(), TimesKept::All, threads).unwrap();
        let stream = folding.stream("too long").unwrap();
        let other = folding.stream("short").unwrap();
        let symbol = folding.intern(&Event::named("a")).unwrap();
        let push = |folding: &mut Folding, stream, from: i64| {
            let timing = |start| Timing { start: Some(start), ..Timing::UNKNOWN };
            (from..from + 100).try_for_each(|start| folding.push(stream, symbol, timing(start)))
        };
        push(&mut folding, stream, 0).unwrap();
        push(&mut folding, other, 0).unwrap();
        assert_eq!(folding.so_far().unwrap().events(), Some(200), "{threads} threads");
        push(&mut folding, stream, 100).unwrap();
        for _ in 0..3 {
            let error = folding.so_far().unwrap_err();
            assert!(
                error.kind() == loopfold::ErrorKind::Limit && error.to_string() == "too many events",
                "{threads} threads: {error}"
            );
        }
        assert!(folding.finish().unwrap_err().kind() == loopfold::ErrorKind::Limit, "{threads} threads");
    }
}
