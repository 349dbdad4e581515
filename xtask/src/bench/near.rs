//! Measures loops with exceptions: how fast they are found, how many of the loops of programs
//! that are known, and how many random streams seem to have one.
//!
//! Speed and memory are those of the whole question, beyond the fold that it is asked of, in a
//! process of its own, on one core; beside it the time of folding, and that of the definition
//! itself, window by window, on a stream that is short enough for it.

use super::measure::memory;
use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use crate::{Arguments, clock};
use anyhow::{Context, Result, bail, ensure};
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{Folder as _, Outermost};
use loopfold::questions::near::{Config, near_nest};
use loopfold::questions::nest::{Nest, Node};
use loopfold::trace::{Alphabet, Event};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::near::{self, Loops, Program};
use loopfold_testing::{Rng, streams};
use std::ops::Range;
use std::process::Command;

/// The hidden chore of a child process.
pub(crate) const CHILD: &str = "bench-near";

/// Makes a stream of about so many events.
type Make = fn(usize) -> Vec<u32>;

/// The streams whose speed is measured.
const SHAPES: &[(&str, Make)] = &[
    ("20 events, 1 % odd", |events| odd(events, 10)),
    ("20 events, 5 % odd", |events| odd(events, 50)),
    ("counts that vary", varying),
    ("exact nests", |events| streams::nests(events, 7)),
    ("control flow", |events| streams::control_flow(events, 1)),
    ("random 4", |events| streams::random(events, 4, 1)),
    ("random 256", |events| streams::random(events, 256, 1)),
];

/// One loop of 20 events, some of whose iterations in a thousand are odd.
fn odd(events: usize, odd: usize) -> Vec<u32> {
    let body: Vec<u32> = (0..20).map(|event| event % 14).collect();
    let mut rng = Rng::new(1);
    let mut stream = Vec::with_capacity(events + 20);
    while stream.len() < events {
        stream.extend(&body);
        if rng.below(1000) < odd {
            let at = stream.len() - 1 - rng.below(20);
            stream[at] = 14 + rng.below(5) as u32;
        }
    }
    stream
}

/// A loop around another one whose number of iterations varies.
fn varying(events: usize) -> Vec<u32> {
    let mut rng = Rng::new(1);
    let mut stream = Vec::with_capacity(events + 20);
    while stream.len() < events {
        stream.extend([0, 1, 2]);
        (0..rng.between(3, 7)).for_each(|_| stream.extend([3, 4]));
        stream.extend([5, 6]);
    }
    stream
}

/// Measures and prints the tables.
pub(super) fn run(settings: &Settings) -> Result<()> {
    speed(settings)?;
    known(settings)?;
    random(settings)
}

fn speed(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("stream"),
        Column::Number("events"),
        Column::Number("folding, ns an event"),
        Column::Number("with exceptions, ns"),
        Column::Number("peak bytes an event"),
        Column::Number("found"),
    ];
    let mut table = Table::new("Loops with exceptions, on one core", &columns);
    for (shape, (name, _)) in SHAPES.iter().enumerate() {
        for &events in settings.lengths() {
            progress(format_args!("loops with exceptions, {name}, {events} events"));
            let [folding, search, peak, found] = in_child(shape, events)?;
            let each = |number: u64| short(number as f64 / events as f64);
            table.row([
                name.to_string(),
                grouped(events as u64),
                each(folding),
                each(search),
                each(peak),
                grouped(found),
            ]);
        }
    }
    println!("{table}");
    let stream = odd(4_000, 50);
    let nest = plain_nest(&stream)?;
    let (_, definition) =
        clock::timed(|| near::near_loops(&nest, &|body| plain_nest(body).unwrap_or_default()));
    let (fold, root) = fold(&stream)?;
    let (_, ours) = clock::best(|| near_nest(&fold, root, usize::MAX, Config::new(&outermost)));
    println!(
        "The definition, window by window, takes {} times as long on a stream of 4,000 events.\n",
        short(definition.as_secs_f64() / ours.as_secs_f64())
    );
    Ok(())
}

fn in_child(shape: usize, events: usize) -> Result<[u64; 4]> {
    let (shape, events) = (shape.to_string(), events.to_string());
    let output = Command::new(std::env::current_exe()?).args([CHILD, &shape, &events]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    numbers.try_into().ok().context("the search gave no result")
}

/// The child's side: prints the nanoseconds of folding and of the search, the bytes of memory
/// beyond what it had with the fold, and how many loops with exceptions there are.
pub(crate) fn child(mut arguments: Arguments) -> Result<()> {
    let shape: usize = arguments.word().context("a shape")?.parse()?;
    let events: usize = arguments.word().context("a number of events")?.parse()?;
    arguments.finish()?;
    let Some((_, make)) = SHAPES.get(shape) else { bail!("there is no such shape") };
    let ((fold, root), folding) = {
        let stream = make(events);
        let (folded, time) = clock::timed(|| fold(&stream));
        (folded?, time)
    };
    // What folding used may not be given back, and would hide the peak of the search.
    let base = memory("VmRSS")?;
    std::fs::write("/proc/self/clear_refs", "5").context("the peak of memory cannot be reset")?;
    let (nest, search) = clock::timed(|| near_nest(&fold, root, 1 << 20, Config::new(&outermost)));
    let peak = memory("VmHWM")?.saturating_sub(base);
    let found = nest?.map_or(0, |nest| nest.near.len());
    println!("{} {} {peak} {found}", folding.as_nanos(), search.as_nanos());
    Ok(())
}

/// Programs of known loops: how many are shown as one, and how many that are shown are one.
fn known(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("odd iterations"),
        Column::Number("iterations"),
        Column::Number("loops"),
        Column::Number("recall"),
        Column::Number("precision"),
        Column::Number("recall, exact"),
        Column::Number("precision, exact"),
    ];
    let mut table = Table::new("Known loops, beside the exact nest", &columns);
    let lengths: &[(usize, usize)] = if settings.quick {
        &[(1_000, 10)]
    } else {
        &[(1_000, 50), (10_000, 20), (100_000, 5), (1_000_000, 1)]
    };
    for odd in [0, 5, 10, 20, 50] {
        for &(iterations, programs) in lengths {
            progress(format_args!("known loops, {iterations} iterations, {odd} in 1,000 odd"));
            let (mut ours, mut exact) = (Score::default(), Score::default());
            for seed in 0..programs {
                let mut rng = Rng::new(seed as u64 + 1);
                let loops = Loops { loops: 3, iterations, longest: 40, letters: 30, odd };
                let program = near::program(&mut rng, loops);
                let (fold, root) = fold(&program.events)?;
                let nest = fold.nest(root, usize::MAX);
                exact.add(&program, &nest);
                let found = near_nest(&fold, root, usize::MAX, Config::new(&outermost))?;
                ours.add(&program, found.as_ref().unwrap_or(&nest));
            }
            table.row([
                format!("{} %", odd as f64 / 10.0),
                grouped(iterations as u64),
                grouped(ours.known),
                short(ours.recall()),
                short(ours.precision()),
                short(exact.recall()),
                short(exact.precision()),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// How many known loops are found, and how many of those that are shown are known.
#[derive(Default)]
struct Score {
    known: u64,
    found: u64,
    shown: u64,
    true_ones: u64,
}

impl Score {
    /// Counts the loops of the outermost level that cover at least 1 % of the events. A loop is
    /// found if one with as long a body covers nine tenths of it; one that is shown is true if it
    /// lies in a loop with as long a body, but for an iteration on either side, and covers half of it.
    fn add(&mut self, program: &Program, nest: &Nest) {
        let shown = shown(nest, program.events.len() as u64 / 100);
        for &(start, end, body) in &program.loops {
            self.known += 1;
            let covers = |(span, length): &(Range<u64>, u64)| {
                let common = span.end.min(end as u64).saturating_sub(span.start.max(start as u64));
                *length == body as u64 && 10 * common >= 9 * (end - start) as u64
            };
            self.found += u64::from(shown.iter().any(covers));
        }
        for (span, length) in &shown {
            let is_within = |&(start, end, body): &(usize, usize, usize)| {
                let (start, end) = ((start as u64).saturating_sub(*length), end as u64 + length);
                let is_most = 2 * (span.end - span.start) >= end - start;
                *length == body as u64 && start <= span.start && span.end <= end && is_most
            };
            self.shown += 1;
            self.true_ones += u64::from(program.loops.iter().any(is_within));
        }
    }

    fn recall(&self) -> f64 {
        self.found as f64 / self.known.max(1) as f64
    }

    fn precision(&self) -> f64 {
        self.true_ones as f64 / self.shown.max(1) as f64
    }
}

/// Where the loops of the outermost level are that have at least so many events, and how long their
/// bodies are.
fn shown(nest: &Nest, least: u64) -> Vec<(Range<u64>, u64)> {
    let (mut at, mut found) = (0, Vec::new());
    for node in nest.children(0..nest.nodes.len()) {
        let end = at + nest.node_length(node);
        let length = match nest.nodes[node] {
            Node::Loop { length, .. } => Some(length),
            Node::Near { near, .. } => Some(nest.near[near].lengths.0),
            Node::Event(_) | Node::LeftOut(_) => None,
        };
        found.extend(length.filter(|_| end - at >= least).map(|length| (at..end, length)));
        at = end;
    }
    found
}

/// How many random streams show a loop with exceptions.
fn random(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("letters"),
        Column::Number("events"),
        Column::Number("streams"),
        Column::Number("show one"),
    ];
    let mut table = Table::new("Random streams", &columns);
    let lengths: &[(usize, u64)] = if settings.quick {
        &[(200, 200), (5_000, 50)]
    } else {
        &[(200, 1_000), (5_000, 300), (100_000, 30), (1_000_000, 5)]
    };
    for letters in [2, 3, 4, 8, 20, 100, 1_000, 5_000] {
        for &(events, count) in lengths {
            progress(format_args!("random streams of {letters} letters, {events} events"));
            let mut show = 0;
            for seed in 0..count {
                let (fold, root) = fold(&streams::random(events, letters, seed + 1))?;
                let nest = near_nest(&fold, root, usize::MAX, Config::new(&outermost))?;
                show += u64::from(nest.is_some());
            }
            table.row([grouped(letters as u64), grouped(events as u64), grouped(count), grouped(show)]);
        }
    }
    println!("{table}");
    Ok(())
}

fn outermost(stream: &[Symbol], builder: &mut FoldBuilder) -> loopfold::Result<RuleId> {
    Outermost::default().fold(stream, builder)
}

/// A stream as rules, and the one that unfolds to it.
fn fold(stream: &[u32]) -> Result<(Fold, RuleId)> {
    let mut alphabet = Alphabet::default();
    for event in 0..=stream.iter().max().copied().unwrap_or(0) {
        alphabet.intern(&Event::integer(event.into()), None)?;
    }
    let symbols: Vec<Symbol> =
        stream.iter().map(|&event| Symbol::new(event as usize)).collect::<loopfold::Result<_>>()?;
    let mut builder = FoldBuilder::new(alphabet);
    let root = outermost(&symbols, &mut builder)?;
    builder.stream(FoldedStream::new("stream", "outermost", root));
    Ok((builder.finish(), root))
}

/// The nest of a stream as the definition takes it.
fn plain_nest(stream: &[u32]) -> Result<loopfold_testing::Nest> {
    fn part(nest: &Nest, range: Range<usize>) -> Vec<loopfold_testing::nest::Node> {
        let node = |at: usize| match nest.nodes[at] {
            Node::Event(symbol) => Some(loopfold_testing::nest::Node::Event(symbol.raw())),
            Node::Loop { times, .. } => {
                Some(loopfold_testing::nest::Node::Loop(part(nest, nest.body(at)), times))
            }
            Node::Near { .. } | Node::LeftOut(_) => None,
        };
        nest.children(range).filter_map(node).collect()
    }
    let (fold, root) = fold(stream)?;
    let nest = fold.nest(root, usize::MAX);
    Ok(loopfold_testing::Nest(part(&nest, 0..nest.nodes.len())))
}
