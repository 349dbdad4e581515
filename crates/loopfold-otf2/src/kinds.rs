//! Numbers kinds of events in the threads that read, and interns them in the one that pushes.
//!
//! The sink belongs to one thread, and in which order it gets its symbols must not depend on
//! how many threads read. So a reading thread encodes a kind as words of 64 bits and numbers
//! these on its own; traces repeat themselves, so most look-ups cost one comparison. With a
//! batch of events it sends the kinds that are new; the pushing thread interns a kind when an
//! event is first of it, and from then on an event costs a table look-up. Memory: O(kinds × threads).

use crate::definitions::Definitions;
use hashbrown::HashMap;
use loopfold::Symbol;
use loopfold::trace::{Event, Field, Role, Timing, Value};
use loopfold_sources::{Context, Result, mpi_role};

/// An event: its kind, by the number that its thread gave, and its times, [`UNKNOWN`] where
/// they are not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedEvent {
    pub(crate) kind: u32,
    pub(crate) start: i64,
    pub(crate) duration: i64,
}

/// A time that is not known.
pub(crate) const UNKNOWN: i64 = i64::MIN;

impl EncodedEvent {
    pub(crate) fn timing(&self) -> Timing<'static> {
        let known = |time: i64| (time != UNKNOWN).then_some(time);
        Timing { start: known(self.start), duration: known(self.duration), ..Timing::UNKNOWN }
    }
}

/// What a kind is of; the first word of its code, together with a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Enter = 0,
    Leave = 1,
    /// An MPI call, by its region.
    Call = 2,
    /// A record of MPI outside of any call; instead of a region, one of [`STRAY`].
    Stray = 3,
}

/// What records outside of any call are called.
pub(crate) const STRAY: [&str; 22] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Allreduce",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Reduce_scatter_block",
    "MPI collective",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Isend",
    "MPI_Irecv",
];

/// The first of [`STRAY`] that is not a collective operation with a number of its own.
pub(crate) const STRAY_COLLECTIVE: u32 = 17;
pub(crate) const STRAY_SEND: u32 = 18;
pub(crate) const STRAY_RECEIVE: u32 = 19;
pub(crate) const STRAY_ISEND: u32 = 20;
pub(crate) const STRAY_IRECV: u32 = 21;

/// The keys of fields, in the words of the text form of MPI traces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Dest,
    Src,
    Root,
    Tag,
    Bytes,
    ReceivedTag,
    ReceivedBytes,
    Comm,
    NewComm,
    N,
    Done,
    Cancelled,
    Sent,
    Received,
    Caller,
}

impl Key {
    const ALL: [(Key, &'static str); 15] = [
        (Key::Dest, "dest"),
        (Key::Src, "src"),
        (Key::Root, "root"),
        (Key::Tag, "tag"),
        (Key::Bytes, "bytes"),
        (Key::ReceivedTag, "recvtag"),
        (Key::ReceivedBytes, "recvbytes"),
        (Key::Comm, "comm"),
        (Key::NewComm, "newcomm"),
        (Key::N, "n"),
        (Key::Done, "done"),
        (Key::Cancelled, "cancelled"),
        (Key::Sent, "sent"),
        (Key::Received, "received"),
        (Key::Caller, "caller"),
    ];
}

/// The names of all fields.
pub(crate) const FIELDS: &[&str] = &[
    "dest",
    "src",
    "root",
    "tag",
    "bytes",
    "recvtag",
    "recvbytes",
    "comm",
    "newcomm",
    "n",
    "done",
    "cancelled",
    "sent",
    "received",
    "caller",
    "function",
];

/// No request: the value of `done` if a call completes none that is known.
pub(crate) const DONE_NONE: u64 = u64::MAX;

/// A root that is the calling process, or its group, of a communicator between groups.
const ROOT_SELF: u64 = u32::MAX as u64 - 1;
const ROOT_GROUP: u64 = u32::MAX as u64 - 2;

/// The code of a kind: class and region, and keys with values; a key with several values occurs
/// several times.
#[derive(Default)]
pub(crate) struct KindCode {
    words: Vec<u64>,
}

impl KindCode {
    pub(crate) fn begin(&mut self, class: Class, region: u32) {
        self.words.clear();
        self.words.push((class as u64) << 32 | u64::from(region));
    }

    pub(crate) fn field(&mut self, key: Key, value: u64) {
        self.words.extend([key as u64, value]);
    }

    /// One field for several values: just one where they are all the same.
    pub(crate) fn fields(&mut self, key: Key, mut values: impl Iterator<Item = u64> + Clone) {
        let Some(first) = values.next() else { return };
        self.field(key, first);
        if values.clone().any(|value| value != first) {
            values.for_each(|value| self.field(key, value));
        }
    }
}

/// The kinds that one thread has seen, and their numbers.
#[derive(Default)]
pub(crate) struct KindTable {
    by_words: HashMap<Box<[u64]>, u32, foldhash::fast::RandomState>,
    words: Vec<Box<[u64]>>,
    /// For each number the one that came after it last.
    next: Vec<u32>,
    /// How many [`KindTable::take_new`] returned.
    taken: usize,
}

impl KindTable {
    /// The number of a kind; `previous` is the one before it and makes this faster.
    pub(crate) fn number(&mut self, code: &KindCode, previous: Option<u32>) -> u32 {
        let words = code.words.as_slice();
        let expected = previous.map(|previous| self.next[previous as usize]);
        if let Some(expected) = expected
            && self.words.get(expected as usize).is_some_and(|known| **known == *words)
        {
            return expected;
        }
        let number = self.by_words.get(words).copied().unwrap_or_else(|| self.add(words));
        if let Some(previous) = previous {
            self.next[previous as usize] = number;
        }
        number
    }

    fn add(&mut self, words: &[u64]) -> u32 {
        // As many kinds as numbers do not fit in memory.
        let number = self.words.len() as u32;
        self.words.push(words.into());
        self.next.push(u32::MAX);
        self.by_words.insert(words.into(), number);
        number
    }

    /// The kinds that are new since this was last called, in the order of their numbers.
    pub(crate) fn take_new(&mut self, definitions: &Definitions) -> Vec<Kind> {
        let new = self.words[self.taken..].iter().map(|words| Kind::decode(words, definitions)).collect();
        self.taken = self.words.len();
        new
    }
}

/// A kind of event, with its names looked up in the definitions.
#[derive(Debug, PartialEq)]
pub(crate) struct Kind {
    name: Vec<u8>,
    role: Role,
    fields: Vec<(&'static str, Content)>,
}

/// The value of a field.
#[derive(Debug, PartialEq)]
enum Content {
    Integer(i64),
    Text(Vec<u8>),
}

impl Kind {
    fn decode(words: &[u64], definitions: &Definitions) -> Self {
        let (class, region) = (words[0] >> 32, words[0] as u32);
        let name = if class == Class::Stray as u64 {
            STRAY.get(region as usize).copied().unwrap_or_default().as_bytes().to_vec()
        } else {
            definitions.region_name(region).0
        };
        let mut fields = Vec::new();
        let pairs: Vec<(u64, u64)> = words[1..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        for group in pairs.chunk_by(|one, other| one.0 == other.0) {
            let Some(&(key, text)) = Key::ALL.get(group[0].0 as usize) else { continue };
            let value = match group {
                [(_, value)] => value_of(key, *value, definitions),
                several => {
                    let list: Vec<String> = several.iter().map(|(_, value)| value.to_string()).collect();
                    Content::Text(list.join(",").into_bytes())
                }
            };
            fields.push((text, value));
        }
        let role = match class {
            0 => Role::Enter,
            1 => Role::Leave,
            _ => mpi_role(&name),
        };
        if role == Role::Leave {
            fields.push(("function", Content::Text(name.clone())));
        }
        Self { name, role, fields }
    }

    /// Its symbol in the sink.
    pub(crate) fn intern(&self, context: &mut Context<'_>) -> Result<Symbol> {
        let fields: Vec<Field<'_>> = self.fields.iter().map(|(key, value)| value.field(key)).collect();
        context.intern(&Event { role: self.role, fields: &fields, ..Event::named(&self.name) })
    }
}

impl Content {
    fn field<'a>(&'a self, key: &'a str) -> Field<'a> {
        let value = match self {
            Content::Integer(number) => Value::Integer(*number),
            Content::Text(text) => Value::Text(text),
        };
        Field { key, value }
    }
}

fn value_of(key: Key, value: u64, definitions: &Definitions) -> Content {
    match (key, value) {
        (Key::Caller, region) => Content::Text(definitions.region_name(region as u32).0),
        (Key::Done, DONE_NONE) => Content::Text(b"none".to_vec()),
        (Key::Root, ROOT_SELF) => Content::Text(b"self".to_vec()),
        (Key::Root, ROOT_GROUP) => Content::Text(b"group".to_vec()),
        (_, value) => match i64::try_from(value) {
            Ok(value) => Content::Integer(value),
            Err(_) => Content::Text(value.to_string().into_bytes()),
        },
    }
}
