//! Chooses where paths end, such that what is left of a graph has no cycle and few enough paths.
//!
//! An edge is cut if a depth-first search finds that it leads to a block that is still open: so
//! every cycle is cut, also those of irreducible loops, which have no single entry. A block is cut,
//! which means that whatever path enters it ends there, if it calls. Behind an edge that takes no
//! instrumentation a path must begin, whichever edge led there: so all edges to its target are
//! cut. Last, blocks are cut from the exits upwards if more than a limit of paths begin at them.
//!
//! Takes O(blocks + edges), unless a function has more than 2³¹ paths in all: then a 16th of the
//! limit is tried.

use crate::graph::{BlockId, Graph};
use crate::numbering::MAX_PATHS;

/// More paths than this that begin at one block are cut in the middle.
pub const PATHS_PER_START: u64 = 1 << 20;

/// What the end of a block does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A path may go on behind the block.
    Open,
    /// A path ends in the block, which calls.
    Call,
    /// A path ends in the block, and its edges take no instrumentation, as those of a computed jump.
    Fixed,
}

/// Where paths end: in blocks and on edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// For each block, whether any path that enters it ends in it.
    pub(crate) blocks: Vec<bool>,
    /// For each edge, whether a path ends on it and another one begins behind it.
    pub(crate) edges: Vec<bool>,
}

impl Cuts {
    /// The cuts that the endings of blocks and the cycles of the graph require, and those that keep
    /// the number of paths from any block below `limit`. Blocks without an ending are open.
    pub fn choose(graph: &Graph, endings: &[Ending], limit: u64) -> Self {
        let (required, order) = Self::required(graph, endings);
        let mut limit = limit.clamp(1, MAX_PATHS.into());
        loop {
            let mut cuts = required.clone();
            if cuts.limit_paths(graph, &order, limit) <= MAX_PATHS.into() || limit == 1 {
                return cuts;
            }
            limit = (limit / 16).max(1);
        }
    }

    /// Cuts behind every block: a path for each block, with its number.
    pub fn everywhere(graph: &Graph) -> Self {
        Self { blocks: vec![true; graph.len()], edges: vec![true; graph.edge_count()] }
    }

    /// Whether all paths that enter a block end in it.
    pub fn ends_in(&self, block: BlockId) -> bool {
        self.blocks[block.index()]
    }

    /// Whether a path ends on an edge, if not in the block that it leaves.
    pub fn ends_on(&self, edge: usize) -> bool {
        self.edges[edge]
    }

    /// The cuts that are necessary whatever the limit, and the blocks, each behind all that it
    /// leads to by edges that are not cut.
    fn required(graph: &Graph, endings: &[Ending]) -> (Self, Vec<BlockId>) {
        let ending = |block: BlockId| endings.get(block.index()).copied().unwrap_or(Ending::Open);
        let (mut edges, order) = search(graph);
        let mut begins = vec![false; graph.len()];
        for edge in graph.edges().filter(|edge| ending(edge.from) == Ending::Fixed) {
            begins[edge.to.index()] = true;
        }
        for edge in graph.edges() {
            edges[edge.index] |= begins[edge.to.index()];
        }
        let mut blocks: Vec<bool> = graph.blocks().map(|block| ending(block) != Ending::Open).collect();
        let mut reached = vec![false; graph.len()];
        order.iter().for_each(|block| reached[block.index()] = true);
        blocks.iter_mut().zip(reached).for_each(|(cut, reached)| *cut |= !reached);
        (Self { blocks, edges }, order)
    }

    /// Cuts blocks where more than `limit` paths begin, and returns the number of paths.
    fn limit_paths(&mut self, graph: &Graph, order: &[BlockId], limit: u64) -> u64 {
        let mut counts = vec![1u64; graph.len()];
        for &block in order {
            if self.blocks[block.index()] {
                continue;
            }
            let count = self.continuations(graph, block, &counts);
            match count <= limit {
                true => counts[block.index()] = count,
                false => self.blocks[block.index()] = true,
            }
        }
        self.starts(graph).into_iter().fold(0, |sum, start| sum.saturating_add(counts[start.index()]))
    }

    /// The number of paths that begin at a block that is not cut, given that of its successors.
    fn continuations(&self, graph: &Graph, block: BlockId, counts: &[u64]) -> u64 {
        let (cut, open): (Vec<_>, Vec<_>) = graph.edges_of(block).partition(|edge| self.edges[edge.index]);
        let ends_here = !cut.is_empty() || open.is_empty();
        open.iter().fold(ends_here.into(), |sum: u64, edge| sum.saturating_add(counts[edge.to.index()]))
    }

    /// The blocks at which a path can begin, in the order of their numbers.
    pub(crate) fn starts(&self, graph: &Graph) -> Vec<BlockId> {
        let mut begins = vec![false; graph.len()];
        begins[BlockId::ENTRY.index()] = true;
        for edge in graph.edges().filter(|edge| self.blocks[edge.from.index()] || self.edges[edge.index]) {
            begins[edge.to.index()] = true;
        }
        graph.blocks().filter(|block| begins[block.index()]).collect()
    }
}

/// Whether each edge leads to an open block of a depth-first search from the entry, and the blocks
/// in the order in which the search leaves them.
fn search(graph: &Graph) -> (Vec<bool>, Vec<BlockId>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut back = vec![false; graph.edge_count()];
    let mut states = vec![State::New; graph.len()];
    let mut order = Vec::new();
    let mut stack = vec![(BlockId::ENTRY, graph.edge_range(BlockId::ENTRY))];
    states[BlockId::ENTRY.index()] = State::Open;
    while let Some((block, edges)) = stack.last_mut() {
        let Some(edge) = edges.next() else {
            states[block.index()] = State::Done;
            order.push(*block);
            stack.pop();
            continue;
        };
        let target = graph.target(edge);
        match states[target.index()] {
            State::New => {
                states[target.index()] = State::Open;
                stack.push((target, graph.edge_range(target)));
            }
            State::Open => back[edge] = true,
            State::Done => {}
        }
    }
    (back, order)
}
