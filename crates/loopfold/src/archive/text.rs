//! The two sections of text: the streams and the alphabet.
//!
//! Each has the smallest of three encodings: as it is; in columns of similar values, compressed
//! by zstd at its highest level; or, if it is not long, coded by a
//! [model of names and numbers](super::words). The text may be at most [`EXPANSION`] or
//! [`STREAMS_EXPANSION`] times as long as its stored form; the writer stores text as it is
//! where it would exceed that.

use super::bit_model::Flag;
use super::coder::{Coder, Decoder, Encoder};
use super::words::Words;
use crate::bytes::{Bytes, put_number, put_text};
use crate::fold::FoldedStream;
use crate::packed::{pack, unpack};
use crate::trace::{Alphabet, is_bare_integer};
use crate::{Result, Symbol};
use hashbrown::HashMap;

/// How many times longer than stored the alphabet may be.
const EXPANSION: usize = 1024;
/// The same for the streams, since a stream in memory is much larger than its text.
const STREAMS_EXPANSION: usize = 32;
/// How a modelled text begins; other first bytes are those of [packed](crate::packed) ones.
const MODELLED: u8 = 2;

/// No text longer than this is modelled, since reading it would take too long. Readers
/// refuse more, or a small file could keep them busy for minutes.
const MODELLED_LENGTH: usize = 1 << 15;

/// The modelled text, if it saves at least a tenth of the packed one, since it takes longer to
/// read, and is not shorter than a reader accepts; else the packed one.
fn better(packed: Vec<u8>, modelled: Option<Vec<u8>>, length: usize, expansion: usize) -> Vec<u8> {
    let pays = |modelled: &Vec<u8>| modelled.len() <= packed.len() - packed.len().div_ceil(10);
    match modelled.filter(pays) {
        Some(modelled) if length <= most(&modelled, expansion) => modelled,
        _ => packed,
    }
}

/// How long the text of a modelled section may at most be.
fn most(section: &[u8], expansion: usize) -> usize {
    section.len().saturating_mul(expansion).min(MODELLED_LENGTH)
}

/// Writes names, notes and folders of the streams.
pub(super) fn write_streams(streams: &[FoldedStream]) -> Result<Vec<u8>> {
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    let mut words = CommonWords::default();
    let mut rows = Vec::new();
    for stream in streams {
        put_text(&mut rows, stream.name().raw().as_bytes());
        words.put(&mut rows, stream.folder().raw());
        put_number(&mut rows, stream.notes().len() as u64);
        for (key, value) in stream.notes() {
            words.put(&mut rows, key);
            words.put_if_known(&mut rows, value);
        }
    }
    let mut text = Vec::new();
    put_number(&mut text, words.own.len() as u64);
    words.own.iter().for_each(|word| put_text(&mut text, word.as_bytes()));
    put_number(&mut text, streams.len() as u64);
    text.extend_from_slice(&rows);
    let packed = pack(&text, STREAMS_EXPANSION)?;
    let modelled = (text.len() <= MODELLED_LENGTH).then(|| model_streams(&text)).transpose()?;
    Ok(better(packed, modelled, text.len(), STREAMS_EXPANSION))
}

fn model_streams(text: &[u8]) -> Result<Vec<u8>> {
    let mut section = vec![MODELLED];
    put_number(&mut section, text.len() as u64);
    let mut coder = Encoder::default();
    Words::new(text.len()).code_name(&mut coder, text, text.len())?;
    section.extend_from_slice(&coder.finish());
    Ok(section)
}

/// The reverse of [`model_streams`].
fn read_modelled_streams(section: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Bytes::new(section, "streams");
    bytes.byte()?;
    let length = claimed_length(&mut bytes, most(section, STREAMS_EXPANSION))?;
    let mut coder = Decoder::new(bytes.rest());
    let text = Words::new(length).code_name(&mut coder, &[], length)?;
    if text.len() < length { Err(bytes.damaged(LESS_TEXT)) } else { Ok(text) }
}

const LESS_TEXT: &str = "there is less text than claimed";

/// The length that a section claims its text to have.
fn claimed_length(bytes: &mut Bytes<'_>, most: usize) -> Result<usize> {
    let length = usize::try_from(bytes.number()?).ok().filter(|&length| length <= most);
    length.ok_or_else(|| bytes.damaged("more text is claimed than these bytes can hold"))
}

/// Words that nearly every archive needs, and so does not have to store. The list is
/// part of the format: it may only grow with its version.
const COMMON_WORDS: [&str; 42] = [
    "outermost",
    "innermost",
    "guarded",
    "halving",
    "minimum",
    "sequitur",
    "sequitur1",
    "sequitur-runs",
    "repair",
    "title",
    "format",
    "final-newline",
    "yes",
    "no",
    "lines",
    "chrome",
    // From version 2 on.
    "bytes",
    "why",
    "much of it repeats",
    "rules pay, if not by much",
    "rules beyond loops would not pay",
    "too long to look at twice",
    "the smallest",
    "csv",
    "u8",
    "u16",
    "u32",
    "u64",
    "spike",
    "execlog",
    "lackey",
    "babeltrace",
    "perf",
    "strace",
    "ltrace",
    "calls",
    "otf2",
    "lines-left-out",
    "calls-binary",
    "finstrument",
    "open-calls",
    "unmatched-returns",
];

/// A word longer than this is written out at each use, so that a few bytes that refer
/// to a long word many times cannot fill the memory.
const WORD_LENGTH: usize = 64;

/// The words that many streams have in common, each stored once: the names of folders
/// and the keys of notes.
struct CommonWords<'a> {
    /// The number of each, from 1.
    numbers: HashMap<&'a str, u64>,
    /// Those that have to be stored.
    own: Vec<&'a str>,
}

impl Default for CommonWords<'_> {
    fn default() -> Self {
        Self { numbers: COMMON_WORDS.into_iter().zip(1..).collect(), own: Vec::new() }
    }
}

impl<'a> CommonWords<'a> {
    /// Writes the number of a word, from 1, or 0 and the word.
    fn put(&mut self, out: &mut Vec<u8>, word: &'a str) {
        if word.len() <= WORD_LENGTH && !self.numbers.contains_key(word) {
            self.own.push(word);
            self.numbers.insert(word, self.numbers.len() as u64 + 1);
        }
        self.put_if_known(out, word);
    }

    /// The same without making it known: values of notes mostly differ, and would only
    /// make the list long.
    fn put_if_known(&self, out: &mut Vec<u8>, word: &str) {
        match self.numbers.get(word) {
            Some(&number) => put_number(out, number),
            None => {
                put_number(out, 0);
                put_text(out, word.as_bytes());
            }
        }
    }
}

/// Reads what [`CommonWords`] wrote.
fn take_word(bytes: &mut Bytes<'_>, words: &[String]) -> Result<String> {
    match bytes.number()? {
        0 => bytes.string(),
        number => {
            let word = usize::try_from(number - 1).ok().and_then(|index| words.get(index));
            word.cloned().ok_or_else(|| bytes.damaged("a word that is not there"))
        }
    }
}

/// A stream as its section stores it: everything but events and times.
pub(super) struct StreamHead {
    pub(super) name: String,
    pub(super) notes: Vec<(String, String)>,
    pub(super) folder: String,
}

/// Reads names, notes and folders of the streams.
pub(super) fn read_streams(section: &[u8]) -> Result<Vec<StreamHead>> {
    if section.is_empty() {
        return Ok(Vec::new());
    }
    let text = match section.first() {
        Some(&MODELLED) => read_modelled_streams(section)?,
        _ => unpack(section, "streams", STREAMS_EXPANSION)?,
    };
    let mut bytes = Bytes::new(&text, "streams");
    let mut words: Vec<String> = COMMON_WORDS.iter().map(ToString::to_string).collect();
    for _ in 0..bytes.number()? {
        let word = bytes.string()?;
        if word.len() > WORD_LENGTH {
            return Err(bytes.damaged("a word is too long"));
        }
        words.push(word);
    }
    let mut streams = Vec::new();
    for _ in 0..bytes.number()? {
        let name = bytes.string()?;
        let folder = take_word(&mut bytes, &words)?;
        let mut notes = Vec::new();
        for _ in 0..bytes.number()? {
            notes.push((take_word(&mut bytes, &words)?, take_word(&mut bytes, &words)?));
        }
        streams.push(StreamHead { name, notes, folder });
    }
    bytes.finish()?;
    Ok(streams)
}

/// Writes the entries of these symbols.
pub(super) fn write_alphabet(alphabet: &Alphabet, symbols: &[Symbol]) -> Result<Vec<u8>> {
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    let entries = || symbols.iter().map(|&symbol| alphabet.entry(symbol));
    let packed = pack(&columns(entries()), EXPANSION)?;
    let length = entries().map(<[u8]>::len).sum();
    let modelled = (length <= MODELLED_LENGTH).then(|| model_entries(entries(), length)).transpose()?;
    Ok(better(packed, modelled, length, EXPANSION))
}

/// The entries in columns: their heads, the integers, the lengths of the others, the
/// others.
fn columns<'a>(entries: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = Vec::new();
    put_number(&mut text, entries.len() as u64);
    let (mut heads, mut lengths, mut rests, mut integers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut previous = 0;
    for (&head, rest) in entries.filter_map(<[u8]>::split_first) {
        heads.push(head);
        if is_bare_integer(head) {
            let number = integer_of(rest);
            put_number(&mut integers, zigzag(number.wrapping_sub(previous)));
            previous = number;
        } else {
            put_number(&mut lengths, rest.len() as u64);
            rests.extend_from_slice(rest);
        }
    }
    [heads, integers, lengths, rests].iter().for_each(|column| text.extend_from_slice(column));
    text
}

fn model_entries<'a>(entries: impl ExactSizeIterator<Item = &'a [u8]>, length: usize) -> Result<Vec<u8>> {
    let mut section = vec![MODELLED];
    put_number(&mut section, entries.len() as u64);
    put_number(&mut section, length as u64);
    let mut coder = Encoder::default();
    let mut model = EntryModel::new(length);
    for entry in entries {
        model.code(&mut coder, entry, entry.len())?;
    }
    section.extend_from_slice(&coder.finish());
    Ok(section)
}

/// Entries one after the other: their heads, and what follows them.
struct EntryModel {
    is_same_head: Flag,
    heads: [Flag; 256],
    head: u8,
    words: Words,
}

impl EntryModel {
    fn new(length: usize) -> Self {
        Self {
            is_same_head: Flag::default(),
            heads: [Flag::default(); 256],
            head: 0,
            words: Words::new(length),
        }
    }

    /// Codes an entry of no more than `most` bytes.
    fn code(&mut self, coder: &mut impl Coder, entry: &[u8], most: usize) -> Result<Vec<u8>> {
        let (&head, rest) = entry.split_first().unwrap_or((&0, &[]));
        self.code_head(coder, head);
        let mut coded = vec![self.head];
        if is_bare_integer(self.head) {
            let number = self.words.code_number(coder, integer_of(rest))?;
            put_integer(&mut coded, number);
        } else {
            coded.extend_from_slice(&self.words.code_name(coder, rest, most.saturating_sub(1))?);
        }
        Ok(coded)
    }

    /// Most heads are the same as the one before.
    fn code_head(&mut self, coder: &mut impl Coder, wanted: u8) {
        if self.is_same_head.code(coder, wanted == self.head) {
            return;
        }
        let mut node = 1usize;
        for bit in (0..8).rev() {
            let value = self.heads[node].code(coder, wanted >> bit & 1 == 1);
            node = node << 1 | usize::from(value);
        }
        self.head = node as u8;
    }
}

/// Reads an alphabet.
pub(super) fn read_alphabet(section: &[u8]) -> Result<Alphabet> {
    match section.first() {
        None => Ok(Alphabet::default()),
        Some(&MODELLED) => read_modelled_entries(section),
        Some(_) => read_columns(&unpack(section, "alphabet", EXPANSION)?),
    }
}

/// The reverse of [`model_entries`].
fn read_modelled_entries(section: &[u8]) -> Result<Alphabet> {
    let mut alphabet = Alphabet::default();
    let mut bytes = Bytes::new(section, "alphabet");
    bytes.byte()?;
    let count = bytes.number()?;
    let mut left = claimed_length(&mut bytes, most(section, EXPANSION))?;
    let mut coder = Decoder::new(bytes.rest());
    let mut model = EntryModel::new(left);
    for _ in 0..count {
        let entry = model.code(&mut coder, &[], left)?;
        left =
            left.checked_sub(entry.len()).ok_or_else(|| bytes.damaged("there is more text than claimed"))?;
        alphabet.restore(&entry)?;
    }
    if left > 0 {
        return Err(bytes.damaged(LESS_TEXT));
    }
    Ok(alphabet)
}

fn read_columns(text: &[u8]) -> Result<Alphabet> {
    let mut alphabet = Alphabet::default();
    let mut bytes = Bytes::new(text, "alphabet");
    let count = bytes.number()?;
    let heads = bytes.take(count)?;
    let mut integers = Vec::new();
    let mut previous = 0u64;
    for _ in heads.iter().filter(|&&head| is_bare_integer(head)) {
        previous = previous.wrapping_add(unzigzag(bytes.number()?));
        integers.push(previous);
    }
    let mut lengths = Vec::new();
    for _ in integers.len()..heads.len() {
        lengths.push(bytes.number()?);
    }
    let (mut integers, mut lengths) = (integers.into_iter(), lengths.into_iter());
    let mut entry = Vec::new();
    for &head in heads {
        entry.clear();
        entry.push(head);
        if is_bare_integer(head) {
            put_integer(&mut entry, integers.next().unwrap_or_default());
        } else {
            entry.extend_from_slice(bytes.take(lengths.next().unwrap_or_default())?);
        }
        alphabet.restore(&entry)?;
    }
    bytes.finish()?;
    Ok(alphabet)
}

fn integer_of(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Appends an integer as an entry has it: low bytes first, no zeros at the end.
fn put_integer(entry: &mut Vec<u8>, number: u64) {
    let used = 8 - number.leading_zeros() as usize / 8;
    entry.extend_from_slice(&number.to_le_bytes()[..used]);
}

/// Zigzag: small differences of either sign as small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
