//! Joint loops: what several processes repeat together, with every message inside.
//!
//! A *cut* is a position in each of some processes. It is *empty* if on every channel between
//! them as many sends as receives lie before it, and if all have begun the same number of
//! collective operations of each communicator. A *run* is a stretch of a process that repeats
//! with a period: the iterations of a loop of its nest, with what continues the repetition
//! before and after. A **joint loop** is a set of two or more processes, a run and a number of
//! its iterations for each, and g ≥ 2 such that
//!
//! - the cut at the begin and those after each of g joint iterations lie in the runs,
//! - no message of the runs' loops has its other end in another process, or in another loop,
//! - every cut is empty.
//!
//! As the iterations of a run are equal, all cuts are empty if the first one is and if a joint
//! iteration has as many sends as receives on each channel. If there is no empty cut, but what
//! is in flight is the same at every cut (messages that run ahead in a pipeline, or one that
//! was lost before), it is a joint loop with *messages in flight*, and says so.
//!
//! **Search.** The largest loops of all processes come first. From a loop, the partner of each
//! channel is the outermost loop around the message in the middle that has at least two joint
//! iterations in common with it, as written or if both go on for another; and so on from the
//! iterations in common, until no process is added ([`grow`]). Then an empty cut is computed: at
//! iterations as written, or else the first one behind the begins of the runs ([`cut`]). So loops
//! that are written in different rotations, or that one process begins earlier or ends later,
//! fit each other. A loop that is part of no joint loop is taken apart, and the loops in each of its
//! iterations are tried. Then the same inside of one joint iteration.
//!
//! Time: O(loops × their channels × log² n), for each loop that is tried; memory is that of the
//! result.

mod content;
mod cut;
mod grow;

use super::channels::{ChannelTable, End, LoopSummary, Side};
use super::processes::Processes;
use crate::interrupt;
use crate::questions::patterns::{LoopCollapsed, LoopInstance, Piece};
use content::Content;
use grow::{Growing, Marks};
use hashbrown::HashMap;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Iterations of a loop in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) stream: u32,
    /// The loop, by its index in the stream.
    pub(super) found: usize,
    /// The position of the first event.
    pub(super) start: u64,
    /// The events of one iteration.
    pub(super) body: u64,
    /// How many iterations.
    pub(super) times: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.times * self.body
    }

    fn events(&self) -> u64 {
        self.times * self.body
    }
}

/// A process in a joint loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) stream: u32,
    /// The position of the first event.
    pub(super) start: u64,
    /// The events of one joint iteration.
    pub(super) body: u64,
    /// The loop of whose first execution it has the first iteration, by its index in the stream;
    /// `None` if it is in another rotation, or has several iterations of a loop.
    pub(super) found: Option<u32>,
}

/// What several processes repeat together.
#[derive(Clone, Debug)]
pub(super) struct JointLoop {
    /// By streams.
    pub(super) members: Vec<Member>,
    /// How many joint iterations.
    pub(super) times: u64,
    /// The joint loop in whose first iteration it is.
    pub(super) within: Option<usize>,
    /// Channels with messages in flight at every cut, also because of joint loops around it, and
    /// how many; negative if they are received before they are sent.
    pub(super) in_flight: Vec<(u32, i64)>,
}

/// The part of the processes that is searched: a stretch of each, and how many messages of
/// channels are in flight at its begin.
#[derive(Clone, Debug, Default)]
struct Scope {
    /// By streams.
    stretches: Vec<(u32, (u64, u64))>,
    in_flight: HashMap<u32, i64>,
}

impl Scope {
    fn of_member(&self, stream: u32) -> Option<(u64, u64)> {
        match self.stretches.get(stream as usize) {
            // All streams are there.
            Some(&(known, stretch)) if known == stream => Some(stretch),
            _ => {
                let at = self.stretches.binary_search_by_key(&stream, |&(stream, _)| stream);
                at.ok().map(|at| self.stretches[at].1)
            }
        }
    }

    /// How many messages of an end lie before the scope that are not recorded there: what is in
    /// flight at its begin counts as received.
    fn received_before(&self, end: &End) -> i128 {
        match end.side {
            Side::Receive => self.in_flight.get(&end.channel).copied().unwrap_or(0).into(),
            _ => 0,
        }
    }

    /// The iterations of a loop that lie in the scope, if they are two or more. They begin where
    /// the scope does, in whichever rotation that is.
    fn clipped(&self, stream: u32, nest: &LoopCollapsed, instance: &LoopInstance) -> Option<Run> {
        let (from, to) = self.of_member(stream)?;
        let (body, all) = (nest.body_events(instance.found), nest.loops()[instance.found].times);
        let start = instance.start.max(from);
        let end = (instance.start + all * body).min(to);
        let times = end.checked_sub(start)? / body;
        let run = Run { stream, found: instance.found, start, body, times };
        (times >= 2).then_some(run)
    }
}

/// Loops in iterations of others that are tried, beyond those in their first iterations.
const MOST_INSTANCES: u64 = 1 << 18;

/// The joint loops of processes; those in which another lies come before it.
pub(super) fn joint_loops(processes: &Processes<'_>, table: &ChannelTable) -> Vec<JointLoop> {
    let whole = |(stream, trace): (usize, &std::sync::Arc<super::ProcessTrace>)| {
        (stream as u32, (0, trace.nest().length()))
    };
    let stretches = processes.traces().iter().enumerate().map(whole).collect();
    let mut search = Search {
        processes,
        table,
        marks: Marks::new(processes, table),
        found: Vec::new(),
        searched: HashMap::new(),
        instances: MOST_INSTANCES,
        scopes: 0,
    };
    search.within(&Scope { stretches, in_flight: HashMap::new() }, None);
    search.found
}

struct Search<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    marks: Marks,
    found: Vec<JointLoop>,
    /// Joint iterations that were searched: which joint loops they are of, and what was found.
    searched: HashMap<Content, (usize, Range<usize>)>,
    /// How many more loops in later iterations may be tried.
    instances: u64,
    /// How many scopes were searched.
    scopes: u32,
}

/// A run that is to be tried: the largest first, of equals that of the first stream.
#[derive(PartialEq, Eq)]
struct Seed(Run);

impl Ord for Seed {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |Self(run): &Self| (run.events(), Reverse((run.stream, run.start, run.found)));
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Seed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The runs that are to be tried: those that were there from the begin, sorted, and those that
/// came later.
#[derive(Default)]
struct Seeds {
    /// Loops in their first execution, by their events: the largest comes last. Loops of a stream
    /// come in the order of their begins, so stream and index order those of equal length.
    first: Vec<(u64, Reverse<(u32, u32)>)>,
    later: BinaryHeap<Seed>,
}

impl Seeds {
    /// The next one. Loops that are taken are left out before they are looked at, as most are.
    fn pop(&mut self, table: &ChannelTable, is_taken: impl Fn(u32, usize) -> bool) -> Option<Run> {
        while self
            .first
            .pop_if(|&mut (_, Reverse((stream, found)))| is_taken(stream, found as usize))
            .is_some()
        {}
        let later = self.later.peek().map_or(0, |Seed(run)| run.events());
        let is_larger = |&&(events, _): &&(u64, _)| events >= later;
        let first = self
            .first
            .last()
            .filter(is_larger)
            .map(|&(_, Reverse((stream, found)))| Seed(first_execution(table, stream, found as usize)));
        if first.as_ref() > self.later.peek() {
            self.first.pop();
            return first.map(|Seed(run)| run);
        }
        self.later.pop().map(|Seed(run)| run)
    }
}

impl Search<'_, '_> {
    fn nest(&self, stream: u32) -> &LoopCollapsed {
        self.processes.nest(stream)
    }

    fn within(&mut self, scope: &Scope, around: Option<usize>) {
        let mut seeds = match around {
            None => self.outermost(),
            Some(around) => self.loops_inside(&self.found[around]),
        };
        self.scopes += 1;
        let mut taken = Taken::new(self.scopes);
        let mut nested = Vec::new();
        while let Some(run) =
            seeds.pop(self.table, |stream, found| self.marks.is_taken(stream, found, &taken))
        {
            interrupt::poll();
            if self.table.streams[run.stream as usize].of_loop(run.found).is_empty() {
                continue;
            }
            if let Some(free) = taken.left_of(run) {
                seeds.later.extend(free.into_iter().map(Seed));
                continue;
            }
            let growing = Growing::new(self.processes, self.table, scope, &taken, &mut self.marks);
            let grown = growing.grow(run);
            let free = grown.filter(|(joint, _)| {
                joint.members.iter().all(|member| taken.is_free(member.stream, whole(member, joint.times)))
            });
            match free {
                Some((joint, is_nested)) => {
                    for member in &joint.members {
                        taken.add(member.stream, whole(member, joint.times));
                        self.marks.take(self.table, member, joint.times, &taken);
                    }
                    if is_nested {
                        nested.push(self.found.len());
                    }
                    self.found.push(JointLoop { within: around, ..joint });
                }
                None => self.take_apart(run, &mut seeds.later),
            }
        }
        for index in nested {
            let joint = &self.found[index];
            let is_closed = joint.in_flight.is_empty() && scope.in_flight.is_empty();
            let content = if is_closed { content::of(self.processes, joint) } else { None };
            if let Some((same, inside)) = content.as_ref().and_then(|content| self.searched.get(content)) {
                let copies = content::copies(&self.found, *same, inside.clone(), index);
                self.found.extend(copies);
                continue;
            }
            let stretch = |member: &Member| (member.stream, (member.start, member.start + member.body));
            let mut in_flight = scope.in_flight.clone();
            in_flight.extend(joint.in_flight.iter().copied());
            let inside = Scope { stretches: joint.members.iter().map(stretch).collect(), in_flight };
            let before = self.found.len();
            self.within(&inside, Some(index));
            if let Some(content) = content {
                self.searched.insert(content, (index, before..self.found.len()));
            }
        }
    }

    /// The outermost loops of all streams.
    fn outermost(&self) -> Seeds {
        let mut seeds = Seeds::default();
        for stream in 0..self.processes.traces().len() as u32 {
            let nest = self.nest(stream);
            for found in (0..nest.loops().len()).filter(|&found| nest.outer(found).is_none()) {
                let events = first_execution(self.table, stream, found).events();
                seeds.first.push((events, Reverse((stream, found as u32))));
            }
        }
        seeds.first.sort_unstable();
        seeds
    }

    /// The outermost loops in a joint iteration.
    fn loops_inside(&self, joint: &JointLoop) -> Seeds {
        let mut seeds = Seeds::default();
        for &Member { stream, start, body, found } in &joint.members {
            let nest = self.nest(stream);
            if let Some(found) = found {
                let inside = nest.loops_inside(found as usize);
                seeds.later.extend(inside.map(|inside| Seed(first_execution(self.table, stream, inside))));
                continue;
            }
            for piece in nest.pieces(start, start + body) {
                if let Piece::Loop { found, times, start } = piece {
                    seeds.later.push(Seed(Run {
                        stream,
                        found,
                        start,
                        body: nest.body_events(found),
                        times,
                    }));
                }
            }
        }
        seeds
    }

    /// Instead of a loop, the loops in each of its iterations.
    fn take_apart(&mut self, run: Run, seeds: &mut BinaryHeap<Seed>) {
        let nest = self.processes.nest(run.stream);
        for found in nest.loops_inside(run.found) {
            let first = first_execution(self.table, run.stream, found);
            let inside = Run { start: run.start + (first.start - nest.loop_first(run.found)), ..first };
            let later = (run.times - 1).min(self.instances);
            self.instances -= later;
            let at = |iteration: u64| Run { start: inside.start + iteration * run.body, ..inside };
            seeds.extend((0..=later).map(|iteration| Seed(at(iteration))));
        }
    }
}

/// All iterations of a loop where it is executed first.
fn first_execution(table: &ChannelTable, stream: u32, found: usize) -> Run {
    let &LoopSummary { first, body, times, .. } = table.streams[stream as usize].summary(found);
    Run { stream, found, start: first, body, times }
}

/// All iterations of a member.
fn whole(member: &Member, times: u64) -> (u64, u64) {
    (member.start, member.start + times * member.body)
}

/// Stretches of streams that joint loops of a scope have, without overlaps.
struct Taken {
    /// The number of the scope.
    scope: u32,
    by_stream: HashMap<u32, BTreeMap<u64, u64>>,
}

impl Taken {
    fn new(scope: u32) -> Self {
        Self { scope, by_stream: HashMap::new() }
    }

    fn add(&mut self, stream: u32, (start, end): (u64, u64)) {
        self.by_stream.entry(stream).or_default().insert(start, end);
    }

    fn is_free(&self, stream: u32, (start, end): (u64, u64)) -> bool {
        let before = self.by_stream.get(&stream).and_then(|taken| taken.range(..end).next_back());
        before.is_none_or(|(_, &behind)| behind <= start)
    }

    /// What is left of a run if a part of it is taken: at least two iterations each.
    fn left_of(&self, run: Run) -> Option<Vec<Run>> {
        let mut before = self.by_stream.get(&run.stream)?.range(..run.end()).rev();
        let (&start, &end) = before.next().filter(|&(_, &end)| end > run.start)?;
        if start <= run.start && run.end() <= end {
            return Some(Vec::new());
        }
        let mut overlapping = vec![(start, end)];
        overlapping
            .extend(before.take_while(|&(_, &end)| end > run.start).map(|(&start, &end)| (start, end)));
        overlapping.reverse();
        let mut left = Vec::new();
        let mut free = 0;
        for (start, end) in overlapping.into_iter().chain([(run.end(), run.end())]) {
            let until = start.saturating_sub(run.start) / run.body;
            if until >= free + 2 {
                left.push(Run { start: run.start + free * run.body, times: until - free, ..run });
            }
            free = free.max((end.min(run.end()) - run.start).div_ceil(run.body));
        }
        Some(left)
    }
}
