//! Calls of all kinds, regions, call sites and threads.

use super::{Mpi, events, header, program, record};

#[test]
fn calls_of_all_kinds() {
    for (mpi, processes) in [(Mpi::OpenMpi, 4), (Mpi::Mpich, 4)] {
        let program = program(mpi, "more_calls.c", &[&header(), "-ldl"]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let recording = record(mpi, processes, &[], &program, &[file.path().to_str().unwrap()]).ended_well();
        let events = &events(&recording.archive())["rank 1"];
        let has = |wanted: &str| {
            assert!(events.iter().any(|event| event == wanted), "{mpi:?}: {wanted} in {events:#?}")
        };
        // Regions of the program.
        has("enter order");
        has("halfway");
        has("leave order");
        // The last of three completes first, then the oldest two.
        has("MPI_Wait n=1 done=2");
        has("MPI_Waitall n=2");
        // Wildcards, with what they matched.
        has("MPI_Irecv src=0 tag=7 bytes=4 comm=0 any=src");
        has("MPI_Mprobe from=0 tag=8 comm=0 any=src");
        has("MPI_Mrecv src=0 tag=8 bytes=4 comm=0 any=src");
        has("MPI_Test n=1");
        has("MPI_Iallreduce op=SUM bytes=4 comm=0");
        has("MPI_Allgather bytes=4 comm=0");
        has("MPI_Exscan op=MAX bytes=4 comm=0");
        if mpi == Mpi::Mpich {
            has("MPI_Start op=SUM bytes=4 comm=0 of=MPI_Allreduce");
        }
        has("MPI_Comm_split comm=0 color=1 key=1 newcomm=2");
        has("MPI_Barrier comm=2");
        has("MPI_Neighbor_alltoall bytes=4 comm=2");
        has("MPI_Neighbor_alltoallv bytes=4 comm=2");
        has("MPI_Win_create bytes=16 comm=0");
        has("MPI_Put target=2 bytes=4");
        has("MPI_File_write_at_all bytes=4");
        // Communicators that come and go are a loop.
        let answer = recording.ask("loops", &["--exact", "--full"]);
        assert!(answer.to_string().contains("\"times\":10"), "{answer}");
        let waits = recording.ask("waits", &[]);
        assert_eq!(waits["messages"].as_u64(), Some(5 * processes as u64), "{mpi:?}");
    }
}

#[test]
fn each_thread_has_a_stream() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let recording = record(mpi, 2, &[], &program(mpi, "threads.c", &[]), &[]).ended_well();
        let events = events(&recording.archive());
        let calls =
            |stream: &str| events[stream].iter().filter(|event| event.starts_with("MPI_Sendrecv")).count();
        // Which thread calls first is not known.
        let mut counts = [calls("rank 1 thread 1"), calls("rank 1 thread 2")];
        counts.sort_unstable();
        assert_eq!(counts, [25, 50]);
        assert_eq!(events["rank 1"].last().unwrap(), "MPI_Finalize");
    }
}

#[test]
fn call_sites_have_function_file_and_line() {
    let program = program(Mpi::OpenMpi, "workers.c", &[]);
    let recording = record(Mpi::OpenMpi, 2, &["--callsites"], &program, &["10"]).ended_well();
    let events = events(&recording.archive());
    let first = events["rank 0"].iter().find(|event| event.starts_with("MPI_Recv")).unwrap();
    let source = include_str!("../../../../../examples/mpi/workers.c");
    let line = 1 + source.lines().position(|line| line.contains("MPI_Recv(&result")).unwrap();
    assert!(first.contains(&format!("workers.c:{line})")), "{first}");
    assert!(first.contains("lead") || first.contains("main"), "{first}");
}

#[test]
fn output_and_exit_status_are_those_of_the_program() {
    let program = program(Mpi::OpenMpi, "stencil.c", &[]);
    let plain = Mpi::OpenMpi.mpirun(2).arg(&program).arg("20").output().unwrap();
    let recording = record(Mpi::OpenMpi, 2, &[], &program, &["20"]).ended_well();
    assert_eq!(plain.stdout, recording.output.stdout);
    assert_eq!(plain.stderr, recording.output.stderr);
}
