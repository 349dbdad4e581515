//! Many searches in one fold: what they have in common is made once, and a planner chooses
//! how to look.
//!
//! Where symbols and rules are [used](UseIndex) is found out at the second search, or
//! when scheme 4 is asked for. The first paths of a common function go straight over all
//! rules (see [`direct`](super::direct)). After these, what the fold holds of the function is
//! made, which takes a few times as long, and kept: the next path of it costs only the parts
//! of that, which are fewer the more rules are alike without the rest. Memory: 8 bytes an
//! item for the uses, and what is kept of functions up to a limit.

use super::functions::{Functions, Step};
use super::index::PathIndex;
use super::many::{self, PathSummary};
use super::schemes::{Effort, Scheme, Share};
use super::slice::{Dedup, FunctionSlice, Scratch};
use super::{PathFound, PathQuery};
use crate::fold::Fold;
use crate::fold::reach::UseIndex;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Items of all functions that are kept: half a gigabyte.
const MOST_KEPT: usize = 1 << 26;

/// A function with more than one in so many items is common: going through all rules is
/// then faster than finding those that hold it.
const COMMON: usize = 40;

/// The same where nothing says that a function is rare: giving up on it then costs a few
/// hundredths of going through all rules.
const RARE: usize = 400;

/// So many paths of a function go straight over all rules before more is made of it.
const STRAIGHT: usize = 3;

/// So many paths of a function are looked for together.
const MANY: usize = 4;

/// Looks for paths in one fold; made once, used from any number of threads.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::{PathQuery, PathSearcher, Scheme};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// let f = [Field { key: "function", value: Value::Text(b"f") }];
/// collector.push_event(stream, &Event { role: Role::Enter, ..Event::named("f") })?;
/// for _ in 0..3 {
///     collector.push_event(stream, &Event { role: Role::Block, fields: &f, ..Event::named("B1") })?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let searcher = PathSearcher::new(&fold, None)?;
/// let f = searcher.functions().named(b"f").unwrap();
/// let query = PathQuery::new(searcher.functions(), f, vec![f.blocks().to_vec(); 2])?;
/// for scheme in [None, Some(Scheme::Folded), Some(Scheme::Indexed)] {
///     let answer = searcher.search(&query, scheme)?;
///     assert_eq!(answer.found.count()?, 2, "{}", answer.reason);
/// }
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct PathSearcher<'a> {
    fold: &'a Fold,
    functions: Functions,
    index: Option<PathIndex>,
    uses: OnceLock<UseIndex>,
    /// What is known of functions, by their names.
    known: Mutex<HashMap<Vec<u8>, Known<'a>>>,
    /// Items that are kept of all functions.
    items_kept: AtomicUsize,
    scratch: Mutex<Vec<Scratch>>,
    searches: AtomicUsize,
}

/// What is known of a function.
enum Known<'a> {
    /// So many paths of it were looked for.
    Asked(usize),
    Kept(Kept<'a>),
    /// What could be kept is so much that going over all rules is no slower.
    Everywhere,
}

/// What is kept of a function.
#[derive(Clone)]
struct Kept<'a> {
    slice: Arc<FunctionSlice<'a>>,
    /// How it was found.
    scheme: Scheme,
    /// Whether rules that hold the same are one part in it.
    is_joined: bool,
}

/// How to look for paths of a function.
struct Plan<'a> {
    /// What holds the function, where that was found without going through all rules.
    slice: Option<FunctionSlice<'a>>,
    scheme: Scheme,
    /// Why so.
    reason: String,
}

impl Plan<'_> {
    /// Through all rules.
    fn fully(reason: String) -> Self {
        Self { slice: None, scheme: Scheme::Folded, reason }
    }
}

/// What a search found, and how.
pub struct PathAnswer<'a> {
    /// The occurrences.
    pub found: PathFound<'a>,
    /// How they were found.
    pub scheme: Scheme,
    /// What was done for it.
    pub effort: Effort,
    /// Why it was done in this way.
    pub reason: String,
}

impl<'a> PathSearcher<'a> {
    /// Opens a fold, with its index if there is one. An index that does not
    /// [fit](PathIndex::fits) is an error.
    pub fn new(fold: &'a Fold, index: Option<PathIndex>) -> Result<Self> {
        if let Some(index) = &index
            && !index.fits(fold)?
        {
            return Err(Error::invalid("the index is of another fold"));
        }
        Ok(Self {
            fold,
            functions: Functions::of(fold.alphabet())?,
            index,
            uses: OnceLock::new(),
            known: Mutex::default(),
            items_kept: AtomicUsize::new(0),
            scratch: Mutex::default(),
            searches: AtomicUsize::new(0),
        })
    }

    /// The functions of the fold.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The index, if there is one.
    pub fn index(&self) -> Option<&PathIndex> {
        self.index.as_ref()
    }

    /// Finds out now where symbols and rules are used, and not at the second search.
    pub fn prepare(&self) -> Result<()> {
        self.uses().map(|_| ())
    }

    /// Forgets what is kept of functions.
    pub fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.items_kept.store(0, Ordering::Relaxed);
    }

    /// Looks for a path by scheme 2 or 4, or by whichever of the two is faster. Scheme 4
    /// gives up and goes through all rules where the function is in too many of them.
    pub fn search(&self, query: &PathQuery, scheme: Option<Scheme>) -> Result<PathAnswer<'a>> {
        if let Some(scheme @ (Scheme::Unfolded | Scheme::Chunks)) = scheme {
            return Err(Error::invalid(format_args!(
                "scheme {} needs the events themselves, not the fold",
                scheme.name()
            )));
        }
        let before = self.searches.fetch_add(1, Ordering::Relaxed);
        if let Some((kept, reason)) = self.known(query, scheme)? {
            return self.answer(query, &kept, reason);
        }
        let Plan { slice, scheme, reason } = self.plan(query, scheme, before > 0)?;
        if let Some(slice) = slice {
            return self.answer(query, &self.keep(query, slice, scheme, Dedup::No), reason);
        }
        let asked = self.ask(query);
        if asked < STRAIGHT
            && let Some(found) = PathFound::directly(self.fold, query)
        {
            let effort = self.effort(query, scheme, self.fold.rules().len() as u64);
            return Ok(PathAnswer { found, scheme, effort, reason });
        }
        let dedup = if asked == 0 { Dedup::No } else { Dedup::Yes };
        let slice = FunctionSlice::from_pass(self.fold, query.steps(), dedup)?;
        self.answer(query, &self.keep(query, slice, scheme, dedup), reason)
    }

    fn answer(&self, query: &PathQuery, kept: &Kept<'a>, reason: String) -> Result<PathAnswer<'a>> {
        let found = PathFound::new(&kept.slice, query)?;
        let effort = self.effort(query, kept.scheme, kept.slice.visited());
        Ok(PathAnswer { found, scheme: kept.scheme, effort, reason })
    }

    fn effort(&self, query: &PathQuery, scheme: Scheme, rules: u64) -> Effort {
        Effort {
            ranges: (scheme == Scheme::Indexed).then(|| self.ranges(query)).flatten(),
            rules: Some(Share { touched: rules, all: self.fold.rules().len() as u64 }),
            ..Effort::default()
        }
    }

    /// How many paths of the function were looked for before, with nothing kept that could be
    /// used now.
    fn ask(&self, query: &PathQuery) -> usize {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match all.entry_ref(query.function()).or_insert(Known::Asked(0)) {
            Known::Asked(paths) => std::mem::replace(paths, paths.saturating_add(1)),
            Known::Kept(_) => STRAIGHT,
            Known::Everywhere => 0,
        }
    }

    /// Looks for many paths at once. Those of one function that never calls itself share
    /// one pass, as long as they are plain: no gaps, one block at each place, at least two
    /// and not too many. Nothing for the others, which [`search`](Self::search) finds.
    pub fn search_many(&self, queries: &[PathQuery]) -> Result<Vec<Option<PathSummary>>> {
        let mut groups: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (index, query) in queries.iter().enumerate().filter(|(_, query)| many::is_plain(query)) {
            groups.entry(query.function()).or_default().push(index);
        }
        let mut summaries = vec![None; queries.len()];
        for group in groups.values().filter(|group| group.len() >= MANY) {
            let asked: Vec<&PathQuery> = group.iter().map(|&index| &queries[index]).collect();
            let slice = self.joined(asked[0])?;
            let found = many::search(&slice, &asked)?.into_iter().flatten();
            group.iter().zip(found).for_each(|(&index, summary)| summaries[index] = Some(summary));
        }
        Ok(summaries)
    }

    /// What the fold holds of the function of a path, rules that hold the same as one.
    fn joined(&self, query: &PathQuery) -> Result<Arc<FunctionSlice<'a>>> {
        if let Some((kept, _)) = self.known(query, None)? {
            return Ok(kept.slice);
        }
        let plan = self.plan(query, None, true)?;
        let slice = match plan.slice {
            Some(slice) => slice.deduplicated(),
            None => FunctionSlice::from_pass(self.fold, query.steps(), Dedup::Yes)?,
        };
        Ok(self.keep(query, slice, plan.scheme, Dedup::Yes).slice)
    }

    fn ranges(&self, query: &PathQuery) -> Option<Share> {
        let index = self.index.as_ref()?;
        Some(index.share(index.place(query.function())?))
    }

    /// What is kept of the function, if it was found by this scheme. The second search of a
    /// function also looks for rules that hold the same.
    fn known(&self, query: &PathQuery, scheme: Option<Scheme>) -> Result<Option<(Kept<'a>, String)>> {
        let known = match self.known.lock().unwrap_or_else(PoisonError::into_inner).get(query.function()) {
            Some(Known::Kept(kept)) => Some(kept.clone()),
            _ => None,
        };
        let is_meant = |kept: &Kept<'_>| {
            scheme.is_none_or(|scheme| scheme == kept.scheme) && kept.slice.steps() == query.steps()
        };
        let Some(mut kept) = known.filter(is_meant) else { return Ok(None) };
        if !kept.is_joined {
            kept.slice = Arc::new(kept.slice.deduplicated());
            kept.is_joined = true;
            let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(query.function().to_vec(), Known::Kept(kept.clone()));
        }
        let reason = format!(
            "an earlier search found what holds the function: {} of {} items",
            kept.slice.items(),
            self.fold.items()
        );
        Ok(Some((kept, reason)))
    }

    fn keep(&self, query: &PathQuery, slice: FunctionSlice<'a>, scheme: Scheme, dedup: Dedup) -> Kept<'a> {
        let items = slice.items();
        let is_joined = dedup == Dedup::Yes;
        let kept = Kept { slice: Arc::new(slice), scheme, is_joined };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match all.get(query.function()) {
            Some(Known::Kept(before)) => before.slice.items(),
            _ => 0,
        };
        let sum = self.items_kept.load(Ordering::Relaxed).saturating_sub(before).saturating_add(items);
        // Two thirds of the fold take no less time than all of it do straight.
        let is_worth_it = !is_joined || items.saturating_mul(3) <= self.fold.items().saturating_mul(2);
        if sum <= MOST_KEPT && is_worth_it {
            self.items_kept.store(sum, Ordering::Relaxed);
            all.insert(query.function().to_vec(), Known::Kept(kept.clone()));
        } else if is_joined {
            all.insert(query.function().to_vec(), Known::Everywhere);
        }
        kept
    }

    /// How to find out what the fold holds of a function, by this scheme or the faster one.
    fn plan(&self, query: &PathQuery, scheme: Option<Scheme>, is_one_of_many: bool) -> Result<Plan<'a>> {
        match scheme {
            Some(Scheme::Folded) => Ok(Plan::fully("it was asked for".to_string())),
            Some(_) => {
                let plan = self.by_uses_or_fully(query)?;
                let reason = match plan.slice {
                    Some(_) => format!("it was asked for; {}", plan.reason),
                    None => format!("it was asked for, but all rules were gone through: {}", plan.reason),
                };
                Ok(Plan { scheme: Scheme::Indexed, reason, ..plan })
            }
            None if is_one_of_many || self.uses.get().is_some() => self.by_uses_or_fully(query),
            None => self.by_ranges_or_fully(query),
        }
    }

    fn by_ranges(&self, query: &PathQuery) -> Result<Option<FunctionSlice<'a>>> {
        let Some(index) = &self.index else { return Ok(None) };
        let Some(function) = index.place(query.function()) else { return Ok(None) };
        self.with_scratch(|scratch| index.slice(self.fold, function, query.steps(), scratch)).map(Some)
    }

    /// For a first search: by the index if the function is in few of its ranges.
    fn by_ranges_or_fully(&self, query: &PathQuery) -> Result<Plan<'a>> {
        let Some(Share { touched, all }) = self.ranges(query) else {
            return Ok(Plan::fully("there is no index, and this is a first search".to_string()));
        };
        let reason = format!("{touched} of {all} index ranges hold the function");
        if touched.saturating_mul(16) <= all
            && let Some(slice) = self.by_ranges(query)?
        {
            return Ok(Plan { slice: Some(slice), scheme: Scheme::Indexed, reason });
        }
        Ok(Plan::fully(reason))
    }

    /// For one of many searches: up from the function's symbols if they are few.
    fn by_uses_or_fully(&self, query: &PathQuery) -> Result<Plan<'a>> {
        let may_be_rare =
            self.ranges(query).is_some_and(|share| share.touched.saturating_mul(2) <= share.all);
        let most = self.fold.items() / if may_be_rare { COMMON } else { RARE };
        if let Some(slice) = self.by_uses(query.steps(), most)? {
            let reason = format!("few items hold the function: {} of {}", slice.items(), self.fold.items());
            return Ok(Plan { slice: Some(slice), scheme: Scheme::Indexed, reason });
        }
        Ok(Plan::fully(format!("more than {most} of {} items hold the function", self.fold.items())))
    }

    fn by_uses(&self, steps: &[(Symbol, Step)], most: usize) -> Result<Option<FunctionSlice<'a>>> {
        let uses = self.uses()?;
        self.with_scratch(|scratch| FunctionSlice::from_uses(self.fold, steps, uses, scratch, most))
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
