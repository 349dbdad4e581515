//! Searches for many short paths of a non-recursive function in one pass.
//!
//! A path of such a function is a plain sequence of its own symbols, so an occurrence crosses a
//! seam between items, or between iterations of one, in exactly one node of the function's
//! slice: the lowest one that holds it. The few windows around each seam that are as long as a
//! path are looked up in a hash table of all paths. A match counts as often as its node occurs,
//! and its first occurrence is in the first occurrence of its node.
//!
//! One pass over the slice, some 20 ns for each seam, block and length of paths, independent of
//! the number of paths; and one top-down pass for each distinct stream. Memory: 8 bytes a rule
//! and block, and 32 for each seam that holds a path.

use super::slice::{FunctionSlice, SliceItem};
use super::strategy::PathOccurrences;
use super::{PathFound, PathPlace, PathQuery};
use crate::fold::borders::Borders;
use crate::fold::rank::select;
use crate::fold::reach::top_down;
use crate::fold::{Grammar as _, Node};
use crate::{Error, Result, RuleId, StreamId, Symbol};
use hashbrown::HashMap;
use std::sync::Arc;

/// The longest paths that are searched together.
const LONGEST: usize = 32;
/// The most streams.
const MOST_STREAMS: usize = 256;
/// The most symbols of borders: two gigabytes.
const MOST_SYMBOLS: usize = 1 << 29;
/// Seams that hold paths, of all lengths: two gigabytes.
const MOST_FOUND: usize = 1 << 26;

/// A path that was searched together with others: how often it occurs and where first. The
/// other places are searched when they are requested.
#[derive(Clone)]
pub(super) struct BatchFound<'a> {
    slice: Arc<FunctionSlice<'a>>,
    summary: Arc<Summary>,
}

struct Summary {
    query: PathQuery,
    /// How often it occurs in each stream.
    counts: Vec<u64>,
    /// The first occurrence in each stream.
    firsts: Vec<Option<PathPlace>>,
}

impl PathOccurrences for BatchFound<'_> {
    fn count_in(&self, stream: StreamId) -> u64 {
        self.summary.counts[stream.index()]
    }

    fn streams(&self) -> usize {
        self.summary.counts.len()
    }

    fn each_in(&self, stream: StreamId, skip: u64, visit: &mut dyn FnMut(PathPlace) -> bool) -> Result<()> {
        let Some(first) = self.summary.firsts[stream.index()] else { return Ok(()) };
        if skip == 0 && !visit(first) {
            return Ok(());
        }
        PathFound::new(&self.slice, &self.summary.query)?.each_in(stream, skip.max(1), visit)
    }
}

/// True if a path can be one of many.
pub(super) fn is_plain(query: &PathQuery) -> bool {
    let is_one = |block: &Vec<Symbol>| block.len() == 1;
    (2..=LONGEST).contains(&query.len()) && !query.has_gaps() && query.blocks().iter().all(is_one)
}

/// Searches for plain paths of the function of a slice. Returns `None` if that calls itself, or
/// there is too much to keep.
pub(super) fn search<'a>(
    slice: &Arc<FunctionSlice<'a>>,
    queries: &[&PathQuery],
) -> Result<Option<Vec<BatchFound<'a>>>> {
    if slice.is_recursive() || slice.fold().streams().len() > MOST_STREAMS {
        return Ok(None);
    }
    let wanted = Wanted::new(slice, queries);
    let longest = wanted.0.last().map_or(0, |(length, _)| *length);
    let Ok(borders) = Borders::new(&**slice, longest.saturating_sub(1), MOST_SYMBOLS) else {
        return Ok(None);
    };
    let batch = Batch { slice, borders };
    let found = batch.at_seams(&wanted)?;
    let summaries = batch.summaries(queries, &found);
    let of_summary = |summary| BatchFound { slice: Arc::clone(slice), summary: Arc::new(summary) };
    Ok(Some(summaries.into_iter().map(of_summary).collect()))
}

/// The numbers of paths by their blocks, as nodes of the slice.
type ByBlocks = HashMap<Vec<u32>, Vec<u32>>;

/// The paths of each length, in order of the lengths.
struct Wanted(Vec<(usize, ByBlocks)>);

impl Wanted {
    fn new(slice: &FunctionSlice<'_>, queries: &[&PathQuery]) -> Self {
        let nodes: HashMap<Symbol, u32> =
            slice.steps().iter().zip(0..).map(|(&(symbol, _), node)| (symbol, node)).collect();
        let mut by_length: HashMap<usize, ByBlocks> = HashMap::new();
        for (query, number) in queries.iter().zip(0..) {
            let blocks = query.blocks().iter().map(|block| nodes.get(block.first()?).copied());
            if let Some(blocks) = blocks.collect::<Option<Vec<u32>>>() {
                by_length.entry(query.len()).or_default().entry(blocks).or_default().push(number);
            }
        }
        let mut lengths: Vec<_> = by_length.into_iter().collect();
        lengths.sort_unstable_by_key(|(length, _)| *length);
        Self(lengths)
    }
}

/// A path at a seam.
struct Found {
    query: u32,
    node: u32,
    /// How often it is at such a seam in each occurrence of the node.
    times: u64,
    /// The function's symbols between the beginning of the node and the first of them.
    offset: u64,
}

/// How often a node is in a stream, and how many of the function's symbols lie before the
/// first.
#[derive(Clone, Copy)]
struct Occurrences {
    count: u64,
    first: u64,
}

struct Batch<'s, 'a> {
    slice: &'s FunctionSlice<'a>,
    borders: Borders<'s, FunctionSlice<'a>>,
}

impl Batch<'_, '_> {
    /// All paths at all seams.
    fn at_seams(&self, wanted: &Wanted) -> Result<Vec<Found>> {
        let (mut found, mut text, mut inner) = (Vec::new(), BodyText::default(), Vec::new());
        let first = self.slice.symbol_count() as u32;
        for (body, node) in self.slice.rule_bodies().zip(first..) {
            text.clear();
            for &item in body {
                if item.repeats() {
                    self.find_between_iterations(item, node, text.length, wanted, &mut inner, &mut found);
                }
                text.push(item, &self.borders);
            }
            for (length, paths) in &wanted.0 {
                text.find_between_items(*length, |window, offset| {
                    let queries = paths.get(window).into_iter().flatten();
                    found.extend(queries.map(|&query| Found { query, node, times: 1, offset }));
                });
            }
            if found.len() > MOST_FOUND {
                return Err(Error::limit("these paths are found at too many places at once"));
            }
        }
        Ok(found)
    }

    /// The windows that begin in the first iteration of an item and end in a later one. The
    /// item lies at an offset of the node.
    fn find_between_iterations(
        &self,
        item: SliceItem,
        node: u32,
        offset: u64,
        wanted: &Wanted,
        text: &mut Vec<u32>,
        found: &mut Vec<Found>,
    ) {
        let (once, times) = (item.node(), self.slice.item_times(item));
        let period = self.borders.length(once);
        // The last symbols of the first iteration, then the first of the others.
        text.clear();
        text.extend(self.borders.last_reversed(once).iter().rev());
        let seam = text.len();
        self.borders.push_first(item, text);
        let behind = period.saturating_mul(times - 1);
        text.truncate(seam.saturating_add(usize::try_from(behind).unwrap_or(usize::MAX)));
        let all = period.saturating_mul(times);
        for (length, paths) in &wanted.0 {
            let first = seam.saturating_sub(length - 1);
            for (window, begin) in text[first..].windows(*length).zip(first..seam) {
                let Some(queries) = paths.get(window) else { continue };
                let start = period - (seam - begin) as u64;
                let times = (all - start - *length as u64) / period + 1;
                let found_here = |&query| Found { query, node, times, offset: offset + start };
                found.extend(queries.iter().map(found_here));
            }
        }
    }

    /// The results, for all streams.
    fn summaries(&self, queries: &[&PathQuery], found: &[Found]) -> Vec<Summary> {
        let fold = self.slice.fold();
        let streams = fold.streams();
        let empty = |&query: &&PathQuery| Summary {
            query: query.clone(),
            counts: vec![0; streams.len()],
            firsts: vec![None; streams.len()],
        };
        let mut summaries: Vec<Summary> = queries.iter().map(empty).collect();
        let mut of_roots: HashMap<RuleId, StreamId> = HashMap::new();
        for (stream, folded) in fold.stream_ids().zip(streams) {
            if let Some(&same) = of_roots.get(&folded.root()) {
                for summary in &mut summaries {
                    summary.counts[stream.index()] = summary.counts[same.index()];
                    summary.firsts[stream.index()] =
                        summary.firsts[same.index()].map(|place| PathPlace { stream, ..place });
                }
                continue;
            }
            of_roots.insert(folded.root(), stream);
            self.summarize(stream, folded.root(), found, &mut summaries);
        }
        summaries
    }

    fn summarize(&self, stream: StreamId, root: RuleId, found: &[Found], summaries: &mut [Summary]) {
        let Some(occurrences) = self.occurrences(root) else { return };
        let mut firsts = vec![u64::MAX; summaries.len()];
        for found in found {
            let Occurrences { count, first } = occurrences[found.node as usize];
            if count == 0 {
                continue;
            }
            let query = found.query as usize;
            let all = &mut summaries[query].counts[stream.index()];
            *all = all.saturating_add(count.saturating_mul(found.times));
            firsts[query] = firsts[query].min(first + found.offset);
        }
        let length_of = |item: SliceItem| self.borders.length(item.node());
        for (summary, &first) in summaries.iter_mut().zip(&firsts).filter(|(_, first)| **first != u64::MAX) {
            let last = first + summary.query.len() as u64 - 1;
            let end = select(self.slice, root, last, length_of);
            summary.firsts[stream.index()] = end.map(|end| PathPlace { stream, end, depth: 1 });
        }
    }

    /// The occurrences of all nodes in a stream. Returns `None` if the function is not in it.
    fn occurrences(&self, root: RuleId) -> Option<Vec<Occurrences>> {
        let root: Node = self.slice.node(root)?;
        let mut all = vec![Occurrences { count: 0, first: u64::MAX }; self.slice.node_count()];
        all[root.index()] = Occurrences { count: 1, first: 0 };
        let passed = top_down(self.slice, &mut all, |_, body, &Occurrences { count, first }, before| {
            let mut offset = first;
            for &item in body.iter().take_while(|_| count > 0) {
                let inner = &mut before[item.node().index()];
                inner.count = inner.count.saturating_add(count.saturating_mul(self.slice.item_times(item)));
                inner.first = inner.first.min(offset);
                offset = offset.saturating_add(self.borders.item_length(item));
            }
            Ok(())
        });
        passed.ok().map(|()| all)
    }
}

/// The symbols of a body, those of long items cut short.
#[derive(Default)]
struct BodyText {
    symbols: Vec<u32>,
    items: Vec<ItemText>,
    /// How many symbols the body has so far.
    length: u64,
}

/// Where an item is in the text of its body.
struct ItemText {
    begin: usize,
    end: usize,
    /// How many symbols of the body lie before its end.
    offset_end: u64,
}

impl BodyText {
    fn clear(&mut self) {
        self.symbols.clear();
        self.items.clear();
        self.length = 0;
    }

    /// Appends an item: all of it if it is short, else its two ends.
    fn push<'a>(&mut self, item: SliceItem, borders: &Borders<'_, FunctionSlice<'a>>) {
        let begin = self.symbols.len();
        borders.push_item(item, &mut self.symbols);
        self.length = self.length.saturating_add(borders.item_length(item));
        self.items.push(ItemText { begin, end: self.symbols.len(), offset_end: self.length });
    }

    /// The windows of a length that begin in one item and end in another, with how many
    /// symbols of the body lie before each.
    fn find_between_items(&self, length: usize, mut visit: impl FnMut(&[u32], u64)) {
        for item in &self.items {
            let first = item.begin.max((item.end + 1).saturating_sub(length));
            for start in first..item.end {
                let Some(window) = self.symbols.get(start..start + length) else { return };
                // From the end of its item, since its middle may be left out.
                visit(window, item.offset_end - (item.end - start) as u64);
            }
        }
    }
}
