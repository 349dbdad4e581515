//! Reads every byte as an event: traces of one letter per instruction, without separators.
//!
//! Such files are often written by hand-made tools that print a newline at the end; it is noted
//! beside the stream, so that it is not an event, but writing the stream gives the file back.
//! Memory: the buffer and a symbol for each byte value.

use crate::guess::is_text;
use crate::{Context, Description, Fit, Result, Source};
use loopfold::trace::{Event, Timing};
use loopfold::{StreamId, Symbol};
use std::io::BufRead;

/// Shorter lines are just lines.
const LONG_LINE: usize = 4096;

/// Prose and data in one line use more characters than this, letters of a trace do not.
const FEW_LETTERS: usize = 64;

/// The source.
pub(crate) struct Bytes;

impl Source for Bytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn about(&self) -> &'static str {
        "every byte an event, such as a letter per instruction"
    }

    fn description(&self) -> Description {
        Description {
            event: "a byte; one newline at the very end is not an event",
            stream: "the input",
            times: "",
            example: "loopfold loops letters.txt --format bytes",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        let letters = head.strip_suffix(b"\n").unwrap_or(head);
        if letters.len() >= LONG_LINE
            && memchr::memchr(b'\n', letters).is_none()
            && distinct(letters) <= FEW_LETTERS
            && !is_json(letters)
            && is_text(letters)
        {
            Fit::Likely
        } else {
            Fit::No
        }
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut letters = Letters { stream: context.only_stream()?, symbols: [None; 256] };
        // A newline that is the last byte so far: an event only if more follows.
        let mut held = false;
        loop {
            let buffer = input.fill_buf()?;
            let length = buffer.len();
            let Some((&last, front)) = buffer.split_last() else { break };
            if held {
                letters.push(b"\n", context)?;
            }
            held = last == b'\n';
            letters.push(if held { front } else { buffer }, context)?;
            input.consume(length);
        }
        if held {
            context.describe(letters.stream, "final-newline", "yes")?;
        }
        Ok(())
    }
}

/// The stream, and the symbols of the bytes seen so far.
struct Letters {
    stream: StreamId,
    symbols: [Option<Symbol>; 256],
}

impl Letters {
    fn push(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Result<()> {
        for byte in bytes {
            let symbol = match &mut self.symbols[usize::from(*byte)] {
                Some(symbol) => *symbol,
                unknown => *unknown.insert(context.intern(&Event::named(std::slice::from_ref(byte)))?),
            };
            context.push(self.stream, symbol, Timing::UNKNOWN)?;
        }
        Ok(())
    }
}

/// A document in one line, as programs write them; it too can do with few letters.
fn is_json(line: &[u8]) -> bool {
    matches!(line, [b'{' | b'[', ..]) && line.contains(&b'"')
}

fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    for &byte in bytes {
        seen[usize::from(byte)] = true;
    }
    seen.iter().filter(|&&seen| seen).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use loopfold::trace::{Collector, Name};
    use std::io::BufReader;

    #[test]
    fn the_file_can_be_given_back() {
        for text in [&b""[..], b"\n", b"\n\n", b"abca", b"abca\n", b"a\nb\n\n", b"\xff\0\n"] {
            for buffer in 1..5 {
                let options = Options::default();
                let mut collector = Collector::default();
                let mut context = Context::new(&options, &mut collector, "x", false);
                Bytes.read(&mut BufReader::with_capacity(buffer, text), &mut context).unwrap();
                let trace = collector.finish().unwrap();
                let stream = &trace.streams[0];
                let mut back = Vec::new();
                for &symbol in &stream.symbols {
                    let Name::Text(name) = trace.alphabet.meaning(symbol).name else { panic!("a number") };
                    back.extend_from_slice(name);
                }
                if stream.notes.contains(&("final-newline".into(), "yes".into())) {
                    back.push(b'\n');
                }
                assert_eq!(back, text);
                assert!(stream.symbols.len() == text.len() || text.ends_with(b"\n"));
            }
        }
    }
}
