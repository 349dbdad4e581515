//! The two sections of text: the streams and the alphabet.
//!
//! Both are laid out so that like follows like, then compressed by zstd at its best if
//! that makes them smaller. What is read back may be at most [`EXPANSION`] times as
//! long as what is stored; the writer stores text as it is rather than pass that.

use super::layout::Version;
use crate::bytes::{Bytes, put_number, put_text};
use crate::fold::FoldedStream;
use crate::trace::{Alphabet, is_bare_integer};
use crate::{Error, Result, Symbol};
use std::io::Read;

/// How many times longer than stored the alphabet may be.
const EXPANSION: usize = 1024;
/// The same for the streams, since a stream in memory is much larger than its text.
const STREAMS_EXPANSION: usize = 32;
const LEVEL: i32 = 19;
/// What level 19 uses at most, as a power of two. A frame that asks for more is refused.
const WINDOW: u32 = 23;
/// What every zstd frame begins with; not stored.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const STORED: u8 = 0;
const COMPRESSED: u8 = 1;

/// Compresses a text if that makes it smaller.
fn pack(text: &[u8], expansion: usize) -> Result<Vec<u8>> {
    let frame = zstd::bulk::compress(text, LEVEL)?;
    let (method, content) = match frame.strip_prefix(&ZSTD_MAGIC) {
        Some(frame) if frame.len() < text.len() && text.len() / expansion < frame.len() => {
            (COMPRESSED, frame)
        }
        _ => (STORED, text),
    };
    let mut packed = vec![method];
    packed.extend_from_slice(content);
    Ok(packed)
}

/// The reverse of [`pack`].
fn unpack(packed: &[u8], place: &'static str, expansion: usize) -> Result<Vec<u8>> {
    let mut bytes = Bytes::new(packed, place);
    match bytes.byte()? {
        STORED => Ok(bytes.rest().to_vec()),
        COMPRESSED => decompress(bytes.rest(), expansion)
            .map_err(|_| Error::damaged(place, "the compressed text is not valid")),
        _ => Err(bytes.damaged("an unknown way of compression")),
    }
}

fn decompress(frame: &[u8], expansion: usize) -> std::io::Result<Vec<u8>> {
    let limit = frame.len().saturating_mul(expansion);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(ZSTD_MAGIC.chain(frame))?.single_frame();
    decoder.window_log_max(WINDOW)?;
    let mut text = Vec::new();
    let read = decoder.by_ref().take(limit as u64 + 1).read_to_end(&mut text)?;
    let beyond = decoder.finish().read(&mut [0])?;
    if read > limit || beyond > 0 { Err(std::io::ErrorKind::InvalidData.into()) } else { Ok(text) }
}

/// Writes names, notes and folders of the streams.
pub(super) fn write_streams(streams: &[FoldedStream]) -> Result<Vec<u8>> {
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    let mut words = Words { words: COMMON_WORDS.to_vec() };
    let mut rows = Vec::new();
    for stream in streams {
        put_text(&mut rows, stream.name().as_bytes());
        words.put(&mut rows, stream.folder());
        put_number(&mut rows, stream.notes().len() as u64);
        for (key, value) in stream.notes() {
            words.put(&mut rows, key);
            words.put_if_known(&mut rows, value);
        }
    }
    let mut text = Vec::new();
    let own = &words.words[COMMON_WORDS.len()..];
    put_number(&mut text, own.len() as u64);
    own.iter().for_each(|word| put_text(&mut text, word.as_bytes()));
    put_number(&mut text, streams.len() as u64);
    text.extend_from_slice(&rows);
    pack(&text, STREAMS_EXPANSION)
}

/// Words that nearly every archive needs, and so does not have to store. The list is
/// part of the format: it may only grow with its version.
const COMMON_WORDS: [&str; 38] = [
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
    "little repeats, but that pays",
    "next to nothing repeats",
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
];

impl Version {
    /// The words that an archive of this version need not store.
    fn common_words(self) -> &'static [&'static str] {
        match self {
            Version::One => &COMMON_WORDS[..16],
            Version::Two => &COMMON_WORDS,
        }
    }
}

/// A word longer than this is written out at each use, so that a few bytes that refer
/// to a long word many times cannot fill the memory.
const WORD_LENGTH: usize = 64;

/// The words that many streams have in common, each stored once. They are few: the
/// names of folders and the keys of notes.
struct Words<'a> {
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// Writes the number of a word, from 1, or 0 and the word.
    fn put(&mut self, out: &mut Vec<u8>, word: &'a str) {
        if word.len() > WORD_LENGTH {
            put_number(out, 0);
            put_text(out, word.as_bytes());
            return;
        }
        if !self.words.contains(&word) {
            self.words.push(word);
        }
        self.put_if_known(out, word);
    }

    /// The same without making it known: values of notes mostly differ, and would only
    /// make the list long.
    fn put_if_known(&mut self, out: &mut Vec<u8>, word: &str) {
        match self.words.iter().position(|&known| known == word) {
            Some(index) => put_number(out, index as u64 + 1),
            None => {
                put_number(out, 0);
                put_text(out, word.as_bytes());
            }
        }
    }
}

/// Reads what [`Words`] wrote.
fn take_word(bytes: &mut Bytes<'_>, words: &[String]) -> Result<String> {
    match bytes.number()? {
        0 => bytes.string(),
        number => {
            let word = usize::try_from(number - 1).ok().and_then(|index| words.get(index));
            word.cloned().ok_or_else(|| bytes.damaged("a word that is not there"))
        }
    }
}

/// A stream as its section tells it: everything but events and times.
pub(super) struct StreamHead {
    pub(super) name: String,
    pub(super) notes: Vec<(String, String)>,
    pub(super) folder: String,
}

/// Reads names, notes and folders of the streams.
pub(super) fn read_streams(section: &[u8], version: Version) -> Result<Vec<StreamHead>> {
    if section.is_empty() {
        return Ok(Vec::new());
    }
    let text = unpack(section, "streams", STREAMS_EXPANSION)?;
    let mut bytes = Bytes::new(&text, "streams");
    let mut words: Vec<String> = version.common_words().iter().map(ToString::to_string).collect();
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
    let (mut heads, mut lengths, mut rests, mut integers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut previous = 0;
    for &symbol in symbols {
        let Some((&head, rest)) = alphabet.entry(symbol).split_first() else { continue };
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
    let mut text = Vec::new();
    put_number(&mut text, symbols.len() as u64);
    [heads, integers, lengths, rests].iter().for_each(|column| text.extend_from_slice(column));
    pack(&text, EXPANSION)
}

/// Reads an alphabet.
pub(super) fn read_alphabet(section: &[u8]) -> Result<Alphabet> {
    let mut alphabet = Alphabet::default();
    if section.is_empty() {
        return Ok(alphabet);
    }
    let text = unpack(section, "alphabet", EXPANSION)?;
    let mut bytes = Bytes::new(&text, "alphabet");
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
            let number = integers.next().unwrap_or_default();
            entry.extend_from_slice(&number.to_le_bytes()[..used_bytes(number)]);
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

fn used_bytes(number: u64) -> usize {
    8 - number.leading_zeros() as usize / 8
}

/// Small differences of either sign as small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
