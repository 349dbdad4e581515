//! Sums of times from the outside: `stats` shows what events cost, and `fold --times
//! summary` keeps that, and the times of loops, without a time for every event.

use crate::support::{Folder, Run, run, run_with_input};
use serde_json::{Value, json};

/// Twenty times `load load store`, two streams; loads take 1 to 40 µs, and a store now and
/// then has no duration. Names can be hostile.
fn table() -> String {
    let mut text = String::from("name,thread,start_us,duration_us,bytes,misses\n");
    for thread in ["a", "b"] {
        for step in 0..20 {
            let start = 100 * step;
            text += &format!("load,{thread},{start},{},8,\n", 2 * step + 1);
            text += &format!("load,{thread},{},{},8,0.5\n", start + 45, 2 * step + 2);
            let duration = if step % 4 == 3 { String::new() } else { "3".to_string() };
            text += &format!("\x1b[31mstore,{thread},{},{duration},64,\n", start + 90);
        }
    }
    text
}

const COLUMNS: [&str; 10] = [
    "--event",
    "name",
    "--stream-by",
    "thread",
    "--start",
    "start_us",
    "--duration",
    "duration_us",
    "--metric",
    "bytes,misses",
];

fn run_on(command: &[&str], trace: &str) -> Run {
    let mut arguments = command.to_vec();
    arguments.push(trace);
    arguments.extend(COLUMNS);
    run(&arguments).ok()
}

#[test]
fn stats_shows_the_most_costly_events() {
    let folder = Folder::new();
    let trace = folder.file("x.csv", table());
    let text = run_on(&["stats"], &trace).text();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let after = |title: &str| {
        let at = text.lines().position(|line| line == title).unwrap_or_else(|| panic!("{title}: {text}"));
        &rows[at + 1..]
    };
    let costly = after("most costly events");
    // Loads: twice the sum of 1 to 40; stores: 30 of 3 µs each.
    assert_eq!(costly[1], ["1.64", "94.8", "%", "80", "20.5", "load"]);
    assert_eq!(costly[2], ["0.090", "5.2", "%", "30", "3.00", "\\u{1b}[31mstore"]);
    assert_eq!(after("events with the most bytes")[1][..5], ["2,560", "80", "%", "40", "64"]);
    assert_eq!(after("events with the most misses")[1][..4], ["20", "100", "%", "40"]);
    assert!(!text.contains('\x1b'));

    let json = run_on(&["stats", "--json"], &trace).json();
    assert_eq!(json["durations"]["total_ns"], 1_730_000);
    assert_eq!(json["durations"]["known"], 110);
    let load = &json["durations"]["events"][0];
    assert_eq!(
        (&load["event"], &load["known"], &load["total_ns"], &load["mean_ns"]),
        (&json!("load"), &json!(80), &json!(1_640_000), &json!(20_500.0))
    );
    let metrics = json["metrics"].as_array().unwrap();
    assert_eq!((&metrics[0]["metric"], &metrics[0]["total"]), (&json!("bytes"), &json!(3200.0)));
    assert_eq!(metrics[1]["events"][0]["mean"], 0.5);

    let plain = folder.file("y.txt", "a\nb\n");
    let json = run(&["stats", "--json", &plain]).ok().json();
    assert_eq!((&json["durations"], &json["metrics"]), (&Value::Null, &json!([])));
    assert!(!run(&["stats", &plain]).ok().text().contains("costly"));
}

#[test]
fn a_summary_keeps_what_stats_and_loops_say() {
    let folder = Folder::new();
    let trace = folder.file("x.csv", table());
    let (all, summary, none) = (folder.at("all.fold"), folder.at("summary.fold"), folder.at("none.fold"));
    run_on(&["fold", "-o", &all], &trace);
    run_on(&["fold", "--times", "summary", "-o", &summary], &trace);
    run_on(&["fold", "--times", "none", "-o", &none], &trace);
    let size = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(size(&none) < size(&summary) && size(&summary) < size(&all));
    run(&["verify", &summary]).ok();

    let stats = |archive: &str| {
        let mut json = run(&["stats", "--json", archive]).ok().json();
        for about_size in ["bytes", "bytes_per_second", "ratio"] {
            json[about_size].take();
        }
        json
    };
    assert_eq!(stats(&summary), stats(&all));
    assert_eq!(stats(&none)["durations"], Value::Null);

    let text = run(&["loops", &summary]).ok().text();
    assert!(text.contains("of the time\n      mean 99.5 µs ± 2.18 µs"), "{text}");
    let loop_time = |archive: &str| {
        let json = run(&["loops", "--json", archive]).ok().json();
        let class = &json["classes"][0];
        assert_eq!(class["times"].as_array().unwrap().len(), 2);
        (class["nest"][0]["time"].clone(), class["times"].clone())
    };
    let ((of_sums, totals), (of_columns, all_totals)) = (loop_time(&summary), loop_time(&all));
    assert_eq!(totals, all_totals);
    for key in ["total_ns", "iterations", "mean_ns", "deviation_ns", "min_ns", "max_ns"] {
        assert_eq!(of_sums[key], of_columns[key], "{key}");
    }
    assert_eq!(of_sums["iterations"], 40);
    assert_eq!((&of_sums["median_ns"], &of_sums["slowest"]), (&Value::Null, &Value::Null));
    assert_eq!((&of_columns["shared"], &of_sums["shared"]), (&json!(false), &json!(false)));

    // From the archive with all times, and from the summary itself.
    let again = folder.at("again.fold");
    for from in [&all, &summary] {
        run(&["fold", from, "--times", "summary", "-o", &again]).ok();
        assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&summary).unwrap());
    }
    run(&["fold", &summary, "--times", "none", "-o", &again]).ok();
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&none).unwrap());
}

#[test]
fn summaries_are_merged_and_what_is_lost_is_said() {
    let folder = Folder::new();
    let trace = folder.file("x.csv", table());
    let (all, summary, merged) = (folder.at("all.fold"), folder.at("summary.fold"), folder.at("merged.fold"));
    run_on(&["fold", "-o", &all], &trace);
    run_on(&["fold", "--times", "summary", "-o", &summary], &trace);
    for other in [&all, &summary] {
        let run_merge = run(&["merge", &summary, other, "-o", &merged]).ok();
        assert!(!run_merge.err.contains("note"), "{}", run_merge.err);
        run(&["verify", &merged]).ok();
        let json = run(&["stats", "--json", &merged]).ok().json();
        assert_eq!(json["durations"]["total_ns"], 2 * 1_730_000);
        assert_eq!(json["metrics"][0]["total"], 6400.0);
    }
    let text = run(&["loops", &merged]).ok();
    assert!(text.text().contains("mean 99.5 µs"), "{}", text.text());
    assert!(!text.err.contains("not known"));

    let lost = "the times of these loops are not known";
    let other_folder = folder.at("innermost.fold");
    let refolded = run(&["fold", &summary, "--folder", "innermost", "-o", &other_folder]).ok();
    assert!(refolded.err.contains(lost), "{}", refolded.err);
    let json = run(&["stats", "--json", &other_folder]).ok().json();
    assert_eq!(json["durations"]["total_ns"], 1_730_000);
    let one = run(&["loops", &summary, "--stream", "a"]).ok();
    assert!(one.text().contains("mean 99.5 µs ± 2.18 µs · in all streams with this loop"));
    let of_one = folder.at("one.fold");
    let one = run(&["fold", &summary, "--stream", "a", "-o", &of_one]).ok();
    assert!(one.err.contains("loops that other streams have too are not kept"), "{}", one.err);
    let json = run(&["stats", "--json", "--stream", "a", &summary]).ok().json();
    assert_eq!(json["durations"]["total_ns"], 1_730_000 / 2);
    // Cat has no times to print, but the events are all there.
    assert_eq!(run(&["cat", &summary]).ok().text().lines().count(), 120);
}

/// Slices of a profiler: `main` contains two steps, each a short computation and a long sleep, and
/// the thread does nothing after it.
fn nested() -> String {
    let mut events = vec![r#"{"ph":"X","name":"main","ts":0,"dur":1000,"pid":1,"tid":1}"#.to_string()];
    for step in 0..4 {
        let start = 100 + 200 * step;
        for (name, start, duration) in
            [("step", start, 100), ("compute", start + 10, 5), ("sleep", start + 20, 75)]
        {
            events.push(format!(
                r#"{{"ph":"X","name":"{name}","ts":{start},"dur":{duration},"pid":1,"tid":1}}"#
            ));
        }
    }
    format!("[{}]", events.join(","))
}

#[test]
fn self_times_leave_out_the_events_inside() {
    let folder = Folder::new();
    let trace = folder.file("t.json", nested());
    let (summary, all) = (folder.at("summary.fold"), folder.at("all.fold"));
    run(&["fold", &trace, "--times", "summary", "-o", &summary]).ok();
    run(&["fold", &trace, "-o", &all]).ok();
    for input in [&trace, &summary, &all] {
        let text = run(&["stats", input]).ok().text();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let at = text.lines().position(|line| line.starts_with("most costly events, by self time")).unwrap();
        assert_eq!(rows[at + 1], ["self,", "ms", "share", "total,", "ms", "count", "mean,", "ms", "event"]);
        assert_eq!(rows[at + 2][..7], ["0.600", "60", "%", "1.00", "1", "1.00", "main"], "{text}");
        assert_eq!(rows[at + 3][..7], ["0.300", "30", "%", "0.300", "4", "0.075", "sleep"], "{text}");
        let durations = run(&["stats", "--json", input]).ok().json()["durations"].clone();
        assert_eq!((&durations["busy_ns"], &durations["nested"]), (&json!(1_000_000), &json!(true)));
        assert_eq!(durations["total_ns"], 1_720_000);
        let step = durations["events"].as_array().unwrap().iter().find(|event| event["event"] == "step");
        let step = step.unwrap();
        assert_eq!((&step["self_ns"], &step["total_ns"]), (&json!(80_000), &json!(400_000)));
        assert_eq!(step["share"], 0.08);

        let hot = run(&["hot", "--cost", "self", "--json", input]).ok().json();
        assert_eq!((&hot["total"], &hot["cost_of"]), (&json!(1_000_000), &json!("self")));
        let hot = run(&["hot", "--cost", "self", "--min-cost", "300us", input]).ok();
        assert!(hot.text().contains("compute sleep") && !hot.err.contains("nest"), "{}", hot.text());
        let hot = run(&["hot", "--cost", "duration", input]).ok();
        assert!(hot.err.contains("events nest") && hot.err.contains("--cost self"), "{}", hot.err);
    }
    run_with_input(&["hot", "--cost", "self", "-"], b"a\nb\n").fails_with(&["no starts and durations"]);
}

#[test]
fn loops_show_how_busy_they_are() {
    let folder = Folder::new();
    let mut table = String::from("name,start_us,dur_us\n");
    for step in 0..10 {
        table += &format!("a,{},20\nb,{},30\n", 100 * step, 100 * step + 10);
    }
    let trace = folder.file("t.csv", table);
    let columns = ["--event", "name", "--start", "start_us", "--duration", "dur_us"];
    let ask = |options: &[&str]| run(&[&["loops", &trace][..], &columns, options].concat()).ok();
    // Nine times 40 of 100, and in the end 40 of 40.
    let text = ask(&[]).text();
    assert!(text.contains("busy 42.6 %"), "{text}");
    let time = ask(&["--json"]).json()["classes"][0]["nest"][0]["time"].clone();
    assert_eq!((&time["total_ns"], &time["busy_ns"]), (&json!(940_000), &json!(400_000)));
}
