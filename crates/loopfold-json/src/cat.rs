//! The events of all streams, with their times if they are wanted. Written while they are
//! unfolded: memory does not depend on how many there are.

use crate::{JsonWriter, Labels};
use loopfold::trace::Times;
use loopfold::{Fold, Result};
use std::io::Write;

/// Writes the events of each stream.
pub fn cat<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, times: bool) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    out.begin_object()?;
    out.key("streams")?;
    out.begin_array()?;
    for stream in fold.streams() {
        out.begin_object()?;
        out.field("stream", stream.name())?;
        out.field("from", stream.first_position())?;
        out.key("events")?;
        labels.events(out, fold.unfold(stream.root()))?;
        if times {
            let columns = [("start_ns", &stream.times().starts), ("duration_ns", &stream.times().durations)];
            for (key, column) in columns {
                let Some(column) = column else { continue };
                let mut reader = column.reader();
                out.key(key)?;
                out.begin_array()?;
                for position in 0..column.len() {
                    out.value(reader.get(position)?)?;
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

/// Writes every event as an object, for a table.
pub fn events<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, times: bool) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    out.begin_object()?;
    out.key("events")?;
    out.begin_array()?;
    for stream in fold.streams() {
        let Times { starts, durations, .. } = stream.times();
        let mut columns = [
            ("start_ns", starts.as_ref().map(|column| column.reader()), Times::UNKNOWN_START),
            ("duration_ns", durations.as_ref().map(|column| column.reader()), Times::UNKNOWN_DURATION),
        ];
        for (symbol, index) in fold.unfold(stream.root()).zip(0usize..) {
            out.begin_object()?;
            out.field("stream", stream.name())?;
            out.field("position", stream.first_position().saturating_add(index as u64))?;
            out.key("event")?;
            labels.event(out, symbol)?;
            for (key, column, unknown) in columns.iter_mut().filter(|_| times) {
                let Some(column) = column else { continue };
                let time = column.get(index)?;
                out.field(key, (time != *unknown).then_some(time))?;
            }
            out.end()?;
        }
    }
    out.end()?;
    Ok(out.end()?)
}
