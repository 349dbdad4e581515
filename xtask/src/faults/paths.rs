//! Kills of recordings of paths at random moments, folded online or spooled: of the program, of the
//! recorder, and of both together, by SIGKILL and SIGTERM.
//!
//! What lies there afterwards must be readable and a prefix of an undisturbed execution. The program
//! counts its calls in a file that outlives it. Where the recorder was not killed, the recording has
//! all of them up to the kill and says so. Where it was, the copy or the spool that it leaves has no
//! more, and says that it is not whole.

use super::Rng;
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Result, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the program takes, in milliseconds: a copy is made after two seconds.
const TIME: &str = "3500";
/// How long a recorder may take to end once its program was killed.
const LIMIT: Duration = Duration::from_secs(60);
/// How the calls look that the program counts.
const COUNTED: &str = "enter work";
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
        ensure!(calls_in(&killed.events) == killed.counted()?, "the program counts other calls");
        killed.clean();
        Ok(killed)
    }

    fn start(&self, options: &[&str]) -> Result<Child> {
        let mut command = Command::new(self.programs.command());
        command.arg("record").args(options).arg("-o").arg(self.programs.archive());
        command.arg(&self.program).arg(TIME).arg(self.beside("count"));
        let said = File::create(self.beside("said"))?;
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn()?)
    }

    /// A file beside the archive.
    fn beside(&self, ending: &str) -> PathBuf {
        self.programs.archive().with_extension(ending)
    }

    /// How many calls the program has counted: none before it has begun.
    fn counted(&self) -> Result<u64> {
        let bytes = std::fs::read(self.beside("count")).unwrap_or_default();
        let number = bytes.first_chunk().map_or(0, |&bytes| u64::from_ne_bytes(bytes));
        Ok(number)
    }

    fn once(&mut self, options: &[&str], victim: Victim, signal: Signal) -> Result<Outcome> {
        let mut recorder = self.start(options)?;
        std::thread::sleep(Duration::from_micros(self.rng.below(self.duration.as_micros() as usize) as u64));
        // It has its number until it is waited for; the program may be gone at any time.
        let own = Pid::from_child(&recorder);
        let program = program_of(recorder.id());
        let kill_program = |signal| program.iter().for_each(|program| _ = pidfd_send_signal(program, signal));
        if victim != Victim::Program {
            kill_process(own, signal)?;
        }
        if victim != Victim::Recorder {
            kill_program(signal);
        }
        let is_ended = ends_within(&mut recorder, LIMIT)?;
        if !is_ended {
            recorder.kill()?;
            recorder.wait()?;
        }
        // Without its recorder it goes on.
        kill_program(Signal::KILL);
        ensure!(is_ended, "the recorder does not end");
        self.outcome(victim, signal, &std::fs::read_to_string(self.beside("said"))?)
    }

    fn outcome(&self, victim: Victim, signal: Signal, said: &str) -> Result<Outcome> {
        let archive = self.programs.archive();
        let is_recorder_gone = victim != Victim::Program && signal == Signal::KILL;
        if archive.is_file() {
            let events = self.prefix_of(&archive)?;
            self.check_calls(&events, said)?;
            let found = self.verified(&archive)?;
            ensure!(found["recorded"]["missing"] == 0, "{found}: {said}");
            return Ok(if events.len() == self.events.len() { Outcome::Whole } else { Outcome::All });
        }
        let left = [PathBuf::from(format!("{}.spool", archive.display())), self.beside("partial.fold")];
        let Some(left) = left.iter().find(|left| left.is_file()) else {
            ensure!(is_recorder_gone || said.contains("nothing was recorded"), "nothing is left: {said}");
            return Ok(Outcome::Early);
        };
        let events = self.prefix_of(left)?;
        let read = Command::new(self.programs.command()).arg("stats").arg(left).output()?;
        let notes = String::from_utf8_lossy(&read.stderr);
        if is_recorder_gone {
            ensure!(
                calls_in(&events) <= self.counted()? + 1,
                "there are more calls than the program has made"
            );
            let is_said = notes.contains("was stopped") || notes.contains("was not recorded");
            ensure!(is_said, "it looks whole: {notes}");
            return Ok(Outcome::Prefix);
        }
        ensure!(!notes.contains("was stopped"), "the spool is not complete: {notes}");
        self.check_calls(&events, said)?;
        Ok(Outcome::All)
    }

    /// All calls that the program has counted are there, and one if it was killed before it counted that.
    fn check_calls(&self, events: &str, said: &str) -> Result<()> {
        let (calls, counted) = (calls_in(events), self.counted()?);
        ensure!([counted, counted + 1].contains(&calls), "{calls} calls of {counted}: {said}");
        Ok(())
    }

    fn verified(&self, archive: &Path) -> Result<Value> {
        let output =
            Command::new(self.programs.command()).args(["verify", "--json"]).arg(archive).output()?;
        let found: Value = serde_json::from_slice(&output.stdout)?;
        ensure!(found["archives"][0]["ok"] == true, "{found}");
        Ok(found["archives"][0].clone())
    }

    /// The events in a file, which are those of an undisturbed execution up to somewhere.
    fn prefix_of(&self, file: &Path) -> Result<String> {
        let events = self.events_of(file);
        ensure!(self.events.starts_with(&events), "{} is no prefix", file.display());
        Ok(events)
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

/// How many of the calls there are that the program counts.
fn calls_in(events: &str) -> u64 {
    events.lines().filter(|line| *line == COUNTED).count() as u64
}

/// Waits for a process, no longer than this. Returns whether it has ended.
fn ends_within(process: &mut Child, limit: Duration) -> Result<bool> {
    let begin = Instant::now();
    while process.try_wait()?.is_none() {
        if begin.elapsed() > limit {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

/// The program that a recorder has started, by a file: its number may be used again.
fn program_of(recorder: u32) -> Option<OwnedFd> {
    let child = || {
        let children = format!("/proc/{recorder}/task/{recorder}/children");
        let text = std::fs::read_to_string(children).ok()?;
        Pid::from_raw(text.split_whitespace().next()?.parse().ok()?)
    };
    let process = child()?;
    let program = pidfd_open(process, PidfdFlags::empty()).ok()?;
    // If it still is the child, the number was not used again before.
    (child() == Some(process)).then_some(program)
}
