//! Communication patterns beside the messages of the program, one by one.

use super::messages::{Messages, Stretch};
use loopfold::questions::communication::{CommunicationPattern, Occurrence, Processes};
use loopfold::questions::patterns::LoopCollapsed;
use loopfold_testing::mpi::Call;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A loop where it is executed: the position of its first event, the events of an iteration, and
/// how many iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    pub start: u64,
    pub body: u64,
    pub times: u64,
}

/// Every execution of every loop of a nest.
pub fn executed(nest: &LoopCollapsed) -> Vec<Executed> {
    let mut all = Vec::new();
    walk(nest, 0, nest.symbols().len(), 0, 0, &mut all);
    all
}

/// The executions in an interval that begins at a position, from a loop on; returns how many
/// events it has.
fn walk(
    nest: &LoopCollapsed,
    start: usize,
    end: usize,
    position: u64,
    first: usize,
    all: &mut Vec<Executed>,
) -> u64 {
    let (mut index, mut at, mut next) = (start, position, first);
    while index < end {
        let found =
            nest.loops().get(next).filter(|found| found.start as usize == index && found.end as usize <= end);
        let Some(found) = found else {
            (index, at) = (index + 1, at + 1);
            continue;
        };
        let behind = found.end as usize;
        let begin = at;
        for _ in 0..found.times {
            at += walk(nest, index, behind, at, next + 1, all);
        }
        all.push(Executed { start: begin, body: (at - begin) / found.times, times: found.times });
        index = behind;
        next += nest.loops()[next..].iter().take_while(|inside| (inside.start as usize) < behind).count();
    }
    at - position
}

/// The distances of repetitions from the first, by rank.
type Distance = BTreeMap<usize, u64>;

/// Checks every occurrence of every pattern, and each of its repetitions.
pub struct Checking<'a> {
    pub messages: &'a Messages,
    pub processes: &'a Processes<'a>,
    pub patterns: &'a [CommunicationPattern],
}

impl Checking<'_> {
    /// How many repetitions were examined, or what is wrong.
    pub fn all(&self) -> Result<usize, String> {
        let mut examined = 0;
        for pattern in self.patterns {
            let say = |wrong: String| format!("{wrong} in {pattern:?}");
            self.totals(pattern).map_err(say)?;
            for occurrence in &pattern.occurrences {
                examined += self.occurrence(occurrence).map_err(say)?;
                self.same(&pattern.occurrences[0], occurrence).map_err(say)?;
            }
        }
        Ok(examined)
    }

    fn totals(&self, pattern: &CommunicationPattern) -> Result<(), String> {
        let events = |one: &Occurrence| one.parts.iter().map(|part| part.end - part.start).sum::<u64>();
        let count: u64 = pattern.occurrences.iter().map(|one| one.times).sum();
        let explains: u64 = pattern.occurrences.iter().map(|one| one.times * events(one)).sum();
        let crossing = pattern.occurrences.iter().map(|one| one.crossing).max();
        let all = (pattern.count, pattern.explains, pattern.events, Some(pattern.crossing));
        check(all == (count, explains, events(&pattern.occurrences[0]), crossing), || {
            format!("totals {count} {explains} {crossing:?}")
        })?;
        check(pattern.occurrences[0].parts.len() > 1, || "one process only".to_string())?;
        check(count > 1, || "occurs once".to_string())
    }

    fn stretches(&self, occurrence: &Occurrence, distance: &Distance) -> Vec<Stretch> {
        let stretch = |part: &loopfold::questions::communication::Part| {
            let by = distance.get(&part.stream.index()).copied().unwrap_or(0);
            (part.stream.index(), part.start + by, part.end + by)
        };
        occurrence.parts.iter().map(stretch).collect()
    }

    fn events(&self, (rank, start, end): Stretch) -> Option<&[Call]> {
        self.messages.events[rank].get(start as usize..end as usize)
    }

    fn occurrence(&self, occurrence: &Occurrence) -> Result<usize, String> {
        let inside = self.stretches(occurrence, &Distance::new());
        check(inside.iter().all(|&stretch| self.events(stretch).is_some()), || "past the end".to_string())?;
        check(inside.iter().all(|&(_, start, end)| start < end), || "an empty part".to_string())?;
        let mut wrong = Vec::new();
        let longest = self.messages.events[inside[0].0].len() as u64;
        let by_messages = (1..=longest).filter_map(|step| self.by_messages(occurrence, step));
        for in_a_row in self.in_a_row(occurrence).into_iter().chain(by_messages) {
            let outer = self.outer(occurrence)?;
            let mut examined = 0;
            let all = outer.iter().flat_map(|outer| in_a_row.iter().map(move |inner| sum(outer, inner)));
            let failed = all.into_iter().find_map(|distance| {
                examined += 1;
                self.repetition(occurrence, &distance).err().map(|wrong| format!("{distance:?}: {wrong}"))
            });
            match failed {
                None => return Ok(examined),
                Some(failed) => wrong.push(failed),
            }
        }
        wrong.truncate(2);
        Err(format!("{wrong:?} at {occurrence:?}"))
    }

    /// Where the repetitions in a row can be: directly after one another, or, for a family that is
    /// in the first iterations of loops, as far apart as these iterations.
    fn in_a_row(&self, occurrence: &Occurrence) -> Vec<Vec<Distance>> {
        let of = |step: &dyn Fn(Stretch) -> Option<u64>| {
            let stretches = self.stretches(occurrence, &Distance::new()).into_iter();
            let steps: Option<Vec<(usize, u64)>> =
                stretches.map(|stretch| Some((stretch.0, step(stretch)?))).collect();
            steps.map(|steps| {
                let at = |nth: u64| steps.iter().map(|&(rank, step)| (rank, nth * step)).collect();
                (0..occurrence.in_a_row).map(at).collect()
            })
        };
        let directly = of(&|(_, start, end)| Some(end - start));
        let by_loops = of(&|(rank, start, end)| {
            let loops = executed(self.processes.traces()[rank].shown()).into_iter();
            let around = loops.filter(|one| one.start <= start && end <= one.start + one.body);
            around.map(|one| one.body).min()
        });
        [directly, by_loops].into_iter().flatten().collect()
    }

    /// Where the repetitions in a row are if the first process repeats after so many events: those
    /// of the others are where the messages are that have the same place in it.
    fn by_messages(&self, occurrence: &Occurrence, step: u64) -> Option<Vec<Distance>> {
        let parts = self.stretches(occurrence, &Distance::new());
        let at = |nth: u64| {
            let mut distance = Distance::from([(parts[0].0, nth * step)]);
            let mut next = vec![parts[0]];
            while let Some((rank, start, end)) = next.pop() {
                for position in start..end {
                    let there = position + distance[&rank];
                    for (other, first, later) in self.messages.other_ends(rank, position, there)? {
                        let by = later.checked_sub(first)?;
                        if let Entry::Vacant(unknown) = distance.entry(other) {
                            unknown.insert(by);
                            next.extend(parts.iter().find(|part| part.0 == other));
                        }
                    }
                }
            }
            Some(distance)
        };
        (0..occurrence.in_a_row).map(at).collect()
    }

    /// Where an occurrence is repeated because joint loops around it iterate.
    fn outer(&self, occurrence: &Occurrence) -> Result<Vec<Distance>, String> {
        check(occurrence.times.is_multiple_of(occurrence.in_a_row), || {
            "times of what is in a row".to_string()
        })?;
        let times = occurrence.times / occurrence.in_a_row;
        if times == 1 {
            return Ok(vec![Distance::new()]);
        }
        let inside = self.stretches(occurrence, &Distance::new());
        let holds = |other: &&Occurrence| {
            let around = self.stretches(other, &Distance::new());
            let is_in = |&(rank, start, end): &Stretch| {
                around.iter().any(|&(other, from, to)| other == rank && from <= start && end <= to)
            };
            other.times == times && around != inside && inside.iter().all(is_in)
        };
        let around = self.patterns.iter().flat_map(|pattern| &pattern.occurrences).find(holds);
        let around = around.ok_or_else(|| format!("nothing around it that iterates {times} times"))?;
        let in_a_row = self.in_a_row(around).swap_remove(0);
        let outer = self.outer(around)?;
        Ok(outer.iter().flat_map(|outer| in_a_row.iter().map(move |inner| sum(outer, inner))).collect())
    }

    /// A repetition does what the first does, and leaves open no more than the occurrence says.
    fn repetition(&self, occurrence: &Occurrence, distance: &Distance) -> Result<(), String> {
        let first = self.stretches(occurrence, &Distance::new());
        let here = self.stretches(occurrence, distance);
        for (&first, &here) in first.iter().zip(&here) {
            check(self.events(here).is_some_and(|events| Some(events) == self.events(first)), || {
                format!("differs at {here:?}")
            })?;
        }
        let open = self.messages.open(&here);
        let is_closed = open.elsewhere.is_empty() && open.nowhere.is_empty();
        if occurrence.crossing == 0 {
            check(is_closed, || format!("not closed: {open:?}"))?;
            return check(open.unbalanced_pools.is_empty(), || format!("pools: {open:?}"));
        }
        check(open.unbalanced.is_empty() || open.elsewhere.is_empty(), || format!("unbalanced {open:?}"))
    }

    /// Two occurrences do the same, apart from how often loops inside iterate.
    fn same(&self, first: &Occurrence, other: &Occurrence) -> Result<(), String> {
        let (first, other) =
            (self.stretches(first, &Distance::new()), self.stretches(other, &Distance::new()));
        check(first.len() == other.len(), || "other processes".to_string())?;
        for (&one, &two) in first.iter().zip(&other) {
            check(one.0 == two.0, || "other processes".to_string())?;
            let (Some(a), Some(b)) = (self.events(one), self.events(two)) else { continue };
            check(a == b || same_without_counts(a, b), || format!("{one:?} is not {two:?}"))?;
        }
        Ok(())
    }
}

fn sum(one: &Distance, other: &Distance) -> Distance {
    let mut sum = one.clone();
    other.iter().for_each(|(&rank, by)| *sum.entry(rank).or_default() += by);
    sum
}

fn check(is_right: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(wrong()) }
}

/// Whether two sequences are equal if everything that is repeated directly counts once, wherever
/// and at whatever size: whether they are the same element of the free band (Green and Rees
/// 1952). They are if they have the same events, and recursively if what comes before the first
/// occurrence of the event that is new last is, and what comes behind the last occurrence of the
/// one that ends first.
pub fn same_without_counts(a: &[Call], b: &[Call]) -> bool {
    let prefix = |calls: &[Call]| {
        (0..calls.len()).rev().find(|&at| !calls[..at].contains(&calls[at])).map(|at| (calls[at], at))
    };
    let suffix = |calls: &[Call]| {
        (0..calls.len()).find(|&at| !calls[at + 1..].contains(&calls[at])).map(|at| (calls[at], at))
    };
    match (prefix(a), prefix(b), suffix(a), suffix(b)) {
        (None, None, ..) => true,
        (Some((one, i)), Some((two, j)), Some((three, k)), Some((four, l))) => {
            one == two
                && three == four
                && (a[..i] == b[..j] || same_without_counts(&a[..i], &b[..j]))
                && (a[k + 1..] == b[l + 1..] || same_without_counts(&a[k + 1..], &b[l + 1..]))
        }
        _ => false,
    }
}
