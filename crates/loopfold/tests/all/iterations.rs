//! The times of loops: generated streams of slices against the definitions.

use crate::support::archive::{read_back, written};
use crate::support::folders;
use crate::support::iterations::{check_loop_times, check_self_times, fold_of_slices};
use crate::support::sums::{check_rule_sums, check_summed_times};
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::iterations::{Scope, loop_times, summed_times};
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
    assert_eq!(times.loops[0].slowest.unwrap().iteration, 18);
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
