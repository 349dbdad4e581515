//! Skeletons of generated programs: whatever the scale, what they call ends, by the strictest
//! rules, and at scale 1 it is what was recorded.

use crate::support::outermost;
use crate::support::spmd::fold;
use loopfold::Fold;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::logical::Token;
use loopfold::skeleton::{Config, ReplayedCall, Scale, Skeleton};
use loopfold::trace::{Collector, Event, Field, OFF_CPU, RECORDING, Role, Sink as _, Timing, Value};
use loopfold_testing::Rng;
use loopfold_testing::spmd::{self, Bytes, NOBODY, Phase, SpmdCall};

fn calls(program: &[Phase], size: i64) -> Vec<Vec<SpmdCall>> {
    (0..size).map(|rank| spmd::calls(program, rank, size)).collect()
}

fn skeleton_of(fold: &Fold, config: &Config) -> loopfold::Result<Skeleton> {
    Skeleton::of(fold, &outermost, config)
}

fn scale(below: u64) -> Config {
    Config::new().scale(Scale { above: 1, below })
}

const NAMES: [&str; 13] = [
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Send",
    "MPI_Isend",
    "MPI_Recv",
    "MPI_Irecv",
    "MPI_Sendrecv",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Barrier",
    "MPI_Comm_rank",
];

const KEYS: [&str; 9] = ["dest", "src", "root", "tag", "recvtag", "bytes", "recvbytes", "comm", "n"];

/// A call as the executor knows it.
fn replayed(call: &ReplayedCall) -> SpmdCall {
    let name = NAMES.into_iter().find(|name| *name == call.name).unwrap();
    let field = |(key, values): &(String, Vec<Token>)| {
        let key = KEYS.into_iter().find(|known| known == key).unwrap();
        let value = match &values[0] {
            Token::Number(number) => *number,
            none => {
                assert!(none.is_none(), "{none}");
                NOBODY
            }
        };
        (key, value)
    };
    SpmdCall { name, fields: call.fields.iter().map(field).collect() }
}

/// What the processes of a skeleton call.
fn replayed_calls(skeleton: &Skeleton) -> Vec<Vec<SpmdCall>> {
    (0..skeleton.ranks)
        .map(|process| skeleton.calls_of(process).map(|call| replayed(&call)).collect())
        .collect()
}

#[test]
fn no_skeleton_waits_for_ever() {
    let (mut programs, mut shorter, mut seed) = (0, 0, 0);
    while programs < 1_000 {
        seed += 1;
        let mut rng = Rng::new(seed);
        let size = rng.between(2, 9) as i64;
        let calls = calls(&spmd::random(&mut rng, size), size);
        let events: usize = calls.iter().map(Vec::len).sum();
        // The executor takes its time.
        if events > 2_500 {
            continue;
        }
        programs += 1;
        assert_eq!(spmd::execute(&calls).err(), None, "{seed}");
        let fold = fold(&calls, &Outermost::default());
        for below in [1, 3, 20] {
            let skeleton = skeleton_of(&fold, &scale(below)).unwrap();
            let here = replayed_calls(&skeleton);
            if below == 1 {
                assert_eq!(here, calls, "{seed}");
                continue;
            }
            assert_eq!(spmd::execute(&here).err(), None, "{seed} at 1/{below}");
            shorter += usize::from(here.iter().map(Vec::len).sum::<usize>() < events);
        }
    }
    assert!(shorter > 800, "only {shorter} are shorter");
}

#[test]
fn iterations_are_left_out_as_the_scale_says() {
    let exchange = vec![Phase::Borders(Bytes::Same(8)), Phase::Collective("MPI_Allreduce", None)];
    let program = [Phase::Repeat(100, vec![Phase::Repeat(20, exchange), Phase::Pipeline(Bytes::Same(8))])];
    let fold = fold(&calls(&program, 8), &Outermost::default());
    let left = |below: u64| {
        let loops = skeleton_of(&fold, &scale(below)).unwrap().loops;
        loops.iter().map(|one| (one.recorded, one.left)).collect::<Vec<_>>()
    };
    assert_eq!(left(1), []);
    assert_eq!(left(10), [(100, 10)]);
    assert_eq!(left(50), [(100, 2)]);
    // Less than one iteration: the inner loop is shorter, too.
    assert_eq!(left(1000), [(100, 1), (20, 2)]);
}

#[test]
fn loops_that_need_each_other_are_shortened_together() {
    // One process sends twice in an iteration, the other receives once.
    let message =
        |name, key, peer| SpmdCall { name, fields: vec![(key, peer), ("tag", 0), ("bytes", 8), ("comm", 0)] };
    let work = || SpmdCall { name: "MPI_Comm_rank", fields: vec![("comm", 0)] };
    let send = || message("MPI_Send", "dest", 1);
    let sender: Vec<SpmdCall> = (0..50).flat_map(|_| [send(), send(), work()]).collect();
    let receiver: Vec<SpmdCall> =
        (0..100).flat_map(|_| [message("MPI_Recv", "src", 0), work(), work()]).collect();
    let fold = fold(&[sender, receiver], &Outermost::default());
    let skeleton = skeleton_of(&fold, &scale(10)).unwrap();
    let mut left: Vec<(u64, u64, usize)> =
        skeleton.loops.iter().map(|one| (one.recorded, one.left, one.group)).collect();
    left.sort_unstable();
    assert_eq!(left, [(50, 5, 0), (100, 10, 0)]);
    assert_eq!(spmd::execute(&replayed_calls(&skeleton)), Ok(10));
}

#[test]
fn a_loop_without_its_counterpart_stays() {
    // What one process sends in a loop, the other receives one by one.
    let message = |name, key, peer, tag| SpmdCall {
        name,
        fields: vec![(key, peer), ("tag", tag), ("bytes", 8), ("comm", 0)],
    };
    let sender: Vec<SpmdCall> = (0..20).map(|_| message("MPI_Send", "dest", 1, 0)).collect();
    let mut receiver: Vec<SpmdCall> = Vec::new();
    for nth in 0..20 {
        receiver.push(message("MPI_Recv", "src", 0, 0));
        receiver.push(SpmdCall { name: "MPI_Allreduce", fields: vec![("bytes", nth), ("comm", 1)] });
    }
    let fold = fold(&[sender, receiver], &Outermost::default());
    let skeleton = skeleton_of(&fold, &scale(10)).unwrap();
    assert_eq!((skeleton.loops, skeleton.calls), (vec![], (60, 60)));
}

#[test]
fn other_numbers_of_ranks_are_extrapolated_or_refused() {
    let program = [Phase::Repeat(
        10,
        vec![
            Phase::Ring(1, Bytes::Same(8)),
            Phase::Borders(Bytes::Same(16)),
            Phase::Pipeline(Bytes::Same(8)),
        ],
    )];
    let recorded = fold(&calls(&program, 8), &Outermost::default());
    for ranks in [2usize, 5, 8, 32] {
        let skeleton = skeleton_of(&recorded, &Config::new().ranks(Some(ranks))).unwrap();
        assert_eq!(skeleton.ranks, ranks);
        let here = replayed_calls(&skeleton);
        assert_eq!(spmd::execute(&here).err(), None, "{ranks}");
        if ranks > 2 {
            assert_eq!(here, calls(&program, ranks as i64), "{ranks}");
        }
    }
    // Whom a rank in the middle sends to says nothing of others.
    let odd = [Phase::Collect(5, Bytes::Same(8))];
    let recorded = fold(&calls(&odd, 8), &Outermost::default());
    let error = skeleton_of(&recorded, &Config::new().ranks(Some(16))).unwrap_err();
    assert!(error.to_string().contains("another number of ranks"), "{error}");
    // A bit that other ranks do not have.
    let butterfly = [Phase::Butterfly(4)];
    let recorded = fold(&calls(&butterfly, 8), &Outermost::default());
    assert!(skeleton_of(&recorded, &Config::new().ranks(Some(6))).is_err());
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let receive = SpmdCall { name: "MPI_Recv", fields: vec![("src", 1), ("tag", 0), ("comm", 0)] };
    let alone = fold(&[vec![receive], vec![]], &Outermost::default());
    let error = skeleton_of(&alone, &Config::new()).unwrap_err();
    assert!(error.to_string().contains("wait for ever"), "{error}");
    for wrong in ["0", "1/0", "2", "x", "3/2", "-1/2"] {
        assert!(wrong.parse::<Scale>().is_err(), "{wrong}");
    }
    assert_eq!("1/50".parse::<Scale>().unwrap().to_string(), "1/50");
}

/// Two processes that compute 1 ms before each of 100 barriers, of which they run only 0.2 ms.
#[test]
fn computation_is_the_time_in_which_the_process_ran() {
    let mut collector = Collector::default();
    for rank in 0..2 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        for nth in 0..100 {
            let fields = [Field { key: "comm", value: Value::Integer(0) }];
            let event = Event { role: Role::Collective, fields: &fields, ..Event::named("MPI_Barrier") };
            let symbol = collector.intern(&event).unwrap();
            let (start, metrics) = (Some(nth * 1_001_000), [(OFF_CPU, 800_000.0)]);
            collector
                .push(stream, symbol, Timing { start, duration: Some(1_000), metrics: &metrics })
                .unwrap();
        }
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let text = skeleton_of(&fold, &scale(1)).unwrap().text;
    // Less what recording takes.
    assert!(text.contains("work(19"), "{text}");
}

/// Processes that compute 5 us before each barrier and nothing before each broadcast. Recording the call
/// before takes 400 and 900 ns, which is measured of one call in five, and once 2 ms, which is
/// measured always; reading the clock takes 20 ns.
#[test]
fn what_recording_takes_is_not_computed() {
    let mut collector = Collector::default();
    for rank in 0..2 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let init = collector.intern(&Event::named("MPI_Init")).unwrap();
        let fields = [Field { key: "comm", value: Value::Integer(0) }];
        let barrier = Event { role: Role::Collective, fields: &fields, ..Event::named("MPI_Barrier") };
        let barrier = collector.intern(&barrier).unwrap();
        let fields = [
            Field { key: "root", value: Value::Integer(0) },
            Field { key: "bytes", value: Value::Integer(8) },
            Field { key: "comm", value: Value::Integer(0) },
        ];
        let broadcast = Event { role: Role::Collective, fields: &fields, ..Event::named("MPI_Bcast") };
        let broadcast = collector.intern(&broadcast).unwrap();
        let mut now = 0;
        let mut push = |symbol, recording: i64, computed: i64, is_measured: bool| {
            now += recording + 20 + computed;
            let metrics = [(RECORDING, recording as f64)];
            let metrics = if is_measured { &metrics[..] } else { &[] };
            let timing = Timing { start: Some(now), duration: Some(1_000), metrics };
            now += 1_000;
            collector.push(stream, symbol, timing).unwrap();
        };
        push(init, 0, 0, false);
        for nth in 0..100 {
            push(barrier, if nth == 33 { 2_000_000 } else { 400 }, 5_000, nth % 5 == 0 || nth == 33);
            push(broadcast, 900, 0, nth % 5 == 2);
        }
    }
    let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
    let text = skeleton_of(&fold, &scale(1)).unwrap().text;
    let work: Vec<&str> =
        text.lines().map(str::trim).filter(|line| line.starts_with("work(") && *line != "work(0);").collect();
    assert_eq!(work, ["work(5000);"], "{text}");
}
