//! Numbers the kinds of events: a kind is a name and the values of the wanted fields. Each distinct
//! kind is kept once; an event refers to it by number.

use super::json::{Cursor, Kind, Value};
use crate::frames::{UNKNOWN, text_field};
use crate::interner::Interner;
use crate::{Context, Result};
use hashbrown::HashMap;
use loopfold::Symbol;
use loopfold::trace::{self, Event, Field, Role};

/// The distinct kinds of events.
#[derive(Default)]
pub(super) struct Kinds {
    /// An entry is the length of the name, the name, and the fields.
    entries: Interner,
    entry: Vec<u8>,
    keys: Keys,
}

/// Which keys occur, and which of them are wanted.
#[derive(Default)]
struct Keys {
    /// Usually none is, and then arguments are not parsed.
    wants_any: Option<bool>,
    wants_category: Option<bool>,
    /// For each key of the arguments seen: its number if it is wanted.
    of_args: HashMap<Vec<u8>, Option<u32>, foldhash::fast::RandomState>,
    /// The wanted keys by number, as fields are called.
    names: Vec<String>,
}

const CATEGORY: u32 = u32::MAX;
const INTEGER: u8 = 0;
const TEXT: u8 = 1;

impl Kinds {
    /// The kind of an event.
    pub(super) fn intern(
        &mut self,
        name: &[u8],
        category: Value<'_>,
        args: Value<'_>,
        context: &Context<'_>,
    ) -> Result<u32> {
        self.entry.clear();
        put_bytes(&mut self.entry, name);
        if self.keys.want_any(context) {
            self.put_fields(category, args, context);
        }
        self.entries.intern(&self.entry)
    }

    fn put_fields(&mut self, category: Value<'_>, args: Value<'_>, context: &Context<'_>) {
        if category.kind != Kind::Absent && self.keys.want_category(context) {
            put_field(&mut self.entry, CATEGORY, category);
        }
        if args.kind == Kind::Nested && args.bytes.starts_with(b"{") {
            let Self { entry, keys, .. } = self;
            let each = |key: Value<'_>, value: Value<'_>| {
                if let Some(number) = keys.want_arg(key.bytes, context) {
                    put_field(entry, number, value);
                }
            };
            // The brackets match, or the event would not have been found. What is
            // malformed inside is of no use as a field.
            let _ = Cursor::new(args.bytes).object(each);
        }
    }

    /// The name of a kind.
    pub(super) fn name(&self, kind: u32) -> &[u8] {
        take_bytes(&mut self.entries.get(kind)).unwrap_or_default()
    }

    /// The name and the fields of a kind.
    fn get<'a>(&'a self, kind: u32, fields: &mut Vec<Field<'a>>) -> &'a [u8] {
        let mut rest = self.entries.get(kind);
        let name = take_bytes(&mut rest).unwrap_or_default();
        fields.clear();
        while let Some(field) = self.take_field(&mut rest) {
            fields.push(field);
        }
        name
    }

    fn take_field<'a>(&'a self, rest: &mut &'a [u8]) -> Option<Field<'a>> {
        let number = take_number(rest)?;
        let key = if number == CATEGORY { "cat" } else { self.keys.names.get(number as usize)? };
        let (&form, tail) = rest.split_first()?;
        *rest = tail;
        let bytes = take_bytes(rest)?;
        let value = match form {
            INTEGER => trace::Value::Integer(i64::from_le_bytes(bytes.try_into().ok()?)),
            _ => trace::Value::Text(bytes),
        };
        Some(Field { key, value })
    }
}

/// The symbols of events of known kinds. Each is interned when it is first pushed, so that
/// the alphabet is in the order of the events and has no others.
pub(super) struct Symbols<'a> {
    kinds: &'a Kinds,
    /// By role, kind, and the kind of the function around.
    known: HashMap<(Role, u32, Option<u32>), Symbol, foldhash::fast::RandomState>,
}

impl<'a> Symbols<'a> {
    pub(super) fn new(kinds: &'a Kinds) -> Self {
        Self { kinds, known: HashMap::default() }
    }

    /// The symbol of an event of this kind; `function` is the kind of the slice around it,
    /// or for an exit its own.
    pub(super) fn of(
        &mut self,
        role: Role,
        kind: u32,
        function: Option<u32>,
        context: &mut Context<'_>,
    ) -> Result<Symbol> {
        if let Some(&known) = self.known.get(&(role, kind, function)) {
            return Ok(known);
        }
        let mut fields = Vec::new();
        let name = self.kinds.get(kind, &mut fields);
        let key = if role == Role::Enter { "caller" } else { "function" };
        let around = function.map(|function| self.kinds.name(function));
        let around = around.or((role == Role::Block).then_some(UNKNOWN));
        fields.extend(around.map(|around| text_field(key, around)));
        let symbol = context.intern(&Event { role, fields: &fields, ..Event::named(name) })?;
        self.known.insert((role, kind, function), symbol);
        Ok(symbol)
    }
}

impl Keys {
    fn want_any(&mut self, context: &Context<'_>) -> bool {
        *self.wants_any.get_or_insert_with(|| context.wants_any())
    }

    fn want_category(&mut self, context: &Context<'_>) -> bool {
        *self.wants_category.get_or_insert_with(|| context.wants("cat"))
    }

    /// The number of a key of the arguments, if it is wanted. The user is asked once.
    fn want_arg(&mut self, key: &[u8], context: &Context<'_>) -> Option<u32> {
        if let Some(&known) = self.of_args.get(key) {
            return known;
        }
        let name = format!("args.{}", String::from_utf8_lossy(key));
        let number = u32::try_from(self.names.len()).ok().filter(|_| context.wants(&name));
        if number.is_some() {
            self.names.push(name);
        }
        if number.is_some() || self.of_args.len() < KEYS_REMEMBERED {
            self.of_args.insert(key.to_vec(), number);
        }
        number
    }
}

/// Some traces have addresses for keys; these are not worth remembering.
const KEYS_REMEMBERED: usize = 10_000;

fn put_field(entry: &mut Vec<u8>, key: u32, value: Value<'_>) {
    entry.extend_from_slice(&key.to_le_bytes());
    let integer = || std::str::from_utf8(value.bytes).ok()?.parse::<i64>().ok();
    if value.kind == Kind::Word
        && let Some(number) = integer()
    {
        entry.push(INTEGER);
        put_bytes(entry, &number.to_le_bytes());
        return;
    }
    entry.push(TEXT);
    put_bytes(entry, value.text(&mut Vec::new()));
}

fn put_bytes(entry: &mut Vec<u8>, bytes: &[u8]) {
    // An event is far smaller than 4 GiB, see `LARGEST_EVENT`.
    entry.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    entry.extend_from_slice(bytes);
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_le_bytes(*number))
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(rest)? as usize;
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes)
}
