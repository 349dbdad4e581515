//! How well skeletons predict, beside simply executing fewer iterations; and the size of logical
//! traces against the number of processes.
//!
//! A program is recorded once, on all cores. Then the program, its skeleton at 1/50 and the program
//! with a fiftieth of its iterations are executed in turns without a recorder, on two cores and on
//! one. Times are those between `MPI_Init` and `MPI_Finalize`.
//!
//! On two cores processes are bound to them, one after the other: which of them share a core would
//! else be decided by chance for a whole execution, and changes its time by up to 40 %. On one core,
//! the order in which more than two processes take turns does the same and cannot be chosen. Medians
//! count, of several executions; beside them are the fastest, in which the system interfered least.

use super::{Settings, median, progress};
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Context as _, Result, ensure};
use loopfold::folders::{Folder as _, Outermost, fold_trace};
use loopfold::questions::logical::LogicalTrace;
use loopfold::trace::{Collector, Event, Field, Role, Sink as _, Value};
use loopfold_testing::spmd::{self, Bytes, NOBODY, Phase};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What `--program` calls the sizes of logical traces.
const LOGICAL: &str = "logical";

const TIMER: &str = "xtask/src/bench/skeleton/timer.c";

/// A program to predict.
struct Case {
    source: &'static str,
    processes: usize,
    arguments: &'static [&'static str],
    /// A fiftieth of the iterations.
    first: &'static [&'static str],
    is_regular: bool,
}

const CASES: &[Case] = &[
    Case { source: "ring.c", processes: 2, arguments: &["2000000"], first: &["40000"], is_regular: true },
    Case {
        source: "stencil.c",
        processes: 2,
        arguments: &["3000", "400", "4"],
        first: &["60", "400", "4"],
        is_regular: true,
    },
    Case {
        source: "wavefront.f90",
        processes: 2,
        arguments: &["3000", "100"],
        first: &["60", "100"],
        is_regular: true,
    },
    Case {
        source: "butterfly.c",
        processes: 2,
        arguments: &["4000000"],
        first: &["80000"],
        is_regular: true,
    },
    Case {
        source: "multigrid.c",
        processes: 2,
        arguments: &["3000000"],
        first: &["60000"],
        is_regular: true,
    },
    Case {
        source: "conjugate.f90",
        processes: 4,
        arguments: &["10000", "100"],
        first: &["200", "100"],
        is_regular: true,
    },
    Case { source: "allpairs.c", processes: 4, arguments: &["200000"], first: &["4000"], is_regular: true },
    Case {
        source: "weather.c",
        processes: 4,
        arguments: &["100000", "35"],
        first: &["2000", "35"],
        is_regular: true,
    },
    Case {
        source: "irregular.c",
        processes: 4,
        arguments: &["10", "150000"],
        first: &["10", "3000"],
        is_regular: false,
    },
    Case {
        source: "adaptive.c",
        processes: 4,
        arguments: &["6", "1200000", "200000", "800000"],
        first: &["6", "24000", "4000", "16000"],
        is_regular: false,
    },
    Case { source: "workers.c", processes: 4, arguments: &["1000000"], first: &["20000"], is_regular: false },
];

pub(super) fn run(settings: &Settings) -> Result<()> {
    if settings.program.as_deref().is_none_or(|only| only == LOGICAL) {
        sizes(settings.quick)?;
    }
    if settings.program.as_deref() == Some(LOGICAL) {
        return Ok(());
    }
    let programs = Programs::new()?;
    let timer = preloaded(&programs)?;
    let columns = [
        Column::Text("program"),
        Column::Number("processes"),
        Column::Text("cores"),
        Column::Number("took s"),
        Column::Number("predicted s"),
        Column::Number("error %"),
        Column::Number("limit %"),
        Column::Text(""),
        Column::Number("first 1/50 %"),
        Column::Number("fastest s"),
        Column::Number("error %"),
        Column::Number("first 1/50 %"),
    ];
    let mut table = Table::new("Skeletons at 1/50: the time of the program, and what they predict", &columns);
    for case in CASES
        .iter()
        .filter(|case| settings.program.as_deref().is_none_or(|only| case.source.starts_with(only)))
    {
        progress(case.source);
        predict(&programs, &timer, case, settings.quick, &mut table)?;
    }
    println!("{table}");
    Ok(())
}

/// The library that measures programs.
fn preloaded(programs: &Programs) -> Result<PathBuf> {
    let path = programs.archive().with_file_name("timer.so");
    let mut compiler = Command::new("mpicc.openmpi");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&path).arg(crate::root().join(TIMER)).arg("-ldl");
    let output = compiler.output().context("mpicc.openmpi: install libopenmpi-dev")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(path)
}

fn predict(programs: &Programs, timer: &Path, case: &Case, quick: bool, table: &mut Table) -> Result<()> {
    let program = programs.compile(&format!("examples/mpi/{}", case.source))?;
    programs.run(case.processes, &program, case.arguments, Some(&[]))?;
    let source = programs.archive().with_file_name("skeleton.c");
    let output = source.display().to_string();
    programs.ask(&["skeleton", "--scale", "1/50", "-o", &output])?;
    let skeleton = source.with_extension("");
    let mut compiler = Command::new("mpicc.openmpi");
    compiler.args(["-O2", "-o"]).arg(&skeleton).arg(&source).arg("-ldl");
    ensure!(compiler.status()?.success(), "the skeleton of {} cannot be compiled", case.source);
    let times = if quick { 1 } else { 9 };
    for cores in ["0,1", "0"] {
        let measure = |program: &Path, arguments: &[&str]| {
            once(programs, timer, case.processes, cores, program, arguments)
        };
        let (mut took, mut predicted, mut first) = (Vec::new(), Vec::new(), Vec::new());
        // In turns, as the machine's speed may change while it is measured.
        for _ in 0..times {
            took.push(measure(&program, case.arguments)?);
            predicted.extend([50.0 * measure(&skeleton, &[])?, 50.0 * measure(&skeleton, &[])?]);
            first.push(50.0 * measure(&program, case.first)?);
        }
        let limit = if case.is_regular { 10.0 } else { 20.0 };
        let mut times = [took, predicted, first];
        let [fastest_took, fastest_predicted, fastest_first] = times.each_ref().map(|times| fastest(times));
        let [took, predicted, first] = times.each_mut().map(|times| median(times));
        let error = percent(predicted, took);
        table.row([
            case.source.to_string(),
            case.processes.to_string(),
            if cores == "0" { "one" } else { "two" }.to_string(),
            format!("{took:.3}"),
            format!("{predicted:.3}"),
            format!("{error:+.1}"),
            format!("{limit:.0}"),
            if error.abs() <= limit { "met" } else { "missed" }.to_string(),
            format!("{:+.1}", percent(first, took)),
            format!("{fastest_took:.3}"),
            format!("{:+.1}", percent(fastest_predicted, fastest_took)),
            format!("{:+.1}", percent(fastest_first, fastest_took)),
        ]);
    }
    Ok(())
}

fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// How much more something is than it should be.
fn percent(is: f64, should: f64) -> f64 {
    100.0 * (is / should - 1.0)
}

/// Executes a program on some cores; returns its time between `MPI_Init` and `MPI_Finalize`.
fn once(
    programs: &Programs,
    timer: &Path,
    processes: usize,
    cores: &str,
    program: &Path,
    arguments: &[&str],
) -> Result<f64> {
    let mpirun = programs.mpirun(processes, program, arguments, None);
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(mpirun.get_program());
    match cores {
        "0" => command.args(["--bind-to", "none"]),
        _ => command.args(["--map-by", "core:oversubscribe", "--bind-to", "core:overload-allowed"]),
    };
    if processes <= 2 {
        // With more, they yield anyway.
        command.args(["--mca", "mpi_yield_when_idle", "1"]);
    }
    command.arg("-x").arg(format!("LD_PRELOAD={}", timer.display())).args(mpirun.get_args());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.output().context("taskset")?;
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}");
    let number = |line: &str, before: &str| line.strip_prefix(before)?.split(' ').next()?.parse().ok();
    // A skeleton says itself how long it took, without what it does before it begins.
    let own = printed.lines().find_map(|line| number(line, "skeleton "));
    own.or_else(|| said.lines().find_map(|line| number(line, "took "))).context("no time was printed")
}

/// The size of the logical trace of a program against the number of its processes.
fn sizes(quick: bool) -> Result<()> {
    let columns = [
        Column::Number("processes"),
        Column::Number("events"),
        Column::Number("items"),
        Column::Number("written"),
        Column::Number("branches"),
        Column::Number("terms"),
        Column::Number("exceptions"),
        Column::Number("ms"),
        Column::Number("check ms"),
    ];
    let mut table = Table::new("Logical traces of a generated program", &columns);
    let exchange = vec![Phase::Pipeline(Bytes::Same(8)), Phase::Ring(2, Bytes::ByRank(8))];
    let program = [Phase::Repeat(
        5,
        vec![
            Phase::Borders(Bytes::Same(64)),
            Phase::Repeat(4, exchange),
            Phase::Collective("MPI_Allreduce", None),
        ],
    )];
    let sizes: &[i64] = if quick { &[4, 64, 1024] } else { &[4, 16, 64, 256, 1024, 4096] };
    for &processes in sizes {
        progress(format_args!("a logical trace of {processes} processes"));
        let mut collector = Collector::default();
        for rank in 0..processes {
            let stream = collector.stream(&format!("rank {rank}"))?;
            for call in spmd::calls(&program, rank, processes) {
                let value = |&(key, value): &(&'static str, i64)| match (key, value) {
                    ("dest" | "src", NOBODY) => Field { key, value: Value::Text(b"none") },
                    _ => Field { key, value: Value::Integer(value) },
                };
                let fields: Vec<Field<'_>> = call.fields.iter().map(value).collect();
                let role = match call.name {
                    "MPI_Send" | "MPI_Isend" => Role::Send,
                    "MPI_Recv" | "MPI_Irecv" => Role::Receive,
                    "MPI_Allreduce" => Role::Collective,
                    _ => Role::Plain,
                };
                collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(call.name) })?;
            }
        }
        let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
        let start = Instant::now();
        let logical = LogicalTrace::of(&fold, &|stream, builder| Outermost::default().fold(stream, builder))?;
        let took = start.elapsed();
        let start = Instant::now();
        logical.verify(&fold)?;
        let size = logical.size();
        table.row([
            processes.to_string(),
            fold.events().unwrap_or(0).to_string(),
            fold.items().to_string(),
            size.events.to_string(),
            size.branches.to_string(),
            size.terms.to_string(),
            size.exceptions.to_string(),
            format!("{:.1}", 1e3 * took.as_secs_f64()),
            format!("{:.1}", 1e3 * start.elapsed().as_secs_f64()),
        ]);
    }
    println!("{table}");
    Ok(())
}
