//! Folders for what other programs write, which nobody else can enter.

use crate::folder::{Folder, NEW_FILE};
use crate::temporary::{Temporary, sweep};
use crate::{Error, Result};
use rustix::fs::Mode;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A temporary folder, which goes away with this value.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: Folder,
    temporary: Temporary,
}

impl PrivateFolder {
    /// A folder among the temporary files of the system.
    pub fn new() -> Result<Self> {
        let all = Folder::open(&std::env::temp_dir())?;
        Self::new_in(&all)
    }

    /// A folder in another one.
    pub fn new_in(folder: &Folder) -> Result<Self> {
        Self::with_mode(folder, Mode::RWXU)
    }

    /// The same with other permissions, which the user's mask restricts.
    pub(crate) fn with_mode(folder: &Folder, mode: Mode) -> Result<Self> {
        sweep(folder);
        let temporary = Temporary::folder(folder, mode);
        let temporary = temporary.map_err(|error| Error::not_created(folder.path(), error))?;
        let inner = temporary.as_folder().cloned();
        let inner = inner.ok_or_else(|| Error::new("a folder is no folder"))?;
        Ok(Self { folder: inner, temporary })
    }

    /// Its path, for other programs.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Writes a new file in it and returns its path.
    pub fn write(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.folder.path_of(Path::new(name.as_ref()));
        let created = self.folder.create_with(name.as_ref(), NEW_FILE);
        let mut file = created.map_err(|error| self.folder.not_new(name.as_ref(), error))?;
        file.write_all(bytes).map_err(|error| Error::at(&path, error))?;
        Ok(path)
    }

    /// Gives it a name for good, unless that is taken.
    pub(crate) fn persist(mut self, name: &OsStr) -> rustix::io::Result<()> {
        self.temporary.persist_new(name)
    }
}
