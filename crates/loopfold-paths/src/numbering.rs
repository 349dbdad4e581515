//! Numbers all paths of a graph with cuts (Ball and Larus), and decodes a number into its blocks.
//!
//! A path begins at the entry or behind a cut, and ends in a block that is cut or has no
//! successors, or on an edge that is cut. The numbers of the paths that begin at one block are
//! consecutive, and starts follow each other in the order of their blocks. From a block on, number
//! 0 is to end on an edge that is cut, if there is one (where the next path begins shows which);
//! then come the paths along each edge that is not cut, in the order of the edges. So the value of
//! an edge is the sum of what comes before it, and the number of a path is that of its first block
//! and the values of its edges.
//!
//! Numbering takes O(blocks + edges); decoding O(length · degree).

use crate::cuts::Cuts;
use crate::graph::{BlockId, Edge, Graph};
use crate::{Error, Result};

/// The most paths that a function may have.
pub const MAX_PATHS: u32 = 0x7fff_ffff;

/// A graph, its cuts, and the numbers of its paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbering {
    graph: Graph,
    cuts: Cuts,
    /// What an edge adds to the number of a path; 0 if paths do not pass it.
    values: Vec<u32>,
    /// Where paths begin, with the first number of each, in ascending order.
    starts: Vec<(BlockId, u32)>,
    paths: u32,
}

impl Numbering {
    /// Numbers the paths. Fails if the cuts leave a cycle, or more paths than [`MAX_PATHS`].
    pub fn new(graph: Graph, cuts: Cuts) -> Result<Self> {
        let mut counts = vec![0u32; graph.len()];
        let mut values = vec![0u32; graph.edge_count()];
        for block in backwards(&graph, &cuts)? {
            counts[block.index()] = number_block(&graph, &cuts, block, &counts, &mut values)?;
        }
        let (mut starts, mut paths) = (Vec::new(), 0u32);
        for start in cuts.starts(&graph) {
            starts.push((start, paths));
            paths = add(paths, counts[start.index()])?;
        }
        Ok(Self { graph, cuts, values, starts, paths })
    }

    /// The graph that is numbered.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where paths end.
    pub fn cuts(&self) -> &Cuts {
        &self.cuts
    }

    /// The number of paths; they are numbered from 0.
    pub fn paths(&self) -> u32 {
        self.paths
    }

    /// Whether a path may go on along an edge.
    pub fn continues_on(&self, edge: &Edge) -> bool {
        passes(&self.cuts, edge)
    }

    /// What an edge adds to the number of a path that goes on along it.
    pub fn value(&self, edge: &Edge) -> u32 {
        self.values[edge.index]
    }

    /// The blocks at which paths begin, with the first number of each.
    pub fn starts(&self) -> &[(BlockId, u32)] {
        &self.starts
    }

    /// The blocks of the path with this number. Returns `None` if there is none.
    pub fn path(&self, number: u32) -> Option<Path<'_>> {
        let after = self.starts.partition_point(|&(_, first)| first <= number);
        let &(start, first) = self.starts[..after].last().filter(|_| number < self.paths)?;
        Some(Path { numbering: self, next: Some(start), left: number - first })
    }

    /// The edge along which a path goes on from a block, if `left` is what is left of its number.
    fn next_edge(&self, block: BlockId, left: u32) -> Option<usize> {
        if self.cuts.blocks[block.index()] {
            return None;
        }
        let mut open = self.graph.edge_range(block).rev().filter(|&edge| !self.cuts.edges[edge]);
        open.find(|&edge| self.values[edge] <= left)
    }
}

/// The blocks of a path, in the order in which they are executed.
#[derive(Debug, Clone)]
pub struct Path<'a> {
    numbering: &'a Numbering,
    next: Option<BlockId>,
    left: u32,
}

impl Iterator for Path<'_> {
    type Item = BlockId;

    fn next(&mut self) -> Option<BlockId> {
        let block = self.next?;
        let edge = self.numbering.next_edge(block, self.left);
        if let Some(edge) = edge {
            self.left -= self.numbering.values[edge];
        }
        self.next = edge.map(|edge| self.numbering.graph.target(edge));
        Some(block)
    }
}

fn passes(cuts: &Cuts, edge: &Edge) -> bool {
    !cuts.blocks[edge.from.index()] && !cuts.edges[edge.index]
}

fn add(one: u32, other: u32) -> Result<u32> {
    let sum = one.checked_add(other).filter(|&sum| sum <= MAX_PATHS);
    sum.ok_or(Error::new("a function has too many paths"))
}

/// Gives values to the edges of a block, and returns the number of paths that begin there.
fn number_block(
    graph: &Graph,
    cuts: &Cuts,
    block: BlockId,
    counts: &[u32],
    values: &mut [u32],
) -> Result<u32> {
    let ends_on_edge = graph.edges_of(block).any(|edge| cuts.edges[edge.index]);
    let mut count = u32::from(ends_on_edge);
    for edge in graph.edges_of(block).filter(|edge| passes(cuts, edge)) {
        values[edge.index] = count;
        count = add(count, counts[edge.to.index()])?;
    }
    Ok(count.max(1))
}

/// All blocks, each behind all to which paths go on from it.
fn backwards(graph: &Graph, cuts: &Cuts) -> Result<Vec<BlockId>> {
    let mut missing = vec![0u32; graph.len()];
    for edge in graph.edges().filter(|edge| passes(cuts, edge)) {
        missing[edge.to.index()] += 1;
    }
    let mut order: Vec<BlockId> = graph.blocks().filter(|block| missing[block.index()] == 0).collect();
    let mut done = 0;
    while let Some(&block) = order.get(done) {
        done += 1;
        for edge in graph.edges_of(block).filter(|edge| passes(cuts, edge)) {
            missing[edge.to.index()] -= 1;
            if missing[edge.to.index()] == 0 {
                order.push(edge.to);
            }
        }
    }
    if order.len() < graph.len() {
        return Err(Error::new("paths of a function have a cycle"));
    }
    order.reverse();
    Ok(order)
}
