//! Outermost first: Xu's optimal order (section IV), and with leftmost ties Knödtel's
//! halving.
//!
//! Takes the longest loop body first; among equally long ones the one with the most iterations,
//! then the leftmost. Then it recurses into one copy of the body and into each gap beside it.
//!
//! All of that is one sweep over the runs of the stream, the longest period first. A run
//! clipped to an interval is a run of that interval as long as two periods remain, and every
//! run of the interval arises this way. So the sweep keeps the boundaries of the intervals
//! still open, clips each run to those it meets, and takes what is left. The copies of a chosen
//! body after the first are dead.
//!
//! Runs are handled by classes of periods, a power of two each. What [`Runs`] notes as copies
//! inside a longer run is examined only when that run's class is done, and then only where it
//! is not dead: in a loop nest nearly all copies are never looked at.
//!
//! On several threads, the two scans for runs are done side by side. Then the stream is cut where no
//! run reaches across: a loop lies in a run, so nothing on one side depends on the other, and each
//! part has a thread. Where runs reach across everything, as in a long loop, little is left to do.
//!
//! Cost: about linear, dominated by finding the runs; 12 bytes for each run that is examined and 12 for
//! each loop found.

use super::boundaries::Intervals;
use super::nest::{Loop, Part, rules_of};
use super::select::{Selection, Stretch};
use super::{FoldedRoot, Folder, MinTimes, Settings, Ties};
use crate::fold::FoldBuilder;
use crate::interrupt::{Pace, blocks};
use crate::parallel::side_by_side;
use crate::repeats::{Entry, Run, Runs, SHORTEST_SHARED};
use crate::{Result, RuleId, Symbol};
use std::ops::Range;

/// Takes the longest loop body first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outermost {
    settings: Settings,
}

impl Outermost {
    super::loop_setters!();
}

impl Folder for Outermost {
    fn name(&self) -> &'static str {
        "outermost"
    }

    fn describe(&self) -> String {
        self.settings.describe(self.name())
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        fold(stream, self.settings, 1, builder)
    }

    fn fold_on(&self, stream: &[Symbol], threads: usize, builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        fold(stream, self.settings, threads, builder).map(FoldedRoot::from)
    }
}

/// Body lengths from half the input downwards, all repetitions of one length from left
/// to right: outermost with leftmost ties, under the name of its authors' method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Halving {
    min_times: MinTimes,
}

impl Halving {
    setters! {
        /// How many iterations a loop must have.
        min_times: MinTimes,
    }

    fn settings(&self) -> Settings {
        Settings { ties: Ties::Left, min_times: self.min_times }
    }
}

impl Folder for Halving {
    fn name(&self) -> &'static str {
        "halving"
    }

    fn describe(&self) -> String {
        Settings::from(self.min_times).describe(self.name())
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        fold(stream, self.settings(), 1, builder)
    }

    fn fold_on(&self, stream: &[Symbol], threads: usize, builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        fold(stream, self.settings(), threads, builder).map(FoldedRoot::from)
    }
}

fn fold(stream: &[Symbol], settings: Settings, threads: usize, builder: &mut FoldBuilder) -> Result<RuleId> {
    super::check_length(stream)?;
    let runs = Runs::on_threads(bytemuck::TransparentWrapper::peel_slice(stream), threads);
    let parts = if stream.len() < SHORTEST_SHARED { 1 } else { threads.clamp(1, MOST_PARTS) };
    rules_of(stream, parts_of(stream.len(), runs, settings, parts), builder)
}

/// The parts of a stream of this length with these runs, at most so many, and their loops, in no
/// particular order.
fn parts_of(length: usize, mut runs: Runs, settings: Settings, parts: usize) -> Vec<Part> {
    let mut bounds = vec![0];
    bounds.extend(runs.cuts(length, parts));
    bounds.push(length);
    let ranges: Vec<Range<usize>> = bounds.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let sorted: Vec<Sorted> =
        side_by_side(&ranges, |range| Sorted::of(&runs, range.clone(), ranges.len() == 1));
    for scan in 0..2 {
        if !sorted.iter().any(|sorted| sorted.has_copies[scan]) {
            runs.forget(scan);
        }
    }
    let work: Vec<(Range<usize>, Sorted)> = ranges.into_iter().zip(sorted).collect();
    side_by_side(work, |(range, sorted)| {
        let loops = loops_of(length, &runs, sorted, settings);
        Part { range, loops }
    })
}

/// The loops of a part of a stream of this length, in no particular order.
fn loops_of(length: usize, runs: &Runs, sorted: Sorted, settings: Settings) -> Vec<Loop> {
    let mut sweep = Sweep {
        intervals: Intervals::new(length),
        loops: Vec::new(),
        settings,
        runs,
        sorted,
        pace: Pace::default(),
    };
    for class in (0..CLASSES).rev() {
        sweep.take_class(class);
    }
    sweep.loops
}

/// A stream is divided into no more parts.
const MOST_PARTS: usize = 16;

/// Periods fit 31 bits.
const CLASSES: usize = 32;

/// Periods below this have a list each: there are many runs of short periods, and so
/// they need no sorting by period.
const SHORT: usize = 64;

struct Sweep<'a> {
    intervals: Intervals,
    loops: Vec<Loop>,
    settings: Settings,
    runs: &'a Runs,
    sorted: Sorted,
    pace: Pace,
}

/// Runs by their periods.
struct Sorted {
    classes: [Class; CLASSES],
    short: [Vec<Stretch>; SHORT],
    /// Whether there are copies of what each scan found.
    has_copies: [bool; 2],
}

/// The runs with periods from one power of two to the next.
#[derive(Default)]
struct Class {
    runs: Vec<Run>,
    copies: Vec<CopiesAt>,
}

/// Copies noted by a scan, seen from a place further left.
#[derive(Clone, Copy)]
struct CopiesAt {
    scan: u32,
    entry: u32,
    distance: u32,
}

fn class_of(period: u32) -> usize {
    31 - period.leading_zeros() as usize
}

impl Sorted {
    /// The runs in a part that no run reaches out of.
    fn of(runs: &Runs, range: Range<usize>, is_whole: bool) -> Self {
        let mut sorted = Self {
            classes: Default::default(),
            short: [const { Vec::new() }; SHORT],
            has_copies: [false; 2],
        };
        let is_here = |scan, index| is_whole || range.contains(&runs.place(scan, index));
        sorted.reserve(runs, is_here);
        for scan in 0..2 {
            for index in 0..runs.entries(scan) {
                if !is_here(scan, index) {
                    continue;
                }
                match runs.entry(scan, index) {
                    Entry::Run(run) => sorted.put(run),
                    Entry::Copies { step, .. } => {
                        sorted.has_copies[scan] = true;
                        let copies = CopiesAt { scan: scan as u32, entry: index as u32, distance: 0 };
                        sorted.classes[class_of(step)].copies.push(copies);
                    }
                }
            }
        }
        sorted
    }

    /// Makes room for exactly as many runs as there are: growing step by step would
    /// take twice the memory where memory matters, in streams with many runs.
    fn reserve(&mut self, runs: &Runs, is_here: impl Fn(usize, usize) -> bool) {
        let mut short = [0usize; SHORT];
        for scan in 0..2 {
            for index in 0..runs.entries(scan) {
                if let Entry::Run(run) = runs.entry(scan, index)
                    && (run.period as usize) < SHORT
                    && is_here(scan, index)
                {
                    short[run.period as usize] += 1;
                }
            }
        }
        for (list, count) in self.short.iter_mut().zip(short) {
            list.reserve_exact(count);
        }
    }

    fn put(&mut self, run: Run) {
        match self.short.get_mut(run.period as usize) {
            Some(list) => list.push(Stretch { start: run.start, end: run.end }),
            None => self.classes[class_of(run.period)].runs.push(run),
        }
    }
}

impl Sweep<'_> {
    fn take_class(&mut self, class: usize) {
        self.put_copies_within(class);
        if 1 << class < SHORT {
            for period in (1 << class..2 << class).rev() {
                let mut stretches = std::mem::take(&mut self.sorted.short[period]);
                self.take_period(period as u32, &mut stretches);
            }
        } else {
            let mut runs = std::mem::take(&mut self.sorted.classes[class].runs);
            runs.sort_unstable_by_key(|run| u64::from(u32::MAX - run.period) << 32 | u64::from(run.start));
            let mut stretches = Vec::new();
            for group in runs.chunk_by(|left, right| left.period == right.period) {
                stretches.clear();
                stretches.extend(group.iter().map(|run| Stretch { start: run.start, end: run.end }));
                self.take_period(group[0].period, &mut stretches);
            }
        }
        self.put_live_copies(class);
    }

    /// Takes what it can of the stretches with one period.
    fn take_period(&mut self, period: u32, stretches: &mut [Stretch]) {
        self.pace.steps(stretches.len());
        // Each scan reports the runs of one period from right to left, so this merges.
        stretches.sort_by_key(|stretch| stretch.start);
        let min_times = self.settings.min_times.get();
        let mut candidates = self.clip(stretches, period as usize * min_times as usize);
        let selection = Selection { period, ties: self.settings.ties, min_times };
        let Self { intervals, loops, .. } = self;
        selection.choose(&mut candidates, |taken| {
            loops.push(Loop { start: taken.start, body: period, times: selection.times(taken) });
            let second = (taken.start + period) as usize;
            intervals.divide(taken.start as usize);
            intervals.divide(second);
            intervals.divide(taken.end as usize);
            intervals.kill(second);
            taken
        });
    }

    /// The parts of the stretches in live intervals that are at least `least` long.
    fn clip(&self, stretches: &[Stretch], least: usize) -> Vec<Stretch> {
        let mut parts = Vec::new();
        for stretch in blocks(stretches).flatten() {
            let (start, end) = (stretch.start as usize, stretch.end as usize);
            let mut left = self.intervals.start_of(start);
            loop {
                let right = self.intervals.end_after(left);
                let (from, to) = (left.max(start), right.min(end));
                if to - from >= least && !self.intervals.is_dead(left) {
                    parts.push(Stretch { start: from as u32, end: to as u32 });
                }
                if right + least > end {
                    break;
                }
                left = right;
            }
        }
        parts
    }

    /// Puts the runs of this class that are copied by copies of this class: rare, since
    /// they are hardly shorter than the run that they lie in.
    fn put_copies_within(&mut self, class: usize) {
        for copies in self.sorted.classes[class].copies.clone() {
            self.put_copies_of_class(copies, class);
        }
    }

    fn put_copies_of_class(&mut self, at: CopiesAt, class: usize) {
        let Entry::Copies { from, step, times } = self.runs.entry(at.scan as usize, at.entry as usize) else {
            return;
        };
        for index in from..at.entry {
            match self.runs.entry(at.scan as usize, index as usize) {
                Entry::Run(run) if class_of(run.period) == class => {
                    (1..=times).for_each(|copy| self.sorted.put(run.moved(at.distance + copy * step)));
                }
                Entry::Copies { step: inner, .. } if class_of(inner) == class => {
                    for copy in 1..=times {
                        let distance = at.distance + copy * step;
                        self.put_copies_of_class(CopiesAt { entry: index, distance, ..at }, class);
                    }
                }
                _ => {}
            }
        }
    }

    /// When a class is done, puts what its copies copy of lower classes, except where
    /// that is dead.
    fn put_live_copies(&mut self, class: usize) {
        let mut todo = std::mem::take(&mut self.sorted.classes[class].copies);
        while let Some(at) = todo.pop() {
            self.pace.step();
            let Entry::Copies { from, step, times } = self.runs.entry(at.scan as usize, at.entry as usize)
            else {
                continue;
            };
            let Some(hull) = self.hull(at.scan, from..at.entry) else { continue };
            let mut copy = 1;
            while copy <= times {
                let distance = at.distance + copy * step;
                if let Some(left) = self.dead_room(hull, distance) {
                    copy += 1 + left / step;
                    continue;
                }
                for index in from..at.entry {
                    match self.runs.entry(at.scan as usize, index as usize) {
                        Entry::Run(run) if class_of(run.period) < class => {
                            let run = run.moved(distance);
                            if self.is_live(run) {
                                self.sorted.put(run);
                            }
                        }
                        Entry::Run(_) => {}
                        Entry::Copies { step: inner, .. } => {
                            let copies = CopiesAt { entry: index, distance, ..at };
                            match class_of(inner) {
                                lower if lower < class => self.sorted.classes[lower].copies.push(copies),
                                _ => todo.push(copies),
                            }
                        }
                    }
                }
                copy += 1;
            }
        }
    }

    /// From where to where the copied entries reach. Copies within copies are examined again at
    /// each level, but a jump goes over several periods, so there are few levels.
    fn hull(&self, scan: u32, entries: std::ops::Range<u32>) -> Option<Stretch> {
        let mut hull: Option<Stretch> = None;
        for index in entries {
            let part = match self.runs.entry(scan as usize, index as usize) {
                Entry::Run(run) => Some(Stretch { start: run.start, end: run.end }),
                Entry::Copies { from, step, times } => self
                    .hull(scan, from..index)
                    .map(|inner| Stretch { start: inner.start - step * times, end: inner.end }),
            };
            hull = match (hull, part) {
                (Some(a), Some(b)) => Some(Stretch { start: a.start.min(b.start), end: a.end.max(b.end) }),
                (a, b) => a.or(b),
            };
        }
        hull
    }

    /// If a stretch moved left by `distance` lies in a dead interval, how much further
    /// left it could move and still lie in it.
    fn dead_room(&self, stretch: Stretch, distance: u32) -> Option<u32> {
        let (start, end) = (stretch.start - distance, stretch.end - distance);
        let left = self.intervals.start_of(start as usize);
        let inside = self.intervals.is_dead(left) && self.intervals.end_after(left) >= end as usize;
        inside.then(|| start - left as u32)
    }

    /// Whether any part of a run could still be taken.
    fn is_live(&self, run: Run) -> bool {
        let left = self.intervals.start_of(run.start as usize);
        !self.intervals.is_dead(left)
            || self.intervals.end_after(left) + 2 * run.period as usize <= run.end as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use loopfold_testing::{Rng, streams};

    /// Runs found without a single jump hold no copies, so the sweep sees them one by one.
    #[test]
    fn copies_of_runs_are_as_good_as_runs() {
        let mut rng = Rng::new(31);
        for round in 0..10_000 {
            let stream = streams::small(&mut rng, if round % 100 == 0 { 1000 } else { 80 });
            let ties = if rng.one_in(2) { Ties::Left } else { Ties::Iterations };
            let settings = Settings { ties, ..Settings::default() };
            let loops = |runs| {
                let [Part { mut loops, .. }] = parts_of(stream.len(), runs, settings, 1).try_into().unwrap();
                loops.sort_unstable_by_key(|found| (found.start, found.body));
                loops
            };
            let one_by_one = loops(Runs::with_tuning::<48, { usize::MAX }>(&stream));
            assert_eq!(loops(Runs::with_tuning::<1, 1>(&stream)), one_by_one, "{stream:?}");
            assert_eq!(loops(Runs::of(&stream)), one_by_one, "{stream:?}");
        }
    }

    #[test]
    fn parts_give_the_same_rules_as_the_whole() {
        let mut rng = Rng::new(32);
        let mut divided = 0;
        for round in 0..10_000 {
            let numbers = streams::small(&mut rng, if round % 100 == 0 { 2000 } else { 120 });
            let stream: Vec<Symbol> = numbers.iter().copied().map(Symbol::from_raw).collect();
            let settings = Settings::default();
            let fold = |parts| {
                let parts = parts_of(stream.len(), Runs::of(&numbers), settings, parts);
                let bounds: Vec<usize> = parts.iter().map(|part| part.range.start).collect();
                let mut builder = FoldBuilder::default();
                let root = rules_of(&stream, parts, &mut builder).unwrap();
                (bounds, root, builder.finish())
            };
            let (_, root, whole) = fold(1);
            let all = Runs::of(&numbers).expand();
            for most in [2, 3, 7] {
                let (bounds, own_root, parts) = fold(most);
                assert_eq!((own_root, &parts), (root, &whole), "{most}: {numbers:?}");
                assert!(parts.unfold(own_root).eq(stream.iter().copied()), "{most}: {numbers:?}");
                for &bound in &bounds {
                    let reaches = |run: &Run| (run.start as usize) < bound && bound < run.end as usize;
                    assert!(!all.iter().any(reaches), "{bound}: {numbers:?}");
                }
                divided += usize::from(bounds.len() > 1);
            }
        }
        assert!(divided > 1_000, "{divided}");
    }
}
