//! `loopfold verify`: checks archives from end to end, and the syntax of grammars, which have no
//! checksums.

use crate::args::VerifyArgs;
use crate::input::files;
use crate::{Outcome, show};
use anyhow::{Context as _, Result};
use loopfold::Fold;
use loopfold::archive::{self, SectionKind, Verified};
use loopfold::export::grammar;
use loopfold::fold::RecordedStream;
use loopfold::sections;
use loopfold_json::archives::{self, Intact, RecordedEvents};
use loopfold_sources::Input;
use std::io::{Cursor, Read, Write};
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
        if verified.is_err() {
            outcome = Outcome::Nothing;
        }
        if arguments.json.on {
            results.push((name, verified));
        } else if unreadable.is_none() {
            print(&show::plain(&name), &verified)?;
        }
    }
    if arguments.json.on {
        let results = results.iter().map(|(name, verified)| (name.as_str(), verified));
        show::print_json_line(|out| Ok(archives::verified(out, results)?))?;
    }
    unreadable.map_or(Ok(outcome), Err)
}

fn of_archive(found: &Verified) -> Intact {
    let &Verified { segments, streams, events, rules, items, bytes, .. } = found;
    let (index_segments, chunks) = (found.parts_of(SectionKind::Index), found.parts_of(SectionKind::Chunks));
    let recorded = found.recorded.clone();
    Intact {
        segments: Some(segments),
        streams,
        events,
        rules,
        items,
        index_segments,
        chunks,
        recorded,
        bytes,
    }
}

fn of_grammar(fold: &Fold, bytes: u64) -> Intact {
    let (streams, events) = (fold.streams().len(), fold.events());
    let (rules, items) = (fold.rules().len(), fold.items());
    let recorded = fold.recorded_streams();
    Intact { segments: None, streams, events, rules, items, index_segments: 0, chunks: 0, recorded, bytes }
}

fn print(name: &str, verified: &Result<Intact, String>) -> Result<()> {
    let mut out = show::raw_stdout();
    match verified {
        Ok(good) => {
            let streams = show::plural(good.streams as u64, "stream");
            let (events, bytes) = (show::events(good.events), show::bytes(good.bytes));
            writeln!(out, "{name}: good: {streams}, {events}, {bytes}")?;
            print_recorded(&mut out, &good.recorded)?;
        }
        Err(reason) => writeln!(out, "{name}: bad: {}", show::plain(reason))?,
    }
    Ok(())
}

/// How many events of recordings there are of those that were counted, and which streams lack some.
fn print_recorded(out: &mut impl Write, streams: &[RecordedStream]) -> Result<()> {
    let Some(all) = RecordedEvents::of_all(streams) else { return Ok(()) };
    let of = |events: RecordedEvents| {
        // Of a stream without its end it is not known how many there were.
        let bound = if events.unfinished > 0 { "at least " } else { "" };
        format!("{} of {bound}{}", show::count(events.recorded), show::events(Some(events.produced)))
    };
    write!(out, "  recorded: {}", of(all))?;
    if all.missing > 0 {
        write!(out, "; {} missing", show::count(all.missing))?;
    }
    if all.unfinished > 0 {
        let unfinished = show::plural(all.unfinished as u64, "stream");
        write!(out, "; the end of {unfinished} was not recorded")?;
    }
    writeln!(out)?;
    for stream in streams.iter().filter(|stream| stream.counted.missing > 0) {
        writeln!(out, "    {}: {}", show::plain(&stream.name), of(RecordedEvents::of(stream)))?;
    }
    Ok(())
}

/// What was found, or what is wrong. Fails if the file cannot be read at all.
fn verify(path: &Path) -> Result<Result<Intact, String>> {
    files::check_input(path)?;
    let mut input: Box<dyn Read + Send> =
        if path.as_os_str() == "-" { Box::new(std::io::stdin()) } else { Box::new(files::open(path)?) };
    let mut head = Vec::new();
    input.by_ref().take(64).read_to_end(&mut head)?;
    let is_file = path.is_file() && path.as_os_str() != "-";
    let verified = if is_file && archive::looks_like(&head) {
        drop(input);
        let file = std::io::BufReader::new(files::open(path)?);
        archive::verify_with(file, &sections::CHECKS).map(|found| of_archive(&found))
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
fn verify_bytes(mut input: Input<'_>) -> Result<loopfold::Result<Intact>> {
    if grammar::looks_like(input.head()?) {
        return Ok(grammar::read(&mut input).map(|fold| of_grammar(&fold, input.bytes_read())));
    }
    // It must be whole in memory.
    let mut whole = Vec::new();
    input.read_to_end(&mut whole).context("cannot be read")?;
    Ok(archive::verify_with(Cursor::new(whole), &sections::CHECKS).map(|found| of_archive(&found)))
}
