//! Recordings to places that others use, too: other recordings, other users, devices.

use super::{Mpi, Recording, events, program, record_command};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const RING: &str = "ring.c";

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn ring(archive: &Path, rounds: u32) -> Command {
    let mut command = record_command(Mpi::OpenMpi, 2, &[], archive, &[]);
    command.arg(program(Mpi::OpenMpi, RING, &[])).arg(rounds.to_string());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Issue: two recordings to one output truncated each other's parts.
#[test]
fn of_two_recordings_at_once_one_wins_and_the_other_says_why() {
    program(Mpi::OpenMpi, RING, &[]);
    for pair in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("run.fold");
        let rounds = [1000, 3000];
        let start = |&rounds: &u32| {
            ring(&archive, rounds).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let outputs = rounds.each_ref().map(start).map(|child| child.wait_with_output().unwrap());
        let refused = outputs.each_ref().map(|output| !said(output).is_empty());
        let lengths: Vec<u32> = events(&archive).values().map(|events| events.len() as u32).collect();
        // One may have ended before the other began. Besides a call a round there are four.
        let is_of = |at: usize| lengths == [rounds[at] + 4; 2] && !refused[at];
        assert!(is_of(0) || is_of(1), "{lengths:?} {refused:?}");
        for (output, _) in outputs.iter().zip(refused).filter(|(_, refused)| *refused) {
            let said = said(output);
            let why = ["is being written by", "is what an earlier recording has left"];
            assert!(why.iter().any(|why| said.contains(why)), "pair {pair}: {said}");
            assert!(!said.contains("cannot be merged"), "{said}");
        }
        assert_eq!(names(folder.path()), ["run.fold"]);
    }
}

#[test]
fn a_recording_onto_an_earlier_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("run.fold");
    std::fs::create_dir(folder.path().join("run.fold.parts")).unwrap();
    let output = ring(&archive, 1).output().unwrap();
    assert!(!output.status.success());
    let said = said(&output);
    assert!(said.contains("run.fold.parts: is what an earlier recording has left"), "{said}");
    assert!(said.contains("loopfold merge"), "{said}");
}

/// Issue: in a shared directory a planted link made a recording overwrite somebody else's file.
#[test]
fn planted_links_are_not_followed() {
    for (planted, victim) in
        [("run.fold.parts", "folder"), ("run.fold.parts", "file"), ("run.fold.spool", "file")]
    {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("folder/rank-0.fold"), "precious").unwrap();
        std::fs::write(at("file"), "precious").unwrap();
        symlink(at(victim), at(planted)).unwrap();
        let output = ring(&at("run.fold"), 1).output().unwrap();
        assert!(said(&output).contains("is what an earlier recording has left"), "{}", said(&output));
        for file in ["folder/rank-0.fold", "file"] {
            assert_eq!(std::fs::read_to_string(at(file)).unwrap(), "precious");
        }
        assert_eq!(names(&at("folder")), ["rank-0.fold"]);
    }
}

/// Issue: `record --mpi -o /dev/null`, to a pipe or a link, replaced the node by a file.
#[test]
fn devices_pipes_and_links_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ended_well = |archive: &Path| {
        let output = ring(archive, 100).env("TMPDIR", folder.path()).output().unwrap();
        assert!(output.status.success() && said(&output).is_empty(), "{}", said(&output));
    };
    symlink("/dev/null", at("null")).unwrap();
    for null in [Path::new("/dev/null"), &at("null")] {
        ended_well(null);
        assert!(!std::fs::metadata(null).unwrap().is_file());
    }
    symlink("later.fold", at("link.fold")).unwrap();
    ended_well(&at("link.fold"));
    assert!(at("link.fold").is_symlink());
    assert_eq!(events(&at("later.fold")).len(), 2);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let reader = std::thread::spawn({
        let (pipe, copy) = (at("pipe"), at("copy.fold"));
        move || std::fs::write(copy, std::fs::read(pipe).unwrap()).unwrap()
    });
    ended_well(&at("pipe"));
    reader.join().unwrap();
    assert_eq!(events(&at("copy.fold")), events(&at("later.fold")));
    let left = names(folder.path());
    let left: Vec<&String> =
        left.iter().filter(|name| name.contains("loopfold") || name.ends_with(".parts")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Issue: the folder with what was recorded was named where there is none.
#[test]
fn a_folder_that_is_not_there_is_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let away = "export LOOPFOLD_RECORD=/nonexistent/run.fold; exec \"$0\" \"$@\"";
    let mut command = record_command(Mpi::OpenMpi, 2, &[], &folder.path().join("run.fold"), &[]);
    command.args(["sh", "-c", away]).arg(program(Mpi::OpenMpi, RING, &[])).arg("1");
    let recording = Recording { output: command.output().unwrap(), folder };
    let said = recording.messages();
    assert!(said.contains("the ranks cannot be merged"), "{said}");
    assert!(!said.contains("is in the folder"), "{said}");
}

/// Issue: without HOME and XDG_CACHE_HOME the library was loaded from a directory in the common
/// temporary folder whose owner was not checked.
#[test]
fn a_planted_library_is_not_loaded() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let set = |path: &str, mode| {
        std::fs::set_permissions(at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let print_env = |cache: &Path| {
        let mut command = Command::new(super::loopfold());
        command.args(["record", "--mpi", "--print-env", "-o"]).arg(at("run.fold"));
        command.env("XDG_CACHE_HOME", cache).output().unwrap()
    };
    std::fs::create_dir_all(at("cache/loopfold/mpi")).unwrap();
    for (open, mode) in [("cache", 0o777), ("cache/loopfold", 0o777), ("cache/loopfold/mpi", 0o775)] {
        ["cache", "cache/loopfold", "cache/loopfold/mpi"].iter().for_each(|path| set(path, 0o700));
        set(open, mode);
        let output = print_env(&at("cache"));
        assert_eq!(output.status.code(), Some(2), "{open}");
        assert!(said(&output).contains("others can write there"), "{}", said(&output));
        assert!(output.stdout.is_empty());
    }
    // Somebody else's folder where the user has no other: only root can set this up.
    set("", 0o755);
    std::fs::create_dir(at("tmp")).unwrap();
    set("tmp", 0o1777);
    std::fs::create_dir_all(at("tmp/loopfold-0/loopfold/mpi")).unwrap();
    if std::os::unix::fs::chown(at("tmp/loopfold-0"), Some(65534), None).is_err() {
        eprintln!("skipped: only root can make files of another user");
        return;
    }
    let mut command = Command::new(super::loopfold());
    command.args(["record", "--mpi", "--print-env", "-o"]).arg(at("run.fold"));
    command.env_remove("XDG_CACHE_HOME").env("HOME", "/nonexistent").env("TMPDIR", at("tmp"));
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!printed.contains("/tmp/loopfold-0/"), "{printed}");
}
