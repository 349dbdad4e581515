//! A folder for programs that are compiled once and loaded later: what is in it runs with the rights
//! of the user, so nobody else may have written it.
//!
//! The home directory is the user's own if it says so, and that of the system's list of users
//! otherwise; without one, a folder of the user's among the temporary files. The folder and what
//! is around it have to belong to the user or to root, and nobody else may be able to replace them. A
//! directory that its group may write to is refused as well, unless nobody but the owner is in the group.

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
        place.folder().sync_file(from)?;
        place.folder().move_to(from, &self.folder, to).map_err(|error| Error::at(path, error))?;
        Ok(self.folder.sync()?)
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
        let (mode, is_shared) = (mode(&about), || !is_group_private(around, &about));
        let is_open = mode.contains(Mode::WOTH) || mode.contains(Mode::WGRP) && is_shared();
        // Where only owners may rename, what is further inside is judged for itself.
        if !is_trusted || is_open && !mode.contains(Mode::SVTX) {
            return Err(untrusted(around));
        }
    }
    Ok(())
}

/// True if the group of a directory has only its owner in it.
fn is_group_private(path: &Path, about: &Stat) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    has_only(about.st_uid, about.st_gid, &read("/etc/passwd"), &read("/etc/group")) && !has_access_list(path)
}

/// Whether a group is what many systems create for a user, by the lists of users and groups: it has the
/// name of the user, and nobody else is in it. Users and groups of a network are not known.
fn has_only(user: u32, group: u32, users: &str, groups: &str) -> bool {
    let (user, group) = (user.to_string(), group.to_string());
    let mut of_group = users.lines().filter(|line| line.split(':').nth(3) == Some(&group));
    let (Some(only), None) = (of_group.next(), of_group.next()) else { return false };
    let mut only = only.split(':');
    let (name, number) = (only.next(), only.nth(1));
    let mut named = groups.lines().filter(|line| line.split(':').nth(2) == Some(&group));
    let (Some(found), None) = (named.next(), named.next()) else { return false };
    let mut found = found.split(':');
    let (group_name, members) = (found.next(), found.nth(2).unwrap_or_default());
    number == Some(&user) && name == group_name && (members.is_empty() || Some(members) == name)
}

/// Whether more than the owner, the group and all others have permissions; what shows as those of the
/// group is all that anybody on the list has.
fn has_access_list(path: &Path) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let list = rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0; 1024]);
        !matches!(list, Err(Errno::NODATA | Errno::NOTSUP))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = path;
        true
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_if_nobody_else_is_in_it() {
        let users =
            "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/:/bin/sh\n";
        let groups = |ann: &str| format!("root:x:0:\nusers:x:100:\n{ann}\n");
        for own in ["ann:x:1000:", "ann:x:1000:ann"] {
            assert!(has_only(1000, 1000, users, &groups(own)), "{own}");
        }
        for shared in
            ["ann:x:1000:bob", "ann:x:1000:ann,bob", "project:x:1000:", "", "ann:x:1000:\nbob:x:1000:bob"]
        {
            assert!(!has_only(1000, 1000, users, &groups(shared)), "{shared}");
        }
        let groups = groups("ann:x:1000:");
        assert!(has_only(0, 0, users, &groups));
        assert!(!has_only(1000, 100, users, &groups));
        assert!(!has_only(1001, 100, users, &groups));
        assert!(!has_only(1000, 1000, &format!("{users}eve:x:1002:1000::/:/bin/sh\n"), &groups));
        assert!(!has_only(1000, 1000, "", ""));
    }
}
