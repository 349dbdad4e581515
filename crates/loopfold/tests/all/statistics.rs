//! Numbers of folds, of nests and of calls, beside those of the events themselves.

use crate::support::{fold_of, folders, id, small_streams};
use loopfold::folders::fold_trace;
use loopfold::questions::clock::EventClock;
use loopfold::questions::query::Query;
use loopfold::questions::statistics::CallStatistics;
use loopfold::trace::{Collector, Event, Role, Sink, Timing};
use loopfold_testing::Rng;

/// Written in the nest that it has, a class is what it was.
#[test]
fn a_class_in_its_own_nest_is_the_same() {
    let mut rng = Rng::new(611);
    for folder in folders() {
        for _ in 0..40 {
            let fold = fold_of(&small_streams(&mut rng, 60), &*folder);
            for class in fold.classes().unwrap() {
                let nest = fold.nest(class.root, usize::MAX);
                assert_eq!(class.with_nest(&nest), class);
            }
        }
    }
}

#[test]
fn the_deepest_stack_is_found() {
    let mut rng = Rng::new(612);
    for folder in folders() {
        for _ in 0..40 {
            let mut collector = Collector::default();
            let (mut deepest, mut functions) = (0, Vec::new());
            for name in ["one", "two"] {
                let stream = collector.stream(name).unwrap();
                let mut open: Vec<&str> = Vec::new();
                for _ in 0..rng.below(60) {
                    if rng.one_in(2) || open.is_empty() {
                        let function = ["f", "g", "h"][rng.below(3)];
                        open.push(function);
                        functions.push(function);
                        collector
                            .push_event(stream, &Event { role: Role::Enter, ..Event::named(function) })
                            .unwrap();
                    } else {
                        let function = open.pop().unwrap();
                        collector
                            .push_event(stream, &Event { role: Role::Leave, ..Event::named(function) })
                            .unwrap();
                    }
                    deepest = deepest.max(open.len() as u64);
                }
            }
            functions.sort_unstable();
            functions.dedup();
            let fold = fold_trace(collector.finish().unwrap(), &*folder, 1).unwrap();
            let expected = CallStatistics { functions: functions.len() as u64, deepest };
            assert_eq!(fold.call_statistics().unwrap(), expected);
        }
    }
}

/// Of the first occurrence in each stream, the one that began first; not known if one is not.
#[test]
fn the_earliest_of_several_streams() {
    for unknown in [None, Some(1), Some(2)] {
        let mut collector = Collector::default();
        for (stream, begins) in [40, 10, 20].into_iter().enumerate() {
            let id = collector.stream(&stream.to_string()).unwrap();
            for (index, name) in ["x", "a", "a"].into_iter().enumerate() {
                let start = begins + index as i64;
                let start = (unknown != Some(stream)).then_some(start);
                let symbol = collector.intern(&Event::named(name)).unwrap();
                collector.push(id, symbol, Timing { start, ..Timing::UNKNOWN }).unwrap();
            }
        }
        let fold = fold_trace(collector.finish().unwrap(), &loopfold::folders::Auto, 1).unwrap();
        let found = fold.find(&Query::parse("a", fold.alphabet()).unwrap()).unwrap();
        let mut clock = EventClock::new(&fold);
        let expected = if unknown.is_none() { Some((1, 1)) } else { None };
        let earliest = clock.earliest(&found, &[0, 1, 2].map(id)).unwrap();
        assert_eq!(earliest.map(|place| (place.stream.index(), place.start)), expected);
        // Whoever is not asked need not be known.
        let earliest = clock.earliest(&found, &[id(0)]).unwrap();
        assert_eq!(earliest.map(|place| (place.stream.index(), place.start)), Some((0, 1)));
        let first = if unknown == Some(1) { 20 } else { 10 };
        assert_eq!(clock.since_first(id(0), 2).unwrap(), Some(42 - first));
        assert_eq!(clock.start(id(0), 3).unwrap(), None);
    }
}
