//! Many short paths of one function at once, for a function that never calls itself.
//!
//! A path of such a function is a plain sequence of its own symbols, so an occurrence
//! crosses a seam between items, or between iterations of one, in exactly one part of the
//! projection: the lowest one that holds it. Around each seam lie a few windows as long as a
//! path, and a look into a table of all the paths tells which of them is one. What is found
//! counts as often as its part occurs, and the first of it is where its part first is.
//!
//! One pass for each length of paths, some 20 ns a seam and a block of the path, however
//! many paths there are; and one pass over the parts for each stream. Memory: 8 bytes a
//! part and block, and 32 for each seam that holds a path.

use super::slice::{FunctionSlice, SliceItem};
use super::{PathPlace, PathQuery};
use crate::fold::rank::select;
use crate::fold::{Fold, Grammar as _, Node};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;

/// The longest paths that are looked for in this way.
const LONGEST: usize = 32;
/// The most streams.
const MOST_STREAMS: usize = 256;

/// What is known of a path after a search for many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSummary {
    /// How often it occurs in each stream.
    pub counts: Vec<u64>,
    /// The first occurrence in each stream.
    pub firsts: Vec<Option<PathPlace>>,
}

/// True if a path can be one of many.
pub(super) fn is_plain(query: &PathQuery) -> bool {
    let is_one = |block: &Vec<Symbol>| block.len() == 1;
    (2..=LONGEST).contains(&query.len()) && !query.has_gaps() && query.blocks().iter().all(is_one)
}

/// Looks for plain paths of the function of a projection; nothing if that calls itself, or
/// there are too many streams.
pub(super) fn search(slice: &FunctionSlice<'_>, queries: &[&PathQuery]) -> Result<Option<Vec<PathSummary>>> {
    if slice.is_recursive() || slice.fold().streams().len() > MOST_STREAMS {
        return Ok(None);
    }
    let longest = queries.iter().map(|query| query.len()).max().unwrap_or(0);
    let Some(seams) = Seams::new(slice, longest) else { return Ok(None) };
    let mut found = Vec::new();
    let mut lengths: Vec<usize> = queries.iter().map(|query| query.len()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    for length in lengths {
        seams.look(length, &Wanted::new(slice, queries, length), &mut found)?;
    }
    Ok(Some(seams.summaries(queries, &found)))
}

/// The paths of one length, by their blocks.
struct Wanted(HashMap<Vec<u32>, Vec<u32>>);

impl Wanted {
    fn new(slice: &FunctionSlice<'_>, queries: &[&PathQuery], length: usize) -> Self {
        let parts: HashMap<Symbol, u32> =
            slice.steps().iter().enumerate().map(|(part, &(symbol, _))| (symbol, part as u32)).collect();
        let mut wanted: HashMap<Vec<u32>, Vec<u32>> = HashMap::new();
        for (number, query) in queries.iter().enumerate().filter(|(_, query)| query.len() == length) {
            let blocks = query.blocks().iter().map(|block| parts.get(block.first()?).copied());
            if let Some(blocks) = blocks.collect::<Option<Vec<u32>>>() {
                wanted.entry(blocks).or_default().push(number as u32);
            }
        }
        Self(wanted)
    }
}

/// A path at a seam.
struct Found {
    query: u32,
    part: u32,
    /// How often it is at such a seam in each occurrence of the part.
    times: u64,
    /// The function's symbols between the beginning of the part and the first of them.
    offset: u64,
}

/// No symbol: what is left out of a long item.
const GAP: u32 = u32::MAX;

/// What lies around the seams of a projection.
struct Seams<'a> {
    fold: &'a Fold,
    slice: &'a FunctionSlice<'a>,
    /// How many symbols are kept of either end of each part.
    kept: usize,
    /// How many symbols of the function each part has.
    lengths: Vec<u64>,
    /// The first of them, `kept` places for each part, and the last, flush right.
    heads: Vec<u32>,
    tails: Vec<u32>,
}

impl<'a> Seams<'a> {
    /// For paths of up to so many blocks; nothing if that takes too much memory.
    fn new(slice: &'a FunctionSlice<'a>, longest: usize) -> Option<Self> {
        let kept = longest.saturating_sub(1);
        let places = slice.node_count().checked_mul(kept).filter(|&places| places <= 1 << 28)?;
        let mut seams = Self {
            fold: slice.fold(),
            slice,
            kept,
            lengths: Vec::with_capacity(slice.node_count()),
            heads: Vec::with_capacity(places),
            tails: Vec::with_capacity(places),
        };
        for symbol in 0..slice.steps().len() as u32 {
            seams.add(1, &[symbol], &[symbol]);
        }
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        for body in slice.rule_bodies() {
            let items: Vec<(Node, u64)> =
                body.iter().map(|&item| (item.node(), slice.item_times(item))).collect();
            let of_items =
                items.iter().map(|&(part, times)| seams.lengths[part.index()].saturating_mul(times));
            let length = of_items.fold(0, u64::saturating_add);
            head.clear();
            tail.clear();
            for &(part, times) in &items {
                if head.len() >= kept {
                    break;
                }
                seams.push_head(part, times, &mut head);
            }
            head.truncate(kept);
            for &(part, times) in items.iter().rev() {
                if tail.len() >= kept {
                    break;
                }
                seams.push_tail(part, times, &mut tail);
            }
            tail.truncate(kept);
            tail.reverse();
            seams.add(length, &head, &tail);
        }
        Some(seams)
    }

    fn add(&mut self, length: u64, head: &[u32], tail: &[u32]) {
        self.lengths.push(length);
        let end = self.heads.len() + self.kept;
        self.heads.extend_from_slice(&head[..head.len().min(self.kept)]);
        self.heads.resize(end, GAP);
        let tail = &tail[tail.len().saturating_sub(self.kept)..];
        self.tails.resize(end - tail.len(), GAP);
        self.tails.extend_from_slice(tail);
    }

    /// The first symbols of a part.
    fn head(&self, part: Node) -> &[u32] {
        let known = self.lengths[part.index()].min(self.kept as u64) as usize;
        &self.heads[part.index() * self.kept..][..known]
    }

    /// The last symbols of a part.
    fn tail(&self, part: Node) -> &[u32] {
        let known = self.lengths[part.index()].min(self.kept as u64) as usize;
        &self.tails[(part.index() + 1) * self.kept - known..][..known]
    }

    /// Appends the first symbols of an item, as many as are kept or it has.
    fn push_head(&self, part: Node, times: u64, out: &mut Vec<u32>) {
        let once = self.head(part);
        let is_whole = self.lengths[part.index()] <= once.len() as u64;
        let enough = out.len() + self.kept;
        for _ in 0..if is_whole { times } else { 1 } {
            out.extend_from_slice(once);
            if out.len() >= enough {
                break;
            }
        }
        out.truncate(enough);
    }

    /// Appends the last symbols of an item, the last one first.
    fn push_tail(&self, part: Node, times: u64, out: &mut Vec<u32>) {
        let once = self.tail(part);
        let is_whole = self.lengths[part.index()] <= once.len() as u64;
        let enough = out.len() + self.kept;
        for _ in 0..if is_whole { times } else { 1 } {
            out.extend(once.iter().rev());
            if out.len() >= enough {
                break;
            }
        }
        out.truncate(enough);
    }

    /// Finds the paths of one length at all seams.
    fn look(&self, length: usize, wanted: &Wanted, found: &mut Vec<Found>) -> Result<()> {
        if wanted.0.is_empty() {
            return Ok(());
        }
        let mut text = Around::default();
        let first = self.slice.steps().len();
        for (index, body) in self.slice.rule_bodies().enumerate() {
            let part = (first + index) as u32;
            text.clear();
            for &item in body {
                let (inner, times) = (item.node(), self.slice.item_times(item));
                if times > 1 {
                    self.look_inside(part, inner, times, text.length, length, wanted, found);
                }
                self.append(&mut text, inner, times);
            }
            text.look(part, length, wanted, found);
            if found.len() > MOST_FOUND {
                return Err(Error::limit("these paths are found at too many places at once"));
            }
        }
        Ok(())
    }

    /// The windows between iterations of an item that begins at an offset.
    #[allow(clippy::too_many_arguments, reason = "they are all plain numbers")]
    fn look_inside(
        &self,
        part: u32,
        inner: Node,
        times: u64,
        offset: u64,
        length: usize,
        wanted: &Wanted,
        found: &mut Vec<Found>,
    ) {
        let period = self.lengths[inner.index()];
        let (head, tail) = (self.head(inner), self.tail(inner));
        let symbol = |place: u64| -> u32 {
            let place = place % period;
            match head.get(place as usize) {
                Some(&symbol) => symbol,
                None => tail[tail.len() - (period - place) as usize],
            }
        };
        let all = period.saturating_mul(times);
        let mut window = Vec::with_capacity(length);
        // Those that begin earlier are inside of one iteration.
        for start in period.saturating_sub(length as u64 - 1)..period {
            let Some(room) = all.checked_sub(start + length as u64) else { break };
            window.clear();
            window.extend((start..start + length as u64).map(symbol));
            if let Some(queries) = wanted.0.get(&window[..]) {
                let times = room / period + 1;
                let found_here = |&query| Found { query, part, times, offset: offset + start };
                found.extend(queries.iter().map(found_here));
            }
        }
    }

    /// Appends an item: all of it if it is short, else its two ends.
    fn append(&self, text: &mut Around, part: Node, times: u64) {
        let length = self.lengths[part.index()].saturating_mul(times);
        let begin = text.symbols.len();
        self.push_head(part, times, &mut text.symbols);
        let known = (text.symbols.len() - begin) as u64;
        if length > known {
            let rest = (length - known).min(self.kept as u64) as usize;
            if length - known > rest as u64 {
                text.symbols.push(GAP);
            }
            let behind = text.symbols.len();
            self.push_tail(part, times, &mut text.symbols);
            text.symbols.truncate(behind + rest);
            text.symbols[behind..].reverse();
        }
        let count = text.symbols.len() - begin;
        text.blocks.push(Block { begin, end: begin + count, offset: text.length, length });
        text.length = text.length.saturating_add(length);
    }

    /// What was found, in all streams.
    fn summaries(&self, queries: &[&PathQuery], found: &[Found]) -> Vec<PathSummary> {
        let streams = self.fold.streams().len();
        let empty = PathSummary { counts: vec![0; streams], firsts: vec![None; streams] };
        let mut summaries = vec![empty; queries.len()];
        let mut of_roots: HashMap<RuleId, usize> = HashMap::new();
        for (stream, folded) in self.fold.streams().iter().enumerate() {
            if let Some(&same) = of_roots.get(&folded.root()) {
                for summary in &mut summaries {
                    summary.counts[stream] = summary.counts[same];
                    summary.firsts[stream] = summary.firsts[same].map(|place| PathPlace { stream, ..place });
                }
                continue;
            }
            of_roots.insert(folded.root(), stream);
            self.summarize(stream, folded.root(), queries, found, &mut summaries);
        }
        summaries
    }

    fn summarize(
        &self,
        stream: usize,
        root: RuleId,
        queries: &[&PathQuery],
        found: &[Found],
        summaries: &mut [PathSummary],
    ) {
        let Some(occurrences) = self.occurrences(root) else { return };
        let mut firsts = vec![u64::MAX; queries.len()];
        for found in found {
            let Occurrences { count, first } = occurrences[found.part as usize];
            if count == 0 {
                continue;
            }
            let query = found.query as usize;
            let more = count.saturating_mul(found.times);
            summaries[query].counts[stream] = summaries[query].counts[stream].saturating_add(more);
            firsts[query] = firsts[query].min(first + found.offset);
        }
        for (query, &first) in firsts.iter().enumerate().filter(|(_, first)| **first != u64::MAX) {
            let last = first + queries[query].len() as u64 - 1;
            let weight = |item: SliceItem| self.lengths[item.node().index()];
            let end = select(self.slice, root, last, weight);
            summaries[query].firsts[stream] = end.map(|end| PathPlace { stream, end, depth: 1 });
        }
    }

    /// How often and where first each part is in a stream; nothing if the function is not
    /// in it.
    fn occurrences(&self, root: RuleId) -> Option<Vec<Occurrences>> {
        let root = self.slice.node(root)?;
        let mut all = vec![Occurrences { count: 0, first: u64::MAX }; self.slice.node_count()];
        all[root.index()] = Occurrences { count: 1, first: 0 };
        let symbols = self.slice.steps().len();
        for (index, body) in self.slice.rule_bodies().enumerate().rev() {
            let Occurrences { count, first } = all[symbols + index];
            if count == 0 {
                continue;
            }
            let mut offset = first;
            for &item in body {
                let (part, times) = (item.node(), self.slice.item_times(item));
                let inner = &mut all[part.index()];
                inner.count = inner.count.saturating_add(count.saturating_mul(times));
                inner.first = inner.first.min(offset);
                offset = offset.saturating_add(self.lengths[part.index()].saturating_mul(times));
            }
        }
        Some(all)
    }
}

/// Seams that hold paths, of all lengths: two gigabytes.
const MOST_FOUND: usize = 1 << 26;

#[derive(Clone, Copy)]
struct Occurrences {
    count: u64,
    first: u64,
}

/// The items of a body, the long ones cut short.
#[derive(Default)]
struct Around {
    symbols: Vec<u32>,
    blocks: Vec<Block>,
    /// How many symbols the body has so far.
    length: u64,
}

/// An item.
struct Block {
    begin: usize,
    end: usize,
    /// The symbols of the body before it.
    offset: u64,
    length: u64,
}

impl Around {
    fn clear(&mut self) {
        self.symbols.clear();
        self.blocks.clear();
        self.length = 0;
    }

    /// The windows that begin in one item and end in another.
    fn look(&self, part: u32, length: usize, wanted: &Wanted, found: &mut Vec<Found>) {
        for block in &self.blocks {
            let first = block.begin.max((block.end + 1).saturating_sub(length));
            for start in first..block.end {
                let Some(window) = self.symbols.get(start..start + length) else { return };
                if let Some(queries) = wanted.0.get(window) {
                    // From the end of its item, since its middle may be left out.
                    let offset = block.offset + (block.length - (block.end - start) as u64);
                    let found_here = |&query| Found { query, part, times: 1, offset };
                    found.extend(queries.iter().map(found_here));
                }
            }
        }
    }
}
