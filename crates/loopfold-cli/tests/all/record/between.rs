//! What recordings know of the time between calls.

use super::{Mpi, program, record};
use loopfold::archive::{self, ReadConfig};
use loopfold::trace::RECORDING;
use std::fs::File;

/// Of one call in sixteen on average; and it ended before the next call began.
#[test]
fn what_recording_takes_is_measured_for_some_calls() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let recording = record(mpi, 2, &[], &program(mpi, "ring.c", &[]), &["5000"]).ended_well();
        let (fold, _) = archive::read(File::open(recording.archive()).unwrap(), &ReadConfig::new()).unwrap();
        for stream in fold.streams() {
            let times = stream.times();
            let (_, took) = times.metrics.iter().find(|(name, _)| name == RECORDING).unwrap();
            let took = took.values().unwrap();
            let starts = times.starts.as_ref().unwrap().values().unwrap();
            let durations = times.durations.as_ref().unwrap().values().unwrap();
            let measured: Vec<usize> = (1..took.len()).filter(|&at| !took[at].is_nan()).collect();
            let share = took.len() as f64 / measured.len() as f64;
            assert!((8.0..32.0).contains(&share), "{mpi:?}: one of {share}");
            for at in measured {
                // Clocks are corrected, and their drift is.
                let gap = 1.001 * (starts[at] - starts[at - 1] - durations[at - 1].max(0)) as f64 + 5.0;
                assert!(took[at] <= gap, "{mpi:?}: {} of {gap} ns before event {at}", took[at]);
            }
        }
    }
}
