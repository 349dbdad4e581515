//! Resolves a user's words to symbols, and suggests similar names if none match.
//!
//! [`EventPattern`] says which events a word stands for. Where all events are known, those that
//! are called as the word is written take precedence: only if there are none, it is a glob, a
//! name with some of its fields, or a regular expression. So any event can be named exactly.
//!
//! Cost: one pass over the alphabet with a look-up for each event, for any number of words, and a
//! match for each word that is a pattern.

use crate::trace::{Alphabet, EventPattern, Meaning, Name, integer, is_field, name_if_printed, printed};
use crate::{Result, Symbol};
use hashbrown::HashMap;

/// For each word the symbols that it stands for, in order; none when there are no such events.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a regular expression that is none.
///
/// ```
/// use loopfold::questions::query::symbols_called;
/// use loopfold::trace::{Alphabet, Event, Role};
///
/// let mut alphabet = Alphabet::default();
/// let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("f") }, None)?;
/// let leave = alphabet.intern(&Event { role: Role::Leave, ..Event::named("f") }, None)?;
/// let number = alphabet.intern(&Event::integer(255), None)?;
/// let found = symbols_called(&alphabet, &["f", "leave f", "0xff", "g", "leave *", "/f$/"])?;
/// let expected = [vec![enter, leave], vec![leave], vec![number], vec![], vec![leave], vec![enter, leave]];
/// assert_eq!(found, expected);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn symbols_called<W: AsRef<str>>(alphabet: &Alphabet, words: &[W]) -> Result<Vec<Vec<Symbol>>> {
    let mut patterns: Vec<Pattern> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        // A bad expression is none only if no event is called so.
        let parsed = EventPattern::parse(word.as_ref());
        if parsed.as_ref().map_or(true, EventPattern::has_others) {
            patterns.push(Pattern { place, parsed, fitting: Vec::new() });
        }
    }
    let mut words = Words::new(words);
    for symbol in alphabet.symbols() {
        let meaning = alphabet.meaning(symbol);
        let name = name_if_printed(&meaning);
        words.call(symbol, &meaning, name.is_some());
        for Pattern { place, parsed, fitting } in &mut patterns {
            let Ok(pattern) = parsed else { continue };
            let fits = || match name {
                Some(name) => pattern.fits_printed_name(name),
                None => pattern.fits_others(&meaning),
            };
            if words.called[*place].is_empty() && fits() {
                fitting.push(symbol);
            }
        }
    }
    for Pattern { place, parsed, fitting } in patterns {
        if words.called[place].is_empty() {
            parsed?;
            words.called[place] = fitting;
        }
    }
    Ok(words.called)
}

/// A word that may stand for events that are not called as it is written.
struct Pattern {
    place: usize,
    parsed: Result<EventPattern>,
    fitting: Vec<Symbol>,
}

/// The symbols of events that are called as the words are written.
pub(super) fn called_exactly<W: AsRef<str>>(alphabet: &Alphabet, words: &[W]) -> Vec<Vec<Symbol>> {
    let mut words = Words::new(words);
    for symbol in alphabet.symbols() {
        let meaning = alphabet.meaning(symbol);
        words.call(symbol, &meaning, name_if_printed(&meaning).is_some());
    }
    words.called
}

/// Words, and the symbols of the events so far that are called as they are written.
struct Words<'w> {
    places: HashMap<&'w [u8], Vec<usize>>,
    integers: HashMap<u64, Vec<usize>>,
    called: Vec<Vec<Symbol>>,
}

impl<'w> Words<'w> {
    fn new<W: AsRef<str>>(words: &'w [W]) -> Self {
        let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
        let mut integers: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, word) in words.iter().enumerate() {
            let word = word.as_ref();
            places.entry(word.as_bytes()).or_default().push(place);
            if let Some(number) = integer(word) {
                integers.entry(number).or_default().push(place);
            }
        }
        Self { places, integers, called: vec![Vec::new(); words.len()] }
    }

    /// Adds a symbol to the words that it is called by: its name, and what is printed if that is
    /// something else.
    fn call(&mut self, symbol: Symbol, meaning: &Meaning<'_>, is_printed_as_name: bool) {
        let places = match meaning.name {
            Name::Text(text) => self.places.get(text),
            Name::Integer(number) => self.integers.get(&number),
        };
        add(&mut self.called, symbol, places);
        if !is_printed_as_name {
            for label in printed(meaning) {
                add(&mut self.called, symbol, self.places.get(label.as_bytes()));
            }
        }
    }
}

fn add(called: &mut [Vec<Symbol>], symbol: Symbol, places: Option<&Vec<usize>>) {
    for &place in places.into_iter().flatten() {
        // A symbol comes with all its forms at once, so it is the last one if it is there.
        if called[place].last() != Some(&symbol) {
            called[place].push(symbol);
        }
    }
}

/// A word as users write it.
pub(super) struct Word {
    pub(super) text: String,
    /// True if it was in quotes, at least its beginning.
    pub(super) quoted: bool,
}

/// Joins words that are fields, `key=value`, to the names before them: `MPI_Recv src=4` is one
/// event, unless `is_event` knows one that is called `src=4`.
pub(super) fn join_fields(words: Vec<Word>, is_event: impl Fn(&str) -> bool) -> Vec<Word> {
    let mut joined: Vec<Word> = Vec::with_capacity(words.len());
    for word in words {
        let belongs = !word.quoted && is_field(&word.text) && !is_event(&word.text);
        match joined.last_mut() {
            Some(last) if belongs => {
                last.text.push(' ');
                last.text.push_str(&word.text);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Which of the words are exactly what an event is called.
pub(super) fn known_words(alphabet: &Alphabet, words: &[Word]) -> Vec<bool> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    // Most queries have no fields, and then nothing is asked of the alphabet.
    if !words.iter().any(|word| !word.quoted && is_field(&word.text)) {
        return vec![false; words.len()];
    }
    called_exactly(alphabet, &texts).iter().map(|symbols| !symbols.is_empty()).collect()
}

/// Why a word stands for no event, and which names are near: `no event is called opne; near is:
/// open`.
pub fn no_such_event(alphabet: &Alphabet, word: &str) -> String {
    let pattern = EventPattern::parse(word).ok();
    let all = || alphabet.symbols().map(|symbol| alphabet.meaning(symbol));
    if let Some(name) = pattern.as_ref().and_then(EventPattern::without_fields) {
        let labels = all().filter(|meaning| name.fits(meaning)).map(|meaning| cut(&meaning.to_string()));
        let labels: Vec<String> = labels.take(MOST_NEAR).collect();
        if !labels.is_empty() {
            return format!("no event fits {}; there are: {}", shortened(word), labels.join(", "));
        }
    }
    let is_pattern = pattern.is_some_and(|pattern| pattern.has_others());
    let verb = if is_pattern { "fits" } else { "is called" };
    let letters = word.trim_matches('/').replace(|letter| "*?[]^$.\\()|+".contains(letter), "");
    let near = near_names(alphabet, if is_pattern { &letters } else { word });
    format!("no event {verb} {}{}", shortened(word), near_are(&near))
}

/// `; near are: …`, if any are.
pub(super) fn near_are(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [only] => format!("; near is: {only}"),
        several => format!("; near are: {}", several.join(", ")),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// A word as it fits a message.
pub(super) fn shortened(word: &str) -> String {
    match word.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_string(),
    }
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
            symbols_called(&alphabet, &[word]).unwrap()[0]
                .iter()
                .map(|symbol| symbol.index())
                .collect::<Vec<_>>()
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
