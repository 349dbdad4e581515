//! The alphabet: which symbol stands for which event.
//!
//! An entry is stored as the bytes that make it different from every other entry
//! (see [`encode`]), one after the other in one buffer. So interning compares bytes,
//! the archive stores the buffer as it is, and an entry is decoded only when it is
//! shown. Interning costs a hash of the name, or a comparison when the event is the
//! one that followed the previous event last time; an entry takes its bytes and
//! about 16 more.

use super::event::{Event, Field, Name, Role, Value};
use crate::bytes::{Bytes, put_number, put_text};
use crate::emit::Terminal;
use crate::{Error, Result, Symbol};
use hashbrown::HashTable;
use std::fmt;
use std::hash::BuildHasher;

/// The meanings of the symbols of a trace.
#[derive(Clone, Default)]
pub struct Alphabet {
    /// The entries, end to end.
    bytes: Vec<u8>,
    /// Where each entry ends.
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    scratch: Vec<u8>,
    /// For each symbol the one that followed it last: traces repeat themselves, so
    /// most look-ups are answered by one comparison.
    successors: Vec<u32>,
    /// Recently seen events that are only a short name: letters, small numbers.
    recent: Vec<Recent>,
}

/// A short name, as [`short_name`] packs it, and its symbol.
#[derive(Clone, Copy, Default)]
struct Recent {
    name: u64,
    kind: u32,
    symbol: u32,
}

/// As many as fit the nearest cache.
const RECENT: usize = 1024;

/// A plain event that is only a name of up to eight bytes, or an integer, as a number
/// and what kind of name it is; the kind is never 0.
fn short_name(event: &Event<'_>) -> Option<(u64, u32)> {
    if event.role != Role::Plain || !event.fields.is_empty() {
        return None;
    }
    match event.name {
        Name::Integer(number) => Some((number, 1)),
        Name::Text(text) if text.len() <= 8 => {
            let mut bytes = [0; 8];
            bytes[..text.len()].copy_from_slice(text);
            Some((u64::from_le_bytes(bytes), 2 + text.len() as u32))
        }
        Name::Text(_) => None,
    }
}

impl PartialEq for Alphabet {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.ends == other.ends
    }
}

impl fmt::Debug for Alphabet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.symbols().map(|symbol| self.label(symbol))).finish()
    }
}

impl Alphabet {
    /// The number of symbols.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All symbols, in the order in which they were first seen.
    pub fn symbols(&self) -> impl ExactSizeIterator<Item = Symbol> + use<> {
        // The range is bounded by `intern`, which hands out no symbol past the limit.
        (0..self.ends.len() as u32).map(Symbol::from_raw)
    }

    /// The symbol of this event. `previous` is the symbol before it in its stream; it only
    /// makes the look-up faster.
    pub fn intern(&mut self, event: &Event<'_>, previous: Option<Symbol>) -> Result<Symbol> {
        let Some((name, kind)) = short_name(event) else { return self.intern_any(event, previous) };
        if self.recent.is_empty() {
            self.recent = vec![Recent::default(); RECENT];
        }
        let slot = (name ^ u64::from(kind)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        let recent = self.recent[slot as usize];
        if recent.name == name && recent.kind == kind {
            return Ok(Symbol::from_raw(recent.symbol));
        }
        let symbol = self.intern_any(event, None)?;
        self.recent[slot as usize] = Recent { name, kind, symbol: symbol.raw() };
        Ok(symbol)
    }

    /// The symbol of an event, if it has one.
    pub fn symbol(&self, event: &Event<'_>) -> Option<Symbol> {
        let mut entry = Vec::new();
        encode(event, &mut entry);
        let hash = self.hasher.hash_one(&entry[..]);
        let found = self.index.find(hash, |&known| self.entry_at(known as usize) == entry)?;
        Some(Symbol::from_raw(*found))
    }

    fn intern_any(&mut self, event: &Event<'_>, previous: Option<Symbol>) -> Result<Symbol> {
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        encode(event, &mut key);
        let symbol = self.intern_entry(&key, previous);
        self.scratch = key;
        symbol
    }

    /// The symbol of an entry as [`Alphabet::entry`] gives it.
    pub(crate) fn intern_entry(&mut self, entry: &[u8], previous: Option<Symbol>) -> Result<Symbol> {
        if let Some(previous) = previous {
            let guess = self.successors[previous.index()];
            if (guess as usize) < self.ends.len() && self.entry_at(guess as usize) == entry {
                return Ok(Symbol::from_raw(guess));
            }
        }
        let symbol = self.look_up_or_add(entry)?;
        if let Some(previous) = previous {
            self.successors[previous.index()] = symbol.raw();
        }
        Ok(symbol)
    }

    fn look_up_or_add(&mut self, entry: &[u8]) -> Result<Symbol> {
        let hash = self.hasher.hash_one(entry);
        let found = self.index.find(hash, |&other| self.entry_at(other as usize) == entry);
        if let Some(&symbol) = found {
            return Ok(Symbol::from_raw(symbol));
        }
        let symbol = Symbol::new(self.ends.len())?;
        self.bytes.extend_from_slice(entry);
        self.ends.push(self.bytes.len());
        self.successors.push(u32::MAX);
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.index.insert_unique(hash, symbol.raw(), |&other| {
            hasher.hash_one(slice_of(bytes, ends, other as usize))
        });
        Ok(symbol)
    }

    /// The bytes that make this symbol what it is.
    pub(crate) fn entry(&self, symbol: Symbol) -> &[u8] {
        self.entry_at(symbol.index())
    }

    fn entry_at(&self, index: usize) -> &[u8] {
        slice_of(&self.bytes, &self.ends, index)
    }

    /// The meaning of a symbol.
    ///
    /// # Panics
    /// If the symbol is of another alphabet and out of range here.
    pub fn meaning(&self, symbol: Symbol) -> Meaning<'_> {
        decode(self.entry(symbol)).unwrap_or_default()
    }

    /// The symbol as text: its name and its fields, invalid UTF-8 and control
    /// characters escaped.
    pub fn label(&self, symbol: Symbol) -> String {
        self.meaning(symbol).to_string()
    }

    /// Adds an entry read from a file, which must be well formed and new.
    pub(crate) fn restore(&mut self, entry: &[u8]) -> Result<()> {
        if !is_well_formed(entry) {
            return Err(Error::damaged("alphabet", "an entry is malformed"));
        }
        let before = self.len();
        self.look_up_or_add(entry)?;
        if self.len() == before {
            return Err(Error::damaged("alphabet", "an entry occurs twice"));
        }
        Ok(())
    }
}

fn slice_of<'a>(bytes: &'a [u8], ends: &[usize], index: usize) -> &'a [u8] {
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &bytes[start..ends[index]]
}

/// A decoded entry of the alphabet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meaning<'a> {
    /// What happened.
    pub name: Name<'a>,
    /// Its role.
    pub role: Role,
    /// The fields that make the symbol.
    pub fields: Vec<Field<'a>>,
}

impl<'a> Meaning<'a> {
    /// The event this symbol stands for.
    pub fn event(&'a self) -> Event<'a> {
        Event { name: self.name, role: self.role, fields: &self.fields }
    }

    /// Whether a field only repeats the name: the field `function` of an exit.
    fn repeats_name(&self, field: &Field<'_>) -> bool {
        let name = match self.name {
            Name::Text(text) => text,
            Name::Integer(_) => return false,
        };
        self.role == Role::Leave && field.key == "function" && field.value == Value::Text(name)
    }

    /// The value of a field.
    pub fn field(&self, key: &str) -> Option<Value<'a>> {
        self.fields.iter().find(|field| field.key == key).map(|field| field.value)
    }
}

impl fmt::Display for Meaning<'_> {
    /// With `{:#}`, integers are shown in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.role == Role::Leave {
            f.write_str("leave ")?;
        }
        if self.role == Role::Enter {
            f.write_str("enter ")?;
        }
        match self.name {
            Name::Text(text) => write!(f, "{}", Terminal::of(text))?,
            Name::Integer(number) if f.alternate() => write!(f, "{number:#x}")?,
            Name::Integer(number) => write!(f, "{number}")?,
        }
        for field in self.fields.iter().filter(|field| !self.repeats_name(field)) {
            f.write_str(" ")?;
            write!(f, "{}", Terminal::of(field.key))?;
            f.write_str("=")?;
            match field.value {
                Value::Integer(number) => write!(f, "{number}")?,
                Value::Text(text) => write!(f, "{}", Terminal::of(text))?,
            }
        }
        Ok(())
    }
}

const ROLE_BITS: u8 = 0x0f;
const INTEGER_NAME: u8 = 0x10;
const HAS_FIELDS: u8 = 0x20;

/// Whether an entry with this first byte has only a number after it: its bytes, low ones first,
/// without zeros at the end.
pub(crate) fn is_bare_integer(head: u8) -> bool {
    head & (INTEGER_NAME | HAS_FIELDS) == INTEGER_NAME
}

/// Writes what makes an event's symbol: a byte with the role and two flags; if there
/// are fields, their number and each field's key and value; then the name, to the end.
/// An event that is only a name costs one byte besides it.
fn encode(event: &Event<'_>, out: &mut Vec<u8>) {
    let mut head = event.role.code();
    if matches!(event.name, Name::Integer(_)) {
        head |= INTEGER_NAME;
    }
    if !event.fields.is_empty() {
        head |= HAS_FIELDS;
    }
    out.push(head);
    if !event.fields.is_empty() {
        put_number(out, event.fields.len() as u64);
        for field in event.fields {
            put_text(out, field.key.as_bytes());
            match field.value {
                Value::Integer(number) => {
                    out.push(0);
                    out.extend_from_slice(&number.to_le_bytes());
                }
                Value::Text(text) => {
                    out.push(1);
                    put_text(out, text);
                }
            }
        }
    }
    match event.name {
        Name::Text(text) => out.extend_from_slice(text),
        Name::Integer(number) => {
            let used = 8 - number.leading_zeros() as usize / 8;
            out.extend_from_slice(&number.to_le_bytes()[..used]);
        }
    }
}

/// The reverse of [`encode`]. Returns `None` if the bytes are malformed.
fn decode(entry: &[u8]) -> Option<Meaning<'_>> {
    let mut bytes = Bytes::new(entry, "alphabet");
    let head = bytes.byte().ok()?;
    if head & !(ROLE_BITS | INTEGER_NAME | HAS_FIELDS) != 0 {
        return None;
    }
    let role = Role::from_code(head & ROLE_BITS)?;
    let mut fields = Vec::new();
    if head & HAS_FIELDS != 0 {
        for _ in 0..bytes.number().ok()? {
            let key = std::str::from_utf8(bytes.text().ok()?).ok()?;
            let value = match bytes.byte().ok()? {
                0 => Value::Integer(i64::from_le_bytes(bytes.array().ok()?)),
                1 => Value::Text(bytes.text().ok()?),
                _ => return None,
            };
            fields.push(Field { key, value });
        }
    }
    let rest = bytes.rest();
    let name = if head & INTEGER_NAME == 0 {
        Name::Text(rest)
    } else {
        let mut number = [0; 8];
        number.get_mut(..rest.len())?.copy_from_slice(rest);
        Name::Integer(u64::from_le_bytes(number))
    };
    Some(Meaning { name, role, fields })
}

/// Whether these are the bytes that [`encode`] writes, and not another encoding of the same
/// event: two symbols must not have one meaning.
fn is_well_formed(entry: &[u8]) -> bool {
    let mut again = Vec::with_capacity(entry.len());
    decode(entry).is_some_and(|meaning| {
        encode(&meaning.event(), &mut again);
        again == entry
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_interned_once_and_decoded_as_it_was() {
        let fields = [
            Field { key: "peer", value: Value::Integer(-6) },
            Field { key: "region", value: Value::Text(b"x\xffy") },
        ];
        let send = Event { name: Name::Text(b"MPI_Send"), role: Role::Send, fields: &fields };
        let mut alphabet = Alphabet::default();
        let first = alphabet.intern(&send, None).unwrap();
        let number = alphabet.intern(&Event::integer(0x8000_2318), Some(first)).unwrap();
        let zero = alphabet.intern(&Event::integer(0), Some(number)).unwrap();
        assert_eq!(alphabet.intern(&send, Some(zero)).unwrap(), first);
        assert_eq!(alphabet.intern(&Event::integer(0x8000_2318), Some(first)).unwrap(), number);
        assert_eq!(alphabet.len(), 3);
        assert_eq!(alphabet.meaning(first).event().fields, &fields);
        assert_eq!(alphabet.meaning(first).field("peer"), Some(Value::Integer(-6)));
        assert_eq!(alphabet.label(first), r"MPI_Send peer=-6 region=x\xffy");
        assert_eq!(alphabet.label(number), "2147492632");
        assert_eq!(format!("{:#}", alphabet.meaning(number)), "0x80002318");
        assert_eq!(alphabet.label(zero), "0");
    }

    #[test]
    fn an_exit_is_shown_with_its_function_once() {
        let mut alphabet = Alphabet::default();
        let mut label = |role, name: &str| {
            let fields = [Field { key: "function", value: Value::Text(b"f") }];
            let symbol = alphabet.intern(&Event { role, fields: &fields, ..Event::named(name) }, None);
            alphabet.label(symbol.unwrap())
        };
        assert_eq!(label(Role::Leave, "f"), "leave f");
        assert_eq!(label(Role::Leave, "g"), "leave g function=f");
        assert_eq!(label(Role::Block, "f"), "f function=f");
    }

    #[test]
    fn names_cannot_drive_a_terminal() {
        let mut alphabet = Alphabet::default();
        let nasty = alphabet.intern(&Event::named("a\x1b[31mred\u{202e}\u{9b}"), None).unwrap();
        assert_eq!(alphabet.label(nasty), r"a\u{1b}[31mred\u{202e}\u{9b}");
        let fields = [Field { key: "k\x1b[2J", value: Value::Integer(1) }];
        let nasty = alphabet.intern(&Event { fields: &fields, ..Event::named("a\u{61c}") }, None).unwrap();
        assert_eq!(alphabet.label(nasty), r"a\u{61c} k\u{1b}[2J=1");
    }

    #[test]
    fn malformed_entries_are_refused() {
        for entry in [
            &b""[..],
            b"\x0f",
            b"\x40a",
            b"\x20\x01",
            b"\x20\x00a",
            b"\x20\x81\x00\x01k\x01\x01va",
            b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x10123456789",
            b"\x10\x01\x00",
        ] {
            assert!(Alphabet::default().restore(entry).is_err(), "{entry:?}");
        }
    }
}
