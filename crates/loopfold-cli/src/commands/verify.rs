//! `loopfold verify`: checks archives from end to end, and grammars, which have no
//! checksums but must make sense.

use crate::args::VerifyArgs;
use crate::{Outcome, show};
use anyhow::{Context as _, Result};
use loopfold::Fold;
use loopfold::archive::{self, SectionKind, Verified};
use loopfold::export::grammar;
use loopfold::sections;
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
                "events": good.events, "rules": good.rules, "items": good.items,
                "index_segments": good.index_segments, "chunks": good.chunks, "bytes": good.bytes,
            })),
            Err(reason) => {
                outcome = Outcome::Nothing;
                results.push(json!({"archive": name, "ok": false, "reason": reason}));
            }
        }
        if !arguments.json.on && unreadable.is_none() {
            print(&show::plain(&name), &verified)?;
        }
    }
    if arguments.json.on {
        show::print_json(&json!({"archives": results}))?;
    }
    unreadable.map_or(Ok(outcome), Err)
}

/// What is in an archive or a grammar in which all is well.
struct Good {
    /// A grammar has none.
    segments: Option<usize>,
    streams: usize,
    events: Option<u64>,
    rules: usize,
    items: usize,
    /// Segments of the index of functions.
    index_segments: u64,
    /// Chunks that have the events of the fold.
    chunks: u64,
    bytes: u64,
}

impl Good {
    fn archive(found: &Verified) -> Self {
        let &Verified { segments, streams, events, rules, items, bytes, .. } = found;
        let (index_segments, chunks) =
            (found.parts_of(SectionKind::Index), found.parts_of(SectionKind::Chunks));
        Self { segments: Some(segments), streams, events, rules, items, index_segments, chunks, bytes }
    }

    fn grammar(fold: &Fold, bytes: u64) -> Self {
        let (streams, events) = (fold.streams().len(), fold.events());
        let (rules, items) = (fold.rules().len(), fold.items());
        Self { segments: None, streams, events, rules, items, index_segments: 0, chunks: 0, bytes }
    }
}

fn print(name: &str, verified: &Result<Good, String>) -> Result<()> {
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
fn verify(path: &Path) -> Result<Result<Good, String>> {
    let mut input: Box<dyn Read + Send> =
        if path.as_os_str() == "-" { Box::new(std::io::stdin()) } else { Box::new(File::open(path)?) };
    let mut head = Vec::new();
    input.by_ref().take(64).read_to_end(&mut head)?;
    let is_file = path.is_file() && path.as_os_str() != "-";
    let verified = if is_file && archive::looks_like(&head) {
        drop(input);
        let file = std::io::BufReader::new(File::open(path)?);
        archive::verify_with(file, &sections::CHECKS).map(|found| Good::archive(&found))
    } else {
        verify_bytes(Input::open(Cursor::new(head).chain(input), false)?)?
    };
    match verified {
        Ok(good) => Ok(Ok(good)),
        Err(error) if error.io().is_some() => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// A grammar, or an archive that is compressed or comes through a pipe.
fn verify_bytes(mut input: Input<'_>) -> Result<loopfold::Result<Good>> {
    if grammar::looks_like(input.head()?) {
        return Ok(grammar::read(&mut input).map(|fold| Good::grammar(&fold, input.bytes_read())));
    }
    // It must be whole in memory.
    let mut whole = Vec::new();
    input.read_to_end(&mut whole).context("cannot be read")?;
    Ok(archive::verify_with(Cursor::new(whole), &sections::CHECKS).map(|found| Good::archive(&found)))
}
