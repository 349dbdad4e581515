//! `loopfold record`: becomes a program that is recorded, and the process that folds its events.

use crate::Outcome;
use crate::args::{RecordArgs, TimesName};
use anyhow::{Result, bail};
use loopfold::Fold;
use loopfold_record::Launch;
use std::io::Write as _;
use std::path::Path;

pub(super) fn run(arguments: &RecordArgs) -> Result<Outcome> {
    let mut out = std::io::stdout().lock();
    if arguments.header {
        out.write_all(loopfold_record::HEADER.as_bytes())?;
        return Ok(Outcome::Done);
    }
    if !arguments.mpi {
        let is_mpi =
            arguments.program.first().is_some_and(|name| loopfold_record::is_mpi_program(Path::new(name)));
        if is_mpi {
            bail!(
                "this is an MPI program: add --mpi, as in `mpirun -n 4 loopfold record --mpi -o run.fold ./app`"
            );
        }
        bail!("only MPI programs can be recorded so far, with --mpi");
    }
    let Some(output) = &arguments.output else { bail!("name the archive to write with --output") };
    let mut launch = Launch::new(output);
    launch.times = match arguments.times {
        TimesName::All => "all",
        TimesName::Summary => "summary",
        TimesName::None => "none",
    }
    .to_string();
    launch.with_sites = arguments.callsites;
    launch.segment_seconds = Some(arguments.segment_seconds);
    launch.mpicc.clone_from(&arguments.mpicc);
    launch.to = arguments.to.name().to_string();
    if arguments.print_env {
        for (name, value) in launch.environment(&[])? {
            writeln!(out, "export {name}={}", quoted(&value.to_string_lossy()))?;
        }
        return Ok(Outcome::Done);
    }
    match launch.exec(&arguments.program)? {}
}

/// The process that folds the events of one rank.
pub(super) fn help(is_detached: bool) -> Result<Outcome> {
    loopfold_record::run_helper(is_detached, &write_other)?;
    Ok(Outcome::Done)
}

fn write_other(fold: &Fold, format: &str, output: &Path) -> Result<(), String> {
    match format {
        "otf2" => loopfold_otf2::write(fold, output),
        _ => Err(format!("there is no format {format}")),
    }
}

/// A text as a shell takes it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
