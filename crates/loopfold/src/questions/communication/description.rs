//! Describes a communication pattern: who sends to whom, the nearest topology, and the
//! functions in which it happens.
//!
//! Time and memory are O(partners in one place of the pattern + its places).

use super::channels::{ChannelTable, Side};
use super::partners::Partners;
use super::pattern::{CommunicationPattern, Part};
use super::processes::Processes;
use crate::mpi::{Channels, Grid, Topology};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// The description of a communication pattern.
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
    /// The processes in which it occurs, if there are several groups.
    pub groups: Option<Groups>,
}

/// How the groups of processes lie that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// How many.
    pub count: usize,
    /// How they lie among the ranks.
    pub layout: GroupLayout,
}

/// How groups of processes lie among the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupLayout {
    /// Each is a run of ranks.
    Rows,
    /// Each has ranks at the same distance, and together they are a run of ranks.
    Columns,
    /// Otherwise.
    Other,
}

impl Groups {
    fn of(pattern: &CommunicationPattern, processes: &Processes<'_>) -> Option<Self> {
        let rank = |part: &Part| processes.communicators().rank(part.stream.index());
        let groups: Vec<Vec<u32>> = pattern.groups().map(|parts| parts.iter().map(rank).collect()).collect();
        let count = groups.len();
        let steps = |ranks: &Vec<u32>, step: u32| ranks.windows(2).all(|two| two[0] + step == two[1]);
        let mut firsts: Vec<u32> = groups.iter().filter_map(|ranks| ranks.first().copied()).collect();
        firsts.sort_unstable();
        let layout = if groups.iter().all(|ranks| steps(ranks, 1)) {
            GroupLayout::Rows
        } else if steps(&firsts, 1) && groups.iter().all(|ranks| steps(ranks, count as u32)) {
            GroupLayout::Columns
        } else {
            GroupLayout::Other
        };
        (count > 1).then_some(Self { count, layout })
    }
}

impl std::fmt::Display for Groups {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.layout {
            GroupLayout::Rows => "rows",
            GroupLayout::Columns => "columns",
            GroupLayout::Other => "groups",
        };
        write!(out, "in each of {} {name}", self.count)
    }
}

impl Description {
    /// Looks at the messages of the first place, and at the functions of all. If the processes
    /// are known to be a grid of this shape, and all take part, its topologies are those of
    /// that grid.
    pub fn of(
        pattern: &CommunicationPattern,
        processes: &Processes<'_>,
        partners: &Partners,
        grid: Option<&Grid>,
    ) -> Self {
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for occurrence in &pattern.occurrences {
            let Part { stream, start, .. } = occurrence.parts[0];
            if let Some(function) = processes.function(stream, start) {
                let sum = functions.entry(function).or_default();
                *sum = sum.saturating_add(occurrence.times);
            }
        }
        let mut functions: Vec<(String, u64)> =
            functions.into_iter().map(|(function, count)| (function.to_string(), count)).collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let channels = Looking::new(processes, partners, pattern.parts()).channels();
        let is_collective = channels.pairs().len() == 0;
        let shape: Option<Vec<usize>> =
            grid.map(|grid| grid.sides.iter().map(|&side| side as usize).collect());
        let shape = shape.filter(|shape| shape.iter().product::<usize>() == pattern.parts().len());
        let topology = match shape.and_then(|shape| channels.topology_in(&shape)) {
            _ if is_collective => None,
            Some(topology) => Some(topology),
            None => channels.topology(),
        };
        let groups = Groups::of(pattern, processes);
        Self { channels, topology, is_collective, functions, groups }
    }

    /// What the pattern is called: its topology, or what is known of it if it has none.
    pub fn name(&self) -> String {
        let pairs = self.channels.pairs().len();
        match &self.topology {
            // A line of two processes is not worth a name.
            Some(topology) if topology.departs() == 0 && self.channels.processes() == 2 => {
                let what = if pairs == 2 { "exchange" } else { "messages" };
                format!("{what} between 2 processes")
            }
            Some(topology) => topology.to_string(),
            None if self.is_collective => "collective operations".to_string(),
            None if pairs == 1 => "1 channel of no known topology".to_string(),
            None => format!("{pairs} channels of no known topology"),
        }
    }
}

/// Looks at who sends to whom in a pattern.
struct Looking<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    parts: &'p [Part],
    /// The index of the part of each stream.
    part_of: HashMap<u32, usize>,
    /// For each part its events, those of loops once.
    events: Vec<Vec<usize>>,
}

/// A message of an event: the part at the other end, and whether it is sent.
type WithPart = (usize, bool);

impl<'p, 'a> Looking<'p, 'a> {
    fn new(processes: &'p Processes<'a>, partners: &'p Partners, parts: &'p [Part]) -> Self {
        let part_of = parts.iter().enumerate().map(|(index, part)| (part.stream.index() as u32, index));
        let events = |part: &Part| {
            let nest = processes.traces()[part.stream.index()].nest();
            nest.indices(&nest.pieces(part.start, part.end)).collect()
        };
        let events = parts.iter().map(events).collect();
        Self { processes, table: &partners.table, parts, part_of: part_of.collect(), events }
    }

    fn channels(&self) -> Channels {
        let mut channels = Channels::new(self.parts.len());
        let mut in_stages = true;
        for index in 0..self.parts.len() {
            let messages: Vec<WithPart> =
                self.events[index].iter().flat_map(|&event| self.messages(index, event)).collect();
            for &(other, is_sent) in &messages {
                if is_sent {
                    channels.add(index, other);
                } else {
                    channels.add(other, index);
                }
            }
            in_stages &= is_in_stages(&messages);
        }
        channels.in_stages(in_stages)
    }

    /// The messages of an event with other parts. What is received from anyone counts where it
    /// is sent.
    fn messages(&self, part: usize, event: usize) -> Vec<WithPart> {
        let stream = self.parts[part].stream.index();
        let kind = self.processes.traces()[stream].kind(event);
        let ends = self.table.streams[stream].of_kind(kind).iter();
        let mut messages = Vec::new();
        for end in ends.map(|&end| self.table.end(stream as u32, end)) {
            let channel = self.table.channel(end);
            if end.side == Side::Member || (end.side == Side::Receive && !channel.is_ordered()) {
                continue;
            }
            let others = channel.ends.iter().filter(|&&(side, ..)| side != end.side);
            let with = others.filter_map(|&(_, other, _)| self.part_of.get(&other).copied());
            messages.extend(with.map(|other| (other, end.side == Side::Send)));
        }
        messages
    }
}

/// Whether a process has sent to and received from one partner before it starts with the next.
fn is_in_stages(messages: &[WithPart]) -> bool {
    let mut seen: HashSet<usize> = HashSet::new();
    // The partner it is with, and whether it has sent and received.
    let mut stage: Option<(usize, bool, bool)> = None;
    for &(other, is_sent) in messages {
        stage = match stage {
            Some((partner, sent, received)) if partner == other => {
                Some((partner, sent || is_sent, received || !is_sent))
            }
            Some((_, sent, received)) if !sent || !received => return false,
            _ if !seen.insert(other) => return false,
            _ => Some((other, is_sent, !is_sent)),
        };
    }
    stage.is_none_or(|(_, sent, received)| sent && received)
}
