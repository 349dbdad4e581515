//! Recording MPI programs: the examples of the repository, compiled with the MPIs that are
//! installed and recorded by the command.

mod between;
mod clocks;
mod crashes;
mod deaths;
mod examples;
mod expected;
mod fragile;
mod handles;
mod hardly;
mod logger;
mod lost;
mod mixed;
mod more_calls;
mod otf2;
mod shared_places;
mod sizes;
mod skeleton;
mod unusual;

use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;

/// An MPI that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mpi {
    OpenMpi,
    Mpich,
}

impl Mpi {
    fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }

    /// `mpirun -n COUNT`, for tests on few cores.
    pub(crate) fn mpirun(self, count: usize) -> Command {
        let mut command = Command::new(format!("mpirun.{}", self.name()));
        if self == Mpi::OpenMpi {
            command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command.args(["-n", &count.to_string()]).env("XDG_CACHE_HOME", cache()).stdin(Stdio::null());
        command
    }
}

/// One cache for all tests, so that the recorder is compiled once for each MPI.
pub(crate) fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("record-cache")
}

pub(crate) fn loopfold() -> &'static str {
    env!("CARGO_BIN_EXE_loopfold")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mpi")
}

/// An example, or a source of the tests, compiled: each once.
pub(crate) fn program(mpi: Mpi, name: &str, options: &[&str]) -> PathBuf {
    static BUILT: OnceLock<Mutex<HashMap<String, PathBuf>>> = OnceLock::new();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("record-programs");
    std::fs::create_dir_all(&folder).unwrap();
    // Without the folders in them: a file name is short.
    let last_parts: String = options.iter().filter_map(|option| option.rsplit('/').next()).collect();
    let key = format!("{name}-{}-{last_parts}", mpi.name());
    let mut built = BUILT.get_or_init(Mutex::default).lock().unwrap();
    if let Some(known) = built.get(&key) {
        return known.clone();
    }
    let mine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/record").join(name);
    let source = if mine.is_file() { mine } else { examples().join(name) };
    let wrapper = if name.ends_with(".f90") { "mpif90" } else { "mpicc" };
    let path = folder.join(&key);
    let mut command = Command::new(format!("{wrapper}.{}", mpi.name()));
    command.args(["-O1", "-g", "-w", "-o"]).arg(&path).arg(&source).args(options).args(["-lm", "-pthread"]);
    let output = command.output().unwrap_or_else(|error| {
        panic!("{wrapper}.{}: {error}; `cargo xtask test` installs it, or: apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich gfortran", mpi.name())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    built.insert(key, path.clone());
    path
}

/// The option by which a program finds the header that the command prints, to mark regions.
pub(crate) fn header() -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("record-header");
    std::fs::create_dir_all(&folder).unwrap();
    let printed = Command::new(loopfold()).args(["record", "--header"]).output().unwrap();
    assert!(printed.status.success());
    // Other tests may be reading it.
    let file = tempfile::NamedTempFile::new_in(&folder).unwrap();
    std::fs::write(file.path(), printed.stdout).unwrap();
    file.persist(folder.join("loopfold.h")).unwrap();
    format!("-I{}", folder.display())
}

/// A recording of a program that has ended.
pub(crate) struct Recording {
    pub(crate) folder: TempDir,
    pub(crate) output: Output,
}

impl Recording {
    pub(crate) fn archive(&self) -> PathBuf {
        self.folder.path().join("run.fold")
    }

    /// What was written to standard error.
    pub(crate) fn messages(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Fails unless the program ended well, with an archive and without a message.
    pub(crate) fn ended_well(self) -> Self {
        let said = self.messages();
        assert!(self.output.status.success(), "{said}");
        assert!(!said.contains("loopfold:"), "{said}");
        assert!(self.archive().exists(), "{said}");
        assert!(!self.folder.path().join("run.fold.parts").exists());
        self
    }

    /// What a command answers, as JSON.
    pub(crate) fn ask(&self, command: &str, options: &[&str]) -> Value {
        ask(&self.archive(), command, options)
    }
}

pub(crate) fn ask(input: &Path, command: &str, options: &[&str]) -> Value {
    let output =
        Command::new(loopfold()).arg(command).arg(input).arg("--json").args(options).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

/// `mpirun -n COUNT loopfold record --mpi -o ARCHIVE OPTIONS`, after what starts the command.
pub(crate) fn record_command(
    mpi: Mpi,
    count: usize,
    before: &[&str],
    archive: &Path,
    options: &[&str],
) -> Command {
    let mut command = mpi.mpirun(count);
    command.args(before).args([loopfold(), "record", "--mpi", "-o"]).arg(archive).args(options);
    command
}

/// Records a program, however it ends.
pub(crate) fn record(
    mpi: Mpi,
    count: usize,
    options: &[&str],
    program: &Path,
    arguments: &[&str],
) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let mut command = record_command(mpi, count, &[], &folder.path().join("run.fold"), options);
    let output = command.arg(program).args(arguments).output().unwrap();
    Recording { folder, output }
}

/// The events of each stream, in order, as the command prints them.
pub(crate) fn events(input: &Path) -> HashMap<String, Vec<String>> {
    let output = Command::new(loopfold()).arg("cat").arg(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut streams: HashMap<String, Vec<String>> = HashMap::new();
    let mut only = None;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // A single stream is printed without its name.
        let (stream, event) = match line.split_once('\t') {
            Some((stream, event)) => (stream.to_string(), event),
            None => (only.get_or_insert_with(|| first_stream(input)).clone(), line),
        };
        streams.entry(stream).or_default().push(event.to_string());
    }
    streams
}

fn first_stream(input: &Path) -> String {
    let classes = ask(input, "loops", &[]);
    classes["classes"][0]["streams"][0].as_str().unwrap().to_string()
}
