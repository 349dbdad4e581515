//! The files that commands write: none of them is an input, or a device that is replaced; signals and
//! other executions leave the old file or the new one, and nothing else.
#![cfg(unix)]

use crate::support::{Folder, Run, binary, run, run_with_input};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The commands that have `--output`, by their own help, and the words that each needs.
fn commands_that_write() -> Vec<(String, String)> {
    let help = run(&["--help"]).ok().text();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = lines.map_while(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_string));
    let commands: Vec<String> = commands.filter(|name| !name.is_empty()).collect();
    assert!(commands.len() > 20, "{commands:?}");
    let help_of = |name: String| (name.clone(), run(&["help", &name]).text());
    commands.into_iter().map(help_of).filter(|(_, help)| help.contains("--output <FILE>")).collect()
}

/// Issue: `context u.fold a --table csv -o u.fold` overwrote the archive.
#[test]
fn an_output_is_never_an_input_whatever_the_command() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb\na\nb\n");
    let archive = folder.at("u.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    symlink(&archive, folder.at("link.fold")).unwrap();
    std::fs::hard_link(&archive, folder.at("hard.fold")).unwrap();
    let before = std::fs::read(&archive).unwrap();
    let mut written: Vec<String> = Vec::new();
    for (command, help) in commands_that_write().into_iter().filter(|(command, _)| command != "record") {
        for output in ["u.fold", "link.fold", "hard.fold", "t.txt"] {
            let output = folder.at(output);
            let mut arguments = vec![command.as_str(), &trace, &archive, "-o", &output];
            match command.as_str() {
                "find" | "context" => arguments.insert(3, "a"),
                "similar" => arguments.insert(3, "a b"),
                "export" => arguments.extend(["--to", "grammar"]),
                _ => {}
            }
            arguments.extend(help.contains("--table").then_some(["--table", "csv"]).into_iter().flatten());
            if ["fold", "merge"].contains(&command.as_str()) && !output.ends_with("t.txt") {
                continue;
            }
            run(&arguments).fails_with(&["is one of the inputs"]);
        }
        written.push(command);
    }
    for command in ["context", "cat", "export", "find", "fold", "hot", "merge", "skeleton", "waits"] {
        assert!(written.iter().any(|one| one == command), "{command} is not in {written:?}");
    }
    assert_eq!(std::fs::read(&archive).unwrap(), before);
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "a\nb\na\nb\n");
    // An archive may take the place of an archive.
    run(&["fold", &archive, "-o", &archive]).ok();
    run(&["merge", &archive, &archive, "-o", &archive]).ok();
    assert_eq!(run(&["stats", &archive, "--json"]).ok().json()["events"], 8);
}

#[test]
fn files_that_are_read_otherwise_are_inputs_too() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb\na\nb\n");
    let costs = folder.file("costs.txt", "a 1\n");
    run(&["hot", &trace, "--cost", &costs, "--table", "csv", "-o", &costs])
        .fails_with(&["is one of the inputs"]);
    let queries = folder.file("queries", "a\n");
    run(&["find", &trace, "--queries", &queries, "--table", "csv", "-o", &queries])
        .fails_with(&["is one of the inputs"]);
    // Standard input, by its own name.
    let output = Command::new(binary())
        .args(["loops", "-", "--table", "csv", "-o", &trace])
        .stdin(std::fs::File::open(&trace).unwrap())
        .output()
        .unwrap();
    Run::from(output).fails_with(&["is one of the inputs"]);
    // The names of functions that lie beside a trace.
    let names = folder.file("calls.json", r#"{"functions": [{"name": "f"}]}"#);
    let calls = folder.at("calls.trc");
    std::fs::write(&calls, [0x1000_0000u32.to_le_bytes(), 0x4000_0000u32.to_le_bytes()].concat()).unwrap();
    let run = run(&["loops", &calls, "--format", "calls-binary", "--table", "json", "-o", &names]);
    assert_eq!(run.code, Some(2), "{}{}", run.text(), run.err);
    assert!(std::fs::read_to_string(&names).unwrap().contains("functions"));
}

/// A word of a command may be the name of a file that it does not read.
#[test]
fn numbers_known_words_and_defaults_are_no_inputs() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb\na\nb\n");
    let archive = folder.at("u.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    for output in ["csv", "dot", "1000", "a"] {
        folder.file(output, "before");
        let arguments: &[&str] = match output {
            "csv" => &["stats", &archive, "--table", "csv", "-o", output],
            "a" => &["context", &archive, "a", "--table", "csv", "-o", output],
            _ => &["export", &archive, "--to", "dot", "-o", output],
        };
        let mut command = Command::new(binary());
        let written = command.args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(written.status.success(), "{output}: {}", String::from_utf8_lossy(&written.stderr));
        assert_ne!(std::fs::read_to_string(folder.at(output)).unwrap(), "before");
    }
}

/// The anchor of an OTF2 archive lies beside the folder that names it, and a recording is a folder.
#[test]
fn files_of_folders_are_inputs() {
    let folder = Folder::new();
    let trace = folder.file("rank-0.txt", "MPI_Barrier comm=0\n");
    let archive = folder.at("rank-0.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    std::fs::create_dir_all(folder.at("otf2/traces")).unwrap();
    for name in ["otf2/traces.otf2", "otf2/traces.def", "otf2/traces/0.evt"] {
        folder.file(name, "OTF2");
    }
    for input in ["otf2", "otf2/traces", "otf2/traces.otf2"] {
        for output in ["otf2/traces.otf2", "otf2/traces.def", "otf2/traces/0.evt"] {
            let (input, output) = (folder.at(input), folder.at(output));
            run(&["stats", &input, "--table", "csv", "-o", &output]).fails_with(&["is one of the inputs"]);
            assert_eq!(std::fs::read_to_string(output).unwrap(), "OTF2");
        }
    }
    std::fs::create_dir(folder.at("r.parts")).unwrap();
    let part = folder.at("r.parts/rank-0.fold");
    std::fs::copy(&archive, &part).unwrap();
    let job = folder.file("r.parts/job", "0000000000000001\n");
    for output in [&part, &job] {
        let before = std::fs::read(output).unwrap();
        run(&["stats", &folder.at("r.parts"), "--table", "csv", "-o", output])
            .fails_with(&["is one of the inputs"]);
        assert_eq!(&std::fs::read(output).unwrap(), &before);
    }
}

/// What goes to a pipe by its name is lost if nobody reads it, unlike what goes to standard output.
#[test]
fn a_pipe_that_nobody_reads_any_more_is_an_error() {
    let folder = Folder::new();
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let text: String = (0..100_000).map(|_| format!("{}\n", next())).collect();
    let trace = folder.file("t.txt", &text);
    let pipe = folder.at("p");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut reader = Command::new("head").args(["-c", "10", &pipe]).stdout(Stdio::null()).spawn().unwrap();
    run(&["fold", &trace, "-o", &pipe]).fails_with(&["nobody reads the pipe"]);
    reader.wait().unwrap();
}

#[test]
fn the_name_of_a_directory_is_no_file() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb\n");
    let kept = folder.file("kept.txt", "kept");
    for ending in ["/", "/.", "//"] {
        for name in [&kept, &folder.at("new")] {
            let output = format!("{name}{ending}");
            run(&["fold", &trace, "-o", &output]).fails_with(&["directory"]);
        }
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    assert_eq!(names(folder.path()), ["kept.txt", "t.txt"]);
}

/// Issue: `-o /dev/null` replaced the device; a dangling link was replaced.
#[test]
fn devices_pipes_and_links_are_written_to_and_stay() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb\na\nb\n");
    symlink("/dev/null", folder.at("null")).unwrap();
    symlink(folder.at("later.fold"), folder.at("dangling.fold")).unwrap();
    for output in ["/dev/null", &folder.at("null"), &folder.at("dangling.fold")] {
        run(&["fold", &trace, "-o", output]).ok();
        run(&["merge", &trace, "-o", output]).ok();
    }
    assert!(Path::new(&folder.at("dangling.fold")).is_symlink());
    assert_eq!(run(&["stats", &folder.at("later.fold"), "--json"]).ok().json()["events"], 4);
    for stdout in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        let archive = run(&["fold", &trace, "-o", stdout]).ok();
        assert_eq!(run_with_input(&["cat", "-"], &archive.out).ok().text(), "a\nb\na\nb\n", "{stdout}");
    }
    assert_eq!(names(folder.path()), ["dangling.fold", "later.fold", "null", "t.txt"]);
}

/// Starts the command with signals ignored that `sh` ignores.
fn start_ignoring(signals: &str, arguments: &[&str]) -> Child {
    Command::new("sh")
        .args(["-c", &format!("trap '' {signals}; exec \"$0\" \"$@\""), binary()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Issue: `fold` under `nohup`, or with SIGINT ignored, installed its handlers all the same.
#[test]
fn signals_that_are_ignored_stay_ignored() {
    use std::io::Write as _;
    let folder = Folder::new();
    let archive = folder.at("x.fold");
    let mut child = start_ignoring("HUP INT", &["fold", "-", "-o", &archive]);
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all("a\nb\n".repeat(100_000).as_bytes()).unwrap();
    signal(&child, "-HUP");
    signal(&child, "-INT");
    std::thread::sleep(Duration::from_millis(50));
    pipe.write_all(b"c\n").unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    assert_eq!(run(&["stats", &archive, "--json"]).ok().json()["events"], 200_001);
    // One that is not ignored ends it, with what came before.
    let mut child = start_ignoring("HUP", &["fold", "-", "-o", &archive]);
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all("a\nb\n".repeat(100_000).as_bytes()).unwrap();
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(names(folder.path()), ["x.fold", "x.partial.fold"]);
}

/// An earlier partial archive has events that nobody else has.
#[test]
fn a_second_partial_archive_does_not_replace_the_first() {
    let folder = Folder::new();
    let archive = folder.at("x.fold");
    for _ in 0..2 {
        run_with_input(&["fold", "-", "-o", &archive], b"open\nread\nclo").fails_with(&["partial.fold"]);
    }
    assert_eq!(names(folder.path()), ["x.2.partial.fold", "x.partial.fold"]);
    // One that is an input stays what it was.
    let partial = folder.at("x.partial.fold");
    let before = std::fs::read(&partial).unwrap();
    run_with_input(&["fold", &partial, "-", "-o", &archive], b"open\nread\nclo").fails_with(&["x.3.partial"]);
    assert_eq!(std::fs::read(&partial).unwrap(), before);
}

/// Issue: what could not be written to standard error was a panic, after the work was done.
#[test]
fn standard_error_that_cannot_be_written_is_no_failure() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb\n");
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for (arguments, status) in [
        (vec!["fold", &trace, "-o", "x.fold"], 0),
        (vec!["merge", &trace, "-o", "y.fold"], 0),
        (vec!["formats"], 0),
        (vec!["find", &trace, "zzz"], 1),
        (vec!["loops", "/no/such/file"], 2),
        (vec!["no-such-command"], 2),
    ] {
        let mut command = Command::new(binary());
        command.args(&arguments).current_dir(folder.path()).stdout(Stdio::null()).stderr(full());
        assert_eq!(command.status().unwrap().code(), Some(status), "{arguments:?}");
    }
    run(&["verify", &folder.at("x.fold")]).ok();
}

/// Issue: temporary files stayed after signals. A signal that ends the command leaves nothing; a kill
/// leaves what the next execution removes.
#[test]
fn kills_at_any_moment_leave_the_old_file_or_the_new_one() {
    let folder = Folder::new();
    let text: String = (0..30_000).map(|line| format!("step {}\nsend {}\n", line % 7, line % 1013)).collect();
    let trace = folder.file("t.txt", text);
    std::fs::create_dir(folder.at("out")).unwrap();
    let output = folder.at("out/x.fold");
    run(&["fold", &trace, "-o", &output]).ok();
    let old = std::fs::read(&output).unwrap();
    for (attempt, name) in (0u64..40).zip(["-KILL", "-TERM", "-INT", "-HUP"].into_iter().cycle()) {
        let mut command = Command::new(binary());
        command.args(["fold", &trace, "-o", &output]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(attempt * 3571 % 60_000));
        let id = child.id().to_string();
        let _ = Command::new("kill").args([name, &id]).stderr(Stdio::null()).status();
        let status = child.wait().unwrap();
        assert!(std::fs::read(&output).unwrap() == old, "attempt {attempt}, {name}: {status}");
        let left = names(Path::new(&folder.at("out")));
        // An earlier one may have been killed, and this one may not have got to remove what that left.
        let has_left = left.iter().any(|name| name.contains(&format!("-{id}-")));
        assert!(status.signal() == Some(9) || !has_left, "attempt {attempt}, {name}: {left:?}");
    }
    run(&["fold", &trace, "-o", &output]).ok();
    let left = names(Path::new(&folder.at("out")));
    assert!(left.iter().all(|name| name == "x.fold" || name.ends_with(".partial.fold")), "{left:?}");
}
