//! The commands from the outside: what they print, and that nothing is lost.

use crate::support::{Folder, run, run_with_input, shell};
use loopfold_testing::{Rng, streams};
use serde_json::json;

/// The trace of table I as lines of letters.
fn lu() -> Vec<u8> {
    streams::lu(160, 249).iter().flat_map(|&letter| [letter as u8, b'\n']).collect()
}

#[test]
fn loops_prints_the_nest_of_table_one() {
    let folder = Folder::new();
    let trace = folder.file("lu.txt.zst", zstd::encode_all(&lu()[..], 3).unwrap());
    let text = run(&["loops", &trace]).ok().text();
    assert!(text.contains("((NKID)^160 (MLGB)^160 QJYQHYQEYQCY)^249"), "{text}");
    assert!(text.contains("323,048 events written as 69"), "{text}");
    let json = run(&["loops", "--json", &trace]).ok().json();
    let class = &json["classes"][0];
    assert_eq!((json["folder"].as_str(), json["streams"].as_u64()), (Some("outermost"), Some(1)));
    assert_eq!((class["events"].as_u64(), class["folded"].as_u64()), (Some(323_048), Some(69)));
    assert_eq!((class["ratio"].as_f64(), class["main_share"].as_f64()), (Some(4681.86), Some(0.9959)));
    assert_eq!(class["streams"], json!(["lu.txt.zst"]));
    assert_eq!(class["nest"][0], json!({"times": 3, "body": ["V"]}));
    let main = class["nest"].as_array().unwrap().iter().find(|node| node["times"] == 249).unwrap();
    assert_eq!(main["body"][0], json!({"times": 160, "body": ["N", "K", "I", "D"]}));
}

#[test]
fn every_folder_and_setting_is_reachable() {
    let folder = Folder::new();
    let text = "abcabcabcdbcdbcdbcdacdacdacdabdabd".repeat(5);
    let trace = folder.file("x.txt", text.chars().flat_map(|c| [c, '\n']).collect::<String>());
    let nest = |options: &[&str]| {
        let arguments: Vec<&str> = ["loops", &trace, "--full"].iter().chain(options).copied().collect();
        run(&arguments).ok().text().split_once('\n').unwrap().1.replace(['\n', ' '], "")
    };
    assert!(nest(&["--ties", "left"]).contains("((abc)^3(dbc)^3(dac)^3(dab)^2d)^5"));
    assert!(nest(&["--folder", "halving"]).contains("((abc)^3(dbc)^3(dac)^3(dab)^2d)^5"));
    assert!(nest(&["--folder", "guarded"]).contains(")^4"));
    assert!(!nest(&["--folder", "innermost", "--ties", "left"]).contains(")^5"));
    assert!(nest(&["--folder", "minimum"]).contains(")^5"));
    assert!(nest(&["--folder", "repair"]).contains(")^3"));
    for grammar in ["sequitur", "sequitur1"] {
        assert!(!nest(&["--folder", grammar]).contains(")^"));
    }
    assert!(!nest(&["--min-times", "6"]).contains(")^"));
    run(&["loops", &trace, "--folder", "guarded", "--ties", "iterations"]).fails_with(&["has no meaning"]);
    for chosen in ["sequitur-runs", "auto", "smallest"] {
        assert!(nest(&["--folder", chosen]).contains(")^3"));
    }
    for grammar in ["repair", "sequitur", "sequitur1", "sequitur-runs", "auto", "smallest"] {
        for option in [["--ties", "left"], ["--min-times", "3"]] {
            let arguments = [&["loops", &trace, "--folder", grammar], &option[..]].concat();
            run(&arguments).fails_with(&[option[0], "this one has no such choice"]);
        }
    }
    run(&["loops", &trace, "--min-times", "1"]).fails_with(&["at least 2 iterations"]);
}

#[test]
fn fold_and_cat_give_the_lines_back_byte_for_byte() {
    let folder = Folder::new();
    let mut rng = Rng::new(7);
    for round in 0..60 {
        let words = [&b"alpha"[..], b"", b"\xff\xfe", b"a\tb", b"crlf\r", b"\x1b[31m"];
        let mut content = Vec::new();
        for symbol in streams::small(&mut rng, 60) {
            content.extend_from_slice(words[symbol as usize % words.len()]);
            content.push(b'\n');
        }
        if round % 3 == 0 {
            content.pop();
        }
        let trace = folder.file("x.txt", &content);
        let archive = folder.at("x.fold");
        let how =
            ["outermost", "innermost", "guarded", "halving", "minimum", "repair", "sequitur", "sequitur1"];
        let how = how[round % how.len()];
        run(&["fold", "--format", "lines", &trace, "-o", &archive, "--folder", how]).ok();
        assert_eq!(run(&["cat", &archive]).ok().out, content);
        run(&["verify", &archive]).ok();
    }
}

#[test]
fn fold_and_cat_give_bytes_and_integers_back() {
    let folder = Folder::new();
    let letters = "llaaffff".repeat(1000) + "\n";
    let trace = folder.file("x.fp.txt", &letters);
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    assert_eq!(run(&["cat", &archive]).ok().text(), letters);
    for (format, width) in [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)] {
        let content: Vec<u8> =
            (0..800u32).flat_map(|n| [(n % 7) as u8, n as u8, 3, 200, 0, 0, 1, 255]).collect();
        let trace = folder.file(&format!("x.{format}"), &content);
        run(&["fold", &trace, "-o", &archive]).ok();
        assert_eq!(run(&["cat", "--raw", &archive]).ok().out, content, "{format}");
        let first = run(&["cat", "--to", "1", &archive]).ok().text();
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&content[..width]);
        assert_eq!(first.trim(), u64::from_le_bytes(bytes).to_string());
        let hex = run(&["cat", "--to", "1", "--hex", &archive]).ok().text();
        assert_eq!(hex.trim(), format!("{:#x}", u64::from_le_bytes(bytes)));
    }
}

#[test]
fn cat_prints_windows() {
    let lines: String = (0..1000).map(|n| format!("{}\n", n % 10)).collect();
    let window = run_with_input(&["cat", "-", "--from", "497", "--to", "502"], lines.as_bytes()).ok();
    assert_eq!(window.text(), "7\n8\n9\n0\n1\n");
    let json = run_with_input(&["cat", "-", "--from", "997", "--json"], lines.as_bytes()).ok().json();
    assert_eq!(json["streams"][0]["events"], json!(["7", "8", "9"]));
    assert_eq!(json["streams"][0]["from"], 997);
    run_with_input(&["cat", "-", "--from", "5000"], lines.as_bytes())
        .fails_with(&["--from 5000: no event is there; positions are 0 to 999"]);
}

const CHROME: &str = r#"{"traceEvents": [
 {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker"}},
 {"ph":"X","name":"step","pid":1,"tid":2,"ts":0,"dur":90},
 {"ph":"X","name":"load","pid":1,"tid":2,"ts":10,"dur":20},
 {"ph":"X","name":"step","pid":1,"tid":2,"ts":100,"dur":90},
 {"ph":"X","name":"load","pid":1,"tid":2,"ts":110,"dur":20},
 {"ph":"X","name":"step","pid":1,"tid":2,"ts":200,"dur":490},
 {"ph":"X","name":"load","pid":1,"tid":2,"ts":210,"dur":420}
]}"#;

#[test]
fn loops_show_times_and_the_slowest_iteration() {
    let folder = Folder::new();
    let trace = folder.file("t.json", CHROME);
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    for input in [&trace, &archive] {
        let text = run(&["loops", input]).ok().text();
        assert!(text.contains("worker") && text.contains("(step load)^3"), "{text}");
        // The last iteration has no next one, so it is not compared with the others.
        assert!(text.starts_with("worker 2 · 3 × (2 events), 100 % of the time\n"), "{text}");
        assert!(text.contains("median 100 µs · slowest #0"), "{text}");
        let json = run(&["loops", input, "--json"]).ok().json();
        let time = &json["classes"][0]["nest"][0]["time"];
        assert_eq!((time["iterations"].as_u64(), time["slowest"].as_u64()), (Some(3), Some(0)));
        assert_eq!((time["min_ns"].as_u64(), time["max_ns"].as_u64()), (Some(100_000), Some(100_000)));
        // To the end of the last step, which contains the last event.
        assert_eq!((&time["total_ns"], &time["slowest_stream"]), (&690_000.into(), &"worker 2".into()));
    }
    let calls = run(&["cat", "--calls", &trace, "--to", "4"]).ok().text();
    assert_eq!(calls, "enter step\nenter load caller=step\nleave load\nleave step\n");
    let times = run(&["cat", "--times", &archive, "--to", "2"]).ok().text();
    assert_eq!(times, "0\t90000\tstep\n10000\t20000\tload\n");
    run(&["fold", &trace, "-o", &archive, "--times", "none"]).ok();
    assert!(!run(&["loops", &archive]).ok().text().contains("median"));
}

#[test]
fn loops_can_be_rotated() {
    let lines = "x\n".to_string() + &"a\nb\nc\n".repeat(5) + "y\n";
    let rotated = run_with_input(&["loops", "-", "--align", "b"], lines.as_bytes()).ok().text();
    assert!(rotated.contains("(bca)^4"), "{rotated}");
    let plain = run_with_input(&["loops", "-"], lines.as_bytes()).ok().text();
    assert!(plain.contains("(abc)^5"), "{plain}");
}

#[test]
fn equal_streams_are_one_class() {
    let folder = Folder::new();
    let ranks: Vec<String> = (0..4)
        .map(|rank| folder.file(&format!("rank-{rank}"), if rank == 2 { "a\nb\n" } else { "a\na\na\n" }))
        .collect();
    let arguments: Vec<&str> =
        ["loops", "--json"].into_iter().chain(ranks.iter().map(String::as_str)).collect();
    let json = run(&arguments).ok().json();
    assert_eq!(json["streams"], 4);
    assert_eq!(json["classes"][0]["streams"], json!(["rank-0", "rank-1", "rank-3"]));
    assert_eq!(json["classes"][1]["streams"], json!(["rank-2"]));
}

#[test]
fn merge_joins_archives() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.txt", "x\ny\n".repeat(50)), folder.file("b.txt", "y\nz\n".repeat(70)));
    let (fold_a, fold_b, both) = (folder.at("a.fold"), folder.at("b.fold"), folder.at("both.fold"));
    run(&["fold", &a, "-o", &fold_a]).ok();
    run(&["fold", &b, "-o", &fold_b]).ok();
    run(&["merge", &fold_a, &fold_b, "-o", &both]).ok();
    let stats = run(&["stats", "--json", &both]).ok().json();
    assert_eq!(
        (stats["streams"].as_u64(), stats["events"].as_u64(), stats["alphabet"].as_u64()),
        (Some(2), Some(240), Some(3))
    );
    assert_eq!(run(&["cat", "--stream", "b.txt", &both]).ok().text(), "y\nz\n".repeat(70));
    assert!(run(&["cat", &both]).ok().text().starts_with("a.txt\tx\na.txt\ty\n"));
    run(&["merge", &fold_a, &fold_a, "-o", &both]).ok();
    let stats = run(&["stats", "--json", &both]).ok().json();
    assert_eq!(stats["stream_list"][1]["stream"], "a.txt (2)");
}

#[test]
fn an_archive_by_another_folder_is_folded_again() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\na\nb\na\nb\n");
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive, "--folder", "innermost"]).ok();
    assert_eq!(run(&["stats", "--json", &archive]).ok().json()["folder"], "innermost");
    let outermost = run(&["loops", &archive, "--json"]).ok().json();
    assert_eq!(outermost["classes"][0]["nest"], json!(["a", {"times": 2, "body": ["a", "b"]}]));
    let innermost = run(&["loops", &archive, "--json", "--folder", "innermost"]).ok().json();
    assert_eq!(innermost["classes"][0]["nest"], json!([{"times": 2, "body": ["a"]}, "b", "a", "b"]));
}

#[test]
fn projections_apply_to_sources_and_to_archives() {
    let folder = Folder::new();
    let log =
        "1 1.0 open(\"a\") = -1 ENOENT (No such file)\n1 1.1 open(\"b\") = 3\n1 1.2 read(3, \"\", 9) = 0\n";
    let trace = folder.file("s.txt", log.repeat(3));
    let archive = folder.at("s.fold");
    run(&["fold", &trace, "--key", "name,errno", "-o", &archive]).ok();
    assert!(run(&["cat", &archive]).ok().text().starts_with("open errno=ENOENT\nopen errno=0\n"));
    assert!(run(&["cat", "--ignore", "errno", &archive]).ok().text().starts_with("open\nopen\nread\n"));
    let classes = folder.file("classes", "open\tfile\nread\tfile\n");
    for input in [&trace, &archive] {
        let text = run(&["loops", "--key", "name", "--map", &classes, input]).ok().text();
        assert!(text.contains("(file)^9"), "{text}");
    }
}

#[test]
fn logs_whose_lines_all_differ_are_shown_masked() {
    let log: String = (0..300)
        .map(|n| format!("2026-11-15 10:00:{:02}.{n:03} request {n} took {}ms\n", n % 60, n * 7))
        .collect();
    let run = run_with_input(&["loops", "-"], log.as_bytes()).ok();
    assert!(run.err.contains("--mask"), "{}", run.err);
    assert!(run.text().contains("^300"), "{}", run.text());
    let masked = run_with_input(&["loops", "--mask", "--json", "-"], log.as_bytes()).ok().json();
    assert_eq!(masked["classes"][0]["folded"], 1);
    let both = run_with_input(&["loops", "--json", "-"], log.as_bytes()).ok().json();
    assert_eq!(
        (both["classes"][0]["folded"].as_u64(), both["masked"]["classes"][0]["folded"].as_u64()),
        (Some(300), Some(1))
    );
}

#[test]
fn long_bodies_are_shortened_unless_asked_for() {
    let body: String = (0..60).map(|n| format!("event number {n}\n")).collect();
    let short = run_with_input(&["loops", "-"], body.repeat(4).as_bytes()).ok().text();
    assert!(short.contains("… 52 events") && !short.contains("event number 30"), "{short}");
    let full = run_with_input(&["loops", "--full", "-"], body.repeat(4).as_bytes()).ok().text();
    assert!(full.contains("event number 30"), "{full}");
    let nested = "a\nb\nb\nb\n".repeat(9);
    let shallow = run_with_input(&["loops", "--depth", "1", "-"], nested.as_bytes()).ok().text();
    assert!(shallow.contains("(a (… 1 event)^3)^9"), "{shallow}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new();
    folder.file("x.txt", "a\nb\n".repeat(200_000));
    let run = shell("( \"$loopfold\" cat x.txt; echo $? >&2 ) | head -n 1", folder.path());
    assert_eq!((run.text().as_str(), run.err.trim()), ("a\n", "0"));
}

#[test]
fn colours_are_only_for_terminals() {
    let text = run_with_input(&["loops", "-"], b"a\nb\na\nb\n").ok().text();
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn completions_manual_and_formats_exist() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(run(&["completions", shell]).ok().text().contains("loopfold"));
    }
    run(&["man", &folder.at("man")]).ok();
    let page = std::fs::read_to_string(folder.path().join("man/loopfold-loops.1")).unwrap();
    assert!(page.contains("min\\-times") && page.contains("stream\\-by"));
    let formats = run(&["formats"]).ok().text();
    for format in [
        "lines",
        "bytes",
        "u8",
        "u16",
        "u32",
        "u64",
        "csv",
        "chrome",
        "strace",
        "lackey",
        "spike",
        "execlog",
        "perf",
        "ltrace",
        "babeltrace",
    ] {
        assert!(formats.lines().any(|line| line.split_whitespace().next() == Some(format)), "{format}");
    }
}

#[test]
fn inputs_of_the_same_name_are_kept_apart() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("other")).unwrap();
    let (one, other) = (folder.file("x.txt", "a\na\n"), folder.file("other/x.txt", "a\na\n"));
    let json = run(&["loops", "--json", &one, &other, &one]).ok().json();
    assert_eq!(json["streams"], 3);
    assert_eq!(json["classes"][0]["streams"], json!([one, other, format!("{one} (2)")]));
}

#[test]
fn a_field_that_no_event_has_is_an_error() {
    let folder = Folder::new();
    let trace = folder.file("s.txt", "1 1.0 open(\"a\") = 3\n1 1.2 read(3, \"\", 9) = 0\n");
    run(&["loops", "--key", "bogus", &trace]).fails_with(&["bogus", "name, errno"]);
    run(&["loops", "--ignore", "bogus", &trace]).fails_with(&["bogus"]);
    let archive = folder.at("s.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    run(&["loops", "--key", "name,errno", &archive]).fails_with(&["errno", "fold --key"]);
    let lines = folder.file("l.txt", "x\n");
    run(&["loops", "--key", "size", &lines]).fails_with(&["size", "has no fields"]);
}

#[test]
fn tables_are_recognized_by_their_extension() {
    let folder = Folder::new();
    let table = folder.file("t.csv", "name,dur (us)\na,1\nb,2\na,1\nb,2\n");
    run(&["loops", &table]).fails_with(&["name", "dur (us)", "--event"]);
    let text = run(&["loops", &table, "--event", "name", "--duration", "dur"]).ok().text();
    assert!(text.contains("(ab)^2") && text.contains("median 3.00 µs"), "{text}");
}

#[test]
fn what_was_asked_for_and_not_found_is_noted() {
    let lines = b"level=info a\nlevel=info b\n";
    let run_select = run_with_input(&["loops", "-", "--select", "nothing=(x)"], lines).ok();
    assert!(run_select.err.contains("2 lines do not match --select"), "{}", run_select.err);
    let aligned = run_with_input(&["loops", "-", "--align", "zzz"], b"a\nb\na\nb\na\nb\n").ok();
    assert!(aligned.err.contains("no event is called zzz"), "{}", aligned.err);
    let aligned = run_with_input(&["loops", "-", "--align", "a"], b"a\nb\na\nb\na\nb\n").ok();
    assert!(aligned.err.contains("could be rotated"), "{}", aligned.err);
    let rotated =
        run_with_input(&["loops", "-", "--align", "b", "--json"], b"a\nb\na\nb\na\nb\n").ok().json();
    assert_eq!(rotated["classes"][0]["folded"], 4);
}

#[test]
fn stats_of_some_streams_count_only_those() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.txt", "x\ny\nx\ny\n"), folder.file("b.txt", "z\n"));
    let archive = folder.at("x.fold");
    run(&["fold", &a, &b, "-o", &archive]).ok();
    let stats = run(&["stats", "--json", "--stream", "b.txt", &archive]).ok().json();
    assert_eq!(
        (stats["streams"].as_u64(), stats["alphabet"].as_u64(), stats["rules"].as_u64()),
        (Some(1), Some(1), Some(1))
    );
}
