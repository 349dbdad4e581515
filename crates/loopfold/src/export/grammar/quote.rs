//! Quoted names: any bytes as text that is safe in a terminal and an editor.

use crate::emit::is_harmless;
use std::fmt::Write as _;

pub(super) const QUOTE: u8 = b'\'';

/// Appends a name in quotes. What is not UTF-8, and what could act on a terminal or make
/// the name read as another, is escaped.
pub(super) fn put(out: &mut String, name: &[u8]) {
    out.push('\'');
    for chunk in name.utf8_chunks() {
        chunk.valid().chars().for_each(|character| put_character(out, character));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('\'');
}

fn put_character(out: &mut String, character: char) {
    match character {
        '\'' | '\\' => out.extend(['\\', character]),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_harmless(character) => out.push(character),
        _ => out.extend(character.escape_unicode()),
    }
}

/// Reads a name whose opening quote has been read into `out`, and returns how many bytes
/// of `text` it took with its closing quote. The error is the reason.
pub(super) fn take(text: &[u8], out: &mut Vec<u8>) -> Result<usize, &'static str> {
    let mut at = 0;
    loop {
        match text.get(at) {
            None => return Err("a name has no closing quote"),
            Some(&QUOTE) => return Ok(at + 1),
            Some(b'\\') => at += 1 + take_escape(&text[at + 1..], out)?,
            Some(&byte) => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// Reads what follows a backslash, and returns how long it is.
fn take_escape(text: &[u8], out: &mut Vec<u8>) -> Result<usize, &'static str> {
    let plain = match text.first() {
        Some(b'x') => return take_byte(&text[1..], out),
        Some(b'u') => return take_code_point(&text[1..], out),
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(&byte @ (QUOTE | b'\\')) => byte,
        _ => return Err(r"an unknown escape; there are \' \\ \n \r \t \x and \u{}"),
    };
    out.push(plain);
    Ok(1)
}

/// The two digits of `\x1b`.
fn take_byte(text: &[u8], out: &mut Vec<u8>) -> Result<usize, &'static str> {
    let byte = text.get(..2).and_then(hexadecimal).and_then(|number| u8::try_from(number).ok());
    out.push(byte.ok_or(r"\x needs two hexadecimal digits")?);
    Ok(3)
}

/// The braces and digits of `\u{202e}`.
fn take_code_point(text: &[u8], out: &mut Vec<u8>) -> Result<usize, &'static str> {
    let reason = r"\u needs a code point in braces, of up to six hexadecimal digits";
    let inside = text.strip_prefix(b"{").ok_or(reason)?;
    let length = inside.iter().take(7).position(|&byte| byte == b'}').ok_or(reason)?;
    let character = hexadecimal(&inside[..length]).and_then(char::from_u32).ok_or(reason)?;
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(1 + length + 2)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(name: &[u8]) -> String {
        let mut out = String::new();
        put(&mut out, name);
        out
    }

    fn unquoted(text: &str) -> Result<Vec<u8>, &'static str> {
        let mut out = Vec::new();
        let length = take(&text.as_bytes()[1..], &mut out)?;
        assert_eq!(length, text.len() - 1, "{text}");
        Ok(out)
    }

    #[test]
    fn what_is_quoted_is_harmless_and_comes_back() {
        let check = |name: &[u8], expected: &str| {
            assert_eq!(quoted(name), expected);
            assert_eq!(unquoted(expected).unwrap(), name);
        };
        check(b"", "''");
        check(b"it's", r"'it\'s'");
        check(b"a\\b\n\r\t", r"'a\\b\n\r\t'");
        check("größe → 数".as_bytes(), "'größe → 数'");
        check(b"\x1b[2J\x7f\0", r"'\u{1b}[2J\u{7f}\u{0}'");
        check("\u{202e}\u{feff}\u{2028}".as_bytes(), r"'\u{202e}\u{feff}\u{2028}'");
        check(b"\xff\xe2\x82z\xc3", r"'\xff\xe2\x82z\xc3'");
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                let text = quoted(&[first, second]);
                assert!(text.chars().all(is_harmless), "{text}");
                assert_eq!(unquoted(&text).unwrap(), [first, second]);
            }
        }
    }

    #[test]
    fn names_may_be_written_in_other_ways() {
        assert_eq!(unquoted(r"'\x41\u{42}\u{000043}'").unwrap(), b"ABC");
        assert_eq!(unquoted(r"'\xe2\x82\xac'").unwrap(), "€".as_bytes());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "'",
            "'abc",
            r"'\'",
            r"'\",
            r"'\q'",
            r"'\x'",
            r"'\x4'",
            r"'\x4",
            r"'\xg0'",
            r"'\x+1'",
            r"'\u'",
            r"'\u{}'",
            r"'\u{d800}'",
            r"'\u{110000}'",
            r"'\u{0000041}'",
            r"'\u{41'",
            r"'\u{+41}'",
        ] {
            assert!(take(&text.as_bytes()[1..], &mut Vec::new()).is_err(), "{text}");
        }
    }
}
