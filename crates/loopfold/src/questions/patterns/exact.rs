//! Finds all maximal repeats of a stream, and which of them are supermaximal: a check on the
//! n-gram detector, and the method when nothing may be missed.
//!
//! A *repeat* is a sequence of two or more events with two occurrences that do not overlap. It
//! is *maximal* if it occurs neither always with the same event before it nor always with the
//! same event behind it, where the ends of the stream count as events of their own, and
//! *supermaximal* if also no longer sequence that occurs twice contains it: every occurrence
//! has another event before it, and another behind it.
//!
//! They come from the suffix array: a maximal repeat is what neighbours share that differ
//! behind it and before it. Of n events there are less than n maximal repeats. Time: linear,
//! but about ten times that of the n-gram detector; memory 8 bytes an event and 16 a repeat.

use super::suffixes::Suffixes;
use crate::interrupt::Pace;
use crate::{Result, Symbol};

/// A maximal repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// How many events it has.
    pub length: usize,
    /// Whether no longer sequence that occurs twice contains it.
    pub is_supermaximal: bool,
    first: u32,
    last: u32,
}

/// All maximal repeats of a stream.
///
/// ```
/// use loopfold::Symbol;
/// use loopfold::questions::patterns::Repeats;
///
/// let events: Vec<Symbol> = "abc.bcd,abcd".bytes().map(|name| Symbol::new(name.into()).unwrap()).collect();
/// let repeats = Repeats::of(&events)?;
/// let mut found: Vec<(Vec<u32>, usize)> =
///     repeats.all().iter().map(|repeat| (repeats.positions(repeat), repeat.length)).collect();
/// found.sort();
/// // `abc`, `bc` and `bcd`; the n-gram detector passes over the last one.
/// assert_eq!(found, [(vec![0, 8], 3), (vec![1, 4, 9], 2), (vec![4, 9], 3)]);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    suffixes: Suffixes,
    repeats: Vec<Repeat>,
}

/// Suffixes that share something, while more of them may come.
#[derive(Clone, Copy)]
struct Interval {
    shared: u32,
    first: u32,
    /// The smallest and the largest start.
    least: u32,
    most: u32,
    /// Whether some of them share more.
    branches: bool,
}

impl Interval {
    fn add(&mut self, other: &Interval) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.branches |= other.shared > self.shared && other.shared != WHOLE;
    }
}

/// What a suffix shares with itself.
const WHOLE: u32 = u32::MAX;

impl Repeats {
    /// All maximal repeats.
    pub fn of(stream: &[Symbol]) -> Result<Self> {
        let suffixes = Suffixes::of(stream)?;
        let repeats = maximal(stream, &suffixes);
        Ok(Self { suffixes, repeats })
    }

    /// The repeats, in no particular order.
    pub fn all(&self) -> &[Repeat] {
        &self.repeats
    }

    /// How often a repeat occurs, overlaps included.
    pub fn count(&self, repeat: &Repeat) -> usize {
        (repeat.last - repeat.first) as usize + 1
    }

    /// Where it occurs, in order; occurrences may overlap.
    pub fn positions(&self, repeat: &Repeat) -> Vec<u32> {
        let mut positions = self.suffixes.starts[self.ranks(repeat)].to_vec();
        positions.sort_unstable();
        positions
    }

    /// The range of a repeat among the suffixes.
    pub(super) fn ranks(&self, repeat: &Repeat) -> std::ops::Range<usize> {
        repeat.first as usize..repeat.last as usize + 1
    }

    pub(super) fn suffixes(&self) -> &Suffixes {
        &self.suffixes
    }
}

fn maximal(stream: &[Symbol], suffixes: &Suffixes) -> Vec<Repeat> {
    let starts = &suffixes.starts;
    let before = |rank: usize| starts[rank].checked_sub(1).map(|before| stream[before as usize]);
    // How often up to each suffix the event before changed.
    let mut changes = vec![0u32; starts.len()];
    for rank in 1..starts.len() {
        let same = before(rank) == before(rank - 1) && before(rank).is_some();
        changes[rank] = changes[rank - 1] + u32::from(!same);
    }
    let mut different = Different::default();
    let mut repeats = Vec::new();
    let mut close = |interval: Interval, last: usize| {
        let first = interval.first as usize;
        let separate = interval.most - interval.least >= interval.shared;
        if interval.shared < 2 || !separate || changes[first] == changes[last] {
            return;
        }
        let is_supermaximal = !interval.branches && different.all((first..=last).map(before));
        let length = interval.shared as usize;
        repeats.push(Repeat { length, is_supermaximal, first: first as u32, last: last as u32 });
    };
    let mut open: Vec<Interval> = Vec::new();
    let mut pace = Pace::default();
    for next in 1..=starts.len() {
        pace.step();
        let last = next - 1;
        let shared = suffixes.shared.get(next).copied().unwrap_or(0);
        let start = starts[last];
        let mut done =
            Interval { shared: WHOLE, first: last as u32, least: start, most: start, branches: false };
        while let Some(mut interval) = open.pop_if(|interval| interval.shared > shared) {
            interval.add(&done);
            close(interval, last);
            done = interval;
        }
        match open.last_mut() {
            Some(around) if around.shared == shared => around.add(&done),
            _ => {
                let mut around = Interval { shared, branches: false, ..done };
                around.add(&done);
                open.push(around);
            }
        }
    }
    repeats
}

/// Tests whether symbols are all different.
#[derive(Default)]
struct Different {
    /// The last question in which each symbol came.
    asked: Vec<u32>,
    questions: u32,
}

impl Different {
    fn all(&mut self, mut symbols: impl Iterator<Item = Option<Symbol>>) -> bool {
        self.questions += 1;
        symbols.all(|symbol| {
            let Some(symbol) = symbol else { return true };
            if self.asked.len() <= symbol.index() {
                self.asked.resize(symbol.index() + 1, 0);
            }
            std::mem::replace(&mut self.asked[symbol.index()], self.questions) != self.questions
        })
    }
}
