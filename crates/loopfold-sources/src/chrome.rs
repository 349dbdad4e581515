//! Reads Chrome trace event JSON, as PyTorch's profiler (Kineto), uftrace, XRay, viztracer,
//! node, clang's `-ftime-trace` and many others write it: an object with a list
//! `traceEvents`, or the bare list, whose closing bracket may be missing.
//!
//! An event is a slice of a thread at its start: an `X`, or a `B` with its `E`. Instants
//! (`i`, `I`, `R`) are events without a duration. With `calls`, a slice is an enter and a
//! leave, with their functions as [`crate::frames`] has it: the blocks of a slice are the
//! slices and instants directly inside it. There is one stream per thread, `pid P tid T`,
//! with a title from the metadata (`M`). The work of a GPU queue (`kernel`, `gpu_memcpy` or
//! `gpu_memset` is among the categories) is a stream of its own where other slices, such as annotations, share its thread. Flows,
//! counters, samples, objects and asynchronous slices are not what a thread does one
//! after the other; they are left out and counted by kind in the note `events-left-out`.
//!
//! Fields: `cat`, and `args.KEY` for what is one level deep in the arguments; with `calls`
//! also `caller` of an enter and `function` of a leave or an instant, unasked.
//!
//! Slices must be ordered by their starts, which files are not, so all of them are held
//! until the end: 24 bytes a slice and every distinct name once. The text itself passes
//! through a window of 1 MiB. Time is linear, and n log n where files are out of order.

mod json;
mod kinds;
mod slices;

use crate::decimal::{Unit, nanoseconds};
use crate::interner::Interner;
use crate::{Context, Description, Fit, Result, Source, SourceOption, Takes};
use hashbrown::HashMap;
use json::{Cursor, Kind, RawEvent, Stop, Value, Window};
use kinds::{Kinds, Symbols};
use loopfold::StreamId;
use loopfold::trace::{Role, Timing};
use slices::{Ordered, Slices, Step};
use std::io::BufRead;

const OPTIONS: &[SourceOption] = &[
    SourceOption::new(
        "calls",
        "Read a slice as an enter and a leave, not as one event",
        Takes::Nothing(|options| options.calls = true),
    ),
    SourceOption::new(
        "category",
        "Read only slices of these categories",
        Takes::List("A,B", |options, category| options.category.push(category)),
    ),
];

/// See the module.
pub(crate) struct Chrome;

impl Source for Chrome {
    fn name(&self) -> &'static str {
        "chrome"
    }

    fn about(&self) -> &'static str {
        "Chrome trace event JSON (PyTorch, uftrace, XRay, viztracer, node, clang -ftime-trace)"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["cat", "args.*", "caller", "function"]
    }

    fn description(&self) -> Description {
        Description {
            event: "a slice, at its start; with --calls an enter and a leave",
            stream: "a process and thread, or GPU queue",
            times: "start, duration",
            example: "loopfold loops training.json.gz --category kernel,gpu_memcpy",
        }
    }

    fn options(&self) -> &'static [SourceOption] {
        OPTIONS
    }

    fn fits(&self, head: &[u8]) -> Fit {
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
        let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
        let begins_with_object = || head[1..].trim_ascii_start().first() == Some(&b'{');
        match head.first() {
            Some(b'{') if has(b"\"traceEvents\"") => Fit::Certain,
            Some(b'[') if begins_with_object() && has(b"\"ph\"") => Fit::Certain,
            // Other JSON, such as logs with an object a line, is not ours.
            _ => Fit::No,
        }
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut reader = Reader { window: Window::new(input), trace: Threads::default(), wasted: 0 };
        if let Err(error) = reader.read(context) {
            // Whoever keeps what came before the error gets the slices that were complete.
            let _ = reader.trace.push(context);
            return Err(error);
        }
        reader.trace.check_categories(context)?;
        reader.trace.push(context)
    }
}

/// Categories that a message lists.
const MOST_CATEGORIES: usize = 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An event larger than this is taken for a missing quote or bracket, so that a damaged
/// file does not end up in memory.
const LARGEST_EVENT: usize = 64 * 1024 * 1024;

/// How many bytes may be read again after damage, beyond a few times what was read so
/// far. An apparent event without an end costs a scan of the rest of the file; a file full of
/// them must not take quadratic time.
const WASTE_ALLOWED: u64 = 256 * 1024 * 1024;

/// Finds the events in the text.
struct Reader<'a> {
    window: Window<'a>,
    trace: Threads,
    /// The bytes that were scanned without finding an event.
    wasted: u64,
}

impl Reader<'_> {
    fn read(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.window.refill()?;
        if self.window.rest().starts_with(BYTE_ORDER_MARK) {
            self.window.consume(BYTE_ORDER_MARK.len());
        }
        match self.window.peek()? {
            Some(b'[') => {
                self.window.consume(1);
                // The format says that the closing bracket is optional here.
                self.events(context)?;
                Ok(())
            }
            Some(b'{') => {
                self.window.consume(1);
                self.outer_object(context)
            }
            _ => context.damaged(
                self.place(0),
                "not a Chrome trace: expected an object with \"traceEvents\" or a list of events",
            ),
        }
    }

    fn place(&self, ahead: usize) -> String {
        format!("byte {}", self.window.offset() + ahead as u64)
    }

    /// What is around the list of events, and the list.
    fn outer_object(&mut self, context: &mut Context<'_>) -> Result<()> {
        let mut found = false;
        loop {
            match self.outer_entry(context)? {
                Outer::Events(ListEnd::Closed) => found = true,
                // That was reported, and nothing is left.
                Outer::Events(ListEnd::Damaged) => return Ok(()),
                Outer::Events(ListEnd::Open) => {
                    return context.damaged(self.place(0), "the file ends inside the list of events");
                }
                Outer::Other => {}
                Outer::End if found => return Ok(()),
                Outer::End => {
                    let reason = "not a Chrome trace: the object has no list \"traceEvents\"";
                    return context.damaged(self.place(0), reason);
                }
                Outer::Cut => {
                    return context.damaged(self.place(0), "the file ends inside the outermost object");
                }
                Outer::Malformed(expected) => {
                    context.damaged(self.place(0), format_args!("expected {expected}"))?;
                    if found || !self.window.seek(b"\"traceEvents\"")? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// One key of the outermost object and its value, and the comma before it.
    fn outer_entry(&mut self, context: &mut Context<'_>) -> Result<Outer> {
        if self.window.peek()? == Some(b',') {
            self.window.consume(1);
        }
        let is_events = match self.window.peek()? {
            None => return Ok(Outer::Cut),
            Some(b'}') => {
                self.window.consume(1);
                return Ok(Outer::End);
            }
            Some(b'"') => match self.outer_key()? {
                Some(is_events) => is_events,
                None => return Ok(Outer::Cut),
            },
            Some(_) => return Ok(Outer::Malformed("a key in quotes")),
        };
        match self.window.peek()? {
            None => return Ok(Outer::Cut),
            Some(b':') => self.window.consume(1),
            Some(_) => return Ok(Outer::Malformed("a colon after a key")),
        }
        if is_events && self.window.peek()? == Some(b'[') {
            self.window.consume(1);
            return Ok(Outer::Events(self.events(context)?));
        }
        Ok(if self.window.skip_value()? { Outer::Other } else { Outer::Cut })
    }

    /// Consumes a key. Returns whether it is the one of the events, or `None` if the file ends in
    /// it.
    fn outer_key(&mut self) -> Result<Option<bool>> {
        const KEY: &[u8] = b"\"traceEvents\"";
        while self.window.rest().len() < KEY.len() && !self.window.at_end() {
            self.window.refill()?;
        }
        let is_events = self.window.rest().starts_with(KEY);
        Ok(self.window.skip_value()?.then_some(is_events))
    }

    /// The events of a list.
    fn events(&mut self, context: &mut Context<'_>) -> Result<ListEnd> {
        loop {
            match self.window.peek()? {
                None => return Ok(ListEnd::Open),
                Some(b']') => {
                    self.window.consume(1);
                    return Ok(ListEnd::Closed);
                }
                Some(b',') => self.window.consume(1),
                Some(b'{') => {
                    if !self.event(context)? {
                        return Ok(ListEnd::Damaged);
                    }
                }
                Some(_) => {
                    context.damaged(self.place(0), "expected an event, which is an object")?;
                    if !self.seek_next_event()? {
                        return Ok(ListEnd::Damaged);
                    }
                }
            }
        }
    }

    /// Reads the event that begins here. Returns false if it is damaged and no other follows.
    fn event(&mut self, context: &mut Context<'_>) -> Result<bool> {
        loop {
            let mut cursor = Cursor::new(self.window.rest());
            let stop = match cursor.event() {
                Ok(event) => {
                    let used = cursor.at();
                    let offset = self.window.offset();
                    // Writers that put a comma after every event end with an empty one.
                    let is_empty = self.window.rest()[1..used - 1].trim_ascii().is_empty();
                    if !is_empty {
                        self.trace.take(&event, offset, context)?;
                    }
                    self.window.consume(used);
                    return Ok(true);
                }
                Err(stop) => stop,
            };
            match stop {
                Stop::Malformed { at, expected } => {
                    context.damaged(self.place(at), format_args!("expected {expected}"))?;
                    return self.skip_damage(at);
                }
                Stop::End if self.window.at_end() => {
                    context.damaged(
                        self.place(self.window.rest().len()),
                        format_args!("the file ends inside the event that begins at {}", self.place(0)),
                    )?;
                    return self.skip_damage(self.window.rest().len());
                }
                Stop::End if self.window.rest().len() >= LARGEST_EVENT => {
                    context.damaged(
                        self.place(0),
                        format_args!(
                            "an event of more than {LARGEST_EVENT} bytes: a quote or bracket is missing"
                        ),
                    )?;
                    return self.skip_damage(self.window.rest().len());
                }
                Stop::End => self.window.refill()?,
            }
        }
    }

    /// Continues after a damaged event that cost `wasted` bytes of scanning, unless the sum is too
    /// large.
    fn skip_damage(&mut self, wasted: usize) -> Result<bool> {
        self.wasted += wasted as u64;
        let allowed = WASTE_ALLOWED.saturating_add(self.window.offset().saturating_mul(4));
        Ok(self.wasted <= allowed && self.seek_next_event()?)
    }

    /// Skips damage, up to what looks like the beginning of the next event. Returns false if there
    /// is none.
    fn seek_next_event(&mut self) -> Result<bool> {
        self.window.consume(1);
        while self.window.seek(b"}")? {
            self.window.consume(1);
            if self.window.peek()? == Some(b',') {
                self.window.consume(1);
                self.window.peek()?;
            }
            if self.window.rest().first() != Some(&b'{') {
                continue;
            }
            if self.window.rest().len() < 2 && !self.window.at_end() {
                self.window.refill()?;
            }
            let inside = self.window.rest()[1..].trim_ascii_start();
            if inside.first().is_none_or(|&byte| byte == b'"') {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What was found in the outermost object.
enum Outer {
    Events(ListEnd),
    Other,
    End,
    Cut,
    Malformed(&'static str),
}

/// How a list of events ended.
enum ListEnd {
    /// With its bracket.
    Closed,
    /// Without it, after a complete event.
    Open,
    /// In damage after which there is no other event.
    Damaged,
}

/// The threads of a trace and what is known of them.
#[derive(Default)]
struct Threads {
    /// Process, thread and whether it is GPU work, see [`Threads::thread_of`].
    keys: Interner,
    threads: Vec<Thread>,
    kinds: Kinds,
    titles: Titles,
    scratch: Scratch,
    /// Whether some event is of a category that was asked for, and some of the others.
    any_wanted: bool,
    unwanted: Vec<String>,
}

/// Buffers used again for every event.
#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    text: Vec<u8>,
}

/// A thread, or the GPU work of one.
#[derive(Default)]
struct Thread {
    process: String,
    thread: String,
    is_gpu_work: bool,
    slices: Slices,
    left_out: LeftOut,
}

impl Threads {
    /// Adds an event.
    fn take(&mut self, event: &RawEvent<'_>, offset: u64, context: &mut Context<'_>) -> Result<()> {
        let place = || format!("byte {offset}");
        let &[phase] = event.phase.bytes else {
            return context.damaged(place(), "an event without a phase (\"ph\"): is this a Chrome trace?");
        };
        match phase {
            b'M' => {
                self.titles.take(event);
                return Ok(());
            }
            b'X' | b'B' | b'E' | b'i' | b'I' | b'R' => {}
            _ => {
                let thread = self.thread_of(event, false)?;
                thread.left_out.add(phase);
                return Ok(());
            }
        }
        let Some(start) = nanoseconds(event.start.bytes, Unit::Microseconds) else {
            return context.damaged(place(), bad_time("ts", event.start));
        };
        let mut duration = None;
        if phase == b'X' && event.duration.kind != Kind::Absent {
            duration = nanoseconds(event.duration.bytes, Unit::Microseconds);
            if duration.and_then(|duration| start.checked_add(duration)).is_none() {
                return context.damaged(place(), bad_time("dur", event.duration));
            }
        }
        self.take_activity(event, phase, start, duration, context)
    }

    fn take_activity(
        &mut self,
        event: &RawEvent<'_>,
        phase: u8,
        start: i64,
        duration: Option<i64>,
        context: &Context<'_>,
    ) -> Result<()> {
        let mut text = std::mem::take(&mut self.scratch.text);
        let name = event.name.text(&mut text);
        if phase == b'E' {
            let name = (event.name.kind != Kind::Absent).then_some(name);
            let index = self.thread_index(event, false)?;
            self.threads[index].slices.end(name, start, &self.kinds);
        } else {
            let wanted = is_wanted(event.category.bytes, context);
            if wanted {
                self.any_wanted = true;
            } else if !self.any_wanted {
                self.note_category(event.category.bytes);
            }
            if wanted || phase == b'B' {
                let kind = self.kinds.intern(name, event.category, event.args, context)?;
                let is_gpu_work = phase == b'X' && is_gpu_work(event.category.bytes);
                let slices = &mut self.thread_of(event, is_gpu_work)?.slices;
                match phase {
                    b'X' => slices.complete(kind, start, duration),
                    b'B' => slices.begin(kind, start, wanted),
                    _ => slices.instant(kind, start),
                }
            }
        }
        self.scratch.text = text;
        Ok(())
    }

    /// Remembers a category that was not asked for, for the message if none was.
    fn note_category(&mut self, category: &[u8]) {
        for category in categories(category).filter(|category| !category.is_empty()) {
            let is_known = |known: &String| known.as_bytes() == category;
            if self.unwanted.len() < MOST_CATEGORIES && !self.unwanted.iter().any(is_known) {
                self.unwanted.push(String::from_utf8_lossy(category).into_owned());
            }
        }
    }

    /// An error if categories were asked for that no event has.
    fn check_categories(&self, context: &Context<'_>) -> Result<()> {
        let asked = &context.options.category;
        if asked.is_empty() || self.any_wanted || self.unwanted.is_empty() {
            return Ok(());
        }
        let more = if self.unwanted.len() < MOST_CATEGORIES { "" } else { ", …" };
        Err(crate::Error::option(format_args!(
            "--category {}: no event has it; there are {}{more}",
            asked.join(","),
            self.unwanted.join(", ")
        )))
    }

    fn thread_of(&mut self, event: &RawEvent<'_>, is_gpu_work: bool) -> Result<&mut Thread> {
        let index = self.thread_index(event, is_gpu_work)?;
        Ok(&mut self.threads[index])
    }

    fn thread_index(&mut self, event: &RawEvent<'_>, is_gpu_work: bool) -> Result<usize> {
        let key = &mut self.scratch.key;
        key.clear();
        key.extend_from_slice(event.process.bytes);
        // No tool has such an identifier, so the two cannot collide.
        key.push(0);
        key.extend_from_slice(event.thread.bytes);
        key.push(u8::from(is_gpu_work));
        let index = self.keys.intern(key)? as usize;
        if index == self.threads.len() {
            let (process, thread) = (identifier(event.process), identifier(event.thread));
            self.threads.push(Thread { process, thread, is_gpu_work, ..Thread::default() });
        }
        Ok(index)
    }

    /// Pushes the streams of all threads.
    fn push(self, context: &mut Context<'_>) -> Result<()> {
        let Self { threads, kinds, titles, .. } = self;
        let mut shares: HashMap<(String, String), Share> = HashMap::new();
        for thread in &threads {
            let share = shares.entry((thread.process.clone(), thread.thread.clone())).or_default();
            share.streams += u32::from(!thread.slices.is_empty());
            share.left_out.merge(thread.left_out);
        }
        let mut symbols = Symbols::new(&kinds);
        let alone = shares.values().filter(|share| share.streams > 0).count() == 1;
        for thread in threads {
            if thread.slices.is_empty() {
                continue;
            }
            let mut title = titles.of(&thread);
            let mut name = thread.name();
            let key = (thread.process, thread.thread);
            let known = shares.entry(key.clone()).or_default();
            // What the thread leaves out is noted at the first of its streams.
            let share = Share { left_out: std::mem::take(&mut known.left_out), ..*known };
            if thread.is_gpu_work && share.streams > 1 {
                name.push_str(GPU_SUFFIX);
                title = title.map(|title| title + GPU_SUFFIX);
            }
            let nameless = alone && key.0.is_empty() && key.1.is_empty();
            let stream = if nameless { context.only_stream()? } else { context.stream(&name)? };
            if let Some(title) = title {
                context.describe(stream, "title", &title)?;
            }
            if let Some(kinds) = share.left_out.text() {
                context.describe(stream, "events-left-out", &kinds)?;
            }
            note_count(context, stream, "ends-without-begin", thread.slices.ends_without_begin())?;
            note_count(context, stream, "begins-without-end", thread.slices.begins_without_end() as u64)?;
            push_slices(&thread.slices.into_ordered(), &mut symbols, stream, context)?;
        }
        Ok(())
    }
}

/// What the streams of one thread have in common.
#[derive(Clone, Copy, Default)]
struct Share {
    streams: u32,
    left_out: LeftOut,
}

/// How many events of each of the [`LEFT_OUT`] kinds were left out.
#[derive(Clone, Copy, Default)]
struct LeftOut([u64; LEFT_OUT.len()]);

/// Kinds of events that are left out, by their phases: one of them, several of them. The last is
/// any other.
const LEFT_OUT: [(&[u8], &str, &str); 6] = [
    (b"stf", "flow arrow", "flow arrows"),
    (b"C", "counter sample", "counter samples"),
    (b"P", "profile sample", "profile samples"),
    (b"NOD", "object", "objects"),
    (b"bneSTpF", "asynchronous event", "asynchronous events"),
    (b"", "other event", "other events"),
];

impl LeftOut {
    fn add(&mut self, phase: u8) {
        let known = LEFT_OUT.iter().position(|(phases, ..)| phases.contains(&phase));
        self.0[known.unwrap_or(LEFT_OUT.len() - 1)] += 1;
    }

    fn merge(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// Such as `30540 flow arrows, 2 counter samples`. Returns `None` if nothing was left out.
    fn text(self) -> Option<String> {
        let kinds = LEFT_OUT.iter().zip(self.0).filter(|(_, count)| *count > 0);
        let kinds: Vec<String> = kinds
            .map(|((_, one, several), count)| format!("{count} {}", if count == 1 { one } else { several }))
            .collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }
}

const GPU_SUFFIX: &str = " gpu queue";

impl Thread {
    /// What the stream is called.
    fn name(&self) -> String {
        match (self.process.as_str(), self.thread.as_str()) {
            ("", "") => "no pid".to_string(),
            (process, "") => format!("pid {process}"),
            ("", thread) => format!("tid {thread}"),
            (process, thread) => format!("pid {process} tid {thread}"),
        }
    }
}

fn bad_time(key: &str, value: Value<'_>) -> String {
    if value.kind == Kind::Absent {
        return format!("an event without a time (\"{key}\")");
    }
    let shown = String::from_utf8_lossy(&value.bytes[..value.bytes.len().min(40)]);
    format!("\"{key}\" is not a number of microseconds, or out of range: {shown}")
}

/// A process or thread, which may be a number or a string.
fn identifier(value: Value<'_>) -> String {
    String::from_utf8_lossy(value.text(&mut Vec::new())).into_owned()
}

/// The categories of an event, which commas separate.
fn categories(category: &[u8]) -> impl Iterator<Item = &[u8]> {
    category.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// Whether one of the categories was asked for.
fn is_wanted(category: &[u8], context: &Context<'_>) -> bool {
    let wanted = &context.options.category;
    wanted.is_empty()
        || categories(category).any(|category| wanted.iter().any(|wanted| wanted.as_bytes() == category))
}

/// Whether a slice is work of a GPU queue. Older versions of Kineto say `Memcpy`.
fn is_gpu_work(category: &[u8]) -> bool {
    const OF_GPUS: [&[u8]; 5] = [b"kernel", b"gpu_memcpy", b"gpu_memset", b"memcpy", b"memset"];
    categories(category).any(|category| OF_GPUS.iter().any(|gpu| gpu.eq_ignore_ascii_case(category)))
}

fn note_count(context: &mut Context<'_>, stream: StreamId, key: &str, count: u64) -> Result<()> {
    if count > 0 {
        context.describe(stream, key, &count.to_string())?;
    }
    Ok(())
}

fn push_slices(
    ordered: &Ordered,
    symbols: &mut Symbols<'_>,
    stream: StreamId,
    context: &mut Context<'_>,
) -> Result<()> {
    if context.options.calls {
        return ordered.walk(|step| {
            let (role, kind, at, function) = match step {
                Step::Enter { kind, at, caller } => (Role::Enter, kind, at, caller),
                Step::Leave { kind, at } => (Role::Leave, kind, at, Some(kind)),
                Step::Instant { kind, at, function } => (Role::Block, kind, at, function),
            };
            let symbol = symbols.of(role, kind, function, context)?;
            context.push(stream, symbol, Timing { start: Some(at), ..Timing::UNKNOWN })
        });
    }
    for slice in &ordered.slices {
        let symbol = symbols.of(Role::Plain, slice.kind, None, context)?;
        let timing = Timing { start: Some(slice.start), duration: slice.duration(), ..Timing::UNKNOWN };
        context.push(stream, symbol, timing)?;
    }
    Ok(())
}

/// What metadata events call processes and threads.
#[derive(Default)]
struct Titles {
    processes: HashMap<String, String>,
    labels: HashMap<String, String>,
    threads: HashMap<(String, String), String>,
}

impl Titles {
    fn take(&mut self, event: &RawEvent<'_>) {
        let process = || identifier(event.process);
        match event.name.bytes {
            b"process_name" => {
                argument(event.args, b"name").map(|name| self.processes.insert(process(), name));
            }
            b"process_labels" => {
                argument(event.args, b"labels").map(|label| self.labels.insert(process(), label));
            }
            b"thread_name" => {
                let thread = || identifier(event.thread);
                argument(event.args, b"name").map(|name| self.threads.insert((process(), thread()), name));
            }
            _ => {}
        }
    }

    /// The title of a thread: `python 1234 / thread 7`. Returns `None` if no metadata event names
    /// it.
    fn of(&self, Thread { process, thread, .. }: &Thread) -> Option<String> {
        let process_title = self.processes.get(process).map(|name| {
            let title = with_identifier(name, process);
            match self.labels.get(process) {
                Some(label) => format!("{title} ({label})"),
                None => title,
            }
        });
        // uftrace describes every thread as a process.
        let of_its_own = || self.threads.get(&(thread.clone(), String::new()));
        let thread_title = self.threads.get(&(process.clone(), thread.clone())).or_else(of_its_own);
        let thread_title = match thread_title {
            Some(name) => Some(with_identifier(name, thread)),
            None if thread.is_empty() => None,
            None => Some(format!("thread {thread}")),
        };
        match (process_title, thread_title) {
            (None, _) if !self.threads.contains_key(&(process.clone(), thread.clone())) => None,
            (Some(process), Some(thread)) if process != thread => Some(format!("{process} / {thread}")),
            (title, None) | (_, title) => title,
        }
    }
}

/// The name, and the identifier unless it is in the name already.
fn with_identifier(name: &str, identifier: &str) -> String {
    if identifier.is_empty() || name.contains(identifier) {
        name.to_string()
    } else {
        format!("{name} {identifier}")
    }
}

/// A text among the arguments of an event, trimmed. Returns `None` if it is empty.
fn argument(args: Value<'_>, wanted: &[u8]) -> Option<String> {
    let mut found = None;
    let each = |key: Value<'_>, value: Value<'_>| {
        if key.bytes == wanted {
            found = Some(identifier(value).trim().to_string());
        }
    };
    Cursor::new(args.bytes).object(each).ok()?;
    found.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
