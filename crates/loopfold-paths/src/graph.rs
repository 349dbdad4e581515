//! The control-flow graph of a function: blocks with the number of each of their successors.
//!
//! Block 0 is the entry. A block has each successor once, however many cases of a switch lead
//! there. Edges are numbered by block, then in the order of the successors; memory is O(blocks +
//! edges) in two vectors.

use crate::{Error, Result};
use std::ops::Range;

/// The number of a block in its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(u32);

impl BlockId {
    /// The entry of a function.
    pub const ENTRY: Self = Self(0);

    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn of(index: usize) -> Self {
        Self(index as u32)
    }
}

/// An edge of a graph: its number, where it comes from and where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The number of the edge in its graph.
    pub index: usize,
    /// The block that it leaves.
    pub from: BlockId,
    /// The block to which it leads.
    pub to: BlockId,
}

/// A control-flow graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Where the edges of each block begin, and their number at the end.
    first_edges: Vec<u32>,
    targets: Vec<BlockId>,
}

impl Graph {
    /// The graph with these successors of each block. Fails if a successor does not exist or is
    /// there twice, if there is no block, or if there are more than 2³² − 1 edges.
    pub fn new(successors: &[Vec<usize>]) -> Result<Self> {
        let mut graph = Self { first_edges: vec![0], targets: Vec::new() };
        let mut last_source = vec![usize::MAX; successors.len()];
        for (from, targets) in successors.iter().enumerate() {
            for &to in targets {
                let source = last_source.get_mut(to).ok_or(Error::new("a successor does not exist"))?;
                if std::mem::replace(source, from) == from {
                    return Err(Error::new("a successor is there twice"));
                }
                graph.targets.push(BlockId::of(to));
            }
            graph.end_block()?;
        }
        if graph.len() == 0 { Err(Error::new("a function has no blocks")) } else { Ok(graph) }
    }

    fn end_block(&mut self) -> Result<()> {
        let edges = u32::try_from(self.targets.len()).ok().filter(|_| self.len() < u32::MAX as usize);
        self.first_edges.push(edges.ok_or(Error::new("a function is too large"))?);
        Ok(())
    }

    /// The number of blocks.
    #[expect(clippy::len_without_is_empty, reason = "there is always an entry")]
    pub fn len(&self) -> usize {
        self.first_edges.len() - 1
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.targets.len()
    }

    /// All blocks.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = BlockId> + use<> {
        (0..self.len()).map(BlockId::of)
    }

    /// The edges that leave a block.
    pub fn edges_of(&self, block: BlockId) -> impl DoubleEndedIterator<Item = Edge> {
        self.edge_range(block).map(move |index| Edge { index, from: block, to: self.targets[index] })
    }

    /// All edges, by the block that they leave.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        self.blocks().flat_map(|block| self.edges_of(block))
    }

    /// The numbers of the edges that leave a block.
    pub(crate) fn edge_range(&self, block: BlockId) -> Range<usize> {
        self.first_edges[block.index()] as usize..self.first_edges[block.index() + 1] as usize
    }

    pub(crate) fn target(&self, edge: usize) -> BlockId {
        self.targets[edge]
    }
}
