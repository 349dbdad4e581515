//! Times of loops whose streams are read by several processes are those that one process finds.

use crate::support::outermost;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::iterations::{ClassSamples, ClassTimes, loop_times};
use loopfold::questions::near::{Config, near_nest};
use loopfold::questions::nest::Nest;
use loopfold::trace::{Collector, Event, Sink as _, Times, Timing};
use loopfold::{Fold, StreamId};
use loopfold_testing::Rng;

/// What several processes find, each of which has some streams and only knows the loops of the nest; and
/// whether that is all that one process would find.
fn divided(
    nest: &Nest,
    streams: &[(StreamId, &Times)],
    processes: usize,
    rng: &mut Rng,
) -> Option<ClassTimes> {
    let owners: Vec<usize> = streams.iter().map(|_| rng.below(processes)).collect();
    let has_times = |times: &Times| times.starts.is_some() || times.durations.is_some();
    let timed: Vec<_> =
        streams.iter().zip(&owners).filter(|((_, times), _)| has_times(times)).zip(0u64..).collect();
    let mut all: Option<ClassSamples> = None;
    for process in 0..processes {
        let own = timed.iter().filter(|((_, owner), _)| **owner == process);
        let own = own.map(|&((&(stream, times), _), place)| (stream, place, times));
        let bare = Nest::from_loops(&nest.loops_to_bytes()).unwrap();
        let samples = ClassSamples::of(&bare, timed.len() as u64, own).unwrap();
        match &mut all {
            Some(all) => all.add(nest, &samples.to_bytes()).unwrap(),
            None => all = Some(samples),
        }
    }
    all.filter(ClassSamples::is_exact)?.finish().unwrap()
}

/// Streams of the same events with their own times: loops in a loop, some iterations of which differ.
fn class(streams: usize, rng: &mut Rng) -> Fold {
    let mut events: Vec<usize> = Vec::new();
    for _ in 0..rng.between(4, 30) {
        events.extend([0]);
        (0..rng.between(1, 3)).for_each(|_| events.extend([1, 2]));
        if rng.one_in(9) {
            events.push(3);
        }
    }
    let mut collector = Collector::default();
    let missing = rng.below(4);
    for number in 0..streams {
        let stream = collector.stream(&format!("s{number}")).unwrap();
        let mut now = 0;
        let without_any = missing == 3 && rng.one_in(3);
        for &event in &events {
            let symbol = collector.intern(&Event::named(["a", "b", "c", "d"][event])).unwrap();
            now += 1 + rng.below(9) as i64;
            let start = (missing != 1 && !(missing == 2 && rng.one_in(9))).then_some(now);
            let duration = (!(missing == 2 && rng.one_in(9))).then_some(rng.below(5) as i64);
            let timing = match without_any {
                true => Timing::UNKNOWN,
                false => Timing { start, duration, ..Timing::UNKNOWN },
            };
            collector.push(stream, symbol, timing).unwrap();
        }
    }
    fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
}

#[test]
fn samples_of_several_processes_are_those_of_one() {
    let mut rng = Rng::new(1810);
    let mut with_exceptions = 0;
    for _ in 0..400 {
        let count = rng.between(1, 6);
        let fold = class(count, &mut rng);
        let streams: Vec<_> = fold.stream_ids().map(|id| (id, fold.stream(id).times())).collect();
        let root = fold.streams()[0].root();
        let near = near_nest(&fold, root, 1000, Config::new(&outermost)).unwrap();
        with_exceptions += usize::from(near.is_some());
        for nest in [Some(fold.nest(root, 1000)), near].into_iter().flatten() {
            let one = loop_times(&nest, streams.iter().copied()).unwrap();
            let processes = rng.between(1, 4);
            assert_eq!(divided(&nest, &streams, processes, &mut rng), one);
        }
    }
    assert!(with_exceptions > 50, "{with_exceptions}");
}

/// So many iterations that every second one is kept, or none is missing and every fourth is.
#[test]
fn the_same_iterations_are_kept() {
    let mut rng = Rng::new(1811);
    let mut collector = Collector::default();
    let length = 1_900_000;
    for number in 0..3 {
        let stream = collector.stream(&format!("s{number}")).unwrap();
        let symbol = collector.intern(&Event::named("step")).unwrap();
        let mut now = 0;
        for _ in 0..length {
            now += 1 + rng.below(1000) as i64;
            collector.push(stream, symbol, Timing { start: Some(now), ..Timing::UNKNOWN }).unwrap();
        }
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let nest = fold.nest(fold.streams()[0].root(), 10);
    let times: Vec<Times> = fold.streams().iter().map(|stream| stream.times().clone()).collect();
    let streams: Vec<_> = fold.stream_ids().zip(&times).collect();
    let one = loop_times(&nest, streams.iter().copied()).unwrap();
    assert_eq!(divided(&nest, &streams, 2, &mut rng), one);
    // A stream without a start: what is kept behind it depends on that.
    let mut starts = loopfold::trace::Column::default();
    times[1].starts.as_ref().unwrap().values().unwrap().iter().enumerate().for_each(|(index, &start)| {
        starts.push(if index == 77 { Times::UNKNOWN_START } else { start });
    });
    let changed = Times { starts: Some(starts), ..Times::default() };
    let streams: Vec<_> = fold.stream_ids().zip([&times[0], &changed, &times[2]]).collect();
    assert_eq!(divided(&nest, &streams, 2, &mut rng), None);
}
