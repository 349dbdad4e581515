//! Commands in many processes: time, traffic and memory against their number, and an archive of
//! 4,096 ranks.
//!
//! The traces are those of LU on a grid of processes with generated times, written as OTF2 archives.
//! `loopfold-mpi` is started by `mpirun` with 1, 2, 4 and 8 processes; the answers must be equal.
//! On a machine with fewer cores than processes the wall time does not shrink any more, so the
//! CPU time of the process that computes longest stands beside it: that is the time with a core for
//! each, without the time of waiting for others.

use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result, bail, ensure};
use loopfold::folders::{SequiturRuns, fold_trace};
use loopfold::trace::{Collector, Event, Field, Projection, Role, Sink as _, TimesKept, Timing, Value};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{Call, Program, lu};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const COUNTS: [usize; 4] = [1, 2, 4, 8];

/// Measures and prints the tables.
pub(super) fn run(settings: &Settings) -> Result<()> {
    if let Err(reason) = loopfold_otf2::is_available() {
        println!("Many nodes are not measured: {reason}\n");
        return Ok(());
    }
    let command = build()?;
    let folder = tempfile::tempdir()?;
    let (planes, times) = if settings.quick { (10, 20) } else { (30, 100) };
    let trace = write(&lu(8, 8, planes, times), &folder.path().join("lu64"))?;
    against_count(&command, &trace, folder.path())?;
    let (planes, times) = if settings.quick { (2, 5) } else { (4, 25) };
    let side = if settings.quick { 16 } else { 64 };
    let trace = write(&lu(side, side, planes, times), &folder.path().join("lu4096"))?;
    many_ranks(&command, &trace, folder.path(), side * side)
}

/// A trace on disk.
struct Written {
    path: PathBuf,
    events: u64,
}

/// Writes a program with times as an OTF2 archive: computation of varying length between calls.
fn write(program: &Program, path: &Path) -> Result<Written> {
    progress(format_args!("writing an OTF2 archive of {} ranks", program.len()));
    let mut collector = Collector::new(Projection::default(), TimesKept::All);
    for (rank, calls) in program.iter().enumerate() {
        let stream = collector.stream(&format!("rank {rank}"))?;
        let (mut rng, mut now) = (Rng::new(rank as u64), 0i64);
        for call in calls {
            let symbol = collector.intern(&event(call, &mut Vec::new())?)?;
            let duration = 500 + rng.below(1000) as i64;
            collector.push(
                stream,
                symbol,
                Timing { start: Some(now), duration: Some(duration), ..Timing::UNKNOWN },
            )?;
            now += duration + 200 + rng.below(400) as i64;
        }
    }
    let trace = collector.finish()?;
    let events = trace.events();
    let fold = fold_trace(trace, &SequiturRuns, 2)?;
    loopfold_otf2::write(&fold, path).map_err(anyhow::Error::msg)?;
    Ok(Written { path: path.to_path_buf(), events })
}

fn event<'a>(call: &Call, fields: &'a mut Vec<Field<'static>>) -> Result<Event<'a>> {
    let field = |key, value: u32| Field { key, value: Value::Integer(value.into()) };
    let (name, role) = match *call {
        Call::Send(to, tag, bytes) => {
            fields.extend([field("dest", to), field("tag", tag), field("bytes", bytes)]);
            ("MPI_Send", Role::Send)
        }
        Call::Receive(from, tag, bytes) => {
            fields.extend([field("src", from), field("tag", tag), field("bytes", bytes)]);
            ("MPI_Recv", Role::Receive)
        }
        Call::Wait => ("MPI_Waitall", Role::Plain),
        Call::Collective(name, root) => {
            fields.extend(root.map(|root| field("root", root)));
            (name, Role::Collective)
        }
        _ => bail!("programs of the benchmark have one communicator"),
    };
    Ok(Event { role, fields, ..Event::named(name) })
}

/// Builds the program and returns its path.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--package", "loopfold-mpi"]).current_dir(crate::root());
    ensure!(
        command.status()?.success(),
        "loopfold-mpi cannot be built: install libopenmpi-dev and libclang1"
    );
    Ok(crate::root().join("target/release/loopfold-mpi"))
}

/// What the processes used.
struct Usage {
    seconds: f64,
    /// Of the process that computes longest.
    cpu_seconds: f64,
    sent: u64,
    /// The peak of process 0, and the largest of the others.
    memory: [u64; 2],
    answer: Vec<u8>,
}

fn measure(command: &Path, processes: usize, arguments: &[&str], folder: &Path) -> Result<Usage> {
    let report = folder.join("report.json");
    let mut run = Command::new("mpirun.openmpi");
    run.args(["-q", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", &processes.to_string()]);
    run.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run.env("LOOPFOLD_MPI_REPORT", &report).arg(command).args(arguments).stdin(Stdio::null());
    let started = Instant::now();
    let output = run.output().context("mpirun.openmpi: install openmpi-bin")?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(
        output.status.code().is_some_and(|status| status < 2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (mut cpu, mut sent, mut memory) = (0, 0, [0, 0]);
    let report = std::fs::read_to_string(&report)?;
    for (process, line) in report.lines().enumerate() {
        cpu = cpu.max(number(line, "time")?);
        sent += number(line, "sent")?;
        let place = usize::from(process > 0);
        memory[place] = memory[place].max(number(line, "memory")?);
    }
    Ok(Usage { seconds, cpu_seconds: cpu as f64 / 1e9, sent, memory, answer: output.stdout })
}

/// The value of a key in a line of the report.
fn number(line: &str, key: &str) -> Result<u64> {
    let (_, after) = line.split_once(&format!("\"{key}\":")).context("a line of the report is incomplete")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

const COLUMNS: [Column; 7] = [
    Column::Text("command"),
    Column::Number("processes"),
    Column::Number("seconds"),
    Column::Number("CPU s, longest"),
    Column::Number("sent, MB"),
    Column::Number("process 0, MB"),
    Column::Number("others, MB at most"),
];

fn megabytes(bytes: u64) -> String {
    short(bytes as f64 / 1e6)
}

fn row(table: &mut Table, name: &str, processes: usize, usage: &Usage) {
    let [first, others] = usage.memory.map(megabytes);
    let others = if processes == 1 { "-".to_string() } else { others };
    let numbers = [short(usage.seconds), short(usage.cpu_seconds), megabytes(usage.sent), first, others];
    table.row([name.to_string(), processes.to_string()].into_iter().chain(numbers));
}

/// Every command with each number of processes.
fn against_count(command: &Path, trace: &Written, folder: &Path) -> Result<()> {
    let title = format!("Many processes: LU on 64 ranks, {} events, OTF2", grouped(trace.events));
    let mut table = Table::new(title, &COLUMNS);
    let input = trace.path.to_str().context("a path in UTF-8")?;
    let archive = folder.join("out.fold");
    let archive = archive.to_str().context("a path in UTF-8")?;
    let commands: [&[&str]; 6] = [
        &["fold", "-o", archive, "--json"],
        &["loops", "--json"],
        &["stats", "--json"],
        &["patterns", "--json"],
        &["similar", "--like", "line:4", "--json", "--top", "100"],
        &["waits", "--json"],
    ];
    for arguments in commands {
        let mut first: Option<(Vec<u8>, Vec<u8>)> = None;
        for processes in COUNTS {
            progress(format_args!("{} in {processes} processes", arguments[0]));
            let usage = measure(command, processes, &[arguments, &[input]].concat(), folder)?;
            let written = if arguments[0] == "fold" { std::fs::read(archive)? } else { Vec::new() };
            row(&mut table, arguments[0], processes, &usage);
            let answer = (usage.answer, written);
            let expected = first.get_or_insert_with(|| answer.clone());
            ensure!(*expected == answer, "{arguments:?}: another answer in {processes} processes");
        }
    }
    println!("{table}");
    Ok(())
}

/// A trace of thousands of ranks is folded, and its patterns are found.
fn many_ranks(command: &Path, trace: &Written, folder: &Path, ranks: usize) -> Result<()> {
    let title = format!("LU on {} ranks, {} events, OTF2", grouped(ranks as u64), grouped(trace.events));
    let mut table = Table::new(title, &COLUMNS);
    let input = trace.path.to_str().context("a path in UTF-8")?;
    let archive = folder.join("many.fold");
    let archive = archive.to_str().context("a path in UTF-8")?;
    for (name, processes, arguments) in [
        ("fold", 1, &["fold", "-o", archive, input][..]),
        ("fold", 4, &["fold", "-o", archive, input]),
        ("patterns of the trace", 4, &["patterns", "--json", input]),
        ("patterns of the archive", 4, &["patterns", "--json", archive]),
    ] {
        progress(format_args!("{name}, {ranks} ranks, {processes} processes"));
        row(&mut table, name, processes, &measure(command, processes, arguments, folder)?);
    }
    println!("{table}");
    println!("archive: {} bytes\n", grouped(std::fs::metadata(archive)?.len()));
    Ok(())
}
