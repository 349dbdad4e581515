//! Compiles the MPI programs of `examples/mpi` and records them, for benchmarks and papers.

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with compiled programs, and the command that records them.
pub(crate) struct Programs {
    folder: TempDir,
    command: PathBuf,
}

impl Programs {
    /// Builds the command.
    pub(crate) fn new() -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args([
                "build",
                "--quiet",
                "--release",
                "--package",
                "loopfold-cli",
                "--package",
                "loopfold-pass",
            ])
            .current_dir(crate::root())
            .status()?;
        ensure!(built.success(), "the command cannot be built");
        let command = crate::root().join("target/release/loopfold");
        Ok(Self { folder: tempfile::tempdir()?, command })
    }

    /// The command.
    pub(crate) fn command(&self) -> &Path {
        &self.command
    }

    /// Compiles a program for Open MPI, from a path in the repository.
    pub(crate) fn compile(&self, source: &str) -> Result<PathBuf> {
        let source = crate::root().join(source);
        let path = self.folder.path().join(source.file_stem().context("a file has a name")?);
        let header = Command::new(&self.command).args(["record", "--header"]).output()?;
        std::fs::write(self.folder.path().join("loopfold.h"), header.stdout)?;
        let wrapper =
            if source.extension().is_some_and(|it| it == "f90") { "mpif90.openmpi" } else { "mpicc.openmpi" };
        let mut compiler = Command::new(wrapper);
        compiler
            .args(["-O2", "-w", "-I"])
            .arg(self.folder.path())
            .arg("-o")
            .args([&path, &source])
            .arg("-ldl");
        let output =
            compiler.output().with_context(|| format!("{wrapper}: install libopenmpi-dev and gfortran"))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(path)
    }

    /// Compiles a program whose paths are recorded, from a path in the repository.
    pub(crate) fn compile_paths(&self, source: &str) -> Result<PathBuf> {
        let source = crate::root().join(source);
        let path = self.folder.path().join(source.file_stem().context("a file has a name")?);
        let mut compiler = Command::new(&self.command);
        let output = compiler.args(["cc", "-O1", "-o"]).args([&path, &source]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(path)
    }

    /// Where an archive is written.
    pub(crate) fn archive(&self) -> PathBuf {
        self.folder.path().join("run.fold")
    }

    /// `mpirun`, with the program, recorded or not.
    pub(crate) fn mpirun(
        &self,
        processes: usize,
        program: &Path,
        arguments: &[&str],
        recorded: Option<&[&str]>,
    ) -> Command {
        let mut command = Command::new("mpirun.openmpi");
        command.args(["--oversubscribe", "-n", &processes.to_string()]);
        if processes > 2 {
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
        }
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        if let Some(options) = recorded {
            command.arg(&self.command).args(["record", "--mpi", "-o"]).arg(self.archive()).args(options);
        }
        command.arg(program).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end, recorded or not.
    pub(crate) fn run(
        &self,
        processes: usize,
        program: &Path,
        arguments: &[&str],
        recorded: Option<&[&str]>,
    ) -> Result<Output> {
        let output =
            self.mpirun(processes, program, arguments, recorded).output().context("mpirun.openmpi")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output)
    }

    /// The answer of a command on the archive, as text.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<String> {
        let (command, options) = arguments.split_first().context("a command")?;
        let output = Command::new(&self.command).arg(command).arg(self.archive()).args(options).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
