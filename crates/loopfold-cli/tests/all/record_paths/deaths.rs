//! Programs that are killed, and recorders that are.

use super::{Recording, Streams, check_nesting, programs, record, record_command, record_with, work};
use loopfold::archive::{self, ReadConfig};
use loopfold_testing::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A recording of the two threads of `wander` that has begun: the recorder, and the process.
fn begin(folder: &TempDir, options: &[&str]) -> (Child, BufReader<std::process::ChildStdout>, Pid) {
    let mut command =
        record_command(folder, options, &programs().join("emitters"), &["wander", "6", "50000", "500"]);
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    command.env("TMPDIR", temporary);
    let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(recorder.stdout.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    let pid = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    (recorder, printed, pid)
}

fn is_prefix(part: &Streams, whole: &Streams) {
    for (name, events) in part {
        assert!(whole[name].starts_with(events), "{name}: {} events are not a prefix", events.len());
        check_nesting(name, events, true);
    }
}

#[test]
fn what_a_killed_program_leaves_is_a_prefix() {
    let whole = record(&["wander", "6", "50000"]).streams();
    let undisturbed = tempfile::tempdir().unwrap();
    let (mut recorder, mut printed, _) = begin(&undisturbed, &[]);
    let started = Instant::now();
    printed.read_to_string(&mut String::new()).unwrap();
    let time = started.elapsed();
    recorder.wait().unwrap();
    let mut rng = Rng::new(100);
    let mut cut = 0;
    for round in 0..100 {
        let options: &[&str] = [&[][..], &["--spool"], &[], &["--cycles"]][round % 4];
        let folder = tempfile::tempdir().unwrap();
        let (recorder, _printed, pid) = begin(&folder, options);
        std::thread::sleep(time * rng.below(100) as u32 / 100);
        let _ = kill_process(pid, Signal::KILL);
        let output = recorder.wait_with_output().unwrap();
        let is_killed = output.status.signal() == Some(9);
        assert!(is_killed || output.status.code() == Some(6), "{:?}", output.status);
        let recorded = Recording { folder, output };
        let streams = recorded.streams();
        is_prefix(&streams, &whole);
        if is_killed {
            cut += 1;
        } else {
            assert_eq!(streams, whole);
        }
    }
    assert!(cut > 10, "only {cut} of 100 were killed before their end");
}

#[test]
fn a_program_ends_well_without_its_recorder() {
    let mut rng = Rng::new(5);
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let options: &[&str] = if round % 2 == 0 { &[] } else { &["--spool"] };
        let (mut recorder, mut printed, pid) = begin(&folder, options);
        std::thread::sleep(Duration::from_micros(rng.below(20_000) as u64));
        let recorder_pid = Pid::from_child(&recorder);
        kill_process(recorder_pid, Signal::KILL).unwrap();
        // It is not waited for yet: a recorder that is no more answers no more, either.
        let mut rest = String::new();
        printed.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "the end\n", "{pid:?}");
        recorder.wait().unwrap();
        let spool = folder.path().join("run.fold.spool");
        if round % 2 == 1 && spool.exists() {
            let read = loopfold_record::read_spool(&spool).unwrap();
            is_prefix(&super::streams_of(&read.recorded.fold), &record(&["wander", "6", "50000"]).streams());
            // It may have been killed before the first chunk.
            if !read.recorded.blocks.is_empty() {
                check_command(&spool, &super::streams_of(&read.recorded.fold));
            }
        }
        let mut left = std::fs::read_dir(folder.path().join("temporary")).unwrap();
        assert!(left.next().is_none(), "something is left in the temporary directory");
    }
}

/// The command reads a spool like an archive.
fn check_command(spool: &Path, expected: &Streams) {
    let run = |arguments: &[&str]| {
        let output = Command::new(super::loopfold()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let merged = spool.with_extension("merged");
    let (place, merged) = (spool.to_str().unwrap(), merged.to_str().unwrap());
    let (printed, said) = run(&["cat", place]);
    assert_eq!(printed.lines().count(), expected.values().map(Vec::len).sum::<usize>());
    assert!(said.contains("was stopped"), "{said}");
    run(&["merge", place, "-o", merged]);
    let file = std::fs::File::open(merged).unwrap();
    let fold = archive::read(BufReader::new(file), &ReadConfig::new()).unwrap().0;
    assert_eq!(super::streams_of(&fold), *expected);
    for command in ["cat", "loops"] {
        assert_eq!(run(&[command, place]).0.lines().last(), run(&[command, merged]).0.lines().last());
    }
    assert_eq!(run(&["cat", "--blocks", place]).0, run(&["cat", "--blocks", merged]).0);
}

#[test]
fn a_recorder_that_does_not_read_is_given_up_and_what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["wander", "0", "2000000"];
    let mut command = record_command(&folder, &[], &programs().join("impatient"), &arguments);
    let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(recorder.stdout.take().unwrap());
    printed.read_line(&mut String::new()).unwrap();
    let pid = Pid::from_child(&recorder);
    kill_process(pid, Signal::STOP).unwrap();
    // The program goes on, although the recorder is there and reads nothing.
    let mut last = String::new();
    printed.read_line(&mut last).unwrap();
    assert_eq!(last, "the end\n");
    kill_process(pid, Signal::CONT).unwrap();
    let output = recorder.wait_with_output().unwrap();
    let recorded = Recording { folder, output };
    let errors = recorded.errors();
    assert_eq!(recorded.output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("main: at least") && errors.contains("are missing"), "{errors}");
    let whole = record(&["wander", "0", "2000000"]).streams();
    is_prefix(&recorded.streams(), &whole);
}

#[test]
fn a_recorder_that_is_told_to_end_writes_what_there_is() {
    for (signal, options) in [
        (Signal::TERM, &[][..]),
        (Signal::INT, &["--cycles"]),
        (Signal::HUP, &[]),
        (Signal::TERM, &["--spool"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = record_command(&folder, options, &programs().join("emitters"), &["stubborn"]);
        let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(recorder.stdout.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        let program = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        kill_process(Pid::from_child(&recorder), signal).unwrap();
        let asked = Instant::now();
        let status = recorder.wait().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
        // It did not wait for the program, which goes on.
        kill_process(program, Signal::KILL).unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()));
        let streams = match options {
            ["--spool"] => {
                let read = loopfold_record::read_spool(&folder.path().join("run.fold.spool")).unwrap();
                assert!(read.is_complete);
                super::streams_of(&read.recorded.fold)
            }
            _ => {
                let output = recorder.wait_with_output().unwrap();
                Recording { folder, output }.streams()
            }
        };
        let events = &streams["main"];
        let whole = vec![work(3); events.len() / 5 + 1].concat();
        assert!(events.len() > 100 && whole.starts_with(events), "{} events", events.len());
    }
}

#[test]
fn a_recorder_that_is_killed_leaves_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = record_command(&folder, &[], &programs().join("emitters"), &["stubborn"]);
    let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let program = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    let copy = folder.path().join("run.partial.fold");
    let begin = Instant::now();
    while !copy.exists() && begin.elapsed() < Duration::from_secs(50) {
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    kill_process(program, Signal::KILL).unwrap();
    let file = std::fs::File::open(&copy).unwrap();
    let fold = archive::read(BufReader::new(file), &ReadConfig::new()).unwrap().0;
    let events = &super::streams_of(&fold)["main"];
    let whole = vec![work(3); events.len() / 5 + 1].concat();
    assert!(events.len() > 100 && whole.starts_with(events), "{} events", events.len());
    let read = Command::new(super::loopfold()).arg("stats").arg(&copy).output().unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success() && said.contains("was not recorded"), "{said}");
}

#[test]
fn signals_and_statuses_are_those_of_the_program() {
    for signal in [6, 9, 11, 15] {
        let recorded = record(&["die", &signal.to_string()]);
        assert_eq!(recorded.output.status.signal(), Some(signal), "{}", recorded.errors());
        assert_eq!(recorded.streams()["main"], work(5));
    }
    assert_eq!(record_with(&["--spool"], &["wander", "3"]).output.status.code(), Some(3));
}

#[test]
fn a_signal_for_the_recorder_is_one_for_the_program() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let sleep = "kill -0 $$ && exec sleep 60";
        let mut command = record_command(&folder, &[], "sh".as_ref(), &["-c", sleep]);
        let mut recorder = command.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&recorder), signal).unwrap();
        assert_eq!(recorder.wait().unwrap().signal(), Some(signal.as_raw()));
    }
}
