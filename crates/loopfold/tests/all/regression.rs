//! A test for each bug that was found, named after it.

use loopfold::fold::FoldBuilder;
use loopfold::folders::{Folder, Folding, Online, SequiturRuns};
use loopfold::trace::{Event, Projection, Sink, TimesKept, Timing};
use loopfold::{Error, Result, RuleId, Symbol};

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
            assert!(error.is_limit() && error.to_string() == "too many events", "{threads} threads: {error}");
        }
        assert!(folding.finish().unwrap_err().is_limit(), "{threads} threads");
    }
}
