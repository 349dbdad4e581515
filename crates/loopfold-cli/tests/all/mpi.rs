//! MPI traces: text with a file for each rank, and OTF2 archives by their anchor files and directories.
//! That archives are read rightly is tested where they are read, in `loopfold-otf2`.

use crate::support::{Folder, Run, binary, run, run_with_input};
use std::path::Path;
use std::process::Command;

const RANK: &str = "MPI_Init\nMPI_Send dest=1 tag=2 bytes=8 comm=0\nMPI_Send dest=1 tag=3 bytes=9 comm=0\n";

#[test]
fn files_are_ranks() {
    let folder = Folder::new();
    let zero = folder.file("run.rank-0.txt", RANK);
    let seven = folder.file("run.rank-7.txt", RANK);
    let json = run(&["loops", "--json", &seven, &zero]).ok().json();
    assert_eq!(json["classes"][0]["streams"], serde_json::json!(["rank 7", "rank 0"]));
    assert_eq!(json["classes"][0]["events"], 3);
    let unnumbered = folder.file("other.txt", RANK);
    let json = run(&["loops", "--json", &seven, &unnumbered]).ok().json();
    assert_eq!(json["classes"][0]["streams"], serde_json::json!(["rank 0", "rank 1"]));
    let lines = run(&["cat", "--format", "lines", &seven, &zero]).ok().text();
    assert!(lines.starts_with("run.rank-7.txt\tMPI_Init\n"), "{lines}");
}

#[test]
fn fields_count_unless_they_are_ignored() {
    let folder = Folder::new();
    let trace = folder.file("rank-3.txt", RANK);
    assert_eq!(run(&["cat", &trace]).ok().text(), RANK);
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    assert_eq!(run(&["cat", &archive]).ok().text(), RANK);
    for input in [&trace, &archive] {
        let sends = run(&["cat", input, "--ignore", "bytes,tag"]).ok().text();
        assert_eq!(sends, "MPI_Init\nMPI_Send dest=1 comm=0\nMPI_Send dest=1 comm=0\n");
        assert_eq!(run(&["find", input, "MPI_Send", "--count"]).ok().text(), "2\n");
    }
    run(&["cat", &trace, "--key", "name,colour"]).fails_with(&["colour", "dest"]);
}

#[test]
fn any_text_of_calls_comes_back() {
    let texts: [&[u8]; 4] = [
        b"MPI_Send dest=1\nMPI_Recv  src=1\nMPI_X a=b a=c\nMPI_Y =\n",
        b"MPI_Send dest=007\r\nMPI_Send\r\nMPI_Send dest=-0\r\n",
        b"MPI_Send dest=1\nMPI_Recv src=\x1b[2J\nMPI_Recv src=\xff\nMPI_Recv",
        b"MPI_Send dest=9223372036854775808 x=99999999999999999999\nMPI_Init \n MPI_Init\n\nMPI_A\nMPI_B\n",
    ];
    for text in texts {
        let cat = run_with_input(&["cat", "-", "--format", "mpi-text"], text).ok();
        assert_eq!(cat.out, text, "{}", cat.text());
    }
}

#[test]
fn without_the_library_the_error_says_what_to_do() {
    let folder = Folder::new();
    let anchor = folder.file("traces.otf2", b"\x03BOTF2\0");
    let output = Command::new(binary())
        .args(["loops", &anchor])
        .env("LOOPFOLD_OTF2_LIB", "/nonexistent/libotf2.so")
        .output()
        .unwrap();
    Run::from(output).fails_with(&["traces.otf2", "LOOPFOLD_OTF2_LIB", "/nonexistent/libotf2.so"]);
}

#[test]
fn an_archive_is_no_pipe_and_no_folder_without_an_anchor() {
    run_with_input(&["loops", "-"], b"\x03BOTF2\0").fails_with(&["pipe", "anchor"]);
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap();
    run(&["loops", "--format", "otf2", path]).fails_with(&[path, "is a directory", "OTF2"]);
}

/// An archive that the OTF2 library wrote. Returns `None` without the library.
pub(super) fn otf2_archive(folder: &Folder, kind: &str) -> Option<String> {
    let archive = folder.at(kind);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loopfold-otf2/tests/archive.py");
    let written = Command::new("/usr/bin/python3").arg(script).args([kind, &archive]).output();
    if !written.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "python3-otf2 is missing");
        eprintln!("skipped: install python3-otf2 to run this test");
        return None;
    }
    Some(archive)
}

#[test]
fn an_archive_is_known_by_its_anchor_or_its_folder() {
    let folder = Folder::new();
    let Some(archive) = otf2_archive(&folder, "write") else { return };
    let anchor = format!("{archive}/traces.otf2");
    let whole = run(&["cat", "--times", &anchor]).ok();
    assert!(whole.text().contains("rank 2\t"), "{}", whole.text());
    for input in [&archive, &format!("{archive}/traces")] {
        assert_eq!(run(&["cat", "--times", input]).ok().out, whole.out);
    }
    let stats = run(&["stats", "--json", &anchor, "--mpi-only", "--regions", "MPI_*send"]).ok().json();
    // On each of three ranks 10.
    assert_eq!(stats["events"], 30);
    let kept = folder.at("t.fold");
    run(&["fold", &archive, "-o", &kept]).ok();
    assert_eq!(run(&["cat", "--times", &kept]).ok().out, whole.out);
    // On one core as on all of them.
    let one = folder.at("one.fold");
    let on_one = Command::new("taskset").args(["-c", "0", binary(), "fold", &archive, "-o", &one]).output();
    if on_one.is_ok_and(|output| output.status.success()) {
        assert!(std::fs::read(&one).unwrap() == std::fs::read(&kept).unwrap());
    }
    // What is called an archive and is none is not read as something else.
    let text = folder.file("text.otf2", "a\nb\n");
    run(&["loops", &text]).fails_with(&["not the anchor file of an OTF2 archive"]);
    std::fs::remove_file(format!("{archive}/traces/2.evt")).unwrap();
    run(&["loops", &archive]).fails_with(&["rank 1", "2.evt", "--lenient"]);
    let rest = run(&["loops", &archive, "--lenient"]).ok();
    assert!(rest.err.contains("rank 1") && rest.err.contains("2.evt"), "{}", rest.err);
}

#[test]
fn bad_archives_are_an_error_or_the_rest_is_read() {
    let folder = Folder::new();
    let Some(archive) = otf2_archive(&folder, "write") else { return };
    let stats = |arguments: &[&str]| run(&[&["stats", "--json", "--mpi-only"], arguments].concat());
    let whole = stats(&[&archive]).ok().json()["events"].as_u64().unwrap();
    // A rank that died in a call: its events are emitted, and the open call is noted.
    let odd = run(&["stats", &archive, "--top", "0"]).ok().text();
    assert!(odd.contains("open-calls: 2") && odd.contains("unfinished-requests: 1"), "{odd}");
    // A location that was cut.
    let events = format!("{archive}/traces/2.evt");
    let bytes = std::fs::read(&events).unwrap();
    std::fs::write(&events, &bytes[..bytes.len() / 2]).unwrap();
    stats(&[&archive]).fails_with(&[&archive, "rank 1", "156 records are there", "--lenient"]);
    let rest = stats(&[&archive, "--lenient"]).ok();
    assert!(rest.err.contains("damaged: rank 1"), "{}", rest.err);
    let rest = rest.json()["events"].as_u64().unwrap();
    assert!(rest < whole && rest > whole / 2, "{rest} of {whole}");
    // An archive whose definitions are cut is lost.
    let definitions = format!("{archive}/traces.def");
    let bytes = std::fs::read(&definitions).unwrap();
    std::fs::write(&definitions, &bytes[..40]).unwrap();
    stats(&[&archive]).fails_with(&[&archive, "definitions"]);
    // A communicator with a rank that is not there.
    let Some(absent) = otf2_archive(&folder, "absent") else { return };
    stats(&[&absent]).fails_with(&["communicator 1", "names rank 7, but there are 3 ranks", "--lenient"]);
    let rest = stats(&[&absent, "--lenient"]).ok();
    assert!(rest.err.contains("rank 7"), "{}", rest.err);
    assert_eq!(rest.json()["events"], 1);
    // No MPI at all.
    let Some(users) = otf2_archive(&folder, "users") else { return };
    stats(&[&users]).fails_with(&["no MPI calls", "--mpi-only"]);
    let rest = stats(&[&users, "--lenient"]).ok();
    assert!(rest.err.contains("no MPI calls"), "{}", rest.err);
    assert_eq!(run(&["stats", "--json", &users]).ok().json()["events"], 4);
}

#[test]
fn peers_are_rewritten_in_the_grid_of_an_archive() {
    let folder = Folder::new();
    let Some(archive) = otf2_archive(&folder, "write") else { return };
    let sends = |peers: &str| {
        let cat = run(&["cat", &archive, "--mpi-only", "--ignore", "bytes", "--peers", peers]).ok();
        let text = cat.text();
        let lines = text.lines().filter(|line| line.contains("MPI_Isend") && line.contains("comm=0"));
        (lines.map(String::from).collect::<std::collections::BTreeSet<_>>(), cat.err)
    };
    // It says that its 3 ranks are a ring; the last one says 1 for what others call 0.
    let (cartesian, notes) = sends("cartesian");
    let expected = |rank| format!("rank {rank}\tMPI_Isend dest=(+1,0) tag=5 comm=0");
    assert_eq!(cartesian, (0..2).map(expected).collect(), "{notes}");
    let (relative, _) = sends("relative");
    assert!(relative.contains("rank 0\tMPI_Isend dest=+1 tag=5 comm=0"), "{relative:?}");
}
