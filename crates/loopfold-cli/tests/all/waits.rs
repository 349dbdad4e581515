//! `waits` from the outside: what a simulation knows, notes, selections and errors.

use crate::support::waits::trace_of;
use crate::support::{Folder, run};
use loopfold::archive;
use loopfold::folders::{Auto, fold_trace};
use loopfold_testing::Rng;
use loopfold_testing::waits::{self, Simulated};

/// An archive of what happened, with the clocks of processes shifted.
fn archive_of(simulated: &Simulated, shifts: &[i64], folder: &Folder) -> String {
    let shift = |process: usize| shifts.get(process).copied().unwrap_or(0);
    let trace =
        trace_of(simulated, |process, start, duration| (Some(start + shift(process)), Some(duration)));
    let mut file = Vec::new();
    archive::write(&fold_trace(trace, &Auto, 1).unwrap(), &mut file).unwrap();
    folder.file("x.fold", file)
}

#[test]
fn sums_are_those_of_the_simulation() {
    let folder = Folder::new();
    let simulated = waits::ring(4, 100, &mut Rng::new(1));
    let file = archive_of(&simulated, &[], &folder);
    let json = run(&["waits", "--json", &file]).ok().json();
    let all: i64 = simulated.waits.iter().map(|wait| wait.time).sum();
    assert_eq!(
        (json["time_ns"].as_i64(), json["count"].as_u64()),
        (Some(all), Some(simulated.waits.len() as u64))
    );
    let classes = json["classes"].as_array().unwrap();
    assert_eq!(classes.iter().map(|class| class["time_ns"].as_i64().unwrap()).sum::<i64>(), all);
    assert_eq!(classes[3]["class"], "wait_at_nxn");
    let reduced = simulated.waits.iter().filter(|wait| wait.class == "wait at N×N");
    assert_eq!(classes[3]["time_ns"].as_i64(), Some(reduced.map(|wait| wait.time).sum()));
    let places = json["places"].as_array().unwrap();
    let pairs = places.iter().flat_map(|place| place["pairs"].as_array().unwrap());
    assert_eq!(pairs.map(|pair| pair["time_ns"].as_i64().unwrap()).sum::<i64>(), all);
    assert_eq!(places[0]["call"], "MPI_Waitall");
    assert_eq!(places[0]["loops"][0], 10, "{}", places[0]);
    assert!(places[0]["worst"]["first"].as_u64().unwrap() < 10);
    let most = json["ranks"][0]["rank"].as_u64().unwrap() as usize;
    let caused =
        |rank| simulated.waits.iter().filter(|wait| wait.cause == rank).map(|wait| wait.time).sum::<i64>();
    assert!((0..4).all(|rank| caused(rank) <= caused(most)));
    let text = run(&["waits", &file, "--top", "1"]).ok().text();
    assert!(text.contains("of waiting") && text.contains("wait at N×N"), "{text}");
    assert!(text.contains("… and 3 more (--top 0 shows all)"), "{text}");
    assert!(text.contains("MPI_Waitall, loop of 10 × "), "{text}");
}

/// Messages are matched among all processes; one of them is asked about.
#[test]
fn a_process_waits_for_others_that_are_not_selected() {
    let folder = Folder::new();
    let simulated = waits::ring(4, 20, &mut Rng::new(2));
    let file = archive_of(&simulated, &[], &folder);
    let all = run(&["waits", &file, "--json"]).ok().json();
    let some = run(&["waits", &file, "--json", "--stream", "rank 1"]).ok();
    assert_eq!(some.err, "");
    let json = some.json();
    assert_eq!((&json["messages"], &json["streams"]), (&all["messages"], &1.into()));
    let sum = |fits: &dyn Fn(usize, usize) -> bool| -> i64 {
        simulated.waits.iter().filter(|wait| fits(wait.waiting, wait.cause)).map(|wait| wait.time).sum()
    };
    assert_eq!(json["time_ns"], sum(&|waiting, _| waiting == 1));
    let own = json["ranks"].as_array().unwrap().iter().find(|rank| rank["rank"] == 1).unwrap();
    assert_eq!(own["waited"]["time_ns"], sum(&|waiting, _| waiting == 1));
    assert_eq!(own["caused"]["time_ns"], sum(&|_, cause| cause == 1));
    for pair in json["pairs"].as_array().unwrap() {
        let [waiting, cause] = ["waiting", "cause"].map(|key| pair[key].as_u64().unwrap() as usize);
        assert!(waiting == 1 || cause == 1, "{pair}");
        assert_eq!(pair["time_ns"], sum(&|one, other| (one, other) == (waiting, cause)));
    }
    let text = run(&["waits", &file, "--stream", "rank 1"]).ok().text();
    assert!(text.lines().next().unwrap().ends_with(" in rank 1"), "{text}");
    assert!(text.contains("process  waits for\n") && text.contains(" in communication calls: "), "{text}");
    let json = run(&["waits", &file, "--json", "--class", "1"]).ok().json();
    assert!(json["streams"].as_u64().unwrap() < 4, "{json}");
}

/// What is selected keeps the numbers of the whole, and times add up to those of the whole.
#[test]
fn iterations_keep_their_numbers() {
    let folder = Folder::new();
    let file = archive_of(&waits::ring(4, 20, &mut Rng::new(2)), &[], &folder);
    let all = run(&["waits", &file, "--json"]).ok().json();
    let worst = &all["iterations"][0];
    let (times, number) = (worst["times"].as_u64().unwrap(), worst["first"].as_u64().unwrap());
    let one = run(&["waits", &file, "--json", "--iterations", &number.to_string()]).ok().json();
    assert_eq!(one["iterations"][0]["times"], times);
    assert_eq!(one["iterations"][0]["first"], number);
    assert_eq!(one["iterations"][0]["since_start_ns"], worst["since_start_ns"]);
    assert_eq!(one["iterations"][0]["time_ns"], worst["time_ns"]);
    let rows = run(&["iterations", &file, "--json", "--stream", "rank 0"]).ok().json();
    let row = &rows["loops"][0]["iterations"][number as usize];
    assert!(row["since_start_ns"].as_u64() >= worst["since_start_ns"].as_u64(), "{row} {worst}");
    let mut sum = one["time_ns"].as_u64().unwrap();
    for rest in [format!("0..{number}"), format!("{}..", number + 1)] {
        let found = run(&["waits", &file, "--json", "--iterations", &rest]);
        // There may be no iteration before or behind it.
        sum += if found.code == Some(2) { 0 } else { found.json()["time_ns"].as_u64().unwrap() };
    }
    let in_loop: u64 = (all["places"].as_array().unwrap().iter())
        .filter(|place| place["loops"][0] == times)
        .map(|place| place["time_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, in_loop);
}

#[test]
fn clocks_are_checked_and_corrected() {
    let folder = Folder::new();
    let simulated = waits::ring(3, 30, &mut Rng::new(3));
    let file = archive_of(&simulated, &[0, 1_000_000, -5_000_000], &folder);
    let found = run(&["waits", &file, "--json"]).ok();
    assert!(
        found.err.contains("received before sent") && found.err.contains("--correct-clocks"),
        "{}",
        found.err
    );
    assert!(!found.json()["violations"].as_array().unwrap().is_empty());
    let corrected = run(&["waits", &file, "--json", "--correct-clocks"]).ok();
    assert!(corrected.err.contains("2 clocks shifted"), "{}", corrected.err);
    let json = corrected.json();
    assert_eq!(json["violations"].as_array().unwrap().len(), 0);
    assert_eq!(json["drift"], serde_json::Value::Null);
    let offset = |index: usize| json["offsets"][index]["offset_ns"].as_i64().unwrap();
    assert!((offset(0) + 1_000_000).abs() < 10_000 && (offset(1) - 5_000_000).abs() < 10_000, "{json}");
}

#[test]
fn without_times_it_is_an_error() {
    let folder = Folder::new();
    let text = folder.file("rank-0.txt", "MPI_Send dest=1 tag=0 bytes=8\n");
    run(&["waits", &text]).fails_with(&["waits are found by the times of every event, and there are none"]);
    let simulated = waits::ring(3, 30, &mut Rng::new(4));
    let (file, sums) = (archive_of(&simulated, &[], &folder), folder.at("sums.fold"));
    run(&["fold", &file, "--times", "summary", "-o", &sums]).ok();
    run(&["waits", &sums]).fails_with(&["there are only sums of times"]);
}

#[test]
fn events_that_communicate_with_nobody_have_no_waits() {
    let folder = Folder::new();
    let table = folder.file("x.csv", "name,start\na,1\nb,2\n");
    let found = run(&["waits", &table, "--event", "name", "--start", "start"]);
    assert_eq!(found.code, Some(1), "{}", found.err);
    assert!(found.text().starts_with("no messages or collective operations"), "{}", found.err);
}
