//! Splits Rust into names and signs; comments, texts, characters and numbers that could be taken for
//! names are left out.

/// A name, a `::`, or a single sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
}

impl Token {
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphabetic() || first == '_')
    }
}

/// The tokens of a file.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut scanner = Scanner { rest: source, line: 1, tokens: Vec::new() };
    while scanner.step() {}
    scanner.tokens
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

impl Scanner<'_> {
    /// Takes the next token or what is left out; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        let length = if self.rest.starts_with("//") {
            self.rest.find('\n').unwrap_or(self.rest.len())
        } else if self.rest.starts_with("/*") {
            block_comment(self.rest)
        } else if let Some(length) = text(self.rest) {
            length
        } else if first == '\'' {
            character_or_lifetime(self.rest)
        } else if first.is_ascii_digit() {
            name_length(self.rest)
        } else if first.is_alphabetic() || first == '_' {
            self.push(name_length(self.rest))
        } else if self.rest.starts_with("::") {
            self.push(2)
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            self.push(first.len_utf8())
        };
        let (passed, rest) = self.rest.split_at(length.max(1).min(self.rest.len()));
        self.line += passed.matches('\n').count();
        self.rest = rest;
        true
    }

    fn push(&mut self, length: usize) -> usize {
        self.tokens.push(Token { text: self.rest[..length].to_string(), line: self.line });
        length
    }
}

fn name_length(rest: &str) -> usize {
    rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len())
}

/// Comments in comments are parts of them.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut open) = (0, 0usize);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            open += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            open -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if open == 0 {
            break;
        }
    }
    at
}

/// How long a text is that begins here, with its prefix, such as in `br#"…"#`.
fn text(rest: &str) -> Option<usize> {
    let prefix = rest.bytes().take(2).take_while(u8::is_ascii_lowercase).count();
    let is_raw = match &rest[..prefix] {
        "" | "b" | "c" => false,
        "r" | "br" | "cr" => true,
        _ => return None,
    };
    let hashes = rest[prefix..].chars().take_while(|&next| next == '#').count();
    let begin = prefix + hashes;
    if !rest[begin..].starts_with('"') || (hashes > 0 && !is_raw) {
        return None;
    }
    if is_raw {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = rest[begin + 1..].find(&end)?;
        return Some(begin + 1 + length + end.len());
    }
    Some(quoted(rest, begin, b'"'))
}

/// Behind the quote that ends what a quote begins.
fn quoted(rest: &str, begin: usize, quote: u8) -> usize {
    let bytes = rest.as_bytes();
    let mut at = begin + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// `'a'` and `'\n'`, or the quote of `'a`, whose name is no path.
fn character_or_lifetime(rest: &str) -> usize {
    let mut characters = rest.chars().skip(1);
    match (characters.next(), characters.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, 0, b'\''),
        _ => 1 + name_length(&rest[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        let texts: Vec<String> = tokens(source).into_iter().map(|token| token.text).collect();
        assert_eq!(texts.join(" "), expected, "{source}");
    }

    #[test]
    fn names_and_signs() {
        check("use crate::{a, b_2};", "use crate :: { a , b_2 } ;");
        check("x.y::<T>() + 12u8", "x . y :: < T > ( ) +");
    }

    #[test]
    fn comments_texts_and_characters_are_left_out() {
        check("a // crate::b\n/// crate::c\n//! crate::d\ne", "a e");
        check("a /* crate::b /* x */ crate::c */ d", "a d");
        check(r####"f("crate::a \" crate::b", r#"crate::c " "#, b"x", br"y\") g"####, "f ( , , , ) g");
        check(r"('a', '\'', '\u{1f}', b'x', '\\') z", "( , , , b , ) z");
        check("fn f<'a>(x: &'a str) -> r#type {}", "fn f < > ( x : & str ) - > r # type { }");
    }

    #[test]
    fn lines_are_counted() {
        let all = tokens("a\n/*\n\n*/ b \"\n\" c");
        let lines: Vec<usize> = all.iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 4, 5]);
    }
}
