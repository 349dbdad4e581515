//! Reads logs of functions compiled with `-finstrument-functions`, as the usual hooks print them:
//! `E0x404610` for an entry and `X0x404610` for an exit, one a line, maybe a blank before
//! the address and the place of the call behind it.
//!
//! A function's blocks are the calls it makes: an entry has the field `caller`. An exit
//! that is not that of the innermost call also leaves the calls inside, which a `longjmp`
//! or an exception abandoned; they are counted in the note `abandoned-calls`. Until such
//! an exit they cannot be distinguished from calls that go on. Otherwise events, notes and costs
//! are those of [`crate::frames`]. One stream.

use crate::frames::Frames;
use crate::line_reader::{LineReader, Verdict, fit_of_lines, hexadecimal, split_word};
use crate::{Context, Description, Fit, Result, Source};
use std::io::BufRead;

/// See the module.
pub(crate) struct Finstrument;

impl Source for Finstrument {
    fn name(&self) -> &'static str {
        "finstrument"
    }

    fn about(&self) -> &'static str {
        "entries and exits logged by hooks of -finstrument-functions (E0x…, X0x…)"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["caller", "function"]
    }

    fn description(&self) -> Description {
        Description {
            event: "an entry or an exit of a function",
            stream: "the input",
            times: "",
            example: "loopfold loops calls.log",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Likely, |line| match Step::of(line) {
            Some(Step::Nothing) => Verdict::Neutral,
            Some(_) => Verdict::For,
            None => Verdict::Against,
        })
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut frames = Frames::with_callers()?;
        let outcome = read_lines(input, &mut frames, context);
        frames.finish(context)?;
        outcome
    }
}

fn read_lines(input: &mut dyn BufRead, frames: &mut Frames, context: &mut Context<'_>) -> Result<()> {
    let mut lines = LineReader::new(input);
    while let Some(line) = lines.next_line()? {
        match Step::of(line.bytes) {
            Some(Step::Enter(address)) => {
                let function = frames.function(address)?;
                frames.enter(function, context)?;
            }
            Some(Step::Leave(address)) => {
                let function = frames.function(address)?;
                frames.leave_to(function, context)?;
            }
            Some(Step::Nothing) => {}
            None => context.damaged(line.place(), "expected E or X and an address, such as E0x404610")?,
        }
    }
    Ok(())
}

/// A parsed line.
enum Step<'a> {
    Enter(&'a [u8]),
    Leave(&'a [u8]),
    Nothing,
}

impl<'a> Step<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let (&letter, rest) = match line.trim_ascii().split_first() {
            None => return Some(Step::Nothing),
            Some(split) => split,
        };
        let (address, site) = split_word(rest);
        let is_address = |word: &[u8]| word.strip_prefix(b"0x").and_then(hexadecimal).is_some();
        if !is_address(address) || !(site.is_empty() || is_address(site)) {
            return None;
        }
        match letter {
            b'E' | b'e' => Some(Step::Enter(address)),
            b'X' | b'x' => Some(Step::Leave(address)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, note_of, read};

    #[test]
    fn calls_are_blocks_of_their_callers() {
        let log = "E0x10\nE 0x20 0x14\nX 0x20 0x14\nE0x20\nX0x20\nX0x10\n";
        assert_eq!(Finstrument.fits(log.as_bytes()), Fit::Likely);
        let reading = read(&Finstrument, log, Reading::default());
        assert_eq!(
            events_of(&reading, "input"),
            [
                "enter 0x10",
                "enter 0x20 caller=0x10",
                "leave 0x20",
                "enter 0x20 caller=0x10",
                "leave 0x20",
                "leave 0x10"
            ]
        );
    }

    #[test]
    fn an_outer_exit_leaves_what_was_abandoned() {
        let log = "X0x9\nE0x1\nE0x2\nE0x3\nX0x7\nX0x1\nE0x2\n";
        let reading = read(&Finstrument, log, Reading::default());
        assert_eq!(
            events_of(&reading, "input"),
            [
                "leave 0x9",
                "enter 0x1",
                "enter 0x2 caller=0x1",
                "enter 0x3 caller=0x2",
                "leave 0x7",
                "leave 0x3",
                "leave 0x2",
                "leave 0x1",
                "enter 0x2"
            ]
        );
        for (note, count) in [("abandoned-calls", "2"), ("unmatched-returns", "2"), ("open-calls", "1")] {
            assert_eq!(note_of(&reading, "input", note).unwrap(), count, "{note}");
        }
    }

    #[test]
    fn other_lines_are_damage() {
        for bad in ["E0x1\nE", "E0x1\nY0x1", "E0x1\nE0x1 main", "E0x1\nE404610", "E0x1\nhello"] {
            let error = read(&Finstrument, bad, Reading::default()).unwrap_err();
            assert!(error.starts_with("line 2: "), "{error}");
            assert_eq!(damage_of(&read(&Finstrument, bad, Reading::lenient())), 1);
        }
    }
}
