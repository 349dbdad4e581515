//! Topologies are named for what they are, with what they depart by, and chance is not.

use loopfold::mpi::{Channels, Direction, Layout, Topology};
use loopfold_testing::Rng;

fn channels(processes: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Channels {
    let mut channels = Channels::new(processes);
    pairs.into_iter().for_each(|(from, to)| channels.add(from, to));
    channels
}

fn both_ways(pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    pairs.iter().flat_map(|&(from, to)| [(from, to), (to, from)]).collect()
}

/// Neighbours in a grid of any shape, upwards, by coordinates.
fn grid(shape: &[usize], wraps: bool) -> Vec<(usize, usize)> {
    let processes: usize = shape.iter().product();
    let coordinates = |mut process: usize| -> Vec<usize> {
        let mut all: Vec<usize> = shape
            .iter()
            .rev()
            .map(|length| {
                let one = process % length;
                process /= length;
                one
            })
            .collect();
        all.reverse();
        all
    };
    let number =
        |place: &[usize]| place.iter().zip(shape).fold(0, |number, (one, length)| number * length + one);
    let mut pairs = Vec::new();
    for process in 0..processes {
        for dimension in 0..shape.len() {
            let mut place = coordinates(process);
            place[dimension] += 1;
            if place[dimension] == shape[dimension] {
                if !wraps || shape[dimension] < 3 {
                    continue;
                }
                place[dimension] = 0;
            }
            pairs.push((process, number(&place)));
        }
    }
    pairs
}

fn tree(processes: usize, parent: fn(usize) -> usize) -> Vec<(usize, usize)> {
    (1..processes).map(|child| (parent(child), child)).collect()
}

/// Channels, whether they come in stages, and the name and shape of what they are.
type Known = (Vec<(usize, usize)>, bool, Layout, Vec<usize>);

/// Every topology that can be distinguished from the others with so many processes.
fn known(processes: usize) -> Vec<Known> {
    let mut known = vec![
        (both_ways(grid(&[processes], false)), false, Layout::Line, vec![processes]),
        (grid(&[processes], true), false, Layout::Ring, vec![processes]),
        (both_ways((1..processes).map(|ray| (0, ray)).collect()), false, Layout::Star, vec![processes]),
    ];
    let all = (0..processes).flat_map(|from| (0..processes).map(move |to| (from, to)));
    known.push((all.collect(), false, Layout::AllToAll, vec![processes]));
    for rows in 2..=processes / 2 {
        let shape = vec![rows, processes / rows];
        if !processes.is_multiple_of(rows) {
            continue;
        }
        known.push((both_ways(grid(&shape, false)), false, Layout::Mesh, shape.clone()));
        known.push((grid(&shape, false), false, Layout::Wavefront, shape.clone()));
        if shape[0].max(shape[1]) > 2 {
            known.push((both_ways(grid(&shape, true)), false, Layout::Torus, shape));
        }
    }
    if processes == 64 {
        known.push((both_ways(grid(&[4, 4, 4], false)), false, Layout::Mesh, vec![4, 4, 4]));
        known.push((both_ways(grid(&[4, 4, 4], true)), false, Layout::Torus, vec![4, 4, 4]));
        known.push((grid(&[2, 4, 8], false), false, Layout::Wavefront, vec![2, 4, 8]));
    }
    if processes > 4 {
        known.push((tree(processes, |child| (child - 1) / 2), false, Layout::BinaryTree, vec![processes]));
        let binomial = tree(processes, |child| child & (child - 1));
        known.push((binomial, false, Layout::BinomialTree, vec![processes]));
    }
    if processes.is_power_of_two() && processes > 4 {
        let bits = processes.trailing_zeros() as usize;
        let flip = |process: usize| (0..bits).map(move |bit| (process, process ^ 1 << bit));
        let cube: Vec<(usize, usize)> = (0..processes).flat_map(flip).collect();
        known.push((cube.clone(), false, Layout::Hypercube, vec![2; bits]));
        known.push((cube, true, Layout::Butterfly, vec![2; bits]));
    }
    known
}

const SIZES: [usize; 12] = [4, 5, 6, 8, 9, 12, 16, 27, 32, 64, 128, 256];

#[test]
fn every_topology_has_its_name() {
    for processes in SIZES {
        for (pairs, in_stages, layout, shape) in known(processes) {
            let found = channels(processes, pairs).in_stages(in_stages).topology();
            let found = found.unwrap_or_else(|| panic!("{layout:?} of {processes} has no name"));
            assert_eq!(found.departs(), 0, "{layout:?} {shape:?}: {found}");
            let is_same = (found.layout, &found.shape) == (layout, &shape);
            assert!(is_same || are_the_same(&found, layout, &shape), "{layout:?} {shape:?}: {found}");
        }
    }
}

/// Small ones can be the same thing under two names.
fn are_the_same(found: &Topology, layout: Layout, shape: &[usize]) -> bool {
    match (found.layout, layout) {
        // All edges of a cube of 8 are those of its grid.
        (Layout::Hypercube | Layout::Butterfly, Layout::Mesh | Layout::Torus) => {
            shape.iter().all(|&length| length == 2)
        }
        _ => false,
    }
}

#[test]
fn what_departs_a_little_keeps_its_name_and_says_by_how_much() {
    let mut rng = Rng::new(5);
    for processes in [16, 27, 64, 256] {
        for (mut pairs, in_stages, layout, shape) in known(processes) {
            if layout == Layout::AllToAll {
                continue;
            }
            let lost = pairs.remove(rng.below(pairs.len()));
            let mut added = lost;
            while pairs.contains(&added) || added == lost || added.0 == added.1 {
                added = (rng.below(processes), rng.below(processes));
            }
            pairs.push(added);
            let found = channels(processes, pairs).in_stages(in_stages).topology().unwrap();
            assert_eq!((found.layout, &found.shape), (layout, &shape), "{found}");
            assert_eq!((found.missing, found.extra), (1, 1), "{found}");
            assert!(found.to_string().contains("1 more"), "{found}");
        }
    }
}

#[test]
fn chance_has_no_name() {
    let mut rng = Rng::new(6);
    for processes in [8, 9, 16, 30, 64, 100, 256] {
        for _ in 0..20 {
            let pairs = (0..3 * processes).map(|_| (rng.below(processes), rng.below(processes)));
            let found = channels(processes, pairs.collect::<Vec<_>>()).topology();
            assert!(found.is_none(), "{processes}: {}", found.unwrap());
        }
    }
    assert_eq!(Channels::new(8).topology(), None);
    assert_eq!(Channels::new(1).topology(), None);
    assert_eq!(Channels::new(0).topology(), None);
}

#[test]
fn directions_and_roots_are_told() {
    let downwards: Vec<(usize, usize)> = grid(&[4, 4], false).iter().map(|&(from, to)| (to, from)).collect();
    let text =
        |processes, pairs: Vec<(usize, usize)>| channels(processes, pairs).topology().unwrap().to_string();
    assert_eq!(text(16, grid(&[4, 4], false)), "wavefront over 4 by 4, from north-west to south-east");
    assert_eq!(text(16, downwards), "wavefront over 4 by 4, from south-east to north-west");
    assert_eq!(text(16, both_ways(grid(&[4, 4], false))), "2-D mesh of 4 by 4");
    assert_eq!(text(6, both_ways(grid(&[2, 3], true))), "2-D torus of 2 by 3");
    assert_eq!(
        text(7, (0..7).filter(|&ray| ray != 3).map(|ray| (ray, 3)).collect()),
        "star of 7 around 3, to it"
    );
    let shifted = tree(15, |child| (child - 1) / 2)
        .iter()
        .map(|&(from, to)| ((to + 2) % 15, (from + 2) % 15))
        .collect();
    assert_eq!(text(15, shifted), "binary tree of 15 from 2, up");
    let ring = channels(5, grid(&[5], true)).topology().unwrap();
    assert_eq!(
        (ring.to_string().as_str(), &ring.directions[..]),
        ("ring of 5, upwards", &[Direction::Up][..])
    );
}
