//! Event patterns: the events that a word of the user stands for.
//!
//! | word | stands for the events |
//! | --- | --- |
//! | `MPI_Recv` | of that name, whatever their role and fields; or printed so |
//! | `255`, `0xff` | that are this number |
//! | `MPI_*`, `rank[0-3]` | whose name, or whose text as printed, fits the [`Glob`] |
//! | `MPI_Recv src=4` | of that name that have these fields, whatever others they have |
//! | `src=4` | that have the field |
//! | `/re/` | whose text contains a match of the regular expression, as `grep` finds it |
//!
//! Names and values in front of and in fields may be globs. An event that is called as the word
//! is written always counts as [called](EventPattern::calls) so; whoever knows all events can
//! prefer those, so that `a[1]` is the event of that name where there is one.
//!
//! Cost: what a glob or a regular expression costs on the name of an event; the printed text of
//! an event is made only if its name does not decide.

use super::alphabet::Meaning;
use super::event::{Name, Role, Value};
use super::glob::{Glob, is_glob};
use crate::emit::is_harmless;
use crate::{Error, Result};
use std::borrow::Cow;

/// The events that a word stands for.
///
/// ```
/// use loopfold::trace::{Event, EventPattern, Field, Meaning, Value};
///
/// let fields = vec![Field { key: "src", value: Value::Integer(4) }];
/// let receive = Meaning { name: Event::named("MPI_Recv").name, fields, ..Meaning::default() };
/// for word in ["MPI_Recv", "MPI_*", "MPI_Recv src=4", "*Recv src=?", "src=4", "/Recv.*=4$/"] {
///     assert!(EventPattern::parse(word)?.fits(&receive), "{word}");
/// }
/// assert!(!EventPattern::parse("MPI_Recv src=5")?.fits(&receive));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventPattern {
    word: String,
    number: Option<u64>,
    /// Other events than those that are called as the word is written.
    others: Others,
}

#[derive(Clone, Debug)]
enum Others {
    None,
    Fitting { glob: Option<Box<TextGlob>>, fields: Option<Fields> },
    Matching(Expression),
}

impl EventPattern {
    /// The pattern that a word is.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a regular expression that is none.
    pub fn parse(word: &str) -> Result<Self> {
        let others = match expression_of(word) {
            Some(expression) => Others::Matching(Expression::new(expression)?),
            None => match (is_glob(word).then(|| Box::new(TextGlob::new(word))), Fields::of(word)) {
                (None, None) => Others::None,
                (glob, fields) => Others::Fitting { glob, fields },
            },
        };
        Ok(Self { word: word.to_string(), number: integer(word), others })
    }

    /// The word.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// True if it may stand for events that are not called as the word is written.
    pub fn has_others(&self) -> bool {
        !matches!(self.others, Others::None)
    }

    /// True if it names fields: `recv src=4`.
    pub fn has_fields(&self) -> bool {
        matches!(self.others, Others::Fitting { fields: Some(_), .. })
    }

    /// True if an event is called as the word is written: by its name or as it is printed, or if
    /// it is that number.
    pub fn calls(&self, meaning: &Meaning<'_>) -> bool {
        match meaning.name {
            Name::Text(text) if text == self.word.as_bytes() => return true,
            Name::Integer(number) if Some(number) == self.number => return true,
            _ => {}
        }
        name_if_printed(meaning).is_none() && printed(meaning).contains(&self.word)
    }

    /// True if the pattern stands for an event.
    pub fn fits(&self, meaning: &Meaning<'_>) -> bool {
        self.calls(meaning) || self.fits_others(meaning)
    }

    /// The same for an event whose printed text is its name (see [`name_if_printed`]), which most are:
    /// so many names are matched without making texts of them.
    pub(crate) fn fits_printed_name(&self, name: &[u8]) -> bool {
        match &self.others {
            Others::None => false,
            Others::Matching(expression) => expression.matches_name(name),
            Others::Fitting { glob, .. } => glob.as_ref().is_some_and(|glob| glob.glob.fits_bytes(name)),
        }
    }

    /// True if an event fits as a glob, by its fields, or as a regular expression.
    pub(crate) fn fits_others(&self, meaning: &Meaning<'_>) -> bool {
        if let Some(name) = name_if_printed(meaning) {
            return self.fits_printed_name(name);
        }
        match &self.others {
            Others::None => false,
            Others::Matching(expression) => expression.matches(meaning),
            Others::Fitting { glob, fields } => {
                glob.as_ref().is_some_and(|glob| glob.fits(meaning))
                    || fields.as_ref().is_some_and(|fields| fields.fit(meaning))
            }
        }
    }

    /// The same name with any fields, if the pattern has fields.
    pub(crate) fn without_fields(&self) -> Option<Self> {
        match &self.others {
            Others::Fitting { fields: Some(fields), .. } => Self::parse(&fields.name.as_ref()?.word).ok(),
            _ => None,
        }
    }
}

/// What stands between the slashes of `/re/`.
fn expression_of(word: &str) -> Option<&str> {
    word.strip_prefix('/')?.strip_suffix('/').filter(|expression| !expression.is_empty())
}

/// A glob for the name of an event, and for its text as printed.
#[derive(Clone, Debug)]
struct TextGlob {
    glob: Glob,
    is_hexadecimal: bool,
}

impl TextGlob {
    fn new(word: &str) -> Self {
        Self { glob: Glob::new(word), is_hexadecimal: is_hexadecimal(word) }
    }

    fn fits_name(&self, meaning: &Meaning<'_>) -> bool {
        self.glob.fits(&bare_text(meaning.name, self.is_hexadecimal))
    }

    fn fits(&self, meaning: &Meaning<'_>) -> bool {
        if self.fits_name(meaning) {
            return true;
        }
        !is_bare(meaning)
            && (self.glob.fits(&without_fields(meaning, self.is_hexadecimal))
                || self.glob.fits(&text_of(meaning, self.is_hexadecimal)))
    }
}

/// Fields that an event must have, and its name.
#[derive(Clone, Debug)]
struct Fields {
    /// Any name if there is none.
    name: Option<NamePattern>,
    values: Vec<(String, ValuePattern)>,
}

impl Fields {
    /// Reads `name key=value …`; a value reaches to the next key. Returns `None` if there is none.
    fn of(word: &str) -> Option<Self> {
        let mut starts: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        for part in word.split(' ') {
            if let Some(length) = key_length(part) {
                starts.push((at, at + length));
            }
            at += part.len() + 1;
        }
        let ends = starts.iter().skip(1).map(|&(start, _)| start - 1).chain([word.len()]);
        let field = |(&(start, equals), end): (&(usize, usize), usize)| {
            (word[start..equals].to_string(), ValuePattern::new(&word[equals + 1..end]))
        };
        let values: Vec<(String, ValuePattern)> = starts.iter().zip(ends).map(field).collect();
        let name = word[..starts.first()?.0].trim();
        Some(Self { name: (!name.is_empty()).then(|| NamePattern::new(name)), values })
    }

    fn fit(&self, meaning: &Meaning<'_>) -> bool {
        let has =
            |(key, value): &(String, ValuePattern)| meaning.field(key).is_some_and(|field| value.fits(field));
        self.values.iter().all(has) && self.name.as_ref().is_none_or(|name| name.fits(meaning))
    }
}

/// Where the key of `key=value` ends. Returns `None` if that is something else.
fn key_length(word: &str) -> Option<usize> {
    let end = word.find('=').filter(|&end| end > 0)?;
    let is_key = |character: char| character.is_alphanumeric() || "_.-:".contains(character);
    word[..end].chars().all(is_key).then_some(end)
}

/// True if a word is written as a field, `key=value`.
pub(crate) fn is_field(word: &str) -> bool {
    key_length(word).is_some()
}

/// The name in front of fields.
#[derive(Clone, Debug)]
struct NamePattern {
    word: String,
    number: Option<u64>,
    glob: Option<TextGlob>,
}

impl NamePattern {
    fn new(word: &str) -> Self {
        let glob = is_glob(word).then(|| TextGlob::new(word));
        Self { word: word.to_string(), number: integer(word), glob }
    }

    fn fits(&self, meaning: &Meaning<'_>) -> bool {
        let by_number = matches!(meaning.name, Name::Integer(number) if Some(number) == self.number);
        let by_glob = |glob: &TextGlob| {
            glob.fits_name(meaning) || glob.glob.fits(&without_fields(meaning, glob.is_hexadecimal))
        };
        by_number
            || bare_text(meaning.name, false) == self.word
            || without_fields(meaning, false) == self.word
            || self.glob.as_ref().is_some_and(by_glob)
    }
}

/// The value of a field.
#[derive(Clone, Debug)]
struct ValuePattern {
    word: String,
    glob: Option<Glob>,
}

impl ValuePattern {
    fn new(word: &str) -> Self {
        Self { word: word.to_string(), glob: is_glob(word).then(|| Glob::new(word)) }
    }

    fn fits(&self, value: Value<'_>) -> bool {
        let text = match value {
            Value::Text(text) => bare_text(Name::Text(text), false),
            Value::Integer(number) => Cow::Owned(number.to_string()),
        };
        text == self.word || self.glob.as_ref().is_some_and(|glob| glob.fits(&text))
    }
}

/// A regular expression for the text of an event.
#[cfg(feature = "regex")]
#[derive(Clone, Debug)]
struct Expression {
    regex: regex::bytes::Regex,
    is_hexadecimal: bool,
}

#[cfg(feature = "regex")]
impl Expression {
    fn new(text: &str) -> Result<Self> {
        let regex = regex::bytes::Regex::new(text).map_err(|error| {
            // The last line says what is wrong; those before it point at the place.
            let message = error.to_string();
            let reason = message.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            Error::invalid(format_args!("/{text}/ is not a regular expression: {reason}"))
        })?;
        Ok(Self { regex, is_hexadecimal: text.contains("0x") })
    }

    fn matches_name(&self, name: &[u8]) -> bool {
        self.regex.is_match(name)
    }

    fn matches(&self, meaning: &Meaning<'_>) -> bool {
        // As `cat` writes it, byte for byte.
        if let Name::Text(text) = meaning.name
            && is_bare(meaning)
            && self.regex.is_match(text.strip_suffix(b"\r").unwrap_or(text))
        {
            return true;
        }
        self.regex.is_match(text_of(meaning, self.is_hexadecimal).as_bytes())
    }
}

#[cfg(not(feature = "regex"))]
#[derive(Clone, Debug)]
enum Expression {}

#[cfg(not(feature = "regex"))]
impl Expression {
    fn new(text: &str) -> Result<Self> {
        Err(Error::invalid(format_args!("/{text}/: built without the feature for regular expressions")))
    }

    fn matches_name(&self, _: &[u8]) -> bool {
        match *self {}
    }

    fn matches(&self, _: &Meaning<'_>) -> bool {
        match *self {}
    }
}

/// A number as users write it: decimal, or hexadecimal after `0x`.
pub(crate) fn integer(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !word.starts_with('+') => word.parse().ok(),
        _ => None,
    }
}

fn is_hexadecimal(word: &str) -> bool {
    word.starts_with("0x")
}

/// The name of an event that is printed as its name, byte for byte. Returns `None` if its text is
/// another.
pub(crate) fn name_if_printed<'a>(meaning: &Meaning<'a>) -> Option<&'a [u8]> {
    let Name::Text(text) = meaning.name else { return None };
    (is_bare(meaning) && is_plain(text) && !is_blank(text)).then_some(text)
}

/// Whether an event has nothing but a name to print.
fn is_bare(meaning: &Meaning<'_>) -> bool {
    meaning.fields.is_empty() && prefix_of(meaning.role).is_empty()
}

/// Whether there is nothing to see in a text.
fn is_blank(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_graphic)
        && std::str::from_utf8(text).is_ok_and(|text| text.trim().is_empty())
}

/// Whether a text is printed byte for byte.
fn is_plain(text: &[u8]) -> bool {
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
    text.iter().all(is_printable) || std::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_harmless))
}

/// The texts that a terminal may show for an event: its label, in decimal and in hexadecimal,
/// without the end of a line of Windows, and a mark where there is nothing to see.
pub(crate) fn printed(meaning: &Meaning<'_>) -> [String; 3] {
    let label = meaning.to_string();
    let seen = label.strip_suffix("\\r").unwrap_or(&label);
    let seen = if seen.trim().is_empty() { "␤".to_string() } else { seen.to_string() };
    [format!("{meaning:#}"), label, seen]
}

/// A name as it is printed, without role and fields.
fn bare_text(name: Name<'_>, hexadecimal: bool) -> Cow<'_, str> {
    if let Name::Text(text) = name
        && is_plain(text)
        && let Ok(plain) = std::str::from_utf8(text)
    {
        return Cow::Borrowed(plain);
    }
    Cow::Owned(text_of(&Meaning { name, ..Meaning::default() }, hexadecimal))
}

/// The same with its role.
fn without_fields(meaning: &Meaning<'_>, hexadecimal: bool) -> String {
    let bare = Meaning { name: meaning.name, role: meaning.role, fields: Vec::new() };
    text_of(&bare, hexadecimal)
}

/// An event as it is printed, without the end of a line of Windows.
fn text_of(meaning: &Meaning<'_>, hexadecimal: bool) -> String {
    let mut text = if hexadecimal { format!("{meaning:#}") } else { meaning.to_string() };
    if text.ends_with("\\r") {
        text.truncate(text.len() - 2);
    }
    text
}

/// What is printed before the name of an event.
fn prefix_of(role: Role) -> &'static str {
    match role {
        Role::Enter => "enter ",
        Role::Leave => "leave ",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Event, Field};

    fn fits(word: &str, meaning: &Meaning<'_>) -> bool {
        EventPattern::parse(word).unwrap().fits(meaning)
    }

    fn receive() -> Meaning<'static> {
        let field = |key, value| Field { key, value };
        let fields = vec![
            field("src", Value::Integer(4)),
            field("tag", Value::Text(b"a b")),
            field("comm", Value::Integer(-1)),
        ];
        Meaning { name: Name::Text(b"MPI_Recv"), role: Role::Receive, fields }
    }

    #[test]
    fn words_stand_for_events() {
        for word in [
            "MPI_Recv",
            "MPI_*",
            "*ecv",
            "MPI_Recv src=4 tag=a b comm=-1",
            "MPI_Recv src=4",
            "MPI_Recv tag=a b",
            "MPI_Recv comm=-1 tag=a* src=[0-4]",
            "M*v comm=-?",
            "tag=a b",
            "comm=-1 src=*",
            "*src=4*",
            "/^MPI_Recv src=4 /",
            "/comm=-1$/",
            "/(?i)mpi_recv/",
        ] {
            assert!(fits(word, &receive()), "{word}");
        }
        for word in [
            "MPI_Rec",
            "mpi_*",
            "MPI_Recv src=44",
            "MPI_Recv src=",
            "MPI_Recv dest=4",
            "MPI_Send src=4",
            "tag=a",
            "MPI_Recv 4",
            "=4",
            "/^Recv/",
            "",
            "/",
            "//",
        ] {
            assert!(!fits(word, &receive()), "{word}");
        }
    }

    #[test]
    fn names_may_be_anything() {
        let named = |name: &'static str| Meaning { name: Event::named(name).name, ..Meaning::default() };
        assert!(fits("a[1]", &named("a[1]")) && fits("a[1]", &named("a1")) && !fits("a[1]", &named("a2")));
        assert!(fits("/usr/", &named("/usr/")) && fits("/usr/", &named("to /usr/lib")));
        assert!(fits("x=1", &named("x=1")) && !fits("x=1", &named("x=12")));
        assert!(fits(r"a\u{1b}*", &named("a\u{1b}[2J")) && fits("/\\x1b/", &named("a\u{1b}[2J")));
        assert!(fits("en?", &named("end\r")) && fits("/end$/", &named("end\r")));
        let number = Meaning { name: Name::Integer(0x41), ..Meaning::default() };
        assert!(fits("65", &number) && fits("0x41", &number) && fits("6*", &number) && fits("0x4*", &number));
        assert!(!fits("4*", &number) && !fits("/4/", &number) && fits("/^0x4/", &number));
        let enter = Meaning { role: Role::Enter, ..named("f") };
        assert!(fits("f", &enter) && fits("enter *", &enter) && fits("/^enter f$/", &enter));
        assert!(!fits("leave *", &enter));
    }

    #[test]
    fn expressions_that_are_none_are_one_line() {
        let error = EventPattern::parse("/a(/").unwrap_err().to_string();
        assert_eq!(error, "/a(/ is not a regular expression: unclosed group");
        assert!(
            EventPattern::parse("/a{99999999}/").is_err_and(|error| error.to_string().lines().count() == 1)
        );
    }
}
