//! Programs of the usual build systems, with `loopfold-cc` and `loopfold-c++` as compilers: configured,
//! built, recorded, and compared with the calls that the programs count themselves.

mod modes;
mod options;
mod systems;

use crate::compile::pass;
use crate::support::binary;
use loopfold::archive::{self, ReadConfig};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A library and programs that use it.
const SOURCES: &[(&str, &str)] = &[
    ("counted.h", include_str!("counted.h")),
    ("shapes.h", include_str!("shapes.h")),
    ("shapes.c", include_str!("shapes.c")),
    ("app.c", include_str!("app.c")),
    ("app.cpp", include_str!("app.cpp")),
];

/// How often each function was called.
type Calls = BTreeMap<String, u64>;

/// A folder with the sources and the files of a build system.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in SOURCES.iter().chain(files) {
            let path = project.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir(project.path("bin")).unwrap();
        for name in ["loopfold", "loopfold-cc", "loopfold-c++"] {
            std::os::unix::fs::symlink(binary(), project.path("bin").join(name)).unwrap();
        }
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Executes commands of the shell, as a user would, up to the first that fails.
    fn output(&self, script: &str) -> Output {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.path("bin")].into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]).current_dir(self.folder.path());
        command.env("PATH", std::env::join_paths(folders).unwrap()).env("LOOPFOLD_PASS", pass());
        for variable in ["LOOPFOLD_CLANG", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS"] {
            command.env_remove(variable);
        }
        command.output().unwrap()
    }

    /// The same for commands that succeed. Returns what they printed.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        let output = self.output(script);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
        printed
    }

    /// Records a program, and compares all calls in the archive with those that it prints. Returns them.
    #[track_caller]
    fn check(&self, program: &str) -> Calls {
        let (printed, recorded) = self.record(program);
        assert_eq!(recorded, printed, "{program}");
        printed
    }

    /// Records a program. Returns the calls that it prints, and those in the archive.
    #[track_caller]
    fn record(&self, program: &str) -> (Calls, Calls) {
        let printed = printed_calls(&self.run(&format!("loopfold record -o run.fold {program}")));
        (printed, self.recorded_calls())
    }

    /// The entries of functions in the archive, in all streams together.
    fn recorded_calls(&self) -> Calls {
        let file = std::fs::File::open(self.path("run.fold")).unwrap();
        let (fold, _) = archive::read(std::io::BufReader::new(file), &ReadConfig::new()).unwrap();
        let mut calls = Calls::new();
        for stream in fold.streams() {
            for symbol in fold.unfold(stream.root()) {
                if let Some(function) = fold.alphabet().label(symbol).strip_prefix("enter ") {
                    *calls.entry(function.to_string()).or_default() += 1;
                }
            }
        }
        calls
    }
}

/// The lines of a program that counts its calls, which may have several for a function; others are left
/// out.
fn printed_calls(printed: &str) -> Calls {
    let mut calls = Calls::new();
    let counts = printed.lines().filter_map(|line| line.split_once(' '));
    for (count, name) in counts.filter_map(|(count, name)| Some((count.parse::<u64>().ok()?, name))) {
        *calls.entry(name.to_string()).or_default() += count;
    }
    calls
}

/// The calls of `app.c`, by its source: 500 rounds, of which each fifth looks at four edges.
fn calls_of_app() -> Calls {
    let areas = (0..500).filter(|round| round % 5 != 0);
    let halves = areas.clone().filter(|size| size % 3 != 0).count() + 4 * 100;
    let calls = [("main", 1), ("one_round", 500), ("area", areas.count()), ("edges", 100), ("half", halves)];
    calls.map(|(name, count)| (name.to_string(), count as u64)).into()
}
