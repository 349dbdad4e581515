//! The index of the paper's section 4.4: which parts of a trace hold which functions.
//!
//! The top of the fold is divided into *segments*: stretches of the streams, streams with
//! the same root taken once. They are cut between items of the roots; where these have too
//! few, also between the items of the largest rules below and between iterations. For each
//! function the index has the set of segments with an enter, a block or an exit of it, and
//! for each segment how calls are nested in it. A search goes only into the segments of its
//! function, and from there into every rule that they are made of.
//!
//! There is an index only where symbols say whose they are: otherwise every exit matters to
//! every function.
//!
//! Making it is one pass down the rules with a bit a segment, some ten nanoseconds an item
//! for each 64 segments, and one pass for the levels. Memory while it is made: a bit for each
//! rule and segment, and 32 bytes a rule.

mod candidates;
mod segments;

use super::brackets::NestingLevels;
use super::functions::{Function, Functions, Step};
use super::schemes::Share;
use super::slice::{Dedup, FunctionSlice, Scratch};
use super::{Effort, PathFound, PathQuery};
use crate::fold::{Fold, Target};
use crate::{Error, Result, RuleId, Symbol};
use candidates::{Candidates, joined};
use hashbrown::HashMap;
use roaring::RoaringBitmap;
use segments::{cuts, has, levels_of, segments_of_symbols};
use std::ops::Range;
use std::sync::Arc;

/// Where more than one in so many segments hold a function, going through all rules is
/// faster than finding those that the segments are made of.
const COMMON: u64 = 8;

/// Which segments of a fold hold which functions.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::{Functions, PathIndex, PathQuery, find_path_indexed};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["f", "g"] {
///     let function = [Field { key: "function", value: Value::Text(name.as_bytes()) }];
///     collector.push(stream, &Event { role: Role::Enter, ..Event::named(name) })?;
///     collector.push(stream, &Event { role: Role::Block, fields: &function, ..Event::named("B1") })?;
///     collector.push(stream, &Event { role: Role::Leave, fields: &function, ..Event::named(name) })?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let index = PathIndex::of(&fold, 2)?.expect("the symbols say whose they are");
/// let functions = Functions::of(fold.alphabet())?;
/// let g = functions.named(b"g").unwrap();
/// let query = PathQuery::new(&functions, g, vec![g.blocks().to_vec()])?;
/// let (found, effort) = find_path_indexed(&fold, &index, &query)?;
/// assert_eq!(found.count()?, 1);
/// assert_eq!(effort.segments.map(|segments| (segments.touched, segments.all)), Some((1, 2)));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// Which fold it belongs to.
    pub(crate) fingerprint: u64,
    /// How many segments were asked for.
    pub(crate) asked: usize,
    /// Where each segment ends: in events, of all different roots one after the other.
    pub(crate) ends: Vec<u64>,
    /// How calls are nested in each segment.
    pub(crate) levels: Vec<NestingLevels>,
    /// The segments of each function, in the order of [`Functions::all`].
    pub(crate) functions: Vec<RoaringBitmap>,
    /// The place of each function by its name.
    places: HashMap<Vec<u8>, usize>,
}

impl PathIndex {
    /// How many segments there are unless something else is asked for.
    pub const SEGMENTS: usize = 128;
    /// More segments than that there never are.
    pub const MOST_SEGMENTS: usize = 1 << 16;

    /// True if there can be an index: there are functions, and symbols say whose they are.
    pub fn is_possible(fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(!functions.all().is_empty() && functions.is_qualified())
    }

    /// The index of a fold with about so many segments; nothing where it would be of no use:
    /// there are no functions, or symbols do not say whose they are.
    pub fn of(fold: &Fold, segments: usize) -> Result<Option<Self>> {
        let functions = Functions::of(fold.alphabet())?;
        let roots = Roots::of(fold);
        if functions.all().is_empty() || !functions.is_qualified() || roots.events() == 0 {
            return Ok(None);
        }
        let asked = segments.clamp(1, Self::MOST_SEGMENTS);
        let ends = cuts(fold, &roots, asked);
        let sets = segments_of_symbols(fold, &roots, &ends);
        let of_function = |function: &Function| -> RoaringBitmap {
            let mut bits = vec![0u64; sets.words];
            for (symbol, _) in functions.steps_of(function) {
                bits.iter_mut().zip(sets.of(symbol.index())).for_each(|(bits, more)| *bits |= more);
            }
            let segments = (0..ends.len() as u32).filter(|&segment| has(&bits, segment as usize));
            let mut set: RoaringBitmap = segments.collect();
            set.optimize();
            set
        };
        let sets = functions.all().iter().map(of_function).collect();
        let levels = levels_of(fold, &roots, &ends)?;
        let fingerprint = fingerprint(fold, &functions);
        Ok(Some(Self::from_parts(fingerprint, asked, ends, levels, sets, &functions)))
    }

    /// The index that was stored as this.
    pub(crate) fn from_parts(
        fingerprint: u64,
        asked: usize,
        ends: Vec<u64>,
        levels: Vec<NestingLevels>,
        sets: Vec<RoaringBitmap>,
        functions: &Functions,
    ) -> Self {
        let names = functions.all().iter().enumerate();
        let places = names.map(|(place, function)| (function.name().to_vec(), place)).collect();
        Self { fingerprint, asked, ends, levels, functions: sets, places }
    }

    /// True if it was made for this fold, as far as can be told at a nanosecond an item.
    pub fn fits(&self, fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(self.is_of_size(fold) && self.fingerprint == fingerprint(fold, &functions))
    }

    /// True if its segments end where the fold does.
    fn is_of_size(&self, fold: &Fold) -> bool {
        self.ends.last() == Some(&Roots::of(fold).events())
    }

    /// True if it is what making it anew gives.
    pub fn is_right(&self, fold: &Fold) -> Result<bool> {
        Ok(Self::of(fold, self.asked)?.as_ref() == Some(self))
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.ends.len()
    }

    /// How many segments hold something of a function.
    pub fn segments_with(&self, function: &[u8]) -> u64 {
        self.place(function).map_or(0, |place| self.share(place).touched)
    }

    pub(super) fn place(&self, function: &[u8]) -> Option<usize> {
        self.places.get(function).copied()
    }

    /// True if a segment holds something of a function.
    pub fn holds(&self, function: &[u8], segment: usize) -> bool {
        let set = self.place(function).and_then(|place| self.functions.get(place));
        u32::try_from(segment).is_ok_and(|segment| set.is_some_and(|set| set.contains(segment)))
    }

    /// The events of a segment, counted over the different roots of the streams, one after
    /// the other in the order of their numbers.
    pub fn events(&self, segment: usize) -> Option<Range<u64>> {
        self.stretch(segment).map(|(start, end)| start..end)
    }

    /// How calls are nested in a segment.
    pub fn levels(&self, segment: usize) -> Option<NestingLevels> {
        self.levels.get(segment).copied()
    }

    /// The segments of a function, as a share of all.
    pub(super) fn share(&self, function: usize) -> Share {
        let touched = self.functions.get(function).map_or(0, RoaringBitmap::len);
        Share { touched, all: self.segments() as u64 }
    }

    /// What the fold holds of a function, found in its segments.
    pub(super) fn slice<'a>(
        &self,
        fold: &'a Fold,
        function: usize,
        steps: &[(Symbol, Step)],
        scratch: &mut Scratch,
    ) -> Result<FunctionSlice<'a>> {
        let Share { touched, all } = self.share(function);
        if touched.saturating_mul(COMMON) > all {
            return FunctionSlice::from_pass(fold, steps, Dedup::No);
        }
        let none = RoaringBitmap::new();
        let segments = self.functions.get(function).unwrap_or(&none);
        let stretches = joined(segments.iter().filter_map(|segment| self.stretch(segment as usize)));
        let mut found = Candidates::new(fold);
        found.find(&Roots::of(fold), &stretches, scratch);
        scratch.clear();
        let visited = found.rules.len() as u64;
        FunctionSlice::from_places(fold, steps, found.places(), scratch, visited)
    }

    /// Where a segment begins and ends.
    fn stretch(&self, segment: usize) -> Option<(u64, u64)> {
        let end = *self.ends.get(segment)?;
        Some((segment.checked_sub(1).map_or(0, |before| self.ends[before]), end))
    }
}

/// Looks for a path only in those segments of a fold that hold something of its function,
/// by an index that [fits](PathIndex::fits) the fold, and says what it did. Where the
/// function is in many of them, all rules are gone through, which is faster then.
///
/// To look for many paths, [`PathSearcher`](super::PathSearcher) is faster.
pub fn find_path_indexed<'a>(
    fold: &'a Fold,
    index: &PathIndex,
    query: &PathQuery,
) -> Result<(PathFound<'a>, Effort)> {
    if !index.is_of_size(fold) {
        return Err(Error::invalid("the index is of another fold"));
    }
    let function = index.place(query.function());
    let function = function.ok_or_else(|| Error::invalid("the index does not have the function"))?;
    let mut scratch = Scratch::new(fold);
    let slice = Arc::new(index.slice(fold, function, query.steps(), &mut scratch)?);
    let effort = Effort {
        segments: Some(index.share(function)),
        rules: Some(Share { touched: slice.visited(), all: fold.rules().len() as u64 }),
        ..Effort::default()
    };
    Ok((PathFound::new(&slice, query)?, effort))
}

/// The different roots of the streams, each once, and where each begins if they stand one
/// after the other.
struct Roots {
    /// With where it ends. As many as fit 64 bits.
    roots: Vec<(RuleId, u64)>,
}

impl Roots {
    fn of(fold: &Fold) -> Self {
        let mut rules: Vec<RuleId> = fold.streams().iter().map(|stream| stream.root()).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut events = 0u64;
        let mut roots = Vec::with_capacity(rules.len());
        for rule in rules {
            let Some(end) = events.checked_add(fold.length(rule)) else {
                // Too much to number: then there is no index.
                return Self { roots: Vec::new() };
            };
            events = end;
            roots.push((rule, end));
        }
        Self { roots }
    }

    /// All events.
    fn events(&self) -> u64 {
        self.roots.last().map_or(0, |&(_, end)| end)
    }

    /// The roots, with where each begins.
    fn iter<'a>(&'a self, fold: &'a Fold) -> impl Iterator<Item = (RuleId, u64)> + 'a {
        self.roots.iter().map(|&(rule, end)| (rule, end - fold.length(rule)))
    }
}

/// A number that another fold is unlikely to have: of all items, of the roots and of whose
/// symbols are whose.
fn fingerprint(fold: &Fold, functions: &Functions) -> u64 {
    let mut hash = 0u64;
    let mut add = |number: u64| hash = (hash.rotate_left(23) ^ number).wrapping_mul(MIX);
    for rule in fold.rules() {
        for item in fold.body(rule) {
            let target = match item.target() {
                Target::Symbol(symbol) => u64::from(symbol.raw()),
                Target::Rule(rule) => u64::from(rule.raw()) | 1 << 32,
            };
            add(target ^ item.times().rotate_left(33));
        }
        add(u64::MAX);
    }
    fold.streams().iter().for_each(|stream| add(stream.root().raw().into()));
    for function in functions.all() {
        add(crc32fast::hash(function.name()).into());
        functions.steps_of(function).iter().for_each(|(symbol, step)| {
            add(u64::from(symbol.raw()) | (*step as u64) << 32);
        });
    }
    hash
}

/// An odd number without a pattern, for hashing.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
