//! The distinct sequences of events without a loop, with their weights, for a table.

use crate::{JsonWriter, Labels};
use loopfold::Fold;
use loopfold::questions::segments::Segment;
use std::io::{Result, Write};

/// Writes every segment as an object.
pub fn segments<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, segments: &[Segment]) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    out.begin_object()?;
    out.key("segments")?;
    out.begin_array()?;
    for segment in segments {
        out.begin_object()?;
        out.field("stream", fold.stream(segment.stream).name())?;
        out.field("start", segment.start)?;
        out.field("length", segment.events.len())?;
        out.field("depth", u64::from(segment.depth))?;
        out.field("times", segment.times)?;
        out.field("weight", segment.weight())?;
        out.key("events")?;
        labels.events(out, segment.events.iter().copied())?;
        out.end()?;
    }
    out.end()?;
    out.end()
}
