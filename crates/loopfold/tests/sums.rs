//! Sums of times against the obvious: adding up the unfolded events one by one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use loopfold::folders::{Folder, Guarded, Halving, Innermost, Minimum, Outermost, fold_trace};
use loopfold::questions::event_sums;
use loopfold::trace::{Collector, Event, Sink, Times};
use loopfold::{Fold, Trace};
use loopfold_testing::{Rng, streams};

const METRICS: [&str; 2] = ["bytes", "misses"];

/// Several streams, some of them equal, some with times of this kind or that, many of
/// whose values are not known. Values of metrics are whole, so that their sums are exact
/// in any order.
fn random_trace(rng: &mut Rng, longest: usize) -> Trace {
    let mut collector = Collector::default();
    let mut symbols = Vec::new();
    for index in 0..rng.between(1, 4) {
        if index == 0 || !rng.one_in(3) {
            symbols = streams::small(rng, longest);
        }
        let stream = collector.stream(&format!("stream {index}")).unwrap();
        let kinds = rng.below(16);
        let mut clock = rng.below(1000) as i64;
        for &symbol in &symbols {
            let known = !rng.one_in(4);
            clock += rng.below(50) as i64;
            let mut metrics = Vec::new();
            for (index, name) in METRICS.into_iter().enumerate() {
                if kinds & (4 << index) != 0 && !rng.one_in(3) {
                    metrics.push((name, rng.below(100) as f64 - 20.0));
                }
            }
            let event = Event {
                start: (kinds & 1 != 0 && !rng.one_in(20)).then_some(clock),
                duration: (kinds & 2 != 0 && known).then_some(rng.below(100) as i64),
                metrics: &metrics,
                ..Event::integer(symbol.into())
            };
            collector.push(stream, &event).unwrap();
        }
    }
    collector.finish().unwrap()
}

fn folders() -> [Box<dyn Folder>; 5] {
    [
        Box::new(Outermost::default()),
        Box::new(Innermost::default()),
        Box::new(Guarded::default()),
        Box::new(Halving::default()),
        Box::new(Minimum::default()),
    ]
}

/// Every event with its times, stream by stream: symbol, duration, metrics.
struct Row {
    symbol: usize,
    duration: Option<i64>,
    metrics: Vec<(String, f64)>,
}

fn unfolded(fold: &Fold) -> Vec<Row> {
    let mut rows = Vec::new();
    for stream in fold.streams() {
        let times = stream.times();
        let durations = times.durations.as_ref().map(|column| column.values().unwrap());
        let metrics: Vec<_> =
            times.metrics.iter().map(|(name, column)| (name, column.values().unwrap())).collect();
        for (position, symbol) in fold.unfold(stream.root()).enumerate() {
            let duration = durations.as_ref().map(|values| values[position]);
            let metrics = metrics.iter().map(|(name, values)| (name.to_string(), values[position]));
            rows.push(Row {
                symbol: symbol.index(),
                duration: duration.filter(|&duration| duration != Times::UNKNOWN_DURATION),
                metrics: metrics.filter(|(_, value)| !value.is_nan()).collect(),
            });
        }
    }
    rows
}

#[test]
fn sums_of_events_are_those_of_the_unfolded_events() {
    let mut rng = Rng::new(71);
    for round in 0..2000 {
        let trace = random_trace(&mut rng, 60);
        let folder = &folders()[round % 5];
        let fold = fold_trace(trace, &**folder, 1).unwrap();
        let sums = event_sums(&fold).unwrap();
        let rows = unfolded(&fold);
        assert_eq!(sums.durations.is_some(), fold.streams().iter().any(|s| s.times().durations.is_some()));
        for symbol in 0..fold.alphabet().len() {
            let own = || rows.iter().filter(|row| row.symbol == symbol);
            if let Some(durations) = &sums.durations {
                let known: Vec<i64> = own().filter_map(|row| row.duration).collect();
                assert_eq!(durations[symbol].known, known.len() as u64);
                assert_eq!(durations[symbol].total, known.iter().map(|&value| i128::from(value)).sum());
            }
            for (name, sums) in &sums.metrics {
                let values = || own().flat_map(|row| &row.metrics).filter(|(other, _)| other == name);
                assert_eq!(sums[symbol].known, values().count() as u64);
                assert_eq!(sums[symbol].total, values().map(|(_, value)| value).sum::<f64>());
            }
        }
        let names: Vec<&str> = sums.metrics.iter().map(|(name, _)| name.as_str()).collect();
        assert!(rows.iter().flat_map(|row| &row.metrics).all(|(name, _)| names.contains(&name.as_str())));
    }
}

#[test]
fn sums_reach_over_chunks_and_hold_the_largest_durations() {
    let mut collector = Collector::default();
    let stream = collector.stream("s").unwrap();
    let count = 100_000u64;
    for index in 0..count {
        let duration = if index % 2 == 0 { i64::MAX } else { index as i64 };
        collector.push(stream, &Event { duration: Some(duration), ..Event::integer(index % 2) }).unwrap();
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let durations = event_sums(&fold).unwrap().durations.unwrap();
    assert_eq!(durations[0].total, i128::from(i64::MAX) * i128::from(count / 2));
    assert_eq!(durations[1].total, (0..count).filter(|index| index % 2 == 1).map(i128::from).sum());
    assert_eq!((durations[0].known, durations[1].known), (count / 2, count / 2));
}
