//! Windows that are similar to a pattern, and occurrences of patterns of several processes.

use crate::{JsonWriter, rounded};
use loopfold::questions::similar::{EnclosingPatterns, JoinedOccurrences, SimilarFound, SimilarPlace};
use loopfold::{Fold, StreamId};
use std::io::{Result, Write};

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The most edits of a window.
    pub edits: usize,
    /// The length of the n-grams.
    pub ngram: usize,
    /// The most occurrences to write.
    pub most: u64,
}

/// Writes similar windows, with the patterns in which they lie, and joined occurrences.
pub fn similar<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    asked: Asked,
    found: &SimilarFound,
    larger: Option<&EnclosingPatterns<'_, '_>>,
) -> Result<()> {
    out.begin_object()?;
    out.field("edits", asked.edits)?;
    out.field("ngram", asked.ngram)?;
    out.field("count", found.count)?;
    out.field("exact", found.exact)?;
    out.field("windows", found.filtered.places)?;
    out.field("verified", found.filtered.verified)?;
    out.field("left_out", found.count - found.matches.len() as u64)?;
    out.key("matches")?;
    out.begin_array()?;
    for &(stream, place) in &found.matches {
        begin_place(out, fold, stream, place)?;
        out.field("within", larger.and_then(|larger| larger.smallest_around(stream, place)))?;
        out.end()?;
    }
    out.end()?;
    if let Some(joined) = &found.joined {
        occurrences(out, fold, joined, asked.most)?;
    }
    out.end()
}

fn occurrences<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    joined: &JoinedOccurrences,
    most: u64,
) -> Result<()> {
    out.field("order", joined.order.as_ref())?;
    out.field("pattern_events", joined.pattern_events)?;
    out.field("occurrence_count", joined.occurrences.len())?;
    out.key("occurrences")?;
    out.begin_array()?;
    for (occurrence, _) in joined.occurrences.iter().zip(0..most) {
        out.begin_object()?;
        out.field("distance", occurrence.distance)?;
        out.field("error", rounded(occurrence.error, 6))?;
        out.field("events", occurrence.events())?;
        out.key("processes")?;
        out.begin_array()?;
        for &(process, place) in &occurrence.windows {
            begin_place(out, fold, joined.streams[&process], place)?;
            out.end()?;
        }
        out.end()?;
        out.end()?;
    }
    out.end()
}

/// A window whose object is still open.
fn begin_place<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    stream: StreamId,
    SimilarPlace { start, end, length, distance }: SimilarPlace,
) -> Result<()> {
    out.begin_object()?;
    out.field("stream", fold.stream(stream).name())?;
    out.field("start", fold.whole_position(stream, start))?;
    out.field("end", fold.whole_position(stream, end))?;
    out.field("length", length)?;
    out.field("distance", distance)
}
