//! Text from a trace, in the form that the place needs where it is put.
//!
//! Names, values and titles in a trace are whatever its author wanted: they may drive a terminal, end a
//! string of C or of DOT, or pass for another name. So each place has a form of its own:
//!
//! | place | form |
//! | --- | --- |
//! | a terminal, a message | [`Terminal`] |
//! | a string of DOT | [`DotString`] |
//! | C: a string, an identifier, a comment | the types of `emit::c` |
//! | JSON | `JsonWriter` of `loopfold-json`, which escapes what it is given |
//! | CSV | the writer of `loopfold-cli`, which quotes what it is given |
//! | a grammar | its quoted names, which are read again as the same bytes |
//!
//! No file is named by a trace, so there is no form for names of files.
//!
//! What is checked, by what:
//!
//! - By the compiler: `emit::c::Code` is made of texts of this library, numbers and the forms of C only, and
//!   what is a [`Text`] (names, titles, notes and folders that `FoldedStream` returns one by one) cannot be
//!   formatted at all.
//! - When it is written: keys, values, labels, the list of all notes and the texts of logical events are
//!   `&str` or bytes, which could be formatted. `JsonWriter` and the writer of CSV take them and escape or
//!   quote all that they are given; whatever the command prints passes a filter (`show/screen` of
//!   `loopfold-cli`), and that is what the safety of a terminal rests on.
//! - By tests with hostile names and numbers: that DOT and messages use their forms.
//!
//! Invariant: what a form writes is harmless ([`is_harmless`]) and stays what it is in that place: one
//! string, one identifier, one comment. Cost: O(length), no memory.

#[cfg(feature = "mpi")]
pub(crate) mod c;
#[cfg(feature = "mpi")]
pub(crate) use c::code;

use std::fmt;

/// Text from a trace: it can be compared, stored and parsed, but not formatted; [`Text::raw`] is the way out.
///
/// ```
/// use loopfold::emit::Text;
///
/// let name = Text::new("\x1b[2Jrank 0");
/// assert_eq!(name.terminal().to_string(), r"\u{1b}[2Jrank 0");
/// ```
///
/// ```compile_fail
/// println!("{}", loopfold::emit::Text::new("rank 0"));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Marks text as coming from a trace.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text as it is, to be compared, stored or parsed; what is printed needs a form.
    pub const fn raw(self) -> &'a str {
        self.0
    }

    /// Its form for a terminal.
    pub fn terminal(self) -> Terminal<'a> {
        Terminal(self.0.as_bytes())
    }
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.terminal())
    }
}

/// Text that cannot drive a terminal: what is not harmless, and bytes that are not UTF-8, appear as
/// escapes. Different texts may look equal: a backslash stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Terminal<'a>(&'a [u8]);

impl<'a> Terminal<'a> {
    /// The form of text or bytes.
    pub fn of(text: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self(text.as_ref())
    }
}

impl fmt::Display for Terminal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some((at, character)) = rest.char_indices().find(|&(_, one)| !is_harmless(one)) {
                f.write_str(&rest[..at])?;
                write!(f, "{}", character.escape_default())?;
                rest = &rest[at + character.len_utf8()..];
            }
            f.write_str(rest)?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Text between the quotes of a string of DOT, of at most so many characters. Graphviz takes backslashes
/// for escapes and `&` for the beginning of an HTML entity.
#[derive(Clone, Copy, Debug)]
pub struct DotString<'a> {
    text: Terminal<'a>,
    most: usize,
}

impl<'a> DotString<'a> {
    /// The form of text or bytes; `…` follows what is left out.
    pub fn of(text: &'a (impl AsRef<[u8]> + ?Sized), most: usize) -> Self {
        Self { text: Terminal::of(text), most }
    }
}

impl fmt::Display for DotString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.to_string();
        for character in text.chars().take(self.most) {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                '&' => f.write_str("&amp;")?,
                _ => fmt::Write::write_char(f, character)?,
            }
        }
        if text.chars().nth(self.most).is_some() { f.write_str("…") } else { Ok(()) }
    }
}

/// Whether a character may be printed: control characters act on a terminal; the bidirectional and
/// invisible format characters make a name read as something it is not.
pub fn is_harmless(character: char) -> bool {
    let invisible = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !character.is_control() && !invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped() {
        let shown = |text: &[u8]| Terminal::of(text).to_string();
        assert_eq!(shown(b"read \"a\" \\ 'b'"), "read \"a\" \\ 'b'");
        assert_eq!(shown("größe → 数".as_bytes()), "größe → 数");
        assert_eq!(shown("\x1b[2J\x07\u{9b}\u{202e}x\n".as_bytes()), r"\u{1b}[2J\u{7}\u{9b}\u{202e}x\n");
        assert_eq!(shown(b"\xff\xe2\x82z"), r"\xff\xe2\x82z");
        assert_eq!(format!("{:?}", Text::new("a\x1b")), r#""a\u{1b}""#);
    }

    #[test]
    fn a_string_of_dot_stays_one() {
        assert_eq!(DotString::of("a\"b\\n&lt;\x1b", 99).to_string(), r#"a\"b\\n&amp;lt;\\u{1b}"#);
        assert_eq!(DotString::of("\"\"\"", 2).to_string(), r#"\"\"…"#);
    }
}
