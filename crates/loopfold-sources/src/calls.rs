//! Reads control flow as text: `call NAME` enters a function, `return` leaves it, and any other
//! line is a block of the current function, by name or number. `thread ID` says in which
//! thread the lines after it happen. Blanks around a line and empty lines do not count.
//!
//! Events, notes and costs are those of [`crate::frames`]. There is a stream per thread,
//! `thread ID`, and that of the input for what comes before any is named.

use crate::frames::Frames;
use crate::guess::is_text;
use crate::line_reader::{LineReader, decimal};
use crate::{Context, Description, Fit, Result, Source};
use loopfold::trace::Name;
use std::io::BufRead;

/// See the module.
pub(crate) struct Calls;

impl Source for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn about(&self) -> &'static str {
        "control flow as text: call NAME, return, blocks, one a line"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["function"]
    }

    fn description(&self) -> Description {
        Description {
            event: "a call, a block or a return",
            stream: "a thread, or the input",
            times: "",
            example: "loopfold find run.calls 'main: 1 2'",
        }
    }

    /// Any line can be a block, so the calls must be many, and one must come first.
    fn fits(&self, head: &[u8]) -> Fit {
        const MOST_BLOCKS_PER_CALL: usize = 20;
        let mut lines = head.split(|&byte| byte == b'\n').map(Step::of).filter(|step| *step != Step::Nothing);
        let begins_well = |step: &Step<'_>| matches!(step, Step::Call(_) | Step::Thread(_));
        if !lines.next().is_some_and(|first| begins_well(&first)) || !is_text(head) {
            return Fit::No;
        }
        let (mut calls, mut returns, mut others) = (1, 0, 0);
        for step in lines {
            match step {
                Step::Call(_) => calls += 1,
                Step::Return => returns += 1,
                Step::Cut(_) => return Fit::No,
                _ => others += 1,
            }
        }
        let is_likely = returns > 0 && others <= MOST_BLOCKS_PER_CALL * (calls + returns);
        if is_likely { Fit::Likely } else { Fit::No }
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut frames = Frames::new()?;
        let outcome = read_lines(input, &mut frames, context);
        // Whoever keeps what came before an error gets its notes too.
        frames.finish(context)?;
        outcome
    }
}

fn read_lines(input: &mut dyn BufRead, frames: &mut Frames, context: &mut Context<'_>) -> Result<()> {
    let mut lines = LineReader::new(input);
    while let Some(line) = lines.next_line()? {
        match Step::of(line.bytes) {
            Step::Call(name) => {
                let function = frames.function(name)?;
                frames.enter(function, context)?;
            }
            Step::Return => frames.leave(context)?,
            Step::Block(block) => frames.block(block_name(block), context)?,
            Step::Thread(id) => frames.switch(id, context)?,
            Step::Cut(expected) => context.damaged(line.place(), expected)?,
            Step::Nothing => {}
        }
    }
    Ok(())
}

/// A parsed line.
#[derive(PartialEq, Eq)]
enum Step<'a> {
    Call(&'a [u8]),
    Return,
    Block(&'a [u8]),
    Thread(&'a [u8]),
    /// A word that needs another one, without it.
    Cut(&'static str),
    Nothing,
}

impl<'a> Step<'a> {
    fn of(line: &'a [u8]) -> Self {
        let line = line.trim_ascii();
        match line {
            b"" => Step::Nothing,
            b"return" => Step::Return,
            b"call" => Step::Cut("call without the name of a function"),
            b"thread" => Step::Cut("thread without its name or number"),
            [b'c', b'a', b'l', b'l', b' ' | b'\t', name @ ..] => Step::Call(name.trim_ascii_start()),
            [b't', b'h', b'r', b'e', b'a', b'd', b' ' | b'\t', id @ ..] => {
                Step::Thread(id.trim_ascii_start())
            }
            block => Step::Block(block),
        }
    }
}

/// A block that is written as a number is one, so that text and binary form are the same
/// trace; numbers that would be written differently again stay text.
fn block_name(text: &[u8]) -> Name<'_> {
    let is_plain = text == b"0" || text.first() != Some(&b'0');
    match decimal(text).filter(|_| is_plain) {
        Some(number) => Name::Integer(number),
        None => Name::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, note_of, read, streams_of};
    use loopfold::trace::Role;

    #[test]
    fn events_have_their_functions() {
        let text = "call main\n  1\n  call f\r\n    1\n\n    exit block\n  return\n  2\n007\nreturn\n";
        assert_eq!(Calls.fits(text.as_bytes()), Fit::Likely);
        let reading = read(&Calls, text, Reading::default());
        assert_eq!(
            events_of(&reading, "input"),
            [
                "enter main",
                "1 function=main",
                "enter f",
                "1 function=f",
                "exit block function=f",
                "leave f",
                "2 function=main",
                "007 function=main",
                "leave main"
            ]
        );
        let (trace, _) = reading.as_ref().unwrap();
        let meanings: Vec<_> =
            trace.alphabet.symbols().map(|symbol| trace.alphabet.meaning(symbol)).collect();
        assert_eq!((meanings[1].role, meanings[1].name), (Role::Block, Name::Integer(1)));
        assert_eq!((meanings[7].role, meanings[7].name), (Role::Block, Name::Text(b"007")));
        assert_eq!(meanings[5].field("function"), Some(loopfold::trace::Value::Text(b"f")));
        assert_eq!((note_of(&reading, "input", "open-calls"), damage_of(&reading)), (None, 0));
    }

    #[test]
    fn frames_that_are_not_known_are_counted_and_no_error() {
        let text = "B1\nreturn\nB2\nreturn\ncall f\nB1\ncall g\n";
        let reading = read(&Calls, text, Reading::default());
        assert_eq!(
            events_of(&reading, "input"),
            ["B1 function=?", "leave ?", "B2 function=?", "leave ?", "enter f", "B1 function=f", "enter g"]
        );
        assert_eq!(note_of(&reading, "input", "open-calls").unwrap(), "2");
        assert_eq!(note_of(&reading, "input", "unmatched-returns").unwrap(), "2");
    }

    #[test]
    fn threads_have_their_own_stacks() {
        let text = "call main\nthread 7\ncall work\nB\nthread a b\nreturn\nthread 7\nB\nreturn\n";
        let reading = read(&Calls, text, Reading::default());
        assert_eq!(streams_of(&reading), ["input", "thread 7", "thread a b"]);
        assert_eq!(
            events_of(&reading, "thread 7"),
            ["enter work", "B function=work", "B function=work", "leave work"]
        );
        assert_eq!(events_of(&reading, "thread a b"), ["leave ?"]);
        assert_eq!(note_of(&reading, "input", "open-calls").unwrap(), "1");
        assert_eq!(note_of(&reading, "thread 7", "open-calls"), None);
        assert_eq!(note_of(&reading, "thread a b", "unmatched-returns").unwrap(), "1");
        assert_eq!(streams_of(&read(&Calls, "thread \u{e9}\nx\n", Reading::default())), ["thread \u{e9}"]);
        // Two identifiers that are not UTF-8 and read the same are one thread.
        assert_eq!(
            streams_of(&read(&Calls, b"thread \xff\nx\nthread \xfe\nx\n", Reading::default())).len(),
            1
        );
        assert_eq!(streams_of(&read(&Calls, "", Reading::default())), ["input"]);
    }

    #[test]
    fn what_is_cut_is_damage() {
        for bad in ["call f\ncall\n", "call f\n call  ", "1\nthread"] {
            let error = read(&Calls, bad, Reading::default()).unwrap_err();
            assert!(error.starts_with("line 2: "), "{error}");
            assert_eq!(damage_of(&read(&Calls, bad, Reading::lenient())), 1);
        }
        // Words that only begin so are blocks.
        let reading = read(&Calls, "callee\nreturned\nthreads\n", Reading::default());
        assert_eq!(reading.as_ref().unwrap().0.events(), 3);
    }

    #[test]
    fn only_text_that_begins_with_a_call_is_taken_for_it() {
        assert_eq!(Calls.fits(b"thread 1\ncall f\nreturn\n"), Fit::Likely);
        for other in [&b"call mom\nbuy milk\n"[..], b"open\ncall f\nreturn\n", b"", b"call f\n\0\nreturn\n"] {
            assert_eq!(Calls.fits(other), Fit::No);
        }
        assert_eq!(
            Calls.fits(&[b"call f\nreturn\n", &b"a line of a log\n".repeat(100)[..]].concat()),
            Fit::No
        );
    }
}
