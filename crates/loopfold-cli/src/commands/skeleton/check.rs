//! `skeleton --check`: runs the program and its skeleton, both recorded, and prints what the
//! skeleton predicts beside what the program took, and the nest of both.

use super::SkeletonArgs;
use crate::{Outcome, folding, interrupt, save, show};
use anyhow::{Context as _, Result, bail, ensure};
use loopfold::Fold;
use loopfold::archive::ReadConfig;
use loopfold::questions::logical::LogicalTrace;
use loopfold::skeleton::{Config, Skeleton};
use loopfold_json::skeleton::Checked;
use loopfold_output::PrivateFolder;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shorter skeletons do not say much, in seconds.
const SHORTEST: f64 = 0.1;

pub(super) fn run(arguments: &SkeletonArgs, fold: &Fold, written: &Skeleton) -> Result<Outcome> {
    interrupt::watch()?;
    let folder = PrivateFolder::new()?;
    let source = folder.write("skeleton.c", written.text.as_bytes())?;
    if let Some(output) = &arguments.output {
        save::save_with(Some(output), |out| Ok(out.write_all(written.text.as_bytes())?))?;
    }
    let compiled = folder.path().join("skeleton");
    compile(&arguments.compiler, &source, &compiled)?;
    let (launcher, program) = (arguments.launcher.as_deref().unwrap_or_default(), &arguments.program);
    let archive = folder.path().join("execution.fold");
    let compiled = [compiled.into()];
    let (mut programs, mut skeletons) = (Vec::new(), Vec::new());
    let recorded_skeleton = loop {
        programs.push(time_of(&record(launcher, program, &archive)?)?);
        let recorded = record(launcher, &compiled, &archive)?;
        skeletons.push(skeleton_time(&recorded)?);
        if programs.len() >= arguments.repeat as usize {
            break recorded;
        }
    };
    let checked = Checked { programs: &programs, skeletons: &skeletons };
    if checked.skeleton() < SHORTEST {
        show::notes(&[format!(
            "a skeleton of less than {SHORTEST} s predicts little, since processes have hardly begun to run side by side; choose a larger --scale, or record a longer execution"
        )]);
    }
    if arguments.json.on {
        show::print_json_line(|out| -> Result<()> {
            Ok(loopfold_json::skeleton::checked(out, written, arguments.scale, &checked)?)
        })?;
        return Ok(Outcome::Done);
    }
    let mut out = show::stdout();
    print(&mut out, arguments, written, &checked)?;
    writeln!(out, "\nThe recorded program:\n{}", LogicalTrace::of(fold, &folding::outermost)?)?;
    writeln!(
        out,
        "The skeleton, recorded:\n{}",
        LogicalTrace::of(&recorded_skeleton.0, &folding::outermost)?
    )?;
    out.flush()?;
    Ok(Outcome::Done)
}

fn print(
    out: &mut impl Write,
    arguments: &SkeletonArgs,
    written: &Skeleton,
    checked: &Checked<'_>,
) -> Result<()> {
    let (program, predicted) = (checked.program(), checked.predicted(arguments.scale));
    let error = (predicted - program) / program;
    let seconds = |seconds: f64| format!("{seconds:.6} s");
    let slowest = |times: &[f64]| match times {
        [_] => String::new(),
        _ => format!(
            ", the fastest of {}; the slowest took {}",
            times.len(),
            seconds(times.iter().copied().fold(0.0, f64::max))
        ),
    };
    writeln!(out, "recorded        {}", seconds(written.recorded_seconds))?;
    writeln!(out, "program         {}{}", seconds(program), slowest(checked.programs))?;
    writeln!(
        out,
        "skeleton        {} at scale {}{}",
        seconds(checked.skeleton()),
        arguments.scale,
        slowest(checked.skeletons)
    )?;
    writeln!(out, "predicted       {} ({:+.1} %)", seconds(predicted), 100.0 * error)?;
    let (whole, here) = written.calls;
    writeln!(out, "calls           {} of {}", show::count(here), show::count(whole))?;
    Ok(())
}

/// The words of a command.
fn words(command: &str) -> Vec<&OsStr> {
    command.split_whitespace().map(OsStr::new).collect()
}

fn compile(compiler: &str, source: &Path, output: &Path) -> Result<()> {
    let words = words(compiler);
    let (first, options) = words.split_first().context("--compiler is empty")?;
    let mut command = Command::new(first);
    command.args(options).arg("-o").arg(output).arg(source).arg("-ldl");
    let done = command.output().with_context(|| format!("{compiler}: cannot be started"))?;
    ensure!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// A recording, and what the program printed.
struct Recorded(Fold, String);

fn record(launcher: &str, program: &[OsString], archive: &Path) -> Result<Recorded> {
    let words = words(launcher);
    let (first, options) = words.split_first().context("--launcher is empty")?;
    let own: PathBuf = std::env::current_exe()?;
    let mut command = Command::new(first);
    command.args(options).arg(own).args(["record", "--mpi", "-o"]).arg(archive).args(program);
    let done = command.output().with_context(|| format!("{launcher}: cannot be started"))?;
    if !done.status.success() {
        bail!("{launcher} {}: {}", Path::new(&program[0]).display(), String::from_utf8_lossy(&done.stderr));
    }
    let file = File::open(archive).with_context(|| archive.display().to_string())?;
    let (fold, _) = loopfold::archive::read(BufReader::new(file), &ReadConfig::new())?;
    let fold = loopfold::folders::refold(&fold, &loopfold::folders::Outermost::default(), 1)?;
    Ok(Recorded(fold, String::from_utf8_lossy(&done.stdout).into_owned()))
}

/// How long a recorded program took between `MPI_Init` and `MPI_Finalize`.
fn time_of(Recorded(fold, _): &Recorded) -> Result<f64> {
    Ok(Skeleton::of(fold, &folding::outermost, &Config::new())?.recorded_seconds)
}

/// What a skeleton says that it took: without what it does before it begins.
fn skeleton_time(Recorded(_, printed): &Recorded) -> Result<f64> {
    let number = |line: &str| line.strip_prefix("skeleton ")?.split(' ').next()?.parse().ok();
    printed.lines().find_map(number).context("the skeleton did not print its time")
}
