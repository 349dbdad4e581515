//! `loopfold record`: starts a program that was compiled with `loopfold-cc` and records its paths;
//! or, with `--mpi`, becomes a program that is recorded, and the process that folds its events.

use crate::Outcome;
use crate::args::{RecordArgs, RecordName, TimesName};
use crate::show;
use anyhow::{Result, bail};
use loopfold::Fold;
use loopfold_output::Output;
use loopfold_record::{Counter, Launch, Loss, PathLaunch, Recorded};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

pub(super) fn run(arguments: &RecordArgs) -> Result<Outcome> {
    let mut out = show::raw_stdout();
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
        return record_paths(arguments);
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

/// Records the paths of a program, and ends as it does.
fn record_paths(arguments: &RecordArgs) -> Result<Outcome> {
    let Some(output) = &arguments.output else { bail!("name the archive to write with --output") };
    if arguments.to != RecordName::Fold || arguments.callsites || arguments.print_env {
        bail!("--to, --callsites and --print-env are for MPI programs, with --mpi");
    }
    let mut launch = PathLaunch::new(output);
    launch.spool = arguments.spool;
    launch.cycles = arguments.cycles;
    launch.counter = arguments.counter.as_deref().map(Counter::named).transpose()?;
    let run = launch.run(&arguments.program)?;
    let mut problems = run.problems;
    problems.extend(missing_events(&run.losses));
    if run.is_stopped {
        problems.push("the recording was stopped, and the program goes on without it".to_string());
    }
    let saved = match &run.recorded {
        Some(recorded) => save_paths(recorded, &run.output),
        None if run.is_left_in_spool => Ok(()),
        None => {
            problems.extend(problems.is_empty().then(|| not_instrumented(arguments)));
            Ok(())
        }
    };
    let is_complete = saved.is_ok() && run.recorded.is_some() && run.losses.is_empty();
    if let Some(spool) = &run.spool {
        if saved.is_ok() && !run.is_left_in_spool {
            let _ = spool.remove();
        } else {
            problems.push(format!(
                "what was recorded is in {}: `loopfold merge` makes an archive of it",
                spool.path().display()
            ));
        }
    }
    if let Some(partial) = run.partial {
        if saved.is_ok() {
            partial.remove();
        } else {
            problems.push(format!("what was recorded some time before is in {}", partial.path().display()));
        }
    }
    show::notes(&problems);
    if let Err(error) = saved {
        show::error(&error);
    }
    let status = run.status;
    // The lock of the output is released with it, and must not stay when a signal ends this process.
    drop(run.output);
    Ok(end_like(status, is_complete))
}

/// How many losses are described one by one.
const LOSSES: usize = 5;

/// What is missing, and where.
fn missing_events(losses: &[Loss]) -> Vec<String> {
    let described = losses.iter().take(LOSSES).map(|loss| {
        let (of, missing) = (show::plain(&loss.of), show::count(loss.missing));
        match loss.produced {
            Some(produced) => format!("{of}: {missing} of {} events are missing", show::count(produced)),
            None if loss.is_at_least && loss.missing == 0 => format!("{of}: its end is missing"),
            None if loss.is_at_least => format!("{of}: at least {missing} events are missing"),
            None => format!("{of}: {missing} events are missing"),
        }
    });
    let rest = losses.get(LOSSES..).unwrap_or_default();
    let in_rest = rest.iter().map(|loss| loss.missing).sum();
    let summary = format!("{} more lack {} events", show::count(rest.len() as u64), show::count(in_rest));
    described.chain((!rest.is_empty()).then_some(summary)).collect()
}

/// Ends as the program did; a program that ended well without being recorded whole is a failure.
fn end_like(status: ExitStatus, is_complete: bool) -> Outcome {
    if let Some(signal) = status.signal() {
        // One core is enough.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let _ = setrlimit(Resource::Core, none);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return Outcome::Status((128 + signal) as u8);
    }
    match status.code() {
        Some(0) if is_complete => Outcome::Done,
        Some(0) | None => Outcome::Failed,
        Some(code) => Outcome::Status(code as u8),
    }
}

fn save_paths(recorded: &Recorded, output: &Output) -> Result<()> {
    output.write(|out| -> Result<()> { Ok(recorded.write(out)?) })?;
    Ok(())
}

/// One line that says what to do.
fn not_instrumented(arguments: &RecordArgs) -> String {
    let name = arguments.program.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!(
        "{name}: nothing was recorded, as no process was compiled with `loopfold-cc`: \
         build the program with CC=loopfold-cc and CXX=loopfold-c++, or `loopfold cargo`, and record it again"
    )
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
