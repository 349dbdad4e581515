//! The pattern that is looked for: written in the command or in a file, known by name, or
//! one that `patterns` found.

use super::file::{self, Written};
use super::larger::{Larger, Numbered};
use crate::args::SimilarArgs;
use crate::commands::patterns::events_of;
use crate::show;
use anyhow::{Result, bail};
use loopfold::questions::communication::Part;
use loopfold::questions::{Compared, KnownPattern, ProcessStreams, Query, RolesAndPeers, near_names};
use loopfold::trace::Role;
use loopfold::{Fold, Symbol};
use std::collections::BTreeMap;

/// What each event of a sequence may be.
pub(super) type Sequence = Vec<Vec<Symbol>>;

/// What is looked for, and in which streams.
pub(super) struct Asked<'a> {
    pub(super) patterns: Patterns,
    pub(super) processes: ProcessStreams<'a>,
    pub(super) events: Events,
}

/// The pattern.
pub(super) enum Patterns {
    /// In all streams the same.
    Everywhere(Sequence),
    /// In the stream of each process its own, in one of several ways.
    Processes(Vec<Variant>),
}

/// One of the ways to do the same thing.
pub(super) struct Variant {
    pub(super) order: Option<String>,
    pub(super) sequences: BTreeMap<usize, Sequence>,
}

/// What of the trace is compared.
pub(super) enum Events {
    Compared(Compared),
    RolesAndPeers(RolesAndPeers),
}

impl Events {
    /// What each symbol is compared as in a stream.
    pub(super) fn in_stream(
        &self,
        processes: &ProcessStreams<'_>,
        stream: usize,
    ) -> Result<Vec<Option<Symbol>>> {
        Ok(match self {
            Events::Compared(compared) => compared.symbols().to_vec(),
            Events::RolesAndPeers(numbers) => processes.roles_and_peers(stream, &mut numbers.clone())?,
        })
    }
}

impl<'a> Asked<'a> {
    /// Reads the pattern, with notes on it.
    pub(super) fn read(
        arguments: &SimilarArgs,
        text: Option<&str>,
        fold: &'a Fold,
    ) -> Result<(Self, Vec<String>)> {
        let processes = ProcessStreams::of(fold);
        if let Some(name) = &arguments.like {
            let (patterns, numbers) = known(&KnownPattern::parse(name)?)?;
            let has_messages =
                |symbol| matches!(fold.alphabet().meaning(symbol).role, Role::Send | Role::Receive);
            if !fold.alphabet().symbols().any(has_messages) {
                bail!("the trace has no sends and receives, so nothing in it can be like a {name}");
            }
            return Ok((Self { patterns, processes, events: Events::RolesAndPeers(numbers) }, Vec::new()));
        }
        let compared = match (arguments.all_events, arguments.envelope) {
            (true, envelope) => Compared::with_all_events(fold.alphabet(), envelope)?,
            (false, true) => Compared::with_envelope(fold.alphabet())?,
            (false, false) => Compared::new(fold.alphabet())?,
        };
        let (patterns, notes) = match (&arguments.pattern, arguments.number, text) {
            (Some(path), ..) => from_file(&file::read(path)?, &compared, fold)?,
            (None, Some(number), _) => (by_number(arguments, fold, number)?, Vec::new()),
            (None, None, text) => {
                (Patterns::Everywhere(written(text.unwrap_or(""), &compared, fold)?), Vec::new())
            }
        };
        Ok((Self { patterns, processes, events: Events::Compared(compared) }, notes))
    }
}

/// A sequence as for `find`.
fn written(text: &str, compared: &Compared, fold: &Fold) -> Result<Sequence> {
    let words = Query::words(text)?;
    let called = compared.called(fold.alphabet(), &words);
    for (word, symbols) in words.iter().zip(&called) {
        if !symbols.is_empty() {
            continue;
        }
        // It has the better message, unless it knows the word.
        Query::parse(text, fold.alphabet())?;
        bail!("{word} is not an event of communication; --all-events compares all events");
    }
    Ok(called)
}

/// The pattern of that number in the list of `patterns`.
fn by_number(arguments: &SimilarArgs, fold: &Fold, number: usize) -> Result<Patterns> {
    let larger = Larger::of(arguments, fold)?;
    let processes = larger.processes();
    let sequence = |part: Part| -> Result<Sequence> {
        let shown = processes.doings()[part.stream as usize].shown();
        let (start, end) = (part.start as usize, part.end as usize);
        if shown.events(start, end) > LONGEST {
            bail!("pattern {number} has more than {} events of one process", show::count(LONGEST));
        }
        Ok(events_of(&shown.nest(start, end), LONGEST).into_iter().map(|symbol| vec![symbol]).collect())
    };
    let all = larger.count();
    match number.checked_sub(1).and_then(|index| larger.get(index)) {
        Some(Numbered::Process(part)) => Ok(Patterns::Everywhere(sequence(part)?)),
        Some(Numbered::Communication(parts)) => {
            let mut sequences = BTreeMap::new();
            for part in parts {
                let process = processes.communicators().rank(part.stream as usize) as usize;
                sequences.insert(process, sequence(part)?);
            }
            Ok(Patterns::Processes(vec![Variant { order: None, sequences }]))
        }
        None => bail!("there is no pattern {number}: `patterns` has {}", show::plural(all as u64, "pattern")),
    }
}

/// Events of one process in a pattern that is looked for.
const LONGEST: u64 = 4096;

/// Events of a file that the trace does not have are not found, but the others may be.
fn from_file(written: &Written, compared: &Compared, fold: &Fold) -> Result<(Patterns, Vec<String>)> {
    let words: Vec<&str> = written.events.iter().map(|(_, text)| text.as_str()).collect();
    let called = compared.called(fold.alphabet(), &words);
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
        let near = near_names(fold.alphabet(), text);
        let near = if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
        bail!("the trace has no event of the pattern; line {number}: no event is called {text}{near}");
    }
    // As many as anyone reads.
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
        None => Patterns::Everywhere(called),
        Some(processes) => {
            let sequence = |(&process, range): (&usize, &std::ops::Range<usize>)| {
                (process, called[range.clone()].to_vec())
            };
            let sequences = processes.iter().map(sequence).collect();
            Patterns::Processes(vec![Variant { order: None, sequences }])
        }
    };
    Ok((patterns, notes))
}

fn known(pattern: &KnownPattern) -> Result<(Patterns, RolesAndPeers)> {
    let mut numbers = RolesAndPeers::default();
    let mut variants = Vec::new();
    for variant in pattern.variants() {
        let mut sequences = BTreeMap::new();
        for (process, events) in variant.events.iter().enumerate().filter(|(_, events)| !events.is_empty()) {
            let symbols = events.iter().map(|&(role, peer)| Ok(vec![numbers.symbol(role, Some(peer))?]));
            sequences.insert(process, symbols.collect::<Result<Sequence>>()?);
        }
        variants.push(Variant { order: Some(variant.order), sequences });
    }
    Ok((Patterns::Processes(variants), numbers))
}
