//! Writes archives, one segment after the other.
//!
//! A segment is encoded before its first byte is written, so an error in encoding leaves the output
//! at the end of the segment before. All of it but full chunks of times is encoded in memory.

use super::content::Content;
use super::layout::{SectionKind, head, table};
use super::{rules, summary, text, times};
use crate::fold::Canonical;
use crate::{Error, Fold, Result};
use std::io::Write;

/// Writes a fold as an archive of one segment. The fold is stored in its
/// [canonical form](Fold::canonical).
///
/// ```
/// use loopfold::archive::{self, ReadConfig};
/// use loopfold::Fold;
///
/// let mut file = Vec::new();
/// archive::write(&Fold::default(), &mut file)?;
/// let (fold, _) = archive::read(std::io::Cursor::new(file), &ReadConfig::new())?;
/// assert_eq!(fold, Fold::default());
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn write(fold: &Fold, output: impl Write) -> Result<()> {
    write_with(fold, output, &WriteConfig::new())
}

/// What an archive holds besides the fold: sections that the caller encodes.
///
/// ```
/// use loopfold::archive::{self, Archive, SectionKind, WriteConfig};
/// use loopfold::Fold;
///
/// let options = WriteConfig::new().with_section(SectionKind::Index, |_| Ok(Some(vec![1, 2, 3])));
/// let mut file = Vec::new();
/// archive::write_with(&Fold::default(), &mut file, &options)?;
/// let mut archive = Archive::open(std::io::Cursor::new(file))?;
/// let section = archive.section(SectionKind::Index)?.expect("it was stored");
/// assert_eq!(section.content()?, [1, 2, 3]);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Default)]
pub struct WriteConfig<'a> {
    sections: Vec<(SectionKind, Box<Encode<'a>>)>,
}

opaque_debug!(WriteConfig<'a>);

/// Makes the content of a section from the fold as it is stored; `None` where there is none.
type Encode<'a> = dyn Fn(&Fold) -> Result<Option<Vec<u8>>> + 'a;

impl<'a> WriteConfig<'a> {
    /// Only the fold.
    pub const fn new() -> Self {
        Self { sections: Vec::new() }
    }

    /// With a section of a kind whose content the archive does not know, behind its own ones.
    /// `encode` is given the fold in [canonical form](Fold::canonical), as it will be read.
    pub fn with_section(
        mut self,
        kind: SectionKind,
        encode: impl Fn(&Fold) -> Result<Option<Vec<u8>>> + 'a,
    ) -> Self {
        self.sections.push((kind, Box::new(encode)));
        self
    }

    /// Adds the sections to those of a fold.
    fn add_to(&self, sections: &mut Sections<'_>, fold: &Fold) -> Result<()> {
        if self.sections.is_empty() {
            return Ok(());
        }
        let canonical = fold.canonical_without_times();
        for (kind, encode) in &self.sections {
            let is_new = sections.iter().all(|(known, _)| known != kind);
            if !is_new || !kind.is_opaque() {
                return Err(Error::invalid(format_args!("an archive does not take a section {kind} more")));
            }
            sections.extend(encode(&canonical)?.map(|content| (*kind, content.into())));
        }
        Ok(())
    }
}

/// Writes a fold as [`write()`] does, and what the options ask for.
pub fn write_with(fold: &Fold, output: impl Write, options: &WriteConfig<'_>) -> Result<()> {
    let mut sections = sections_of(fold)?;
    options.add_to(&mut sections, fold)?;
    SegmentWriter::new(output)?.put(sections, true)
}

/// Writes a fold whose peers are relative as an archive of one segment; reading gives ranks back.
/// What the options ask for is made from the fold with relative peers, which nobody reads: only
/// sections that do not depend on rules are of use.
#[cfg(feature = "mpi")]
pub fn write_relative(
    fold: &Fold,
    peers: &crate::mpi::RelativePeers,
    output: impl Write,
    options: &WriteConfig<'_>,
) -> Result<()> {
    SegmentWriter::new(output)?.put(relative_sections(fold, peers, options)?, true)
}

#[cfg(feature = "mpi")]
fn relative_sections<'a>(
    fold: &'a Fold,
    peers: &crate::mpi::RelativePeers,
    options: &WriteConfig<'_>,
) -> Result<Sections<'a>> {
    let mut sections = sections_of(fold)?;
    sections.push((SectionKind::Peers, peers.encode().into()));
    options.add_to(&mut sections, fold)?;
    Ok(sections)
}

/// Writes an archive segment by segment, as a recording does. When it is dropped
/// instead of finished, or the program is killed, what was written can still be read
/// leniently, to the last complete segment.
#[derive(Debug)]
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

    /// Appends a fold whose peers are relative; reading gives ranks back. For the options see
    /// [`write_relative`].
    #[cfg(feature = "mpi")]
    pub fn relative_segment(
        &mut self,
        fold: &Fold,
        peers: &crate::mpi::RelativePeers,
        options: &WriteConfig<'_>,
    ) -> Result<()> {
        self.put(relative_sections(fold, peers, options)?, false)
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

    fn put(&mut self, sections: Sections<'_>, is_last: bool) -> Result<()> {
        self.output.write_all(&table(&sections, is_last)?)?;
        for (_, content) in &sections {
            content.write(&mut self.output)?;
        }
        Ok(self.output.flush()?)
    }
}

/// What a segment consists of.
type Sections<'a> = Vec<(SectionKind, Content<'a>)>;

/// The sections of a fold that are not empty.
fn sections_of(fold: &Fold) -> Result<Sections<'_>> {
    let streams = fold.streams();
    check_times(fold)?;
    let canonical = Canonical::of(fold);
    let mut sections = vec![
        (SectionKind::Streams, text::write_streams(streams)?.into()),
        (SectionKind::Alphabet, text::write_alphabet(fold.alphabet(), &canonical.symbols)?.into()),
        (SectionKind::Rules, rules::write(&canonical)?.into()),
        (SectionKind::Starts, times::write_columns(streams, |times| times.starts.as_ref())),
        (SectionKind::Durations, times::write_columns(streams, |times| times.durations.as_ref())),
        (SectionKind::Metrics, times::write_metrics(streams)),
        (SectionKind::Summary, summary::write(fold, &canonical).into()),
    ];
    sections.retain(|(_, content)| content.len() > 0);
    Ok(sections)
}

/// Fails unless every column has a value for every event of its stream.
fn check_times(fold: &Fold) -> Result<()> {
    for stream in fold.streams() {
        let events = fold.length(stream.root());
        if stream.times().lengths().any(|length| length as u64 != events) {
            return Err(Error::invalid(format_args!(
                "stream {}: it does not have as many times as events",
                stream.name().terminal()
            )));
        }
    }
    Ok(())
}
