//! Archives of programs whose ranks do the same hardly grow with ranks or iterations.

use super::{Mpi, program, record};

fn bytes(name: &str, processes: usize, arguments: &[&str]) -> u64 {
    let program = program(Mpi::OpenMpi, name, &[]);
    let recording = record(Mpi::OpenMpi, processes, &["--times", "none"], &program, arguments).ended_well();
    recording.archive().metadata().unwrap().len()
}

#[test]
fn a_ring_takes_at_most_300_bytes() {
    for processes in [2, 4] {
        for iterations in ["1000", "5000"] {
            let size = bytes("ring.c", processes, &[iterations]);
            println!("ring of {processes}, {iterations} iterations: {size} bytes");
            assert!(size <= 300, "{size}");
        }
    }
}

#[test]
fn a_stencil_takes_at_most_1500_bytes() {
    let mut last = 0;
    for (processes, steps) in [(4, "1000"), (4, "30000"), (16, "1000"), (64, "200")] {
        let size = bytes("stencil.c", processes, &[steps, "4"]);
        println!("stencil on {processes}, {steps} steps: {size} bytes");
        assert!(size <= 1500, "{size}");
        if steps == "30000" {
            assert!(size <= last + 16, "{last} to {size}");
        }
        last = size;
    }
}
