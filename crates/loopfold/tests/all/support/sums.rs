//! Sums of times against the obvious: adding up the unfolded events one by one.

use loopfold::fold::RuleSums;
use loopfold::fold::{FoldedStream, Item, IterationSpread, MetricSpread, Spread, Target, rule_uses};
use loopfold::questions::iterations::{Scope, loop_times, summed_times};
use loopfold::questions::rule_sums::{rule_sums, summarize};
use loopfold::trace::Times;
use loopfold::{Fold, RuleId};
use loopfold_testing::times::{self, Slice};
use std::collections::BTreeMap;

/// Every event with its times, stream by stream: symbol, duration, metrics.
pub struct Row {
    pub symbol: usize,
    pub duration: Option<i64>,
    pub metrics: Vec<(String, f64)>,
}

pub fn unfolded(fold: &Fold) -> Vec<Row> {
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
                // Nothing takes less than no time.
                duration: duration.filter(|&duration| duration >= 0),
                metrics: metrics.filter(|(_, value)| !value.is_nan()).collect(),
            });
        }
    }
    rows
}

/// Where something happens in a stream: an occurrence of a rule, or an iteration.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub begin: usize,
    pub end: usize,
    /// Whether it is the last iteration of its loop.
    pub last: bool,
}

/// All occurrences of rules and all iterations of loops of a stream, by unfolding.
#[derive(Default)]
pub struct Places {
    pub rules: Vec<(RuleId, Stretch)>,
    pub loops: Vec<((RuleId, usize), Stretch)>,
}

impl Places {
    fn walk(&mut self, fold: &Fold, rule: RuleId, begin: usize) -> usize {
        let mut at = begin;
        for (index, &item) in fold.body(rule).iter().enumerate() {
            at = self.walk_item(fold, (rule, index), item, at);
        }
        self.rules.push((rule, Stretch { begin, end: at, last: false }));
        at
    }

    fn walk_item(&mut self, fold: &Fold, place: (RuleId, usize), item: Item, mut at: usize) -> usize {
        for iteration in 1..=item.times() {
            let begin = at;
            at = match item.target() {
                Target::Symbol(_) => at + 1,
                Target::Rule(rule) => self.walk(fold, rule, at),
            };
            if item.times() > 1 {
                self.loops.push((place, Stretch { begin, end: at, last: iteration == item.times() }));
            }
        }
        at
    }
}

/// The times of the events of a stream.
pub fn slices_of(stream: &FoldedStream) -> Vec<Slice> {
    let values = |column: &Option<loopfold::trace::Column<i64>>| {
        column.as_ref().map(|column| column.values().unwrap()).unwrap_or_default()
    };
    let (starts, durations) = (values(&stream.times().starts), values(&stream.times().durations));
    let slice = |at: usize| Slice {
        start: starts.get(at).copied().filter(|&start| start != Times::UNKNOWN_START),
        duration: durations.get(at).copied(),
    };
    (0..starts.len().max(durations.len())).map(slice).collect()
}

/// The times of iterations, those that have a next one and those that have not.
pub fn others_and_lasts(slices: &[Slice], stretches: &[Stretch]) -> [Vec<i128>; 2] {
    let has_starts = slices.iter().any(|slice| slice.start.is_some());
    let mut times = [Vec::new(), Vec::new()];
    for &Stretch { begin, end, last } in stretches {
        let time = times::iteration_time(slices, begin..end, last);
        times[usize::from(last && has_starts)].extend(time);
    }
    times
}

pub fn spread_of(numbers: impl IntoIterator<Item = i128>) -> Spread {
    let numbers: Vec<i128> = numbers.into_iter().collect();
    Spread {
        count: numbers.len() as u64,
        total: numbers.iter().sum(),
        minimum: numbers.iter().min().copied().unwrap_or(0),
        maximum: numbers.iter().max().copied().unwrap_or(0),
        // Not known if 128 bits are too few.
        squares: numbers
            .iter()
            .map(|number| number.unsigned_abs())
            .try_fold(0u128, |sum, number| sum.checked_add(number.checked_mul(number)?)),
    }
}

pub fn metric_spread_of(values: impl IntoIterator<Item = f64>) -> MetricSpread {
    let values: Vec<f64> = values.into_iter().collect();
    MetricSpread {
        count: values.len() as u64,
        total: values.iter().sum(),
        minimum: values.iter().copied().reduce(f64::min).unwrap_or(0.0),
        maximum: values.iter().copied().reduce(f64::max).unwrap_or(0.0),
    }
}

/// The sums of all rules, by the book.
pub fn rule_sums_by_unfolding(fold: &Fold) -> RuleSums {
    let (mut durations, mut metrics) = (BTreeMap::<_, Vec<i128>>::new(), BTreeMap::<_, Vec<f64>>::new());
    let mut loops = BTreeMap::<_, [Vec<i128>; 2]>::new();
    let mut names: Vec<&String> = Vec::new();
    for stream in fold.streams() {
        let mut places = Places::default();
        places.walk(fold, stream.root(), 0);
        for (rule, Stretch { begin, end, .. }) in places.rules {
            if let Some(column) = &stream.times().durations {
                let values = column.values().unwrap();
                let known = values[begin..end].iter().filter(|&&value| value >= 0);
                durations.entry(rule).or_default().push(known.map(|&value| i128::from(value)).sum());
            }
            for (name, column) in &stream.times().metrics {
                let values = column.values().unwrap();
                let known = values[begin..end].iter().filter(|value| !value.is_nan());
                metrics.entry((name, rule)).or_default().push(known.sum());
            }
        }
        let slices = slices_of(stream);
        for (place, stretch) in places.loops.into_iter().filter(|_| !slices.is_empty()) {
            let [others, lasts] = others_and_lasts(&slices, &[stretch]);
            let all = loops.entry(place).or_default();
            all[0].extend(others);
            all[1].extend(lasts);
        }
        names.extend(stream.times().metrics.iter().map(|(name, _)| name));
    }
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    loops.retain(|_, times| times.iter().any(|times| !times.is_empty()));
    let iterations = |[others, lasts]: [Vec<i128>; 2]| IterationSpread {
        others: spread_of(others),
        lasts: spread_of(lasts),
    };
    let any_durations = fold.streams().iter().any(|stream| stream.times().durations.is_some());
    RuleSums {
        durations: any_durations.then(|| {
            fold.rules().map(|rule| spread_of(durations.remove(&rule).unwrap_or_default())).collect()
        }),
        metrics: names
            .into_iter()
            .map(|name| {
                let spread = |rule| metric_spread_of(metrics.remove(&(name, rule)).unwrap_or_default());
                (name.clone(), fold.rules().map(spread).collect())
            })
            .collect(),
        loops: loops.into_iter().map(|(place, times)| (place, iterations(times))).collect(),
        ..RuleSums::default()
    }
}

/// Sums of events are those of the unfolded events.
#[track_caller]
pub fn check_event_sums(fold: &Fold) {
    let sums = fold.event_sums().unwrap();
    let rows = unfolded(fold);
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

/// Sums of rules and loops are those of their occurrences.
#[track_caller]
pub fn check_rule_sums(fold: &Fold) {
    let expected = rule_sums_by_unfolding(fold);
    let sums = rule_sums(fold).unwrap();
    assert_eq!(sums.is_none(), fold.streams().iter().all(|stream| stream.times().is_empty()));
    assert_eq!(sums.unwrap_or_default(), expected);
    if fold.streams().iter().all(|stream| stream.times().durations.is_some()) {
        let counts = expected.durations.into_iter().flatten().map(|spread| spread.count);
        assert!(counts.eq(rule_uses(fold).unwrap()));
    }
}

/// Loops of a summary are timed as far as it goes: those that stand in one place only have their
/// own times. Returns how many stand in several.
#[track_caller]
pub fn check_summed_times(fold: &Fold) -> usize {
    let mut shared = 0;
    let summary = summarize(fold.clone()).unwrap();
    for class in fold.classes().unwrap() {
        let nest = fold.nest(class.root, 1000);
        let streams = class.streams.iter().map(|&index| (index, fold.stream(index).times()));
        let times = loop_times(&nest, streams).unwrap().unwrap_or_default();
        let Some(summed) = summed_times(&summary, &class, 1000).unwrap() else { continue };
        for own in &summed.loops {
            let expected = times.of_loop(own.node).map(|times| times.times).unwrap_or_default();
            assert!(own.scope == Scope::OtherPlaces || own.times == expected);
            assert!(own.times.count >= expected.count);
            shared += usize::from(own.scope == Scope::OtherPlaces);
        }
        assert!(times.loops.iter().all(|times| summed.of_loop(times.node).is_some()));
    }
    shared
}
