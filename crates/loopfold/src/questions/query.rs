//! A query: a sequence of events to find in a trace.
//!
//! A query is a sequence of events, one directly after the other in a stream. Each of
//! them may be one of several symbols: a bare name means all events of that name,
//! whatever their fields.

pub use super::names::{near_names, symbols_called};
use crate::trace::{Alphabet, Event, Meaning};
use crate::{Error, Result, Symbol};

/// A sequence of events to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// For each event the symbols it may be, in order.
    events: Vec<Vec<Symbol>>,
}

impl Query {
    /// The most events that a query can have.
    pub const LONGEST: usize = 1 << 14;

    /// A query of events that each may be one of several symbols.
    pub fn new(mut events: Vec<Vec<Symbol>>) -> Result<Self> {
        if events.is_empty() || events.iter().any(Vec::is_empty) {
            return Err(Error::invalid("a query is one event or more"));
        }
        if events.len() > Self::LONGEST {
            return Err(Error::limit(format_args!(
                "a query of {} events; at most {} can be looked for",
                events.len(),
                Self::LONGEST
            )));
        }
        for symbols in &mut events {
            symbols.sort_unstable();
            symbols.dedup();
        }
        Ok(Self { events })
    }

    /// A query of exactly these symbols.
    pub fn of_symbols(symbols: &[Symbol]) -> Result<Self> {
        Self::new(symbols.iter().map(|&symbol| vec![symbol]).collect())
    }

    /// A query of exactly these events.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the alphabet lacks one of them.
    pub fn of_events(events: &[Event<'_>], alphabet: &Alphabet) -> Result<Self> {
        let symbols = events.iter().map(|event| {
            alphabet.symbol(event).ok_or_else(|| {
                let meaning = Meaning { name: event.name, role: event.role, fields: event.fields.to_vec() };
                Error::not_found(format_args!("there is no event {meaning}"))
            })
        });
        Self::of_symbols(&symbols.collect::<Result<Vec<Symbol>>>()?)
    }

    /// A query as users write it: the names or labels of events with blanks between
    /// them, those with blanks inside in single or double quotes. A name means all events of
    /// that name; numbers are decimal or hexadecimal. There are no escapes: quoted parts that
    /// touch are one name, so that a name may contain either kind of quote.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if no event has such a name,
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the text is no query.
    ///
    /// ```
    /// use loopfold::questions::query::Query;
    /// use loopfold::trace::{Alphabet, Event};
    ///
    /// let mut alphabet = Alphabet::default();
    /// let open = alphabet.intern(&Event::named("open"), None)?;
    /// let read = alphabet.intern(&Event::named("read a block"), None)?;
    /// let query = Query::parse("open 'read a block' \"read a block\"", &alphabet)?;
    /// assert_eq!(query, Query::of_symbols(&[open, read, read])?);
    /// let error = Query::parse("opne", &alphabet).unwrap_err();
    /// assert_eq!(error.to_string(), "no event is called opne; near is: open");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn parse(text: &str, alphabet: &Alphabet) -> Result<Self> {
        let words = words_of(text)?;
        let events = symbols_called(alphabet, &words);
        if let Some(unknown) = events.iter().position(Vec::is_empty) {
            return Err(unknown_event(text, &words[unknown], alphabet));
        }
        Self::new(events)
    }

    /// The words of a query, without their quotes.
    pub fn words(text: &str) -> Result<Vec<String>> {
        words_of(text)
    }

    /// How many events are searched for.
    #[allow(clippy::len_without_is_empty, reason = "a query is never empty")]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// For each event the symbols it may be, in order.
    pub fn events(&self) -> &[Vec<Symbol>] {
        &self.events
    }
}

/// A word of a query.
pub(super) struct Written {
    pub(super) text: String,
    /// True if it was in quotes, at least its beginning.
    pub(super) quoted: bool,
}

/// Divides a query at blanks. A quote at the beginning of a word reaches to the next
/// one of its kind; in the middle of a word it is a character like any other.
pub(super) fn words_with_quotes(text: &str) -> Result<Vec<Written>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut word = String::new();
        let quoted = matches!(first, '"' | '\'');
        if quoted {
            // Quoted parts that touch are one word, so that a name may have both quotes.
            while let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
                let inner = &rest[1..];
                let Some(end) = inner.find(quote) else {
                    return Err(Error::invalid(format_args!("the quote {quote} is not closed")));
                };
                word.push_str(&inner[..end]);
                rest = &inner[end + 1..];
            }
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        word.push_str(&rest[..end]);
        words.push(Written { text: word, quoted });
        rest = rest[end..].trim_start();
    }
    if words.is_empty() {
        return Err(Error::invalid("the query is empty; name the events to look for, such as 'A B C'"));
    }
    Ok(words)
}

fn words_of(text: &str) -> Result<Vec<String>> {
    Ok(words_with_quotes(text)?.into_iter().map(|word| word.text).collect())
}

fn unknown_event(text: &str, word: &str, alphabet: &Alphabet) -> Error {
    let mut message = format!("no event is called {}", shortened(word));
    let near = near_names(alphabet, word);
    let whole = text.trim();
    if whole != word && !symbols_called(alphabet, &[whole])[0].is_empty() {
        message.push_str("; a name with blanks needs quotes of its own: '\"A B\"'");
    } else if !near.is_empty() {
        let verb = if near.len() == 1 { "is" } else { "are" };
        message.push_str(&format!("; near {verb}: {}", near.join(", ")));
    }
    Error::not_found(message)
}

/// A word as it fits a message.
pub(super) fn shortened(word: &str) -> String {
    const MOST: usize = 80;
    match word.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_divided_at_blanks_outside_of_quotes() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words_of(text).unwrap(), expected, "{text}");
        check("a", &["a"]);
        check("  a\tb\n c ", &["a", "b", "c"]);
        check("'a b' c", &["a b", "c"]);
        check("\"it's\" don't f'", &["it's", "don't", "f'"]);
        check("'it'\"'\"'s \"good\"'", &["it's \"good\""]);
        check("\"\" x", &["", "x"]);
        check("'a b'c", &["a bc"]);
        check("\u{a0}é\u{2003}ü", &["é", "ü"]);
        for (bad, reason) in [("", "empty"), (" \t", "empty"), ("a 'b c", "'"), ("\"", "\"")] {
            assert!(words_of(bad).unwrap_err().to_string().contains(reason), "{bad}");
        }
    }

    #[test]
    fn unknown_events_are_named_shortly() {
        let error = Query::parse(&"ä".repeat(1000), &Alphabet::default()).unwrap_err().to_string();
        assert_eq!(error, format!("no event is called {}…", "ä".repeat(80)));
    }

    #[test]
    fn queries_have_events() {
        let symbol = Symbol::new(1).unwrap();
        assert!(Query::new(vec![]).is_err());
        assert!(Query::new(vec![vec![symbol], vec![]]).is_err());
        assert!(
            Query::of_symbols(&vec![symbol; Query::LONGEST + 1]).unwrap_err().kind()
                == crate::ErrorKind::Limit
        );
    }
}
