//! `loopfold verify`: checks archives from end to end.

use crate::args::VerifyArgs;
use crate::{Outcome, show};
use anyhow::{Context as _, Result};
use loopfold::archive;
use serde_json::json;
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;

pub(super) fn run(arguments: &VerifyArgs) -> Result<Outcome> {
    let mut results = Vec::new();
    let mut outcome = Outcome::Done;
    for path in &arguments.archives {
        let name = path.display().to_string();
        let verified = verify(path)?;
        match &verified {
            Ok(good) => results.push(json!({
                "archive": name, "ok": true, "segments": good.segments, "streams": good.streams,
                "events": good.events, "rules": good.rules, "items": good.items, "bytes": good.bytes,
            })),
            Err(reason) => {
                outcome = Outcome::Nothing;
                results.push(json!({"archive": name, "ok": false, "reason": reason}));
            }
        }
        if arguments.json {
            continue;
        }
        match verified {
            Ok(good) => writeln!(
                std::io::stdout().lock(),
                "{name}: good: {}, {}, {}",
                show::plural(good.streams as u64, "stream"),
                show::plural(good.events.unwrap_or(u64::MAX), "event"),
                show::bytes(good.bytes)
            )?,
            Err(reason) => writeln!(std::io::stdout().lock(), "{name}: bad: {}", show::plain(&reason))?,
        }
    }
    if arguments.json {
        show::print_json(&json!({"archives": results}))?;
    }
    Ok(outcome)
}

/// What was found, or what is wrong; an error when the file cannot be read at all.
fn verify(path: &Path) -> Result<Result<archive::Verified, String>> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    match archive::verify(BufReader::new(file)) {
        Ok(good) => Ok(Ok(good)),
        Err(error) if error.io().is_some() => Err(error).with_context(name),
        Err(error) => Ok(Err(error.to_string())),
    }
}
