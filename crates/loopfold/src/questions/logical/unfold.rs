//! From a logical trace back to the streams, and the check that it is the same.

use super::{LogicalEvent, LogicalField, LogicalNode, LogicalPart, LogicalTrace, Places, Token};
use crate::emit::Terminal;
use crate::fold::{Fold, FoldBuilder, FoldedStream, Item, Target};
use crate::trace::{Alphabet, Event, Field, Value};
use crate::{Error, Result, RuleId, StreamId, Symbol};
use std::fmt;

/// Walks over the events of one process, in order.
#[derive(Debug)]
pub struct LogicalCursor<'a> {
    places: &'a Places,
    stream: usize,
    /// The bodies that are open: what is left of each, and of its iterations.
    open: Vec<(&'a [LogicalNode], usize, u64)>,
}

impl<'a> LogicalCursor<'a> {
    /// At the first event of a stream.
    pub fn new(nodes: &'a [LogicalNode], places: &'a Places, stream: usize) -> Self {
        Self { places, stream, open: vec![(nodes, 0, 0)] }
    }
}

impl<'a> Iterator for LogicalCursor<'a> {
    type Item = &'a LogicalEvent;

    fn next(&mut self) -> Option<&'a LogicalEvent> {
        loop {
            let (nodes, next, again) = self.open.last_mut()?;
            let Some(node) = nodes.get(*next) else {
                if *again > 0 {
                    (*next, *again) = (0, *again - 1);
                } else {
                    self.open.pop();
                }
                continue;
            };
            *next += 1;
            let at = self.places.at(self.stream, None);
            match node {
                LogicalNode::Event(event) => return Some(event),
                LogicalNode::Branch { guard, body } if guard.holds(at.world) => self.open.push((body, 0, 0)),
                LogicalNode::Branch { .. } => {}
                LogicalNode::Loop { times, body } => {
                    let times = times.integer(at).and_then(|times| u64::try_from(times).ok()).unwrap_or(0);
                    if times > 0 && !body.is_empty() {
                        self.open.push((body, 0, times - 1));
                    }
                }
            }
        }
    }
}

impl LogicalField {
    /// Its value for a process, as text in case it is text.
    fn value(&self, at: super::At<'_>) -> FieldValue {
        if !self.is_list {
            return match self.values.first().map(|value| value.value(at)) {
                Some(Token::Number(number)) => FieldValue::Integer(number),
                Some(Token::Word(word)) => FieldValue::Text(word.into_vec()),
                None => FieldValue::Text(Vec::new()),
            };
        }
        let mut text = Vec::new();
        for (nth, value) in self.values.iter().enumerate() {
            if nth > 0 {
                text.push(b',');
            }
            match value.value(at) {
                Token::Number(number) => text.extend(number.to_string().bytes()),
                Token::Word(word) => text.extend(word),
            }
        }
        FieldValue::Text(text)
    }
}

enum FieldValue {
    Integer(i64),
    Text(Vec<u8>),
}

impl LogicalEvent {
    /// The symbol of this event of a process. Returns `None` if the alphabet has no such event.
    pub fn symbol(&self, alphabet: &Alphabet, places: &Places, stream: usize) -> Option<Symbol> {
        let at = places.at(stream, self.comm.as_deref());
        let values: Vec<FieldValue> = self.fields.iter().map(|field| field.value(at)).collect();
        let fields: Vec<Field<'_>> = self
            .fields
            .iter()
            .zip(&values)
            .map(|(field, value)| {
                let value = match value {
                    FieldValue::Integer(number) => Value::Integer(*number),
                    FieldValue::Text(text) => Value::Text(text),
                };
                Field { key: &field.key, value }
            })
            .collect();
        alphabet.symbol(&Event { name: self.name(), role: self.role, fields: &fields })
    }
}

impl LogicalTrace {
    /// Fails unless it unfolds to the streams of this fold. Where the rules that it gives are
    /// those of the fold, nothing is unfolded: O(nodes × streams). Otherwise the events are
    /// compared one by one.
    pub fn verify(&self, fold: &Fold) -> Result<()> {
        let mut builder = FoldBuilder::new(fold.alphabet().clone());
        let known = builder.append_rules(fold, Ok)?;
        let mut to_compare: Vec<(StreamId, RuleId, RuleId)> = Vec::new();
        let mut streams = 0;
        for part in &self.parts {
            for &id in &part.streams {
                streams += 1;
                let root = self.rule_of(part, id, fold, &mut builder)?;
                let wanted = known[fold.stream(id).root().index()];
                if root != wanted {
                    to_compare.push((id, root, wanted));
                }
            }
        }
        if streams != fold.streams().len() {
            return Err(Error::invalid("the logical trace lacks streams"));
        }
        // Rules are only reached from streams.
        for &(_, root, wanted) in &to_compare {
            builder.stream(FoldedStream::new("", "", root));
            builder.stream(FoldedStream::new("", "", wanted));
        }
        let rules = builder.finish();
        for (id, root, wanted) in to_compare {
            if rules.length(root) != rules.length(wanted) || !rules.unfold(root).eq(rules.unfold(wanted)) {
                return Err(wrong(fold, id));
            }
        }
        Ok(())
    }

    /// The rule of a stream.
    fn rule_of(
        &self,
        part: &LogicalPart,
        id: StreamId,
        fold: &Fold,
        builder: &mut FoldBuilder,
    ) -> Result<RuleId> {
        let unfolding = Unfolding { places: &self.places, stream: id.index(), alphabet: fold.alphabet() };
        let body = unfolding.items(&part.nodes, builder)?.ok_or_else(|| wrong(fold, id))?;
        if let [only] = body[..]
            && let (Target::Rule(rule), 1) = (only.target(), only.times())
        {
            return Ok(rule);
        }
        builder.rule(&body)
    }
}

fn wrong(fold: &Fold, id: StreamId) -> Error {
    Error::invalid(format_args!(
        "the logical trace does not give {} back; please report this",
        fold.stream(id).name().terminal()
    ))
}

struct Unfolding<'a> {
    places: &'a Places,
    stream: usize,
    alphabet: &'a Alphabet,
}

impl Unfolding<'_> {
    /// The items of a body. Returns `None` if an event is not there.
    fn items(&self, nodes: &[LogicalNode], builder: &mut FoldBuilder) -> Result<Option<Vec<Item>>> {
        let mut items: Vec<Item> = Vec::new();
        let at = self.places.at(self.stream, None);
        for node in nodes {
            match node {
                LogicalNode::Event(event) => match event.symbol(self.alphabet, self.places, self.stream) {
                    Some(symbol) => items.push(Item::once(symbol)),
                    None => return Ok(None),
                },
                LogicalNode::Branch { guard, body } => {
                    if guard.holds(at.world) {
                        let Some(body) = self.items(body, builder)? else { return Ok(None) };
                        items.extend(body);
                    }
                }
                LogicalNode::Loop { times, body } => {
                    let times = times.integer(at).and_then(|times| u64::try_from(times).ok()).unwrap_or(0);
                    let Some(body) = self.items(body, builder)? else { return Ok(None) };
                    match (times, body.is_empty()) {
                        (0, _) | (_, true) => {}
                        (1, _) => items.extend(body),
                        _ => items.push(builder.repeat(&body, times)?),
                    }
                }
            }
        }
        Ok(Some(items))
    }
}

impl fmt::Display for LogicalEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<(String, String)> = self
            .fields
            .iter()
            .map(|field| {
                let values: Vec<String> = field.values.iter().map(ToString::to_string).collect();
                (field.key.clone(), values.join(","))
            })
            .collect();
        let fields: Vec<Field<'_>> =
            fields.iter().map(|(key, text)| Field { key, value: Value::Text(text.as_bytes()) }).collect();
        let meaning = crate::trace::Meaning { name: self.name(), role: self.role, fields };
        write!(f, "{meaning}")
    }
}

/// Writes nodes as lines, indented by two more spaces for each level.
fn write_nodes(f: &mut fmt::Formatter<'_>, nodes: &[LogicalNode], indent: usize) -> fmt::Result {
    for node in nodes {
        match node {
            LogicalNode::Event(event) => writeln!(f, "{:indent$}{event}", "")?,
            LogicalNode::Loop { times, body } => match &body[..] {
                [LogicalNode::Event(event)] => writeln!(f, "{:indent$}{times} × {event}", "")?,
                _ => {
                    writeln!(f, "{:indent$}{times} ×", "")?;
                    write_nodes(f, body, indent + 2)?;
                }
            },
            LogicalNode::Branch { guard, body } => {
                writeln!(f, "{:indent$}if {guard}", "")?;
                write_nodes(f, body, indent + 2)?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for LogicalTrace {
    /// As lines: events, loops and branches, with what is in them indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            if !part.name.is_empty() {
                writeln!(f, "{}:", Terminal::of(&part.name))?;
            }
            write_nodes(f, &part.nodes, 0)?;
        }
        Ok(())
    }
}
