//! What recording costs: of paths (`paths`), and of MPI calls: nanoseconds a call, the wall time of a
//! stencil with and without, memory, and the size of archives.
//!
//! Executions with and without recording alternate in blocks of two pairs: without, with, with,
//! without, and the next block the other way round, so that what else the machine does, and how that
//! changes, meets both. The logarithm of the ratio of a block is one sample. Single executions that
//! something else slows down would decide a mean, so the estimate is that of Hodges and Lehmann, the
//! median of the means of all two samples, and the bound is that of Wilcoxon's signed ranks: it
//! assumes of a block only that what disturbs it meets either kind of execution as likely as the
//! other.

mod paths;
mod sizes;

pub(super) use paths::run as run_paths;

use super::{Settings, median, progress};
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::time::{Duration, Instant};

const CALLS: &str = "xtask/src/bench/record/calls.c";
/// Iterations, side and sweeps of the stencil: some 2.5 ms of work between exchanges, in the cache of
/// a core, so that the memory's speed does not add to what varies.
const STENCIL: &[&str] = &["3000", "200", "64"];

pub(super) fn run(settings: &Settings) -> Result<()> {
    paths::run(settings)?;
    let programs = Programs::new()?;
    calls(&programs, settings.quick)?;
    wall_time(&programs, if settings.quick { 3 } else { 24 })?;
    memory(&programs, settings.quick)?;
    sizes::print(&programs, settings.quick)
}

fn calls(programs: &Programs, quick: bool) -> Result<()> {
    let columns = [
        Column::Text("calls"),
        Column::Number("plain ns"),
        Column::Number("recorded ns"),
        Column::Number("more ns"),
    ];
    let mut table = Table::new("Time of a call: the fastest of some executions", &columns);
    let program = programs.compile(CALLS)?;
    for (name, processes, count) in [("pingpong", 2, "200000"), ("iprobe", 1, "3000000")] {
        progress(name);
        let once = |recorded: Option<&[&str]>| -> Result<f64> {
            let output = programs.run(processes, &program, &[name, count], recorded)?;
            String::from_utf8_lossy(&output.stdout).trim().parse().context("a number")
        };
        let (mut plain, mut recorded) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..if quick { 2 } else { 7 } {
            plain = plain.min(once(None)?);
            recorded = recorded.min(once(Some(&[]))?);
        }
        table.row([
            name.to_string(),
            format!("{plain:.0}"),
            format!("{recorded:.0}"),
            format!("{:.0}", recorded - plain),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn wall_time(programs: &Programs, blocks: usize) -> Result<()> {
    let program = programs.compile("examples/mpi/stencil.c")?;
    let once = |recorded: bool| -> Result<f64> {
        let start = Instant::now();
        programs.run(2, &program, STENCIL, recorded.then_some(&[] as &[&str]))?;
        Ok(start.elapsed().as_secs_f64())
    };
    once(true)?;
    let (mut logarithms, mut times) = (Vec::new(), Vec::new());
    for block in 0..blocks {
        progress(format_args!("a stencil, block {} of {blocks}", block + 1));
        let outer = block % 2 == 1;
        let mut logarithm = 0.0;
        for recorded in [outer, !outer, !outer, outer] {
            let seconds = once(recorded)?;
            logarithm += if recorded { seconds.ln() } else { -seconds.ln() } / 2.0;
            times.extend((!recorded).then_some(seconds));
        }
        logarithms.push(logarithm);
    }
    let (ratio, upper) = ratio_and_bound(&logarithms);
    let columns = [Column::Text("stencil on 2 processes"), Column::Number("value")];
    let pairs = 2 * blocks;
    let mut table =
        Table::new(format!("Wall time with recording, relative to without: {pairs} pairs"), &columns);
    table.row(["seconds without".to_string(), format!("{:.2}", median(&mut times))]);
    table.row(["ratio".to_string(), format!("{ratio:.4}")]);
    table.row(["upper 95 % bound (target 1.02)".to_string(), format!("{upper:.4}")]);
    println!("{table}");
    Ok(())
}

/// The estimate of Hodges and Lehmann for ratios given by their logarithms, and the upper bound of
/// Wilcoxon's signed ranks that it exceeds with a probability of 5 %, by the normal approximation.
fn ratio_and_bound(logarithms: &[f64]) -> (f64, f64) {
    let pairs = |(at, left): (usize, &f64)| -> Vec<f64> {
        logarithms[at..].iter().map(|right| f64::midpoint(*left, *right)).collect()
    };
    let mut means: Vec<f64> = logarithms.iter().enumerate().flat_map(pairs).collect();
    means.sort_by(f64::total_cmp);
    let count = logarithms.len() as f64;
    let deviation = (count * (count + 1.0) * (2.0 * count + 1.0) / 24.0).sqrt();
    let below = (means.len() as f64 / 2.0 - 1.645 * deviation).floor().max(0.0) as usize;
    (median(&mut means).exp(), means[means.len() - 1 - below].exp())
}

fn memory(programs: &Programs, quick: bool) -> Result<()> {
    let columns = [
        Column::Text("times"),
        Column::Number("events"),
        Column::Number("peak MB of the helper"),
        Column::Number("archive bytes"),
    ];
    let mut table =
        Table::new("Memory of the process that folds, for events of loops (target 20 MB)", &columns);
    let program = programs.compile(CALLS)?;
    let count = if quick { "1000000" } else { "10000000" };
    for times in ["none", "summary", "all"] {
        progress(format_args!("memory with times {times}"));
        let mut command = programs.mpirun(1, &program, &["iprobe", count], Some(&["--times", times]));
        let mut child = command.stdout(std::process::Stdio::null()).spawn()?;
        let mut peak = 0;
        while child.try_wait()?.is_none() {
            peak = peak.max(peak_of_helper(&programs.archive()));
            std::thread::sleep(Duration::from_millis(10));
        }
        let bytes = programs.archive().metadata()?.len();
        table.row([
            times.to_string(),
            count.to_string(),
            format!("{:.1}", peak as f64 / 1000.0),
            bytes.to_string(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// The peak memory so far, in kB, of the process that folds for this archive.
fn peak_of_helper(archive: &Path) -> u64 {
    let wanted = format!("LOOPFOLD_RECORD={}", archive.display());
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let peak = |folder: &Path| {
        let command = std::fs::read(folder.join("cmdline")).ok()?;
        String::from_utf8_lossy(&command).contains("--detached").then_some(())?;
        let environment = std::fs::read(folder.join("environ")).ok()?;
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()).then_some(())?;
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    };
    processes.flatten().filter_map(|entry| peak(&entry.path())).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_execution_does_not_decide() {
        let mut samples: Vec<f64> = (0..40).map(|n| 0.001 * f64::from(n % 5 - 2)).collect();
        let (ratio, upper) = ratio_and_bound(&samples);
        assert!((ratio - 1.0).abs() < 1e-3 && upper < 1.002, "{ratio} {upper}");
        samples[7] = 0.7;
        let (ratio, upper) = ratio_and_bound(&samples);
        assert!((ratio - 1.0).abs() < 1e-3 && upper < 1.002, "{ratio} {upper}");
    }
}
