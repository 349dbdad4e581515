//! Numbers of paths against enumeration of all paths, on random graphs.

use loopfold_paths::{Cuts, Ending, Graph, MAX_PATHS, Numbering, PATHS_PER_START};
use loopfold_testing::Rng;
use loopfold_testing::graphs::{self, Ends};
use std::collections::{BTreeMap, HashSet};

fn random_endings(rng: &mut Rng, blocks: usize) -> Vec<Ending> {
    let (calls, jumps) = (rng.between(2, 12), rng.between(4, 20));
    let ending = |rng: &mut Rng| match (rng.one_in(calls), rng.one_in(jumps)) {
        (true, _) => Ending::Call,
        (_, true) => Ending::Fixed,
        _ => Ending::Open,
    };
    (0..blocks).map(|_| ending(rng)).collect()
}

/// The blocks and the edges at which paths end, by number of block.
fn ends_of(numbering: &Numbering) -> (Vec<bool>, HashSet<(usize, usize)>) {
    let (graph, cuts) = (numbering.graph(), numbering.cuts());
    let edges = graph.edges().filter(|edge| cuts.ends_on(edge.index));
    let edges = edges.map(|edge| (edge.from.index(), edge.to.index())).collect();
    (graph.blocks().map(|block| cuts.ends_in(block)).collect(), edges)
}

fn decoded(numbering: &Numbering, number: u32) -> Vec<usize> {
    numbering.path(number).unwrap().map(|block| block.index()).collect()
}

/// The number of a path as an instrumented program computes it.
fn number_along(numbering: &Numbering, path: &[usize]) -> u32 {
    let &(_, first) = numbering.starts().iter().find(|(block, _)| block.index() == path[0]).unwrap();
    let edges: BTreeMap<_, _> =
        numbering.graph().edges().map(|edge| ((edge.from.index(), edge.to.index()), edge)).collect();
    let values = path.windows(2).map(|pair| numbering.value(&edges[&(pair[0], pair[1])]));
    first + values.sum::<u32>()
}

/// Compares all numbers with all paths, and random walks with their pieces.
fn check(rng: &mut Rng, graph: &graphs::Graph, numbering: &Numbering) {
    let (blocks, edges) = ends_of(numbering);
    let ends = Ends { block: &|block| blocks[block], edge: &|from, to| edges.contains(&(from, to)) };
    let all = graphs::paths(graph, &ends);
    assert_eq!(numbering.paths() as usize, all.len(), "{graph:?}");
    let by_number: Vec<Vec<usize>> =
        (0..numbering.paths()).map(|number| decoded(numbering, number)).collect();
    let distinct: HashSet<&Vec<usize>> = by_number.iter().collect();
    assert_eq!(distinct, all.iter().collect::<HashSet<_>>(), "{graph:?}");
    for (number, path) in by_number.iter().enumerate() {
        assert_eq!(number_along(numbering, path) as usize, number, "{graph:?}");
    }
    assert!(numbering.path(numbering.paths()).is_none() && numbering.path(u32::MAX).is_none());
    for _ in 0..5 {
        let walk = graphs::walk(rng, graph, 60);
        let pieces = graphs::pieces(&walk, &ends);
        // A walk that stops in the middle has no number for its last piece.
        let whole = pieces.iter().filter(|piece| distinct.contains(piece)).count();
        assert!(whole + 1 >= pieces.len(), "{graph:?} {walk:?}");
        let back = pieces[..pieces.len() - 1].iter().flat_map(|piece| {
            let number = number_along(numbering, piece);
            decoded(numbering, number)
        });
        assert_eq!(back.collect::<Vec<_>>(), walk[..walk.len() - pieces[pieces.len() - 1].len()]);
    }
}

/// Checks that nothing is cut without need, and all that needs it.
fn check_cuts(graph: &graphs::Graph, endings: &[Ending], numbering: &Numbering) {
    let (blocks, edges) = ends_of(numbering);
    let fixed =
        |to: usize| (0..graph.len()).any(|from| endings[from] == Ending::Fixed && graph[from].contains(&to));
    for from in 0..graph.len() {
        assert_eq!(blocks[from], endings[from] != Ending::Open, "{graph:?}");
        for &to in &graph[from] {
            let on_cycle = from == to || graphs::reaches(graph, to, from, &|_, _| true);
            let cut = edges.contains(&(from, to));
            assert!(!fixed(to) || cut, "{graph:?}");
            assert!(!cut || fixed(to) || on_cycle, "{graph:?}");
        }
        let open = |from: usize, to: usize| !edges.contains(&(from, to));
        assert!(!graphs::reaches(graph, from, from, &open), "{graph:?}");
    }
}

#[test]
fn numbers_are_those_of_all_paths() {
    let mut rng = Rng::new(17);
    for _ in 0..4000 {
        let graph = graphs::random(&mut rng, 12);
        let endings = random_endings(&mut rng, graph.len());
        let plain = Graph::new(&graph).unwrap();
        let cuts = Cuts::choose(&plain, &endings, PATHS_PER_START);
        let numbering = Numbering::new(plain, cuts).unwrap();
        check_cuts(&graph, &endings, &numbering);
        check(&mut rng, &graph, &numbering);
    }
}

#[test]
fn a_limit_cuts_in_the_middle() {
    let mut rng = Rng::new(18);
    for _ in 0..2000 {
        let graph = graphs::random(&mut rng, 14);
        let limit = rng.between(1, 6) as u64;
        let plain = Graph::new(&graph).unwrap();
        let cuts = Cuts::choose(&plain, &[], limit);
        let numbering = Numbering::new(plain, cuts).unwrap();
        check(&mut rng, &graph, &numbering);
        let firsts: Vec<u32> = numbering.starts().iter().map(|start| start.1).collect();
        let ends = firsts[1..].iter().copied().chain([numbering.paths()]);
        assert!(firsts.iter().zip(ends).all(|(first, end)| u64::from(end - first) <= limit));
    }
}

#[test]
fn many_branches_are_numbered_in_time() {
    for (rungs, limit) in [(20, PATHS_PER_START), (64, PATHS_PER_START), (3000, u64::MAX)] {
        let graph = Graph::new(&graphs::ladder(rungs)).unwrap();
        let cuts = Cuts::choose(&graph, &[], limit);
        let numbering = Numbering::new(graph, cuts).unwrap();
        assert!((1 << 20..=MAX_PATHS).contains(&numbering.paths()));
        let last = numbering.path(numbering.paths() - 1).unwrap();
        assert_eq!(last.last().unwrap().index(), rungs * 3);
    }
}

#[test]
fn blocks_are_paths_if_everything_is_cut() {
    let mut rng = Rng::new(19);
    for _ in 0..200 {
        let graph = graphs::random(&mut rng, 12);
        let plain = Graph::new(&graph).unwrap();
        let cuts = Cuts::everywhere(&plain);
        let numbering = Numbering::new(plain, cuts).unwrap();
        assert_eq!(numbering.paths() as usize, graph.len());
        assert!((0..graph.len()).all(|block| decoded(&numbering, block as u32) == [block]));
    }
}

#[test]
fn graphs_must_be_graphs() {
    assert!(Graph::new(&[]).is_err());
    assert!(Graph::new(&[vec![1]]).is_err());
    assert!(Graph::new(&[vec![1, 1], vec![]]).is_err());
}
