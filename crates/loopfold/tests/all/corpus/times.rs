//! Times: sums of events and rules, iterations of loops, clocks.

use super::Folded;
use crate::support::iterations::{check_loop_times, check_self_times, check_slow};
use crate::support::sums::{check_event_sums, check_rule_sums, check_summed_times};
use loopfold::questions::clock::EventClock;

pub(super) fn event_sums(Folded { fold, .. }: &Folded<'_>) {
    check_event_sums(fold);
}

pub(super) fn rule_sums(Folded { fold, .. }: &Folded<'_>) {
    check_rule_sums(fold);
}

pub(super) fn loop_times(Folded { fold, .. }: &Folded<'_>) {
    check_loop_times(fold);
    check_slow(fold);
}

pub(super) fn self_times(Folded { fold, .. }: &Folded<'_>) {
    check_self_times(fold);
}

pub(super) fn summed_times(Folded { fold, .. }: &Folded<'_>) {
    check_summed_times(fold);
}

/// When each event began is what the case says, and how long all took.
pub(super) fn clocks(Folded { case, fold, .. }: &Folded<'_>) {
    let mut clock = EventClock::new(fold);
    let (mut starts, mut ends, mut longest) = (Vec::new(), Vec::new(), None);
    for (index, stream) in case.streams.iter().enumerate() {
        let mut total = None;
        for (timing, position) in stream.timings().zip(0..) {
            assert_eq!(clock.start(crate::support::id(index), position).unwrap(), timing.start);
            let duration = timing.duration.filter(|&duration| duration >= 0);
            let duration = i128::from(duration.unwrap_or(0));
            let start = timing.start.map(i128::from);
            starts.extend(start);
            ends.extend(start.map(|start| start + duration));
            let is_known = timing.duration.is_some() && stream.clock.is_empty();
            total = if is_known { Some(total.unwrap_or(0) + duration) } else { total };
        }
        longest = longest.max(total);
    }
    let range = starts.iter().min().zip(ends.iter().max()).map(|(first, last)| last - first);
    // Not known if 64 bits are too few.
    let expected = range.max(longest).and_then(|time| u64::try_from(time).ok());
    assert_eq!(fold.run_time().unwrap(), expected);
}
