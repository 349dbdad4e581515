//! Communication patterns (the paper's algorithm 4): stretches of several processes that
//! belong together because what one sends the other receives.
//!
//! One begins with a stretch of one process that repeats, a *place*. The partners of its
//! events lie in stretches of other processes, and theirs in others again, until no process
//! is added. Each process is in a pattern with one stretch: of the places that hold all partners
//! and repeat as often as the first one does the largest, if it answers to what is in the
//! pattern more than to anything else of the same processes; or else the smallest that does and
//! is not repeated more often; else the partners alone if they lie next to each other, which is
//! how the paper adds single events; else the process stays out. A place is in one pattern only: the one that begins with the
//! place whose repetitions are most events. Patterns in which every process does the same are
//! one pattern that occurs several times.
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
use std::cmp::Reverse;
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
    /// The stretches, by rank.
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
    /// How many events one occurrence is, of all processes.
    pub events: u64,
    /// How many events all of its occurrences are.
    pub explains: u64,
    /// The same, but for loops inside that repeat now more and now less often: they are no part
    /// of what is always the same, and count once.
    pub rank: u64,
}

impl CommunicationPattern {
    /// The stretches of the first place.
    pub fn parts(&self) -> &[Part] {
        &self.occurrences[0].parts
    }
}

/// The patterns of all processes, those first whose [rank](CommunicationPattern::rank) is highest. `places` are, for
/// each stream, the stretches in which something repeats; loops are always looked at.
pub fn communication_patterns(
    processes: &Processes<'_>,
    partners: &Partners,
    places: &[Vec<(u32, u32)>],
) -> Vec<CommunicationPattern> {
    let mut joining = Joining::new(processes, partners, places);
    let mut distinct = Distinct::default();
    for (stream, place) in joining.seeds() {
        let places = &mut joining.places[stream as usize];
        if std::mem::replace(&mut places.is_joined[place as usize], true) {
            continue;
        }
        let (start, end) = places.all[place as usize];
        let times = places.times[place as usize];
        let (mut parts, times) = joining.grow(Part { stream, start, end }, times);
        if parts.len() >= 2 {
            // Topologies are those of ranks, in whichever order their streams come.
            parts.sort_unstable_by_key(|part| (processes.communicators.rank(part.stream as usize), *part));
            let loops = joining.loops(&parts);
            distinct.add(processes, Occurrence { parts, times }, loops);
        }
    }
    distinct.patterns(processes)
}

/// Where a pattern began to grow.
#[derive(Clone, Copy)]
struct Seed {
    round: u64,
    /// How often its first place is repeated.
    times: u64,
}

/// Places that are tried, of those that may answer.
const MOST_TRIED: usize = 4;

/// Places that are looked at to find these: an event may lie in many.
const MOST_SEEN: usize = 16;

struct Joining<'p, 'a> {
    processes: &'p Processes<'a>,
    partners: &'p Partners,
    places: Vec<Places>,
    /// For each stream its stretch in the pattern that is growing, if it was put there in
    /// this round.
    growing: Vec<(u64, Part)>,
    hulls: Vec<(u64, Hull)>,
    round: u64,
}

impl<'p, 'a> Joining<'p, 'a> {
    fn new(processes: &'p Processes<'a>, partners: &'p Partners, places: &[Vec<(u32, u32)>]) -> Self {
        let of_stream =
            |(stream, more): (usize, &Vec<(u32, u32)>)| Places::new(processes.doings()[stream].shown(), more);
        let places: Vec<Places> = places.iter().enumerate().map(of_stream).collect();
        let streams = places.len();
        let nowhere = Part { stream: 0, start: 0, end: 0 };
        let (growing, hulls) = (vec![(0, nowhere); streams], vec![(0, Hull::of(0)); streams]);
        Self { processes, partners, places, growing, hulls, round: 0 }
    }

    /// All places of two events or more, those first that are most events with all that is
    /// repeated, not counting loops inside.
    fn seeds(&self) -> Vec<(u32, u32)> {
        let mut seeds: Vec<(u64, u32, u32, u32)> = Vec::new();
        for (stream, places) in self.places.iter().enumerate() {
            let rank = self.processes.communicators.rank(stream);
            let shown = self.processes.doings()[stream].shown();
            for (place, &(start, end)) in places.all.iter().enumerate() {
                if end - start >= 2 {
                    let events =
                        shown.times(start as usize, end as usize).saturating_mul((end - start).into());
                    seeds.push((events, rank, stream as u32, place as u32));
                }
            }
        }
        seeds.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.cmp(b)));
        seeds.into_iter().map(|(_, _, stream, place)| (stream, place)).collect()
    }

    /// The stretches that belong together with this one, and how often all of them are repeated.
    fn grow(&mut self, first: Part, times: u64) -> (Vec<Part>, u64) {
        self.round += 1;
        let seed = Seed { round: self.round, times };
        self.growing[first.stream as usize] = (seed.round, first);
        let (mut parts, mut least) = (vec![first], times);
        let mut next = 0;
        let mut met: Vec<u32> = Vec::new();
        while let Some(&part) = parts.get(next) {
            next += 1;
            self.round += 1;
            for link in self.partners.between(part.stream as usize, part.start, part.end) {
                let stream = link.stream as usize;
                if self.growing[stream].0 >= seed.round {
                    continue;
                }
                let (round, hull) = &mut self.hulls[stream];
                if *round == self.round {
                    hull.add(link.partner);
                } else {
                    (*round, *hull) = (self.round, Hull::of(link.partner));
                    met.push(link.stream);
                }
            }
            for stream in met.drain(..) {
                let hull = self.hulls[stream as usize].1;
                if let Some((found, times)) = self.answer(part, stream, hull, seed) {
                    self.growing[stream as usize] = (self.round, found);
                    parts.push(found);
                    least = least.min(times);
                }
            }
        }
        (parts, least)
    }

    /// What differs if loops inside stretches that are the same else repeat more or less often.
    fn loops(&self, parts: &[Part]) -> u64 {
        let loops = parts.iter().map(|part| self.places[part.stream as usize].loops(*part));
        loops.fold(0, |all, loops| all.wrapping_mul(31).wrapping_add(loops))
    }

    /// The stretch of a stream that answers to what is in the pattern so far: in the hull are
    /// the partners of `part`. With how often it is repeated.
    fn answer(&mut self, part: Part, stream: u32, hull: Hull, seed: Seed) -> Option<(Part, u64)> {
        let places = &self.places[stream as usize];
        // What another pattern has taken needs no look.
        let found = places
            .candidates(hull, seed.times)
            .find(|&place| places.is_joined[place as usize] || self.answers(stream, place, seed));
        if let Some(place) = found {
            let places = &mut self.places[stream as usize];
            if std::mem::replace(&mut places.is_joined[place as usize], true) {
                return None;
            }
            let (start, end) = places.all[place as usize];
            return Some((Part { stream, start, end }, places.times[place as usize]));
        }
        let together = Part { stream, start: hull.first, end: hull.last + 1 };
        self.are_together(part, together).then(|| {
            let shown = self.processes.doings()[stream as usize].shown();
            (together, shown.times(together.start as usize, together.end as usize))
        })
    }

    /// Whether at least half of what a place has to do with processes of the pattern is with
    /// their stretches in it.
    fn answers(&self, stream: u32, place: u32, seed: Seed) -> bool {
        let (start, end) = self.places[stream as usize].all[place as usize];
        let (mut inside, mut to_pattern) = (0, 0);
        for link in self.partners.between(stream as usize, start, end) {
            let (round, part) = self.growing[link.stream as usize];
            if round >= seed.round {
                to_pattern += 1;
                inside += usize::from((part.start..part.end).contains(&link.partner));
            }
        }
        2 * inside >= to_pattern
    }

    /// Whether each event of a stretch is a partner of an event of another one.
    fn are_together(&self, part: Part, together: Part) -> bool {
        (together.start..together.end).all(|index| {
            let links = self.partners.between(together.stream as usize, index, index + 1);
            links
                .iter()
                .any(|link| link.stream == part.stream && (part.start..part.end).contains(&link.partner))
        })
    }
}

/// What there is to say of a communication pattern.
#[derive(Clone, Debug)]
pub struct Description {
    /// Who sends to whom: processes are the positions of its parts.
    pub channels: Channels,
    /// The well-known topology it is nearest to.
    pub topology: Option<Topology>,
    /// True if it has nothing but collective operations.
    pub is_collective: bool,
    /// The functions it occurs in, and how often in each.
    pub functions: Vec<(String, u64)>,
}

impl Description {
    /// Looks at the partners in the first place, and at the functions of all.
    pub fn of(pattern: &CommunicationPattern, processes: &Processes<'_>, partners: &Partners) -> Self {
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for occurrence in &pattern.occurrences {
            let first = occurrence.parts[0];
            if let Some(function) = processes.function(first.stream as usize, first.start as usize) {
                let sum = functions.entry(function).or_default();
                *sum = sum.saturating_add(occurrence.times);
            }
        }
        let mut functions: Vec<(String, u64)> =
            functions.into_iter().map(|(function, count)| (function.to_string(), count)).collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let channels = Looking { processes, partners }.channels(pattern.parts());
        let is_collective = channels.pairs().len() == 0;
        let topology = if is_collective { None } else { channels.topology() };
        Self { channels, topology, is_collective, functions }
    }
}

/// Looks at who sends to whom in a pattern.
struct Looking<'p, 'a> {
    processes: &'p Processes<'a>,
    partners: &'p Partners,
}

impl Looking<'_, '_> {
    fn channels(&self, parts: &[Part]) -> Channels {
        let place: HashMap<u32, usize> =
            parts.iter().enumerate().map(|(index, part)| (part.stream, index)).collect();
        let mut channels = Channels::new(parts.len());
        for (index, part) in parts.iter().enumerate() {
            for link in self.partners.between(part.stream as usize, part.start, part.end) {
                let Some(&other) = place.get(&link.stream) else { continue };
                if !(parts[other].start..parts[other].end).contains(&link.partner) {
                    continue;
                }
                let (sends, receives) = self.between(part.stream, link);
                if sends {
                    channels.add(index, other);
                }
                if receives {
                    channels.add(other, index);
                }
            }
        }
        let in_stages = parts.iter().all(|part| self.is_in_stages(*part));
        channels.in_stages(in_stages)
    }

    /// Whether an event sends to its partner, and whether it receives from it.
    fn between(&self, stream: u32, link: &Link) -> (bool, bool) {
        let own = self.ends(stream, link.index, link.stream);
        // Who receives from anyone receives only from those who send to it.
        let other = self.ends(link.stream, link.partner, stream);
        (own.0 && other.1, own.1 && other.0)
    }

    /// Whether an event can send to another stream's process, and whether it can receive from it.
    fn ends(&self, stream: u32, index: u32, other: u32) -> (bool, bool) {
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
        let mut seen: HashSet<u32> = HashSet::new();
        // The partner it is with, and whether it has sent and received.
        let mut stage: Option<(u32, bool, bool)> = None;
        for link in self.partners.between(part.stream as usize, part.start, part.end) {
            let (sends, receives) = self.between(part.stream, link);
            if !sends && !receives {
                continue;
            }
            stage = match stage {
                Some((partner, sent, received)) if partner == link.stream => {
                    Some((partner, sent || sends, received || receives))
                }
                Some((_, sent, received)) if !sent || !received => return false,
                _ if !seen.insert(link.stream) => return false,
                _ => Some((link.stream, sends, receives)),
            };
        }
        stage.is_none_or(|(_, sent, received)| sent && received)
    }
}

/// Between which events of a stream the partners are.
#[derive(Clone, Copy)]
struct Hull {
    first: u32,
    last: u32,
}

impl Hull {
    fn of(index: u32) -> Self {
        Self { first: index, last: index }
    }

    fn add(&mut self, index: u32) {
        self.first = self.first.min(index);
        self.last = self.last.max(index);
    }
}

/// The events of all places of a stream together, and more of them for each of its events.
const MOST_HELD: usize = 1 << 26;
const HELD_EACH: usize = 8;

/// The places of a stream: all of its loops, and others.
struct Places {
    /// All of them, each once.
    all: Vec<(u32, u32)>,
    /// How often each occurs.
    times: Vec<u64>,
    /// For each event, where in `holding` its places begin. Those that occur most often come
    /// first, so that a loop comes before what cuts through it, and of these the smallest.
    starts: Vec<u32>,
    holding: Vec<u32>,
    /// How often the loops that begin before each event repeat, together.
    loops_before: Vec<u64>,
    /// Which are in a pattern already.
    is_joined: Vec<bool>,
}

impl Places {
    fn new(shown: &Abridged, more: &[(u32, u32)]) -> Self {
        let loops = shown.loops().iter().map(|found| (found.start, found.end));
        let mut all: Vec<(u32, u32)> = loops.chain(more.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let keyed = |&(start, end): &(u32, u32)| {
            (Reverse(shown.times(start as usize, end as usize)), end - start, start)
        };
        let mut keyed: Vec<(Reverse<u64>, u32, u32)> = all.iter().map(keyed).collect();
        keyed.sort_unstable();
        // Places lie in each other or apart, as a rule; if they do not, some are not looked at.
        let mut room = MOST_HELD + HELD_EACH * shown.symbols().len();
        keyed.retain(|&(_, length, _)| {
            let rest = room.checked_sub(length as usize);
            room = rest.unwrap_or(room);
            rest.is_some()
        });
        let all: Vec<(u32, u32)> = keyed.iter().map(|&(_, length, start)| (start, start + length)).collect();
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
        let mut loops_before = vec![0u64; shown.symbols().len() + 1];
        for found in shown.loops() {
            let here = &mut loops_before[found.start as usize + 1];
            *here = here.wrapping_add(found.times);
        }
        for index in 1..loops_before.len() {
            loops_before[index] = loops_before[index].wrapping_add(loops_before[index - 1]);
        }
        Self {
            loops_before,
            is_joined: vec![false; all.len()],
            times: keyed.into_iter().map(|(Reverse(times), ..)| times).collect(),
            all,
            starts,
            holding,
        }
    }

    /// The places that may answer to what is repeated so often: of those that hold the stretch
    /// first the largest that are repeated as often, then the smallest that are less often.
    fn candidates(&self, hull: Hull, times: u64) -> impl Iterator<Item = u32> + '_ {
        let (first, behind) = (self.starts[hull.first as usize], self.starts[hull.first as usize + 1]);
        let holding = &self.holding[first as usize..behind as usize];
        let times_of = |place: &u32| self.times[*place as usize];
        let more_often = holding.partition_point(|place| times_of(place) > times);
        let as_often = holding.partition_point(|place| times_of(place) >= times);
        let holds = move |place: &u32| self.all[*place as usize].1 > hull.last;
        let largest = holding[more_often..as_often].iter().copied().rev().take(MOST_SEEN).filter(holds);
        let smallest = holding[as_often..].iter().copied().take(MOST_SEEN).filter(holds);
        let others = holding[..more_often].iter().copied().take(MOST_SEEN).filter(holds);
        largest.take(MOST_TRIED).chain(smallest.take(MOST_TRIED)).chain(others.take(1))
    }

    /// How often the loops that begin in a stretch repeat, together.
    fn loops(&self, part: Part) -> u64 {
        self.loops_before[part.end as usize].wrapping_sub(self.loops_before[part.start as usize])
    }
}

/// Occurrences in which every process does the same.
#[derive(Default)]
struct Distinct {
    /// Each with what its loops are like.
    occurrences: Vec<Vec<(Occurrence, u64)>>,
    by_content: HashMap<Vec<(u32, u32)>, usize, foldhash::fast::RandomState>,
    /// Sequences of events, numbered.
    sequences: HashMap<Vec<Symbol>, u32, foldhash::fast::RandomState>,
}

impl Distinct {
    /// Adds an occurrence with what its loops are like.
    fn add(&mut self, processes: &Processes<'_>, occurrence: Occurrence, loops: u64) {
        let mut content = Vec::with_capacity(occurrence.parts.len());
        for part in &occurrence.parts {
            let shown = processes.doings()[part.stream as usize].shown();
            let symbols = &shown.symbols()[part.start as usize..part.end as usize];
            let next = self.sequences.len() as u32;
            content.push((part.stream, *self.sequences.entry_ref(symbols).or_insert(next)));
        }
        let next = self.occurrences.len();
        let pattern = *self.by_content.entry(content).or_insert(next);
        if pattern == next {
            self.occurrences.push(Vec::new());
        }
        self.occurrences[pattern].push((occurrence, loops));
    }

    /// Those first that explain most.
    fn patterns(self, processes: &Processes<'_>) -> Vec<CommunicationPattern> {
        let mut patterns: Vec<CommunicationPattern> =
            self.occurrences.into_iter().map(|all| pattern(processes, all)).collect();
        let by_rank = |pattern: &CommunicationPattern| {
            let rank = |part: &Part| (processes.communicators.rank(part.stream as usize), *part);
            pattern.parts().iter().map(rank).collect::<Vec<_>>()
        };
        patterns.sort_by(|a, b| {
            b.rank
                .cmp(&a.rank)
                .then(b.count.cmp(&a.count))
                .then(b.parts().len().cmp(&a.parts().len()))
                .then_with(|| by_rank(a).cmp(&by_rank(b)))
        });
        patterns
    }
}

fn pattern(processes: &Processes<'_>, mut occurrences: Vec<(Occurrence, u64)>) -> CommunicationPattern {
    occurrences.sort_by(|a, b| a.0.parts.cmp(&b.0.parts));
    let is_steady = occurrences.iter().all(|(_, loops)| *loops == occurrences[0].1);
    let occurrences: Vec<Occurrence> = occurrences.into_iter().map(|(occurrence, _)| occurrence).collect();
    let events_of = |occurrence: &Occurrence| {
        let of_part = |part: &Part| {
            let shown = processes.doings()[part.stream as usize].shown();
            shown.events(part.start as usize, part.end as usize)
        };
        occurrence.parts.iter().map(of_part).fold(0, u64::saturating_add)
    };
    let count = occurrences.iter().fold(0u64, |sum, occurrence| sum.saturating_add(occurrence.times));
    let events = events_of(&occurrences[0]);
    if is_steady {
        let explains = count.saturating_mul(events);
        return CommunicationPattern { events, occurrences, count, explains, rank: explains };
    }
    // A place that is the body of a loop has one more than others, and may be the same else.
    let (mut fewest, mut most, mut explains) = (u64::MAX, 0, 0u64);
    for occurrence in &occurrences {
        let events = events_of(occurrence);
        (fewest, most) = (fewest.min(events), most.max(events));
        explains = explains.saturating_add(events.saturating_mul(occurrence.times));
    }
    let written: u64 = occurrences[0].parts.iter().map(|part| u64::from(part.end - part.start)).sum();
    let rank = if fewest == most { explains } else { count.saturating_mul(written) };
    CommunicationPattern { events, occurrences, count, explains, rank }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn places_that_overlap_too_much_are_not_looked_at() {
        let events: Vec<Symbol> = (0..20_000).map(|number| Symbol::new(number).unwrap()).collect();
        let shown = Abridged::of(&events).unwrap();
        let all: Vec<(u32, u32)> = (2..20_000).map(|end| (0, end)).collect();
        let places = Places::new(&shown, &all);
        assert!(places.holding.len() <= MOST_HELD + HELD_EACH * events.len());
        assert!(places.all.len() > 10_000 && places.all.len() < all.len());
        assert_eq!(places.candidates(Hull { first: 0, last: 4 }, 1).count(), MOST_TRIED);
    }
}
