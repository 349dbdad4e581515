//! Figures 6(a) and 6(b) of Knödtel et al.: `examples/python/figures.py`, at full size.

use crate::python::{Environment, output_of};
use anyhow::{Context as _, Result};
use std::path::Path;

/// The longest streams: ten times as long as the longest that the paper names.
const LONGEST: &str = "10000000";

/// Writes the plots to a directory, and prints their numbers.
pub(super) fn write(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let directory = directory.canonicalize()?;
    let root = crate::root();
    let environment = Environment::new(&root)?;
    let script = root.canonicalize()?.join("examples/python/figures.py");
    print!("{}", output_of(environment.command("python").arg(script).arg(directory).arg(LONGEST))?);
    Ok(())
}
