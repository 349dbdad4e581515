//! `patterns --follow`: reports while a pipe, files or an archive are still being written.
#![cfg(unix)]

use crate::support::{Folder, Run, binary, run};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The command while it follows.
struct Following {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Following {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["patterns", "--follow", "--every", "0"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn write(&mut self, text: &str) {
        let pipe = self.child.stdin.as_mut().unwrap();
        pipe.write_all(text.as_bytes()).unwrap();
        pipe.flush().unwrap();
    }

    /// Reads reports up to a line that begins like this.
    #[track_caller]
    fn reports(&mut self, beginning: &str) {
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            let count = self.out.read_line(&mut line).unwrap();
            assert!(count > 0, "there is no line {beginning}");
        }
    }

    /// Waits for the end, and returns what comes after the last report that was read.
    fn end(mut self) -> Run {
        drop(self.child.stdin.take());
        let mut out = Vec::new();
        self.out.read_to_end(&mut out).unwrap();
        let mut run: Run = self.child.wait_with_output().unwrap().into();
        run.out = out;
        run
    }
}

/// Rounds of a ring of four, as calls of a rank.
fn calls(rank: usize, rounds: usize) -> String {
    format!("MPI_Send dest={} tag=0 comm=0\nMPI_Recv src={} tag=0 comm=0\n", (rank + 1) % 4, (rank + 3) % 4)
        .repeat(rounds)
}

/// The same of all ranks, with the rank before each line.
fn labelled(rounds: usize) -> String {
    let round =
        |rank: usize| -> String { calls(rank, 1).lines().map(|line| format!("{rank}: {line}\n")).collect() };
    (0..4).map(round).collect::<String>().repeat(rounds)
}

#[test]
fn patterns_are_reported_while_a_pipe_is_open() {
    let mut following = Following::start(&["-"]);
    following.write(&labelled(10));
    following.reports("#1  ring of 4, upwards");
    following.write(&labelled(30));
    // It may have seen a part of them before.
    following.reports("#1  40 times, ");
    let end = following.end().ok().text();
    let folder = Folder::new();
    let whole = run(&["patterns", &folder.file("all.txt", labelled(40))]).ok().text();
    assert!(end.ends_with(&format!("the input has ended\n\n{whole}")), "{end}");
}

#[test]
fn every_report_is_a_line_of_json() {
    let mut following = Following::start(&["-", "--json"]);
    following.write(&labelled(10));
    following.reports("{\"method\"");
    let end = following.end().ok().text();
    let last: serde_json::Value = serde_json::from_str(end.lines().last().unwrap()).unwrap();
    assert_eq!((&last["patterns"][0]["count"], &last["events"]), (&10.into(), &80.into()));
}

#[test]
fn files_are_followed_until_they_grow_no_more() {
    let folder = Folder::new();
    let files: Vec<String> =
        (0..4).map(|rank| folder.file(&format!("rank-{rank}.txt"), calls(rank, 10))).collect();
    let mut arguments = vec!["--idle", "5"];
    arguments.extend(files.iter().map(String::as_str));
    let mut following = Following::start(&arguments);
    following.reports("#1  ring of 4, upwards");
    for (rank, file) in files.iter().enumerate() {
        // The last line is not complete yet.
        let text = calls(rank, 20) + "MPI_Barr";
        OpenOptions::new().append(true).open(file).unwrap().write_all(text.as_bytes()).unwrap();
    }
    following.reports("#1  30 times, ");
    for file in &files {
        OpenOptions::new().append(true).open(file).unwrap().write_all(b"ier comm=0\n").unwrap();
    }
    let end = following.end().ok().text();
    assert!(end.contains("in 244 events of 4 streams"), "{end}");
}

#[test]
fn an_archive_is_read_again_when_it_changes() {
    let folder = Folder::new();
    let archive = folder.at("x.fold");
    let fold = |rounds: usize| {
        let text = folder.file("all.txt", labelled(rounds));
        run(&["fold", &text, "-o", &archive]).ok();
    };
    fold(10);
    let mut following = Following::start(&["--idle", "5", &archive]);
    following.reports("#1  ring of 4, upwards");
    fold(25);
    following.reports("#1  25 times, 15 more");
    assert!(following.end().ok().text().contains("in 200 events of 4 streams"));
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    let folder = Folder::new();
    let text = folder.file("rank-0.txt", calls(0, 10));
    let follow = |arguments: &[&str]| run(&[&["patterns", "--follow", "--idle", "0"], arguments].concat());
    follow(&[&text, "--peers", "relative"]).fails_with(&["--peers", "--follow"]);
    follow(&["traces.otf2"]).fails_with(&["traces.otf2", "OTF2", "--follow"]);
    follow(&["nowhere.txt"]).fails_with(&["nowhere.txt"]);
    follow(&[folder.path().to_str().unwrap()]).fails_with(&["is a directory"]);
    follow(&[&text, "--folder", "outermost"]).fails_with(&["outermost", "whole"]);
    follow(&[&text, "--every=-1"]).fails_with(&["--every"]);
    run(&["patterns", &text, "--idle", "1"]).fails_with(&["--follow"]);
    let damaged = folder.file("mixed.txt", "0: MPI_Init\nMPI_Init\n");
    follow(&[&damaged]).fails_with(&["mixed.txt", "line 2"]);
}
