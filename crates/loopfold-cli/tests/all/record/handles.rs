//! Requests and communicators that another thread uses, that are freed, cancelled or never used,
//! and numbers of communicators that are used again.

use super::{Mpi, Recording, ask, events, program, record, record_command};
use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

fn recorded(mpi: Mpi, processes: usize, order: &str) -> (Recording, HashMap<String, Vec<String>>) {
    let recording = record(mpi, processes, &[], &program(mpi, "handles.c", &[]), &[order]).ended_well();
    let events = events(&recording.archive());
    (recording, events)
}

/// How often each of these events occurs; no other event has one of these names.
fn check(events: &[String], wanted: &[(&str, usize)]) {
    let name = |event: &str| event.split(' ').next().unwrap().to_string();
    let names: Vec<String> = wanted.iter().map(|(event, _)| name(event)).collect();
    let mut found: HashMap<&str, usize> = HashMap::new();
    for event in events.iter().filter(|event| names.contains(&name(event))) {
        *found.entry(event).or_default() += 1;
    }
    assert_eq!(found, wanted.iter().copied().collect(), "{events:#?}");
}

#[test]
fn threads_pass_handles_on() {
    for mpi in BOTH {
        let (_, events) = recorded(mpi, 3, "pass");
        let sent = ("MPI_Send dest=2 tag=6 bytes=4 comm=2", 30);
        let wait = ("MPI_Wait n=0 done=none", 30);
        check(&events["rank 1"], &[sent, wait, ("MPI_Comm_free comm=2", 30)]);
        let made = ("MPI_Comm_dup comm=0 newcomm=2", 30);
        let posted = ("MPI_Irecv src=0 tag=5 bytes=4 comm=2 any=src", 30);
        check(&events["rank 1 thread 1"], &[made, posted]);
        check(&events["rank 0"], &[("MPI_Send dest=1 tag=5 bytes=4 comm=2", 30)]);
        check(&events["rank 2"], &[("MPI_Recv src=1 tag=6 bytes=4 comm=2", 30)]);
    }
}

#[test]
fn freed_requests_are_loops() {
    for mpi in BOTH {
        let (recording, events) = recorded(mpi, 2, "free");
        check(&events["rank 1"], &[("MPI_Request_free n=1", 30), ("MPI_Wait n=1", 30)]);
        let loops = recording.ask("loops", &["--exact", "--full"]);
        assert!(loops.to_string().contains("\"times\":30"), "{loops}");
        assert_eq!(recording.ask("waits", &[])["messages"].as_u64(), Some(60));
    }
}

#[test]
fn cancelled_receives_are_marked() {
    for mpi in BOTH {
        let (_, events) = recorded(mpi, 1, "cancel");
        let events = &events["rank 0"];
        check(events, &[("MPI_Wait n=1 cancelled=1", 1), ("MPI_Waitall n=1", 1), ("MPI_Cancel", 2)]);
        let receives = ["MPI_Irecv src=0 tag=7 bytes=4 comm=0", "MPI_Irecv bytes=4 comm=0 cancelled=1"];
        check(events, &receives.map(|receive| (receive, 1)));
    }
}

#[test]
fn a_number_that_is_used_again_has_the_new_members() {
    let (recording, events) = recorded(Mpi::OpenMpi, 3, "again");
    let sends = ["MPI_Send dest=1 tag=1 bytes=4 comm=2", "MPI_Send dest=1 tag=2 bytes=4 comm=2.2"];
    check(&events["rank 0"], &sends.map(|send| (send, 1)));
    let stats = recording.ask("stats", &[]).to_string();
    assert!(stats.contains("comm 2.2"), "{stats}");
    assert!(stats.contains("0,2"), "{stats}");
}

#[test]
fn an_open_receive_does_not_keep_events_out_of_segments() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, file) = (folder.path().join("run.fold"), folder.path().join("enough"));
    let mut command = record_command(Mpi::OpenMpi, 1, &[], &archive, &["--segment-seconds", "0.1"]);
    command.arg(program(Mpi::OpenMpi, "handles.c", &[])).arg(&file);
    let mut mpirun = command.stdout(Stdio::null()).spawn().unwrap();
    let parts = folder.path().join("run.fold.parts");
    let started = Instant::now();
    let is_there = || {
        let part = parts.join("rank-0.fold");
        let has_segment = part.metadata().is_ok_and(|about| about.len() > 0);
        has_segment && ask(&parts, "stats", &[]).to_string().contains("MPI_Barrier")
    };
    while !is_there() && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let was_there = is_there();
    std::fs::write(&file, "").unwrap();
    assert!(mpirun.wait().unwrap().success());
    assert!(was_there, "no events in the parts");
    let events = &events(&archive)["rank 0"];
    let open = ("MPI_Irecv src=any tag=99 bytes=4 comm=0", 1);
    check(events, &[open, ("MPI_Request_free n=1", 1), ("MPI_Cancel", 1)]);
}

#[test]
fn drift_is_that_of_the_clock_not_of_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("run.fold");
    let mut command = record_command(Mpi::OpenMpi, 2, &[], &archive, &[]);
    // The clock of rank 1 is twice as fast.
    command.env("LOOPFOLD_RECORD_CLOCK_SKEW", "0,1000000000");
    let output = command.arg(program(Mpi::OpenMpi, "handles.c", &[])).arg("talk").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer = ask(&archive, "waits", &[]);
    assert_eq!(answer["messages"].as_u64(), Some(5));
    let violations = answer["violations"].as_array().unwrap();
    let worst = violations.iter().filter_map(|one| one["worst_ns"].as_u64()).max().unwrap_or(0);
    assert!(worst < 100_000_000, "a message is received {worst} ns before it is sent");
}

#[test]
fn call_sites_of_a_path_with_blanks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my codes");
    std::fs::create_dir(&path).unwrap();
    let path = path.join("ring app");
    std::fs::copy(program(Mpi::OpenMpi, "ring.c", &[]), &path).unwrap();
    let recording = record(Mpi::OpenMpi, 2, &["--callsites"], &path, &["3"]).ended_well();
    let events = events(&recording.archive());
    let site = |event: &String| event.contains("ring.c:");
    assert!(events["rank 0"].iter().any(site), "{events:#?}");
}

#[test]
fn an_answer_that_is_long_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let mut long = folder.path().to_path_buf();
    (0..4).for_each(|_| long.push("x".repeat(200)));
    std::fs::create_dir_all(&long).unwrap();
    let archive = long.join("run.fold");
    // The folder of the parts cannot be made, which the launcher does not see.
    std::fs::write(long.join("run.fold.parts"), "").unwrap();
    let elsewhere = format!("export LOOPFOLD_RECORD='{}'; exec \"$0\" \"$@\"", archive.display());
    let mut command = record_command(Mpi::OpenMpi, 1, &[], &folder.path().join("run.fold"), &[]);
    let command = command.args(["sh", "-c", &elsewhere]).arg(program(Mpi::OpenMpi, "ring.c", &[]));
    let output = command.arg("1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("rank 0 is not recorded: /"), "{said}");
    assert!(!said.contains("has ended"), "{said}");
}
