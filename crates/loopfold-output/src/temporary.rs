//! Temporary files and folders: created exclusively under a name that cannot be guessed, and
//! removed even if their process is killed.
//!
//! While a process lives it holds a lock on each of its temporaries, which the system releases with
//! the process, however that ends. Whoever writes to a directory first removes the temporaries in it
//! whose lock is free ([`sweep`]). Where locks do not work, or are local to a machine, the name says whose
//! it is: the number of the process and its place (see `place`); those of processes that are gone are
//! removed, and those of other machines stay.
//!
//! A name proves nothing: where others may rename, they can give such a name to a folder of the
//! user. So a temporary folder has a file in it with its name and number, which only its owner can have
//! written, and without that only an empty one is removed. All that is in a folder is removed through
//! its descriptor. A file needs no such proof: who can rename it could also remove it.
//!
//! A signal ends the process in another thread, which removes what is registered ([`remove_all`]).
//! Creating and renaming hold the same lock as that thread, so that nothing is left between two steps.
//!
//! Cost: a sweep lists the directory, and opens only files with such a name.

use crate::folder::{FileId, Folder, OWN_FILE, is_own, kind};
use crate::place::{Owner, Place, is_left};
use rustix::fs::{FileType, FlockOperation, Mode, Stat, flock};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How names of temporaries, and of locks, begin.
pub(crate) const PREFIX: &str = ".loopfold-";
const SUFFIX: &str = ".tmp";
/// The file in a temporary folder that shows that it is one.
pub(crate) const MARKER: &str = ".loopfold-folder";

/// What has to go if the process ends.
static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

struct Registered {
    folder: Folder,
    name: OsString,
    kind: Kind,
}

/// What a temporary is, by whatever name.
enum Kind {
    File(Option<FileId>),
    Folder(Folder),
}

impl Registered {
    /// Removes it, and nothing that has come in its place.
    fn remove(&self) {
        let _ = match &self.kind {
            Kind::File(file) if self.folder.id_of(&self.name) == *file => {
                self.folder.remove(&self.name).is_ok()
            }
            Kind::File(_) => false,
            Kind::Folder(inner) => {
                inner.clear(OsStr::new(MARKER)).is_ok() && self.folder.remove_folder(&self.name).is_ok()
            }
        };
    }
}

fn registered() -> MutexGuard<'static, Vec<Registered>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all temporaries of this process, which is about to end: whatever would create more waits
/// for ever.
pub(crate) fn remove_all() {
    let all = registered();
    all.iter().rev().for_each(Registered::remove);
    std::mem::forget(all);
}

/// Does something that a signal must not interrupt half done, such as creating a file and
/// registering it.
fn uninterrupted<T>(work: impl FnOnce(&mut Registry<'_>) -> T) -> T {
    work(&mut Registry(&mut registered()))
}

/// What is registered while nothing else changes it.
struct Registry<'a>(&'a mut Vec<Registered>);

impl Registry<'_> {
    fn add(&mut self, temporary: Registered) {
        self.0.push(temporary);
    }

    fn forget(&mut self, folder: &Folder, name: &OsStr) {
        self.0.retain(|one| one.name != name || one.folder.path() != folder.path());
    }
}

/// A temporary file, or folder, which goes away with this value.
#[derive(Debug)]
pub(crate) struct Temporary {
    folder: Folder,
    name: OsString,
    /// Holds the lock; the file itself, or the folder.
    handle: Handle,
    is_there: bool,
}

#[derive(Debug)]
enum Handle {
    File(File),
    Folder(Folder),
}

impl Handle {
    fn registered(&self, folder: &Folder, name: &OsStr) -> Registered {
        let kind = match self {
            Self::File(file) => Kind::File(FileId::of_open(file)),
            Self::Folder(inner) => Kind::Folder(inner.clone()),
        };
        Registered { folder: folder.clone(), name: name.to_os_string(), kind }
    }
}

impl Temporary {
    /// A new file.
    pub(crate) fn file(folder: &Folder, mode: Mode) -> rustix::io::Result<Self> {
        Self::create(folder, |name| folder.create_with(name, mode).map(Handle::File))
    }

    /// A new folder, whose permissions the user's mask restricts.
    pub(crate) fn folder(folder: &Folder, mode: Mode) -> rustix::io::Result<Self> {
        Self::create(folder, |name| {
            folder.create_folder(name, mode)?;
            folder.folder(name).map(Handle::Folder)
        })
    }

    fn create(
        folder: &Folder,
        create: impl Fn(&OsStr) -> rustix::io::Result<Handle>,
    ) -> rustix::io::Result<Self> {
        loop {
            let name = new_name()?;
            let handle = uninterrupted(|registry| {
                let handle = create(&name)?;
                registry.add(handle.registered(folder, &name));
                Ok(handle)
            });
            let handle = match handle {
                Ok(handle) => handle,
                // Taken for left behind even before it was opened.
                Err(Errno::NOENT) if folder.is_there() => continue,
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error),
            };
            let temporary = Self { folder: folder.clone(), name, handle, is_there: true };
            // Somebody may have looked at it before it was locked, and taken it for left behind.
            if temporary.lock() {
                temporary.mark()?;
                return Ok(temporary);
            }
        }
    }

    /// False if it is being removed, or was.
    fn lock(&self) -> bool {
        let locked = match &self.handle {
            Handle::File(file) => hold(file),
            Handle::Folder(folder) => hold(folder),
        };
        locked != Hold::Taken && self.folder.has(&self.name)
    }

    /// Leaves in a folder what shows that it is this one.
    fn mark(&self) -> rustix::io::Result<()> {
        let Handle::Folder(inner) = &self.handle else { return Ok(()) };
        let mut file = inner.create_with(OsStr::new(MARKER), OWN_FILE)?;
        let written = file.write_all(mark_of(inner, &self.name)?.as_bytes());
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    pub(crate) fn as_file(&self) -> Option<&File> {
        match &self.handle {
            Handle::File(file) => Some(file),
            Handle::Folder(_) => None,
        }
    }

    pub(crate) fn as_folder(&self) -> Option<&Folder> {
        match &self.handle {
            Handle::Folder(folder) => Some(folder),
            Handle::File(_) => None,
        }
    }

    /// Gives it a name for good, in place of the file that has it.
    pub(crate) fn replace(mut self, name: &OsStr) -> rustix::io::Result<()> {
        self.rename(|folder, own| folder.rename(own, name))
    }

    /// The same, unless the name is taken.
    pub(crate) fn persist_new(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        self.rename(|folder, own| folder.rename_new(own, name))?;
        if let Handle::Folder(inner) = &self.handle {
            let _ = inner.remove(OsStr::new(MARKER));
        }
        Ok(())
    }

    /// Gives it a name that others know, unless that is taken. It still goes away with this value.
    pub(crate) fn show_as(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        uninterrupted(|registry| {
            self.folder.rename_new(&self.name, name)?;
            registry.forget(&self.folder, &self.name);
            self.name = name.to_os_string();
            registry.add(self.handle.registered(&self.folder, &self.name));
            Ok(())
        })
    }

    fn rename(
        &mut self,
        rename: impl FnOnce(&Folder, &OsStr) -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        uninterrupted(|registry| {
            rename(&self.folder, &self.name)?;
            registry.forget(&self.folder, &self.name);
            self.is_there = false;
            Ok(())
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_there {
            return;
        }
        self.handle.registered(&self.folder, &self.name).remove();
        uninterrupted(|registry| registry.forget(&self.folder, &self.name));
    }
}

/// What came of taking a lock that the system releases with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Held,
    /// Another process has it.
    Taken,
    /// Locks do not work here.
    Unsupported,
}

/// Takes the lock of an open file, for as long as it is open.
pub(crate) fn hold(file: impl AsFd) -> Hold {
    lock(file, FlockOperation::NonBlockingLockExclusive)
}

/// The same together with others who only want to know whether it is held.
pub(crate) fn shared(file: impl AsFd) -> Hold {
    lock(file, FlockOperation::NonBlockingLockShared)
}

fn lock(file: impl AsFd, operation: FlockOperation) -> Hold {
    match flock(file, operation) {
        Ok(()) => Hold::Held,
        Err(Errno::WOULDBLOCK | Errno::INTR) => Hold::Taken,
        Err(_) => Hold::Unsupported,
    }
}

fn new_name() -> rustix::io::Result<OsString> {
    let random = getrandom::u64().map_err(|_| Errno::IO)?;
    let Owner { process, place } = Owner::this();
    Ok(format!("{PREFIX}{random:016x}-{process}-{place}{SUFFIX}").into())
}

/// The process of a temporary; `None` for names of another form.
fn owner(name: &OsStr) -> Option<Owner> {
    let rest = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let mut parts = rest.split('-');
    let (random, process, place) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = random.len() == 16 && u64::from_str_radix(random, 16).is_ok() && parts.next().is_none();
    let owner = Owner { process: process.parse().ok()?, place: Place::parse(place)? };
    is_name.then_some(owner)
}

/// Removes what processes that are gone have left in a directory: temporaries, and locks that nobody
/// holds. What cannot be removed stays.
pub(crate) fn sweep(folder: &Folder) {
    for name in folder.names().unwrap_or_default() {
        if crate::lock::is_lock(&name) {
            crate::lock::remove_free(folder, &name);
        } else if let Some(owner) = owner(&name) {
            sweep_one(folder, &name, owner);
        }
    }
}

fn sweep_one(folder: &Folder, name: &OsStr, owner: Owner) {
    match folder.about(name) {
        Ok(about) if !is_own(&about) => {}
        Ok(about) if kind(&about) == FileType::Directory => sweep_folder(folder, name, owner),
        Ok(about) if kind(&about) == FileType::RegularFile => sweep_file(folder, name, owner),
        _ => {}
    }
}

fn sweep_file(folder: &Folder, name: &OsStr, owner: Owner) {
    let Ok(file) = folder.open_to_lock(name) else { return };
    if is_left(hold(&file), Some(owner), folder.is_local()) {
        Handle::File(file).registered(folder, name).remove();
    }
}

/// A process that was killed before it could leave the marker has left an empty folder.
fn sweep_folder(folder: &Folder, name: &OsStr, owner: Owner) {
    let Ok(inner) = folder.folder(name) else { return };
    if !is_left(hold(&inner), Some(owner), folder.is_local()) {
        return;
    }
    if is_marked(&inner, name) {
        let _ = inner.clear(OsStr::new(MARKER));
    }
    let _ = folder.remove_folder(name);
}

/// What the marker of a folder says: its name, and its number, which a copy or a link of the marker in
/// another folder would not match.
fn mark_of(inner: &Folder, name: &OsStr) -> rustix::io::Result<String> {
    Ok(format!("{} {}\n", name.to_string_lossy(), inner.about_itself()?.st_ino))
}

fn is_marked(inner: &Folder, name: &OsStr) -> bool {
    let Ok(marker) = inner.read(OsStr::new(MARKER)) else { return false };
    let is_ours = |about: &Stat| is_own(about) && kind(about) == FileType::RegularFile;
    let mut text = String::new();
    rustix::fs::fstat(&marker).is_ok_and(|about| is_ours(&about))
        && inner.about_itself().is_ok_and(|about| is_own(&about))
        && marker.take(1000).read_to_string(&mut text).is_ok()
        && mark_of(inner, name).is_ok_and(|mark| mark == text)
}
