//! What an archive has beside its rules that helps to find paths: the index of functions,
//! and the events in chunks.

use crate::args::{PeersName, ReadArgs};
use loopfold::Fold;
use loopfold::archive::{self, Archive, SectionReader};
use loopfold::questions::{Chunks, PathIndex};
use loopfold::sections;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

/// What there is; nothing of it where the input is no archive, or not one as a whole.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) index: Option<PathIndex>,
    pub(super) chunks: Option<Chunks<SectionReader<BufReader<File>>>>,
}

impl Stored {
    /// Opens what fits the fold that was read, and notes what does not: the fold is as good
    /// without it.
    pub(super) fn open(arguments: &ReadArgs, fold: &Fold) -> (Self, Vec<String>) {
        let mut stored = Self::default();
        let mut notes = Vec::new();
        let [only] = &arguments.inputs[..] else { return (stored, notes) };
        let is_whole = arguments.stream.is_none()
            && arguments.key.is_none()
            && arguments.ignore.is_empty()
            && arguments.map.is_none()
            && arguments.peers == PeersName::Absolute
            && arguments.format.is_none();
        if !is_whole {
            return (stored, notes);
        }
        let Some(mut archive) = open(only) else { return (stored, notes) };
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

/// The archive of a file; nothing if it is none, or cannot be read a second time.
fn open(path: &Path) -> Option<Archive<BufReader<File>>> {
    let is_file = path.metadata().is_ok_and(|about| about.is_file());
    if !is_file || path == Path::new("-") {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(64).read_to_end(&mut head).ok()?;
    if !archive::looks_like(&head) {
        return None;
    }
    Archive::open(BufReader::new(File::open(path).ok()?)).ok()
}
