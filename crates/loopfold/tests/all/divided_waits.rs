//! Waits that several processes find together are those that one finds.

use crate::support::waits::{pair, trace_of};
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::waits::{
    Config, Division, Exchange, Focus, IterationNumbers, Waits, can_be_divided,
};
use loopfold::trace::{Collector, Event, Field, Role, Sink as _, Timing, Value};
use loopfold::{Fold, Result, Trace};
use loopfold_testing::Rng;
use loopfold_testing::waits::{self, Simulated};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A process that is a thread. A message is sent when it is received, so that a schedule that could hang
/// does.
struct Process {
    rank: usize,
    to: Vec<SyncSender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Exchange for Process {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<()> {
        self.to[to].send(message.to_vec()).map_err(loopfold::Error::invalid)
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        self.from[from].recv().map_err(loopfold::Error::invalid)
    }
}

fn processes(count: usize) -> Vec<Process> {
    let mut all: Vec<Process> =
        (0..count).map(|rank| Process { rank, to: Vec::new(), from: Vec::new() }).collect();
    for receiver in 0..count {
        for sender in 0..count {
            let (to, from) = sync_channel(0);
            // Senders come in the order of receivers, and the other way round.
            all[sender].to.push(to);
            all[receiver].from.push(from);
        }
    }
    all
}

/// What several processes find, each of which has the times of its own streams.
fn divided(fold: &Fold, config: &Config, focus: &Focus, owners: &[usize], count: usize) -> Waits {
    assert!(can_be_divided(fold, owners).unwrap());
    let focus = focus.to_bytes();
    let mut found: Vec<Option<Waits>> = std::thread::scope(|scope| {
        let run = |process: Process| {
            let focus = focus.clone();
            scope.spawn(move || {
                let mut own = fold.clone();
                for id in fold.stream_ids().filter(|id| owners[id.index()] != process.rank) {
                    own.take_times(id);
                }
                let focus = Focus::from_bytes(&focus).unwrap();
                Waits::divided(&own, config, &focus, &Division { exchange: &process, owners }).unwrap()
            })
        };
        let running: Vec<_> = processes(count).into_iter().map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(found[1..].iter().all(Option::is_none));
    found.swap_remove(0).unwrap()
}

/// All that is found, as text.
fn text(waits: &Waits) -> String {
    let places = waits.places.iter().map(|place| (place, waits.function(place)));
    let calls = waits.calls.iter().map(|call| (call, waits.function_of(call)));
    let sums = (waits.classes.map(pair), pair(waits.wrong_order), waits.total, waits.after_waits);
    let counts = (waits.messages, waits.collectives, waits.left_out, waits.origin);
    let clocks = (&waits.violations, &waits.offsets, &waits.backward);
    format!(
        "{sums:?} {counts:?} {clocks:?}\n{:?}\n{:?}\n{:?} {:?} {:?}",
        places.collect::<Vec<_>>(),
        calls.collect::<Vec<_>>(),
        waits.ranks,
        waits.iterations,
        waits.pairs
    )
}

#[track_caller]
fn compare(fold: &Fold, config: &Config, focus: &Focus, rng: &mut Rng) {
    let one = text(&Waits::focused(fold, config, focus).unwrap());
    let count = rng.between(1, 5);
    let owners: Vec<usize> = fold.streams().iter().map(|_| rng.below(count)).collect();
    assert_eq!(text(&divided(fold, config, focus, &owners, count)), one, "{owners:?}");
}

fn folded(trace: Trace) -> Fold {
    fold_trace(trace, &Outermost::default(), 1).unwrap()
}

/// Leaves out calls at random, and the end of a process.
fn damaged(mut simulated: Simulated, rng: &mut Rng) -> Simulated {
    for calls in &mut simulated.calls {
        calls.retain(|_| !rng.one_in(20));
        if rng.one_in(4) {
            calls.truncate(rng.between(1, calls.len().max(1)));
        }
    }
    simulated
}

#[test]
fn processes_together_find_what_one_finds() {
    let mut rng = Rng::new(21);
    for round in 0..400 {
        let mut simulated = waits::random(&mut rng);
        if round % 2 == 1 {
            simulated = damaged(simulated, &mut rng);
        }
        let mut trace =
            trace_of(&simulated, |_, start, duration| match rng.below(if round % 4 < 2 { 1 } else { 8 }) {
                1 => (None, Some(duration)),
                2 => (Some(start), None),
                3 => (Some(start + rng.below(100) as i64 - 50), Some(duration)),
                _ => (Some(start), Some(duration)),
            });
        if trace.streams.iter().all(|stream| stream.times.starts.is_none()) {
            continue;
        }
        if round % 16 == 5 {
            trace.streams[0].times = loopfold::trace::Times::default();
            if trace.streams.len() == 1 {
                continue;
            }
        }
        let fold = folded(trace);
        compare(&fold, &Config::new(), &Focus::default(), &mut rng);
    }
}

#[test]
fn clocks_are_corrected_together() {
    let mut rng = Rng::new(22);
    for _ in 0..100 {
        let simulated = waits::random(&mut rng);
        let shifts: Vec<i64> = simulated.calls.iter().map(|_| rng.below(2000) as i64 - 1000).collect();
        let drift = rng.one_in(4);
        let fold = folded(trace_of(&simulated, |process, start, duration| {
            let factor = if drift { 1 + process as i64 } else { 1 };
            (Some(start * factor + shifts[process]), Some(duration))
        }));
        compare(&fold, &Config::new().correct_clocks(true), &Focus::default(), &mut rng);
    }
}

#[test]
fn parts_and_other_numbers_of_iterations_are_the_same() {
    let mut rng = Rng::new(23);
    for _ in 0..100 {
        let simulated = waits::random(&mut rng);
        let fold = folded(trace_of(&simulated, |_, start, duration| (Some(start), Some(duration))));
        let mut focus = Focus::default();
        if rng.one_in(2) {
            let nest = |stream: &loopfold::fold::FoldedStream| fold.nest(stream.root(), 1000);
            let numbers = |stream| Rc::new(IterationNumbers::of(&nest(stream)).unwrap());
            focus.numbers = fold.streams().iter().map(numbers).collect();
        }
        if rng.one_in(2) {
            let parts = |length: u64| {
                let from = rng.below(length as usize + 1) as u64;
                vec![from..length.min(from + 9), length.min(from + 12)..length.min(from + 20)]
            };
            let lengths = fold.streams().iter().map(|stream| fold.length(stream.root()));
            focus.parts = Some(lengths.map(parts).collect());
        }
        if rng.one_in(2) {
            focus.streams = Some(fold.streams().iter().map(|_| rng.one_in(2)).collect());
        }
        compare(&fold, &Config::new(), &focus, &mut rng);
    }
}

/// The threads of a process in several processes: what each sends is merged again.
#[test]
fn threads_may_be_anywhere() {
    let mut rng = Rng::new(24);
    for _ in 0..150 {
        let mut simulated = waits::random(&mut rng);
        // Calls that complete requests, and those of collective operations, stay in one thread.
        let is_moved = |call: &waits::TimedCall| {
            matches!(call.kind, waits::Kind::Send | waits::Kind::Receive) && !call.name.starts_with("MPI_I")
        };
        let ranks = simulated.calls.len();
        for rank in 0..ranks {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for call in std::mem::take(&mut simulated.calls[rank]) {
                (if is_moved(&call) && rng.one_in(2) { &mut second } else { &mut first }).push(call);
            }
            simulated.calls[rank] = first;
            simulated.calls.push(second);
        }
        let mut trace = trace_of(&simulated, |_, start, duration| (Some(start), Some(duration)));
        for rank in 0..ranks {
            trace.streams[ranks + rank].name = format!("rank {rank} thread 1");
        }
        trace.streams.retain(|stream| !stream.symbols.is_empty());
        if trace.streams.is_empty() {
            continue;
        }
        compare(&folded(trace), &Config::new(), &Focus::default(), &mut rng);
    }
}

/// More operations than go to one process.
#[test]
fn many_operations_are_reduced_by_all_processes() {
    let mut collector = Collector::default();
    let mut rng = Rng::new(25);
    let names = ["MPI_Allreduce", "MPI_Scan", "MPI_Bcast", "MPI_Reduce"];
    for rank in 0..5i64 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let mut now = 0;
        for step in 0..2600usize {
            let root = [Field { key: "root", value: Value::Integer(2) }];
            let fields = if step % 4 < 2 { &[][..] } else { &root };
            let event = Event { role: Role::Collective, fields, ..Event::named(names[step % 4]) };
            let event = collector.intern(&event).unwrap();
            now += 1 + rng.below(50) as i64;
            let timing = Timing { start: Some(now), duration: Some(40), ..Timing::UNKNOWN };
            // One of them does not take part in all.
            if rank < 4 || step < 2590 {
                collector.push(stream, event, timing).unwrap();
            }
        }
    }
    let fold = folded(collector.finish().unwrap());
    let one = Waits::of(&fold, &Config::new()).unwrap();
    assert_eq!((one.collectives, one.left_out.incomplete), (2590, 10));
    for count in [2, 3, 5] {
        let owners: Vec<usize> = (0..5).map(|rank| rank * 2 % count).collect();
        let several = divided(&fold, &Config::new(), &Focus::default(), &owners, count);
        assert_eq!(text(&several), text(&one));
    }
}
