//! Starts the program under `mpirun`, and compares what it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_loopfold-mpi");

/// `mpirun` of Open MPI, on few cores.
pub(crate) fn mpirun() -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["-q", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // It gives process 0 a terminal.
    command.env("NO_COLOR", "1");
    command.stdin(Stdio::null());
    command
}

pub(crate) fn output_of(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!("{error}; `cargo xtask test` installs it, or: apt-get install libopenmpi-dev openmpi-bin libclang1")
    })
}

/// What a number of processes print.
pub(crate) fn run(processes: usize, arguments: &[&str]) -> Output {
    output_of(mpirun().args(["-n", &processes.to_string(), PROGRAM]).args(arguments))
}

/// What one process prints, which reads everything itself.
pub(crate) fn alone(arguments: &[&str]) -> Output {
    output_of(Command::new(PROGRAM).args(arguments).stdin(Stdio::null()))
}

pub(crate) fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fails unless a command prints the same in all these numbers of processes as in one.
pub(crate) fn assert_same(processes: &[usize], arguments: &[&str]) {
    let one = alone(arguments);
    assert!(one.status.code().is_some_and(|status| status < 2), "{arguments:?}: {}", messages(&one));
    for &count in processes {
        let several = run(count, arguments);
        assert_eq!(
            several.status.code(),
            one.status.code(),
            "{count}: {arguments:?}: {}",
            messages(&several)
        );
        let texts = [&one, &several].map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        assert!(texts[0] == texts[1], "{count} processes: {arguments:?}\n{}\n{}", texts[0], texts[1]);
    }
}

/// Fails unless the archive of a trace is the same, byte for byte.
pub(crate) fn assert_same_archive(processes: &[usize], inputs: &[&str], folder: &Path) {
    let archive = |name: String| -> PathBuf { folder.join(name) };
    let fold = |count: Option<usize>| {
        let path = archive(format!("{}.fold", count.unwrap_or(0)));
        let path_text = path.to_str().unwrap();
        let arguments = [&["fold", "-o", path_text], inputs].concat();
        let output = count.map_or_else(|| alone(&arguments), |count| run(count, &arguments));
        assert!(output.status.success(), "{arguments:?}: {}", messages(&output));
        std::fs::read(path).unwrap()
    };
    let one = fold(None);
    for &count in processes {
        assert!(fold(Some(count)) == one, "{count} processes: {inputs:?}");
    }
}
