//! Resolves a user's word to symbols, and suggests similar names if none match.
//!
//! An event is called by its bare name, whatever its role and fields; by its label, as it is
//! printed; and an integer by its value, decimal or hexadecimal. So a word may match several
//! symbols. Cost: one pass over the alphabet for any number of words.

use crate::Symbol;
use crate::trace::{Alphabet, Meaning, Name, Role, is_harmless};
use hashbrown::HashMap;

/// For each word the symbols that it means, in order; none when no event is called so.
///
/// ```
/// use loopfold::questions::query::symbols_called;
/// use loopfold::trace::{Alphabet, Event, Role};
///
/// let mut alphabet = Alphabet::default();
/// let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("f") }, None)?;
/// let leave = alphabet.intern(&Event { role: Role::Leave, ..Event::named("f") }, None)?;
/// let number = alphabet.intern(&Event::integer(255), None)?;
/// let found = symbols_called(&alphabet, &["f", "leave f", "0xff", "g"]);
/// assert_eq!(found, [vec![enter, leave], vec![leave], vec![number], vec![]]);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn symbols_called<W: AsRef<str>>(alphabet: &Alphabet, words: &[W]) -> Vec<Vec<Symbol>> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut integers: HashMap<u64, Vec<usize>> = HashMap::new();
    for (place, word) in words.iter().enumerate() {
        let word = word.as_ref();
        places.entry(word.as_bytes()).or_default().push(place);
        if let Some(number) = integer(word) {
            integers.entry(number).or_default().push(place);
        }
    }
    let mut called = vec![Vec::new(); words.len()];
    let mut call = |symbol: Symbol, places: Option<&Vec<usize>>| {
        for &place in places.into_iter().flatten() {
            let symbols: &mut Vec<Symbol> = &mut called[place];
            // A symbol comes with all its forms at once, so it is the last one if it is there.
            if symbols.last() != Some(&symbol) {
                symbols.push(symbol);
            }
        }
    };
    for symbol in alphabet.symbols() {
        let meaning = alphabet.meaning(symbol);
        match meaning.name {
            Name::Text(text) => call(symbol, places.get(text)),
            Name::Integer(number) => call(symbol, integers.get(&number)),
        }
        if !is_printed_as_it_is(&meaning) {
            for label in printed(&meaning) {
                call(symbol, places.get(label.as_bytes()));
            }
        }
    }
    called
}

/// A number as users write it: decimal, or hexadecimal after `0x`.
pub(super) fn integer(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !word.starts_with('+') => word.parse().ok(),
        _ => None,
    }
}

/// Whether an event's label is its name, byte for byte.
fn is_printed_as_it_is(meaning: &Meaning<'_>) -> bool {
    let Name::Text(text) = meaning.name else { return false };
    let plain = |text: &str| text.chars().all(is_harmless) && !text.trim().is_empty();
    meaning.fields.is_empty()
        && !matches!(meaning.role, Role::Enter | Role::Leave)
        && std::str::from_utf8(text).is_ok_and(plain)
}

/// The texts that a terminal may show for an event: its label, in decimal and in hexadecimal,
/// without the end of a line of Windows, and a mark where there is nothing to see.
pub(super) fn printed(meaning: &Meaning<'_>) -> [String; 3] {
    let label = meaning.to_string();
    let seen = label.strip_suffix("\\r").unwrap_or(&label);
    let seen = if seen.trim().is_empty() { "␤".to_string() } else { seen.to_string() };
    [format!("{meaning:#}"), label, seen]
}

/// The most names that are suggested.
const MOST_NEAR: usize = 5;

/// Characters of a name that are examined, and shown: names may be of any length.
const SHOWN: usize = 80;

/// A few names of events that are similar to a word, the nearest first: equal except for case,
/// spelled similarly, or containing the word.
pub fn near_names(alphabet: &Alphabet, word: &str) -> Vec<String> {
    nearest(alphabet.symbols().map(|symbol| bare_name(&alphabet.meaning(symbol))), word)
}

/// The same among any names.
pub(super) fn nearest(names: impl Iterator<Item = String>, word: &str) -> Vec<String> {
    let wanted: Vec<char> = word.to_lowercase().chars().take(SHOWN).collect();
    let furthest = ((wanted.len() + 1) / 4).min(4);
    let mut near: Vec<(usize, String)> = Vec::new();
    for name in names {
        let name: String = name.chars().take(SHOWN).collect();
        let characters: Vec<char> = name.to_lowercase().chars().collect();
        let distance = match edit_distance(&wanted, &characters, furthest) {
            Some(distance) => distance,
            None if wanted.len() > 1 && contains(&characters, &wanted) => furthest + 1,
            None => continue,
        };
        if near.iter().any(|(_, known)| *known == name) {
            continue;
        }
        let at = near.partition_point(|(other, _)| *other <= distance);
        near.insert(at, (distance, name));
        near.truncate(MOST_NEAR);
    }
    near.into_iter().map(|(_, name)| name).collect()
}

/// The name without role and fields, as it is printed, cut where it is very long.
fn bare_name(meaning: &Meaning<'_>) -> String {
    let bare = Meaning { name: meaning.name, ..Meaning::default() };
    let bare = match bare.name {
        // Characters take up to four bytes; what is cut in half is beyond what is shown.
        Name::Text(text) => Meaning { name: Name::Text(&text[..text.len().min(4 * SHOWN)]), ..bare },
        Name::Integer(_) => bare,
    };
    bare.to_string().chars().take(SHOWN).collect()
}

fn contains(text: &[char], part: &[char]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// How many characters must be inserted, removed, replaced or swapped with their neighbour to
/// get from one word to the other. Returns `None` when more than `furthest`.
fn edit_distance(left: &[char], right: &[char], furthest: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > furthest {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in right.iter().enumerate() {
            let mut least = (last[column] + usize::from(a != b)).min(last[column + 1] + 1);
            least = least.min(current[column] + 1);
            let swapped = row > 0 && column > 0 && a == right[column - 1] && b == left[row - 1];
            if swapped {
                least = least.min(before_last[column - 1] + 1);
            }
            current.push(least);
        }
        if current.iter().all(|&distance| distance > furthest) {
            return None;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().filter(|&distance| distance <= furthest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Event, Field, Value};

    fn alphabet_of(names: &[&str]) -> Alphabet {
        let mut alphabet = Alphabet::default();
        for name in names {
            alphabet.intern(&Event::named(name), None).unwrap();
        }
        alphabet
    }

    #[test]
    fn events_are_called_as_they_are_printed() {
        let mut alphabet = alphabet_of(&["a b", "\x1b[2J", "end\r", "  ", "42"]);
        let fields = [Field { key: "peer", value: Value::Integer(6) }];
        alphabet.intern(&Event { fields: &fields, ..Event::named("send") }, None).unwrap();
        alphabet.intern(&Event::named("send"), None).unwrap();
        alphabet.intern(&Event::integer(42), None).unwrap();
        let found = |word: &str| {
            symbols_called(&alphabet, &[word])[0].iter().map(|symbol| symbol.index()).collect::<Vec<_>>()
        };
        assert_eq!(found("a b"), [0]);
        assert_eq!(found(r"\u{1b}[2J"), [1]);
        assert_eq!(found("\x1b[2J"), [1]);
        assert_eq!(found("end"), [2]);
        assert_eq!(found(r"end\r"), [2]);
        assert_eq!(found("␤"), [3]);
        assert_eq!(found("send"), [5, 6]);
        assert_eq!(found("send peer=6"), [5]);
        // Text that looks like a number is called as it is written, a number by its value.
        assert_eq!(found("42"), [4, 7]);
        assert_eq!(found("0x2a"), [7]);
        assert_eq!(found("0x2A"), [7]);
        assert_eq!(found("+42"), [0usize; 0]);
        assert_eq!(found("a"), [0usize; 0]);
        assert_eq!(found(""), [0usize; 0]);
    }

    #[test]
    fn near_names_are_few_and_near() {
        let alphabet = alphabet_of(&["MPI_Send", "MPI_Isend", "MPI_Recv", "mpi_send_", "x", "a\x1bb"]);
        assert_eq!(
            near_names(&alphabet, "mpi_send"),
            ["MPI_Send", "MPI_Isend", "mpi_send_", "MPI_Recv"][..3]
        );
        assert_eq!(near_names(&alphabet, "MPI_Sned")[0], "MPI_Send");
        assert_eq!(near_names(&alphabet, "recv"), ["MPI_Recv"]);
        assert_eq!(near_names(&alphabet, "ab"), [r"a\u{1b}b"; 0]);
        assert_eq!(near_names(&alphabet, "quite another"), [""; 0]);
        // Every letter is near every other one.
        assert_eq!(near_names(&alphabet, "y"), [""; 0]);
        assert_eq!(near_names(&alphabet, "X"), ["x"]);
        let many: Vec<String> = (0..100).map(|n| format!("event{n}")).collect();
        let many = alphabet_of(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(near_names(&many, "event").len(), MOST_NEAR);
    }

    #[test]
    fn the_distance_is_that_of_the_definition() {
        let distance = |left: &str, right: &str| {
            let characters = |text: &str| text.chars().collect::<Vec<char>>();
            edit_distance(&characters(left), &characters(right), 3)
        };
        assert_eq!(distance("abc", "abc"), Some(0));
        assert_eq!(distance("abc", "acb"), Some(1));
        assert_eq!(distance("abc", "abd"), Some(1));
        assert_eq!(distance("abc", "ab"), Some(1));
        assert_eq!(distance("", "abc"), Some(3));
        assert_eq!(distance("", "abcd"), None);
        assert_eq!(distance("kitten", "sitting"), Some(3));
        assert_eq!(distance("abcdef", "uvwxyz"), None);
    }
}
