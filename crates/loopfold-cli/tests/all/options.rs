//! Options of formats, help, and which streams are taken.

use crate::support::{Folder, run, run_with_input};
use serde_json::json;

const TABLE: &str = "name,thread\na,1\nb,1\na,2\nb,2\n";

#[test]
fn an_option_of_another_format_is_an_error() {
    let folder = Folder::new();
    let (table, log) = (folder.file("x.csv", TABLE), folder.file("x.log", "a\nb\n"));
    let (archive, grammar) = (folder.at("x.fold"), folder.at("x.grammar"));
    run(&["fold", &log, "-o", &archive]).ok();
    run(&["export", "--to", "grammar", &log, "-o", &grammar]).ok();
    run(&["loops", &table, "--event", "name", "--select", "(a)"]).fails_with(&["--select", "lines", "csv"]);
    run(&["stats", &log, "--mpi-only"]).fails_with(&["--mpi-only", "otf2", "the input is lines"]);
    run(&["cat", &log, "--names", &table]).fails_with(&["--names", "calls-binary", "lines"]);
    run(&["find", &archive, "--calls", "a"]).fails_with(&["--calls", "chrome", "the input is fold"]);
    run(&["hot", &grammar, "--mask"]).fails_with(&["--mask", "lines", "the input is grammar"]);
    run(&["loops", &archive, "--event", "name"]).fails_with(&["--event", "csv", "the input is fold"]);
    run(&["loops", &archive, &grammar, "--stream-by", "x"]).fails_with(&[
        "--stream-by",
        "csv and lines",
        "the inputs are fold and grammar",
    ]);
    run_with_input(&["loops", "-", "--category", "x"], b"a\nb\n").fails_with(&[
        "--category",
        "chrome",
        "lines",
    ]);
    // What came before is not kept as a partial archive.
    let other = folder.at("other.fold");
    run_with_input(&["fold", &log, "-", "--regions", "x", "-o", &other], b"a\n").fails_with(&["--regions"]);
    assert!(!folder.path().join("other.partial.fold").exists());
}

#[test]
fn an_option_may_be_of_one_of_several_inputs() {
    let folder = Folder::new();
    let (log, archive) = (folder.file("x.log", "a 1\na 2\n"), folder.at("x.fold"));
    run(&["fold", &log, "-o", &archive]).ok();
    for inputs in [[&log, &archive], [&archive, &log]] {
        let text = run(&["cat", inputs[0], inputs[1], "--mask"]).ok().text();
        assert_eq!((text.matches("a <num>").count(), text.matches("a 1").count()), (2, 1), "{text}");
    }
}

#[test]
fn options_of_formats_are_in_long_help_only() {
    for command in ["loops", "find", "merge"] {
        let short = run(&[command, "-h"]).ok().text();
        assert!(short.contains("--stream ") && !short.contains("--stream-by"), "{short}");
        let long = run(&[command, "--help"]).ok().text();
        for part in ["Format csv:", "Format otf2:", "Format csv or lines:", "--stream-by", "--mpi-only"] {
            assert!(long.contains(part), "{part}: {long}");
        }
        assert_eq!(run(&["help", command]).ok().text(), long);
    }
}

#[test]
fn help_of_record_is_about_paths_and_mpi() {
    let help = run(&["record", "--help"]).ok().text();
    for example in [
        "loopfold-cc -O2 -o app app.c\n  loopfold record -o run.fold ./app\n",
        "mpirun -n 16 loopfold record --mpi -o run.fold ./app\n",
    ] {
        assert!(help.contains(example), "{help}");
    }
    let place = |text: &str| help.find(text).unwrap();
    let order = ["Options for paths:", "--spool", "Options for MPI programs:", "--callsites"].map(place);
    assert!(order.is_sorted(), "{help}");
}

#[test]
fn help_is_of_commands_and_of_formats() {
    let csv = run(&["help", "csv"]).ok().text();
    for part in ["a table", "Fields:", "--event <COLUMN>", "--time-unit", "Example:\n  loopfold "] {
        assert!(csv.contains(part), "{part}: {csv}");
    }
    let formats = run(&["formats"]).ok();
    assert!(formats.err.contains("loopfold help FORMAT"), "{}", formats.err);
    for line in formats.text().lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(run(&["help", name]).ok().text().starts_with(&format!("{name}: ")), "{name}");
    }
    assert!(run(&["help"]).ok().text().contains("Commands:"));
    run(&["help", "punched"]).fails_with(&["punched", "commands: loops, ", "formats: otf2, "]);
}

/// The events of the streams that are selected, each once.
fn selected(log: &str, selectors: &[&str]) -> String {
    let mut arguments = vec!["cat", log, "--stream-by", r"^(\S+)", "--select", r" (\w)", "--json"];
    arguments.extend(selectors.iter().flat_map(|selector| ["--stream", selector]));
    let streams = run(&arguments).ok().json();
    let streams = streams["streams"].as_array().unwrap().iter();
    streams.map(|stream| stream["events"][0].as_str().unwrap().to_string()).collect()
}

#[test]
fn streams_are_selected_by_name_pattern_and_number() {
    let folder = Folder::new();
    let log = folder.file("x.log", "rank0 a\nrank1 b\n1 c\nx[1] d\nrank10 e\n");
    for (selectors, expected) in [
        (&[][..], "abcde"),
        (&["rank1"], "b"),
        (&["rank*"], "abe"),
        (&["rank?"], "ab"),
        (&["rank[1-9]*"], "be"),
        (&["0"], "a"),
        (&["4"], "e"),
        // A name comes before a number, and before a pattern.
        (&["1"], "c"),
        (&["x[1]"], "d"),
        (&["4", "rank0", "rank?"], "abe"),
    ] {
        assert_eq!(selected(&log, selectors), expected, "{selectors:?}");
    }
    let fails = |selector: &str, expected: &[&str]| {
        run(&["cat", &log, "--stream-by", r"^(\S+)", "--stream", "rank0", "--stream", selector])
            .fails_with(expected);
    };
    fails("rank", &["--stream rank:", "'*rank*' would select 3", "rank0, rank1, 1"]);
    fails("5", &["--stream 5:", "less than 5"]);
    fails("99999999999999999999", &["less than 5"]);
    fails("", &["no stream has this name"]);
}

#[test]
fn stats_lists_the_streams() {
    let folder = Folder::new();
    let (table, log) = (folder.file("x.csv", TABLE), folder.file("x.log", "a\n"));
    let archive = folder.at("x.fold");
    run(&["fold", &table, "--event", "name", "--stream-by", "thread", "-o", &archive]).ok();
    let list = ["stats", "--streams", &archive, &log];
    let text = run(&list).ok().text();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["number", "events", "format", "name"]);
    assert_eq!(rows[1..], [["0", "1", "lines", "x.log"], ["1", "2", "csv", "1"], ["2", "2", "csv", "2"]]);
    // Numbers stay those of the whole list.
    let json = run(&[&list[..], &["--json", "--stream", "2"]].concat()).ok().json();
    let expected = json!({"number": 2, "stream": "2", "title": "2", "events": 2, "format": "csv"});
    assert_eq!(json, json!({"streams": 3, "stream_list": [expected]}));
}
