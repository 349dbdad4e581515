//! What recording paths costs: the user time of a program alone, instrumented with its events thrown
//! away, spooled, and folded online; events a second, and the size of archives.
//!
//! The programs are bzip2, the interpreter of Lua and those of `examples/paths`. A shell that runs the
//! program measures its user time, so that the recorder's own is apart; the fastest of some
//! executions counts.

use super::super::{Settings, progress};
use crate::real_programs::{RealProgram, RealPrograms};
use crate::table::{Column, Table, grouped};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How a program is executed: the options of `record`, if it is recorded.
const RECORDED: [(&str, Option<&[&str]>); 4] = [
    ("thrown away", None),
    ("spooled", Some(&["--spool"])),
    ("folded online", Some(&[])),
    ("with cycles", Some(&["--cycles"])),
];

pub(in super::super) fn run(settings: &Settings) -> Result<()> {
    let programs = RealPrograms::new()?;
    let columns = [
        Column::Text("program"),
        Column::Text("events"),
        Column::Number("user s"),
        Column::Number("ratio"),
        Column::Number("wall s"),
        Column::Number("M events/s"),
        Column::Number("MB/s"),
        Column::Number("archive"),
        Column::Number("% of raw"),
    ];
    let title = "Recording paths: user time of the program (targets: thrown away 1.4 for bzip2, 2 for an interpreter)";
    let mut table = Table::new(title, &columns);
    for program in programs.all(settings.quick)? {
        let name = program.name;
        let times = if settings.quick { 1 } else { 3 };
        progress(format_args!("{name} alone"));
        let alone = fastest(times, || once(&programs, &program, &program.plain, None))?;
        table.row(row(name, "not instrumented", &alone, &alone, None));
        for (how, options) in RECORDED {
            progress(format_args!("{name} {how}"));
            let cost = fastest(times, || once(&programs, &program, &program.instrumented, options))?;
            let recorded = options.map(|_| Recorded::of(&programs, &program)).transpose()?;
            table.row(row(name, how, &cost, &alone, recorded));
        }
    }
    println!("{table}");
    Ok(())
}

/// The times of an execution, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    user: f64,
    wall: f64,
}

/// What an archive has.
#[derive(Clone, Copy)]
struct Recorded {
    events: u64,
    bytes: u64,
}

fn row(name: &str, how: &str, cost: &Cost, alone: &Cost, recorded: Option<Recorded>) -> [String; 9] {
    let with = |text: &dyn Fn(Recorded) -> String| recorded.map_or_else(|| "-".to_string(), text);
    [
        name.to_string(),
        how.to_string(),
        format!("{:.2}", cost.user),
        format!("{:.2}", cost.user / alone.user),
        format!("{:.2}", cost.wall),
        with(&|recorded| format!("{:.1}", recorded.events as f64 / cost.wall / 1e6)),
        with(&|recorded| format!("{:.0}", recorded.events as f64 * 4.0 / cost.wall / 1e6)),
        with(&|recorded| grouped(recorded.bytes)),
        with(&|recorded| format!("{:.3}", recorded.bytes as f64 / recorded.events as f64 / 4.0 * 100.0)),
    ]
}

fn fastest(times: usize, once: impl Fn() -> Result<Cost>) -> Result<Cost> {
    let mut best = Cost { user: f64::INFINITY, wall: f64::INFINITY };
    for _ in 0..times {
        let Cost { user, wall } = once()?;
        best = Cost { user: best.user.min(user), wall: best.wall.min(wall) };
    }
    Ok(best)
}

fn once(
    programs: &RealPrograms,
    program: &RealProgram,
    executable: &Path,
    options: Option<&[&str]>,
) -> Result<Cost> {
    let mut command = match options {
        None => Command::new("sh"),
        Some(options) => {
            let mut command = programs.recorder(program, options);
            command.arg("sh");
            command
        }
    };
    command.args(["-c", "\"$@\" > /dev/null && times", "sh"]).arg(executable).args(&program.arguments);
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wall = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let user = text.lines().nth(1).and_then(|line| seconds(line.split_whitespace().next()?));
    Ok(Cost { user: user.with_context(|| format!("the shell does not say how long: {text}"))?, wall })
}

impl Recorded {
    fn of(programs: &RealPrograms, program: &RealProgram) -> Result<Self> {
        let archive = programs.archive(program);
        let output = programs.ask(&["stats", "--json", &archive.display().to_string()])?;
        let stats: serde_json::Value = serde_json::from_slice(&output)?;
        let events = stats["events"].as_u64().context("a number of events")?;
        Ok(Self { events, bytes: archive.metadata()?.len() })
    }
}

/// `0m1.23s` in seconds.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}
