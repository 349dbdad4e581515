//! What recording paths costs: the user time of a program alone, instrumented with its events thrown
//! away, spooled, and folded online; events a second, and the size of archives.
//!
//! The programs are those of `examples/paths`. A shell that runs the program measures its user time,
//! so that the recorder's own is apart; the fastest of some executions counts.

use super::super::{Settings, progress};
use crate::table::{Column, Table, grouped};
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// The programs, with arguments for a short and a long execution.
const PROGRAMS: [(&str, [&str; 2]); 2] = [("squeeze", ["500000", "3000000"]), ("calc", ["10000", "60000"])];

/// How a program is executed: the options of `record`, if it is recorded.
const RECORDED: [(&str, Option<&[&str]>); 4] = [
    ("thrown away", None),
    ("spooled", Some(&["--spool"])),
    ("folded online", Some(&[])),
    ("with cycles", Some(&["--cycles"])),
];

pub(in super::super) fn run(settings: &Settings) -> Result<()> {
    let bench = Bench::new()?;
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
    let title =
        "Recording paths: user time of the program (targets: thrown away 1.4 for squeeze, 2 for calc)";
    let mut table = Table::new(title, &columns);
    for (name, arguments) in PROGRAMS {
        let argument = arguments[usize::from(!settings.quick)];
        let (plain, instrumented) = bench.compile(name)?;
        let times = if settings.quick { 1 } else { 3 };
        progress(format_args!("{name} alone"));
        let alone = bench.fastest(times, &plain, argument, None)?;
        table.row(row(name, "not instrumented", &alone, &alone, None));
        for (how, options) in RECORDED {
            progress(format_args!("{name} {how}"));
            let cost = bench.fastest(times, &instrumented, argument, options)?;
            let recorded = options.map(|_| bench.recorded()).transpose()?;
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

/// The command, and a folder for programs and archives.
struct Bench {
    folder: TempDir,
    command: PathBuf,
    clang: String,
}

impl Bench {
    fn new() -> Result<Self> {
        let command = crate::build::build()?.join("loopfold");
        let named = std::env::var("LOOPFOLD_CLANG").ok().filter(|name| !name.is_empty());
        let is_there = |name: &String| Command::new(name).arg("--version").output().is_ok();
        let mut names = named.into_iter().chain(["clang", "clang-19", "clang-16"].map(String::from));
        let clang = names.find(is_there).context("there is no clang; install clang-16")?;
        Ok(Self { folder: tempfile::tempdir()?, command, clang })
    }

    /// A program without and with instrumentation.
    fn compile(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let source = crate::root().join(format!("examples/paths/{name}.c"));
        let [plain, instrumented] =
            ["plain", "recorded"].map(|kind| self.folder.path().join(format!("{name}-{kind}")));
        let mut drivers = [Command::new(&self.clang), Command::new(&self.command)];
        drivers[1].arg("cc").env("LOOPFOLD_CLANG", &self.clang);
        for (driver, program) in drivers.iter_mut().zip([&plain, &instrumented]) {
            let output = driver.args(["-g", "-O2", "-o"]).arg(program).arg(&source).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok((plain, instrumented))
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("run.fold")
    }

    fn fastest(
        &self,
        times: usize,
        program: &Path,
        argument: &str,
        options: Option<&[&str]>,
    ) -> Result<Cost> {
        let mut best = Cost { user: f64::INFINITY, wall: f64::INFINITY };
        for _ in 0..times {
            let Cost { user, wall } = self.once(program, argument, options)?;
            best = Cost { user: best.user.min(user), wall: best.wall.min(wall) };
        }
        Ok(best)
    }

    fn once(&self, program: &Path, argument: &str, options: Option<&[&str]>) -> Result<Cost> {
        let mut command = match options {
            None => Command::new("sh"),
            Some(options) => {
                let mut command = Command::new(&self.command);
                command.arg("record").args(options).arg("-o").arg(self.archive()).arg("sh");
                command
            }
        };
        command.args(["-c", "\"$@\" > /dev/null && times", "sh"]).arg(program).arg(argument);
        let start = Instant::now();
        let output = command.stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let wall = start.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let user = text.lines().nth(1).and_then(|line| seconds(line.split_whitespace().next()?));
        Ok(Cost { user: user.with_context(|| format!("the shell does not say how long: {text}"))?, wall })
    }

    fn recorded(&self) -> Result<Recorded> {
        let output = Command::new(&self.command).args(["stats", "--json"]).arg(self.archive()).output()?;
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let bytes = std::fs::metadata(self.archive())?.len();
        Ok(Recorded { events: stats["events"].as_u64().context("a number of events")?, bytes })
    }
}

/// `0m1.23s` in seconds.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}
