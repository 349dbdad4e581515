//! Reads an input line by line, for sources whose format is lines of text.
//!
//! A line is a slice of one sliding buffer: no allocation and no copy per line. Time is
//! linear; memory is the buffer, which grows only for a line that does not fit it.

use crate::{Fit, Result};
use std::io::{BufRead, ErrorKind};

const WINDOW: usize = 256 * 1024;

/// A line longer than this is cut here and its rest dropped, so that a file without
/// line ends does not end up in memory. No tool writes such lines.
const LONGEST: usize = 16 * 1024 * 1024;

/// Reads an input line by line.
pub(crate) struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    buffer: Vec<u8>,
    /// What was read and not yet handed out.
    start: usize,
    end: usize,
    number: u64,
    at_end: bool,
}

/// A line without its line end.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// Counted from 1.
    pub(crate) number: u64,
}

impl Line<'_> {
    /// Where the line is, for a message.
    pub(crate) fn place(&self) -> String {
        format!("line {}", self.number)
    }
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, buffer: vec![0; WINDOW], start: 0, end: 0, number: 0, at_end: false }
    }

    /// The next line. Returns `None` at the end.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        let mut searched = self.start;
        let length = loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                break searched + found - self.start;
            }
            searched = self.end;
            let kept = self.end - self.start;
            if self.at_end && kept == 0 {
                return Ok(None);
            }
            if self.at_end {
                break kept;
            }
            if kept >= LONGEST {
                self.drop_rest_of_line()?;
                break kept;
            }
            let moved = self.refill()?;
            searched -= moved;
        };
        let begin = self.start;
        self.start = (begin + length + 1).min(self.end);
        self.number += 1;
        let bytes = &self.buffer[begin..begin + length];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        Ok(Some(Line { bytes, number: self.number }))
    }

    /// Reads more after the bytes in the buffer. Returns how far these moved to the front.
    fn refill(&mut self) -> Result<usize> {
        let moved = self.start;
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= moved;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            return Ok(moved);
        }
    }

    fn drop_rest_of_line(&mut self) -> Result<()> {
        loop {
            let chunk = self.input.fill_buf()?;
            let (used, done) = match memchr::memchr(b'\n', chunk) {
                Some(at) => (at + 1, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.input.consume(used);
            if done {
                return Ok(());
            }
        }
    }
}

/// Whether a line fits a format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The line is as the format has it.
    For,
    /// The line is not.
    Against,
    /// Such lines occur in the format and in others.
    Neutral,
}

/// How well a head fits, judged by its lines: all of those that say anything must be
/// of the format for `best`, most of them for one less.
pub(crate) fn fit_of_lines(head: &[u8], best: Fit, judge: impl Fn(&[u8]) -> Verdict) -> Fit {
    const LINES_JUDGED: usize = 200;
    // The last line may be cut by the end of the head.
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let (mut fitting, mut against) = (0, 0);
    for line in whole.split(|&byte| byte == b'\n').take(LINES_JUDGED) {
        match judge(line.trim_ascii_end()) {
            Verdict::For => fitting += 1,
            Verdict::Against => against += 1,
            Verdict::Neutral => {}
        }
    }
    match (fitting, against) {
        (0, _) => Fit::No,
        (_, 0) => best,
        _ if fitting >= 4 * against => best,
        _ if fitting > against => best.min(Fit::Likely),
        _ => Fit::No,
    }
}

/// Splits off the first word; blanks around it are dropped.
pub(crate) fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// A number of decimal digits only. Returns `None` if it is none or does not fit.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// A number of hexadecimal digits only. Returns `None` if it is none or does not fit.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines_of(text: &[u8], capacity: usize) -> Vec<Vec<u8>> {
        let mut input = BufReader::with_capacity(capacity, text);
        let mut lines = LineReader::new(&mut input);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(line.bytes.to_vec());
            assert_eq!(line.number, found.len() as u64);
        }
        found
    }

    #[test]
    fn lines_are_what_lies_between_line_ends() {
        assert_eq!(lines_of(b"", 4), Vec::<Vec<u8>>::new());
        assert_eq!(lines_of(b"a\r\n\nlong line\nend", 4), [&b"a"[..], b"", b"long line", b"end"]);
    }

    #[test]
    fn a_line_longer_than_the_window_is_whole() {
        let mut text = vec![b'x'; 3 * WINDOW];
        text.extend_from_slice(b"\ny\n");
        let lines = lines_of(&text, 1000);
        assert_eq!((lines[0].len(), &lines[1][..]), (3 * WINDOW, &b"y"[..]));
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut text = vec![b'x'; 5 * LONGEST / 2];
        text.extend_from_slice(b"\ny\n");
        let lines = lines_of(&text, 100_000);
        assert!(lines[0].len() >= LONGEST && lines[0].len() <= 2 * LONGEST);
        assert_eq!(lines[1..], [b"y".to_vec()]);
    }

    #[test]
    fn numbers_out_of_range_are_none() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b"-1"), None);
        assert_eq!(hexadecimal(b"00ff"), Some(255));
        assert_eq!(hexadecimal(b"11112222333344445"), None);
    }
}
