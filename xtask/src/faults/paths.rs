//! Kills of recordings of paths at random moments, folded online or spooled: of the program, of the
//! recorder, and of both together, by SIGKILL and SIGTERM.
//!
//! What lies there afterwards must be readable and a prefix of an undisturbed execution. Where the
//! recorder was not killed, it has all events up to the kill and says so. Where it was, the copy or
//! the spool that it leaves says that it is not whole.

use super::Rng;
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the program takes, in milliseconds: a copy is made after two seconds.
const TIME: &str = "3500";
const KINDS: [(&str, &[&str]); 2] = [("online", &[]), ("spool", &["--spool"])];
const VICTIMS: [(&str, Victim); 3] =
    [("program", Victim::Program), ("recorder", Victim::Recorder), ("all together", Victim::All)];
const SIGNALS: [(&str, Signal); 2] = [("KILL", Signal::KILL), ("TERM", Signal::TERM)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Program,
    Recorder,
    All,
}

/// What was found after the kills of one victim by one signal.
#[derive(Default)]
struct Found {
    kills: usize,
    /// Nothing is left, as there was no time for a copy.
    early: usize,
    /// The archive is whole.
    whole: usize,
    /// The archive, or the spool, has all events up to the kill.
    all: usize,
    /// A prefix that says that it is one.
    prefix: usize,
    wrong: usize,
}

enum Outcome {
    Early,
    Whole,
    All,
    Prefix,
}

/// Kills recordings, and fails if something else is left than is promised.
pub(super) fn kill(programs: &Programs, kills: usize) -> Result<()> {
    if kills == 0 {
        return Ok(());
    }
    let mut killed = Killed::new(programs)?;
    let mut found: BTreeMap<(usize, usize, usize), Found> = BTreeMap::new();
    for kill in 0..kills {
        let key = (kill % 2, kill / 2 % VICTIMS.len(), kill / 2 / VICTIMS.len() % SIGNALS.len());
        let found = found.entry(key).or_default();
        found.kills += 1;
        match killed.once(KINDS[key.0].1, VICTIMS[key.1].1, SIGNALS[key.2].1) {
            Ok(Outcome::Early) => found.early += 1,
            Ok(Outcome::Whole) => found.whole += 1,
            Ok(Outcome::All) => found.all += 1,
            Ok(Outcome::Prefix) => found.prefix += 1,
            Err(error) => {
                let names = [KINDS[key.0].0, VICTIMS[key.1].0, SIGNALS[key.2].0];
                eprintln!("kill {kill}, {}: {error:#}", names.join(", "));
                found.wrong += 1;
            }
        }
        killed.clean();
    }
    println!("{}", table(&found));
    let wrong: usize = found.values().map(|found| found.wrong).sum();
    ensure!(wrong == 0, "{wrong} of {kills} recordings lost something without a word");
    Ok(())
}

fn table(found: &BTreeMap<(usize, usize, usize), Found>) -> Table {
    let names = ["recording", "victim", "signal"].map(Column::Text);
    let numbers = ["kills", "early", "whole", "all", "prefix", "wrong"].map(Column::Number);
    let mut table =
        Table::new("recordings of paths, killed at random moments", &[&names[..], &numbers].concat());
    for ((kind, victim, signal), found) in found {
        let Found { kills, early, whole, all, prefix, wrong } = *found;
        let names = [KINDS[*kind].0, VICTIMS[*victim].0, SIGNALS[*signal].0].map(str::to_string);
        let counts = [kills, early, whole, all, prefix, wrong].map(|count| count.to_string());
        table.row(names.into_iter().chain(counts));
    }
    table
}

/// Recordings that are killed.
struct Killed<'a> {
    programs: &'a Programs,
    program: PathBuf,
    rng: Rng,
    /// The events of an undisturbed execution, and how long that takes.
    events: String,
    duration: Duration,
}

impl<'a> Killed<'a> {
    fn new(programs: &'a Programs) -> Result<Self> {
        let program = programs.compile_paths("xtask/src/faults/paced.c")?;
        let (rng, events, duration) = (Rng::new(super::SEED), String::new(), Duration::ZERO);
        let mut killed = Self { programs, program, rng, events, duration };
        let begin = Instant::now();
        ensure!(killed.start(&[])?.wait()?.success(), "the recording fails undisturbed");
        killed.duration = begin.elapsed();
        killed.events = killed.events_of(&programs.archive());
        killed.clean();
        Ok(killed)
    }

    fn start(&self, options: &[&str]) -> Result<Child> {
        let mut command = Command::new(self.programs.command());
        command.arg("record").args(options).arg("-o").arg(self.programs.archive());
        command.arg(&self.program).arg(TIME);
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    fn once(&mut self, options: &[&str], victim: Victim, signal: Signal) -> Result<Outcome> {
        let recorder = self.start(options)?;
        std::thread::sleep(Duration::from_micros(self.rng.below(self.duration.as_micros() as usize) as u64));
        let own = Pid::from_raw(recorder.id() as i32).context("a process has a number")?;
        let program = child_of(recorder.id());
        let chosen = match victim {
            Victim::Program => program.into_iter().collect(),
            Victim::Recorder => vec![own],
            Victim::All => [own].into_iter().chain(program).collect::<Vec<_>>(),
        };
        for process in chosen {
            // It may have ended.
            let _ = kill_process(process, signal);
        }
        let output = recorder.wait_with_output()?;
        let outcome = self.outcome(victim, signal, &String::from_utf8_lossy(&output.stderr));
        // Without its recorder it goes on.
        program.into_iter().for_each(|program| _ = kill_process(program, Signal::KILL));
        outcome
    }

    fn outcome(&self, victim: Victim, signal: Signal, said: &str) -> Result<Outcome> {
        let archive = self.programs.archive();
        let is_recorder_gone = victim != Victim::Program && signal == Signal::KILL;
        if archive.is_file() {
            let events = self.prefix_of(&archive)?;
            let found = self.verified(&archive)?;
            ensure!(found["recorded"]["missing"] == 0, "{found}: {said}");
            return Ok(if events == self.events.len() { Outcome::Whole } else { Outcome::All });
        }
        let left = [".spool", "partial"].map(|ending| match ending {
            "partial" => archive.with_extension("partial.fold"),
            _ => PathBuf::from(format!("{}{ending}", archive.display())),
        });
        let Some(left) = left.iter().find(|left| left.is_file()) else {
            ensure!(is_recorder_gone || said.contains("nothing was recorded"), "nothing is left: {said}");
            return Ok(Outcome::Early);
        };
        self.prefix_of(left)?;
        let read = Command::new(self.programs.command()).arg("stats").arg(left).output()?;
        let notes = String::from_utf8_lossy(&read.stderr);
        if is_recorder_gone {
            ensure!(notes.contains("was stopped") || notes.contains("under way"), "it looks whole: {notes}");
            return Ok(Outcome::Prefix);
        }
        ensure!(!notes.contains("was stopped"), "the spool is not complete: {notes}");
        Ok(Outcome::All)
    }

    fn verified(&self, archive: &Path) -> Result<Value> {
        let output =
            Command::new(self.programs.command()).args(["verify", "--json"]).arg(archive).output()?;
        let found: Value = serde_json::from_slice(&output.stdout)?;
        ensure!(found["archives"][0]["ok"] == true, "{found}");
        Ok(found["archives"][0].clone())
    }

    /// The size of the events in a file, which are those of an undisturbed execution up to somewhere.
    fn prefix_of(&self, file: &Path) -> Result<usize> {
        let events = self.events_of(file);
        ensure!(self.events.starts_with(&events), "{} is no prefix", file.display());
        Ok(events.len())
    }

    fn events_of(&self, file: &Path) -> String {
        let output = Command::new(self.programs.command()).arg("cat").arg(file).output();
        String::from_utf8_lossy(&output.map(|output| output.stdout).unwrap_or_default()).into_owned()
    }

    fn clean(&self) {
        let archive = self.programs.archive();
        let folder = archive.parent().into_iter().flat_map(std::fs::read_dir).flatten().flatten();
        for entry in folder.filter(|entry| entry.file_name().to_string_lossy().contains("run.")) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The program that a recorder has started.
fn child_of(recorder: u32) -> Option<Pid> {
    let children = format!("/proc/{recorder}/task/{recorder}/children");
    let text = std::fs::read_to_string(children).ok()?;
    Pid::from_raw(text.split_whitespace().next()?.parse().ok()?)
}
