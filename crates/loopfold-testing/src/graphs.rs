//! Random control-flow graphs, walks through them, and their paths by enumeration.

use crate::Rng;

/// A control-flow graph: the successors of each block. Block 0 is the entry; all blocks are
/// reached from it.
pub type Graph = Vec<Vec<usize>>;

/// A graph of up to `most` blocks: a tree, so that all are reached, and more edges of all kinds:
/// forwards, backwards, into the middle of loops, and to the block itself.
pub fn random(rng: &mut Rng, most: usize) -> Graph {
    let blocks = rng.between(1, most);
    let mut graph = vec![Vec::new(); blocks];
    for to in 1..blocks {
        let near = rng.below(to.min(3)) + 1;
        let from = if rng.one_in(4) { rng.below(to) } else { to - near };
        graph[from].push(to);
    }
    for _ in 0..rng.below(blocks + 1) {
        let (from, to) = (rng.below(blocks), rng.below(blocks));
        // Half of them forwards, as in programs; an entry has no predecessors in LLVM.
        let (from, to) = if rng.one_in(2) { (from.min(to), from.max(to)) } else { (from, to) };
        if to > 0 && !graph[from].contains(&to) {
            graph[from].push(to);
        }
    }
    graph
}

/// A ladder of `rungs` two-way branches, one behind the other: 2^rungs paths.
pub fn ladder(rungs: usize) -> Graph {
    let mut graph = Graph::new();
    for rung in 0..rungs {
        let at = rung * 3;
        graph.extend([vec![at + 1, at + 2], vec![at + 3], vec![at + 3]]);
    }
    graph.push(Vec::new());
    graph
}

/// Whether one block can be reached from another, by edges that are kept.
pub fn reaches(graph: &Graph, from: usize, to: usize, keeps: &dyn Fn(usize, usize) -> bool) -> bool {
    let mut seen = vec![false; graph.len()];
    let mut open = vec![from];
    while let Some(block) = open.pop() {
        for &next in graph[block].iter().filter(|&&next| keeps(block, next)) {
            if next == to {
                return true;
            }
            if !std::mem::replace(&mut seen[next], true) {
                open.push(next);
            }
        }
    }
    false
}

/// Where paths end, as functions of a block and of an edge.
#[expect(missing_debug_implementations, reason = "it has functions")]
pub struct Ends<'a> {
    /// Whether all paths that enter a block end in it.
    pub block: &'a dyn Fn(usize) -> bool,
    /// Whether a path ends on the edge between two blocks.
    pub edge: &'a dyn Fn(usize, usize) -> bool,
}

impl Ends<'_> {
    /// Whether the path of a walk ends between two blocks.
    fn between(&self, from: usize, to: usize) -> bool {
        (self.block)(from) || (self.edge)(from, to)
    }
}

/// All paths: from the entry, or from behind an end, to an end.
pub fn paths(graph: &Graph, ends: &Ends<'_>) -> Vec<Vec<usize>> {
    let begins = |block: usize| {
        block == 0 || (0..graph.len()).any(|from| graph[from].contains(&block) && ends.between(from, block))
    };
    let mut paths = Vec::new();
    for start in (0..graph.len()).filter(|&block| begins(block)) {
        extend(graph, ends, &mut vec![start], &mut paths);
    }
    paths
}

fn extend(graph: &Graph, ends: &Ends<'_>, path: &mut Vec<usize>, paths: &mut Vec<Vec<usize>>) {
    let last = path[path.len() - 1];
    let next = &graph[last];
    if next.is_empty() || next.iter().any(|&next| ends.between(last, next)) {
        paths.push(path.clone());
    }
    for &next in next.iter().filter(|&&next| !ends.between(last, next)) {
        path.push(next);
        extend(graph, ends, path, paths);
        path.pop();
    }
}

/// A walk from the entry, to a block without successors or of `most` blocks.
pub fn walk(rng: &mut Rng, graph: &Graph, most: usize) -> Vec<usize> {
    let mut walk = vec![0];
    while walk.len() < most {
        let next = &graph[walk[walk.len() - 1]];
        if next.is_empty() {
            break;
        }
        walk.push(next[rng.below(next.len())]);
    }
    walk
}

/// A walk in pieces: wherever a path ends.
pub fn pieces(walk: &[usize], ends: &Ends<'_>) -> Vec<Vec<usize>> {
    walk.chunk_by(|&from, &to| !ends.between(from, to)).map(<[usize]>::to_vec).collect()
}
