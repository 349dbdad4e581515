//! Communication patterns (the paper's algorithm 4): stretches of several processes that
//! exchange messages with each other.
//!
//! A pattern begins with a repeated stretch of one process, a *place*. The partners of its
//! events lie in stretches of other processes, and so on, until no process is added. Each
//! process has one stretch in a pattern, the first of these that exists: the largest place that
//! contains all partners and repeats as often as the first place, if at least half of its
//! partners in these processes are in the pattern; the smallest such place that is not repeated
//! more often; the partners alone if they are adjacent, which is how the paper adds single
//! events. Otherwise the process is left out. A place is in one pattern only: the one that
//! begins with the place whose repetitions are most events. Patterns in which every process
//! does the same are one pattern that occurs several times.
//!
//! Time and memory are O(partners of all events in all places). Places are nested like loops,
//! or disjoint, so this is O(written events × depth of loops).

mod distinct;
mod places;

use super::partners::Partners;
use super::processes::Processes;
use distinct::Distinct;
use places::{Hull, Places};

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
}

impl CommunicationPattern {
    /// The stretches of the first place.
    pub fn parts(&self) -> &[Part] {
        &self.occurrences[0].parts
    }
}

/// The patterns of all processes, the [heaviest](CommunicationPattern::weight) first. `places`
/// are, for each stream, the stretches in which something repeats; loops are always looked at.
pub fn communication_patterns(
    processes: &Processes<'_>,
    partners: &Partners,
    places: &[Vec<(u32, u32)>],
) -> Vec<CommunicationPattern> {
    let mut joining = Joining::new(processes, partners, places);
    let mut distinct = Distinct::default();
    for (stream, place) in joining.seeds() {
        if !joining.places[stream as usize].join(place) {
            continue;
        }
        let Occurrence { mut parts, times } = joining.grow(stream, place);
        if parts.len() >= 2 {
            // Topologies are those of ranks, in whichever order their streams come.
            parts.sort_unstable_by_key(|part| (processes.communicators.rank(part.stream as usize), *part));
            distinct.add(processes, Occurrence { parts, times });
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
        let of_stream = |(stream, more): (usize, &Vec<(u32, u32)>)| {
            Places::new(stream as u32, processes.traces()[stream].shown(), more)
        };
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
            for (place, part, times) in places.all().filter(|(_, part, _)| part.end - part.start >= 2) {
                let events = times.saturating_mul((part.end - part.start).into());
                seeds.push((events, rank, stream as u32, place));
            }
        }
        seeds.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.cmp(b)));
        seeds.into_iter().map(|(_, _, stream, place)| (stream, place)).collect()
    }

    /// The stretches that belong together with a place, and how often all of them are repeated.
    fn grow(&mut self, stream: u32, place: u32) -> Occurrence {
        self.round += 1;
        let places = &self.places[stream as usize];
        let (first, mut least) = (places.part(place), places.times(place));
        let seed = Seed { round: self.round, times: least };
        self.growing[stream as usize] = (seed.round, first);
        let mut parts = vec![first];
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
        Occurrence { parts, times: least }
    }

    /// The stretch of a stream that answers to what is in the pattern so far: in the hull are
    /// the partners of `part`. With how often it is repeated.
    fn answer(&mut self, part: Part, stream: u32, hull: Hull, seed: Seed) -> Option<(Part, u64)> {
        let places = &self.places[stream as usize];
        // A place that another pattern has taken is skipped.
        let found = places
            .candidates(hull, seed.times)
            .find(|&place| places.is_joined(place) || self.answers(places.part(place), seed));
        if let Some(place) = found {
            let places = &mut self.places[stream as usize];
            return places.join(place).then(|| (places.part(place), places.times(place)));
        }
        let together = Part { stream, start: hull.first, end: hull.last + 1 };
        self.are_together(part, together).then(|| {
            let shown = self.processes.traces()[stream as usize].shown();
            (together, shown.times(together.start as usize, together.end as usize))
        })
    }

    /// Whether at least half of a place's partners in processes of the pattern lie in their
    /// stretches of it.
    fn answers(&self, place: Part, seed: Seed) -> bool {
        let (mut inside, mut to_pattern) = (0, 0);
        for link in self.partners.between(place.stream as usize, place.start, place.end) {
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
