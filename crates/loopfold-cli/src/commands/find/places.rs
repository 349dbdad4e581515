//! Places of paths: their start and end, their times, and the call stack there.

use super::scheme::Answer;
use crate::show::{self, Clock};
use anyhow::{Context as _, Result};
use loopfold::questions::path::{CallStacks, PathMemory, PathPlace, PathQuery, PathStarts};
use loopfold::trace::{Meaning, Name};
use loopfold::{Fold, StreamId, Symbol};
use loopfold_json::find::{PathSpot, Stack};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A path and its occurrences.
pub(super) struct Asked<'a> {
    pub(super) query: PathQuery,
    pub(super) answer: Answer<'a>,
}

/// A place of one of the paths.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    /// Which path.
    pub(super) asked: usize,
    pub(super) place: PathPlace,
}

/// The order of streams, and in them of ends.
pub(super) fn order(spot: &Spot) -> (StreamId, u64) {
    (spot.place.stream, spot.place.end)
}

/// What a function is called where it is printed.
pub(super) fn function_label(query: &PathQuery) -> String {
    Meaning { name: Name::Text(query.function()), ..Meaning::default() }.to_string()
}

/// Calls that are shown of a stack, and in JSON.
const CALLS_SHOWN: usize = 8;
const CALLS_IN_JSON: usize = 100;
/// Characters that are shown of the name of a call.
const NAME_SHOWN: usize = 60;

/// What all paths share, on any number of threads: made when first needed.
pub(super) struct Shared<'a> {
    fold: &'a Fold,
    stacks: OnceLock<CallStacks<'a>>,
    /// By function.
    starts: HashMap<Vec<u8>, OnceLock<PathStarts<'a>>>,
}

impl<'a> Shared<'a> {
    pub(super) fn new<'q>(fold: &'a Fold, queries: impl IntoIterator<Item = &'q PathQuery>) -> Self {
        let slot = |query: &PathQuery| (query.function().to_vec(), OnceLock::new());
        Self { fold, stacks: OnceLock::new(), starts: queries.into_iter().map(slot).collect() }
    }

    fn stacks(&self) -> Result<&CallStacks<'a>> {
        made(&self.stacks, || CallStacks::new(self.fold))
    }

    fn start(&self, query: &PathQuery, place: &PathPlace, memory: &mut PathMemory) -> Result<Option<u64>> {
        let slot = self.starts.get(query.function()).context("a function that was not asked for")?;
        Ok(made(slot, || PathStarts::new(self.fold, query))?.start_of(query, place, memory))
    }
}

/// What is in a slot; two threads may both make it, and one of them is kept.
fn made<T>(slot: &OnceLock<T>, make: impl FnOnce() -> loopfold::Result<T>) -> Result<&T> {
    if let Some(known) = slot.get() {
        return Ok(known);
    }
    let new = make()?;
    Ok(slot.get_or_init(|| new))
}

/// Looks up start, time and stack of places.
pub(super) struct Places<'s, 'a> {
    fold: &'a Fold,
    asked: &'s [Asked<'s>],
    shared: &'s Shared<'a>,
    pub(super) clock: Clock<'a>,
    /// For each path where others of its places began.
    memories: Vec<PathMemory>,
}

impl<'s, 'a> Places<'s, 'a> {
    pub(super) fn new(asked: &'s [Asked<'s>], shared: &'s Shared<'a>) -> Self {
        let memories = asked.iter().map(|_| PathMemory::default()).collect();
        Self { fold: shared.fold, asked, shared, clock: Clock::new(shared.fold), memories }
    }

    /// The position of the first block. Returns `None` if it is too far away to search for.
    pub(super) fn start(&mut self, spot: Spot) -> Result<Option<u64>> {
        let memory = &mut self.memories[spot.asked];
        self.shared.start(&self.asked[spot.asked].query, &spot.place, memory)
    }

    /// The innermost calls that are open at the last block, the innermost last, and how
    /// many there are in all.
    fn stack(&self, spot: Spot, most: usize) -> Result<Stack> {
        let stacks = self.shared.stacks()?;
        let PathPlace { stream, end, .. } = spot.place;
        let mut calls = stacks.at(stream, end, most);
        calls.reverse();
        let depth = if calls.len() < most { calls.len() as u64 } else { stacks.depth_at(stream, end) };
        Ok(Stack { calls, depth })
    }

    /// A stack as people read it: `main > f`, with a number for what is left out.
    fn stack_text(&self, spot: Spot) -> Result<String> {
        let Stack { calls, depth } = self.stack(spot, CALLS_SHOWN)?;
        let left_out = depth.saturating_sub(calls.len() as u64);
        let more = (left_out > 0).then(|| format!("… {} more", show::count(left_out)));
        let name = |symbol: Symbol| {
            let name = self.fold.alphabet().meaning(symbol).name;
            show::shorten(&Meaning { name, ..Meaning::default() }.to_string(), NAME_SHOWN)
        };
        let calls = calls.into_iter().map(name);
        Ok(more.into_iter().chain(calls).collect::<Vec<_>>().join(" > "))
    }

    fn title(&self, spot: Spot) -> String {
        show::plain(self.fold.stream(spot.place.stream).title())
    }

    /// A place as people read it: `t.calls, events 12 to 14, at 1.20 ms, in main > f`.
    pub(super) fn text(&mut self, spot: Spot) -> Result<String> {
        let (stream, end) = (spot.place.stream, spot.place.end);
        let start = self.start(spot)?;
        let position = |position| show::count(self.fold.whole_position(stream, position));
        let events = match start {
            Some(start) if start == end => format!("event {}", position(end)),
            Some(start) => format!("events {} to {}", position(start), position(end)),
            None => format!("events up to {}", position(end)),
        };
        let at = self.clock.since(stream, start.unwrap_or(end))?;
        let at = at.map_or(String::new(), |at| format!(", at {at}"));
        Ok(format!("{}, {events}{at}, in {}", self.title(spot), self.stack_text(spot)?))
    }

    /// A place as a line for other programs: stream, start, end, and when, if known; then
    /// the function, if there are several; then the stack, if asked for.
    pub(super) fn line(&mut self, spot: Spot, stack: bool) -> Result<String> {
        let start = self.start(spot)?;
        let at = self.clock.start(spot.place.stream, start.unwrap_or(spot.place.end))?;
        let position = |position| self.fold.whole_position(spot.place.stream, position);
        let start = start.map_or("-".to_string(), |start| position(start).to_string());
        let mut line = format!("{}\t{start}\t{}", self.title(spot), position(spot.place.end));
        if let Some(at) = at {
            line.push_str(&format!("\t{at}"));
        }
        if self.asked.len() > 1 {
            line.push_str(&format!("\t{}", function_label(&self.asked[spot.asked].query)));
        }
        if stack {
            line.push_str(&format!("\t{}", self.stack_text(spot)?));
        }
        Ok(line)
    }

    /// A place for JSON, with the stack if asked for.
    pub(super) fn for_json(&mut self, spot: Spot, stack: bool) -> Result<PathSpot<'s>> {
        let PathPlace { stream, end, .. } = spot.place;
        let start = self.start(spot)?;
        let start_ns = self.clock.start(stream, start.unwrap_or(end))?;
        let asked = self.asked;
        let function = (asked.len() > 1).then(|| asked[spot.asked].query.function());
        let stack = stack.then(|| self.stack(spot, CALLS_IN_JSON)).transpose()?;
        Ok(PathSpot { place: spot.place, start, start_ns, function, stack })
    }
}
