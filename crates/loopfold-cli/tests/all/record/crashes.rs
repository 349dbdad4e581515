//! Programs that end before `MPI_Finalize`, at a known place; recordings that are still being written,
//! and that cannot be written.

use super::fragile::{Execution, check_archive, parts, wait_for_helpers};
use super::{Mpi, ask, events, program, record, record_command};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn aborted_faulted_and_left_without_finalize() {
    for (how, mpi) in [
        ("abort", Mpi::OpenMpi),
        ("fault", Mpi::OpenMpi),
        ("exit", Mpi::OpenMpi),
        ("abort", Mpi::Mpich),
        ("fault", Mpi::Mpich),
    ] {
        let recording = record(mpi, 3, &[], &program(mpi, "fragile.c", &[]), &[how, "500"]);
        assert!(how == "exit" || !recording.output.status.success());
        wait_for_helpers(&recording.archive());
        let parts = parts(recording.folder.path());
        // Every event up to the end is there: the process that folds survives.
        let last = &events(&parts)["rank 1"];
        let exchanges = last.iter().filter(|event| event.starts_with("MPI_Sendrecv")).count();
        assert_eq!(exchanges, 500, "{how} {}", recording.messages());
        assert_eq!(last.iter().any(|event| event.starts_with("MPI_Abort")), how == "abort");
        check_archive(mpi, 3, &parts);
    }
}

#[test]
fn a_recording_can_be_asked_while_it_is_written() {
    let mut execution = Execution::start(Mpi::OpenMpi, 3, Duration::ZERO);
    let parts = execution.parts();
    let started = Instant::now();
    let mut counts: Vec<u64> = Vec::new();
    while started.elapsed() < Duration::from_secs(30) && counts.len() < 3 {
        std::thread::sleep(Duration::from_millis(150));
        if parts.is_dir() {
            let count = ask(&parts, "stats", &[])["events"].as_u64().unwrap();
            if count > counts.last().copied().unwrap_or(0) {
                counts.push(count);
            }
        }
    }
    let loops = ask(&parts, "loops", &[]);
    assert!(loops["streams"].as_u64().unwrap() >= 1, "{loops}");
    ask(&parts, "patterns", &[]);
    ask(&parts, "waits", &[]);
    execution.terminate();
    execution.end();
    assert_eq!(counts.len(), 3, "{counts:?}");
}

/// Runs a command with a file system of 16 kB, and copies what is on it at the end.
const ON_A_SMALL_DISK: &str = r#"
    small=$1; copy=$2; shift 2
    mount -t tmpfs -o size=16k tmpfs "$small" || exit 1
    echo mounted
    "$@"; status=$?
    while grep -qsa "LOOPFOLD_RECORD=$small/" /proc/[0-9]*/environ; do sleep 0.05; done
    cp -r "$small/." "$copy"; exit $status
"#;

#[test]
fn a_disk_that_is_full() {
    let (small, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = small.path().join("run.fold");
    let recorder = record_command(Mpi::OpenMpi, 2, &[], &archive, &["--segment-seconds", "0.05"]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh"]);
    command.args([small.path(), copy.path()]).arg(recorder.get_program()).args(recorder.get_args());
    command.envs(recorder.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.arg(program(Mpi::OpenMpi, "fragile.c", &[])).args(["", "10000"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.stdout.starts_with(b"mounted") {
        // `deaths` has files that cannot grow, which needs no rights.
        eprintln!("skipped: no file system can be mounted here: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    for rank in 0..2 {
        let lost = said.lines().find(|line| line.contains(&format!("rank {rank}: ")));
        let lost = lost.unwrap_or_else(|| panic!("{said}"));
        assert!(
            lost.contains(" of 11,005 events were not recorded: ") && lost.contains("No space left"),
            "{said}"
        );
    }
    check_archive(Mpi::OpenMpi, 2, &parts(copy.path()));
}
