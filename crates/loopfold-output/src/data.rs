//! Data that grow beside an output while a program runs, until the output is there: the parts of a
//! recording, or its spool. They are what remains if the recording is killed, so they are never
//! replaced: a new recording onto them is refused.
//!
//! The parts are a folder to which all processes of a job write, on one file system or on several.
//! Which job it belongs to is in it from the moment that it has its name: it is filled under another
//! one and renamed. So whoever finds it knows whether it is its own, and of two jobs one wins.

use crate::folder::{Folder, is_own};
use crate::private::PrivateFolder;
use crate::target::Target;
use crate::temporary::MARKER;
use crate::{Error, Result};
use rustix::fs::Mode;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PARTS: &str = ".parts";
const SPOOL: &str = ".spool";
const PARTIAL: &str = ".partial.fold";
/// The file of the folder with the number of the job.
const JOB: &str = "job";

/// For the directories of a network, which show for a while what they were.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// A number on which all processes of a job agree, and no other job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job(pub u64);

/// Where what came before the end is kept, if the output is a file: `x.partial.fold` for `x.fold`, or
/// `x.2.partial.fold` if that is there, and so on.
pub fn partial_names(target: &Target) -> impl Iterator<Item = OsString> + use<> {
    let name = match target {
        Target::File { name, .. } => Some(PathBuf::from(name)),
        _ => None,
    };
    let stem = name.map(|name| match name.extension().is_some_and(|extension| extension == "fold") {
        true => name.with_extension(""),
        false => name,
    });
    let numbers = std::iter::once(String::new()).chain((2..1000).map(|number: u32| format!(".{number}")));
    stem.into_iter().flat_map(move |stem| {
        let numbers = numbers.clone();
        numbers.map(move |number| with(stem.as_os_str(), &format!("{number}{PARTIAL}")))
    })
}

/// What a claim covers: data beside an output.
#[derive(Clone, Debug)]
pub struct Claim {
    folder: Folder,
    name: OsString,
}

impl Claim {
    /// The spool of a recording to this output.
    pub fn spool(target: &Target) -> Result<Self> {
        match target {
            Target::File { folder, name } => Ok(Self { folder: folder.clone(), name: with(name, SPOOL) }),
            _ => Self::elsewhere(getrandom::u64().unwrap_or_default(), SPOOL),
        }
    }

    fn parts(target: &Target, job: Job) -> Result<Self> {
        match target {
            Target::File { folder, name } => Ok(Self { folder: folder.clone(), name: with(name, PARTS) }),
            _ => Self::elsewhere(job.0, PARTS),
        }
    }

    /// Beside a device there is no place.
    fn elsewhere(number: u64, suffix: &str) -> Result<Self> {
        let folder = Folder::open(&std::env::temp_dir())?;
        Ok(Self { folder, name: format!("loopfold-{number:016x}{suffix}").into() })
    }

    /// Creates the file.
    pub fn create(&self) -> Result<std::fs::File> {
        self.folder.create(&self.name)
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<()> {
        self.folder.remove(&self.name)
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.folder.path_of(&self.name)
    }
}

/// The folder with the parts of a recording that a job writes.
#[derive(Clone, Debug)]
pub struct DataFolder {
    around: Folder,
    name: OsString,
    folder: Folder,
}

impl DataFolder {
    /// The path of the folder for an output.
    pub fn path_for(output: &Path) -> PathBuf {
        PathBuf::from(with(output.as_os_str(), PARTS))
    }

    /// Takes part in a job: creates the folder, unless another process of the job did. Fails if it
    /// is there and belongs to another.
    pub fn join(target: &Target, job: Job) -> Result<Self> {
        let Claim { folder: around, name } = Claim::parts(target, job)?;
        let is_private = !matches!(target, Target::File { .. });
        for _ in 0..ATTEMPTS {
            match around.folder(&name) {
                Ok(folder) if is_of_job(&folder, job) => return Ok(Self { around, name, folder }),
                Ok(_) => return Err(occupied(&around.path_of(&name))),
                Err(Errno::NOENT) => match create(&around, &name, job, is_private) {
                    Err(error) if error.kind() == crate::ErrorKind::Taken => std::thread::sleep(PAUSE),
                    created => created?,
                },
                Err(Errno::LOOP | Errno::NOTDIR) => return Err(occupied(&around.path_of(&name))),
                Err(error) => return Err(Error::at(&around.path_of(&name), error)),
            }
        }
        Err(occupied(&around.path_of(&name)))
    }

    /// The folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Removes it if nothing else is in it.
    pub fn remove_if_empty(&self) {
        let is_last =
            self.folder.names().is_ok_and(|names| names.iter().all(|name| name == JOB || name == MARKER));
        if is_last {
            // Whoever was killed while it gave the folder its name has left this.
            let _ = self.folder.remove(OsStr::new(MARKER));
            let _ = self.folder.remove(OsStr::new(JOB));
            let _ = self.around.remove_folder(&self.name);
        }
    }
}

fn create(around: &Folder, name: &OsStr, job: Job, is_private: bool) -> Result<()> {
    // Others may look at a recording, as far as the user's mask allows, but not change it.
    let mode = if is_private { Mode::RWXU } else { Mode::from_raw_mode(0o755) };
    let new = PrivateFolder::with_mode(around, mode)?;
    new.write(JOB, format!("{:016x}\n", job.0).as_bytes())?;
    new.folder().sync_all()?;
    match new.persist(name) {
        Ok(()) => around.sync(),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(occupied(&around.path_of(name))),
        Err(error) => Err(Error::at(&around.path_of(name), error)),
    }
}

fn is_of_job(folder: &Folder, job: Job) -> bool {
    let mut text = String::new();
    let is_own = folder.about_itself().is_ok_and(|about| is_own(&about));
    let read = folder.read(OsStr::new(JOB)).map(|file| file.take(100).read_to_string(&mut text));
    is_own && matches!(read, Ok(Ok(_))) && u64::from_str_radix(text.trim(), 16) == Ok(job.0)
}

fn with(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_os_string();
    name.push(suffix);
    name
}

/// Fails if a recording to this output would meet what an earlier one has left.
pub(crate) fn check_no_data(target: &Target) -> Result<()> {
    let Target::File { folder, name } = target else { return Ok(()) };
    let mut data = vec![with(name, PARTS), with(name, SPOOL)];
    data.extend(partial_names(target).next());
    data.extend(name.to_string_lossy().ends_with(PARTIAL).then(|| name.clone()));
    match data.into_iter().find(|name| folder.has(name)) {
        Some(name) => Err(occupied(&folder.path_of(name))),
        None => Ok(()),
    }
}

fn occupied(path: &Path) -> Error {
    let path = path.display();
    Error::taken(format_args!(
        "{path}: is what an earlier recording has left; `loopfold merge {path} -o NAME.fold` makes an archive of it; \
         remove it, or name another output"
    ))
}
