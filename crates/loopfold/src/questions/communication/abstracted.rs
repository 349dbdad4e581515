//! Abstracts a trace: communication patterns become single events with their names, and the
//! streams are folded again, so that loops of patterns appear. This is the abstracted trace of
//! Alawneh and Hamou-Lhadj.
//!
//! **Definition.** Write out the examined events of a stream. Walk from its start. At a position
//! where an occurrence of a pattern begins, write the name of the pattern and go on behind the
//! occurrence: of several, that with the most events of all processes, of equals the pattern with
//! the lowest number. Elsewhere write the event. An occurrence is one time of a
//! [`RepeatedPart`](super::RepeatedPart).
//!
//! So what lies in a larger occurrence is never seen, and streams are independent of each other:
//! where occurrences overlap without one being in the other, the first one is named.
//!
//! A stream is not written out for this. The repetitions of a joint loop are one step of the walk.
//! What recurs in the iterations of a loop is one step as well, if the walk of an iteration ends
//! where the next one begins and all occurrences in it recur at the same distance. Events between
//! occurrences are taken with their loops. Only what comes of it is written out to be folded; if
//! even that is too long, the loops that are known are kept, and what is around them is folded.
//!
//! Time: O((occurrences + steps) × log occurrences), and for a loop or a joint loop O(occurrences
//! inside); then that of folding. Memory: 60 bytes for each occurrence of a stream, 12 for each
//! step, and 4 for each event that is folded.

use super::description::Description;
use super::pattern::RepeatedPart;
use super::processes::Processes;
use super::trace_patterns::TracePatterns;
use crate::fold::{Fold, FoldBuilder, FoldedStream, Item, Target, symbol_counts};
use crate::questions::nest::{Nest, Node};
use crate::questions::patterns::{FoldStream, LoopCollapsed, MemoryBudget};
use crate::trace::Event;
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A trace in which patterns are single events.
#[derive(Debug)]
pub struct AbstractedTrace {
    /// The abstracted streams, with the names and notes of the streams of the trace.
    pub fold: Fold,
    /// The events that are patterns: for each its number, from 1, and what it is called.
    pub names: BTreeMap<usize, (Symbol, String)>,
    /// How many events were examined, in all streams.
    pub events: u64,
    /// How many of them were replaced.
    pub replaced: u64,
}

/// Steps of the walk of one stream, whatever sizes an archive declares.
const MOST_STEPS: usize = 1 << 22;

/// Writes patterns as single events. Streams that have no more events then than the budget
/// allows are folded by `fold_stream`. Patterns are those of the trace that occur twice or more:
/// if fewer are kept, what lies in a joint loop that is not is replaced in its first iteration.
pub fn abstracted(
    processes: &Processes<'_>,
    found: &TracePatterns,
    budget: MemoryBudget,
    fold_stream: FoldStream<'_>,
) -> Result<AbstractedTrace> {
    if !processes.communicate() {
        return Err(Error::invalid(
            "communication patterns need a trace with sends, receives or collectives",
        ));
    }
    let mut naming = Naming {
        processes,
        found,
        builder: FoldBuilder::new(processes.alphabet().clone()),
        names: BTreeMap::new(),
    };
    let streams = processes.fold.streams().iter().zip(runs_of(processes, found));
    for ((stream, runs), trace) in streams.zip(processes.traces()) {
        let mut name = |number| naming.symbol(number);
        let (items, loops) = Walk::new(trace.shown(), runs, &mut name).whole()?;
        let root = folded(items, loops, budget, fold_stream, &mut naming.builder)?;
        // No folder of its own: loops may be those of the trace.
        let stream = FoldedStream::new(stream.name().raw(), "", root).with_notes(stream.notes().to_vec());
        naming.builder.stream(stream);
    }
    let Naming { builder, names, .. } = naming;
    let fold = builder.finish().without_producer_counts();
    let events = processes.shown().iter().fold(0u64, |sum, stream| sum.saturating_add(stream.length()));
    let mut left = symbol_counts(&fold)?;
    names.values().for_each(|(symbol, _)| left[symbol.index()] = 0);
    let replaced = events.saturating_sub(left.into_iter().fold(0, u64::saturating_add));
    Ok(AbstractedTrace { fold, names, events, replaced })
}

/// Occurrences of a pattern in a stream, at equal distances.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    length: u64,
    period: u64,
    times: u64,
    rank: Rank,
}

/// The events of an occurrence in all processes, and the number of its pattern: the larger
/// one of two that begin together is taken.
type Rank = (u64, Reverse<usize>);

impl Run {
    fn new(RepeatedPart { part, period, times }: RepeatedPart, rank: Rank) -> Self {
        Self { start: part.start, length: part.end - part.start, period, times, rank }
    }

    fn is_contiguous(&self) -> bool {
        self.length == self.period
    }

    fn end(&self) -> u64 {
        self.start + (self.times - 1) * self.period + self.length
    }

    /// The first occurrence that begins at a position or behind it, and how many there are from
    /// there on.
    fn from(&self, position: u64) -> Option<(u64, u64)> {
        let before = position.saturating_sub(self.start).div_ceil(self.period);
        (before < self.times).then(|| (self.start + before * self.period, self.times - before))
    }
}

/// The occurrences in each stream.
fn runs_of(processes: &Processes<'_>, found: &TracePatterns) -> Vec<Vec<Run>> {
    let mut runs = vec![Vec::new(); processes.traces().len()];
    for (pattern, number) in found.communication.iter().zip(1..) {
        for occurrence in pattern.all_occurrences() {
            let lengths = occurrence.parts.iter().map(|part| part.end - part.start);
            let rank = (lengths.fold(0, u64::saturating_add), Reverse(number));
            for repeated in occurrence.repeated_parts() {
                if repeated.part.start < repeated.part.end {
                    runs[repeated.part.stream.index()].push(Run::new(repeated, rank));
                }
            }
        }
    }
    runs
}

/// Describes patterns when they are first met.
struct Naming<'n, 'a> {
    processes: &'n Processes<'a>,
    found: &'n TracePatterns,
    /// What the abstracted streams are added to.
    builder: FoldBuilder,
    names: BTreeMap<usize, (Symbol, String)>,
}

impl Naming<'_, '_> {
    fn symbol(&mut self, number: usize) -> Result<Symbol> {
        if let Some(&(symbol, _)) = self.names.get(&number) {
            return Ok(symbol);
        }
        let pattern = &self.found.communication[number - 1];
        let name = Description::of(pattern, self.processes, &self.found.partners, None).name();
        let event = format!("#{number} {name}");
        let symbol = self.builder.alphabet_mut().intern(&Event::named(&event), None)?;
        self.names.insert(number, (symbol, name));
        Ok(symbol)
    }
}

/// The walk through a stream.
struct Walk<'w> {
    shown: &'w LoopCollapsed,
    /// By start.
    runs: Vec<Run>,
    /// For each run, where those up to it end at most.
    ends: Vec<u64>,
    /// The next occurrence of each run that has one: the first position on top, there the
    /// largest.
    next: BinaryHeap<(Reverse<u64>, Rank, usize)>,
    /// The event of a pattern.
    name: &'w mut dyn FnMut(usize) -> Result<Symbol>,
    /// The loops that items refer to.
    loops: FoldBuilder,
    steps: usize,
}

impl<'w> Walk<'w> {
    fn new(
        shown: &'w LoopCollapsed,
        mut runs: Vec<Run>,
        name: &'w mut dyn FnMut(usize) -> Result<Symbol>,
    ) -> Self {
        runs.sort_unstable_by_key(|run| (run.start, run.rank));
        let ends = runs.iter().scan(0, |last, run| {
            *last = run.end().max(*last);
            Some(*last)
        });
        let ends = ends.collect();
        let next =
            runs.iter().enumerate().map(|(index, run)| (Reverse(run.start), run.rank, index)).collect();
        Self { shown, runs, ends, next, name, loops: FoldBuilder::default(), steps: MOST_STEPS }
    }

    /// The abstracted stream, and the loops that its items refer to.
    fn whole(mut self) -> Result<(Vec<Item>, FoldBuilder)> {
        let (items, _) = self.between(0, self.shown.length(), u64::MAX)?;
        Ok((items, self.loops))
    }

    /// Walks from a position to another one, or to the end of an occurrence behind it: returns
    /// where that is. Loops whose iterations are shorter than `below` are taken at once.
    fn between(&mut self, from: u64, to: u64, below: u64) -> Result<(Vec<Item>, u64)> {
        let mut items = Vec::new();
        let mut at = from;
        while at < to {
            self.steps = self.steps.checked_sub(1).ok_or_else(too_many_steps)?;
            let next = self.next_from(at).filter(|&(start, _)| start < to);
            let (start, index) = next.map_or((to, None), |(start, index)| (start, Some(index)));
            self.events(at, start, &mut items)?;
            at = start;
            let Some(run) = index.map(|index| self.runs[index]) else { break };
            if run.is_contiguous() {
                let times = self.times_in_a_row(run, at);
                items.push(Item::new(self.name_of(run)?, times));
                at += times * run.length;
                continue;
            }
            let iterations = if run.period < below { self.equal_iterations(run, at) } else { 1 };
            if iterations < 2 {
                items.push(Item::new(self.name_of(run)?, 1));
                at += run.length;
            } else {
                let (body, end) = self.between(at, at + run.period, run.period)?;
                let is_loop = end == at + run.period;
                match is_loop {
                    true => items.push(self.loops.repeat(&body, iterations)?),
                    false => items.extend(body),
                }
                at = if is_loop { at + iterations * run.period } else { end };
            }
        }
        Ok((items, at))
    }

    fn name_of(&mut self, run: Run) -> Result<Target> {
        let (_, Reverse(number)) = run.rank;
        (self.name)(number).map(Target::Symbol)
    }

    /// The first occurrence that begins at a position or behind it, the largest there.
    fn next_from(&mut self, position: u64) -> Option<(u64, usize)> {
        loop {
            let &(Reverse(start), rank, index) = self.next.peek()?;
            if start >= position {
                return Some((start, index));
            }
            self.next.pop();
            if let Some((start, _)) = self.runs[index].from(position) {
                self.next.push((Reverse(start), rank, index));
            }
        }
    }

    /// The runs that have something between two positions, or may have.
    fn runs_between(&self, from: u64, to: u64) -> impl Iterator<Item = &Run> {
        let count = self.runs.partition_point(|run| run.start < to);
        let with_ends = self.runs[..count].iter().zip(&self.ends).rev();
        with_ends.take_while(move |&(_, &end)| end > from).map(|(run, _)| run)
    }

    /// How often an occurrence is taken, one directly after the other, before a larger one may
    /// begin.
    fn times_in_a_row(&self, run: Run, at: u64) -> u64 {
        let left = (run.end() - at) / run.length;
        if left < 2 {
            return left;
        }
        let larger = self.runs_between(at, run.end()).filter(|other| other.rank > run.rank);
        let next = larger.filter_map(|other| other.from(at + run.length)).map(|(start, _)| start).min();
        next.map_or(left, |start| left.min((start - at).div_ceil(run.length)))
    }

    /// In how many iterations of the loop around it, from here on, the walk does the same if it
    /// ends where the next iteration begins.
    fn equal_iterations(&self, run: Run, at: u64) -> u64 {
        // Behind the last occurrence the loop may have ended.
        let left = (run.end() - at) / run.period;
        let mut equal = left;
        for other in self.runs_between(at, at + left * run.period) {
            let Some((start, times)) = other.from(at) else { continue };
            let into = (start - at) % run.period;
            let is_covered = other.rank < run.rank && into + (other.end() - start) <= run.length;
            if is_covered {
                continue;
            }
            equal = equal.min(match (start - at) / run.period {
                0 if other.period == run.period => times,
                0 => 1,
                iterations => iterations,
            });
        }
        equal
    }

    /// The events between two positions, in their loops.
    fn events(&mut self, from: u64, to: u64, items: &mut Vec<Item>) -> Result<()> {
        if from < to {
            let nest = self.shown.nest_between(from, to, self.steps);
            self.steps = self.steps.checked_sub(nest.nodes.len()).ok_or_else(too_many_steps)?;
            items.extend(items_of(&nest, 0..nest.nodes.len(), &mut self.loops)?);
        }
        Ok(())
    }
}

/// A part of a nest as items. Loops are not nested deeper than 64, as each has two iterations.
fn items_of(nest: &Nest, range: std::ops::Range<usize>, loops: &mut FoldBuilder) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for at in nest.children(range) {
        items.push(match nest.nodes[at] {
            Node::Event(symbol) => Item::once(symbol),
            // Patterns are searched in exact nests.
            Node::Near { .. } | Node::LeftOut(_) => return Err(too_many_steps()),
            Node::Loop { times, .. } => {
                let body = items_of(nest, nest.body(at), loops)?;
                loops.repeat(&body, times)?
            }
        });
    }
    Ok(items)
}

/// Folds an abstracted stream.
fn folded(
    items: Vec<Item>,
    mut loops: FoldBuilder,
    budget: MemoryBudget,
    fold_stream: FoldStream<'_>,
    builder: &mut FoldBuilder,
) -> Result<RuleId> {
    let length = |item: &Item| match item.target() {
        Target::Symbol(_) => item.times(),
        Target::Rule(rule) => item.times().saturating_mul(loops.length(rule)),
    };
    if items.iter().map(length).fold(0, u64::saturating_add) <= budget.events {
        let root = loops.root_rule(items)?;
        let symbols: Vec<Symbol> = loops.finish().unfold(root).collect();
        return fold_stream(&symbols, builder);
    }
    let rules = builder.append_rules(&loops.finish(), Ok)?;
    let renamed = items.into_iter().map(|item| match item.target() {
        Target::Symbol(_) => item,
        Target::Rule(rule) => Item::new(Target::Rule(rules[rule.index()]), item.times()),
    });
    folded_items(&renamed.collect::<Vec<_>>(), fold_stream, builder)
}

/// Folds a stream whose loops are kept: each is one symbol.
fn folded_items(items: &[Item], fold_stream: FoldStream<'_>, builder: &mut FoldBuilder) -> Result<RuleId> {
    let mut distinct: Vec<Item> = Vec::new();
    let mut numbers: HashMap<Item, usize> = HashMap::new();
    let mut symbols = Vec::with_capacity(items.len());
    for &item in items {
        let number = *numbers.entry(item).or_insert(distinct.len());
        if number == distinct.len() {
            distinct.push(item);
        }
        symbols.push(Symbol::new(number)?);
    }
    let mut scratch = FoldBuilder::default();
    let root = fold_stream(&symbols, &mut scratch)?;
    let scratch = scratch.finish();
    let mut rules: Vec<RuleId> = Vec::with_capacity(scratch.rules().len());
    for rule in scratch.rules() {
        let body = scratch.body(rule).iter().map(|item| match item.target() {
            Target::Symbol(symbol) => {
                builder.repeat(&distinct[symbol.index()..=symbol.index()], item.times())
            }
            Target::Rule(rule) => Ok(Item::new(Target::Rule(rules[rule.index()]), item.times())),
        });
        let body = body.collect::<Result<Vec<_>>>()?;
        rules.push(builder.rule(&body)?);
    }
    Ok(rules[root.index()])
}

fn too_many_steps() -> Error {
    Error::limit(format_args!("an abstracted stream of more than {MOST_STEPS} steps"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use super::*;
    use crate::folders::{Folder, Outermost};
    use loopfold_testing::patterns::{Occurrence, abstracted as walked};
    use loopfold_testing::{Rng, streams};

    /// The numbers of patterns begin here.
    const FIRST: usize = 1000;

    fn fold_stream(stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        Outermost::default().fold(stream, builder)
    }

    /// A stretch in the first iteration of a loop and in the following ones, or iterations.
    fn random_run(rng: &mut Rng, shown: &LoopCollapsed, number: usize) -> Run {
        let found = rng.below(shown.loops().len());
        let (period, first) = (shown.body_events(found), shown.position(shown.loops()[found].start as usize));
        let into = rng.below(period as usize) as u64;
        let length = 1 + rng.below((period - into) as usize) as u64;
        let times = 1 + rng.below(shown.loops()[found].times as usize) as u64;
        // The number of events decides little in few, so that numbers do, too.
        let rank = (rng.below(4) as u64, Reverse(number));
        Run { start: first + into, length, period, times, rank }
    }

    fn occurrences(runs: &[Run]) -> Vec<Occurrence> {
        let each = |run: &Run| {
            let (events, Reverse(number)) = run.rank;
            let Run { start, length, period, times, .. } = *run;
            let start = move |time: u64| (start + time * period) as usize;
            let end = move |time: u64| start(time) + length as usize;
            (0..times).map(move |time| Occurrence { start: start(time), end: end(time), events, number })
        };
        runs.iter().flat_map(each).collect()
    }

    #[test]
    fn occurrences_in_loops_are_taken_as_one_by_one() {
        let mut rng = Rng::new(612);
        let (mut with_loops, mut named) = (0, 0);
        for _ in 0..20_000 {
            let stream = streams::small(&mut rng, 60);
            let symbols: Vec<Symbol> = stream.iter().map(|&raw| Symbol::from_raw(raw)).collect();
            let shown = LoopCollapsed::of(&symbols, &fold_stream).unwrap();
            if shown.loops().is_empty() {
                continue;
            }
            let count = rng.between(1, 4);
            let runs: Vec<Run> = (1..=count).map(|number| random_run(&mut rng, &shown, number)).collect();
            let expected = walked(&stream, &occurrences(&runs));
            let mut name = |number: usize| Symbol::new(FIRST + number);
            let (items, mut loops) = Walk::new(&shown, runs.clone(), &mut name).whole().unwrap();
            with_loops += usize::from(items.iter().any(|item| match item.target() {
                Target::Rule(rule) => loops.body(rule).iter().any(|item| is_name(*item)),
                Target::Symbol(_) => false,
            }));
            let root = loops.root_rule(items).unwrap();
            let fold = loops.finish();
            let written = fold.unfold(root).map(|symbol| match symbol.index() {
                number if number > FIRST => Err(number - FIRST),
                _ => Ok(symbol.raw()),
            });
            assert_eq!(written.collect::<Vec<_>>(), expected, "{stream:?} {runs:?}");
            named += expected.iter().filter(|event| event.is_err()).count();
        }
        assert!(with_loops > 500 && named > 10_000, "{with_loops} {named}");
    }

    fn is_name(item: Item) -> bool {
        matches!(item.target(), Target::Symbol(symbol) if symbol.index() > FIRST)
    }
}
