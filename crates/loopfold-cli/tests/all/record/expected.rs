//! What an example must show, in the words of the command, and what its recording shows.

use super::Recording;
use serde_json::{Value, json};

/// A nest as the command prints it, without times.
pub(super) type Nest = Vec<Value>;

/// A loop.
pub(super) fn times(count: usize, body: Nest) -> Value {
    json!({ "times": count, "body": body })
}

pub(super) fn events<const N: usize>(events: [&str; N]) -> Nest {
    events.map(Value::from).to_vec()
}

fn without_times(nest: &Value) -> Nest {
    let item = |item: &Value| match item["times"].as_u64() {
        Some(count) => times(count as usize, without_times(&item["body"])),
        None => item.clone(),
    };
    nest.as_array().unwrap().iter().map(item).collect()
}

/// Fails unless every rank has the nest that `expected` gives for it.
pub(super) fn check_nests(recording: &Recording, processes: usize, expected: impl Fn(usize) -> Nest) {
    let answer = recording.ask("loops", &["--exact", "--full"]);
    let mut seen = 0;
    for class in answer["classes"].as_array().unwrap() {
        for stream in class["streams"].as_array().unwrap() {
            let rank: usize = stream.as_str().unwrap().strip_prefix("rank ").unwrap().parse().unwrap();
            assert_eq!(without_times(&class["nest"]), expected(rank), "rank {rank}");
            seen += 1;
        }
    }
    assert_eq!(seen, processes);
}

pub(super) fn communication_patterns(recording: &Recording, options: &[&str]) -> Vec<Value> {
    let answer = recording.ask("patterns", &[&["--top", "0"], options].concat());
    let all = answer["patterns"].as_array().unwrap();
    all.iter().filter(|pattern| pattern["kind"] == "communication").cloned().collect()
}

/// Topology and shape of a pattern, and how often it occurs: `mesh 4x4 · 50`.
pub(super) fn summary(pattern: &Value) -> String {
    let count = pattern["count"].as_u64().unwrap();
    let Some(name) = pattern["topology"]["name"].as_str() else { return format!("unknown · {count}") };
    let sides: Vec<String> =
        pattern["topology"]["shape"].as_array().unwrap().iter().map(Value::to_string).collect();
    format!("{name} {} · {count}", sides.join("x"))
}

/// All communication patterns, those that cover the most events first.
pub(super) fn patterns(recording: &Recording) -> Vec<String> {
    communication_patterns(recording, &[]).iter().map(summary).collect()
}

/// Messages whose two ends were found, which is all of them, and collective operations.
pub(super) fn waits(recording: &Recording) -> (usize, usize) {
    let answer = recording.ask("waits", &[]);
    let number = |key: &str| answer[key].as_u64().unwrap_or_else(|| panic!("{key} in {answer}"));
    (number("messages") as usize, number("collectives") as usize)
}

/// `MPI_Sendrecv` of as many bytes as are received.
pub(super) fn sendrecv(to: &str, from: &str, tag: usize, bytes: usize) -> Value {
    json!(format!(
        "MPI_Sendrecv dest={to} src={from} tag={tag} recvtag={tag} bytes={bytes} recvbytes={bytes} comm=0"
    ))
}

pub(super) fn irecv(from: impl std::fmt::Display, tag: usize, bytes: usize, comm: usize) -> Value {
    json!(format!("MPI_Irecv src={from} tag={tag} bytes={bytes} comm={comm}"))
}

pub(super) fn isend(to: impl std::fmt::Display, tag: usize, bytes: usize, comm: usize) -> Value {
    json!(format!("MPI_Isend dest={to} tag={tag} bytes={bytes} comm={comm}"))
}

/// What most programs begin with.
pub(super) fn begin() -> Nest {
    events(["MPI_Init", "MPI_Comm_rank comm=0", "MPI_Comm_size comm=0"])
}

/// The side of the square of all processes.
pub(super) fn side_of(processes: usize) -> usize {
    processes.isqrt()
}

/// Neighbours of a rank in a square: north, south, west, east.
pub(super) fn neighbours(rank: usize, side: usize) -> [Option<usize>; 4] {
    let (row, column) = (rank / side, rank % side);
    [
        (row > 0).then(|| rank - side),
        (row + 1 < side).then(|| rank + side),
        (column > 0).then(|| rank - 1),
        (column + 1 < side).then(|| rank + 1),
    ]
}

pub(super) fn rank_or_none(peer: Option<usize>) -> String {
    peer.map_or("none".to_string(), |rank| rank.to_string())
}

/// The calls that make a square grid.
pub(super) fn make_grid(side: usize) -> Nest {
    let created = format!("MPI_Cart_create comm=0 dims={side}x{side} periods=0x0 newcomm=2");
    events(["MPI_Init", "MPI_Comm_size comm=0", "MPI_Dims_create", &created])
}
