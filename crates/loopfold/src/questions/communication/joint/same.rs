//! Loops at the two ends of a channel that have the same messages, from the first to the last.
//!
//! Most joint loops consist of such loops only. They are found for all loops at once: the loops
//! at an end are sorted by their first messages, so both ends are merged. Time: O(loops × their
//! channels); memory: 4 bytes for each channel of each loop.

use crate::questions::communication::channels::{ChannelTable, End, LoopMessages};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::LoopCollapsed;
use std::cmp::Ordering;

/// For each end with messages in a loop the loop at the other end with the same ones.
pub(super) struct SameLoops {
    streams: Vec<Vec<u32>>,
}

/// No loop.
const NONE: u32 = u32::MAX;

impl SameLoops {
    pub(super) fn of(processes: &Processes<'_>, table: &ChannelTable) -> Self {
        let no_loops = |end: &End| vec![NONE; end.loops().len()];
        let mut of_ends: Vec<Vec<Vec<u32>>> =
            table.streams.iter().map(|stream| stream.ends.iter().map(no_loops).collect()).collect();
        for channel in &table.channels {
            let [(side, one, one_end), (_, other, other_end)] = channel.ends[..] else { continue };
            if channel.other(side).is_none() {
                continue;
            }
            let here = (processes.nest(one), table.end(one, one_end));
            let there = (processes.nest(other), table.end(other, other_end));
            each_same(here, there, |at_one, at_other| {
                of_ends[one as usize][one_end as usize][at_one] = there.1.loops()[at_other].found;
                of_ends[other as usize][other_end as usize][at_other] = here.1.loops()[at_one].found;
            });
        }
        let by_slots =
            |(stream, of_ends): (usize, &Vec<Vec<u32>>)| by_slots(processes, table, stream, of_ends);
        Self { streams: of_ends.iter().enumerate().map(by_slots).collect() }
    }

    /// The loop at the other end of a channel of two ends, by the slot of this end.
    pub(super) fn get(&self, stream: u32, slot: usize) -> Option<usize> {
        let found = self.streams[stream as usize][slot];
        (found != NONE).then_some(found as usize)
    }
}

/// Calls `then` with the places of two loops, one at each end, that have the same messages.
fn each_same(
    (here, one): (&LoopCollapsed, &End),
    (there, other): (&LoopCollapsed, &End),
    mut then: impl FnMut(usize, usize),
) {
    let all = |nest: &LoopCollapsed, messages: &LoopMessages| {
        u128::from(messages.each) * u128::from(nest.loops()[messages.found as usize].times)
    };
    let (mut at_one, mut at_other) = (0, 0);
    while let (Some(a), Some(b)) = (one.loops().get(at_one), other.loops().get(at_other)) {
        // Of loops that begin with the same message the outermost comes first, and has most.
        match a.before.cmp(&b.before).then_with(|| all(there, b).cmp(&all(here, a))) {
            Ordering::Less => at_one += 1,
            Ordering::Greater => at_other += 1,
            Ordering::Equal => {
                then(at_one, at_other);
                (at_one, at_other) = (at_one + 1, at_other + 1);
            }
        }
    }
}

/// From the order of each end, by loops, to that of the slots.
fn by_slots(
    processes: &Processes<'_>,
    table: &ChannelTable,
    stream: usize,
    of_ends: &[Vec<u32>],
) -> Vec<u32> {
    let ends = &table.streams[stream];
    let mut of_slots = vec![NONE; ends.loop_slots()];
    let mut next = vec![0; of_ends.len()];
    for found in 0..processes.nest(stream as u32).loops().len() {
        for (slot, end) in ends.slots_of_loop(found).zip(ends.of_loop(found)) {
            let place = &mut next[end.number as usize];
            of_slots[slot] = of_ends[end.number as usize][*place];
            *place += 1;
        }
    }
    of_slots
}
