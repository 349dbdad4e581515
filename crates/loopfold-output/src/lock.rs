//! The lock of an output: a job that writes a file holds it from before it reads anything until the
//! file is there, so that two do not do the same work, or undo each other's.
//!
//! A lock is a file beside the target with the process and the machine in it. The holder has it open
//! and locked; the system releases the lock with the process, so one that was killed is in nobody's
//! way. Where such locks do not work (some network file systems), the file itself is the lock: it is
//! created exclusively, and one whose process is gone is taken over. The lock of another machine
//! cannot be judged there; the message says which file to remove.

use crate::folder::{FileId, Folder, OWN_FILE, is_own, kind};
use crate::temporary::{Hold, PREFIX, hold, is_gone, machine, shared, uninterrupted};
use crate::{Error, Result};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

const SUFFIX: &[u8] = b".lock";
/// The bytes of a name that a lock shows; a hash distinguishes longer ones.
const MOST_SHOWN: usize = 200;
/// How often it is tried, and the time between.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock {
    folder: Folder,
    name: OsString,
    /// Holds it for as long as it is open.
    _file: File,
}

/// The name of the lock of a file.
fn name_for(target: &OsStr) -> OsString {
    let bytes = target.as_bytes();
    let mut name = PREFIX.as_bytes().to_vec();
    name.extend_from_slice(&bytes[..bytes.len().min(MOST_SHOWN)]);
    if bytes.len() > MOST_SHOWN {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes);
        name.extend_from_slice(format!("-{hash:016x}").as_bytes());
    }
    name.extend_from_slice(SUFFIX);
    OsString::from(OsStr::from_bytes(&name))
}

/// True for the names of locks.
pub(crate) fn is_lock(name: &OsStr) -> bool {
    name.as_bytes().starts_with(PREFIX.as_bytes()) && name.as_bytes().ends_with(SUFFIX)
}

/// How a lock is taken: for tests, which have no file system without locks.
type Take = fn(&File) -> Hold;

impl Lock {
    /// Locks a file that this job is to write. Fails if another job does.
    pub(crate) fn take(folder: &Folder, target: &OsStr) -> Result<Self> {
        Self::take_by(folder, target, |file| hold(file))
    }

    fn take_by(folder: &Folder, target: &OsStr, take: Take) -> Result<Self> {
        let name = name_for(target);
        // Whoever looks whether it is free holds it for a moment, and whoever ends removes it.
        for attempt in 0..ATTEMPTS {
            let (file, origin) = match open(folder, &name) {
                Ok(opened) => opened,
                Err(Errno::NOENT) if folder.is_there() => continue,
                Err(Errno::ACCESS) if folder.has(&name) => return Err(of_another(folder, &name, target)),
                Err(error) => return Err(Error::not_created(folder.path(), error)),
            };
            match acquire(folder, &name, &file, origin, take) {
                Some(true) => return Ok(Self::held(folder, name, file)),
                Some(false) if attempt + 1 == ATTEMPTS => return Err(taken(folder, &name, target, &file)),
                Some(false) => std::thread::sleep(PAUSE),
                None => {}
            }
        }
        let target = folder.path_of(target);
        Err(Error::taken(format_args!("{}: other programs write it all the time", target.display())))
    }

    fn held(folder: &Folder, name: OsString, file: File) -> Self {
        uninterrupted(|registry| registry.add_file(folder, &name, &file));
        write_holder(&file);
        Self { folder: folder.clone(), name, _file: file }
    }

    /// Fails if another job holds the lock of a file, without taking it.
    pub(crate) fn check_free(folder: &Folder, target: &OsStr) -> Result<()> {
        let name = name_for(target);
        let Ok((file, _)) = open_found(folder, &name) else { return Ok(()) };
        if is_left(&file, || shared(&file)) { Ok(()) } else { Err(taken(folder, &name, target, &file)) }
    }
}

/// Whether the process that held a lock is gone.
fn is_left(file: &File, take: impl Fn() -> Hold) -> bool {
    match take() {
        Hold::Held => true,
        Hold::Taken => false,
        Hold::Unsupported => {
            holder(file).is_some_and(|holder| holder.machine == machine() && is_gone(holder.process))
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        uninterrupted(|registry| {
            let _ = self.folder.remove(&self.name);
            registry.forget(&self.folder, &self.name);
        });
    }
}

/// Who has made the file of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// This process.
    New,
    Found,
}

fn open(folder: &Folder, name: &OsStr) -> rustix::io::Result<(File, Origin)> {
    match folder.create_with(name, OWN_FILE) {
        Ok(file) => Ok((file, Origin::New)),
        Err(Errno::EXIST) => open_found(folder, name),
        Err(error) => Err(error),
    }
}

/// Whether the lock is held now; `None` if its file was removed meanwhile.
fn acquire(folder: &Folder, name: &OsStr, file: &File, origin: Origin, take: Take) -> Option<bool> {
    match take(file) {
        Hold::Held => is_at(folder, name, file).then_some(true),
        Hold::Taken => Some(false),
        Hold::Unsupported if origin == Origin::New => Some(true),
        Hold::Unsupported => take_over(folder, name, file),
    }
}

/// Removes a lock whose process is gone, so that the next attempt creates it. Who removes it first
/// gives it another name, and sees whether that was the one that was read.
fn take_over(folder: &Folder, name: &OsStr, file: &File) -> Option<bool> {
    if !is_left(file, || Hold::Unsupported) {
        return Some(false);
    }
    let aside = OsString::from(format!("{PREFIX}{:016x}.lock", getrandom::u64().ok()?));
    if folder.rename(name, &aside).is_ok() {
        if is_at(folder, &aside, file) {
            let _ = folder.remove(&aside);
        } else {
            let _ = folder.rename_new(&aside, name);
        }
    }
    None
}

fn is_at(folder: &Folder, name: &OsStr, file: &File) -> bool {
    let there = folder.about(name).ok().map(|about| FileId::from(&about));
    there.is_some() && there == FileId::of_open(file)
}

/// Removes a lock that nobody holds.
pub(crate) fn remove_free(folder: &Folder, name: &OsStr) {
    let Ok((file, Origin::Found)) = open_found(folder, name) else { return };
    if is_left(&file, || hold(&file)) && is_at(folder, name, &file) {
        let _ = folder.remove(name);
    }
}

fn open_found(folder: &Folder, name: &OsStr) -> rustix::io::Result<(File, Origin)> {
    let about = folder.about(name)?;
    if kind(&about) != FileType::RegularFile || !is_own(&about) {
        return Err(Errno::ACCESS);
    }
    Ok((folder.open_to_lock(name)?, Origin::Found))
}

/// Who holds a lock, as its file says.
#[derive(Debug)]
struct Holder {
    process: u32,
    machine: u64,
    host: String,
}

fn write_holder(file: &File) {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let text = format!("{} {:016x} {host}\n", std::process::id(), machine());
    // It is for messages, and for where locks do not work.
    let _ = file.set_len(0).and_then(|()| file.write_all_at(text.as_bytes(), 0));
}

fn holder(file: &File) -> Option<Holder> {
    let mut bytes = [0; 1000];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    let mut words = text.split_whitespace();
    let process = words.next()?.parse().ok()?;
    let machine = u64::from_str_radix(words.next()?, 16).ok()?;
    let host: String = words.next()?.chars().filter(|letter| !letter.is_control()).collect();
    Some(Holder { process, machine, host })
}

fn taken(folder: &Folder, name: &OsStr, target: &OsStr, file: &File) -> Error {
    let (target, lock) = (folder.path_of(target), folder.path_of(name));
    let (target, lock) = (target.display(), lock.display());
    match holder(file) {
        Some(Holder { process, machine: place, .. }) if place == machine() => Error::taken(format_args!(
            "{target}: is being written by process {process}; wait for it, or name another file"
        )),
        Some(Holder { process, host, .. }) => Error::taken(format_args!(
            "{target}: is being written by process {process} on {host}; wait for it, or name another file \
             (if that process is gone, remove {lock})"
        )),
        None => Error::taken(format_args!(
            "{target}: is being written by another process; wait for it, or name another file (if there is none, \
             remove {lock})"
        )),
    }
}

fn of_another(folder: &Folder, name: &OsStr, target: &OsStr) -> Error {
    Error::taken(format_args!(
        "{}: another user has locked it by {}; name another file",
        folder.path_of(target).display(),
        folder.path_of(name).display()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WAYS: [Take; 2] = [|file| hold(file), |_| Hold::Unsupported];

    #[test]
    fn one_at_a_time() {
        for take in WAYS {
            let place = tempfile::tempdir().unwrap();
            let folder = Folder::open(place.path()).unwrap();
            let first = Lock::take_by(&folder, OsStr::new("x.fold"), take).unwrap();
            let second = Lock::take_by(&folder, OsStr::new("x.fold"), take).unwrap_err();
            assert!(second.to_string().contains("is being written by process"), "{second}");
            assert_eq!(second.kind(), crate::ErrorKind::Taken);
            Lock::take_by(&folder, OsStr::new("y.fold"), take).unwrap();
            drop(first);
            drop(Lock::take_by(&folder, OsStr::new("x.fold"), take).unwrap());
            assert_eq!(folder.names().unwrap(), Vec::<OsString>::new());
        }
    }

    /// The number of a process that has ended.
    fn ended() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn a_lock_dies_with_its_holder() {
        for take in WAYS {
            let place = tempfile::tempdir().unwrap();
            let folder = Folder::open(place.path()).unwrap();
            let name = name_for(OsStr::new("x.fold"));
            let left = format!("{} {:016x} here\n", ended(), machine());
            std::fs::write(place.path().join(&name), left).unwrap();
            drop(Lock::take_by(&folder, OsStr::new("x.fold"), take).unwrap());
            assert_eq!(folder.names().unwrap(), Vec::<OsString>::new());
        }
    }

    #[test]
    fn without_locks_one_of_another_machine_is_respected() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let lock = place.path().join(name_for(OsStr::new("x.fold")));
        std::fs::write(&lock, format!("{} {:016x} elsewhere\n", ended(), !machine())).unwrap();
        let error = Lock::take_by(&folder, OsStr::new("x.fold"), WAYS[1]).unwrap_err().to_string();
        assert!(error.contains("on elsewhere") && error.contains(lock.to_str().unwrap()), "{error}");
    }

    #[test]
    fn what_is_no_file_is_no_lock() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let victim = place.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, place.path().join(name_for(OsStr::new("x.fold")))).unwrap();
        let error = Lock::take(&folder, OsStr::new("x.fold")).unwrap_err().to_string();
        assert!(error.contains("another user has locked it"), "{error}");
        assert_eq!(std::fs::read_to_string(victim).unwrap(), "mine");
    }

    #[test]
    fn long_names_have_locks() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let names = ["a", "b"].map(|end| OsString::from("x".repeat(254) + end));
        let locks = names.each_ref().map(|name| Lock::take(&folder, name).unwrap());
        assert!(Lock::take(&folder, &names[0]).is_err());
        drop(locks);
    }
}
