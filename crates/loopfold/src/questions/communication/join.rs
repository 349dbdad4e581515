//! Communication patterns (the paper's algorithm 4): stretches of several processes that
//! belong together because what one sends the other receives.
//!
//! One begins with a stretch of one process that repeats, a *place*. The partners of its
//! events lie in stretches of other processes, and theirs in others again, until no process
//! is added. Each process is in a pattern with one stretch: the smallest place that holds all
//! partners, if it answers to what is in the pattern more than to anything else; else the
//! partners alone if they lie next to each other, which is how the paper adds single events;
//! else the process stays out. Patterns in which every process does the same are one pattern
//! that occurs several times.
//!
//! Time and memory go with the partners of all events in all places. Places are nested as
//! loops are, or lie apart, so this is what is written times the depth of loops.

use super::call::{Message, Peer};
use super::partners::{Link, Partners};
use super::processes::Processes;
use super::topology::{Channels, Topology};
use crate::Symbol;
use crate::questions::Abridged;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// A stretch of what is shown of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    /// The stream.
    pub stream: u32,
    /// The first event, by its index.
    pub start: u32,
    /// The one behind the last.
    pub end: u32,
}

/// One place of a pattern: a stretch of each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The stretches, by stream.
    pub parts: Vec<Part>,
    /// How often it is repeated there.
    pub times: u64,
}

/// What several processes do together, again and again.
#[derive(Clone, Debug)]
pub struct CommunicationPattern {
    /// Where it occurs, first places first. What the processes do is the same in all.
    pub occurrences: Vec<Occurrence>,
    /// How often it occurs, all repetitions counted.
    pub count: u64,
    /// How many events all of its occurrences are, of all processes.
    pub explains: u64,
    /// Who sends to whom: positions in `parts`.
    pub channels: Channels,
    /// The well-known topology it is nearest to.
    pub topology: Option<Topology>,
    /// True if it has nothing but collective operations.
    pub is_collective: bool,
    /// The functions it occurs in, and how often in each.
    pub functions: Vec<(String, u64)>,
}

impl CommunicationPattern {
    /// The stretches of the first place.
    pub fn parts(&self) -> &[Part] {
        &self.occurrences[0].parts
    }

    /// How many events one occurrence is, of all processes.
    pub fn length(&self, processes: &Processes<'_>) -> u64 {
        self.parts().iter().fold(0u64, |sum, part| sum.saturating_add(events(processes, *part)))
    }
}

/// The patterns of all processes, those first that explain most events. `places` are, for
/// each stream, the stretches in which something repeats; loops are always looked at.
pub fn communication_patterns(
    processes: &Processes<'_>,
    partners: &Partners,
    places: &[Vec<(u32, u32)>],
) -> Vec<CommunicationPattern> {
    Joining::new(processes, partners, places).run()
}

struct Joining<'p, 'a> {
    processes: &'p Processes<'a>,
    partners: &'p Partners,
    places: Vec<Places>,
    /// Places that are in a pattern already.
    is_joined: HashSet<Part>,
}

impl<'p, 'a> Joining<'p, 'a> {
    fn new(processes: &'p Processes<'a>, partners: &'p Partners, places: &[Vec<(u32, u32)>]) -> Self {
        let of_stream =
            |(stream, more): (usize, &Vec<(u32, u32)>)| Places::new(processes.doings()[stream].shown(), more);
        let places = places.iter().enumerate().map(of_stream).collect();
        Self { processes, partners, places, is_joined: HashSet::new() }
    }

    fn run(mut self) -> Vec<CommunicationPattern> {
        let mut distinct = Distinct::default();
        for seed in self.seeds() {
            if self.is_joined.contains(&seed) {
                continue;
            }
            let parts = self.grow(seed);
            if parts.len() < 2 {
                continue;
            }
            self.is_joined.extend(&parts);
            let times =
                parts.iter().map(|part| self.shown(*part).times(part.start as usize, part.end as usize));
            let times = times.min().unwrap_or(1);
            distinct.add(self.processes, Occurrence { parts, times });
        }
        let mut patterns: Vec<CommunicationPattern> =
            distinct.patterns.into_iter().map(|occurrences| self.describe(occurrences)).collect();
        patterns.sort_by(|a, b| {
            b.explains
                .cmp(&a.explains)
                .then(b.count.cmp(&a.count))
                .then(b.parts().len().cmp(&a.parts().len()))
                .then_with(|| a.parts().cmp(b.parts()))
        });
        patterns
    }

    fn shown(&self, part: Part) -> &Abridged {
        self.processes.doings()[part.stream as usize].shown()
    }

    /// All places of two events or more, those first whose repetitions are most events.
    fn seeds(&self) -> Vec<Part> {
        let mut seeds: Vec<(u64, Part)> = Vec::new();
        for (stream, places) in self.places.iter().enumerate() {
            for &(start, end) in &places.all {
                if end - start >= 2 {
                    let part = Part { stream: stream as u32, start, end };
                    let times = self.shown(part).times(start as usize, end as usize);
                    seeds.push((times.saturating_mul(events(self.processes, part)), part));
                }
            }
        }
        seeds.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        seeds.into_iter().map(|(_, part)| part).collect()
    }

    /// The stretches that belong together with this one.
    fn grow(&self, seed: Part) -> Vec<Part> {
        let mut parts: BTreeMap<u32, Part> = BTreeMap::from([(seed.stream, seed)]);
        let mut next = vec![seed];
        while let Some(part) = next.pop() {
            let mut hulls: BTreeMap<u32, Hull> = BTreeMap::new();
            for link in self.partners.between(part.stream as usize, part.start, part.end) {
                if !parts.contains_key(&link.stream) {
                    hulls.entry(link.stream).or_default().add(link.partner);
                }
            }
            for (stream, mut hull) in hulls {
                if let Some(found) = self.answer(stream, &mut hull, &parts) {
                    parts.insert(stream, found);
                    next.push(found);
                }
            }
        }
        parts.into_values().collect()
    }

    /// The stretch of a stream that answers to what is in the pattern so far.
    fn answer(&self, stream: u32, hull: &mut Hull, parts: &BTreeMap<u32, Part>) -> Option<Part> {
        let (first, behind) = hull.bounds()?;
        if let Some((start, end)) = self.places[stream as usize].smallest(first, behind) {
            let links = self.partners.between(stream as usize, start, end);
            let is_inside = |link: &&Link| {
                parts.get(&link.stream).is_some_and(|part| (part.start..part.end).contains(&link.partner))
            };
            let inside = links.iter().filter(is_inside).count();
            let to_pattern = links.iter().filter(|link| parts.contains_key(&link.stream)).count();
            if 2 * inside >= to_pattern {
                return Some(Part { stream, start, end });
            }
        }
        (hull.distinct() == (behind - first) as usize).then_some(Part { stream, start: first, end: behind })
    }

    fn describe(&self, occurrences: Vec<Occurrence>) -> CommunicationPattern {
        let mut count = 0u64;
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for occurrence in &occurrences {
            count = count.saturating_add(occurrence.times);
            let first = occurrence.parts[0];
            if let Some(function) = self.processes.function(first.stream as usize, first.start as usize) {
                let sum = functions.entry(function).or_default();
                *sum = sum.saturating_add(occurrence.times);
            }
        }
        let mut functions: Vec<(String, u64)> =
            functions.into_iter().map(|(function, count)| (function.to_string(), count)).collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let explains = occurrences.iter().fold(0u64, |sum, occurrence| {
            let once = occurrence.parts.iter().map(|&part| events(self.processes, part));
            let once = once.fold(0u64, u64::saturating_add);
            sum.saturating_add(once.saturating_mul(occurrence.times))
        });
        let channels = self.channels(&occurrences[0].parts);
        let is_collective = channels.pairs().len() == 0;
        let topology = if is_collective { None } else { channels.topology() };
        CommunicationPattern { occurrences, count, explains, channels, topology, is_collective, functions }
    }

    /// Who sends to whom in a pattern.
    fn channels(&self, parts: &[Part]) -> Channels {
        let place: HashMap<u32, usize> =
            parts.iter().enumerate().map(|(index, part)| (part.stream, index)).collect();
        let mut channels = Channels::new(parts.len());
        for (index, part) in parts.iter().enumerate() {
            for link in self.partners.between(part.stream as usize, part.start, part.end) {
                let Some(&other) = place.get(&link.stream) else { continue };
                let is_inside = (parts[other].start..parts[other].end).contains(&link.partner);
                let (sends, receives) = self.between(part.stream, link.index, link.stream);
                if is_inside && sends {
                    channels.add(index, other);
                }
                if is_inside && receives {
                    channels.add(other, index);
                }
            }
        }
        let in_stages = parts.iter().all(|part| self.is_in_stages(*part));
        channels.in_stages(in_stages)
    }

    /// Whether an event sends to another stream's process, and whether it receives from it.
    fn between(&self, stream: u32, index: u32, other: u32) -> (bool, bool) {
        let Processes { communicators, shown_calls, .. } = self.processes;
        let shown = self.processes.doings()[stream as usize].shown();
        let Some(call) = shown_calls.get(shown.symbols()[index as usize]) else { return (false, false) };
        let comm = shown_calls.comm(call.comm);
        let other = communicators.rank(other as usize);
        let is_other = |message: &Message| match message.peer {
            Peer::Rank(rank) => communicators.world_rank(stream as usize, comm, rank) == Some(other),
            Peer::Any => true,
        };
        (call.sends.iter().any(is_other), call.receives.iter().any(is_other))
    }

    /// Whether a process is done with one partner, having sent and received, before it turns
    /// to the next.
    fn is_in_stages(&self, part: Part) -> bool {
        let mut seen: Vec<(u32, bool, bool)> = Vec::new();
        for link in self.partners.between(part.stream as usize, part.start, part.end) {
            let (sends, receives) = self.between(part.stream, link.index, link.stream);
            if !sends && !receives {
                continue;
            }
            let stage = seen.iter().position(|stage| stage.0 == link.stream);
            match stage {
                Some(stage) if stage + 1 == seen.len() => {
                    seen[stage].1 |= sends;
                    seen[stage].2 |= receives;
                }
                Some(_) => return false,
                None => seen.push((link.stream, sends, receives)),
            }
        }
        seen.iter().all(|&(_, sends, receives)| sends && receives)
    }
}

/// How many events a stretch is, with the loops in it.
fn events(processes: &Processes<'_>, part: Part) -> u64 {
    processes.doings()[part.stream as usize].shown().events(part.start as usize, part.end as usize)
}

/// Where the partners in a stream are.
#[derive(Default)]
struct Hull {
    indices: Vec<u32>,
}

impl Hull {
    fn add(&mut self, index: u32) {
        self.indices.push(index);
    }

    fn bounds(&self) -> Option<(u32, u32)> {
        Some((*self.indices.iter().min()?, self.indices.iter().max()? + 1))
    }

    fn distinct(&mut self) -> usize {
        self.indices.sort_unstable();
        self.indices.dedup();
        self.indices.len()
    }
}

/// The places of a stream: all of its loops, and others.
struct Places {
    /// All of them, each once.
    all: Vec<(u32, u32)>,
    /// For each event, where in `holding` its places begin, the smallest first.
    starts: Vec<u32>,
    holding: Vec<u32>,
}

impl Places {
    fn new(shown: &Abridged, more: &[(u32, u32)]) -> Self {
        let loops = shown.loops().iter().map(|found| (found.start, found.end));
        let mut all: Vec<(u32, u32)> = loops.chain(more.iter().copied()).collect();
        all.sort_by_key(|&(start, end)| (end - start, start));
        all.dedup();
        let mut starts = vec![0u32; shown.symbols().len() + 1];
        for &(start, end) in &all {
            (start..end).for_each(|index| starts[index as usize + 1] += 1);
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut holding = vec![0u32; starts.last().copied().unwrap_or(0) as usize];
        for (place, &(start, end)) in all.iter().enumerate() {
            for index in start..end {
                let slot = &mut next[index as usize];
                holding[*slot as usize] = place as u32;
                *slot += 1;
            }
        }
        Self { all, starts, holding }
    }

    /// The smallest place that holds a stretch.
    fn smallest(&self, start: u32, end: u32) -> Option<(u32, u32)> {
        let (first, behind) = (self.starts[start as usize], self.starts[start as usize + 1]);
        let holding = &self.holding[first as usize..behind as usize];
        holding.iter().map(|&place| self.all[place as usize]).find(|place| place.1 >= end)
    }
}

/// Occurrences in which every process does the same.
#[derive(Default)]
struct Distinct {
    patterns: Vec<Vec<Occurrence>>,
    by_content: HashMap<Vec<(u32, Vec<Symbol>)>, usize>,
}

impl Distinct {
    fn add(&mut self, processes: &Processes<'_>, occurrence: Occurrence) {
        let content = occurrence.parts.iter().map(|part| {
            let symbols = processes.doings()[part.stream as usize].shown().symbols();
            (part.stream, symbols[part.start as usize..part.end as usize].to_vec())
        });
        let next = self.patterns.len();
        let pattern = *self.by_content.entry(content.collect()).or_insert(next);
        if pattern == next {
            self.patterns.push(Vec::new());
        }
        self.patterns[pattern].push(occurrence);
    }
}
