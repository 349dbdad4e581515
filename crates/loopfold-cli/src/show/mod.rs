//! Printing: numbers and times as people write them, labels of events, and nests on a
//! terminal and as JSON.

mod json;
mod labels;
mod nest;
mod numbers;
mod places;
mod subpath;

pub(crate) use json::{nest as nest_json, times as times_json};
pub(crate) use labels::{Labels, plain, shorten};
pub(crate) use nest::{ClassView, NestPrinter, Settings as NestSettings};
pub(crate) use numbers::{bytes, count, duration, events, percent, plural, ratio, rounded};
pub(crate) use places::Clock;
pub(crate) use subpath::subpath_lines;

use anyhow::Result;
use std::io::Write;

/// Prints what is not a result.
pub(crate) fn notes(notes: &[String]) {
    let style = anstyle::AnsiColor::Yellow.on_default();
    for note in notes {
        anstream::eprintln!("{style}note:{style:#} {}", plain(note));
    }
}

/// Prints one JSON object and a newline.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
