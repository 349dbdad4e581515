//! The nests of streams as trees whose nodes say which classes of streams they belong to, and
//! what each class has there.

use crate::fold::FoldBuilder;
use crate::questions::nest::{Nest, Node};
use crate::questions::patterns::FoldStream;
use crate::{Error, Fold, Result, RuleId, Symbol};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

/// A part of the nests of some classes.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    /// The classes, in order.
    pub(super) members: Vec<u32>,
    /// Of shapes and counts.
    pub(super) hash: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// An event: its symbol for each member.
    Event { shape: u32, symbols: Vec<Symbol> },
    /// A loop: how often it iterates for each member; the shapes in it, in order.
    Loop { times: Vec<u64>, shapes: Vec<u32>, body: Vec<TreeNode> },
}

impl TreeNode {
    pub(super) fn event(members: Vec<u32>, shape: u32, symbols: Vec<Symbol>) -> Self {
        let hash = FixedState::default().hash_one((shape, 0u64));
        Self { members, hash, kind: Kind::Event { shape, symbols } }
    }

    pub(super) fn repeated(members: Vec<u32>, times: Vec<u64>, body: Vec<TreeNode>) -> Self {
        let hashes: Vec<u64> = body.iter().map(|node| node.hash).collect();
        let (first, is_same) = (times.first(), times.iter().all(|count| Some(count) == times.first()));
        let hash = FixedState::default().hash_one((hashes, first, is_same));
        let mut shapes: Vec<u32> = body.iter().flat_map(TreeNode::shapes).copied().collect();
        shapes.sort_unstable();
        shapes.dedup();
        Self { members, hash, kind: Kind::Loop { times, shapes, body } }
    }

    fn shapes(&self) -> &[u32] {
        match &self.kind {
            Kind::Event { shape, .. } => std::slice::from_ref(shape),
            Kind::Loop { shapes, .. } => shapes,
        }
    }
}

/// Nodes of the nest of one class at most.
const MOST_NODES: usize = 1 << 22;

/// Events of streams that are folded together at most.
const MOST_EVENTS: u64 = 1 << 26;

/// A group of classes whose streams have the same shapes.
pub(super) struct Group<'a> {
    pub(super) fold: &'a Fold,
    pub(super) shapes: &'a [u32],
    /// The classes with the rule of each.
    pub(super) members: Vec<(u32, RuleId)>,
}

impl Group<'_> {
    /// The trees of the group: one, if the nests are the same, or if the streams can be folded
    /// together; else one for each kind of nest.
    pub(super) fn trees(&self, fold_stream: FoldStream<'_>) -> Result<Vec<Vec<TreeNode>>> {
        let mut kinds: Vec<(Nest, Vec<u32>, Vec<Vec<Symbol>>)> = Vec::new();
        for &(member, root) in &self.members {
            let nest = self.fold.nest(root, MOST_NODES);
            if nest.is_cut() {
                return Err(Error::limit("a nest is too long for a logical trace"));
            }
            let symbols = symbols_of(&nest);
            match kinds.iter_mut().find(|(known, ..)| self.is_same(known, &nest)) {
                Some((_, members, all)) => {
                    members.push(member);
                    all.push(symbols);
                }
                None => kinds.push((nest, vec![member], vec![symbols])),
            }
            if kinds.len() > 1 && self.events() <= MOST_EVENTS {
                return Ok(vec![self.folded_together(fold_stream)?]);
            }
        }
        let tree = |(nest, members, symbols): (Nest, Vec<u32>, Vec<Vec<Symbol>>)| {
            tree_of(&nest, &members, &|event| symbols.iter().map(|all| all[event]).collect(), self.shapes)
        };
        Ok(kinds.into_iter().map(tree).collect())
    }

    fn events(&self) -> u64 {
        self.members.iter().fold(0, |sum, &(_, root)| sum.saturating_add(self.fold.length(root)))
    }

    /// Whether two nests differ in nothing but the values of events.
    fn is_same(&self, one: &Nest, other: &Nest) -> bool {
        let is_equal = |(one, other): (&Node, &Node)| match (one, other) {
            (Node::Event(one), Node::Event(other)) => self.shapes[one.index()] == self.shapes[other.index()],
            _ => one == other,
        };
        one.nodes.len() == other.nodes.len() && one.nodes.iter().zip(&other.nodes).all(is_equal)
    }

    /// The nest of all streams side by side: its symbols are the tuples of theirs, so that its
    /// loops are those that all of them have.
    fn folded_together(&self, fold_stream: FoldStream<'_>) -> Result<Vec<TreeNode>> {
        let mut joint: Vec<u32> = Vec::new();
        // What each number stands for, for one member after the other.
        let mut tuples: Vec<Vec<(u32, Symbol)>> = Vec::new();
        for &(_, root) in &self.members {
            joint.resize(self.fold.length(root) as usize, 0);
            let mut numbers: HashMap<(u32, Symbol), u32, foldhash::fast::RandomState> = HashMap::default();
            let mut tuple = Vec::new();
            for (place, symbol) in joint.iter_mut().zip(self.fold.unfold(root)) {
                *place = *numbers.entry((*place, symbol)).or_insert_with(|| {
                    tuple.push((*place, symbol));
                    tuple.len() as u32 - 1
                });
            }
            tuples.push(tuple);
        }
        let stream: Vec<Symbol> = joint.into_iter().map(Symbol::from_raw).collect();
        let mut builder = FoldBuilder::default();
        let root = fold_stream(&stream, &mut builder)?;
        let nest = builder.finish().nest(root, MOST_NODES);
        if nest.is_cut() {
            return Err(Error::limit("a nest is too long for a logical trace"));
        }
        let events = symbols_of(&nest);
        let symbols = |event: usize| {
            let mut number = events[event].raw();
            let mut all: Vec<Symbol> = Vec::with_capacity(tuples.len());
            for tuple in tuples.iter().rev() {
                let (before, symbol) = tuple[number as usize];
                all.push(symbol);
                number = before;
            }
            all.reverse();
            all
        };
        let members: Vec<u32> = self.members.iter().map(|&(member, _)| member).collect();
        Ok(tree_of(&nest, &members, &symbols, self.shapes))
    }
}

/// The events of a nest in the order in which they are written.
fn symbols_of(nest: &Nest) -> Vec<Symbol> {
    let event = |node: &Node| match node {
        Node::Event(symbol) => Some(*symbol),
        _ => None,
    };
    nest.nodes.iter().filter_map(event).collect()
}

/// The tree of a nest; the n-th event has these symbols for the members.
fn tree_of(
    nest: &Nest,
    members: &[u32],
    symbols: &dyn Fn(usize) -> Vec<Symbol>,
    shapes: &[u32],
) -> Vec<TreeNode> {
    // The loops that are open: where each ends, how often it iterates, and what it is in.
    let mut open: Vec<(usize, u64, Vec<TreeNode>)> = Vec::new();
    let (mut body, mut events) = (Vec::new(), 0);
    for (at, node) in nest.nodes.iter().enumerate() {
        match *node {
            Node::Event(_) => {
                let symbols = symbols(events);
                events += 1;
                let shape = symbols.first().map_or(0, |symbol| shapes[symbol.index()]);
                body.push(TreeNode::event(members.to_vec(), shape, symbols));
            }
            Node::Loop { times, end, .. } => open.push((end, times, std::mem::take(&mut body))),
            Node::Near { .. } | Node::LeftOut(_) => {}
        }
        while let Some((_, times, around)) = open.pop_if(|(end, ..)| *end == at + 1) {
            let inner = std::mem::replace(&mut body, around);
            body.push(TreeNode::repeated(members.to_vec(), vec![times; members.len()], inner));
        }
    }
    body
}
