//! `cargo xtask bench`: speed, memory and sizes, beside other tools and the papers' own
//! procedures in the same execution, and whether the targets are met.
//!
//! Times are CPU times of one core.

mod archive_sizes;
pub(crate) mod defaults;
mod grammars;
mod literal;
mod loops;
mod measure;
pub(crate) mod mpi;
pub(crate) mod near;
mod nodes;
mod online;
mod otf2;
mod paths;
mod python;
mod questions;
mod reading;
mod record;
mod skeleton;
mod suffixes;
mod targets;
mod threads;
pub(crate) mod waits;

pub(crate) use archive_sizes::{files_under, recorded};
pub(crate) use measure::{CHILD, child};
pub(crate) use paths::control_flow_traces;

use crate::Arguments;
use anyhow::{Context, Result, bail};
use loopfold_testing::streams::{FAMILIES, Family};
use std::path::PathBuf;

/// What the user asked for.
struct Settings {
    large: bool,
    quick: bool,
    only: Option<&'static Family>,
    traces: Option<PathBuf>,
    /// An example of `examples/mpi`, by the beginning of its name.
    program: Option<String>,
}

impl Settings {
    fn take(arguments: &mut Arguments) -> Result<Self> {
        let only = arguments.option("--only")?;
        let only = only.map(|name| Family::named(&name).with_context(|| no_family(&name))).transpose()?;
        Ok(Self {
            large: arguments.flag("--large"),
            quick: arguments.flag("--quick"),
            only,
            traces: arguments.option("--traces")?.map(PathBuf::from),
            program: arguments.option("--program")?,
        })
    }

    fn families(&self) -> impl Iterator<Item = &'static Family> {
        let only = self.only.map(|family| family.name);
        FAMILIES.iter().filter(move |family| only.is_none_or(|name| name == family.name))
    }

    /// The lengths at which the families are measured.
    fn lengths(&self) -> &'static [usize] {
        const LENGTHS: &[usize] = &[100_000, 1_000_000, 10_000_000, 100_000_000];
        match (self.quick, self.large) {
            (true, _) => &LENGTHS[..2],
            (false, false) => &LENGTHS[..3],
            (false, true) => LENGTHS,
        }
    }
}

fn no_family(name: &str) -> String {
    let known: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
    format!("there is no family `{name}`, only: {}", known.join(", "))
}

/// Runs what the arguments ask for.
pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    let subject = arguments.word();
    let settings = Settings::take(&mut arguments)?;
    arguments.finish()?;
    match subject.as_deref() {
        None | Some("loops") => all(&settings),
        Some("reading") => {
            reading::run(&settings)?;
            otf2::run(&settings)
        }
        Some("sizes") => archive_sizes::run(&settings),
        Some("defaults") => defaults::run(&settings),
        Some("online") => online::run(&settings),
        Some("grammars") => grammars::run(&settings),
        Some("python") => python::run(&settings),
        Some("questions") => questions::run(&settings),
        Some("paths") => paths::run(&settings),
        Some("mpi") => {
            mpi::run(&settings)?;
            otf2::run(&settings)
        }
        Some("waits") => waits::run(&settings),
        Some("nodes") => nodes::run(&settings),
        Some("near") => near::run(&settings),
        Some("record") => record::run(&settings),
        Some("skeleton") => skeleton::run(&settings),
        Some("threads") => threads::run(&settings),
        Some("paths-record") => record::run_paths(&settings),
        Some(other) => {
            bail!(
                "there is no benchmark `{other}`, only: loops, reading, sizes, defaults, online, grammars, python, questions, paths, mpi, waits, near, record, paths-record, skeleton, nodes, threads"
            )
        }
    }
}

fn all(settings: &Settings) -> Result<()> {
    let measured = loops::run(settings)?;
    literal::run(settings)?;
    let mut speeds = Vec::new();
    if settings.only.is_none() {
        speeds = reading::run(settings)?;
        otf2::run(settings)?;
        archive_sizes::run(settings)?;
    }
    targets::print(&measured, &speeds);
    Ok(())
}

/// The middle of some measurements; of an even number, the mean of the two.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

/// Says on standard error what is being done, since tables appear only when complete.
fn progress(what: impl std::fmt::Display) {
    eprintln!("measuring {what} …");
}
