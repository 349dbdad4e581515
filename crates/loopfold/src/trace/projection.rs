//! Projections: which of an event's name and fields make its symbol.
//!
//! The same projection applies to events that come from a source and to the alphabet
//! of an archive, as long as that still has the fields.

use super::event::{Event, Field, Name, Value};
use super::{Alphabet, EventFilter, Meaning};
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

/// A projection: what counts as the same event.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// What determines the symbol: `name` and keys of fields, or `all`. `None` for the name and
    /// the default fields of the source.
    pub key: Option<Vec<String>>,
    /// Fields left out in any case.
    pub ignore: Vec<String>,
    /// Classes that stand for several names, of events and of their functions.
    pub map: NameMap,
    /// The name and fields that stay in any case. See [`Projection::keeping`].
    pub keep: Vec<String>,
    /// Which events are taken at all.
    pub filter: EventFilter,
}

impl Projection {
    /// True when every event that is taken is taken as it comes.
    pub fn is_identity(&self) -> bool {
        self.key.is_none() && self.ignore.is_empty() && self.map.is_empty()
    }

    /// A projection that drops all it can except these parts, which are still needed; the
    /// projection itself drops them later. Names are not changed, and all events are kept.
    pub fn keeping(&self, parts: &[&str]) -> Self {
        let keep = parts.iter().map(ToString::to_string).collect();
        Self { key: self.key.clone(), ignore: self.ignore.clone(), keep, ..Self::default() }
    }

    /// The fields that it names.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let named = self.key.iter().flatten().chain(&self.ignore).map(String::as_str);
        named.filter(|&field| field != "name" && field != "all")
    }

    /// Whether a source should give this field though it is not one of its defaults.
    pub fn wants(&self, field: &str) -> bool {
        let asked = self.key.as_ref().is_some_and(|key| key.iter().any(|k| k == field || k == "all"));
        asked && !self.ignores(field)
    }

    /// Whether there is any such field; if not, a source need not look for them.
    pub fn wants_any(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.iter().any(|k| k != "name"))
    }

    fn ignores(&self, field: &str) -> bool {
        self.ignore.iter().any(|ignored| ignored == field)
    }

    fn keeps(&self, what: &str) -> bool {
        self.must_keep(what) || self.chooses(what)
    }

    fn must_keep(&self, what: &str) -> bool {
        self.keep.iter().any(|kept| kept == what)
    }

    fn chooses(&self, what: &str) -> bool {
        self.key.as_ref().is_none_or(|key| key.iter().any(|k| k == what || k == "all")) && !self.ignores(what)
    }

    /// Calls `then` with the event as the projection sees it. When the key leaves out
    /// the name, the value of its first field takes the name's place.
    pub(crate) fn apply<T>(&self, event: &Event<'_>, then: impl FnOnce(&Event<'_>) -> T) -> T {
        if self.is_identity() {
            return then(event);
        }
        let mut fields: Vec<Field<'_>> = match &self.key {
            // In the order of the key, so that the order on the command line counts.
            Some(key) if !key.iter().any(|k| k == "all") => key
                .iter()
                .chain(self.keep.iter().filter(|kept| !key.contains(kept)))
                .filter_map(|k| event.fields.iter().find(|field| field.key == k && self.keeps(k)))
                .copied()
                .collect(),
            _ => event.fields.iter().filter(|field| self.keeps(field.key)).copied().collect(),
        };
        let mut number = String::new();
        let name = if self.keeps("name") {
            event.name
        } else if fields.is_empty() {
            Name::Text(b"-")
        } else {
            match fields.remove(0).value {
                Value::Text(text) => Name::Text(text),
                Value::Integer(value) => {
                    number = value.to_string();
                    Name::Text(number.as_bytes())
                }
            }
        };
        let name = self.map.class_of(name).map_or(name, Name::Text);
        // A function's blocks and exits stay with its entries.
        for field in fields.iter_mut().filter(|field| ["function", "caller"].contains(&field.key)) {
            if let Value::Text(text) = field.value
                && let Some(class) = self.map.class_of(Name::Text(text))
            {
                field.value = Value::Text(class);
            }
        }
        let result = then(&Event { name, role: event.role, fields: &fields });
        drop(number);
        result
    }

    /// The alphabet as the projection sees it, and for each old symbol the new one.
    pub fn of_alphabet(&self, alphabet: &Alphabet) -> Result<(Alphabet, Vec<Symbol>)> {
        let mut projected = Alphabet::default();
        let mut renamed = Vec::with_capacity(alphabet.len());
        for symbol in alphabet.symbols() {
            let meaning: Meaning<'_> = alphabet.meaning(symbol);
            renamed.push(self.apply(&meaning.event(), |event| projected.intern(event, None))?);
        }
        Ok((projected, renamed))
    }
}

/// Classes for names: exact names, or a prefix followed by `*`.
#[derive(Clone, Debug, Default)]
pub struct NameMap {
    exact: HashMap<Vec<u8>, Vec<u8>>,
    /// Longest prefix first, so that the most specific one wins.
    prefixes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl NameMap {
    /// Reads lines of a name, a tab (or ` -> `), and its class; `#` starts a comment line. A
    /// name that ends in `*` stands for all names with that prefix.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut map = Self::default();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii_end();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let Some((name, class)) = split_line(line) else {
                return Err(Error::invalid(format_args!(
                    "line {}: expected a name, a tab and a class",
                    number + 1
                )));
            };
            match name.strip_suffix(b"*") {
                Some(prefix) => map.prefixes.push((prefix.to_vec(), class.to_vec())),
                None => {
                    map.exact.insert(name.to_vec(), class.to_vec());
                }
            }
        }
        map.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(map)
    }

    /// True when no name has a class.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }

    fn class_of(&self, name: Name<'_>) -> Option<&[u8]> {
        if self.is_empty() {
            return None;
        }
        let number;
        let name = match name {
            Name::Text(text) => text,
            Name::Integer(value) => {
                number = value.to_string();
                number.as_bytes()
            }
        };
        let by_prefix =
            || self.prefixes.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, class)| class);
        self.exact.get(name).or_else(by_prefix).map(Vec::as_slice)
    }
}

fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(tab) = line.iter().position(|&byte| byte == b'\t') {
        return Some((&line[..tab], line[tab + 1..].trim_ascii()));
    }
    let arrow = line.windows(4).position(|window| window == b" -> ")?;
    Some((line[..arrow].trim_ascii_end(), line[arrow + 4..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Role;

    fn label_under(projection: &Projection) -> String {
        let fields = [
            Field { key: "errno", value: Value::Text(b"ENOENT") },
            Field { key: "fd", value: Value::Integer(3) },
        ];
        let event = Event { fields: &fields, ..Event::named("openat") };
        let mut alphabet = Alphabet::default();
        let symbol = projection.apply(&event, |event| alphabet.intern(event, None)).unwrap();
        alphabet.label(symbol)
    }

    fn key(names: &[&str]) -> Projection {
        Projection { key: Some(names.iter().map(ToString::to_string).collect()), ..Projection::default() }
    }

    #[test]
    fn the_key_chooses_and_orders_what_counts() {
        assert_eq!(label_under(&Projection::default()), "openat errno=ENOENT fd=3");
        assert_eq!(label_under(&key(&["name"])), "openat");
        assert_eq!(label_under(&key(&["name", "fd", "errno"])), "openat fd=3 errno=ENOENT");
        assert_eq!(label_under(&key(&["fd", "errno"])), "3 errno=ENOENT");
        assert_eq!(label_under(&key(&["all"])), "openat errno=ENOENT fd=3");
        let ignore = Projection { ignore: vec!["fd".into()], ..Projection::default() };
        assert_eq!(label_under(&ignore), "openat errno=ENOENT");
        assert_eq!(label_under(&ignore.keeping(&["fd"])), "openat errno=ENOENT fd=3");
        assert_eq!(label_under(&key(&["errno"]).keeping(&["name", "fd"])), "openat errno=ENOENT fd=3");
        assert_eq!(label_under(&key(&["name"]).keeping(&["name", "x"])), "openat");
    }

    #[test]
    fn functions_fall_into_classes_with_their_calls() {
        let map = NameMap::parse(b"init_*\tinit\n1\tfirst\n").unwrap();
        let projection = Projection { map, ..Projection::default() };
        let mut alphabet = Alphabet::default();
        let mut label = |role, name: &str, key, function: &[u8]| {
            let fields = [Field { key, value: Value::Text(function) }];
            let event = Event { role, fields: &fields, ..Event::named(name) };
            let symbol = projection.apply(&event, |event| alphabet.intern(event, None)).unwrap();
            alphabet.label(symbol)
        };
        assert_eq!(label(Role::Block, "1", "function", b"init_a"), "first function=init");
        assert_eq!(label(Role::Leave, "init_b", "function", b"init_b"), "leave init");
        assert_eq!(label(Role::Enter, "init_b", "caller", b"init_a"), "enter init caller=init");
        assert_eq!(label(Role::Block, "2", "other", b"init_a"), "2 other=init_a");
    }

    #[test]
    fn names_fall_into_classes() {
        let map = NameMap::parse(b"# files\nopen*\tfile\nopenat -> special\n\n").unwrap();
        assert_eq!(map.class_of(Name::Text(b"openat")), Some(&b"special"[..]));
        assert_eq!(map.class_of(Name::Text(b"open")), Some(&b"file"[..]));
        assert_eq!(map.class_of(Name::Text(b"read")), None);
        let error = NameMap::parse(b"ok\tfine\nbroken line\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: expected a name, a tab and a class");
    }
}
