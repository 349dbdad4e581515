//! Measures a run-length FM index of the same events: its size, the time to build it, and the time
//! for a thousand sequences. It counts plain sequences of events and has no functions, so it cannot
//! find a path that calls interrupt.

use super::{Subject, milliseconds};
use crate::clock::{best, timed};
use crate::table::{Column, grouped};
use anyhow::{Result, anyhow};
use fm_index::{RLFMIndex, SearchIndex as _, Text};
use std::time::Duration;

pub(super) const COLUMNS: [Column; 9] = [
    Column::Text("trace"),
    Column::Number("events"),
    Column::Number("FM bytes"),
    Column::Number("FM build ms"),
    Column::Number("1,000 sequences ms"),
    Column::Number("archive + index"),
    Column::Number("fold, write ms"),
    Column::Number("1,000 paths ms"),
    Column::Text("smaller, built and answered faster"),
];

pub(super) const TITLE: &str = "A run-length FM index of the events, which knows no functions, beside the archive with its index of functions";

/// The number of sequences.
const QUERIES: usize = 1_000;

/// The FM index of a trace beside our archive and the time for as many paths.
pub(super) fn row(subject: &Subject, searching: Duration) -> Result<Vec<String>> {
    // Zero is the end of the text.
    let events: Vec<u32> = subject.symbols.iter().map(|symbol| symbol.raw() + 1).chain([0]).collect();
    let largest = events.iter().copied().max().unwrap_or(1);
    let text = Text::with_max_character(&events, largest);
    let (index, build) = timed(|| RLFMIndex::new(&text));
    let index = index.map_err(|error| anyhow!("the FM index: {error:?}"))?;
    let step = (events.len() / QUERIES).max(4);
    let sequences: Vec<&[u32]> =
        (0..QUERIES).filter_map(|number| events.get(number * step..number * step + 4)).collect();
    let (_, counting) =
        best(|| sequences.iter().map(|sequence| index.search(sequence).count()).sum::<usize>());
    let ours = subject.archive_bytes + subject.index_bytes;
    let is_better = (ours as usize) < index.heap_size()
        && subject.build < build
        && subject.build + searching < build + counting;
    Ok(vec![
        subject.name.clone(),
        grouped(subject.symbols.len() as u128),
        grouped(index.heap_size() as u128),
        milliseconds(build),
        milliseconds(counting),
        grouped(ours),
        milliseconds(subject.build),
        milliseconds(searching),
        if is_better { "met" } else { "MISSED" }.to_string(),
    ])
}
