//! A fold as a file: the archive, with the extension `.fold`.
//!
//! An archive is a list of segments, each a fold that can be read alone; opening joins
//! them. A recording appends segments as it goes, so one that was killed can be read
//! to its last complete segment. A segment is a few sections (streams, alphabet,
//! rules, times), each with a checksum; one that would be empty is not there. The
//! format is described byte by byte in `docs/archive.md`.
//!
//! Questions may store data beside the fold, such as an index. The archive does not know its
//! meaning: it takes the bytes of such a section from the writer
//! ([`WriteConfig::with_section`]), stores them with a checksum and returns them
//! ([`Archive::section`]).
//!
//! The fixed cost of a file is about 30 bytes. Rules take 5 to 15 bits an item, and a few
//! hundred nanoseconds an item to write or read. Reading takes memory for the fold and
//! temporarily about half as much again; times that are not requested are not read.
//!
//! Files are not trusted: memory is allocated only for data that was read, and the content of a
//! section is bounded by its size (1,024 items or bytes of text for each byte stored). The
//! number of *events* is not bounded, as a few bytes can validly repeat something 2⁶⁰ times.

mod bit_model;
mod coder;
mod content;
mod estimate;
mod items;
mod join;
mod layout;
mod peers;
mod read;
mod roots;
mod rules;
mod section;
mod summary;
mod text;
mod times;
mod walk;
mod weights;
mod window;
mod words;
mod write;

pub use layout::{Section, SectionKind, Segment};
#[cfg(feature = "mpi")]
pub use read::read_relative;
pub use read::{
    Archive, Damage, ReadConfig, Report, Sizes, Verified, looks_like, read, sizes, verify, verify_with,
};
pub use section::{ReadSeek, SectionCheck, SectionReader};
#[cfg(feature = "mpi")]
pub use write::write_relative;
pub use write::{SegmentWriter, WriteConfig, write, write_with};

/// How many bytes the rules below these roots take in an archive. The folder
/// [`Smallest`](crate::folders::Smallest) compares these sizes.
pub fn coded_size(fold: &crate::Fold, roots: &[crate::RuleId]) -> crate::Result<usize> {
    Ok(rules::write(&crate::fold::Canonical::of_roots(fold, roots))?.len())
}

/// Makes all checksums of an archive fit its content again, so that tests can show
/// that readers do not rely on them.
#[doc(hidden)]
pub fn reseal(file: &mut [u8]) {
    layout::reseal(file);
}
