//! Locates an archive: by its anchor file, which users name, or by the directory of that file.

use std::path::{Path, PathBuf};

/// The file name extension of anchor files.
const EXTENSION: &str = "otf2";

/// Whether these are the first bytes of an anchor file.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    // The kind of buffer, a letter for the order of bytes, and the name.
    matches!(head, [3, b'B' | b'#', b'O', b'T', b'F', b'2', 0, ..])
}

/// The anchor file that a directory stands for: the only one in it, or the one called
/// `traces.otf2`; for the directory with the locations' files, the one beside it; else that of the
/// only directory in it that has one, such as the `otf2` of a measurement.
///
/// ```
/// let empty = tempfile::tempdir()?;
/// assert_eq!(loopfold_otf2::anchor_in(empty.path()), None);
/// let anchor = empty.path().join("run.otf2");
/// std::fs::write(&anchor, "")?;
/// assert_eq!(loopfold_otf2::anchor_in(empty.path()), Some(anchor));
/// let measurement = tempfile::tempdir()?;
/// let anchor = measurement.path().join("otf2").join("traces.otf2");
/// std::fs::create_dir(measurement.path().join("otf2"))?;
/// std::fs::write(&anchor, "")?;
/// assert_eq!(loopfold_otf2::anchor_in(measurement.path()), Some(anchor));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn anchor_in(directory: &Path) -> Option<PathBuf> {
    let beside = || {
        let directory = directory.canonicalize().ok()?;
        let anchor = directory.with_extension(EXTENSION);
        if anchor.is_file() {
            return Some(anchor);
        }
        let holds_locations =
            list(&directory).iter().any(|path| path.extension().is_some_and(|extension| extension == "evt"));
        holds_locations.then(|| only_anchor(directory.parent()?)).flatten()
    };
    let inside = || {
        let inner = list(directory).into_iter().filter(|path| path.is_dir());
        let mut anchors = inner.filter_map(|inner| only_anchor(&inner));
        anchors.next().filter(|_| anchors.next().is_none())
    };
    only_anchor(directory).or_else(beside).or_else(inside)
}

fn only_anchor(directory: &Path) -> Option<PathBuf> {
    let is_anchor =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == EXTENSION) && path.is_file();
    let anchors: Vec<PathBuf> = list(directory).into_iter().filter(is_anchor).collect();
    match anchors.as_slice() {
        [only] => Some(only.clone()),
        several => several.iter().find(|path| path.file_stem().is_some_and(|stem| stem == "traces")).cloned(),
    }
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The file of an archive with its definitions, and the files of its locations in the order of their
/// names, whether or not they are there.
///
/// ```
/// let archive = tempfile::tempdir()?;
/// let anchor = archive.path().join("traces.otf2");
/// std::fs::create_dir(archive.path().join("traces"))?;
/// for location in ["1.evt", "0.evt"] {
///     std::fs::write(archive.path().join("traces").join(location), "")?;
/// }
/// let (definitions, locations) = loopfold_otf2::files_of(&anchor);
/// assert_eq!(definitions, archive.path().join("traces.def"));
/// assert_eq!(locations, ["0.evt", "1.evt"].map(|name| archive.path().join("traces").join(name)));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn files_of(anchor: &Path) -> (PathBuf, Vec<PathBuf>) {
    let mut locations = list(&anchor.with_extension(""));
    locations.sort();
    (anchor.with_extension("def"), locations)
}

/// The bytes of all files of an archive.
pub(crate) fn bytes_of(anchor: &Path) -> u64 {
    let (definitions, locations) = files_of(anchor);
    let parts = [anchor.to_path_buf(), definitions, anchor.with_extension("marker")];
    let files = parts.into_iter().chain(locations);
    files
        .filter_map(|file| file.metadata().ok())
        .filter(|about| about.is_file())
        .map(|about| about.len())
        .sum()
}

/// Whether there is a file with the local definitions of a location.
pub(crate) fn lacks_definitions(anchor: &Path, location: u64) -> bool {
    !anchor.with_extension("").join(format!("{location}.def")).is_file()
}

/// The file with the records of a location, unless they are elsewhere.
pub(crate) fn records_of(anchor: &Path, location: u64) -> PathBuf {
    anchor.with_extension("").join(format!("{location}.evt"))
}
