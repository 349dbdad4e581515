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

#[test]
fn processes_that_are_not_selected_are_left_out() {
    let folder = Folder::new();
    let file = archive_of(&waits::ring(4, 20, &mut Rng::new(2)), &[], &folder);
    let all = run(&["waits", &file, "--json"]).ok().json();
    let some = run(&["waits", &file, "--json", "--stream", "rank [01]"]).ok();
    // Both have a neighbour that is left out, with a message in each direction and step.
    assert!(some.err.contains("left out: 80 messages from or to processes without"), "{}", some.err);
    let ends = run(&["waits", &file, "--stream", "rank [03]"]).ok();
    assert!(ends.err.contains("2 collective operations of processes that have no stream"), "{}", ends.err);
    assert_eq!((all["messages"].as_u64(), some.json()["messages"].as_u64()), (Some(160), Some(40)));
    let none = run(&["waits", &file, "--stream", "rank 0"]);
    assert_eq!(none.code, Some(1), "{}", none.err);
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
    assert!(found.err.contains("there are no messages"), "{}", found.err);
}
