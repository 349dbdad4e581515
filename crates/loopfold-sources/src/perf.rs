//! Reads what `perf script` prints for tracepoints and samples:
//! `comm 123 [001] 12.345678: raw_syscalls:sys_enter: NR 202 (…)`.
//!
//! One stream per thread, `comm TID` with the first name the thread had; a later name
//! becomes the title. The idle tasks of all processors have the number 0 and are
//! distinguished by `cpu N`. The event is the name of the tracepoint or of the sampled event. By
//! default it has a field `NR` for system calls that are identified by number, and
//! `symbol` for samples, the function that was hit, or the innermost of a call chain;
//! without these every line would be the same. Fields when wanted: `args`, the text after
//! the name, and `cpu`.
//!
//! Linear time; memory for the threads only.

use crate::decimal::{Unit, nanoseconds};
use crate::line_reader::{LineReader, Verdict, decimal, fit_of_lines, split_word};
use crate::{Context, Description, Fit, Result, Source};
use hashbrown::HashMap;
use loopfold::StreamId;
use loopfold::trace::{Event, Field, Timing, Value};
use std::io::BufRead;

/// See the module.
pub(crate) struct Perf;

impl Source for Perf {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn about(&self) -> &'static str {
        "tracepoints and samples printed by perf script"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["NR", "symbol", "args", "cpu"]
    }

    fn description(&self) -> Description {
        Description {
            event: "the tracepoint, with NR= for system calls and symbol= for samples",
            stream: "a thread",
            times: "start",
            example: "perf script | loopfold loops -",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Certain, |line| match Record::of(line) {
            Some(_) => Verdict::For,
            None if is_beside(line) => Verdict::Neutral,
            None => Verdict::Against,
        })
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut threads = Threads::new(context);
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next_line()? {
            if let Some(record) = Record::of(line.bytes) {
                threads.release(b"", context)?;
                threads.take(&record, context)?;
            } else if is_beside(line.bytes) {
                threads.release(line.bytes, context)?;
            } else {
                context.damaged(line.place(), "expected a command, a thread, a time and an event")?;
            }
        }
        threads.release(b"", context)?;
        threads.finish(context)
    }
}

/// Call chains, empty lines and comments.
fn is_beside(line: &[u8]) -> bool {
    line.first().is_none_or(|&byte| byte == b'#' || byte.is_ascii_whitespace())
}

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
struct Record<'a> {
    command: &'a [u8],
    thread: u64,
    processor: Option<u64>,
    time: i64,
    event: &'a [u8],
    details: &'a [u8],
}

impl<'a> Record<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let (before, time, after) = split_at_time(line)?;
        let (command, thread, processor) = split_task(before)?;
        let (mut event, mut details) = split_word(after);
        if event.iter().all(u8::is_ascii_digit) {
            // How many events a sample stands for.
            (event, details) = split_word(details);
        }
        let event = event.strip_suffix(b":").unwrap_or(event);
        (!event.is_empty()).then_some(Self { command, thread, processor, time, event, details })
    }

    /// The number of a system call.
    fn system_call(&self) -> Option<i64> {
        let digits = split_word(self.details.strip_prefix(b"NR ")?).0;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

/// Splits a line at its time, the first word like `12.345678:`.
fn split_at_time(line: &[u8]) -> Option<(&[u8], i64, &[u8])> {
    /// Far more than a command, a thread and a processor take.
    const HEAD: usize = 500;
    let mut from = 0;
    while let Some(colon) = memchr::memchr(b':', &line[from..line.len().min(HEAD)]) {
        let colon = from + colon;
        let begin = memchr::memrchr2(b' ', b'\t', &line[..colon]).map_or(0, |blank| blank + 1);
        let word = &line[begin..colon];
        let is_time = word.first().is_some_and(u8::is_ascii_digit) && memchr::memchr(b'.', word).is_some();
        let ends_word = line.get(colon + 1).is_none_or(u8::is_ascii_whitespace);
        if is_time
            && ends_word
            && let Some(time) = nanoseconds(word, Unit::Seconds)
        {
            return Some((&line[..begin], time, &line[colon + 1..]));
        }
        from = (colon + 1).min(line.len().min(HEAD));
    }
    None
}

/// The command, which may contain blanks, the thread and the processor.
fn split_task(text: &[u8]) -> Option<(&[u8], u64, Option<u64>)> {
    let (mut rest, mut word) = split_last_word(text);
    let mut processor = processor_in(word);
    if processor.is_none() && !is_task(word) {
        // Flags such as `d..3.` between processor and time.
        (rest, word) = split_last_word(rest);
        processor = processor_in(word);
    }
    if processor.is_some() {
        (rest, word) = split_last_word(rest);
    }
    if !is_task(word) {
        return None;
    }
    let thread = word.rsplit(|&byte| byte == b'/').next()?;
    Some((rest.trim_ascii(), decimal(thread)?, processor))
}

fn split_last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_end();
    let begin = memchr::memrchr2(b' ', b'\t', text).map_or(0, |blank| blank + 1);
    (&text[..begin], &text[begin..])
}

/// `[001]`.
fn processor_in(word: &[u8]) -> Option<u64> {
    decimal(word.strip_prefix(b"[")?.strip_suffix(b"]")?)
}

/// `123` or `120/123`, where the process comes first.
fn is_task(word: &[u8]) -> bool {
    !word.is_empty() && word.split(|&byte| byte == b'/').all(|part| decimal(part).is_some())
}

/// The function in `7f0012 main+0x1c (/bin/x)`: an address, then a name with an offset
/// and a file in parentheses.
fn symbol_in(text: &[u8]) -> Option<&[u8]> {
    let (address, rest) = split_word(text);
    let is_address = address.len() >= 4 && address.iter().all(u8::is_ascii_hexdigit);
    if !is_address || !rest.ends_with(b")") {
        return None;
    }
    let file = memchr::memmem::rfind(rest, b" (").unwrap_or(0);
    let symbol = &rest[..file];
    let end = memchr::memmem::rfind(symbol, b"+0x").unwrap_or(symbol.len());
    Some(&symbol[..end]).filter(|symbol| !symbol.is_empty())
}

/// The threads seen so far, and a sample whose call chain may follow.
struct Threads {
    /// By number, and for idle tasks by processor.
    streams: HashMap<(u64, Option<u64>), Thread>,
    wants_args: bool,
    wants_processor: bool,
    waiting: Option<Waiting>,
}

struct Thread {
    stream: StreamId,
    command: Vec<u8>,
    renamed: bool,
}

/// A sample that did not say where it was taken.
struct Waiting {
    stream: StreamId,
    event: Vec<u8>,
    processor: Option<u64>,
    time: i64,
}

impl Threads {
    fn new(context: &Context<'_>) -> Self {
        let (wants_args, wants_processor) = (context.wants("args"), context.wants("cpu"));
        Self { streams: HashMap::new(), wants_args, wants_processor, waiting: None }
    }

    fn take(&mut self, record: &Record<'_>, context: &mut Context<'_>) -> Result<()> {
        let stream = self.stream_of(record, context)?;
        if record.details.is_empty() {
            let event = record.event.to_vec();
            let Record { processor, time, .. } = *record;
            self.waiting = Some(Waiting { stream, event, processor, time });
            return Ok(());
        }
        let number = record.system_call().map(|number| ("NR", Value::Integer(number)));
        let symbol = symbol_in(record.details).map(|symbol| ("symbol", Value::Text(symbol)));
        let args = self.wants_args.then_some(("args", Value::Text(record.details)));
        let fields = [number, symbol, args, self.processor_field(record.processor)];
        push(stream, record.event, record.time, fields, context)
    }

    /// Pushes the pending sample once the next line shows its symbol, or shows that it has none.
    fn release(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        let symbol = symbol_in(line.trim_ascii()).map(|symbol| ("symbol", Value::Text(symbol)));
        let fields = [symbol, self.processor_field(waiting.processor), None, None];
        push(waiting.stream, &waiting.event, waiting.time, fields, context)
    }

    fn processor_field(&self, processor: Option<u64>) -> Option<(&'static str, Value<'static>)> {
        let number = processor.filter(|_| self.wants_processor)?;
        Some(("cpu", Value::Integer(i64::try_from(number).ok()?)))
    }

    fn stream_of(&mut self, record: &Record<'_>, context: &mut Context<'_>) -> Result<StreamId> {
        let key = (record.thread, record.processor.filter(|_| record.thread == 0));
        if let Some(thread) = self.streams.get_mut(&key) {
            if thread.command != record.command {
                thread.command = record.command.to_vec();
                thread.renamed = true;
            }
            return Ok(thread.stream);
        }
        let mut name = title(record.command, record.thread);
        if let (_, Some(processor)) = key {
            name.push_str(&format!(" cpu {processor}"));
        }
        let stream = context.stream(&name)?;
        let command = record.command.to_vec();
        self.streams.insert(key, Thread { stream, command, renamed: false });
        Ok(stream)
    }

    /// Notes the last name of threads that changed it.
    fn finish(self, context: &mut Context<'_>) -> Result<()> {
        for (&(number, _), thread) in self.streams.iter().filter(|(_, thread)| thread.renamed) {
            context.describe(thread.stream, "title", &title(&thread.command, number))?;
        }
        Ok(())
    }
}

fn title(command: &[u8], thread: u64) -> String {
    format!("{} {thread}", String::from_utf8_lossy(command)).trim_start().to_string()
}

fn push(
    stream: StreamId,
    event: &[u8],
    time: i64,
    given: [Option<(&'static str, Value<'_>)>; 4],
    context: &mut Context<'_>,
) -> Result<()> {
    let mut fields = [Field { key: "", value: Value::Integer(0) }; 4];
    let mut used = 0;
    for (key, value) in given.into_iter().flatten() {
        fields[used] = Field { key, value };
        used += 1;
    }
    let symbol = context.intern(&Event { fields: &fields[..used], ..Event::named(event) })?;
    context.push(stream, symbol, Timing { start: Some(time), ..Timing::UNKNOWN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, note_of, read, streams_of, times_of};

    const LOG: &str = "\
# a comment
   perf-exec 41 [001]  1522.000000001:  raw_syscalls:sys_exit: NR 59 = 0
       my prog 41 [001]  1522.499350: raw_syscalls:sys_enter: NR 12 (0, 7ff, 0)
       my prog 40/42 [000] d..3.  1522.5: sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b
       swapper 0 [001]  1522.6: sched:sched_wakeup: comm=x
       swapper 0 [000]  1522.6: sched:sched_wakeup: comm=x
";

    #[test]
    fn tracepoints_are_events_of_their_thread() {
        assert_eq!(Perf.fits(LOG.as_bytes()), Fit::Certain);
        let reading = read(&Perf, LOG, Reading::default());
        assert_eq!(
            streams_of(&reading),
            ["perf-exec 41", "my prog 42", "swapper 0 cpu 1", "swapper 0 cpu 0"]
        );
        assert_eq!(
            events_of(&reading, "perf-exec 41"),
            ["raw_syscalls:sys_exit NR=59", "raw_syscalls:sys_enter NR=12"]
        );
        assert_eq!(times_of(&reading, "perf-exec 41")[0].0, 1_522_000_000_001);
        assert_eq!(note_of(&reading, "perf-exec 41", "title").unwrap(), "my prog 41");
        let with_cpu = read(&Perf, LOG, Reading::by(&["name", "cpu", "args"]));
        assert_eq!(events_of(&with_cpu, "swapper 0 cpu 1"), ["sched:sched_wakeup cpu=1 args=comm=x"]);
    }

    #[test]
    fn samples_have_the_function_that_was_hit() {
        let log = "\
prog 7 10.5:     250000 cycles:u:      7f00aa11 compute(int, long)+0x1c (/bin/prog)
prog 7 10.6:     250000 cycles:u:
\t    55d0aa11 inner+0x3 (/bin/prog)
\t    55d0aa22 outer+0x3 (/bin/prog)

prog 7 10.7: cycles:u:
";
        let reading = read(&Perf, log, Reading::default());
        assert_eq!(
            events_of(&reading, "prog 7"),
            ["cycles:u symbol=compute(int, long)", "cycles:u symbol=inner", "cycles:u"]
        );
    }

    #[test]
    fn lines_that_fit_nothing_are_damage() {
        let log = "a 1 [0] 1.5: x:y: z\nnonsense here\n";
        let error = read(&Perf, log, Reading::default()).unwrap_err();
        assert!(error.starts_with("line 2: expected"), "{error}");
        assert_eq!(damage_of(&read(&Perf, log, Reading::lenient())), 1);
        let too_large = "a 1 [0] 99999999999999.5: x:y: z\n";
        assert!(read(&Perf, too_large, Reading::default()).is_err());
    }
}
