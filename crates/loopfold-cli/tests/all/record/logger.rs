//! The recorded events equal, event for event, those of an independent recorder that prints text.

use super::{Mpi, events, loopfold, program, record_command};
use std::path::Path;

#[test]
fn events_equal_those_of_an_independent_recorder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/record");
    let cases: [(&str, &[&str]); 8] = [
        ("ring.c", &["30"]),
        ("stencil.c", &["30"]),
        ("butterfly.c", &["10"]),
        ("multigrid.c", &["20"]),
        ("workers.c", &["50"]),
        ("irregular.c", &["3", "5"]),
        ("conjugate.f90", &["4", "5"]),
        ("wavefront.f90", &["4", "5"]),
    ];
    for (mpi, processes) in [(Mpi::OpenMpi, 4), (Mpi::Mpich, 4)] {
        for (name, arguments) in cases {
            let source = if name.ends_with(".f90") { "logger_fortran.c" } else { "logger.c" };
            let logger = folder.join(source).to_string_lossy().into_owned();
            // The logger defines all that such a program needs of the library for Fortran, but calls it.
            let program = program(mpi, name, &[&logger, "-ldl", "-Wl,--no-as-needed"]);
            let folder = tempfile::tempdir().unwrap();
            let archive = folder.path().join("run.fold");
            let mut command = record_command(mpi, processes, &[], &archive, &[]);
            command.env("LOGGER_FOLDER", folder.path());
            let output = command.arg(&program).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let recorded = events(&archive);
            for rank in 0..processes {
                let text = std::fs::read_to_string(folder.path().join(format!("rank-{rank}.txt"))).unwrap();
                let expected: Vec<&str> = text.lines().collect();
                assert!(expected.len() >= 6, "{name}");
                assert_eq!(recorded[&format!("rank {rank}")], expected, "{name} rank {rank} {mpi:?}");
            }
            // They also are the same events, with their roles and fields.
            let texts: Vec<_> =
                (0..processes).map(|rank| folder.path().join(format!("rank-{rank}.txt"))).collect();
            let of_text = folder.path().join("text.fold");
            let fold = std::process::Command::new(loopfold())
                .arg("fold")
                .args(&texts)
                .arg("-o")
                .arg(&of_text)
                .output();
            assert!(fold.unwrap().status.success());
            let matrix = |input: &Path| {
                let patterns =
                    std::process::Command::new(loopfold()).args(["patterns", "--matrix"]).arg(input).output();
                String::from_utf8(patterns.unwrap().stdout).unwrap()
            };
            assert_eq!(matrix(&of_text), matrix(&archive), "{name} {mpi:?}");
        }
    }
}
