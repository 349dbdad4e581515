//! Archives: what was written to one (`fold`, `merge`), and what was found in some (`verify`).

use crate::JsonWriter;
use loopfold::Fold;
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
#[derive(Clone, Copy, Debug)]
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
    /// The size of the file.
    pub bytes: u64,
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
                out.field("bytes", intact.bytes)?;
            }
        }
        out.end()?;
    }
    out.end()?;
    out.end()
}
