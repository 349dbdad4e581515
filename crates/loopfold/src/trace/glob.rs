//! Matches names against glob patterns: `*` is any characters, `?` any one, `[a-z]` one of
//! those, `[!a-z]` one that is none of those. A bracket that is not closed is a character like
//! any other.
//!
//! Time: at most the product of both lengths. Nothing is allocated for a match, and the characters
//! before the first and behind the last special one are compared at once: whole alphabets are
//! matched, and most patterns are the beginning or the end of names.

/// True if a text has characters that mean others.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// A pattern for names, as shells have them.
///
/// ```
/// use loopfold::trace::Glob;
/// let glob = Glob::new("rank [0-3]*");
/// assert!(glob.fits("rank 2 thread 1") && !glob.fits("rank 7"));
/// ```
#[derive(Clone, Debug)]
pub struct Glob {
    /// What the text begins with.
    prefix: String,
    /// What is behind that.
    parts: Vec<Part>,
    /// What the text ends with, if the parts have a `*`; else nothing.
    suffix: String,
}

#[derive(Clone, Debug)]
enum Part {
    /// This character.
    One(char),
    /// Any one character.
    AnyOne,
    /// One character from, or outside of, these ranges.
    Of { ranges: Vec<(char, char)>, outside: bool },
    /// Any characters, or none.
    Any,
}

impl Part {
    fn fits(&self, character: char) -> bool {
        match self {
            Part::One(one) => *one == character,
            Part::AnyOne => true,
            Part::Of { ranges, outside } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&character)) != *outside
            }
            Part::Any => false,
        }
    }
}

impl Glob {
    /// `*` is any characters, `?` any one, `[a-z]` one of those, `[!a-z]` one that is none of those.
    pub fn new(pattern: &str) -> Self {
        let characters: Vec<char> = pattern.chars().collect();
        let mut rest = &characters[..];
        let mut parts = Vec::new();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            parts.push(match first {
                '*' => Part::Any,
                '?' => Part::AnyOne,
                '[' => match bracket(after) {
                    Some((part, behind)) => {
                        rest = behind;
                        part
                    }
                    None => Part::One('['),
                },
                other => Part::One(other),
            });
        }
        let prefix = take_characters(&mut parts, false);
        // Behind a `*` the end of the text is known; else it is compared in order.
        let has_any = parts.iter().any(|part| matches!(part, Part::Any));
        let suffix = if has_any { take_characters(&mut parts, true) } else { String::new() };
        Self { prefix, parts, suffix }
    }

    /// True if the whole text fits the pattern.
    pub fn fits(&self, text: &str) -> bool {
        self.fits_bytes(text.as_bytes())
    }

    /// The same for the bytes of a text.
    pub(crate) fn fits_bytes(&self, text: &[u8]) -> bool {
        let (prefix, suffix) = (self.prefix.as_bytes(), self.suffix.as_bytes());
        let mut middle = text;
        // Comparing with nothing takes longer than with something: 40 ns with the memcmp of glibc.
        if !prefix.is_empty() {
            let Some(behind) = middle.strip_prefix(prefix) else { return false };
            middle = behind;
        }
        if !suffix.is_empty() {
            let Some(before) = middle.strip_suffix(suffix) else { return false };
            middle = before;
        }
        matches!(self.parts[..], [Part::Any])
            || std::str::from_utf8(middle).is_ok_and(|middle| self.fits_middle(middle))
    }

    fn fits_middle(&self, text: &str) -> bool {
        let (mut part, mut rest) = (0, text);
        // The part behind the last `*`, and what that `*` does not stand for so far.
        let mut retry: Option<(usize, &str)> = None;
        loop {
            let next = rest.chars().next();
            match (self.parts.get(part), next) {
                (None, None) => return true,
                (Some(Part::Any), _) => {
                    part += 1;
                    retry = Some((part, rest));
                }
                (Some(wanted), Some(character)) if wanted.fits(character) => {
                    (part, rest) = (part + 1, &rest[character.len_utf8()..]);
                }
                _ => {
                    let Some((after, untaken)) = retry else { return false };
                    let Some(taken) = untaken.chars().next() else { return false };
                    let untaken = &untaken[taken.len_utf8()..];
                    retry = Some((after, untaken));
                    (part, rest) = (after, untaken);
                }
            }
        }
    }
}

/// Removes the parts at the beginning, or at the end, that are single characters, and returns these.
fn take_characters(parts: &mut Vec<Part>, at_end: bool) -> String {
    let character = |part: &Part| match part {
        Part::One(one) => Some(*one),
        _ => None,
    };
    if at_end {
        let start = parts.iter().rposition(|part| character(part).is_none()).map_or(0, |last| last + 1);
        return parts.drain(start..).filter_map(|part| character(&part)).collect();
    }
    let end = parts.iter().position(|part| character(part).is_none()).unwrap_or(parts.len());
    parts.drain(..end).filter_map(|part| character(&part)).collect()
}

/// What is in a bracket, and what is behind it.
fn bracket(text: &[char]) -> Option<(Part, &[char])> {
    let (outside, inner) = match text.split_first() {
        Some(('!' | '^', inner)) => (true, inner),
        _ => (false, text),
    };
    // A bracket that comes first is one of the characters.
    let end = 1 + inner.get(1..)?.iter().position(|&character| character == ']')?;
    let (mut rest, behind) = (&inner[..end], &inner[end + 1..]);
    let mut ranges = Vec::new();
    while let Some((&first, after)) = rest.split_first() {
        (ranges, rest) = match after {
            ['-', last, behind @ ..] => ([ranges, vec![(first, *last)]].concat(), behind),
            _ => ([ranges, vec![(first, first)]].concat(), after),
        };
    }
    Some((Part::Of { ranges, outside }, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, fitting, others) in [
            ("*", &["", "a", "main"][..], &[][..]),
            ("a*b", &["ab", "axb", "abab"], &["a", "abc", "ba"]),
            ("*::get*", &["a::get", "a::b::get_x"], &["get", "a:get"]),
            ("a?c", &["abc", "aéc"], &["ac", "abbc"]),
            ("f[0-9]", &["f0", "f9"], &["f", "fa", "f10"]),
            ("f[!0-9x]*", &["fa", "fab"], &["f0", "fx", "f"]),
            ("[]]", &["]"], &["[", ""]),
            ("[", &["["], &["]"]),
            ("[]", &["[]"], &["]"]),
            ("a[b", &["a[b"], &["ab"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("*a*a*a*", &["aaa", "xaxaxax"], &["aa"]),
            ("ab*ba", &["abba", "abxba"], &["aba", "ab", "ba"]),
            ("a?*ba", &["axba", "abxba"], &["aba", "abab"]),
            ("main", &["main"], &["main2", "mai"]),
            ("", &[""], &["a"]),
        ] {
            for name in fitting {
                assert!(Glob::new(pattern).fits(name), "{pattern} {name}");
            }
            for name in others {
                assert!(!Glob::new(pattern).fits(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let glob = Glob::new(&"*a".repeat(1000));
        assert!(!glob.fits(&format!("{}b", "a".repeat(20_000))));
    }
}
