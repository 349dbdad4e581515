//! The largest loops against the written nest, loop by loop.

use crate::support::{fold_of, folders, small_streams};
use loopfold::Fold;
use loopfold::questions::largest::largest_loops;
use loopfold::questions::nest::Node;
use loopfold_testing::{Rng, oracles};
use std::collections::BTreeMap;

/// The least rotation of the word that a body is a power of.
fn word(body: &[u32]) -> Vec<u32> {
    let root = (1..=body.len()).find(|&length| {
        body.len().is_multiple_of(length) && body.chunks(length).all(|chunk| chunk == &body[..length])
    });
    let root = &body[..root.unwrap()];
    assert!(oracles::is_primitive(root));
    let rotation = |by: usize| [&root[by..], &root[..by]].concat();
    (0..root.len()).map(rotation).min().unwrap()
}

/// Length, covered events, executions, fewest and most iterations, first position.
type Entry = (u64, u64, u64, (u64, u64), u64);

fn one_by_one(fold: &Fold, stream: &[u32]) -> Vec<Entry> {
    let nest = fold.nest(fold.streams()[0].root(), usize::MAX);
    let (mut at, mut entries) = (0, BTreeMap::<Vec<u32>, Entry>::new());
    for node in nest.children(0..nest.nodes.len()) {
        let covered = nest.node_length(node);
        if let Node::Loop { length, .. } = nest.nodes[node] {
            let word = word(&stream[at as usize..(at + length) as usize]);
            let (length, times) = (word.len() as u64, covered / word.len() as u64);
            let entry = entries.entry(word).or_insert((length, 0, 0, (times, times), at));
            entry.1 += covered;
            entry.2 += 1;
            entry.3 = (entry.3.0.min(times), entry.3.1.max(times));
        }
        at += covered;
    }
    let mut entries: Vec<Entry> = entries.into_values().collect();
    entries.sort_by_key(|entry| (std::cmp::Reverse(entry.1), entry.4));
    entries
}

#[test]
fn equal_those_of_the_written_nest() {
    let mut rng = Rng::new(5);
    let (folders, mut several) = (folders(), 0);
    let mut compare = |stream: &[u32], folder: usize| {
        let fold = fold_of(&[stream.to_vec()], &*folders[folder % folders.len()]);
        let found = largest_loops(&fold, fold.streams()[0].root()).unwrap();
        let found: Vec<Entry> = found
            .iter()
            .map(|found| (found.length, found.covered, found.executions, found.iterations, found.first))
            .collect();
        assert_eq!(found, one_by_one(&fold, stream), "{stream:?}");
        several += usize::from(found.iter().any(|entry| entry.2 > 1 && entry.3.0 < entry.3.1));
    };
    for round in 0..3000 {
        compare(&small_streams(&mut rng, 120)[0], round);
    }
    assert!(several > 200, "{several}");
}
