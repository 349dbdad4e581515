//! Loops with exceptions in `loops`, and the command `iterations`.

use crate::support::{Folder, run};
use serde_json::{Value, json};

/// A log of a worker: jobs of five lines, some of which are followed by a failed fetch, after so
/// many jobs each.
fn worker_log(runs: &[usize]) -> String {
    let job = "fetch\ntransform\nwrite\nack\nnext\n";
    let runs: Vec<String> = runs.iter().map(|&run| job.repeat(run)).collect();
    runs.join("fetch failed\n")
}

#[test]
fn a_loop_with_exceptions_is_shown_as_one() {
    let folder = Folder::new();
    let log = folder.file("worker.log", worker_log(&[23, 126, 48, 181, 4, 105, 9, 64, 31, 27]));
    let shown = run(&["loops", &log]).ok().text();
    assert!(shown.contains("≈ 618 × (5 events; 9 followed by more)"), "{shown}");
    assert!(shown.contains("! 9 ×, first at 115: then ‘fetch failed’"), "{shown}");
    assert!(shown.contains("between them: 23, 126, 48, 181, 4, 105, 9, … 10 runs in all"), "{shown}");
    for exact in [&["--exact"][..], &["--folder", "outermost"], &["--ties", "left"]] {
        let arguments: Vec<&str> = ["loops", &log].iter().chain(exact).copied().collect();
        assert!(!run(&arguments).ok().text().contains('≈'));
    }
}

#[test]
fn json_has_the_exact_nest_and_loops_with_exceptions() {
    let folder = Folder::new();
    let log = folder.file("worker.log", worker_log(&[23, 126, 48, 181]));
    let class = run(&["loops", &log, "--json"]).ok().json()["classes"][0].clone();
    let exact = run(&["loops", &log, "--json", "--exact"]).ok().json()["classes"][0].clone();
    assert_eq!(class["nest"], exact["nest"]);
    assert_eq!(exact["near"], json!([]));
    let near = &class["near"][0];
    assert_eq!(near["iterations"], 378);
    assert_eq!((&near["equal"], &near["followed"], &near["length"]), (&378.into(), &3.into(), &5.into()));
    assert_eq!((&near["start"], &near["end"]), (&0.into(), &1893.into()));
    assert_eq!(
        near["kinds"],
        json!([{"count": 3, "first": 115, "iterations": 0, "events": ["fetch failed"]}])
    );
    assert_eq!(near["runs"], json!([23, 126, 48, 181]));
    assert_eq!(near["body"], json!(["fetch", "transform", "write", "ack", "next"]));
}

#[test]
fn an_odd_iteration_is_written_as_edits() {
    let folder = Folder::new();
    let mut lines = ["load", "embed", "attn", "mlp", "loss", "log"].repeat(200);
    for (iteration, event) in [(20, 2), (90, 4), (150, 2)] {
        lines[6 * iteration + event] = "gc";
    }
    let log = folder.file("train.log", lines.join("\n"));
    let shown = run(&["loops", &log]).ok().text();
    assert!(shown.contains("≈ 200 × (6 events; 197 equal, 3 differ)"), "{shown}");
    assert!(shown.contains("2 ×, first at 120: an iteration with ‘gc’ for ‘attn’"), "{shown}");
    let aligned = run(&["loops", &log, "--align", "attn"]).ok().text();
    let body = aligned.rsplit_once('≈').unwrap().1.lines().nth(1).unwrap().trim().to_string();
    assert!(body.starts_with("attn mlp"), "{aligned}");
}

#[test]
fn inner_loops_whose_number_of_iterations_varies_are_written_with_a_range() {
    let folder = Folder::new();
    let counts = [3, 5, 4, 7, 3, 6, 4, 5, 7, 3, 4, 6, 5, 3, 7, 4, 6, 3, 5, 4, 7, 6, 3, 5, 4, 4, 7, 3, 6, 5];
    let text: String =
        counts.iter().map(|&count| format!("open\n{}close\n", "read\n".repeat(count))).collect();
    let shown = run(&["loops", &folder.file("reads.log", text)]).ok().text();
    assert!(shown.contains("(open (read)^{3..7} close)^30"), "{shown}");
}

/// Slices of steps, with a slow load in one of them.
fn slices() -> String {
    let mut events = Vec::new();
    let mut now = 0;
    for step in 0..6 {
        for (name, duration) in
            [("load", if step == 3 { 50 } else { 10 }), ("compute", 20), ("compute", 20), ("store", 5)]
        {
            events.push(json!({"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": now, "dur": duration}));
            now += duration + 1;
        }
    }
    Value::Array(events).to_string()
}

#[test]
fn iterations_as_table_csv_and_json() {
    let folder = Folder::new();
    let trace = folder.file("steps.json", slices());
    let table = run(&["iterations", &trace]).ok().text();
    assert!(table.contains("6 × (4 events)  load, compute, store …"), "{table}");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 6, "{table}");
    assert_eq!(rows[3], ["#3", "177", "µs", "99.0", "µs", "95.0", "µs", "12"]);
    assert_eq!(rows[5].last(), Some(&"last"));
    assert!(table.contains("median 59.0 µs · 59.0 to 99.0 · busy 94.1 %\n"), "{table}");
    assert!(table.contains("slowest #3 99.0 µs · #0 59.0 µs · #1 59.0 µs · --slow 3 shows why\n"), "{table}");
    let csv = run(&["iterations", &trace, "--csv"]).ok().text();
    assert_eq!(csv.lines().count(), 7);
    assert_eq!(csv.lines().nth(4), Some("pid 1 tid 1,1,,3,1,12,4,177000,177000,99000,95000,false,"));
    let json = run(&["iterations", &trace, "--json"]).ok().json();
    let iterations = &json["loops"][0]["iterations"];
    assert_eq!(iterations.as_array().unwrap().len(), 6);
    assert_eq!(
        iterations[5],
        json!({"iteration": 5, "outer": [], "first_event": 20, "events": 4, "iterations": 1, "start_ns": 335_000,
               "since_start_ns": 335_000, "duration_ns": 58_000, "busy_ns": 55_000, "last": true, "exception": null})
    );
    // The inner loop, by number and by event.
    for inner in ["2", "compute"] {
        let csv = run(&["iterations", &trace, inner, "--csv"]).ok().text();
        assert_eq!(
            csv.lines().nth(8),
            Some("pid 1 tid 1,2,3,1,1,14,1,249000,249000,20000,20000,true,"),
            "{csv}"
        );
    }
    let list = run(&["iterations", &trace, "--list"]).ok().text();
    assert!(list.contains("     2    2 × (1 event)  compute …"), "{list}");
}

#[test]
fn slow_iterations_show_the_parts_that_grew() {
    let folder = Folder::new();
    let trace = folder.file("steps.json", slices());
    let slow = run(&["iterations", &trace, "--slow", "1"]).ok().text();
    assert!(slow.contains("pid 1 tid 1\n6 × (4 events)"), "{slow}");
    assert!(slow.contains("#3  99.0 µs at 177 µs, event 12 · 167.8 % of the median\n"), "{slow}");
    assert!(slow.contains("busy 95.0 µs (median 55.0 µs) · gaps 4.00 µs (median 4.00 µs)\n"), "{slow}");
    assert!(slow.contains("+ 40.0 µs in load (50.0 µs, median 10.0 µs)"), "{slow}");
    let json = run(&["iterations", &trace, "--slow", "1", "--json"]).ok().json();
    let slow = &json["loops"][0]["slow"][0];
    assert_eq!((&slow["iteration"], &slow["duration_ns"]), (&3.into(), &99_000.into()));
    assert_eq!(
        slow["grown"],
        json!([{"part": ["load"], "which": "inside", "duration_ns": 50_000, "median_ns": 10_000.0}])
    );
    let loops = run(&["loops", &trace]).ok().text();
    assert!(loops.contains("median 59.0 µs · 59.0 to 99.0 · slowest #3"), "{loops}");
}

#[test]
fn one_iteration_is_explained_by_its_number() {
    let folder = Folder::new();
    let trace = folder.file("steps.json", slices());
    let one = run(&["iterations", &trace, "--slow", "1", "--iterations", "2"]).ok().text();
    assert!(one.contains("median 59.0 µs\n#2  59.0 µs at 118 µs, event 8 · 100 % of the median"), "{one}");
    let rows = run(&["iterations", &trace, "--iterations", "3..5"]).ok().text();
    assert!(rows.contains("#3     177 µs") && rows.contains("#4     276 µs"), "{rows}");
    assert!(!rows.contains("#2 ") && !rows.contains("#5 "), "{rows}");
    for slow in [&[][..], &["--slow", "1"], &["--csv"]] {
        let arguments: Vec<&str> =
            ["iterations", &trace, "--iterations", "6..9"].iter().chain(slow).copied().collect();
        run(&arguments).fails_with(&["--iterations 6..9: the loop has 6 iterations, #0 to #5"]);
    }
}

/// A program that becomes three times faster, on a clock that does not begin at 0.
#[test]
fn phases_are_shown_where_the_pace_changes() {
    let folder = Folder::new();
    let steps = |change: usize| {
        let mut now = 5_000_000;
        let mut events = Vec::new();
        for step in 0..60 {
            let duration = if step < change { 90 + step % 5 } else { 30 + step % 3 };
            for name in ["load", "store"] {
                let ts = now;
                events.push(
                    json!({"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": ts, "dur": duration / 2}),
                );
                now += duration / 2;
            }
        }
        Value::Array(events).to_string()
    };
    let trace = folder.file("phases.json", steps(40));
    let line = "#0 to #39 median 92.0 µs · #40 to #59 median 30.0 µs";
    for command in ["loops", "iterations"] {
        let shown = run(&[command, &trace]).ok().text();
        assert!(shown.contains(line), "{shown}");
    }
    let json = run(&["iterations", &trace, "--json", "--iterations", "0"]).ok().json();
    let only = &json["loops"][0];
    assert_eq!(only["time"]["phases"][1], json!({"first": 40, "last": 59, "median_ns": 30_000}));
    assert_eq!(only["iterations"][0]["start_ns"], 5_000_000_000u64);
    assert_eq!(only["iterations"][0]["since_start_ns"], 0);
    let steady = folder.file("steady.json", steps(0));
    for command in ["loops", "iterations"] {
        assert!(!run(&[command, &steady]).ok().text().contains("#0 to"));
    }
}

#[test]
fn iterations_of_what_has_none_is_nothing_found() {
    let folder = Folder::new();
    let lines = folder.file("x.txt", "a\nb\nc\n");
    assert_eq!(run(&["iterations", &lines]).code, Some(1));
    let loops = folder.file("y.txt", "a\nb\n".repeat(5));
    assert_eq!(run(&["iterations", &loops, "7"]).code, Some(1));
    assert_eq!(run(&["iterations", &loops, "zzz"]).code, Some(1));
    let table = run(&["iterations", &loops]);
    assert!(table.err.contains("no times"));
    run(&["iterations", &loops, "--slow", "2"]).ok();
    run(&["iterations", "no-such-file"]).fails_with(&["no-such-file"]);
}
