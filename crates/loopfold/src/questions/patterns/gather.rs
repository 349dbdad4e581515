//! Which events patterns are made of, how much of a trace may be unfolded to find them, and
//! where such events are among all others.
//!
//! In a trace with communication these are sends, receives and collectives, without their
//! *envelope*: how much is sent, and how it is labelled, says nothing about who talks to whom.
//! Elsewhere every event counts as it is.

use crate::fold::{Fold, Target};
use crate::{Error, Result, RuleId};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fields of calls of MPI that do not say who communicates with whom.
pub const ENVELOPE: [&str; 9] =
    ["tag", "bytes", "recvtag", "recvbytes", "op", "n", "color", "key", "newcomm"];

/// Which events patterns are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventChoice {
    /// All, not only sends, receives and collectives.
    pub all_events: bool,
    /// Only some of the communication.
    pub only: Option<Only>,
    /// Fields that are left out, of a trace that has communication.
    pub left_out: Vec<String>,
}

/// A part of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Sends and receives.
    Messages,
    /// Collective operations.
    Collectives,
}

impl Default for EventChoice {
    fn default() -> Self {
        Self { all_events: false, only: None, left_out: ENVELOPE.map(String::from).to_vec() }
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

impl Default for Room {
    /// What fits in a gigabyte or two.
    fn default() -> Self {
        Self { events: 1 << 25, symbols: 1 << 25, threads: 1 }
    }
}

/// Works on several things at the same time; the results are in their order.
pub(in crate::questions) fn side_by_side<T: Copy + Sync, R: Send>(
    things: &[T],
    threads: usize,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<R>>>> = things.iter().map(|_| Mutex::new(None)).collect();
    let take = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&thing) = things.get(index) else { break };
            let result = work(thing);
            *done[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(things.len()) {
            scope.spawn(take);
        }
        take();
    });
    let result = |slot: Mutex<Option<Result<R>>>| {
        let result = slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        result.unwrap_or_else(|| Err(Error::invalid("a stream was not worked on")))
    };
    done.into_iter().map(result).collect()
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
    pub(in crate::questions) fn new(fold: &'a Fold, kept: &[bool]) -> Self {
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

impl KeptPositions<'_> {
    /// How many events that count a stream has before a position.
    pub fn before(&self, stream: usize, position: u64) -> Option<u64> {
        let mut rule = self.fold.streams().get(stream)?.root();
        let mut position = position.min(self.fold.length(rule));
        let Some(ends) = &self.ends else { return Some(position) };
        let mut count = 0;
        loop {
            let range = self.fold.item_range(rule);
            let body = self.fold.body(rule);
            let mut place = 0;
            while place < body.len() && position >= self.fold.item_length(body[place]) {
                position -= self.fold.item_length(body[place]);
                place += 1;
            }
            count += place.checked_sub(1).map_or(0, |before| ends[range.start + before]);
            let Some(item) = body.get(place) else { return Some(count) };
            let before = place.checked_sub(1).map_or(0, |before| ends[range.start + before]);
            let once = (ends[range.start + place] - before) / item.times();
            let length = self.fold.target_length(item.target());
            count += position / length * once;
            position %= length;
            match item.target() {
                // Nothing of an event lies before it.
                Target::Symbol(_) => return Some(count),
                Target::Rule(inner) => rule = inner,
            }
        }
    }
}

/// How many events that count a rule has.
fn last_of(ends: &[u64], fold: &Fold, rule: RuleId) -> u64 {
    fold.item_range(rule).last().map_or(0, |last| ends[last])
}
