//! Reads text, an event per line. The event is the bytes of the line, so that writing the stream
//! gives the file back. Options select the part of a line that is the event and the part that
//! names the stream, and replace times and numbers by placeholders.
//!
//! Time: one search for newlines, and a regular expression or mask per line if asked
//! for. Memory: the buffer of the input, and a copy of a line only where the buffer
//! cuts it.

use crate::guess::is_text;
use crate::streams::Streams;
use crate::{Context, Description, Error, Fit, Mask, Options, Result, Source, SourceOption, Takes};
use loopfold::StreamId;
use loopfold::trace::Event;
use regex::bytes::{CaptureLocations, Regex};
use std::io::BufRead;

/// A longer line is no line: most likely binary data.
pub(crate) const LONGEST_LINE: usize = 1 << 31;

const OPTIONS: &[SourceOption] = &[
    SourceOption::new(
        "select",
        "Make the event of the capture groups of this regular expression; leave out lines that do not match",
        Takes::Text("REGEX", |options, regex| options.select = Some(regex)),
    ),
    SourceOption::new(
        "stream-by",
        "Name the stream by the capture groups of this regular expression",
        Takes::Text("REGEX", |options, regex| options.stream_by = Some(regex)),
    ),
    SourceOption::new(
        "mask",
        "Replace times, numbers, hexadecimal, UUIDs, addresses and paths by placeholders",
        Takes::Nothing(|options| options.mask = true),
    ),
];

/// The source.
pub(crate) struct Lines;

impl Source for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn about(&self) -> &'static str {
        "text, every line an event"
    }

    fn description(&self) -> Description {
        Description {
            event: "a line, or what --select captures",
            stream: "what --stream-by captures, or the input",
            times: "",
            example: "loopfold loops server.log --mask --stream-by 'thread=(\\d+)'",
        }
    }

    fn options(&self) -> &'static [SourceOption] {
        OPTIONS
    }

    fn fits(&self, head: &[u8]) -> Fit {
        if is_text(head) { Fit::Possible } else { Fit::No }
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let options = context.options;
        if options.select.is_none() && options.stream_by.is_none() && !options.mask {
            read_as_they_are(input, context)
        } else {
            Reading::new(options)?.read(input, context)
        }
    }
}

fn read_as_they_are(input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
    let stream = context.only_stream()?;
    let ending = each_line(input, LONGEST_LINE, context.options.whole_lines, |line| {
        context.push_event(stream, &Event::named(line))
    })?;
    note_ending(ending, stream, context)
}

pub(crate) fn note_ending(ending: Ending, stream: StreamId, context: &mut Context<'_>) -> Result<()> {
    match ending {
        Ending::Complete => Ok(()),
        Ending::NoNewline => context.describe(stream, "final-newline", "no"),
    }
}

/// How the last line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With a newline, or there is no line at all.
    Complete,
    /// Without.
    NoNewline,
}

/// Calls `take` with every line, without its newline. A line longer than `limit` is
/// an error, and so is a last line without a newline if only whole lines will do.
pub(crate) fn each_line(
    input: &mut dyn BufRead,
    limit: usize,
    whole_lines: bool,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Ending> {
    // The beginning of a line that the end of a buffer cuts in two.
    let mut begun = Vec::new();
    let mut lines = 0u64;
    loop {
        let buffer = input.fill_buf()?;
        let length = buffer.len();
        if length == 0 {
            break;
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', buffer) {
            if begun.is_empty() {
                take(&buffer[start..end])?;
            } else {
                begun.extend_from_slice(&buffer[start..end]);
                take(&begun)?;
                begun.clear();
            }
            lines += 1;
            start = end + 1;
        }
        begun.extend_from_slice(&buffer[start..]);
        if begun.len() > limit {
            return Err(Error::option(format_args!(
                "line {}: longer than {limit} bytes; if this is binary data, use --format u8, u16, u32, u64 or bytes",
                lines + 1
            )));
        }
        input.consume(length);
    }
    if begun.is_empty() {
        return Ok(Ending::Complete);
    }
    if whole_lines {
        let reason = "the input ends in the middle of a line; --lenient takes it as it is";
        return Err(Error::damaged(format_args!("line {}", lines + 1), reason));
    }
    take(&begun)?;
    Ok(Ending::NoNewline)
}

/// Reads lines as the options ask.
struct Reading {
    select: Option<Pattern>,
    stream: Option<Pattern>,
    mask: Option<Mask>,
    masked: Vec<u8>,
    streams: Streams,
    last_stream: Option<StreamId>,
    left_out: u64,
}

impl Reading {
    fn new(options: &Options) -> Result<Self> {
        let pattern = |option, text: &Option<String>| {
            text.as_deref().map(|text| Pattern::new(option, text)).transpose()
        };
        Ok(Self {
            select: pattern("--select", &options.select)?,
            stream: pattern("--stream-by", &options.stream_by)?,
            mask: options.mask.then_some(Mask),
            masked: Vec::new(),
            streams: Streams::default(),
            last_stream: None,
            left_out: 0,
        })
    }

    fn read(mut self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        if self.stream.is_none() {
            self.last_stream = Some(context.only_stream()?);
        }
        let ending =
            each_line(input, LONGEST_LINE, context.options.whole_lines, |line| self.take(line, context))?;
        let stream = match self.last_stream {
            Some(stream) => stream,
            None => context.only_stream()?,
        };
        if self.left_out > 0 {
            context.describe(stream, "lines-left-out", &self.left_out.to_string())?;
        }
        note_ending(ending, stream, context)
    }

    fn take(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<()> {
        // Patterns are written for lines as they are seen, also where they end in \r\n.
        let visible = line.strip_suffix(b"\r").unwrap_or(line);
        let selected = match &mut self.select {
            None => Some(line),
            Some(select) => select.find(visible),
        };
        let Some(mut name) = selected else {
            self.left_out += 1;
            return Ok(());
        };
        if let Some(mask) = self.mask {
            self.masked.clear();
            mask.apply(name, &mut self.masked);
            name = &self.masked;
        }
        let stream = match (&mut self.stream, self.last_stream) {
            (None, Some(only)) => only,
            (None, None) => context.only_stream()?,
            (Some(pattern), _) => self.streams.named(pattern.find(visible).unwrap_or_default(), context)?,
        };
        self.last_stream = Some(stream);
        context.push_event(stream, &Event::named(name))
    }
}

/// A regular expression that picks a part of a line: its capture groups, joined by
/// blanks, or all it matches if it has none.
struct Pattern {
    regex: Regex,
    places: CaptureLocations,
    joined: Vec<u8>,
}

impl Pattern {
    fn new(option: &str, text: &str) -> Result<Self> {
        let regex = Regex::new(text).map_err(|error| Error::option(format_args!("{option}: {error}")))?;
        Ok(Self { places: regex.capture_locations(), regex, joined: Vec::new() })
    }

    fn find<'a>(&'a mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let groups = self.places.len() - 1;
        if groups == 0 {
            return self.regex.find(line).map(|found| found.as_bytes());
        }
        self.regex.captures_read(&mut self.places, line)?;
        let mut taken = (1..=groups).filter_map(|group| self.places.get(group));
        if groups == 1 {
            return Some(taken.next().map_or(b"", |(start, end)| &line[start..end]));
        }
        self.joined.clear();
        for (count, (start, end)) in taken.enumerate() {
            if count > 0 {
                self.joined.push(b' ');
            }
            self.joined.extend_from_slice(&line[start..end]);
        }
        Some(&self.joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold::trace::{Collector, Trace};
    use std::io::BufReader;

    fn read(text: &[u8], options: &Options) -> Result<Trace> {
        let mut collector = Collector::default();
        let mut context = Context::new(options, &mut collector, "x.log", false);
        Lines.read(&mut BufReader::with_capacity(7, text), &mut context)?;
        Ok(collector.finish()?)
    }

    /// Each stream as its name, its events and its notes.
    #[track_caller]
    fn check(text: &str, options: &Options, expected: &[&str]) {
        let trace = read(text.as_bytes(), options).unwrap();
        let shown: Vec<String> = trace
            .streams
            .iter()
            .map(|stream| {
                let events: Vec<String> =
                    stream.symbols.iter().map(|&symbol| trace.alphabet.label(symbol)).collect();
                let notes: String =
                    stream.notes.iter().map(|(key, value)| format!(" {key}={value}")).collect();
                format!("{}: {}{notes}", stream.name, events.join("|"))
            })
            .collect();
        assert_eq!(shown, expected);
    }

    fn options(select: &str, stream: &str, mask: bool) -> Options {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Options { select: some(select), stream_by: some(stream), mask, ..Options::default() }
    }

    #[test]
    fn every_line_is_an_event() {
        let plain = Options::default();
        check("", &plain, &["x.log: "]);
        check("\n", &plain, &["x.log: "]);
        check("a\n\nb\n", &plain, &["x.log: a||b"]);
        check(
            "a line that is longer\r\nthan the buffer",
            &plain,
            &["x.log: a line that is longer\\r|than the buffer final-newline=no"],
        );
        assert_eq!(read(b"\n\n", &plain).unwrap().events(), 2);
    }

    #[test]
    fn a_pattern_selects_the_event() {
        let text = "t=1 open a\nnoise\nt=2 read a\r\nt=3 close";
        check(
            text,
            &options(r"open|read|close", "", false),
            &["x.log: open|read|close lines-left-out=1 final-newline=no"],
        );
        check(
            text,
            &options(r"t=\d (\w+)$|t=\d (\w+) (\w+)$", "", false),
            &["x.log: open a|read a|close lines-left-out=1 final-newline=no"],
        );
        check(text, &options("nothing", "", false), &["x.log:  lines-left-out=4 final-newline=no"]);
    }

    #[test]
    fn a_pattern_names_the_stream() {
        let text = "rank 0: send\nrank 1: recv\nstart\nrank 0: wait\n";
        check(
            text,
            &options(r": (\w+)", r"rank \d", false),
            &["rank 0: send|wait lines-left-out=1", "rank 1: recv"],
        );
        check(
            text,
            &options("", r"rank (\d)", false),
            &["0: rank 0: send|rank 0: wait", "1: rank 1: recv", "x.log: start"],
        );
        check("", &options("", "rank", false), &["x.log: "]);
    }

    #[test]
    fn a_mask_is_applied_to_what_is_selected() {
        check(
            "1 took 5ms\n2 took 7ms\n",
            &options(r"took.*", "", true),
            &["x.log: took <num>ms|took <num>ms"],
        );
    }

    #[test]
    fn a_bad_pattern_is_an_error_of_its_option() {
        let error = read(b"", &options("(", "", false)).unwrap_err();
        assert!(error.to_string().starts_with("--select: "), "{error}");
    }

    #[test]
    fn a_line_beyond_the_limit_is_an_error() {
        let text = b"ok\n0123456789abcdef";
        let mut input = BufReader::with_capacity(4, &text[..]);
        let error = each_line(&mut input, 8, false, |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("line 2: longer than 8 bytes"), "{error}");
    }
}
