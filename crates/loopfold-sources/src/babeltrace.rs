//! Reads the text that babeltrace and babeltrace2 print for LTTng and other CTF traces:
//! `[10:00:00.5] (+0.1) host provider:event: { cpu_id = 1 }, { vtid = 7 }, { size = 8 }`.
//!
//! The event is its name, `provider:event`. One stream per thread, `thread N`, where the
//! contexts have `vtid`, `tid` or `pthread_id`; else one per processor, `cpu N`, where
//! they have `cpu_id`; else one. Streams of a second host bear its name. Fields when
//! wanted: any by its name in the braces (`size`, `cpu_id`), and `args`, all of the
//! last braces.
//!
//! Linear time; memory for the streams only.

use crate::clock::{DayClock, date, time_of_day};
use crate::decimal::{Unit, nanoseconds};
use crate::line_reader::{LineReader, Verdict, decimal, fit_of_lines, split_word};
use crate::{Context, Description, Fit, Result, Source};
use hashbrown::HashMap;
use loopfold::StreamId;
use loopfold::trace::{Event, Field, Timing, Value};
use std::io::BufRead;

/// See the module.
pub(crate) struct Babeltrace;

impl Source for Babeltrace {
    fn name(&self) -> &'static str {
        "babeltrace"
    }

    fn about(&self) -> &'static str {
        "LTTng and other CTF traces printed by babeltrace"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["args", "*"]
    }

    fn description(&self) -> Description {
        Description {
            event: "`provider:event`",
            stream: "a thread, or a CPU",
            times: "start",
            example: "babeltrace2 trace | loopfold loops -",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Certain, |line| match Record::of(line) {
            Some(record) if record.groups.is_empty() => Verdict::Neutral,
            Some(_) => Verdict::For,
            None if is_message(line) => Verdict::Neutral,
            None => Verdict::Against,
        })
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut streams = Streams::default();
        let mut clock = DayClock::default();
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next_line()? {
            match Record::of(line.bytes) {
                Some(record) => streams.take(&record, &mut clock, context)?,
                None if is_message(line.bytes) => {}
                None => context.damaged(
                    line.place(),
                    "expected a time in brackets, the name of an event, a colon and fields in braces",
                )?,
            }
        }
        Ok(())
    }
}

/// True for messages of babeltrace about the trace, such as that events were discarded.
fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.is_empty()
        || [&b"[warning]"[..], b"[error]", b"WARNING", b"ERROR", b"CAUSED BY"]
            .iter()
            .any(|start| line.starts_with(start))
}

/// A parsed line.
struct Record<'a> {
    time: Option<Time>,
    host: &'a [u8],
    name: &'a [u8],
    /// What follows the name.
    groups: &'a [u8],
}

/// A time as written.
enum Time {
    OfDay(i64),
    Absolute(i64),
}

impl<'a> Record<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        if line.starts_with(b"timestamp = ") {
            return Self::with_names(line);
        }
        let inside = line.strip_prefix(b"[")?;
        let end = memchr::memchr(b']', inside)?;
        let time = time_in(&inside[..end])?;
        let mut rest = inside[end + 1..].trim_ascii_start();
        if rest.starts_with(b"(+") {
            rest = rest[memchr::memchr(b')', rest)? + 1..].trim_ascii_start();
        }
        let (head, groups) = match memchr::memmem::find(rest, b": {") {
            Some(at) => (&rest[..at], &rest[at + 2..]),
            None => (rest.trim_ascii_end().strip_suffix(b":")?, &b""[..]),
        };
        let begin = memchr::memrchr(b' ', head).map_or(0, |blank| blank + 1);
        let host = split_word(&head[..begin]).0;
        let name = &head[begin..];
        (!name.is_empty()).then_some(Self { time: Some(time), host, name, groups })
    }

    /// The form with `--names=all`: `timestamp = …, …, name = x, … = { … }`.
    fn with_names(line: &'a [u8]) -> Option<Self> {
        let after = |key: &[u8]| {
            let at = memchr::memmem::find(line, key)? + key.len();
            let end = memchr::memchr(b',', &line[at..]).unwrap_or(line.len() - at);
            Some(&line[at..at + end])
        };
        let time = after(b"timestamp = ").and_then(time_in)?;
        let host = after(b"trace:hostname = ").unwrap_or_default();
        let name = after(b", name = ")?;
        let groups = memchr::memchr(b'{', line).map_or(&b""[..], |at| &line[at..]);
        Some(Self { time: Some(time), host, name, groups })
    }
}

/// `10:00:00.5`, `2026-01-31 10:00:00.5`, seconds, or cycles, which are taken for
/// nanoseconds as they mostly are.
fn time_in(text: &[u8]) -> Option<Time> {
    let text = text.trim_ascii();
    if let Some(time) = time_of_day(text) {
        return Some(Time::OfDay(time));
    }
    if let Some(blank) = memchr::memchr(b' ', text) {
        let midnight = date(&text[..blank])?;
        return midnight.checked_add(time_of_day(&text[blank + 1..])?).map(Time::Absolute);
    }
    let decimals = if memchr::memchr(b'.', text).is_some() { Unit::Seconds } else { Unit::Nanoseconds };
    nanoseconds(text, decimals).map(Time::Absolute)
}

/// The groups in braces, one after the other.
fn groups(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let begin = memchr::memchr(b'{', rest)? + 1;
        let length = end_of_value(&rest[begin..], b'}');
        let group = &rest[begin..begin + length];
        rest = &rest[(begin + length + 1).min(rest.len())..];
        Some(group.trim_ascii())
    })
}

/// The keys and values in a group.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let equals = memchr::memmem::find(rest, b" = ")?;
        let key = rest[..equals].trim_ascii();
        rest = &rest[equals + 3..];
        let length = end_of_value(rest, b',');
        let value = rest[..length].trim_ascii();
        rest = &rest[(length + 1).min(rest.len())..];
        Some((key, value))
    })
}

/// Where the next `mark` is that is not in quotes, braces or brackets.
fn end_of_value(text: &[u8], mark: u8) -> usize {
    let mut depth = 0u32;
    let mut in_quotes = false;
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_quotes => escaped = true,
            b'"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            _ if byte == mark && depth == 0 => return at,
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

/// What a stream is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Thread(u64),
    Processor(u64),
    Nowhere,
}

impl Place {
    /// The contexts are all groups but the last, which are the event's own fields.
    fn of(record: &Record<'_>) -> Self {
        let mut place = Place::Nowhere;
        let mut groups = groups(record.groups).peekable();
        while let Some(group) = groups.next() {
            if groups.peek().is_none() {
                break;
            }
            for (key, value) in entries(group) {
                match (key, decimal(value)) {
                    (b"vtid" | b"tid" | b"pthread_id", Some(number)) => return Place::Thread(number),
                    (b"cpu_id", Some(number)) => place = Place::Processor(number),
                    _ => {}
                }
            }
        }
        place
    }
}

/// The streams so far, and which fields are wanted.
#[derive(Default)]
struct Streams {
    first_host: Option<Vec<u8>>,
    /// Those of the first host.
    at_home: HashMap<Place, StreamId>,
    elsewhere: HashMap<(Vec<u8>, Place), StreamId>,
    wants_args: Option<bool>,
    wanted: HashMap<Vec<u8>, Option<String>>,
}

impl Streams {
    fn take(&mut self, record: &Record<'_>, clock: &mut DayClock, context: &mut Context<'_>) -> Result<()> {
        let start = record.time.as_ref().map(|time| match *time {
            Time::OfDay(time) => clock.running(time),
            Time::Absolute(time) => time,
        });
        let stream = self.stream_of(record, context)?;
        self.learn_keys(record, context);
        let mut fields = Vec::new();
        for (key, value) in groups(record.groups).flat_map(entries) {
            if let Some(Some(key)) = self.wanted.get(key) {
                let integer = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                fields.push(Field { key, value: integer.map_or(Value::Text(value), Value::Integer) });
            }
        }
        if self.wants_args == Some(true)
            && let Some(args) = groups(record.groups).last()
        {
            fields.push(Field { key: "args", value: Value::Text(args) });
        }
        let symbol = context.intern(&Event { fields: &fields, ..Event::named(record.name) })?;
        context.push(stream, symbol, Timing { start, ..Timing::UNKNOWN })
    }

    /// Asks about keys that were not seen before.
    fn learn_keys(&mut self, record: &Record<'_>, context: &Context<'_>) {
        self.wants_args.get_or_insert_with(|| context.wants("args"));
        for (key, _) in groups(record.groups).flat_map(entries) {
            if !self.wanted.contains_key(key) && self.wanted.len() < KEYS_REMEMBERED {
                let name = String::from_utf8_lossy(key).into_owned();
                // `name` is the event's own name wherever a user says it.
                let wanted = (name != "name" && context.wants(&name)).then_some(name);
                self.wanted.insert(key.to_vec(), wanted);
            }
        }
    }

    fn stream_of(&mut self, record: &Record<'_>, context: &mut Context<'_>) -> Result<StreamId> {
        let place = Place::of(record);
        let first = self.first_host.get_or_insert_with(|| record.host.to_vec());
        let is_home = first == record.host;
        let known = if is_home {
            self.at_home.get(&place)
        } else {
            self.elsewhere.get(&(record.host.to_vec(), place))
        };
        if let Some(&stream) = known {
            return Ok(stream);
        }
        let name = match place {
            Place::Thread(number) => format!("thread {number}"),
            Place::Processor(number) => format!("cpu {number}"),
            Place::Nowhere => String::new(),
        };
        if is_home {
            let stream = if name.is_empty() { context.only_stream()? } else { context.stream(&name)? };
            self.at_home.insert(place, stream);
            return Ok(stream);
        }
        let host = String::from_utf8_lossy(record.host);
        let stream = context.stream(format!("host {host} {name}").trim_end())?;
        self.elsewhere.insert((record.host.to_vec(), place), stream);
        Ok(stream)
    }
}

/// More keys than any provider has; a damaged file may have more.
const KEYS_REMEMBERED: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, read, streams_of, times_of};

    const LOG: &str = r#"[10:00:00.000000001] (+?.?????????) vm app:start: { cpu_id = 1 }, { vpid = 4, vtid = 5 }, { }
[warning] Tracer discarded 3 events
[10:00:00.000000002] (+0.000000001) vm app:alloc: { cpu_id = 0 }, { vpid = 4, vtid = 5 }, { size = 8, tid = 9, name = "a, } b = 1", list = [ [0] = 1, [1] = 2 ] }
[10:00:00.000000003] (+0.000000001) vm sched_switch: { cpu_id = 0 }, { prev_comm = "x" }
[10:00:00.000000004] (+0.000000001) other app:alloc: { cpu_id = 0 }, { vtid = 5 }, { size = 8 }
"#;

    #[test]
    fn events_belong_to_threads_or_else_to_processors() {
        assert_eq!(Babeltrace.fits(LOG.as_bytes()), Fit::Certain);
        let reading = read(&Babeltrace, LOG, Reading::default());
        assert_eq!(streams_of(&reading), ["thread 5", "cpu 0", "host other thread 5"]);
        assert_eq!(events_of(&reading, "thread 5"), ["app:start", "app:alloc"]);
        assert_eq!(events_of(&reading, "cpu 0"), ["sched_switch"]);
        assert_eq!(times_of(&reading, "thread 5")[1].0, 36_000_000_000_002);
    }

    #[test]
    fn fields_are_wanted_by_name() {
        let by = |key| events_of(&read(&Babeltrace, LOG, Reading::by(&["name", key])), "thread 5");
        assert_eq!(by("size")[1], "app:alloc size=8");
        assert_eq!(by("name")[1], "app:alloc");
        assert_eq!(by("list")[1], "app:alloc list=[ [0] = 1, [1] = 2 ]");
        assert_eq!(by("cpu_id"), ["app:start cpu_id=1", "app:alloc cpu_id=0"]);
        assert!(by("args")[1].starts_with("app:alloc args=size = 8, tid = 9"));
    }

    #[test]
    fn all_forms_of_times_are_known() {
        let forms = [
            ("[1970-01-02 00:00:01.5] (+0.1) vm a:b: { x = 1 }", 86_401_500_000_000),
            ("[1700000000.000000001] vm a:b: { x = 1 }", 1_700_000_000_000_000_001),
            ("[00000001528283730495] (+000000003408) vm a:b: { x = 1 }", 1_528_283_730_495),
            ("[00:00:01.000000000] a:b: { x = 1 }", 1_000_000_000),
            ("[00:00:01.000000000] vm a:b: ", 1_000_000_000),
            (
                "timestamp = 00:00:01.0, delta = +?, trace:hostname = vm, name = a:b, event.fields = { x = 1 }",
                1_000_000_000,
            ),
        ];
        for (line, start) in forms {
            let reading = read(&Babeltrace, line, Reading::default());
            assert_eq!(events_of(&reading, "input"), ["a:b"], "{line}");
            assert_eq!(times_of(&reading, "input")[0].0, start, "{line}");
        }
    }

    #[test]
    fn lines_that_fit_nothing_are_damage() {
        for bad in ["hello", "[10:00:00.0] (+0.1) vm cut", "[25:00:00.0] a: { x = 1 }"] {
            assert!(read(&Babeltrace, bad, Reading::default()).unwrap_err().starts_with("line 1: "), "{bad}");
            assert_eq!(damage_of(&read(&Babeltrace, bad, Reading::lenient())), 1);
        }
    }
}
