//! Every example shows what its source says: loop counts, bodies, topology by name.

use super::{Mpi, Recording, program, record};
use serde_json::Value;

/// How often a loop of a nest repeats, and its body, wherever it is.
fn loops(nest: &Value) -> Vec<(u64, Vec<Value>)> {
    let mut found = Vec::new();
    for item in nest.as_array().into_iter().flatten() {
        if let Some(times) = item["times"].as_u64() {
            found.push((times, item["body"].as_array().unwrap().clone()));
            found.extend(loops(&item["body"]));
        }
    }
    found
}

/// The loops of the class of streams that a rank is in.
fn loops_of(recording: &Recording, rank: usize) -> Vec<(u64, Vec<Value>)> {
    let answer = recording.ask("loops", &["--exact", "--full"]);
    let name = format!("rank {rank}");
    let classes = answer["classes"].as_array().unwrap();
    let has =
        |class: &&Value| class["streams"].as_array().unwrap().iter().any(|stream| stream == name.as_str());
    loops(&classes.iter().find(has).unwrap()["nest"])
}

fn counts(recording: &Recording, rank: usize) -> Vec<u64> {
    loops_of(recording, rank).iter().map(|(times, _)| *times).collect()
}

/// The names of all topologies of communication patterns.
fn topologies(recording: &Recording) -> Vec<String> {
    let answer = recording.ask("patterns", &["--top", "0"]);
    let patterns = answer["patterns"].as_array().unwrap();
    patterns.iter().filter_map(|pattern| Some(pattern["topology"]["name"].as_str()?.to_string())).collect()
}

/// How often the first communication pattern occurs.
fn first_count(recording: &Recording) -> u64 {
    recording.ask("patterns", &["--top", "0"])["patterns"][0]["count"].as_u64().unwrap()
}

/// Messages whose two ends were found, which is all of them, and collective operations.
fn check_waits(recording: &Recording) -> (u64, u64) {
    let answer = recording.ask("waits", &[]);
    let number = |key: &str| answer[key].as_u64().unwrap_or_else(|| panic!("{key} in {answer}"));
    (number("messages"), number("collectives"))
}

/// Where each example runs.
const PLACES: [(Mpi, usize); 3] = [(Mpi::OpenMpi, 4), (Mpi::OpenMpi, 16), (Mpi::Mpich, 4)];

fn each(name: &str, arguments: &[&str], check: impl Fn(&Recording, usize)) {
    for (mpi, processes) in PLACES {
        let recording = record(mpi, processes, &[], &program(mpi, name, &[]), arguments).ended_well();
        println!("{name} on {processes} under {mpi:?}");
        check(&recording, processes);
    }
}

#[test]
fn a_ring() {
    each("ring.c", &["120"], |recording, processes| {
        assert_eq!(counts(recording, 1), [120]);
        assert_eq!(topologies(recording)[0], "ring");
        assert_eq!(first_count(recording), 120);
        assert_eq!(check_waits(recording).0, 120 * processes as u64);
    });
}

#[test]
fn a_stencil() {
    each("stencil.c", &["50"], |recording, processes| {
        let loops = loops_of(recording, 0);
        let outer = loops.iter().find(|(times, _)| *times == 5).unwrap();
        assert_eq!(outer.1.len(), 2, "ten steps and a sum: {outer:?}");
        let inner = loops.iter().find(|(times, body)| *times == 10 && body.len() == 9).unwrap();
        assert_eq!(inner.1[8], "MPI_Waitall n=8");
        assert!(topologies(recording).contains(&"mesh".to_string()), "{:?}", topologies(recording));
        let side = if processes == 4 { 2 } else { 4 };
        let channels = 4 * side * (side - 1);
        assert_eq!(check_waits(recording), (50 * channels, 5));
    });
}

#[test]
fn a_wavefront_in_fortran() {
    each("wavefront.f90", &["12", "7"], |recording, processes| {
        let counts = counts(recording, 0);
        assert_eq!(counts, [2, 12, 7, 7], "two shifts; steps, planes there, planes back");
        assert!(topologies(recording).contains(&"wavefront".to_string()), "{:?}", topologies(recording));
        let side = if processes == 4 { 2 } else { 4 };
        assert_eq!(check_waits(recording), (12 * 2 * 7 * 2 * side * (side - 1), 12));
    });
}

#[test]
fn a_butterfly() {
    each("butterfly.c", &["40"], |recording, processes| {
        assert!(counts(recording, 3).contains(&40));
        // Four processes are a square, too.
        let wanted: &[&str] = if processes == 4 { &["mesh"] } else { &["butterfly", "hypercube"] };
        let names = topologies(recording);
        assert!(names.iter().any(|name| wanted.contains(&name.as_str())), "{names:?}");
        let rounds = processes.ilog2() as u64;
        assert_eq!(check_waits(recording).0, 40 * rounds * processes as u64);
    });
}

#[test]
fn multigrid_with_idle_ranks() {
    each("multigrid.c", &["30"], |recording, _| {
        let (idle, active) = (loops_of(recording, 1), loops_of(recording, 0));
        let body =
            |loops: &[(u64, Vec<Value>)]| loops.iter().find(|(times, _)| *times == 30).unwrap().1.len();
        assert_eq!(body(&idle), 3, "start, wait, maximum");
        assert!(body(&active) > 4, "{active:?}");
        assert_eq!(first_count(recording), 30);
        assert_eq!(check_waits(recording).1, 30);
    });
}

#[test]
fn a_master_and_workers() {
    each("workers.c", &["60"], |recording, processes| {
        let events = super::events(&recording.archive());
        let leader = &events["rank 0"];
        let is_received =
            |event: &&String| event.starts_with("MPI_Recv src=") && event.ends_with("any=src,tag");
        assert_eq!(leader.iter().filter(is_received).count(), 60 + processes - 1);
        assert!(leader.iter().all(|event| !event.contains("src=any") && !event.contains("tag=any")));
        // What each worker was sent is what the leader sent to it.
        for worker in 1..processes {
            let sent = format!("MPI_Send dest={worker} ");
            let received =
                events[&format!("rank {worker}")].iter().filter(|event| event.starts_with("MPI_Recv src=0 "));
            assert_eq!(received.count(), leader.iter().filter(|event| event.starts_with(&sent)).count());
        }
        assert_eq!(check_waits(recording).0, 2 * (60 + processes as u64 - 1));
    });
}

#[test]
fn a_conjugate_gradient_nest_in_fortran() {
    each("conjugate.f90", &["6", "11"], |recording, processes| {
        let counts = counts(recording, 1);
        assert_eq!(counts, [6, 11]);
        let rounds = processes.ilog2() / 2;
        let body = &loops_of(recording, 1)[1].1;
        assert_eq!(body.len() as u32, 3 * rounds + 3 + 1, "{body:?}");
        assert_eq!(first_count(recording), 6);
        // Sums over each row, and over all.
        let side = 1 << rounds;
        assert_eq!(check_waits(recording).1, 6 * 11 * side + 6);
    });
}

#[test]
fn an_irregular_program() {
    each("irregular.c", &["4", "9"], |recording, _| {
        assert!(counts(recording, 0).contains(&9));
        let (_, collectives) = check_waits(recording);
        assert_eq!(collectives, 8);
        let answer = recording.ask("patterns", &["--top", "0"]);
        let most =
            answer["patterns"].as_array().unwrap().iter().filter_map(|one| one["count"].as_u64()).max();
        assert!(most.is_some_and(|most| most >= 9 && most % 9 == 0), "{answer}");
    });
}
