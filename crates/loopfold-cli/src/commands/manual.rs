//! Completions and manual pages, derived from the arguments.

use crate::Outcome;
use crate::args::Arguments;
use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use std::path::Path;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "loopfold", &mut script);
    std::io::Write::write_all(&mut crate::show::raw_stdout(), &script)?;
    Ok(Outcome::Done)
}

pub(super) fn pages(directory: &Path) -> Result<Outcome> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    clap_mangen::generate_to(Arguments::command(), directory)
        .with_context(|| directory.display().to_string())?;
    Ok(Outcome::Done)
}
