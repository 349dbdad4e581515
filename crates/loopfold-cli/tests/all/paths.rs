//! Paths of functions from the outside: what `find` prints for them, batches of queries,
//! and how it handles hostile names, bad queries and archives that declare huge sizes.

use crate::support::{Folder, Run, run, run_with_input, shell};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Event, Field, Role, Value};
use serde_json::json;

/// `f` executes B1 B2 B3 twice, once interrupted by calls of `g` and of itself.
const TRACE: &str = "call main\n1\ncall f\nB1\ncall g\nx\nreturn\nB2\ncall f\nB1\nB2\nB3\nreturn\nB3\nreturn\n2\n\
                     call f\nB1\nx\nB3\nreturn\nreturn\n";

fn lines(run: &Run) -> Vec<serde_json::Value> {
    run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_path_is_counted_and_located() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    for input in [&trace, &archive] {
        for scheme in ["auto", "1", "unfolded", "2", "folded"] {
            let ask = |more: &[&str]| run(&[&["find", input, "--method", scheme], more].concat()).ok().text();
            let expected = "count      2\nfirst      t.calls, events 9 to 11, in main > f > f\n\
                            last       t.calls, events 3 to 13, in main > f\n";
            assert_eq!(ask(&["f: B1 B2 B3"]), expected);
            assert_eq!(ask(&["f: B1 B2 B3", "--count"]), "2\n");
            assert_eq!(ask(&["--first", "f: B1 B2 B3"]), "t.calls\t9\t11\n");
            assert_eq!(ask(&["--nth", "2", "f: B1 B2 B3"]), "t.calls\t3\t13\n");
            // Any block between, any blocks between.
            for query in ["f: B1 * B3", "f: B1 .. B3"] {
                let all =
                    "t.calls\t9\t11\tmain > f > f\nt.calls\t3\t13\tmain > f\nt.calls\t17\t19\tmain > f\n";
                assert_eq!(ask(&["--all", "--stacks", query]), all, "{query}");
            }
            assert_eq!(ask(&["--count", "f: B1 .. x .. B3"]), "1\n");
            assert_eq!(ask(&["--count", "main: 1 0x2"]), "1\n");
            assert_eq!(ask(&["--count", "  'f' : \"B1\"  'B2'"]), "2\n");
        }
    }
    // Sequences of events are still what they were.
    assert_eq!(run(&["find", &archive, "B1 B2", "--count"]).ok().text(), "1\n");
    assert_eq!(run(&["find", &archive, "f B1", "--count"]).ok().text(), "3\n");
}

#[test]
fn json_has_the_same_answer() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let shown = run(&["find", &trace, "f: B1 B2 B3", "--json", "--nth", "2"]).ok().json();
    let first = json!({"stream": "t.calls", "start": 9, "end": 11, "depth": 2,
        "stack": ["main", "f", "f"], "stack_depth": 3});
    let second = json!({"stream": "t.calls", "start": 3, "end": 13, "depth": 1,
        "stack": ["main", "f"], "stack_depth": 2});
    let expected = json!({"query": "f: B1 B2 B3", "function": "f", "count": 2, "first": first,
        "scheme": "folded", "nth": second});
    assert_eq!(shown, expected);
    let all = run(&["find", &trace, "f: B1 B2 B3", "--json", "--all", "--top", "1"]).ok().json();
    assert_eq!(all["all"], json!([{"stream": "t.calls", "start": 9, "end": 11, "depth": 2}]));
    assert_eq!(all["left_out"], 1);
    let all = run(&["find", &trace, "f: B1 B2 B3", "--json", "--all", "--stacks"]).ok().json();
    assert_eq!(all["all"], json!([first, second]));
    let streams = run(&["find", &trace, "f: B2", "--json", "--per-stream"]).ok().json()["streams"].clone();
    assert_eq!((&streams[0]["count"], &streams[0]["first"]["end"]), (&json!(2), &json!(7)));
    let none = run(&["find", &trace, "f: B3 B1", "--json"]);
    assert_eq!((none.code, &none.json()["first"]), (Some(1), &json!(null)));
}

#[test]
fn what_was_done_is_explained() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let found = run(&["find", &trace, "f: B1", "--count", "--explain", "--method", "1"]).ok();
    assert_eq!(found.text(), "3\n");
    for part in ["opened in", "f: scheme 1 (unfolded), it was asked for", "; 22 events unfolded; searched in"]
    {
        assert!(found.err.contains(part), "{part}: {}", found.err);
    }
    let found = run(&["find", &trace, "f: B1", "--explain", "--json", "--method", "folded"]).ok().json();
    assert!(found["open_ns"].is_u64() && found["searches"][0]["search_ns"].is_u64(), "{found}");
    let search = &found["searches"][0];
    assert_eq!((&search["scheme"], &search["function"]), (&json!("folded"), &json!("f")));
    assert_eq!(search["rules"]["touched"], search["rules"]["all"]);
    run(&["find", &trace, "B1", "--explain"]).fails_with(&["--explain is for paths"]);
    run(&["find", &trace, "B1", "--stacks"]).fails_with(&["--stacks is for paths"]);
    run(&["find", &trace, "B1", "--method", "1"]).fails_with(&["--method is for paths"]);
    for scheme in ["1", "2", "3", "4", "unfolded", "folded", "chunks", "indexed", "auto"] {
        assert_eq!(run(&["find", &trace, "f: B1", "--count", "--method", scheme]).ok().text(), "3\n");
    }
    run(&["find", &trace, "f: B1", "--method", "5"]).fails_with(&["unfolded", "indexed"]);
}

/// Index and chunks are used where they fit, noted where they do not, and never needed.
#[test]
fn what_an_archive_has_beside_its_rules_is_used() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let (archive, other) = (folder.at("t.fold"), folder.at("other.fold"));
    run(&["fold", &trace, "--chunks=16", "-o", &archive]).ok();
    let asked = |archive: &str, scheme: &str| {
        run(&["find", archive, "f: B1 B2", "--all", "--explain", "--method", scheme]).ok()
    };
    let expected = asked(&trace, "2").text();
    for scheme in ["1", "2", "3", "4", "auto"] {
        assert_eq!(asked(&archive, scheme).text(), expected);
    }
    assert!(asked(&archive, "3").err.contains("bytes decompressed"));
    assert!(asked(&archive, "4").err.contains("index ranges"));
    // A byte of the last chunk, which is the last section.
    let mut bytes = std::fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    folder.file("other.fold", bytes);
    assert_eq!(asked(&other, "2").text(), expected);
    run(&["find", &other, "f: B1 B2", "--method", "1"]).fails_with(&["chunk 6 of 6"]);
    let found = run(&["find", &other, "f: B1 B2", "--all", "--method", "1", "--lenient"]).ok();
    assert_eq!(found.text(), expected);
    assert!(found.err.contains("chunk 6 of 6") && found.err.contains("unfolded"), "{}", found.err);
}

#[test]
fn a_pattern_stands_for_all_functions_that_have_the_blocks() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let shown = run(&["find", &trace, "?: x"]).ok().text();
    let expected = "count      2\nfunctions  2 of 2\nfirst      t.calls, event 5, in main > f > g\n\
                    last       t.calls, event 18, in main > f\n              1       50 %  f\n\
                    \x20             1       50 %  g\n";
    assert_eq!(shown, expected);
    let shown = run(&["find", &trace, "m*: 1"]).ok().text();
    assert_eq!(shown, "count      1\nfunction   main\nfirst      t.calls, event 1, in main\n");
    let all = run(&["find", &trace, "[fg]: x", "--all", "--stacks"]).ok().text();
    assert_eq!(all, "t.calls\t18\t18\tf\tmain > f\nt.calls\t5\t5\tg\tmain > f > g\n");
    assert_eq!(run(&["find", &trace, "*: x", "--first"]).ok().text(), "t.calls\t5\t5\tg\n");
    assert_eq!(run(&["find", &trace, "*: x", "--nth", "2"]).ok().text(), "t.calls\t5\t5\tg\n");
    let found = run(&["find", &trace, "*: x", "--json"]).ok().json();
    assert_eq!(found["functions"], json!([{"function": "f", "count": 1}, {"function": "g", "count": 1}]));
    assert_eq!(found["first"]["function"], "g");
    run(&["find", &trace, "'*': x"]).nothing_with(&["no function is called *"]);
    run(&["find", &trace, "*: B1 nix"]).nothing_with(&["none of the 3 functions"]);
    assert_eq!(run(&["find", &trace, "/^[fg]$/: x", "--count"]).ok().text(), "2\n");
    assert_eq!(run(&["find", &trace, "f: B[12]", "--count"]).ok().text(), "5\n");
    assert_eq!(run(&["find", &trace, "f: /^B[12]$/", "--count"]).ok().text(), "5\n");
    run(&["find", &trace, "f: /B(/"]).fails_with(&["/B(/ is not a regular expression: unclosed group"]);
}

#[test]
fn what_cannot_be_found_is_explained() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE.replace("call g", "call some_function"));
    run(&["find", &trace, "some_fucntion: x"])
        .nothing_with(&["no function is called some_fucntion; near is: some_function"]);
    run(&["find", &trace, "f: B9"]).nothing_with(&["f has no block called B9", "B1, B2, B3, x"]);
    run(&["find", &trace, "f: .. B1"]).fails_with(&[".. stands between two blocks"]);
    run(&["find", &trace, "f: 'B1"]).fails_with(&["quote ' is not closed"]);
    run(&["find", &trace, "f: B1", "--before", "f: B2"]).fails_with(&["--before is for sequences"]);
    run(&["find", &trace, "f:"]).nothing_with(&["no event is called f:"]);
    let none = run(&["find", &trace, "f: B3 B1"]);
    assert_eq!((none.code, none.text().as_str()), (Some(1), "count      0\n"));
    let few = run(&["find", &trace, "f: B1", "--nth", "4"]);
    assert!(few.code == Some(1) && few.err.contains("only 3 occurrences"), "{}", few.err);
    // A frame that began before the trace did.
    let cut = folder.file("cut.calls", "1\n2\ncall f\n1\nreturn\nreturn\n");
    let unknown = run(&["find", &cut, "?: 1 2"]);
    assert_eq!((unknown.code, unknown.text().as_str()), (Some(1), "count      0\n"));
    assert!(unknown.err.contains("does not show ? being entered"), "{}", unknown.err);
    // Without functions a colon is a character like any other.
    let log = folder.file("log.txt", "a:\nb\na:\nb\n");
    assert_eq!(run(&["find", &log, "a: b", "--count"]).ok().text(), "2\n");
    // With functions it needs quotes.
    let both = folder.file("both.calls", "call f\na:\nb\nreturn\n");
    run(&["find", &both, "a: b"]).nothing_with(&["no function is called a"]);
    assert_eq!(run(&["find", &both, "'a:' b", "--count"]).ok().text(), "1\n");
    assert_eq!(run(&["find", &both, "f: a: b", "--count"]).ok().text(), "1\n");
}

#[test]
fn hostile_names_are_escaped_and_can_be_called() {
    let folder = Folder::new();
    let trace = folder.file(
        "t.calls",
        b"call a: b\n\x1b[2J\ncall std::f<'x'>\n1\nreturn\n\xff\nreturn\ncall x\x1b]\n1\nreturn\n",
    );
    let ask = |query: &str| run(&["find", &trace, query, "--all", "--stacks"]).ok().text();
    assert_eq!(ask(r"'a: b': \u{1b}[2J \xff"), "t.calls\t1\t5\ta: b\n");
    assert_eq!(ask("'a: b': '\u{1b}[2J' *"), "t.calls\t1\t5\ta: b\n");
    assert_eq!(ask("std::f<'x'>: 1"), "t.calls\t3\t3\ta: b > std::f<'x'>\n");
    assert_eq!(ask(r"x\u{1b}]: 1"), "t.calls\t8\t8\tx\\u{1b}]\n");
    let all = [run(&["find", &trace, "*: *"]), run(&["find", &trace, "x\u{1b}: 1"])];
    let json = run(&["find", &trace, "*: *", "--json", "--all", "--stacks"]).ok();
    assert!(!json.text().contains('\u{1b}') && json.json()["count"] == 4, "{}", json.text());
    for run in all {
        assert!(
            !run.text().contains('\u{1b}') && !run.err.contains('\u{1b}'),
            "{:?}{:?}",
            run.text(),
            run.err
        );
    }
}

#[test]
fn calls_are_blocks_where_a_trace_has_nothing_else() {
    // 0x1 calls 0x2 and 0x3, which calls 0x1, which calls itself and then 0x2.
    let log = "E0x1\nE0x2\nX0x2\nE0x3\nE0x1\nE0x1\nX0x1\nE0x2\nX0x2\nX0x1\nX0x3\nX0x1\n";
    let ask = |query: &str| {
        run_with_input(&["find", "-", query, "--all", "--stacks", "--format", "finstrument"], log.as_bytes())
            .text()
    };
    assert_eq!(ask("0x1: 0x2 0x3"), "stdin\t1\t3\t0x1\n");
    assert_eq!(ask("0x1: 0x1 0x2"), "stdin\t5\t7\t0x1 > 0x3 > 0x1\n");
    assert_eq!(ask("0x1: 0x1"), "stdin\t5\t5\t0x1 > 0x3 > 0x1\n");
    assert_eq!(ask("0x3: *"), "stdin\t4\t4\t0x1 > 0x3\n");
    let slice = |name: &str, start: u64, duration: u64| {
        format!("{{\"ph\":\"X\",\"name\":\"{name}\",\"pid\":1,\"tid\":1,\"ts\":{start},\"dur\":{duration}}}")
    };
    let trace = [slice("step", 10, 50), slice("load", 20, 5), slice("save", 30, 5)].join(",");
    let found = run_with_input(&["find", "--calls", "-", "step: load save"], format!("[{trace}]").as_bytes());
    let text = found.ok().text();
    assert!(text.contains("events 1 to 3, at 10.0 µs, in step\n"), "{text}");
}

#[test]
fn every_thread_is_looked_at() {
    let folder = Folder::new();
    let trace = folder.file(
        "t.calls",
        "thread 1\ncall f\na\nthread 2\ncall f\na\nb\na\nb\nthread 1\nb\nthread 3\ncall f\n",
    );
    let shown = run(&["find", &trace, "f: a b"]).ok().text();
    assert!(shown.contains("count      3\nstreams    2 of 3\nfirst      "), "{shown}");
    let streams = run(&["find", &trace, "f: a b", "--per-stream"]).ok().text();
    assert!(streams.lines().count() == 2 && streams.contains("66.7 %"), "{streams}");
    let few = run(&["find", &trace, "f: a b", "--all", "--top", "2"]).ok();
    assert!(few.text().lines().count() == 2 && few.err.contains("1 more"), "{}", few.err);
}

#[test]
fn a_file_of_queries_is_answered_line_by_line() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let queries =
        folder.file("q.txt", "\u{feff}# paths\r\nf: B1 B2 B3\r\n\n  main: 1  \nB1 B2\n*: x\nf: B3 B1\n");
    let ran = run(&["find", &archive, "--queries", &queries]).ok();
    let answers = lines(&ran);
    let first = json!({"stream": "t.calls", "start": 9, "end": 11, "depth": 2});
    let expected = json!({"line": 2, "query": "f: B1 B2 B3", "function": "f", "count": 2, "streams": 1,
        "first": first, "scheme": "folded"});
    assert_eq!(answers[0], expected);
    let counts: Vec<_> = answers.iter().map(|answer| (&answer["line"], &answer["count"])).collect();
    let expected = json!([[2, 2], [4, 1], [5, 1], [6, 2], [7, 0]]);
    assert_eq!(json!(counts), expected);
    assert_eq!(answers[1]["query"], "main: 1");
    assert_eq!(answers[2]["first"], json!({"stream": "t.calls", "start": 9, "end": 10}));
    assert_eq!(answers[3]["functions"][1], json!({"function": "g", "count": 1}));
    for more in [&["--method", "1"][..], &["--threads", "1"], &["--threads", "3"]] {
        let again = run(&[&["find", &archive, "--queries", &queries], more].concat()).ok();
        let others = lines(&again);
        for (answer, other) in answers.iter().zip(others) {
            assert_eq!((&answer["count"], &answer["first"]), (&other["count"], &other["first"]));
        }
    }
    let explained = run(&["find", &archive, "--queries", &queries, "--explain", "--stacks"]).ok();
    assert!(explained.err.contains("opened in"), "{}", explained.err);
    assert_eq!(lines(&explained)[0]["first"]["stack"], json!(["main", "f", "f"]));
    assert_eq!(lines(&explained)[0]["searches"][0]["scheme"], "folded");
    // From standard input, and nothing found.
    let none = run_with_input(&["find", &archive, "--queries", "-"], b"f: B3 B1");
    assert_eq!((none.code, lines(&none).len()), (Some(1), 1));
    let empty = run_with_input(&["find", &archive, "--queries", "-"], b"# nothing\n\n");
    assert_eq!((empty.code, empty.text().as_str()), (Some(1), ""));
}

#[test]
fn bad_lines_are_reported_and_the_others_answered() {
    let folder = Folder::new();
    let trace = folder.file("t.calls", TRACE);
    let queries = folder.file("q.txt", b"f: B1\nf: B9\n\xff\n'open\n\x1b[2J: x\nmain: 2\n");
    let ran = run(&["find", &trace, "--queries", &queries]);
    assert_eq!(ran.code, Some(2));
    let answers = lines(&ran);
    assert_eq!(answers.len(), 6);
    assert_eq!((&answers[0]["count"], &answers[5]["count"]), (&json!(3), &json!(1)));
    // What does not occur is an answer.
    for (index, line) in [(1, 2), (4, 5)] {
        assert!(answers[index]["count"] == 0 && answers[index]["line"] == line, "{}", answers[index]);
        assert!(ran.err.contains(&format!("q.txt, line {line}: ")), "{}", ran.err);
    }
    for (index, line) in [(2, 3), (3, 4)] {
        assert!(answers[index]["error"].is_string() && answers[index]["line"] == line, "{}", answers[index]);
        assert!(ran.err.contains(&format!("q.txt, line {line}: ")), "{}", ran.err);
    }
    assert!(!ran.err.contains('\u{1b}') && !ran.text().contains('\u{1b}'));
    run(&["find", &trace, "--queries", &folder.at("absent")]).fails_with(&["absent"]);
    run(&["find", "-", "--queries", "-"]).fails_with(&["both the trace and the queries"]);
    run(&["find", &trace, "--queries", &queries, "--count"]).fails_with(&["--count"]);
    run(&["find", &trace, "--queries", &queries, "--before", "x"]).fails_with(&["--before"]);
}

/// An archive of a few bytes: 2^58 calls of `f` in each other, then one of 2^58 blocks.
fn giant() -> Vec<u8> {
    let mut alphabet = Alphabet::default();
    let owner = [Field { key: "function", value: Value::Text(b"f\x1b") }];
    let block = |name| Event { role: Role::Block, fields: &owner, ..Event::named(name) };
    let enter = Event { role: Role::Enter, ..Event::named("f\x1b") };
    let leave = Event { role: Role::Leave, fields: &owner, ..Event::named("f\x1b") };
    let [enter, leave, a, b] =
        [enter, leave, block("a"), block("b")].map(|e| alphabet.intern(&e, None).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let times = 1 << 58;
    let down = builder.rule(&[enter, a].map(Item::once)).unwrap();
    let up = builder.rule(&[b, leave].map(Item::once)).unwrap();
    let body = [Item::new(Target::Rule(down), times), Item::new(Target::Rule(up), times)];
    let blocks = [Item::once(enter), Item::once(a), Item::new(Target::Symbol(b), times)];
    let root = builder.rule(&[&body[..], &blocks].concat()).unwrap();
    builder.stream(FoldedStream::new("giant\x1b[2J", "x", root));
    let mut file = Vec::new();
    archive::write(&builder.finish(), &mut file).unwrap();
    file
}

#[test]
fn an_archive_may_claim_anything() {
    let folder = Folder::new();
    folder.file("giant.fold", giant());
    let limited = |command: &str| shell(&format!("ulimit -v 600000; \"$loopfold\" {command}"), folder.path());
    let times = 1u64 << 58;
    let count = limited(r"find giant.fold 'f\u{1b}: a b' --count").ok().text();
    assert_eq!(count, format!("{}\n", times + 1));
    let count = limited(r"find giant.fold 'f\u{1b}: a .. b' --count").ok().text();
    assert_eq!(count, format!("{}\n", 2 * times));
    let shown = limited(r"find giant.fold 'f\u{1b}: a .. b'").ok().text();
    assert!(
        shown.contains("… 288,230,376,151,711,736 more > f\\u{1b} > f\\u{1b}") && !shown.contains('\u{1b}'),
        "{shown}"
    );
    assert!(shown.contains("last       giant\\u{1b}[2J, events "), "{shown}");
    let few = limited(r"find giant.fold '*: a .. b' --all --top 3 --stacks").ok();
    assert_eq!(few.text().lines().count(), 3);
    assert!(few.err.contains("more (--top 0"), "{}", few.err);
    let nth = limited(&format!(r"find giant.fold '*: a b' --nth {}", times + 1)).ok().text();
    assert_eq!(nth, format!("giant\\u{{1b}}[2J\t{}\t{}\n", 4 * times + 1, 4 * times + 2));
    let json = limited(r"find giant.fold '*: b' --all --json --top 2 --stacks").ok().json();
    assert_eq!((&json["left_out"], &json["first"]["stack_depth"]), (&json!(2 * times - 2), &json!(times)));
    limited(r"find giant.fold '*: b' --method 1").fails_with(&["would take too long"]);
    // Whoever reads the output has seen enough.
    let cut = limited(r"find giant.fold '*: b' --all --top 0 | head -n 2").ok();
    assert!(cut.text().lines().count() == 2 && cut.err.is_empty(), "{}", cut.err);
    let cut = limited(r"find giant.fold '*: b' --all --top 0 --json | head -c 1000").ok();
    assert!(cut.out.len() == 1000 && cut.err.is_empty(), "{}", cut.err);
    folder.file("q.txt", "*: b\n".repeat(5_000));
    let cut = limited("find giant.fold --queries q.txt | head -n 1").ok();
    assert!(cut.text().lines().count() == 1 && cut.err.is_empty(), "{}", cut.err);
}
