//! What goes wrong in one process ends all of them, with one clear message.

use crate::support::{PROGRAM, messages, mpirun, output_of, run};
use loopfold::folders::{Auto, Folding};
use loopfold::trace::{Event, Sink, Timing};
use std::path::Path;
use tempfile::tempdir;

/// A trace of several processes as an OTF2 archive.
fn archive(folder: &Path) {
    let mut folding = Folding::new(Auto).unwrap();
    for rank in 0..4 {
        let stream = folding.stream(&format!("rank {rank}")).unwrap();
        for step in 0..500 {
            let symbol = folding.intern(&Event::named("MPI_Barrier")).unwrap();
            let timing = Timing { start: Some(step * 10), duration: Some(5), ..Timing::UNKNOWN };
            folding.push(stream, symbol, timing).unwrap();
        }
    }
    loopfold_otf2::write(&folding.finish().unwrap(), folder).unwrap();
}

/// The lines that begin with `error:`.
fn errors(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("error:")).collect()
}

#[test]
fn another_version_on_a_node_is_an_error() {
    let folder = tempdir().unwrap();
    let otf2 = folder.path().join("otf2");
    archive(&otf2);
    let otf2 = otf2.to_str().unwrap();
    let mut command = mpirun();
    command.args(["-n", "2", PROGRAM, "stats", otf2, ":"]);
    command.args(["-n", "1", "-x", "LOOPFOLD_MPI_VERSION=0.0.1", PROGRAM, "stats", otf2]);
    let output = output_of(&mut command);
    assert_eq!(output.status.code(), Some(2));
    let said = messages(&output);
    assert_eq!(errors(&said).len(), 1, "{said}");
    assert!(said.contains("process 2 on ") && said.contains("is loopfold-mpi 0.0.1"), "{said}");
}

#[test]
fn an_input_that_a_node_does_not_see_is_an_error() {
    let folder = tempdir().unwrap();
    archive(&folder.path().join("run"));
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = mpirun();
    command.current_dir(folder.path()).args(["-n", "2", PROGRAM, "loops", "run", ":"]);
    command.args(["-n", "1", "-wdir", elsewhere.to_str().unwrap(), PROGRAM, "loops", "run"]);
    let output = output_of(&mut command);
    assert_eq!(output.status.code(), Some(2));
    let said = messages(&output);
    assert_eq!(errors(&said).len(), 1, "{said}");
    assert!(said.contains("cannot read it") && said.contains("all nodes must see the same files"), "{said}");
    // Another archive under the same name is no better.
    archive(&elsewhere.join("run"));
    std::fs::OpenOptions::new()
        .append(true)
        .open(elsewhere.join("run/traces.otf2"))
        .unwrap()
        .set_len(100)
        .unwrap();
    let said = messages(&output_of(&mut command));
    assert_eq!(errors(&said).len(), 1, "{said}");
    assert!(said.contains("sees another file"), "{said}");
}

/// What is wrong is found while all are reading.
#[test]
fn a_process_that_fails_ends_the_others() {
    let folder = tempdir().unwrap();
    let otf2 = folder.path().join("otf2");
    archive(&otf2);
    let events = otf2.join("traces/3.evt");
    let length = events.metadata().unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&events).unwrap().set_len(length / 2).unwrap();
    let output = run(4, &["stats", otf2.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = messages(&output);
    assert_eq!(errors(&said).len(), 1, "{said}");
    assert!(said.contains("its file was cut"), "{said}");
}

#[test]
fn wrong_arguments_are_reported_once() {
    for arguments in
        [&["stats", "--frob", "x"][..], &["hot", "x"], &["stats", "there is no such file"], &["stats", "-"]]
    {
        let output = run(3, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = messages(&output);
        assert_eq!(errors(&said).len(), 1, "{said}");
    }
    assert!(run(2, &["--help"]).status.success());
}
