//! Questions on a fold, beside unfolding it and asking the events themselves.
//!
//! Questions on a fold must be faster than unfolding and searching by at least a quarter
//! of the events an item stands for. Both answers are compared.

use super::archive_sizes::{collector, files_under, recorded};
use super::suffixes::{Wanted, minimal_hot};
use super::{Settings, progress};
use crate::clock::best;
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result, ensure};
use loopfold::archive::{self, ReadConfig};
use loopfold::folders::{Auto, Folder, Outermost, SequiturRuns, fold_trace};
use loopfold::questions::context::{ContextNode, Neighbour};
use loopfold::questions::hot::{self, EventCosts};
use loopfold::questions::query::Query;
use loopfold::trace::{Event, Sink as _};
use loopfold::{Fold, Symbol, Trace};
use loopfold_testing::{Rng, streams};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A question: how the fold answers it, and how the unfolded events do. The answer is
/// any number that shows whether both mean the same.
struct Question {
    name: &'static str,
    /// Whether it must be faster by a quarter of the events an item stands for.
    must: bool,
    of_fold: fn(&Subject) -> Result<u64>,
    of_events: fn(&Subject, &[Vec<u32>]) -> u64,
}

/// The questions; a new one is an entry here.
const QUESTIONS: &[Question] = &[
    Question {
        name: "find 1 event",
        must: true,
        of_fold: |subject| count(subject, 1),
        of_events: |subject, events| search(events, &subject.sequence(1)),
    },
    Question {
        name: "find 4 events",
        must: true,
        of_fold: |subject| count(subject, 4),
        of_events: |subject, events| search(events, &subject.sequence(4)),
    },
    Question {
        name: "find 32 events",
        must: true,
        of_fold: |subject| count(subject, 32),
        of_events: |subject, events| search(events, &subject.sequence(32)),
    },
    Question {
        name: "find 1,000 events",
        must: true,
        of_fold: |subject| count(subject, 1_000),
        of_events: |subject, events| search(events, &subject.sequence(1_000)),
    },
    Question {
        name: "what comes after, 3 deep",
        must: false,
        of_fold: |subject| contexts(subject),
        of_events: |subject, events| contexts_of_events(events, subject.sequence(1)[0]),
    },
    Question {
        name: "hot, 2 to 100 events",
        must: true,
        of_fold: |subject| hot(subject, 2, 1),
        of_events: |_, events| hot_of_events(events, 2),
    },
    Question {
        name: "hot, 10 to 100 events",
        must: true,
        of_fold: |subject| hot(subject, 10, 1),
        of_events: |_, events| hot_of_events(events, 10),
    },
];

/// The folders whose folds are asked; the second is the default of `fold`.
fn folders() -> Vec<Box<dyn Folder>> {
    vec![Box::new(SequiturRuns), Box::new(Auto), Box::new(Outermost::default())]
}

/// A fold to ask.
struct Subject {
    name: String,
    fold: Fold,
}

impl Subject {
    /// The events in the middle of the longest stream: something that occurs.
    fn sequence(&self, length: u64) -> Vec<u32> {
        let roots = self.fold.streams().iter().map(|stream| stream.root());
        let Some(root) = roots.max_by_key(|&root| self.fold.length(root)) else { return Vec::new() };
        let start = self.fold.length(root) / 2;
        self.fold.window(root, start, start + length).map(Symbol::raw).collect()
    }

    fn unfolded(&self) -> Result<Vec<Vec<u32>>> {
        let unfold = |root| {
            let mut symbols = vec![Symbol::new(0)?; self.fold.length(root) as usize];
            let written = self.fold.unfold(root).fill(&mut symbols);
            Ok(symbols[..written].iter().map(|symbol| symbol.raw()).collect())
        };
        self.fold.streams().iter().map(|stream| unfold(stream.root())).collect()
    }
}

/// Measures all questions and prints them: on generated control flow, and on the traces
/// and archives under a directory if one is given.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Text("folder"),
        Column::Number("events"),
        Column::Number("items"),
        Column::Text("question"),
        Column::Number("answer"),
        Column::Number("fold ms"),
        Column::Number("unfold ms"),
        Column::Number("search ms"),
        Column::Number("times faster"),
        Column::Number("events/items/4"),
        Column::Text(""),
    ];
    let title = "Questions on a fold, in CPU time, beside unfolding it and searching the events;\n\
                 wanted: faster by a quarter of the events an item stands for";
    let mut table = Table::new(title, &columns);
    let mut elapsed = elapsed_table();
    let length = if settings.quick { 1_000_000 } else { 10_000_000 };
    let trace = trace_of(&streams::control_flow(length, 7))?;
    for folder in folders() {
        progress(format_args!("questions on control flow, folded by {}", folder.name()));
        let fold = fold_trace(trace.clone(), &*folder, 1)?;
        let subject = Subject { name: "control flow".to_string(), fold };
        ask_all(&mut table, &subject)?;
        on_threads(&mut elapsed, &subject)?;
    }
    for path in settings.traces.iter().flat_map(|folder| files_under(folder)) {
        progress(format_args!("questions on {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for fold in folds_of(&path)? {
            let subject = Subject { name: name.clone(), fold };
            ask_all(&mut table, &subject)?;
            on_threads(&mut elapsed, &subject)?;
        }
    }
    println!("{table}");
    println!("{elapsed}");
    names(settings)
}

fn elapsed_table() -> Table {
    let columns = [
        Column::Text("trace"),
        Column::Text("folder"),
        Column::Number("one thread ms"),
        Column::Number("two threads ms"),
        Column::Number("times faster"),
    ];
    Table::new("Hot subpaths of 10 to 100 events, elapsed time: the fastest of 15", &columns)
}

fn on_threads(table: &mut Table, subject: &Subject) -> Result<()> {
    let elapsed = |threads: usize| -> Result<f64> {
        let mut fastest = f64::INFINITY;
        for _ in 0..15 {
            let start = Instant::now();
            hot(subject, 10, threads)?;
            fastest = fastest.min(1e3 * start.elapsed().as_secs_f64());
        }
        Ok(fastest)
    };
    let (one, two) = (elapsed(1)?, elapsed(2)?);
    let folder = subject.fold.streams().first().map_or("", |stream| stream.folder().raw());
    table.row([subject.name.clone(), folder.to_string(), short(one), short(two), short(one / two)]);
    Ok(())
}

/// Names that a pattern stands for.
const NAMES: usize = 10_000;

/// A pattern that stands for many names, beside a single name: both are resolved, found and
/// counted.
fn names(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("folder"),
        Column::Number("events"),
        Column::Number("items"),
        Column::Text("query"),
        Column::Number("names"),
        Column::Number("answer"),
        Column::Number("ms"),
        Column::Number("times one name"),
        Column::Text(""),
    ];
    let title = "Names in a query, in CPU time; wanted: 10,000 names that one glob stands for cost at most twice\n\
                 one name";
    let mut table = Table::new(title, &columns);
    let trace = trace_of_names(if settings.quick { 500_000 } else { 5_000_000 })?;
    for folder in folders() {
        let fold = fold_trace(trace.clone(), &*folder, 1)?;
        let mut of_one = None;
        for query in ["f17", "f*", "/^f[0-9]+$/", "f1* f2*"] {
            let (answer, time) = best(|| count_named(&fold, query));
            let (answer, names) = answer?;
            let ratio = time.as_secs_f64() / of_one.get_or_insert(time).as_secs_f64();
            let verdict = match query {
                "f*" if ratio <= 2.0 => "met",
                "f*" => "MISSED",
                _ => "",
            };
            table.row([
                folder.name().to_string(),
                grouped(fold.events().unwrap_or(u64::MAX)),
                grouped(fold.items() as u128),
                query.to_string(),
                grouped(names as u128),
                grouped(answer),
                short(1e3 * time.as_secs_f64()),
                short(ratio),
                verdict.to_string(),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// How often a query occurs, and how many names its first event may have.
fn count_named(fold: &Fold, text: &str) -> Result<(u64, usize)> {
    let query = Query::parse(text, fold.alphabet())?;
    Ok((fold.find(&query)?.count()?, query.events().first().map_or(0, Vec::len)))
}

/// Loops over few of many names.
fn trace_of_names(events: u64) -> Result<Trace> {
    let mut rng = Rng::new(11);
    let mut collector = collector();
    let only = collector.stream("generated")?;
    for name in 0..NAMES {
        collector.push_event(only, &Event::named(&format!("f{name}")))?;
    }
    while collector.events() < events {
        let body: Vec<String> = (0..rng.between(1, 12)).map(|_| format!("f{}", rng.below(NAMES))).collect();
        for _ in 0..rng.between(1, 200) {
            for name in &body {
                collector.push_event(only, &Event::named(name))?;
            }
            collector.push_event(only, &Event::named("step"))?;
        }
    }
    Ok(collector.finish()?)
}

fn trace_of(stream: &[u32]) -> Result<Trace> {
    let mut collector = collector();
    let only = collector.stream("generated")?;
    for &symbol in stream {
        collector.push_event(only, &Event::integer(symbol.into()))?;
    }
    Ok(collector.finish()?)
}

/// An archive as it is, or a trace as each folder folds it. Empty for other files.
fn folds_of(path: &Path) -> Result<Vec<Fold>> {
    let bytes = std::fs::read(path).with_context(|| format!("{}", path.display()))?;
    if archive::looks_like(&bytes) {
        return Ok(vec![archive::read(std::io::Cursor::new(bytes), &ReadConfig::new().times(false))?.0]);
    }
    let Ok(Some(trace)) = recorded(path) else { return Ok(Vec::new()) };
    folders().iter().map(|folder| Ok(fold_trace(trace.clone(), &**folder, 1)?)).collect()
}

fn ask_all(table: &mut Table, subject: &Subject) -> Result<()> {
    let (events, items) = (subject.fold.events().unwrap_or(u64::MAX), subject.fold.items());
    let wanted = events as f64 / items.max(1) as f64 / 4.0;
    let (unfolded, unfold_time) = best(|| subject.unfolded());
    let unfolded = unfolded?;
    let folder = subject.fold.streams().first().map_or("", |stream| stream.folder().raw());
    let milliseconds = |time: Duration| short(1e3 * time.as_secs_f64());
    for question in QUESTIONS {
        let (answer, fold_time) = best(|| (question.of_fold)(subject));
        let answer = answer?;
        let (expected, search_time) = best(|| (question.of_events)(subject, &unfolded));
        ensure!(answer == expected, "{}: {answer} on the fold, {expected} in the events", question.name);
        let faster = (unfold_time + search_time).as_secs_f64() / fold_time.as_secs_f64();
        let verdict = match question.must {
            true if faster >= wanted => "met",
            true => "MISSED",
            false => "",
        };
        table.row([
            subject.name.clone(),
            folder.to_string(),
            grouped(events),
            grouped(items as u128),
            question.name.to_string(),
            grouped(answer),
            milliseconds(fold_time),
            milliseconds(unfold_time),
            milliseconds(search_time),
            short(faster),
            short(wanted),
            verdict.to_string(),
        ]);
    }
    Ok(())
}

/// How often a sequence occurs, and where first, by the fold.
fn count(subject: &Subject, length: u64) -> Result<u64> {
    let symbols: Result<Vec<Symbol>, _> =
        subject.sequence(length).iter().map(|&raw| Symbol::new(raw as usize)).collect();
    let found = subject.fold.find(&Query::of_symbols(&symbols?)?)?;
    ensure!(found.first().is_some(), "what was taken from the trace is not found in it");
    Ok(found.count()?)
}

/// How many different sequences of three events come after an event, by the fold.
fn contexts(subject: &Subject) -> Result<u64> {
    let event = Symbol::new(subject.sequence(1)[0] as usize)?;
    let tree = subject.fold.context(&Query::of_symbols(&[event])?, 3)?.after;
    let beyond = |nodes: &[ContextNode]| nodes.iter().flat_map(|node| tree.beyond(node).to_vec()).collect();
    let second: Vec<ContextNode> = beyond(tree.nearest());
    let third: Vec<ContextNode> = beyond(&second);
    Ok(third.iter().filter(|node| node.neighbour != Neighbour::Edge).count() as u64)
}

/// The same, by looking at every event.
fn contexts_of_events(events: &[Vec<u32>], event: u32) -> u64 {
    let mut counts: HashMap<[u32; 3], u64> = HashMap::new();
    for stream in events {
        for window in stream.windows(4) {
            if window[0] == event {
                *counts.entry([window[1], window[2], window[3]]).or_default() += 1;
            }
        }
    }
    counts.len() as u64
}

/// How many minimal subpaths are hot, by the fold: a thousandth of all events, at most
/// 100 events long.
fn hot(subject: &Subject, min_length: usize, threads: usize) -> Result<u64> {
    let settings = hot::Config::new().min_length(min_length).keep(20).threads(threads);
    Ok(subject.fold.hot_subpaths(&EventCosts::one_each(&subject.fold), &settings)?.found)
}

/// The same, by a suffix array of the events.
fn hot_of_events(events: &[Vec<u32>], min_length: u64) -> u64 {
    let all: usize = events.iter().map(Vec::len).sum();
    let limit = (all as u64).div_ceil(1000).max(1);
    // A failure is no answer, and shows as such.
    minimal_hot(events, Wanted { min_length, max_length: 100, limit }).unwrap_or(u64::MAX)
}

/// How often a sequence occurs: where its first and last events are in place, the ones
/// between are compared.
fn search(events: &[Vec<u32>], sequence: &[u32]) -> u64 {
    let [first, .., last] = sequence else {
        let is_it = |event: &&u32| sequence.contains(event);
        return events.iter().map(|stream| stream.iter().filter(is_it).count() as u64).sum();
    };
    let in_stream = |stream: &Vec<u32>| {
        let Some(ends) = stream.get(sequence.len() - 1..) else { return 0 };
        let (starts, mut count) = (&stream[..ends.len()], 0);
        for (block, (starts, ends)) in starts.chunks(BLOCK).zip(ends.chunks(BLOCK)).enumerate() {
            let fits = |(start, end): (&u32, &u32)| (start == first) & (end == last);
            // Without an early exit from the loop, so that it becomes vector instructions.
            if !starts.iter().zip(ends).fold(false, |any, pair| any | fits(pair)) {
                continue;
            }
            for (offset, pair) in starts.iter().zip(ends).enumerate() {
                let at = block * BLOCK + offset;
                count += u64::from(fits(pair) && stream[at..at + sequence.len()] == *sequence);
            }
        }
        count
    };
    events.iter().map(in_stream).sum()
}

/// Positions that are compared together.
const BLOCK: usize = 64;
