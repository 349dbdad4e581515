//! `cargo xtask build` and `install`: the command and the compiler pass, side by side, with links
//! under which the command is a compiler; `install` also the library for C with its headers and what
//! pkg-config says of it.
//!
//! The command finds the pass beside itself, also when it is started through a link. The pass needs
//! the LLVM inside the Rust compiler, so it is not built by `cargo build`.

use crate::Arguments;
use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: &[&str] = &["loopfold", "loopfold-pass"];
/// The library for C.
const LIBRARIES: &[&str] = &["libloopfold_c.so", "libloopfold_c.a"];
const HEADERS: &[&str] = &["crates/loopfold-capi/include/libloopfold.h", "crates/loopfold-record/loopfold.h"];
/// What pkg-config says of it, wherever it is installed.
const PACKAGE: &str = include_str!("../../crates/loopfold-capi/loopfold.pc.in");
/// Names under which the command is a compiler, or a command of cargo.
const LINKS: &[&str] = &["loopfold-cc", "loopfold-c++", "cargo-loopfold"];

/// Builds both in release mode, and links the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    let folder = build()?;
    println!("{}", folder.join(PROGRAMS[0]).display());
    Ok(())
}

/// Builds both, and copies them to the folder `bin` of a prefix, with the same links.
pub(crate) fn install(mut arguments: Arguments) -> Result<()> {
    let prefix = arguments.option("--prefix")?;
    arguments.finish()?;
    let Some(prefix) = prefix else { bail!("name the folder to install to with --prefix") };
    let folder = build_with(&["--package", "loopfold-capi"])?;
    let to = Path::new(&prefix).join("bin");
    std::fs::create_dir_all(&to).with_context(|| to.display().to_string())?;
    for program in PROGRAMS {
        replace(&folder.join(program), &to.join(program))?;
    }
    link(&to)?;
    install_library(&folder, Path::new(&prefix))?;
    println!("{}", to.join(PROGRAMS[0]).display());
    Ok(())
}

/// Copies the library for C, its headers, and a file for pkg-config.
fn install_library(folder: &Path, prefix: &Path) -> Result<()> {
    let (library, include) = (prefix.join("lib"), prefix.join("include"));
    let packages = library.join("pkgconfig");
    for folder in [&packages, &include] {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    for name in LIBRARIES {
        replace(&folder.join(name), &library.join(name))?;
    }
    for header in HEADERS {
        let header = crate::root().join(header);
        let name = header.file_name().context("a header has a name")?;
        replace(&header, &include.join(name))?;
    }
    let text = PACKAGE.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let file = packages.join("loopfold.pc");
    std::fs::write(&file, text).with_context(|| file.display().to_string())
}

/// Links the command of a folder under its other names.
fn link(folder: &Path) -> Result<()> {
    for name in LINKS {
        let link = folder.join(name);
        // A compiler that is in use is left alone.
        if std::fs::read_link(&link).is_ok_and(|target| target == Path::new(PROGRAMS[0])) {
            continue;
        }
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(PROGRAMS[0], &link).with_context(|| link.display().to_string())?;
    }
    Ok(())
}

/// Copies a program, also over one that is running.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let new = to.with_extension("new");
    std::fs::copy(from, &new).with_context(|| new.display().to_string())?;
    std::fs::rename(&new, to).with_context(|| to.display().to_string())
}

/// Builds both, with links, and returns their folder.
pub(crate) fn build() -> Result<PathBuf> {
    build_with(&[])
}

/// The same, and other packages.
fn build_with(more: &[&str]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(["build", "--release", "--package", "loopfold-cli", "--package", "loopfold-pass"]);
    let status = command.args(more).current_dir(crate::root()).status().context("cargo cannot be started")?;
    ensure!(status.success(), "building failed");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    let folder = target.join("release");
    link(&folder)?;
    Ok(folder)
}
