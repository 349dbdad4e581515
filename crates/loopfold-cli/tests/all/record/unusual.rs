//! Programs that do what few do, in processes whose surroundings are unusual: recording changes
//! nothing of what they do, and ends.

use super::{Mpi, Recording, cache, events, loopfold, program, record_command};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// Records what a shell starts, with the program as `$0` and its argument as `$1`.
fn record_in_shell(mpi: Mpi, count: usize, script: &str, what: &str, set_up: impl Fn(&Path)) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    set_up(folder.path());
    let mut command = record_command(mpi, count, &[], &folder.path().join("run.fold"), &[]);
    command.args(["sh", "-c", script]).arg(program(mpi, "unusual.c", &[])).arg(what);
    // A process that waits for ever is an error.
    let output = command.env("MPIEXEC_TIMEOUT", "60").output().unwrap();
    Recording { folder, output }
}

fn recorded(mpi: Mpi, count: usize, what: &str) -> HashMap<String, Vec<String>> {
    let recording = record_in_shell(mpi, count, "exec \"$0\" \"$@\"", what, |_| {}).ended_well();
    events(&recording.archive())
}

fn starting<'a>(events: &'a [String], start: &str) -> Vec<&'a str> {
    events.iter().map(String::as_str).filter(|event| event.starts_with(start)).collect()
}

/// The values of a field, in order.
fn values(events: &[String], call: &str, field: &str) -> Vec<String> {
    let of = |event: &&str| event.split(' ').find_map(|word| word.strip_prefix(field)).map(str::to_string);
    starting(events, call).iter().filter_map(of).collect()
}

#[test]
fn calls_that_fail() {
    for mpi in BOTH {
        for events in recorded(mpi, 1, "errors").values() {
            assert_eq!(starting(events, "MPI_Wait "), ["MPI_Wait n=1"; 4], "{mpi:?}");
            let completed = values(events, "MPI_Waitall", "n=");
            assert_eq!(
                completed.iter().map(|count| count.parse::<u32>().unwrap()).sum::<u32>(),
                2,
                "{mpi:?}"
            );
            assert_eq!(values(events, "MPI_Irecv src=99", "bytes="), ["0"]);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = record_command(mpi, 2, &[], &folder.path().join("run.fold"), &[]);
        let output = command.arg(program(mpi, "unusual.f90", &[])).env("MPIEXEC_TIMEOUT", "60").output();
        let recording = Recording { folder, output: output.unwrap() }.ended_well();
        for events in super::events(&recording.archive()).values() {
            assert_eq!(starting(events, "MPI_Wait "), ["MPI_Wait n=1"; 3], "{mpi:?}");
            assert_eq!(values(events, "MPI_Comm_create_group", "newcomm="), [""; 0], "{mpi:?}");
        }
    }
}

#[test]
fn an_error_handler_that_jumps() {
    for mpi in BOTH {
        let events = recorded(mpi, 2, "jump");
        assert_eq!(starting(&events["rank 1"], "MPI_Comm_dup"), ["MPI_Comm_dup comm=0 newcomm=2"]);
        assert_eq!(starting(&events["rank 0"], "MPI_Finalize").len(), 1);
    }
}

#[test]
fn numbers_of_communicators() {
    for mpi in BOTH {
        let events = recorded(mpi, 4, "communicators");
        let mut groups = Vec::new();
        for rank in 0..4 {
            let events = &events[&format!("rank {rank}")];
            assert_eq!(values(events, "MPI_Comm_idup", "newcomm="), ["65536"]);
            assert_eq!(values(events, "MPI_Bcast", "comm="), ["65536"]);
            groups.push(values(events, "MPI_Intercomm_create", "newcomm="));
            let dups = values(events, "MPI_Comm_dup", "newcomm=");
            assert_eq!((&dups[..2], &dups[2..4]), (&dups[2..4], &dups[4..]), "{mpi:?}");
            let bytes = values(events, "MPI_Reduce_scatter", "bytes=");
            assert_eq!(bytes, ["16"], "{mpi:?}");
            assert_eq!(values(events, "MPI_Cart_create", "dims="), ["4x1x1x1x1x1x1x1x1"]);
            assert_eq!(values(events, "MPI_Cart_create", "periods="), ["0x0x0x0x0x0x0x0x1"]);
        }
        assert!(groups.iter().all(|group| *group == groups[0]), "{groups:?}");
    }
}

#[test]
fn threads_that_come_and_go() {
    for mpi in BOTH {
        let events = recorded(mpi, 2, "threads");
        let dups = |stream: &str| values(&events[stream], "MPI_Comm_dup", "newcomm=");
        let (first, second) = (dups("rank 0"), dups("rank 0 thread 1"));
        assert_eq!((&first, &second), (&dups("rank 1"), &dups("rank 1 thread 1")), "{mpi:?}");
        // Both communicators of a step are there at once.
        assert!(first[2..].iter().zip(&second).all(|(first, second)| first != second), "{mpi:?}");
        let of_threads = events.iter().filter(|(stream, _)| stream.contains("thread"));
        let asked: usize = of_threads.map(|(_, events)| starting(events, "MPI_Comm_size").len()).sum();
        assert_eq!(asked, 2 * 150, "{mpi:?}");
    }
}

#[test]
fn members_that_are_not_recorded() {
    // Debian's MPICH cannot spawn.
    let events = recorded(Mpi::OpenMpi, 2, "spawn");
    assert_eq!(starting(&events["rank 1"], "MPI_Intercomm_merge").len(), 1);
}

#[test]
fn the_surroundings_are_those_of_the_program() {
    for mpi in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let mut command = record_command(mpi, 1, &[], &folder.path().join("run.fold"), &[]);
        command.arg(program(mpi, "unusual.c", &[])).arg("surroundings");
        let output = command.env("LD_PRELOAD", "libm.so.6").env("MPIEXEC_TIMEOUT", "60").output().unwrap();
        Recording { folder, output }.ended_well();
        // No file may be as large as the memory would be for many threads.
        let script = "ulimit -f 100000; exec \"$0\" \"$@\"";
        record_in_shell(mpi, 2, script, "duplicate", |_| {}).ended_well();
    }
}

#[test]
fn a_rank_that_cannot_be_recorded() {
    let missing = "test \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 && export LOOPFOLD_RECORD_HELPER=/nonexistent; exec \"$0\" \"$@\"";
    let elsewhere = "test \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 && export LOOPFOLD_RECORD=/nonexistent/run.fold; exec \"$0\" \"$@\"";
    for mpi in BOTH {
        let outcomes = [
            record_in_shell(mpi, 3, missing, "duplicate", |_| {}),
            record_in_shell(mpi, 3, elsewhere, "duplicate", |_| {}),
        ];
        for recording in outcomes {
            let said = recording.messages();
            assert!(recording.output.status.success(), "{said}");
            assert!(
                said.contains("nothing is recorded") || said.contains("rank 1 is not recorded"),
                "{said}"
            );
            assert!(said.contains("the ranks cannot be merged"), "{said}");
            let part = recording.folder.path().join("run.fold.parts/rank-2.fold");
            assert!(part.is_file(), "{said}");
        }
    }
}

/// Copies the library that a compiler makes to another cache.
fn copy_library(mpicc: &str, to: &Path) {
    let mut command = Command::new(loopfold());
    command.args(["record", "--mpi", "--mpicc", mpicc, "-o", "run.fold", "--print-env"]);
    let output = command.env("XDG_CACHE_HOME", cache()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split(['=', '\'', '"', ' ', '\n', ';']);
    let library = Path::new(words.find(|word| word.ends_with(".so")).unwrap());
    use std::os::unix::fs::DirBuilderExt as _;
    let place = to.join("loopfold/mpi");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place).unwrap();
    std::fs::copy(library, place.join(library.file_name().unwrap())).unwrap();
}

#[test]
fn a_recorder_of_another_mpi() {
    for (mpi, other) in [(Mpi::OpenMpi, "mpicc.mpich"), (Mpi::Mpich, "mpicc.openmpi")] {
        // A cache of its own, as what does not fit is removed from it.
        let own = tempfile::tempdir().unwrap();
        copy_library(other, own.path());
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("run.fold");
        let command = || {
            let mut command = record_command(mpi, 2, &[], &archive, &["--mpicc", other]);
            command.env("XDG_CACHE_HOME", own.path()).env("MPIEXEC_TIMEOUT", "60");
            command
        };
        // What a shell starts is not known before.
        let mut hidden = command();
        hidden.args(["sh", "-c", "exec \"$0\" \"$@\""]).arg(program(mpi, "unusual.c", &[])).arg("duplicate");
        let output = hidden.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("was built for another MPI"), "{said}");
        assert!(!said.contains("merged"), "{said}");
        assert!(!archive.exists());
        let output = command().arg(program(mpi, "unusual.c", &[])).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("is of another MPI than the program"), "{said}");
    }
}

#[test]
fn a_cache_that_cannot_be_preloaded_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(loopfold());
    command.args(["record", "--mpi", "-o"]).arg(folder.path().join("run.fold"));
    command.arg(program(Mpi::OpenMpi, "unusual.c", &[])).env("XDG_CACHE_HOME", cache().join("a b"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("set XDG_CACHE_HOME"), "{said}");
}
