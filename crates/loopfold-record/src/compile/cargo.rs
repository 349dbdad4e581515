//! `loopfold cargo`: cargo with the options that let rustc make bitcode, and call us to link it.
//!
//! Build scripts and procedural macros shall not be instrumented. cargo gives options to them only
//! if no target is named, so it is named: programs are in `target/TARGET/release`.

use super::instrument::Selection;
use super::linker::{LINK, SELECTION};
use super::tools::status;
use crate::{Error, Result};
use std::process::Command;

/// Separates options in the variable that may have any.
const SEPARATOR: &str = "\u{1f}";

pub(super) fn run(selection: &Selection, arguments: &[String]) -> Result<u8> {
    // What is missing is said once, and not by each call of the linker.
    super::Tools::find()?;
    let own = std::env::current_exe()?;
    let own = own.to_str().ok_or_else(|| Error::at(&own, "the path is not UTF-8"))?;
    let mut flags = flags_of_user();
    flags.extend(["-Clinker-plugin-lto".into(), "-Clinker-flavor=gcc".into(), format!("-Clinker={own}")]);
    flags.push(format!("-Clink-arg={LINK}"));
    flags.extend(selection.options.iter().map(|option| format!("-Clink-arg={SELECTION}{option}")));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    const DEBUG: &str = "CARGO_PROFILE_RELEASE_DEBUG";
    if std::env::var_os(DEBUG).is_none() {
        cargo.env(DEBUG, "line-tables-only");
    }
    let (words, rest) = arguments.split_at(arguments.iter().take_while(|word| *word != "--").count());
    cargo.args(words);
    if compiles(words) && !names_target(words) {
        cargo.args(["--target", &host()?]);
    }
    status(cargo.args(rest))
}

/// The options for rustc that are in the environment.
fn flags_of_user() -> Vec<String> {
    if let Ok(encoded) = std::env::var("CARGO_ENCODED_RUSTFLAGS") {
        return encoded.split(SEPARATOR).filter(|flag| !flag.is_empty()).map(String::from).collect();
    }
    let plain = std::env::var("RUSTFLAGS").unwrap_or_default();
    plain.split_whitespace().map(String::from).collect()
}

/// Whether a command of cargo takes a target.
fn compiles(words: &[String]) -> bool {
    let mut commands = words.iter().filter(|word| !word.starts_with(['-', '+']));
    let known = ["build", "b", "run", "r", "test", "t", "bench", "rustc", "install", "check", "c"];
    commands.next().is_some_and(|command| known.contains(&command.as_str()))
}

fn names_target(words: &[String]) -> bool {
    std::env::var_os("CARGO_BUILD_TARGET").is_some()
        || words.iter().any(|word| word == "--target" || word.starts_with("--target="))
}

/// The machine for which rustc compiles.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output();
    let output = output.map_err(|error| Error::new(format_args!("rustc cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_string);
    host.ok_or_else(|| Error::new("rustc -vV does not name its host"))
}
