//! `export`, reading grammars wherever archives are read, and the sizes in `stats`.

use crate::support::{Folder, run, run_with_input, shell};
use serde_json::{Value, json};

const FIGURE_4: &str = "loopfold grammar 1
A -> '1' '2'
B -> A '1'
S -> A B '3' B '4'
stream 'main' -> S
    note 'final-newline' 'no'
end
";

#[test]
fn a_graph_is_drawn_from_traces_archives_and_grammars() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "init\n".to_string() + &"read\nwrite\n".repeat(40));
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let graph = run(&["export", "--to", "dot", &trace]).ok().text();
    assert!(graph.starts_with("//") && graph.contains("digraph fold {") && graph.ends_with("}\n"), "{graph}");
    assert!(graph.contains("R2 -> R1 [label=\"40×\"]"), "{graph}");
    assert!(graph.contains("E2 [label=\"read\\n40×\", shape=ellipse]"), "{graph}");
    assert_eq!(run(&["export", "--to", "dot", &archive]).ok().text(), graph);
    let drawn = run_with_input(&["export", "--to", "dot", "-"], FIGURE_4.as_bytes()).ok().text();
    assert!(drawn.contains("R1 [label=\"R1\\n3×\"]") && drawn.contains("E1 [label=\"1\\n5×\""), "{drawn}");
    let file = folder.at("x.dot");
    let silent = run(&["export", "--to", "dot", &archive, "-o", &file]).ok();
    assert!(silent.out.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), graph);
}

#[test]
fn graphs_that_nobody_can_look_at_are_refused() {
    let folder = Folder::new();
    let lines: String = (0..2000).map(|n| format!("{n}\n")).collect();
    let trace = folder.file("x.txt", &lines);
    let old = folder.file("x.dot", "precious");
    run(&["export", "--to", "dot", &trace]).fails_with(&["2001 nodes and 2000 edges", "--limit", "--stream"]);
    run(&["export", "--to", "dot", &trace, "-o", &old]).fails_with(&["--limit"]);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "precious");
    run(&["export", "--to", "dot", &trace, "--limit", "4001"]).ok();
    run(&["export", "--to", "dot", &trace, "--limit", "4000"]).fails_with(&["at most 4000"]);
}

#[test]
fn a_grammar_is_read_wherever_an_archive_is() {
    let folder = Folder::new();
    let (x, y) = (folder.file("x.txt", "a\nb\na\nb\nc"), folder.file("y.txt", "a\nb\nc\n".repeat(30)));
    let (archive, grammar, again) = (folder.at("x.fold"), folder.at("x.grammar"), folder.at("again.fold"));
    run(&["fold", &x, &y, "-o", &archive]).ok();
    run(&["export", "--to", "grammar", &archive, "-o", &grammar]).ok();
    let text = std::fs::read_to_string(&grammar).unwrap();
    assert!(text.contains("R1 -> 'a' 'b'\nR2 -> R1^2 'c'\nstream 'x.txt' -> R2\n"), "{text}");
    assert!(text.contains("Times of events are not kept here"), "{text}");

    run(&["merge", &grammar, "-o", &again]).ok();
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&archive).unwrap());
    for command in [vec!["cat"], vec!["loops", "--json"], vec!["export", "--to", "grammar"]] {
        let of = |input: &str| run(&[&command[..], &[input]].concat()).ok().out;
        assert_eq!(of(&grammar), of(&archive), "{command:?}");
    }
    let stats = |input: &str| run(&["stats", "--json", input]).ok().json();
    assert_eq!(stats(&grammar), stats(&archive));

    let packed = shell("gzip -k x.grammar && cat x.grammar.gz", folder.path()).ok().out;
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for input in [text.as_bytes(), &packed, &zstd] {
        assert_eq!(run_with_input(&["cat", "-"], input).ok().out, run(&["cat", &archive]).ok().out);
        let file = folder.file("y.bin", input);
        assert_eq!(run(&["cat", &file]).ok().out, run(&["cat", &archive]).ok().out);
        run(&["verify", &file]).ok();
    }
    let verified = run(&["verify", "--json", &grammar]).ok().json();
    let found = &verified["archives"][0];
    assert_eq!(
        (&found["ok"], &found["segments"], &found["events"]),
        (&json!(true), &Value::Null, &json!(95))
    );
    assert_eq!(found["bytes"], text.len());

    let lines = run(&["cat", "--format", "lines", &grammar]).ok().text();
    assert_eq!(lines, text, "who says that it is lines gets its lines");
    run(&["merge", &grammar, &x, "-o", &again]).ok();
    assert_eq!(stats(&again)["streams"], 3);
}

#[test]
fn projections_apply_to_grammars() {
    let grammar = b"loopfold grammar 1\nE = send 'Send' peer=3\nF = send 'Send' peer=4\nS -> E F^2\nstream 'x' -> S\nend\n";
    let cat = run_with_input(&["cat", "-"], grammar).ok().text();
    assert_eq!(cat, "Send peer=3\nSend peer=4\nSend peer=4\n");
    let without = run_with_input(&["loops", "--ignore", "peer", "-"], grammar).ok().text();
    assert!(without.contains("(Send)^3"), "{without}");
    run_with_input(&["loops", "--key", "tag", "-"], grammar)
        .fails_with(&["no event in the archive has the field tag"]);
}

#[test]
fn a_bad_grammar_is_an_error_with_its_line() {
    let folder = Folder::new();
    let bad = folder.file("bad.grammar", FIGURE_4.replace("-> A '1'", "-> C '1'"));
    run(&["cat", &bad]).fails_with(&["bad.grammar: line 3: C is not known", "--lenient"]);
    let verified = run(&["verify", &bad]);
    assert_eq!(verified.code, Some(1));
    assert!(verified.text().contains("bad.grammar: bad: line 3: C is not known"), "{}", verified.text());
    let cut = FIGURE_4.replace("end", "R2 -> '1' '");
    run_with_input(&["cat", "-"], cut.as_bytes())
        .fails_with(&["standard input: line 7: a name has no closing quote"]);
    let lenient = run_with_input(&["cat", "--lenient", "-"], cut.as_bytes()).ok();
    assert_eq!(lenient.text().replace('\n', ""), "1212131214");
    assert!(
        lenient.err.contains("line 7") && lenient.err.contains("what comes before is 1 stream"),
        "{}",
        lenient.err
    );
    let hostile = "loopfold grammar 1\nA -> \u{1b}[2J\nend\n";
    let run = run_with_input(&["cat", "-"], hostile.as_bytes());
    assert!(!run.err.contains('\u{1b}'), "{}", run.err);
}

#[test]
fn a_grammar_that_claims_much_costs_little() {
    let folder = Folder::new();
    let mut text = "loopfold grammar 1\nR0 -> 'a' 'b'\n".to_string();
    (1..60).for_each(|level| text.push_str(&format!("R{level} -> R{} R{0}\n", level - 1)));
    folder.file("big.grammar", text + "stream 's' -> R59\nend\n");
    let limited = |command: &str| shell(&format!("ulimit -v 2000000; {command}"), folder.path());
    let stats = limited("\"$loopfold\" stats --json big.grammar").ok().json();
    assert_eq!(stats["events"].as_u64(), Some(1 << 60));
    let window = limited("\"$loopfold\" cat big.grammar --from 1000000000000001 --to 1000000000000003").ok();
    assert_eq!(window.text(), "b\na\n");
    let graph = limited("\"$loopfold\" export --to dot big.grammar").ok().text();
    assert!(graph.contains("R1 [label=\"R1\\n576460752303423488×\"]"), "{graph}");
}

#[test]
fn an_export_replaces_no_input() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\nb\n");
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    for input in [&trace, &archive] {
        run(&["export", "--to", "grammar", input, "-o", input]).fails_with(&["is one of the inputs"]);
    }
    run(&["export", "--to", "grammar", &archive, "-o", &folder.at("no/such/folder")])
        .fails_with(&["no/such/folder"]);
    run(&["export", &archive]).fails_with(&["--to"]);
    let grammar = folder.at("x.grammar");
    run(&["export", "--to", "grammar", &archive, "-o", &grammar]).ok();
    run(&["fold", &grammar, "-o", &grammar]).fails_with(&["is one of the inputs"]);
}

#[test]
fn a_closed_pipe_ends_an_export() {
    let folder = Folder::new();
    folder.file("x.txt", (0..200_000).map(|n| format!("{}\n", n * 7919 % 100_003)).collect::<String>());
    let run = shell("( \"$loopfold\" export --to grammar x.txt; echo $? >&2 ) | head -n 1", folder.path());
    assert_eq!((run.text().as_str(), run.err.trim()), ("loopfold grammar 1\n", "0"));
}

const CHROME: &str = r#"{"traceEvents": [
 {"ph":"X","name":"step","pid":1,"tid":1,"ts":0,"dur":2000000},
 {"ph":"X","name":"load","pid":1,"tid":1,"ts":10,"dur":20},
 {"ph":"X","name":"wait","pid":1,"tid":2,"ts":1000000,"dur":3000000}
]}"#;

#[test]
fn stats_compare_trace_archive_and_run() {
    let folder = Folder::new();
    let trace = folder.file("t.json.zst", zstd::encode_all(CHROME.as_bytes(), 3).unwrap());
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let size = std::fs::metadata(&archive).unwrap().len();
    let (of_trace, of_archive) =
        (run(&["stats", "--json", &trace]).ok().json(), run(&["stats", "--json", &archive]).ok().json());
    assert_eq!(of_trace, of_archive, "the archive of a trace is as large as the one that is written");
    assert_eq!(of_trace["bytes"], size);
    assert_eq!(of_trace["time_ns"], 4_000_000_000u64);
    assert_eq!(of_trace["trace_bytes"], CHROME.len());
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 0.006;
    assert!(near(&of_trace["trace_bytes_per_second"], CHROME.len() as f64 / 4.0), "{of_trace}");
    assert!(near(&of_trace["bytes_per_second"], size as f64 / 4.0), "{of_trace}");
    assert!(near(&of_trace["ratio"], CHROME.len() as f64 / size as f64), "{of_trace}");
    assert!(near(&of_trace["rules_per_event"], 2.0 / 3.0), "{of_trace}");
    let text = run(&["stats", &archive]).ok().text();
    for line in [
        "rules     2             0.67 per distinct event".to_string(),
        "3 events · 3 distinct · 2 streams · 4.00 s".to_string(),
        format!(
            "trace     {:<12}  {} bytes/s",
            format!("{} bytes", CHROME.len()),
            (CHROME.len() as f64 / 4.0).round()
        ),
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in {text}");
    }
    assert!(!text.contains("bytes: "), "the note is not shown twice: {text}");
}

#[test]
fn what_is_not_known_is_left_out() {
    let text = run_with_input(&["stats", "-"], FIGURE_4.as_bytes()).ok().text();
    for line in ["trace", "ratio"] {
        assert!(!text.lines().any(|other| other.starts_with(line)), "{line} is in {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("archive ") && line.ends_with("bytes")), "{text}");
    let json = run_with_input(&["stats", "--json", "-"], FIGURE_4.as_bytes()).ok().json();
    for key in ["time_ns", "trace_bytes", "trace_bytes_per_second", "bytes_per_second", "ratio"] {
        assert_eq!(json[key], Value::Null, "{key}");
    }
    assert!(json["bytes"].as_u64().unwrap() > 0);
    let empty = run_with_input(&["stats", "--json", "--format", "lines", "-"], b"").ok().json();
    assert_eq!(empty["rules_per_event"], Value::Null);
}

#[test]
fn bytes_of_traces_add_up_and_are_not_guessed() {
    let folder = Folder::new();
    let (x, y) = (folder.file("x.txt", "a\nb\n".repeat(50)), folder.file("y.json", CHROME));
    let (one, other, both) = (folder.at("x.fold"), folder.at("y.fold"), folder.at("both.fold"));
    run(&["fold", &x, "-o", &one]).ok();
    run(&["fold", &y, "-o", &other]).ok();
    run(&["merge", &one, &other, "-o", &both]).ok();
    let bytes = |arguments: &[&str]| {
        run(&[&["stats", "--json"], arguments].concat()).ok().json()["trace_bytes"].as_u64()
    };
    let sum = Some(200 + CHROME.len() as u64);
    assert_eq!((bytes(&[&both]), bytes(&[&x, &y]), bytes(&[&one, &y])), (sum, sum, sum));
    // A part of the streams of an input has bytes that nobody counted.
    assert_eq!(bytes(&[&other, "--stream", "*tid 2"]), None);
    let part = folder.at("part.fold");
    run(&["fold", &y, "--stream", "*tid 1", "-o", &part]).ok();
    assert_eq!(bytes(&[&part]), None);
    assert_eq!(bytes(&[&one, "--stream", "x*"]), Some(200));
    // The note costs a few bytes.
    let grammar = run(&["export", "--to", "grammar", &one]).ok().text();
    let without = folder.file("x.grammar", grammar.replace("    note 'bytes' '200'\n", ""));
    run(&["merge", &without, "-o", &both]).ok();
    let size = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(size(&one) - size(&both) <= 16, "{} {}", size(&one), size(&both));
}

#[test]
fn stats_say_which_folder_and_why() {
    let folder = Folder::new();
    let grammar = "loopfold grammar 1\nA -> 'a' 'b'\n\
                   stream 'x' -> A folder 'repair' note 'why' 'few \u{1b} loops'\n\
                   stream 'y' -> A folder 'outermost'\nend\n";
    let text = run_with_input(&["stats", "-"], grammar.as_bytes()).ok().text();
    assert!(text.contains("folder: repair, few \\u{1b} loops\n"), "{text}");
    assert!(text.contains("folder: outermost\n") && !text.contains("why:"), "{text}");
    let json = run_with_input(&["stats", "--json", "-"], grammar.as_bytes()).ok().json();
    assert_eq!(json["stream_list"][0]["folder"], "repair");
    let one = folder.file("x.txt", "a\nb\n");
    let text = run(&["stats", &one]).ok().text();
    assert!(text.contains("folder: outermost, rules beyond loops would not pay\n"), "{text}");
    let text = run(&["stats", &one, "--folder", "outermost"]).ok().text();
    assert!(!text.contains("folder: "), "{text}");
}
