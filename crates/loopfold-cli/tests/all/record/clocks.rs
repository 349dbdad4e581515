//! Clocks of nodes that differ: their offsets are measured at start and end, and taken out.

use super::{Mpi, program, record_command};

/// By how much messages are received before they are sent, at most, and how long it took.
fn worst_violation(skew: &str) -> (u64, i64) {
    let program = program(Mpi::OpenMpi, "ring.c", &[]);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("run.fold");
    let mut command = record_command(Mpi::OpenMpi, 3, &[], &archive, &[]);
    command.env("LOOPFOLD_RECORD_CLOCK_SKEW", skew);
    let output = command.arg(program).arg("4000").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer = super::ask(&archive, "waits", &[]);
    let violations = answer["violations"].as_array().unwrap();
    let worst = violations.iter().filter_map(|one| one["worst_ns"].as_u64()).max().unwrap_or(0);
    (worst, answer["total_ns"].as_i64().unwrap())
}

#[test]
fn offsets_and_drift_are_taken_out() {
    // A second for each rank, or 0.1 % of drift: far more than any message takes. What is left is
    // what a busy machine makes of measuring them.
    for skew in ["1000000000,0", "-700000000,1000000", "0,500000"] {
        let (worst, time) = worst_violation(skew);
        assert!(worst < 50_000_000, "{skew}: a message is received {worst} ns before it is sent");
        assert!(time < 3 * 60_000_000_000, "{skew}: {time}");
    }
}
