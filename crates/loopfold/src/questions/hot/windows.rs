//! All subpaths of one length at once: where the search begins if shorter ones are not wanted.
//!
//! Growing subpaths event by event visits every seam of the fold again for each length, though
//! nothing shorter than the least length can be hot. So the windows of that length are counted
//! directly. An occurrence crosses a seam in exactly one rule, so it begins in the last events
//! of some repetition of an item and ends in the first events of what follows it in the rule: in
//! a [chunk](Chunks). Real folds have few different chunks, and windows are compared in one of each
//! kind only.
//!
//! Time: O(items × length) to write out the rules, with a small constant, one look-up in a hash
//! table for each item, and one for each window of a different chunk; about 40 ns an item for
//! windows of ten events of control flow. Memory: 12 bytes an item, 12 for each event of a
//! different chunk, and the borders of rules; then 24 for each place of a window that is
//! followed further, of at most [`PLACES`] or as many as the fold has items at once.

use super::chunks::{Chunks, WindowEnd, hash};
use super::successors::{Items, Place};
use crate::Result;
use crate::fold::Node;
use crate::fold::borders::Borders;
use hashbrown::HashTable;
use std::ops::Range;

/// No longer windows are counted at once: parts of rules are written out twice as far.
const LONGEST: usize = 16;
/// Shorter ones are found as fast event by event.
const SHORTEST: usize = 4;
/// The fewest places that are worth a pass over the rules.
const PLACES: usize = 1 << 20;
/// The most symbols of borders.
const MOST_BORDERS: usize = 1 << 30;

/// A window that is not wanted.
const NONE: u32 = u32::MAX;

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
    items: &'a Items<'a>,
    chunks: Chunks,
    windows: Vec<Window>,
    /// For each window of each chunk its number.
    numbers: Vec<u32>,
}

impl<'a> Windows<'a> {
    /// The windows with which a search for subpaths of at least `shortest` events begins, found on
    /// so many threads. Returns `None` if it should begin with single events.
    pub(super) fn new(items: &'a Items<'a>, shortest: usize, threads: usize) -> Result<Option<Self>> {
        if shortest < SHORTEST {
            return Ok(None);
        }
        let length = shortest.min(LONGEST);
        let Ok(borders) = Borders::new(items.fold, length - 1, MOST_BORDERS) else { return Ok(None) };
        let chunks = Chunks::of(items, &borders, length, threads)?;
        let mut windows = Self { items, chunks, windows: Vec::new(), numbers: Vec::new() };
        windows.find_windows();
        Ok(Some(windows))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    /// The events of a window.
    pub(super) fn events(&self, window: usize) -> &[u32] {
        &self.chunks.events[self.windows[window].start..][..self.chunks.length]
    }

    /// How often a window occurs.
    pub(super) fn count(&self, window: usize) -> u64 {
        self.windows[window].count
    }

    fn find_windows(&mut self) {
        let mut known: HashTable<u32> = HashTable::new();
        let Chunks { length, seed, ref events, .. } = self.chunks;
        for number in 0..self.chunks.len() {
            let chunk = self.chunks.get(number);
            for start in chunk.start..chunk.start + self.chunks.windows_of(number).len() {
                let windows = &mut self.windows;
                let of = |start: usize| &events[start..start + length];
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

    /// Splits windows into groups, of which so many fit in memory together.
    pub(super) fn groups<'b>(
        &'b self,
        windows: &'b [u32],
        at_once: usize,
    ) -> impl Iterator<Item = &'b [u32]> {
        let parts = |&window: &u32| self.windows[window as usize].parts;
        let all: u64 = windows.iter().map(parts).sum();
        let most = all.min(self.items.fold.items().max(PLACES) as u64).div_ceil(at_once.max(1) as u64);
        // A little more, so that none is left for a group of its own.
        let most = most + most / 16;
        let mut rest = windows;
        std::iter::from_fn(move || {
            let mut places = 0;
            let mut fits = |window: &u32| {
                places += parts(window);
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
        let chunks = &self.chunks;
        let is_wanted = |chunk: usize| {
            self.numbers[chunks.windows_of(chunk)].iter().any(|&window| wanted[window as usize] != NONE)
        };
        let of_chunks: Vec<bool> = (0..chunks.len()).map(is_wanted).collect();
        chunks.each_seam(
            self.items,
            |chunk| of_chunks[chunk],
            |seam, chunk| {
                let windows = self.numbers[chunks.windows_of(chunk)].iter().enumerate();
                for (offset, window) in windows.map(|(offset, &window)| (offset, wanted[window as usize])) {
                    if window != NONE
                        && let Some(end) = seam.window_end(offset)
                    {
                        ends.add(window as usize, end);
                    }
                }
            },
        );
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
