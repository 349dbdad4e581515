//! Times: sums of events and rules, iterations of loops, clocks.

use super::Folded;
use crate::support::sums::{self, Stretch, check_event_sums, check_rule_sums, check_summed_times, spread_of};
use loopfold::questions;
use loopfold::questions::clock::EventClock;
use loopfold::questions::iterations::LoopTimes;
use loopfold::questions::nest::{Nest, Node};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) fn event_sums(Folded { fold, .. }: &Folded<'_>) {
    check_event_sums(fold);
}

pub(super) fn rule_sums(Folded { fold, .. }: &Folded<'_>) {
    check_rule_sums(fold);
}

/// The iterations of all loops of a nest, by their nodes.
fn iterations(nest: &Nest, range: Range<usize>, at: &mut usize, out: &mut BTreeMap<usize, Vec<Stretch>>) {
    for node in nest.children(range) {
        let Node::Loop { times, .. } = nest.nodes[node] else {
            *at += 1;
            continue;
        };
        for iteration in 1..=times {
            let begin = *at;
            iterations(nest, nest.body(node), at, out);
            let stretch = Stretch { begin, end: *at, last: iteration == times };
            out.entry(node).or_default().push(stretch);
        }
    }
}

pub(super) fn loop_times(Folded { fold, .. }: &Folded<'_>) {
    for stream in fold.streams() {
        let nest = fold.nest(stream.root(), usize::MAX);
        let times = questions::iterations::loop_times(&nest, stream.times()).unwrap();
        let has_times = stream.times().starts.is_some() || stream.times().durations.is_some();
        assert_eq!(times.is_some(), has_times);
        let (mut all, mut events) = (BTreeMap::new(), 0);
        iterations(&nest, 0..nest.nodes.len(), &mut events, &mut all);
        let mut found: BTreeMap<usize, LoopTimes> =
            times.into_iter().flat_map(|times| times.loops).map(|times| (times.node, times)).collect();
        for (node, stretches) in all {
            let time_of = |stretch: &Stretch| sums::time_of(stream, events, *stretch);
            let mut expected: Vec<i128> = stretches.iter().filter_map(time_of).collect();
            let Some(found) = found.remove(&node) else {
                assert!(expected.is_empty(), "{stretches:?}");
                continue;
            };
            assert_eq!(found.times, spread_of(expected.iter().copied()));
            let slowest = found.slowest.unwrap();
            let is_slowest = |stretch: &&Stretch| stretch.begin as u64 == slowest.position;
            let slowest = stretches.iter().find(is_slowest).and_then(time_of);
            expected.sort_unstable();
            assert_eq!(slowest, expected.last().copied());
            assert_eq!(found.median.map(i128::from), Some(expected[(expected.len() - 1) / 2]));
        }
        assert!(found.is_empty(), "{found:?}");
    }
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
