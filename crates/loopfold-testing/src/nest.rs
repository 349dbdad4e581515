//! A loop nest as a plain tree: what the oracles produce.

use std::fmt;

/// An event, or a loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// An event.
    Event(u32),
    /// A body and how many times it repeats.
    Loop(Vec<Node>, u64),
}

/// A sequence of events and loops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nest(pub Vec<Node>);

impl Nest {
    /// A loop over `body`, where a loop whose body is a single loop is one loop.
    pub fn looped(body: Vec<Node>, times: u64) -> Node {
        match body.as_slice() {
            [Node::Loop(inner, inner_times)] => Node::Loop(inner.clone(), inner_times * times),
            _ => Node::Loop(body, times),
        }
    }

    /// The events that the nest stands for.
    pub fn unfold(&self) -> Vec<u32> {
        fn walk(nodes: &[Node], out: &mut Vec<u32>) {
            for node in nodes {
                match node {
                    Node::Event(event) => out.push(*event),
                    Node::Loop(body, times) => (0..*times).for_each(|_| walk(body, out)),
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.0, &mut out);
        out
    }

    /// How many events are written in it, each loop body once.
    pub fn folded(&self) -> usize {
        fn count(nodes: &[Node]) -> usize {
            nodes.iter().map(|node| if let Node::Loop(body, _) = node { count(body) } else { 1 }).sum()
        }
        count(&self.0)
    }
}

impl fmt::Display for Nest {
    /// Such as `1 (2 3)^4 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn write(nodes: &[Node], f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    f.write_str(" ")?;
                }
                match node {
                    Node::Event(event) => write!(f, "{event}")?,
                    Node::Loop(body, times) => {
                        f.write_str("(")?;
                        write(body, f)?;
                        write!(f, ")^{times}")?;
                    }
                }
            }
            Ok(())
        }
        write(&self.0, f)
    }
}
