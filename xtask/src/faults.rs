//! `cargo xtask faults`: kills commands and recordings (`recordings` of MPI, `paths`) at random
//! moments, and starts recordings in pairs on one output. Counts what is found afterwards, and fails if
//! it is not what is promised: the old file or the new one, no debris after the next execution, nothing
//! recorded that is lost without a word, and of two recordings one that is whole.

mod paths;
mod recordings;

use crate::Arguments;
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Context as _, Result, ensure};
use loopfold_testing::rng::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIGNALS: [(&str, Signal); 4] =
    [("KILL", Signal::KILL), ("TERM", Signal::TERM), ("INT", Signal::INT), ("HUP", Signal::HUP)];
const OUTPUT: &str = "output";
/// What `fold -` leaves on purpose when a signal ends it: the events that it had read.
const PARTIAL: &str = ".partial.fold";
const SEED: u64 = 29;

/// Runs the chore.
pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    let count = |value: Option<String>, default: usize| -> Result<usize> {
        value.map_or(Ok(default), |value| value.parse().with_context(|| format!("`{value}` is no number")))
    };
    let kills = count(arguments.option("--kills")?, 1000)?;
    let pairs = count(arguments.option("--pairs")?, 20)?;
    let recordings = count(arguments.option("--recordings")?, 200)?;
    let paths = count(arguments.option("--paths")?, 400)?;
    arguments.finish()?;
    let programs = Programs::new()?;
    kill_commands(programs.command(), kills)?;
    recordings::kill(&programs, recordings)?;
    paths::kill(&programs, paths)?;
    start_pairs(&programs, pairs)
}

/// A command that replaces a file.
struct Scenario {
    name: &'static str,
    /// Without the output; `-` in them is standard input.
    arguments: &'static [&'static str],
    old: Vec<u8>,
    new: Vec<u8>,
    /// How long it takes undisturbed.
    duration: Duration,
}

/// A folder with traces, and the commands that are killed in it.
struct Commands<'a> {
    command: &'a Path,
    folder: TempDir,
}

impl<'a> Commands<'a> {
    fn new(command: &'a Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let trace = |modulus: usize, lines: usize| -> String {
            (0..lines).map(|line| format!("step {}\nsend {}\n", line % 7, line % modulus)).collect()
        };
        for (name, text) in
            [("old.txt", trace(5, 20)), ("new.txt", trace(1013, 60_000)), ("more.txt", trace(887, 60_000))]
        {
            fs::write(folder.path().join(name), text)?;
        }
        fs::create_dir(folder.path().join("out"))?;
        Ok(Self { command, folder })
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out").join(OUTPUT)
    }

    fn start(&self, arguments: &[&str]) -> Result<Child> {
        let mut command = Command::new(self.command);
        command.args(arguments).arg("-o").arg(self.output()).current_dir(self.folder.path());
        let input = if arguments.contains(&"-") { "new.txt" } else { "old.txt" };
        command.stdin(File::open(self.folder.path().join(input))?);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
    }

    /// What the command writes undisturbed.
    fn written(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        ensure!(self.start(arguments)?.wait()?.success(), "{arguments:?} fails");
        Ok(fs::read(self.output())?)
    }

    fn scenario(
        &self,
        name: &'static str,
        old: &[&str],
        arguments: &'static [&'static str],
    ) -> Result<Scenario> {
        let _ = fs::remove_file(self.output());
        let old = self.written(old)?;
        let begin = Instant::now();
        let new = self.written(arguments)?;
        let duration = begin.elapsed();
        ensure!(old != new, "{name} writes nothing else");
        Ok(Scenario { name, arguments, old, new, duration })
    }

    /// What is in the folder of the output beside it.
    fn debris(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.folder.path().join("out"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(PARTIAL) {
                fs::remove_file(self.folder.path().join("out").join(name))?;
            } else if name != OUTPUT {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// What was found after the kills of one command by one signal.
#[derive(Default)]
struct Found {
    kills: usize,
    /// The command had ended before.
    late: usize,
    old: usize,
    new: usize,
    /// Something was left beside the output until the next execution.
    left: usize,
    wrong: usize,
    debris: usize,
}

fn kill_commands(command: &Path, kills: usize) -> Result<()> {
    let commands = Commands::new(command)?;
    const CSV: &[&str] = &["hot", "new.txt", "--table", "csv"];
    let scenarios = [
        commands.scenario("fold", &["fold", "old.txt"], &["fold", "new.txt"])?,
        commands.scenario("fold -", &["fold", "old.txt"], &["fold", "-"])?,
        commands.scenario("merge", &["fold", "old.txt"], &["merge", "new.txt", "more.txt"])?,
        commands.scenario("hot --table", &["hot", "old.txt", "--table", "csv"], CSV)?,
    ];
    let mut rng = Rng::new(SEED);
    let mut found: BTreeMap<(usize, usize), Found> = BTreeMap::new();
    for kill in 0..kills {
        let key = (kill % scenarios.len(), kill / scenarios.len() % SIGNALS.len());
        kill_one(&commands, &scenarios[key.0], SIGNALS[key.1].1, &mut rng, found.entry(key).or_default())?;
    }
    println!("{}", kills_table(&scenarios, &found));
    let wrong: usize = found.values().map(|found| found.wrong + found.debris).sum();
    ensure!(wrong == 0, "{wrong} of {kills} left something else than the old file or the new one");
    Ok(())
}

/// Starts a command onto an old file, kills it at a random moment, and looks.
fn kill_one(
    commands: &Commands<'_>,
    scenario: &Scenario,
    signal: Signal,
    rng: &mut Rng,
    found: &mut Found,
) -> Result<()> {
    fs::write(commands.output(), &scenario.old)?;
    let mut child = commands.start(scenario.arguments)?;
    // A little longer than it takes, so that renaming and cleaning up are hit, too.
    let longest = scenario.duration.as_micros() as usize * 11 / 10;
    std::thread::sleep(Duration::from_micros(rng.below(longest) as u64));
    let pid = Pid::from_raw(child.id() as i32).context("a process has a number")?;
    kill_process(pid, signal)?;
    let status = child.wait()?;
    found.kills += 1;
    found.late += usize::from(status.success());
    match fs::read(commands.output())? {
        bytes if bytes == scenario.old => found.old += 1,
        bytes if bytes == scenario.new => found.new += 1,
        _ => found.wrong += 1,
    }
    let left = commands.debris()?;
    found.left += usize::from(!left.is_empty());
    // Only SIGKILL may leave anything, and the next execution removes it.
    found.debris += usize::from(!left.is_empty() && signal != Signal::KILL);
    commands.written(&["fold", "old.txt"])?;
    found.debris += usize::from(!commands.debris()?.is_empty());
    Ok(())
}

fn kills_table(scenarios: &[Scenario], found: &BTreeMap<(usize, usize), Found>) -> Table {
    let columns = ["kills", "late", "old", "new", "left", "wrong", "debris"].map(Column::Number);
    let columns = [&[Column::Text("command"), Column::Text("signal")], &columns[..]].concat();
    let mut table = Table::new("Commands that replace a file, killed at random moments", &columns);
    for ((scenario, signal), found) in found {
        let counts = [found.kills, found.late, found.old, found.new, found.left, found.wrong, found.debris];
        let names = [scenarios[*scenario].name, SIGNALS[*signal].0].map(str::to_string);
        table.row(names.into_iter().chain(counts.map(|count| count.to_string())));
    }
    table
}

/// Two recordings of different length onto one output, started together; long enough to meet.
fn start_pairs(programs: &Programs, pairs: usize) -> Result<()> {
    let ring = programs.compile("examples/mpi/ring.c")?;
    let rounds = ["60000", "100000"];
    let mut alone = Vec::new();
    for rounds in rounds {
        programs.run(2, &ring, &[rounds], Some(&[]))?;
        alone.push(programs.ask(&["cat"])?);
        fs::remove_file(programs.archive())?;
    }
    let mut winners = [0; 2];
    let mut refused = 0;
    for pair in 0..pairs {
        let start = |rounds: &str| -> Result<Child> {
            let mut command = programs.mpirun(2, &ring, &[rounds], Some(&[]));
            Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
        };
        let children = [start(rounds[0])?, start(rounds[1])?];
        let mut messages = Vec::new();
        for child in children {
            let message = String::from_utf8_lossy(&child.wait_with_output()?.stderr).into_owned();
            messages.push(message);
        }
        let recorded = programs.ask(&["cat"])?;
        let winner = (0..2).find(|&at| recorded == alone[at] && messages[at].is_empty());
        let winner = winner.with_context(|| format!("pair {pair}: neither is whole: {messages:?}"))?;
        winners[winner] += 1;
        let other = &messages[1 - winner];
        if !other.is_empty() {
            let why = ["is being written by", "is what an earlier recording has left"];
            ensure!(why.iter().any(|why| other.contains(why)), "pair {pair}: {other}");
            refused += 1;
        }
        fs::remove_file(programs.archive())?;
        ensure!(!has_data(&programs.archive()), "pair {pair} left data");
    }
    println!(
        "{pairs} pairs of recordings started together: the first whole {}, the second whole {}; the other \
         refused with the reason {refused}, both one after the other {}",
        winners[0],
        winners[1],
        pairs - refused
    );
    Ok(())
}

/// Whether a recording has left what one that ends well removes.
fn has_data(archive: &Path) -> bool {
    let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", archive.display()));
    [".parts", ".spool"].iter().any(|suffix| beside(suffix).exists())
}
