//! Joint iterations that are equal: what lies in one lies in the other.
//!
//! A program that comes back to a phase repeats all of its joint loops. If each process does the
//! same in one iteration of both, and no message crosses its borders, then the n-th message of a
//! channel in one is the n-th in the other, and so the joint loops inside are the same.
//!
//! Time and memory: O(written events of the iteration).

use super::{JointLoop, Member};
use crate::questions::communication::processes::Processes;
use std::ops::Range;

/// What each process does in a joint iteration: streams, kinds of events, loops.
pub(super) type Content = Vec<u32>;

/// The content of a joint iteration. Returns `None` if it is not one iteration of a loop of each
/// process, as it is written: then it may cut through loops.
pub(super) fn of(processes: &Processes<'_>, joint: &JointLoop) -> Option<Content> {
    let mut content = Content::new();
    for member in &joint.members {
        let trace = &processes.traces()[member.stream as usize];
        let nest = trace.nest();
        let found = member.found? as usize;
        let all = nest.loops()[found];
        content.extend([member.stream, all.end - all.start]);
        content.extend((all.start as usize..all.end as usize).map(|index| trace.kind(index) as u32));
        let inside = nest.loops()[found + 1..].iter().take_while(|inside| inside.start < all.end);
        for inside in inside {
            let times = [inside.times as u32, (inside.times >> 32) as u32];
            content.extend([inside.start - all.start, inside.end - all.start]);
            content.extend(times);
        }
        // No loop begins behind the last symbol.
        content.push(u32::MAX);
    }
    Some(content)
}

/// What was found in an iteration of one joint loop, in that of another of the same content.
pub(super) fn copies(found: &[JointLoop], same: usize, inside: Range<usize>, of: usize) -> Vec<JointLoop> {
    let next = found.len();
    let moved = |member: &Member| {
        let base = |joint: usize| {
            let of_stream = found[joint].members.iter().find(|other| other.stream == member.stream);
            of_stream.map_or((0, 0), |other| (other.start, other.found.unwrap_or(0)))
        };
        let ((start, loop_around), (new_start, new_loop_around)) = (base(same), base(of));
        // Loops in loops follow these.
        let found = member.found.map(|found| found - loop_around + new_loop_around);
        Member { start: member.start - start + new_start, found, ..*member }
    };
    let copy = |joint: &JointLoop| {
        let within =
            joint.within.map(|around| if around == same { of } else { around - inside.start + next });
        let members = joint.members.iter().map(moved).collect();
        JointLoop { members, times: joint.times, within, in_flight: joint.in_flight.clone() }
    };
    found[inside.clone()].iter().map(copy).collect()
}
