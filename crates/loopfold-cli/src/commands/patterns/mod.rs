//! `loopfold patterns`: event sequences that occur repeatedly, ranked.
//!
//! `process` prints patterns of single processes; `communication` those of several processes, and
//! messages and collectives that were never completed; `follow` reports them while inputs grow.

mod communication;
mod follow;
mod process;

use crate::args::{KindName, PatternsArgs, PatternsMethod, RankName, ReadArgs};
use crate::show;
use crate::{Outcome, folding, input, tables};
use anyhow::{Context as _, Result, bail};
use communication::Communication;
use loopfold::Fold;
use loopfold::mpi::Grid;
use loopfold::questions::communication::{Partners, Processes, TracePatterns};
use loopfold::questions::patterns::{self, ENVELOPE, EventChoice, Only, PatternMethod, RankBy};
use loopfold::trace::TimesKept;
use process::ProcessPatterns;
use std::io::Write;

/// The most patterns that are kept, whatever sizes an archive declares.
const MOST_KEPT: usize = 100_000;

pub(super) fn run(arguments: &PatternsArgs) -> Result<Outcome> {
    if arguments.follow {
        return follow::run(arguments);
    }
    answer(arguments, input::fold(&arguments.read, TimesKept::None, &arguments.folder)?, print_answer)
}

/// The answer, with everything that printing needs.
struct Answer<'a> {
    arguments: &'a PatternsArgs,
    config: &'a patterns::Config,
    fold: &'a Fold,
    processes: &'a Processes<'a>,
    found: &'a TracePatterns,
    process: ProcessPatterns<'a>,
    communication: Communication<'a>,
    notes: Vec<String>,
}

/// Finds the patterns of what was read.
fn answer<T>(
    arguments: &PatternsArgs,
    read: (Fold, Vec<String>),
    then: impl FnOnce(&Answer<'_>) -> Result<T>,
) -> Result<T> {
    let (fold, mut notes) = input::with_unique_communicators(read, &arguments.folder)?;
    let budget = folding::memory_budget(&arguments.folder);
    let processes = Processes::of(&fold, &choice(arguments), budget, &folding::outermost)?;
    notes.extend(stored_note(&fold, &processes));
    let config = config(arguments);
    let found = TracePatterns::of(&processes, &config)?;
    if found.process.is_cut {
        notes.push("there are too many repeats: only those that may cover the most events are listed".into());
    }
    notes.extend(communication::notes(&found.partners));
    let communication = Communication::new(&fold, &processes, &found, grid(arguments, &processes)?);
    let process = ProcessPatterns::new(&fold, &processes, &found.process);
    then(&Answer {
        arguments,
        config: &config,
        fold: &fold,
        processes: &processes,
        found: &found,
        process,
        communication,
        notes,
    })
}

fn print_answer(answer: &Answer<'_>) -> Result<Outcome> {
    show::notes(&answer.notes);
    let partners = &answer.found.partners;
    if answer.arguments.matrix {
        print_matrix(partners)?;
    } else if answer.arguments.form.is_data() {
        print_data(answer)?;
    } else {
        print(answer.arguments, &answer.process, &answer.communication)?;
    }
    let is_any = match answer.arguments.matrix {
        true => !partners.matrix.is_empty(),
        false => answer.found.process.found > 0 || answer.communication.count() > 0,
    };
    Ok(if is_any { Outcome::Done } else { Outcome::Nothing })
}

/// The grid that the user says the processes are.
fn grid(arguments: &PatternsArgs, processes: &Processes<'_>) -> Result<Option<Grid>> {
    let Some(shape) = &arguments.grid else { return Ok(None) };
    let grid = Grid::parse(shape).filter(|grid| (1..=3).contains(&grid.sides.len()));
    let grid = grid.with_context(|| format!("--grid {shape:?} is no shape such as 4x4 or 2x2x4"))?;
    let size = processes.traces().len() as u32;
    if grid.size() != Some(size) {
        bail!("--grid {shape} is not a grid of {}", show::plural(size.into(), "stream"));
    }
    Ok(Some(grid))
}

/// How many patterns of a kind are shown.
fn most(arguments: &PatternsArgs) -> usize {
    arguments.top.most().min(MOST_KEPT)
}

fn print(
    arguments: &PatternsArgs,
    process: &ProcessPatterns<'_>,
    communication: &Communication<'_>,
) -> Result<()> {
    let mut out = show::stdout();
    communication.print(&mut out, most(arguments), arguments.full.on)?;
    if communication.count() == 0 || arguments.processes {
        if communication.count() > 0 {
            writeln!(out)?;
        }
        process.print(&mut out, arguments, communication.count(), most(arguments))?;
    } else if process.found() > 0 {
        let count = show::plural(process.found(), "pattern");
        writeln!(out, "\n{count} of single processes, too (--processes shows them)")?;
    }
    communication.print_unmatched(&mut out, arguments.full.on)?;
    Ok(out.flush()?)
}

fn print_data(answer: &Answer<'_>) -> Result<()> {
    let Answer { arguments, config, fold, processes, found, process, communication, .. } = answer;
    let most = most(arguments);
    let described = communication.described(most);
    let count = communication.count() as u64 + process.found();
    let patterns = loopfold_json::patterns::Patterns {
        fold,
        processes,
        found,
        method: config.method,
        events: process.events(),
        count,
        left_out: count - (described.len() + process.entry_count(most)) as u64,
    };
    tables::print_answer(&arguments.form, "patterns", "patterns", |out| {
        let (several, single) =
            (communication.entries(&described), process.entries(communication.count(), most));
        Ok(loopfold_json::patterns::patterns(out, &patterns, several, single)?)
    })
}

/// The messages and bytes of each pair of processes, as a table for other programs.
fn print_matrix(partners: &Partners) -> Result<()> {
    let mut out = std::io::BufWriter::new(show::raw_stdout());
    writeln!(out, "from,to,messages,bytes")?;
    for ((from, to), traffic) in &partners.matrix {
        writeln!(out, "{from},{to},{},{}", traffic.messages, traffic.bytes)?;
    }
    Ok(out.flush()?)
}

/// Fields of the envelope that do not count: those that the key does not name.
pub(super) fn left_out(read: &ReadArgs) -> Vec<String> {
    let is_asked_for = |field: &str| read.key.iter().flatten().any(|key| key == field || key == "all");
    ENVELOPE.into_iter().filter(|field| !is_asked_for(field)).map(String::from).collect()
}

/// Which events count.
fn choice(arguments: &PatternsArgs) -> EventChoice {
    let left_out = if arguments.envelope { Vec::new() } else { left_out(&arguments.read) };
    let only = arguments.kind.map(|kind| match kind {
        KindName::Messages => Only::Messages,
        KindName::Collectives => Only::Collectives,
    });
    EventChoice { all_events: arguments.all_events, only, left_out }
}

fn config(arguments: &PatternsArgs) -> patterns::Config {
    let method = match arguments.method {
        PatternsMethod::Ngrams => PatternMethod::Ngrams,
        PatternsMethod::Exact => PatternMethod::Exact,
    };
    let rank_by = match arguments.rank_by {
        RankName::Events => RankBy::Events,
        RankName::Count => RankBy::Count,
        RankName::Length => RankBy::Length,
        RankName::Processes => RankBy::Processes,
    };
    default_config().method(method).rank_by(rank_by).min_count(arguments.min_count)
}

/// The configuration without any options: patterns have the same numbers wherever it is used.
pub(super) fn default_config() -> patterns::Config {
    patterns::Config::new().keep(MOST_KEPT).look_inside(MOST_KEPT)
}

pub(super) fn stored_note(fold: &Fold, streams: &Processes<'_>) -> Option<String> {
    let &first = streams.stored().first()?;
    let count = show::plural(streams.stored().len() as u64, "stream");
    let by = fold.streams()[first].folder().terminal();
    Some(format!(
        "{count} would unfold to more than fits in memory; so what counts as one repetition there are the loops that \
         {by} found"
    ))
}
