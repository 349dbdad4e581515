//! Describes a communication pattern: who sends to whom, the nearest topology, and the
//! functions in which it happens.
//!
//! Time and memory are O(partners in one place of the pattern + its places).

use super::join::{CommunicationPattern, Part};
use super::partners::{Link, Partners};
use super::processes::Processes;
use crate::mpi::{Channels, Message, Peer, Topology};
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
        let shown = self.processes.traces()[stream as usize].shown();
        let Some(call) = shown_calls.get(shown.symbols()[index as usize]) else { return (false, false) };
        let comm = shown_calls.comm(call.comm);
        let other = communicators.rank(other as usize);
        let is_other = |message: &Message| match message.peer {
            Peer::Rank(rank) => communicators.world_rank(stream as usize, comm, rank) == Some(other),
            Peer::Any => true,
        };
        (call.sends.iter().any(is_other), call.receives.iter().any(is_other))
    }

    /// Whether a process has sent to and received from one partner before it starts with the
    /// next.
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
