//! Reads MPI calls as text, one a line: `MPI_Send dest=6 tag=2 bytes=212160 comm=0`; a file
//! for each rank, or the rank before each line, as `srun --label` writes it: `3: MPI_Send …`.
//!
//! The name is the event's name, and what follows are its fields; all of them count unless
//! the user chooses others. A line that is not of this form, or that writing its fields again
//! would not give back byte for byte, is an event by its whole text, as in `lines`. So
//! writing the stream gives the file back in any case, but for ranks before lines.
//!
//! Time: one search for newlines, a hash of each line, and a pass over lines that were not
//! seen lately. Memory: the longest line, and a table of at most a megabyte.

use crate::line_reader::{Verdict, fit_of_lines};
use crate::lines::{LONGEST_LINE, each_line, note_ending};
use crate::{Context, Description, Fit, Result, Source, mpi_role};
use loopfold::emit::is_harmless;
use loopfold::trace::{Event, Field, Timing, Value};
use loopfold::{StreamId, Symbol};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::io::BufRead;

/// The source.
pub(crate) struct MpiText;

impl Source for MpiText {
    fn name(&self) -> &'static str {
        "mpi-text"
    }

    fn about(&self) -> &'static str {
        "MPI calls, one a line with its arguments, a file for each rank, or the rank before each line"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["dest", "src", "tag", "bytes", "comm", "root", "op", "n", "done", "newcomm", "color", "key"]
    }

    fn description(&self) -> Description {
        Description {
            event: "an MPI call with its arguments",
            stream: "a rank: the last number in the file name, or before each line as in `3: MPI_Send`",
            times: "",
            example: "loopfold loops rank-*.txt --ignore bytes,tag",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Likely, |line| match line {
            b"" => Verdict::Neutral,
            line => {
                let call = labelled(line).map_or(line, |(_, call)| call);
                match call.starts_with(b"MPI_") && Call::parse(call).is_some() {
                    true => Verdict::For,
                    false => Verdict::Against,
                }
            }
        })
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        // The first line decides.
        let first = input.fill_buf()?;
        let end = memchr::memchr(b'\n', first).unwrap_or(first.len());
        if labelled(&first[..end]).is_some() {
            return read_labelled(input, context);
        }
        let stream = match context.options.rank {
            Some(rank) => context.shared_stream(&format!("rank {rank}"))?,
            None => context.only_stream()?,
        };
        let mut recent = RecentLines::default();
        let ending = each_line(input, LONGEST_LINE, context.options.whole_lines, |line| {
            let symbol = recent.symbol(line, context)?;
            context.push(stream, symbol, Timing::UNKNOWN)
        })?;
        note_ending(ending, stream, context)
    }
}

/// Reads lines with the rank before each.
fn read_labelled(input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
    let mut recent = RecentLines::default();
    let mut streams: HashMap<u32, StreamId> = HashMap::new();
    let mut number = 0u64;
    each_line(input, LONGEST_LINE, context.options.whole_lines, |line| {
        number += 1;
        let Some((rank, call)) = labelled(line) else {
            return context.damaged(
                format_args!("line {number}"),
                "there is no rank before it, as there is before the first",
            );
        };
        let stream = match streams.entry(rank) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(context.shared_stream(&format!("rank {rank}"))?),
        };
        let symbol = recent.symbol(call, context)?;
        context.push(stream, symbol, Timing::UNKNOWN)
    })?;
    Ok(())
}

/// The rank before a line, and the rest of the line: `3: MPI_Send dest=1`.
fn labelled(line: &[u8]) -> Option<(u32, &[u8])> {
    let colon = line.iter().take(LONGEST_LABEL).position(|&byte| byte == b':')?;
    let digits = line[..colon].trim_ascii_start();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let rank = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    Some((rank, line[colon + 1..].strip_prefix(b" ")?))
}

/// The digits of a rank, blanks or zeros before it, and a colon.
const LONGEST_LABEL: usize = 12;

/// Lines seen lately and their symbols: calls repeat themselves, and to take a line apart
/// costs several times as much as to find it here. A line replaces the one in its place.
struct RecentLines {
    places: Vec<(Vec<u8>, Option<Symbol>)>,
    hasher: foldhash::fast::RandomState,
}

const PLACES: usize = 1 << 12;
/// Longer lines are not kept.
const LONGEST_KEPT: usize = 256;

impl Default for RecentLines {
    fn default() -> Self {
        Self { places: vec![Default::default(); PLACES], hasher: Default::default() }
    }
}

impl RecentLines {
    fn symbol(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<Symbol> {
        if line.len() > LONGEST_KEPT {
            return intern(line, context);
        }
        let (known, symbol) = &mut self.places[self.hasher.hash_one(line) as usize % PLACES];
        match symbol {
            Some(symbol) if known == line => Ok(*symbol),
            _ => {
                known.clear();
                known.extend_from_slice(line);
                Ok(*symbol.insert(intern(line, context)?))
            }
        }
    }
}

fn intern(line: &[u8], context: &mut Context<'_>) -> Result<Symbol> {
    match Call::parse(line) {
        None => context.intern(&Event::named(line)),
        Some(Call { name, fields, count }) => {
            context.intern(&Event { role: mpi_role(name), fields: &fields[..count], ..Event::named(name) })
        }
    }
}

/// A line taken apart.
struct Call<'a> {
    name: &'a [u8],
    /// The first `count` are its fields.
    fields: [Field<'a>; MOST_FIELDS],
    count: usize,
}

/// No call has more arguments that matter.
const MOST_FIELDS: usize = 16;

impl<'a> Call<'a> {
    /// Returns `None` if the line is not of that form.
    fn parse(line: &'a [u8]) -> Option<Self> {
        // Writing escapes what is not harmless, so such a line must stay as it is.
        let is_plain = line.iter().all(|byte| matches!(byte, b' '..=b'~'));
        let text = std::str::from_utf8(line).ok().filter(|text| is_plain || text.chars().all(is_harmless))?;
        let mut words = text.split(' ');
        let name = words.next().filter(|name| !name.is_empty() && !name.contains('='))?.as_bytes();
        let mut call =
            Self { name, fields: [Field { key: "", value: Value::Integer(0) }; MOST_FIELDS], count: 0 };
        for word in words {
            let (key, value) = word.split_once('=')?;
            let known = &call.fields[..call.count];
            if key.is_empty() || value.is_empty() || known.iter().any(|field| field.key == key) {
                return None;
            }
            *call.fields.get_mut(call.count)? = Field { key, value: value_of(value) };
            call.count += 1;
        }
        Some(call)
    }
}

/// A number if it is written as numbers are.
fn value_of(text: &str) -> Value<'_> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.len() <= 18
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (!digits.starts_with('0') || text == "0");
    match text.parse() {
        Ok(number) if is_plain => Value::Integer(number),
        _ => Value::Text(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, events_of, read, streams_of};
    use crate::{Options, guess};
    use loopfold::trace::Role;
    use loopfold_testing::Rng;

    const TEXT: &str =
        "MPI_Init\nMPI_Send dest=6 tag=2 bytes=8 comm=0\nMPI_Allreduce op=SUM bytes=40 comm=0\n";

    fn reading(rank: Option<u64>) -> Reading {
        Reading { options: Options { rank, ..Options::default() }, ..Reading::default() }
    }

    #[test]
    fn calls_have_fields() {
        let outcome = read(&MpiText, TEXT, reading(Some(5)));
        assert_eq!(streams_of(&outcome), ["rank 5"]);
        assert_eq!(events_of(&outcome, "rank 5").join("\n") + "\n", TEXT);
        let (trace, _) = outcome.unwrap();
        let send = trace.alphabet.meaning(trace.streams[0].symbols[1]);
        assert_eq!(send.role, Role::Send);
        assert_eq!(send.field("dest"), Some(Value::Integer(6)));
        let sum = trace.alphabet.meaning(trace.streams[0].symbols[2]);
        assert_eq!((sum.role, sum.field("op")), (Role::Collective, Some(Value::Text(b"SUM"))));
        let by_dest = read(
            &MpiText,
            TEXT,
            Reading { options: reading(Some(5)).options, ..Reading::by(&["name", "dest"]) },
        );
        assert_eq!(events_of(&by_dest, "rank 5"), ["MPI_Init", "MPI_Send dest=6", "MPI_Allreduce"]);
    }

    #[test]
    fn ranks_may_be_before_lines() {
        let text = "0: MPI_Init\n01: MPI_Init\n 10: MPI_Send dest=1\n1: MPI_Recv src=10\n";
        let outcome = read(&MpiText, text, reading(Some(5)));
        assert_eq!(streams_of(&outcome), ["rank 0", "rank 1", "rank 10"]);
        assert_eq!(events_of(&outcome, "rank 1"), ["MPI_Init", "MPI_Recv src=10"]);
        assert_eq!(events_of(&outcome, "rank 10"), ["MPI_Send dest=1"]);
        assert_eq!(guess(text.as_bytes(), None).map(|source| source.name()), Some("mpi-text"));
        let mixed = "0: MPI_Init\nMPI_Send dest=1\n";
        let error = read(&MpiText, mixed, reading(None)).unwrap_err().to_string();
        assert!(error.contains("line 2: there is no rank before it"), "{error}");
        // Only the first line decides.
        let plain = read(&MpiText, "MPI_Init\n0: MPI_Init\n", reading(Some(5)));
        assert_eq!(events_of(&plain, "rank 5"), ["MPI_Init", "0: MPI_Init"]);
    }

    #[test]
    fn it_is_known_by_its_lines() {
        let name_of = |text: &str| guess(text.as_bytes(), None).map(|source| source.name());
        assert_eq!(name_of(TEXT), Some("mpi-text"));
        assert_eq!(name_of("MPI_Send\nMPI_Recv\nsomething else\n"), Some("mpi-text"));
        assert_eq!(name_of("MPI_Send(1, 2) = 0\n"), Some("ltrace"));
        assert_eq!(name_of("MPI_Send to 4 took 5 s\n"), Some("lines"));
        assert_eq!(name_of("MPI_Send\nsomething else\n"), Some("lines"));
    }

    #[test]
    fn whatever_a_line_is_it_is_written_again() {
        let texts =
            ["MPI_Send", "dest", "a=b", "=", "", "-0", "0", "7", "007", "-7", "\u{1b}", "é", "\u{202e}"];
        let more = ["\\", "9223372036854775807", "9223372036854775808", "\r", "'", "\"", "\t", "x=y=z", "-"];
        let texts = [&texts[..], &more].concat();
        let mut rng = Rng::new(5);
        let mut with_fields = 0;
        for _ in 0..50_000 {
            let mut text = || texts[rng.below(texts.len())];
            let mut line = text().to_string();
            for word in 0..text().len() % 4 {
                line += &format!(" {}{word}={}", text(), text());
            }
            let Some(Call { name, fields, count }) = Call::parse(line.as_bytes()) else { continue };
            with_fields += usize::from(count > 0);
            let mut alphabet = loopfold::trace::Alphabet::default();
            let event = Event { role: mpi_role(name), fields: &fields[..count], ..Event::named(name) };
            let symbol = alphabet.intern(&event, None).unwrap();
            assert_eq!(alphabet.label(symbol), line);
        }
        assert!(with_fields > 1000);
    }
}
