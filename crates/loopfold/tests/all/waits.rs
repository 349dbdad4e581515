//! Waits: compared with what a simulation knows by construction, and with the definitions,
//! message by message.

use crate::support::waits::{self as oracle, Numbers, Sums, compare, compare_focused, pair, trace_of};
use crate::support::{folders, outermost};
use loopfold::fold::FoldedStream;
use loopfold::folders::{Folder, Outermost, fold_trace};
use loopfold::questions::iterations::visit_iterations;
use loopfold::questions::near::{self, near_nest};
use loopfold::questions::nest::Node;
use loopfold::questions::rule_sums::summarize;
use loopfold::questions::waits::{Class, Config, Focus, IterationNumbers, Waits};
use loopfold::trace::{Collector, Event, Field, Role, Sink, Timing, Value};
use loopfold::{ErrorKind, Fold, Trace};
use loopfold_testing::Rng;
use loopfold_testing::waits::{self, Kind, Simulated};
use std::ops::Range;
use std::rc::Rc;

fn as_it_is(_: usize, start: i64, duration: i64) -> (Option<i64>, Option<i64>) {
    (Some(start), Some(duration))
}

fn folded(trace: Trace, folder: &dyn Folder) -> Fold {
    fold_trace(trace, folder, 1).unwrap()
}

fn of(fold: &Fold) -> Waits {
    Waits::of(fold, &Config::new()).unwrap()
}

#[test]
fn what_a_simulation_knows_is_found() {
    let mut rng = Rng::new(1);
    for _ in 0..3000 {
        let simulated = waits::random(&mut rng);
        let fold = folded(trace_of(&simulated, as_it_is), &Outermost::default());
        let mut expected: Sums<(&str, u32, u32)> = Sums::new();
        for wait in &simulated.waits {
            let sum = expected.entry((wait.class, wait.waiting as u32, wait.cause as u32)).or_default();
            *sum = (sum.0 + wait.time as u64, sum.1 + 1);
        }
        let mut found: Sums<(&str, u32, u32)> = Sums::new();
        for place in &of(&fold).places {
            for one in &place.pairs {
                let sum = found.entry((place.class.name(), one.waiting, one.cause)).or_default();
                *sum = (sum.0 + one.sum.time, sum.1 + one.sum.count);
            }
        }
        assert_eq!(found, expected);
        // The definitions give each single one.
        let known = oracle::waits(&fold, &Numbers::new()).waits.into_iter();
        let mut known: Vec<_> =
            known.map(|wait| (wait.at, wait.class, wait.cause as usize, wait.time as i64)).collect();
        let truth = simulated.waits.iter();
        let mut truth: Vec<_> =
            truth.map(|wait| ((wait.waiting, wait.call), wait.class, wait.cause, wait.time)).collect();
        known.sort_unstable();
        truth.sort_unstable();
        assert_eq!(known, truth);
    }
}

#[test]
fn the_definitions_hold_for_every_folder() {
    let mut rng = Rng::new(2);
    for _ in 0..200 {
        let simulated = waits::random(&mut rng);
        for folder in folders() {
            compare(&folded(trace_of(&simulated, as_it_is), &*folder));
        }
    }
}

#[test]
fn the_definitions_hold_for_any_times() {
    let mut rng = Rng::new(3);
    for _ in 0..2000 {
        let simulated = waits::random(&mut rng);
        let times = |_, start: i64, duration: i64| match rng.below(6) {
            0 => (None, Some(duration)),
            1 => (Some(start), None),
            2 => (Some(start + rng.below(100) as i64 - 50), Some(rng.below(100) as i64)),
            _ => (Some(start), Some(duration + rng.below(3) as i64)),
        };
        let mut trace = trace_of(&simulated, times);
        if trace.streams.iter().any(|stream| stream.times.starts.is_none()) {
            trace = trace_of(&simulated, as_it_is);
        }
        compare(&folded(trace, &Outermost::default()));
    }
}

/// Some processes, some stretches of their streams, and iterations that the exact nest numbers: all
/// messages are matched, and some waits count.
#[test]
fn the_definitions_hold_for_parts() {
    let mut rng = Rng::new(33);
    for _ in 0..2000 {
        let simulated = waits::random(&mut rng);
        let fold = folded(trace_of(&simulated, as_it_is), &Outermost::default());
        let mut focus = Focus::default();
        if rng.one_in(2) {
            focus.streams = Some(fold.streams().iter().map(|_| rng.one_in(2)).collect());
        }
        if rng.one_in(2) {
            let mut ranges = |length: u64| -> Vec<Range<u64>> {
                let mut borders: Vec<u64> = (0..4).map(|_| rng.below(length as usize + 1) as u64).collect();
                borders.sort_unstable();
                vec![borders[0]..borders[1], borders[2]..borders[3]]
            };
            focus.parts = Some(fold.streams().iter().map(|own| ranges(fold.length(own.root()))).collect());
        }
        if rng.one_in(2) {
            // Numbers of the exact nest are those of the rules.
            let numbers = |own: &FoldedStream| IterationNumbers::of(&fold.nest(own.root(), usize::MAX));
            focus.numbers = fold.streams().iter().map(|own| Rc::new(numbers(own).unwrap())).collect();
        }
        compare_focused(&fold, &focus, &Numbers::new());
    }
}

/// Iterations have the numbers of the loop with exceptions that is shown.
#[test]
fn iterations_are_numbered_as_they_are_shown() {
    let mut rng = Rng::new(34);
    let mut with_exceptions = 0;
    for _ in 0..60 {
        let mut simulated = waits::ring(3, 40, &mut rng);
        for calls in &mut simulated.calls {
            // Calls of nobody's concern, now and then.
            let mut at = rng.between(5, 40);
            while at < calls.len() {
                let mut odd = calls[at].clone();
                (odd.name, odd.kind, odd.duration) = ("odd", Kind::Plain, 0);
                odd.fields.clear();
                calls.insert(at, odd);
                at += rng.between(20, 90);
            }
        }
        let fold = folded(trace_of(&simulated, as_it_is), &Outermost::default());
        let mut focus = Focus::default();
        let mut expected = Numbers::new();
        for (stream, own) in fold.streams().iter().enumerate() {
            let near = near_nest(&fold, own.root(), usize::MAX, near::Config::new(&outermost)).unwrap();
            with_exceptions += u32::from(near.is_some());
            let nest = near.unwrap_or_else(|| fold.nest(own.root(), usize::MAX));
            visit_iterations(&nest, own.times(), |iteration| {
                if !iteration.outer.is_empty() {
                    return Ok(());
                }
                let (times, length) = match nest.nodes[iteration.node] {
                    Node::Loop { times, length, .. } => (times, length),
                    Node::Near { near, .. } => (nest.near[near].iterations.1, nest.near[near].lengths.0),
                    _ => unreachable!(),
                };
                for position in iteration.events {
                    expected.insert((stream, position as usize), (times, length, iteration.iteration));
                }
                Ok(())
            })
            .unwrap();
            focus.numbers.push(Rc::new(IterationNumbers::of(&nest).unwrap()));
        }
        compare_focused(&fold, &focus, &expected);
    }
    assert!(with_exceptions > 50, "{with_exceptions}");
}

/// Leaves out calls at random, and the end of a process.
fn damaged(simulated: &Simulated, rng: &mut Rng) -> Simulated {
    let mut damaged = simulated.clone();
    for calls in &mut damaged.calls {
        calls.retain(|_| !rng.one_in(20));
        if rng.one_in(4) {
            calls.truncate(rng.between(1, calls.len().max(1)));
        }
    }
    damaged
}

#[test]
fn lost_messages_and_processes_that_end_early_are_left_out() {
    let mut rng = Rng::new(4);
    for _ in 0..2000 {
        let simulated = damaged(&waits::random(&mut rng), &mut rng);
        if simulated.calls.iter().any(Vec::is_empty) {
            continue;
        }
        compare(&folded(trace_of(&simulated, as_it_is), &Outermost::default()));
    }
}

#[test]
fn constant_offsets_of_clocks_are_corrected() {
    let mut rng = Rng::new(5);
    let mut corrected = 0;
    for _ in 0..500 {
        let simulated = waits::random(&mut rng);
        let shifts: Vec<i64> = simulated.calls.iter().map(|_| rng.below(2000) as i64 - 1000).collect();
        let shifted = |process: usize, start: i64, duration| (Some(start + shifts[process]), Some(duration));
        let fold = folded(trace_of(&simulated, shifted), &Outermost::default());
        let before = of(&fold);
        let after = Waits::of(&fold, &Config::new().correct_clocks(true)).unwrap();
        let offsets = after.offsets.unwrap();
        assert_eq!((after.violations, offsets.drift), (vec![], None));
        corrected += usize::from(!before.violations.is_empty() && !offsets.changed.is_empty());
    }
    assert!(corrected > 300, "{corrected}");
}

#[test]
fn clocks_that_drift_are_named() {
    // Both send at 10 what the other has received by 6.
    let mut collector = Collector::default();
    for rank in 0..2i64 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let calls = [("MPI_Recv", Role::Receive, "src", 5), ("MPI_Send", Role::Send, "dest", 10)];
        for (name, role, key, start) in calls {
            let fields = [Field { key, value: Value::Integer(1 - rank) }];
            let event = collector.intern(&Event { role, fields: &fields, ..Event::named(name) }).unwrap();
            let timing = Timing { start: Some(start), duration: Some(1), ..Timing::UNKNOWN };
            collector.push(stream, event, timing).unwrap();
        }
    }
    let fold = folded(collector.finish().unwrap(), &Outermost::default());
    let waits = Waits::of(&fold, &Config::new().correct_clocks(true)).unwrap();
    let offsets = waits.offsets.unwrap();
    assert_eq!((offsets.drift, offsets.changed), (Some((0, 1)), vec![]));
    let violations: Vec<_> =
        waits.violations.iter().map(|one| (one.from, one.to, one.count, one.worst)).collect();
    assert_eq!(violations, [(0, 1, 1, 4), (1, 0, 1, 4)]);
}

#[test]
fn times_that_decrease_are_counted() {
    let simulated = waits::ring(3, 5, &mut Rng::new(6));
    let mut calls = 0;
    let fold = folded(
        trace_of(&simulated, |process, start, duration| {
            calls += usize::from(process == 1);
            (Some(if process == 1 && calls == 7 { -5 } else { start }), Some(duration))
        }),
        &Outermost::default(),
    );
    let backward = of(&fold).backward;
    assert_eq!(backward.len(), 1);
    assert_eq!((backward[0].stream.index(), backward[0].count, backward[0].first), (1, 1, 6));
    compare(&fold);
}

#[test]
fn without_times_there_is_an_error() {
    let simulated = waits::ring(3, 5, &mut Rng::new(7));
    let fold = folded(trace_of(&simulated, |_, _, duration| (None, Some(duration))), &Outermost::default());
    for (fold, word) in [(summarize(fold.clone()).unwrap(), "only sums"), (fold, "there are none")] {
        let error = Waits::of(&fold, &Config::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn what_is_in_flight_is_limited() {
    let mut simulated = waits::ring(2, 100, &mut Rng::new(8));
    simulated.calls.truncate(1);
    simulated.calls[0].retain(|call| call.name == "MPI_Isend");
    simulated.calls.push(vec![simulated.calls[0][0].clone()]);
    let fold = folded(trace_of(&simulated, as_it_is), &Outermost::default());
    assert_eq!(of(&fold).left_out.unreceived, 201);
    let error = Waits::of(&fold, &Config::new().most_in_flight(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn communicators_of_the_same_name_with_other_members_are_different_ones() {
    let mut collector = Collector::default();
    for rank in 0..4i64 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        collector.describe(stream, "comm 7", if rank < 2 { "0,1" } else { "2,3" }).unwrap();
        let fields = [Field { key: "comm", value: Value::Integer(7) }];
        let barrier = Event { role: Role::Collective, fields: &fields, ..Event::named("MPI_Barrier") };
        let barrier = collector.intern(&barrier).unwrap();
        let timing = Timing { start: Some(100 * rank), duration: Some(400 - 100 * rank), ..Timing::UNKNOWN };
        collector.push(stream, barrier, timing).unwrap();
    }
    let fold = folded(collector.finish().unwrap(), &Outermost::default());
    let waits = of(&fold);
    assert_eq!(waits.collectives, 2);
    assert_eq!(pair(waits.classes[Class::Barrier as usize]), (200, 2));
    let pairs: Vec<_> = waits.places[0].pairs.iter().map(|one| (one.waiting, one.cause)).collect();
    assert_eq!(pairs, [(0, 1), (2, 3)]);
    compare(&fold);
}

#[test]
fn receives_from_anyone_are_counted_and_left_out() {
    let mut collector = Collector::default();
    for rank in 0..2 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let (name, role, key, peer) = match rank {
            0 => ("MPI_Send", Role::Send, "dest", 1),
            _ => ("MPI_Recv", Role::Receive, "src", -1),
        };
        let fields = [Field { key, value: Value::Integer(peer) }];
        let event = collector.intern(&Event { role, fields: &fields, ..Event::named(name) }).unwrap();
        collector
            .push(stream, event, Timing { start: Some(0), duration: Some(9), ..Timing::UNKNOWN })
            .unwrap();
    }
    let waits = of(&folded(collector.finish().unwrap(), &Outermost::default()));
    assert_eq!((waits.left_out.unknown_senders, waits.left_out.unreceived, waits.messages), (1, 1, 0));
}

#[test]
fn loops_of_many_iterations_are_taken_together() {
    let simulated = waits::ring(2, 40_000, &mut Rng::new(9));
    let fold = folded(trace_of(&simulated, as_it_is), &Outermost::default());
    let waits = of(&fold);
    let worst = waits.iterations[0];
    assert!(worst.first <= worst.last && worst.last < worst.times);
    let all: u64 = simulated.waits.iter().map(|wait| wait.time as u64).sum();
    assert_eq!(waits.all().time, all);
}

/// The waits of calls: the rank, the call as text, when it enters and when it leaves.
fn waits_of(calls: &[(usize, &str, i64, i64)]) -> Waits {
    let mut collector = Collector::default();
    for &(rank, text, enter, leave) in calls {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let mut words = text.split(' ');
        let name = words.next().unwrap();
        let role = match name.trim_start_matches("MPI_I").trim_start_matches("MPI_").to_lowercase().as_str() {
            "send" | "bsend" => Role::Send,
            "recv" => Role::Receive,
            "barrier" | "bcast" | "reduce" | "scan" => Role::Collective,
            _ => Role::Plain,
        };
        let field = |word: &'static str| {
            let (key, value) = word.split_once('=').unwrap();
            Field { key, value: value.parse().map_or(Value::Text(value.as_bytes()), Value::Integer) }
        };
        let text: String = words.collect::<Vec<_>>().join(" ");
        let text: &'static str = text.leak();
        let fields: Vec<Field<'_>> = text.split_whitespace().map(field).collect();
        let event = collector.intern(&Event { role, fields: &fields, ..Event::named(name) }).unwrap();
        let timing = Timing { start: Some(enter), duration: Some(leave - enter), ..Timing::UNKNOWN };
        collector.push(stream, event, timing).unwrap();
    }
    of(&folded(collector.finish().unwrap(), &Outermost::default()))
}

/// The waits of each class that has any: name, time and count.
fn classes(waits: &Waits) -> Vec<(&'static str, u64, u64)> {
    let sums = Class::ALL.iter().zip(&waits.classes).filter(|(_, sum)| sum.count > 0);
    sums.map(|(class, sum)| (class.name(), sum.time, sum.count)).collect()
}

#[test]
fn a_send_that_leaves_before_its_receive_enters_did_not_wait() {
    let message = |leaves, name| waits_of(&[(0, name, 10, leaves), (1, "MPI_Recv src=0", 50, 60)]);
    assert_eq!(classes(&message(55, "MPI_Send dest=1")), [("late receiver", 40, 1)]);
    assert_eq!(classes(&message(49, "MPI_Send dest=1")), []);
    assert_eq!(classes(&message(55, "MPI_Bsend dest=1")), []);
}

#[test]
fn a_receive_waits_no_longer_than_it_lasts() {
    let waits = waits_of(&[(0, "MPI_Send dest=1", 100, 101), (1, "MPI_Recv src=0", 20, 70)]);
    assert_eq!(classes(&waits), [("late sender", 50, 1)]);
    assert_eq!((waits.violations[0].count, waits.violations[0].worst), (1, 30));
}

#[test]
fn a_wait_completes_what_its_fields_say() {
    let sends = [(0, "MPI_Send dest=1 tag=1", 100, 100), (0, "MPI_Send dest=1 tag=2", 200, 200)];
    let receives = [
        (1, "MPI_Irecv src=0 tag=1", 0, 0),
        (1, "MPI_Irecv src=0 tag=2", 1, 1),
        (1, "MPI_Irecv src=-2", 2, 2),
    ];
    let with = |waiting: &[(usize, &'static str, i64, i64)]| {
        let waits = waits_of(&[&sends[..], &receives, waiting].concat());
        (classes(&waits).first().map_or(0, |class| class.1), waits.left_out.unknown_requests)
    };
    assert_eq!(with(&[(1, "MPI_Wait", 10, 300)]), (90, 0));
    assert_eq!(with(&[(1, "MPI_Waitany n=1 done=1", 10, 300)]), (190, 0));
    assert_eq!(with(&[(1, "MPI_Waitall n=3", 10, 300)]), (190, 0));
    assert_eq!(with(&[(1, "MPI_Waitall", 10, 300)]), (190, 0));
    assert_eq!(with(&[(1, "MPI_Waitall n=4", 10, 300)]), (190, 1));
    assert_eq!(with(&[(1, "MPI_Waitsome n=2 done=0,2", 10, 300)]), (90, 0));
    assert_eq!(with(&[(1, "MPI_Testsome n=1 done=none", 10, 300)]), (0, 0));
    // A request that is freed is not completed, and not waited for.
    assert_eq!(with(&[(1, "MPI_Request_free n=1", 10, 20), (1, "MPI_Wait n=1", 20, 300)]), (180, 0));
    assert_eq!(with(&[(1, "MPI_Request_free n=1 done=1", 10, 290), (1, "MPI_Wait n=1", 290, 300)]), (0, 0));
    assert_eq!(with(&[(1, "MPI_Request_free", 10, 20), (1, "MPI_Wait n=1", 20, 300)]), (80, 0));
    assert_eq!(with(&[(1, "MPI_Test n=0", 10, 10), (1, "MPI_Wait n=1 done=7", 10, 300)]), (0, 1));
    // Two waits, one after the other: each has its own.
    assert_eq!(with(&[(1, "MPI_Wait n=1", 10, 100), (1, "MPI_Wait n=1", 100, 200)]), (190, 0));
}

#[test]
fn lists_of_messages_post_a_request_each() {
    let calls = [
        (0, "MPI_Startall dest=1 tag=5 src=1,2 recvtag=6 n=2", 0, 1),
        (0, "MPI_Waitall n=3", 10, 90),
        (1, "MPI_Recv src=0 tag=5", 30, 31),
        (1, "MPI_Send dest=0 tag=6", 40, 41),
        (2, "MPI_Send dest=0 tag=6", 70, 71),
    ];
    let waits = waits_of(&calls);
    assert_eq!(classes(&waits), [("late sender", 60, 1)]);
    assert_eq!((waits.ranks[0].rank, waits.messages), (2, 3));
}

#[test]
fn collectives_wait_for_the_last_the_root_the_first_and_those_before() {
    let all = |name: &'static str| waits_of(&[(0, name, 30, 90), (1, name, 10, 90), (2, name, 50, 90)]);
    assert_eq!(classes(&all("MPI_Barrier")), [("wait at barrier", 60, 2)]);
    assert_eq!(classes(&all("MPI_Bcast root=2")), [("late broadcast", 60, 2)]);
    assert_eq!(classes(&all("MPI_Bcast root=0")), [("late broadcast", 20, 1)]);
    assert_eq!(classes(&all("MPI_Reduce root=1")), [("early reduce", 20, 1)]);
    assert_eq!(classes(&all("MPI_Scan")), [("early scan", 20, 1)]);
    let mixed = [(0, "MPI_Barrier", 0, 9), (1, "MPI_Bcast root=0", 1, 9)];
    assert_eq!(waits_of(&mixed).left_out.disagreeing, 1);
    let missing = [(0, "MPI_Barrier", 0, 9), (0, "MPI_Barrier", 10, 19), (1, "MPI_Barrier", 1, 9)];
    let missing = waits_of(&missing);
    assert_eq!((missing.left_out.incomplete, missing.collectives), (1, 1));
}

#[test]
fn ranks_of_any_number_and_times_of_any_size_are_fine() {
    let calls = [
        (4_000_000, "MPI_Send dest=0", i64::MAX - 5, i64::MAX),
        (0, "MPI_Recv src=4000000", i64::MIN + 1, i64::MIN + 1),
        (0, "MPI_Recv src=4000000 tag=1", 0, i64::MAX),
        (4_000_000, "MPI_Send dest=0 tag=1", i64::MAX, i64::MAX),
    ];
    let waits = waits_of(&calls);
    assert_eq!(classes(&waits), [("late sender", i64::MAX as u64, 1)]);
    assert_eq!(waits.violations.len(), 1);
}
