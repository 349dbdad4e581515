//! Generated traces: programs of many processes with wildcards, split communicators and lost
//! messages, and simulations with times.

#[path = "../../../loopfold/tests/all/support/waits.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other half is for tests of the library")]
mod simulations;

use crate::support::{assert_same, assert_same_archive};
use loopfold::folders::{Auto, fold_trace};
use loopfold_testing::mpi::{Call, Program, lu};
use loopfold_testing::mpi_loops::{self, Generator};
use loopfold_testing::{Rng, waits};
use std::path::Path;
use tempfile::tempdir;

/// A file of text for each process, with what is noted of its communicators left out.
fn files(folder: &Path, program: &Program) -> Vec<String> {
    let mut names = Vec::new();
    for (rank, calls) in program.iter().enumerate() {
        let has_text = |call: &&Call| !matches!(call, Call::Enter(_) | Call::Leave(_));
        let text: String = calls.iter().filter(has_text).map(|call| call.text() + "\n").collect();
        let path = folder.join(format!("rank-{rank}.txt"));
        std::fs::write(&path, text).unwrap();
        names.push(path.to_str().unwrap().to_string());
    }
    names
}

fn with<'a>(command: &[&'a str], inputs: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    [command, &inputs, more].concat()
}

/// Each generator in another number of processes, so that all of them take seconds.
#[test]
fn known_programs_have_the_same_patterns() {
    let generators: [Generator; 8] = [
        mpi_loops::split_communicators,
        mpi_loops::several_senders_to_anyone,
        mpi_loops::any_order,
        mpi_loops::lost_before,
        mpi_loops::lost_within,
        mpi_loops::cut_off,
        mpi_loops::counting_tags,
        mpi_loops::two_groups,
    ];
    let mut rng = Rng::new(18);
    for (number, generator) in generators.into_iter().enumerate() {
        let folder = tempdir().unwrap();
        let inputs = files(folder.path(), &generator(&mut rng).program);
        let processes = [[2, 8], [3, 4]][number % 2];
        assert_same(&processes, &with(&["patterns", "--json"], &inputs, &[]));
        assert_same(&processes[..1], &with(&["loops", "--json"], &inputs, &[]));
        assert_same(&processes[1..], &with(&["stats", "--json"], &inputs, &[]));
    }
}

#[test]
fn every_command_prints_the_same() {
    let folder = tempdir().unwrap();
    let inputs = files(folder.path(), &lu(2, 3, 4, 20));
    for (processes, command, more) in [
        (&[1, 2, 4, 8][..], "loops", &["--json"][..]),
        (&[4], "loops", &["--json", "--peers", "relative"]),
        (&[2], "loops", &["--json", "--folder", "repair"]),
        (&[3], "loops", &["--json", "--ignore", "bytes,tag"]),
        (&[2], "loops", &["--json", "--logical"]),
        (&[4], "stats", &["--json", "--only", "MPI_Isend"]),
        (&[3], "stats", &["--json", "--streams"]),
        (&[8], "patterns", &["--json", "--method", "exact"]),
        (&[2, 4], "similar", &["--json", "MPI_Irecv MPI_Isend"]),
        (&[4], "similar", &["--json", "--like", "mesh:2x3"]),
    ] {
        assert_same(processes, &with(&[command], &inputs, more));
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    assert_same_archive(&[1, 2, 4, 8], &inputs, folder.path());
}

/// Messages are lost, clocks differ, and a part is selected.
#[test]
fn waits_with_every_option_are_the_same() {
    let mut rng = Rng::new(20);
    let folder = tempdir().unwrap();
    for round in 0..2 {
        let mut simulated = waits::ring(6, 40, &mut rng);
        for calls in &mut simulated.calls {
            calls.retain(|_| !rng.one_in(40));
        }
        let shifted = |process: usize, start, duration| (Some(start + 700 * process as i64), Some(duration));
        let trace = simulations::trace_of(&simulated, shifted);
        let path = folder.path().join(format!("otf2-{round}"));
        loopfold_otf2::write(&fold_trace(trace, &Auto, 1).unwrap(), &path).unwrap();
        let otf2 = path.to_str().unwrap();
        let options: [&[&str]; 5] = [
            &["--correct-clocks"],
            &["--iterations", "3..9"],
            &["--stream", "rank 2"],
            &["--from", "2us", "--to", "9us"],
            &["--peers", "relative"],
        ];
        for (number, options) in options.into_iter().enumerate().filter(|(number, _)| number % 2 == round) {
            assert_same(&[[2, 5], [3, 4]][number % 2], &[&["waits", "--json", otf2], options].concat());
        }
        assert_same(&[4], &["loops", "--json", "--stream", "rank 1", "--stream", "rank 4", otf2]);
        assert_same(&[3], &["loops", "--json", "--iterations", "2..5", otf2]);
    }
}

/// With times, in an OTF2 archive whose locations are divided, and in an archive of our own.
#[test]
fn waits_of_simulations_are_the_same() {
    let mut rng = Rng::new(19);
    for round in 0..3 {
        let folder = tempdir().unwrap();
        let simulated = match round {
            0 => waits::ring(6, 40, &mut rng),
            _ => waits::random(&mut rng),
        };
        let trace = simulations::trace_of(&simulated, |_, start, duration| (Some(start), Some(duration)));
        let fold = fold_trace(trace, &Auto, 1).unwrap();
        let (otf2, archive) = (folder.path().join("otf2"), folder.path().join("x.fold"));
        loopfold_otf2::write(&fold, &otf2).unwrap();
        loopfold::archive::write(&fold, std::fs::File::create(&archive).unwrap()).unwrap();
        let (otf2, archive) = (otf2.to_str().unwrap(), archive.to_str().unwrap());
        assert_same(&[1, 2, 4, 8][round..], &["waits", "--json", otf2]);
        assert_same(&[3 + round], &["waits", otf2]);
        assert_same(&[3], &["loops", "--json", otf2]);
        assert_same(&[4], &["loops", otf2]);
        assert_same(&[8], &["stats", "--json", otf2]);
        assert_same(&[4], &["waits", "--json", archive]);
        assert_same(&[2], &["loops", "--json", archive]);
        assert_same_archive(&[3, 8], &[otf2], folder.path());
    }
}
