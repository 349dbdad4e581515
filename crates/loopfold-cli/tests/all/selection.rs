//! What is asked about: some of the events, streams of a class, a part of the streams.

use crate::support::{Folder, run};
use serde_json::{Value, json};

/// Slices of one thread: 20 steps of load, two compute and store, a futex between some, each event
/// 10 µs after the one before, from 1 s on.
fn slices() -> String {
    let mut names = vec!["init"];
    for step in 0..20 {
        names.extend(["load", "compute", "compute"]);
        names.extend((step % 3 == 1).then_some("futex_wait"));
        names.push("store");
    }
    names.push("exit");
    let slice = |(index, name): (usize, &&str)| {
        let start = 1_000_000 + 10 * index;
        format!("{{\"ph\":\"X\",\"name\":\"{name}\",\"pid\":1,\"tid\":1,\"ts\":{start},\"dur\":4}}")
    };
    let slices: Vec<String> = names.iter().enumerate().map(slice).collect();
    format!("[{}]", slices.join(","))
}

/// The trace and an archive of it.
fn inputs(folder: &Folder) -> [String; 2] {
    let trace = folder.file("t.json", slices());
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    [trace, archive]
}

fn events(cat: &Value) -> Vec<&str> {
    let events = cat["streams"][0]["events"].as_array().unwrap();
    events.iter().map(|event| event.as_str().unwrap()).collect()
}

#[test]
fn events_are_kept_and_dropped() {
    let folder = Folder::new();
    for input in inputs(&folder) {
        let nest = run(&["loops", &input, "--drop", "futex*", "--exact", "--json"]).ok().json();
        let expected = json!(["init", {"times": 20, "body": ["load", {"times": 2, "body": ["compute"]}, "store"]}, "exit"]);
        let without_times = |nest: &Value| {
            let mut nest = nest.clone();
            nest[1].as_object_mut().unwrap().remove("time");
            nest[1]["body"][1].as_object_mut().unwrap().remove("time");
            nest
        };
        assert_eq!(without_times(&nest["classes"][0]["nest"]), expected, "{input}");
        let only =
            run(&["cat", &input, "--only", "load", "--only", "/^(store|exit)$/", "--times"]).ok().text();
        let lines: Vec<&str> = only.lines().collect();
        assert_eq!(lines.len(), 41);
        // Times stay as they are.
        assert_eq!(lines[..2], ["1000010000\t4000\tload", "1000040000\t4000\tstore"]);
        let stats = run(&["stats", &input, "--drop", "compute", "--json"]).ok().json();
        assert_eq!((&stats["events"], &stats["alphabet"]), (&json!(49), &json!(5)));
        let found = run(&["find", &input, "load store", "--drop", "compute", "--drop", "futex_wait"]).ok();
        assert_eq!(found.text().lines().next(), Some("count     20"));
        run(&["find", &input, "futex_wait", "--drop", "futex_wait"])
            .nothing_with(&["no event is called futex_wait"]);
        let note = run(&["loops", &input, "--drop", "fuxex_wait"]).ok();
        assert!(
            note.err.contains("--drop fuxex_wait: no event is called fuxex_wait; near is: futex_wait"),
            "{}",
            note.err
        );
        run(&["loops", &input, "--only", "Load*"])
            .fails_with(&["--only Load*: no event fits Load*; near is: load"]);
        run(&["loops", &input, "--only", "/(/"]).fails_with(&["/(/ is not a regular expression"]);
    }
    let [trace, archive] = inputs(&folder);
    let kept = folder.at("kept.fold");
    for input in [trace, archive] {
        run(&["fold", &input, "--drop", "futex*", "-o", &kept]).ok();
        let text = run(&["export", &kept, "--to", "grammar"]).ok().text();
        assert!(!text.contains("futex"), "{text}");
        assert_eq!(run(&["stats", &kept, "--json"]).ok().json()["events"], 82);
        run(&["verify", &kept]).ok();
    }
}

#[test]
fn sums_without_dropped_events_stay_exact() {
    let folder = Folder::new();
    let [trace, _] = inputs(&folder);
    let summed = folder.at("sums.fold");
    run(&["fold", &trace, "--times", "summary", "-o", &summed]).ok();
    let durations =
        |input: &str| run(&["stats", input, "--drop", "compute", "--json"]).ok().json()["durations"].clone();
    assert_eq!(durations(&summed), durations(&trace));
}

#[test]
fn names_are_those_that_are_read_and_those_that_are_shown() {
    let folder = Folder::new();
    let calls = "MPI_Recv src=4 tag=1 bytes=8 comm=0\nMPI_Recv src=5 tag=1 bytes=8 comm=0\nMPI_Send dest=4 tag=2 bytes=8 comm=0\n";
    let trace = folder.file("rank-0.txt", calls.repeat(4));
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let map = folder.file("map", "MPI_Send\tsend\n");
    for input in [&trace, &archive] {
        let cat =
            run(&["cat", input, "--drop", "MPI_Recv src=4", "--key", "name", "--map", &map, "--json"]).ok();
        assert_eq!(events(&cat.json()), ["MPI_Recv", "send"].repeat(4));
        let cat = run(&["cat", input, "--only", "send", "--key", "name", "--map", &map, "--json"]).ok();
        assert_eq!(events(&cat.json()), ["send"].repeat(4));
        let cat = run(&["cat", input, "--only", "MPI_Send", "--peers", "relative", "--json"]).ok();
        assert_eq!(events(&cat.json()), ["MPI_Send dest=+4 tag=2 bytes=8 comm=0"].repeat(4));
    }
}

#[test]
fn parts_keep_their_positions_and_times() {
    let folder = Folder::new();
    for input in inputs(&folder) {
        let whole = run(&["find", &input, "load compute", "--all"]).ok().text();
        let inside: String = whole
            .lines()
            .filter(|line| {
                let start: u64 = line.split('\t').nth(1).unwrap().parse().unwrap();
                (20..40).contains(&start) && start + 1 < 40
            })
            .map(|line| format!("{line}\n"))
            .collect();
        let part = run(&["find", &input, "load compute", "--all", "--from", "20", "--to", "40"]).ok().text();
        assert_eq!(part, inside);
        // Events 20 to 39 begin 200 µs to 390 µs after the first one.
        for (from, to) in [("200us", "400us"), ("0.2ms", "0.0004 s"), ("191us", "391000ns")] {
            let by_time =
                run(&["find", &input, "load compute", "--all", "--from", from, "--to", to]).ok().text();
            assert_eq!(by_time, inside, "{from} {to}");
        }
        let at = run(&["find", &input, "store", "--from", "70"]).ok().text();
        let of_whole = run(&["find", &input, "store", "--all"]).ok().text();
        let first: u64 = of_whole
            .lines()
            .map(|line| line.split('\t').nth(1).unwrap().parse().unwrap())
            .find(|&at| at >= 70)
            .unwrap();
        assert!(at.contains(&format!("event {first}, at {} µs", 10 * first)), "{at}");
        let cat = run(&["cat", &input, "--from", "87", "--json", "--times"]).ok().json();
        assert_eq!((events(&cat), &cat["streams"][0]["from"]), (vec!["store", "exit"], &json!(87)));
        assert_eq!(cat["streams"][0]["start_ns"][0], 1_000_870_000u64);
        let context = run(&["context", &input, "init", "--from", "1"]);
        context.nothing_with(&["no event is called init"]);
        // A part that is stored knows where it comes from.
        let stored = folder.at("part.fold");
        run(&["fold", &input, "--from", "20", "--to", "60", "-o", &stored]).ok();
        let again = run(&["find", &stored, "load compute", "--all", "--to", "40"]).ok().text();
        assert_eq!(again, inside);
        run(&["verify", &stored]).ok();
        run(&["loops", &input, "--from", "30", "--to", "20"]).fails_with(&["ends before it begins"]);
        run(&["loops", &input, "--from", "89"])
            .fails_with(&["--from 89: no event is there; positions are 0 to 88, times up to 0.000880s"]);
        run(&["loops", &input, "--from", "1s"]).fails_with(&["--from 1s: no event is there"]);
        run(&["loops", &input, "--from", "soon"])
            .fails_with(&["--from: soon is neither a position such as 1000 nor a time"]);
    }
    let plain = folder.file("plain.txt", "a\nb\n");
    run(&["loops", &plain, "--to", "1s"]).fails_with(&["--to 1s: the trace has no starts of events"]);
}

#[test]
fn iterations_of_a_loop_are_selected() {
    let folder = Folder::new();
    for input in inputs(&folder) {
        let exact = ["--drop", "futex*"];
        let ask = |more: &[&str]| run(&[&[more[0], &input], &more[1..], &exact[..]].concat());
        let some = ask(&["find", "load", "--all", "--iterations", "10..12"]).ok().text();
        let all = ask(&["find", "load", "--all"]).ok().text();
        let expected: Vec<&str> = all.lines().skip(10).take(2).collect();
        assert_eq!(some.lines().collect::<Vec<_>>(), expected);
        assert_eq!(ask(&["find", "load", "--count", "--within", "store"]).ok().text(), "20\n");
        assert_eq!(ask(&["find", "init", "--count", "--within", "1"]).code, Some(1));
        // What lies between two occurrences is not there, so nothing is found across them.
        assert_eq!(ask(&["find", "compute compute", "--count", "--within", "compute"]).ok().text(), "20\n");
        let parts = ask(&["stats", "--within", "compute", "--iterations", "1", "--json"]).ok().json();
        assert_eq!((&parts["streams"], &parts["events"]), (&json!(20), &json!(20)));
        let nest = ask(&["loops", "--iterations", "5..", "--exact", "--json"]).ok().json();
        assert_eq!(nest["classes"][0]["nest"][0]["times"], 15);
        // The iterations of the loop that is shown keep their numbers.
        let shown = ask(&["iterations", "--iterations", "7..9", "--json"]).ok().json();
        let numbers: Vec<&Value> =
            shown["loops"][0]["iterations"].as_array().unwrap().iter().map(|it| &it["iteration"]).collect();
        assert_eq!(numbers, [7, 8]);
        ask(&["find", "load", "--within", "init"])
            .fails_with(&["--within init: no loop has that event in it"]);
        ask(&["find", "load", "--within", "laod"])
            .fails_with(&["--within laod: no event is called laod; near is: load"]);
        ask(&["find", "load", "--within", "9"]).fails_with(&["--within 9: there is no such loop"]);
        ask(&["find", "load", "--iterations", "20.."])
            .fails_with(&["--iterations 20..: the loop has fewer iterations"]);
        ask(&["find", "load", "--iterations", "5..5"]).fails_with(&["--iterations 5..5: there is none"]);
        ask(&["find", "load", "--iterations", "x"])
            .fails_with(&["--iterations x: expected numbers such as 10..20"]);
        let slow = ask(&["iterations", "--iterations", "5..9", "--slow", "2", "--json"]).ok().json();
        let slow = slow["loops"][0]["slow"].as_array().unwrap();
        assert!(slow.len() == 2 && slow.iter().all(|it| (5..9).contains(&it["iteration"].as_u64().unwrap())));
    }
}

#[test]
fn classes_are_selected_by_number() {
    let folder = Folder::new();
    let files =
        [folder.file("a", "x\ny\nx\ny\n"), folder.file("b", "x\nx\nx\n"), folder.file("c", "x\ny\nx\ny\n")];
    let ask = |more: &[&str]| {
        let inputs = files.iter().map(String::as_str);
        run(&["loops"].into_iter().chain(inputs).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let classes = ask(&["--json"]).ok().json();
    assert_eq!(classes["classes"][0]["class"], 1);
    let first = ask(&["--class", "1", "--json"]).ok().json();
    assert_eq!(first["classes"][0]["streams"], json!(["a", "c"]));
    let second = ask(&["--class", "2", "--json"]).ok().json();
    assert_eq!(second["classes"][0]["streams"], json!(["b"]));
    assert_eq!(ask(&["--class", "2", "--class", "1", "--json"]).ok().json()["streams"], 3);
    ask(&["--class", "3"]).fails_with(&["--class 3: `loops` shows 2 classes, numbered from 1"]);
    ask(&["--class", "0"]).fails_with(&["--class 0"]);
}
