//! The index of the paper's section 4.4: which parts of a trace hold which functions.
//!
//! The events of a fold are divided into *index ranges*, streams with the same root taken
//! once. Ranges end between items of the roots; where these have too few, also between the
//! items of the largest rules below and between iterations. For each function the index has
//! the set of ranges with an enter, a block or an exit of it. A search looks only at the
//! ranges of its function, and at every rule that they are made of.
//!
//! There is an index only if symbols are qualified: otherwise every exit matters to every
//! function.
//!
//! Building it is one top-down pass over the rules with a bit a range, some ten nanoseconds an
//! item for each 64 ranges. Memory during that: a bit for each rule and range.

mod candidates;
mod ranges;
#[cfg(feature = "archive")]
mod stored;

use super::PathQuery;
use super::functions::{Function, Functions};
use super::slice::{FunctionSlice, Scratch};
use super::strategy::Share;
use crate::fold::{Fold, Target};
use crate::{Result, RuleId};
use candidates::{Candidates, joined};
use hashbrown::HashMap;
use ranges::{range_ends, ranges_of_nodes};
use roaring::RoaringBitmap;
use std::ops::Range;

/// Events of a fold that an index has one entry for: positions in its different roots, one
/// after the other in the order of their numbers.
pub type IndexRange = Range<u64>;

/// Which ranges of a fold hold which functions.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::path::{Functions, PathIndex, PathQuery, PathSearcher, Scheme};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["f", "g"] {
///     let function = [Field { key: "function", value: Value::Text(name.as_bytes()) }];
///     collector.push_event(stream, &Event { role: Role::Enter, ..Event::named(name) })?;
///     collector.push_event(stream, &Event { role: Role::Block, fields: &function, ..Event::named("B1") })?;
///     collector.push_event(stream, &Event { role: Role::Leave, fields: &function, ..Event::named(name) })?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let index = PathIndex::of(&fold, 2)?.expect("the symbols say whose they are");
/// let functions = Functions::of(fold.alphabet())?;
/// let g = functions.named(b"g").unwrap();
/// let query = PathQuery::new(&functions, g, vec![g.blocks().to_vec()])?;
/// let answer = PathSearcher::new(&fold, Some(&index))?.search(&query, Some(Scheme::Indexed))?;
/// assert_eq!(answer.found.count_all()?, 1);
/// assert_eq!(answer.effort.ranges.map(|ranges| (ranges.touched, ranges.all)), Some((1, 2)));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// Which fold it belongs to.
    fingerprint: u64,
    /// How many ranges were requested.
    asked: usize,
    /// Where each range ends.
    ends: Vec<u64>,
    /// The ranges of each function, in the order of [`Functions::all`].
    functions: Vec<RoaringBitmap>,
    /// The place of each function by its name.
    places: HashMap<Vec<u8>, usize>,
}

impl PathIndex {
    /// How many ranges there are unless something else is requested.
    pub const RANGES: usize = 128;
    /// There are never more ranges than that.
    pub const MAX_RANGES: usize = 1 << 16;

    /// True if there can be an index: there are functions, and symbols state their function.
    pub fn is_possible(fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(!functions.all().is_empty() && functions.is_qualified())
    }

    /// The index of a fold with about so many ranges; `None` where it would be of no use: there
    /// are no functions, or symbols do not state their function.
    pub fn of(fold: &Fold, ranges: usize) -> Result<Option<Self>> {
        let functions = Functions::of(fold.alphabet())?;
        let roots = Roots::of(fold);
        if functions.all().is_empty() || !functions.is_qualified() || roots.events() == 0 {
            return Ok(None);
        }
        let asked = ranges.clamp(1, Self::MAX_RANGES);
        let ends = range_ends(fold, &roots, asked);
        let sets = ranges_of_nodes(fold, &roots, &ends)?;
        let of_function = |function: &Function| -> RoaringBitmap {
            let symbols = functions.steps_of(function).into_iter().map(|(symbol, _)| symbol);
            let mut set: RoaringBitmap = sets.of_symbols(symbols).collect();
            set.optimize();
            set
        };
        let sets = functions.all().iter().map(of_function).collect();
        let fingerprint = fingerprint(fold, &functions);
        Ok(Some(Self::from_parts(fingerprint, asked, ends, sets, &functions)))
    }

    /// The index that was stored as this.
    fn from_parts(
        fingerprint: u64,
        asked: usize,
        ends: Vec<u64>,
        sets: Vec<RoaringBitmap>,
        functions: &Functions,
    ) -> Self {
        let names = functions.all().iter().enumerate();
        let places = names.map(|(place, function)| (function.name().to_vec(), place)).collect();
        Self { fingerprint, asked, ends, functions: sets, places }
    }

    /// True if its fingerprint is that of this fold. One nanosecond an item.
    pub fn fits(&self, fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(self.is_of_size(fold) && self.fingerprint == fingerprint(fold, &functions))
    }

    /// True if its ranges end where the fold does.
    fn is_of_size(&self, fold: &Fold) -> bool {
        self.ends.last() == Some(&Roots::of(fold).events())
    }

    /// True if it equals an index that is built again.
    pub fn is_right(&self, fold: &Fold) -> Result<bool> {
        Ok(Self::of(fold, self.asked)?.as_ref() == Some(self))
    }

    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.ends.len()
    }

    /// One of the ranges.
    pub fn range(&self, number: usize) -> Option<IndexRange> {
        let end = *self.ends.get(number)?;
        Some(number.checked_sub(1).map_or(0, |before| self.ends[before])..end)
    }

    fn place(&self, function: &[u8]) -> Option<usize> {
        self.places.get(function).copied()
    }

    /// True if a range holds something of a function.
    pub fn holds(&self, function: &[u8], range: usize) -> bool {
        let set = self.place(function).and_then(|place| self.functions.get(place));
        u32::try_from(range).is_ok_and(|range| set.is_some_and(|set| set.contains(range)))
    }

    /// The ranges of a function, as a share of all.
    pub(super) fn share(&self, function: &[u8]) -> Option<Share> {
        let touched = self.functions.get(self.place(function)?)?.len();
        Some(Share { touched, all: self.ranges() as u64 })
    }

    /// The slice of a path's function, found in its ranges.
    pub(super) fn slice<'a>(
        &self,
        fold: &'a Fold,
        query: &PathQuery,
        scratch: &mut Scratch,
    ) -> Result<FunctionSlice<'a>> {
        let set = self.place(query.function()).and_then(|place| self.functions.get(place));
        let numbers = set.into_iter().flatten();
        let ranges = joined(numbers.filter_map(|number| self.range(number as usize)));
        let found = Candidates::new(fold, &Roots::of(fold), &ranges, scratch)?;
        let visited = found.rules() as u64;
        FunctionSlice::from_places(fold, query.steps(), found.places(), scratch, visited)
    }
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
