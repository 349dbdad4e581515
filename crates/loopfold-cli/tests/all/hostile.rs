//! Hostile names through every command, in every form, into a pipe and onto a terminal: nothing drives
//! the terminal, every text stays one, and no name becomes code.
#![cfg(target_os = "linux")]

use crate::support::{Folder, Run, run, run_into_terminal, run_on_terminal, shell};
use loopfold::emit::is_harmless;
use loopfold_testing::hostile;
use std::process::Command;

/// The trace of an input, what is asked of it beside what is asked of all, and whether its events have times.
struct Input {
    path: String,
    /// Words of a query of `find` and `context`.
    event: &'static str,
    more: &'static [&'static [&'static str]],
}

fn inputs(folder: &Folder) -> [Input; 4] {
    let messages = hostile::messages(hostile::NAMES);
    [
        Input { path: folder.file("events.grammar", hostile::events()), event: "begin", more: &[] },
        Input {
            path: folder.file("calls.grammar", hostile::calls()),
            event: "R1",
            more: &[
                &["find", "@", "R1: R1 R1"],
                &["find", "@", "R1: R1 R1", "--all"],
                &["cat", "@", "--blocks"],
            ],
        },
        Input {
            path: folder.file("messages.grammar", messages),
            event: "MPI_Barrier",
            more: &[
                &["loops", "@", "--logical"],
                &["patterns", "@", "--full"],
                &["similar", "@", "MPI_Allreduce", "--edits", "1"],
                &["skeleton", "@"],
                &["export", "@", "--to", "dot", "--limit", "100000", "--peers", "relative"],
            ],
        },
        Input {
            path: folder.file("slices.json", hostile::slices()),
            event: "MPI_Send",
            more: &[
                &["waits", "@"],
                &["hot", "@", "--cost", "duration"],
                &["hot", "@", "--cost", "self"],
                &["stats", "@", "--key", "cat"],
                &["iterations", "@", "--slow", "3"],
                &["iterations", "@", "--csv"],
            ],
        },
    ]
}

/// What is asked of every input, which is `@`; `E` is an event.
const COMMANDS: &[&[&str]] = &[
    &["loops", "@"],
    &["loops", "@", "--full"],
    &["loops", "@", "--folder", "innermost"],
    &["stats", "@"],
    &["stats", "@", "--streams"],
    &["cat", "@"],
    &["cat", "@", "--times"],
    &["cat", "@", "--stream", "0"],
    &["hot", "@"],
    &["patterns", "@"],
    &["iterations", "@"],
    &["iterations", "@", "--list"],
    &["context", "@", "E"],
    &["find", "@", "E"],
    &["find", "@", "E", "--all"],
    &["find", "@", "no-such-event"],
    &["find", "@", "--before", "E", "E"],
    &["similar", "@", "E"],
    &["waits", "@"],
    &["loops", "@", "--stream", "no-such-stream"],
    &["export", "@", "--to", "dot", "--limit", "100000"],
    &["export", "@", "--to", "grammar"],
    &["export", "@", "--to", "weights"],
    &["export", "@", "--to", "weights", "--spreadsheet"],
    &["fold", "@", "-o", "/dev/null"],
    &["merge", "@", "@", "-o", "/dev/null"],
    &["verify", "@"],
];

/// Commands that read no trace, or that write nothing of it but an archive.
const WITHOUT_NAMES: [&str; 8] = ["record", "cc", "c++", "cargo", "formats", "help", "completions", "man"];

const FORMS: &[&[&str]] =
    &[&[], &["--json"], &["--table", "csv"], &["--table", "csv", "--spreadsheet"], &["--table", "json"]];

/// The first character that a terminal would not only show, with what is around it. Styles of this program
/// are left out; no name has one of them.
fn drives(text: &str) -> Option<String> {
    const STYLES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];
    let plain = STYLES.iter().fold(text.to_string(), |text, style| text.replace(style, ""));
    let at = plain.find(|letter| !is_harmless(letter) && !matches!(letter, '\n' | '\t'))?;
    let around: String = plain[..at].chars().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect();
    Some(format!("{around:?}, then {:?}", plain[at..].chars().take(9).collect::<String>()))
}

struct Case<'a> {
    arguments: Vec<&'a str>,
    is_terminal: bool,
    run: Run,
}

impl Case<'_> {
    fn has(&self, words: &[&str]) -> bool {
        self.arguments.windows(words.len()).any(|found| found == words)
    }

    /// What is wrong with it.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut must = |holds: bool, what: String| problems.extend((!holds).then_some(what));
        must(matches!(self.run.code, Some(0..=2)), format!("{:?}: {}", self.run.code, self.run.err));
        must(drives(&self.run.err).is_none(), format!("standard error: {:?}", drives(&self.run.err)));
        // Into a pipe, these are exact.
        let is_csv = self.has(&["--table", "csv"]) || self.has(&["--csv"]) || self.has(&["weights"]);
        let is_data = self.has(&["--json"]) || self.has(&["--table", "json"]);
        let text = self.run.text();
        if self.is_terminal || is_data || !(is_csv || self.has(&["cat"])) {
            must(std::str::from_utf8(&self.run.out).is_ok(), "not UTF-8".to_string());
            must(drives(&text).is_none(), format!("{:?}", drives(&text)));
        }
        if self.run.code != Some(0) || self.is_terminal {
            return problems;
        }
        if is_data {
            let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
            must(text.lines().all(is_json), "no JSON".to_string());
        }
        if is_csv {
            let wrong = self.wrong_csv();
            must(wrong.is_none(), format!("{wrong:?}"));
        }
        if self.has(&["--to", "dot"]) {
            let wrong = text.lines().find(|line| !is_dot(line));
            must(wrong.is_none(), format!("{wrong:?}"));
        }
        problems
    }

    /// A line with another number of cells than the first, or a cell that a spreadsheet would execute.
    fn wrong_csv(&self) -> Option<String> {
        let is_formula = |cell: &str| {
            cell.parse::<f64>().is_err() && cell.trim_start().starts_with(['=', '+', '-', '@', '＝'])
        };
        let is_safe =
            |record: &csv::StringRecord| !self.has(&["--spreadsheet"]) || !record.iter().any(is_formula);
        let mut reader = csv::Reader::from_reader(&self.run.out[..]);
        reader.records().find_map(|record| match record {
            Ok(record) if is_safe(&record) => None,
            Ok(record) => Some(format!("{record:?}")),
            Err(error) => Some(error.to_string()),
        })
    }
}

/// Whether the strings of a line of DOT end where they should.
fn is_dot(line: &str) -> bool {
    let mut rest = line;
    while let Some((_, from)) = rest.split_once('"') {
        let mut is_escaped = false;
        let end = from.find(|letter| {
            let is_end = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end
        });
        let Some(end) = end else { return false };
        rest = &from[end + 1..];
        if !rest.starts_with([',', ']']) {
            return false;
        }
    }
    true
}

#[test]
fn names_drive_no_terminal_and_end_no_text() {
    let folder = Folder::new();
    let (mut cases, mut wrong) = (0, Vec::new());
    for input in inputs(&folder) {
        for command in COMMANDS.iter().chain(input.more) {
            for form in FORMS {
                let replaced = command.iter().map(|word| match *word {
                    "@" => input.path.as_str(),
                    "E" => input.event,
                    word => word,
                });
                let arguments: Vec<&str> = replaced.chain(form.iter().copied()).collect();
                for is_terminal in [false, true] {
                    let run = if is_terminal { run_on_terminal(&arguments) } else { run(&arguments) };
                    // A form that the command does not have.
                    if run.err.contains("unexpected argument") || run.err.contains("cannot be used with") {
                        continue;
                    }
                    let case = Case { arguments: arguments.clone(), is_terminal, run };
                    let about = |problem| format!("{arguments:?}, on a terminal {is_terminal}: {problem}");
                    wrong.extend(case.problems().into_iter().map(about));
                    cases += 1;
                }
            }
        }
    }
    println!("{} names, {cases} executions", hostile::NAMES.len());
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 950, "{cases}");
}

/// Every command is asked, or does not show names.
#[test]
fn all_commands_are_given_hostile_names() {
    let folder = Folder::new();
    let more: Vec<&[&str]> = inputs(&folder).iter().flat_map(|input| input.more).copied().collect();
    let asked: Vec<&str> = COMMANDS.iter().copied().chain(more).map(|command| command[0]).collect();
    let help = run(&["--help"]).ok().text();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let commands: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        assert!(asked.contains(&command) || WITHOUT_NAMES.contains(&command), "{command} is not asked");
    }
}

/// Issue: what goes to a terminal as `--output` was not looked at.
#[test]
fn a_terminal_as_output_is_given_what_one_as_standard_output_is() {
    let folder = Folder::new();
    let trace = folder.file("events.grammar", hostile::events());
    let messages = folder.file("messages.grammar", hostile::messages(hostile::NAMES));
    let commands: [&[&str]; 8] = [
        &["stats", &trace, "--table", "csv", "--rows", "stream_list"],
        &["stats", &trace, "--table", "json", "--rows", "stream_list"],
        &["loops", &trace, "--table", "csv"],
        &["find", &trace, "begin", "--table", "csv", "--spreadsheet"],
        &["export", &trace, "--to", "dot", "--limit", "100000"],
        &["export", &trace, "--to", "grammar"],
        &["export", &trace, "--to", "weights"],
        &["skeleton", &messages],
    ];
    for command in commands {
        let (given, shown) = (run_into_terminal(command).ok(), run_on_terminal(command).ok());
        assert_eq!(drives(&given.text()), None, "{command:?}");
        assert_eq!(given.text(), shown.text(), "{command:?}");
        assert!(!given.out.is_empty(), "{command:?}");
    }
    for what in [
        &["stats", &trace, "--table", "parquet"][..],
        &["stats", &trace, "--table", "arrow"],
        &["export", &trace, "--to", "safetensors"],
        &["export", &trace, "--to", "parquet"],
        &["fold", &trace],
        &["merge", &trace, &trace],
    ] {
        let run = run_into_terminal(what);
        assert_eq!((run.code, run.text().as_str()), (Some(2), ""), "{what:?}: {}", run.err);
        assert!(run.err.contains("is not text"), "{what:?}: {}", run.err);
    }
}

/// Issue: a pipe in place of a file of a recording was waited for.
#[test]
fn a_pipe_or_link_in_place_of_a_part_is_refused() {
    let folder = Folder::new();
    let made = "mkdir a.parts b.parts && mkfifo a.parts/rank-0.fold && ln -s /dev/null b.parts/rank-0.fold";
    assert_eq!(shell(made, folder.path()).code, Some(0));
    for (parts, why) in [("a.parts", "is no regular file"), ("b.parts", "symbolic link")] {
        let run = shell(&format!("timeout 20 \"$loopfold\" stats {parts}"), folder.path());
        assert_eq!(run.code, Some(2), "{parts}: {}", run.err);
        assert!(run.err.contains("rank-0.fold") && run.err.contains(why), "{parts}: {}", run.err);
    }
}

/// Issue: the table of weights had texts that a spreadsheet executes, and no option against that.
#[test]
fn weights_can_be_for_a_spreadsheet() {
    let folder = Folder::new();
    let trace = folder.file("x.grammar", "loopfold grammar 1\nS -> '=1+1' 'b'\nstream '+1' -> S\nend\n");
    let weights = |more: &[&str]| run(&[&["export", &trace, "--to", "weights"], more].concat());
    let (exact, safe) = (weights(&[]).ok().text(), weights(&["--spreadsheet"]).ok().text());
    assert!(exact.contains("=1+1"), "{exact}");
    assert!(!exact.contains("'=1+1") && safe.contains("'=1+1") && safe.contains("'+1"), "{exact}{safe}");
    run(&["export", &trace, "--to", "dot", "--spreadsheet"])
        .fails_with(&["--spreadsheet is for --to weights"]);
}

/// Compiles a program without executing it; every warning is an error.
fn compiles(source: &str) -> Result<(), String> {
    let mut command = Command::new("mpicc");
    let done = command.args(["-Wall", "-Wextra", "-Wtrigraphs", "-Werror", "-fsyntax-only", source]).output();
    let done = done.expect("mpicc is installed");
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

/// Every name of the trace, alone: in regions, marks, calls that are not known, and communicators.
#[test]
fn names_become_no_code() {
    let folder = Folder::new();
    let source = folder.at("skeleton.c");
    let mut refused = 0;
    for name in hostile::NAMES {
        let trace = folder.file("messages.grammar", hostile::messages(&[name]));
        for scale in ["1", "1/2"] {
            let run = run(&["skeleton", &trace, "--scale", scale, "-o", &source]);
            if run.code == Some(2) {
                refused += 1;
                continue;
            }
            let run = run.ok();
            assert_eq!(drives(&run.err), None, "{name:?}");
            let text = std::fs::read_to_string(&source).unwrap();
            compiles(&source).unwrap_or_else(|error| panic!("{name:?}: {error}\n{text}"));
            assert!(text.is_ascii(), "{name:?}");
            // A comment has no text of the trace.
            let comments = text.split("/*").skip(1).map(|rest| rest.split("*/").next().unwrap());
            let shown = String::from_utf8_lossy(name);
            let is_shown = shown.len() > 3 && comments.clone().any(|comment| comment.contains(shown.trim()));
            assert!(!is_shown || shown == "MPI_Send", "{name:?} is in a comment");
        }
    }
    println!("{} names, {refused} skeletons refused", hostile::NAMES.len());
    assert!(refused < 20, "{refused}");
}

/// Issue: the operation of a reduction was pasted into the C of `skeleton`; a 260-byte archive ran a command.
#[test]
fn what_should_be_a_constant_of_mpi_is_one_or_refused() {
    let folder = Folder::new();
    let source = folder.at("skeleton.c");
    let known = [
        "user", "SUM", "MAX", "MIN", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MINLOC", "MAXLOC",
    ];
    let skeleton = |call: &str| {
        let text = format!(
            "loopfold grammar 1\nI = 'MPI_Init'\nF = 'MPI_Finalize'\nC = {call}\nS -> I C^3 F\n\
             stream 'rank 0' -> S\nend\n"
        );
        let trace = folder.file("call.grammar", text);
        run(&["skeleton", &trace, "-o", &source])
    };
    for op in known {
        skeleton(&format!("collective 'MPI_Allreduce' op='{op}' bytes=24 comm='0'")).ok();
        compiles(&source).unwrap_or_else(|error| panic!("{op}: {error}"));
    }
    let text = std::fs::read_to_string(&source).unwrap();
    assert!(text.contains("MPI_Allreduce(out, in, 3, MPI_2INT, MPI_MAXLOC, world.comm);"), "{text}");
    // Whatever is no number or constant, wherever the program has one.
    let _ = std::fs::remove_file(&source);
    for name in hostile::NAMES.iter().filter(|name| !matches!(**name, b"none" | b"12")) {
        let name = hostile::quoted(name);
        for call in [
            format!("collective 'MPI_Allreduce' op={name} bytes=8 comm='0'"),
            format!("collective 'MPI_Bcast' root={name}xx bytes=8 comm='0'").replace("'xx", "x'"),
            format!("'MPI_Cart_create' comm='0' newcomm='2' dims={name} periods='0'"),
            format!("'MPI_Cart_create' comm='0' newcomm='2' dims='1' periods={name}"),
            format!("'MPI_Comm_split' comm='0' newcomm='2' color={name} key=0"),
            format!("'MPI_Sendrecv' dest={name} src=0 tag=0 recvtag=0 bytes=8 recvbytes=8 comm='0'"),
        ] {
            let run = skeleton(&call);
            assert!(drives(&run.err).is_none() && run.code == Some(2), "{call}: {:?} {}", run.code, run.err);
            assert!(!std::path::Path::new(&source).exists(), "{call}");
        }
    }
}

/// Issue: `cat` and `cat --times` sent control characters to a terminal.
#[test]
fn cat_is_exact_in_a_pipe_and_escaped_on_a_terminal() {
    let folder = Folder::new();
    let bytes = "plain\n\x1b[2J\x07\u{9b}1m\n größe\n".as_bytes();
    let trace = folder.file("x.txt", bytes);
    assert_eq!(run(&["cat", &trace]).ok().out, bytes);
    let shown = run_on_terminal(&["cat", &trace]).ok();
    assert_eq!(shown.text(), "plain\n\\u{1b}[2J\\u{7}\\u{9b}1m\n größe\n");
    let timed = run_on_terminal(&["cat", "--times", &trace]).ok();
    assert_eq!(timed.text(), "-\t-\tplain\n-\t-\t\\u{1b}[2J\\u{7}\\u{9b}1m\n-\t-\t größe\n");
    // Single bytes, of which several are a character.
    let read = ["cat", "--format", "bytes", &trace];
    assert_eq!(run(&read).ok().out, bytes);
    assert_eq!(run_on_terminal(&read).ok().text(), shown.text());
    // Bytes that are no text are for a file.
    run_on_terminal(&["cat", "--raw", "--format", "u8", &trace]).fails_with(&["--raw is not text"]);
    let raw = run(&["cat", "--raw", "--format", "u8", &trace]).ok();
    assert_eq!(raw.out, bytes);
}

/// Issue: names of streams in JSON could turn the direction of a terminal.
#[test]
fn json_has_the_same_values_and_is_harmless() {
    let folder = Folder::new();
    let text = "loopfold grammar 1\nS -> 'a'^2\nstream 'x\\u{202e}\\u{9b}\\x7f\\u{e0041}' -> S\nend\n";
    let trace = folder.file("x.grammar", text);
    let answer = run(&["loops", "--json", &trace]).ok();
    assert!(answer.text().contains(r#"["x\u202e\u009b\u007f\udb40\udc41"]"#), "{}", answer.text());
    assert_eq!(answer.json()["classes"][0]["streams"][0], "x\u{202e}\u{9b}\x7f\u{e0041}");
}

/// Issue: cells of CSV that begin with `=` are executed by spreadsheets.
#[test]
fn cells_are_exact_unless_they_are_for_a_spreadsheet() {
    let folder = Folder::new();
    let names = ["=1+1", "+1", "-1+1", "@SUM(1)", "\t=1", "＝1", "a=1", "1-1"];
    let text: Vec<String> =
        names.iter().map(|name| format!("stream {} -> S\n", hostile::quoted(name.as_bytes()))).collect();
    let trace = folder.file("x.grammar", format!("loopfold grammar 1\nS -> 'a'^2\n{}end\n", text.concat()));
    let cells = |more: &[&str]| -> Vec<String> {
        let arguments = [&["stats", &trace, "--table", "csv", "--rows", "stream_list"], more].concat();
        let run = run(&arguments).ok();
        let mut reader = csv::Reader::from_reader(&run.out[..]);
        let at = reader.headers().unwrap().iter().position(|name| name == "stream").unwrap();
        reader.records().map(|record| record.unwrap()[at].to_string()).collect()
    };
    assert_eq!(cells(&[]), names);
    let safe: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(at, name)| if at < 6 { format!("'{name}") } else { name.to_string() })
        .collect();
    assert_eq!(cells(&["--spreadsheet"]), safe);
    run(&["stats", &trace, "--table", "json", "--spreadsheet"])
        .fails_with(&["--spreadsheet is for --table csv"]);
    run(&["stats", &trace, "--spreadsheet"]).fails_with(&["--table"]);
}

/// Issue: `iterations --list --json` printed text.
#[test]
fn loops_are_listed_as_json() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "load\ncompute\ncompute\nstore\n".repeat(5));
    let listed = run(&["iterations", &trace, "--list", "--json"]).ok().json();
    let body = serde_json::json!(["load", {"times": 2, "body": ["compute"]}, "store"]);
    let expected = serde_json::json!({"classes": [{"streams": ["x.txt"], "found": 2, "loops": [
        {"loop": 1, "depth": 0, "exact": true, "least_iterations": 5, "most_iterations": 5, "length": 4, "longest": 4,
         "body": body},
        {"loop": 2, "depth": 1, "exact": true, "least_iterations": 2, "most_iterations": 2, "length": 1, "longest": 1,
         "body": ["compute"]},
    ]}]});
    assert_eq!(listed, expected);
    let one = run(&["iterations", &trace, "--list", "--json", "--top", "1"]).ok().json();
    assert_eq!(
        (&one["classes"][0]["found"], one["classes"][0]["loops"].as_array().unwrap().len()),
        (&serde_json::json!(2), 1)
    );
    let none = folder.file("y.txt", "a\nb\n");
    assert_eq!(run(&["iterations", &none, "--list", "--json"]).json()["classes"][0]["found"], 0);
}
