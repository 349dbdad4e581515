//! Loops at the two ends of a channel that have the same messages, from the first to the last.
//!
//! Most joint loops consist of such loops only. They are found for all loops at once: the loops
//! at an end are sorted by their first messages, so both ends are merged. Time: O(loops × their
//! channels).

use super::channels::{ChannelTable, End, LoopMessages, OtherLoop};
use super::processes::Processes;
use crate::questions::patterns::LoopCollapsed;
use std::cmp::Ordering;

/// Sets the loops at the other ends of channels of two ends.
pub(super) fn link_loops(processes: &Processes<'_>, table: &mut ChannelTable) {
    let no_loops = |end: &End| vec![OtherLoop::NONE; end.loops().len()];
    let mut of_ends: Vec<Vec<Vec<OtherLoop>>> =
        table.streams.iter().map(|stream| stream.ends.iter().map(no_loops).collect()).collect();
    for channel in &table.channels {
        let [(side, one, one_end), (_, other, other_end)] = channel.ends[..] else { continue };
        if channel.other(side).is_none() {
            continue;
        }
        let here = (processes.nest(one), table.end(one, one_end));
        let there = (processes.nest(other), table.end(other, other_end));
        set_others(here, there, &mut of_ends[one as usize][one_end as usize]);
        set_others(there, here, &mut of_ends[other as usize][other_end as usize]);
    }
    for (stream, of_ends) in of_ends.into_iter().enumerate() {
        table.streams[stream].set_others(&of_ends);
    }
}

/// Sets what is known of the other end for the loops at one end.
fn set_others(
    (here, one): (&LoopCollapsed, &End),
    (there, other): (&LoopCollapsed, &End),
    known: &mut [OtherLoop],
) {
    let all = |nest: &LoopCollapsed, messages: &LoopMessages| {
        u128::from(messages.each) * u128::from(nest.loops()[messages.found as usize].times)
    };
    let mut place = 0;
    for (a, known) in one.loops().iter().zip(known) {
        // Of loops that begin with the same message the outermost comes first, and has most.
        let order = |b: &LoopMessages| b.before.cmp(&a.before).then_with(|| all(here, a).cmp(&all(there, b)));
        while other.loops().get(place).is_some_and(|b| order(b) == Ordering::Less) {
            place += 1;
        }
        *known = match other.loops().get(place).filter(|b| order(b) == Ordering::Equal) {
            Some(same) => OtherLoop::same(same.found),
            None => OtherLoop::near(place),
        };
    }
}
