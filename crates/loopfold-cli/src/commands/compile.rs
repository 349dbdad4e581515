//! `loopfold cc`, `c++` and `cargo`: compile programs whose paths can be recorded.
//!
//! Their arguments belong to the compiler or to cargo, so this happens before ours are parsed.

use crate::Outcome;
use anyhow::{Result, bail};
use loopfold_record::CompilerKind;

/// Compiles, if the process was started to do that.
pub(crate) fn run() -> Option<Result<Outcome>> {
    let arguments: Result<Vec<String>, _> = std::env::args_os().map(|word| word.into_string()).collect();
    let arguments = arguments.ok()?;
    let (kind, rest) = CompilerKind::of_process(&arguments)?;
    Some(kind.run(rest).map(Outcome::Status).map_err(anyhow::Error::from))
}

/// The command was not recognised before, which is the case if its arguments are not text.
pub(super) fn not_text() -> Result<Outcome> {
    bail!("arguments of a compiler must be UTF-8")
}
