//! Archives: what was written to one (`fold`, `merge`), and what was found in some (`verify`).

use crate::JsonWriter;
use loopfold::Fold;
use loopfold::fold::RecordedStream;
use std::io::{Result, Write};

/// Writes which archive a fold was saved to, its `folder` being those that made it.
pub fn folded<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    archive: &str,
    folder: &str,
    bytes: u64,
) -> Result<()> {
    out.begin_object()?;
    out.field("archive", archive)?;
    out.field("streams", fold.streams().len())?;
    out.field("events", fold.events())?;
    out.field("rules", fold.rules().len())?;
    out.field("items", fold.items())?;
    out.field("folder", folder)?;
    out.field("bytes", bytes)?;
    out.end()
}

/// Writes which archive several were merged into.
pub fn merged<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, archive: &str, bytes: u64) -> Result<()> {
    out.begin_object()?;
    out.field("archive", archive)?;
    out.field("streams", fold.streams().len())?;
    out.field("events", fold.events())?;
    out.field("bytes", bytes)?;
    out.end()
}

/// What is in an archive or a grammar that is not damaged.
#[derive(Clone, Debug)]
pub struct Intact {
    /// Segments of the archive; a grammar has none.
    pub segments: Option<usize>,
    /// Streams.
    pub streams: usize,
    /// Their events, if 64 bits can count them.
    pub events: Option<u64>,
    /// Rules.
    pub rules: usize,
    /// Their items.
    pub items: usize,
    /// Segments of the index of functions.
    pub index_segments: u64,
    /// Chunks that have the events of the fold.
    pub chunks: u64,
    /// Streams of recordings, if there are any.
    pub recorded: Vec<RecordedStream>,
    /// The size of the file.
    pub bytes: u64,
}

/// The events of some streams of recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedEvents {
    /// How many the streams have.
    pub recorded: u64,
    /// How many there were.
    pub produced: u64,
    /// How many were not recorded.
    pub missing: u64,
    /// How many of the streams are unfinished: then there were at least so many events, and at least so
    /// many of them are missing.
    pub unfinished: usize,
}

impl RecordedEvents {
    /// Of one stream.
    pub fn of(stream: &RecordedStream) -> Self {
        let RecordedStream { recorded, counted, is_unfinished, .. } = *stream;
        let unfinished = is_unfinished.into();
        Self { recorded, produced: counted.produced, missing: counted.missing, unfinished }
    }

    /// Of all streams together. Returns `None` if there are none.
    pub fn of_all(streams: &[RecordedStream]) -> Option<Self> {
        streams.iter().map(Self::of).reduce(|sum, one| Self {
            recorded: sum.recorded.saturating_add(one.recorded),
            produced: sum.produced.saturating_add(one.produced),
            missing: sum.missing.saturating_add(one.missing),
            unfinished: sum.unfinished + one.unfinished,
        })
    }

    fn write<W: Write>(self, out: &mut JsonWriter<W>) -> Result<()> {
        out.field("events", self.recorded)?;
        out.field("produced", self.produced)?;
        out.field("missing", self.missing)
    }
}

/// Writes the counts of recordings, and the streams that lack events or their end.
fn recorded<W: Write>(out: &mut JsonWriter<W>, streams: &[RecordedStream]) -> Result<()> {
    let Some(all) = RecordedEvents::of_all(streams) else { return out.field("recorded", None::<u64>) };
    out.key("recorded")?;
    out.begin_object()?;
    all.write(out)?;
    out.field("unfinished_streams", all.unfinished)?;
    out.key("incomplete_streams")?;
    out.begin_array()?;
    for stream in streams.iter().filter(|stream| stream.is_incomplete()) {
        out.begin_object()?;
        out.field("stream", &stream.name[..])?;
        RecordedEvents::of(stream).write(out)?;
        out.field("unfinished", stream.is_unfinished)?;
        out.end()?;
    }
    out.end()?;
    out.end()
}

/// Writes for each archive, by name, what is in it or how it is damaged.
pub fn verified<'a, W: Write>(
    out: &mut JsonWriter<W>,
    archives: impl IntoIterator<Item = (&'a str, &'a std::result::Result<Intact, String>)>,
) -> Result<()> {
    out.begin_object()?;
    out.key("archives")?;
    out.begin_array()?;
    for (name, found) in archives {
        out.begin_object()?;
        out.field("archive", name)?;
        out.field("ok", found.is_ok())?;
        match found {
            Err(reason) => out.field("reason", reason)?,
            Ok(intact) => {
                out.field("segments", intact.segments)?;
                out.field("streams", intact.streams)?;
                out.field("events", intact.events)?;
                out.field("rules", intact.rules)?;
                out.field("items", intact.items)?;
                out.field("index_segments", intact.index_segments)?;
                out.field("chunks", intact.chunks)?;
                recorded(out, &intact.recorded)?;
                out.field("bytes", intact.bytes)?;
            }
        }
        out.end()?;
    }
    out.end()?;
    out.end()
}
