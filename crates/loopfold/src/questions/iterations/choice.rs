//! Which loop of a nest is meant: by number, by an event in it, or the one that covers most.
//!
//! Cost: linear in the nest.

use crate::questions::names::symbols_called;
use crate::questions::nest::{Nest, Node};
use crate::trace::Alphabet;
use crate::{Result, Symbol};

/// A loop of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopPlace {
    /// Its node.
    pub node: usize,
    /// Its number, from 1, in the order of the nest.
    pub number: usize,
    /// How many loops are around it.
    pub depth: usize,
}

/// The loop that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedLoop {
    /// The outermost one that covers the most events.
    Main,
    /// The one with this number.
    Number(usize),
    /// The innermost one around the first of these events, which are in order.
    Around(Vec<Symbol>),
}

impl WantedLoop {
    /// A loop as users name it: by its number, or by an event as
    /// [`EventPattern`](crate::trace::EventPattern) says. It is around nothing if there is no
    /// such event.
    pub fn parse(text: &str, alphabet: &Alphabet) -> Result<Self> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let events = symbols_called(alphabet, &[text])?;
        Ok(Self::Around(events.into_iter().flatten().collect()))
    }

    /// Finds it in a nest.
    pub fn find(&self, nest: &Nest) -> Option<LoopPlace> {
        let all = loop_places(nest);
        match self {
            Self::Main => {
                // Of several that cover as much, the outermost one comes first.
                let outermost = all.iter().filter(|place| place.depth == 0).rev();
                outermost.max_by_key(|place| nest.node_length(place.node)).copied()
            }
            Self::Number(number) => all.get(number.checked_sub(1)?).copied(),
            Self::Around(events) => innermost_around(nest, &all, events),
        }
    }
}

/// The innermost loop around the first of the events that lies in a loop.
fn innermost_around(nest: &Nest, all: &[LoopPlace], events: &[Symbol]) -> Option<LoopPlace> {
    let is_wanted = |node: &Node| matches!(node, Node::Event(symbol) if events.binary_search(symbol).is_ok());
    let in_loop = |at: usize| {
        all[..all.partition_point(|place| place.node < at)]
            .iter()
            .rev()
            .find(|place| nest.body(place.node).contains(&at))
    };
    let wanted = nest.nodes.iter().enumerate().filter(|(_, node)| is_wanted(node));
    wanted.into_iter().find_map(|(at, _)| in_loop(at)).copied()
}

/// All loops of a nest, in its order.
pub fn loop_places(nest: &Nest) -> Vec<LoopPlace> {
    let mut open: Vec<usize> = Vec::new();
    let mut found: Vec<LoopPlace> = Vec::new();
    for (node, kind) in nest.nodes.iter().enumerate() {
        while open.pop_if(|end| *end <= node).is_some() {}
        if let Node::Loop { end, .. } | Node::Near { end, .. } = *kind {
            found.push(LoopPlace { node, number: found.len() + 1, depth: open.len() });
            open.push(end);
        }
    }
    found
}
