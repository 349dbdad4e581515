//! Segments and samples against a walk through every iteration.

use crate::support::{fold_of, folders, odd_fold, small_streams};
use loopfold::questions::nest::{Nest, Node};
use loopfold::{ErrorKind, Fold, StreamId};
use loopfold_testing::{Rng, nest, segments};

/// The nest as a tree.
fn tree(nest: &Nest, range: std::ops::Range<usize>) -> Vec<nest::Node> {
    let node = |at: usize| match nest.nodes[at] {
        Node::Event(symbol) => nest::Node::Event(symbol.raw()),
        Node::Loop { times, .. } => nest::Node::Loop(tree(nest, nest.body(at)), times),
        Node::Near { .. } | Node::LeftOut(_) => panic!("the nest is exact and whole"),
    };
    nest.children(range).map(node).collect()
}

/// The trees of all streams.
fn trees(fold: &Fold) -> Vec<Vec<nest::Node>> {
    let of = |stream: StreamId| {
        let nest = fold.nest(fold.stream(stream).root(), usize::MAX);
        tree(&nest, 0..nest.nodes.len())
    };
    fold.stream_ids().map(of).collect()
}

fn check_segments(fold: &Fold) {
    let mut expected: Vec<(usize, segments::Segment)> = Vec::new();
    for (stream, tree) in trees(fold).iter().enumerate() {
        for (events, start, depth, times) in segments::segments(tree) {
            match expected.iter_mut().find(|(_, known)| known.0 == events) {
                Some((_, known)) => known.3 += times,
                None => expected.push((stream, (events, start, depth, times))),
            }
        }
    }
    let found = fold.segments().unwrap();
    let given: Vec<_> = found
        .iter()
        .map(|it| {
            let events: Vec<u32> = it.events.iter().map(|symbol| symbol.raw()).collect();
            (it.stream.index(), (events, it.start, it.depth, it.times))
        })
        .collect();
    assert_eq!(given, expected);
    let weights: u64 = found.iter().map(|segment| segment.weight()).sum();
    assert_eq!(Some(weights), fold.events());
}

fn check_samples(fold: &Fold) {
    let trees = trees(fold);
    for kept in [1, 2, 3, 7] {
        let stretches = fold.sample(kept).unwrap();
        let mut given: Vec<Vec<u64>> = trees.iter().map(|tree| vec![0; events(tree)]).collect();
        for stretch in &stretches {
            let range = stretch.start as usize..(stretch.start + stretch.length) as usize;
            given[stretch.stream.index()][range].iter_mut().for_each(|weight| *weight += stretch.weight);
        }
        let is_joined = stretches.windows(2).all(|pair| {
            let ends = (pair[0].stream, pair[0].start + pair[0].length, pair[0].weight);
            ends != (pair[1].stream, pair[1].start, pair[1].weight)
        });
        assert!(is_joined, "stretches are as long as they can be");
        let roots: Vec<_> = fold.streams().iter().map(|stream| stream.root()).collect();
        for (index, tree) in trees.iter().enumerate() {
            let equal = roots.iter().filter(|&&root| root == roots[index]).count() as u64;
            let is_first = roots.iter().position(|&root| root == roots[index]) == Some(index);
            let expected = segments::sample_weights(tree, kept).into_iter();
            let expected: Vec<u64> =
                expected.map(|weight| if is_first { weight * equal } else { 0 }).collect();
            assert_eq!(given[index], expected, "the first {kept}");
        }
        assert_eq!(given.iter().flatten().sum::<u64>(), fold.events().unwrap());
    }
}

fn events(tree: &[nest::Node]) -> usize {
    nest::Nest(tree.to_vec()).unfold().len()
}

#[test]
fn equal_a_walk_through_every_iteration() {
    let mut rng = Rng::new(19);
    let folders = folders();
    for round in 0..2000 {
        let fold = fold_of(&small_streams(&mut rng, 120), &*folders[round % folders.len()]);
        check_segments(&fold);
        check_samples(&fold);
    }
    for _ in 0..1000 {
        let (fold, _) = odd_fold(&mut rng, 300);
        check_segments(&fold);
        check_samples(&fold);
    }
}

#[test]
fn a_sample_keeps_at_least_one_iteration() {
    let fold = fold_of(&[vec![1, 2, 1, 2]], &*folders()[0]);
    assert_eq!(fold.sample(0).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(fold.sample(u64::MAX).unwrap().len(), 1);
}

#[test]
fn nothing_has_no_segments() {
    let fold = Fold::default();
    assert!(fold.segments().unwrap().is_empty());
    assert!(fold.sample(3).unwrap().is_empty());
}
