//! `fold` from a pipe that ends early: what came before is kept beside the archive.
#![cfg(unix)]

use crate::support::{Folder, Run, binary, run, run_with_input};
use std::io::Write;
use std::process::{Command, Stdio};

/// A long text whose lines differ, so that a prefix of it is only that.
fn long_text() -> String {
    (0..200_000).map(|line| format!("step {}\nsend {}\n", line % 7, line % 1000)).collect()
}

/// Folds a text from standard input and sends a signal while the pipe is still open.
fn fold_and_interrupt(archive: &str, text: &str, signal: &str, folder: &str) -> Run {
    let mut child = Command::new(binary())
        .args(["fold", "-", "-o", archive, "--folder", folder])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe holds far less than this, so most of it has been read.
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(text.as_bytes()).unwrap();
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    drop(pipe);
    output.into()
}

fn kept(folder: &Folder) -> String {
    run(&["cat", &folder.at("x.partial.fold")]).ok().text()
}

#[test]
fn a_signal_leaves_what_came_before() {
    let text = long_text();
    for (signal, name) in [("-INT", "auto"), ("-TERM", "sequitur-runs"), ("-HUP", "outermost")] {
        let folder = Folder::new();
        let archive = folder.file("x.fold", "was here before");
        let interrupted = fold_and_interrupt(&archive, &text, signal, name);
        interrupted.fails_with(&["interrupted; the ", " events before that are in ", "x.partial.fold"]);
        let kept = kept(&folder);
        assert!(kept.len() > 1000 && text.starts_with(&kept), "{} bytes kept", kept.len());
        run(&["verify", &folder.at("x.partial.fold")]).ok();
        assert_eq!(std::fs::read_to_string(&archive).unwrap(), "was here before");
    }
}

#[test]
fn an_end_in_the_middle_of_a_line_leaves_what_came_before() {
    let folder = Folder::new();
    let archive = folder.at("x.fold");
    let text = b"open\nread\nread\nclo";
    run_with_input(&["fold", "-", "-o", &archive], text)
        .fails_with(&["line 4: the input ends in the middle of a line", "the 3 events before that are in"]);
    assert_eq!(kept(&folder), "open\nread\nread\n");
    assert!(!std::fs::exists(&archive).unwrap());
    run_with_input(&["fold", "-", "-o", &archive, "--lenient"], text).ok();
    assert_eq!(run(&["cat", &archive]).ok().out, text);
}

#[test]
fn a_file_may_end_without_a_newline() {
    let folder = Folder::new();
    let (trace, archive) = (folder.file("t.txt", "a\nb\na\nb"), folder.at("x.fold"));
    run(&["fold", &trace, "-o", &archive]).ok();
    assert_eq!(run(&["cat", &archive]).ok().text(), "a\nb\na\nb");
}

#[test]
fn numbers_cut_short_leave_those_before() {
    let folder = Folder::new();
    let numbers = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
    run_with_input(&["fold", "-", "-o", &folder.at("x.fold"), "--format", "u32"], &numbers).fails_with(&[]);
    assert_eq!(kept(&folder), "1\n2\n");
}

#[test]
fn nothing_is_left_of_nothing() {
    let folder = Folder::new();
    let archive = folder.at("x.fold");
    run_with_input(&["fold", "-", "-o", &archive, "--format", "u64"], &[1, 2, 3]).fails_with(&[]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
