//! The commands `find` and `context`: what they print, and what they make of bad queries.

use crate::support::{Folder, run, run_with_input, shell};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Event};
use serde_json::json;

/// One event a line.
fn lines(text: &str) -> String {
    text.chars().map(|letter| format!("{letter}\n")).collect()
}

#[test]
fn a_sequence_is_counted_and_located() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("xabcabcabdabc"));
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    for input in [&trace, &archive] {
        let text = run(&["find", input, "a b c"]).ok().text();
        assert_eq!(
            text, "count     3\nfirst     t.txt, events 1 to 3\nlast      t.txt, events 10 to 12\n",
            "{text}"
        );
        assert_eq!(run(&["find", "--count", input, "a b"]).ok().text(), "4\n");
        assert_eq!(run(&["find", input, "a b", "--count"]).ok().text(), "4\n");
        assert_eq!(run(&["find", input, "--first", "b c"]).ok().text(), "t.txt\t2\t3\n");
        assert_eq!(run(&["find", input, "--nth", "4", "a"]).ok().text(), "t.txt\t10\t10\n");
        let all = run(&["find", input, "--all", "c a b"]).ok().text();
        assert_eq!(all, "t.txt\t3\t5\nt.txt\t6\t8\n");
    }
    let json = run(&["find", &archive, "a b d", "--json", "--all"]).ok().json();
    let place = json!({"stream": "t.txt", "start": 7, "end": 9});
    let expected = json!({"query": "a b d", "count": 1, "first": place, "scheme": "folded", "left_out": 0, "all": [place]});
    assert_eq!(json, expected);
}

#[test]
fn what_does_not_occur_is_nothing_found() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("abab"));
    let none = run(&["find", &trace, "b b"]);
    assert_eq!((none.code, none.text().as_str()), (Some(1), "count     0\n"), "{}", none.err);
    let none = run(&["find", &trace, "b b", "--json"]);
    assert_eq!(none.code, Some(1));
    assert_eq!(none.json(), json!({"query": "b b", "count": 0, "first": null, "scheme": "folded"}));
    assert_eq!(run(&["find", &trace, "b b", "--all"]).code, Some(1));
    let huge = run(&["find", &trace, "a", "--nth", "18446744073709551615"]);
    assert_eq!((huge.code, huge.text().as_str()), (Some(1), ""));
    assert!(huge.err.contains("only 2 occurrences"), "{}", huge.err);
    let huge = run(&["find", &trace, "a", "--nth", "3", "--json"]);
    assert_eq!((huge.code, &huge.json()["nth"]), (Some(1), &json!(null)));
}

#[test]
fn bad_queries_are_explained() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "MPI_Send\nMPI_Recv\nread a block\n\u{1b}[2J\n");
    run(&["find", &trace, ""]).fails_with(&["query is empty"]);
    run(&["find", &trace, "  "]).fails_with(&["query is empty"]);
    run(&["find", &trace, "MPI_Send 'MPI_Recv"]).fails_with(&["quote ' is not closed"]);
    run(&["find", &trace, "MPI_Send /MPI_(/"]).fails_with(&["/MPI_(/ is not a regular expression: unclosed"]);
    run(&["find", &trace, "MPI_Send", "--nth", "0"]).fails_with(&["from 1"]);
    run(&["find", &trace, "MPI_Send", "--nth", "18446744073709551616"]).fails_with(&["18446744073709551616"]);
    run(&["find", &trace, "MPI_Send", "--first", "--all"]).fails_with(&["--first"]);
    run(&["find", &trace, "MPI_Send", "--all", "--before", "MPI_Recv"]).fails_with(&["--before"]);
    run(&["find", &trace]).fails_with(&["events to find"]);
    run(&["find", &folder.at("absent"), "a"]).fails_with(&["absent"]);
    let short = folder.file("short.txt", "x\n");
    run(&["find", &short, &"x ".repeat(20_000)]).fails_with(&["20000 events", "at most 16384"]);
    run(&["context", &trace, "MPI_Send", "--depth", "64"]).fails_with(&["at most 64"]);
    // What an error repeats cannot drive a terminal, and a name may be called as it is shown.
    let hostile = run(&["find", &trace, "\u{1b}[3J"]);
    assert!(hostile.code == Some(1) && !hostile.err.contains('\u{1b}'), "{:?}", hostile.err);
    assert_eq!(run(&["find", &trace, r"\u{1b}[2J", "--count"]).ok().text(), "1\n");
    assert_eq!(run(&["find", &trace, "'read a block'", "--count"]).ok().text(), "1\n");
    assert_eq!(run(&["find", &trace, "MPI_Recv \"read a block\"", "--first"]).ok().text(), "t.txt\t1\t2\n");
}

#[test]
fn an_event_that_does_not_occur_is_a_count_of_0() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", "MPI_Send\nMPI_Recv\nread a block\n");
    let none = run(&["find", &trace, "MPI_Sned"]);
    assert_eq!(none.text(), "count     0\n");
    none.nothing_with(&["no event is called MPI_Sned; near is: MPI_Send"]);
    let none = run(&["find", &trace, "MPI_Send MPI_X*", "--count"]);
    assert_eq!(none.text(), "0\n");
    none.nothing_with(&["no event fits MPI_X*"]);
    let none = run(&["find", &trace, "nix", "--json"]);
    assert_eq!(none.json(), json!({"query": "nix", "count": 0, "first": null, "scheme": "folded"}));
    none.nothing_with(&["no event is called nix"]);
    run(&["find", &trace, "MPI_Send", "--before", "mpi_recv"]).nothing_with(&["mpi_recv", "MPI_Recv"]);
    run(&["context", &trace, "nothing like that"]).nothing_with(&["no event is called nothing"]);
    let queries = folder.file("q.txt", "MPI_Send\nMPI_Sned\n");
    let asked = run(&["find", &trace, "--queries", &queries]).ok();
    assert!(asked.err.contains("q.txt, line 2: no event is called MPI_Sned"), "{}", asked.err);
}

#[test]
fn patterns_stand_for_events() {
    let folder = Folder::new();
    let calls = "MPI_Irecv src=4 tag=1 bytes=8 comm=0\nMPI_Recv src=4 tag=1 bytes=8 comm=0\n\
                 MPI_Recv src=5 tag=1 bytes=8 comm=0\nMPI_Send dest=4 tag=2 bytes=8 comm=0\n";
    let trace = folder.file("rank-0.txt", calls.repeat(3));
    for (query, count) in [
        ("MPI_*", "12"),
        ("MPI_*ecv", "9"),
        ("MPI_Recv src=4", "3"),
        ("MPI_Recv src=*", "6"),
        ("src=4", "6"),
        ("MPI_*ecv src=4 tag=1 MPI_Recv bytes=8 src=5", "3"),
        ("/^MPI_I?recv/ MPI_Recv", "3"),
        ("'/src=[45] .*comm=0$/' \"/dest/\"", "3"),
        ("MPI_Send 'MPI_Irecv src=4'", "2"),
    ] {
        assert_eq!(run(&["find", &trace, query, "--count"]).ok().text(), format!("{count}\n"), "{query}");
    }
    run(&["find", &trace, "MPI_Recv src=9"])
        .nothing_with(&["no event fits MPI_Recv src=9; there are: MPI_Recv src=4 tag=1"]);
    let context = run(&["context", &trace, "MPI_*ecv src=4", "--json"]).ok().json();
    assert_eq!(context["count"], 6);
    let costs = folder.file("costs.txt", "MPI_* 1\nMPI_Recv src=5 3\nMPI_Send 2\n");
    let hot =
        run(&["hot", &trace, "--cost", &costs, "--min-length", "1", "--max-length", "1", "--json"]).ok();
    assert_eq!(hot.json()["total"], 3.0 * (1.0 + 1.0 + 3.0 + 2.0));
    let slow = run(&["iterations", &trace, "MPI_S*", "--json"]).ok().json();
    assert_eq!(slow["loops"][0]["iterations"].as_array().map(Vec::len), Some(3));
    run(&["iterations", &trace, "MPI_X"]).nothing_with(&["no event is called MPI_X"]);
    // Loops of two iterations stay as they are, so one more.
    let aligned = run(&["loops", &trace, "--align", "MPI_*end", "--exact", "--json"]).ok().json();
    let nest = &aligned["classes"][0]["nest"];
    assert_eq!(nest[3]["body"][0], "MPI_Send dest=4 tag=2 bytes=8 comm=0", "{nest}");
}

#[test]
fn names_stand_for_all_events_of_that_name_and_numbers_for_their_value() {
    let slice = |name: &str, start: u64| {
        format!("{{\"ph\":\"X\",\"name\":\"{name}\",\"pid\":1,\"tid\":1,\"ts\":{start},\"dur\":2}}")
    };
    let trace = format!("[{},{},{}]", slice("f", 10), slice("g", 20), slice("f", 30));
    let ask = |query: &str| {
        let found = run_with_input(&["find", "--calls", "--count", "-", query], trace.as_bytes());
        found.text().trim().to_string()
    };
    assert_eq!(ask("f"), "4");
    assert_eq!(ask("'enter f'"), "2");
    assert_eq!(ask("f f"), "2");
    assert_eq!(ask("'leave f' g"), "1");
    // When it happened, since the first event and in nanoseconds.
    let first = run_with_input(&["find", "-", "g"], trace.as_bytes()).ok().text();
    assert!(first.contains("event 1, at 10.0 µs"), "{first}");
    let first = run_with_input(&["find", "-", "g", "--first"], trace.as_bytes()).ok().text();
    assert!(first.ends_with("\t1\t1\t20000\n"), "{first}");
    let integers: Vec<u8> = [7u32, 255, 7, 255].iter().flat_map(|number| number.to_le_bytes()).collect();
    for query in ["7 255", "0x7 0xff", "7 0xFF"] {
        let found = run_with_input(&["find", "--format", "u32", "--count", "-", query], &integers).ok();
        assert_eq!(found.text(), "2\n", "{query}");
    }
}

#[test]
fn every_stream_is_looked_at() {
    let folder = Folder::new();
    let one = folder.file("one.txt", lines("aabb"));
    let two = folder.file("two.txt", lines("abab"));
    let three = folder.file("three.txt", lines("bb"));
    let ask = |more: &[&str]| {
        let mut arguments = vec!["find", &one, &two, &three, "a b"];
        arguments.extend(more);
        run(&arguments).ok()
    };
    assert_eq!(ask(&["--count"]).text(), "3\n");
    assert!(ask(&[]).text().contains("streams   2 of 3\n"));
    assert_eq!(ask(&["--nth", "2"]).text(), "two.txt\t0\t1\n");
    let limited = ask(&["--all", "--top", "2"]);
    assert_eq!(limited.text(), "one.txt\t1\t2\ntwo.txt\t0\t1\n");
    assert!(limited.err.contains("1 more"), "{}", limited.err);
    assert_eq!(ask(&["--all", "--top", "2", "--json"]).json()["left_out"], 1);
    assert_eq!(ask(&["--all", "--top", "0"]).text().lines().count(), 3);
    let streams = ask(&["--per-stream"]).text();
    let streams: Vec<&str> = streams.lines().collect();
    assert!(
        streams.len() == 2 && streams[0].contains("66.7 %") && streams[0].contains("two.txt, events 0 to 1")
    );
    let streams = ask(&["--per-stream", "--json"]).json()["streams"].clone();
    assert_eq!(streams[2], json!({"stream": "three.txt", "count": 0, "first": null}));
    assert_eq!(streams[1]["count"], 2);
}

#[test]
fn the_earliest_is_found_where_streams_have_times() {
    let trace = "name,thread,time\na,1,10\nb,2,15\nb,1,20\n";
    let columns = [
        "find",
        "--event",
        "name",
        "--stream-by",
        "thread",
        "--start",
        "time",
        "--time-unit",
        "ns",
        "-",
        "b",
    ];
    let found = run_with_input(&columns, trace.as_bytes()).ok().text();
    assert!(found.contains("first     1, event 1, at 10 ns\nearliest  2, event 0, at 5 ns\n"), "{found}");
}

#[test]
fn one_thing_before_another() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("fmmfmfm"));
    let other = folder.file("u.txt", lines("fm"));
    let text = run(&["find", &trace, "m", "--before", "f"]).ok().text();
    let expected = "before    3 of 4 occurrences\nfirst     t.txt, event 1\nnext      t.txt, event 3\n\
                    earlier   t.txt, event 0\n";
    assert_eq!(text, expected);
    assert_eq!(
        run(&["find", &trace, "m f", "--before", "f m", "--first"]).ok().text(),
        "t.txt\t2\t3\nt.txt\t5\t6\n"
    );
    let json = run(&["find", &trace, &other, "m", "--before", "f", "--json", "--per-stream"]).ok().json();
    assert_eq!((&json["count"], &json["others"], &json["before_count"]), (&json!(5), &json!(4), &json!(3)));
    assert_eq!(json["first"]["next"], json!({"stream": "t.txt", "start": 3, "end": 3}));
    assert_eq!(json["streams"][1]["first"], json!(null));
    assert_eq!(json["streams"][1]["earlier"]["start"], 0);
    let never = run(&["find", &other, "m", "--before", "f"]);
    assert_eq!(never.code, Some(1));
    assert!(never.text().starts_with("before    0 of 1 occurrence\n"), "{}", never.text());
}

#[test]
fn the_context_is_a_tree_with_counts() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("orwrwrwcorrwc"));
    let text = run(&["context", &trace, "r", "--depth", "2"]).ok().text();
    let expected = "\
5 occurrences

after it
              4       80 %  w
              2       40 %    r
              2       40 %    c
              1       20 %  r → w

before it
              2       40 %  o
              1       20 %    c
              1       20 %    start of stream
              2       40 %  w ← r
              1       20 %  r ← o
";
    assert_eq!(text, expected, "{text}");
    let json = run(&["context", &trace, "w c", "--depth", "1", "--json"]).ok().json();
    let expected = json!({"query": "w c", "count": 2, "depth": 1,
        "after": [{"event": "o", "count": 1}, {"event": null, "count": 1}],
        "before": [{"event": "r", "count": 2}]});
    assert_eq!(json, expected);
    let few = run(&["context", &trace, "r", "--depth", "1", "--top", "1", "--json"]).ok().json();
    assert_eq!(few["before"], json!([{"event": "o", "count": 2}, {"others": 2, "count": 3}]));
    let few = run(&["context", &trace, "r", "--depth", "1", "--top", "1"]).ok().text();
    assert!(few.contains("              3       60 %  2 others\n"), "{few}");
    let none = run(&["context", &trace, "c c"]);
    assert_eq!((none.code, none.text().as_str()), (Some(1), "0 occurrences\n"));
}

/// An archive of a few bytes: `(a b)` 2^59 times, then a name that drives terminals.
fn giant() -> Vec<u8> {
    let mut alphabet = Alphabet::default();
    let [a, b, c] = ["a", "b", "\x1b[2J"].map(|name| alphabet.intern(&Event::named(name), None).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let mut rule = builder.rule(&[Item::once(a), Item::once(b)]).unwrap();
    for _ in 0..59 {
        let half = Item::new(Target::Rule(rule), 1);
        rule = builder.rule(&[half, half]).unwrap();
    }
    let root = builder.rule(&[Item::new(Target::Rule(rule), 1), Item::once(c)]).unwrap();
    builder.stream(FoldedStream::new("giant\x1b[2J", "x", root));
    let mut file = Vec::new();
    archive::write(&builder.finish(), &mut file).unwrap();
    file
}

#[test]
fn an_archive_may_claim_anything() {
    let folder = Folder::new();
    folder.file("giant.fold", giant());
    let limited = |command: &str| shell(&format!("ulimit -v 400000; \"$loopfold\" {command}"), folder.path());
    assert_eq!(limited("find giant.fold 'a b' --count").ok().text(), format!("{}\n", 1u64 << 59));
    let last = limited("find giant.fold 'b a' --nth 576460752303423487").ok().text();
    assert_eq!(last, "giant\\u{1b}[2J\t1152921504606846973\t1152921504606846974\n");
    let all = limited("find giant.fold b --all | head -n 2").ok().text();
    assert_eq!(all.lines().count(), 2);
    let few = limited("find giant.fold b --all --top 2").ok();
    assert!(
        few.text().lines().count() == 2 && few.err.contains("576,460,752,303,423,486 more"),
        "{}",
        few.err
    );
    let before = limited("find giant.fold 'b a' --before '\\u{1b}[2J' --json").ok().json();
    assert_eq!(before["first"]["next"]["start"], json!(1u64 << 60));
    let context = limited("context giant.fold b --depth 20").ok().text();
    assert!(
        context.contains("576,460,752,303,423,488 occurrences") && !context.contains('\u{1b}'),
        "{context}"
    );
    assert!(context.contains(r"\u{1b}[2J → end of stream"), "{context}");
}
