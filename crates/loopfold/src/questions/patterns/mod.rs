//! Finds patterns: sequences of events that repeat in a stream, but not contiguously.
//!
//! They are searched in [collapsed](LoopCollapsed) streams, with each contiguous repetition
//! written once, by one of two detectors: [`Ngrams`], in one pass, plus the bodies of the main
//! loops if they recur elsewhere; or [`Repeats`], which finds all. The results of both are
//! processed in the same way: an occurrence that is part of one of a longer pattern belongs to
//! that one, and of overlapping ones the left one counts. A pattern that cuts through a loop
//! takes only one of its iterations, so that part stays available to others. Then repetitions
//! are added again, equal patterns of several streams are merged, and all are ranked.
//!
//! Streams with the same collapsed form are processed once. Time: that of the detectors, which
//! with n-grams is less than collapsing loops takes; memory is O(loop-collapsed streams).

mod choice;
mod covered;
mod exact;
mod holders;
mod kept;
mod loop_collapsed;
mod ngram;
mod suffixes;

pub use choice::{ENVELOPE, EventChoice, MemoryBudget, Only};
pub use exact::{Repeat, Repeats};
pub use holders::Holders;
pub use kept::KeptPositions;
pub use loop_collapsed::{CollapsedLoop, FoldStream, LoopCollapsed};
pub(in crate::questions) use loop_collapsed::{Located, LoopInstance, Piece};
pub use ngram::{NgramPattern, Ngrams};

use crate::interrupt::Pace;
use crate::{Result, Symbol};
use covered::{CoveredIntervals, apart};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::hash::BuildHasher as _;
use suffixes::Suffixes;

/// How to look for patterns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatternMethod {
    /// In one pass, as in the paper; see [`Ngrams`] for what it skips.
    #[default]
    Ngrams,
    /// All maximal repeats; see [`Repeats`].
    Exact,
}

/// Which patterns come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankBy {
    /// By the events that belong to them.
    #[default]
    Events,
    /// By their count.
    Count,
    /// By their length.
    Length,
    /// By the number of processes.
    Processes,
}

/// Settings of the search for patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// How to look for them.
    pub method: PatternMethod,
    /// Which come first.
    pub rank_by: RankBy,
    /// Only patterns that occur at least so often, repetitions added back.
    pub min_count: u64,
    /// The most patterns that are kept, the first ones.
    pub keep: usize,
    /// For how many of them, the first ones, it is counted how often they occur inside longer
    /// patterns; with n-grams that is a search of its own.
    pub look_inside: usize,
}

impl Config {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            method: PatternMethod::Ngrams,
            rank_by: RankBy::Events,
            min_count: 2,
            keep: usize::MAX,
            look_inside: usize::MAX,
        }
    }

    setters! {
        /// How to look for them.
        method: PatternMethod,
        /// Which come first.
        rank_by: RankBy,
        /// Only patterns that occur at least so often, repetitions added back.
        min_count: u64,
        /// The most patterns that are kept, the first ones.
        keep: usize,
        /// For how many of them, the first ones, it is counted how often they occur inside longer
        /// patterns; with n-grams that is a search of its own.
        look_inside: usize,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a pattern is in a loop-collapsed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternPlace {
    /// Its first symbol.
    pub start: u32,
    /// How often it occurs here: the times of the loops around it.
    pub times: u64,
}

/// An interval of a loop-collapsed stream that occurs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurringPlace {
    /// Its first symbol.
    pub start: u32,
    /// The symbol behind its last one.
    pub end: u32,
    /// How often its pattern occurs in the stream.
    pub count: u64,
}

/// The places of a pattern in streams that have the same collapsed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternPlaces {
    /// Which streams: an index to [`Patterns::classes`].
    pub class: usize,
    /// In their order; they do not overlap.
    pub places: Vec<PatternPlace>,
}

/// A sequence of events that repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its events, each repetition inside it once.
    pub symbols: Vec<Symbol>,
    /// Where it is, by classes of streams.
    pub classes: Vec<PatternPlaces>,
    /// How often it occurs in all streams, repetitions added back.
    pub count: u64,
    /// At how many separate places; those directly after one another are one.
    pub places: u64,
    /// How often it also occurs inside longer patterns.
    pub inside: u64,
    /// The fewest events of an occurrence, with repetitions inside written out.
    pub fewest_events: u64,
    /// The most: loops inside may differ between places.
    pub most_events: u64,
    /// How many events of all streams belong to its occurrences.
    pub explained: u128,
    /// How many streams have it.
    pub processes: usize,
    /// Whether no longer repeat contains it, if that was computed.
    pub is_supermaximal: Option<bool>,
}

/// The patterns of several streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// In the order that was requested.
    pub patterns: Vec<Pattern>,
    /// Streams that have the same collapsed form, by their indices.
    pub classes: Vec<Vec<usize>>,
    /// How many patterns were found; some may not have been kept.
    pub found: u64,
    /// Whether there were so many repeats that not all were examined.
    pub is_cut: bool,
}

/// The most repeats of a class that are settled, and places of them.
const MOST_REPEATS: usize = 1 << 20;
const MOST_PLACES: usize = 1 << 25;
/// The most symbols of all patterns together.
const MOST_SYMBOLS: usize = 1 << 26;
/// Up to this many patterns are searched for one by one; for more, the suffixes are sorted.
const FEW: usize = 32;

/// What a detector has found in a stream.
struct Candidate {
    length: u32,
    /// In their order.
    starts: Vec<u32>,
    is_supermaximal: Option<bool>,
}

/// A class of streams while patterns are put together.
struct Class<'a> {
    collapsed: &'a LoopCollapsed,
    streams: Vec<usize>,
    /// The places of its patterns, and the length of the longest.
    covered: CoveredIntervals,
    longest: u32,
    /// Where many patterns are searched for.
    suffixes: Option<Suffixes>,
}

impl Patterns {
    /// The patterns of streams.
    ///
    /// ```
    /// use loopfold::Symbol;
    /// use loopfold::folders::{Folder, Outermost};
    /// use loopfold::questions::patterns::{LoopCollapsed, self, Patterns};
    ///
    /// let events: Vec<Symbol> = "abc.abcabcabcabc".bytes().map(|name| Symbol::new(name.into()).unwrap()).collect();
    /// let collapsed = LoopCollapsed::of(&events, &|events, builder| Outermost::default().fold(events, builder))?;
    /// let patterns = Patterns::of(&[&collapsed], &patterns::Config::new())?;
    /// let [pattern] = &patterns.patterns[..] else { panic!() };
    /// assert_eq!((pattern.count, pattern.places, pattern.explained), (5, 2, 15));
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn of(streams: &[&LoopCollapsed], config: &Config) -> Result<Self> {
        let mut classes = classes_of(streams);
        let mut found = Patterns::default();
        let mut known: HashMap<&[Symbol], usize> = HashMap::new();
        let mut room = MOST_SYMBOLS;
        for (index, class) in classes.iter_mut().enumerate() {
            let mut candidates = found.candidates(class.collapsed, config.method)?;
            candidates
                .sort_by_key(|candidate| (Reverse(candidate.length), candidate.starts.first().copied()));
            let mut pace = Pace::default();
            for candidate in candidates {
                pace.steps(candidate.starts.len());
                let Some(settled) = class.settle(candidate) else { continue };
                let symbols = class.symbols(settled.places[0].start, settled.length);
                let pattern = class.pattern(index, settled);
                match known.get(symbols) {
                    Some(&other) => found.patterns[other].join(pattern),
                    None if symbols.len() > room => found.is_cut = true,
                    None => {
                        room -= symbols.len();
                        known.insert(symbols, found.patterns.len());
                        found.patterns.push(Pattern { symbols: symbols.to_vec(), ..pattern });
                    }
                }
            }
        }
        found.patterns.retain(|pattern| pattern.count >= config.min_count);
        found.found = found.patterns.len() as u64;
        found.patterns.sort_by_cached_key(|pattern| pattern.rank(config.rank_by));
        found.patterns.truncate(config.keep);
        if config.method == PatternMethod::Ngrams {
            found.look_inside(&mut classes, config.look_inside)?;
        }
        found.classes = classes.into_iter().map(|class| class.streams).collect();
        Ok(found)
    }

    /// The streams that have a pattern, each with its places.
    pub fn streams_of<'a>(
        &'a self,
        pattern: &'a Pattern,
    ) -> impl Iterator<Item = (usize, &'a [PatternPlace])> + 'a {
        pattern.classes.iter().flat_map(|places| {
            self.classes[places.class].iter().map(move |&stream| (stream, &places.places[..]))
        })
    }

    /// For each of this many streams the intervals in which patterns occur, and how often the
    /// pattern occurs in the stream.
    pub fn places(&self, streams: usize) -> Vec<Vec<RecurringPlace>> {
        let mut places = vec![Vec::new(); streams];
        for pattern in &self.patterns {
            let length = pattern.symbols.len() as u32;
            for (stream, own) in self.streams_of(pattern) {
                let count = own.iter().fold(0u64, |sum, place| sum.saturating_add(place.times));
                let place = |&PatternPlace { start, .. }: &PatternPlace| RecurringPlace {
                    start,
                    end: start + length,
                    count,
                };
                places[stream].extend(own.iter().map(place));
            }
        }
        places
    }

    fn candidates(&mut self, collapsed: &LoopCollapsed, method: PatternMethod) -> Result<Vec<Candidate>> {
        if method == PatternMethod::Ngrams {
            return grown_candidates(collapsed);
        }
        let repeats = Repeats::of(collapsed.symbols())?;
        let chosen = chosen_repeats(collapsed, &repeats);
        self.is_cut |= chosen.len() < repeats.all().len();
        let candidates = chosen.iter().map(|repeat| Candidate {
            length: repeat.length as u32,
            starts: repeats.positions(repeat),
            is_supermaximal: Some(repeat.is_supermaximal),
        });
        Ok(candidates.collect())
    }

    /// Counts occurrences inside longer patterns: with n-grams not all of them were seen.
    fn look_inside(&mut self, classes: &mut [Class<'_>], first: usize) -> Result<()> {
        let mut patterns = vec![0; classes.len()];
        self.patterns
            .iter()
            .take(first)
            .flat_map(|pattern| &pattern.classes)
            .for_each(|of| patterns[of.class] += 1);
        for (class, patterns) in classes.iter_mut().zip(patterns) {
            if patterns > FEW {
                class.suffixes = Some(Suffixes::of(class.collapsed.symbols())?);
            }
        }
        for pattern in self.patterns.iter_mut().take(first) {
            let inside =
                |places: &PatternPlaces| classes[places.class].inside(&pattern.symbols, &places.places);
            pattern.inside = pattern.classes.iter().map(inside).fold(0, u64::saturating_add);
        }
        Ok(())
    }
}

/// Equal loop-collapsed streams are one class, in the order of their first streams.
fn classes_of<'a>(streams: &[&'a LoopCollapsed]) -> Vec<Class<'a>> {
    let hasher = foldhash::fast::RandomState::default();
    let mut classes: Vec<Class<'a>> = Vec::new();
    let mut known: HashMap<*const LoopCollapsed, usize> = HashMap::new();
    let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::new();
    for (stream, &collapsed) in streams.iter().enumerate() {
        let class = *known.entry(std::ptr::from_ref(collapsed)).or_insert_with(|| {
            let candidates = by_hash.entry(hasher.hash_one(collapsed.symbols())).or_default();
            let equal = candidates.iter().copied().find(|&class| classes[class].collapsed == collapsed);
            equal.unwrap_or_else(|| {
                let covered = CoveredIntervals::new(collapsed.symbols().len());
                classes.push(Class { collapsed, streams: Vec::new(), covered, longest: 0, suffixes: None });
                candidates.push(classes.len() - 1);
                classes.len() - 1
            })
        });
        classes[class].streams.push(stream);
    }
    classes
}

/// What the n-gram detector finds, and the bodies of the main loops that come again elsewhere.
/// It does not detect these itself: a match that has grown into the beginning of a loop skips
/// its iterations.
fn grown_candidates(collapsed: &LoopCollapsed) -> Result<Vec<Candidate>> {
    let symbols = collapsed.symbols();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut known: HashMap<&[Symbol], usize> = HashMap::new();
    for NgramPattern { length, positions } in Ngrams::of(symbols)? {
        let start = positions[0] as usize;
        known.insert(&symbols[start..start + length], candidates.len());
        candidates.push(Candidate { length: length as u32, starts: positions, is_supermaximal: None });
    }
    for body in main_bodies(collapsed) {
        let starts = occurrences(symbols, body);
        let length = body.len() as u32;
        if let Some(&known) = known.get(body) {
            candidates[known].starts = starts;
        } else if starts.last().is_some_and(|last| last - starts[0] >= length) {
            candidates.push(Candidate { length, starts, is_supermaximal: None });
        }
    }
    Ok(candidates)
}

/// The bodies of loops that hold a hundredth of the stream or more, at most [`FEW`], the
/// largest loops first.
fn main_bodies(collapsed: &LoopCollapsed) -> Vec<&[Symbol]> {
    let all = collapsed.loops().iter().enumerate();
    let sized = all.map(|(index, found)| (collapsed.loop_events(index), found));
    let is_main = |(size, found): &(u128, &CollapsedLoop)| {
        found.end - found.start >= 2 && size * 100 >= u128::from(collapsed.length())
    };
    let mut loops: Vec<(u128, &CollapsedLoop)> = sized.filter(is_main).collect();
    loops.sort_by_key(|&(size, _)| Reverse(size));
    let mut bodies: Vec<&[Symbol]> = Vec::new();
    for (_, found) in loops {
        let body = &collapsed.symbols()[found.start as usize..found.end as usize];
        if bodies.len() < FEW && !bodies.contains(&body) {
            bodies.push(body);
        }
    }
    bodies
}

/// Where a sequence is, in order; occurrences may overlap.
fn occurrences(symbols: &[Symbol], sequence: &[Symbol]) -> Vec<u32> {
    let windows = symbols.windows(sequence.len()).zip(0..);
    windows.filter(|(window, _)| *window == sequence).map(|(_, start)| start).collect()
}

/// The repeats that are settled: all, or those that may explain most.
fn chosen_repeats(collapsed: &LoopCollapsed, repeats: &Repeats) -> Vec<Repeat> {
    let all = repeats.all();
    let places = all.iter().map(|repeat| repeats.count(repeat)).fold(0usize, usize::saturating_add);
    if all.len() <= MOST_REPEATS && places <= MOST_PLACES {
        return all.to_vec();
    }
    // How often up to each suffix, in their order, its first event occurs.
    let mut weights: Vec<u64> = vec![0];
    for &start in &repeats.suffixes().starts {
        let times = collapsed.times(start as usize, start as usize + 1);
        weights.push(weights[weights.len() - 1].saturating_add(times));
    }
    let at_most = |repeat: &Repeat| {
        let ranks = repeats.ranks(repeat);
        u128::from(weights[ranks.end] - weights[ranks.start]) * repeat.length as u128
    };
    let mut chosen = all.to_vec();
    chosen.sort_by_cached_key(|repeat| (Reverse(at_most(repeat)), Reverse(repeat.length)));
    let mut left = MOST_PLACES;
    chosen.retain(|repeat| {
        let fits = repeats.count(repeat) <= left;
        left -= if fits { repeats.count(repeat) } else { 0 };
        fits
    });
    chosen.truncate(MOST_REPEATS);
    chosen
}

/// What a candidate has been given.
struct Settled {
    length: u32,
    places: Vec<PatternPlace>,
    inside: u64,
    is_supermaximal: Option<bool>,
}

impl<'a> Class<'a> {
    /// Gives a candidate what does not belong to a longer one: they come in that order. Returns
    /// `None` if all of it does.
    fn settle(&mut self, candidate: Candidate) -> Option<Settled> {
        let Candidate { length, starts, is_supermaximal } = candidate;
        let is_inside = |&start: &u32| self.covered.cover(start, start + length);
        let inside = apart(starts.iter().copied().filter(is_inside), length);
        let inside = inside.map(|start| self.times(start, length)).fold(0, u64::saturating_add);
        let own = apart(starts.iter().copied().filter(|start| !is_inside(start)), length);
        let places: Vec<PatternPlace> =
            own.map(|start| PatternPlace { start, times: self.times(start, length) }).collect();
        for place in &places {
            let (begin, end) = self.collapsed.uncut(place.start as usize, (place.start + length) as usize);
            self.covered.add(begin as u32, end as u32);
        }
        if places.is_empty() {
            return None;
        }
        self.longest = self.longest.max(length);
        Some(Settled { length, places, inside, is_supermaximal })
    }

    fn symbols(&self, start: u32, length: u32) -> &'a [Symbol] {
        &self.collapsed.symbols()[start as usize..(start + length) as usize]
    }

    /// A pattern with all that its places say; its symbols are still to be set.
    fn pattern(&self, class: usize, settled: Settled) -> Pattern {
        let Settled { length, places, inside, is_supermaximal } = settled;
        let copies = self.streams.len() as u64;
        let mut pattern = Pattern {
            symbols: Vec::new(),
            classes: Vec::new(),
            count: 0,
            places: 0,
            inside: inside.saturating_mul(copies),
            fewest_events: u64::MAX,
            most_events: 0,
            explained: 0,
            processes: self.streams.len(),
            is_supermaximal,
        };
        let mut behind = None;
        for &PatternPlace { start, times } in &places {
            let end = start + length;
            let events = self.collapsed.events(start as usize, end as usize);
            pattern.count = pattern.count.saturating_add(times.saturating_mul(copies));
            pattern.places += if behind == Some(start) { 0 } else { copies };
            pattern.fewest_events = pattern.fewest_events.min(events);
            pattern.most_events = pattern.most_events.max(events);
            let explained = u128::from(times) * u128::from(events);
            pattern.explained = pattern.explained.saturating_add(explained.saturating_mul(copies.into()));
            behind = Some(end);
        }
        pattern.classes.push(PatternPlaces { class, places });
        pattern
    }

    fn times(&self, start: u32, length: u32) -> u64 {
        self.collapsed.times(start as usize, (start + length) as usize)
    }

    /// How often a pattern with these places also occurs inside longer ones.
    fn inside(&self, pattern: &[Symbol], places: &[PatternPlace]) -> u64 {
        if pattern.len() >= self.longest as usize {
            return 0;
        }
        let length = pattern.len() as u32;
        let is_own = |start: &u32| places.binary_search_by_key(start, |place| place.start).is_ok();
        let is_inside = |start: &u32| !is_own(start) && self.covered.cover(*start, start + length);
        let mut inside = self.occurrences(pattern);
        inside.retain(is_inside);
        let times = apart(inside.into_iter(), length).map(|start| self.times(start, length));
        times.fold(0, u64::saturating_add).saturating_mul(self.streams.len() as u64)
    }

    /// Where a sequence is, in order; occurrences may overlap.
    fn occurrences(&self, sequence: &[Symbol]) -> Vec<u32> {
        let symbols = self.collapsed.symbols();
        match &self.suffixes {
            Some(suffixes) => {
                let mut places = suffixes.places(symbols, sequence).to_vec();
                places.sort_unstable();
                places
            }
            None => occurrences(symbols, sequence),
        }
    }
}

impl Pattern {
    /// Adds what is known of the same pattern in other streams.
    fn join(&mut self, other: Pattern) {
        self.classes.extend(other.classes);
        self.count = self.count.saturating_add(other.count);
        self.places = self.places.saturating_add(other.places);
        self.inside = self.inside.saturating_add(other.inside);
        self.fewest_events = self.fewest_events.min(other.fewest_events);
        self.most_events = self.most_events.max(other.most_events);
        self.explained = self.explained.saturating_add(other.explained);
        self.processes += other.processes;
        let both = self.is_supermaximal.zip(other.is_supermaximal);
        self.is_supermaximal = both.map(|(one, other)| one && other);
    }

    /// The smaller, the earlier it comes: what was requested first, then the others in the
    /// order events, count, length, processes; and finally its place.
    fn rank(&self, by: RankBy) -> impl Ord + use<> {
        let (count, length, processes) =
            (u128::from(self.count), u128::from(self.most_events), self.processes as u128);
        let first = match by {
            // Inner loops whose counts vary are not part of the constant content.
            RankBy::Events if self.fewest_events < self.most_events => count * self.symbols.len() as u128,
            RankBy::Events => self.explained,
            RankBy::Count => count,
            RankBy::Length => length,
            RankBy::Processes => processes,
        };
        let place = self.classes.first().map(|places| (places.class, places.places[0].start));
        (Reverse([first, self.explained, count, length, processes]), place)
    }
}
