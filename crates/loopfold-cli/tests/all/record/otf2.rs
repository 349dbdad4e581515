//! `record --to otf2` writes an archive that the OTF2 tools read, with the same calls.

use super::{Mpi, events, program, record};
use std::path::Path;
use std::process::Command;

/// The calls of a rank by name, but for what OTF2 does not have.
fn names(input: &Path, rank: usize) -> Vec<String> {
    let name = |event: &String| event.split(' ').next().unwrap_or("").to_string();
    events(input)[&format!("rank {rank}")].iter().map(name).collect()
}

#[test]
fn an_otf2_archive_has_the_same_calls() {
    for (name, arguments) in [("stencil.c", &["20"][..]), ("multigrid.c", &["5"]), ("workers.c", &["20"])] {
        let program = program(Mpi::OpenMpi, name, &[]);
        let recording = record(Mpi::OpenMpi, 4, &["--to", "otf2"], &program, arguments).ended_well();
        let folder = recording.archive();
        assert!(folder.join("traces.otf2").is_file());
        let printed = Command::new("otf2-print").arg(folder.join("traces.otf2")).output().unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let text = String::from_utf8_lossy(&printed.stdout);
        let count = |record: &str| text.lines().filter(|line| line.starts_with(record)).count();
        assert_eq!(count("ENTER"), count("LEAVE"));
        assert_eq!(count("MPI_ISEND "), count("MPI_ISEND_COMPLETE"), "{name}");
        assert_eq!(
            count("MPI_ISEND ") + count("MPI_SEND "),
            count("MPI_IRECV ") + count("MPI_RECV "),
            "{name}"
        );
        // The same program as an archive of our own; that of the master differs each time.
        if name != "workers.c" {
            let other = record(Mpi::OpenMpi, 4, &[], &program, arguments).ended_well();
            for rank in 0..4 {
                assert_eq!(names(&folder, rank), names(&other.archive(), rank), "{name}");
            }
            let messages = |input: &Path| super::ask(input, "waits", &[])["messages"].as_u64();
            assert_eq!(messages(&folder), messages(&other.archive()), "{name}");
        }
    }
}
