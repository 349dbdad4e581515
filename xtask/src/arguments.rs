//! The arguments of a chore: words, flags and options with a value.
//!
//! Chores have few of them, so each takes what it knows, and what is left over is an
//! error.

use anyhow::{Context, Result, ensure};
use std::str::FromStr;

/// What is left of the arguments.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// The arguments of this process.
    pub(crate) fn of_process() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Takes the next word, if there is one that is no option.
    pub(crate) fn word(&mut self) -> Option<String> {
        let is_word = self.0.first().is_some_and(|first| !first.starts_with("--") || first == "--help");
        is_word.then(|| self.0.remove(0))
    }

    /// Takes the next word as a number or whatever else it must be.
    pub(crate) fn parsed<T: FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.word().with_context(|| format!("{what} is missing"))?;
        word.parse().ok().with_context(|| format!("`{word}` is no {what}"))
    }

    /// Takes a flag; true when it was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|argument| argument == name);
        found.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes an option with a value.
    pub(crate) fn option(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else { return Ok(None) };
        ensure!(at + 1 < self.0.len(), "{name} needs a value");
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// Nothing may be left over.
    pub(crate) fn finish(self) -> Result<()> {
        ensure!(self.0.is_empty(), "`{}` means nothing here; see `cargo xtask help`", self.0.join(" "));
        Ok(())
    }
}
