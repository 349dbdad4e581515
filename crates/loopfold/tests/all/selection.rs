//! Folds without some events and parts of folds: the same as of the unfolded streams.

use crate::support::{folders, id, odd_fold, unfolded};
use loopfold::archive::{self, ReadConfig};
use loopfold::fold::StreamPart;
use loopfold::folders::{Folding, Outermost, SequiturRuns, fold_trace};
use loopfold::questions::clock::EventClock;
use loopfold::questions::find::Place;
use loopfold::questions::iterations::{WantedLoop, loop_places, visit_iterations};
use loopfold::questions::query::Query;
use loopfold::questions::rule_sums::{rule_sums, summarize};
use loopfold::questions::selection::{Bound, between, iterations_of};
use loopfold::trace::{Collector, Event, EventFilter, Projection, Sink, Times, TimesKept, Timing};
use loopfold::{ErrorKind, Fold, Trace};
use loopfold_testing::{Rng, streams};

/// What is known of an event.
type Timed = (u32, Option<i64>, Option<i64>, Option<f64>);

/// Streams of events with times, most of them known.
fn timed_streams(rng: &mut Rng, all_known: bool) -> Vec<Vec<Timed>> {
    (0..rng.between(1, 3))
        .map(|_| {
            let mut now = rng.below(100) as i64;
            let events = streams::small(rng, 60);
            let has = [!rng.one_in(5), !rng.one_in(5), rng.one_in(2)];
            events
                .into_iter()
                .map(|symbol| {
                    now += rng.below(10) as i64;
                    let known = |rng: &mut Rng| all_known || !rng.one_in(9);
                    let start = (has[0] && known(rng)).then_some(now);
                    let duration = (has[1] && known(rng)).then(|| rng.below(8) as i64);
                    let metric = (has[2] && known(rng)).then(|| rng.below(50) as f64);
                    (symbol % 8, start, duration, metric)
                })
                .collect()
        })
        .collect()
}

fn push_all(sink: &mut dyn Sink, streams: &[Vec<Timed>]) {
    for (index, events) in streams.iter().enumerate() {
        let stream = sink.stream(&format!("s{index}")).unwrap();
        for &(number, start, duration, metric) in events {
            let symbol = sink.intern(&Event::integer(number.into())).unwrap();
            let metrics: Vec<(&str, f64)> = metric.map(|value| ("bytes", value)).into_iter().collect();
            sink.push(stream, symbol, Timing { start, duration, metrics: &metrics }).unwrap();
        }
    }
}

fn trace_of(streams: &[Vec<Timed>]) -> Trace {
    let mut collector = Collector::default();
    push_all(&mut collector, streams);
    collector.finish().unwrap()
}

/// All that is known of the events of a fold.
fn events_of(fold: &Fold) -> Vec<Vec<Timed>> {
    fold.streams()
        .iter()
        .map(|stream| {
            let Times { starts, durations, metrics } = stream.times();
            let number = |symbol| fold.alphabet().label(symbol).parse().unwrap();
            let symbols: Vec<u32> = fold.unfold(stream.root()).map(number).collect();
            let starts = starts.as_ref().map(|column| column.values().unwrap());
            let durations = durations.as_ref().map(|column| column.values().unwrap());
            let metric = metrics.first().map(|(_, column)| column.values().unwrap());
            let known = |column: &Option<Vec<i64>>, at: usize, unknown: i64| {
                column.as_ref().map(|column| column[at]).filter(|&value| value != unknown)
            };
            let event = |(at, symbol): (usize, u32)| {
                let metric = metric.as_ref().map(|column| column[at]).filter(|value| !value.is_nan());
                (symbol, known(&starts, at, i64::MIN), known(&durations, at, -1), metric)
            };
            symbols.into_iter().enumerate().map(event).collect()
        })
        .collect()
}

/// Checks that a fold can be stored, which fails if an invariant does not hold.
fn check_stored(fold: &Fold) {
    let mut file = Vec::new();
    archive::write(fold, &mut file).unwrap();
    let (again, _) = archive::read(std::io::Cursor::new(file), &ReadConfig::new()).unwrap();
    assert_eq!(again, *fold);
}

#[test]
fn dropped_events_leave_the_others_as_they_are() {
    let mut rng = Rng::new(153);
    for _ in 0..1_500 {
        let streams = timed_streams(&mut rng, false);
        let trace = trace_of(&streams);
        let dropped: Vec<u32> = (0..8).filter(|_| rng.one_in(3)).collect();
        let kept: Vec<bool> = trace
            .alphabet
            .symbols()
            .map(|symbol| !dropped.contains(&trace.alphabet.label(symbol).parse().unwrap()))
            .collect();
        let without = |events: &Vec<Timed>| -> Vec<Timed> {
            events.iter().filter(|event| !dropped.contains(&event.0)).copied().collect()
        };
        let expected: Vec<Vec<Timed>> = streams.iter().map(without).collect();
        let all = folders();
        let folder = &all[rng.below(all.len())];
        let fold = fold_trace(trace.clone(), &**folder, 1).unwrap().without(&kept).unwrap();
        assert_eq!(events_of(&fold), expected, "{dropped:?} of {streams:?} by {}", folder.name());
        check_stored(&fold);
        let filtered = fold_trace(trace.filtered(&kept).unwrap(), &Outermost::default(), 1).unwrap();
        assert_eq!(events_of(&filtered), expected);
        // The same while they are read, collected or folded.
        let words: Vec<String> = dropped.iter().map(u32::to_string).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let filter = EventFilter::new(&[], &words).unwrap();
        let projection = Projection { filter, ..Projection::default() };
        let mut collector = Collector::new(projection.clone(), TimesKept::All);
        push_all(&mut collector, &streams);
        let collected = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
        assert_eq!(events_of(&collected), expected);
        assert!(collected.alphabet().len() <= 8 - dropped.len());
        let mut folding = Folding::with(Box::new(SequiturRuns), projection, TimesKept::All, 1).unwrap();
        push_all(&mut folding, &streams);
        assert_eq!(events_of(&folding.finish().unwrap()), expected);
    }
}

#[test]
fn folds_that_no_folder_makes_lose_events_too() {
    let mut rng = Rng::new(154);
    for _ in 0..6_000 {
        let (fold, streams) = odd_fold(&mut rng, 400);
        let kept: Vec<bool> = (0..8).map(|_| !rng.one_in(2)).collect();
        let left = fold.without(&kept).unwrap();
        let number = |symbol: u32| left.alphabet().label(loopfold::Symbol::new(symbol as usize).unwrap());
        for (stream, expected) in unfolded(&left).iter().zip(&streams) {
            let expected: Vec<String> =
                expected.iter().filter(|&&symbol| kept[symbol as usize]).map(u32::to_string).collect();
            assert_eq!(stream.iter().map(|&symbol| number(symbol)).collect::<Vec<_>>(), expected);
        }
        check_stored(&left);
        for rule in left.rules() {
            let is_root = left.streams().iter().any(|stream| stream.root() == rule);
            assert!(left.body(rule).len() > 1 || is_root, "{left:?}");
        }
    }
}

#[test]
fn sums_without_dropped_events_are_exact_or_absent() {
    let mut rng = Rng::new(155);
    let (mut rules, mut loops) = (0, 0);
    for _ in 0..800 {
        let trace = trace_of(&timed_streams(&mut rng, true));
        let all = folders();
        let fold = fold_trace(trace, &*all[rng.below(all.len())], 1).unwrap();
        let kept: Vec<bool> = fold.alphabet().symbols().map(|_| !rng.one_in(5)).collect();
        let left = fold.without(&kept).unwrap();
        let summed = summarize(fold.clone()).unwrap().without(&kept).unwrap();
        assert_eq!(summed.to_string(), left.to_string());
        assert_eq!(summed.event_sums().unwrap(), left.event_sums().unwrap());
        if let Some((of_all, of_left)) = summed.rule_sums().zip(rule_sums(&left).unwrap()) {
            let (known, expected) = (of_all.durations.iter().flatten(), of_left.durations.iter().flatten());
            for (known, expected) in known.zip(expected).filter(|(known, _)| known.count > 0) {
                assert_eq!(known, expected, "{left}");
                rules += 1;
            }
            for (place, known) in &of_all.loops {
                assert_eq!(Some(known), of_left.loops.get(place), "{place:?} of {left}");
                loops += 1;
            }
        }
        let own = (summed.self_sums().unwrap(), left.self_sums().unwrap());
        if let (Some(known), Some(expected)) = own {
            assert_eq!(known.events, expected.events, "{left}");
        }
    }
    assert!(rules > 500 && loops > 50, "{rules} {loops}");
}

#[test]
fn a_part_of_a_stream_is_those_events() {
    let mut rng = Rng::new(156);
    for _ in 0..2_000 {
        let streams = timed_streams(&mut rng, false);
        let all = folders();
        let fold = fold_trace(trace_of(&streams), &*all[rng.below(all.len())], 1).unwrap();
        let mut parts = Vec::new();
        for _ in 0..rng.between(1, 4) {
            let index = rng.below(streams.len());
            let (a, b) = (rng.below(streams[index].len() + 2), rng.below(streams[index].len() + 2));
            let range = a.min(b) as u64..a.max(b) as u64;
            parts.push(StreamPart { stream: id(index), range, number: Some(parts.len() + 1) });
        }
        let zero = EventClock::new(&fold).origin().unwrap();
        let some = fold.parts(&parts, zero).unwrap();
        let clip = |part: &StreamPart| {
            let events = &streams[part.stream.index()];
            let end = part.range.end.min(events.len() as u64);
            part.range.start.min(end) as usize..end as usize
        };
        let expected: Vec<Vec<Timed>> =
            parts.iter().map(|part| streams[part.stream.index()][clip(part)].to_vec()).collect();
        assert_eq!(events_of(&some), expected, "{parts:?} of {fold}");
        check_stored(&some);
        for (part, stream) in parts.iter().zip(some.stream_ids()) {
            assert_eq!(some.whole_position(stream, 0), clip(part).start as u64);
        }
        if zero.is_none() {
            continue;
        }
        // Times are counted from the beginning of the whole trace.
        let (mut whole, mut clock) = (EventClock::new(&fold), EventClock::new(&some));
        for (part, stream) in parts.iter().zip(some.stream_ids()) {
            for at in 0..some.length(some.stream(stream).root()) {
                let position = some.whole_position(stream, at);
                let since = whole.since_first(part.stream, position).unwrap();
                assert_eq!(clock.since_first(stream, at).unwrap(), since);
            }
        }
        // A part of a part.
        let inner = between(&some, Some(Bound::Position(5)), Some(Bound::Position(20)));
        let Ok((inner_parts, zero)) = inner else { continue };
        let inner = some.parts(&inner_parts, zero).unwrap();
        for ((part, stream), events) in parts.iter().zip(inner.stream_ids()).zip(events_of(&inner)) {
            let whole = clip(part);
            let range = whole.start.max(5).min(whole.end)..whole.end.min(20).max(whole.start);
            let expected = streams[part.stream.index()].get(range.clone()).unwrap_or_default();
            assert_eq!(events, expected, "{range:?}");
            if !events.is_empty() {
                assert_eq!(inner.whole_position(stream, 0), range.start as u64);
            }
        }
    }
}

#[test]
fn a_time_is_the_first_event_that_starts_then_or_later() {
    let mut rng = Rng::new(157);
    let mut found = 0;
    for _ in 0..2_000 {
        let streams = timed_streams(&mut rng, false);
        let fold = fold_trace(trace_of(&streams), &Outermost::default(), 1).unwrap();
        let zero = streams.iter().filter_map(|events| events.first()?.1).min();
        let (from, to) = (rng.below(200) as i64, rng.below(400) as i64 + 200);
        let part = between(&fold, Some(Bound::Time(from)), Some(Bound::Time(to)));
        let Some(zero) = zero else {
            assert_eq!(part.unwrap_err().kind(), ErrorKind::NotFound);
            continue;
        };
        let range = |events: &Vec<Timed>| {
            let at = |time: i64, first: usize| {
                (first..events.len())
                    .find(|&at| events[at].1.is_some_and(|start| start - zero >= time))
                    .unwrap_or(events.len())
            };
            let first = at(from, 0);
            first as u64..at(to, first) as u64
        };
        let expected: Vec<_> = streams.iter().map(range).collect();
        match part {
            Ok((parts, _)) => {
                assert_eq!(parts.into_iter().map(|part| part.range).collect::<Vec<_>>(), expected);
                found += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound);
                assert!(expected.iter().all(|range| range.is_empty()), "{error}");
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn iterations_of_a_loop_are_those_that_are_visited() {
    let mut rng = Rng::new(158);
    for _ in 0..2_000 {
        let streams = timed_streams(&mut rng, false);
        let fold = fold_trace(trace_of(&streams), &Outermost::default(), 1).unwrap();
        let stream = &fold.streams()[0];
        let nest = fold.nest(stream.root(), usize::MAX);
        for place in loop_places(&nest) {
            assert_eq!(WantedLoop::Number(place.number).find(&nest), Some(place));
            let wanted = rng.below(3) as u64..rng.below(6) as u64;
            let mut expected: Vec<(u64, std::ops::Range<u64>)> = Vec::new();
            visit_iterations(&nest, &Times::default(), |iteration| {
                if iteration.node == place.node && wanted.contains(&iteration.iteration) {
                    match expected.last_mut() {
                        Some((last, range)) if *last == iteration.occurrence => {
                            range.end = iteration.events.end
                        }
                        _ => expected.push((iteration.occurrence, iteration.events.clone())),
                    }
                }
                Ok(())
            })
            .unwrap();
            let expected: Vec<_> = expected.into_iter().map(|(_, range)| range).collect();
            assert_eq!(
                iterations_of(&nest, place, &wanted).unwrap(),
                expected,
                "{place:?} {wanted:?} of {fold}"
            );
        }
    }
}

#[test]
fn what_is_found_in_parts_is_found_in_the_whole_stream() {
    let mut rng = Rng::new(159);
    for _ in 0..1_000 {
        let streams = timed_streams(&mut rng, false);
        let all = folders();
        let fold = fold_trace(trace_of(&streams), &*all[rng.below(all.len())], 1).unwrap();
        let bounds = (Bound::Position(rng.below(10) as u64), Bound::Position(rng.between(10, 40) as u64));
        let Ok((parts, zero)) = between(&fold, Some(bounds.0), Some(bounds.1)) else { continue };
        let some = fold.parts(&parts, zero).unwrap();
        let query = Query::parse("0 /[01]/", some.alphabet()).unwrap();
        let whole = Query::parse("0 /[01]/", fold.alphabet()).unwrap();
        let places: Vec<Place> = some
            .find(&query)
            .unwrap()
            .places()
            .map(|place| {
                let whole = |position| some.whole_position(place.stream, position);
                Place { stream: place.stream, start: whole(place.start), end: whole(place.end) }
            })
            .collect();
        let inside = |place: &Place| {
            let range = &parts[place.stream.index()].range;
            range.contains(&place.start) && range.contains(&place.end)
        };
        let expected: Vec<Place> = fold.find(&whole).unwrap().places().filter(inside).collect();
        assert_eq!(places, expected);
    }
}
