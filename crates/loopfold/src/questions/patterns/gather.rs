//! From a fold to abridged streams: which events count, and as what.
//!
//! In a trace with communication these are sends, receives and collectives, without their
//! *envelope*: how much is sent, and how it is labelled, says nothing about who talks to whom.
//! Elsewhere every event counts as it is.
//!
//! Events are left out in the fold, rule by rule. Each distinct stream is then unfolded and
//! abridged, or, where that would take too much room, the loops of the fold are taken as they
//! are. Time: a nanosecond an event to unfold it, and that of abridging; memory: that of the
//! streams which are worked on at a time, up to 30 bytes an event, and of what is abridged.

use super::Abridged;
use crate::fold::{Fold, FoldBuilder, FoldedStream, Item, Target};
use crate::trace::{Alphabet, Projection, Role};
use crate::{Error, Result, RuleId, Symbol};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fields of calls of MPI that do not say who communicates with whom.
pub const ENVELOPE: [&str; 7] = ["tag", "bytes", "op", "n", "color", "key", "newcomm"];

/// Which events patterns are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventChoice {
    /// All, not only sends, receives and collectives.
    pub all_events: bool,
    /// Fields that are left out, of a trace that has communication.
    pub left_out: Vec<String>,
}

impl Default for EventChoice {
    fn default() -> Self {
        Self { all_events: false, left_out: ENVELOPE.map(String::from).to_vec() }
    }
}

/// How much may be unfolded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The most events of a stream that are held in memory.
    pub events: u64,
    /// The most symbols of a stream whose loops are taken as they are.
    pub symbols: usize,
    /// How many streams are worked on at the same time.
    pub threads: usize,
}

/// The streams of a fold, abridged.
#[derive(Clone, Debug)]
pub struct AbridgedStreams {
    alphabet: Alphabet,
    distinct: Vec<Abridged>,
    /// For each stream, which of these it is.
    streams: Vec<usize>,
    /// Streams of which the loops of the fold were taken.
    stored: Vec<usize>,
    has_communication: bool,
    /// Which symbols of the fold count.
    kept: Vec<bool>,
}

impl AbridgedStreams {
    /// Abridges all streams of a fold.
    pub fn of(fold: &Fold, choice: &EventChoice, room: Room) -> Result<Self> {
        let communicates = |symbol: Symbol| {
            matches!(fold.alphabet().meaning(symbol).role, Role::Send | Role::Receive | Role::Collective)
        };
        let has_communication = fold.alphabet().symbols().any(communicates);
        let every = choice.all_events || !has_communication;
        let kept: Vec<bool> = fold.alphabet().symbols().map(|symbol| every || communicates(symbol)).collect();
        let ignore = if has_communication { choice.left_out.clone() } else { Vec::new() };
        let projection = Projection { ignore, ..Projection::default() };
        let (alphabet, renamed) = projection.of_alphabet(fold.alphabet())?;
        let chosen = chosen_events(fold, &kept, &renamed)?;
        let mut roots: Vec<RuleId> = chosen.streams().iter().map(FoldedStream::root).collect();
        roots.sort_unstable();
        roots.dedup();
        let distinct = abridge_all(&chosen, &roots, room)?;
        let place_of = |stream: &FoldedStream| roots.binary_search(&stream.root()).unwrap_or_default();
        let streams: Vec<usize> = chosen.streams().iter().map(place_of).collect();
        let is_stored = |&stream: &usize| chosen.length(roots[streams[stream]]) > room.events;
        let stored = (0..streams.len()).filter(is_stored).collect();
        Ok(Self { alphabet, distinct, streams, stored, has_communication, kept })
    }

    /// What the symbols of the abridged streams mean.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The streams, in their order; those with the same rule are one.
    pub fn streams(&self) -> Vec<&Abridged> {
        self.streams.iter().map(|&distinct| &self.distinct[distinct]).collect()
    }

    /// A stream.
    pub fn stream(&self, index: usize) -> &Abridged {
        &self.distinct[self.streams[index]]
    }

    /// The streams that are too long to be unfolded: the loops of the fold were taken as they
    /// are.
    pub fn stored(&self) -> &[usize] {
        &self.stored
    }

    /// Whether there are sends, receives or collectives.
    pub fn has_communication(&self) -> bool {
        self.has_communication
    }

    /// From positions among the events that count to those of the streams of the fold, which
    /// must be the one that was abridged.
    pub fn positions<'a>(&self, fold: &'a Fold) -> KeptPositions<'a> {
        KeptPositions::new(fold, &self.kept)
    }
}

/// The same streams with some of the events, renamed.
fn chosen_events(fold: &Fold, kept: &[bool], renamed: &[Symbol]) -> Result<Fold> {
    let mut builder = FoldBuilder::default();
    // What each rule is now, and how often: nothing, if none of its events count.
    let mut chosen: Vec<Option<Item>> = Vec::with_capacity(fold.rules().len());
    let mut body: Vec<Item> = Vec::new();
    for rule in fold.rules() {
        body.clear();
        for &item in fold.body(rule) {
            let once = match item.target() {
                Target::Symbol(symbol) => kept[symbol.index()].then(|| Item::once(renamed[symbol.index()])),
                Target::Rule(inner) => chosen[inner.index()],
            };
            let Some(once) = once else { continue };
            append(&mut body, once, item.times())?;
        }
        chosen.push(match body[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(Item::new(Target::Rule(builder.rule(&body)?), 1)),
        });
    }
    for stream in fold.streams() {
        let root = match chosen[stream.root().index()] {
            None => builder.rule(&[])?,
            Some(item) => match item.target() {
                Target::Rule(rule) if item.times() == 1 => rule,
                _ => builder.rule(&[item])?,
            },
        };
        builder.stream(FoldedStream::new(stream.name(), stream.folder(), root));
    }
    Ok(builder.finish())
}

/// Adds an item that repeats; what is the same as the last one only makes that repeat more.
fn append(body: &mut Vec<Item>, once: Item, times: u64) -> Result<()> {
    let too_long = || Error::limit("a loop repeats more often than can be counted");
    let times = once.times().checked_mul(times).ok_or_else(too_long)?;
    match body.last_mut().filter(|last| last.target() == once.target()) {
        Some(last) => {
            let both = last.times().checked_add(times).ok_or_else(too_long)?;
            *last = Item::new(last.target(), both);
        }
        None => body.push(Item::new(once.target(), times)),
    }
    Ok(())
}

/// Abridges streams side by side; the results are in their order.
fn abridge_all(fold: &Fold, roots: &[RuleId], room: Room) -> Result<Vec<Abridged>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Abridged>>>> = roots.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&root) = roots.get(index) else { break };
            let abridged = abridge(fold, root, room);
            *done[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(abridged);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..room.threads.min(roots.len()) {
            scope.spawn(work);
        }
        work();
    });
    let result = |slot: Mutex<Option<Result<Abridged>>>| {
        let abridged = slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        abridged.unwrap_or_else(|| Err(Error::invalid("a stream was not abridged")))
    };
    done.into_iter().map(result).collect()
}

fn abridge(fold: &Fold, root: RuleId, room: Room) -> Result<Abridged> {
    let length = fold.length(root);
    if length > room.events {
        return Abridged::of_rule(fold, root, room.symbols);
    }
    let mut symbols = vec![Symbol::from_raw(0); length as usize];
    fold.unfold(root).fill(&mut symbols);
    Abridged::of(&symbols)
}

/// Where events that count are among all events.
#[derive(Clone, Debug)]
pub struct KeptPositions<'a> {
    fold: &'a Fold,
    /// For each item of the fold how many events that count its rule has up to its end;
    /// nothing if all count.
    ends: Option<Vec<u64>>,
}

impl<'a> KeptPositions<'a> {
    fn new(fold: &'a Fold, kept: &[bool]) -> Self {
        if kept.iter().all(|&kept| kept) {
            return Self { fold, ends: None };
        }
        let mut ends: Vec<u64> = Vec::with_capacity(fold.items());
        for rule in fold.rules() {
            let mut end = 0;
            for &item in fold.body(rule) {
                let once = match item.target() {
                    Target::Symbol(symbol) => u64::from(kept[symbol.index()]),
                    Target::Rule(inner) => last_of(&ends, fold, inner),
                };
                // No more than the length of the rule, which the fold has checked.
                end += once * item.times();
                ends.push(end);
            }
        }
        Self { fold, ends: Some(ends) }
    }

    /// The position in a stream of its event number `index` that counts; nothing if there are
    /// not so many.
    pub fn of(&self, stream: usize, index: u64) -> Option<u64> {
        let mut rule = self.fold.streams().get(stream)?.root();
        let Some(ends) = &self.ends else { return (index < self.fold.length(rule)).then_some(index) };
        if index >= last_of(ends, self.fold, rule) {
            return None;
        }
        let (mut index, mut position) = (index, 0);
        loop {
            let range = self.fold.item_range(rule);
            let ends_here = &ends[range.clone()];
            let place = ends_here.partition_point(|&end| end <= index);
            if let Some(before) = place.checked_sub(1) {
                index -= ends_here[before];
                position += self.fold.item_end(range.start + before);
            }
            match self.fold.body(rule).get(place)?.target() {
                Target::Symbol(_) => return Some(position + index),
                Target::Rule(inner) => {
                    let once = last_of(ends, self.fold, inner);
                    position += index / once * self.fold.length(inner);
                    index %= once;
                    rule = inner;
                }
            }
        }
    }
}

/// How many events that count a rule has.
fn last_of(ends: &[u64], fold: &Fold, rule: RuleId) -> u64 {
    fold.item_range(rule).last().map_or(0, |last| ends[last])
}
