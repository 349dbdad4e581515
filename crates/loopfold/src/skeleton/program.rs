//! The logical trace of the processes as a list of nodes with numbers, so that counts and times
//! can lie beside them, and the walk of a process over it.

use crate::questions::logical::{Guard, LogicalEvent, LogicalNode, LogicalPart, Places};

/// A part of the program, by its number.
pub(super) type NodeId = usize;

/// A part of the program.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Call(LogicalEvent),
    Loop { body: Vec<NodeId> },
    Branch { guard: Guard, body: Vec<NodeId> },
}

/// The program of all processes.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    pub(super) top: Vec<NodeId>,
    /// What a node is in.
    pub(super) parents: Vec<Option<NodeId>>,
    /// How often each loop iterates, for every process; empty for other nodes.
    pub(super) counts: Vec<Vec<u64>>,
    pub(super) places: Places,
    pub(super) processes: usize,
}

impl Program {
    /// The program of the streams of a part, which are the processes from 0 on; `stream` is
    /// where each one's places are.
    pub(super) fn of(part: &LogicalPart, places: &Places, streams: &[usize]) -> Self {
        let mut program = Self {
            nodes: Vec::new(),
            top: Vec::new(),
            parents: Vec::new(),
            counts: Vec::new(),
            places: places.chosen(streams),
            processes: streams.len(),
        };
        program.top = program.add(&part.nodes, None);
        // What a process does not execute has no count for it.
        for process in 0..program.processes {
            let executions = program.executions(process);
            for id in 0..program.nodes.len() {
                let is_executed = program.parents[id].is_none_or(|parent| executions[parent] > 0);
                if let Some(count) = program.counts[id].get_mut(process).filter(|_| !is_executed) {
                    *count = 0;
                }
            }
        }
        program
    }

    fn add(&mut self, nodes: &[LogicalNode], parent: Option<NodeId>) -> Vec<NodeId> {
        let mut ids = Vec::with_capacity(nodes.len());
        for node in nodes {
            let id = self.nodes.len();
            self.parents.push(parent);
            self.counts.push(Vec::new());
            ids.push(id);
            match node {
                LogicalNode::Event(event) => self.nodes.push(Node::Call(event.clone())),
                LogicalNode::Branch { guard, body } => {
                    self.nodes.push(Node::Branch { guard: guard.clone(), body: Vec::new() });
                    let body = self.add(body, Some(id));
                    self.nodes[id] = Node::Branch { guard: guard.clone(), body };
                }
                LogicalNode::Loop { times, body } => {
                    self.nodes.push(Node::Loop { body: Vec::new() });
                    let count = |process: usize| {
                        let count = times.integer(self.places.at(process, None));
                        count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
                    };
                    self.counts[id] = (0..self.processes).map(count).collect();
                    let body = self.add(body, Some(id));
                    self.nodes[id] = Node::Loop { body };
                }
            }
        }
        ids
    }

    /// What is in a node.
    pub(super) fn body(&self, node: NodeId) -> &[NodeId] {
        match &self.nodes[node] {
            Node::Call(_) => &[],
            Node::Loop { body } | Node::Branch { body, .. } => body,
        }
    }

    /// The calls of a process, in order.
    pub(super) fn walk(&self, process: usize) -> Walk<'_> {
        Walk { program: self, process, open: vec![(&self.top, 0, 0)] }
    }

    /// How often a process executes each node.
    pub(super) fn executions(&self, process: usize) -> Vec<u64> {
        let mut executions = vec![0u64; self.nodes.len()];
        // A node comes after the one that it is in.
        for (id, node) in self.nodes.iter().enumerate() {
            let around = self.parents[id].map_or(1, |parent| executions[parent]);
            executions[id] = match node {
                Node::Call(_) => around,
                Node::Branch { guard, .. } => around * u64::from(guard.holds(self.places.world(process))),
                Node::Loop { .. } => around.saturating_mul(self.counts[id][process]),
            };
        }
        executions
    }

    /// Calls of all processes.
    pub(super) fn calls(&self) -> u64 {
        (0..self.processes).fold(0, |sum: u64, process| {
            let executions = self.executions(process);
            let calls = self.nodes.iter().zip(executions).filter(|(node, _)| matches!(node, Node::Call(_)));
            calls.fold(sum, |sum, (_, count)| sum.saturating_add(count))
        })
    }
}

/// The calls of a process, in order.
pub(super) struct Walk<'a> {
    program: &'a Program,
    process: usize,
    /// The bodies that are open: where each is, and how often it comes again.
    open: Vec<(&'a [NodeId], usize, u64)>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (NodeId, &'a LogicalEvent);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (body, next, again) = self.open.last_mut()?;
            let Some(&id) = body.get(*next) else {
                match *again {
                    0 => drop(self.open.pop()),
                    _ => (*next, *again) = (0, *again - 1),
                }
                continue;
            };
            *next += 1;
            match &self.program.nodes[id] {
                Node::Call(event) => return Some((id, event)),
                Node::Branch { guard, body } => {
                    if guard.holds(self.program.places.world(self.process)) {
                        self.open.push((body, 0, 0));
                    }
                }
                Node::Loop { body } => {
                    let count = self.program.counts[id][self.process];
                    if count > 0 && !body.is_empty() {
                        self.open.push((body, 0, count - 1));
                    }
                }
            }
        }
    }
}
