//! The lock of an output: a job that writes a file holds it from before it reads anything until the
//! file is there, so that two do not do the same work, or undo each other's.
//!
//! A lock is a file beside the target with the process and its place in it. It gets its name when the
//! holder has it open and locked; the system releases the lock with the process, so one that was killed is
//! in nobody's way. Where such locks do not work, or are local to a machine (some network file systems),
//! the file itself is the lock: one whose process is gone is taken over, and that of another machine cannot
//! be judged; the message says which file to remove.
//!
//! Everybody may read a lock, so that other users of a directory can see whether it is held. One
//! that is left is never written to: it is renamed, compared with what was judged, and removed.

use crate::folder::{FileId, Folder, OWN_FILE, is_own, kind};
use crate::place::{Owner, Place, is_left};
use crate::temporary::{Hold, PREFIX, Temporary, hold, shared};
use crate::{Error, Result};
use rustix::fs::{FileType, Mode};
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

/// The permissions of a lock, whatever the user's mask: there is no secret in it.
const SHOWN: Mode = Mode::from_raw_mode(0o644);

/// A lock that is held, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Temporary,
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

/// How it is found out whether a lock is held: for tests, which have no file system without locks.
type Test = fn(&File) -> Hold;

/// Some file systems of a network have only shared locks for what is open for reading; as a holder has
/// one for itself, these show as well that there is none.
fn test(file: &File) -> Hold {
    match hold(file) {
        Hold::Unsupported => shared(file),
        held => held,
    }
}

/// What has the name of a lock.
enum Found {
    Nothing,
    /// A lock whose process is gone.
    Left(File),
    Held(File),
    /// What cannot be opened for reading.
    Unreadable,
    NoLock,
}

impl Lock {
    /// Locks a file that this job is to write. Fails if another job does.
    pub(crate) fn take(folder: &Folder, target: &OsStr) -> Result<Self> {
        Self::take_by(folder, target, test)
    }

    fn take_by(folder: &Folder, target: &OsStr, test: Test) -> Result<Self> {
        let name = name_for(target);
        for _ in 0..ATTEMPTS {
            check(folder, target, test)?;
            match Self::create(folder, &name) {
                Err(Errno::EXIST) => {}
                created => {
                    let named = |error| Error::not_created(folder.path(), error).of(&folder.path_of(target));
                    return created.map_err(named);
                }
            }
        }
        let target = folder.path_of(target);
        Err(Error::taken(format_args!("{}: other programs write it all the time", target.display())))
    }

    fn create(folder: &Folder, name: &OsStr) -> rustix::io::Result<Self> {
        let mut temporary = Temporary::file(folder, OWN_FILE)?;
        if let Some(file) = temporary.as_file() {
            write_holder(file);
            rustix::fs::fchmod(file, SHOWN)?;
        }
        temporary.show_as(name)?;
        Ok(Self { _file: temporary })
    }

    /// Fails if another job holds the lock of a file, without taking it.
    pub(crate) fn check_free(folder: &Folder, target: &OsStr) -> Result<()> {
        wait(folder, target, |file| shared(file)).map(|_| ())
    }
}

/// Waits for a moment if a lock is held: whoever looks whether it is free holds it for that long, and
/// a job that ends releases it soon. Returns the file of a lock that is left.
fn wait(folder: &Folder, target: &OsStr, test: Test) -> Result<Option<File>> {
    let name = name_for(target);
    let mut attempts = 0..ATTEMPTS;
    loop {
        match look(folder, &name, test) {
            Found::Nothing => return Ok(None),
            Found::Left(file) => return Ok(Some(file)),
            Found::Held(file) if attempts.next().is_none() => {
                return Err(taken(folder, &name, target, &file));
            }
            Found::Held(_) => std::thread::sleep(PAUSE),
            Found::Unreadable => return Err(of_another(folder, &name, target, "has locked it")),
            Found::NoLock => return Err(in_the_way(folder, &name)),
        }
    }
}

/// Fails if a lock is held, and removes one that is left.
fn check(folder: &Folder, target: &OsStr, test: Test) -> Result<()> {
    let Some(file) = wait(folder, target, test)? else { return Ok(()) };
    let name = name_for(target);
    let is_of_another = rustix::fs::fstat(&file).is_ok_and(|about| !is_own(&about));
    remove_left(folder, &name, &file).map_err(|error| match error {
        Errno::ACCESS | Errno::PERM if is_of_another => {
            of_another(folder, &name, target, "has left a lock of it")
        }
        error => Error::not_created(folder.path(), error).of(&folder.path_of(target)),
    })
}

fn look(folder: &Folder, name: &OsStr, test: Test) -> Found {
    match folder.about(name) {
        Err(Errno::NOENT) => return Found::Nothing,
        Ok(about) if kind(&about) == FileType::RegularFile => {}
        Ok(_) => return Found::NoLock,
        Err(_) => return Found::Unreadable,
    }
    let file = match folder.open_to_lock(name) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Found::Nothing,
        Err(Errno::LOOP) => return Found::NoLock,
        Err(_) => return Found::Unreadable,
    };
    let Some(content) = content(&file) else { return Found::NoLock };
    let owner = content.map(|holder| holder.owner);
    if is_left(test(&file), owner, folder.is_local()) { Found::Left(file) } else { Found::Held(file) }
}

/// Removes a lock whose process is gone. Who does so first gives it another name, and sees whether
/// that was the one that was judged.
fn remove_left(folder: &Folder, name: &OsStr, file: &File) -> rustix::io::Result<()> {
    let random = getrandom::u64().map_err(|_| Errno::IO)?;
    let aside = OsString::from(format!("{PREFIX}{random:016x}.lock"));
    match folder.rename(name, &aside) {
        Err(Errno::NOENT) => return Ok(()),
        renamed => renamed?,
    }
    if folder.id_of(&aside) == FileId::of_open(file) {
        let _ = folder.remove(&aside);
    } else {
        let _ = folder.rename_new(&aside, name);
    }
    Ok(())
}

/// Removes a lock of this user that nobody holds. What only has the name of one stays.
pub(crate) fn remove_free(folder: &Folder, name: &OsStr) {
    if !folder.about(name).is_ok_and(|about| is_own(&about)) {
        return;
    }
    if let Found::Left(file) = look(folder, name, test) {
        let _ = remove_left(folder, name, &file);
    }
}

/// Who holds a lock, as its file says.
#[derive(Debug)]
struct Holder {
    owner: Owner,
    host: String,
}

fn write_holder(file: &File) {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let Owner { process, place } = Owner::this();
    // It is for messages, and for where locks do not work: on a full disk there still is a lock.
    let _ = file.write_all_at(format!("{process} {place} {host}\n").as_bytes(), 0);
}

/// What a lock says: nothing, where the disk was full. `None` for what is no lock, and stays.
fn content(file: &File) -> Option<Option<Holder>> {
    let mut bytes = [0; 1000];
    let length = file.read_at(&mut bytes, 0).ok()?;
    if length == 0 {
        return Some(None);
    }
    let text = std::str::from_utf8(&bytes[..length]).ok()?.strip_suffix('\n')?;
    let mut words = text.split(' ');
    let (process, place, host) = (words.next()?.parse().ok()?, Place::parse(words.next()?)?, words.next()?);
    let is_form = words.next().is_none() && !host.contains(char::is_control);
    is_form.then(|| Some(Holder { owner: Owner { process, place }, host: host.to_string() }))
}

fn taken(folder: &Folder, name: &OsStr, target: &OsStr, file: &File) -> Error {
    let (target, lock) = (folder.path_of(target), folder.path_of(name));
    let (target, lock) = (target.display(), lock.display());
    match content(file).flatten() {
        Some(Holder { owner: Owner { process, place }, .. }) if place == Place::here() => {
            Error::taken(format_args!(
                "{target}: is being written by process {process}; wait for it, or name another file"
            ))
        }
        Some(Holder { owner: Owner { process, .. }, host }) => Error::taken(format_args!(
            "{target}: is being written by process {process} on {host}; wait for it, or name another file \
             (if that process is gone, remove {lock})"
        )),
        None => Error::taken(format_args!(
            "{target}: is being written by another process; wait for it, or name another file (if there is none, \
             remove {lock})"
        )),
    }
}

/// What another user has done, who can undo it.
fn of_another(folder: &Folder, name: &OsStr, target: &OsStr, what: &str) -> Error {
    let owner = folder.about(name).map_or(String::new(), |about| format!(" (number {})", about.st_uid));
    Error::taken(format_args!(
        "{}: another user{owner} {what}; name another file, or ask that user, or the owner of the directory, to \
         remove {} if no job holds it",
        folder.path_of(target).display(),
        folder.path_of(name).display()
    ))
}

fn in_the_way(folder: &Folder, name: &OsStr) -> Error {
    Error::new(format_args!(
        "{}: is no lock, but has the name of one; remove it, or name another file to write",
        folder.path_of(name).display()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LOCKS: [Test; 2] = [super::test, |_| Hold::Unsupported];

    #[test]
    fn one_at_a_time() {
        for test in LOCKS {
            let place = tempfile::tempdir().unwrap();
            let folder = Folder::open(place.path()).unwrap();
            let first = Lock::take_by(&folder, OsStr::new("x.fold"), test).unwrap();
            let second = Lock::take_by(&folder, OsStr::new("x.fold"), test).unwrap_err();
            assert!(second.to_string().contains("is being written by process"), "{second}");
            assert_eq!(second.kind(), crate::ErrorKind::Taken);
            Lock::take_by(&folder, OsStr::new("y.fold"), test).unwrap();
            drop(first);
            drop(Lock::take_by(&folder, OsStr::new("x.fold"), test).unwrap());
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
        for test in LOCKS {
            let place = tempfile::tempdir().unwrap();
            let folder = Folder::open(place.path()).unwrap();
            let name = name_for(OsStr::new("x.fold"));
            let left = format!("{} {} here\n", ended(), Place::here());
            std::fs::write(place.path().join(&name), left).unwrap();
            drop(Lock::take_by(&folder, OsStr::new("x.fold"), test).unwrap());
            assert_eq!(folder.names().unwrap(), Vec::<OsString>::new());
        }
    }

    #[test]
    fn without_locks_one_of_another_machine_is_respected() {
        let [before, elsewhere, _] = crate::place::tests::places();
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let lock = place.path().join(name_for(OsStr::new("x.fold")));
        std::fs::write(&lock, format!("{} {elsewhere} elsewhere\n", ended())).unwrap();
        let error = Lock::take_by(&folder, OsStr::new("x.fold"), LOCKS[1]).unwrap_err().to_string();
        assert!(error.contains("on elsewhere") && error.contains(lock.to_str().unwrap()), "{error}");
        std::fs::write(&lock, format!("1 {before} here\n")).unwrap();
        Lock::take_by(&folder, OsStr::new("x.fold"), LOCKS[1]).unwrap();
    }

    #[test]
    fn what_only_has_the_name_of_a_lock_stays() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let name = name_for(OsStr::new("x.fold"));
        let path = place.path().join(&name);
        for text in ["notes\n".to_string(), "1 2 3\n".into(), format!("1 {} here\nmore\n", Place::here())] {
            std::fs::write(&path, &text).unwrap();
            remove_free(&folder, &name);
            let error = Lock::take(&folder, OsStr::new("x.fold")).unwrap_err().to_string();
            assert!(error.contains("is no lock"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::write(&path, "").unwrap();
        remove_free(&folder, &name);
        assert!(!path.exists());
    }

    /// A lock that is taken over between the look and the removal is another file of the same name.
    #[test]
    fn only_the_lock_that_was_judged_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let name = name_for(OsStr::new("x.fold"));
        std::fs::write(place.path().join(&name), "").unwrap();
        let left = folder.open_to_lock(&name).unwrap();
        folder.remove(&name).unwrap();
        let lock = Lock::take(&folder, OsStr::new("x.fold")).unwrap();
        remove_left(&folder, &name, &left).unwrap();
        assert_eq!(folder.names().unwrap(), [name]);
        drop(lock);
        assert_eq!(folder.names().unwrap(), Vec::<OsString>::new());
    }

    #[test]
    fn a_lock_that_is_released_soon_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let lock = Lock::take(&folder, OsStr::new("x.fold")).unwrap();
        let release = std::thread::spawn(move || {
            std::thread::sleep(10 * PAUSE);
            drop(lock);
        });
        Lock::check_free(&folder, OsStr::new("x.fold")).unwrap();
        release.join().unwrap();
    }

    #[test]
    fn what_is_no_file_is_no_lock() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let victim = place.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, place.path().join(name_for(OsStr::new("x.fold")))).unwrap();
        let error = Lock::take(&folder, OsStr::new("x.fold")).unwrap_err().to_string();
        assert!(error.contains("is no lock"), "{error}");
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
