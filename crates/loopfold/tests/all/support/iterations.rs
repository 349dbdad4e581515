//! The times of loops against their definitions, on the unfolded streams.

use super::sums::{Stretch, others_and_lasts, slices_of};
use loopfold::Fold;
use loopfold::folders::{Folder, fold_trace};
use loopfold::questions::iterations::{LoopTimes, loop_times, visit_iterations};
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
