//! An open directory, through which all files in it are reached.
//!
//! A path is resolved again at every use, and whoever may write to one of its directories may put a
//! link in its place meanwhile; a descriptor stays what it was. Names are single components, and
//! no link is followed.

use crate::temporary::Temporary;
use crate::{Error, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that is open.
#[derive(Clone, Debug)]
pub struct Folder {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

/// Which file it is, by whatever name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file at a path, behind links.
    pub fn of(path: &Path) -> Option<Self> {
        rustix::fs::stat(path).ok().map(|about| Self::from(&about))
    }

    /// The file of a descriptor.
    pub fn of_open(file: impl AsFd) -> Option<Self> {
        rustix::fs::fstat(file).ok().map(|about| Self::from(&about))
    }
}

impl From<&Stat> for FileId {
    // The types of the fields differ between systems.
    #[allow(clippy::unnecessary_cast)]
    fn from(about: &Stat) -> Self {
        Self { device: about.st_dev as u64, inode: about.st_ino as u64 }
    }
}

/// The type of a file, its permissions, and whether this user owns it.
pub(crate) fn kind(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

pub(crate) fn mode(about: &Stat) -> Mode {
    Mode::from_raw_mode(about.st_mode)
}

pub(crate) fn is_own(about: &Stat) -> bool {
    about.st_uid == rustix::process::geteuid().as_raw()
}

/// The permissions of new files, of which the user's mask takes some away.
pub(crate) const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
/// Those of files that are nobody else's business.
pub(crate) const OWN_FILE: Mode = Mode::from_raw_mode(0o600);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// For directories that may be written and not read: nothing is swept there, and no name synced.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNREAD_DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const UNREAD_DIRECTORY: OFlags = DIRECTORY;

impl Folder {
    /// Opens a directory that the user named, behind links.
    pub fn open(path: &Path) -> Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let opened = match rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty()) {
            Err(Errno::ACCESS) => rustix::fs::openat(CWD, path, UNREAD_DIRECTORY, Mode::empty()),
            opened => opened,
        };
        let handle = opened.map_err(|error| Error::not_created(path, error))?;
        Ok(Self { handle: Arc::new(handle), path: path.to_path_buf() })
    }

    /// Creates a directory that the user named, and those around it, unless it exists.
    pub fn create_all(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(|error| Error::not_created(path, error))?;
        Self::open(path)
    }

    /// Opens a directory in this one, unless it is a link.
    pub(crate) fn folder(&self, name: &OsStr) -> rustix::io::Result<Self> {
        let handle = rustix::fs::openat(&self.handle, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { handle: Arc::new(handle), path: self.path_of(name) })
    }

    /// Its path, for messages and for other programs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path of it that leads to this directory whatever comes in its place, while it is open: for
    /// libraries, as other processes do not have it open. Where the system has none, its path.
    pub(crate) fn fixed_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        let fixed = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        let is_fixed = FileId::of(&fixed).is_some_and(|there| Some(there) == FileId::of_open(self));
        if is_fixed { fixed } else { self.path.clone() }
    }

    /// The path of a file in it, for messages and for other programs.
    pub fn path_of(&self, name: impl AsRef<Path>) -> PathBuf {
        if self.path == Path::new(".") { name.as_ref().to_path_buf() } else { self.path.join(name) }
    }

    /// Creates a file, which must not exist, for reading and writing. Its name is on the disk.
    pub fn create(&self, name: &OsStr) -> Result<File> {
        let created = self.create_with(name, NEW_FILE);
        let file = created.map_err(|error| self.not_new(name, error))?;
        self.sync()?;
        Ok(file)
    }

    /// Why something new cannot have a name.
    pub(crate) fn not_new(&self, name: &OsStr, error: Errno) -> Error {
        match error {
            Errno::EXIST | Errno::NOTEMPTY => {
                Error::taken(format_args!("{}: exists already", self.path_of(name).display()))
            }
            error => Error::at(&self.path_of(name), error),
        }
    }

    pub(crate) fn create_with(&self, name: &OsStr, mode: Mode) -> rustix::io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.handle, name, flags, mode)?))
    }

    /// A file without a name, which goes away when it is closed.
    pub fn scratch(&self) -> Result<File> {
        let temporary = Temporary::file(self, OWN_FILE);
        let temporary = temporary.map_err(|error| Error::not_created(&self.path, error))?;
        let file = temporary.as_file().map(File::try_clone).transpose();
        let file = file.map_err(|error| Error::at(&self.path, error))?;
        file.ok_or_else(|| Error::new("a file is no file"))
    }

    /// Opens a file for reading, unless it is a link.
    pub fn read(&self, name: &OsStr) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.handle, name, flags, Mode::empty());
        opened.map(File::from).map_err(|error| Error::at(&self.path_of(name), error))
    }

    /// Removes a file; it need not be there.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(Error::at(&self.path_of(name), error)),
        }
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
    }

    /// Writes the names in it to the disk.
    pub fn sync(&self) -> Result<()> {
        match rustix::fs::fsync(&self.handle) {
            // Some file systems cannot, and need not; a directory that may not be read cannot, either.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
            Err(error) => Err(Error::at(&self.path, error)),
        }
    }

    pub(crate) fn create_folder(&self, name: &OsStr, mode: Mode) -> rustix::io::Result<()> {
        rustix::fs::mkdirat(&self.handle, name, mode)
    }

    /// About a name, not about what a link points at.
    pub(crate) fn about(&self, name: &OsStr) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Which file has a name; not what a link points at.
    pub(crate) fn id_of(&self, name: &OsStr) -> Option<FileId> {
        self.about(name).ok().map(|about| FileId::from(&about))
    }

    /// True if something has this name.
    pub fn has(&self, name: &OsStr) -> bool {
        self.about(name).is_ok()
    }

    /// False if it was removed since it was opened.
    pub(crate) fn is_there(&self) -> bool {
        self.about_itself().is_ok_and(|about| about.st_nlink > 0)
    }

    /// True if it is on a file system that only this machine writes to, as far as its kind says so.
    pub(crate) fn is_local(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // ext2 to ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs, overlayfs.
            const LOCAL: [u32; 8] = [
                0xef53,
                0x5846_5342,
                0x9123_683e,
                0xf2f5_2010,
                0xca45_1a4e,
                0x2fc1_2fc1,
                0x0102_1994,
                0x794c_7630,
            ];
            // The type of the field differs between machines.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            rustix::fs::fstatfs(&self.handle).is_ok_and(|about| LOCAL.contains(&(about.f_type as u32)))
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        false
    }

    pub(crate) fn about_itself(&self) -> rustix::io::Result<Stat> {
        rustix::fs::fstat(&self.handle)
    }

    /// Moves something into another directory, in place of what has the name there.
    pub(crate) fn move_to(&self, from: &OsStr, folder: &Self, to: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat(&self.handle, from, &folder.handle, to)
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat(&self.handle, from, &self.handle, to)
    }

    /// Renames, unless the new name is taken.
    pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        self.move_new(from, self, to)
    }

    /// Moves something into another directory, unless the name is taken there.
    pub(crate) fn move_new(&self, from: &OsStr, folder: &Self, to: &OsStr) -> rustix::io::Result<()> {
        match rustix::fs::renameat_with(&self.handle, from, &folder.handle, to, RenameFlags::NOREPLACE) {
            // File systems of a network do not have it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.move_unless_taken(from, folder, to),
            moved => moved,
        }
    }

    /// The same in two steps: a file by a second name for it, and a directory after a look, as no
    /// directory that has something in it is replaced.
    fn move_unless_taken(&self, from: &OsStr, folder: &Self, to: &OsStr) -> rustix::io::Result<()> {
        if kind(&self.about(from)?) == FileType::Directory {
            return if folder.has(to) { Err(Errno::EXIST) } else { self.move_to(from, folder, to) };
        }
        rustix::fs::linkat(&self.handle, from, &folder.handle, to, AtFlags::empty())?;
        rustix::fs::unlinkat(&self.handle, from, AtFlags::empty())
    }

    /// Writes a file in it to the disk.
    pub(crate) fn sync_file(&self, name: &OsStr) -> Result<()> {
        self.read(name)?.sync_all().map_err(|error| Error::at(&self.path_of(name), error))
    }

    /// Writes all files in it to the disk, and their names.
    pub(crate) fn sync_all(&self) -> Result<()> {
        for name in self.names().map_err(|error| Error::at(&self.path, error))? {
            let about = self.about(&name).map_err(|error| Error::at(&self.path_of(&name), error))?;
            match kind(&about) {
                FileType::Directory => {
                    let inner = self.folder(&name).map_err(|error| Error::at(&self.path_of(&name), error))?;
                    inner.sync_all()?;
                }
                FileType::RegularFile => self.sync_file(&name)?,
                _ => {}
            }
        }
        self.sync()
    }

    /// What a link leads to, and about that same link, whatever comes in its place.
    pub(crate) fn read_link(&self, name: &OsStr) -> rustix::io::Result<(Stat, Vec<u8>)> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let link = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
            let next = rustix::fs::readlinkat(&link, "", Vec::new())?;
            Ok((rustix::fs::fstat(&link)?, next.into_bytes()))
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Ok((self.about(name)?, rustix::fs::readlinkat(&self.handle, name, Vec::new())?.into_bytes()))
    }

    /// Opens a device or a pipe, unless it is a link.
    pub(crate) fn open_to_write(&self, name: &OsStr) -> rustix::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, name, flags, Mode::empty()).map(File::from)
    }

    /// Opens a file in it to test its lock, unless it is a link.
    pub(crate) fn open_to_lock(&self, name: &OsStr) -> rustix::io::Result<File> {
        let open = |access: OFlags| {
            let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(&self.handle, name, flags, Mode::empty()).map(File::from)
        };
        // Locks of network file systems are for those who may write; directories are not written.
        open(OFlags::RDWR).or_else(|error| match error {
            Errno::ISDIR | Errno::ACCESS => open(OFlags::RDONLY),
            error => Err(error),
        })
    }

    /// All names in it.
    pub(crate) fn names(&self) -> rustix::io::Result<Vec<std::ffi::OsString>> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_os_string());
            }
        }
        Ok(names)
    }

    /// Removes all that is in it, through no link, and this name last.
    pub(crate) fn clear(&self, last: &OsStr) -> rustix::io::Result<()> {
        for name in self.names()?.iter().filter(|name| *name != last) {
            self.remove_tree(name)?;
        }
        match rustix::fs::unlinkat(&self.handle, last, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    fn remove_tree(&self, name: &OsStr) -> rustix::io::Result<()> {
        if kind(&self.about(name)?) != FileType::Directory {
            return rustix::fs::unlinkat(&self.handle, name, AtFlags::empty());
        }
        let inner = self.folder(name)?;
        inner.names()?.iter().try_for_each(|name| inner.remove_tree(name))?;
        self.remove_folder(name)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
