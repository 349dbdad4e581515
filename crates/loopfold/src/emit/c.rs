//! C, made of what is known, numbers, and the forms that text from a trace has in C.
//!
//! [`Code`] can only be put together by [`code!`](crate::emit::code): from formats and texts that are
//! written in this library, numbers, other code, and [`Literal`], [`Identifier`] and [`Comment`]. So text
//! from a trace becomes part of a program as one string, one name or one comment, or not at all; that
//! is checked when this library is compiled.
//!
//! Two names of a trace are one identifier only if a hash of 64 bits is equal. Cost: O(length).

use std::fmt::{self, Write as _};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

/// Code of C.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code(String);

/// What may be a part of [`Code`]: nothing that came from a trace.
pub(crate) trait CodePart: fmt::Display {}

macro_rules! parts {
    ($($part:ty),+ $(,)?) => { $(impl CodePart for $part {})+ };
}

// A text that lives as long as the program is one of this library.
parts!(&'static str, u8, i32, u32, i64, u64, usize, f64, Code, Literal<'_>, Identifier, Comment<'_>);

impl<T: CodePart> CodePart for &T {}

/// What [`code!`](crate::emit::code) is made of.
pub(crate) fn part<T: CodePart>(part: &T) -> &T {
    part
}

/// Puts code together as `format!` does. Arguments are given behind the format, and each has to be a
/// [`CodePart`]; names in the format stand for nothing, since `concat!` makes it.
macro_rules! code {
    ($format:literal $(, $part:expr)* $(,)?) => {
        $crate::emit::c::Code::from_parts(format!(concat!($format), $($crate::emit::c::part(&$part)),*))
    };
}
pub(crate) use code;

impl Code {
    /// No code.
    pub(crate) const fn new() -> Self {
        Self(String::new())
    }

    /// Only for [`code!`](crate::emit::code), which checks what the text is made of.
    pub(crate) fn from_parts(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds more behind it.
    pub(crate) fn push(&mut self, more: impl CodePart) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{more}");
    }

    /// Drops the last line.
    pub(crate) fn drop_line(&mut self) {
        let lines = self.0.strip_suffix('\n').unwrap_or(&self.0);
        self.0.truncate(lines.rfind('\n').map_or(0, |end| end + 1));
    }

    /// Adds lines, each indented so many levels; a tab at the beginning of a line is a level.
    pub(crate) fn push_lines(&mut self, depth: usize, lines: &Code) {
        for line in lines.0.lines() {
            let _ = writeln!(self.0, "{:indent$}{}", "", line.replace('\t', "    "), indent = 4 * depth);
        }
    }

    /// Code with a text between its parts.
    pub(crate) fn joined(parts: impl IntoIterator<Item: CodePart>, between: &'static str) -> Self {
        let mut joined = Self::new();
        for (nth, part) in parts.into_iter().enumerate() {
            joined.push(if nth > 0 { between } else { "" });
            joined.push(part);
        }
        joined
    }

    /// The code without what is in strings and comments, to look for names in.
    pub(crate) fn without_texts(&self) -> String {
        let mut bare = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some(at) = rest.find(['"', '/']) {
            let (before, from) = rest.split_at(at);
            bare.push_str(before);
            let length = if from.starts_with("/*") {
                from.find("*/").map_or(from.len(), |end| end + 2)
            } else if from.starts_with('"') {
                bare.push_str("\"\"");
                string_length(from)
            } else {
                bare.push('/');
                1
            };
            rest = &from[length..];
        }
        bare + rest
    }
}

/// The length of a string with its quotes, which `text` begins with.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text or bytes as a string of C, with its quotes: the same bytes, of printable ASCII only, and without
/// question marks, which could be trigraphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for &byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", byte as char)?,
                b' '..=b'~' if byte != b'?' => f.write_char(byte as char)?,
                // Three digits, so that digits may follow.
                _ => write!(f, "\\{byte:03o}")?,
            }
        }
        f.write_char('"')
    }
}

/// A name of C for a name of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier(String);

/// Longer names are hashed; C compares at least 63 characters.
const LONGEST_NAME: usize = 40;

impl Identifier {
    /// A name that begins with `prefix_`. Letters and digits, and points between them, are shown; of
    /// another name it has a hash.
    pub(crate) fn new(prefix: &'static str, name: &str) -> Self {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if name.len() <= LONGEST_NAME && name.split('.').all(is_word) {
            return Self(format!("{prefix}_{}", name.replace('.', "_")));
        }
        // Two underscores, which a name that is shown does not have.
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        Self(format!("{prefix}__{hash:016x}"))
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line of text in a comment: what could end it, or begin another one or a trigraph, is `_`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment<'a>(pub(crate) &'a str);

impl fmt::Display for Comment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_kept = |letter: char| matches!(letter, ' '..='~') && !matches!(letter, '*' | '\\' | '?');
        self.0.chars().try_for_each(|letter| f.write_char(if is_kept(letter) { letter } else { '_' }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_made_of_its_parts() {
        let peer = code!("{}.rank + {}", Identifier::new("comm", "5.2"), 1);
        let mut code = code!("MPI_Send(out, {}, {});\n", 8u64, peer);
        code.push_lines(1, &code!("\tnext({:.0});\nlast();", 1.4));
        assert_eq!(code.as_str(), "MPI_Send(out, 8, comm_5_2.rank + 1);\n        next(1);\n    last();\n");
        code.drop_line();
        assert!(code.as_str().ends_with("        next(1);\n"));
        assert_eq!(Code::joined([1, 2, 3], ", ").as_str(), "1, 2, 3");
    }

    #[test]
    fn a_string_keeps_its_bytes() {
        let shown = |bytes: &[u8]| Literal(bytes).to_string();
        assert_eq!(shown(b"solve"), "\"solve\"");
        assert_eq!(shown(b"\");system(\"id"), r#""\");system(\"id""#);
        assert_eq!(shown(b"a\\\n\x001??/\xff"), r#""a\\\012\0001\077\077/\377""#);
    }

    #[test]
    fn an_identifier_is_one_name() {
        let name = |name: &str| Identifier::new("comm", name).to_string();
        assert_eq!((name("7").as_str(), name("7.2").as_str()), ("comm_7", "comm_7_2"));
        let long = "x".repeat(LONGEST_NAME + 1);
        let names = ["7_2", "", ".", "7..2", "a b", "-1", "*/", "ä", "\n", &long, "7.2", "7"].map(name);
        for (at, one) in names.iter().enumerate() {
            assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{one}");
            assert!(one.len() <= 5 + LONGEST_NAME && !names[..at].contains(one), "{one}");
        }
    }

    #[test]
    fn a_comment_does_not_end() {
        let text = Comment("a.fold */ system(\"id\") /* ??/\n \u{202e}").to_string();
        assert_eq!(text, "a.fold _/ system(\"id\") /_ __/_ _");
    }

    #[test]
    fn names_in_texts_are_no_names() {
        let code = code!(
            "a(1); /* {} b( \" */ enter({}); c(4 / 2);",
            Comment("grid( */"),
            Literal(b"noise( \\\" grid(")
        );
        assert_eq!(code.without_texts(), "a(1);  enter(\"\"); c(4 / 2);");
    }
}
