//! Many searches in one fold: what they have in common is made once, and a planner chooses
//! how to look.
//!
//! Where symbols and rules are [used](super::uses) is found out at the second search, or
//! when scheme 4 is asked for. What the fold holds of a function is kept: the next path of
//! it costs only the parts of that, which are fewer the more rules are alike without the
//! rest. Memory: 8 bytes an item for the uses, and what is kept of functions up to a limit.

use super::functions::{Functions, Step};
use super::index::PathIndex;
use super::many::{self, PathSummary};
use super::projection::{Alike, Projection, Scratch};
use super::schemes::{Effort, Scheme, Share};
use super::uses::Uses;
use super::{PathFound, PathQuery};
use crate::fold::Fold;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Items of all functions that are kept: half a gigabyte.
const MOST_KEPT: usize = 1 << 26;

/// A function with more than one in so many items is common: going through all rules is
/// then faster than finding those that hold it.
const COMMON: usize = 40;

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
/// collector.push(stream, &Event { role: Role::Enter, ..Event::named("f") })?;
/// for _ in 0..3 {
///     collector.push(stream, &Event { role: Role::Block, fields: &f, ..Event::named("B1") })?;
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
    uses: OnceLock<Uses>,
    /// What the fold holds of functions, by their names.
    kept: Mutex<HashMap<Vec<u8>, Kept>>,
    /// Items that are kept of all functions.
    items_kept: AtomicUsize,
    scratch: Mutex<Vec<Scratch>>,
    searches: AtomicUsize,
}

/// What is kept of a function.
#[derive(Clone)]
struct Kept {
    projection: Arc<Projection>,
    /// How it was found.
    scheme: Scheme,
    /// Whether rules that hold the same are one part in it.
    is_joined: bool,
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
            kept: Mutex::default(),
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
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
        let (kept, reason) = match self.known(query, scheme)? {
            Some(known) => known,
            None => {
                let (projection, scheme, reason) = self.project(query, scheme, before > 0)?;
                (self.keep(query, projection, scheme), reason)
            }
        };
        let found = PathFound::new(self.fold, &kept.projection, query)?;
        let effort = Effort {
            segments: (kept.scheme == Scheme::Indexed).then(|| self.segments(query)).flatten(),
            rules: Some(Share { touched: kept.projection.visited(), all: self.fold.rules().len() as u64 }),
            ..Effort::default()
        };
        Ok(PathAnswer { found, scheme: kept.scheme, effort, reason })
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
            let projection = self.joined(asked[0])?;
            let found = many::search(self.fold, &projection, &asked)?.into_iter().flatten();
            group.iter().zip(found).for_each(|(&index, summary)| summaries[index] = Some(summary));
        }
        Ok(summaries)
    }

    /// What the fold holds of the function of a path, rules that hold the same as one.
    fn joined(&self, query: &PathQuery) -> Result<Arc<Projection>> {
        if let Some((kept, _)) = self.known(query, None)? {
            return Ok(kept.projection);
        }
        let (projection, scheme, _) = self.project(query, None, true)?;
        let kept = self.keep(query, projection, scheme);
        Ok(self.known(query, None)?.map_or(kept.projection, |(kept, _)| kept.projection))
    }

    fn segments(&self, query: &PathQuery) -> Option<Share> {
        let index = self.index.as_ref()?;
        Some(index.share(index.place(query.function())?))
    }

    /// What is kept of the function, if it was found by this scheme. The second search of a
    /// function also looks for rules that hold the same.
    fn known(&self, query: &PathQuery, scheme: Option<Scheme>) -> Result<Option<(Kept, String)>> {
        let known = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(query.function()).cloned();
        let is_meant = |kept: &Kept| {
            scheme.is_none_or(|scheme| scheme == kept.scheme) && kept.projection.steps() == query.steps()
        };
        let Some(mut kept) = known.filter(is_meant) else { return Ok(None) };
        if !kept.is_joined {
            kept.projection = Arc::new(kept.projection.joined(self.fold)?);
            kept.is_joined = true;
            let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(query.function().to_vec(), kept.clone());
        }
        let reason = format!(
            "an earlier search found what holds the function: {} of {} items",
            kept.projection.items(),
            self.fold.items()
        );
        Ok(Some((kept, reason)))
    }

    fn keep(&self, query: &PathQuery, projection: Projection, scheme: Scheme) -> Kept {
        let items = projection.items();
        let kept = Kept { projection: Arc::new(projection), scheme, is_joined: false };
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(query.function()).map_or(0, |known| known.projection.items());
        let sum = self.items_kept.load(Ordering::Relaxed).saturating_sub(before).saturating_add(items);
        if sum <= MOST_KEPT {
            self.items_kept.store(sum, Ordering::Relaxed);
            all.insert(query.function().to_vec(), kept.clone());
        }
        kept
    }

    /// What the fold holds of a function, by this scheme or the faster one, and why so.
    fn project(
        &self,
        query: &PathQuery,
        scheme: Option<Scheme>,
        is_one_of_many: bool,
    ) -> Result<(Projection, Scheme, String)> {
        let steps = query.steps();
        match scheme {
            Some(Scheme::Folded) => Ok((self.fully(steps)?, Scheme::Folded, "it was asked for".to_string())),
            Some(_) => {
                let (projection, chosen, reason) = self.by_uses_or_fully(steps)?;
                let reason = match chosen {
                    Scheme::Indexed => format!("it was asked for; {reason}"),
                    _ => format!("it was asked for, but all rules were gone through: {reason}"),
                };
                Ok((projection, Scheme::Indexed, reason))
            }
            None if is_one_of_many || self.uses.get().is_some() => self.by_uses_or_fully(steps),
            None => self.by_segments_or_fully(query),
        }
    }

    fn by_segments(&self, query: &PathQuery) -> Result<Option<Projection>> {
        let Some(index) = &self.index else { return Ok(None) };
        let Some(function) = index.place(query.function()) else { return Ok(None) };
        self.with_scratch(|scratch| index.projection(self.fold, function, query.steps(), scratch)).map(Some)
    }

    /// For a first search: by the index if the function is in few segments.
    fn by_segments_or_fully(&self, query: &PathQuery) -> Result<(Projection, Scheme, String)> {
        let share = self.segments(query);
        let (scheme, reason) = match share {
            None => (Scheme::Folded, "there is no index, and this is a first search".to_string()),
            Some(Share { touched, all }) => {
                let is_rare = touched.saturating_mul(16) <= all;
                let scheme = if is_rare { Scheme::Indexed } else { Scheme::Folded };
                (scheme, format!("{touched} of {all} segments hold the function"))
            }
        };
        if scheme == Scheme::Indexed
            && let Some(projection) = self.by_segments(query)?
        {
            return Ok((projection, scheme, reason));
        }
        Ok((self.fully(query.steps())?, Scheme::Folded, reason))
    }

    /// For one of many searches: up from the function's symbols if they are few.
    fn by_uses_or_fully(&self, steps: &[(Symbol, Step)]) -> Result<(Projection, Scheme, String)> {
        let most = self.fold.items() / COMMON;
        if let Some(projection) = self.by_uses(steps, most)? {
            let reason =
                format!("few items hold the function: {} of {}", projection.items(), self.fold.items());
            return Ok((projection, Scheme::Indexed, reason));
        }
        let reason = format!("more than {most} of {} items hold the function", self.fold.items());
        Ok((self.fully(steps)?, Scheme::Folded, reason))
    }

    fn fully(&self, steps: &[(Symbol, Step)]) -> Result<Projection> {
        Projection::of(self.fold, steps, Alike::Apart)
    }

    fn by_uses(&self, steps: &[(Symbol, Step)], most: usize) -> Result<Option<Projection>> {
        let uses = self.uses()?;
        self.with_scratch(|scratch| uses.projection(self.fold, steps, scratch, most))
    }

    fn uses(&self) -> Result<&Uses> {
        if let Some(uses) = self.uses.get() {
            return Ok(uses);
        }
        let uses = Uses::of(self.fold)?;
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
