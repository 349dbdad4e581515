//! The corpus: small traces as plain files, each about one thing, that every folder and every
//! question is run on.
//!
//! A case is a file `corpus/NAME.trace`, read line by line:
//!
//! | line | meaning |
//! | --- | --- |
//! | `# TEXT` | a comment; those at the head say what the case is about, and must be there |
//! | `without WHAT: REASON` | a check or a folder that the case is not run with, and why |
//! | `stream NAME` | a stream, whose events follow |
//! | `clock STEP…` | how much later each event of the stream starts than the one before, from 0 |
//! | `durations NUMBER…` | how long the events of the stream take |
//! | `metric NAME NUMBER…` | another measurement of them |
//! | anything else | events of the stream, separated by blanks |
//!
//! Steps, durations and metrics start anew when they are used up; `-` is a value that is not
//! known. A test expects an excluded check to fail, so that no exclusion outlives its reason,
//! unless the reason begins with `slow`.
//!
//! An event is `NAME`, `ROLE:NAME` or `ROLE:FUNCTION:NAME`, then any number of `,KEY=VALUE`. Roles
//! are `enter`, `leave`, `block` and `collective`; the function becomes the field `function`, or
//! `caller` of an entry. `send:RANK` and `receive:RANK` are messages, with the field `dest` or
//! `src`. A name of digits is a number, as a value is with or without a sign; all else is text.
//!
//! `'…'` is text with any bytes, in which `\n`, `\t`, `\r`, `\\`, `\'` and `\xff` are escapes;
//! `"abc"` is one event for each letter. `( … )` groups events, and `*20` repeats the event, the
//! letters or the group before it.

use std::fmt::Write as _;
use std::path::Path;

/// A small trace, and what it is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// The name of the file, without its ending.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// What it is not run with.
    pub without: Vec<Without>,
    /// Its streams.
    pub streams: Vec<Stream>,
}

/// A check or a folder that a case is not run with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Without {
    /// The name of the check or the folder.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl Without {
    /// Whether running it would take too long, so that nobody can say that it fails.
    pub fn is_slow(&self) -> bool {
        self.reason.starts_with("slow")
    }
}

/// A stream of events. Times are repeated over the events; without any, nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// What it is called.
    pub name: String,
    /// Its events.
    pub events: Vec<Event>,
    /// How much later each event starts than the one before; `None` where that is not known.
    pub clock: Vec<Option<i64>>,
    /// How long events take.
    pub durations: Vec<Option<i64>>,
    /// Other measurements, by name.
    pub metrics: Vec<(String, Vec<Option<i64>>)>,
}

/// What is known of the times of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing<'a> {
    /// When it starts.
    pub start: Option<i64>,
    /// How long it takes.
    pub duration: Option<i64>,
    /// Other measurements.
    pub metrics: Vec<(&'a str, f64)>,
}

impl Stream {
    /// For each event its times.
    pub fn timings(&self) -> impl Iterator<Item = Timing<'_>> {
        let mut now = 0;
        (0..self.events.len()).map(move |at| {
            let known = |values: &[Option<i64>]| values.get(at % values.len().max(1)).copied().flatten();
            let step = known(&self.clock);
            now += step.unwrap_or(0);
            let metrics =
                self.metrics.iter().filter_map(|(name, values)| Some((name.as_str(), known(values)? as f64)));
            Timing { start: step.map(|_| now), duration: known(&self.durations), metrics: metrics.collect() }
        })
    }

    /// Whether anything is known of the times of its events.
    pub fn has_times(&self) -> bool {
        !(self.clock.is_empty() && self.durations.is_empty() && self.metrics.is_empty())
    }
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Event {
    /// What kind of thing it is.
    pub role: Role,
    /// What it is called.
    pub name: Value,
    /// More about it.
    pub fields: Vec<(String, Value)>,
}

/// What kind of thing an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Anything.
    #[default]
    Plain,
    /// A function is entered.
    Enter,
    /// A function is left.
    Leave,
    /// A block of a function.
    Block,
    /// A message is sent.
    Send,
    /// A message is received.
    Receive,
    /// A collective operation.
    Collective,
}

impl Role {
    /// What it is called in a case, and in a grammar.
    pub fn name(self) -> &'static str {
        ROLES.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }
}

const ROLES: [(Role, &str); 6] = [
    (Role::Enter, "enter"),
    (Role::Leave, "leave"),
    (Role::Block, "block"),
    (Role::Send, "send"),
    (Role::Receive, "receive"),
    (Role::Collective, "collective"),
];

/// A name, or the value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Any bytes.
    Text(Vec<u8>),
    /// A number.
    Integer(i128),
}

impl Default for Value {
    fn default() -> Self {
        Value::Text(Vec::new())
    }
}

/// All cases, in the order of their names.
///
/// # Panics
///
/// If a file cannot be read, or is not a case.
pub fn all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("an entry of the folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "trace"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        text.and_then(|text| parse(&name, &text))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.iter().map(read).collect()
}

/// A case from the text of its file.
pub fn parse(name: &str, text: &str) -> Result<Case, String> {
    let mut case = Case { name: name.to_string(), ..Case::default() };
    let mut events = Groups::default();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let parsed = case.line(line, &mut events);
        parsed.map_err(|error| format!("line {number}: {error}"))?;
    }
    events.close()?;
    if case.about.is_empty() {
        return Err("a comment at the head has to say what the case is about".into());
    }
    Ok(case)
}

impl Case {
    fn line(&mut self, line: &str, groups: &mut Groups) -> Result<(), String> {
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        if let Some(comment) = line.strip_prefix('#') {
            if self.streams.is_empty() && self.without.is_empty() {
                let space = if self.about.is_empty() { "" } else { " " };
                self.about.extend([space, comment.trim()]);
            }
            return Ok(());
        }
        if word == "without" {
            let (what, reason) = rest.split_once(": ").ok_or("a reason is missing")?;
            self.without.push(Without { what: what.trim().into(), reason: reason.trim().into() });
            return Ok(());
        }
        if word == "stream" {
            groups.close()?;
            let mut chars = Chars::new(rest);
            let name = String::from_utf8(chars.text()?).map_err(|_| "a stream's name is UTF-8")?;
            self.streams.push(Stream { name, ..Stream::default() });
            return if chars.rest.is_empty() {
                Ok(())
            } else {
                Err(format!("`{}` after the name", chars.rest))
            };
        }
        if line.is_empty() {
            return Ok(());
        }
        let stream = self.streams.last_mut().ok_or("events before the first stream")?;
        let numbers = |words: &str| -> Result<Vec<Option<i64>>, String> {
            let number = |word: &str| match word {
                "-" => Ok(None),
                _ => word.parse().map(Some).map_err(|_| format!("`{word}` is no number")),
            };
            words.split_whitespace().map(number).collect()
        };
        match word {
            "clock" => stream.clock = numbers(rest)?,
            "durations" => stream.durations = numbers(rest)?,
            "metric" => {
                let (name, rest) = rest.split_once(' ').ok_or("a metric without values")?;
                stream.metrics.push((name.to_string(), numbers(rest)?));
            }
            _ => groups.read(line, &mut stream.events)?,
        }
        Ok(())
    }

    /// The case as a grammar in the text format of the command: every stream is a rule of all its
    /// events. It has no times.
    pub fn grammar(&self) -> String {
        let mut text = String::from("loopfold grammar 1\n");
        let mut known: Vec<&Event> = Vec::new();
        let mut rules = String::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let _ = write!(rules, "S{index} ->");
            for event in &stream.events {
                let number = known.iter().position(|other| *other == event).unwrap_or_else(|| {
                    let number = known.len();
                    let space = if event.role == Role::Plain { "" } else { " " };
                    let _ = write!(text, "E{number} = {}{space}{}", event.role.name(), quoted(&event.name));
                    for (key, value) in &event.fields {
                        let _ =
                            write!(text, " {}={}", quoted(&Value::Text(key.clone().into())), quoted(value));
                    }
                    text.push('\n');
                    known.push(event);
                    number
                });
                let _ = write!(rules, " E{number}");
            }
            let name = quoted(&Value::Text(stream.name.clone().into()));
            let _ = writeln!(rules, "\nstream {name} -> S{index}");
        }
        text + &rules + "end\n"
    }
}

/// A number as it is, text in quotes with all escaped that is not plain.
fn quoted(value: &Value) -> String {
    let bytes = match value {
        Value::Integer(number) => return number.to_string(),
        Value::Text(bytes) => bytes,
    };
    let mut text = String::from("'");
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text + "'"
}

/// Events as they are read: where the groups that are open began.
#[derive(Default)]
struct Groups {
    open: Vec<usize>,
}

impl Groups {
    fn close(&self) -> Result<(), String> {
        if self.open.is_empty() { Ok(()) } else { Err("a group is not closed".into()) }
    }

    /// Adds the events of a line.
    fn read(&mut self, line: &str, events: &mut Vec<Event>) -> Result<(), String> {
        let mut chars = Chars::new(line);
        while let Some(first) = chars.peek() {
            let start = match first {
                '(' => {
                    chars.rest = &chars.rest[1..];
                    self.open.push(events.len());
                    chars.skip_blanks();
                    continue;
                }
                ')' => {
                    chars.rest = &chars.rest[1..];
                    self.open.pop().ok_or("`)` without `(`")?
                }
                '"' => {
                    let start = events.len();
                    let letters = chars.rest[1..].split_once('"').ok_or("letters without an end")?;
                    let event = |letter: char| Event { name: word(&letter.to_string()), ..Event::default() };
                    events.extend(letters.0.chars().map(event));
                    chars.rest = letters.1;
                    start
                }
                _ => {
                    events.push(chars.event()?);
                    events.len() - 1
                }
            };
            if chars.take('*') {
                let times: usize = chars.bare().parse().map_err(|_| "`*` without a number")?;
                let once = events.split_off(start);
                (0..times).for_each(|_| events.extend_from_slice(&once));
            }
            chars.skip_blanks();
        }
        Ok(())
    }
}

/// A number if it is one, text otherwise.
fn word(text: &str) -> Value {
    text.parse().map_or_else(|_| Value::Text(text.into()), Value::Integer)
}

struct Chars<'a> {
    rest: &'a str,
}

impl<'a> Chars<'a> {
    fn new(line: &'a str) -> Self {
        Self { rest: line.trim_start() }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        let stripped = self.rest.strip_prefix(wanted);
        self.rest = stripped.unwrap_or(self.rest);
        stripped.is_some()
    }

    fn bare(&mut self) -> &'a str {
        let is_end = |letter: char| letter.is_whitespace() || "()'\",:=*".contains(letter);
        let (bare, rest) = self.rest.split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        self.rest = rest;
        bare
    }

    /// Text or a number.
    fn value(&mut self) -> Result<Value, String> {
        if self.peek() == Some('\'') {
            return self.text().map(Value::Text);
        }
        match self.bare() {
            "" => Err(format!("`{}` is no name", self.rest)),
            bare => Ok(word(bare)),
        }
    }

    /// Text, in quotes or not.
    fn text(&mut self) -> Result<Vec<u8>, String> {
        if !self.take('\'') {
            return Ok(self.bare().into());
        }
        let mut text = Vec::new();
        loop {
            let letter = self.peek().ok_or("text without an end")?;
            self.rest = &self.rest[letter.len_utf8()..];
            match letter {
                '\'' => return Ok(text),
                '\\' => text.push(self.escape()?),
                _ => text.extend(letter.to_string().bytes()),
            }
        }
    }

    fn escape(&mut self) -> Result<u8, String> {
        let letter = self.peek().ok_or("an escape without an end")?;
        self.rest = &self.rest[letter.len_utf8()..];
        match letter {
            'n' => Ok(b'\n'),
            't' => Ok(b'\t'),
            'r' => Ok(b'\r'),
            '\\' | '\'' => Ok(letter as u8),
            'x' => {
                let digits = self.rest.get(..2).ok_or("an escape without an end")?;
                self.rest = &self.rest[2..];
                u8::from_str_radix(digits, 16).map_err(|_| format!("`\\x{digits}` is no byte"))
            }
            _ => Err(format!("`\\{letter}` is no escape")),
        }
    }

    fn event(&mut self) -> Result<Event, String> {
        let mut parts = vec![self.value()?];
        while self.take(':') {
            parts.push(self.value()?);
        }
        let role_of = |part: &Value| ROLES.iter().find(|(_, name)| *part == Value::Text((*name).into()));
        let role = if parts.len() > 1 {
            let known = role_of(&parts[0]).ok_or_else(|| format!("{:?} is no role", parts[0]))?;
            parts.remove(0);
            known.0
        } else {
            Role::Plain
        };
        let name = match parts.pop().unwrap_or_default() {
            // Names count from 0 on.
            Value::Integer(number @ ..0) => Value::Text(number.to_string().into()),
            name => name,
        };
        let message = |name: &str, key: &str, peer| (Value::Text(name.into()), vec![(key.to_string(), peer)]);
        let (name, mut fields) = match (role, parts.pop()) {
            (Role::Send, None) => message("MPI_Send", "dest", name),
            (Role::Receive, None) => message("MPI_Recv", "src", name),
            (_, None) => (name, Vec::new()),
            (Role::Enter, Some(caller)) => (name, vec![("caller".into(), caller)]),
            (Role::Leave | Role::Block, Some(function)) => (name, vec![("function".into(), function)]),
            _ => return Err(format!("`{}` has no function", role.name())),
        };
        if !parts.is_empty() {
            return Err("more than a role, a function and a name".into());
        }
        while self.take(',') {
            let key = String::from_utf8(self.text()?).map_err(|_| "a key is UTF-8")?;
            if !self.take('=') {
                return Err(format!("`{key}` without a value"));
            }
            fields.push((key, self.value()?));
        }
        Ok(Event { role, name, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> String {
        let case =
            parse("x", &format!("# about\nstream s\n{text}")).unwrap_or_else(|error| panic!("{error}"));
        let label = |event: &Event| {
            let fields = event.fields.iter().map(|(key, value)| format!(",{key}={}", quoted(value)));
            let space = if event.role == Role::Plain { "" } else { ":" };
            format!("{}{space}{}{}", event.role.name(), quoted(&event.name), fields.collect::<String>())
        };
        case.streams[0].events.iter().map(label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn events_are_what_the_format_says() {
        for (text, expected) in [
            ("a 12 '12' -3 a,n=-3", "'a' 12 '12' '-3' 'a',n=-3"),
            ("\"ab\"*2 (c (d e)*2)*2", "'a' 'b' 'a' 'b' 'c' 'd' 'e' 'd' 'e' 'c' 'd' 'e' 'd' 'e'"),
            ("(a\nb)*2 c*3", "'a' 'b' 'a' 'b' 'c' 'c' 'c'"),
            ("enter:f enter:f:g leave:g:g", "enter:'f' enter:'g',caller='f' leave:'g',function='g'"),
            ("send:1,tag=3 receive:0", "send:'MPI_Send',dest=1,tag=3 receive:'MPI_Recv',src=0"),
            (r"'' 'a b' '\xff\'\\\n'", r"'' 'a b' '\xff\'\\\x0a'"),
        ] {
            assert_eq!(labels(text), expected, "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, expected) in [
            ("stream s\na", "about"),
            ("# x\na", "line 2: events before"),
            ("# x\nstream s\n(a", "not closed"),
            ("# x\nstream s\na)", "`)` without"),
            ("# x\nstream s\njump:f", "is no role"),
            ("# x\nstream s\n'a", "without an end"),
            ("# x\nwithout find", "reason"),
            ("# x\nstream s\na,b", "without a value"),
            ("# x\nstream s\na*b", "without a number"),
        ] {
            let error = parse("x", text).err().unwrap_or_default();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn times_are_repeated_over_the_events() {
        let case =
            parse("x", "# x\nstream s\na*3\nclock 5 -\ndurations 1 -2 -\nmetric m 7").unwrap_or_default();
        let timings: Vec<_> = case.streams[0].timings().map(|t| (t.start, t.duration, t.metrics)).collect();
        let metrics = vec![("m", 7.0)];
        let expected = [(Some(5), Some(1)), (None, Some(-2)), (Some(10), None)];
        assert_eq!(timings, expected.map(|(start, duration)| (start, duration, metrics.clone())));
    }

    #[test]
    fn every_case_is_one_and_says_what_it_is_about() {
        let cases = all();
        assert!(cases.len() >= 25, "{}", cases.len());
        let abouts: std::collections::BTreeSet<&str> = cases.iter().map(|case| case.about.as_str()).collect();
        assert_eq!(abouts.len(), cases.len());
    }
}
