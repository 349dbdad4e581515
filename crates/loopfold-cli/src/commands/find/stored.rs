//! The parts of an archive beside its rules that speed up path searches: the index of functions,
//! and the events in chunks.

use crate::args::{PeersName, ReadArgs};
use loopfold::Fold;
use loopfold::archive::{Archive, SectionReader};
use loopfold::questions::path::{Chunks, PathIndex};
use loopfold::sections;
use std::fs::File;
use std::io::BufReader;

/// The parts found; none if the input is not one whole archive.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) index: Option<PathIndex>,
    pub(super) chunks: Option<Chunks<SectionReader<BufReader<File>>>>,
}

impl Stored {
    /// Opens the parts that fit the fold read from the archive, with notes on those that do not:
    /// the fold is valid without them.
    pub(super) fn of(
        archive: Option<Archive<BufReader<File>>>,
        arguments: &ReadArgs,
        fold: &Fold,
    ) -> (Self, Vec<String>) {
        let mut stored = Self::default();
        let mut notes = Vec::new();
        let is_whole = arguments.stream.is_empty()
            && arguments.select.is_empty()
            && arguments.symbols.is_empty()
            && arguments.key.is_none()
            && arguments.ignore.is_empty()
            && arguments.map.is_none()
            && arguments.peers == PeersName::Absolute;
        let Some(mut archive) = archive.filter(|_| is_whole) else { return (stored, notes) };
        match sections::index(&mut archive, fold) {
            Ok(index) => stored.index = index,
            Err(error) => notes.push(format!("the index is not used: {error}")),
        }
        match sections::chunks(archive).and_then(|chunks| match chunks {
            Some(chunks) => chunks.check(fold).map(|()| Some(chunks)),
            None => Ok(None),
        }) {
            Ok(chunks) => stored.chunks = chunks,
            Err(error) => notes.push(format!("the chunks are not used: {error}")),
        }
        (stored, notes)
    }
}
