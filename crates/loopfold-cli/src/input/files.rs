//! Files that a command reads: each is opened here, and one that an output of the command will replace
//! is refused. A step of `cargo xtask test` fails if a command opens a file in another way.
//!
//! What other crates open, which are given the path of a folder, is looked at before: the files of a
//! recording and of an OTF2 archive.
//!
//! Cost: the file system is asked once more for each file, if an output replaces one.

use crate::formats;
use anyhow::{Result, bail};
use loopfold_output::is_being_replaced;
use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> Result<File> {
    check(path)?;
    Ok(File::open(path)?)
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    check(path)?;
    Ok(std::fs::read(path)?)
}

/// Fails if an input would be replaced: a file, standard input, or a file of a folder that is a trace.
/// Also where what it contains is in memory already.
pub(crate) fn check_input(path: &Path) -> Result<()> {
    if path.as_os_str() == "-" {
        return check_as(Path::new("/dev/stdin"), "standard input");
    }
    let anchor = if path.is_dir() { formats::file_of_folder(path) } else { None };
    let path = anchor.as_deref().unwrap_or(path);
    check(path)?;
    if path.is_dir() {
        return files_in(path).iter().try_for_each(|file| check(file));
    }
    if path.extension().is_some_and(|extension| extension == "otf2") {
        let (definitions, locations) = loopfold_otf2::files_of(path);
        return locations.iter().chain([&definitions]).try_for_each(|file| check(file));
    }
    Ok(())
}

/// The same of several.
pub(crate) fn check_inputs(paths: &[PathBuf]) -> Result<()> {
    paths.iter().try_for_each(|path| check_input(path))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn check(path: &Path) -> Result<()> {
    check_as(path, path.display())
}

fn check_as(path: &Path, name: impl Display) -> Result<()> {
    if is_being_replaced(path) {
        bail!("{name}: is one of the inputs, which would be replaced; name another file");
    }
    Ok(())
}
