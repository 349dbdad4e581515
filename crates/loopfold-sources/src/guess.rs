//! Chooses the source of an input: by name, or by its first bytes.
//!
//! Guessing asks every source and takes the best fit. Text that no other source knows is lines;
//! binary data is not, because as lines it would be a meaningless trace, and only the user knows
//! its width. Cost: some passes over the first 64 kB.

use crate::{ALL, Fit, Source};

/// The source that users call `name`.
///
/// ```
/// assert_eq!(loopfold_sources::by_name("u32").unwrap().name(), "u32");
/// assert!(loopfold_sources::by_name("punch cards").is_none());
/// ```
pub fn by_name(name: &str) -> Option<&'static dyn Source> {
    ALL.iter().copied().find(|source| source.name() == name)
}

/// The source that fits best to the first bytes (64 kB or so, decompressed) of an
/// input of this name. Returns `None` for binary data of no known format.
///
/// ```
/// use loopfold_sources::guess;
/// let name_of = |head: &[u8], file| guess(head, file).map(|source| source.name());
/// assert_eq!(name_of(b"send\nreceive\n", None), Some("lines"));
/// assert_eq!(name_of(b"\x01\x00\x02\x00", None), None);
/// assert_eq!(name_of(b"\x01\x00\x02\x00", Some("counters.u16le.zst")), Some("u16"));
/// ```
pub fn guess(head: &[u8], file_name: Option<&str>) -> Option<&'static dyn Source> {
    file_name.and_then(|name| by_extension(name, head)).or_else(|| by_content(head))
}

/// Integers and tokens have no magic bytes, so such files are recognized by their extension, and so
/// is control flow that does not begin with a call.
fn by_extension(file_name: &str, head: &[u8]) -> Option<&'static dyn Source> {
    let unpacked =
        [".gz", ".zst", ".xz"].iter().find_map(|packed| file_name.strip_suffix(packed)).unwrap_or(file_name);
    let (_, extension) = unpacked.rsplit_once('.')?;
    let width = extension.strip_suffix("le").unwrap_or(extension);
    match width {
        "u8" | "u16" | "u32" | "u64" => by_name(width),
        // Other tools write text with these extensions.
        "bb" | "trc" if head.is_empty() || !is_text(head) => by_name("calls-binary"),
        "calls" => by_name("calls"),
        _ => None,
    }
}

fn by_content(head: &[u8]) -> Option<&'static dyn Source> {
    let mut best = (Fit::No, None);
    for &source in ALL {
        let fit = source.fits(head);
        if fit > best.0 {
            best = (fit, Some(source));
        }
    }
    best.1
}

/// Whether these bytes can be text of some encoding: no NUL, and few of the control
/// characters that text does not use. Random bytes have one such in nine.
pub(crate) fn is_text(head: &[u8]) -> bool {
    let odd = head.iter().filter(|&&byte| is_odd(byte)).count();
    // A few odd bytes say nothing about a short text.
    odd <= 4 + head.len() / 32 && !head.contains(&0)
}

/// Control characters other than blanks, bell, backspace and escape (logs have colours).
fn is_odd(byte: u8) -> bool {
    matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &[u8], file_name: Option<&str>, expected: Option<&str>) {
        assert_eq!(guess(head, file_name).map(|source| source.name()), expected);
    }

    #[test]
    fn text_is_lines_and_binary_is_nothing() {
        check(b"", None, Some("lines"));
        check(b"\n", None, Some("lines"));
        check(b"Gr\xfc\xdfe\r\n", None, Some("lines"));
        check(b"\x1b[31mred\x1b[0m\n", None, Some("lines"));
        check(b"a\0b", None, None);
        let random: Vec<u8> = (0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
        check(&random, None, None);
    }

    #[test]
    fn a_long_line_of_few_letters_is_bytes() {
        let letters = b"sssscccclaam".repeat(400);
        check(&letters, None, Some("bytes"));
        check(&[&letters[..], b"\n"].concat(), None, Some("bytes"));
        check(&[&letters[..], b"\nssss\n"].concat(), None, Some("lines"));
        check(&letters[..4000], None, Some("lines"));
        check(&[b"{\"a\":1,", &letters[..], b"}"].concat(), None, Some("lines"));
    }

    #[test]
    fn the_extension_of_a_file_gives_the_width_of_its_numbers() {
        check(b"", Some("pc.u64le"), Some("u64"));
        check(b"text\n", Some("x.u8.gz"), Some("u8"));
        check(b"text\n", Some("x.u16"), Some("u16"));
        check(b"a,b\n1,2\n", Some("x.csv"), Some("lines"));
        check(b"text\n", Some("u64"), Some("lines"));
        check(b"\0\0\0\x80", Some("gzip.bb.zst"), Some("calls-binary"));
        check(b"\0\0\0\x80", Some("gzip.trc"), Some("calls-binary"));
        check(b"a text of another tool\n", Some("x.trc"), Some("lines"));
        check(b"1\ncall f\n", Some("x.calls.gz"), Some("calls"));
        check(b"call f\n1\nreturn\n", Some("x.txt"), Some("calls"));
        check(b"E0x10\nX0x10\n", None, Some("finstrument"));
    }
}
