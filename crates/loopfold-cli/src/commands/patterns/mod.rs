//! `loopfold patterns`: sequences of events that come again and again, ranked.
//!
//! Patterns of single processes are in `process`; what is made of them across processes has
//! the kind `communication` and a file of its own.

mod process;

use crate::args::{MethodName, PatternsArgs, RankName};
use crate::show;
use crate::{Outcome, input};
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::communication::Processes;
use loopfold::questions::{ENVELOPE, EventChoice, PatternMethod, PatternSettings, Patterns, RankBy};
use loopfold::trace::TimesKept;
use process::ProcessPatterns;
use serde_json::json;
use std::io::Write;

/// Patterns on a terminal, unless the user says how many.
const SHOWN: usize = 20;
/// Patterns that are kept at the most: bounded, whatever an archive claims.
const MOST_KEPT: usize = 100_000;

pub(super) fn run(arguments: &PatternsArgs) -> Result<Outcome> {
    let (fold, mut notes) = input::fold(&arguments.read, TimesKept::None, &arguments.folder)?;
    let streams = Processes::of(&fold, &choice(arguments), input::room(&arguments.folder))?;
    notes.extend(stored_note(&fold, &streams));
    let settings = settings(arguments);
    let patterns = Patterns::of(&streams.shown(), &settings)?;
    if patterns.is_cut {
        notes.push("there are so many repeats that only those are told which may explain most events".into());
    }
    show::notes(&notes);
    let process = ProcessPatterns::new(&fold, &streams, &patterns);
    if arguments.json {
        show::print_json(&json!({
            "method": method_name(settings.method),
            "streams": fold.streams().len(),
            "events": process.events(),
            "communication": streams.communicate(),
            "found": patterns.found,
            "left_out": patterns.found - process.told() as u64,
            "patterns": process.to_json(),
        }))?;
    } else {
        let mut out = anstream::stdout().lock();
        process.print(&mut out, arguments)?;
        out.flush()?;
    }
    Ok(if patterns.found > 0 { Outcome::Done } else { Outcome::Nothing })
}

/// Which events count: fields of the envelope do if the key names them.
fn choice(arguments: &PatternsArgs) -> EventChoice {
    let is_asked_for = |field: &str| {
        let mut key = arguments.read.key.iter().flatten();
        arguments.envelope || key.any(|key| key == field || key == "all")
    };
    let left_out = ENVELOPE.into_iter().filter(|field| !is_asked_for(field)).map(String::from).collect();
    EventChoice { all_events: arguments.all_events, left_out }
}

fn settings(arguments: &PatternsArgs) -> PatternSettings {
    let wanted = arguments.top.unwrap_or(if arguments.json { 0 } else { SHOWN });
    PatternSettings {
        method: match arguments.method {
            MethodName::Ngrams => PatternMethod::Ngrams,
            MethodName::Exact => PatternMethod::Exact,
        },
        rank_by: match arguments.rank_by {
            RankName::Events => RankBy::Events,
            RankName::Count => RankBy::Count,
            RankName::Length => RankBy::Length,
            RankName::Processes => RankBy::Processes,
        },
        min_count: arguments.min_count,
        keep: if wanted == 0 { MOST_KEPT } else { wanted.min(MOST_KEPT) },
    }
}

fn method_name(method: PatternMethod) -> &'static str {
    match method {
        PatternMethod::Ngrams => "ngrams",
        PatternMethod::Exact => "exact",
    }
}

fn stored_note(fold: &Fold, streams: &Processes<'_>) -> Option<String> {
    let &first = streams.stored().first()?;
    let count = show::plural(streams.stored().len() as u64, "stream");
    let by = fold.streams()[first].folder();
    Some(format!(
        "{count} would unfold to more than fits in memory; so what counts as one repetition there are the loops that \
         {by} found"
    ))
}
