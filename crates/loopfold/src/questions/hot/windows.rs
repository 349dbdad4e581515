//! All subpaths of one length at once: where the search begins if shorter ones are not wanted.
//!
//! Growing subpaths event by event visits every seam of the fold again for each length, though
//! nothing shorter than the least length can be hot. So the windows of that length are counted
//! directly. An occurrence crosses a seam in exactly one rule, so it begins in the last events
//! of some repetition of an item and ends in the first events of what follows it in the rule.
//! For a repetition, the last `length - 1` events before its end and the `length - 1` after it
//! are a *chunk*: its windows are the occurrences that begin in this repetition and leave it.
//! Real folds have few different chunks, and windows are compared in one of each kind only.
//!
//! A part of an item that repeats is written out as often as a window can see; the first part
//! stands for all those before it, whose windows are the same.
//!
//! Time: O(items × length) to write out the rules, with a small constant, one look-up in a hash
//! table for each item, and one for each window of a different chunk; about 40 ns an item for
//! windows of ten events of control flow. Memory: 12 bytes an item, 12 for each event of a
//! different chunk, and the borders of rules; then 24 for each place of a window that is
//! followed further, of at most [`PLACES`] or as many as the fold has items at once.

use super::successors::{Place, SuccessorIndex};
use crate::Result;
use crate::fold::borders::Borders;
use crate::fold::{Fold, Node};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::ops::Range;

/// No longer windows are counted at once: parts of rules are written out twice as far.
const LONGEST: usize = 16;
/// Shorter ones are found as fast event by event.
const SHORTEST: usize = 4;
/// The fewest places that are worth a pass over the rules.
const PLACES: usize = 1 << 20;
/// The most symbols of borders.
const MOST_BORDERS: usize = 1 << 30;

/// A repetition of an item has no window.
const NONE: u32 = u32::MAX;

/// Where an occurrence of a window ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowEnd {
    pub(super) place: Place,
    pub(super) node: Node,
    /// The events of the node that belong to the window.
    pub(super) inside: u32,
}

/// Different events around the end of a repetition.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    hash: u64,
    /// Where its events begin among those of all chunks.
    start: usize,
    /// Where its windows begin among those of all chunks.
    windows: usize,
    /// How often it occurs in all streams, and at how many parts of rules.
    count: u64,
    parts: u64,
}

/// A different window.
#[derive(Clone, Copy, Debug)]
struct Window {
    hash: u64,
    start: usize,
    count: u64,
    parts: u64,
}

/// All different windows of a fold.
pub(super) struct Windows<'a> {
    successors: &'a SuccessorIndex<'a>,
    length: usize,
    /// The events of all chunks.
    events: Vec<u32>,
    chunks: Vec<Chunk>,
    /// For each block of items the first of its parts.
    block_parts: Vec<usize>,
    /// For each part of every rule its chunk.
    chunk_of: Vec<u32>,
    windows: Vec<Window>,
    /// For each window of each chunk its number.
    numbers: Vec<u32>,
}

impl<'a> Windows<'a> {
    /// The windows with which a search for subpaths of at least `shortest` events begins. Returns
    /// `None` if it should begin with single events.
    pub(super) fn new(successors: &'a SuccessorIndex<'a>, shortest: usize) -> Result<Option<Self>> {
        if shortest < SHORTEST {
            return Ok(None);
        }
        let length = shortest.min(LONGEST);
        let Ok(borders) = Borders::new(successors.fold, length - 1, MOST_BORDERS) else { return Ok(None) };
        let mut windows = Self {
            successors,
            length,
            events: Vec::new(),
            chunks: Vec::new(),
            block_parts: Vec::with_capacity(successors.fold.rules().len() + 1),
            chunk_of: Vec::with_capacity(successors.fold.items()),
            windows: Vec::new(),
            numbers: Vec::new(),
        };
        let seed = foldhash::fast::RandomState::default().hash_one(length);
        windows.find_chunks(&borders, seed);
        windows.find_windows(seed);
        Ok(Some(windows))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    /// The events of a window.
    pub(super) fn events(&self, window: usize) -> &[u32] {
        &self.events[self.windows[window].start..][..self.length]
    }

    /// How often a window occurs.
    pub(super) fn count(&self, window: usize) -> u64 {
        self.windows[window].count
    }

    fn find_chunks(&mut self, borders: &Borders<'_, Fold>, seed: u64) {
        let mut known: HashTable<u32> = HashTable::new();
        let mut parts = Parts::new(self.successors, self.length);
        let mut text = Vec::new();
        for block in blocks(self.successors) {
            self.block_parts.push(self.chunk_of.len());
            parts.list(&block);
            parts.write(borders, &mut text);
            for part in &parts.parts[..parts.own] {
                let end = part.end();
                let chunk = &text[end - part.leaving..text.len().min(end + self.length - 1)];
                let number = if chunk.len() < self.length {
                    NONE
                } else {
                    self.chunk(chunk, part.times * block.uses, &mut known, seed)
                };
                self.chunk_of.push(number);
            }
        }
        self.block_parts.push(self.chunk_of.len());
    }

    /// Counts a chunk and returns its number.
    fn chunk(&mut self, events: &[u32], count: u64, known: &mut HashTable<u32>, seed: u64) -> u32 {
        let hash = hash(events, seed);
        let (chunks, all) = (&mut self.chunks, &mut self.events);
        let is_equal = |&number: &u32| {
            let Chunk { hash: other, start, .. } = chunks[number as usize];
            let end = chunks.get(number as usize + 1).map_or(all.len(), |next| next.start);
            other == hash && all[start..end] == *events
        };
        let number = match known.find(hash, is_equal) {
            Some(&number) => number,
            None => {
                let number = chunks.len() as u32;
                let windows =
                    chunks.last().map_or(0, |last| last.windows + all.len() - last.start - (self.length - 1));
                chunks.push(Chunk { hash, start: all.len(), windows, count: 0, parts: 0 });
                all.extend_from_slice(events);
                known.insert_unique(hash, number, |&number| chunks[number as usize].hash);
                number
            }
        };
        chunks[number as usize].count += count;
        chunks[number as usize].parts += 1;
        number
    }

    fn find_windows(&mut self, seed: u64) {
        let mut known: HashTable<u32> = HashTable::new();
        for number in 0..self.chunks.len() {
            let chunk = self.chunks[number];
            for start in chunk.start..chunk.start + self.windows_of(number).len() {
                let (windows, events) = (&mut self.windows, &self.events);
                let of = |start: usize| &events[start..start + self.length];
                let hash = hash(of(start), seed);
                let is_equal = |&other: &u32| {
                    let other = windows[other as usize];
                    other.hash == hash && of(other.start) == of(start)
                };
                let window = match known.find(hash, is_equal) {
                    Some(&window) => window,
                    None => {
                        let window = windows.len() as u32;
                        windows.push(Window { hash, start, count: 0, parts: 0 });
                        known.insert_unique(hash, window, |&window| windows[window as usize].hash);
                        window
                    }
                };
                windows[window as usize].count += chunk.count;
                windows[window as usize].parts += chunk.parts;
                self.numbers.push(window);
            }
        }
    }

    /// Where the windows of a chunk are among those of all chunks.
    fn windows_of(&self, chunk: usize) -> Range<usize> {
        let start = self.chunks[chunk].windows;
        let next = self.chunks.get(chunk + 1);
        let end = next.map_or_else(
            || start + self.events.len() - self.chunks[chunk].start - (self.length - 1),
            |next| next.windows,
        );
        start..end
    }

    /// Splits windows into groups whose places fit in memory together.
    pub(super) fn groups<'b>(&'b self, windows: &'b [u32]) -> impl Iterator<Item = &'b [u32]> {
        let most = self.successors.fold.items().max(PLACES) as u64;
        let mut rest = windows;
        std::iter::from_fn(move || {
            let mut places = 0;
            let mut fits = |&window: &u32| {
                places += self.windows[window as usize].parts;
                places <= most
            };
            let fitting = rest.iter().position(|window| !fits(window)).unwrap_or(rest.len());
            let (group, others) = rest.split_at(fitting.max(1).min(rest.len()));
            rest = others;
            (!group.is_empty()).then_some(group)
        })
    }

    /// Where the occurrences of some windows end, for each in turn.
    pub(super) fn ends(&self, group: &[u32]) -> WindowEnds {
        let mut wanted = vec![NONE; self.windows.len()];
        let mut ends = WindowEnds { ranges: Vec::with_capacity(group.len()), ends: Vec::new() };
        let mut places = 0;
        for (at, &window) in (0..).zip(group) {
            wanted[window as usize] = at;
            ends.ranges.push(places..places);
            places += self.windows[window as usize].parts as usize;
        }
        let nowhere = WindowEnd { place: Place::default(), node: Node::new(0), inside: 0 };
        ends.ends = vec![nowhere; places];
        self.find_ends(&wanted, &mut ends);
        ends
    }

    /// Adds the ends of the windows that have a number in `wanted`.
    fn find_ends(&self, wanted: &[u32], ends: &mut WindowEnds) {
        let is_wanted = |chunk: usize| {
            self.numbers[self.windows_of(chunk)].iter().any(|&window| wanted[window as usize] != NONE)
        };
        let of_chunks: Vec<bool> = (0..self.chunks.len()).map(is_wanted).collect();
        let has_wanted = |&chunk: &u32| chunk != NONE && of_chunks[chunk as usize];
        let mut parts = Parts::new(self.successors, self.length);
        for (block, range) in blocks(self.successors).zip(self.block_parts.windows(2)) {
            let chunks = &self.chunk_of[range[0]..range[1]];
            if !chunks.iter().any(has_wanted) {
                continue;
            }
            parts.list(&block);
            for (at, &chunk) in chunks.iter().enumerate().filter(|(_, chunk)| has_wanted(chunk)) {
                let windows = self.numbers[self.windows_of(chunk as usize)].iter().enumerate();
                for (offset, window) in windows.map(|(offset, &window)| (offset, wanted[window as usize])) {
                    if window != NONE
                        && let Some(end) = parts.window_end(at, offset, self.length, block.uses)
                    {
                        ends.add(window as usize, end);
                    }
                }
            }
        }
    }
}

/// Where the occurrences of several windows end.
pub(super) struct WindowEnds {
    ends: Vec<WindowEnd>,
    ranges: Vec<Range<usize>>,
}

impl WindowEnds {
    fn add(&mut self, window: usize, end: WindowEnd) {
        let range = &mut self.ranges[window];
        self.ends[range.end] = end;
        range.end += 1;
    }

    /// Those of one window.
    pub(super) fn of(&mut self, window: usize) -> &mut [WindowEnd] {
        &mut self.ends[self.ranges[window].clone()]
    }
}

/// How many repetitions of a node of this length a window can see.
fn seen(length: usize, times: u64, border: usize) -> u64 {
    if times == 1 { 1 } else { times.min(border.div_ceil(length) as u64 + 1) }
}

/// Consecutive items of a rule.
struct Block {
    items: Range<usize>,
    /// Where the rule ends.
    rule_end: usize,
    /// How often the rule is unfolded.
    uses: u64,
}

/// How many items are examined at once: few enough for what is written of them to stay in the
/// nearest cache, many enough for what is written twice not to matter.
const BLOCK: usize = 256;

/// All items of the rules that are used.
fn blocks(successors: &SuccessorIndex<'_>) -> impl Iterator<Item = Block> {
    successors.used_rules().flat_map(|rule| {
        let (items, uses) = (successors.fold.item_range(rule), successors.uses(rule));
        items.clone().step_by(BLOCK).map(move |start| Block {
            items: start..items.end.min(start + BLOCK),
            rule_end: items.end,
            uses,
        })
    })
}

/// A repetition of an item in the text of its rule, or several that have the same windows.
#[derive(Clone, Copy, Debug)]
struct Part {
    item: u32,
    node: Node,
    /// Which repetition, counted from the left.
    repetition: u32,
    /// How many repetitions it stands for.
    times: u64,
    /// Where its text begins.
    start: usize,
    /// How much of the node is in the text: all, or its borders.
    written: usize,
    /// In how many of its last events windows begin that end after it.
    leaving: usize,
}

impl Part {
    fn end(&self) -> usize {
        self.start + self.written
    }
}

/// The parts of a block, and of the items after it that its windows can see.
struct Parts<'a> {
    successors: &'a SuccessorIndex<'a>,
    /// How many events of a node a window that crosses its border can contain.
    border: usize,
    parts: Vec<Part>,
    /// How many are of the block itself.
    own: usize,
}

impl<'a> Parts<'a> {
    fn new(successors: &'a SuccessorIndex<'a>, length: usize) -> Self {
        Self { successors, border: length - 1, parts: Vec::new(), own: 0 }
    }

    /// Lists the parts of a block.
    fn list(&mut self, block: &Block) {
        self.parts.clear();
        let mut start = 0;
        // An item has an event at least.
        for item in block.items.start..block.rule_end.min(block.items.end + self.border) {
            if item == block.items.end {
                self.own = self.parts.len();
            }
            let (node, times) = self.successors.item(item);
            let length = self.successors.length(node) as usize;
            let written = length.min(2 * self.border);
            let seen = seen(length, times, self.border);
            for repetition in 0..seen {
                self.parts.push(Part {
                    item: item as u32,
                    node,
                    repetition: repetition as u32,
                    times: if repetition == 0 { times - seen + 1 } else { 1 },
                    start,
                    written,
                    leaving: length.min(self.border),
                });
                start += written;
            }
        }
        if block.items.end == block.rule_end {
            self.own = self.parts.len();
        }
    }

    /// Writes the text of the block that was listed.
    fn write(&self, borders: &Borders<'_, Fold>, text: &mut Vec<u32>) {
        text.clear();
        for part in &self.parts {
            let first = borders.first(part.node);
            text.extend_from_slice(first);
            let rest = part.written - first.len();
            if rest > 0 {
                text.extend(borders.last_reversed(part.node)[..rest].iter().rev());
            }
        }
    }

    /// Where a window ends that is number `offset` among those that begin in part `at`. Returns
    /// `None` if the place stands for occurrences that begin in an earlier part too.
    fn window_end(&self, at: usize, offset: usize, length: usize, uses: u64) -> Option<WindowEnd> {
        let begin = self.parts[at];
        let last = begin.end() - begin.leaving + offset + length - 1;
        let end = self.parts[at + 1..].iter().find(|part| part.end() > last)?;
        let inside = (last - end.start + 1) as u32;
        let place = if end.item != begin.item {
            Place::after_another(end.item, end.repetition, uses)
        } else if begin.repetition == 0 {
            Place::after_itself(end.item, end.repetition - 1, uses)
        } else {
            return None;
        };
        Some(WindowEnd { place, node: end.node, inside })
    }
}

/// A number that is the same for the same events, and hardly ever for others.
fn hash(events: &[u32], seed: u64) -> u64 {
    let (fours, rest) = events.as_chunks::<4>();
    let pair = |left: u32, right: u32| u64::from(left) << 32 | u64::from(right);
    let (mut even, mut odd) = (seed, events.len() as u64);
    for &[a, b, c, d] in fours {
        even = mix(even ^ pair(a, b), 0x9e37_79b9_7f4a_7c15);
        odd = mix(odd ^ pair(c, d), 0xd6e8_feb8_6659_fd93);
    }
    for &event in rest {
        even = mix(even ^ u64::from(event), 0xd6e8_feb8_6659_fd93);
    }
    mix(even ^ odd.rotate_left(32), 0x9e37_79b9_7f4a_7c15)
}

/// Both halves of a product.
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}
