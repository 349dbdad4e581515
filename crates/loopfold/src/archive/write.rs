//! Writing archives, one segment after the other.
//!
//! A segment is made in memory before the first byte of it is written, so an error in
//! making it leaves the output at the end of the segment before.

use super::layout::{SectionKind, head, table};
use super::{ChunkSize, chunks, index, rules, summary, text, times};
use crate::fold::Canonical;
use crate::questions::PathIndex;
use crate::{Error, Fold, Result};
use std::io::Write;

/// Writes a fold as an archive of one segment. The fold is stored in its
/// [canonical form](Fold::canonical).
///
/// ```
/// use loopfold::archive::{self, ReadOptions};
/// use loopfold::Fold;
///
/// let mut file = Vec::new();
/// archive::write(&Fold::default(), &mut file)?;
/// let (fold, _) = archive::read(std::io::Cursor::new(file), &ReadOptions::default())?;
/// assert_eq!(fold, Fold::default());
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn write(fold: &Fold, output: impl Write) -> Result<()> {
    write_with(fold, output, &WriteOptions::default())
}

/// What an archive holds besides the fold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The symbols themselves, in [chunks](super::Chunks) of this size.
    pub chunks: Option<ChunkSize>,
    /// The [index](PathIndex) of functions, of about so many segments, where there can be
    /// one.
    pub index: Option<usize>,
}

impl WriteOptions {
    /// With chunks of this size, or without.
    pub fn with_chunks(mut self, size: Option<ChunkSize>) -> Self {
        self.chunks = size;
        self
    }

    /// With an index of about so many segments, or without.
    pub fn with_index(mut self, segments: Option<usize>) -> Self {
        self.index = segments;
        self
    }
}

/// Writes a fold as [`write()`] does, and what the options ask for.
pub fn write_with(fold: &Fold, output: impl Write, options: &WriteOptions) -> Result<()> {
    let mut sections = sections_of(fold)?;
    if let Some(segments) = options.index
        && let Some(index) = PathIndex::of(&fold.canonical_without_times(), segments)?
    {
        sections.push((SectionKind::Index, index::write(&index)?));
    }
    if let Some(size) = options.chunks {
        sections.push((SectionKind::Chunks, chunks::write(&fold.canonical_without_times(), size)?));
    }
    SegmentWriter::new(output)?.put(sections, true)
}

/// Writes an archive segment by segment, as a recording does. When it is dropped
/// instead of finished, or the program is killed, what was written can still be read
/// leniently, to the last complete segment.
pub struct SegmentWriter<W: Write> {
    output: W,
}

impl<W: Write> SegmentWriter<W> {
    /// Begins an archive.
    pub fn new(mut output: W) -> Result<Self> {
        output.write_all(&head())?;
        Ok(Self { output })
    }

    /// Appends a fold. Its streams continue those of the same names.
    pub fn segment(&mut self, fold: &Fold) -> Result<()> {
        self.put(sections_of(fold)?, false)
    }

    /// Ends the archive.
    pub fn finish(mut self) -> Result<W> {
        self.put(Vec::new(), true)?;
        Ok(self.output)
    }

    /// Appends a fold as the last one and ends the archive, which saves the six bytes
    /// of an end of its own.
    pub fn finish_with(mut self, fold: &Fold) -> Result<W> {
        self.put(sections_of(fold)?, true)?;
        Ok(self.output)
    }

    fn put(&mut self, sections: Vec<(SectionKind, Vec<u8>)>, is_last: bool) -> Result<()> {
        self.output.write_all(&table(&sections, is_last))?;
        for (_, content) in &sections {
            self.output.write_all(content)?;
        }
        Ok(self.output.flush()?)
    }
}

/// The sections of a fold that are not empty.
fn sections_of(fold: &Fold) -> Result<Vec<(SectionKind, Vec<u8>)>> {
    let streams = fold.streams();
    check_times(fold)?;
    let canonical = Canonical::of(fold);
    let mut sections = vec![
        (SectionKind::Streams, text::write_streams(streams)?),
        (SectionKind::Alphabet, text::write_alphabet(fold.alphabet(), &canonical.symbols)?),
        (SectionKind::Rules, rules::write(&canonical)?),
        (SectionKind::Starts, times::write_columns(streams, |times| times.starts.as_ref())),
        (SectionKind::Durations, times::write_columns(streams, |times| times.durations.as_ref())),
        (SectionKind::Metrics, times::write_metrics(streams)),
        (SectionKind::Summary, summary::write(fold, &canonical)),
    ];
    sections.retain(|(_, content)| !content.is_empty());
    Ok(sections)
}

/// Fails unless every column has a value for every event of its stream.
fn check_times(fold: &Fold) -> Result<()> {
    for stream in fold.streams() {
        let events = fold.length(stream.root());
        if stream.times().lengths().any(|length| length as u64 != events) {
            return Err(Error::invalid(format_args!(
                "stream {}: it does not have as many times as events",
                stream.name()
            )));
        }
    }
    Ok(())
}
