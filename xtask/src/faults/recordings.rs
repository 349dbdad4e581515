//! Kills of recorded MPI programs at random moments: of a process of the program, of one that folds,
//! of `mpirun`, and of all together, by SIGKILL and SIGTERM.
//!
//! Whatever is hit, what lies there afterwards must be readable, every rank a prefix of an undisturbed
//! execution, and what is missing must be said: by the program, or in the files. Only where those who
//! could say it were killed, too, does a prefix have to do.

use super::{Rng, has_data};
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RANKS: usize = 2;
const ROUNDS: &str = "60000";
const SIGNALS: [(&str, Signal); 2] = [("KILL", Signal::KILL), ("TERM", Signal::TERM)];
/// Whoever is not gone after this hangs.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Program,
    Helper,
    Mpirun,
    All,
}

const VICTIMS: [(&str, Victim); 4] = [
    ("program", Victim::Program),
    ("helper", Victim::Helper),
    ("mpirun", Victim::Mpirun),
    ("all together", Victim::All),
];

/// What was found after the kills of one victim by one signal.
#[derive(Default)]
struct Found {
    kills: usize,
    /// Before anything was recorded.
    early: usize,
    /// The archive is whole.
    whole: usize,
    /// The parts have all events up to the kill.
    all: usize,
    /// Some are missing, and that was said.
    said: usize,
    /// Nobody was left who could say what is missing.
    prefix: usize,
    wrong: usize,
}

enum Outcome {
    Early,
    Whole,
    All,
    Said,
    Prefix,
}

/// Kills recordings, and fails if something else is left than is promised.
pub(super) fn kill(programs: &Programs, kills: usize) -> Result<()> {
    if kills == 0 {
        return Ok(());
    }
    let ring = programs.compile("examples/mpi/ring.c")?;
    let begin = Instant::now();
    let whole = Killed { programs, ring, rng: Rng::new(super::SEED), events: Vec::new() };
    ensure!(whole.start()?.wait()?.success(), "the recording fails undisturbed");
    let duration = begin.elapsed();
    let events = (0..RANKS).map(|rank| whole.events_of(&programs.archive(), rank)).collect();
    let mut killed = Killed { events, ..whole };
    killed.clean()?;
    let mut found: BTreeMap<(usize, usize), Found> = BTreeMap::new();
    for kill in 0..kills {
        let key = (kill % VICTIMS.len(), kill / VICTIMS.len() % SIGNALS.len());
        let found = found.entry(key).or_default();
        found.kills += 1;
        match killed.once(VICTIMS[key.0].1, SIGNALS[key.1].1, duration) {
            Ok(Outcome::Early) => found.early += 1,
            Ok(Outcome::Whole) => found.whole += 1,
            Ok(Outcome::All) => found.all += 1,
            Ok(Outcome::Said) => found.said += 1,
            Ok(Outcome::Prefix) => found.prefix += 1,
            Err(error) => {
                eprintln!("kill {kill} of {} by {}: {error:#}", VICTIMS[key.0].0, SIGNALS[key.1].0);
                found.wrong += 1;
            }
        }
        killed.clean()?;
    }
    println!("{}", table(&found));
    let wrong: usize = found.values().map(|found| found.wrong).sum();
    ensure!(wrong == 0, "{wrong} of {kills} recordings lost something without a word");
    Ok(())
}

fn table(found: &BTreeMap<(usize, usize), Found>) -> Table {
    let numbers = ["kills", "early", "whole", "all", "said", "prefix", "wrong"].map(Column::Number);
    let columns = [&[Column::Text("victim"), Column::Text("signal")], &numbers[..]].concat();
    let mut table = Table::new("MPI recordings, killed at random moments", &columns);
    for ((victim, signal), found) in found {
        let Found { kills, early, whole, all, said, prefix, wrong } = *found;
        let names = [VICTIMS[*victim].0, SIGNALS[*signal].0].map(str::to_string);
        let counts = [kills, early, whole, all, said, prefix, wrong].map(|count| count.to_string());
        table.row(names.into_iter().chain(counts));
    }
    table
}

/// Recordings that are killed.
struct Killed<'a> {
    programs: &'a Programs,
    ring: PathBuf,
    rng: Rng,
    /// The events of each rank of an undisturbed execution.
    events: Vec<Vec<String>>,
}

impl Killed<'_> {
    fn start(&self) -> Result<Child> {
        let options = ["--segment-seconds", "0.1"];
        let mut command = self.programs.mpirun(RANKS, &self.ring, &[ROUNDS], Some(&options));
        command.env("LOOPFOLD_RECORD_PATIENCE", "10");
        Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    fn once(&mut self, victim: Victim, signal: Signal, duration: Duration) -> Result<Outcome> {
        let mpirun = self.start()?;
        let own = Pid::from_raw(mpirun.id() as i32).context("a process has a number")?;
        std::thread::sleep(Duration::from_micros(self.rng.below(duration.as_micros() as usize) as u64));
        for process in self.chosen(victim, own) {
            // It may have ended.
            let _ = kill_process(process, signal);
        }
        let messages = self.wait(mpirun, own)?;
        self.outcome(victim, signal, &messages)
    }

    fn chosen(&mut self, victim: Victim, mpirun: Pid) -> Vec<Pid> {
        let (programs, helpers) = self.processes();
        let rng = &mut self.rng;
        let mut one = |of: Vec<Pid>| if of.is_empty() { of } else { vec![of[rng.below(of.len())]] };
        match victim {
            Victim::Program => one(programs),
            Victim::Helper => one(helpers),
            Victim::Mpirun => vec![mpirun],
            Victim::All => [vec![mpirun], helpers, programs].concat(),
        }
    }

    /// The processes of the program, and those that fold.
    fn processes(&self) -> (Vec<Pid>, Vec<Pid>) {
        let wanted = format!("LOOPFOLD_RECORD={}", self.programs.archive().display());
        let (mut programs, mut helpers) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()) {
                let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let is_helper = String::from_utf8_lossy(&command).contains("record-helper");
                if is_helper { &mut helpers } else { &mut programs }.extend(Pid::from_raw(pid));
            }
        }
        (programs, helpers)
    }

    /// Waits until all processes are gone, and returns what was said.
    fn wait(&self, mut mpirun: Child, own: Pid) -> Result<String> {
        let begin = Instant::now();
        let mut said = mpirun.stderr.take().context("messages")?;
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = std::io::Read::read_to_end(&mut said, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let has_ended = |mpirun: &mut Child| matches!(mpirun.try_wait(), Ok(Some(_)));
        let mut is_hanging = false;
        while !has_ended(&mut mpirun) || self.processes() != (Vec::new(), Vec::new()) {
            if begin.elapsed() > LONGEST {
                let (programs, helpers) = self.processes();
                is_hanging = true;
                [vec![own], programs, helpers].concat().iter().for_each(|&process| {
                    let _ = kill_process(process, Signal::KILL);
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        ensure!(!is_hanging, "it hangs");
        reader.join().ok().context("messages")
    }

    fn outcome(&self, victim: Victim, signal: Signal, messages: &str) -> Result<Outcome> {
        let archive = self.programs.archive();
        if archive.is_file() {
            self.check_prefixes(&archive, true)?;
            return Ok(Outcome::Whole);
        }
        let parts = PathBuf::from(format!("{}.parts", archive.display()));
        if !parts.is_dir() {
            return Ok(Outcome::Early);
        }
        self.check_prefixes(&parts, false)?;
        let mut missing = Vec::new();
        for rank in 0..RANKS {
            missing.extend(self.missing(&parts.join(format!("rank-{rank}.fold")))?);
        }
        let is_said =
            messages.lines().any(|line| line.starts_with("loopfold: ") && line.contains("recorded"));
        match (!missing.is_empty(), is_said) {
            (false, _) => Ok(Outcome::All),
            (true, true) => Ok(Outcome::Said),
            // Whoever could say it was killed.
            (true, false) if signal == Signal::KILL && victim == Victim::All => Ok(Outcome::Prefix),
            // Killed before it was introduced, the program has had no events.
            (true, false) if self.has_only_begun(&parts) => Ok(Outcome::Early),
            (true, false) => anyhow::bail!("{}: {messages}", missing.join("; ")),
        }
    }

    fn has_only_begun(&self, parts: &Path) -> bool {
        (0..RANKS).any(|rank| !parts.join(format!("rank-{rank}.fold")).exists())
    }

    /// What the file of a rank lacks. Returns `None` if it is complete.
    fn missing(&self, file: &Path) -> Result<Option<String>> {
        let output = Command::new(self.programs.command()).args(["verify", "--json"]).arg(file).output()?;
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let found = &found["archives"][0];
        // One event may have been counted and not sent any more.
        let is_complete = found["ok"] == true && found["recorded"]["missing"].as_u64().unwrap_or(0) <= 1;
        Ok((!is_complete).then(|| found.to_string()))
    }

    /// Fails unless it can be read, and every rank has the first events, or all of them.
    fn check_prefixes(&self, place: &Path, is_whole: bool) -> Result<()> {
        let read = Command::new(self.programs.command()).arg("stats").arg(place).output()?;
        let said = String::from_utf8_lossy(&read.stderr);
        ensure!(read.status.code().is_some_and(|code| code < 2), "it cannot be read: {said}");
        for (rank, all) in self.events.iter().enumerate() {
            let events = self.events_of(place, rank);
            ensure!(all.starts_with(&events), "rank {rank} is no prefix");
            ensure!(!is_whole || events.len() == all.len(), "rank {rank} has {} events", events.len());
        }
        Ok(())
    }

    fn events_of(&self, place: &Path, rank: usize) -> Vec<String> {
        let stream = format!("rank {rank}");
        let output =
            Command::new(self.programs.command()).arg("cat").arg(place).args(["--stream", &stream]).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_string).collect()
    }

    fn clean(&self) -> Result<()> {
        let archive = self.programs.archive();
        let _ = std::fs::remove_file(&archive);
        let _ = std::fs::remove_dir_all(format!("{}.parts", archive.display()));
        ensure!(!has_data(&archive), "what a recording has left cannot be removed");
        Ok(())
    }
}
