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
mod same;

use super::channels::{ChannelTable, End, Side};
use super::processes::Processes;
use crate::questions::patterns::{LoopCollapsed, LoopInstance, Piece};
use content::Content;
use grow::{Growing, Marks};
use hashbrown::HashMap;
use same::SameLoops;
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
    stretches: BTreeMap<u32, (u64, u64)>,
    in_flight: HashMap<u32, i64>,
}

impl Scope {
    fn of_member(&self, stream: u32) -> Option<(u64, u64)> {
        self.stretches.get(&stream).copied()
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
        same: SameLoops::of(processes, table),
        marks: Marks::new(table),
        found: Vec::new(),
        searched: HashMap::new(),
        instances: MOST_INSTANCES,
    };
    search.within(&Scope { stretches, in_flight: HashMap::new() }, None);
    search.found
}

struct Search<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    same: SameLoops,
    marks: Marks,
    found: Vec<JointLoop>,
    /// Joint iterations that were searched: which joint loops they are of, and what was found.
    searched: HashMap<Content, (usize, Range<usize>)>,
    /// How many more loops in later iterations may be tried.
    instances: u64,
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
    first: Vec<Seed>,
    later: BinaryHeap<Seed>,
}

impl Seeds {
    fn pop(&mut self) -> Option<Run> {
        let Seed(run) = match self.first.last() > self.later.peek() {
            true => self.first.pop()?,
            false => self.later.pop()?,
        };
        Some(run)
    }
}

impl Search<'_, '_> {
    fn nest(&self, stream: u32) -> &LoopCollapsed {
        self.processes.nest(stream)
    }

    fn within(&mut self, scope: &Scope, around: Option<usize>) {
        let mut seeds = self.outermost(scope);
        let mut taken = Taken::default();
        let mut nested = Vec::new();
        while let Some(run) = seeds.pop() {
            if self.table.streams[run.stream as usize].of_loop(run.found).is_empty() {
                continue;
            }
            if let Some(free) = taken.left_of(run) {
                seeds.later.extend(free.into_iter().map(Seed));
                continue;
            }
            let growing =
                Growing::new(self.processes, self.table, &self.same, scope, &taken, &mut self.marks);
            let grown = growing.grow(run);
            let free = grown.filter(|(joint, _)| {
                joint.members.iter().all(|member| taken.is_free(member.stream, whole(member, joint.times)))
            });
            match free {
                Some((joint, is_nested)) => {
                    joint
                        .members
                        .iter()
                        .for_each(|member| taken.add(member.stream, whole(member, joint.times)));
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

    /// The outermost loops of a scope.
    fn outermost(&self, scope: &Scope) -> Seeds {
        let mut seeds = Vec::new();
        for (&stream, &(start, end)) in &scope.stretches {
            let nest = self.nest(stream);
            if (start, end) == (0, nest.length()) {
                let outermost = (0..nest.loops().len()).filter(|&found| nest.outer(found).is_none());
                seeds.extend(outermost.map(|found| Seed(first_execution(nest, stream, found))));
                continue;
            }
            for piece in nest.pieces(start, end) {
                if let Piece::Loop { found, times, start } = piece {
                    seeds.push(Seed(Run { stream, found, start, body: nest.body_events(found), times }));
                }
            }
        }
        seeds.sort_unstable();
        Seeds { first: seeds, later: BinaryHeap::new() }
    }

    /// Instead of a loop, the loops in each of its iterations.
    fn take_apart(&mut self, run: Run, seeds: &mut BinaryHeap<Seed>) {
        let nest = self.processes.nest(run.stream);
        for found in nest.loops_inside(run.found) {
            let first = first_execution(nest, run.stream, found);
            let inside = Run { start: run.start + (first.start - nest.loop_first(run.found)), ..first };
            let later = (run.times - 1).min(self.instances);
            self.instances -= later;
            let at = |iteration: u64| Run { start: inside.start + iteration * run.body, ..inside };
            seeds.extend((0..=later).map(|iteration| Seed(at(iteration))));
        }
    }
}

/// All iterations of a loop where it is executed first.
fn first_execution(nest: &LoopCollapsed, stream: u32, found: usize) -> Run {
    let (start, body) = (nest.loop_first(found), nest.body_events(found));
    Run { stream, found, start, body, times: nest.loops()[found].times }
}

/// All iterations of a member.
fn whole(member: &Member, times: u64) -> (u64, u64) {
    (member.start, member.start + times * member.body)
}

/// Stretches of streams that joint loops have, without overlaps.
#[derive(Default)]
struct Taken {
    by_stream: HashMap<u32, BTreeMap<u64, u64>>,
}

impl Taken {
    fn add(&mut self, stream: u32, (start, end): (u64, u64)) {
        self.by_stream.entry(stream).or_default().insert(start, end);
    }

    fn is_free(&self, stream: u32, (start, end): (u64, u64)) -> bool {
        let before = self.by_stream.get(&stream).and_then(|taken| taken.range(..end).next_back());
        before.is_none_or(|(_, &behind)| behind <= start)
    }

    /// Whether all of a run is in one of them.
    fn holds(&self, run: Run) -> bool {
        let before = self.by_stream.get(&run.stream).and_then(|taken| taken.range(..=run.start).next_back());
        before.is_some_and(|(_, &end)| run.end() <= end)
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
