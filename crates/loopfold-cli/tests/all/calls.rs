//! Control flow from the outside: nothing is lost between the trace and `cat`, functions
//! get their names, and what is odd is reported.

use crate::support::{Folder, run, run_with_input};
use loopfold_testing::Rng;
use serde_json::json;

const ENTER: u32 = 0x8000_0000;
const THREAD: u32 = 0xc000_0000;
const EXIT: u32 = u32::MAX;

fn bytes(tokens: &[u32]) -> Vec<u8> {
    tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
}

/// `main` has a namesake, and one function has a name that no line can hold.
const NAMES: &str = r#"{"encoding": "…", "functions": [
    {"name": "main", "module": "a.c", "blocks": 3}, {"name": "g"}, {"name": "main", "module": "b.c"},
    {"name": "a\nb"}]}"#;

#[test]
fn cat_gives_the_text_back() {
    let folder = Folder::new();
    let text = "call main\n1\nwhile 2\ncall f\n0\nreturn\nwhile 2\ncall f\n0\nreturn\n3\nreturn\nreturn\n7\ncall f\n";
    let trace = folder.file("x.txt", text);
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    assert_eq!(run(&["cat", &archive]).ok().text(), text);
    assert_eq!(run(&["cat", &archive, "--from", "1", "--to", "5"]).ok().text(), "1\nwhile 2\ncall f\n0\n");
    let events = run(&["cat", &archive, "--from", "3", "--to", "6", "--json"]).ok().json();
    assert_eq!(events["streams"][0]["events"], json!(["enter f", "0 function=f", "leave f"]));
    let stats = run(&["stats", &archive, "--json"]).ok().json();
    let notes = &stats["stream_list"][0]["notes"];
    assert_eq!((&notes["format"], &notes["open-calls"]), (&json!("calls"), &json!("1")));
    assert_eq!(notes["unmatched-returns"], json!("1"));
    let shown = run(&["stats", &archive]).ok().text();
    assert!(shown.contains("open-calls: 1") && shown.contains("unmatched-returns: 1"), "{shown}");
}

#[test]
fn threads_are_written_one_after_the_other() {
    let folder = Folder::new();
    let trace = folder.file("x.calls", "1\nthread 7\ncall f\nthread a b\nx\nthread 7\nreturn\n");
    let written = run(&["cat", &trace]).ok().text();
    assert_eq!(written, "1\nthread 7\ncall f\nreturn\nthread a b\nx\n");
    assert_eq!(run_with_input(&["cat", "--format", "calls", "-"], written.as_bytes()).ok().text(), written);
    assert_eq!(run(&["cat", &trace, "--stream", "thread 7"]).ok().text(), "thread 7\ncall f\nreturn\n");
    // Several traces are distinguished by their names, as everywhere.
    let both = run(&["cat", &trace, &folder.file("y.calls", "thread 1\nx\n")]).ok().text();
    assert!(both.contains("y.calls: thread 1\tx\n"), "{both}");
}

#[test]
fn cat_gives_the_tokens_back() {
    let folder = Folder::new();
    let mut rng = Rng::new(9);
    for round in 0..20 {
        let mut tokens: Vec<u32> = (0..300)
            .map(|_| match rng.below(4) {
                0 => ENTER | rng.below(6) as u32,
                1 => EXIT,
                _ => rng.below(5) as u32,
            })
            .collect();
        if round % 2 == 0 {
            tokens.splice(200..200, [THREAD | 3]);
            tokens.splice(250..250, [THREAD]);
        }
        let trace = folder.file("x.bb.zst", zstd::encode_all(&bytes(&tokens)[..], 3).unwrap());
        folder.file("x.json", NAMES);
        let archive = folder.at("x.fold");
        run(&["fold", &trace, "-o", &archive]).ok();
        run(&["verify", &archive]).ok();
        for input in [&trace, &archive] {
            assert_eq!(run(&["cat", "--raw", input]).ok().out, bytes(&tokens), "{input}");
        }
    }
    // A function that no number is known for.
    let archive = folder.at("x.fold");
    let names = folder.file("other.json", r#"{"functions": []}"#);
    run(&["cat", "--raw", &archive, "--names", &names]).fails_with(&["is not known", "--names"]);
    let text = folder.file("x.calls", "call f\nnamed\n");
    run(&["cat", "--raw", &text]).fails_with(&["--raw is for streams"]);
}

#[test]
fn functions_have_names_from_beside_the_trace_or_as_asked() {
    let folder = Folder::new();
    let tokens = bytes(&[ENTER, 0, ENTER | 1, ENTER | 2, ENTER | 3, ENTER | 12]);
    let trace = folder.file("x.trc", &tokens);
    let without = "call f0\n0\ncall f1\ncall f2\ncall f3\ncall f12\n";
    let with = "call a.c:main\n0\ncall g\ncall b.c:main\ncall a\\nb\ncall f12\n";
    let cat = |more: &[&str]| run(&[&["cat", &trace], more].concat()).ok();
    assert_eq!(cat(&[]).text(), without);
    folder.file("x.json.zst", zstd::encode_all(NAMES.as_bytes(), 3).unwrap());
    assert_eq!(cat(&[]).text(), with);
    let empty = folder.file("empty.json", r#"{"functions": []}"#);
    assert_eq!(cat(&["--names", &empty]).text(), without);
    let names = folder.file("names.json", NAMES);
    let piped = run_with_input(&["cat", "--format", "calls-binary", "--names", &names, "-"], &tokens).ok();
    assert_eq!(piped.text(), with);
    // A wrong file beside the trace is no error; one that the user names is.
    let other = folder.file("x.json", "[1, 2]");
    let run_on = cat(&[]);
    assert_eq!(run_on.text(), without);
    assert!(run_on.err.contains("functions have no names"), "{}", run_on.err);
    run(&["cat", &trace, "--names", &other]).fails_with(&["x.json", "a list \"functions\""]);
    let nameless = folder.file("nameless.json", r#"{"functions": [{"name": "a"}, {"id": 1}]}"#);
    run(&["cat", &trace, "--names", &nameless]).fails_with(&["function 1", "\"name\""]);
    run(&["cat", &trace, "--names", &folder.at("none.json")]).fails_with(&["none.json"]);
    let cut = folder.file("cut.bb", &tokens[..tokens.len() - 1]);
    run(&["cat", &cut]).fails_with(&["byte 20", "3 of the 4 bytes"]);
    assert!(run(&["cat", &cut, "--lenient"]).ok().err.contains("byte 20"));
}

#[test]
fn a_log_of_calls_is_completed() {
    let folder = Folder::new();
    let log = "E0x1\nE0x2\nE0x3\nX0x3\nE0x3\nX0x1\n";
    let trace = folder.file("log.txt", log);
    let shown = run(&["stats", &trace]).ok().text();
    assert!(shown.contains("abandoned-calls: 2") && shown.contains("enter 0x3 caller=0x2"), "{shown}");
    assert_eq!(run(&["cat", &trace]).ok().text(), "E0x1\nE0x2\nE0x3\nX0x3\nE0x3\nX0x3\nX0x2\nX0x1\n");
}

#[test]
fn functions_can_be_left_out_or_mapped() {
    let folder = Folder::new();
    let trace = folder.file("x.calls", "call init_a\n1\nreturn\ncall init_b\n1\nreturn\n");
    let distinct = |options: &[&str]| {
        let stats = run(&[&["stats", "--json", &trace], options].concat()).ok().json();
        stats["alphabet"].as_u64().unwrap()
    };
    assert_eq!(distinct(&[]), 6);
    assert_eq!(distinct(&["--ignore", "function"]), 5);
    let map = folder.file("map.txt", "init_*\tinit\n");
    assert_eq!(distinct(&["--map", &map]), 3);
}
