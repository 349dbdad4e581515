//! A folder for programs that are compiled once and loaded later: what is in it runs with the rights
//! of the user, so nobody else may have written it.
//!
//! The home directory is the user's own if it says so, and that of the system's list of users
//! otherwise; without one, a folder of the user's among the temporary files. The folder and what
//! is around it have to belong to the user or to root, and nobody else may be able to replace them.

use crate::folder::{Folder, OWN_FILE, is_own, kind, mode};
use crate::{Error, PrivateFolder, Result};
use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A folder that only the user can write to.
#[derive(Debug)]
pub struct Cache {
    folder: Folder,
}

impl Cache {
    /// The user's folder of this name; it is created if it is missing.
    pub fn open(name: &str) -> Result<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(named) = set("XDG_CACHE_HOME") {
            return Self::in_base(&named, name);
        }
        let mut problem = None;
        let is_home = |home: &PathBuf| home.is_dir() && home != Path::new("/");
        for home in [set("HOME"), home_of_user()].into_iter().flatten().filter(is_home) {
            match Self::in_base(&home.join(".cache"), name) {
                Ok(cache) => return Ok(cache),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        let user = rustix::process::geteuid().as_raw();
        Self::in_base(&std::env::temp_dir().join(format!("loopfold-{user}")), name)
            .map_err(|error| problem.unwrap_or(error))
    }

    fn in_base(base: &Path, name: &str) -> Result<Self> {
        private_in(base, name).map(|folder| Self { folder })
    }

    /// Its path, for other programs.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until nobody else holds the lock of this folder, and holds it while the result lives. Where
    /// locks do not work, several build the same.
    pub fn lock(&self) -> Result<File> {
        let name = OsStr::new("lock");
        let created = match self.folder.create_with(name, OWN_FILE) {
            Err(Errno::EXIST) => self.folder.open_to_lock(name),
            created => created,
        };
        let file = created.map_err(|error| Error::at(&self.folder.path_of(name), error))?;
        let _ = file.lock();
        Ok(file)
    }

    /// Lets other programs build a file in a folder of its own, and gives it this path in the cache. `build`
    /// returns where it is.
    pub fn build<E: From<Error>>(
        &self,
        path: &Path,
        build: impl FnOnce(&PrivateFolder) -> std::result::Result<PathBuf, E>,
    ) -> std::result::Result<(), E> {
        let place = PrivateFolder::new_in(&self.folder)?;
        let built = build(&place)?;
        let (from, to) = (built.file_name().unwrap_or_default(), path.file_name().unwrap_or_default());
        place.folder().move_to(from, &self.folder, to).map_err(|error| Error::at(path, error))?;
        Ok(())
    }

    /// Removes a file in it, which need not be there.
    pub fn remove(&self, path: &Path) -> Result<()> {
        self.folder.remove(path.file_name().unwrap_or_default())
    }
}

/// The home directory by the system's list of users.
fn home_of_user() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = lines.find(|fields| fields.get(2) == Some(&user.as_str()))?;
    own.get(5).filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The folder, created if it is missing, and checked.
fn private_in(base: &Path, name: &str) -> Result<Folder> {
    let base = std::path::absolute(base).map_err(|error| Error::at(base, error))?;
    // Before anything is created in somebody else's home.
    let there = base.ancestors().find(|part| part.is_dir()).unwrap_or(Path::new("/"));
    check_around(&there.canonicalize().map_err(|error| Error::at(there, error))?)?;
    create_own(&base)?;
    let base = base.canonicalize().map_err(|error| Error::at(&base, error))?;
    check_around(&base)?;
    let folder = Folder::open(&base)?;
    let inner = own_folder(&folder, OsStr::new("loopfold"))?;
    own_folder(&inner, OsStr::new(name))
}

/// Creates missing directories for this user alone.
fn create_own(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|error| Error::at(path, error))
}

/// Opens a directory, or creates it for this user alone; it has to be the user's.
fn own_folder(folder: &Folder, name: &OsStr) -> Result<Folder> {
    let path = folder.path_of(name);
    let opened = match folder.create_folder(name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => folder.folder(name),
        Err(error) => Err(error),
    };
    let opened = opened.map_err(|error| Error::at(&path, error))?;
    let about = opened.about_itself().map_err(|error| Error::at(&path, error))?;
    if !is_own(&about) || may_others_write(&about) {
        return Err(untrusted(&path));
    }
    Ok(opened)
}

/// Fails if somebody else could replace one of the directories on the way.
fn check_around(path: &Path) -> Result<()> {
    for around in path.ancestors() {
        let about = rustix::fs::stat(around).map_err(|error| Error::at(around, error))?;
        let is_trusted = is_own(&about) || about.st_uid == 0;
        let is_open = mode(&about).contains(Mode::WOTH) && !mode(&about).contains(Mode::SVTX);
        if !is_trusted || is_open {
            return Err(untrusted(around));
        }
    }
    Ok(())
}

fn may_others_write(about: &Stat) -> bool {
    kind(about) != FileType::Directory || mode(about).intersects(Mode::WGRP | Mode::WOTH)
}

fn untrusted(path: &Path) -> Error {
    Error::new(format_args!(
        "{}: others can write there, so what is in it is not loaded; name a folder of your own in XDG_CACHE_HOME",
        path.display()
    ))
}
