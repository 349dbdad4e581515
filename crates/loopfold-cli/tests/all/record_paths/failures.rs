//! What cannot be recorded, and says why: the program is not harmed by it.

use super::{Recording, emitters, loopfold, programs, record_command};
use std::process::Command;
use tempfile::TempDir;

/// Records with limits that a shell sets.
fn limited(limits: &str, options: &[&str], arguments: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let command = record_command(&folder, options, &programs().join("emitters"), arguments);
    under(limits, folder, &command)
}

fn under(limits: &str, folder: TempDir, command: &Command) -> Recording {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits}; exec \"$@\""), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    let output = shell.output().unwrap();
    Recording { folder, output }
}

#[test]
fn without_a_recorder_nothing_happens() {
    let output = emitters(&["wander", "4"]).current_dir(programs()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(4), 0));
    // A recorder that is gone is none.
    let output = emitters(&["wander", "4"]).env("LOOPFOLD_PATHS", "/nowhere/socket").output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(4), 0));
    let emptied = Command::new("env").args(["-i"]).arg(programs().join("emitters")).output().unwrap();
    assert_eq!(emptied.status.code(), Some(0));
}

#[test]
fn a_program_that_is_not_instrumented_gets_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = record_command(&folder, &[], "echo".as_ref(), &["hello"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b"hello\n"[..]), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("CC=loopfold-cc and CXX=loopfold-c++"), "{errors}");
    assert!(!folder.path().join("run.fold").exists());
    let none =
        Command::new(loopfold()).args(["record", "-o", "x.fold", "/no/such/program"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn too_little_shared_memory_is_said_and_harmless() {
    // In blocks of 512 bytes: the shared memory is a file, too.
    let recorded = limited("ulimit -f 100", &[], &["wander", "4"]);
    assert!(recorded.errors().contains("shared memory"), "{}", recorded.errors());
    assert_eq!(recorded.output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&recorded.output.stdout).ends_with("the end\n"));
    // Fewer lanes fit.
    let recorded = limited("ulimit -f 8000", &[], &["wander", "4"]);
    assert_eq!(recorded.output.status.code(), Some(4));
    assert_eq!(recorded.streams().len(), 2, "{}", recorded.errors());
}

#[test]
fn a_full_disk_is_said_and_harmless() {
    // The spool has no room; the program has its shared memory nevertheless.
    let folder = tempfile::tempdir().unwrap();
    let program = programs().join("emitters");
    let unlimited = "ulimit -S -f unlimited; exec \"$@\"";
    let arguments = ["-c", unlimited, "sh", program.to_str().unwrap(), "wander", "4"];
    let command = record_command(&folder, &["--spool"], "sh".as_ref(), &arguments);
    let recorded = under("trap '' XFSZ; ulimit -S -f 100", folder, &command);
    let errors = recorded.errors();
    assert_eq!(recorded.output.status.code(), Some(4), "{errors}");
    assert!(
        errors.contains("run.fold.spool: File too large") && errors.contains("the rest is not recorded"),
        "{errors}"
    );
    assert!(String::from_utf8_lossy(&recorded.output.stdout).ends_with("the end\n"));
    let whole = super::record(&["wander"]).streams();
    for (name, events) in recorded.streams() {
        assert!(events.len() < whole[&name].len() && whole[&name].starts_with(&events), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        let archive = folder.path().join("run.fold");
        std::os::unix::fs::symlink(full, &archive).unwrap();
        let mut command = record_command(&folder, &[], &programs().join("emitters"), &["wander", "0"]);
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("No space left"), "{errors}");
        assert!(String::from_utf8_lossy(&output.stdout).ends_with("the end\n"));
    }
}
