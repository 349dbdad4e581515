//! Where the user wants something written: the path is resolved once.
//!
//! A link as the last part of the path is followed, even if it leads nowhere yet; what is renamed
//! later is in the directory that this leads to. Links under `/proc` are open files rather than
//! names: `/dev/stdout` is standard output, wherever that goes.

use crate::folder::{FileId, Folder, is_own, mode};
use crate::{Error, Result};
use rustix::fs::Mode;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Links that lead from one to the next, at most, as for the system.
const MOST_LINKS: usize = 40;

/// What a path of the user leads to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A device, a pipe or an open file: it is written to as it is.
    Special(PathBuf),
    /// A file, which may exist, in a directory that does.
    File {
        /// The directory.
        folder: Folder,
        /// The name in it.
        name: OsString,
    },
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
                return Ok(open);
            }
            let Ok(next) = std::fs::read_link(&resolved) else { return Self::resolved(&resolved) };
            resolved = parent(&resolved).join(next);
        }
        Err(Error::new(format_args!("{}: too many links", path.display())))
    }

    fn resolved(path: &Path) -> Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(about) if about.is_dir() => {
                let name = path.display();
                Err(Error::new(format_args!("{name}: is a directory; name the file to write in it")))
            }
            Ok(about) if is_special(&about) => Ok(Self::Special(path.to_path_buf())),
            // As the system has it: there is no file of this name.
            _ if is_name_of_directory(path) => {
                let name = path.display();
                Err(Error::new(format_args!("{name}: is the name of a directory; name the file to write")))
            }
            _ => {
                let name = path.file_name();
                let name =
                    name.ok_or_else(|| Error::new(format_args!("{}: names no file", path.display())))?;
                Ok(Self::File { folder: Folder::open(parent(path))?, name: name.to_os_string() })
            }
        }
    }

    /// The path that it leads to.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("-"),
            Self::Special(path) => path.clone(),
            Self::File { folder, name } => folder.path_of(name),
        }
    }

    /// The file that is there now and would be replaced.
    pub fn existing(&self) -> Option<FileId> {
        let Self::File { folder, name } = self else { return None };
        folder.about(name).ok().map(|about| FileId::from(&about))
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

/// Opens what is written to as it is. A file that has come in its place is not.
pub(crate) fn open_special(path: &Path) -> Result<File> {
    let file = File::options().write(true).open(path).map_err(|error| Error::at(path, error))?;
    let about = file.metadata().map_err(|error| Error::at(path, error))?;
    if !is_special(&about) && open_file(path).is_none() {
        return Err(Error::new(format_args!("{}: has become another file meanwhile", path.display())));
    }
    Ok(file)
}

fn is_special(about: &Metadata) -> bool {
    let kind = about.file_type();
    kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
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
fn open_file(path: &Path) -> Option<Target> {
    let folder = parent(path);
    // Only there are links that are more than a path; on other systems they are devices.
    if !is_on_proc(folder) {
        return None;
    }
    let is_stdout = path.file_name() == Some(OsStr::new("1")) && is_own_process(folder);
    Some(if is_stdout { Target::Stdout } else { Target::Special(path.to_path_buf()) })
}

fn is_on_proc(folder: &Path) -> bool {
    let Ok(real) = folder.canonicalize() else { return false };
    let device = |path: &Path| std::fs::metadata(path).map(|about| about.dev()).ok();
    let own = device(&real);
    real.file_name() == Some(OsStr::new("fd")) && own.is_some() && own == device(Path::new("/proc/self"))
}

fn is_own_process(folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(folder).is_some() && real(folder) == real(Path::new("/proc/self/fd"))
}
