//! Completions and manual pages, derived from the arguments.

use crate::Outcome;
use crate::args::Arguments;
use anyhow::Result;
use clap::CommandFactory as _;
use loopfold_output::{Folder, Output};
use std::path::Path;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "loopfold", &mut script);
    std::io::Write::write_all(&mut crate::show::raw_stdout(), &script)?;
    Ok(Outcome::Done)
}

pub(super) fn pages(directory: &Path) -> Result<Outcome> {
    let folder = Folder::create_all(directory)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_pages(command, &folder)?;
    Ok(Outcome::Done)
}

/// The page of a command, and those of the commands below it.
fn write_pages(command: clap::Command, folder: &Folder) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        write_pages(below, folder)?;
    }
    let page = clap_mangen::Man::new(command);
    let output = Output::claim_in(folder, page.get_filename().as_ref())?;
    output.write(|out| -> Result<()> { Ok(page.render(&mut &mut *out)?) })?;
    Ok(())
}
