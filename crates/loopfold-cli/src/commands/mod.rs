//! One file per command.

mod before;
mod cat;
mod compile;
mod context;
mod export;
mod find;
mod fold;
mod help;
mod hot;
mod iterations;
mod loops;
mod manual;
mod merge;
mod patterns;
mod record;
mod similar;
mod skeleton;
mod stats;
mod streams;
mod verify;
mod waits;
mod weights;

pub(crate) use cat::fold as folded_to_print;
pub(crate) use compile::run as compile;
pub(crate) use loops::{fold as folded_to_show, shown_nest};

use crate::Outcome;
use crate::args::{Command, Outputs, Parsed};
use crate::{formats, interrupt, show};
use anyhow::{Context as _, Result};
use std::io::{self, Write as _};

/// Runs a command.
pub(crate) fn run(Parsed { command, outputs }: Parsed) -> Result<Outcome> {
    watch(&command, &outputs).context("cannot catch signals")?;
    outputs.claim()?;
    match command {
        Command::Loops(arguments) => loops::run(&arguments),
        Command::Iterations(arguments) => iterations::run(&arguments),
        Command::Fold(arguments) => fold::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Cat(arguments) => cat::run(&arguments),
        Command::Find(arguments) => find::run(&arguments),
        Command::Context(arguments) => context::run(&arguments),
        Command::Similar(arguments) => similar::run(&arguments),
        Command::Hot(arguments) => hot::run(&arguments),
        Command::Patterns(arguments) => patterns::run(&arguments),
        Command::Waits(arguments) => waits::run(&arguments),
        Command::Skeleton(arguments) => skeleton::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Cc(_) | Command::Cxx(_) | Command::Cargo(_) => compile::not_text(),
        Command::RecordHelper { detached } => record::help(detached),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Formats => list_formats(),
        Command::Help { topic } => help::run(topic.as_deref()),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(&directory),
    }
}

/// Before there is anything that a signal could leave behind.
fn watch(command: &Command, outputs: &Outputs) -> io::Result<()> {
    match command {
        Command::Fold(_) => interrupt::catch(),
        _ if outputs.is_empty() => Ok(()),
        _ => interrupt::watch(),
    }
}

fn list_formats() -> Result<Outcome> {
    let mut out = show::raw_stdout();
    for source in formats::all() {
        let options = source.options().iter().map(|option| format!("--{}", option.name));
        let options = match options.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            some => format!(" [{some}]"),
        };
        writeln!(out, "{:<12} {}{options}", source.name(), source.about())?;
    }
    show::notes(&["`loopfold help FORMAT` shows the events, fields and options of a format".to_string()]);
    Ok(Outcome::Done)
}
