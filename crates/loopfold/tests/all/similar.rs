//! Windows that are like a pattern: those of every window looked at, and the example of the
//! paper.

use crate::support::similar::{brute_force, brute_force_by, distance, distance_of_sets};
use crate::support::{fold_of, outermost};
use loopfold::folders::{Outermost, fold_trace};
use loopfold::mpi::{KnownPattern, KnownVariant};
use loopfold::questions::communication::Processes;
use loopfold::questions::patterns::{EventChoice, MemoryBudget};
use loopfold::questions::similar::{
    self, Compared, ComparedEvents, LikePattern, Likeness, ProcessStreams, SimilarPattern, SimilarVariant,
    SimilarWindow, search_similar,
};
use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
use loopfold::{ErrorKind, Fold, Symbol};
use loopfold_testing::{Rng, streams};

fn symbols(text: &[u8]) -> Vec<Symbol> {
    text.iter().map(|&letter| Symbol::new(letter.into()).unwrap()).collect()
}

#[test]
fn the_same_as_looking_at_every_window_for_all_n_and_k() {
    let mut rng = Rng::new(9);
    let mut found = 0;
    for _ in 0..6_000 {
        let letters = rng.between(1, 4);
        let pattern: Vec<u8> = (0..rng.between(1, 12)).map(|_| b'a' + rng.below(letters) as u8).collect();
        let mut stream = Vec::new();
        for _ in 0..rng.below(8) {
            // The pattern with some edits, or anything.
            let mut part =
                if rng.one_in(3) { vec![b'a' + rng.below(5) as u8; rng.below(9)] } else { pattern.clone() };
            for _ in 0..rng.below(3) {
                let at = rng.below(part.len() + 1);
                match rng.below(3) {
                    0 => part.insert(at, b'a' + rng.below(5) as u8),
                    1 if at < part.len() => drop(part.remove(at)),
                    _ if at < part.len() => part[at] = b'a' + rng.below(5) as u8,
                    _ => {}
                }
            }
            stream.extend(part);
        }
        let likeness = Likeness { edits: rng.below(pattern.len()).min(4), ngram: rng.between(1, 5) };
        let like = LikePattern::new(&symbols(&pattern), likeness).unwrap();
        let expected = brute_force(&stream, &pattern, likeness.edits);
        let text = String::from_utf8_lossy(&stream).into_owned();
        assert_eq!(like.find_in(&symbols(&stream)).0, expected, "{text} {pattern:?} {likeness:?}");
        found += expected.len();
    }
    assert!(found > 5_000, "{found}");
}

/// Some edits.
fn mutated(mut text: Vec<u8>, edits: usize, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..edits {
        let at = rng.below(text.len());
        match rng.below(3) {
            0 => text.insert(at, b'a' + rng.below(5) as u8),
            1 if text.len() > 1 => drop(text.remove(at)),
            _ => text[at] = b'a' + rng.below(5) as u8,
        }
    }
    text
}

#[test]
fn patterns_longer_than_a_machine_word_are_no_exception() {
    let mut rng = Rng::new(31);
    let mut found = 0;
    for case in 0..42 {
        let length = [63, 64, 65, 127, 128, 129, 150][case % 7];
        let period = rng.between(1, 70);
        let unit: Vec<u8> = (0..period).map(|_| b'a' + rng.below(3) as u8).collect();
        let pattern: Vec<u8> = unit.iter().copied().cycle().take(length).collect();
        let mut stream = Vec::new();
        for _ in 0..rng.between(1, 4) {
            let edits = rng.below(4);
            stream.extend(mutated(pattern.clone(), edits, &mut rng));
            stream.extend(vec![b'x'; rng.below(3)]);
        }
        let likeness = Likeness { edits: rng.below(4), ngram: rng.between(1, 4) };
        let like = LikePattern::new(&symbols(&pattern), likeness).unwrap();
        let expected = brute_force(&stream, &pattern, likeness.edits);
        assert_eq!(like.find_in(&symbols(&stream)).0, expected, "{pattern:?} {likeness:?}");
        found += expected.len();
    }
    assert!(found > 42, "{found}");
}

#[test]
fn events_may_be_several_symbols() {
    let mut rng = Rng::new(32);
    let mut found = 0;
    for _ in 0..3_000 {
        // Sets that overlap without being equal, and some of nothing.
        let set = |rng: &mut Rng| -> Vec<u8> { (b'a'..=b'e').filter(|_| rng.one_in(3)).collect() };
        let sets: Vec<Vec<u8>> = (0..rng.between(1, 4)).map(|_| set(&mut rng)).collect();
        let pattern: Vec<Vec<u8>> =
            (0..rng.between(1, 9)).map(|_| sets[rng.below(sets.len())].clone()).collect();
        let stream: Vec<u8> = (0..rng.below(40)).map(|_| b'a' + rng.below(6) as u8).collect();
        let likeness = Likeness { edits: rng.below(pattern.len()).min(3), ngram: rng.between(1, 4) };
        let events: Vec<Vec<Symbol>> = pattern.iter().map(|set| symbols(set)).collect();
        let like = LikePattern::of_events(&events, likeness).unwrap();
        let by_definition = |window: &[u8]| distance_of_sets(&pattern, window);
        let expected = brute_force_by(&stream, pattern.len(), likeness.edits, by_definition);
        assert_eq!(like.find_in(&symbols(&stream)).0, expected, "{stream:?} {pattern:?} {likeness:?}");
        assert_eq!(like.distance(&symbols(&stream)), distance_of_sets(&pattern, &stream));
        found += expected.len();
    }
    assert!(found > 3_000, "{found}");
    // Events that may be so much that n-grams cannot be listed are compared without.
    let all: Vec<Symbol> = (0..200).map(|index| Symbol::new(index).unwrap()).collect();
    let events: Vec<Vec<Symbol>> = (0..200).map(|from| all[from / 2..].to_vec()).collect();
    let like = LikePattern::of_events(&events, Likeness { edits: 1, ngram: 4 }).unwrap();
    let (found, filtered) = like.find_in(&all);
    assert_eq!(found, [SimilarWindow { start: 0, length: 200, distance: 0 }]);
    assert_eq!(filtered.verified, 0);
}

/// Figure 6. As printed, window 8 (`obcdef`) has distance 1 but is not taken, 10 has 5
/// instead of 4, and 12 has 4 instead of 6; the shift by the first shared n-gram is not
/// made at 6 and 7.
#[test]
fn figure_6() {
    let stream = b"abcdmhkobcdefyeabhdefrsabcdef";
    let pattern = b"abcdef";
    let like = LikePattern::new(&symbols(pattern), Likeness { edits: 1, ngram: 2 }).unwrap();
    assert_eq!(like.threshold(), 3);
    let row = |window: usize| &stream[window - 1..window + 5];
    let shared = [3, 2, 1, 0, 1, 2, 3, 4, 4, 3, 2];
    for (window, shared) in (1..).zip(shared) {
        assert_eq!(like.shared_ngrams(&symbols(row(window))), shared, "window {window}");
    }
    assert_eq!(like.shared_ngrams(&symbols(row(16))), 3);
    assert_eq!(like.shared_ngrams(&symbols(row(24))), 5);
    let distances = [(1, 2), (7, 3), (8, 1), (9, 2), (10, 4), (12, 6), (16, 1), (24, 0)];
    for (window, expected) in distances {
        assert_eq!(like.distance(&symbols(row(window))), expected, "window {window}");
        assert_eq!(distance(pattern, row(window)), expected, "window {window}");
    }
    // The text's shorter windows: `bcdef` is one edit away, `cdef` two.
    assert_eq!(like.distance(&symbols(b"bcdef")), 1);
    assert_eq!(like.distance(&symbols(b"cdef")), 2);
    let (found, filtered) = like.find_in(&symbols(stream));
    let window = |number: usize, distance| SimilarWindow { start: number - 1, length: 6, distance };
    assert_eq!(found, [window(8, 1), window(16, 1), window(24, 0)]);
    assert!(filtered.verified < 12, "{filtered:?}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (pattern, edits, ngram) in [(&b""[..], 0, 2), (b"ab", 2, 2), (b"ab", 1, 0), (&[b'a'; 2000], 1500, 2)]
    {
        assert!(LikePattern::new(&symbols(pattern), Likeness { edits, ngram }).is_err());
    }
    // A filter that says nothing passes everything.
    let like = LikePattern::new(&symbols(b"abc"), Likeness { edits: 2, ngram: 2 }).unwrap();
    assert!(like.threshold() < 1);
    assert_eq!(like.find_in(&symbols(b"a")).0, [SimilarWindow { start: 0, length: 1, distance: 2 }]);
    assert_eq!(like.find_in(&symbols(b"")).0, []);
}

/// The windows of every stream are those of the stream alone; equal streams have equal windows,
/// and all count, however few are kept.
#[test]
fn a_search_goes_through_all_streams() {
    let mut rng = Rng::new(77);
    for _ in 0..200 {
        let streams: Vec<Vec<u32>> = (0..rng.between(1, 4)).map(|_| streams::small(&mut rng, 40)).collect();
        let streams: Vec<Vec<u32>> = streams
            .iter()
            .chain(&streams[..1])
            .map(|stream| stream.iter().map(|&symbol| symbol % 4).collect())
            .collect();
        let fold = fold_of(&streams, &Outermost::default());
        let sequence: Vec<Symbol> =
            (0..rng.between(2, 5)).map(|_| Symbol::new(rng.below(4)).unwrap()).collect();
        let compared = Compared::of(fold.alphabet(), &EventChoice::default()).unwrap();
        let as_compared = |symbol: &Symbol| vec![compared.symbols()[symbol.index()].unwrap()];
        let pattern = SimilarPattern::Everywhere(sequence.iter().map(as_compared).collect());
        let events = ComparedEvents::Fields(compared);
        let keep = rng.below(6) as u64;
        let search = |keep| {
            let settings = similar::Config::new().keep(keep);
            search_similar(&fold, &ProcessStreams::of(&fold), &events, &pattern, &settings).unwrap()
        };
        let (all, some) = (search(u64::MAX), search(keep));
        let like = LikePattern::new(&sequence, Likeness::default()).unwrap();
        let mut expected = Vec::new();
        for (index, stream) in streams.iter().enumerate() {
            let symbols: Vec<Symbol> = stream.iter().map(|&raw| Symbol::new(raw as usize).unwrap()).collect();
            let windows = like.find_in(&symbols).0.into_iter();
            expected
                .extend(windows.map(|window| (index, window.start as u64, window.length, window.distance)));
        }
        let windows: Vec<_> = all
            .matches
            .iter()
            .map(|(stream, at)| (stream.index(), at.start, at.length, at.distance))
            .collect();
        assert_eq!(windows, expected);
        assert_eq!(all.count, expected.len() as u64);
        assert_eq!(all.exact, expected.iter().filter(|window| window.3 == 0).count() as u64);
        let mut with_some: Vec<usize> = expected.iter().map(|window| window.0).collect();
        with_some.dedup();
        assert_eq!(all.streams, with_some.len() as u64);
        assert_eq!(some.matches[..], all.matches[..(keep as usize).min(all.matches.len())]);
        assert_eq!((some.count, some.exact, some.filtered), (all.count, all.exact, all.filtered));
        assert!(all.joined.is_none() && all.other_orders.is_empty() && all.absent_processes == 0);
    }
}

/// A ring in which every process sends on before it receives, or the other way round; the variant
/// that occurs most often is taken, and the others are listed.
#[test]
fn the_way_that_fits_best_is_taken() {
    let pattern = KnownPattern::parse("ring:4").unwrap();
    let variants = pattern.variants();
    let rounds = |variant: &KnownVariant, rounds: usize, processes: usize| -> Vec<Vec<(Role, usize)>> {
        variant.events.iter().take(processes).map(|events| events.repeat(rounds)).collect()
    };
    let fold = |processes: Vec<Vec<(Role, usize)>>| {
        let mut collector = Collector::default();
        for (process, events) in processes.iter().enumerate() {
            let stream = collector.stream(&format!("rank {process}")).unwrap();
            for &(role, peer) in events {
                let key = if role == Role::Send { "dest" } else { "src" };
                let fields = [("tag", 1), (key, peer)]
                    .map(|(key, value)| Field { key, value: Value::Integer(value as i64) });
                let name = if role == Role::Send { "MPI_Send" } else { "MPI_Recv" };
                collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(name) }).unwrap();
            }
        }
        fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
    };
    let search = |fold: &Fold| {
        let (pattern, events) = SimilarPattern::known(&pattern).unwrap();
        let settings = similar::Config::new().likeness(Likeness { edits: 0, ngram: 2 });
        search_similar(fold, &ProcessStreams::of(fold), &events, &pattern, &settings).unwrap()
    };
    for (index, variant) in variants.iter().enumerate() {
        let found = search(&fold(rounds(variant, 3, 4)));
        let joined = found.joined.unwrap();
        assert_eq!(joined.occurrences.len(), 3, "{}", variant.order);
        assert_eq!(joined.pattern_events, variant.events.iter().map(Vec::len).sum::<usize>() as u64);
        let streams = joined.streams.iter().map(|(&process, stream)| (process, stream.index()));
        assert_eq!(streams.collect::<Vec<_>>(), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert_eq!(found.absent_processes, 0);
        if index == 0 {
            assert_eq!(joined.order.as_deref(), Some(variant.order.as_str()));
        }
        assert!(
            found
                .other_orders
                .iter()
                .all(|(order, count)| Some(order) != joined.order.as_ref() && *count > 0)
        );
    }
    // Of fewer processes not enough are there.
    let found = search(&fold(rounds(&variants[0], 3, 3)));
    assert_eq!((found.absent_processes, found.joined.unwrap().occurrences.len()), (1, 0));
    assert!(found.count > 0);
}

#[test]
fn a_pattern_may_name_processes_that_no_trace_has() {
    let fold = fold_of(&[vec![1, 2, 1, 2]], &Outermost::default());
    let events = ComparedEvents::Fields(Compared::of(fold.alphabet(), &EventChoice::default()).unwrap());
    let search = |process: usize| {
        let sequences = [0, process].map(|process| (process, vec![vec![Symbol::new(0).unwrap()]; 2]));
        let variant = SimilarVariant { order: None, sequences: sequences.into_iter().collect() };
        let pattern = SimilarPattern::Processes(vec![variant]);
        search_similar(&fold, &ProcessStreams::of(&fold), &events, &pattern, &similar::Config::new())
    };
    let found = search(3).unwrap();
    assert_eq!((found.absent_processes, found.joined.unwrap().streams.len()), (3, 1));
    for process in [1 << 22, usize::MAX] {
        assert_eq!(search(process).unwrap_err().kind(), ErrorKind::Limit);
    }
}

/// A number in the list of `patterns` is a pattern of these events.
#[test]
fn events_are_compared_as_the_list_of_patterns_has_them() {
    for communicates in [false, true] {
        let mut collector = Collector::default();
        let stream = collector.stream("rank 0").unwrap();
        for number in 0..12 {
            let is_send = communicates && number % 4 < 2;
            let fields = [("n", number % 2), ("x", number % 3), ("dest", 0)];
            let fields = fields.map(|(key, value)| Field { key, value: Value::Integer(value) });
            let fields = &fields[..if is_send { 3 } else { 2 }];
            let role = if is_send { Role::Send } else { Role::Plain };
            collector.push_event(stream, &Event { role, fields, ..Event::named("e") }).unwrap();
        }
        let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
        let without_envelope = EventChoice::default();
        let with_envelope = EventChoice { left_out: Vec::new(), ..EventChoice::default() };
        for choice in [without_envelope, with_envelope] {
            for all_events in [false, true] {
                let choice = EventChoice { all_events, ..choice.clone() };
                let processes = Processes::of(&fold, &choice, MemoryBudget::default(), &outermost).unwrap();
                let shown = processes.traces()[0].shown();
                let listed = shown.nest_between(0, shown.length(), usize::MAX).events(100);
                let compared = Compared::of(fold.alphabet(), &choice).unwrap();
                let events = fold.unfold(fold.streams()[0].root());
                let events = events.filter_map(|symbol| compared.symbols()[symbol.index()]);
                assert_eq!(events.collect::<Vec<_>>(), listed, "{communicates} {choice:?}");
                assert_eq!(listed.len(), if communicates && !all_events { 6 } else { 12 });
            }
        }
    }
}
