//! Folds a nested pattern of 10⁹ events, pushed by a generator and piped through the command.
//! Memory must not grow.

use super::{Settings, measure, progress};
use crate::clock::cpu_time;
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context, Result, ensure};
use loopfold::Symbol;
use loopfold::folders::{Folder, SequiturRuns};
use std::io::Write;
use std::process::{Command, Stdio};

/// Events made at a time.
const BATCH: usize = 1 << 14;

/// Measures both.
pub(super) fn run(settings: &Settings) -> Result<()> {
    let most = if settings.quick { 100_000_000 } else { 1_000_000_000 };
    pushed(most)?;
    piped(most)
}

/// A solver that never ends: time steps of sweeps with inner loops, a check every tenth
/// step, output every thousandth.
struct Solver {
    step: u64,
    /// Events of a step that did not fit the last batch, the next one last.
    rest: Vec<u32>,
}

impl Solver {
    fn new() -> Self {
        Self { step: 0, rest: Vec::new() }
    }

    fn next_step(&mut self) {
        self.step += 1;
        let mut events = vec![0, 1];
        for sweep in 0..4 {
            for _ in 0..25 {
                events.extend([2 + sweep, 6, 6, 7]);
            }
            events.push(8 + sweep);
        }
        if self.step.is_multiple_of(10) {
            events.extend([12, 13].repeat(8));
        }
        if self.step.is_multiple_of(1000) {
            events.extend([14, 15, 15, 15]);
        }
        self.rest = events;
        self.rest.reverse();
    }

    fn fill(&mut self, batch: &mut Vec<u32>) {
        batch.clear();
        while batch.len() < BATCH {
            match self.rest.pop() {
                Some(event) => batch.push(event),
                None => self.next_step(),
            }
        }
    }
}

/// The lengths at which memory is measured: powers of ten.
fn is_milestone(before: u64, after: u64) -> bool {
    (5..=9).map(|exponent| 10u64.pow(exponent)).any(|milestone| before < milestone && milestone <= after)
}

fn pushed(most: u64) -> Result<()> {
    progress(format_args!("{} events pushed", grouped(most)));
    let mut folding = SequiturRuns.online().context("sequitur-runs is an online folder")?;
    let mut solver = Solver::new();
    let (mut batch, mut symbols) = (Vec::new(), Vec::new());
    let base = measure::memory("VmRSS")?;
    let columns = [
        Column::Number("events"),
        Column::Number("ns an event"),
        Column::Number("bytes of grammar"),
        Column::Number("kB more than at first"),
    ];
    let mut table = Table::new("A nested pattern pushed through sequitur-runs (CPU time)", &columns);
    let mut spent = std::time::Duration::ZERO;
    while folding.events() < most {
        solver.fill(&mut batch);
        symbols.clear();
        for &event in &batch {
            symbols.push(Symbol::new(event as usize)?);
        }
        let (before, started) = (folding.events(), cpu_time());
        folding.extend(&symbols)?;
        spent += cpu_time() - started;
        if is_milestone(before, folding.events()) {
            let events = folding.events();
            table.row([
                grouped(events),
                short(spent.as_secs_f64() * 1e9 / events as f64),
                grouped(folding.bytes() as u64),
                grouped(measure::memory("VmRSS")?.saturating_sub(base) / 1024),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

fn piped(most: u64) -> Result<()> {
    progress(format_args!("{} events piped", grouped(most)));
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--quiet", "-p", "loopfold-cli"]).current_dir(crate::root());
    ensure!(build.status()?.success(), "the command does not build");
    let command = std::env::current_exe()?.with_file_name("loopfold");
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("x.fold");
    let mut child = Command::new(command)
        .args(["fold", "-", "--format", "u32", "-o"])
        .arg(&archive)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut pipe = child.stdin.take().context("the command has no input")?;
    let mut solver = Solver::new();
    let mut batch = Vec::new();
    let mut sent = 0;
    let columns = [Column::Number("events"), Column::Number("peak memory of the command, kB")];
    let mut table = Table::new("The same through `loopfold fold -`", &columns);
    while sent < most {
        solver.fill(&mut batch);
        let bytes: Vec<u8> = batch.iter().flat_map(|event| event.to_le_bytes()).collect();
        pipe.write_all(&bytes)?;
        let before = sent;
        sent += batch.len() as u64;
        if is_milestone(before, sent) {
            let peak = measure::memory_of(child.id(), "VmHWM")?;
            table.row([grouped(sent), grouped(peak / 1024)]);
        }
    }
    drop(pipe);
    ensure!(child.wait()?.success(), "the command failed");
    println!("{table}\nThe archive has {} bytes.\n", archive.metadata()?.len());
    Ok(())
}
