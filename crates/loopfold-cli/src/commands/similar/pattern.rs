//! The pattern to search for: written in the command or in a file, known by name, or found by
//! `patterns`.

use super::Listed;
use super::file::{self, Written};
use crate::args::SimilarArgs;
use crate::show;
use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
use loopfold::mpi::KnownPattern;
use loopfold::questions::query::{Query, no_such_event};
use loopfold::questions::similar::{
    Compared, ComparedEvents, EventSequence, ProcessStreams, SimilarPattern, SimilarVariant,
};
use loopfold::trace::Role;

/// A pattern, and the streams to search.
pub(super) struct Asked<'a> {
    pub(super) pattern: SimilarPattern,
    pub(super) processes: ProcessStreams<'a>,
    pub(super) events: ComparedEvents,
}

impl<'a> Asked<'a> {
    /// Reads the pattern, with notes on it. `listed` is given if the pattern is a number.
    pub(super) fn read(
        arguments: &SimilarArgs,
        text: Option<&str>,
        fold: &'a Fold,
        listed: Option<&Listed<'_>>,
    ) -> Result<(Self, Vec<String>)> {
        let processes = ProcessStreams::of(fold);
        if let Some(name) = &arguments.like {
            let (pattern, events) = SimilarPattern::known(&KnownPattern::parse(name)?)?;
            let has_messages =
                |symbol| matches!(fold.alphabet().meaning(symbol).role, Role::Send | Role::Receive);
            if !fold.alphabet().symbols().any(has_messages) {
                bail!("the trace has no sends and receives, so nothing in it can be like a {name}");
            }
            return Ok((Self { pattern, processes, events }, Vec::new()));
        }
        let compared = Compared::of(fold.alphabet(), &super::choice(arguments))?;
        let (pattern, notes) = match (&arguments.pattern, arguments.number.zip(listed), text) {
            (Some(path), ..) => from_file(&file::read(path)?, &compared, fold)?,
            (None, Some((number, listed)), _) => (by_number(listed, number)?, Vec::new()),
            (None, None, text) => {
                (SimilarPattern::Everywhere(written(text.unwrap_or(""), &compared, fold)?), Vec::new())
            }
        };
        Ok((Self { pattern, processes, events: ComparedEvents::Fields(compared) }, notes))
    }
}

/// A sequence as for `find`.
fn written(text: &str, compared: &Compared, fold: &Fold) -> Result<EventSequence> {
    let words = Query::words(text, fold.alphabet())?;
    let called = compared.called(fold.alphabet(), &words)?;
    let query = Query::parse(text, fold.alphabet())?;
    for (word, symbols) in words.iter().zip(&called) {
        if symbols.is_empty() && !query.unknown().contains(word) {
            bail!("{word} is not an event of communication; --all-events compares all events");
        }
    }
    // Windows without that event may still be similar.
    show::notes(&query.unknown_events(fold.alphabet()));
    Ok(called)
}

/// The pattern of that number in the list of `patterns`.
fn by_number(listed: &Listed<'_>, number: usize) -> Result<SimilarPattern> {
    let found = SimilarPattern::numbered(&listed.processes, &listed.patterns, number)?;
    found.with_context(|| {
        let all = show::plural(listed.patterns.count() as u64, "pattern");
        format!("there is no pattern {number}: `patterns` has {all}")
    })
}

/// Events of a file that the trace does not have are not found, but the others may be.
fn from_file(written: &Written, compared: &Compared, fold: &Fold) -> Result<(SimilarPattern, Vec<String>)> {
    let words: Vec<&str> = written.events.iter().map(|(_, text)| text.as_str()).collect();
    let called = compared.called(fold.alphabet(), &words)?;
    let unknown: Vec<&(usize, String)> = written
        .events
        .iter()
        .zip(&called)
        .filter(|(_, symbols)| symbols.is_empty())
        .map(|(event, _)| event)
        .collect();
    if unknown.len() == words.len()
        && let Some((number, text)) = unknown.first()
    {
        let why = no_such_event(fold.alphabet(), text);
        bail!("the trace has no event of the pattern; line {number}: {why}");
    }
    // A readable number.
    const MOST: usize = 8;
    let mut notes: Vec<String> = unknown
        .iter()
        .take(MOST)
        .map(|(number, text)| format!("line {number} of the pattern: no event is compared as {text}"))
        .collect();
    if unknown.len() > MOST {
        notes.push(format!("and {} more lines like that", unknown.len() - MOST));
    }
    let patterns = match &written.processes {
        None => SimilarPattern::Everywhere(called),
        Some(processes) => {
            let sequence = |(&process, range): (&usize, &std::ops::Range<usize>)| {
                (process, called[range.clone()].to_vec())
            };
            let sequences = processes.iter().map(sequence).collect();
            SimilarPattern::Processes(vec![SimilarVariant { order: None, sequences }])
        }
    };
    Ok((patterns, notes))
}
