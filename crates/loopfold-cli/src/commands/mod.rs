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
use crate::args::{Command, Form, ReadArgs};
use crate::{formats, save, show, tables};
use anyhow::Result;
use std::io::Write as _;

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Outcome> {
    if let Some((form, read)) = table_of(&command) {
        check_table(form, read)?;
    }
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

/// How a command with tables answers, and its inputs.
fn table_of(command: &Command) -> Option<(&Form, &ReadArgs)> {
    match command {
        Command::Loops(it) => Some((&it.form, &it.read)),
        Command::Iterations(it) => Some((&it.form, &it.read)),
        Command::Stats(it) => Some((&it.form, &it.read)),
        Command::Cat(it) => Some((&it.form, &it.read)),
        Command::Find(it) => Some((&it.form, &it.read)),
        Command::Similar(it) => Some((&it.form, &it.read)),
        Command::Hot(it) => Some((&it.form, &it.read)),
        Command::Patterns(it) => Some((&it.form, &it.read)),
        Command::Waits(it) => Some((&it.form, &it.read)),
        _ => None,
    }
}

/// Refuses a table that could not be written, before anything is read.
fn check_table(form: &Form, read: &ReadArgs) -> Result<()> {
    let Some(format) = form.table_format() else { return Ok(()) };
    if !format.is_text() {
        tables::check_terminal(&format!("--table {}", format.name()), form.output())?;
    }
    save::check_export(form.output(), read)
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
