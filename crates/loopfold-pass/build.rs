//! Links the LLVM that ships with the Rust compiler, and lets the program find it where it is.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of LLVM that the bindings are for.
const MAJOR: &str = "22";

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    match sysroot().and_then(|root| library(&root.join("lib"))) {
        Ok((folder, name)) => {
            println!("cargo::rustc-link-search=native={}", folder.display());
            println!("cargo::rustc-link-lib=dylib={name}");
            println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
        }
        Err(reason) => println!("cargo::error={reason}"),
    }
}

fn sysroot() -> Result<PathBuf, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    let output = output.map_err(|error| format!("rustc cannot be started: {error}"))?;
    let root = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    Ok(PathBuf::from(root.trim()))
}

/// The folder and the name of libLLVM, as linkers take it.
fn library(folder: &Path) -> Result<(PathBuf, String), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let found = names.filter_map(|name| {
        let name = name.strip_prefix("lib")?.strip_suffix(".so")?;
        name.starts_with("LLVM-").then(|| name.to_string())
    });
    let mut found: Vec<String> = found.collect();
    found.sort();
    match found.iter().find(|name| name.starts_with(&format!("LLVM-{MAJOR}"))) {
        Some(name) => Ok((folder.to_path_buf(), name.clone())),
        None => Err(format!(
            "loopfold-pass needs a Rust compiler with a shared LLVM {MAJOR} (1.95, as rustup installs it); \
             {} has {found:?}",
            folder.display()
        )),
    }
}
