//! Running the command and looking at what it says.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

/// Cases of the corpus as traces: the same as for the tests of the library.
#[path = "../../../../loopfold/tests/all/support/corpus.rs"]
pub mod corpus;
/// Simulated programs as traces, likewise.
#[path = "../../../../loopfold/tests/all/support/waits.rs"]
pub mod waits;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The path of the command.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_loopfold")
}

/// The result of one execution of the command.
pub struct Run {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl Run {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.text(), self.err);
        self
    }

    /// Nothing was found, and standard error says all of this.
    #[track_caller]
    pub fn nothing_with(self, expected: &[&str]) {
        assert_eq!(self.code, Some(1), "{}{}", self.text(), self.err);
        for part in expected {
            assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
        }
    }

    /// An error that says all of this.
    #[track_caller]
    pub fn fails_with(self, expected: &[&str]) {
        assert_eq!(self.code, Some(2), "{}{}", self.text(), self.err);
        assert!(self.out.is_empty(), "an error leaves nothing on standard output: {}", self.text());
        for part in expected {
            assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
        }
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Run {
            code: output.status.code(),
            out: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the command with these arguments.
pub fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    Command::new(binary()).args(arguments).env_remove("COLUMNS").output().expect("the command runs").into()
}

/// Runs the command as somebody who may not read and write everything, as root may.
#[cfg(unix)]
pub fn run_as_nobody(folder: &Folder, arguments: &[&str]) -> Run {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    // From a place where nobody can look.
    let copy = folder.at("loopfold");
    std::fs::copy(binary(), &copy).expect("the command is copied");
    for path in [folder.path().as_os_str(), OsStr::new(&copy)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    loop {
        let output = Command::new(&copy).args(arguments).current_dir("/").uid(65534).gid(65534).output();
        match output {
            // Another test forked while the copy was open for writing: until its child executes
            // something, the copy cannot be executed.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            output => return output.expect("the command runs").into(),
        }
    }
}

/// Runs the command with this standard input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(binary())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("the writer ends");
    output.into()
}

/// Runs the command with standard output on a terminal, of which `out` has what is written to it.
#[cfg(target_os = "linux")]
pub fn run_on_terminal<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    with_terminal(|command, shown, _| {
        command.args(arguments).stdin(Stdio::null()).stdout(shown);
    })
}

/// Runs the command with a terminal as its `--output`, of which `out` has what is written to it.
#[cfg(target_os = "linux")]
pub fn run_into_terminal<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    with_terminal(|command, shown, path| {
        // As its input, the terminal is open until the command ends.
        command.args(arguments).args(["-o", path]).stdin(shown).stdout(Stdio::null());
    })
}

/// Runs a command that is given the end of a terminal, and its path.
#[cfg(target_os = "linux")]
fn with_terminal(give: impl FnOnce(&mut Command, std::fs::File, &str)) -> Run {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    use std::io::Read as _;
    let mut terminal =
        std::fs::File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal"));
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal");
    let path = ptsname(&terminal, Vec::new()).expect("its name").into_string().expect("a path");
    let shown = std::fs::File::options().read(true).write(true).open(&path).expect("the other end");
    // What is written arrives as it was written.
    let mut settings = tcgetattr(&shown).expect("settings");
    settings.make_raw();
    tcsetattr(&shown, OptionalActions::Now, &settings).expect("settings");
    let mut command = Command::new(binary());
    command.env_remove("COLUMNS").env("TERM", "xterm").stderr(Stdio::piped());
    give(&mut command, shown, &path);
    let child = command.spawn().expect("the command runs");
    // Its end of the terminal has to be closed, for reading to end with the command.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut out = Vec::new();
        // The end is an error of input and output.
        let _ = terminal.read_to_end(&mut out);
        out
    });
    let output = child.wait_with_output().expect("the command ends");
    let out = reader.join().expect("the reader ends");
    Output { stdout: out, ..output }.into()
}

/// A shell script in which `$loopfold` is the command.
pub fn shell(script: &str, directory: &Path) -> Run {
    Command::new("sh")
        .args(["-c", script])
        .env("loopfold", binary())
        .current_dir(directory)
        .output()
        .expect("a shell runs")
        .into()
}

/// A folder that goes away with the value.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.at(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// The path of a file.
    pub fn at(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("a path in UTF-8").to_string()
    }
}
