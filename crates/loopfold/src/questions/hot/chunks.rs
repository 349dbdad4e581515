//! Chunks: the events around the ends of repetitions of items, each different one once.
//!
//! For a repetition, the last `length - 1` events before its end and the `length - 1` after it
//! are a *chunk*: its windows of `length` events are the occurrences that begin in this repetition
//! and leave it. A part of an item that repeats is written out as often as a window can see; the
//! first part stands for all those before it, whose windows are the same.
//!
//! Items are examined in several portions, one for each thread, whose chunks are joined. Time:
//! O(items × length) with a small constant, and one look-up in a hash table for each part; memory
//! 4 bytes a part, and 4 for each event of a different chunk.

use super::successors::{Items, Place};
use crate::Result;
use crate::fold::borders::Borders;
use crate::fold::{Fold, Node};
use crate::parallel::parallel_map;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::ops::Range;

/// A repetition of an item has no window.
const NONE: u32 = u32::MAX;

/// Fewer items are not worth another thread.
const LEAST_PORTION: usize = 1 << 12;

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
pub(super) struct Chunk {
    hash: u64,
    /// Where its events begin among those of all chunks.
    pub(super) start: usize,
    /// Where its windows begin among those of all chunks.
    windows: usize,
    /// How often it occurs in all streams, and at how many parts of rules.
    pub(super) count: u64,
    pub(super) parts: u64,
}

/// The different chunks of a fold, or of a portion of its items.
pub(super) struct Chunks {
    /// How many events a window has.
    pub(super) length: usize,
    pub(super) seed: u64,
    /// The events of all chunks.
    pub(super) events: Vec<u32>,
    chunks: Vec<Chunk>,
    known: HashTable<u32>,
    /// For each part of every rule its chunk.
    chunk_of: Vec<u32>,
    /// And its item.
    item_of: Vec<u32>,
}

impl Chunks {
    /// Those of all items, found on so many threads.
    pub(super) fn of(
        items: &Items<'_>,
        borders: &Borders<'_, Fold>,
        length: usize,
        threads: usize,
    ) -> Result<Self> {
        let portion = items.fold.items().div_ceil(threads.max(1)).max(LEAST_PORTION);
        Self::in_portions(items, borders, length, portion, threads)
    }

    fn in_portions(
        items: &Items<'_>,
        borders: &Borders<'_, Fold>,
        length: usize,
        portion: usize,
        threads: usize,
    ) -> Result<Self> {
        let blocks: Vec<Block> = blocks(items).collect();
        let portions = portions(&blocks, portion);
        let seed = foldhash::fast::RandomState::default().hash_one(length);
        let found = parallel_map(&portions, threads, |blocks| {
            Ok(Self::portion(items, borders, blocks, length, seed))
        });
        let mut found = found.into_iter();
        let mut chunks = found.next().unwrap_or_else(|| Ok(Self::new(length, seed)))?;
        for portion in found {
            chunks.append(&portion?);
        }
        Ok(chunks)
    }

    fn new(length: usize, seed: u64) -> Self {
        Self {
            length,
            seed,
            events: Vec::new(),
            chunks: Vec::new(),
            known: HashTable::new(),
            chunk_of: Vec::new(),
            item_of: Vec::new(),
        }
    }

    fn portion(
        items: &Items<'_>,
        borders: &Borders<'_, Fold>,
        blocks: &[Block],
        length: usize,
        seed: u64,
    ) -> Self {
        let mut chunks = Self::new(length, seed);
        let mut text = Text { items, borders, border: length - 1, parts: Vec::new(), events: Vec::new() };
        for block in blocks {
            text.write(block);
            for &Part { item, end, leaving, times } in &text.parts {
                let end = end as usize;
                let events = &text.events[end - leaving as usize..text.events.len().min(end + length - 1)];
                let number = if events.len() < length {
                    NONE
                } else {
                    chunks.count(events, hash(events, seed), times * block.uses, 1)
                };
                chunks.chunk_of.push(number);
                chunks.item_of.push(item);
            }
        }
        chunks
    }

    /// Appends those of the items that come next.
    fn append(&mut self, next: &Self) {
        let numbers: Vec<u32> = (0..next.chunks.len())
            .map(|number| {
                let Chunk { hash, count, parts, .. } = next.chunks[number];
                self.count(next.events_of(number), hash, count, parts)
            })
            .collect();
        let number = |&chunk: &u32| if chunk == NONE { NONE } else { numbers[chunk as usize] };
        self.chunk_of.extend(next.chunk_of.iter().map(number));
        self.item_of.extend_from_slice(&next.item_of);
    }

    /// Counts a chunk, at so many parts, and returns its number.
    fn count(&mut self, events: &[u32], hash: u64, count: u64, parts: u64) -> u32 {
        let Self { chunks, events: all, known, length, .. } = self;
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
                    chunks.last().map_or(0, |last| last.windows + all.len() - last.start - (*length - 1));
                chunks.push(Chunk { hash, start: all.len(), windows, count: 0, parts: 0 });
                all.extend_from_slice(events);
                known.insert_unique(hash, number, |&number| chunks[number as usize].hash);
                number
            }
        };
        chunks[number as usize].count += count;
        chunks[number as usize].parts += parts;
        number
    }

    /// How many different ones there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn get(&self, chunk: usize) -> Chunk {
        self.chunks[chunk]
    }

    fn events_of(&self, chunk: usize) -> &[u32] {
        let end = self.chunks.get(chunk + 1).map_or(self.events.len(), |next| next.start);
        &self.events[self.chunks[chunk].start..end]
    }

    /// Where the windows of a chunk are among those of all chunks.
    pub(super) fn windows_of(&self, chunk: usize) -> Range<usize> {
        let start = self.chunks[chunk].windows;
        start..start + self.events_of(chunk).len() - (self.length - 1)
    }

    /// Visits the parts with some chunks, and their chunks.
    pub(super) fn each_seam(
        &self,
        items: &Items<'_>,
        is_wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(&Seam<'_>, usize),
    ) {
        for (part, &chunk) in self.chunk_of.iter().enumerate() {
            if chunk != NONE && is_wanted(chunk as usize) {
                let item = self.item_of[part];
                let earlier = self.item_of[..part].iter().rev().take_while(|&&other| other == item).count();
                visit(&Seam::new(items, item as usize, earlier, self.length), chunk as usize);
            }
        }
    }
}

/// Consecutive blocks with about so many items each.
fn portions(blocks: &[Block], items: usize) -> Vec<&[Block]> {
    let (mut portions, mut start, mut of_portion) = (Vec::new(), 0, 0);
    for (at, block) in blocks.iter().enumerate() {
        of_portion += block.items.len();
        if of_portion >= items {
            portions.push(&blocks[start..=at]);
            (start, of_portion) = (at + 1, 0);
        }
    }
    if start < blocks.len() {
        portions.push(&blocks[start..]);
    }
    portions
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
fn blocks(items: &Items<'_>) -> impl Iterator<Item = Block> {
    items.used_rules().flat_map(|rule| {
        let (of_rule, uses) = (items.fold.item_range(rule), items.uses(rule));
        of_rule.clone().step_by(BLOCK).map(move |start| Block {
            items: start..of_rule.end.min(start + BLOCK),
            rule_end: of_rule.end,
            uses,
        })
    })
}

/// A repetition of an item in the text of its rule, or several that have the same windows.
#[derive(Clone, Copy, Debug)]
struct Part {
    item: u32,
    /// Where its text ends.
    end: u32,
    /// In how many of its last events windows begin that end after it.
    leaving: u32,
    /// How many repetitions it stands for.
    times: u64,
}

/// An item as it is written: how often, and how many events each time.
struct Shown {
    node: Node,
    times: u64,
    length: usize,
    /// How many of its repetitions are written.
    seen: usize,
    /// How much of the node is written: all, or its borders.
    written: usize,
}

impl Shown {
    fn new(items: &Items<'_>, item: usize, border: usize) -> Self {
        let (node, times) = items.item(item);
        let length = items.length(node) as usize;
        let seen = seen(length, times, border) as usize;
        Self { node, times, length, seen, written: length.min(2 * border) }
    }
}

/// The text of a block and of the items after it that its windows can see.
struct Text<'a> {
    items: &'a Items<'a>,
    borders: &'a Borders<'a, Fold>,
    /// How many events of a node a window that crosses its border can contain.
    border: usize,
    /// The parts of the block itself.
    parts: Vec<Part>,
    events: Vec<u32>,
}

impl Text<'_> {
    fn write(&mut self, block: &Block) {
        self.parts.clear();
        self.events.clear();
        // An item has an event at least.
        for item in block.items.start..block.rule_end.min(block.items.end + self.border) {
            let shown = Shown::new(self.items, item, self.border);
            let first = self.borders.first(shown.node);
            let last = &self.borders.last_reversed(shown.node)[..shown.written - first.len()];
            for repetition in 0..shown.seen {
                self.events.extend_from_slice(first);
                if !last.is_empty() {
                    self.events.extend(last.iter().rev());
                }
                if item < block.items.end {
                    self.parts.push(Part {
                        item: item as u32,
                        end: self.events.len() as u32,
                        leaving: shown.length.min(self.border) as u32,
                        times: if repetition == 0 { shown.times - shown.seen as u64 + 1 } else { 1 },
                    });
                }
            }
        }
    }
}

/// The end of a repetition of an item.
pub(super) struct Seam<'a> {
    items: &'a Items<'a>,
    item: usize,
    /// Which repetition, of those that are written.
    repetition: usize,
    shown: Shown,
    border: usize,
    uses: u64,
}

impl<'a> Seam<'a> {
    fn new(items: &'a Items<'a>, item: usize, repetition: usize, length: usize) -> Self {
        let border = length - 1;
        let shown = Shown::new(items, item, border);
        Self { items, item, repetition, shown, border, uses: items.uses_of_item(item) }
    }

    /// Where a window ends that is number `offset` among those that begin here. Returns `None` if
    /// the place stands for occurrences that begin in an earlier repetition too.
    pub(super) fn window_end(&self, offset: usize) -> Option<WindowEnd> {
        let Shown { node, seen, written, length, .. } = self.shown;
        // How many events behind the seam the last one of the window is.
        let mut ahead = offset + self.border - length.min(self.border);
        let again = (seen - self.repetition - 1) * written;
        if ahead < again {
            let (passed, inside) = repetition_of(ahead, written);
            let place = Place::after_itself(self.item as u32, passed, self.uses);
            return (self.repetition == 0).then_some(WindowEnd { place, node, inside });
        }
        ahead -= again;
        for item in self.item + 1.. {
            let Shown { node, seen, written, .. } = Shown::new(self.items, item, self.border);
            if ahead < seen * written {
                let (passed, inside) = repetition_of(ahead, written);
                let place = Place::after_another(item as u32, passed, self.uses);
                return Some(WindowEnd { place, node, inside });
            }
            ahead -= seen * written;
        }
        None
    }
}

/// In which repetition of so many events one lies, and how many of these end with it.
fn repetition_of(event: usize, events: usize) -> (u32, u32) {
    // Mostly the first, which takes no division.
    let passed = if event < events { 0 } else { event / events };
    (passed as u32, (event - passed * events + 1) as u32)
}

/// A number that is the same for the same events, and hardly ever for others.
pub(super) fn hash(events: &[u32], seed: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{FoldBuilder, FoldedStream};
    use crate::folders::{Folder, SequiturRuns};
    use crate::trace::{Alphabet, Event};
    use crate::{Error, Symbol};
    use loopfold_testing::streams;

    /// Portions of any size give the same chunks, with the same counts, for the same parts.
    #[test]
    fn portions_change_nothing() -> Result<(), Error> {
        let mut alphabet = Alphabet::default();
        let stream = streams::control_flow(100_000, 3);
        let intern = |&raw: &u32| alphabet.intern(&Event::integer(raw.into()), None);
        let symbols: Result<Vec<Symbol>> = stream.iter().map(intern).collect();
        let mut builder = FoldBuilder::new(alphabet);
        let root = SequiturRuns.fold(&symbols?, &mut builder)?;
        builder.stream(FoldedStream::new("s", SequiturRuns.name(), root));
        let fold = builder.finish();
        let items = Items::new(&fold)?;
        let borders = Borders::new(&fold, 9, usize::MAX)?;
        let whole = Chunks::in_portions(&items, &borders, 10, usize::MAX, 1)?;
        assert!(whole.len() > 20, "{}", whole.len());
        for (portion, threads) in [(1, 1), (100, 2), (1000, 3)] {
            let chunks = Chunks::in_portions(&items, &borders, 10, portion, threads)?;
            assert_eq!((chunks.len(), &chunks.item_of), (whole.len(), &whole.item_of));
            for (&one, &other) in chunks.chunk_of.iter().zip(&whole.chunk_of) {
                assert_eq!(one == NONE, other == NONE);
                if one != NONE {
                    let of = |chunks: &Chunks, at: u32| {
                        let Chunk { count, parts, .. } = chunks.get(at as usize);
                        (chunks.events_of(at as usize).to_vec(), count, parts)
                    };
                    assert_eq!(of(&chunks, one), of(&whole, other));
                }
            }
        }
        Ok(())
    }
}
