//! All joint loops of a tiny program, by trying everything.
//!
//! A candidate of a process is a stretch of a run, g times a number of its loop's iterations, in
//! any rotation: runs are the loops of its nest, as far as the repetition goes on before and
//! after, up to an iteration. (Where it goes on for longer, the nest has another loop there.) A joint loop is a candidate of each of two or more processes, with the same g, such
//! that at every cut between iterations each channel has as many sends as receives before it,
//! and no message of the stretches has its other end in another process.

use super::joint::executed;
use super::messages::{Messages, Side};
use loopfold::questions::communication::{CommunicationPattern, Occurrence, Part, Processes};
use std::collections::BTreeSet;

/// Iterations of a process in a joint loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub rank: usize,
    pub start: u64,
    pub body: u64,
    pub times: u64,
}

impl Candidate {
    fn end(&self) -> u64 {
        self.start + self.times * self.body
    }
}

/// The joint loops that are no part of a larger one of the same processes and iterations.
pub fn joint_loops(messages: &Messages, processes: &Processes<'_>) -> Vec<Vec<Candidate>> {
    let of_rank: Vec<Vec<Candidate>> =
        (0..messages.events.len()).map(|rank| candidates(messages, processes, rank)).collect();
    let mut found = Vec::new();
    let mut members = Vec::new();
    extend(messages, &of_rank, 0, &mut members, &mut found);
    let is_part = |one: &[Candidate], of: &[Candidate]| {
        one != of
            && one.len() == of.len()
            && one.iter().zip(of).all(|(one, of)| {
                one.rank == of.rank && one.body == of.body && of.start <= one.start && one.end() <= of.end()
            })
    };
    let largest = |one: &&Vec<Candidate>| !found.iter().any(|of| is_part(one, of));
    found.iter().filter(largest).cloned().collect()
}

fn candidates(messages: &Messages, processes: &Processes<'_>, rank: usize) -> Vec<Candidate> {
    let events = &messages.events[rank];
    let mut all = BTreeSet::new();
    for found in executed(processes.traces()[rank].shown()) {
        let body = found.body as usize;
        let (mut from, mut to) = (found.start as usize, (found.start + found.times * found.body) as usize);
        let (first, last) = (from.saturating_sub(body - 1), (to + body - 1).min(events.len()));
        while from > first && events[from - 1] == events[from - 1 + body] {
            from -= 1;
        }
        while to < last && events[to] == events[to - body] {
            to += 1;
        }
        for start in from..to {
            for body in (body..=(to - start) / 2).step_by(body) {
                for times in 2..=(to - start) / body {
                    let (start, body, times) = (start as u64, body as u64, times as u64);
                    all.insert(Candidate { rank, start, body, times });
                }
            }
        }
    }
    all.into_iter().collect()
}

/// Adds a candidate of each further process or none.
fn extend(
    messages: &Messages,
    of_rank: &[Vec<Candidate>],
    rank: usize,
    members: &mut Vec<Candidate>,
    found: &mut Vec<Vec<Candidate>>,
) {
    let Some(candidates) = of_rank.get(rank) else {
        if members.len() > 1 && is_closed(messages, members) && is_connected(messages, members) {
            found.push(members.clone());
        }
        return;
    };
    extend(messages, of_rank, rank + 1, members, found);
    for &candidate in candidates {
        let fits = members.first().is_none_or(|first| first.times == candidate.times);
        members.push(candidate);
        if fits && is_balanced(messages, members) {
            extend(messages, of_rank, rank + 1, members, found);
        }
        members.pop();
    }
}

/// Whether at every cut the channels between these processes are empty.
fn is_balanced(messages: &Messages, members: &[Candidate]) -> bool {
    (0..=members[0].times).all(|iteration| {
        (0..messages.channels()).all(|channel| {
            let mut counts = messages.users_of(channel).filter_map(|(side, rank)| {
                let member = members.iter().find(|member| member.rank == rank)?;
                Some(messages.before(channel, side, rank, member.start + iteration * member.body))
            });
            let first = counts.next();
            counts.all(|count| Some(count) == first)
        })
    })
}

/// Whether the other ends of all messages are in these processes.
fn is_closed(messages: &Messages, members: &[Candidate]) -> bool {
    let has = |rank: usize| members.iter().any(|member| member.rank == rank);
    channels(messages, members).iter().all(|&channel| {
        let users: Vec<(Side, usize)> = messages.users_of(channel).collect();
        users.len() > 1 && users.iter().all(|&(_, rank)| has(rank))
    })
}

fn channels(messages: &Messages, members: &[Candidate]) -> BTreeSet<usize> {
    let of_member = |member: &Candidate| {
        (member.start..member.end())
            .flat_map(|position| messages.ends(member.rank, position))
            .map(|end| end.channel)
            .collect::<Vec<_>>()
    };
    members.iter().flat_map(of_member).collect()
}

fn is_connected(messages: &Messages, members: &[Candidate]) -> bool {
    let mut reached = BTreeSet::from([members[0].rank]);
    let channels = channels(messages, members);
    for _ in members {
        for &channel in &channels {
            let users: Vec<usize> = messages.users_of(channel).map(|(_, rank)| rank).collect();
            if users.iter().any(|rank| reached.contains(rank)) {
                reached.extend(users);
            }
        }
    }
    members.iter().all(|member| reached.contains(&member.rank))
}

/// Whether each process does one and the same all the time: an operation, not a pattern.
pub fn is_operation(messages: &Messages, members: &[Candidate]) -> bool {
    members.iter().all(|member| {
        let events = &messages.events[member.rank][member.start as usize..member.end() as usize];
        events.iter().all(|event| *event == events[0])
    })
}

/// What is reported of a joint loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// A joint loop has all of it in its iterations, or is another rotation of it.
    Yes,
    /// A joint loop that overlaps with it: of two such only one is reported.
    Overlapping,
    No,
}

/// Looks for a joint loop among patterns. One that lies in a single iteration of another must be
/// reported inside of it as well, which it is in the first iteration.
pub fn reported(patterns: &[CommunicationPattern], members: &[Candidate]) -> Reported {
    let joint = patterns.iter().flat_map(|pattern| &pattern.occurrences).filter(|one| one.in_a_row > 1);
    let mut result = Reported::No;
    for one in joint {
        if is_rotated(one, members) {
            return Reported::Yes;
        }
        if !holds(one, members) {
            if overlaps(one, members) {
                result = Reported::Overlapping;
            }
            continue;
        }
        match single_iteration(one, members) {
            None => return Reported::Yes,
            Some(0) => {}
            Some(iteration) => {
                let moved: Vec<Candidate> =
                    members.iter().map(|member| moved(one, member, iteration)).collect();
                return reported(patterns, &moved);
            }
        }
    }
    result
}

/// Where a member is in the first iteration of a joint loop around it.
fn moved(one: &Occurrence, member: &Candidate, iteration: u64) -> Candidate {
    let body = part_of(one, member).map_or(0, |part| part.end - part.start);
    Candidate { start: member.start - iteration * body, ..*member }
}

fn part_of<'a>(one: &'a Occurrence, member: &Candidate) -> Option<&'a Part> {
    one.parts.iter().find(|part| part.stream.index() == member.rank)
}

/// From where to where all iterations of a part are.
fn whole(one: &Occurrence, part: &Part) -> (u64, u64) {
    (part.start, part.start + one.in_a_row * (part.end - part.start))
}

/// Whether all iterations of an occurrence together have those of the members.
fn holds(one: &Occurrence, members: &[Candidate]) -> bool {
    members.iter().all(|member| {
        part_of(one, member).is_some_and(|part| {
            let (start, end) = whole(one, part);
            start <= member.start && member.end() <= end
        })
    })
}

fn overlaps(one: &Occurrence, members: &[Candidate]) -> bool {
    members.iter().any(|member| {
        part_of(one, member).is_some_and(|part| {
            let (start, end) = whole(one, part);
            start < member.end() && member.start < end
        })
    })
}

/// The iteration that has all members, if there is one.
fn single_iteration(one: &Occurrence, members: &[Candidate]) -> Option<u64> {
    let mut iterations = members.iter().map(|member| {
        let part = part_of(one, member)?;
        let body = part.end - part.start;
        let iteration = (member.start - part.start) / body;
        (member.end() <= part.start + (iteration + 1) * body).then_some(iteration)
    });
    let first = iterations.next()??;
    iterations.all(|iteration| iteration == Some(first)).then_some(first)
}

/// Whether a joint loop is another rotation of this one: with as many events in all of its
/// iterations, which begin at most one iteration earlier or later.
fn is_rotated(one: &Occurrence, members: &[Candidate]) -> bool {
    members.iter().all(|member| {
        part_of(one, member).is_some_and(|part| {
            let body = part.end - part.start;
            let (start, end) = whole(one, part);
            member.body.is_multiple_of(body)
                && end - start >= member.times * member.body
                && start <= member.start + body
                && member.end() <= end + body
        })
    })
}
