//! Stretches of a stream by positions, in its loop-collapsed form: which symbol is at a
//! position and in which iterations of the loops around it, and the pieces of a stretch, with
//! the loops that it cuts through taken apart.
//!
//! A look-up costs O(log² n). A stretch costs that for each of its pieces; whole iterations of
//! a loop are one piece.

use super::{LoopCollapsed, NONE};
use crate::Symbol;
use crate::questions::nest::{Nest, Node};

/// What is at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::questions) struct Located {
    /// The symbol, by its index.
    pub(in crate::questions) index: usize,
    /// The loops around it, outermost first.
    pub(in crate::questions) around: Vec<LoopInstance>,
}

/// One execution of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::questions) struct LoopInstance {
    /// The loop, by its index among the loops.
    pub(in crate::questions) found: usize,
    /// The position of its first event.
    pub(in crate::questions) start: u64,
    /// The iteration that was located, from 0.
    pub(in crate::questions) iteration: u64,
}

/// A piece of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::questions) enum Piece {
    /// A symbol, by its index.
    Symbol(usize),
    /// Whole iterations of a loop, two or more.
    Loop {
        /// The loop, by its index among the loops.
        found: usize,
        /// How many iterations.
        times: u64,
        /// The position of the first.
        start: u64,
    },
}

impl LoopCollapsed {
    /// How many events one iteration of a loop is, with the loops inside it written out.
    pub(in crate::questions) fn body_events(&self, found: usize) -> u64 {
        self.inner[found].body
    }

    /// The position of the first event of a loop.
    pub(in crate::questions) fn loop_first(&self, found: usize) -> u64 {
        self.inner[found].first
    }

    /// How often a loop iterates in all, those around it counted.
    pub(in crate::questions) fn loop_times(&self, found: usize) -> u64 {
        self.inner[found].times
    }

    /// The loop that is directly around a loop.
    pub(in crate::questions) fn outer(&self, found: usize) -> Option<usize> {
        let outer = self.inner[found].outer;
        (outer != NONE).then_some(outer as usize)
    }

    /// The loops directly inside a loop, in order.
    pub(in crate::questions) fn loops_inside(&self, found: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.loops[found].end;
        let after = self.loops[found + 1..].iter().take_while(move |inside| inside.start < end).count();
        (found + 1..found + 1 + after).filter(move |&inside| self.outer(inside) == Some(found))
    }

    /// What is at a position. Returns `None` past the end.
    pub(in crate::questions) fn locate(&self, position: u64) -> Option<Located> {
        let index = self.index_at(position)?;
        Some(Located { index, around: self.instances(position, index) })
    }

    /// The loops around what is at a position, by its index too, outermost first.
    pub(in crate::questions) fn instances(&self, position: u64, index: usize) -> Vec<LoopInstance> {
        let instance = |found| LoopInstance { found, start: self.inner[found].first, iteration: 0 };
        let mut around: Vec<LoopInstance> = self.around(index).map(instance).collect();
        around.reverse();
        let mut shift = 0;
        for instance in &mut around {
            instance.start += shift;
            let (since, body) = (position - instance.start, self.inner[instance.found].body);
            if since >= body {
                instance.iteration = since / body;
                shift += instance.iteration * body;
            }
        }
        around
    }

    /// The index of the symbol before an event, by its position and index. Returns `None` at the
    /// begin of the stream.
    pub(in crate::questions) fn index_before(&self, position: u64, index: usize) -> Option<usize> {
        match self.started(index) == self.started_before(index) {
            // Where no loop begins, it is the symbol that is written before.
            true => index.checked_sub(1),
            false => self.index_at(position.checked_sub(1)?),
        }
    }

    /// The index of the symbol behind an event, by its position and index. Returns `None` at the
    /// end of the stream.
    pub(in crate::questions) fn index_behind(&self, position: u64, index: usize) -> Option<usize> {
        let inner = self.around(index).next();
        match inner.is_some_and(|inner| self.loops[inner].end as usize == index + 1) {
            true => self.index_at(position + 1),
            // Where no loop ends, it is the symbol that is written behind.
            false => Some(index + 1).filter(|&behind| behind < self.symbols.len()),
        }
    }

    /// The symbols from a position to before another one, if no loop begins or ends between.
    pub(in crate::questions) fn flat_range(&self, start: u64, end: u64) -> Option<std::ops::Range<usize>> {
        let (first, last) = (self.index_at(start)?, self.index_at(end.checked_sub(1)?)?);
        self.is_flat(start..end, first, last).then_some(first..last + 1)
    }

    /// Whether no loop begins in a stretch that is not empty and none is repeated, by its first and
    /// last symbol: then it is what is written between these.
    pub(in crate::questions) fn is_flat(
        &self,
        stretch: std::ops::Range<u64>,
        first: usize,
        last: usize,
    ) -> bool {
        let events = stretch.end - stretch.start;
        let is_next = last.checked_sub(first).is_some_and(|between| between as u64 == events - 1);
        is_next && self.started(first) == self.started(last)
    }

    /// The pieces of the stretch from a position to before another one.
    pub(in crate::questions) fn pieces(&self, start: u64, end: u64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let Some(located) = self.locate(at) else { break };
            let whole = located.around.iter().find_map(|instance| {
                let body = self.body_events(instance.found);
                let is_at_border = at == instance.start + instance.iteration * body;
                let left = self.loops[instance.found].times - instance.iteration;
                let times = left.min((end - at) / body);
                (is_at_border && times >= 2).then_some((instance.found, times, body))
            });
            match whole {
                Some((found, times, body)) => {
                    pieces.push(Piece::Loop { found, times, start: at });
                    at += times * body;
                }
                None => {
                    // Up to the next loop, or the end of this one, there is nothing to take apart.
                    let next = self.loops.get(self.started(located.index));
                    let next = next.map_or(self.symbols.len(), |found| found.start as usize);
                    let inner = located.around.last().map(|inner| self.loops[inner.found].end as usize);
                    let room = usize::try_from(end - at).unwrap_or(usize::MAX);
                    let behind = next.min(inner.unwrap_or(next)).min(located.index.saturating_add(room));
                    at += (behind - located.index) as u64;
                    pieces.extend((located.index..behind).map(Piece::Symbol));
                }
            }
        }
        pieces
    }

    /// The indices of the symbols in pieces, those of loops once, in order.
    pub(in crate::questions) fn indices<'p>(
        &'p self,
        pieces: &'p [Piece],
    ) -> impl Iterator<Item = usize> + 'p {
        pieces.iter().flat_map(|piece| match *piece {
            Piece::Symbol(index) => index..index + 1,
            Piece::Loop { found, .. } => self.loops[found].start as usize..self.loops[found].end as usize,
        })
    }

    /// The symbols in pieces, those of loops once.
    pub(in crate::questions) fn symbols_of(&self, pieces: &[Piece]) -> Vec<Symbol> {
        self.indices(pieces).map(|index| self.symbols[index]).collect()
    }

    /// The stretch from a position to before another one as a nest, cut behind this many
    /// symbols; how many events the rest is, is in the last node.
    pub fn nest_between(&self, start: u64, end: u64, longest: usize) -> Nest {
        let mut nodes: Vec<Node> = Vec::new();
        let mut room = longest;
        let mut at = start;
        for piece in self.pieces(start, end) {
            if room == 0 {
                break;
            }
            match piece {
                Piece::Symbol(index) => {
                    nodes.push(Node::Event(self.symbols[index]));
                    (room, at) = (room - 1, at + 1);
                }
                Piece::Loop { found, times, .. } => {
                    let (first, behind) = (self.loops[found].start as usize, self.loops[found].end as usize);
                    if behind - first > room {
                        break;
                    }
                    let inside = self.nest(first, behind);
                    let (begin, body) = (nodes.len() + 1, self.body_events(found));
                    let behind_it = begin + inside.nodes.len();
                    nodes.push(Node::Loop { times, length: body, end: behind_it });
                    nodes.extend(inside.nodes.into_iter().map(|node| moved(node, begin)));
                    (room, at) = (room - (behind - first), at + times * body);
                }
            }
        }
        if at < end {
            nodes.push(Node::LeftOut(end - at));
        }
        Nest { nodes, near: Vec::new() }
    }
}

/// A node of a nest that is put behind so many others.
fn moved(node: Node, by: usize) -> Node {
    match node {
        Node::Loop { times, length, end } => Node::Loop { times, length, end: end + by },
        other => other,
    }
}
