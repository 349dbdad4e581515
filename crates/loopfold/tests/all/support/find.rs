//! Sequences, their order and their context, on a fold and on the unfolded streams.

use crate::support::id;
use loopfold::questions::before::Order;
use loopfold::questions::context::{Context, ContextNode, ContextTree, Neighbour};
use loopfold::questions::find::Place;
use loopfold::questions::query::Query;
use loopfold::{Fold, Symbol};
use loopfold_testing::{Rng, oracles};
use std::collections::HashMap;

pub fn query_of(events: &[Vec<u32>]) -> Query {
    let symbols = |event: &Vec<u32>| event.iter().map(|&raw| Symbol::new(raw as usize).unwrap()).collect();
    Query::new(events.iter().map(symbols).collect()).unwrap()
}

pub fn places_in(stream: usize, starts: &[usize], length: usize) -> Vec<Place> {
    let place =
        |&start: &usize| Place { stream: id(stream), start: start as u64, end: (start + length - 1) as u64 };
    starts.iter().map(place).collect()
}

/// Compares all that can be asked with the unfolded streams.
pub fn check_find(fold: &Fold, streams: &[Vec<u32>], events: &[Vec<u32>], rng: &mut Rng) {
    let context = || format!("{events:?} in {streams:?} folded as {fold:?}");
    let found = fold.find(&query_of(events)).unwrap();
    let mut all = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let expected = places_in(index, &oracles::occurrences(stream, events), events.len());
        assert_eq!(found.count_in(id(index)), expected.len() as u64, "{}", context());
        assert_eq!(found.places_in(id(index)).collect::<Vec<_>>(), expected, "{}", context());
        assert_eq!(found.last_in(id(index)), expected.last().copied());
        let position = rng.between(0, stream.len() + 2) as u64;
        let from = expected.iter().find(|place| place.start >= position).copied();
        assert_eq!(found.first_from(id(index), position), from, "from {position}: {}", context());
        let before = expected.iter().filter(|place| place.end < position).count() as u64;
        assert_eq!(found.count_before(id(index), position), before, "before {position}: {}", context());
        all.extend(expected);
    }
    assert_eq!(found.count().unwrap(), all.len() as u64);
    assert_eq!(found.first(), all.first().copied());
    assert_eq!(found.places().collect::<Vec<_>>(), all);
    // The k-th from the beginning, and from there on.
    let k = rng.between(0, all.len() + 1);
    let mut places = found.places();
    assert_eq!(places.skip_to(k as u64), all.get(k).copied(), "the {k}th: {}", context());
    let more = rng.between(0, 3);
    assert_eq!(places.nth(more), all.get(k + 1 + more).copied(), "{more} after the {k}th: {}", context());
}

pub fn check_order(fold: &Fold, streams: &[Vec<u32>], query: &[Vec<u32>], other: &[Vec<u32>]) {
    let orders = fold.order(&query_of(query), &query_of(other)).unwrap();
    assert_eq!(orders.len(), streams.len());
    for (index, stream) in streams.iter().enumerate() {
        let expected = oracles::order(stream, query, other);
        let place = |start: usize, length: usize| places_in(index, &[start], length)[0];
        let count = |events| oracles::occurrences(stream, events).len() as u64;
        let expected = Order {
            stream: id(index),
            count: count(query),
            others: count(other),
            before: expected.before as u64,
            first: expected.first.map(|(a, b)| (place(a, query.len()), place(b, other.len()))),
            earlier: expected.earlier.map(|start| place(start, other.len())),
        };
        assert_eq!(orders[index], expected, "{query:?} before {other:?} in {stream:?}");
    }
}

/// A tree as lists of neighbours with their counts; also checks what holds for any tree.
pub fn lists(tree: &ContextTree, whole: u64, depth: usize) -> HashMap<Vec<Option<u32>>, u64> {
    fn walk(
        tree: &ContextTree,
        children: &[ContextNode],
        whole: u64,
        left: usize,
        path: &mut Vec<Option<u32>>,
        lists: &mut HashMap<Vec<Option<u32>>, u64>,
    ) {
        let is_edge = path.last() == Some(&None);
        assert_eq!(children.is_empty(), whole == 0 || left == 0 || is_edge, "after {path:?}");
        assert!(children.is_empty() || children.iter().map(|child| child.count).sum::<u64>() == whole);
        assert!(children.is_sorted_by_key(|child| (std::cmp::Reverse(child.count), child.neighbour)));
        for child in children {
            path.push(match child.neighbour {
                Neighbour::Event(symbol) => Some(symbol.raw()),
                Neighbour::Edge => None,
            });
            assert!(lists.insert(path.clone(), child.count).is_none(), "{path:?} twice");
            walk(tree, tree.beyond(child), child.count, left - 1, path, lists);
            path.pop();
        }
    }
    let mut found = HashMap::new();
    walk(tree, tree.nearest(), whole, depth, &mut Vec::new(), &mut found);
    found
}

pub fn check_context(fold: &Fold, streams: &[Vec<u32>], query: &[Vec<u32>], depth: usize) -> Context {
    let Ok(context) = fold.context(&query_of(query), depth) else { panic!("{query:?} in {streams:?}") };
    let count: usize = streams.iter().map(|stream| oracles::occurrences(stream, query).len()).sum();
    assert_eq!(context.count, count as u64);
    for (tree, after) in [(&context.after, true), (&context.before, false)] {
        let expected = oracles::contexts(streams, query, depth, after);
        let what = || format!("{query:?} to {depth}, after: {after}, in {streams:?}, {fold:?}");
        assert_eq!(lists(tree, context.count, depth), expected, "{}", what());
    }
    context
}
