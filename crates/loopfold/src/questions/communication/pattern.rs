//! Communication patterns: what several processes do together, again and again.
//!
//! Occurrences in which every process does the same, loops inside counted once, are one
//! pattern.

use super::processes::Processes;
use crate::{StreamId, Symbol};
use hashbrown::HashMap;
use std::ops::Range;

/// A stretch of a stream, by positions among the events that are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    /// The stream.
    pub stream: StreamId,
    /// The position of the first event.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
}

/// One place of a pattern: a stretch of each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The stretches, by rank. Where it is repeated, of the first time.
    pub parts: Vec<Part>,
    /// For each of them how many events there are from the start of one repetition in a row to
    /// that of the next: as many as it has in a joint loop, which is repeated directly, or an
    /// iteration of the loop around it.
    pub periods: Vec<u64>,
    /// How often it is repeated there, all loops around it counted.
    pub times: u64,
    /// How often in a row, at these distances.
    pub in_a_row: u64,
    /// Messages that cross its borders: those with only one end inside, or with the other end
    /// in another repetition.
    pub crossing: u64,
}

/// A part of an occurrence with its repetitions in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedPart {
    /// The first time.
    pub part: Part,
    /// From the start of one time to that of the next.
    pub period: u64,
    /// How often.
    pub times: u64,
}

impl Occurrence {
    /// The parts with their repetitions in a row.
    pub fn repeated_parts(&self) -> impl Iterator<Item = RepeatedPart> + '_ {
        let repeated = |(&part, &period)| RepeatedPart { part, period, times: self.in_a_row };
        self.parts.iter().zip(&self.periods).map(repeated)
    }

    /// Puts the parts in the order of ranks: topologies are those of ranks, in whichever order
    /// their streams come.
    fn sort_by_rank(&mut self, processes: &Processes<'_>) {
        let rank = |part: &Part| (processes.communicators.rank(part.stream.index()), *part);
        if self.parts.is_sorted_by_key(rank) {
            return;
        }
        let mut both: Vec<(Part, u64)> =
            self.parts.iter().copied().zip(self.periods.iter().copied()).collect();
        both.sort_unstable_by_key(|(part, _)| rank(part));
        (self.parts, self.periods) = both.into_iter().unzip();
    }
}

/// A repeated exchange of several processes.
#[derive(Clone, Debug)]
pub struct CommunicationPattern {
    /// Where it occurs, first places first. What the processes do is the same in all.
    pub occurrences: Vec<Occurrence>,
    /// How often it occurs, all repetitions counted.
    pub count: u64,
    /// How many events one occurrence is, of all processes.
    pub events: u64,
    /// How many events all of its occurrences are.
    pub explains: u64,
    /// The same, but inner loops whose counts vary count once.
    pub weight: u64,
    /// Messages that cross the borders of an occurrence, at most. 0 if it is closed: every
    /// message has both ends in it.
    pub crossing: u64,
    /// Equal patterns on other processes, disjoint from these and from each other. What it
    /// explains and its weight are those of all.
    pub other_groups: Vec<CommunicationPattern>,
}

impl CommunicationPattern {
    /// The stretches of the first place.
    pub fn parts(&self) -> &[Part] {
        &self.occurrences[0].parts
    }

    /// Where it and the equal patterns on other processes occur.
    pub fn all_occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().chain(self.other_groups.iter().flat_map(|other| &other.occurrences))
    }

    /// The processes of each group in which it occurs, by the parts of the first places.
    pub fn groups(&self) -> impl Iterator<Item = &[Part]> {
        std::iter::once(self.parts()).chain(self.other_groups.iter().map(CommunicationPattern::parts))
    }

    /// Adds an equal pattern on other processes.
    pub(super) fn join(&mut self, other: Self) {
        self.explains = self.explains.saturating_add(other.explains);
        self.weight = self.weight.saturating_add(other.weight);
        self.crossing = self.crossing.max(other.crossing);
        self.other_groups.push(other);
    }
}

/// The patterns so far.
#[derive(Default)]
pub(super) struct Distinct {
    occurrences: Vec<Vec<Occurrence>>,
    by_content: HashMap<Vec<(StreamId, u32)>, usize, foldhash::fast::RandomState>,
    /// Sequences of events, numbered.
    sequences: HashMap<Vec<Symbol>, u32, foldhash::fast::RandomState>,
}

impl Distinct {
    /// Adds an occurrence. `known` are the symbols of what is shown that its parts are, where
    /// that is known.
    pub(super) fn add(
        &mut self,
        processes: &Processes<'_>,
        mut occurrence: Occurrence,
        known: &[Option<Range<usize>>],
    ) {
        let mut content = Vec::with_capacity(occurrence.parts.len());
        for (index, part) in occurrence.parts.iter().enumerate() {
            let shown = processes.traces()[part.stream.index()].shown();
            let next = self.sequences.len() as u32;
            let known = known.get(index).cloned().flatten();
            let number = match known.or_else(|| shown.flat_range(part.start, part.end)) {
                Some(range) => *self.sequences.entry_ref(&shown.symbols()[range]).or_insert(next),
                None => {
                    let symbols = shown.symbols_of(&shown.pieces(part.start, part.end));
                    *self.sequences.entry(symbols).or_insert(next)
                }
            };
            content.push((part.stream, number));
        }
        occurrence.sort_by_rank(processes);
        content.sort_unstable();
        let next = self.occurrences.len();
        let pattern = *self.by_content.entry(content).or_insert(next);
        if pattern == next {
            self.occurrences.push(Vec::new());
        }
        self.occurrences[pattern].push(occurrence);
    }

    /// The heaviest first.
    pub(super) fn patterns(self, processes: &Processes<'_>) -> Vec<CommunicationPattern> {
        let distinct = self.occurrences.into_iter().map(|mut all| {
            // The same family can be found from several places.
            all.sort_by(|a, b| a.parts.cmp(&b.parts).then(b.in_a_row.cmp(&a.in_a_row)));
            all.dedup_by(|a, b| a.parts == b.parts);
            all
        });
        // What has one place only is a joint loop, or a part of one.
        let recurs = |all: &Vec<Occurrence>| all.len() > 1 || all.iter().any(|one| one.in_a_row > 1);
        let mut patterns: Vec<CommunicationPattern> =
            distinct.filter(recurs).map(|all| pattern(processes, all)).collect();
        let rank = |part: &Part| (processes.communicators.rank(part.stream.index()), *part);
        patterns.sort_by(|a, b| {
            b.weight
                .cmp(&a.weight)
                .then(b.events.cmp(&a.events))
                .then(b.parts().len().cmp(&a.parts().len()))
                .then_with(|| a.parts().iter().map(rank).cmp(b.parts().iter().map(rank)))
        });
        patterns
    }
}

fn pattern(processes: &Processes<'_>, occurrences: Vec<Occurrence>) -> CommunicationPattern {
    let (mut fewest, mut most, mut count, mut explains) = (u64::MAX, 0, 0u64, 0u64);
    for occurrence in &occurrences {
        let events = events_of(occurrence);
        (fewest, most) = (fewest.min(events), most.max(events));
        count = count.saturating_add(occurrence.times);
        explains = explains.saturating_add(events.saturating_mul(occurrence.times));
    }
    let events = events_of(&occurrences[0]);
    let written = |part: &Part| {
        let shown = processes.traces()[part.stream.index()].shown();
        shown.indices(&shown.pieces(part.start, part.end)).count() as u64
    };
    let weight = match fewest == most {
        true => explains,
        false => count.saturating_mul(occurrences[0].parts.iter().map(written).sum()),
    };
    let crossing = occurrences.iter().map(|occurrence| occurrence.crossing).max().unwrap_or(0);
    CommunicationPattern { events, occurrences, count, explains, weight, crossing, other_groups: Vec::new() }
}

/// How many events an occurrence has, of all processes.
fn events_of(occurrence: &Occurrence) -> u64 {
    occurrence.parts.iter().map(|part| part.end - part.start).fold(0, u64::saturating_add)
}
