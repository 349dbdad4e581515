//! Every example program, recorded.

use crate::support::{assert_same, assert_same_archive, messages, mpirun, output_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::{TempDir, tempdir};

/// The command that records, which is not of this package: built here unless it is there.
fn loopfold() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Path::new(crate::support::PROGRAM).with_file_name("loopfold");
        if built.is_file() {
            return built;
        }
        let mut command = Command::new(env!("CARGO"));
        command.args([
            "build",
            "--quiet",
            "--package",
            "loopfold-cli",
            "--bin",
            "loopfold",
            "--profile",
            "test",
        ]);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", messages(&output));
        built
    })
}

/// Compiles an example and records its four processes as an OTF2 archive, and as one of our own.
fn recorded(name: &str, arguments: &[&str]) -> (TempDir, [String; 2]) {
    let folder = tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mpi").join(name);
    let header = Command::new(loopfold()).args(["record", "--header"]).output().unwrap();
    std::fs::write(folder.path().join("loopfold.h"), header.stdout).unwrap();
    let compiler = if name.ends_with(".f90") { "mpif90.openmpi" } else { "mpicc.openmpi" };
    let program = folder.path().join("program");
    let mut compile = Command::new(compiler);
    compile.args(["-O1", "-w", "-o"]).arg(&program).arg(&source).arg("-I").arg(folder.path()).arg("-lm");
    let output = output_of(&mut compile);
    assert!(output.status.success(), "{name}: {}", messages(&output));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record-cache");
    let recordings = [("otf2", "run"), ("fold", "run.fold")].map(|(form, file)| {
        let archive = folder.path().join(file);
        let mut record = mpirun();
        record.env("XDG_CACHE_HOME", &cache).args(["-n", "4"]).arg(loopfold());
        record.args(["record", "--mpi", "--to", form, "-o"]).arg(&archive).arg(&program).args(arguments);
        let output = output_of(&mut record);
        assert!(output.status.success(), "{name}: {}", messages(&output));
        archive.to_str().unwrap().to_string()
    });
    (folder, recordings)
}

/// Commands and numbers of processes alternate, so that all of them take a minute.
#[test]
fn recordings_of_all_examples_give_the_same_answers() {
    let examples: [(&str, &[&str]); 12] = [
        ("ring.c", &["120"]),
        ("stencil.c", &["50"]),
        ("wavefront.f90", &["12", "7"]),
        ("butterfly.c", &["40"]),
        ("multigrid.c", &["30"]),
        ("workers.c", &["60"]),
        ("conjugate.f90", &["6", "11"]),
        ("irregular.c", &["4", "9"]),
        ("adaptive.c", &["6", "30", "5", "20"]),
        ("allpairs.c", &["8", "1"]),
        ("weather.c", &["10", "7", "4", "3"]),
        ("nest.c", &["2 ((3)^4 (1)^5 2)^6 #1"]),
    ];
    for (number, (name, arguments)) in examples.into_iter().enumerate() {
        let (folder, [otf2, archive]) = recorded(name, arguments);
        let processes = [[2, 4], [4, 8], [8, 2]][number % 3];
        assert_same(&processes, &["loops", "--json", &otf2]);
        assert_same(&processes, &["patterns", "--json", &otf2]);
        assert_same(&processes, &["waits", "--json", &otf2]);
        assert_same(&processes[1..], &["stats", "--json", &otf2]);
        assert_same(&processes[..1], &["loops", "--json", &archive]);
        assert_same_archive(&processes[1..], &[&otf2], folder.path());
    }
}
