//! The times of loops against their definitions, on the unfolded streams.

use super::sums::{Stretch, others_and_lasts, slices_of};
use loopfold::Fold;
use loopfold::folders::{Folder, fold_trace};
use loopfold::questions::iterations::{
    Grown, LoopTimes, PartTime, SlowConfig, SlowIteration, loop_times, slow_iterations, visit_iterations,
};
use loopfold::questions::nest::{Nest, Node};
use loopfold::questions::rule_sums::summarize;
use loopfold::questions::self_time::self_times;
use loopfold::trace::{Collector, Event, Sink, Timing};
use loopfold_testing::{Rng, times};
use std::collections::BTreeMap;
use std::ops::Range;

/// Streams of slices, some of them with the same events as the one before.
pub fn fold_of_slices(rng: &mut Rng, folder: &dyn Folder, longest: usize) -> Fold {
    let mut collector = Collector::default();
    let mut slices = Vec::new();
    for index in 0..rng.between(1, 3) {
        if index == 0 || rng.one_in(2) {
            slices = times::slices(rng, longest);
        }
        let stream = collector.stream(&format!("stream {index}")).unwrap();
        for (symbol, slice) in &mut slices {
            let symbol = collector.intern(&Event::integer((*symbol).into())).unwrap();
            let timing = Timing { start: slice.start, duration: slice.duration, ..Timing::UNKNOWN };
            collector.push(stream, symbol, timing).unwrap();
            slice.duration = slice.duration.map(|duration| duration + rng.below(2) as i64);
        }
    }
    fold_trace(collector.finish().unwrap(), folder, 1).unwrap()
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

/// The loops of each class are timed as their definition says.
#[track_caller]
pub fn check_loop_times(fold: &Fold) {
    for class in fold.classes().unwrap() {
        let nest = fold.nest(class.root, usize::MAX);
        let mut stretches = BTreeMap::new();
        iterations(&nest, 0..nest.nodes.len(), &mut 0, &mut stretches);
        let streams = class.streams.iter().map(|&index| (index, fold.stream(index).times()));
        let found = loop_times(&nest, streams).unwrap().unwrap_or_default();
        let timed = class.streams.iter().map(|&index| (index, slices_of(fold.stream(index))));
        let timed: Vec<_> = timed.filter(|(_, slices)| !slices.is_empty()).collect();
        let totals: Vec<_> =
            timed.iter().map(|(index, slices)| (*index, times::stream_time(slices))).collect();
        assert_eq!(found.streams, totals);
        for (node, stretches) in &stretches {
            let mut all = [Vec::new(), Vec::new()];
            let mut of_streams = Vec::new();
            for (index, slices) in &timed {
                let own = others_and_lasts(slices, stretches);
                if own.iter().any(|times| !times.is_empty()) {
                    of_streams.push((own.iter().flatten().sum::<i128>(), *index));
                }
                all.iter_mut().zip(own).for_each(|(all, own)| all.extend(own));
            }
            let expected = times::summary(&all[0], &all[1]);
            assert_eq!(found.of_loop(*node).map(summary_of), expected, "{all:?}");
            let Some(found) = found.of_loop(*node) else { continue };
            let [least, most] = found.streams.unwrap();
            let totals = || of_streams.iter().map(|(total, _)| *total);
            assert_eq!((Some(least.1), Some(most.1)), (totals().min(), totals().max()));
            assert!([least, most].iter().all(|&(index, total)| of_streams.contains(&(total, index))));
            check_slowest(found, &timed, stretches);
        }
        assert!(found.loops.iter().all(|times| stretches.contains_key(&times.node)));
        check_visited(fold, &nest, class.streams[0], &stretches);
    }
}

/// The slowest iterations of each loop, and the parts that grew, are those of the definition.
#[track_caller]
pub fn check_slow(fold: &Fold) {
    for class in fold.classes().unwrap() {
        let nest = fold.nest(class.root, usize::MAX);
        let mut stretches = BTreeMap::new();
        iterations(&nest, 0..nest.nodes.len(), &mut 0, &mut stretches);
        let streams: Vec<_> =
            class.streams.iter().map(|&stream| (stream, fold.stream(stream).times())).collect();
        for (&node, stretches) in &stretches {
            let found = slow_iterations(&nest, &streams, node, &SlowConfig::new(usize::MAX)).unwrap();
            let expected = slow_by_definition(fold, &nest, node, stretches, &class.streams);
            let found: Vec<Slow> = found.iterations.iter().map(slow_of).collect();
            assert_eq!(found, expected);
        }
    }
}

/// Stream, first event, time, busy time, and the parts that grew.
type Slow = (loopfold::StreamId, u64, i128, Option<i128>, Vec<(usize, PartTime, i128, f64)>);

fn slow_of(found: &SlowIteration) -> Slow {
    let part = |grown: &Grown| (grown.node.unwrap(), grown.which, grown.time, grown.median);
    let parts = found.grown.iter().map(part).collect();
    (found.stream, found.events.start, found.time, found.busy, parts)
}

fn slow_by_definition(
    fold: &Fold,
    nest: &Nest,
    node: usize,
    stretches: &[Stretch],
    streams: &[loopfold::StreamId],
) -> Vec<Slow> {
    let lengths: Vec<(usize, usize)> =
        nest.children(nest.body(node)).map(|child| (child, nest.node_length(child) as usize)).collect();
    // Each iteration with its parts, and whether it is full.
    let mut all = Vec::new();
    for &stream in streams {
        let slices = slices_of(fold.stream(stream));
        if slices.is_empty() {
            continue;
        }
        let has_starts = fold.stream(stream).times().starts.is_some();
        let has_durations = fold.stream(stream).times().durations.is_some();
        for &Stretch { begin, end, last } in stretches {
            let mut parts = Vec::new();
            let mut at = begin;
            for &(child, length) in &lengths {
                let is_last = last && at + length == end;
                parts.extend(
                    part_times(&slices, begin, at..at + length, is_last)
                        .into_iter()
                        .map(|(which, time)| (child, which, time)),
                );
                at += length;
            }
            let time = times::iteration_time(&slices, begin..end, last);
            let busy = slices[begin].start.map(i128::from).zip(time).filter(|_| has_durations && has_starts);
            let busy = busy.map(|(start, time)| times::busy_time(&slices, start, start + time));
            all.push((stream, begin as u64, time, busy, parts, !(last && has_starts)));
        }
    }
    let full = all.iter().filter(|(_, _, time, .., full)| time.is_some() && *full).count();
    let mut medians: BTreeMap<(usize, PartTime), Vec<i128>> = BTreeMap::new();
    let of_all = all.iter().filter(|(.., is_full)| *is_full || full < 2);
    for (.., parts, _) in of_all {
        for &(child, which, time) in parts {
            medians.entry((child, which)).or_default().push(time.max(0));
        }
    }
    let median =
        |key: (usize, PartTime)| medians.get(&key).map(|times| times::summary(times, &[]).unwrap().median);
    let mut slow: Vec<Slow> = Vec::new();
    for (stream, begin, time, busy, parts, is_full) in &all {
        let Some(time) = *time else { continue };
        if full >= 2 && !is_full {
            continue;
        }
        let grown = parts.iter().filter_map(|&(child, which, time)| {
            let median = median((child, which))?;
            (time as f64 > median).then_some((child, which, time, median))
        });
        let mut grown: Vec<_> = grown.collect();
        grown.sort_by(|one, other| (other.2 as f64 - other.3).total_cmp(&(one.2 as f64 - one.3)));
        slow.push((*stream, *begin, time, *busy, grown));
    }
    slow.sort_by_key(|&(stream, begin, time, ..)| (std::cmp::Reverse(time), stream, begin));
    slow
}

/// The times of a part: what its own events cover of its span, and the rest.
fn part_times(
    slices: &[times::Slice],
    iteration: usize,
    events: Range<usize>,
    is_last: bool,
) -> Vec<(PartTime, i128)> {
    if slices.iter().all(|slice| slice.start.is_none()) {
        let time = times::iteration_time(slices, events, is_last).unwrap();
        return vec![(PartTime::Inside, time), (PartTime::After, 0)];
    }
    let Some(start) = slices[events.start].start.map(i128::from) else { return Vec::new() };
    let end = match is_last {
        true => (iteration..events.end).filter_map(|at| times::end_of(slices, at)).max(),
        false => slices[events.end].start.map(i128::from),
    };
    let Some(end) = end else { return Vec::new() };
    let own = &slices[events];
    let is_known = |slice: &times::Slice| slice.start.is_some() && slice.duration.is_some_and(|one| one >= 0);
    match own.iter().any(is_known) {
        true => {
            let inside = times::busy_time(own, start, end);
            vec![(PartTime::Inside, inside), (PartTime::After, end - start - inside)]
        }
        false => vec![(PartTime::Span, end - start)],
    }
}

fn summary_of(found: &LoopTimes) -> times::Summary {
    times::Summary {
        count: found.times.count,
        total: found.times.total,
        minimum: found.times.minimum,
        median: found.median.unwrap(),
        maximum: found.times.maximum,
    }
}

/// The slowest iteration is where it is said to be.
fn check_slowest(
    found: &LoopTimes,
    timed: &[(loopfold::StreamId, Vec<times::Slice>)],
    stretches: &[Stretch],
) {
    let slowest = found.slowest.as_ref().unwrap();
    let (_, slices) = timed.iter().find(|(index, _)| *index == slowest.stream).unwrap();
    let stretch = stretches.iter().find(|stretch| stretch.begin as u64 == slowest.position).unwrap();
    let time = times::iteration_time(slices, stretch.begin..stretch.end, stretch.last);
    assert_eq!(time, Some(found.times.maximum));
}

/// Every iteration is visited once, with its own times.
fn check_visited(
    fold: &Fold,
    nest: &Nest,
    stream: loopfold::StreamId,
    stretches: &BTreeMap<usize, Vec<Stretch>>,
) {
    let slices = slices_of(fold.stream(stream));
    let has_starts = slices.iter().any(|slice| slice.start.is_some());
    let has_durations = fold.stream(stream).times().durations.is_some();
    let has_times = has_durations || fold.stream(stream).times().starts.is_some();
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut busy_total: BTreeMap<usize, Option<i128>> = BTreeMap::new();
    let mut occurrences: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    let total = visit_iterations(nest, fold.stream(stream).times(), |iteration| {
        let at = seen.entry(iteration.node).or_default();
        let Stretch { begin, end, last } = stretches[&iteration.node][*at];
        *at += 1;
        assert_eq!(iteration.events, begin as u64..end as u64);
        if !has_times {
            assert_eq!((iteration.is_last, iteration.start, iteration.time), (last, None, None));
            return Ok(());
        }
        assert_eq!((iteration.is_last, iteration.is_full), (last, !(last && has_starts)));
        assert_eq!(iteration.time, times::iteration_time(&slices, begin..end, last));
        if has_starts {
            assert_eq!(iteration.start, slices[begin].start.map(i128::from));
        }
        let busy = iteration.start.zip(iteration.time).filter(|_| has_starts && has_durations);
        let busy = busy.map(|(start, time)| times::busy_time(&slices, start, start + time));
        assert_eq!(iteration.busy, busy);
        if let Some(total) = busy_total.entry(iteration.node).or_insert(Some(0)) {
            *total += busy.unwrap_or(0);
        }
        if iteration.time.is_some() && busy.is_none() {
            busy_total.insert(iteration.node, None);
        }
        let (occurrence, number) = occurrences.entry(iteration.node).or_default();
        assert_eq!((iteration.occurrence, iteration.iteration), (*occurrence, *number));
        (*occurrence, *number) = if last { (*occurrence + 1, 0) } else { (*occurrence, *number + 1) };
        Ok(())
    });
    assert_eq!(total.unwrap().is_some(), !slices.is_empty());
    if !slices.is_empty() {
        assert!(stretches.iter().all(|(node, stretches)| seen[node] == stretches.len()));
    }
    let times = loop_times(nest, [(stream, fold.stream(stream).times())]).unwrap().unwrap_or_default();
    for times in &times.loops {
        assert_eq!(times.busy, busy_total[&times.node]);
    }
}

/// Self times are those of the definition, and add up to the time in which some event is open.
#[track_caller]
pub fn check_self_times(fold: &Fold) {
    let mut events = vec![(0u64, 0i128); fold.alphabet().len()];
    let (mut busy, mut nests, mut any) = (0, false, false);
    for stream in fold.streams() {
        let (slices, times) = (slices_of(stream), stream.times());
        let own = self_times(times).unwrap();
        assert_eq!(own.is_some(), times.starts.is_some() && times.durations.is_some());
        let Some(own) = own else { continue };
        any = true;
        let own: Vec<Option<i128>> = own.into_iter().map(|own| (own >= 0).then_some(own.into())).collect();
        assert_eq!(own, times::self_times(&slices), "{slices:?}");
        let total: i128 = own.iter().flatten().sum();
        assert_eq!(total, times::busy_time(&slices, i64::MIN.into(), i128::from(i64::MAX) * 2));
        busy += total;
        let known = slices.iter().zip(&own).filter(|(_, own)| own.is_some());
        nests |= total < known.filter_map(|(slice, _)| slice.duration.map(i128::from)).sum();
        for (symbol, own) in fold.unfold(stream.root()).zip(own) {
            let (known, total) = &mut events[symbol.index()];
            *known += u64::from(own.is_some());
            *total += own.unwrap_or(0);
        }
    }
    let sums = fold.self_sums().unwrap();
    assert_eq!(sums.is_some(), any);
    let Some(sums) = sums else { return };
    assert!(sums.events.iter().map(|sum| (sum.known, sum.total)).eq(events));
    assert_eq!((sums.busy(), sums.nests), (busy, nests));
    let kept = summarize(fold.clone()).unwrap().self_sums().unwrap().unwrap();
    assert_eq!(kept.events, sums.events);
    // Which events have a duration but no start is not kept.
    assert!(!kept.nests || sums.nests);
}
