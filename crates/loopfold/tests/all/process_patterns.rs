//! Patterns of several streams: which occurrence belongs to which, how often each occurs, and
//! which events they are made of.

use crate::support::patterns::{Summary, settled, summary_of};
use crate::support::{outermost, symbols};
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::communication::Processes;
use loopfold::questions::patterns::{
    self, EventChoice, LoopCollapsed, MemoryBudget, PatternMethod, Patterns, RankBy,
};
use loopfold::trace::{Alphabet, Collector, Event, Field, Role, Sink, Value};
use loopfold::{Fold, Symbol};
use loopfold_testing::{Rng, streams};

const ROOM: MemoryBudget = MemoryBudget { events: 1 << 20, symbols: 1 << 20, threads: 2 };

#[test]
fn occurrences_belong_to_the_longest_pattern_that_has_them() {
    let mut rng = Rng::new(41);
    let (mut found, mut inside) = (0, 0);
    for _ in 0..3_000 {
        let collapsed = LoopCollapsed::of(&symbols(&streams::small(&mut rng, 100)), &outermost).unwrap();
        for method in [PatternMethod::Ngrams, PatternMethod::Exact] {
            let settings = patterns::Config::new().method(method).min_count(0);
            let patterns = Patterns::of(&[&collapsed], &settings).unwrap();
            let mut all: Vec<Summary> = patterns.patterns.iter().map(summary_of).collect();
            all.sort();
            assert_eq!(all, settled(&collapsed, method), "{method:?} {collapsed:?}");
            found += all.len();
            inside += all.iter().filter(|found| found.4 > 0).count();
        }
    }
    assert!(found > 3_000 && inside > 300, "{found} {inside}");
}

fn letters(text: &str) -> Vec<Symbol> {
    symbols(&streams::letters(text))
}

#[test]
fn repetitions_are_added_back_and_equal_patterns_put_together() {
    let step = "aabbcd";
    let one = LoopCollapsed::of(&letters(&format!("{step}.{}!", step.repeat(400))), &outermost).unwrap();
    let other = LoopCollapsed::of(&letters("xabcdyabbcdz"), &outermost).unwrap();
    let same = one.clone();
    let patterns = Patterns::of(&[&one, &other, &same], &patterns::Config::new()).unwrap();
    assert_eq!(patterns.classes, [vec![0, 2], vec![1]]);
    let [pattern] = &patterns.patterns[..] else { panic!("{patterns:?}") };
    assert_eq!(pattern.symbols, letters("abcd"));
    assert_eq!((pattern.count, pattern.places), (2 * 401 + 2, 2 * 2 + 2));
    assert_eq!((pattern.fewest_events, pattern.most_events), (4, 6));
    assert_eq!(pattern.explained, 2 * 401 * 6 + 4 + 5);
    assert_eq!(pattern.processes, 3);
    let of_streams: Vec<(usize, usize)> =
        patterns.streams_of(pattern).map(|(stream, places)| (stream, places.len())).collect();
    assert_eq!(of_streams, [(0, 2), (2, 2), (1, 2)]);
}

/// Figure 8, with occurrences inside the longer pattern distinguished.
#[test]
fn figure_8() {
    let collapsed = LoopCollapsed::of(&letters("bgvgs1bgv2bgvgs3bgv4bgv5"), &outermost).unwrap();
    for method in [PatternMethod::Ngrams, PatternMethod::Exact] {
        let settings = patterns::Config::new().method(method);
        let patterns = Patterns::of(&[&collapsed], &settings).unwrap().patterns;
        let found: Vec<_> = patterns.iter().map(|p| (p.symbols.clone(), p.count, p.inside)).collect();
        assert_eq!(found, [(letters("bgvgs"), 2, 0), (letters("bgv"), 3, 2)]);
    }
}

#[test]
fn patterns_are_ranked_as_asked_for() {
    let collapsed = LoopCollapsed::of(&letters("abcde1ab2abcde3ab4ab5ab6xyz7xyz8xyz9"), &outermost).unwrap();
    let first = |rank_by| {
        let settings = patterns::Config::new().rank_by(rank_by).keep(1);
        let patterns = Patterns::of(&[&collapsed], &settings).unwrap();
        assert_eq!((patterns.found, patterns.patterns.len()), (3, 1));
        patterns.patterns[0].symbols.clone()
    };
    assert_eq!(first(RankBy::Events), letters("abcde"));
    assert_eq!(first(RankBy::Count), letters("ab"));
    assert_eq!(first(RankBy::Length), letters("abcde"));
}

/// What grows into the beginning of a loop passes over its iterations; its body counts all the
/// same, as in the traces of LU.
#[test]
fn the_main_loop_is_seen_where_its_body_comes_again() {
    let collapsed =
        LoopCollapsed::of(&letters(&format!("xqrrstxqr{}!", "stx".repeat(249))), &outermost).unwrap();
    assert_eq!(collapsed.symbols(), letters("xqrstxqrstx!"));
    let patterns = Patterns::of(&[&collapsed], &patterns::Config::new()).unwrap().patterns;
    assert_eq!((&patterns[0].symbols[..], patterns[0].count), (&letters("stx")[..], 250));
}

/// A trace of messages and of other events.
fn messages(rng: &mut Rng, events: usize) -> Fold {
    let mut collector = Collector::default();
    for rank in 0..3 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let kinds = streams::small(rng, events);
        for kind in kinds {
            let number = |key, value| Field { key, value: Value::Integer(value) };
            let (role, name, fields) = match kind % 4 {
                0 => (Role::Send, "MPI_Send", vec![number("dest", 1), number("tag", rng.below(2) as i64)]),
                1 => {
                    (Role::Receive, "MPI_Recv", vec![number("src", 1), number("bytes", rng.below(2) as i64)])
                }
                2 => (Role::Plain, "MPI_Wait", vec![number("n", rng.below(2) as i64)]),
                _ => (Role::Collective, "MPI_Barrier", vec![]),
            };
            let event = Event { role, fields: &fields, ..Event::named(name) };
            collector.push_event(stream, &event).unwrap();
        }
    }
    fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
}

fn without_envelope(alphabet: &Alphabet, symbol: Symbol) -> String {
    let label = alphabet.label(symbol);
    let words = label.split(' ');
    words
        .filter(|word| !word.starts_with("tag=") && !word.starts_with("bytes=") && !word.starts_with("n="))
        .collect()
}

#[test]
fn events_are_chosen_and_found_again() {
    let mut rng = Rng::new(42);
    let mut left_out = 0;
    for round in 0..500 {
        let fold = messages(&mut rng, 60);
        let all_events = round % 3 == 0;
        let choice = EventChoice { all_events, ..EventChoice::default() };
        // Every other time the loops of the fold are taken as they are.
        let room = if round % 2 == 0 { ROOM } else { MemoryBudget { events: 0, ..ROOM } };
        let streams = Processes::of(&fold, &choice, room, &outermost).unwrap();
        let positions = streams.positions();
        let communicates =
            fold.alphabet().symbols().any(|symbol| fold.alphabet().meaning(symbol).role != Role::Plain);
        for (index, stream) in fold.streams().iter().enumerate() {
            let is_kept = |symbol: &Symbol| {
                let communicates = fold.alphabet().meaning(*symbol).role != Role::Plain;
                !streams.communicate() || communicates
            };
            let all: Vec<Symbol> = fold.unfold(stream.root()).collect();
            let kept: Vec<u64> = (0..all.len()).filter(|&at| is_kept(&all[at])).map(|at| at as u64).collect();
            left_out += all.len() - kept.len();
            let collapsed = streams.traces()[index].shown();
            assert_eq!(collapsed.length(), kept.len() as u64);
            for (at, &symbol) in collapsed.symbols().iter().enumerate() {
                let position = positions.of(index, collapsed.position(at)).unwrap();
                let expected = all[kept[collapsed.position(at) as usize] as usize];
                assert_eq!(position, kept[collapsed.position(at) as usize]);
                if communicates {
                    let expected = without_envelope(fold.alphabet(), expected);
                    assert_eq!(without_envelope(streams.alphabet(), symbol), expected);
                    assert!(!streams.alphabet().label(symbol).contains("tag="));
                } else {
                    assert_eq!(streams.alphabet().label(symbol), fold.alphabet().label(expected));
                }
            }
            assert_eq!(positions.of(index, kept.len() as u64), None);
            for at in 0..=all.len() as u64 {
                let before = kept.iter().filter(|&&position| position < at).count() as u64;
                assert_eq!(positions.before(index, at), Some(before));
            }
            let is_stored = room.events == 0 && !all.is_empty();
            assert_eq!(streams.stored().contains(&index), is_stored);
        }
    }
    assert!(left_out > 1_000, "{left_out}");
}

#[test]
fn many_patterns_are_looked_for_inside_others_as_few_are() {
    let collapsed = LoopCollapsed::of(&symbols(&streams::random(3_000, 4, 8)), &outermost).unwrap();
    let patterns = |keep| {
        let settings = patterns::Config::new().keep(keep).rank_by(RankBy::Count);
        Patterns::of(&[&collapsed], &settings).unwrap().patterns
    };
    let (few, many) = (patterns(20), patterns(usize::MAX));
    assert!(many.len() > 100 && few.iter().any(|pattern| pattern.inside > 0));
    assert_eq!(few, many[..20]);
}
