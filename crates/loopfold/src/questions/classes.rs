//! Classes: groups of streams with equal nests, each shown once.
//!
//! Equal rules are one rule, so streams are equal exactly when they have the same root.

use super::near::NearNode;
use super::nest::{Nest, Node};
use crate::fold::{Coverage, Depth, Fold, NestLength, measure_rules};
use crate::{Result, RuleId, StreamId};
use hashbrown::HashMap;

/// Streams with the same nest.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The rule of all of them.
    pub root: RuleId,
    /// Their indices, in order.
    pub streams: Vec<StreamId>,
    /// The events of one of them.
    pub events: u64,
    /// The events written in the nest, each loop body once.
    pub folded: u64,
    /// The events that lie in some loop.
    pub in_loops: u64,
    /// The events of the loop that spans most.
    pub in_main_loop: u64,
    /// How deep loops are nested.
    pub depth: u32,
}

impl Class {
    /// The same streams with their events written in another nest, such as one whose loops are
    /// [aligned](super::align) or have [exceptions](super::near). If
    /// that is cut, the numbers stay those of the exact nest.
    pub fn with_nest(&self, nest: &Nest) -> Self {
        if nest.is_cut() {
            return self.clone();
        }
        let all = 0..nest.nodes.len();
        let is_loop = |at: &usize| matches!(nest.nodes[*at], Node::Loop { .. } | Node::Near { .. });
        let loops = nest.children(all.clone()).filter(is_loop);
        let lengths: Vec<u64> = loops.map(|at| nest.node_length(at)).collect();
        let exceptions: u64 = nest.near.iter().map(NearNode::written).sum();
        Self {
            folded: nest.folded(all) + exceptions,
            in_loops: lengths.iter().sum(),
            in_main_loop: lengths.iter().max().copied().unwrap_or(0),
            ..self.clone()
        }
    }

    /// Events per event written.
    pub fn ratio(&self) -> f64 {
        share(self.events, self.folded)
    }

    /// The share of events that lie in some loop.
    pub fn covered(&self) -> f64 {
        share(self.in_loops, self.events)
    }

    /// The share of events in the loop that spans most.
    pub fn main_share(&self) -> f64 {
        share(self.in_main_loop, self.events)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The classes with the most events first, as they are numbered for users, from 1.
pub fn by_weight(mut classes: Vec<Class>) -> Vec<Class> {
    let weight = |class: &Class| u128::from(class.events) * class.streams.len() as u128;
    classes.sort_by_key(|class| std::cmp::Reverse(weight(class)));
    classes
}

impl Fold {
    /// The classes of a fold, in the order of their first streams.
    pub fn classes(&self) -> Result<Vec<Class>> {
        let folded = measure_rules(self, &NestLength)?;
        let covered = measure_rules(self, &Coverage)?;
        let depth = measure_rules(self, &Depth)?;
        let mut classes: Vec<Class> = Vec::new();
        let mut known: HashMap<RuleId, usize> = HashMap::new();
        for (id, stream) in self.stream_ids().zip(self.streams()) {
            let root = stream.root();
            let class = *known.entry(root).or_insert_with(|| {
                classes.push(Class {
                    root,
                    streams: Vec::new(),
                    events: self.length(root),
                    folded: folded[root.index()],
                    in_loops: covered[root.index()].in_loops,
                    in_main_loop: covered[root.index()].in_main_loop,
                    depth: depth[root.index()],
                });
                classes.len() - 1
            });
            classes[class].streams.push(id);
        }
        Ok(classes)
    }
}
