//! The times of loops: generated streams of slices against the definitions.

use crate::support::archive::{read_back, written};
use crate::support::iterations::{check_loop_times, check_self_times, fold_of_slices};
use crate::support::sums::{check_rule_sums, check_summed_times};
use crate::support::{fold_of, folders, id, outermost};
use loopfold::Fold;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::iterations::{Scope, loop_times, slow_iterations, summed_times, visit_iterations};
use loopfold::questions::near::{Config, near_nest};
use loopfold::questions::nest::Node;
use loopfold::questions::rule_sums::summarize;
use loopfold::trace::{Collector, Event, Sink, Timing};
use loopfold_testing::Rng;

#[test]
fn iterations_of_slices_are_timed_as_they_are_defined() {
    let mut rng = Rng::new(1201);
    let mut loops = 0;
    for folder in folders() {
        for _ in 0..1500 {
            let fold = fold_of_slices(&mut rng, &*folder, 40);
            check_loop_times(&fold);
            check_rule_sums(&fold);
            check_summed_times(&fold);
            check_self_times(&fold);
            loops += fold.classes().unwrap().iter().filter(|class| class.in_loops > 0).count();
        }
    }
    assert!(loops > 1000, "{loops}");
}

/// 20 steps, each recorded as a slice that ends long before the next one begins.
#[test]
fn the_last_of_many_steps_is_not_the_fastest() {
    let mut collector = Collector::default();
    let stream = collector.stream("main").unwrap();
    let step = collector.intern(&Event::named("Optimizer.step")).unwrap();
    let mut start = 0;
    for index in 0..20 {
        let timing = Timing { start: Some(start), duration: Some(1_730_000), ..Timing::UNKNOWN };
        collector.push(stream, step, timing).unwrap();
        start += 24_560_000 + index * 100_000;
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let classes = fold.classes().unwrap();
    let nest = fold.nest(classes[0].root, 100);
    let times = loop_times(&nest, [(stream, fold.stream(stream).times())]).unwrap().unwrap();
    let spread = times.loops[0].times;
    assert_eq!((spread.minimum, spread.maximum), (24_560_000, 24_560_000 + 18 * 100_000));
    assert_eq!(times.loops[0].slowest.as_ref().unwrap().iteration, 18);
    assert_eq!(spread.total, times.total());
    let summary = summarize(fold).unwrap();
    let summed = summed_times(&summary, &classes[0], 100).unwrap().unwrap();
    assert_eq!((summed.loops[0].times, summed.streams), (spread, times.streams));
}

/// Streams that are chosen keep the times of their loops; those that others have too are marked.
#[test]
fn chosen_streams_keep_the_sums_of_their_loops() {
    let mut collector = Collector::default();
    for (name, events) in [("x", "ababab"), ("y", "ababab"), ("z", "cdcdcd")] {
        let stream = collector.stream(name).unwrap();
        for (start, letter) in (0..).step_by(10).zip(events.chars()) {
            let symbol = collector.intern(&Event::named(&letter.to_string())).unwrap();
            let timing = Timing { start: Some(start), duration: Some(4), ..Timing::UNKNOWN };
            collector.push(stream, symbol, timing).unwrap();
        }
    }
    let fold = summarize(fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()).unwrap();
    for (chosen, scope, total) in
        [("x", Scope::OtherStreams, 108), ("z", Scope::Own, 54), ("xy", Scope::Own, 108)]
    {
        let some = fold.with_streams(|id| chosen.contains(fold.stream(id).name())).canonical();
        let class = &some.classes().unwrap()[0];
        let times = summed_times(&some, class, 100).unwrap().unwrap();
        assert_eq!((times.loops[0].scope, times.loops[0].times.total), (scope, total), "{chosen}");
        // What includes other streams is not stored.
        let again = read_back(&written(&some)).unwrap();
        let sums = again.rule_sums().unwrap();
        assert_eq!(sums.loops.is_empty(), scope == Scope::OtherStreams);
        assert!(sums.wider.is_empty());
        assert_eq!(again.event_sums().unwrap(), some.event_sums().unwrap());
    }
}

/// The fold of a stream with a start and a duration of each event.
fn timed(events: &[(&str, i64, i64)]) -> Fold {
    let mut collector = Collector::default();
    let stream = collector.stream("main").unwrap();
    for &(name, start, duration) in events {
        let symbol = collector.intern(&Event::named(name)).unwrap();
        let timing = Timing { start: Some(start), duration: Some(duration), ..Timing::UNKNOWN };
        collector.push(stream, symbol, timing).unwrap();
    }
    fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
}

/// Four iterations of `load (work)^3 store`, of which the third stores slowly, and in the second of
/// which one piece of work is slow.
fn steps() -> Fold {
    let mut events = Vec::new();
    let mut now = 0;
    for step in 0..4 {
        let mut event = |name, duration| {
            events.push((name, now, duration));
            now += duration;
        };
        event("load", 10);
        (0..3).for_each(|piece| event("work", if (step, piece) == (1, 2) { 25 } else { 5 }));
        event("store", if step == 2 { 90 } else { 20 });
    }
    timed(&events)
}

#[test]
fn iterations_say_in_which_others_they_lie() {
    let fold = steps();
    let stream = &fold.streams()[0];
    let nest = fold.nest(stream.root(), 100);
    let mut found = Vec::new();
    visit_iterations(&nest, stream.times(), |iteration| {
        found.push((iteration.outer.to_vec(), iteration.iteration, iteration.time.unwrap()));
        Ok(())
    })
    .unwrap();
    let inner: Vec<_> = found.iter().filter(|(outer, ..)| outer.len() == 1).cloned().collect();
    let expected = |outer, iteration, time| (vec![outer], iteration, time);
    assert_eq!(inner[3..6], [expected(1, 0, 5), expected(1, 1, 5), expected(1, 2, 25)]);
    let slowest: Vec<_> = loop_times(&nest, [(id(0), stream.times())]).unwrap().unwrap().loops;
    let slowest: Vec<_> = slowest.iter().map(|times| times.slowest.clone().unwrap()).collect();
    assert_eq!((slowest[0].iteration, &slowest[0].outer[..]), (2, &[][..]));
    // The last pieces of work are not compared, as each is the last one of its occurrence.
    assert_eq!((slowest[1].iteration, &slowest[1].outer[..]), (0, &[0][..]));
}

#[test]
fn slow_iterations_say_what_grew() {
    let fold = steps();
    let stream = &fold.streams()[0];
    let nest = fold.nest(stream.root(), 100);
    let slow = slow_iterations(&nest, stream.times(), 0, 2).unwrap();
    let [first, second] = &slow[..] else { panic!("{slow:?}") };
    assert_eq!((first.iteration, first.time, first.events.clone()), (2, 115, 10..15));
    let store = first.grown[0];
    assert_eq!((store.time, store.median, first.grown.len()), (90, 20.0, 1));
    assert!(matches!(nest.nodes[store.node.unwrap()], Node::Event(_)));
    assert_eq!((second.iteration, second.time), (1, 65));
    let work = second.grown[0];
    assert_eq!((work.time, work.median), (35, 15.0));
    assert!(matches!(nest.nodes[work.node.unwrap()], Node::Loop { times: 3, .. }));
}

#[test]
fn iterations_without_times_are_visited_too() {
    let fold = fold_of(&[vec![1, 2, 1, 2, 1, 2]], &Outermost::default());
    let stream = &fold.streams()[0];
    let mut found = Vec::new();
    let total = visit_iterations(&fold.nest(stream.root(), 100), stream.times(), |iteration| {
        found.push((iteration.events, iteration.time, iteration.is_last));
        Ok(())
    });
    assert_eq!(total.unwrap(), None);
    assert_eq!(found, [(0..2, None, false), (2..4, None, false), (4..6, None, true)]);
}

#[test]
fn iterations_of_loops_with_exceptions_have_kinds() {
    // Ten iterations of 10 ns; after the fifth, something more that takes 70.
    let mut events = Vec::new();
    for step in 0..40 {
        let start = 100 * step;
        events.extend((0..10).map(|event| {
            (["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][event], start + event as i64, 1)
        }));
        if step % 13 == 5 {
            events.push(("retry", start + 20, 70));
        }
    }
    let fold = timed(&events);
    let stream = &fold.streams()[0];
    let nest = near_nest(&fold, stream.root(), 1000, Config::new(&outermost)).unwrap().unwrap();
    let mut odd = Vec::new();
    visit_iterations(&nest, stream.times(), |iteration| {
        if iteration.kind.is_some() {
            odd.push((iteration.iteration, iteration.time.unwrap(), iteration.busy.unwrap()));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(odd, [(5, 100, 80), (18, 100, 80), (31, 100, 80)]);
    let slow = slow_iterations(&nest, stream.times(), 0, 100).unwrap();
    assert_eq!(slow.len(), 39);
    assert_eq!(slow[5].grown[0].node, None);
    assert_eq!(slow[5].grown[0].time, 80);
}
