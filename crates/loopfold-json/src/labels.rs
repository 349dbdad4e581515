//! Labels of events and functions, none longer than [`LONGEST_LABEL`] bytes.
//!
//! A name in an archive or a grammar can be megabytes long, and a nest can show it millions of
//! times: a longer label is cut at a character and ends in `…`, and the answer counts
//! the distinct labels that were cut. Formatting stops at the limit.
//!
//! Events repeat, so the JSON text of a label is kept in a direct-mapped cache: a symbol has one
//! slot, which it shares with others. Memory: O(1), at most 2 × [`LONGEST_LABEL`] bytes for each of
//! 2,048 slots; O(distinct labels) only for those that were cut. Time: O(bytes written), plus a scan
//! of the name where it is not in the cache.

use crate::JsonWriter;
use crate::writer::Value;
use loopfold::Symbol;
use loopfold::trace::{Alphabet, Meaning, Name};
use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};

/// The most bytes of a label that are written; `…` follows where it is longer.
pub const LONGEST_LABEL: usize = 4096;

const SLOTS: usize = 2048;

/// Writes the labels of an alphabet, and counts those that it cut.
#[derive(Debug)]
pub struct Labels<'a> {
    alphabet: &'a Alphabet,
    /// The symbols last written, each with its JSON text; none before the first.
    slots: Vec<Slot>,
    text: Bounded,
    cut_symbols: HashSet<Symbol>,
    /// Hashes, since the names may be long.
    cut_names: HashSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    symbol: Option<Symbol>,
    json: Vec<u8>,
}

impl<'a> Labels<'a> {
    /// None cut so far.
    pub fn new(alphabet: &'a Alphabet) -> Self {
        Self {
            alphabet,
            slots: Vec::new(),
            text: Bounded::default(),
            cut_symbols: HashSet::new(),
            cut_names: HashSet::new(),
        }
    }

    /// The label of an event as a value.
    pub fn event<W: Write>(&mut self, out: &mut JsonWriter<W>, symbol: Symbol) -> io::Result<()> {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS];
        }
        let slot = &mut self.slots[symbol.index() % SLOTS];
        if slot.symbol != Some(symbol) {
            if self.text.set(self.alphabet.meaning(symbol)) {
                self.cut_symbols.insert(symbol);
            }
            slot.symbol = None;
            slot.json.clear();
            Value::Text(&self.text.text).write_to(&mut slot.json)?;
            slot.symbol = Some(symbol);
        }
        out.formatted(&slot.json)
    }

    /// The labels of events as an array.
    pub fn events<W: Write>(
        &mut self,
        out: &mut JsonWriter<W>,
        symbols: impl IntoIterator<Item = Symbol>,
    ) -> io::Result<()> {
        out.begin_array()?;
        for symbol in symbols {
            self.event(out, symbol)?;
        }
        out.end()
    }

    /// The name of an event without its role and fields, as a value.
    pub fn name_of<W: Write>(&mut self, out: &mut JsonWriter<W>, symbol: Symbol) -> io::Result<()> {
        let name = self.alphabet.meaning(symbol).name;
        self.name(out, name)
    }

    /// The name of a function as a value.
    pub fn function<W: Write>(&mut self, out: &mut JsonWriter<W>, name: &[u8]) -> io::Result<()> {
        self.name(out, Name::Text(name))
    }

    fn name<W: Write>(&mut self, out: &mut JsonWriter<W>, name: Name<'_>) -> io::Result<()> {
        if self.text.set(Meaning { name, ..Meaning::default() })
            && let Name::Text(name) = name
        {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            self.cut_names.insert(hasher.finish());
        }
        out.value(&self.text.text)
    }

    /// How many distinct labels were cut.
    pub fn cut(&self) -> usize {
        self.cut_symbols.len() + self.cut_names.len()
    }

    /// The field `labels_cut` of an answer, if any were.
    pub fn cut_field<W: Write>(&self, out: &mut JsonWriter<W>) -> io::Result<()> {
        cut_field(out, self.cut())
    }
}

/// The field `labels_cut`, if any were.
pub(crate) fn cut_field<W: Write>(out: &mut JsonWriter<W>, cut: usize) -> io::Result<()> {
    if cut > 0 { out.field("labels_cut", cut) } else { Ok(()) }
}

/// Text that takes no more than its limit.
#[derive(Debug, Default)]
struct Bounded {
    text: String,
}

impl Bounded {
    /// Sets the text; true if it was cut.
    fn set(&mut self, meaning: Meaning<'_>) -> bool {
        self.text.clear();
        let is_cut = write!(self, "{meaning}").is_err();
        if is_cut {
            self.text.push('…');
        }
        is_cut
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST_LABEL - self.text.len();
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.text.push_str(&text[..end]);
        Err(fmt::Error)
    }
}
