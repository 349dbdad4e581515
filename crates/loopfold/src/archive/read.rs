//! Reads archives: lists, decodes and verifies their segments.
//!
//! Listing reads the head and the table of each segment and seeks past everything else. Reading
//! decodes segment by segment and joins them; sections of times are sought past unless they are
//! wanted. Memory grows with the data that was read, never with a claimed length.

use super::join::Joiner;
use super::layout::{
    HEAD, MAGIC, Section, SectionKind, Segment, check_head, check_section, read_section, read_segment,
};
use super::section::{ReadSeek, SectionCheck, SectionReader};
use super::window::Window;
use super::{peers, rules, summary, text, times};
use crate::bytes::read_at;
use crate::fold::{FoldBuilder, FoldedStream, RecordedStream};
use crate::trace::{Column, Spill, Times};
use crate::{Error, Fold, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// What to read of an archive, and how to treat damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadConfig {
    /// Read the times too, and sums of times.
    pub times: bool,
    /// Return the segments before the first damaged one instead of an error.
    pub lenient: bool,
}

impl ReadConfig {
    /// With times, and an error where the archive is damaged.
    pub const fn new() -> Self {
        Self { times: true, lenient: false }
    }

    setters! {
        /// Read the times too, and sums of times.
        times: bool,
        /// Return the segments before the first damaged one instead of an error.
        lenient: bool,
    }
}

impl Default for ReadConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// Where an archive is damaged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    place: String,
    reason: String,
}

impl Damage {
    fn new(error: &Error) -> Self {
        let (place, reason) = error.place_and_reason();
        Self { place, reason }
    }

    fn error(&self) -> Error {
        Error::damaged(&self.place, &self.reason)
    }

    /// The segment and the section.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is wrong there.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

/// The result of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many segments were read.
    pub segments: usize,
    /// Why no more were, when reading leniently.
    pub damage: Option<Damage>,
}

/// The counts of an archive that [`verify`] found valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Segments.
    pub segments: usize,
    /// Streams, once the segments are joined.
    pub streams: usize,
    /// Events in all streams. `None` when that passes 64 bits.
    pub events: Option<u64>,
    /// Symbols.
    pub symbols: usize,
    /// Rules, once the segments are joined.
    pub rules: usize,
    /// Items in all rules.
    pub items: usize,
    /// Starts, durations and metrics that were decompressed and checked.
    pub values: u64,
    /// Sums of events, rules and loops that were read and checked.
    pub sums: u64,
    /// For each kind of section that a [check](SectionCheck) was given for, how many parts that
    /// counted.
    pub sections: BTreeMap<SectionKind, u64>,
    /// The streams of recordings, with what their producers have counted.
    pub recorded: Vec<RecordedStream>,
    /// The size of the file.
    pub bytes: u64,
}

impl Verified {
    /// How many parts the check of sections of a kind counted.
    pub fn parts_of(&self, kind: SectionKind) -> u64 {
        self.sections.get(&kind).copied().unwrap_or(0)
    }
}

/// Bytes by what they are used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// The whole file.
    pub total: u64,
    /// Names, notes and folders of the streams.
    pub streams: u64,
    /// The meanings of the symbols.
    pub alphabet: u64,
    /// The rules.
    pub rules: u64,
    /// When events began.
    pub starts: u64,
    /// How long events took.
    pub durations: u64,
    /// Further measurements.
    pub metrics: u64,
    /// The ranks of the streams, where the ends of messages are relative to them.
    pub peers: u64,
    /// Sums of times and measurements.
    pub summary: u64,
    /// The symbols themselves, in compressed chunks.
    pub chunks: u64,
    /// Which segments of the fold hold which functions.
    pub index: u64,
    /// The basic blocks of recorded paths.
    pub paths: u64,
    /// Sections that this program does not know.
    pub unknown: u64,
    /// Head, tables and checksums, and what damage makes unreadable.
    pub framing: u64,
}

/// An archive whose segments are listed but not read.
///
/// ```
/// use loopfold::archive::{self, Archive, ReadConfig};
/// use loopfold::Fold;
///
/// let mut file = Vec::new();
/// archive::write(&Fold::default(), &mut file)?;
/// let mut archive = Archive::open(std::io::Cursor::new(file))?;
/// assert_eq!(archive.segments().len(), 1);
/// let (fold, report) = archive.read(&ReadConfig::new())?;
/// assert!(fold.streams().is_empty() && report.damage.is_none());
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Debug)]
pub struct Archive<R> {
    input: R,
    bytes: u64,
    segments: Vec<Segment>,
    damage: Option<Damage>,
    spill: Option<Arc<Spill>>,
}

impl<R: Read + Seek> Archive<R> {
    /// Lists the segments. Fails if this is no archive or one of another version;
    /// damage further on is kept in [`Archive::damage`].
    pub fn open(mut input: R) -> Result<Self> {
        let bytes = input.seek(SeekFrom::End(0))?;
        check_head(&read_at(&mut input, 0, HEAD as u64)?)?;
        let mut archive = Self { input, bytes, segments: Vec::new(), damage: None, spill: None };
        if let Err(error) = archive.list() {
            archive.damage = Some(not_io(error)?);
        }
        Ok(archive)
    }

    /// Full chunks of times that are read go to this file instead of memory.
    pub fn spilling(mut self, spill: &Arc<Spill>) -> Self {
        self.spill = Some(Arc::clone(spill));
        self
    }

    fn list(&mut self) -> Result<()> {
        let mut offset = HEAD as u64;
        loop {
            let number = self.segments.len() + 1;
            if offset == self.bytes {
                return Err(Error::damaged(
                    format_args!("segment {number}"),
                    "the file ends before its last segment: it was cut, or its recording was stopped",
                ));
            }
            let segment = read_segment(&mut self.input, offset, self.bytes)
                .map_err(|error| error.within(format_args!("segment {number}")))?;
            offset = segment.end();
            let is_last = segment.is_last();
            self.segments.push(segment);
            if is_last && offset < self.bytes {
                return Err(Error::damaged(
                    format_args!("segment {number}"),
                    "there is something after the end of the last segment",
                ));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The segments whose tables could be read.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// What is wrong with the list of segments, if something is.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// How many bytes are used for what.
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes { total: self.bytes, framing: self.bytes, ..Sizes::default() };
        for section in self.segments.iter().flat_map(Segment::sections) {
            let size = match section.kind() {
                SectionKind::Streams => &mut sizes.streams,
                SectionKind::Alphabet => &mut sizes.alphabet,
                SectionKind::Rules => &mut sizes.rules,
                SectionKind::Starts => &mut sizes.starts,
                SectionKind::Durations => &mut sizes.durations,
                SectionKind::Metrics => &mut sizes.metrics,
                SectionKind::Summary => &mut sizes.summary,
                SectionKind::Chunks => &mut sizes.chunks,
                SectionKind::Index => &mut sizes.index,
                SectionKind::Peers => &mut sizes.peers,
                SectionKind::Paths => &mut sizes.paths,
                SectionKind::Unknown(_) => &mut sizes.unknown,
            };
            *size += section.length();
            sizes.framing -= section.length();
        }
        sizes
    }

    /// Reads the segments and joins them. The fold is in
    /// [canonical form](Fold::canonical).
    pub fn read(&mut self, options: &ReadConfig) -> Result<(Fold, Report)> {
        if let (Some(damage), false) = (&self.damage, options.lenient) {
            return Err(damage.error());
        }
        let mut report = Report::default();
        let mut joiner = Joiner::default();
        for index in 0..self.segments.len() {
            match self.segment(index, options.times) {
                Ok(fold) => joiner.add(fold)?,
                Err(error) if options.lenient => {
                    report.damage = Some(not_io(error)?);
                    return Ok((joiner.finish()?, report));
                }
                Err(error) => return Err(error),
            }
            report.segments += 1;
        }
        report.damage.clone_from(&self.damage);
        Ok((joiner.finish()?, report))
    }

    /// Checks every checksum and decodes everything that an archive knows.
    pub fn verify(&mut self) -> Result<Verified> {
        self.verify_with(&[])
    }

    /// The same, and checks opaque sections by the given checks. For opaque sections without a
    /// check, only the checksum is checked.
    pub fn verify_with(&mut self, checks: &[SectionCheck<'_>]) -> Result<Verified> {
        self.check_opaque_sections(checks)?;
        let (fold, report) = self.read(&ReadConfig { times: true, lenient: false })?;
        let sums = summary::check(&fold)?;
        let mut sections = BTreeMap::new();
        for check in checks {
            sections.insert(check.0, self.check_sections(check)?);
        }
        let mut values = 0;
        for stream in fold.streams() {
            values += check_columns(stream.times())
                .map_err(|error| error.within(format_args!("stream {}", stream.name().terminal())))?;
        }
        Ok(Verified {
            segments: report.segments,
            streams: fold.streams().len(),
            events: fold.events(),
            symbols: fold.alphabet().len(),
            rules: fold.rules().len(),
            items: fold.items(),
            values,
            sums,
            sections,
            recorded: fold.recorded_streams(),
            bytes: self.bytes,
        })
    }

    /// Checks the checksums of unknown sections, and of opaque ones that no check is given for.
    fn check_opaque_sections(&mut self, checks: &[SectionCheck<'_>]) -> Result<()> {
        for (index, segment) in self.segments.iter().enumerate() {
            for section in segment.sections() {
                let kind = section.kind();
                let is_decoded = !kind.is_opaque() && !matches!(kind, SectionKind::Unknown(_));
                if !is_decoded && checks.iter().all(|(checked, _)| *checked != kind) {
                    check_section(&mut self.input, section)
                        .map_err(|error| error.within(format_args!("segment {}", index + 1)))?;
                }
            }
        }
        Ok(())
    }

    /// Checks the sections of a kind in all segments; returns how many parts they have.
    fn check_sections(&mut self, (kind, check): &SectionCheck<'_>) -> Result<u64> {
        let mut parts = 0;
        for index in 0..self.segments.len() {
            let Some(section) = self.segments[index].section(*kind).copied() else { continue };
            let fold = self.segment(index, false)?;
            let input: &mut dyn ReadSeek = &mut self.input;
            let checked = SectionReader::new(input, section).and_then(|section| check(&fold, section));
            // The check need not have read all of it, but it knows better what is wrong.
            let checked = checked.and_then(|parts| check_section(&mut self.input, &section).map(|()| parts));
            parts += checked.map_err(|error| error.within(format_args!("segment {}", index + 1)))?;
        }
        Ok(parts)
    }

    /// The only segment that is not empty. `None` if there are several: what is stored with one
    /// of them is not of the whole.
    fn only_segment(&self) -> Option<&Segment> {
        let mut segments = self.segments.iter().filter(|segment| !segment.sections().is_empty());
        segments.next().filter(|_| segments.next().is_none())
    }

    /// A section whose content the archive does not know. Returns `None` if there is none, or if
    /// the archive has several segments: then it is not of the whole.
    pub fn section(&mut self, kind: SectionKind) -> Result<Option<SectionReader<&mut R>>> {
        let section = self.only_segment().and_then(|only| only.section(kind)).copied();
        section.map(|section| SectionReader::new(&mut self.input, section)).transpose()
    }

    /// The sections of a kind in all segments, whole: for what does not depend on the fold that it
    /// lies beside.
    pub fn all_sections(&mut self, kind: SectionKind) -> Result<Vec<Vec<u8>>> {
        let sections = self.segments.iter().filter_map(|segment| segment.section(kind)).copied();
        sections.map(|section| read_section(&mut self.input, &section)).collect()
    }

    /// The same, for what reads on when the archive is gone.
    pub fn into_section(self, kind: SectionKind) -> Result<Option<SectionReader<R>>> {
        let section = self.only_segment().and_then(|only| only.section(kind)).copied();
        section.map(|section| SectionReader::new(self.input, section)).transpose()
    }

    /// True if a segment has a section of this kind.
    pub fn has_section(&self, kind: SectionKind) -> bool {
        self.segments.iter().any(|segment| segment.section(kind).is_some())
    }

    /// One segment as a fold of its own.
    fn segment(&mut self, index: usize, with_times: bool) -> Result<Fold> {
        let fold = self.read_rules(index).and_then(|mut fold| {
            if with_times {
                self.read_times(index, &mut fold)?;
            }
            let peers = self.content(index, SectionKind::Peers)?;
            if peers.is_empty() { Ok(fold) } else { peers::absolute(&fold, &peers) }
        });
        fold.map_err(|error| error.within(format_args!("segment {}", index + 1)))
    }

    /// The content of a section; empty when there is no such section.
    fn content(&mut self, index: usize, kind: SectionKind) -> Result<Vec<u8>> {
        let section: Option<Section> = self.segments[index].section(kind).copied();
        section.map_or(Ok(Vec::new()), |section| read_section(&mut self.input, &section))
    }

    /// A section to be read piece by piece, once its checksum was found to fit.
    fn checked(
        &mut self,
        index: usize,
        kind: SectionKind,
        place: &'static str,
    ) -> Result<Option<Window<'_, R>>> {
        let Some(section) = self.segments[index].section(kind).copied() else { return Ok(None) };
        check_section(&mut self.input, &section)?;
        Ok(Some(Window::new(&mut self.input, &section, place)))
    }

    fn read_rules(&mut self, index: usize) -> Result<Fold> {
        let streams = text::read_streams(&self.content(index, SectionKind::Streams)?)?;
        let alphabet = text::read_alphabet(&self.content(index, SectionKind::Alphabet)?)?;
        let section = self.content(index, SectionKind::Rules)?;
        let mut builder = FoldBuilder::new(alphabet);
        let roots = rules::read(&section, streams.len(), &mut builder)?;
        for (head, root) in streams.into_iter().zip(roots) {
            builder.stream(FoldedStream::new(head.name, head.folder, root).with_notes(head.notes));
        }
        Ok(builder.finish())
    }

    fn read_times(&mut self, index: usize, fold: &mut Fold) -> Result<()> {
        let spill = self.spill.clone();
        if let Some(section) = self.checked(index, SectionKind::Starts, "starts")? {
            times::read_columns(section, spill.as_ref(), |stream, column| {
                let times = times_of(fold, stream, column.len(), "starts")?;
                set_once(&mut times.starts, column, "starts")
            })?;
        }
        if let Some(section) = self.checked(index, SectionKind::Durations, "durations")? {
            times::read_columns(section, spill.as_ref(), |stream, column| {
                let times = times_of(fold, stream, column.len(), "durations")?;
                set_once(&mut times.durations, column, "durations")
            })?;
        }
        if let Some(section) = self.checked(index, SectionKind::Metrics, "metrics")? {
            times::read_metrics(section, spill.as_ref(), |stream, name, column| {
                times_of(fold, stream, column.len(), "metrics")?.metrics.push((name, column));
                Ok(())
            })?;
        }
        summary::read(&self.content(index, SectionKind::Summary)?, fold)
    }
}

/// The times of a stream, which must have as many events as a column has values.
fn times_of<'a>(fold: &'a mut Fold, stream: u64, values: usize, place: &str) -> Result<&'a mut Times> {
    let index = usize::try_from(stream).ok().filter(|&index| index < fold.streams().len());
    let index = index.ok_or_else(|| Error::damaged(place, "a column of a stream that is not there"))?;
    if fold.length(fold.streams()[index].root()) != values as u64 {
        return Err(Error::damaged(place, "a column does not have as many values as its stream has events"));
    }
    Ok(&mut fold.streams_mut()[index].times)
}

fn set_once(slot: &mut Option<Column<i64>>, column: Column<i64>, place: &str) -> Result<()> {
    match slot.replace(column) {
        None => Ok(()),
        Some(_) => Err(Error::damaged(place, "a stream has two columns")),
    }
}

/// Decompresses all columns and returns how many values they have.
fn check_columns(times: &Times) -> Result<u64> {
    for column in times.starts.iter().chain(&times.durations) {
        column.check()?;
    }
    for (_, column) in &times.metrics {
        column.check()?;
    }
    Ok(times.lengths().map(|length| length as u64).sum())
}

/// Converts an error to the damage it reports; errors of input and output stay errors.
fn not_io(error: Error) -> Result<Damage> {
    if error.io().is_some() { Err(error) } else { Ok(Damage::new(&error)) }
}

/// True when a file that begins like this is an archive, of whatever version. Eight
/// bytes are enough.
pub fn looks_like(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Reads an archive. See [`Archive`] to look at it first.
pub fn read(input: impl Read + Seek, options: &ReadConfig) -> Result<(Fold, Report)> {
    Archive::open(input)?.read(options)
}

/// Reads an archive of one segment whose peers are relative, as they are stored, with what restores
/// them: for merging recordings. See [`write_relative`](super::write_relative).
#[cfg(feature = "mpi")]
pub fn read_relative(mut archive: Archive<impl Read + Seek>) -> Result<(Fold, crate::mpi::RelativePeers)> {
    match (archive.segments.len(), &archive.damage) {
        (_, Some(damage)) => return Err(damage.error()),
        (1, None) => {}
        _ => return Err(Error::invalid("an archive of several segments")),
    }
    let mut fold = archive.read_rules(0)?;
    archive.read_times(0, &mut fold)?;
    let section = archive.content(0, SectionKind::Peers)?;
    let peers = if section.is_empty() { Default::default() } else { peers::decode(&section, &fold)? };
    Ok((fold, peers))
}

/// Checks every checksum of an archive, decodes everything in it, and checks that
/// every stream has as many times as events.
pub fn verify(input: impl Read + Seek) -> Result<Verified> {
    verify_with(input, &[])
}

/// The same, and checks what sections hold that others know.
pub fn verify_with(input: impl Read + Seek, checks: &[SectionCheck<'_>]) -> Result<Verified> {
    Archive::open(input)?.verify_with(checks)
}

/// How many bytes of an archive are used for what. Reads the tables alone.
pub fn sizes(input: impl Read + Seek) -> Result<Sizes> {
    Ok(Archive::open(input)?.sizes())
}
