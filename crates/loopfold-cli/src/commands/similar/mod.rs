//! `loopfold similar`: windows of streams that are similar to a pattern, and occurrences of a
//! communication pattern that they make.

mod file;
mod pattern;
mod print;

use crate::args::SimilarArgs;
use crate::{Outcome, folding, input, show};
use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
use loopfold::questions::communication::{Processes, TracePatterns};
use loopfold::questions::patterns::{self, ENVELOPE, EventChoice};
use loopfold::questions::similar::{self, EnclosingPatterns, Likeness, SimilarFound, search_similar};
use loopfold::trace::TimesKept;
use pattern::Asked;

/// The most patterns of the list that are searched for the windows.
const MOST_LISTED: usize = 100_000;

pub(super) fn run(arguments: &SimilarArgs) -> Result<Outcome> {
    let config = config(arguments)?;
    let has_option = arguments.pattern.is_some() || arguments.like.is_some() || arguments.number.is_some();
    let (read, text) = match has_option {
        true => (arguments.read.clone(), None),
        false => {
            let (read, text) = arguments.read.split_query()?;
            (read, Some(text))
        }
    };
    let read_in = input::fold(&read, TimesKept::None, &arguments.folder)?;
    let (fold, notes) = input::with_unique_communicators(read_in, &arguments.folder)?;
    show::notes(&notes);
    let listed = arguments.number.map(|_| Listed::of(arguments, &fold)).transpose()?;
    let (asked, notes) = Asked::read(arguments, text.as_deref(), &fold, listed.as_ref())?;
    show::notes(&notes);
    let found = search_similar(&fold, &asked.processes, &asked.events, &asked.pattern, &config)?;
    show::notes(&notes_on(&found));
    let listed = listed_around(arguments, &fold, &found, listed);
    let larger = listed.as_ref().map(|listed| EnclosingPatterns::of(&listed.processes, &listed.patterns));
    print::print(arguments, &fold, &asked, &found, larger.as_ref())?;
    // Of a pattern of several processes, its occurrences are what was asked for.
    let is_found = match &found.joined {
        Some(joined) => !joined.occurrences.is_empty(),
        None => found.count > 0,
    };
    Ok(super::find::outcome(is_found))
}

/// Windows that are kept, though fewer are shown.
const KEPT: u64 = 1_000_000;

fn config(arguments: &SimilarArgs) -> Result<similar::Config> {
    let shown = arguments.top.limit(u64::MAX);
    let kept = if arguments.all || arguments.form.is_data() { shown } else { shown.max(KEPT) };
    Ok(similar::Config::new()
        .likeness(Likeness { edits: arguments.edits, ngram: arguments.ngram })
        .max_error(share(&arguments.max_error)?)
        .keep(kept))
}

/// Which events are compared, and are in the list of `patterns`.
fn choice(arguments: &SimilarArgs) -> EventChoice {
    let left_out = if arguments.envelope { Vec::new() } else { ENVELOPE.map(String::from).to_vec() };
    EventChoice { all_events: arguments.all_events, left_out, ..EventChoice::default() }
}

fn notes_on(found: &SimilarFound) -> Vec<String> {
    let more = |(order, count): &(String, usize)| {
        format!("{} more in another order: {order}", show::plural(*count as u64, "occurrence"))
    };
    let mut notes: Vec<String> = found.other_orders.iter().map(more).collect();
    if found.absent_processes > 0 {
        let absent = show::plural(found.absent_processes as u64, "process");
        notes.push(format!("the trace does not have {absent} of the pattern"));
    }
    notes
}

/// The list of `patterns`.
struct Listed<'a> {
    processes: Processes<'a>,
    patterns: TracePatterns,
}

impl<'a> Listed<'a> {
    fn of(arguments: &SimilarArgs, fold: &'a Fold) -> loopfold::Result<Self> {
        let budget = folding::memory_budget(&arguments.folder);
        let processes = Processes::of(fold, &choice(arguments), budget, &folding::outermost)?;
        let config = patterns::Config::new().keep(MOST_LISTED).look_inside(0);
        let patterns = TracePatterns::of(&processes, &config)?;
        Ok(Self { processes, patterns })
    }
}

/// The list of patterns that contain windows, if it is printed. The answer is valid without it.
fn listed_around<'a>(
    arguments: &SimilarArgs,
    fold: &'a Fold,
    found: &SimilarFound,
    listed: Option<Listed<'a>>,
) -> Option<Listed<'a>> {
    if !print::shows_larger(arguments, found) {
        return None;
    }
    match listed.map_or_else(|| Listed::of(arguments, fold), Ok) {
        Ok(listed) => Some(listed),
        Err(error) => {
            show::notes(&[format!("the patterns that contain these windows are not known: {error}")]);
            None
        }
    }
}

/// A share such as `10%` or `0.1`.
fn share(text: &str) -> Result<f64> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().with_context(|| format!("--max-error {text}"))?;
    if !number.is_finite() || number < 0.0 {
        bail!("--max-error is a share, such as 10% or 0.1");
    }
    Ok(number / scale)
}
