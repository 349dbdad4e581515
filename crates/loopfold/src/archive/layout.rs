//! The layout of a file: a head, then segments, each a table of sections followed by the
//! sections. `docs/archive.md` specifies it byte by byte.
//!
//! A table lists the kind, length and checksum of each section, and has a checksum of its own;
//! so a file is listed by reading the tables alone, and every changed byte makes a checksum,
//! the magic or the version fail. The last segment is marked, so a file that was cut between
//! two segments is detected.

use super::content::Content;
use crate::bytes::{Bytes, CHECKSUM_FAILS, put_number, read_at};
use crate::{Error, Result};
use std::fmt;
use std::io::{Read, Seek};

/// What every archive begins with. The first byte is not text, and a conversion of line ends
/// changes the line end, so that a damaged file is detected at once.
pub(super) const MAGIC: [u8; 7] = *b"\x89fold\r\n";
pub(super) const HEAD: usize = MAGIC.len() + 1;

/// The version of the format: the byte behind the magic.
const VERSION: u8 = 2;

const SEGMENT: u8 = b'S';
const LAST_SEGMENT: u8 = b'E';
const CHECKSUM: usize = 4;
/// Room for a mark and the length of a table.
const MARK: u64 = 1 + 10;
/// No table is longer: there are few kinds of sections, each at most once.
const TABLE: u64 = 4096;
/// A kind with this bit may be skipped by a reader that does not know it.
const OPTIONAL: u8 = 0x80;

/// The kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SectionKind {
    /// Names, notes and folders of the streams.
    Streams,
    /// The meanings of the symbols.
    Alphabet,
    /// The rules and which of them are the roots of the streams.
    Rules,
    /// When each event began.
    Starts,
    /// How long each event took.
    Durations,
    /// Further measurements.
    Metrics,
    /// Sums of times and measurements, where not every event's are kept.
    Summary,
    /// The ranks of the streams, where the ends of messages are stored relative to them. What it
    /// holds is known to [`RelativePeers`](crate::mpi::RelativePeers).
    Peers,
    /// Which segments of the fold hold which functions. What it holds is known to
    /// [`PathIndex`](crate::questions::path::PathIndex).
    Index,
    /// The symbols themselves, in compressed chunks. What it holds is known to
    /// [`Chunks`](crate::questions::path::Chunks).
    Chunks,
    /// The basic blocks of recorded paths. What it holds is known to
    /// [`PathBlocks`](crate::questions::path::PathBlocks).
    Paths,
    /// Something that a later version added.
    Unknown(u8),
}

impl SectionKind {
    const KNOWN: [Self; 11] = [
        Self::Streams,
        Self::Alphabet,
        Self::Rules,
        Self::Starts,
        Self::Durations,
        Self::Metrics,
        Self::Summary,
        Self::Index,
        Self::Chunks,
        Self::Peers,
        Self::Paths,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Streams => 1,
            Self::Alphabet => 2,
            Self::Rules => 3,
            Self::Starts => 4,
            Self::Durations => 5,
            Self::Metrics => 6,
            Self::Summary => OPTIONAL | 7,
            Self::Index => OPTIONAL | 8,
            Self::Chunks => OPTIONAL | 9,
            Self::Peers => 10,
            Self::Paths => OPTIONAL | 11,
            Self::Unknown(code) => code,
        }
    }

    fn from_code(code: u8) -> Self {
        Self::KNOWN.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Unknown(code))
    }

    /// True if the archive does not know its content.
    pub(super) fn is_opaque(self) -> bool {
        matches!(self, Self::Index | Self::Chunks | Self::Paths)
    }

    fn must_be_known(self) -> bool {
        matches!(self, Self::Unknown(code) if code & OPTIONAL == 0)
    }
}

impl fmt::Display for SectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "streams",
            Self::Alphabet => "alphabet",
            Self::Rules => "rules",
            Self::Starts => "starts",
            Self::Durations => "durations",
            Self::Metrics => "metrics",
            Self::Summary => "summary",
            Self::Index => "index",
            Self::Chunks => "chunks",
            Self::Peers => "peers",
            Self::Paths => "paths",
            Self::Unknown(code) => return write!(f, "section of kind {code}"),
        })
    }
}

/// A section as the table of its segment lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    kind: SectionKind,
    offset: u64,
    length: u64,
    checksum: u32,
}

impl Section {
    /// Its kind.
    pub fn kind(&self) -> SectionKind {
        self.kind
    }

    /// Where in the file it begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes it is.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// A segment as its table describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    is_last: bool,
    sections: Vec<Section>,
    end: u64,
}

impl Segment {
    /// Its sections, in the order of the file.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(super) fn section(&self, kind: SectionKind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Where the next segment begins.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

/// The head of a file.
pub(super) fn head() -> [u8; HEAD] {
    let mut head = [VERSION; HEAD];
    head[..MAGIC.len()].copy_from_slice(&MAGIC);
    head
}

/// Fails unless this is the head of an archive of the version that this program reads.
pub(super) fn check_head(head: &[u8]) -> Result<()> {
    match head.strip_prefix(&MAGIC).map(<[u8]>::first) {
        None => Err(Error::damaged("head", "this is not a fold archive")),
        Some(None) => Err(Error::damaged("head", "the file ends in it")),
        Some(Some(&VERSION)) => Ok(()),
        Some(Some(&found)) => Err(Error::version(found.into(), VERSION.into())),
    }
}

/// What comes before the sections of a segment.
pub(super) fn table(sections: &[(SectionKind, Content<'_>)], is_last: bool) -> Result<Vec<u8>> {
    let mut rows = Vec::new();
    for (kind, content) in sections {
        rows.push(kind.code());
        put_number(&mut rows, content.len());
        rows.extend_from_slice(&content.checksum()?.to_le_bytes());
    }
    let mut table = vec![if is_last { LAST_SEGMENT } else { SEGMENT }];
    put_number(&mut table, rows.len() as u64);
    table.extend_from_slice(&rows);
    let checksum = crc32fast::hash(&table);
    table.extend_from_slice(&checksum.to_le_bytes());
    Ok(table)
}

/// Reads the table of the segment at `offset` of a file that is `file_length` long.
pub(super) fn read_segment(input: &mut (impl Read + Seek), offset: u64, file_length: u64) -> Result<Segment> {
    let mark = read_at(input, offset, MARK)?;
    let mut bytes = Bytes::new(&mark, "table");
    let is_last = match bytes.byte()? {
        SEGMENT => false,
        LAST_SEGMENT => true,
        _ => return Err(bytes.damaged("this is not the beginning of a segment")),
    };
    let table_length = bytes.number()?;
    if table_length > TABLE {
        return Err(bytes.damaged("it is too long"));
    }
    let mark_length = (mark.len() - bytes.rest().len()) as u64;
    let table = read_at(input, offset, mark_length + table_length + CHECKSUM as u64)?;
    let (table, checksum) = table.split_last_chunk::<CHECKSUM>().ok_or_else(cut_table)?;
    if table.len() as u64 != mark_length + table_length {
        return Err(cut_table());
    }
    if crc32fast::hash(table) != u32::from_le_bytes(*checksum) {
        return Err(Error::damaged("table", CHECKSUM_FAILS));
    }
    let start = offset + (table.len() + CHECKSUM) as u64;
    let (sections, end) = read_rows(&table[mark_length as usize..], start, file_length)?;
    Ok(Segment { is_last, sections, end })
}

fn cut_table() -> Error {
    Error::damaged("table", "the file ends in it")
}

fn read_rows(rows: &[u8], start: u64, file_length: u64) -> Result<(Vec<Section>, u64)> {
    let mut bytes = Bytes::new(rows, "table");
    let mut sections: Vec<Section> = Vec::new();
    let mut offset = start;
    while !bytes.rest().is_empty() {
        let kind = SectionKind::from_code(bytes.byte()?);
        let length = bytes.number()?;
        let checksum = u32::from_le_bytes(bytes.array()?);
        if kind.must_be_known() {
            return Err(Error::damaged(kind, "this program does not know what it is"));
        }
        if sections.iter().any(|section| section.kind == kind) {
            return Err(Error::damaged(kind, "it occurs twice"));
        }
        let end = offset.checked_add(length).filter(|&end| end <= file_length);
        let end = end.ok_or_else(|| Error::damaged(kind, "the file ends in it"))?;
        sections.push(Section { kind, offset, length, checksum });
        offset = end;
    }
    Ok((sections, offset))
}

/// Checks a section piece by piece, without keeping it.
pub(super) fn check_section(input: &mut (impl Read + Seek), section: &Section) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut hasher = crc32fast::Hasher::new();
    let mut done = 0;
    while done < section.length {
        let piece = read_at(input, section.offset + done, PIECE.min(section.length - done))?;
        if piece.is_empty() {
            return Err(Error::damaged(section.kind, "the file ends in it"));
        }
        hasher.update(&piece);
        done += piece.len() as u64;
    }
    if hasher.finalize() == section.checksum {
        Ok(())
    } else {
        Err(Error::damaged(section.kind, CHECKSUM_FAILS))
    }
}

/// Reads a section and checks it.
pub(super) fn read_section(input: &mut (impl Read + Seek), section: &Section) -> Result<Vec<u8>> {
    let content = read_at(input, section.offset, section.length)?;
    if content.len() as u64 != section.length {
        return Err(Error::damaged(section.kind, "the file ends in it"));
    }
    if crc32fast::hash(&content) != section.checksum {
        return Err(Error::damaged(section.kind, CHECKSUM_FAILS));
    }
    Ok(content)
}

/// Makes all checksums fit again after the sections were changed: for testing that
/// readers do not rely on checksums. Stops where the file makes no sense.
pub(super) fn reseal(file: &mut [u8]) {
    let mut offset = HEAD;
    while let Some(end) = reseal_segment(file, offset) {
        offset = end;
    }
}

fn reseal_segment(file: &mut [u8], offset: usize) -> Option<usize> {
    let mut bytes = Bytes::new(file.get(offset..)?, "table");
    bytes.byte().ok()?;
    let length = usize::try_from(bytes.number().ok()?).ok()?;
    let rows = file.len() - bytes.rest().len();
    let table_end = rows.checked_add(length)?;
    let mut start = table_end.checked_add(CHECKSUM).filter(|&start| start <= file.len())?;
    let mut row = rows;
    while row < table_end {
        let mut bytes = Bytes::new(&file[row + 1..table_end], "table");
        let length = usize::try_from(bytes.number().ok()?).ok()?;
        let place = table_end - bytes.rest().len();
        let checksum = crc32fast::hash(file.get(start..start.checked_add(length)?)?);
        file.get_mut(place..place + CHECKSUM)?.copy_from_slice(&checksum.to_le_bytes());
        start += length;
        row = place + CHECKSUM;
    }
    let checksum = crc32fast::hash(&file[offset..table_end]);
    file[table_end..table_end + CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    Some(start)
}
