//! The times of loops: generated streams of slices against the definitions.

use crate::support::archive::{read_back, written};
use crate::support::iterations::{check_loop_times, check_self_times, check_slow, fold_of_slices};
use crate::support::sums::{check_rule_sums, check_summed_times};
use crate::support::{fold_of, folders, id, outermost};
use loopfold::Fold;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::iterations::{
    LEAST_FACTOR, LEAST_ITERATIONS, LEAST_PART, MOST_PHASES, PartTime, SIGNIFICANT, Scope, SlowConfig,
    loop_times, phase_starts, slow_iterations, summed_times, visit_iterations,
};
use loopfold::questions::near::{Config, near_nest};
use loopfold::questions::nest::Node;
use loopfold::questions::rule_sums::summarize;
use loopfold::trace::{Collector, Event, Sink, Timing};
use loopfold_testing::{Rng, phases};

#[test]
fn iterations_of_slices_are_timed_as_they_are_defined() {
    let mut rng = Rng::new(1201);
    let mut loops = 0;
    for folder in folders() {
        for _ in 0..1500 {
            let fold = fold_of_slices(&mut rng, &*folder, 40);
            check_loop_times(&fold);
            check_slow(&fold);
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
        let some = fold.with_streams(|id| chosen.contains(fold.stream(id).name().raw())).canonical();
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
    let streams = [(id(0), stream.times())];
    let slow = slow_iterations(&nest, &streams, 0, &SlowConfig::new(2)).unwrap();
    let [first, second] = &slow.iterations[..] else { panic!("{slow:?}") };
    assert_eq!((slow.median, slow.busy_median, slow.gap_median), (Some(65.0), Some(65.0), Some(0.0)));
    assert_eq!((first.iteration, first.time, first.events.clone()), (2, 115, 10..15));
    let store = first.grown[0];
    assert_eq!((store.time, store.median, first.grown.len()), (90, 20.0, 1));
    assert!(matches!(nest.nodes[store.node.unwrap()], Node::Event(_)));
    assert_eq!((second.iteration, second.time), (1, 65));
    let work = second.grown[0];
    assert_eq!((work.time, work.median), (35, 15.0));
    assert!(matches!(nest.nodes[work.node.unwrap()], Node::Loop { times: 3, .. }));
    // One iteration by its number, the last one among them, compared with all.
    let selected = |number| SlowConfig::new(5).numbers(Some(number..number + 1));
    for (number, time) in [(0, 45), (1, 65), (3, 45)] {
        let one = slow_iterations(&nest, &streams, 0, &selected(number)).unwrap();
        let [only] = &one.iterations[..] else { panic!("{one:?}") };
        assert_eq!((only.iteration, only.time, one.median), (number, time, slow.median));
    }
    assert!(slow_iterations(&nest, &streams, 0, &selected(4)).unwrap().iterations.is_empty());
}

/// A call that is short, and a pause behind it that is long in one iteration.
#[test]
fn a_pause_behind_a_call_is_not_in_the_call() {
    let mut events = Vec::new();
    let mut now = 0;
    for step in 0..5 {
        for (name, duration) in [("recv", 2), ("wait", 30)] {
            events.push((name, now, duration));
            now += duration + if (step, name) == (2, "recv") { 109 } else { 1 };
        }
    }
    let fold = timed(&events);
    let nest = fold.nest(fold.streams()[0].root(), 100);
    let streams = [(id(0), fold.streams()[0].times())];
    let slow = slow_iterations(&nest, &streams, 0, &SlowConfig::new(1)).unwrap();
    let only = &slow.iterations[0];
    assert_eq!((only.time, only.busy), (142, Some(32)));
    assert_eq!((slow.busy_median, slow.gap_median), (Some(32.0), Some(2.0)));
    let [grown] = only.grown[..] else { panic!("{only:?}") };
    assert_eq!((grown.which, grown.time, grown.median), (PartTime::After, 109, 1.0));
    assert!(matches!(nest.nodes[grown.node.unwrap()], Node::Event(_)));
}

/// Times that change their level now and then, with noise and single slow ones.
#[test]
fn phases_are_those_of_the_definition() {
    let mut rng = Rng::new(77);
    let mut numbers = [0u32; 4];
    for _ in 0..4000 {
        let mut times = Vec::new();
        let noise = rng.between(1, 60);
        for _ in 0..rng.between(0, 5) {
            let level = rng.between(10, 200) as i64;
            let length = rng.between(1, 40);
            times.extend((0..length).map(|_| level + rng.below(noise) as i64));
        }
        for time in &mut times {
            *time *= if rng.one_in(15) { 20 } else { 1 };
        }
        let found = phase_starts(&times);
        assert_eq!(found, phases_by_definition(&times), "{times:?}");
        numbers[found.len().min(3)] += 1;
    }
    assert!(numbers.iter().all(|&number| number > 100), "{numbers:?}");
}

fn phases_by_definition(times: &[i64]) -> Vec<usize> {
    let least = LEAST_ITERATIONS.max(times.len().div_ceil(LEAST_PART));
    phases::phase_starts(times, least, SIGNIFICANT, LEAST_FACTOR, MOST_PHASES)
}

/// Times that grow have as many phases as are shown, none of which is too short.
#[test]
fn phases_of_times_that_grow() {
    for length in [350, 500] {
        let times: Vec<i64> = (0..length).map(|at| 10 + at * at).collect();
        let found = phase_starts(&times);
        assert_eq!(found, phases_by_definition(&times));
        assert_eq!(found.len() + 1, MOST_PHASES);
    }
}

/// Noise does not make phases, however long it lasts.
#[test]
fn a_steady_program_has_one_phase() {
    let mut rng = Rng::new(78);
    for length in [0, 1, 9, 10, 100, 1000, 20_000] {
        for _ in 0..5 {
            let times: Vec<i64> = (0..length).map(|_| 1000 + rng.below(400) as i64).collect();
            assert_eq!(phase_starts(&times), []);
        }
    }
    assert_eq!(phase_starts(&[0; 50]), []);
    assert_eq!(phase_starts(&[[0; 20], [7; 20]].concat()), [20]);
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
    let streams = [(id(0), stream.times())];
    let slow = slow_iterations(&nest, &streams, 0, &SlowConfig::new(100)).unwrap().iterations;
    assert_eq!(slow.len(), 39);
    let exception: Vec<_> = slow[5].grown.iter().map(|grown| (grown.node, grown.which, grown.time)).collect();
    assert_eq!(exception, [(None, PartTime::Inside, 70), (None, PartTime::After, 10)]);
}
