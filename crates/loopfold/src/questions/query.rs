//! A query: a sequence of events to find in a trace.
//!
//! A query is a sequence of events, one directly after the other in a stream. Each of
//! them may be one of several symbols: a bare name means all events of that name,
//! whatever their fields, and a pattern all that fit.

use super::names::{Word, called_exactly, join_fields, known_words};
pub use super::names::{near_names, no_such_event, symbols_called};
use crate::trace::{Alphabet, Event, Meaning};
use crate::{Error, Result, Symbol};

/// A sequence of events to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// For each event the symbols it may be, in order; none if there is no such event.
    events: Vec<Vec<Symbol>>,
    /// The words that stand for no event.
    unknown: Vec<String>,
}

impl Query {
    /// The most events that a query can have.
    pub const LONGEST: usize = 1 << 14;

    /// A query of events that each may be one of several symbols.
    pub fn new(events: Vec<Vec<Symbol>>) -> Result<Self> {
        if events.iter().any(Vec::is_empty) {
            return Err(Error::invalid("a query is one event or more"));
        }
        Self::of_any(events)
    }

    /// The same, where events may be none of the symbols: then it does not occur.
    fn of_any(mut events: Vec<Vec<Symbol>>) -> Result<Self> {
        if events.is_empty() {
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
        Ok(Self { events, unknown: Vec::new() })
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

    /// A query as users write it: events with blanks between them, those with blanks inside in
    /// single or double quotes. An event is what [`EventPattern`](crate::trace::EventPattern)
    /// says: a name, a number, a glob, a name with fields (which need no quotes: `recv src=4`)
    /// or a regular expression. There are no escapes: quoted parts that touch are one name, so
    /// that a name may contain either kind of quote. A text that is the name of one event, and no
    /// sequence of others, needs no quotes.
    ///
    /// A query with a word that stands for no event does not occur; the word is one of the
    /// [`unknown`](Self::unknown) ones, and [`no_such_event`] says what is near.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the text is no query.
    ///
    /// ```
    /// use loopfold::questions::query::{Query, no_such_event};
    /// use loopfold::trace::{Alphabet, Event};
    ///
    /// let mut alphabet = Alphabet::default();
    /// let open = alphabet.intern(&Event::named("open"), None)?;
    /// let read = alphabet.intern(&Event::named("read a block"), None)?;
    /// let query = Query::parse("open 'read a block' re*", &alphabet)?;
    /// assert_eq!(query, Query::of_symbols(&[open, read, read])?);
    /// let query = Query::parse("opne", &alphabet)?;
    /// assert_eq!(query.unknown(), ["opne"]);
    /// assert_eq!(no_such_event(&alphabet, "opne"), "no event is called opne; near is: open");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn parse(text: &str, alphabet: &Alphabet) -> Result<Self> {
        let (words, events) = Self::resolve(text, alphabet)?;
        let unknown = words.into_iter().zip(&events).filter(|(_, symbols)| symbols.is_empty());
        let unknown = unknown.map(|(word, _)| word).collect();
        Ok(Self { unknown, ..Self::of_any(events)? })
    }

    /// The words that stand for no event, so that the query does not occur.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// The same, with what is near.
    pub fn unknown_events(&self, alphabet: &Alphabet) -> Vec<String> {
        self.unknown.iter().map(|word| no_such_event(alphabet, word)).collect()
    }

    /// A part of a query.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Result<Self> {
        Self::of_any(self.events[range].to_vec())
    }

    /// The events of a query as they are written, without their quotes and with their fields.
    pub fn words(text: &str, alphabet: &Alphabet) -> Result<Vec<String>> {
        Ok(Self::resolve(text, alphabet)?.0)
    }

    /// The events of a query as they are written, and the symbols of each.
    fn resolve(text: &str, alphabet: &Alphabet) -> Result<(Vec<String>, Vec<Vec<Symbol>>)> {
        let words = Self::divide(text, alphabet)?;
        let events = symbols_called(alphabet, &words)?;
        if words.len() > 1 && events.iter().any(Vec::is_empty) {
            // A name with blanks, without the quotes that it would need among others.
            let whole = vec![text.trim().to_string()];
            let called = called_exactly(alphabet, &whole);
            if called.iter().all(|symbols| !symbols.is_empty()) {
                return Ok((whole, called));
            }
        }
        Ok((words, events))
    }

    fn divide(text: &str, alphabet: &Alphabet) -> Result<Vec<String>> {
        let words = words_with_quotes(text)?;
        let known = known_words(alphabet, &words);
        let known: Vec<String> =
            words.iter().zip(known).filter(|(_, known)| *known).map(|(word, _)| word.text.clone()).collect();
        let joined = join_fields(words, |word| known.iter().any(|known| known == word));
        Ok(joined.into_iter().map(|word| word.text).collect())
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

/// Divides a query at blanks. A quote at the beginning of a word reaches to the next
/// one of its kind; in the middle of a word it is a character like any other.
pub(super) fn words_with_quotes(text: &str) -> Result<Vec<Word>> {
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
        words.push(Word { text: word, quoted });
        rest = rest[end..].trim_start();
    }
    if words.is_empty() {
        return Err(Error::invalid("the query is empty; name the events to look for, such as 'A B C'"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_divided_at_blanks_outside_of_quotes() {
        let check = |text: &str, expected: &[&str]| {
            let words = Query::divide(text, &Alphabet::default()).unwrap();
            assert_eq!(words, expected, "{text}");
        };
        check("a", &["a"]);
        check("  a\tb\n c ", &["a", "b", "c"]);
        check("'a b' c", &["a b", "c"]);
        check("\"it's\" don't f'", &["it's", "don't", "f'"]);
        check("'it'\"'\"'s \"good\"'", &["it's \"good\""]);
        check("\"\" x", &["", "x"]);
        check("'a b'c", &["a bc"]);
        check("\u{a0}é\u{2003}ü", &["é", "ü"]);
        for (bad, reason) in [("", "empty"), (" \t", "empty"), ("a 'b c", "'"), ("\"", "\"")] {
            let error = words_with_quotes(bad).err().unwrap();
            assert!(error.to_string().contains(reason), "{bad}");
        }
    }

    #[test]
    fn unknown_events_are_named_shortly() {
        let message = no_such_event(&Alphabet::default(), &"ä".repeat(1000));
        assert_eq!(message, format!("no event is called {}…", "ä".repeat(80)));
    }

    #[test]
    fn fields_belong_to_the_name_before_them() {
        use crate::trace::{Field, Value};
        let mut alphabet = Alphabet::default();
        let mut recv = |src| {
            let fields = [("src", src), ("tag", 1)].map(|(key, n)| Field { key, value: Value::Integer(n) });
            alphabet.intern(&Event { fields: &fields, ..Event::named("recv") }, None).unwrap()
        };
        let (four, five) = (recv(4), recv(5));
        let line = alphabet.intern(&Event::named("x=1"), None).unwrap();
        let events = |text: &str| Query::parse(text, &alphabet).unwrap().events().to_vec();
        assert_eq!(events("recv src=4 recv"), [vec![four], vec![four, five]]);
        assert_eq!(events("recv tag=1 src=5 re* src=4 tag=*"), [vec![five], vec![four]]);
        assert_eq!(events("src=4 'recv src=5'"), [vec![four], vec![five]]);
        assert_eq!(events("recv x=1"), [vec![four, five], vec![line]]);
        assert_eq!(events("recv y=1"), [vec![]]);
        assert_eq!(
            no_such_event(&alphabet, "recv src=6"),
            "no event fits recv src=6; there are: recv src=4 tag=1, recv src=5 tag=1"
        );
        assert_eq!(no_such_event(&alphabet, "rcev*"), "no event fits rcev*; near is: recv");
        assert_eq!(no_such_event(&alphabet, "/RECV$/"), "no event fits /RECV$/; near is: recv");
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
