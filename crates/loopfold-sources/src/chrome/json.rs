//! Parses just enough JSON to extract events from a trace: a window that slides over the input, and
//! a cursor over the bytes in the window.
//!
//! Unused values are skipped, not checked: a number may be any word, and a
//! closing bracket closes whatever is open. Nesting is counted, never recursed into, so
//! that no depth of it can exhaust the stack. Time is linear; memory is the window.

use crate::Result;
use std::io::{BufRead, ErrorKind};

const WINDOW: usize = 1024 * 1024;

/// What is in memory of the input.
pub(super) struct Window<'a> {
    input: &'a mut dyn BufRead,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How far into the input `start` is.
    offset: u64,
    at_end: bool,
}

impl<'a> Window<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, buffer: vec![0; WINDOW], start: 0, end: 0, offset: 0, at_end: false }
    }

    /// What was read and not consumed yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether nothing follows [`Window::rest`].
    pub(super) fn at_end(&self) -> bool {
        self.at_end
    }

    /// The position in the input of the first byte of [`Window::rest`].
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn consume(&mut self, length: usize) {
        let length = length.min(self.end - self.start);
        self.start += length;
        self.offset += length as u64;
    }

    /// Reads until the buffer is full, twice as large if it is full already. So a value
    /// that needs many refills is scanned only O(log size) times.
    pub(super) fn refill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        while self.end < self.buffer.len() && !self.at_end {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The next byte that is not blank, without consuming it. Returns `None` at the end of the input.
    pub(super) fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            let blanks = self.rest().iter().position(|&byte| !is_blank(byte));
            if let Some(blanks) = blanks {
                self.consume(blanks);
                return Ok(self.rest().first().copied());
            }
            self.consume(self.rest().len());
            if self.at_end {
                return Ok(None);
            }
            self.refill()?;
        }
    }

    /// Consumes a value of any size without keeping it; false when the input ends first.
    pub(super) fn skip_value(&mut self) -> Result<bool> {
        let mut skipper = Skipper::default();
        loop {
            let (used, done) = skipper.feed(self.rest());
            self.consume(used);
            if done {
                return Ok(true);
            }
            if self.at_end {
                return Ok(false);
            }
            self.refill()?;
        }
    }

    /// Consumes everything before the next `needle`; false when there is none.
    pub(super) fn seek(&mut self, needle: &[u8]) -> Result<bool> {
        loop {
            if let Some(found) = memchr::memmem::find(self.rest(), needle) {
                self.consume(found);
                return Ok(true);
            }
            let overlap = needle.len().saturating_sub(1);
            self.consume(self.rest().len().saturating_sub(overlap));
            if self.at_end {
                return Ok(false);
            }
            self.refill()?;
        }
    }
}

/// Finds the end of a value that comes in pieces.
#[derive(Default)]
struct Skipper {
    depth: u64,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Skipper {
    /// How much of `bytes` belongs to the value, and whether it is complete.
    fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return (at + 1, true);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return (at, true),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                b',' if self.depth == 0 => return (at, true),
                _ if is_blank(byte) && self.depth == 0 && self.begun => return (at, true),
                _ if is_blank(byte) => continue,
                _ => {}
            }
            self.begun = true;
        }
        (bytes.len(), false)
    }
}

/// Why a cursor stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end inside a value.
    End,
    /// What is there is not what should be there.
    Malformed { at: usize, expected: &'static str },
}

/// A value as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Value<'b> {
    /// A string without its quotes, anything else as it is.
    pub(super) bytes: &'b [u8],
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is no such value.
    #[default]
    Absent,
    /// A string in which every byte stands for itself.
    Text,
    /// A string with escapes in it.
    EscapedText,
    /// A number, true, false or null.
    Word,
    /// An object or a list.
    Nested,
}

impl<'b> Value<'b> {
    /// The bytes that the value stands for; `scratch` holds them if they are not there
    /// as they are.
    pub(super) fn text<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'b: 's,
    {
        if self.kind == Kind::EscapedText {
            unescape(self.bytes, scratch);
            scratch
        } else {
            self.bytes
        }
    }
}

/// The keys of an event that are used.
#[derive(Debug, Default)]
pub(super) struct RawEvent<'b> {
    pub(super) phase: Value<'b>,
    pub(super) name: Value<'b>,
    pub(super) category: Value<'b>,
    pub(super) process: Value<'b>,
    pub(super) thread: Value<'b>,
    pub(super) start: Value<'b>,
    pub(super) duration: Value<'b>,
    pub(super) args: Value<'b>,
}

/// A place in bytes that are in memory.
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How far the cursor has come.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Parses an object and extracts the keys that are used.
    pub(super) fn event(&mut self) -> Result<RawEvent<'b>, Stop> {
        let mut event = RawEvent::default();
        // Patterns of single bytes become one decision tree; byte strings would be
        // compared one after the other.
        self.object(|key, value| match key.bytes {
            [b'p', b'h'] => event.phase = value,
            [b'n', b'a', b'm', b'e'] => event.name = value,
            [b'c', b'a', b't'] => event.category = value,
            [b'p', b'i', b'd'] => event.process = value,
            [b't', b'i', b'd'] => event.thread = value,
            [b't', b's'] => event.start = value,
            [b'd', b'u', b'r'] => event.duration = value,
            [b'a', b'r', b'g', b's'] => event.args = value,
            _ => {}
        })?;
        Ok(event)
    }

    /// An object, calling `each` for every key and its value.
    pub(super) fn object(&mut self, mut each: impl FnMut(Value<'b>, Value<'b>)) -> Result<(), Stop> {
        self.expect(b'{', "an object")?;
        if self.next()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.next()? != b'"' {
                return Err(self.malformed("a key in quotes"));
            }
            let key = self.string()?;
            self.expect(b':', "a colon after a key")?;
            let value = self.value()?;
            each(key, value);
            match self.next()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.malformed("a comma or the end of the object")),
            }
        }
    }

    fn malformed(&self, expected: &'static str) -> Stop {
        Stop::Malformed { at: self.at, expected }
    }

    /// The next byte that is not blank.
    #[inline]
    fn next(&mut self) -> Result<u8, Stop> {
        loop {
            match self.bytes.get(self.at) {
                None => return Err(Stop::End),
                Some(&byte) if is_blank(byte) => self.at += 1,
                Some(&byte) => return Ok(byte),
            }
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Stop> {
        if self.next()? != byte {
            return Err(self.malformed(what));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn value(&mut self) -> Result<Value<'b>, Stop> {
        match self.next()? {
            b'"' => self.string(),
            b'{' | b'[' => self.nested(),
            _ => self.word(),
        }
    }

    /// The string whose opening quote is next.
    #[inline]
    fn string(&mut self) -> Result<Value<'b>, Stop> {
        let start = self.at + 1;
        let mut escaped = false;
        let mut at = start;
        loop {
            let rest = self.bytes.get(at..).ok_or(Stop::End)?;
            at += end_of_plain_text(rest).ok_or(Stop::End)?;
            if self.bytes[at] == b'"' {
                break;
            }
            escaped = true;
            at += 2;
        }
        self.at = at + 1;
        let kind = if escaped { Kind::EscapedText } else { Kind::Text };
        Ok(Value { bytes: &self.bytes[start..at], kind })
    }

    fn nested(&mut self) -> Result<Value<'b>, Stop> {
        let start = self.at;
        let mut depth = 0u64;
        loop {
            let rest = &self.bytes[self.at..];
            let plain = rest.iter().position(|&byte| is_structural(byte)).ok_or(Stop::End)?;
            self.at += plain;
            match self.bytes[self.at] {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                _ => depth -= 1,
            }
            self.at += 1;
            if depth == 0 {
                return Ok(Value { bytes: &self.bytes[start..self.at], kind: Kind::Nested });
            }
        }
    }

    #[inline]
    fn word(&mut self) -> Result<Value<'b>, Stop> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|&byte| ends_word(byte)).ok_or(Stop::End)?;
        if length == 0 {
            return Err(self.malformed("a value"));
        }
        self.at += length;
        Ok(Value { bytes: &self.bytes[start..self.at], kind: Kind::Word })
    }
}

/// Where the next quote or backslash is. Most strings are keys and short names, for
/// which a search that is prepared for long ones takes longer to begin than to end.
#[inline]
fn end_of_plain_text(text: &[u8]) -> Option<usize> {
    const SHORT: usize = 12;
    let short = &text[..text.len().min(SHORT)];
    if let Some(at) = short.iter().position(|&byte| matches!(byte, b'"' | b'\\')) {
        return Some(at);
    }
    memchr::memchr2(b'"', b'\\', &text[short.len()..]).map(|at| short.len() + at)
}

#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[inline]
fn is_structural(byte: u8) -> bool {
    STRUCTURAL[usize::from(byte)]
}

#[inline]
fn ends_word(byte: u8) -> bool {
    ENDS_WORD[usize::from(byte)]
}

const STRUCTURAL: [bool; 256] = table(b"\"{}[]");
const ENDS_WORD: [bool; 256] = table(b"\"{}[],: \n\r\t");

const fn table(members: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut index = 0;
    while index < members.len() {
        table[members[index] as usize] = true;
        index += 1;
    }
    table
}

/// Resolves the escapes of a string. An escape that JSON does not know stands for its
/// letter with the backslash: tools do write paths with single backslashes.
fn unescape(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let Some(&letter) = rest.get(at + 1) else { break };
        rest = &rest[at + 2..];
        match letter {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'"' | b'\\' | b'/' => out.push(letter),
            b'u' => rest = unescape_unicode(rest, out),
            _ => out.extend_from_slice(&[b'\\', letter]),
        }
    }
    out.extend_from_slice(rest);
}

/// Resolves what follows `\u`, and a second half if it is one of a pair.
fn unescape_unicode<'b>(rest: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
    let Some((first, mut rest)) = unit(rest) else {
        out.extend_from_slice(b"\\u");
        return rest;
    };
    let mut units = [first, 0];
    let mut used = 1;
    if (0xd800..0xdc00).contains(&first)
        && let Some((second, after)) = rest.strip_prefix(b"\\u").and_then(unit)
        && (0xdc00..0xe000).contains(&second)
    {
        units[1] = second;
        used = 2;
        rest = after;
    }
    for decoded in char::decode_utf16(units[..used].iter().copied()) {
        let character = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    rest
}

fn unit(text: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let number = crate::line_reader::hexadecimal(digits)?;
    Some((u16::try_from(number).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved() {
        let cases: &[(&str, &str)] = &[
            (r#"a\"b\\c\/d\n"#, "a\"b\\c/d\n"),
            (r"\u00e9\ud83d\ude00", "é😀"),
            (r"\ud83dx\ude00", "\u{fffd}x\u{fffd}"),
            (r"C:\Users\u12", r"C:\Users\u12"),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            unescape(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), *expected, "{text}");
        }
    }

    #[test]
    fn an_event_is_taken_apart() {
        let text =
            br#"{ "ph":"X" , "args":{"a":[{"b":"}"}],"c":"\"]"}, "ts":"12.5","pid":-1,"other":null} rest"#;
        let mut cursor = Cursor::new(text);
        let event = cursor.event().unwrap();
        assert_eq!(event.phase, Value { bytes: b"X", kind: Kind::Text });
        assert_eq!(event.start.bytes, b"12.5");
        assert_eq!(event.process, Value { bytes: b"-1", kind: Kind::Word });
        assert_eq!(event.args.bytes, br#"{"a":[{"b":"}"}],"c":"\"]"}"#);
        assert_eq!(&text[cursor.at()..], b" rest");
        for end in 0..cursor.at() {
            assert_eq!(Cursor::new(&text[..end]).event().unwrap_err(), Stop::End, "{end}");
        }
    }

    #[test]
    fn what_is_malformed_has_a_place() {
        for (text, place) in
            [("[", 0), ("{,", 1), ("{\"a\" 1", 5), ("{\"a\":}", 5), ("{\"a\":1 2", 7), ("{\"a\":1,}", 7)]
        {
            match Cursor::new(text.as_bytes()).event() {
                Err(Stop::Malformed { at, .. }) => assert_eq!(at, place, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn values_are_skipped_across_refills() {
        for value in ["12", "\"a\\\"}\"", "{\"a\":[1,\"]\"]}", "null", "[]"] {
            let text = format!("  {value} , rest");
            let mut input = std::io::BufReader::with_capacity(1, text.as_bytes());
            let mut window = Window::new(&mut input);
            assert!(window.skip_value().unwrap());
            assert_eq!(window.peek().unwrap(), Some(b','), "{value}");
        }
    }
}
