//! The loop nest of a rule as a tree: events, and loops with their bodies.
//!
//! Rules that do not repeat are written in place. The tree is as long as the nest, so
//! it is cut at a limit: an archive can claim any length.

use super::near::{NearNode, Part};
use crate::fold::cursor::{Cursor, Move, Stretch, Visitor};
use crate::fold::{Fold, Item, Target};
use crate::{Result, RuleId, Symbol};
use std::convert::Infallible;

/// A part of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// An event.
    Event(Symbol),
    /// A loop; the nodes after it, up to `end`, are its body.
    Loop {
        /// How many iterations.
        times: u64,
        /// Events of one iteration.
        length: u64,
        /// The node after its body.
        end: usize,
    },
    /// A loop some of whose iterations differ; the nodes after it, up to `end`, are the body of the
    /// others.
    Near {
        /// Its place in [`Nest::near`].
        near: usize,
        /// The node after its body.
        end: usize,
    },
    /// So many events that are not shown, since the nest is too long.
    LeftOut(u64),
}

/// A loop nest, in the order in which it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nest {
    /// All nodes; the body of a loop follows it.
    pub nodes: Vec<Node>,
    /// The loops with exceptions; none in an exact nest.
    pub near: Vec<NearNode>,
}

/// A loop of a nest, with its rule and item.
pub(super) struct OpenedLoop {
    pub(super) node: usize,
    pub(super) rule: RuleId,
    pub(super) item: usize,
}

/// A step of a walk.
pub(super) enum Visit {
    /// A node, whose first event has this position in the stream.
    Node { at: usize, position: u64 },
    /// The end of an iteration of the loop at a node, or of several ones that are one exception.
    IterationEnd(IterationEnd),
}

/// The end of an iteration.
#[derive(Clone, Copy)]
pub(super) struct IterationEnd {
    pub(super) node: usize,
    /// Which one it is, from 0.
    pub(super) iteration: u64,
    /// How many iterations end here: those of an exception are not distinguished.
    pub(super) iterations: u64,
    /// The kind of the exception that it is, or that follows it.
    pub(super) kind: Option<usize>,
    /// How many events follow the iteration as an exception.
    pub(super) added: u64,
    pub(super) last: bool,
    pub(super) position: u64,
}

/// Loops deeper than this are not shown: no program nests so deep, but an archive can.
const DEEPEST: usize = 1000;

struct NestWriter<F> {
    nodes: Vec<Node>,
    limit: usize,
    opened_loop: F,
    /// The rules that are open, the outermost left out: the nodes of those that are loops.
    open: Vec<Option<usize>>,
    /// How many of them are.
    depth: usize,
    /// From where on the rest of the innermost rule is left out.
    left_out: Option<u64>,
}

impl<F> NestWriter<F> {
    /// Ends a loop behind the last node.
    fn close(&mut self, opened: Option<usize>) {
        let after = self.nodes.len();
        if let Some(Node::Loop { end, .. }) = opened.map(|node| &mut self.nodes[node]) {
            *end = after;
        }
    }
}

impl<F: FnMut(OpenedLoop)> Visitor<Item> for NestWriter<F> {
    type Error = Infallible;

    #[inline]
    fn stretch(
        &mut self,
        Stretch { target, times, length, position, .. }: Stretch<Item>,
        (rule, item): (RuleId, usize),
    ) -> std::result::Result<Move, Infallible> {
        if self.nodes.len() >= self.limit {
            self.left_out = Some(position);
            return Ok(Move::Leave);
        }
        if self.depth >= DEEPEST && matches!(target, Target::Rule(_)) {
            self.nodes.push(Node::LeftOut(times * length));
            return Ok(Move::Skip);
        }
        let looped = (times > 1).then_some(self.nodes.len());
        if let Some(node) = looped {
            (self.opened_loop)(OpenedLoop { node, rule, item });
            self.nodes.push(Node::Loop { times, length, end: 0 });
        }
        let Target::Symbol(symbol) = target else {
            self.open.push(looped);
            self.depth += usize::from(looped.is_some());
            return Ok(Move::Enter);
        };
        self.nodes.push(Node::Event(symbol));
        self.close(looped);
        Ok(Move::Skip)
    }

    fn end(&mut self, _: RuleId, _: u64, position: u64) -> std::result::Result<Move, Infallible> {
        if let Some(from) = self.left_out.take() {
            self.nodes.push(Node::LeftOut(position - from));
        }
        let ended = self.open.pop().flatten();
        self.depth -= usize::from(ended.is_some());
        self.close(ended);
        // The body is written once.
        Ok(Move::Skip)
    }
}

impl Fold {
    /// The loop nest of a rule, of about `limit` nodes at most.
    pub fn nest(&self, rule: RuleId, limit: usize) -> Nest {
        Nest::with_loops(self, rule, limit, |_| ())
    }
}

impl Nest {
    /// The nest of a rule; `opened_loop` is called with every loop as it is opened.
    pub(super) fn with_loops(
        fold: &Fold,
        rule: RuleId,
        limit: usize,
        opened_loop: impl FnMut(OpenedLoop),
    ) -> Self {
        let mut writer =
            NestWriter { nodes: Vec::new(), limit, opened_loop, open: Vec::new(), depth: 0, left_out: None };
        let Ok(()) = Cursor::new(fold, rule).visit(&mut writer);
        Self { nodes: writer.nodes, near: Vec::new() }
    }

    /// The events with loops written out, or with each repetition once if that would be more than
    /// `most` or the nest is cut.
    pub fn events(&self, most: u64) -> Vec<Symbol> {
        self.written_out(most).unwrap_or_else(|| {
            let event = |node: &Node| match node {
                Node::Event(symbol) => Some(*symbol),
                _ => None,
            };
            self.nodes.iter().filter_map(event).collect()
        })
    }

    /// The events, loops written out. Returns `None` if there are too many.
    fn written_out(&self, most: u64) -> Option<Vec<Symbol>> {
        if self.is_cut() || self.length(0..self.nodes.len()) > most {
            return None;
        }
        let mut events: Vec<Symbol> = Vec::new();
        // The loops that are open: where each ends, where its first iteration began, and how often
        // it comes again.
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            match *node {
                Node::Event(symbol) => events.push(symbol),
                Node::Loop { times, end, .. } => open.push((end, events.len(), times - 1)),
                Node::Near { .. } | Node::LeftOut(_) => return None,
            }
            while let Some((_, began, again)) = open.pop_if(|(end, ..)| *end == at + 1) {
                let ended = events.len();
                (0..again).for_each(|_| events.extend_from_within(began..ended));
            }
        }
        Some(events)
    }

    /// The same nest of a stream that is a part of another: what it says of positions is in the
    /// whole stream, in which the part begins at `first`.
    #[must_use]
    pub fn at_position(mut self, first: u64) -> Self {
        for near in &mut self.near {
            near.start = near.start.saturating_add(first);
            near.end = near.end.saturating_add(first);
            near.kinds.iter_mut().for_each(|kind| kind.first = kind.first.saturating_add(first));
        }
        self
    }

    /// True when the nest was too long to be shown whole.
    pub fn is_cut(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::LeftOut(_)))
    }

    /// How many events the nodes in a range unfold to.
    pub fn length(&self, range: std::ops::Range<usize>) -> u64 {
        self.children(range).map(|at| self.node_length(at)).sum()
    }

    /// How many events a node unfolds to: in the mean, if loops in it vary.
    pub fn node_length(&self, at: usize) -> u64 {
        match self.nodes[at] {
            Node::Event(_) => 1,
            Node::Loop { times, length, .. } => times * length,
            Node::Near { near, .. } => self.near[near].events / self.near[near].occurrences.max(1),
            Node::LeftOut(events) => events,
        }
    }

    /// How many events are written in a range, each loop body once.
    pub fn folded(&self, range: std::ops::Range<usize>) -> u64 {
        let written = |node: &Node| match node {
            Node::Event(_) => 1,
            Node::Loop { .. } | Node::Near { .. } => 0,
            Node::LeftOut(events) => *events,
        };
        self.nodes[range].iter().map(written).sum()
    }

    /// The nodes of a range that do not lie in a loop of that range.
    pub fn children(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let mut next = range.start;
        std::iter::from_fn(move || {
            let at = next;
            if at >= range.end {
                return None;
            }
            next = self.after(at);
            Some(at)
        })
    }

    /// The node after this one and its body.
    pub fn after(&self, at: usize) -> usize {
        match self.nodes[at] {
            Node::Loop { end, .. } | Node::Near { end, .. } => end,
            _ => at + 1,
        }
    }

    /// Walks through the stream that the nest unfolds to, loop by loop; returns its length.
    /// Costs a step for each occurrence of each node.
    pub(super) fn walk(&self, visit: impl FnMut(Visit) -> Result<()>) -> Result<u64> {
        let occurrences = vec![0; self.near.len()];
        Walk { nest: self, visit, open: Vec::new(), occurrences, position: 0 }.whole()
    }

    /// For each node how often it comes; for a loop, how many iterations. `None` when 64 bits
    /// cannot count that.
    pub(super) fn repetitions(&self) -> Vec<Option<u64>> {
        let mut open: Vec<(usize, Option<u64>)> = Vec::new();
        let repetition = |(at, node): (usize, &Node)| {
            while open.pop_if(|(end, _)| *end == at).is_some() {}
            let outer = open.last().map_or(Some(1), |&(_, repeated)| repeated);
            let (end, repeated) = match *node {
                Node::Loop { times, end, .. } => (end, outer.and_then(|outer| outer.checked_mul(times))),
                Node::Near { near, end } => (end, Some(self.near[near].all_iterations)),
                Node::Event(_) | Node::LeftOut(_) => return outer,
            };
            open.push((end, repeated));
            repeated
        };
        self.nodes.iter().enumerate().map(repetition).collect()
    }

    /// The body of the loop at a node.
    pub fn body(&self, at: usize) -> std::ops::Range<usize> {
        at + 1..self.after(at)
    }
}

/// A loop that a walk is in.
struct Open<'a> {
    node: usize,
    iteration: u64,
    /// The parts that are not walked yet; how many iterations are left of the first.
    parts: &'a [Part],
    left: u64,
}

struct Walk<'a, F> {
    nest: &'a Nest,
    visit: F,
    /// Outermost first.
    open: Vec<Open<'a>>,
    /// How many occurrences of each loop with exceptions were begun.
    occurrences: Vec<u64>,
    position: u64,
}

impl<'a, F: FnMut(Visit) -> Result<()>> Walk<'a, F> {
    fn whole(mut self) -> Result<u64> {
        let mut at = 0;
        loop {
            while self.open.last().is_some_and(|open| self.nest.after(open.node) == at) {
                match self.end_iteration()? {
                    Some(again) => at = again,
                    None => drop(self.open.pop()),
                }
            }
            let Some(node) = self.nest.nodes.get(at) else { return Ok(self.position) };
            (self.visit)(Visit::Node { at, position: self.position })?;
            match *node {
                Node::Event(_) => self.position += 1,
                Node::LeftOut(events) => self.position += events,
                Node::Loop { times, .. } => self.begin(at, times, &[]),
                Node::Near { near, .. } => {
                    let parts = self.nest.near[near].parts(self.occurrences[near]);
                    self.occurrences[near] += 1;
                    if let [Part::Equal(times), rest @ ..] = parts {
                        self.begin(at, *times, rest);
                    }
                }
            }
            at += 1;
        }
    }

    fn begin(&mut self, node: usize, left: u64, parts: &'a [Part]) {
        self.open.push(Open { node, iteration: 0, parts, left });
    }

    /// Ends an iteration of the innermost loop. Returns the first node of its body, unless it was
    /// the last one.
    fn end_iteration(&mut self) -> Result<Option<usize>> {
        let Some(open) = self.open.last_mut() else { return Ok(None) };
        let (node, iteration) = (open.node, open.iteration);
        open.left -= 1;
        open.iteration += 1;
        let last = open.left == 0 && open.parts.is_empty();
        let mut end = IterationEnd {
            node,
            iteration,
            iterations: 1,
            kind: None,
            added: 0,
            last,
            position: self.position,
        };
        let exception = match open.parts {
            [Part::Exception(length, kind), Part::Equal(times), rest @ ..] if open.left == 0 => {
                (open.left, open.parts) = (*times, rest);
                Some((*length, *kind))
            }
            _ => None,
        };
        if let (Some((length, kind)), Node::Near { near, .. }) = (exception, self.nest.nodes[node]) {
            self.position += length;
            let iterations = self.nest.near[near].kinds[kind].iterations;
            if iterations > 0 {
                open.iteration += iterations;
                (self.visit)(Visit::IterationEnd(end))?;
                end = IterationEnd { iteration: iteration + 1, iterations, ..end };
            }
            let added = if iterations == 0 { length } else { 0 };
            end = IterationEnd { kind: Some(kind), added, position: self.position, ..end };
        }
        (self.visit)(Visit::IterationEnd(end))?;
        Ok((!last).then_some(node + 1))
    }
}
