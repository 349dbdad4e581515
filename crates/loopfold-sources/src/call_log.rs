//! Reads lines of calls with their arguments and results, as strace and ltrace write them:
//! `[pid 7] 12:00:00.5 read(3, "x", 1) = 1 <0.000012>`.
//!
//! There is one stream per thread, `process N`, or the only stream of the input when the
//! lines do not say which process they are of. On a terminal they say so only while there
//! are several: the process that was alone before keeps the stream of the input, with the
//! title `process N`. The event is the name of the call; a
//! signal is `--- SIGCHLD ---`, the end of a process `+++ exited +++` or `+++ killed +++`.
//! A call that was interrupted in the log, `<unfinished ...>`, and its `resumed` line
//! are one event where the call began. Fields: `errno` (a name such as `ENOENT`, `0`
//! when the call succeeded), `result`, `args`, and `fd`, a first argument that is a small
//! number.
//!
//! Linear time. Held in memory are calls that have not returned and, as events must stay
//! in order, those that the same thread made meanwhile: at most [`MOST_HELD`] a thread.

use crate::clock::{DayClock, time_of_day};
use crate::decimal::{Unit, nanoseconds};
use crate::line_reader::{LineReader, Verdict, decimal, split_word};
use crate::{Context, Result};
use hashbrown::{HashMap, HashSet};
use loopfold::StreamId;
use loopfold::trace::{Event, Field, Timing, Value};
use std::collections::VecDeque;
use std::io::BufRead;

/// How many events of a thread wait for an earlier one to return. Beyond that, the
/// earlier one is emitted without its duration.
const MOST_HELD: usize = 1 << 16;

/// How many calls that were emitted before they returned are remembered.
const MOST_REMEMBERED: usize = 64;

/// Larger numbers than this are no process: Linux has at most 2^22 of them.
const LARGEST_PROCESS: u64 = 1 << 22;

/// Which of the tools wrote the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// A thread makes one system call at a time.
    Strace,
    /// A call of a library may call back and so contain others.
    Ltrace,
}

/// Reads a whole log.
pub(crate) fn read(tool: Tool, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
    let mut log = CallLog::new(tool, context);
    let mut lines = LineReader::new(input);
    while let Some(line) = lines.next_line()? {
        if log.take_continuation(line.bytes, context)? {
            continue;
        }
        let (prefix, rest) = split_prefix(line.bytes);
        let time = log.clock.time_of(&prefix);
        let parsed = Parsed::of(rest, tool);
        if let Some(process) = attached_process(line.bytes) {
            log.note_attached(process, prefix.process, &parsed);
        }
        match parsed {
            Some(Parsed::Message) => {}
            Some(parsed) => log.take(prefix.process, time, parsed, context)?,
            None => context.damaged(
                line.place(),
                "neither a call such as read(3, …) = 1, nor its return, nor a signal or exit",
            )?,
        }
    }
    log.finish(context)
}

/// What a line says about whether a file is a log of this tool, in which most calls
/// are `likely` ones.
pub(crate) fn judge(line: &[u8], tool: Tool, likely: impl Fn(&[u8]) -> bool) -> Verdict {
    let (_, rest) = split_prefix(line);
    let name = match Parsed::of(rest, tool) {
        Some(Parsed::Call { name, rest, returned: true }) if split_result(rest).is_some() => name,
        Some(Parsed::Call { name, returned: false, .. } | Parsed::Resumed { name, .. }) => name,
        Some(Parsed::Other { .. } | Parsed::Message) => return Verdict::Neutral,
        _ => return Verdict::Against,
    };
    if likely(name) { Verdict::For } else { Verdict::Against }
}

/// What stands before the call.
#[derive(Default)]
struct Prefix<'a> {
    process: Option<u64>,
    time: Option<Time<'a>>,
}

/// A time as written.
enum Time<'a> {
    OfDay(i64),
    Seconds(&'a [u8]),
}

/// Splits off process and time, and what options such as `-i` put behind them.
fn split_prefix(line: &[u8]) -> (Prefix<'_>, &[u8]) {
    let mut prefix = Prefix::default();
    let mut rest = line.trim_ascii_start();
    if let Some(inside) = rest.strip_prefix(b"[pid") {
        let end = memchr::memchr(b']', inside).unwrap_or(0);
        if let Some(process) = process_number(inside[..end].trim_ascii()) {
            prefix.process = Some(process);
            rest = inside[end + 1..].trim_ascii_start();
        }
    } else {
        let (word, after) = split_word(rest);
        if let Some(process) = process_number(word).filter(|&number| number <= LARGEST_PROCESS) {
            prefix.process = Some(process);
            rest = after;
        }
    }
    let (word, after) = split_word(rest);
    prefix.time = time_in(word);
    if prefix.time.is_some() {
        rest = after;
        // The time since the last call, when both were asked for: `(+     0.000123)`.
        if rest.starts_with(b"(+") {
            let end = memchr::memchr(b')', rest).map_or(0, |end| end + 1);
            rest = rest[end..].trim_ascii_start();
        }
    }
    // The instruction pointer or the number of the call.
    if rest.starts_with(b"[") && !rest.starts_with(b"[ Process") {
        let end = memchr::memchr(b']', rest).map_or(0, |end| end + 1);
        rest = rest[end..].trim_ascii_start();
    }
    (prefix, rest)
}

/// A process, maybe with its command: `123<make>`.
fn process_number(word: &[u8]) -> Option<u64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &word[digits..];
    (rest.is_empty() || rest.starts_with(b"<") && rest.ends_with(b">")).then(|| decimal(&word[..digits]))?
}

fn time_in(word: &[u8]) -> Option<Time<'_>> {
    if !word.first()?.is_ascii_digit() {
        return None;
    }
    if let Some(time) = time_of_day(word) {
        return Some(Time::OfDay(time));
    }
    nanoseconds(word, Unit::Seconds).map(|_| Time::Seconds(word))
}

/// Converts the times in the lines to times since one origin.
#[derive(Default)]
struct Clock {
    day: DayClock,
    now: Option<i64>,
    is_relative: Option<bool>,
}

impl Clock {
    fn time_of(&mut self, prefix: &Prefix<'_>) -> Option<i64> {
        /// No log is that old: smaller times are those since the line before (`-r`).
        const FIRST_CREDIBLE: i64 = 100_000_000 * 1_000_000_000;
        match prefix.time.as_ref()? {
            Time::OfDay(time) => Some(self.day.running(*time)),
            Time::Seconds(text) => {
                let time = nanoseconds(text, Unit::Seconds)?;
                if !*self.is_relative.get_or_insert(time < FIRST_CREDIBLE) {
                    return Some(time);
                }
                self.now = Some(self.now.unwrap_or(0).saturating_add(time));
                self.now
            }
        }
    }
}

/// A parsed line, without its prefix.
enum Parsed<'a> {
    /// A call; `rest` begins after its opening parenthesis.
    Call { name: &'a [u8], rest: &'a [u8], returned: bool },
    /// The return of an unfinished call; `rest` is what followed its arguments so far.
    Resumed { name: &'a [u8], rest: &'a [u8] },
    /// A signal or the end of a process.
    Other { mark: &'static [u8], word: &'a [u8] },
    /// A message of the tool itself.
    Message,
}

impl<'a> Parsed<'a> {
    fn of(text: &'a [u8], tool: Tool) -> Option<Self> {
        let text = text.trim_ascii();
        match text.first() {
            None => return Some(Parsed::Message),
            Some(b'<') => return Self::resumed(text),
            Some(b'-') if text.starts_with(b"---") => return Self::other(text, b"---"),
            Some(b'+') if text.starts_with(b"+++") => return Self::other(text, b"+++"),
            // A stack trace (`-k`).
            Some(b'>') => return Some(Parsed::Message),
            _ => {}
        }
        if is_message(text) {
            return Some(Parsed::Message);
        }
        let open = memchr::memchr(b'(', text)?;
        let name = call_name(&text[..open], tool)?;
        let rest = &text[open + 1..];
        match strip_unfinished(rest).or_else(|| strip_attached(rest)) {
            Some(args) => Some(Parsed::Call { name, rest: args, returned: false }),
            None => Some(Parsed::Call { name, rest, returned: true }),
        }
    }

    /// `<... read resumed>"x", 1) = 1`. Some versions write a blank before the bracket.
    fn resumed(text: &'a [u8]) -> Option<Self> {
        let inside = text.strip_prefix(b"<... ")?;
        let at = memchr::memmem::find(inside, b" resumed")?;
        let rest = inside[at + b" resumed".len()..].trim_ascii_start();
        Some(Parsed::Resumed { name: &inside[..at], rest: rest.strip_prefix(b">").unwrap_or(rest) })
    }

    /// `--- SIGCHLD {…} ---`, `+++ exited with 0 +++`.
    fn other(text: &'a [u8], mark: &'static [u8]) -> Option<Self> {
        let (word, _) = split_word(&text[3..]);
        (!word.is_empty() && word != mark).then_some(Parsed::Other { mark, word })
    }
}

fn is_message(text: &[u8]) -> bool {
    [&b"strace:"[..], b"ltrace:", b"Process ", b"[ Process", b"Couldn't ", b"Cannot "]
        .iter()
        .any(|start| text.starts_with(start))
}

/// Checks the name of a call; ltrace writes `libc.so.6->read` or `read@libc.so.6`, or with `-S`
/// `read@SYS`, which is kept to distinguish it from the library's.
fn call_name(text: &[u8], tool: Tool) -> Option<&[u8]> {
    let mut name = text.trim_ascii();
    if tool == Tool::Ltrace
        && let Some(arrow) = memchr::memmem::rfind(name, b"->")
    {
        name = &name[arrow + 2..];
    }
    if tool == Tool::Ltrace
        && let Some(at) = memchr::memchr(b'@', name)
        && &name[at..] != b"@SYS"
    {
        name = &name[..at];
    }
    let is_name = |&byte: &u8| match tool {
        Tool::Strace => byte.is_ascii_alphanumeric() || byte == b'_',
        // Names of C++ may be demangled.
        Tool::Ltrace => byte.is_ascii_graphic() || byte == b' ' || byte >= 0x80,
    };
    let begins_well = name.first().is_some_and(|byte| !byte.is_ascii_digit() && !b"\"'=)".contains(byte));
    (begins_well && name.len() <= 1000 && name.iter().all(is_name)).then_some(name)
}

/// What stands before `<unfinished ...>` at the end.
fn strip_unfinished(text: &[u8]) -> Option<&[u8]> {
    let at = memchr::memrchr(b'<', text)?;
    let (before, mark) = text.split_at(at);
    mark.starts_with(b"<unfinished").then(|| before.trim_ascii_end())
}

/// The child in `strace: Process 8 attached`, a message that on a terminal can come
/// in the middle of the call that made the child.
fn attached_process(line: &[u8]) -> Option<u64> {
    let number = line.trim_ascii_end().strip_suffix(b" attached")?;
    decimal(&number[memchr::memrchr(b' ', number)? + 1..])
}

/// What stands before such a message at the end of a call.
fn strip_attached(text: &[u8]) -> Option<&[u8]> {
    attached_process(text)?;
    memchr::memmem::rfind(text, b"strace: Process ").map(|at| &text[..at])
}

/// Splits what follows the opening parenthesis into arguments and result.
fn split_result(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut end = rest.len();
    while let Some(at) = memchr::memrchr(b'=', &rest[..end]) {
        let before = rest[..at].trim_ascii_end();
        if before.len() < at
            && let Some(args) = before.strip_suffix(b")")
        {
            return Some((args, without_duration(rest[at + 1..].trim_ascii()).0));
        }
        end = at;
    }
    None
}

/// Splits off `<0.000123>` at the end of a line.
fn without_duration(text: &[u8]) -> (&[u8], Option<i64>) {
    let split = || {
        let inside = text.strip_suffix(b">")?;
        let at = memchr::memrchr(b'<', inside)?;
        let duration = nanoseconds(&inside[at + 1..], Unit::Seconds).filter(|&time| time >= 0)?;
        Some((text[..at].trim_ascii_end(), duration))
    };
    split().map_or((text, None), |(before, duration)| (before, Some(duration)))
}

/// The fields that were asked for.
struct Wanted {
    errno: bool,
    result: bool,
    args: bool,
    fd: bool,
}

impl Wanted {
    /// Whether anything but the name and the times is of use.
    fn text(&self) -> bool {
        self.errno || self.result || self.args || self.fd
    }
}

/// A call that waits for its return, or an event behind one.
struct Held {
    name: Vec<u8>,
    start: Option<i64>,
    duration: Option<i64>,
    /// What followed the opening parenthesis, if any field of it is wanted.
    rest: Vec<u8>,
    is_waiting: bool,
}

/// A thread.
struct Thread {
    stream: StreamId,
    /// The first of them waits for its return; what happened since waits behind it.
    held: VecDeque<Held>,
    /// Calls that were emitted before they returned: their return is no event.
    emitted: Vec<Vec<u8>>,
}

struct CallLog {
    tool: Tool,
    wanted: Wanted,
    clock: Clock,
    threads: Vec<Thread>,
    by_process: HashMap<Option<u64>, usize>,
    name: Vec<u8>,
    /// Processes that were attached while the log was running, so not the first one.
    attached: HashSet<u64>,
    /// A call that a message interrupted: the next line continues it.
    interrupted: Option<(Option<u64>, Vec<u8>)>,
}

impl CallLog {
    fn new(tool: Tool, context: &Context<'_>) -> Self {
        let wanted = Wanted {
            errno: context.wants("errno"),
            result: context.wants("result"),
            args: context.wants("args"),
            fd: context.wants("fd"),
        };
        Self {
            tool,
            wanted,
            clock: Clock::default(),
            threads: Vec::new(),
            by_process: HashMap::new(),
            name: Vec::new(),
            attached: HashSet::new(),
            interrupted: None,
        }
    }

    fn thread_index(&mut self, process: Option<u64>, context: &mut Context<'_>) -> Result<usize> {
        if let Some(&index) = self.by_process.get(&process) {
            return Ok(index);
        }
        if let Some(number) = process
            && let Some(index) = self.first_process_as(number)
        {
            let title = format!("process {number}");
            context.describe(self.threads[index].stream, "title", &title)?;
            return Ok(index);
        }
        let stream = match process {
            Some(number) => context.stream(&format!("process {number}"))?,
            None => context.only_stream()?,
        };
        self.threads.push(Thread { stream, held: VecDeque::new(), emitted: Vec::new() });
        self.by_process.insert(process, self.threads.len() - 1);
        Ok(self.threads.len() - 1)
    }

    /// On a terminal, lines say which process they are of only while there are several.
    /// The first process that they name and that was not attached later is the one that
    /// was alone before.
    fn first_process_as(&mut self, number: u64) -> Option<usize> {
        let &alone = self.by_process.get(&None)?;
        let is_named = self.by_process.iter().any(|(process, &index)| process.is_some() && index == alone);
        if is_named || self.attached.contains(&number) {
            return None;
        }
        self.by_process.insert(Some(number), alone);
        Some(alone)
    }

    fn note_attached(&mut self, attached: u64, process: Option<u64>, parsed: &Option<Parsed<'_>>) {
        if !self.threads.is_empty() {
            self.attached.insert(attached);
        }
        if let Some(Parsed::Call { name, returned: false, .. }) = parsed {
            self.interrupted = Some((process, name.to_vec()));
        }
    }

    /// Takes a line that is the rest of an interrupted call. Returns false if it is not.
    fn take_continuation(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<bool> {
        let Some((process, name)) = self.interrupted.take() else { return Ok(false) };
        let line = line.trim_ascii_start();
        if line.starts_with(b"<unfinished") {
            return Ok(true);
        }
        if !line.starts_with(b",") && !line.starts_with(b")") {
            return Ok(false);
        }
        // The rest may be interrupted as well, by the process itself.
        if strip_unfinished(line).is_none() {
            self.take(process, None, Parsed::Resumed { name: &name, rest: line }, context)?;
        }
        Ok(true)
    }

    fn take(
        &mut self,
        process: Option<u64>,
        time: Option<i64>,
        parsed: Parsed<'_>,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let index = self.thread_index(process, context)?;
        let Self { tool, wanted, threads, name: joined, .. } = self;
        let thread = &mut threads[index];
        let (name, rest, is_waiting) = match parsed {
            Parsed::Resumed { name, rest } => {
                if thread.resume(name, time, rest) {
                    return thread.release(wanted, context);
                }
                (name, rest, false)
            }
            Parsed::Call { name, rest, returned } => (name, rest, !returned),
            Parsed::Other { mark, word } => {
                joined.clear();
                for part in [mark, b" ", word, b" ", mark] {
                    joined.extend_from_slice(part);
                }
                (&joined[..], &b""[..], false)
            }
            Parsed::Message => return Ok(()),
        };
        if *tool == Tool::Strace {
            thread.release_all(wanted, context)?;
        }
        let duration = without_duration(rest).1;
        if thread.held.is_empty() && !is_waiting {
            return push(thread.stream, name, time, duration, rest, wanted, context);
        }
        let rest = if wanted.text() { rest.to_vec() } else { Vec::new() };
        thread.held.push_back(Held { name: name.to_vec(), start: time, duration, rest, is_waiting });
        if thread.held.len() > MOST_HELD {
            thread.emit_first(wanted, context)?;
            thread.release(wanted, context)?;
        }
        Ok(())
    }

    fn finish(mut self, context: &mut Context<'_>) -> Result<()> {
        for thread in &mut self.threads {
            thread.release_all(&self.wanted, context)?;
        }
        Ok(())
    }
}

impl Thread {
    /// Handles the return of the innermost unfinished call of this name. Returns false if there is
    /// none, as when the log began inside it.
    fn resume(&mut self, name: &[u8], time: Option<i64>, rest: &[u8]) -> bool {
        let unfinished = self.held.iter().rposition(|held| held.is_waiting && held.name == name);
        let Some(index) = unfinished else {
            let emitted = self.emitted.iter().rposition(|emitted| emitted == name);
            return emitted.map(|index| self.emitted.truncate(index)).is_some();
        };
        // What was called inside and has not returned never will: a long jump left it.
        for abandoned in self.held.iter_mut().skip(index) {
            abandoned.is_waiting = false;
        }
        let held = &mut self.held[index];
        let since_start = || time?.checked_sub(held.start?).filter(|&duration| duration >= 0);
        held.duration = without_duration(rest).1.or_else(since_start);
        held.rest.extend_from_slice(rest);
        true
    }

    /// Emits everything up to the first call that waits for its return.
    fn release(&mut self, wanted: &Wanted, context: &mut Context<'_>) -> Result<()> {
        while self.held.front().is_some_and(|held| !held.is_waiting) {
            self.emit_first(wanted, context)?;
        }
        Ok(())
    }

    /// Emits everything, whether it returned or not.
    fn release_all(&mut self, wanted: &Wanted, context: &mut Context<'_>) -> Result<()> {
        while !self.held.is_empty() {
            self.emit_first(wanted, context)?;
        }
        Ok(())
    }

    fn emit_first(&mut self, wanted: &Wanted, context: &mut Context<'_>) -> Result<()> {
        let Some(held) = self.held.pop_front() else { return Ok(()) };
        push(self.stream, &held.name, held.start, held.duration, &held.rest, wanted, context)?;
        if held.is_waiting {
            self.emitted.push(held.name);
            if self.emitted.len() > MOST_REMEMBERED {
                self.emitted.remove(0);
            }
        }
        Ok(())
    }
}

/// Pushes an event; `rest` is what followed the opening parenthesis.
fn push(
    stream: StreamId,
    name: &[u8],
    start: Option<i64>,
    duration: Option<i64>,
    rest: &[u8],
    wanted: &Wanted,
    context: &mut Context<'_>,
) -> Result<()> {
    let mut fields = [Field { key: "", value: Value::Integer(0) }; 4];
    let used = if wanted.text() { fields_of(rest, wanted, &mut fields) } else { 0 };
    let symbol = context.intern(&Event { fields: &fields[..used], ..Event::named(name) })?;
    context.push(stream, symbol, Timing { start, duration, ..Timing::UNKNOWN })
}

/// Fills in the wanted fields and says how many there are.
fn fields_of<'a>(rest: &'a [u8], wanted: &Wanted, fields: &mut [Field<'a>; 4]) -> usize {
    let (args, result) = match split_result(rest) {
        Some((args, result)) => (args, Some(result)),
        None => (without_duration(rest).0, None),
    };
    let errno = result.and_then(errno_of).filter(|_| wanted.errno).map(Value::Text);
    let result = result.filter(|_| wanted.result).map(Value::Text);
    let fd = fd_of(args).filter(|_| wanted.fd).map(Value::Integer);
    let args = Some(Value::Text(args)).filter(|_| wanted.args);
    let found = [("errno", errno), ("result", result), ("args", args), ("fd", fd)];
    let mut used = 0;
    for (key, value) in found {
        if let Some(value) = value {
            fields[used] = Field { key, value };
            used += 1;
        }
    }
    used
}

/// The name in `-1 ENOENT (No such file or directory)` or `? ERESTARTSYS (…)`, `0` for
/// a call that succeeded. Returns `None` if the result is not known.
fn errno_of(result: &[u8]) -> Option<&[u8]> {
    let (value, after) = split_word(result);
    let (name, _) = split_word(after);
    match value {
        b"-1" | b"?" if name.starts_with(b"E") => Some(name),
        b"?" | b"" => None,
        _ => Some(b"0"),
    }
}

/// The first argument if it is a small number, maybe with the file: `3</etc/hosts>`.
fn fd_of(args: &[u8]) -> Option<i64> {
    let digits = args.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends_well = matches!(args.get(digits), None | Some(b',' | b'<' | b' ' | b')'));
    let number = decimal(&args[..digits]).filter(|&number| ends_well && number < 1 << 20)?;
    i64::try_from(number).ok()
}
