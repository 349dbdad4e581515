//! Kinds of events, as short lists of numbers: the key under which a symbol is found without
//! building the event.
//!
//! A kind is a call and pairs of a slot (the field) and a value; a slot with several values occurs
//! several times. Traces repeat themselves, so nearly every event costs one look-up of its kind.

use crate::layout::{ANY, NOBODY, OPERATIONS, ROOT};
use crate::paths::Shared;
use hashbrown::HashMap;
use loopfold::trace::{Event, Field, Role, Value};
use loopfold::{Result, Symbol};
use loopfold_sources::mpi_calls;
use std::sync::Arc;

/// A field of an event. The order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    Dest,
    Src,
    From,
    Target,
    Root,
    Op,
    Tag,
    RecvTag,
    Bytes,
    RecvBytes,
    Comm,
    Color,
    Key,
    Dims,
    Periods,
    NewComm,
    Part,
    Flag,
    Any,
    Of,
    N,
    Done,
    Cancelled,
    Site,
}

impl Slot {
    const ALL: [(Slot, &'static str); 24] = [
        (Slot::Dest, "dest"),
        (Slot::Src, "src"),
        (Slot::From, "from"),
        (Slot::Target, "target"),
        (Slot::Root, "root"),
        (Slot::Op, "op"),
        (Slot::Tag, "tag"),
        (Slot::RecvTag, "recvtag"),
        (Slot::Bytes, "bytes"),
        (Slot::RecvBytes, "recvbytes"),
        (Slot::Comm, "comm"),
        (Slot::Color, "color"),
        (Slot::Key, "key"),
        (Slot::Dims, "dims"),
        (Slot::Periods, "periods"),
        (Slot::NewComm, "newcomm"),
        (Slot::Part, "part"),
        (Slot::Flag, "flag"),
        (Slot::Any, "any"),
        (Slot::Of, "of"),
        (Slot::N, "n"),
        (Slot::Done, "done"),
        (Slot::Cancelled, "cancelled"),
        (Slot::Site, "site"),
    ];
}

/// In the slot `any`: what was a wildcard.
pub(crate) const ANY_SOURCE: i64 = 1;
pub(crate) const ANY_TAG: i64 = 2;

/// In the slot `done`: none of the known requests.
pub(crate) const DONE_NONE: i64 = -1;

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    /// The role in its low bits, as a started collective operation has another one than its call.
    words: Vec<i64>,
}

/// Events that are no calls of the table, in place of a call. Their names are texts.
const REGION: i64 = 1 << 20;

impl Kind {
    /// An MPI call without fields so far.
    pub(crate) fn call(call: usize) -> Self {
        Self { words: vec![call as i64] }
    }

    /// A region that is entered or left, or a mark, by the number of its name; and the region
    /// around it.
    pub(crate) fn region(role: Role, name: usize, around: Option<usize>) -> Self {
        let around = around.map_or(-1, |around| around as i64);
        Self { words: vec![REGION + role as i64, name as i64, around] }
    }

    pub(crate) fn push(&mut self, slot: Slot, value: i64) {
        self.words.extend([slot as i64, value]);
    }

    fn pairs(&self) -> impl Iterator<Item = (i64, i64)> {
        self.words[1..].as_chunks::<2>().0.iter().map(|&[slot, value]| (slot, value))
    }

    /// The first value of a field.
    pub(crate) fn get(&self, slot: Slot) -> Option<i64> {
        self.pairs().find(|&(known, _)| known == slot as i64).map(|(_, value)| value)
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let others = self.pairs().filter(|&(known, _)| known != slot as i64);
        let others: Vec<i64> = others.flat_map(|(slot, value)| [slot, value]).collect();
        self.words.truncate(1);
        self.words.extend(others);
    }

    /// Changes the value of a field that is there.
    pub(crate) fn set(&mut self, slot: Slot, value: i64) {
        for [known, old] in self.words[1..].as_chunks_mut::<2>().0 {
            if *known == slot as i64 {
                *old = value;
            }
        }
    }
}

/// The name of a communicator: its number, and which of several lists of members it is.
pub(crate) fn comm_text(name: i64) -> String {
    match name >> 32 {
        nth if nth > 0 => format!("{}.{}", name as u32, nth + 1),
        _ => name.to_string(),
    }
}

/// The symbols of the kinds that occurred.
#[derive(Debug)]
pub(crate) struct Kinds {
    symbols: HashMap<Kind, Symbol, foldhash::fast::RandomState>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) texts: Texts,
}

/// Names of regions and of places in the program, by number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Texts {
    pub(crate) fn number(&mut self, text: &str) -> usize {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        self.all.push(text.to_string());
        self.numbers.insert(text.to_string(), self.all.len() - 1);
        self.all.len() - 1
    }
}

impl Kinds {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { symbols: HashMap::default(), shared, texts: Texts::default() }
    }

    pub(crate) fn symbol(&mut self, kind: &Kind) -> Result<Symbol> {
        if let Some(&known) = self.symbols.get(kind) {
            return Ok(known);
        }
        let symbol = self.intern(kind)?;
        self.symbols.insert(kind.clone(), symbol);
        Ok(symbol)
    }

    fn intern(&mut self, kind: &Kind) -> Result<Symbol> {
        if kind.words[0] >= REGION {
            return self.intern_region(kind);
        }
        let call = &mpi_calls()[kind.words[0] as usize];
        let mut fields: Vec<(&'static str, String, bool)> = Vec::new();
        for (slot, key) in Slot::ALL {
            let values: Vec<i64> =
                kind.pairs().filter(|&(known, _)| known == slot as i64).map(|(_, value)| value).collect();
            if let Some(&first) = values.first() {
                // As many peers as there are messages, even if they are equal.
                let is_list = matches!(slot, Slot::Dims | Slot::Periods | Slot::Dest | Slot::Src);
                let is_one = values.iter().all(|&value| value == first) && !is_list;
                let values = if is_one { &values[..1] } else { &values };
                let separator = if matches!(slot, Slot::Dims | Slot::Periods) { "x" } else { "," };
                let texts: Vec<String> = values.iter().map(|&value| self.text(slot, value)).collect();
                fields.push((key, texts.join(separator), values.len() == 1));
            }
        }
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(key, text, is_one)| {
                let number = text.parse().ok().filter(|_| *is_one);
                Field { key, value: number.map_or(Value::Text(text.as_bytes()), Value::Integer) }
            })
            .collect();
        // A started collective operation is one.
        let role = if kind.get(Slot::Of).is_some() { Role::Collective } else { call.role };
        self.shared
            .symbols()
            .alphabet
            .intern(&Event { role, fields: &fields, ..Event::named(&call.name) }, None)
    }

    fn intern_region(&mut self, kind: &Kind) -> Result<Symbol> {
        let name = &self.texts.all[kind.words[1] as usize];
        let around = usize::try_from(kind.words[2]).ok().map(|around| self.texts.all[around].as_str());
        let (role, field) = match kind.words[0] - REGION {
            role if role == Role::Enter as i64 => (Role::Enter, around.map(|around| ("caller", around))),
            role if role == Role::Leave as i64 => (Role::Leave, Some(("function", name.as_str()))),
            _ => (Role::Plain, None),
        };
        let fields: Vec<Field<'_>> =
            field.iter().map(|&(key, text)| Field { key, value: Value::Text(text.as_bytes()) }).collect();
        self.shared.symbols().alphabet.intern(&Event { role, fields: &fields, ..Event::named(name) }, None)
    }

    fn text(&self, slot: Slot, value: i64) -> String {
        match (slot, value) {
            (Slot::Dest | Slot::Src | Slot::From | Slot::Tag | Slot::RecvTag, ANY) => "any".to_string(),
            (Slot::Dest | Slot::Src | Slot::From | Slot::Target, NOBODY) => "none".to_string(),
            (Slot::Root, ROOT) => "self".to_string(),
            (Slot::Root, NOBODY) => "group".to_string(),
            (Slot::Comm | Slot::NewComm, name) if name >> 32 > 0 => comm_text(name),
            (Slot::Comm, -1) | (Slot::Done, DONE_NONE) => "none".to_string(),
            (Slot::Op, _) => OPERATIONS.get(value as usize).unwrap_or(&OPERATIONS[0]).to_string(),
            (Slot::Any, ANY_SOURCE) => "src".to_string(),
            (Slot::Any, ANY_TAG) => "tag".to_string(),
            (Slot::Any, _) => "src,tag".to_string(),
            (Slot::Of, _) => mpi_calls()[value as usize].name.trim_end_matches("_init").to_string(),
            (Slot::Site, _) => self.texts.all[value as usize].clone(),
            _ => value.to_string(),
        }
    }
}
