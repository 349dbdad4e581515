//! The events of all streams, with their times if they are wanted. Written while they are
//! unfolded: memory does not depend on how many there are.

use crate::{JsonWriter, Labels};
use loopfold::{Fold, Result};
use std::io::Write;

/// Writes the events of each stream from position `from` up to, but not including, `to`.
pub fn cat<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, from: u64, to: u64, times: bool) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    out.begin_object()?;
    out.key("streams")?;
    out.begin_array()?;
    for stream in fold.streams() {
        out.begin_object()?;
        out.field("stream", stream.name())?;
        out.field("from", from)?;
        out.key("events")?;
        labels.events(out, fold.window(stream.root(), from, to))?;
        if times {
            let end = to.min(fold.length(stream.root()));
            let columns = [("start_ns", &stream.times().starts), ("duration_ns", &stream.times().durations)];
            for (key, column) in columns {
                let Some(column) = column else { continue };
                let mut reader = column.reader();
                out.key(key)?;
                out.begin_array()?;
                for position in from.min(end)..end {
                    out.value(reader.get(position as usize)?)?;
                }
                out.end()?;
            }
        }
        out.end()?;
    }
    out.end()?;
    labels.cut_field(out)?;
    Ok(out.end()?)
}
