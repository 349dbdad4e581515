//! Hot subpaths: the most expensive sequences of consecutive events (Larus, "Whole Program
//! Paths", section 4).
//!
//! A subpath is any sequence of events that occurs in a stream. Its *count* is the number
//! of its occurrences in all streams, those that overlap included; its *cost* is the
//! count times the sum of what its events cost. It is *hot* if the cost reaches a limit,
//! and *minimal* if no shorter prefix of at least the least length is hot. None of that
//! depends on the folder that made the fold.
//!
//! * [`search`](self) grows subpaths on the rules, each rule once, and is exact.
//! * `paper` is figure 7 of the paper, which reads the rules from left to right and starts
//!   again after each find, so that its selection depends on the rules.
//! * [`related`] groups the rotations and overlapping parts of one loop, for lists to read.

mod best;
mod chunks;
mod costs;
mod ends;
mod paper;
mod prefixes;
mod related;
mod search;
mod streams;
mod successors;
mod upper_bound;
mod windows;

pub use costs::{EventCosts, Limit};
pub use related::related;

use crate::fold::Fold;
use crate::interrupt;
use crate::{Error, Result, StreamId, Symbol};
use best::{Best, Candidate};
use search::{Search, Wanted};
use successors::{Items, SuccessorIndex};
use windows::Windows;

/// Which subpaths are searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The fewest events of a subpath.
    pub min_length: usize,
    /// The most events of a subpath.
    pub max_length: usize,
    /// The cost from which on a subpath is hot.
    pub min_cost: Limit,
    /// Which of the hot subpaths are selected.
    pub selection: Selection,
    /// How many of them are kept, the costliest first.
    pub keep: usize,
    /// How many threads search; what is found is the same.
    pub threads: usize,
}

impl Config {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            min_length: 2,
            max_length: 100,
            min_cost: Limit::Share(0.001),
            selection: Selection::Minimal,
            keep: usize::MAX,
            threads: 1,
        }
    }

    setters! {
        /// The fewest events of a subpath.
        min_length: usize,
        /// The most events of a subpath.
        max_length: usize,
        /// The cost from which on a subpath is hot.
        min_cost: Limit,
        /// Which of the hot subpaths are selected.
        selection: Selection,
        /// How many of them are kept, the costliest first.
        keep: usize,
        /// How many threads search; what is found is the same.
        threads: usize,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// Which of the hot subpaths are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Those that have no shorter hot prefix.
    #[default]
    Minimal,
    /// All.
    All,
    /// Those that figure 7 of the paper prints for the rules as they are.
    Paper,
}

/// The most events that a subpath may be asked to have.
const LARGEST_LENGTH: usize = 1_000_000;

impl Config {
    fn check(&self) -> Result<()> {
        let Self { min_length, max_length, .. } = *self;
        if min_length == 0 {
            return Err(Error::invalid("a subpath has at least 1 event"));
        }
        if min_length > max_length {
            return Err(Error::invalid(format_args!(
                "subpaths of at least {min_length} and at most {max_length} events do not exist"
            )));
        }
        if max_length > LARGEST_LENGTH {
            return Err(Error::limit(format_args!("subpaths have at most {LARGEST_LENGTH} events")));
        }
        Ok(())
    }
}

/// A hot subpath.
#[derive(Clone, Debug, PartialEq)]
pub struct HotSubpath {
    /// Its events.
    pub events: Vec<Symbol>,
    /// How often it occurs in all streams, overlaps included.
    pub count: u64,
    /// The count times the cost of its events.
    pub cost: f64,
    /// The cost as a share of the cost of all events. More than 1 where it overlaps
    /// itself.
    pub share: f64,
    /// The streams in which it occurs, by their indices, and how often in each.
    pub streams: Vec<(StreamId, u64)>,
}

/// The hot subpaths of a fold.
#[derive(Clone, Debug, PartialEq)]
pub struct HotSubpaths {
    /// The costliest first; among equals the shortest, then by symbols.
    pub subpaths: Vec<HotSubpath>,
    /// How many there are, kept or not.
    pub found: u64,
    /// The cost of all events.
    pub total: f64,
    /// The cost from which on a subpath was hot.
    pub limit: f64,
}

impl Fold {
    /// Finds hot subpaths.
    ///
    /// ```
    /// use loopfold::folders::{Folder, Outermost};
    /// use loopfold::questions::hot::{EventCosts, self, Limit};
    /// use loopfold::trace::{Collector, Event, Sink};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// for name in ["a", "b", "b", "c"].iter().cycle().take(16) {
    ///     collector.push_event(stream, &Event::named(name))?;
    /// }
    /// let fold = loopfold::folders::fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let config = hot::Config::new().max_length(3).min_cost(Limit::Cost(6.0));
    /// let hot = fold.hot_subpaths(&EventCosts::one_each(&fold), &config)?;
    /// let names = |symbols: &[loopfold::Symbol]| symbols.iter().map(|&s| fold.alphabet().label(s)).collect::<String>();
    /// let found: Vec<(String, u64)> = hot.subpaths.iter().map(|hot| (names(&hot.events), hot.count)).collect();
    /// assert_eq!(found, [("ab".into(), 4), ("bb".into(), 4), ("bc".into(), 4), ("ca".into(), 3)]);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn hot_subpaths(&self, costs: &EventCosts, config: &Config) -> Result<HotSubpaths> {
        config.check()?;
        let units = costs.units(self)?;
        let items = Items::new(self)?;
        let total = costs.total_units(items.symbol_counts())?;
        let limit = config.min_cost.units(costs, total)?;
        let wanted = Wanted {
            shortest: config.min_length,
            longest: config.max_length,
            limit,
            all: config.selection == Selection::All,
            max_event_cost: units.iter().copied().max().unwrap_or(0),
        };
        let mut best = Best::new(config.keep);
        let (successors, windows) = index(&items, config)?;
        let mut search = Search::new(&successors, units, config.max_length);
        match config.selection {
            Selection::Minimal | Selection::All => {
                search::run(&successors, units, windows.as_ref(), &wanted, config.threads, &mut best)?;
            }
            Selection::Paper => paper::scan(&successors, units, &wanted, &mut search, &mut best)?,
        }
        let (found, kept) = best.finish();
        let streams = streams::of(&successors, &mut search, &kept)?;
        let subpath = |(Candidate { cost, count, events }, streams): (Candidate, _)| HotSubpath {
            events: events.into_iter().map(Symbol::from_raw).collect(),
            count,
            cost: costs.amount(cost),
            share: cost as f64 / total as f64,
            streams,
        };
        Ok(HotSubpaths {
            subpaths: kept.into_iter().zip(streams).map(subpath).collect(),
            found,
            total: costs.amount(total),
            limit: costs.amount(limit),
        })
    }
}

/// What follows each node, and the windows that a search begins with, if it does: at the same time
/// if there is more than one thread.
fn index<'a>(items: &'a Items<'a>, config: &Config) -> Result<(SuccessorIndex<'a>, Option<Windows<'a>>)> {
    let windows = || match config.selection {
        Selection::Minimal | Selection::All => Windows::new(items, config.min_length, config.threads),
        Selection::Paper => Ok(None),
    };
    if config.threads < 2 {
        return Ok((SuccessorIndex::new(items), windows()?));
    }
    std::thread::scope(|scope| {
        let interrupt = interrupt::current();
        let successors = scope.spawn(move || interrupt.enter(|| SuccessorIndex::new(items)));
        let windows = windows();
        let successors = interrupt::joined(successors.join());
        Ok((successors, windows?))
    })
}
