//! Where the user wants something written: the path is resolved once.
//!
//! A link as the last part of the path is followed, even if it leads nowhere yet; what is renamed
//! later is in the directory that this leads to. Links under `/proc` are open files rather than
//! names: `/dev/stdout` is standard output, wherever that goes, and `/dev/fd/5` is written to through
//! a duplicate of the descriptor, as a shell would do it, with its offset and whether it appends.
//!
//! In a directory such as `/tmp`, where everybody may create files, the system follows only links of
//! the user or of the owner of the directory (`protected_symlinks`), and opens only such pipes
//! (`protected_fifos`). Links that are resolved here escape it, so the rule is applied here, whatever the
//! setting of the system.

use crate::folder::{FileId, Folder, is_own, kind, mode};
use crate::{Error, Result};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Links that lead from one to the next, at most, as for the system.
const MOST_LINKS: usize = 40;

/// What a path of the user leads to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A device, a pipe or an open file: it is written to as it is.
    Special(Special),
    /// A file, which may exist, in a directory that does.
    File {
        /// The directory.
        folder: Folder,
        /// The name in it.
        name: OsString,
    },
}

/// What is written to as it is.
#[derive(Clone, Debug)]
pub struct Special {
    path: PathBuf,
    access: Access,
}

#[derive(Clone, Debug)]
enum Access {
    /// A device or a pipe, which is opened when it is written, as this may wait for a reader.
    Named { folder: Folder, name: OsString, file: FileId },
    /// A duplicate of a descriptor of this process.
    Open(Arc<OwnedFd>),
    /// An open pipe or device of another process, or of this one where it cannot be duplicated.
    Linked,
}

impl Target {
    /// Resolves a path; `-` is standard output.
    pub fn named(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        let mut resolved = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            if let Some(open) = open_file(&resolved) {
                return open;
            }
            match Self::step(&resolved)? {
                Step::Link(next) => resolved = parent(&resolved).join(next),
                Step::End(target) => return Ok(target),
            }
        }
        Err(Error::new(format_args!("{}: too many links", path.display())))
    }

    fn step(path: &Path) -> Result<Step> {
        let shown = path.display();
        let is_directory =
            || Err(Error::new(format_args!("{shown}: is a directory; name the file to write in it")));
        let name = match path.file_name() {
            Some(name) if !is_name_of_directory(path) => name,
            _ if path.is_dir() => return is_directory(),
            // As the system has it: there is no file of this name.
            Some(_) => {
                let message = "is the name of a directory; name the file to write";
                return Err(Error::new(format_args!("{shown}: {message}")));
            }
            None => return Err(Error::new(format_args!("{shown}: names no file"))),
        };
        let folder = Folder::open(parent(path)).map_err(|error| error.of(path))?;
        let at = |error: Errno| Error::at(path, error);
        let about = match folder.about(name) {
            Err(Errno::NOENT) => return Ok(Step::End(Self::File { folder, name: name.to_os_string() })),
            about => about.map_err(at)?,
        };
        match kind(&about) {
            FileType::Directory => is_directory(),
            FileType::Symlink => {
                let (about, next) = folder.read_link(name).map_err(at)?;
                check_trusted(&folder, &about, path, "link")?;
                Ok(Step::Link(PathBuf::from(OsString::from_vec(next))))
            }
            FileType::RegularFile => Ok(Step::End(Self::File { folder, name: name.to_os_string() })),
            _ => {
                check_trusted(&folder, &about, path, "pipe or device")?;
                let access = Access::Named { folder, name: name.to_os_string(), file: FileId::from(&about) };
                Ok(Step::End(Self::Special(Special { path: path.to_path_buf(), access })))
            }
        }
    }

    /// A file of this name in a directory, whatever has the name now: no link is followed.
    pub(crate) fn in_folder(folder: &Folder, name: &OsStr) -> Result<Self> {
        let path = folder.path_of(name);
        if Path::new(name).file_name() != Some(name) {
            return Err(Error::new(format_args!("{}: names no file", path.display())));
        }
        match folder.about(name).map(|about| kind(&about)) {
            Ok(FileType::RegularFile | FileType::Symlink) | Err(Errno::NOENT) => {
                Ok(Self::File { folder: folder.clone(), name: name.to_os_string() })
            }
            Ok(_) => Err(Error::new(format_args!("{}: is there and no file; remove it", path.display()))),
            Err(error) => Err(Error::at(&path, error)),
        }
    }

    /// The path that it leads to.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("-"),
            Self::Special(special) => special.path.clone(),
            Self::File { folder, name } => folder.path_of(name),
        }
    }

    /// The file that is there now and would be replaced, or written to.
    pub fn existing(&self) -> Option<FileId> {
        match self {
            Self::Stdout => file_of(std::io::stdout()),
            Self::Special(Special { access: Access::Open(open), .. }) => file_of(open),
            Self::Special(_) => None,
            Self::File { folder, name } => folder.id_of(name),
        }
    }

    /// Fails where a file of somebody else could not be replaced, which otherwise would come out at
    /// the end.
    pub(crate) fn check_replaceable(&self) -> Result<()> {
        let Self::File { folder, name } = self else { return Ok(()) };
        let (Ok(about), Ok(around)) = (folder.about(name), folder.about_itself()) else { return Ok(()) };
        let is_kept = mode(&around).contains(Mode::SVTX) && !is_own(&about) && !is_own(&around);
        if is_kept && !rustix::process::geteuid().is_root() {
            let path = self.path();
            return Err(Error::new(format_args!(
                "{}: belongs to another user, who alone can replace it in this directory; name another file",
                path.display()
            )));
        }
        Ok(())
    }
}

/// What one part of a path leads to.
enum Step {
    Link(PathBuf),
    End(Target),
}

impl Special {
    /// Whether it is a terminal. Only devices are opened to be asked: a pipe would wait for a reader.
    pub fn is_terminal(&self) -> bool {
        let is_device = std::fs::metadata(&self.path).is_ok_and(|about| about.file_type().is_char_device());
        is_device && self.open().is_ok_and(|file| file.is_terminal())
    }

    /// Opens it. What has come in its place is not written to.
    pub(crate) fn open(&self) -> Result<File> {
        let at = |error: Errno| Error::at(&self.path, error);
        match &self.access {
            Access::Open(open) => rustix::io::fcntl_dupfd_cloexec(open, 0).map(File::from).map_err(at),
            Access::Named { folder, name, file } => {
                let opened = folder.open_to_write(name).map_err(at)?;
                let is_same = FileId::of_open(&opened) == Some(*file);
                if is_same { Ok(opened) } else { Err(self.replaced()) }
            }
            Access::Linked => {
                let opened = File::options().write(true).open(&self.path);
                let opened = opened.map_err(|error| Error::at(&self.path, error))?;
                if file_of(&opened).is_none() { Ok(opened) } else { Err(self.replaced()) }
            }
        }
    }

    fn replaced(&self) -> Error {
        Error::new(format_args!("{}: has become another file meanwhile", self.path.display()))
    }
}

/// The rule of the system for directories in which everybody may create files.
fn check_trusted(folder: &Folder, about: &Stat, path: &Path, what: &str) -> Result<()> {
    let around = folder.about_itself().map_err(|error| Error::at(folder.path(), error))?;
    let is_shared = mode(&around).contains(Mode::SVTX | Mode::WOTH);
    if !is_shared || is_own(about) || about.st_uid == around.st_uid {
        return Ok(());
    }
    Err(Error::new(format_args!(
        "{}: is a {what} of another user (number {}) in a directory where everybody can create one; name another file",
        path.display(),
        about.st_uid
    )))
}

/// Whether a path can only name a directory: `x/`, `x/.`. Paths of Rust leave these endings out.
fn is_name_of_directory(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    path.ends_with(b"/") || path.ends_with(b"/.")
}

/// The directory of a file that a path names.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a link to an open file is: `/proc/self/fd/1`, and what leads there.
fn open_file(path: &Path) -> Option<Result<Target>> {
    let folder = parent(path);
    // Only there are links that are more than a path; on other systems they are devices.
    if !is_on_proc(folder) {
        return None;
    }
    let number = path.file_name()?.to_str()?.parse().ok().filter(|_| is_own_process(folder));
    if number == Some(1) {
        return Some(Ok(Target::Stdout));
    }
    Some(access_to(number, path).map(|access| Target::Special(Special { path: path.to_path_buf(), access })))
}

/// A file of another process would be opened a second time, from its beginning, and overwritten.
fn access_to(number: Option<i32>, path: &Path) -> Result<Access> {
    if let Some(open) = number.map(duplicate).transpose().map_err(|error| Error::at(path, error))?.flatten() {
        let flags = rustix::fs::fcntl_getfl(&open).map_err(|error| Error::at(path, error))?;
        if flags.intersection(OFlags::RWMODE) == OFlags::RDONLY {
            return Err(Error::new(format_args!("{}: is open only for reading", path.display())));
        }
        return Ok(Access::Open(Arc::new(open)));
    }
    let about = rustix::fs::stat(path).map_err(|error| Error::at(path, error))?;
    if kind(&about) == FileType::RegularFile {
        return Err(Error::new(format_args!(
            "{}: is a file that cannot be written from here as it is open there; name the file, or use standard output",
            path.display()
        )));
    }
    Ok(Access::Linked)
}

/// A duplicate of a descriptor that was inherited, by its number; `None` if the system cannot do so.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn duplicate(number: i32) -> rustix::io::Result<Option<OwnedFd>> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    match number {
        0 => return rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 0).map(Some),
        2 => return rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 0).map(Some),
        _ => {}
    }
    // By a number alone, all other ways are unsafe.
    let own = pidfd_open(getpid(), PidfdFlags::empty());
    match own.and_then(|own| pidfd_getfd(own, number, PidfdGetfdFlags::empty())) {
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => Ok(None),
        duplicated => duplicated.map(Some),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn duplicate(_: i32) -> rustix::io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// The file of a descriptor, if it is a regular one.
fn file_of(open: impl std::os::fd::AsFd) -> Option<FileId> {
    let about = rustix::fs::fstat(open).ok()?;
    (kind(&about) == FileType::RegularFile).then(|| FileId::from(&about))
}

fn is_on_proc(folder: &Path) -> bool {
    let Ok(real) = folder.canonicalize() else { return false };
    let device = |path: &Path| rustix::fs::stat(path).map(|about| about.st_dev).ok();
    let own = device(&real);
    real.file_name() == Some(OsStr::new("fd")) && own.is_some() && own == device(Path::new("/proc/self"))
}

fn is_own_process(folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(folder).is_some() && real(folder) == real(Path::new("/proc/self/fd"))
}
