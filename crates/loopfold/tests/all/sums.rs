//! Sums of times against the obvious: adding up the unfolded events one by one.

use crate::support::archive::{read_back, written};
use crate::support::sums::{check_event_sums, check_rule_sums, check_summed_times};
use loopfold::archive::{self, Archive, ReadConfig, SectionKind, SegmentWriter};
use loopfold::fold::RuleSums;
use loopfold::fold::{FoldBuilder, FoldedStream, IterationSpread, Spread};
use loopfold::folders::{self, Innermost, Outermost, fold_trace, refold};
use loopfold::questions::iterations::summed_times;
use loopfold::questions::rule_sums::{rule_sums, summarize};
use loopfold::questions::sums::EventSums;
use loopfold::trace::{Alphabet, Collector, Event, Sink, Timing};
use loopfold::{Fold, Trace};
use loopfold_testing::{Rng, streams};
use std::io::Cursor;

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
            let timing = Timing {
                start: (kinds & 1 != 0 && !rng.one_in(20)).then_some(clock),
                duration: (kinds & 2 != 0 && known).then_some(rng.below(100) as i64),
                metrics: &metrics,
            };
            let symbol = collector.intern(&Event::integer(symbol.into())).unwrap();
            collector.push(stream, symbol, timing).unwrap();
        }
    }
    collector.finish().unwrap()
}

#[test]
fn sums_of_events_are_those_of_the_unfolded_events() {
    let mut rng = Rng::new(71);
    for round in 0..2000 {
        let trace = random_trace(&mut rng, 60);
        let folder = &folders::all(loopfold::archive::coded_size)[round % 5];
        let fold = fold_trace(trace, &**folder, 1).unwrap();
        check_event_sums(&fold);
    }
}

#[test]
fn sums_reach_over_chunks_and_hold_the_largest_durations() {
    let mut collector = Collector::default();
    let stream = collector.stream("s").unwrap();
    let count = 100_000u64;
    let symbols = [0, 1].map(|number| collector.intern(&Event::integer(number)).unwrap());
    for index in 0..count {
        let duration = Some(if index % 2 == 0 { i64::MAX } else { index as i64 });
        let symbol = symbols[index as usize % 2];
        collector.push(stream, symbol, Timing { duration, ..Timing::UNKNOWN }).unwrap();
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let durations = fold.event_sums().unwrap().durations.unwrap();
    assert_eq!(durations[0].total, i128::from(i64::MAX) * i128::from(count / 2));
    assert_eq!(durations[1].total, (0..count).filter(|index| index % 2 == 1).map(i128::from).sum());
    assert_eq!((durations[0].known, durations[1].known), (count / 2, count / 2));
}

fn random_fold(rng: &mut Rng, round: usize) -> Fold {
    fold_trace(random_trace(rng, 60), &*folders::all(loopfold::archive::coded_size)[round % 5], 1).unwrap()
}

#[test]
fn sums_of_rules_and_loops_are_those_of_their_occurrences() {
    let mut rng = Rng::new(72);
    for round in 0..1500 {
        let fold = random_fold(&mut rng, round);
        check_rule_sums(&fold);
    }
}

#[test]
fn the_deviation_is_exact_far_from_zero() {
    let mut spread = Spread::default();
    assert_eq!((spread.mean(), spread.deviation()), (None, None));
    let far = 1 << 60;
    for number in [2, 4, 4, 4, 5, 5, 7, 9] {
        spread.add(far + number).unwrap();
    }
    assert_eq!(spread.deviation(), Some(2.0));
    let mut negative = Spread::default();
    [-3, -1, 2].into_iter().for_each(|number| negative.add(number).unwrap());
    let variance: f64 = [-3.0f64, -1.0, 2.0].iter().map(|x| (x + 2.0 / 3.0).powi(2)).sum::<f64>() / 3.0;
    assert!((negative.deviation().unwrap() - variance.sqrt()).abs() < 1e-12);
    let mut huge = Spread::of(i128::MAX);
    assert_eq!((huge.squares, huge.deviation()), (None, None));
    assert!(huge.add(1).unwrap_err().kind() == loopfold::ErrorKind::Limit);
}

fn has_times(fold: &Fold) -> bool {
    fold.streams().iter().any(|stream| !stream.times().is_empty())
}

#[test]
fn a_summary_says_what_the_columns_said() {
    let mut rng = Rng::new(73);
    for round in 0..1500 {
        let fold = random_fold(&mut rng, round);
        let summary = summarize(fold.clone()).unwrap();
        assert!(!has_times(&summary));
        assert_eq!(summary.event_sums().unwrap(), fold.event_sums().unwrap());
        assert_eq!(rule_sums(&summary).unwrap(), rule_sums(&fold).unwrap());
        let spans = |fold: &Fold| -> Vec<_> {
            fold.statistics().unwrap().streams.into_iter().map(|stream| stream.span).collect()
        };
        assert_eq!(spans(&summary), spans(&fold));
        assert_eq!(summarize(summary.clone()).unwrap(), summary);
    }
}

#[test]
fn a_summary_comes_back_from_an_archive() {
    let mut rng = Rng::new(74);
    for round in 0..1500 {
        let fold = random_fold(&mut rng, round);
        let file = written(&summarize(fold.clone()).unwrap());
        let again = read_back(&file).unwrap();
        assert_eq!(again, summarize(fold.canonical()).unwrap(), "round {round}");
        assert_eq!(again, again.canonical());
        assert_eq!(written(&again), file);
        let verified = archive::verify(Cursor::new(&file[..])).unwrap();
        let sizes = archive::sizes(Cursor::new(&file[..])).unwrap();
        assert_eq!(sizes.summary > 0, has_times(&fold));
        assert_eq!((sizes.starts, sizes.durations, sizes.metrics, verified.values), (0, 0, 0, 0));
        assert!(has_times(&fold) || verified.sums == 0);
        let (without, _) = archive::read(Cursor::new(&file[..]), &ReadConfig::new().times(false)).unwrap();
        assert!(without.rule_sums().is_none() && without.streams().iter().all(|s| s.sums().is_none()));
    }
}

#[test]
fn joined_summaries_are_the_summary_of_the_joined() {
    let mut rng = Rng::new(75);
    for round in 0..800 {
        let parts: Vec<Fold> = (0..3).map(|_| random_fold(&mut rng, round)).collect();
        let join = |parts: &[Fold]| {
            let mut builder = FoldBuilder::default();
            parts.iter().for_each(|part| builder.join(part).unwrap());
            builder.with_unique_stream_names().finish()
        };
        let whole = join(&parts);
        // All summed, or some of them with a time for every event still.
        let summed: Vec<Fold> = parts.iter().map(|part| summarize(part.clone()).unwrap()).collect();
        let some = [summed[0].clone(), parts[1].clone(), summed[2].clone()];
        for joined in [join(&summed), join(&some)] {
            assert_eq!(sorted(joined.event_sums().unwrap()), sorted(whole.event_sums().unwrap()));
            let (joined, whole) = (rule_sums(&joined).unwrap(), rule_sums(&whole).unwrap());
            assert_eq!(joined.map(sorted_rules), whole.map(sorted_rules), "round {round}");
        }
        assert_eq!(
            summarize(join(&some)).unwrap().canonical().rule_sums().cloned().map(sorted_rules),
            join(&summed).canonical().rule_sums().cloned().map(sorted_rules)
        );
    }
}

/// With the metrics in the order of their names.
fn sorted(mut sums: EventSums) -> EventSums {
    sums.metrics.sort_by(|(left, _), (right, _)| left.cmp(right));
    sums
}

fn sorted_rules(mut sums: RuleSums) -> RuleSums {
    sums.metrics.sort_by(|(left, _), (right, _)| left.cmp(right));
    sums
}

#[test]
fn what_changes_rules_or_streams_keeps_the_sums_of_events() {
    let mut rng = Rng::new(76);
    for round in 0..500 {
        let fold = random_fold(&mut rng, round);
        let summary = summarize(fold.clone()).unwrap();
        let again = refold(&summary, &Innermost::default(), 1).unwrap();
        assert_eq!(again.event_sums().unwrap(), fold.event_sums().unwrap());
        assert!(again.rule_sums().is_none());
        assert!(!has_times(&fold) || rule_sums(&again).unwrap().is_none());
        assert_eq!(read_back(&written(&again)).unwrap(), again.canonical());

        let chosen = |id| fold.stream(id).name() == "stream 0";
        let (of_columns, of_sums) = (fold.with_streams(chosen), summary.with_streams(chosen));
        assert_eq!(of_sums.canonical().event_sums().unwrap(), of_columns.canonical().event_sums().unwrap());
        check_chosen(&of_sums, &of_columns);

        // All events become the same one.
        let mut alphabet = Alphabet::default();
        let only = alphabet.intern(&Event::named("x"), None).unwrap();
        let renamed = vec![only; fold.alphabet().len()];
        let of_columns = fold.with_alphabet(alphabet.clone(), &renamed).unwrap();
        let of_sums = summary.with_alphabet(alphabet, &renamed).unwrap();
        assert_eq!(of_sums.event_sums().unwrap(), of_columns.event_sums().unwrap());
        assert_eq!(rule_sums(&of_sums).unwrap(), rule_sums(&of_columns).unwrap());
    }
}

/// The sums of rules of chosen streams are exact, or known to include others.
fn check_chosen(of_sums: &Fold, of_columns: &Fold) {
    let Some(sums) = of_sums.rule_sums() else { return };
    let expected = rule_sums(of_columns).unwrap().unwrap_or_default();
    for (&(rule, item), times) in &sums.loops {
        let own = expected.loops.get(&(rule, item)).copied().unwrap_or_default();
        assert!(sums.wider.contains(&rule) || *times == own);
    }
    assert!(expected.loops.keys().all(|place| sums.loops.contains_key(place)));
    let exact = rule_sums(of_sums).unwrap().unwrap();
    assert!(exact.wider.is_empty() && exact.loops.keys().all(|(rule, _)| !sums.wider.contains(rule)));
}

/// A trace whose every event has a duration and a start, in streams of the same names.
fn timed_part(rng: &mut Rng, clock: &mut i64) -> Fold {
    let mut collector = Collector::default();
    for index in 0..rng.between(1, 3) {
        let stream = collector.stream(&format!("stream {index}")).unwrap();
        for symbol in streams::small(rng, 12) {
            *clock += rng.below(9) as i64;
            let timing = Timing {
                start: Some(*clock),
                duration: Some(rng.below(9) as i64),
                metrics: &[("bytes", rng.below(9) as f64)],
            };
            let symbol = collector.intern(&Event::integer(symbol.into())).unwrap();
            collector.push(stream, symbol, timing).unwrap();
        }
    }
    fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
}

#[test]
fn segments_of_summaries_add_up() {
    let mut rng = Rng::new(77);
    let (mut known, mut all) = (0, 0);
    for round in 0..800 {
        let mut clock = 0;
        let parts: Vec<Fold> = (0..rng.between(1, 4)).map(|_| timed_part(&mut rng, &mut clock)).collect();
        let file = |summed: bool| {
            let mut writer = SegmentWriter::new(Vec::new()).unwrap();
            for part in &parts {
                let part = part.clone();
                writer.segment(&if summed { summarize(part).unwrap() } else { part }).unwrap();
            }
            writer.finish().unwrap()
        };
        let (of_columns, of_sums) = (read_back(&file(false)).unwrap(), read_back(&file(true)).unwrap());
        archive::verify(Cursor::new(file(true))).unwrap();
        assert_eq!(of_sums.event_sums().unwrap(), of_columns.event_sums().unwrap());
        let spans = |fold: &Fold| -> Vec<_> {
            fold.statistics().unwrap().streams.into_iter().map(|stream| stream.span).collect()
        };
        assert_eq!(spans(&of_sums), spans(&of_columns));
        let (Some(expected), Some(sums)) = (rule_sums(&of_columns).unwrap(), rule_sums(&of_sums).unwrap())
        else {
            assert_eq!(of_columns.events(), Some(0));
            continue;
        };
        let pairs = sums.durations.iter().flatten().zip(expected.durations.iter().flatten());
        for (sum, expected) in pairs {
            // Whatever is measured everywhere is exact; what is not is known not to be.
            assert!(sum.count <= expected.count);
            assert!(sum.count < expected.count || sum == expected, "round {round}");
            known += usize::from(sum == expected);
            all += 1;
        }
        for (sum, expected) in sums.metric("bytes").unwrap().iter().zip(expected.metric("bytes").unwrap()) {
            assert!(sum.count < expected.count || sum == expected, "round {round}");
        }
        for (place, sum) in &sums.loops {
            let count = |times: &IterationSpread| times.summary().unwrap().count;
            assert!(count(sum) <= count(&expected.loops[place]), "round {round}");
        }
        assert_eq!(read_back(&written(&of_sums)).unwrap(), of_sums, "round {round}");
    }
    assert!(known * 10 > all * 9, "{known} of {all}");
}

#[test]
fn segments_with_and_without_a_summary_are_one_trace() {
    let mut rng = Rng::new(78);
    for _ in 0..500 {
        let mut clock = 0;
        let parts: Vec<Fold> = (0..3).map(|_| timed_part(&mut rng, &mut clock)).collect();
        let mut writer = SegmentWriter::new(Vec::new()).unwrap();
        let mut columns = SegmentWriter::new(Vec::new()).unwrap();
        for (index, part) in parts.into_iter().enumerate() {
            columns.segment(&part).unwrap();
            writer.segment(&if index == 1 { summarize(part).unwrap() } else { part }).unwrap();
        }
        let mixed = read_back(&writer.finish().unwrap()).unwrap();
        let columns = read_back(&columns.finish().unwrap()).unwrap();
        assert_eq!(mixed.event_sums().unwrap(), columns.event_sums().unwrap());
        let both = |stream: &FoldedStream| stream.sums().is_some() && !stream.times().is_empty();
        if mixed.streams().iter().any(both) {
            assert!(rule_sums(&mixed).unwrap().is_none());
        }
        assert_eq!(read_back(&written(&mixed)).unwrap(), mixed);
        assert_eq!(summarize(mixed).unwrap().event_sums().unwrap(), columns.event_sums().unwrap());
    }
}

#[test]
fn loops_of_a_summary_are_timed_as_far_as_it_goes() {
    let mut rng = Rng::new(79);
    let mut shared = 0;
    for round in 0..1000 {
        let fold = random_fold(&mut rng, round);
        shared += check_summed_times(&fold);
    }
    assert!(shared > 0);
}

#[test]
fn changed_summaries_never_panic() {
    let mut rng = Rng::new(80);
    let (mut good, mut bad) = (0, 0);
    for round in 0..300 {
        let file = written(&summarize(random_fold(&mut rng, round)).unwrap());
        let listed = Archive::open(Cursor::new(&file[..])).unwrap();
        let segment = &listed.segments()[0];
        let Some(section) = segment.sections().iter().find(|s| s.kind() == SectionKind::Summary) else {
            continue;
        };
        for _ in 0..60 {
            let mut changed = file.clone();
            for _ in 0..rng.between(1, 3) {
                let place = section.offset() as usize + rng.below(section.length() as usize);
                changed[place] = match rng.below(3) {
                    0 => rng.next_u64() as u8,
                    1 => changed[place] ^ (1 << rng.below(8)),
                    _ => [0, 0x7f, 0x80, 0xff][rng.below(4)],
                };
            }
            archive::reseal(&mut changed);
            let Ok(fold) = read_back(&changed) else {
                bad += 1;
                continue;
            };
            good += 1;
            // Whatever it says now, it can be asked and written, and what is written is read.
            let _ = (fold.event_sums(), rule_sums(&fold), fold.statistics());
            let _ = archive::verify(Cursor::new(&changed[..]));
            for class in fold.classes().unwrap() {
                let times = summed_times(&fold, &class, 1000);
                let loops = times.into_iter().flatten().flat_map(|times| times.loops);
                for times in loops {
                    let _ = (times.times.mean(), times.times.deviation());
                }
            }
            let mut builder = FoldBuilder::default();
            let _ = (builder.join(&fold), builder.join(&fold));
            drop(builder.finish());
            read_back(&written(&fold)).unwrap();
        }
    }
    assert!(good > 100 && bad > 100, "{good} good, {bad} bad");
}
