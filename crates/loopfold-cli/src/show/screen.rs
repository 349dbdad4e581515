//! What a terminal is given: text, ends of lines, tabs, and our own styles. Everything else is escaped,
//! whoever wrote it, so that no name can drive the terminal, whatever way it took.
//!
//! Layout has to know how wide a name is, so names are escaped before
//! ([`plain`](super::plain)) and pass here as they are. Into a pipe or a file, bytes are
//! written past this.
//!
//! Cost: a look at each byte; nearly all writes are passed on whole.

use loopfold::emit::{Terminal, is_harmless};
use std::io::{Result, Write};

/// The longest style that is let through, such as `\x1b[1;31m`.
const LONGEST_STYLE: usize = 16;

/// Writes what is harmless to a terminal.
pub(crate) struct Screen<W: Write> {
    inner: W,
    /// Whether styles are let through.
    has_styles: bool,
    /// What may be the beginning of a character or a style.
    held: Vec<u8>,
}

impl<W: Write> Screen<W> {
    /// For text, whose styles are those of this program.
    pub(crate) fn with_styles(inner: W) -> Self {
        Self { inner, has_styles: true, held: Vec::new() }
    }

    /// For bytes of others.
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, has_styles: false, held: Vec::new() }
    }

    /// Writes as much as is certain to be whole, or everything at the end. Returns how much.
    fn pass(&mut self, bytes: &[u8], is_end: bool) -> Result<usize> {
        if bytes.iter().all(|&byte| matches!(byte, b' '..=b'~' | b'\n')) {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            let valid = chunk.valid();
            let mut within = 0;
            while let Some(character) = valid[within..].chars().next() {
                let rest = &valid.as_bytes()[within..];
                let length = match (character, style(rest)) {
                    ('\x1b', Style::Whole(length)) if self.has_styles => length,
                    ('\x1b', Style::Begun) if self.has_styles && !is_end => return Ok(at + within),
                    ('\n' | '\t', _) => 1,
                    (character, _) if is_harmless(character) => character.len_utf8(),
                    (character, _) => {
                        write!(self.inner, "{}", Terminal::of(character.encode_utf8(&mut [0; 4])))?;
                        within += character.len_utf8();
                        continue;
                    }
                };
                self.inner.write_all(&rest[..length])?;
                within += length;
            }
            at += within;
            let invalid = chunk.invalid();
            let may_go_on = at + invalid.len() == bytes.len() && invalid.len() < 4;
            if may_go_on && !invalid.is_empty() && !is_end {
                return Ok(at);
            }
            write!(self.inner, "{}", Terminal::of(invalid))?;
            at += invalid.len();
        }
        Ok(at)
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.held.is_empty() {
            let passed = self.pass(bytes, false)?;
            self.held.extend_from_slice(&bytes[passed..]);
        } else {
            let mut all = std::mem::take(&mut self.held);
            all.extend_from_slice(bytes);
            let passed = self.pass(&all, false)?;
            self.held = all.split_off(passed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, true)?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // Who wants to know whether it could be written has flushed it.
        let _ = self.flush();
    }
}

/// What bytes that begin with an escape are.
enum Style {
    Whole(usize),
    Begun,
    Other,
}

fn style(bytes: &[u8]) -> Style {
    let parameters = match bytes {
        [b'\x1b', b'[', parameters @ ..] => parameters,
        [b'\x1b'] => return Style::Begun,
        _ => return Style::Other,
    };
    let length = parameters.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
    match parameters.get(length) {
        _ if length > LONGEST_STYLE => Style::Other,
        Some(b'm') => Style::Whole(length + 3),
        None => Style::Begun,
        Some(_) => Style::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of bytes that are written in pieces of this length.
    fn shown(bytes: &[u8], piece: usize, has_styles: bool) -> String {
        let mut out = Vec::new();
        let mut screen = Screen { inner: &mut out, has_styles, held: Vec::new() };
        bytes.chunks(piece).for_each(|piece| screen.write_all(piece).unwrap());
        drop(screen);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pieces_of_any_length_look_the_same() {
        let bytes = "größe\t→ 数\n\x1b[1mbold\x1b[0m \x1b[2J\x1b]0;x\x07 \u{9b}1m \u{202e}🦀\r\n".as_bytes();
        let styled = "größe\t→ 数\n\x1b[1mbold\x1b[0m \\u{1b}[2J\\u{1b}]0;x\\u{7} \\u{9b}1m \\u{202e}🦀\\r\n";
        for piece in 1..bytes.len() {
            assert_eq!(shown(bytes, piece, true), styled, "{piece}");
            let plain = styled.replace("\x1b", "\\u{1b}");
            assert_eq!(shown(bytes, piece, false), plain, "{piece}");
        }
    }

    #[test]
    fn what_is_no_text_is_escaped() {
        for piece in 1..8 {
            assert_eq!(
                shown(b"a\xff\xe2\x82z\xf0\x9f\x1b[1", piece, true),
                r"a\xff\xe2\x82z\xf0\x9f\u{1b}[1"
            );
            let long = [b"\x1b[".as_slice(), &[b'1'; 40], b"m"].concat();
            assert_eq!(shown(&long, piece, true), format!("\\u{{1b}}[{}m", "1".repeat(40)));
        }
    }
}
