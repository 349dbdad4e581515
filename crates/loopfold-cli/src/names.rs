//! Reads the names of functions for traces that only have their numbers. The JSON file lies beside
//! the trace, or the user names it. It has a list `functions`, each an object with `name` and maybe
//! `module`. The whole file is held in memory while it is read.

use crate::input::files;
use anyhow::{Context as _, Result, bail};
use loopfold_sources::{FunctionNames, Input};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A file of names that is longer than this is something else.
const LONGEST: u64 = 1 << 30;

/// The names in a file.
pub(crate) fn read(path: &Path) -> Result<FunctionNames> {
    parse(path).with_context(|| path.display().to_string())
}

fn parse(path: &Path) -> Result<FunctionNames> {
    let mut text = Vec::new();
    Input::open(files::open(path)?, false)?.take(LONGEST).read_to_end(&mut text)?;
    let json: Value = serde_json::from_slice(&text)?;
    let Some(functions) = json.get("functions").and_then(Value::as_array) else {
        bail!("expected a JSON object with a list \"functions\", each with a \"name\"");
    };
    let text_of =
        |function: &'_ Value, key: &str| function.get(key).and_then(Value::as_str).map(str::to_string);
    let mut names = Vec::with_capacity(functions.len());
    for (number, function) in functions.iter().enumerate() {
        let name = text_of(function, "name");
        let name =
            name.with_context(|| format!("function {number} of the list \"functions\" has no \"name\""))?;
        names.push((name, text_of(function, "module").unwrap_or_default()));
    }
    Ok(FunctionNames::new(names.iter().map(|(name, module)| (name.as_str(), module.as_str()))))
}

/// The file of names beside a trace: `gzip.json` or `gzip.json.zst` beside `gzip.bb.zst`.
pub(crate) fn beside(trace: &Path) -> Option<PathBuf> {
    const PACKED: [&str; 3] = ["gz", "zst", "xz"];
    let is_packed =
        trace.extension().is_some_and(|extension| PACKED.iter().any(|packed| extension == *packed));
    let stem = if is_packed { trace.with_extension("") } else { trace.to_path_buf() };
    let plain = stem.with_extension("json");
    let packed = PACKED.map(|packed| stem.with_extension(format!("json.{packed}")));
    std::iter::once(plain).chain(packed).find(|candidate| candidate != trace && candidate.is_file())
}
