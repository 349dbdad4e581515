//! The communication of each symbol: which messages an event sends and receives, and which
//! collective operation it takes part in.
//!
//! Computed once for every symbol of an alphabet. Ranks are those of the communicator, as in
//! the fields; [`Communicators`](super::Communicators) maps them to processes.

use crate::trace::{Alphabet, Meaning, Role, Value};
use hashbrown::HashMap;

/// A message, as described by the event at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The process at the other end.
    pub peer: Peer,
    /// The tag. `None` if any fits.
    pub tag: Option<i64>,
    /// How many bytes it has, where the event says so.
    pub bytes: Option<u64>,
}

/// The process at the other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// One of the communicator.
    Rank(u32),
    /// Whoever sends.
    Any,
}

/// The communication of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The communicator, as [`Calls::comm`] calls it.
    pub comm: CommId,
    /// The messages sent.
    pub sends: Vec<Message>,
    /// The messages received.
    pub receives: Vec<Message>,
    /// The root of a collective operation, or that there is none. `None` for other calls.
    pub collective: Option<Option<i64>>,
}

/// A communicator's number among those that the events of an alphabet name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommId(pub u32);

/// The communication of each symbol of an alphabet.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    by_symbol: Vec<Option<Call>>,
    comms: Vec<String>,
}

impl Calls {
    /// Decodes every symbol.
    pub fn of(alphabet: &Alphabet) -> Self {
        let meanings: Vec<Meaning<'_>> = alphabet.symbols().map(|symbol| alphabet.meaning(symbol)).collect();
        let nobody = Nobody::of(&meanings);
        let mut comms = Comms::default();
        let by_symbol = meanings.iter().map(|meaning| call(meaning, nobody, &mut comms)).collect();
        Self { by_symbol, comms: comms.names }
    }

    /// The communication of this symbol. Returns `None` if it has none.
    pub fn get(&self, symbol: crate::Symbol) -> Option<&Call> {
        self.by_symbol.get(symbol.index())?.as_ref()
    }

    /// True if no symbol communicates.
    pub fn is_empty(&self) -> bool {
        self.by_symbol.iter().all(Option::is_none)
    }

    /// The name of a communicator in the events.
    pub fn comm(&self, comm: CommId) -> &str {
        &self.comms[comm.0 as usize]
    }

    /// The communicator of an event, if some event with communication has it.
    pub(crate) fn comm_of(&self, meaning: &Meaning<'_>) -> Option<CommId> {
        let name = comm_name(meaning);
        self.comms().find(|(_, known)| *known == name).map(|(comm, _)| comm)
    }

    /// All communicators that events name.
    pub fn comms(&self) -> impl ExactSizeIterator<Item = (CommId, &str)> {
        self.comms.iter().enumerate().map(|(index, name)| (CommId(index as u32), name.as_str()))
    }
}

/// Communicators in the order in which they are met.
#[derive(Default)]
struct Comms {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Comms {
    fn number(&mut self, meaning: &Meaning<'_>) -> CommId {
        let name = comm_name(meaning);
        let next = self.names.len() as u32;
        CommId(*self.numbers.entry_ref(&name).or_insert_with(|| {
            self.names.push(name.clone());
            next
        }))
    }
}

/// The communicator of all processes, and that of events which name none.
pub(crate) const WORLD: &str = "0";

fn comm_name(meaning: &Meaning<'_>) -> String {
    meaning.field("comm").map_or_else(|| WORLD.to_string(), text_of)
}

/// A field's value as text.
pub(super) fn text_of(value: Value<'_>) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

/// Which negative number stands for no process at all. MPI leaves open which one it is: only a
/// send shows it, because a send cannot have an arbitrary destination.
#[derive(Clone, Copy)]
pub(super) struct Nobody(i64);

impl Nobody {
    /// If no send shows it, as in Open MPI.
    const USUAL: i64 = -2;

    pub(super) fn of(meanings: &[Meaning<'_>]) -> Self {
        let sent_to = meanings.iter().filter_map(|meaning| match meaning.field("dest") {
            Some(Value::Integer(number)) if number < 0 => Some(number),
            _ => None,
        });
        Self(sent_to.max().unwrap_or(Self::USUAL))
    }

    pub(super) fn is(self, number: i64) -> bool {
        number == self.0
    }
}

fn call(meaning: &Meaning<'_>, nobody: Nobody, comms: &mut Comms) -> Option<Call> {
    let is_message = |key| meaning.field(key).is_some() && meaning.role != Role::Collective;
    let (tag, bytes) = (meaning.field("tag"), meaning.field("bytes"));
    let sends =
        if is_message("dest") { messages(meaning.field("dest"), tag, bytes, nobody) } else { Vec::new() };
    let receives = if is_message("src") {
        let (tag, bytes) = if meaning.field("dest").is_some() {
            (meaning.field("recvtag").or(tag), meaning.field("recvbytes").or(bytes))
        } else {
            (tag, bytes)
        };
        messages(meaning.field("src"), tag, bytes, nobody)
    } else {
        Vec::new()
    };
    let collective = (meaning.role == Role::Collective).then(|| match meaning.field("root") {
        Some(Value::Integer(root)) => Some(root),
        _ => None,
    });
    let known_role = matches!(meaning.role, Role::Send | Role::Receive | Role::Collective);
    if !known_role && sends.is_empty() && receives.is_empty() {
        return None;
    }
    Some(Call { comm: comms.number(meaning), sends, receives, collective })
}

/// The messages of fields that have one value or a list of them.
fn messages(
    peers: Option<Value<'_>>,
    tags: Option<Value<'_>>,
    bytes: Option<Value<'_>>,
    nobody: Nobody,
) -> Vec<Message> {
    let (peers, tags, bytes) = (values(peers), values(tags), values(bytes));
    let count = peers.len().max(tags.len()).max(bytes.len());
    // A value that is the same for all is written once.
    let pick = |values: &[Number], index: usize| values.get(index).or(values.first()).copied();
    let message = |index| {
        let peer = match pick(&peers, index)? {
            Number::Is(number) if nobody.is(number) => return None,
            Number::Is(number) if number < 0 => Peer::Any,
            // No process has a number as large as this.
            Number::Is(number) => Peer::Rank(u32::try_from(number).unwrap_or(u32::MAX)),
            Number::Any => Peer::Any,
            Number::None => return None,
        };
        let tag = match pick(&tags, index) {
            Some(Number::Is(tag)) if tag >= 0 => Some(tag),
            // Without tags, all messages are of one kind.
            None => Some(0),
            _ => None,
        };
        let bytes = match pick(&bytes, index) {
            Some(Number::Is(bytes)) => u64::try_from(bytes).ok(),
            _ => None,
        };
        Some(Message { peer, tag, bytes })
    };
    (0..count).filter_map(message).collect()
}

/// A number in a field, or a word in its place.
#[derive(Clone, Copy)]
enum Number {
    Is(i64),
    Any,
    None,
}

fn values(value: Option<Value<'_>>) -> Vec<Number> {
    let number = |word: &[u8]| {
        let word = std::str::from_utf8(word).unwrap_or("").trim();
        match word.parse() {
            Ok(number) => Number::Is(number),
            Err(_) if word.to_ascii_lowercase().contains("any") => Number::Any,
            Err(_) => Number::None,
        }
    };
    match value {
        None => Vec::new(),
        Some(Value::Integer(number)) => vec![Number::Is(number)],
        // Which process that is depends on the one that says so.
        Some(Value::Text(text)) if is_relative(text) => vec![Number::None],
        Some(Value::Text(text)) => text.split(|&byte| byte == b',').take(MOST_MESSAGES).map(number).collect(),
    }
}

/// Whether these are peers as [`Peers`](super::Peers) writes them: `+1`, `-4,+4`, `(0,+1)`. A
/// plain number is not text, whatever its sign.
pub(super) fn is_relative(text: &[u8]) -> bool {
    let is_signed = |word: &[u8]| matches!(word.first(), Some(b'+' | b'-'));
    text.starts_with(b"(") || text.split(|&byte| byte == b',').all(is_signed)
}

/// More messages in one event than this are not looked at.
const MOST_MESSAGES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::{Event, Field};

    fn call_of(role: Role, fields: &[(&str, Value<'_>)]) -> Option<Call> {
        calls_of(&[(role, fields)]).pop().unwrap()
    }

    fn calls_of(events: &[(Role, &[(&str, Value<'_>)])]) -> Vec<Option<Call>> {
        let mut alphabet = Alphabet::default();
        for (role, fields) in events {
            let fields: Vec<Field<'_>> = fields.iter().map(|&(key, value)| Field { key, value }).collect();
            alphabet.intern(&Event { role: *role, fields: &fields, ..Event::named("x") }, None).unwrap();
        }
        let calls = Calls::of(&alphabet);
        alphabet.symbols().map(|symbol| calls.get(symbol).cloned()).collect()
    }

    fn message(peer: Peer, tag: Option<i64>, bytes: Option<u64>) -> Message {
        Message { peer, tag, bytes }
    }

    #[test]
    fn messages_are_recognized_by_their_fields() {
        let is = Value::Integer;
        let send = call_of(Role::Send, &[("dest", is(6)), ("tag", is(2)), ("bytes", is(8))]).unwrap();
        assert_eq!(send.sends, [message(Peer::Rank(6), Some(2), Some(8))]);
        assert_eq!((send.receives, send.collective), (vec![], None));
        let both = [("dest", is(1)), ("src", is(2)), ("tag", is(3)), ("recvtag", is(4)), ("bytes", is(5))];
        let both = call_of(Role::Plain, &both).unwrap();
        assert_eq!(both.sends, [message(Peer::Rank(1), Some(3), Some(5))]);
        assert_eq!(both.receives, [message(Peer::Rank(2), Some(4), Some(5))]);
        let list = call_of(Role::Plain, &[("dest", Value::Text(b"1,2")), ("tag", is(7))]).unwrap();
        assert_eq!(list.sends.len(), 2);
        assert_eq!(list.sends[1], message(Peer::Rank(2), Some(7), None));
        assert_eq!(call_of(Role::Plain, &[("n", is(2))]), None);
        let bcast = call_of(Role::Collective, &[("root", is(3)), ("comm", is(1))]).unwrap();
        assert_eq!((bcast.collective, bcast.sends.len()), (Some(Some(3)), 0));
    }

    #[test]
    fn relative_peers_are_no_ranks() {
        for text in ["+1", "-4", "+1,-1", "(0,+1)", "(+1),(-1)"] {
            let send = call_of(Role::Send, &[("dest", Value::Text(text.as_bytes()))]).unwrap();
            assert_eq!(send.sends, [], "{text}");
        }
        assert_eq!(call_of(Role::Send, &[("dest", Value::Text(b"1,-2"))]).unwrap().sends.len(), 1);
    }

    #[test]
    fn nobody_and_whoever_are_distinguished() {
        let receive_from = |number, sends_to: Option<i64>| {
            let send = [("dest", Value::Integer(sends_to.unwrap_or(0)))];
            let receive = [("src", Value::Integer(number)), ("tag", Value::Integer(-1))];
            calls_of(&[(Role::Send, &send), (Role::Receive, &receive)]).pop().unwrap().unwrap().receives
        };
        assert_eq!(receive_from(-1, None), [message(Peer::Any, None, None)]);
        assert_eq!(receive_from(-2, None), []);
        assert_eq!(receive_from(-2, Some(-1)), [message(Peer::Any, None, None)]);
        assert_eq!(receive_from(-1, Some(-1)), []);
        assert_eq!(receive_from(1 << 40, None), [message(Peer::Rank(u32::MAX), None, None)]);
        let any = call_of(Role::Receive, &[("src", Value::Text(b"MPI_ANY_SOURCE"))]).unwrap();
        assert_eq!(any.receives, [message(Peer::Any, Some(0), None)]);
    }
}
