//! Which iterations the events of a stream belong to, and which events count.
//!
//! Rules number the iterations of exact loops. Users know other numbers: those of the loops that
//! they are shown, which may have exceptions. So whoever shows loops passes the nest of each
//! stream, and the iterations of its outermost loops are numbered as that nest numbers them.
//!
//! Cost: 16 bytes for each iteration, none for exact loops in nests without exceptions; O(1) an
//! event, since positions only grow.

use crate::questions::iterations::visit_iterations;
use crate::questions::nest::{Nest, Node};
use crate::trace::Times;
use crate::{Error, Result};
use std::ops::Range;
use std::rc::Rc;

/// Iterations that are listed: an archive can declare any number.
const MOST_LISTED: usize = 1 << 26;

/// What of a fold is asked about, and how iterations are numbered.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// For each stream the numbers of its iterations. Where there are none, iterations are those
    /// of the rules.
    pub numbers: Vec<Rc<IterationNumbers>>,
    /// For each stream the positions whose waits count, in order, if not all do. All messages are
    /// matched nevertheless.
    pub parts: Option<Vec<Vec<Range<u64>>>>,
    /// For each stream whether its process is asked about, if not all are: its waits count, and
    /// those of others for it in [`Waits::pairs`](super::Waits::pairs) and
    /// [`Waits::ranks`](super::Waits::ranks).
    pub streams: Option<Vec<bool>>,
}

/// The iterations of the outermost loops of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationNumbers {
    /// In the order of the stream.
    loops: Vec<NumberedLoop>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberedLoop {
    events: Range<u64>,
    /// How many iterations it has.
    times: u64,
    /// The events of its shortest iteration.
    length: u64,
    /// Where iterations begin, and their numbers; empty if all are as long.
    listed: Vec<(u64, u64)>,
}

impl IterationNumbers {
    /// Those of a nest.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if there are too many iterations.
    pub fn of(nest: &Nest) -> Result<Self> {
        let mut loops: Vec<NumberedLoop> = Vec::new();
        let mut position = 0;
        let mut by_node = Vec::new();
        for node in nest.children(0..nest.nodes.len()) {
            let events = position..position + nest.node_length(node);
            position = events.end;
            let (times, length) = match nest.nodes[node] {
                Node::Loop { times, length, .. } => (times, length),
                Node::Near { near, .. } => (nest.near[near].iterations.1, nest.near[near].lengths.0),
                Node::Event(_) | Node::LeftOut(_) => continue,
            };
            by_node.push(node);
            loops.push(NumberedLoop { events, times, length, listed: Vec::new() });
        }
        if !nest.near.is_empty() {
            let mut listed = 0;
            visit_iterations(nest, &Times::default(), |iteration| {
                if !iteration.outer.is_empty() {
                    return Ok(());
                }
                listed += 1;
                if listed > MOST_LISTED {
                    return Err(Error::limit("too many iterations to number them"));
                }
                if let Ok(index) = by_node.binary_search(&iteration.node) {
                    loops[index].listed.push((iteration.events.start, iteration.iteration));
                }
                Ok(())
            })?;
        }
        Ok(Self { loops })
    }
}

/// Where an event is among numbered iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    /// Which loop of the stream.
    pub(super) index: usize,
    pub(super) times: u64,
    pub(super) length: u64,
    pub(super) iteration: u64,
}

/// Looks up iterations at positions that never decrease.
#[derive(Debug, Default)]
pub(super) struct NumberCursor {
    numbers: Option<Rc<IterationNumbers>>,
    index: usize,
    listed: usize,
}

impl NumberCursor {
    pub(super) fn new(numbers: Option<Rc<IterationNumbers>>) -> Self {
        Self { numbers, index: 0, listed: 0 }
    }

    /// The iteration at a position. Returns `None` outside of numbered loops.
    pub(super) fn at(&mut self, position: u64) -> Option<Numbered> {
        let loops = &self.numbers.as_ref()?.loops;
        while loops.get(self.index).is_some_and(|numbered| numbered.events.end <= position) {
            self.index += 1;
            self.listed = 0;
        }
        let found = loops.get(self.index).filter(|numbered| numbered.events.start <= position)?;
        let next = |at: usize| found.listed.get(at + 1);
        while next(self.listed).is_some_and(|&(start, _)| start <= position) {
            self.listed += 1;
        }
        let iteration = match found.listed.get(self.listed) {
            Some(&(_, number)) => number,
            None => (position - found.events.start) / found.length.max(1),
        };
        Some(Numbered { index: self.index, times: found.times, length: found.length, iteration })
    }
}

/// Which positions of a stream count, asked at positions that never decrease.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// `None` if all do.
    parts: Option<Vec<Range<u64>>>,
    index: usize,
}

impl Counted {
    pub(super) fn new(parts: Option<Vec<Range<u64>>>) -> Self {
        Self { parts, index: 0 }
    }

    pub(super) fn contains(&mut self, position: u64) -> bool {
        let Some(parts) = &self.parts else { return true };
        while parts.get(self.index).is_some_and(|part| part.end <= position) {
            self.index += 1;
        }
        parts.get(self.index).is_some_and(|part| part.contains(&position))
    }
}
