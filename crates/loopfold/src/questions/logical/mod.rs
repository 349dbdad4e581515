//! The logical trace: one nest for all processes of a program, as section II of the paper on
//! loop nests asks for (trace logicalization), but without loss.
//!
//! ```text
//! trace      := part*                     one for each thread number; mostly one
//! part       := node*
//! node       := event | loop | branch
//! event      := name role (key "=" value)*
//! value      := expression ("," expression)*
//! loop       := expression "×" node*      a count
//! branch     := "if" guard node*
//! expression := word | number             the same for all
//!             | rank + d | (rank + d) % size | rank + d or none      in the communicator
//!             | [row + d, column + d]     in its grid, or none outside of it
//!             | rank ^ d | [column, row]
//!             | a * term + b | rank / k   of the process among all
//!             | { guard: expression; … else expression }
//! guard      := condition && … | !(condition && …) | rank in list
//! condition  := term (== | != | < | >=) (number | extent - number) | term at an edge | term inside
//! term       := rank | row | column | … | rank % k
//! ```
//!
//! Definition: unfolding the nodes for a process (leaving out branches whose guard does not hold,
//! repeating loops as often as the count says, and evaluating the values of events) gives the
//! stream of that process, event for event. [`LogicalTrace::verify`] checks that, and whoever
//! shows a logical trace calls it first. Lists of ranks, in guards, are the exceptions.
//!
//! How it is found: streams with equal shapes (events without peers and sizes) are one class;
//! their nests are laid side by side, and values are expressions fitted to all processes at
//! once. Classes are merged one after the other by aligning their nests; what only some have is
//! a branch. Cost: O(items of the fold) for the classes, O(nodes of the nests of different
//! streams) for laying them side by side, and for every further class the product of what
//! differs, bounded. Streams with equal shapes whose nests differ, since peers that happen to be
//! equal make loops, are folded together, O(their events), up to a limit.

mod build;
mod expression;
mod fit;
mod guard;
mod merge;
mod place;
mod shapes;
mod tree;
mod unfold;

pub use expression::{Expression, Token};
pub use guard::{Bound, Condition, Guard, Relation, Term};
pub use place::{At, Place, Places};
pub use unfold::LogicalCursor;

use crate::trace::{Name, Role};
use crate::{Fold, Result, StreamId};

/// One nest for all processes.
#[derive(Clone, Debug, Default)]
pub struct LogicalTrace {
    /// The nest of the processes, and of their further threads.
    pub parts: Vec<LogicalPart>,
    /// Where the streams are.
    pub places: Places,
}

/// One nest for streams that are different processes.
#[derive(Clone, Debug, Default)]
pub struct LogicalPart {
    /// What follows the rank in the names of the streams, such as `thread 1`. Empty for the
    /// first threads.
    pub name: String,
    /// Its streams, by rank.
    pub streams: Vec<StreamId>,
    /// The nest.
    pub nodes: Vec<LogicalNode>,
}

/// A part of a logical nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogicalNode {
    /// An event.
    Event(LogicalEvent),
    /// A loop.
    Loop {
        /// How often it iterates.
        times: Expression,
        /// One iteration.
        body: Vec<LogicalNode>,
    },
    /// What only some processes do.
    Branch {
        /// Which ones.
        guard: Guard,
        /// What they do.
        body: Vec<LogicalNode>,
    },
}

/// An event whose values may depend on the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalEvent {
    /// What happens.
    pub name: EventName,
    /// Its role.
    pub role: Role,
    /// Its fields.
    pub fields: Vec<LogicalField>,
    /// The communicator to which its ranks belong.
    pub comm: Option<String>,
}

/// The name of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventName {
    /// Bytes.
    Text(Box<[u8]>),
    /// A number.
    Integer(u64),
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalField {
    /// The key.
    pub key: String,
    /// Its value, or several.
    pub values: Vec<Expression>,
    /// Whether it is a list.
    pub is_list: bool,
}

impl LogicalEvent {
    /// The values of a field.
    pub fn field(&self, key: &str) -> Option<&LogicalField> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The name as text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match &self.name {
            EventName::Text(text) => std::str::from_utf8(text).ok(),
            EventName::Integer(_) => None,
        }
    }

    /// The name as events have it.
    pub(crate) fn name(&self) -> Name<'_> {
        match &self.name {
            EventName::Text(text) => Name::Text(text),
            EventName::Integer(number) => Name::Integer(*number),
        }
    }
}

/// How large a logical trace is, and what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogicalSize {
    /// Events that are written, each loop body once.
    pub events: usize,
    /// Loops.
    pub loops: usize,
    /// Branches.
    pub branches: usize,
    /// Parts of values, counts and guards.
    pub terms: usize,
    /// Values, counts and guards that list ranks.
    pub exceptions: usize,
}

impl LogicalTrace {
    /// The logical trace of all streams of a fold. Where streams with the same shapes have
    /// different nests, they are folded again by `fold_stream`.
    ///
    /// ```
    /// use loopfold::folders::{Folder as _, Outermost, fold_trace};
    /// use loopfold::questions::logical::LogicalTrace;
    /// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
    ///
    /// let mut collector = Collector::default();
    /// for rank in 0..8 {
    ///     let stream = collector.stream(&format!("rank {rank}"))?;
    ///     let fields = [Field { key: "dest", value: Value::Integer((rank + 1) % 8) }];
    ///     for _ in 0..10 {
    ///         collector.push_event(stream, &Event { role: Role::Send, fields: &fields, ..Event::named("send") })?;
    ///     }
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let logical = LogicalTrace::of(&fold, &|stream, builder| Outermost::default().fold(stream, builder))?;
    /// logical.verify(&fold)?;
    /// assert_eq!(logical.to_string(), "10 × send dest=(rank + 1) % size\n");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn of(fold: &Fold, fold_stream: super::patterns::FoldStream<'_>) -> Result<Self> {
        build::build(fold, fold_stream)
    }

    /// How large it is.
    pub fn size(&self) -> LogicalSize {
        let mut size = LogicalSize::default();
        self.parts.iter().for_each(|part| size.add(&part.nodes));
        size
    }
}

impl LogicalSize {
    fn add(&mut self, nodes: &[LogicalNode]) {
        for node in nodes {
            match node {
                LogicalNode::Event(event) => {
                    self.events += 1;
                    let values = event.fields.iter().flat_map(|field| &field.values);
                    values.for_each(|value| self.add_expression(value));
                }
                LogicalNode::Loop { times, body } => {
                    self.loops += 1;
                    self.add_expression(times);
                    self.add(body);
                }
                LogicalNode::Branch { guard, body } => {
                    self.branches += 1;
                    self.terms += guard.len();
                    self.exceptions += usize::from(guard.is_exception());
                    self.add(body);
                }
            }
        }
    }

    fn add_expression(&mut self, expression: &Expression) {
        self.terms += expression.len();
        self.exceptions += usize::from(expression.has_exceptions());
    }
}
