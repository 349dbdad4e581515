//! `loopfold verify`: checks archives from end to end.

use crate::args::VerifyArgs;
use crate::{Outcome, show};
use anyhow::{Context as _, Result};
use loopfold::archive;
use loopfold_sources::Input;
use serde_json::json;
use std::fs::File;
use std::io::{Cursor, Read, Write as _};
use std::path::Path;

pub(super) fn run(arguments: &VerifyArgs) -> Result<Outcome> {
    let mut results = Vec::new();
    let mut outcome = Outcome::Done;
    let mut unreadable = None;
    for path in &arguments.archives {
        let name = path.display().to_string();
        let verified = match verify(path) {
            Ok(verified) => verified,
            Err(error) => {
                let reason = format!("{error:#}");
                unreadable.get_or_insert(error.context(name.clone()));
                Err(reason)
            }
        };
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
        if !arguments.json && unreadable.is_none() {
            print(&show::plain(&name), &verified)?;
        }
    }
    if arguments.json {
        show::print_json(&json!({"archives": results}))?;
    }
    unreadable.map_or(Ok(outcome), Err)
}

fn print(name: &str, verified: &Result<archive::Verified, String>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match verified {
        Ok(good) => writeln!(
            out,
            "{name}: good: {}, {}, {}",
            show::plural(good.streams as u64, "stream"),
            show::events(good.events),
            show::bytes(good.bytes)
        )?,
        Err(reason) => writeln!(out, "{name}: bad: {}", show::plain(reason))?,
    }
    Ok(())
}

/// What was found, or what is wrong; an error when the file cannot be read at all.
fn verify(path: &Path) -> Result<Result<archive::Verified, String>> {
    let mut input: Box<dyn Read + Send> =
        if path.as_os_str() == "-" { Box::new(std::io::stdin()) } else { Box::new(File::open(path)?) };
    let mut head = Vec::new();
    input.by_ref().take(64).read_to_end(&mut head)?;
    let is_file = path.is_file() && path.as_os_str() != "-";
    let verified = if is_file && archive::looks_like(&head) {
        drop(input);
        archive::verify(std::io::BufReader::new(File::open(path)?))
    } else {
        // Compressed, or through a pipe: it must be whole in memory.
        let mut whole = Vec::new();
        let mut input = Input::open(Cursor::new(head).chain(input), false)?;
        input.read_to_end(&mut whole).context("cannot be read")?;
        archive::verify(Cursor::new(whole))
    };
    match verified {
        Ok(good) => Ok(Ok(good)),
        Err(error) if error.io().is_some() => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}
