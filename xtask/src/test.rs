//! `cargo xtask test`: everything that must hold before a change is taken.
//!
//! Each step is a command, or a check of our own. Its output is shown only when it fails; the steps
//! after a failure are still executed, so that one execution shows all that is wrong.

use crate::{Arguments, generate, layers, python};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs all steps.
pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    let quick = arguments.flag("--quick");
    arguments.finish()?;
    provide_packages()?;
    let steps = steps(quick);
    let started = Instant::now();
    let mut counts = Counts::default();
    let failed: Vec<&str> =
        steps.iter().filter(|step| !step.run_and_report(&mut counts)).map(|step| step.name).collect();
    let total = seconds(started.elapsed());
    ensure!(failed.is_empty(), "{} of {} steps failed: {}", failed.len(), steps.len(), failed.join(", "));
    println!("all {} steps passed in {total}", steps.len());
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    ensure!(counts.passed > 0, "no test was run");
    let in_ci = std::env::var_os("CI").is_some();
    ensure!(!in_ci || counts.skipped == 0, "tests were skipped, which must not happen in CI");
    Ok(())
}

/// How many tests there were, as the test programs say in their last lines.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    fn add(&mut self, output: &str) {
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            for part in line.split([';', '.']) {
                let Some((number, what)) = part.trim().split_once(' ') else { continue };
                let Ok(number) = number.parse::<u64>() else { continue };
                match what {
                    "passed" => self.passed += number,
                    "failed" => self.failed += number,
                    "ignored" => self.skipped += number,
                    _ => {}
                }
            }
        }
    }
}

struct Step {
    name: &'static str,
    work: Work,
}

enum Work {
    Cargo(Cargo),
    /// Something that is found out here, given the top of the repository.
    Check(fn(&Path) -> Result<()>),
    /// Tests of another kind, which say how many there were.
    Tests(fn(&Path) -> Result<String>),
}

/// A command of cargo.
struct Cargo {
    arguments: &'static [&'static str],
    environment: Option<(&'static str, &'static str)>,
    /// What the output must contain.
    shows: Option<&'static str>,
}

impl Step {
    const fn cargo(name: &'static str, arguments: &'static [&'static str]) -> Self {
        Self { name, work: Work::Cargo(Cargo { arguments, environment: None, shows: None }) }
    }

    fn run_and_report(&self, counts: &mut Counts) -> bool {
        let started = Instant::now();
        let outcome = match &self.work {
            Work::Cargo(cargo) => cargo.run(),
            Work::Check(check) => check(&crate::root()).map(|()| String::new()),
            Work::Tests(tests) => tests(&crate::root()),
        };
        let elapsed = seconds(started.elapsed());
        match &outcome {
            Ok(output) => {
                counts.add(output);
                println!("ok      {:<12} {elapsed:>8}", self.name);
            }
            Err(error) => {
                let command = match &self.work {
                    Work::Cargo(cargo) => format!("cargo {}", cargo.arguments.join(" ")),
                    Work::Check(_) | Work::Tests(_) => String::new(),
                };
                println!("FAILED  {:<12} {elapsed:>8}  {command}", self.name);
                println!("{error:#}");
            }
        }
        outcome.is_ok()
    }
}

impl Cargo {
    /// Runs the command and returns what it printed.
    fn run(&self) -> Result<String> {
        let output = self.command().output().context("cargo cannot be started")?;
        ensure!(output.status.success(), "{}", both_outputs(&output));
        let shown = String::from_utf8_lossy(&output.stdout);
        match self.shows {
            Some(text) if !shown.contains(text) => {
                bail!("`{text}` is missing from the output:\n{}", both_outputs(&output))
            }
            _ => Ok(shown.into_owned()),
        }
    }

    fn command(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = match ignores_signals() {
            true => {
                let mut command = Command::new("env");
                command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(cargo);
                command
            }
            false => Command::new(cargo),
        };
        command.args(self.arguments).current_dir(crate::root()).envs(self.environment);
        command
    }
}

/// Whether a signal is ignored that tests send: SIGHUP is under `nohup`, SIGINT in the background of a script,
/// and programs inherit that.
fn ignores_signals() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [1, 2, 3, 15].iter().any(|signal| mask >> (signal - 1) & 1 == 1)
}

fn steps(quick: bool) -> Vec<Step> {
    const LINTS: &[&str] = &["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    const CORE: &[&str] =
        &["clippy", "--quiet", "--package", "loopfold", "--no-default-features", "--", "--deny", "warnings"];
    let mut steps = vec![
        Step::cargo("formatting", &["fmt", "--all", "--check"]),
        Step { name: "layers", work: Work::Check(layers::check) },
        Step::cargo("lints", LINTS),
        Step::cargo("without features", CORE),
        Step::cargo("tests", &["test", "--quiet", "--workspace"]),
        Step { name: "python", work: Work::Tests(python::test) },
        Step {
            name: "README",
            work: Work::Cargo(Cargo {
                arguments: &["run", "--quiet", "--release", "--", "loops", generate::EXAMPLE],
                environment: None,
                shows: Some("^249"),
            }),
        },
    ];
    if !quick {
        let documents = Step {
            name: "documents",
            work: Work::Cargo(Cargo {
                arguments: &["doc", "--quiet", "--workspace", "--no-deps"],
                environment: Some(("RUSTDOCFLAGS", "--deny warnings")),
                shows: None,
            }),
        };
        steps.insert(4, documents);
    }
    steps
}

fn both_outputs(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Something of the system that tests need.
struct Package {
    /// What apt calls it.
    name: &'static str,
    needed_for: &'static str,
    is_there: fn() -> bool,
}

const PACKAGES: &[Package] = &[
    Package { name: "gcc", needed_for: "building the C code of zstd", is_there: || on_path("cc") },
    Package {
        name: "pkg-config",
        needed_for: "compiling with the library for C",
        is_there: || on_path("pkg-config"),
    },
    Package {
        name: "valgrind",
        needed_for: "memory errors of the library for C",
        is_there: || on_path("valgrind"),
    },
    Package {
        name: "libc6-dev",
        needed_for: "building the C code of zstd",
        is_there: || Path::new("/usr/include/stdlib.h").exists() || !cfg!(target_os = "linux"),
    },
    Package {
        name: "libclang1",
        needed_for: "building loopfold-mpi, whose bindings of MPI are made from its header",
        is_there: has_libclang,
    },
    Package {
        name: "libopen-trace-format2-10",
        needed_for: "reading OTF2 archives",
        is_there: || loopfold_otf2::is_available().is_ok(),
    },
    Package {
        name: "otf2-tools",
        needed_for: "comparing with otf2-print what was read",
        is_there: || on_path("otf2-print"),
    },
    Package {
        name: "python3-otf2",
        needed_for: "writing OTF2 archives to read",
        is_there: || {
            let mut python = Command::new("/usr/bin/python3");
            python.args(["-c", "import otf2"]).output().is_ok_and(|output| output.status.success())
        },
    },
    Package {
        name: "libopenmpi-dev",
        needed_for: "recording under Open MPI",
        is_there: || on_path("mpicc.openmpi"),
    },
    Package {
        name: "openmpi-bin",
        needed_for: "recording under Open MPI",
        is_there: || on_path("mpirun.openmpi"),
    },
    Package {
        name: "libmpich-dev",
        needed_for: "recording under MPICH",
        is_there: || on_path("mpicc.mpich"),
    },
    Package { name: "mpich", needed_for: "recording under MPICH", is_there: || on_path("mpirun.mpich") },
    Package {
        name: "make",
        needed_for: "building with `loopfold-cc` in place of the compiler",
        is_there: || on_path("make"),
    },
    Package {
        name: "clang-16",
        needed_for: "compiling programs whose paths are recorded",
        is_there: || (14..=19).any(|version| on_path(&format!("clang-{version}"))),
    },
    Package {
        name: "libclang-rt-16-dev",
        needed_for: "recording programs with sanitizers, coverage and profiling",
        is_there: has_sanitizers,
    },
    Package {
        name: "autoconf",
        needed_for: "building with autoconf and `loopfold-cc`",
        is_there: || on_path("autoreconf"),
    },
    Package {
        name: "automake",
        needed_for: "building with automake and `loopfold-cc`",
        is_there: || on_path("automake"),
    },
    Package {
        name: "libtool",
        needed_for: "building shared libraries with libtool and `loopfold-cc`",
        is_there: || on_path("libtoolize"),
    },
    Package {
        name: "cmake",
        needed_for: "building with CMake and `loopfold-cc`",
        is_there: || on_path("cmake"),
    },
    Package {
        name: "meson",
        needed_for: "building with meson and `loopfold-cc`",
        is_there: || on_path("meson"),
    },
    Package {
        name: "ninja-build",
        needed_for: "building with meson and `loopfold-cc`",
        is_there: || on_path("ninja"),
    },
    Package {
        name: "python3-venv",
        needed_for: "the tests of the Python package",
        is_there: || {
            let mut python = Command::new("python3");
            python.args(["-c", "import venv, ensurepip"]).output().is_ok_and(|output| output.status.success())
        },
    },
    Package { name: "g++", needed_for: "linking programs in C++", is_there: || on_path("c++") },
    Package {
        name: "gfortran",
        needed_for: "recording programs in Fortran",
        is_there: || on_path("gfortran"),
    },
];

pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Installs what is missing when that is possible, and says what to do when it is not.
fn provide_packages() -> Result<()> {
    let missing: Vec<&Package> = PACKAGES.iter().filter(|package| !(package.is_there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        println!("missing {:<12} for {}", package.name, package.needed_for);
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if !rustix::process::geteuid().is_root() || !on_path("apt-get") {
        bail!("install what is missing: sudo apt-get install --yes {}", names.join(" "));
    }
    apt_get(&["update"])?;
    apt_get(&[["install", "--yes", "--no-install-recommends"].as_slice(), &names].concat())
}

/// Whether the library that reads C headers is where distributions put it.
fn has_libclang() -> bool {
    let is_libclang = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("libclang") && name.to_string_lossy().contains(".so")
    };
    let has = |folder: &Path| folder.read_dir().is_ok_and(|entries| entries.flatten().any(is_libclang));
    let of_llvm = Path::new("/usr/lib").read_dir().into_iter().flatten().flatten();
    let of_llvm = of_llvm.map(|entry| entry.path()).filter(|path| path.join("lib").is_dir());
    of_llvm.map(|path| path.join("lib")).any(|folder| has(&folder))
        || ["/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"]
            .iter()
            .any(|folder| has(Path::new(folder)))
}

/// Whether the clang that recording uses can link what its sanitizers need.
fn has_sanitizers() -> bool {
    let clangs =
        ["clang".to_string()].into_iter().chain((14..=19).rev().map(|version| format!("clang-{version}")));
    let Some(clang) = clangs.into_iter().find(|clang| on_path(clang)) else { return false };
    let library = format!("libclang_rt.asan-{}.a", std::env::consts::ARCH);
    let output = Command::new(clang).arg(format!("-print-file-name={library}")).output();
    // The name alone is printed if there is no such file.
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    let output = command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").output()?;
    ensure!(output.status.success(), "apt-get {}:\n{}", arguments.join(" "), both_outputs(&output));
    Ok(())
}
