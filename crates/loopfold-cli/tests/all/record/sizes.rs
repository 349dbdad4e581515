//! Archives of programs whose ranks do the same hardly grow with ranks or iterations.

use super::{Mpi, program, record};

fn bytes(name: &str, processes: usize, arguments: &[&str]) -> u64 {
    let program = program(Mpi::OpenMpi, name, &[]);
    let recording = record(Mpi::OpenMpi, processes, &["--times", "none"], &program, arguments).ended_well();
    recording.archive().metadata().unwrap().len()
}

/// Fails unless all are at most so large, and the largest hardly larger than the smallest.
fn check(name: &str, processes: usize, iterations: &[&str], most: u64) {
    let arguments = |iterations| if name == "stencil.c" { vec![iterations, "4"] } else { vec![iterations] };
    let sizes: Vec<u64> =
        iterations.iter().map(|iterations| bytes(name, processes, &arguments(iterations))).collect();
    println!("{name} on {processes}, {iterations:?} iterations: {sizes:?} bytes");
    let largest = *sizes.iter().max().unwrap();
    assert!(largest <= most, "{name} on {processes}: {largest} bytes");
    let growth = largest - sizes.iter().min().unwrap();
    assert!(growth <= 16, "{name} on {processes}: {sizes:?} bytes for {iterations:?} iterations");
}

#[test]
fn a_ring_takes_at_most_300_bytes() {
    check("ring.c", 2, &["1000", "100000"], 300);
    check("ring.c", 4, &["1000", "20000"], 300);
}

/// `cargo xtask bench record` has 100,000 steps on 64 processes, too, which take minutes.
#[test]
fn a_stencil_takes_at_most_1500_bytes() {
    check("stencil.c", 4, &["1000", "100000"], 1500);
    check("stencil.c", 16, &["1000", "10000"], 1500);
    check("stencil.c", 64, &["300", "1000"], 1500);
}
