//! Printing: numbers and times as people write them, labels of events, and nests on a
//! terminal. The shapes of JSON are in `loopfold-json`.

pub(crate) mod calls;
mod json;
mod labels;
mod names;
mod near;
mod nest;
mod numbers;
mod places;
mod screen;
mod subpath;
mod sums;

pub(crate) use json::{JsonOut, print_json, print_json_line};
pub(crate) use labels::{Labels, Names, filled, plain, shorten, wrapped};
pub(crate) use names::shorten_name;
pub(crate) use near::{change as near_change, heading as near_heading, times as near_times};
pub(crate) use nest::{
    ClassView, NestPrinter, Settings as NestSettings, busy_share, middle_and_spread, phase_remarks,
};
pub(crate) use numbers::{TimeUnit, bytes, count, duration, events, percent, plural, ratio, spread};
pub(crate) use places::Clock;
pub(crate) use subpath::{body_line, nest_lines, subpath_lines};
pub(crate) use sums::{Costs, metric_costs};

use crate::call;
use anyhow::Result;
use screen::Screen;
use std::io::{IsTerminal as _, Write};

/// Where text for people is printed: standard output, with colours on a terminal.
pub(crate) fn stdout() -> Box<dyn Write> {
    match call::is_one() {
        true => {
            let unstyled = anstream::StripStream::new(Box::new(call::Output) as Box<dyn Write>);
            Box::new(Screen::with_styles(unstyled))
        }
        false => Box::new(Screen::with_styles(anstream::stdout().lock())),
    }
}

/// Where bytes are printed as they are, unless a terminal would obey them.
pub(crate) fn raw_stdout() -> Box<dyn Write> {
    let stdout = || std::io::stdout().lock();
    match call::is_one() {
        true => Box::new(call::Output),
        false if is_on_terminal() => Box::new(Screen::new(stdout())),
        false => Box::new(stdout()),
    }
}

/// What is written to a file of the user, unless that is a terminal, which would obey it.
pub(crate) fn for_file<'a>(is_terminal: bool, out: &'a mut dyn Write) -> Box<dyn Write + 'a> {
    if is_terminal { Box::new(Screen::new(out)) } else { Box::new(out) }
}

/// Whether standard output is shown to somebody.
pub(crate) fn is_on_terminal() -> bool {
    !call::is_one() && std::io::stdout().is_terminal()
}

/// The characters of a line: those of the terminal, or of `COLUMNS`, or 80.
pub(crate) fn line_width() -> usize {
    if let Some(width) = call::with(|call| call.width) {
        return width.max(40);
    }
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map(|(width, _)| usize::from(width.0)).or_else(columns).unwrap_or(80).clamp(40, 200)
}

/// Where the events of a row are written: beside its numbers, or below them if that leaves too
/// little room.
#[derive(Clone, Copy)]
pub(crate) struct Beside {
    indent: usize,
    room: usize,
    below: bool,
}

impl Beside {
    /// Numbers that take so many characters.
    pub(crate) fn new(numbers: usize) -> Self {
        /// The indentation of events below numbers, and the least room for them beside.
        const BELOW: usize = 4;
        const LEAST: usize = 36;
        let room = line_width().saturating_sub(numbers);
        match room < LEAST {
            true => Self { indent: BELOW, room: line_width() - BELOW, below: true },
            false => Self { indent: numbers, room, below: false },
        }
    }

    /// The characters of a line.
    pub(crate) fn room(self) -> usize {
        self.room
    }

    /// Writes the lines of a row whose numbers are written.
    pub(crate) fn write(self, out: &mut impl Write, lines: &[String]) -> Result<()> {
        let between = format!("\n{}", " ".repeat(self.indent));
        let first = if self.below { &between } else { "" };
        Ok(writeln!(out, "{first}{}", lines.join(&between))?)
    }
}

/// Prints notes, on standard error.
pub(crate) fn notes(notes: &[String]) {
    if call::with(|call| call.notes.extend(notes.iter().map(plain))).is_some() {
        return;
    }
    let style = anstyle::AnsiColor::Yellow.on_default();
    for note in notes {
        remark(&format!("{style}note:{style:#} {}", plain(note)));
    }
}

/// Prints an error, on standard error.
pub(crate) fn error(error: &anyhow::Error) {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    // Messages may have several lines, such as those about regular expressions.
    let message: Vec<String> = format!("{error:#}").lines().map(plain).collect();
    remark(&format!("{style}error:{style:#} {}", message.join("\n       ")));
}

/// Prints a line on standard error. Nobody can be notified if that fails, and what was done is done.
pub(crate) fn remark(line: &str) {
    let mut screen = Screen::with_styles(anstream::stderr().lock());
    let _ = writeln!(screen, "{line}").and_then(|()| screen.flush());
}

/// Prints how many rows of a table are not shown.
pub(crate) fn more(out: &mut impl Write, left_out: usize) -> Result<()> {
    if left_out > 0 {
        writeln!(out, "{:>15}  … and {} more (--top 0 shows all)", "", count(left_out as u64))?;
    }
    Ok(())
}
