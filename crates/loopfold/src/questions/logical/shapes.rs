//! The shape of an event: what is left of it without the values that may depend on the process.
//!
//! Streams with the same sequence of shapes are one class: they do the same, with other peers or
//! sizes. The sequence is compared by a hash of it, a measure of the fold, so that classes cost
//! O(items of the fold), independent of the number of events. A collision would be noticed: a
//! logical trace is compared with the streams in the end.

use super::expression::Token;
use crate::fold::measure::{Measure, measure_rules};
use crate::questions::communication::SequenceHash;
use crate::trace::{Meaning, Name, Value};
use crate::{Fold, Result, Symbol};
use hashbrown::HashMap;

/// Fields that may depend on the process where events are the same.
const VARYING: [&str; 11] =
    ["dest", "src", "from", "target", "root", "bytes", "recvbytes", "color", "key", "n", "done"];

/// Fields that are ranks of the communicator.
pub(super) const PEERS: [&str; 4] = ["dest", "src", "from", "root"];

/// The shapes of all symbols of an alphabet, as numbers.
pub(super) struct Shapes<'a> {
    pub(super) meanings: Vec<Meaning<'a>>,
    /// Without varying fields.
    pub(super) strict: Vec<u32>,
    /// The name, the keys of fields and the communicator.
    pub(super) loose: Vec<u32>,
    /// All but the peers.
    pub(super) exact: Vec<u32>,
}

/// How much of an event makes its shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Loose,
    Strict,
    Exact,
}

impl<'a> Shapes<'a> {
    pub(super) fn of(fold: &'a Fold) -> Self {
        let alphabet = fold.alphabet();
        let meanings: Vec<Meaning<'a>> = alphabet.symbols().map(|symbol| alphabet.meaning(symbol)).collect();
        let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut number = |text: Vec<u8>| {
            let next = numbers.len() as u32;
            *numbers.entry(text).or_insert(next)
        };
        let strict = meanings.iter().map(|meaning| number(shape(meaning, Detail::Strict))).collect();
        let loose = meanings.iter().map(|meaning| number(shape(meaning, Detail::Loose))).collect();
        let exact = meanings.iter().map(|meaning| number(shape(meaning, Detail::Exact))).collect();
        Self { meanings, strict, loose, exact }
    }

    /// The peers of an event.
    pub(super) fn peers(&self, symbol: Symbol) -> impl Iterator<Item = Token> {
        let fields = self.meanings[symbol.index()].fields.iter();
        fields.filter(|field| PEERS.contains(&field.key)).flat_map(|field| tokens(field.value).0)
    }

    /// The hash of the shapes of each rule.
    pub(super) fn hashes(fold: &Fold, shapes: &[u32]) -> Result<Vec<SequenceHash>> {
        measure_rules(fold, &ShapeHash { shapes })
    }
}

/// The hash of a sequence of shapes.
struct ShapeHash<'a> {
    shapes: &'a [u32],
}

impl Measure for ShapeHash<'_> {
    type Value = SequenceHash;

    fn empty(&self) -> SequenceHash {
        SequenceHash::EMPTY
    }

    fn symbol(&self, symbol: Symbol) -> SequenceHash {
        SequenceHash::of(self.shapes[symbol.index()].into())
    }

    fn join(&self, left: &SequenceHash, right: &SequenceHash) -> Result<SequenceHash> {
        Ok(left.then(*right))
    }
}

/// What makes a shape, as bytes.
fn shape(meaning: &Meaning<'_>, detail: Detail) -> Vec<u8> {
    let mut bytes = vec![detail as u8, meaning.role as u8];
    let mut put = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    match meaning.name {
        Name::Text(text) => put(text),
        Name::Integer(number) => put(&number.to_be_bytes()[..]),
    }
    put(if matches!(meaning.name, Name::Text(_)) { b"text" } else { b"number" });
    for field in &meaning.fields {
        put(field.key.as_bytes());
        let is_kept = field.key == "comm"
            || match detail {
                Detail::Loose => false,
                Detail::Strict => !VARYING.contains(&field.key),
                Detail::Exact => !PEERS.contains(&field.key),
            };
        match field.value {
            // As many values as in the list.
            _ if !is_kept => put(&tokens(field.value).0.len().to_le_bytes()),
            Value::Integer(number) => put(&number.to_le_bytes()),
            Value::Text(text) => put(text),
        }
    }
    bytes
}

/// A field's value as a list of numbers and words, and whether it is a list.
pub(super) fn tokens(value: Value<'_>) -> (Vec<Token>, bool) {
    match value {
        Value::Integer(number) => (vec![Token::Number(number)], false),
        Value::Text(text) if text.contains(&b',') => {
            (text.split(|&byte| byte == b',').map(listed).collect(), true)
        }
        Value::Text(text) => (vec![Token::word(text)], false),
    }
}

/// A number if it is written as one is, so that it can be written again.
fn listed(word: &[u8]) -> Token {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok());
    match number.filter(|number| number.to_string().as_bytes() == word) {
        Some(number) => Token::Number(number),
        None => Token::word(word),
    }
}
