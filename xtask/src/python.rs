//! The Python package: builds the wheel, installs it into an environment of its own in `target`, and
//! runs its tests, its examples and the type checks.

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment of Python, with the package and what its tests need.
pub(crate) struct Environment {
    root: PathBuf,
    directory: PathBuf,
}

impl Environment {
    /// Creates the environment if there is none with these requirements, and installs the package.
    pub(crate) fn new(root: &Path) -> Result<Self> {
        // Programs are started in another directory.
        let root = root.canonicalize()?;
        let environment = Self { directory: root.join("target").join("python"), root };
        environment.create()?;
        environment.install()?;
        Ok(environment)
    }

    /// A program of the environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.directory.join("bin").join(program));
        command
            .current_dir(self.package())
            .env("LOOPFOLD_COMMAND", self.root.join("target/release/loopfold"));
        command
    }

    fn package(&self) -> PathBuf {
        self.root.join("crates").join("loopfold-python")
    }

    fn create(&self) -> Result<()> {
        let wanted = std::fs::read_to_string(self.package().join("requirements.txt"))?;
        let installed = self.directory.join("requirements.txt");
        if std::fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        let mut venv = Command::new("python3");
        output_of(venv.args(["-m", "venv", "--clear"]).arg(&self.directory))?;
        output_of(self.command("pip").args(["install", "--quiet", "--requirement", "requirements.txt"]))?;
        Ok(std::fs::write(installed, wanted)?)
    }

    fn install(&self) -> Result<()> {
        let wheels = self.directory.join("wheels");
        if wheels.exists() {
            std::fs::remove_dir_all(&wheels)?;
        }
        output_of(self.command("maturin").args(["build", "--release", "--quiet", "--out"]).arg(&wheels))?;
        let wheel = std::fs::read_dir(&wheels)?.next().context("maturin has written no wheel")??.path();
        let install = ["install", "--quiet", "--force-reinstall", "--no-deps"];
        output_of(self.command("pip").args(install).arg(wheel))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = ["build", "--quiet", "--release", "--package", "loopfold-cli"];
        output_of(Command::new(cargo).current_dir(&self.root).args(build))?;
        Ok(())
    }
}

/// What a program prints, which must succeed.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("{:?} cannot be started", command.get_program()))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?}\n{out}{err}");
    Ok(out.into_owned())
}

/// Runs everything and returns how many tests there were, as cargo writes it.
pub(crate) fn test(root: &Path) -> Result<String> {
    let environment = Environment::new(root)?;
    output_of(environment.command("mypy").args(["--strict", "python/loopfold"]))?;
    output_of(environment.command("pyright").args(["--pythonpath", "../../target/python/bin/python"]))?;
    let tests = output_of(environment.command("pytest").arg("tests"))?;
    let last = tests.lines().last().unwrap_or_default();
    let count = |what: &str| {
        let words: Vec<&str> = last.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let place = words.iter().position(|word| *word == what);
        place.and_then(|place| words.get(place.checked_sub(1)?)?.parse::<u64>().ok()).unwrap_or(0)
    };
    Ok(format!("test result: ok. {} passed; 0 failed; {} ignored;", count("passed"), count("skipped")))
}
