//! Chooses how a path is searched, and states why; no other module chooses.
//!
//! The paper has four schemes, and scheme 2 has several forms here. If no scheme is requested,
//! the choice is:
//!
//! | when | what is searched | cost |
//! | --- | --- | --- |
//! | the path was one of many searched together | nothing: it is looked up, see [`batch`](super::batch) | O(1) |
//! | the slice of its function is kept | that slice | O(items of the slice) |
//! | a later search, of a rare function | the slice, found upwards from the [uses](UseIndex) of its symbols | 20 ns an item of the slice |
//! | a first search, with an index in which the function is rare | the slice, found in the index ranges of the function | O(items below these) |
//! | one of the first paths of the function, short, no recursion | all rules, directly: see [`locate`](super::locate) | 1 to 4 ns an item of the fold |
//! | all else | the slice, found by a pass over all rules | 1 to 2 ns an item of the fold, 10 an item of the slice |
//!
//! On a slice, how wide the summaries are, and whether they need levels of calls, follows from
//! the path and the slice alone: see [`PathFound`].
//!
//! Schemes 1 and 3 [scan](super::scan) symbols, and are used only on request: on every trace
//! that was measured the rules are faster.
//!
//! Memory: 8 bytes an item for the uses, which are computed at the second search, and the
//! cached slices.

mod answer;
mod slices;

use super::batch::{self, BatchFound};
use super::functions::Functions;
use super::index::PathIndex;
use super::scan::{ScanConfig, ScanFound, TraceChunks};
use super::slice::{Dedup, FunctionSlice, Scratch};
use super::{PathFound, PathQuery};
use crate::fold::Fold;
use crate::fold::reach::UseIndex;
use crate::{Error, Result};
pub use answer::{Effort, PathAnswer, PathOccurrences, Scheme, Share};
use hashbrown::HashMap;
use slices::{DIRECT, Kept, SliceCache};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A function that is in more than one in this many items is common: going over all rules is
/// then faster than finding those that hold it.
const COMMON: usize = 40;

/// The same where nothing says that a function is rare: giving up on it then costs a few
/// hundredths of going over all rules.
const RARE: usize = 400;

/// The same for index ranges.
const RARE_IN_RANGES: u64 = 16;

/// So many paths of a function are searched together.
const MANY: usize = 4;

/// Searches for a path over the rules of a fold. To search for many, or to choose the scheme,
/// use [`PathSearcher`].
pub fn find_path<'a>(fold: &'a Fold, query: &PathQuery) -> Result<PathFound<'a>> {
    if let Some(found) = PathFound::directly(fold, query) {
        return Ok(found);
    }
    let slice = FunctionSlice::from_pass(fold, query.steps(), Dedup::No)?;
    PathFound::new(&Arc::new(slice), query)
}

/// Searches for paths in one fold; made once, used from any number of threads.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::path::{PathQuery, PathSearcher, Scheme};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// let f = [Field { key: "function", value: Value::Text(b"f") }];
/// collector.push_event(stream, &Event { role: Role::Enter, ..Event::named("f") })?;
/// for _ in 0..3 {
///     collector.push_event(stream, &Event { role: Role::Block, fields: &f, ..Event::named("B1") })?;
/// }
/// (0..100).try_for_each(|_| collector.push_event(stream, &Event::named("something else")))?;
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let searcher = PathSearcher::new(&fold, None)?;
/// let f = searcher.functions().named(b"f").unwrap();
/// let query = PathQuery::new(searcher.functions(), f, vec![f.blocks().to_vec(); 2])?;
/// assert_eq!(searcher.search(&query, None)?.found.count_all()?, 2);
/// for scheme in Scheme::ALL {
///     let answer = searcher.search(&query, Some(scheme))?;
///     assert_eq!(answer.found.count_all()?, 2, "{}", answer.reason);
/// }
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct PathSearcher<'a> {
    fold: &'a Fold,
    functions: Functions,
    index: Option<&'a PathIndex>,
    chunks: Option<&'a dyn TraceChunks>,
    scan_config: ScanConfig,
    uses: OnceLock<UseIndex>,
    slices: SliceCache<'a>,
    /// Paths that were searched together.
    batched: HashMap<PathQuery, BatchFound<'a>>,
    scratch: Mutex<Vec<Scratch>>,
    searches: AtomicUsize,
}

opaque_debug!(PathSearcher<'a>);

/// A search strategy, with the data it searches.
enum Strategy<'a> {
    /// Symbols, of all chunks or of those with the function.
    Scan,
    /// Nothing, since an earlier search for many paths found this one.
    Batched(BatchFound<'a>),
    /// All rules, with nothing made beforehand.
    Direct(PathFound<'a>),
    /// The slice of the function.
    Slice(Kept<'a>),
}

/// A choice.
struct Choice<'a> {
    strategy: Strategy<'a>,
    scheme: Scheme,
    /// Why.
    reason: String,
}

/// Where the slice of a function is found.
struct SliceChoice<'a> {
    /// The slice, where it was found without going over all rules.
    slice: Option<FunctionSlice<'a>>,
    scheme: Scheme,
    reason: String,
}

impl SliceChoice<'_> {
    /// By a pass over all rules.
    fn by_pass(reason: String) -> Self {
        Self { slice: None, scheme: Scheme::Folded, reason }
    }
}

impl<'a> PathSearcher<'a> {
    /// Opens a fold, with its index if there is one. An index that does not
    /// [fit](PathIndex::fits) is an error.
    pub fn new(fold: &'a Fold, index: Option<&'a PathIndex>) -> Result<Self> {
        if let Some(index) = index
            && !index.fits(fold)?
        {
            return Err(Error::invalid("the index is of another fold"));
        }
        Ok(Self {
            fold,
            functions: Functions::of(fold.alphabet())?,
            index,
            chunks: None,
            scan_config: ScanConfig::new(),
            uses: OnceLock::new(),
            slices: SliceCache::default(),
            batched: HashMap::new(),
            scratch: Mutex::default(),
            searches: AtomicUsize::new(0),
        })
    }

    /// With the symbols in chunks, for schemes 1 and 3; without, they unfold ranges of the
    /// fold.
    pub fn with_chunks(self, chunks: Option<&'a dyn TraceChunks>) -> Self {
        Self { chunks, ..self }
    }

    /// With other options for schemes 1 and 3.
    pub fn with_scan_config(self, scan_config: ScanConfig) -> Self {
        Self { scan_config, ..self }
    }

    /// The functions of the fold.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Finds now where symbols and rules are used, and not at the second search.
    pub fn prepare(&self) -> Result<()> {
        self.uses().map(|_| ())
    }

    /// Forgets what is kept of functions.
    pub fn forget(&self) {
        self.slices.clear();
    }

    /// Searches for a path, by the requested scheme or by the fastest strategy. Scheme 4 goes
    /// over all rules where the function is in too many of them.
    pub fn search(&self, query: &PathQuery, wanted: Option<Scheme>) -> Result<PathAnswer<'a>> {
        let Choice { strategy, scheme, reason } = self.choose(query, wanted)?;
        let rules = self.fold.rules().len() as u64;
        let (found, touched): (Box<dyn PathOccurrences + 'a>, u64) = match strategy {
            Strategy::Scan => {
                let mut found = self.scan(query, scheme)?;
                let (effort, damage) = (found.effort, std::mem::take(&mut found.damage));
                return Ok(PathAnswer { found: Box::new(found), scheme, reason, effort, damage });
            }
            Strategy::Batched(found) => {
                let (effort, damage) = (Effort::default(), Vec::new());
                return Ok(PathAnswer { found: Box::new(found), scheme, reason, effort, damage });
            }
            Strategy::Direct(found) => (Box::new(found), rules),
            Strategy::Slice(Kept { slice, .. }) => {
                (Box::new(PathFound::new(&slice, query)?), slice.visited())
            }
        };
        let effort = Effort {
            ranges: (scheme == Scheme::Indexed).then(|| self.ranges(query)).flatten(),
            rules: Some(Share { touched, all: rules }),
            ..Effort::default()
        };
        Ok(PathAnswer { found, scheme, reason, effort, damage: Vec::new() })
    }

    /// Searches together for those of many paths that allow it; [`search`](Self::search) then
    /// looks them up unless a scheme is requested. Paths of one non-recursive function share
    /// one pass if they are plain: no gaps, one block at each place, at least two and not too
    /// many.
    pub fn search_together(&mut self, queries: &[PathQuery]) -> Result<()> {
        let mut groups: HashMap<&[u8], Vec<&PathQuery>> = HashMap::new();
        for query in queries.iter().filter(|query| batch::is_plain(query)) {
            groups.entry(query.function()).or_default().push(query);
        }
        for group in groups.values().filter(|group| group.len() >= MANY) {
            let slice = self.slice_of_many(group[0])?;
            let found = batch::search(&slice, group)?.into_iter().flatten();
            self.batched.extend(group.iter().map(|&query| query.clone()).zip(found));
        }
        Ok(())
    }

    /// Chooses how to search for a path.
    fn choose(&self, query: &PathQuery, wanted: Option<Scheme>) -> Result<Choice<'a>> {
        if let Some(scheme @ (Scheme::Unfolded | Scheme::Chunks)) = wanted {
            let reason = match self.chunks {
                Some(_) => "it was asked for; the archive has the events in chunks",
                None => "it was asked for; there are no chunks, so ranges of the fold are unfolded",
            };
            return Ok(Choice { strategy: Strategy::Scan, scheme, reason: reason.to_string() });
        }
        if let (None, Some(found)) = (wanted, self.batched.get(query)) {
            let reason = "together with other paths of the function".to_string();
            return Ok(Choice { strategy: Strategy::Batched(found.clone()), scheme: Scheme::Folded, reason });
        }
        let is_first = self.searches.fetch_add(1, Ordering::Relaxed) == 0;
        if let Some(kept) = self.slices.get(query, wanted) {
            let reason = format!(
                "an earlier search found what holds the function: {} of {} items",
                kept.slice.items(),
                self.fold.items()
            );
            return Ok(Choice { scheme: kept.scheme, strategy: Strategy::Slice(kept), reason });
        }
        let SliceChoice { slice, scheme, reason } = self.choose_slice(query, wanted, is_first)?;
        if let Some(slice) = slice {
            let kept = self.slices.keep(query, slice, scheme, Dedup::No);
            return Ok(Choice { strategy: Strategy::Slice(kept), scheme, reason });
        }
        let strategy = self.choose_over_all_rules(query, scheme)?;
        Ok(Choice { strategy, scheme, reason })
    }

    /// Directly while few paths of the function were searched; then by a slice, which takes a
    /// few times as long to find, and is kept.
    fn choose_over_all_rules(&self, query: &PathQuery, scheme: Scheme) -> Result<Strategy<'a>> {
        let searched = self.slices.count(query);
        if searched < DIRECT
            && let Some(found) = PathFound::directly(self.fold, query)
        {
            return Ok(Strategy::Direct(found));
        }
        let dedup = if searched == 0 { Dedup::No } else { Dedup::Yes };
        let slice = FunctionSlice::from_pass(self.fold, query.steps(), dedup)?;
        Ok(Strategy::Slice(self.slices.keep(query, slice, scheme, dedup)))
    }

    /// Chooses how to find the slice of a path's function.
    fn choose_slice(
        &self,
        query: &PathQuery,
        wanted: Option<Scheme>,
        is_first: bool,
    ) -> Result<SliceChoice<'a>> {
        match wanted {
            Some(Scheme::Folded) => Ok(SliceChoice::by_pass("it was asked for".to_string())),
            Some(_) => {
                let choice = self.slice_by_uses(query)?;
                let reason = match choice.slice {
                    Some(_) => format!("it was asked for; {}", choice.reason),
                    None => format!("it was asked for, but all rules were gone through: {}", choice.reason),
                };
                Ok(SliceChoice { scheme: Scheme::Indexed, reason, ..choice })
            }
            None if is_first && self.uses.get().is_none() => self.slice_by_ranges(query),
            None => self.slice_by_uses(query),
        }
    }

    /// For a first search: by the index, if the function is in few of its ranges.
    fn slice_by_ranges(&self, query: &PathQuery) -> Result<SliceChoice<'a>> {
        let (Some(index), Some(Share { touched, all })) = (self.index, self.ranges(query)) else {
            return Ok(SliceChoice::by_pass("there is no index, and this is a first search".to_string()));
        };
        let reason = format!("{touched} of {all} index ranges hold the function");
        if touched.saturating_mul(RARE_IN_RANGES) > all {
            return Ok(SliceChoice::by_pass(reason));
        }
        let slice = self.with_scratch(|scratch| index.slice(self.fold, query, scratch))?;
        Ok(SliceChoice { slice: Some(slice), scheme: Scheme::Indexed, reason })
    }

    /// For a later search: up from the function's symbols, if they are few.
    fn slice_by_uses(&self, query: &PathQuery) -> Result<SliceChoice<'a>> {
        let may_be_rare =
            self.ranges(query).is_some_and(|share| share.touched.saturating_mul(2) <= share.all);
        let (items, uses) = (self.fold.items(), self.uses()?);
        let most = items / if may_be_rare { COMMON } else { RARE };
        let found = |scratch: &mut _| FunctionSlice::from_uses(self.fold, query.steps(), uses, scratch, most);
        let slice = self.with_scratch(found)?;
        let Some(slice) = slice else {
            return Ok(SliceChoice::by_pass(format!("more than {most} of {items} items hold the function")));
        };
        let reason = format!("few items hold the function: {} of {items}", slice.items());
        Ok(SliceChoice { slice: Some(slice), scheme: Scheme::Indexed, reason })
    }

    /// The slice for many paths of a function: rules that hold the same are one.
    fn slice_of_many(&self, query: &PathQuery) -> Result<Arc<FunctionSlice<'a>>> {
        if let Some(kept) = self.slices.get(query, None) {
            return Ok(kept.slice);
        }
        let SliceChoice { slice, scheme, .. } = self.slice_by_uses(query)?;
        let slice = match slice {
            Some(slice) => slice.deduplicated(),
            None => FunctionSlice::from_pass(self.fold, query.steps(), Dedup::Yes)?,
        };
        Ok(self.slices.keep(query, slice, scheme, Dedup::Yes).slice)
    }

    fn scan(&self, query: &PathQuery, scheme: Scheme) -> Result<ScanFound<'a>> {
        let scan = if scheme == Scheme::Chunks { ScanFound::of_holding } else { ScanFound::of_all };
        scan(self.fold, self.chunks, query, &self.scan_config)
    }

    /// The index ranges of a path's function, as a share of all.
    fn ranges(&self, query: &PathQuery) -> Option<Share> {
        self.index?.share(query.function())
    }

    fn uses(&self) -> Result<&UseIndex> {
        if let Some(uses) = self.uses.get() {
            return Ok(uses);
        }
        let uses = UseIndex::new(self.fold)?;
        Ok(self.uses.get_or_init(|| uses))
    }

    /// Each thread has a scratch of its own while it needs one.
    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let pooled = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = pooled.unwrap_or_else(|| Scratch::new(self.fold));
        let result = work(&mut scratch);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        result
    }
}
