//! Patterns that are known by name: what they are called as topologies, and windows of
//! several processes that are one occurrence.

use loopfold::folders::{Outermost, fold_trace};
use loopfold::mpi::KnownPattern;
use loopfold::questions::similar::{
    LikePattern, Likeness, MessagesInOrder, ProcessStreams, RolesAndPeers, SimilarPartners as _,
    SimilarPlace, find_similar, join_similar,
};
use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
use loopfold::{Fold, Symbol};
use loopfold_testing::Rng;
use std::collections::HashMap;

fn names() -> Vec<String> {
    let mut names = Vec::new();
    for size in [6, 8, 9, 12, 16, 27, 64] {
        for name in ["line", "ring", "star", "binary-tree", "binomial-tree", "all-to-all"] {
            names.push(format!("{name}:{size}"));
        }
    }
    for size in [8, 16, 32, 64] {
        names.extend([format!("hypercube:{size}"), format!("butterfly:{size}")]);
    }
    for shape in ["2x3", "3x3", "4x4", "2x8", "3x5", "4x4x4", "2x3x4", "3x3x3"] {
        names.extend(["mesh", "torus", "wavefront"].map(|name| format!("{name}:{shape}")));
    }
    names
}

#[test]
fn every_variant_is_the_topology_of_its_name() {
    for name in names() {
        let known = KnownPattern::parse(&name).unwrap();
        let variants = known.variants();
        assert!(!variants.is_empty());
        for variant in &variants {
            assert_eq!(variant.events.len(), known.processes());
            let found = known.channels(variant).topology();
            let found = found.unwrap_or_else(|| panic!("{name}, {}: no name", variant.order));
            assert_eq!((found.layout, found.departs()), (known.layout(), 0), "{name}, {}", variant.order);
        }
    }
}

#[test]
fn what_is_sent_is_received() {
    for name in names() {
        for variant in KnownPattern::parse(&name).unwrap().variants() {
            let mut open: HashMap<(usize, usize), i64> = HashMap::new();
            for (process, events) in variant.events.iter().enumerate() {
                for &(role, peer) in events {
                    assert_ne!(process, peer, "{name}");
                    match role {
                        Role::Send => *open.entry((process, peer)).or_default() += 1,
                        _ => *open.entry((peer, process)).or_default() -= 1,
                    }
                }
            }
            assert!(open.values().all(|&open| open == 0), "{name}, {}", variant.order);
        }
    }
}

#[test]
fn what_is_no_pattern_is_refused() {
    let expected = [
        ("moebius:4", "there are: line"),
        ("ring", "ring:16"),
        ("ring:", "ring:16"),
        ("ring:4x4", "ring:16"),
        ("mesh:16", "mesh:4x4"),
        ("mesh:4x", "mesh:4x4"),
        ("mesh:0x4", "mesh:4x4"),
        ("mesh:-1x4", "mesh:4x4"),
        ("butterfly:12", "power of 2"),
        ("ring:1", "at least 2"),
        ("all-to-all:100000", "so many"),
        ("mesh:4294967296x4294967296", "so many"),
        ("hypercube:9223372036854775808", "so many"),
    ];
    for (name, reason) in expected {
        let error = KnownPattern::parse(name).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

/// An event of a process: a send, a receive, or something else.
type Done = Option<(Role, usize)>;

fn folded(processes: &[Vec<Done>]) -> Fold {
    let mut collector = Collector::default();
    for (process, events) in processes.iter().enumerate() {
        let stream = collector.stream(&format!("rank {process}")).unwrap();
        for event in events {
            let Some((role, peer)) = *event else {
                collector
                    .push_event(stream, &Event { role: Role::Collective, ..Event::named("other") })
                    .unwrap();
                continue;
            };
            let key = if role == Role::Send { "dest" } else { "src" };
            let fields = [Field { key, value: Value::Integer(peer as i64) }];
            collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(key) }).unwrap();
        }
    }
    fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
}

/// The other end of a message, by counting from the beginning.
fn partner(processes: &[Vec<Done>], process: usize, position: u64) -> Option<(usize, u64)> {
    let event = processes[process][position as usize]?;
    let before =
        processes[process][..position as usize].iter().filter(|&&other| other == Some(event)).count();
    let there = match event {
        (Role::Send, _) => (Role::Receive, process),
        _ => (Role::Send, process),
    };
    let mut ends = (0u64..).zip(&processes[event.1]).filter(|&(_, &other)| other == Some(there));
    ends.nth(before).map(|(at, _)| (event.1, at))
}

fn windows_of(fold: &Fold, variant: &[Vec<(Role, usize)>], edits: usize) -> Vec<Vec<SimilarPlace>> {
    let processes = ProcessStreams::of(fold);
    let mut numbers = RolesAndPeers::default();
    let mut all = Vec::new();
    for (process, events) in variant.iter().enumerate() {
        let symbols: Vec<Symbol> =
            events.iter().map(|&(role, peer)| numbers.symbol(role, Some(peer)).unwrap()).collect();
        let edits = edits.min(symbols.len() - 1);
        let like = LikePattern::new(&symbols, Likeness { edits, ngram: 2 }).unwrap();
        let stream = processes.stream(process).unwrap();
        assert_eq!(processes.process(stream), Some(process));
        let compared = processes.roles_and_peers(stream, &mut numbers).unwrap();
        let mut places = Vec::new();
        find_similar(fold, fold.stream(stream).root(), &compared, &like, &mut |place| {
            places.push(place);
            true
        });
        all.push(places);
    }
    all
}

/// Rounds of a pattern with other things between them are found, each as one occurrence with
/// the edits that were made.
#[test]
fn windows_that_exchange_messages_are_one_occurrence() {
    let mut rng = Rng::new(21);
    let mut mutated = 0;
    for case in 0..200 {
        let names = ["butterfly:8", "mesh:3x4", "ring:5", "all-to-all:6", "torus:3x3", "hypercube:16"];
        let known = KnownPattern::parse(names[case % names.len()]).unwrap();
        let variants = known.variants();
        let variant = &variants[rng.below(variants.len())].events;
        let rounds = rng.between(1, 6);
        let mut processes: Vec<Vec<Done>> = vec![Vec::new(); known.processes()];
        let mut expected = vec![0; rounds];
        for edits in &mut expected {
            for (process, events) in variant.iter().enumerate() {
                let stream = &mut processes[process];
                let begin = stream.len();
                stream.extend(events.iter().copied().map(Some));
                // One more event somewhere inside: messages stay matched.
                if events.len() > 3 && rng.one_in(8) {
                    stream.insert(begin + rng.between(1, events.len() - 1), None);
                    *edits += 1;
                    mutated += 1;
                }
                stream.extend(vec![None; rng.between(2, 4)]);
            }
        }
        let fold = folded(&processes);
        let windows = windows_of(&fold, variant, 1);
        let lengths: Vec<usize> = variant.iter().map(Vec::len).collect();
        let by_counting = |process: usize, position: u64| partner(&processes, process, position);
        let found = join_similar(&windows, &lengths, &by_counting, 0.2);
        let distances: Vec<u64> = found.iter().map(|occurrence| occurrence.distance).collect();
        let total: usize = lengths.iter().sum();
        let small: Vec<u64> =
            expected.iter().copied().filter(|&edits| edits as f64 / total as f64 <= 0.2).collect();
        assert_eq!(distances, small, "{known:?} {windows:?}");
        assert!(found.iter().all(|occurrence| occurrence.windows.len() == known.processes()));
        let messages = MessagesInOrder::of(&fold, &ProcessStreams::of(&fold)).unwrap();
        for (process, events) in processes.iter().enumerate() {
            for position in 0..events.len() as u64 {
                assert_eq!(messages.partner(process, position), by_counting(process, position));
            }
        }
        assert_eq!(join_similar(&windows, &lengths, &messages, 0.2), found);
    }
    assert!(mutated > 200, "{mutated}");
}

#[test]
fn a_process_without_a_window_counts_all_its_events() {
    let window = |start| SimilarPlace { start, end: start + 3, length: 4, distance: 1 };
    // Two processes that exchange everything, and a third one without a window.
    let windows = [vec![window(0), window(10)], vec![window(5)], vec![]];
    let partners = |process: usize, position: u64| match (process, position) {
        (0, 0..4) => Some((1, position + 5)),
        (1, 5..9) => Some((0, position - 5)),
        _ => None,
    };
    let found = join_similar(&windows, &[4, 4, 2], &partners, 0.4);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].distance, found[0].error, found[0].events()), (4, 0.4, 8));
    assert_eq!(found[0].windows, [(0, window(0)), (1, window(5))]);
    assert_eq!(join_similar(&windows, &[4, 4, 2], &partners, 0.39), []);
    // Of two windows of a process the one with more messages belongs to it.
    let windows = [vec![window(0), window(4)], vec![window(2)]];
    let partners = |process: usize, position: u64| (process == 0).then_some((1, position));
    let found = join_similar(&windows, &[4, 4], &partners, 1.0);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].windows, [(0, window(0)), (1, window(2))]);
    assert_eq!(found[1].windows, [(0, window(4))]);
}
