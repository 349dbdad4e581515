//! Finds the programs that compiling needs, and runs them.

use crate::{Error, Result};
use loopfold_output::PrivateFolder;
use loopfold_output::signals::{self, Response};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of clang, by preference.
const CLANGS: &[&str] = &["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];
const CLANG_VARIABLE: &str = "LOOPFOLD_CLANG";
const PASS: &str = "loopfold-pass";
const PASS_VARIABLE: &str = "LOOPFOLD_PASS";

/// The programs.
pub(super) struct Tools {
    /// The compiler pass.
    pub(super) pass: PathBuf,
    /// Temporary files, which are removed with this value.
    pub(super) folder: PrivateFolder,
}

impl Tools {
    pub(super) fn find() -> Result<Self> {
        signals::watch(|_| Response::End)?;
        Ok(Self { pass: find_pass()?, folder: PrivateFolder::new()? })
    }

    /// A path in the temporary folder.
    pub(super) fn temporary(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the run-time library to a file, to be linked.
    pub(super) fn runtime(&self) -> Result<PathBuf> {
        Ok(self.folder.write("loopfold-runtime.o", crate::runtime_object())?)
    }
}

/// The clang to use.
pub(super) fn find_clang() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(CLANG_VARIABLE).filter(|name| !name.is_empty()) {
        let named = PathBuf::from(named);
        return on_path(&named)
            .ok_or_else(|| Error::at(&named, format_args!("{CLANG_VARIABLE}: no such program")));
    }
    let found = CLANGS.iter().find_map(|name| on_path(Path::new(name)));
    found.ok_or_else(|| {
        Error::new(format_args!(
            "no clang was found, which compiles for recording: install the package clang-16 \
             (apt-get install clang-16; any from 14 to 22 will do), or name one in {CLANG_VARIABLE}"
        ))
    })
}

fn find_pass() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(PASS_VARIABLE).filter(|name| !name.is_empty()) {
        let named = PathBuf::from(named);
        return on_path(&named)
            .ok_or_else(|| Error::at(&named, format_args!("{PASS_VARIABLE}: no such program")));
    }
    let own = std::env::current_exe()?;
    let beside = own.canonicalize().unwrap_or(own).with_file_name(PASS);
    if beside.is_file() {
        return Ok(beside);
    }
    Err(Error::new(format_args!(
        "the compiler pass is missing: {} does not exist; `cargo xtask build` builds both \
         ({PASS_VARIABLE} names another one)",
        beside.display()
    )))
}

/// Where a program is: the path itself if it has folders, or in the folders of PATH.
fn on_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Runs a program and returns its exit status, as a shell has it.
pub(super) fn status(command: &mut Command) -> Result<u8> {
    use std::os::unix::process::ExitStatusExt as _;
    let status = command.status().map_err(|error| Error::at(Path::new(command.get_program()), error))?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
