//! What is lost is in the archive, too, and `verify` shows it: also if nobody read what `record` said.

use super::{Recording, loopfold, programs, record, record_command, record_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What `verify` says of the events of a recording.
fn verified(archive: &Path) -> Value {
    let output = Command::new(loopfold()).args(["verify", "--json"]).arg(archive).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["archives"][0]["ok"], true, "{found}");
    found["archives"][0]["recorded"].clone()
}

fn merged(input: &Path) -> Value {
    let output = input.with_extension("merged");
    let merge = Command::new(loopfold()).arg("merge").arg(input).arg("-o").arg(&output).output().unwrap();
    assert!(merge.status.success(), "{}", String::from_utf8_lossy(&merge.stderr));
    verified(&output)
}

#[test]
fn as_many_events_are_recorded_as_were_produced() {
    for options in [&[][..], &["--spool"], &["--cycles"]] {
        for arguments in [&["wander", "0"][..], &["threads", "5", "20"], &["processes"], &["raised"]] {
            let recorded = record_with(options, arguments);
            let found = verified(&recorded.archive());
            let events: usize = recorded.streams().values().map(Vec::len).sum();
            assert_eq!(found["events"], events, "{arguments:?} {found}");
            assert_eq!((&found["produced"], &found["missing"]), (&events.into(), &0.into()), "{found}");
            assert_eq!(found["unfinished_streams"], 0, "{arguments:?} {found}");
        }
    }
}

#[test]
fn the_program_counts_the_chunk_that_its_end_leaves_open() {
    for options in [&[][..], &["--spool"]] {
        let recorded = record_with(options, &["gap"]);
        let said = recorded.errors();
        assert_eq!(recorded.output.status.code(), Some(2), "{said}");
        assert!(said.contains("main: 6 of 10 events are missing"), "{said}");
        let found = verified(&recorded.archive());
        assert_eq!((&found["events"], &found["missing"]), (&4.into(), &6.into()), "{found}");
    }
}

#[test]
fn what_a_program_throws_away_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["wander", "0", "2000000"];
    let mut command = record_command(&folder, &[], &programs().join("impatient"), &arguments);
    let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(recorder.stdout.take().unwrap());
    printed.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&recorder), Signal::STOP).unwrap();
    printed.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&recorder), Signal::CONT).unwrap();
    let recorded = Recording { output: recorder.wait_with_output().unwrap(), folder };
    let found = verified(&recorded.archive());
    assert!(found["missing"].as_u64().unwrap() > 1_000_000, "{found}");
    assert_eq!(
        (&found["unfinished_streams"], &found["incomplete_streams"][0]["stream"]),
        (&1.into(), &"main".into())
    );
}

/// Starts a recording of a program that goes on for a minute; returns the recorder and the program.
fn stubborn(folder: &tempfile::TempDir, options: &[&str]) -> (std::process::Child, Pid) {
    let mut command = record_command(folder, options, &programs().join("emitters"), &["stubborn"]);
    let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (recorder, Pid::from_raw(line.trim().parse().unwrap()).unwrap())
}

fn wait_for(is_there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_there() && begin.elapsed() < Duration::from_secs(50) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_killed_recorder_leaves_is_unfinished_also_when_it_is_merged() {
    for (options, left) in [(&[][..], "run.partial.fold"), (&["--spool"], "run.fold.spool")] {
        let folder = tempfile::tempdir().unwrap();
        let (mut recorder, program) = stubborn(&folder, options);
        let left = folder.path().join(left);
        wait_for(|| left.metadata().is_ok_and(|about| about.len() > 100_000 || options.is_empty()));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        kill_process(program, Signal::KILL).unwrap();
        let found = merged(&left);
        assert!(found["events"].as_u64().unwrap() > 100, "{found}");
        assert_eq!(found["unfinished_streams"], 1, "{found}");
        if options.is_empty() {
            assert_eq!(verified(&left)["unfinished_streams"], 1);
            let output = Command::new(loopfold()).arg("verify").arg(&left).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(said.contains("the end of 1 stream was not recorded"), "{said}");
        }
    }
}

#[test]
fn a_program_that_goes_on_without_its_recorder_is_unfinished() {
    for (options, left) in [(&[][..], "run.fold"), (&["--spool"], "run.fold.spool")] {
        let folder = tempfile::tempdir().unwrap();
        let (mut recorder, program) = stubborn(&folder, options);
        std::thread::sleep(Duration::from_millis(200));
        kill_process(Pid::from_child(&recorder), Signal::TERM).unwrap();
        recorder.wait().unwrap();
        kill_process(program, Signal::KILL).unwrap();
        assert_eq!(merged(&folder.path().join(left))["unfinished_streams"], 1);
    }
}

#[test]
fn a_copy_that_an_earlier_recording_has_left_is_not_beside_the_next_archive() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("run.partial.fold");
    std::fs::write(&copy, "what is left").unwrap();
    let output = record_command(&folder, &[], &programs().join("emitters"), &["wander"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("run.partial.fold: is what an earlier recording has left"), "{said}");
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "what is left");
    assert!(!folder.path().join("run.fold").exists());
    assert!(record(&["wander"]).output.status.success());
}
