//! Programs whose paths are recorded, for benchmarks and papers.
//!
//! bzip2 with its own build system and the interpreter of Lua, from the sources that the crates
//! `bzip2-sys` and `lua-src` bundle, and the two programs of `examples/paths`. Each is built twice by
//! the same clang: as it is, and through `loopfold-cc`. Fetching needs the network; everything is in
//! a temporary folder.

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Crates that bundle the sources.
const MANIFEST: &str = r#"
[package]
name = "sources"
version = "0.1.0"
edition = "2021"

[dependencies]
bzip2-sys = "=0.1.13+1.0.8"
lua-src = "=547.1.0"
"#;

const CLANGS: [&str; 7] = ["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];

/// The variable that names the clang behind `loopfold-cc`: both programs are built by the same one.
const CLANG: &str = "LOOPFOLD_CLANG";

/// A program, built as it is and instrumented, and what it is run with.
pub(crate) struct RealProgram {
    pub(crate) name: &'static str,
    /// As the compiler makes it.
    pub(crate) plain: PathBuf,
    /// Through `loopfold-cc`.
    pub(crate) instrumented: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// Where programs are built and recorded.
pub(crate) struct RealPrograms {
    folder: TempDir,
    command: PathBuf,
    clang: &'static str,
}

impl RealPrograms {
    /// Builds the command and the compiler pass, and fetches the sources.
    pub(crate) fn new() -> Result<Self> {
        let command = crate::build::build()?.join("loopfold");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("src"))?;
        std::fs::write(folder.path().join("src/lib.rs"), "")?;
        std::fs::write(folder.path().join("Cargo.toml"), MANIFEST)?;
        run(Command::new(&cargo).args(["vendor", "--quiet", "sources"]).current_dir(folder.path()))
            .context("the sources of bzip2 and Lua cannot be fetched")?;
        let clang = CLANGS.into_iter().find(|clang| crate::test::on_path(clang));
        let clang = clang.context("there is no clang; install the package clang-16")?;
        Ok(Self { folder, command, clang })
    }

    /// All programs, with some seconds of work for each, or some tenths.
    pub(crate) fn all(&self, quick: bool) -> Result<Vec<RealProgram>> {
        let size = |long: u32, short: u32| if quick { short } else { long }.to_string();
        let text = self.text(if quick { 300_000 } else { 3_000_000 })?;
        let script = crate::root().join("xtask/src/real_programs/script.lua").display().to_string();
        Ok(vec![
            self.bzip2(vec!["-kfc".to_string(), text.display().to_string()])?,
            self.lua(vec![script, size(200, 4)])?,
            self.example("squeeze", vec![size(3_000_000, 300_000)])?,
            self.example("calc", vec![size(20_000, 500)])?,
        ])
    }

    /// A text to compress: names of files and lines of the library's sources, over and over.
    pub(crate) fn text(&self, length: usize) -> Result<PathBuf> {
        let path = self.path(&format!("text-{length}"));
        let mut bytes = Vec::with_capacity(length);
        let sources =
            ["crates/loopfold/src/repeats/runs.rs", "crates/loopfold/src/fold/cursor.rs", "README.md"];
        let mut round = 0u32;
        while bytes.len() < length {
            for source in sources {
                // A number on every line, so that no text is the same as the one before.
                for line in std::fs::read_to_string(crate::root().join(source))?.lines() {
                    round = round.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    bytes.extend_from_slice(format!("{} {line}\n", round >> 20).as_bytes());
                }
            }
        }
        bytes.truncate(length);
        std::fs::write(&path, bytes)?;
        Ok(path)
    }

    /// bzip2, by its Makefile.
    pub(crate) fn bzip2(&self, arguments: Vec<String>) -> Result<RealProgram> {
        let build = |name: &str, compiler: &Path| -> Result<PathBuf> {
            let folder = self.path(name);
            copy_folder(&self.path("sources/bzip2-sys/bzip2-1.0.8"), &folder)?;
            let mut make = Command::new("make");
            make.args(["--silent", "bzip2", "CFLAGS=-O2 -w"]).arg(format!("CC={}", compiler.display()));
            run(make.env(CLANG, self.clang).current_dir(&folder))?;
            Ok(folder.join("bzip2"))
        };
        self.both("bzip2", build, arguments)
    }

    /// The interpreter of Lua.
    fn lua(&self, arguments: Vec<String>) -> Result<RealProgram> {
        let build = |name: &str, compiler: &Path| -> Result<PathBuf> {
            let folder = self.path("sources/lua-src/lua-5.4.7");
            let sources = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
            let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
            let mut arguments: Vec<PathBuf> = sources.collect();
            arguments.sort();
            arguments.push(crate::root().join("xtask/src/real_programs/lua.c"));
            self.compile(name, compiler, &folder, &arguments)
        };
        self.both("lua", build, arguments)
    }

    /// A program of `examples/paths`.
    fn example(&self, name: &'static str, arguments: Vec<String>) -> Result<RealProgram> {
        let folder = crate::root().join("examples/paths");
        let source = folder.join(format!("{name}.c"));
        self.both(
            name,
            |name, compiler| self.compile(name, compiler, &folder, std::slice::from_ref(&source)),
            arguments,
        )
    }

    fn both(
        &self,
        name: &'static str,
        build: impl Fn(&str, &Path) -> Result<PathBuf>,
        arguments: Vec<String>,
    ) -> Result<RealProgram> {
        let through = self.command.with_file_name("loopfold-cc");
        Ok(RealProgram {
            name,
            plain: build(&format!("{name}-plain"), Path::new(self.clang))?,
            instrumented: build(&format!("{name}-instrumented"), &through)?,
            arguments,
        })
    }

    fn compile(&self, name: &str, compiler: &Path, include: &Path, sources: &[PathBuf]) -> Result<PathBuf> {
        let path = self.path(name);
        let mut command = Command::new(compiler);
        command.args(["-O2", "-w", "-DLUA_USE_POSIX", "-I"]).arg(include).args(sources);
        command.env(CLANG, self.clang);
        run(command.arg("-o").arg(&path).arg("-lm"))?;
        Ok(path)
    }

    /// A file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The archive that a program is recorded to.
    pub(crate) fn archive(&self, program: &RealProgram) -> PathBuf {
        self.path(&format!("{}.fold", program.name))
    }

    /// `loopfold record` with some options, without the program that it records.
    pub(crate) fn recorder(&self, program: &RealProgram, options: &[&str]) -> Command {
        let mut command = Command::new(&self.command);
        command.args(["record", "-o"]).arg(self.archive(program)).args(options);
        command
    }

    /// Records a program.
    pub(crate) fn record(&self, program: &RealProgram) -> Result<(PathBuf, Duration)> {
        let mut command = self.recorder(program, &[]);
        let elapsed = run(command.arg(&program.instrumented).args(&program.arguments))?;
        Ok((self.archive(program), elapsed))
    }

    /// What the command prints.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new(&self.command).args(arguments).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "loopfold {} failed", arguments.join(" "));
        Ok(output.stdout)
    }
}

impl RealProgram {
    /// The shortest of some executions without a recorder.
    pub(crate) fn time(&self, path: &Path) -> Result<Duration> {
        let mut shortest = Duration::MAX;
        for _ in 0..3 {
            shortest = shortest.min(run(Command::new(path).args(&self.arguments))?);
        }
        Ok(shortest)
    }
}

/// Runs a command, whose output is thrown away, and returns how long it took.
fn run(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let elapsed = start.elapsed();
    ensure!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(elapsed)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)?.flatten() {
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
