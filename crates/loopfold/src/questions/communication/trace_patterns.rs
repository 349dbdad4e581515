//! Lists all patterns of a trace: those of several processes first, then those of single
//! processes; each in the requested order, numbered from 1.
//!
//! Time and memory are those of [`Patterns::of`], [`Partners::of`] and
//! [`communication_patterns`]. A trace without communication costs the first alone.

use super::groups::grouped;
use super::joint::{JointLoop, Member, joint_loops};
use super::partners::Partners;
use super::pattern::{CommunicationPattern, Distinct, Occurrence, Part};
use super::processes::Processes;
use super::recurring::recurring;
use crate::questions::patterns::{Config, Patterns, RankBy, RecurringPlace};
use crate::{Result, StreamId};
use std::cmp::Reverse;
use std::ops::Range;

/// The patterns of several processes, the [heaviest](CommunicationPattern::weight) first: joint
/// loops, and what lies outside of them or in one of their iterations and occurs again. `places`
/// are, for each stream, the stretches that do.
pub fn communication_patterns(
    processes: &Processes<'_>,
    partners: &Partners,
    places: &[Vec<RecurringPlace>],
) -> Vec<CommunicationPattern> {
    let joint = joint_loops(processes, &partners.table);
    let mut distinct = Distinct::default();
    for index in 0..joint.len() {
        if let Some(occurrence) = joint_occurrence(processes, &joint, index) {
            let shown = |member: &Member| shown_symbols(processes, member);
            let known: Vec<Option<Range<usize>>> = joint[index].members.iter().map(shown).collect();
            distinct.add(processes, occurrence, &known);
        }
    }
    for (occurrence, shown) in recurring(processes, &partners.table, &joint, places) {
        distinct.add(processes, occurrence, &shown);
    }
    distinct.patterns(processes)
}

/// The symbols of what is shown that a member has, if it is the first iteration of a loop there.
fn shown_symbols(processes: &Processes<'_>, member: &Member) -> Option<Range<usize>> {
    let trace = &processes.traces()[member.stream as usize];
    let found = member.found.filter(|_| trace.nest_is_shown())?;
    let found = trace.shown().loops()[found as usize];
    Some(found.start as usize..found.end as usize)
}

fn joint_occurrence(processes: &Processes<'_>, joint: &[JointLoop], index: usize) -> Option<Occurrence> {
    let found = &joint[index];
    let part = |member: &Member| {
        let stream = StreamId::new(member.stream as usize).ok()?;
        Some(Part { stream, start: member.start, end: member.start + member.body })
    };
    let (mut times, mut around) = (found.times, found.within);
    while let Some(outer) = around {
        times = times.saturating_mul(joint[outer].times);
        around = joint[outer].within;
    }
    let crossing = found.in_flight.iter().map(|(_, messages)| messages.unsigned_abs()).sum();
    let parts: Vec<Part> = found.members.iter().map(part).collect::<Option<_>>()?;
    // One operation of each process is no pattern; a call that sends and receives is two.
    let is_pattern = parts.iter().any(|part| part.end - part.start >= 2)
        || parts.iter().any(|part| processes.is_exchange(part.stream, part.start));
    let periods = found.members.iter().map(|member| member.body).collect();
    is_pattern.then_some(Occurrence { parts, periods, times, in_a_row: found.times, crossing })
}

/// The patterns of a trace.
#[derive(Clone, Debug)]
pub struct TracePatterns {
    /// Those of several processes, in the order that was requested.
    pub communication: Vec<CommunicationPattern>,
    /// Those of single processes.
    pub process: Patterns,
    /// Which events of different processes belong together.
    pub partners: Partners,
}

/// Where a pattern of the list first is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPlace {
    /// Of a single process.
    Process(Part),
    /// Of several processes, by rank.
    Communication(Vec<Part>),
}

/// The first patterns that others may be a part of, and the occurrences of each that are
/// examined.
const SURVEYED: usize = 100;
const SURVEYED_OCCURRENCES: usize = 1000;

impl TracePatterns {
    /// The patterns of what processes do. Those of several processes only where there is
    /// communication.
    pub fn of(processes: &Processes<'_>, config: &Config) -> Result<Self> {
        let shown = processes.shown();
        let process = Patterns::of(&shown, config)?;
        if !processes.communicate() {
            return Ok(Self { communication: Vec::new(), process, partners: Partners::default() });
        }
        let partners = Partners::of(processes)?;
        let mut communication = communication_patterns(processes, &partners, &process.places(shown.len()));
        communication.retain(|pattern| pattern.count >= config.min_count);
        let mut communication = grouped(processes, &partners, communication);
        // They come by the events they explain, which is what decides among equals.
        communication.sort_by_key(|pattern| {
            Reverse(match config.rank_by {
                RankBy::Events => 0,
                RankBy::Count => pattern.count,
                RankBy::Length => pattern.events,
                RankBy::Processes => pattern.parts().len() as u64,
            })
        });
        Ok(Self { communication, process, partners })
    }

    /// How many patterns are in the list.
    pub fn count(&self) -> usize {
        self.communication.len() + self.process.patterns.len()
    }

    /// Where the pattern of a number, from 1, first is. Returns `None` if there is no such number.
    pub fn first_place(&self, processes: &Processes<'_>, number: usize) -> Option<FirstPlace> {
        let index = number.checked_sub(1)?;
        if let Some(pattern) = self.communication.get(index) {
            return Some(FirstPlace::Communication(pattern.parts().to_vec()));
        }
        let pattern = self.process.patterns.get(index - self.communication.len())?;
        let (stream, places) = self.process.streams_of(pattern).next()?;
        let start = places.first()?.start as usize;
        let shown = processes.traces()[stream].shown();
        let (first, end) = (shown.first(start, start + pattern.symbols.len()), start + pattern.symbols.len());
        let stream = StreamId::new(stream).ok()?;
        Some(FirstPlace::Process(Part { stream, start: first, end: first + shown.events(start, end) }))
    }

    /// The number of the smallest pattern of several processes that such a pattern is a part
    /// of, judged by the place where it occurs most: all of its stretches lie in those of the
    /// other. The first 100 are examined.
    pub fn within(&self, pattern: &CommunicationPattern) -> Option<usize> {
        // Of several the first.
        let most = pattern.occurrences.iter().rev().max_by_key(|occurrence| occurrence.times)?;
        let mut smallest: Option<(u64, usize)> = None;
        for (other, number) in self.communication.iter().take(SURVEYED).zip(1..) {
            let mut occurrences = other.all_occurrences().take(SURVEYED_OCCURRENCES);
            let is_larger = other.parts().len() >= pattern.parts().len() && other.events > pattern.events;
            if is_larger
                && smallest.is_none_or(|(known, _)| other.events < known)
                && occurrences.any(|occurrence| holds(&occurrence.parts, &most.parts))
            {
                smallest = Some((other.events, number));
            }
        }
        smallest.map(|(_, number)| number)
    }

    /// For each stream the stretches of what is shown in which patterns are, with the numbers of
    /// the patterns: the shortest first.
    pub fn stretches(&self, processes: &Processes<'_>) -> Vec<Vec<(u32, u32, usize)>> {
        let mut stretches = vec![Vec::new(); processes.traces().len()];
        for (pattern, number) in self.communication.iter().zip(1..) {
            for part in pattern.all_occurrences().flat_map(|occurrence| &occurrence.parts) {
                let shown = processes.traces()[part.stream.index()].shown();
                let pieces = shown.pieces(part.start, part.end);
                // One that goes on in the next iteration of a loop has all of the loop.
                let first = shown.indices(&pieces).min().unwrap_or(0) as u32;
                let last = shown.indices(&pieces).max().unwrap_or(0) as u32;
                stretches[part.stream.index()].push((first, last + 1, number));
            }
        }
        for (pattern, number) in self.process.patterns.iter().zip(self.communication.len() + 1..) {
            let length = pattern.symbols.len() as u32;
            for (stream, places) in self.process.streams_of(pattern) {
                stretches[stream]
                    .extend(places.iter().map(|place| (place.start, place.start + length, number)));
            }
        }
        for of_stream in &mut stretches {
            of_stream.sort_by_key(|&(start, end, number)| (end - start, number));
        }
        stretches
    }
}

/// Whether every stretch of some is in one of the others. Both are by rank.
fn holds(parts: &[Part], inside: &[Part]) -> bool {
    let mut parts = parts.iter();
    inside.iter().all(|inside| {
        let same = parts.find(|part| part.stream == inside.stream);
        same.is_some_and(|part| part.start <= inside.start && inside.end <= part.end)
    })
}
