//! Adds up waits by class, place, pair of processes and iteration.
//!
//! O(1) a wait. Memory: O(places × pairs), and 8 bytes for each iteration of a place.

use super::Class;
use super::walk::{LoopNests, NOWHERE, Site, shift_of};
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;
use std::cmp::Reverse;

/// Some waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How long they are together, in nanoseconds.
    pub time: u64,
    /// How many there are.
    pub count: u64,
}

impl Sum {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self { time: self.time.saturating_add(other.time), count: self.count.saturating_add(other.count) }
    }

    fn add(&mut self, time: u64) {
        *self = self.plus(Self { time, count: 1 });
    }
}

/// The waits of one process for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The process that waits.
    pub waiting: u32,
    /// The process that it waits for.
    pub cause: u32,
    /// The waits.
    pub sum: Sum,
}

/// The waits of a class at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceWaits {
    /// The class.
    pub class: Class,
    /// The call, in [`Waits::alphabet`](super::Waits::alphabet).
    pub call: Symbol,
    /// The function; see [`Waits::function`](super::Waits::function).
    pub(super) function: Option<u32>,
    /// The times of the loops around it, the outermost first.
    pub loops: Vec<u64>,
    /// All waits.
    pub sum: Sum,
    /// Those that are in wrong order.
    pub wrong_order: Sum,
    /// By the processes, the longest first.
    pub pairs: Vec<Pair>,
    /// The iteration with the most waiting. `None` outside of loops.
    pub worst: Option<WorstIteration>,
}

impl PlaceWaits {
    /// The process that waits most, and how long.
    pub fn most_waiting(&self) -> (u32, u64) {
        most(self.pairs.iter().map(|pair| (pair.waiting, pair.sum.time)))
    }

    /// The process that causes most, and how much.
    pub fn main_cause(&self) -> (u32, u64) {
        most(self.pairs.iter().map(|pair| (pair.cause, pair.sum.time)))
    }
}

/// The number with the largest sum, the lowest of those that are equal.
fn most(parts: impl Iterator<Item = (u32, u64)>) -> (u32, u64) {
    let mut sums: HashMap<u32, u64> = HashMap::new();
    for (number, time) in parts {
        let sum = sums.entry(number).or_default();
        *sum = sum.saturating_add(time);
    }
    sums.into_iter().max_by_key(|&(number, sum)| (sum, Reverse(number))).unwrap_or_default()
}

/// An iteration of outermost loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstIteration {
    /// How many iterations the loops have.
    pub times: u64,
    /// Which one it is, from 0.
    pub first: u64,
    /// The same, or the last one if several are taken as one.
    pub last: u64,
    /// The time that is waited in it.
    pub time: u64,
    /// When it begins: the first enter of an event in it, in all streams whose outermost loop has
    /// as many iterations.
    pub start: Option<i64>,
}

/// The time in calls that waited for nobody, at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// The call, in [`Waits::alphabet`](super::Waits::alphabet).
    pub call: Symbol,
    /// The function; see [`Waits::function_of`](super::Waits::function_of).
    pub(super) function: Option<u32>,
    /// The times of the loops around it, the outermost first.
    pub loops: Vec<u64>,
    /// The calls.
    pub sum: Sum,
    /// By the processes, the longest first.
    pub ranks: Vec<(u32, Sum)>,
    /// The iteration with the most of that time. `None` outside of loops.
    pub worst: Option<WorstIteration>,
}

/// What a process waits, and what others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankWaits {
    /// The process.
    pub rank: u32,
    /// Waits of others that it causes.
    pub caused: Sum,
    /// Its own waits.
    pub waited: Sum,
}

/// Pairs of processes and iterations, of all places together.
const MOST_KEPT: usize = 1 << 26;

/// The class, the call, the function and the nest of a place.
pub(super) type PlaceKey = (Option<Class>, Symbol, u32, u32);

#[derive(Default)]
pub(super) struct Tally {
    pub(super) nests: LoopNests,
    numbers: HashMap<PlaceKey, u32, foldhash::fast::RandomState>,
    pub(super) places: Vec<Place>,
    /// When the iterations of outermost loops begin, by the times of the loops.
    pub(super) starts: Starts,
    /// Waits of processes that are not asked about, for those that are.
    pub(super) others: Pairs,
    /// The time in calls after their waits.
    pub(super) after_waits: u64,
    /// How many pairs and iterations are kept.
    kept: usize,
}

/// One wait, or a call that did not wait.
pub(super) struct Wait {
    pub(super) class: Option<Class>,
    pub(super) site: Site,
    pub(super) waiting: u32,
    pub(super) cause: u32,
    pub(super) time: u64,
    pub(super) is_wrong_order: bool,
}

pub(super) struct Place {
    pub(super) class: Option<Class>,
    pub(super) site: Site,
    pub(super) pairs: Pairs,
    pub(super) iterations: Vec<u64>,
    pub(super) wrong_order: Sum,
}

/// All sums.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) classes: [Sum; Class::ALL.len()],
    pub(super) wrong_order: Sum,
    pub(super) places: Vec<PlaceWaits>,
    pub(super) ranks: Vec<RankWaits>,
    pub(super) iterations: Vec<WorstIteration>,
    pub(super) pairs: Vec<Pair>,
    pub(super) calls: Vec<CallTime>,
}

impl Tally {
    /// An event of an iteration enters.
    pub(super) fn begin(&mut self, site: Site, enter: i64) {
        let Some(times) = self.nests.outermost(site.nest) else { return };
        let starts = self.starts.entry(times).or_default();
        let iteration = site.iteration as usize;
        if starts.len() <= iteration {
            starts.resize(iteration + 1, None);
        }
        let start = &mut starts[iteration];
        *start = Some(start.map_or(enter, |start| start.min(enter)));
    }

    /// Adds a wait of a process that is not asked about for one that is.
    pub(super) fn add_other(&mut self, wait: &Wait) {
        self.others.entry((wait.waiting, wait.cause)).or_default().add(wait.time);
    }

    /// Adds a wait.
    pub(super) fn add(&mut self, wait: &Wait) -> Result<()> {
        let &Wait { class, site, waiting, cause, time, is_wrong_order } = wait;
        let place = self.place(class, site);
        let before = place.pairs.len() + place.iterations.len();
        place.pairs.entry((waiting, cause)).or_default().add(time);
        let iteration = site.iteration as usize;
        if place.iterations.len() <= iteration {
            place.iterations.resize(iteration + 1, 0);
        }
        place.iterations[iteration] = place.iterations[iteration].saturating_add(time);
        if is_wrong_order {
            place.wrong_order.add(time);
        }
        let more = place.pairs.len() + place.iterations.len() - before;
        self.keep(more)
    }

    /// The place of a wait, which is new or known.
    fn place(&mut self, class: Option<Class>, site: Site) -> &mut Place {
        let next = self.places.len();
        let key = (class, site.symbol, site.function, site.nest);
        let number = *self.numbers.entry(key).or_insert(next as u32) as usize;
        if number == next {
            self.places.push(Place::new(class, site));
        }
        &mut self.places[number]
    }

    fn keep(&mut self, more: usize) -> Result<()> {
        self.kept += more;
        if self.kept > MOST_KEPT {
            return Err(Error::limit("more than 2^26 pairs of processes and iterations that wait"));
        }
        Ok(())
    }

    /// Adds the waits at a place.
    pub(super) fn add_place(&mut self, more: &Place) -> Result<()> {
        let place = self.place(more.class, more.site);
        let before = place.pairs.len() + place.iterations.len();
        place.add(more);
        let more = place.pairs.len() + place.iterations.len() - before;
        self.keep(more)
    }

    /// Adds when the iterations of loops begin.
    pub(super) fn add_starts(&mut self, times: u64, more: &[Option<i64>]) {
        let starts = self.starts.entry(times).or_default();
        if starts.len() < more.len() {
            starts.resize(more.len(), None);
        }
        for (start, &more) in starts.iter_mut().zip(more) {
            *start = [*start, more].into_iter().flatten().min();
        }
    }

    /// All sums; `shown` is the call of a place for each symbol.
    pub(super) fn finish(self, shown: &[Symbol]) -> Sums {
        let mut sums = Sums::default();
        let mut ranks: HashMap<u32, RankWaits> = HashMap::new();
        let mut by_times: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut pairs = self.others;
        let starts = &self.starts;
        add_to_ranks(&pairs, &mut ranks);
        for ((class, call, function, nest), place) in merged(self.places, shown) {
            let loops = self.nests.times(nest);
            let function = (function != NOWHERE).then_some(function);
            let Some(class) = class else {
                sums.calls.push(place.call_time(call, function, loops, starts));
                continue;
            };
            add_to_ranks(&place.pairs, &mut ranks);
            for (&pair, &sum) in &place.pairs {
                let known = pairs.entry(pair).or_default();
                *known = known.plus(sum);
            }
            if let Some(&times) = loops.first() {
                add_all(by_times.entry(times).or_default(), &place.iterations);
            }
            let place = place.finish(class, call, function, loops, starts);
            sums.classes[class as usize] = sums.classes[class as usize].plus(place.sum);
            sums.wrong_order = sums.wrong_order.plus(place.wrong_order);
            sums.places.push(place);
        }
        sums.ranks = ranks.into_values().collect();
        sums.iterations = by_times.iter().filter_map(|(&times, sums)| worst(times, sums, starts)).collect();
        sums.pairs = sorted_pairs(&pairs);
        sums.sort();
        sums
    }
}

/// The places by class, call, function and nest: symbols that differ only in their envelope are
/// one.
fn merged(places: Vec<Place>, shown: &[Symbol]) -> HashMap<PlaceKey, Place> {
    let mut merged: HashMap<_, Place> = HashMap::new();
    for place in places {
        let Site { symbol, function, nest, .. } = place.site;
        let (class, site) = (place.class, place.site);
        let known = merged.entry((class, shown[symbol.index()], function, nest));
        known.or_insert_with(|| Place::new(class, site)).add(&place);
    }
    merged
}

impl Sums {
    fn sort(&mut self) {
        self.places.sort_unstable_by(|a, b| {
            let key = |place: &PlaceWaits| (Reverse(place.sum.time), place.class, place.call, place.function);
            key(a).cmp(&key(b)).then_with(|| a.loops.cmp(&b.loops))
        });
        self.calls.sort_unstable_by(|a, b| {
            let key = |call: &CallTime| (Reverse(call.sum.time), call.call, call.function);
            key(a).cmp(&key(b)).then_with(|| a.loops.cmp(&b.loops))
        });
        self.ranks.sort_unstable_by_key(|rank| (Reverse(rank.caused.time), rank.rank));
        self.iterations.sort_unstable_by_key(|worst| (Reverse(worst.time), worst.times));
    }
}

impl Place {
    pub(super) fn new(class: Option<Class>, site: Site) -> Self {
        let wrong_order = Sum::default();
        Self { class, site, pairs: HashMap::default(), iterations: Vec::new(), wrong_order }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.wrong_order = self.wrong_order.plus(other.wrong_order);
        for (&pair, &sum) in &other.pairs {
            let known = self.pairs.entry(pair).or_default();
            *known = known.plus(sum);
        }
        add_all(&mut self.iterations, &other.iterations);
    }

    fn finish(
        self,
        class: Class,
        call: Symbol,
        function: Option<u32>,
        loops: Vec<u64>,
        starts: &Starts,
    ) -> PlaceWaits {
        let worst = loops.first().and_then(|&times| worst(times, &self.iterations, starts));
        let (sum, wrong_order, pairs) = (self.sum(), self.wrong_order, sorted_pairs(&self.pairs));
        PlaceWaits { class, call, function, loops, sum, wrong_order, pairs, worst }
    }

    fn call_time(self, call: Symbol, function: Option<u32>, loops: Vec<u64>, starts: &Starts) -> CallTime {
        let worst = loops.first().and_then(|&times| worst(times, &self.iterations, starts));
        let ranks = sorted_pairs(&self.pairs).into_iter().map(|pair| (pair.waiting, pair.sum)).collect();
        CallTime { call, function, loops, sum: self.sum(), ranks, worst }
    }

    fn sum(&self) -> Sum {
        self.pairs.values().fold(Sum::default(), |sum, &part| sum.plus(part))
    }
}

/// Waits by the processes that wait and that cause them.
pub(super) type Pairs = HashMap<(u32, u32), Sum, foldhash::fast::RandomState>;
/// When iterations begin, by the times of their loops.
pub(super) type Starts = HashMap<u64, Vec<Option<i64>>, foldhash::fast::RandomState>;

fn add_to_ranks(pairs: &Pairs, ranks: &mut HashMap<u32, RankWaits>) {
    let of = |rank| RankWaits { rank, caused: Sum::default(), waited: Sum::default() };
    for (&(waiting, cause), &part) in pairs {
        let waits = ranks.entry(waiting).or_insert_with(|| of(waiting));
        waits.waited = waits.waited.plus(part);
        let causes = ranks.entry(cause).or_insert_with(|| of(cause));
        causes.caused = causes.caused.plus(part);
    }
}

/// The longest first.
fn sorted_pairs(pairs: &Pairs) -> Vec<Pair> {
    let pair = |(&(waiting, cause), &sum): (&(u32, u32), &Sum)| Pair { waiting, cause, sum };
    let mut pairs: Vec<Pair> = pairs.iter().map(pair).collect();
    pairs.sort_unstable_by_key(|pair| (Reverse(pair.sum.time), pair.waiting, pair.cause));
    pairs
}

fn add_all(sums: &mut Vec<u64>, more: &[u64]) {
    if sums.len() < more.len() {
        sums.resize(more.len(), 0);
    }
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// The iteration with the largest sum, the first of those that are equal.
fn worst(times: u64, sums: &[u64], starts: &Starts) -> Option<WorstIteration> {
    let (index, &time) = (0u64..).zip(sums).max_by_key(|&(index, &time)| (time, Reverse(index)))?;
    let shift = shift_of(times);
    let (first, behind) = (index << shift, (index + 1) << shift);
    let start = starts.get(&times).and_then(|starts| *starts.get(index as usize)?);
    Some(WorstIteration { times, first, last: behind.min(times) - 1, time, start })
}
