//! What a command writes: claimed before anything is read, and written as a whole.
//!
//! Folding may take hours, so whether a file can be written, and whether somebody else is writing
//! it, is known at the beginning. The lock is held until the output is dropped.

use crate::data::check_no_data;
use crate::folder::{NEW_FILE, OWN_FILE, is_own, kind, mode};
use crate::lock::Lock;
use crate::private::PrivateFolder;
use crate::target::Target;
use crate::temporary::{Temporary, sweep};
use crate::{Error, FileId, Folder, Result};
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The permissions of a mode, without the bits that let others run a program as its owner.
const PERMISSIONS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// The files that outputs of this process will replace.
static REPLACED: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

fn replaced() -> MutexGuard<'static, Vec<FileId>> {
    REPLACED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if an output that is claimed will replace this file: it must not be an input, then.
pub fn is_being_replaced(path: &Path) -> bool {
    // An archive of many files is not looked at for nothing.
    let is_any = !replaced().is_empty();
    is_any && FileId::of(path).is_some_and(|file| replaced().contains(&file))
}

/// A file without a name among the temporary files of the system, which goes away when it is closed.
pub fn scratch() -> Result<File> {
    Folder::open(&std::env::temp_dir())?.scratch()
}

/// Something that is written.
#[derive(Debug)]
pub struct Output {
    target: Target,
    /// What was there when it was claimed.
    existing: Option<FileId>,
    _lock: Option<Lock>,
}

impl Drop for Output {
    fn drop(&mut self) {
        self.may_be_read();
    }
}

impl Output {
    /// Claims what a path of the user leads to. Fails if it cannot be written, or another job is
    /// writing it. Removes what processes that were killed have left in the directory.
    pub fn claim(path: &Path) -> Result<Self> {
        Self::of_target(Target::named(path)?)
    }

    /// Claims a name in a directory that is open. A link of this name is replaced and not followed.
    pub fn claim_in(folder: &Folder, name: &OsStr) -> Result<Self> {
        Self::of_target(Target::in_folder(folder, name)?)
    }

    fn of_target(target: Target) -> Result<Self> {
        target.check_replaceable()?;
        let lock = match &target {
            Target::File { folder, name } => {
                sweep(folder);
                Some(Lock::take(folder, name)?)
            }
            _ => None,
        };
        let existing = target.existing();
        replaced().extend(existing);
        Ok(Self { target, existing, _lock: lock })
    }

    /// The same for a recording, which also fails if an earlier one has left its data beside the output.
    pub fn claim_for_recording(path: &Path) -> Result<Self> {
        let output = Self::claim(path)?;
        check_no_data(&output.target)?;
        Ok(output)
    }

    /// What a path leads to, if a recording could claim it now. Others can ask the same at once.
    pub fn check_recording(path: &Path) -> Result<Target> {
        let target = Target::named(path)?;
        if let Target::File { folder, name } = &target {
            Lock::check_free(folder, name)?;
        }
        check_no_data(&target)?;
        Ok(target)
    }

    /// The file that will be replaced may be an input, too: an archive of one that is made from it.
    pub fn may_be_read(&mut self) {
        let Some(file) = self.existing.take() else { return };
        let mut all = replaced();
        if let Some(at) = all.iter().position(|one| *one == file) {
            all.swap_remove(at);
        }
    }

    /// A file without a name on the same file system, which goes away when it is closed.
    pub fn scratch(&self) -> Result<File> {
        match &self.target {
            Target::File { folder, .. } => folder.scratch(),
            _ => scratch(),
        }
    }

    /// Where it is written.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Writes what `write` writes, in place of what is there, and returns how many bytes that is.
    /// If anything fails, what was there stays.
    pub fn write<E: From<Error>>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let at = |error: io::Error| E::from(Error::at(&self.target.path(), error));
        match &self.target {
            Target::Stdout => counted(io::stdout().lock(), write, at),
            Target::Special(special) => counted(special.open()?, write, at),
            Target::File { folder, name } => {
                let (temporary, bytes) = written(folder, Modes::like(folder, name), write, at)?;
                temporary.replace(name).map_err(|error| at(error.into()))?;
                folder.sync()?;
                Ok(bytes)
            }
        }
    }

    /// Writes beside the output, to the first of these names that nothing has. Returns the path and how
    /// many bytes that is. Fails for what is no file.
    pub fn write_beside<E: From<Error>>(
        &self,
        names: impl IntoIterator<Item = OsString>,
        write: impl FnOnce(&mut dyn Write) -> std::result::Result<(), E>,
    ) -> std::result::Result<(PathBuf, u64), E> {
        let Target::File { folder, name: output } = &self.target else {
            return Err(Error::new(format_args!("{}: is no file", self.target.path().display())).into());
        };
        let at = |error: io::Error| E::from(Error::at(&self.target.path(), error));
        let (mut temporary, bytes) = written(folder, Modes::like(folder, output), write, at)?;
        for name in names {
            match temporary.persist_new(&name) {
                Ok(()) => {
                    folder.sync()?;
                    return Ok((folder.path_of(name), bytes));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::at(&folder.path_of(name), error).into()),
            }
        }
        Err(Error::taken("there is no name left for it").into())
    }

    /// Lets a library write a new file or folder, given its path, which is valid only in this process.
    /// Nothing is there until all of it is. Fails if the output exists.
    pub fn write_new_by<E: From<Error>>(
        &self,
        write: impl FnOnce(&Path) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Target::File { folder, name } = &self.target else {
            return Err(Error::new(format_args!("{}: is no folder", self.target.path().display())).into());
        };
        let place = PrivateFolder::new_in(folder)?;
        write(&place.folder().fixed_path().join(name))?;
        place.folder().sync_all()?;
        place.folder().move_new(name, folder, name).map_err(|error| folder.not_new(name, error))?;
        Ok(folder.sync()?)
    }
}

/// The permissions of a new file.
struct Modes {
    /// Those that it is created with, of which the user's mask takes some away.
    first: Mode,
    /// Those that it has when it is complete.
    last: Option<Mode>,
}

impl Modes {
    /// For a file that takes the place of another, or is put beside it. A file of somebody else cannot give
    /// more permissions than the user's mask does, and a link or a device says nothing.
    fn like(folder: &Folder, name: &OsStr) -> Self {
        match folder.about(name) {
            Ok(about) if kind(&about) != FileType::RegularFile => Self { first: NEW_FILE, last: None },
            // A file that others may not read is not readable for a moment, either.
            Ok(about) if is_own(&about) => Self { first: OWN_FILE, last: Some(mode(&about) & PERMISSIONS) },
            Ok(about) => Self { first: mode(&about) & NEW_FILE | OWN_FILE, last: None },
            Err(_) => Self { first: NEW_FILE, last: None },
        }
    }
}

/// A temporary file with what `write` writes, complete and synced, and its length.
fn written<E: From<Error>>(
    folder: &Folder,
    modes: Modes,
    write: impl FnOnce(&mut dyn Write) -> std::result::Result<(), E>,
    at: impl Fn(io::Error) -> E,
) -> std::result::Result<(Temporary, u64), E> {
    let temporary =
        Temporary::file(folder, modes.first).map_err(|error| Error::not_created(folder.path(), error))?;
    let mut bytes = 0;
    if let Some(file) = temporary.as_file() {
        bytes = counted(file, write, &at)?;
        if let Some(mode) = modes.last {
            rustix::fs::fchmod(file, mode).map_err(|error| at(error.into()))?;
        }
        file.sync_all().map_err(at)?;
    }
    Ok((temporary, bytes))
}

fn counted<E>(
    output: impl Write,
    write: impl FnOnce(&mut dyn Write) -> std::result::Result<(), E>,
    at: impl Fn(io::Error) -> E,
) -> std::result::Result<u64, E> {
    let mut output = Counted { inner: BufWriter::new(output), bytes: 0 };
    write(&mut output)?;
    output.flush().map_err(at)?;
    Ok(output.bytes)
}

struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
