//! The command `hot`.

use crate::support::{Folder, run, run_with_input};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Event};
use serde_json::json;

/// The events of the subpaths, in the order of the output.
fn subpaths(json: &serde_json::Value) -> Vec<String> {
    let text = |hot: &serde_json::Value| {
        hot["events"].as_array().unwrap().iter().map(|event| event.as_str().unwrap()).collect::<String>()
    };
    json["subpaths"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn figure_five_with_a_string_four_times_as_frequent() {
    let trace = "a\nb\nb\nc\n".repeat(4);
    let ask = |more: &[&str]| {
        let mut arguments = vec!["hot", "--json", "--max-length", "3", "--min-cost", "6", "-"];
        arguments.extend(more);
        run_with_input(&arguments, trace.as_bytes()).ok().json()
    };
    assert_eq!(subpaths(&ask(&[])), ["ab", "bb", "bc", "ca"]);
    let all = ask(&["--all"]);
    assert_eq!(subpaths(&all), ["abb", "bbc", "bca", "cab", "ab", "bb", "bc", "ca"]);
    let paper = ask(&["--method", "paper", "--folder", "sequitur"]);
    assert_eq!(subpaths(&paper), ["ab", "bc"]);
    assert_eq!(
        all["subpaths"][4],
        json!({"events": ["a", "b"], "count": 4, "cost": 8, "share": 0.5, "streams": ["stdin"], "stream_counts": [4]})
    );
    assert_eq!(all["found"], 8);
    assert_eq!((&all["total"], &all["limit"]), (&json!(16), &json!(6)));
    assert_eq!((&all["selection"], &paper["selection"]), (&json!("all"), &json!("paper")));
}

#[test]
fn the_table_on_a_terminal() {
    let folder = Folder::new();
    let first = folder.file("first.txt", "x\n".to_string() + &"one\ntwo\ntwo\n".repeat(50));
    let second = folder.file("second.txt", "one\ntwo\ny\n".repeat(10));
    let text = run(&["hot", &first, &second, "--min-cost", "10%"]).ok().text();
    let expected = "\
6 minimal hot subpaths of 2 to 100 events
each costs at least 19 in all, 10 % of 181

count  cost   share     streams  events
   60   120  66.3 %           2  one two
                                   and 2 rotations or overlaps
    9    27  14.9 %  second.txt  y one two
   10    20    11 %  second.txt  two y
    1    19  10.5 %   first.txt  x (one two^2)^6
";
    assert_eq!(text, expected);
    let top = run(&["hot", &first, &second, "--min-cost", "10%", "--top", "1"]).ok().text();
    assert!(top.ends_with(" overlaps\n… and 3 more (--top 0 shows all)\n"), "{top}");
    let json = run(&["hot", &first, &second, "--min-cost", "10%", "--json"]).ok().json();
    assert_eq!(json["subpaths"][0]["streams"], json!(["first.txt", "second.txt"]));
    assert_eq!(json["subpaths"][0]["stream_counts"], json!([50, 10]));
    let long = run(&["hot", &first, "--min-length", "30", "--max-length", "31", "--top", "1"]).ok().text();
    assert!(long.contains("(one two^2)^10\n"), "{long}");
}

#[test]
fn nothing_hot_is_exit_one() {
    let none = run_with_input(&["hot", "--min-cost", "100", "-"], b"a\nb\na\nb\n");
    assert_eq!(none.code, Some(1), "{}", none.err);
    assert!(
        none.text().starts_with("no minimal hot subpath of 2 to 100 events\neach costs at least 100 in all"),
        "{}",
        none.text()
    );
    let json = run_with_input(&["hot", "--min-cost", "100", "--json", "-"], b"a\nb\na\nb\n");
    assert_eq!((json.code, &json.json()["subpaths"]), (Some(1), &json!([])));
    let empty = run_with_input(&["hot", "-"], b"");
    assert_eq!(empty.code, Some(1), "{}", empty.err);
}

#[test]
fn costs_from_the_trace() {
    let folder = Folder::new();
    let rows: String = (0..20)
        .map(|row| match row % 4 {
            0 => format!("read,{row},10,1.5\n"),
            1 => format!("write,{row},30,\n"),
            2 => format!("read,{row},20,2.5\n"),
            _ => format!("close,{row},,0\n"),
        })
        .collect();
    let csv = folder.file("t.csv", format!("name,start_ns,dur_ns,pages\n{rows}"));
    let read = ["--event", "name", "--start", "start_ns", "--duration", "dur_ns", "--metric", "pages"];
    let ask = |more: &[&str]| run(&[&["hot", &csv, "--top", "1"][..], &read, more].concat());
    // A read takes 15 ns on average, a write 30.
    let duration = ask(&["--cost", "duration", "--json"]).ok();
    let hot = &duration.json()["subpaths"][0];
    assert_eq!(
        (&hot["events"], &hot["count"], &hot["cost"]),
        (&json!(["read", "write"]), &json!(5), &json!(225))
    );
    assert_eq!(duration.json()["total"], 300);
    assert!(duration.err.contains("has no value for close"), "{}", duration.err);
    let text = ask(&["--cost", "duration", "--min-cost", "0.2us"]).ok().text();
    assert!(text.contains("at least 200 ns in all, 66.7 % of 300 ns"), "{text}");
    let metric = ask(&["--cost", "pages", "--json"]).ok().json();
    assert_eq!((&metric["total"], &metric["cost_of"]), (&json!(20), &json!("pages")));
    ask(&["--cost", "pagse"]).fails_with(&["pagse", "pages", "no such file"]);
    run_with_input(&["hot", "--cost", "duration", "-"], b"a\nb\n").fails_with(&["has no durations"]);
    let negative = folder.file("n.csv", "name,score\na,1\nb,-2\na,1\n");
    let arguments = ["hot", &negative, "--event", "name", "--metric", "score", "--cost", "score"];
    run(&arguments).fails_with(&["score", "b cannot cost -2"]);
}

#[test]
fn costs_from_a_file() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "a\nb c\na\nb c\nd\n".repeat(10));
    let costs = folder.file("costs", "a\t2.5\n\nb c 4\n");
    let run_with = |costs: &str| run(&["hot", &trace, "--cost", costs, "--json"]);
    let given = run_with(&costs).ok();
    assert_eq!(given.json()["total"], 130);
    assert_eq!(given.json()["subpaths"][0]["cost"], 130);
    assert!(given.err.contains("has no value for d, which cost 0"), "{}", given.err);
    for (content, expected) in [
        ("a 1\nbx 3\n", &["line 2", "no event is called bx"][..]),
        ("a 1\nB c 3\n", &["line 2", "B c", "near is: b c"]),
        ("a\n", &["line 1", "an event and a number"]),
        ("a one\n", &["line 1", "\"one\" is not a number"]),
        ("a -1\n", &["line 1", "cannot cost -1"]),
        ("a nan\n", &["line 1", "cannot cost NaN"]),
        ("a inf\n", &["line 1", "cannot cost inf"]),
        ("a 1\nd 1\na 2\n", &["line 3", "on line 1 already"]),
    ] {
        run_with(&folder.file("bad", content)).fails_with(expected);
    }
    run_with(&folder.file("binary", b"a 1\n\xff\xfe 2\n")).fails_with(&["line 2", "UTF-8"]);
    let unknown: String = (0..50).map(|n| format!("unknown{n} 1\n")).collect();
    run_with(&folder.file("many", unknown)).fails_with(&["unknown0", "and 47 more"]);
    let nothing = run_with(&folder.file("zeros", "a 0\nb c 0\nd 0\n"));
    assert_eq!((nothing.code, nothing.json()["total"].as_u64()), (Some(1), Some(0)));
}

/// A name stands for all events of that name, a label for one of them.
#[test]
fn costs_of_names_and_labels() {
    let folder = Folder::new();
    let trace =
        "{\"ph\":\"X\",\"name\":\"f\",\"ts\":0,\"dur\":5},{\"ph\":\"X\",\"name\":\"f\",\"ts\":9,\"dur\":5}";
    let trace = folder.file("t.json", format!("{{\"traceEvents\":[{trace}]}}"));
    let costs = folder.file("costs", "f 1\nleave f 10\n");
    let json = run(&["hot", &trace, "--calls", "--cost", &costs, "--json"]).ok().json();
    assert_eq!(json["total"], 22);
}

#[test]
fn questions_that_make_no_sense() {
    let ask = |more: &[&str]| {
        let mut arguments = vec!["hot", "-"];
        arguments.extend(more);
        run_with_input(&arguments, b"a\nb\na\nb\n")
    };
    ask(&["--min-length", "5", "--max-length", "4"]).fails_with(&["at least 5 and at most 4"]);
    ask(&["--min-length", "0"]).fails_with(&["at least 1 event"]);
    ask(&["--max-length", "99999999"]).fails_with(&["1000000"]);
    for (cost, expected) in [
        ("0", "more than 0"),
        ("-3", "more than 0"),
        ("nan", "neither a number"),
        ("inf", "neither a number"),
        ("1e999", "neither a number"),
        ("x", "neither a number"),
        ("5ms", "neither a number"),
        ("", "neither a number"),
        ("0%", "at most 100 %"),
        ("-1%", "at most 100 %"),
        ("101%", "at most 100 %"),
        ("x%", "neither a number"),
    ] {
        ask(&["--min-cost", cost]).fails_with(&["--min-cost", expected]);
    }
    ask(&["--all", "--method", "paper"]).fails_with(&["--all"]);
    ask(&["--cost", "/nowhere/costs"]).fails_with(&["/nowhere/costs"]);
}

/// An archive of a fold made by hand.
fn archive_of(folder: &Folder, times: u64, streams: usize) -> String {
    let mut alphabet = Alphabet::default();
    let [a, b] = ["a\x1b[31m", "b"].map(|name| alphabet.intern(&Event::named(name), None).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let body = [Item::once(a), Item::new(Target::Symbol(b), times), Item::once(a), Item::once(b)];
    let inner = builder.rule(&body).unwrap();
    let root = builder.rule(&[Item::new(Target::Rule(inner), times), Item::once(a)]).unwrap();
    for stream in 0..streams {
        builder.stream(FoldedStream::new(format!("s{stream}"), "by hand", root));
    }
    let mut bytes = Vec::new();
    archive::write(&builder.finish(), &mut bytes).unwrap();
    folder.file("huge.fold", bytes)
}

#[test]
fn an_archive_that_claims_any_number_of_events() {
    let folder = Folder::new();
    let huge = archive_of(&folder, 1 << 30, 1);
    let hot = run(&["hot", &huge, "--json"]).ok().json();
    assert_eq!(hot["subpaths"][0]["count"], (1u64 << 30) * ((1u64 << 30) - 1));
    let text = run(&["hot", &huge]).ok().text();
    assert!(text.contains("b^2") && !text.contains('\x1b'), "{text}");
    run(&["hot", &huge, "--all", "--min-cost", "1", "--json"]).ok();
    run(&["hot", &huge, "--method", "paper", "--min-cost", "1"]).ok();
    // Together they have more events than 64 bits can count.
    run(&["hot", &archive_of(&folder, 1 << 31, 9)]).fails_with(&["2^64"]);
}
