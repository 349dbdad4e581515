//! Printing: numbers and times as people write them, labels of events, and nests on a
//! terminal. The shapes of JSON are in `loopfold-json`.

pub(crate) mod calls;
mod json;
mod labels;
mod near;
mod nest;
mod numbers;
mod places;
mod subpath;
mod sums;

pub(crate) use json::{print_json, print_json_line};
pub(crate) use labels::{Labels, plain, shorten};
pub(crate) use near::{change as near_change, summary as near_summary, times as near_times};
pub(crate) use nest::{ClassView, NestPrinter, Settings as NestSettings};
pub(crate) use numbers::{bytes, count, duration, events, percent, plural, ratio};
pub(crate) use places::Clock;
pub(crate) use subpath::{nest_lines, subpath_lines};
pub(crate) use sums::{Costs, metric_costs};

use anyhow::Result;
use std::io::Write;

/// Prints notes, on standard error.
pub(crate) fn notes(notes: &[String]) {
    let style = anstyle::AnsiColor::Yellow.on_default();
    for note in notes {
        anstream::eprintln!("{style}note:{style:#} {}", plain(note));
    }
}

/// Prints how many rows of a table are not shown.
pub(crate) fn more(out: &mut impl Write, left_out: usize) -> Result<()> {
    if left_out > 0 {
        writeln!(out, "{:>15}  … and {} more (--top 0 shows all)", "", count(left_out as u64))?;
    }
    Ok(())
}
