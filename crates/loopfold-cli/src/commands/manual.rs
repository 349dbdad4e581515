//! Completions and manual pages, derived from the arguments.

use crate::Outcome;
use crate::args::Arguments;
use anyhow::Result;
use clap::CommandFactory as _;
use loopfold_output::Output;
use std::path::Path;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "loopfold", &mut script);
    std::io::Write::write_all(&mut crate::show::raw_stdout(), &script)?;
    Ok(Outcome::Done)
}

pub(super) fn pages(directory: &Path) -> Result<Outcome> {
    loopfold_output::Folder::create_all(directory)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_pages(command, directory)?;
    Ok(Outcome::Done)
}

/// The page of a command, and those of the commands below it.
fn write_pages(command: clap::Command, directory: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        write_pages(below, directory)?;
    }
    let page = clap_mangen::Man::new(command);
    let output = Output::claim(&directory.join(page.get_filename()))?;
    output.write(|out| -> Result<()> { Ok(page.render(&mut &mut *out)?) })?;
    Ok(())
}
