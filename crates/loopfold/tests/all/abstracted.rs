//! Abstracted traces, beside walking through every event.

use crate::support::{outermost, programs};
use loopfold::folders::SequiturRuns;
use loopfold::questions::communication::{
    AbstractedTrace, CommunicationPattern, Processes, TracePatterns, abstracted,
};
use loopfold::questions::patterns::{self, EventChoice, MemoryBudget};
use loopfold::{Fold, StreamId};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{self, Program};
use loopfold_testing::patterns::{Occurrence, abstracted as walked};

/// Nothing is unfolded: loops are kept.
const AS_STORED: MemoryBudget = MemoryBudget { events: 0, symbols: 1 << 25, threads: 1 };

/// The examined events of each stream.
fn examined(processes: &Processes<'_>) -> Vec<Vec<u32>> {
    let events = |trace: &std::sync::Arc<loopfold::questions::communication::ProcessTrace>| {
        let nest = trace.shown().nest_between(0, trace.shown().length(), usize::MAX);
        nest.events(u64::MAX).into_iter().map(|symbol| symbol.raw()).collect()
    };
    processes.traces().iter().map(events).collect()
}

/// All occurrences in each stream, one by one. All times of one are the same events.
fn occurrences(found: &TracePatterns, streams: &[Vec<u32>]) -> Vec<Vec<Occurrence>> {
    let mut all = vec![Vec::new(); streams.len()];
    for (pattern, number) in found.communication.iter().zip(1..) {
        for occurrence in pattern.all_occurrences() {
            let events = occurrence.parts.iter().map(|part| part.end - part.start).sum();
            for repeated in occurrence.repeated_parts() {
                let (part, stream) = (repeated.part, &streams[repeated.part.stream.index()]);
                assert_eq!(repeated.times, occurrence.in_a_row);
                for time in 0..repeated.times {
                    let start = (part.start + time * repeated.period) as usize;
                    let end = start + (part.end - part.start) as usize;
                    assert_eq!(stream[start..end], stream[part.start as usize..part.end as usize]);
                    all[part.stream.index()].push(Occurrence { start, end, events, number });
                }
            }
        }
    }
    all
}

/// An abstracted stream written out.
fn written(found: &AbstractedTrace, fold: &Fold, stream: usize) -> Vec<Result<u32, usize>> {
    let root = fold.stream(StreamId::new(stream).unwrap()).root();
    let number = |raw: u32| found.names.iter().find(|(_, (symbol, _))| symbol.raw() == raw);
    let event = |raw: u32| number(raw).map_or(Ok(raw), |(&number, _)| Err(number));
    fold.unfold(root).map(|symbol| event(symbol.raw())).collect()
}

/// Compares a program with the walk; returns the abstracted streams, how many occurrences were
/// named, and how many patterns recur in loops, with other events between.
fn check(program: &Program) -> (Vec<String>, usize, usize) {
    let fold = programs::fold(program, &SequiturRuns);
    let mut shown = Vec::new();
    let (mut named, mut apart) = (0, 0);
    for budget in [MemoryBudget::default(), AS_STORED] {
        let processes = Processes::of(&fold, &EventChoice::default(), budget, &outermost).unwrap();
        if !processes.communicate() {
            continue;
        }
        let found = TracePatterns::of(&processes, &patterns::Config::new()).unwrap();
        let streams = examined(&processes);
        let all = occurrences(&found, &streams);
        apart += found.communication.iter().filter(|pattern| recurs_apart(pattern)).count();
        for abstracted_budget in [MemoryBudget::default(), AS_STORED] {
            let answer = abstracted(&processes, &found, abstracted_budget, &outermost).unwrap();
            let mut left = 0;
            for (index, (stream, occurrences)) in streams.iter().zip(&all).enumerate() {
                let expected = walked(stream, occurrences);
                assert_eq!(written(&answer, &answer.fold, index), expected, "stream {index} of {program:?}");
                left += expected.iter().filter(|event| event.is_ok()).count() as u64;
                named += expected.len() - expected.iter().filter(|event| event.is_ok()).count();
            }
            assert_eq!(answer.events, streams.iter().map(|stream| stream.len() as u64).sum::<u64>());
            assert_eq!(answer.replaced, answer.events - left);
            if shown.is_empty() {
                shown =
                    answer.fold.streams().iter().map(|stream| nest(&answer.fold, stream.root())).collect();
            }
        }
    }
    (shown, named, apart)
}

fn recurs_apart(pattern: &CommunicationPattern) -> bool {
    pattern.all_occurrences().any(|occurrence| {
        let mut parts = occurrence.repeated_parts();
        parts.any(|part| part.times > 1 && part.period > part.part.end - part.part.start)
    })
}

/// A nest on one line.
fn nest(fold: &Fold, root: loopfold::RuleId) -> String {
    use loopfold::questions::nest::Node;
    let nest = fold.nest(root, usize::MAX);
    let mut text = Vec::new();
    let mut open: Vec<(usize, u64)> = Vec::new();
    for (at, node) in nest.nodes.iter().enumerate() {
        match *node {
            Node::Event(symbol) => text.push(fold.alphabet().label(symbol).to_string()),
            Node::LeftOut(events) => text.push(format!("… {events}")),
            Node::Near { .. } => panic!("an exact nest"),
            Node::Loop { times, end, .. } => {
                text.push("(".to_string());
                open.push((end, times));
            }
        }
        while let Some((_, times)) = open.pop_if(|(end, _)| *end == at + 1) {
            text.push(format!(")^{times}"));
        }
    }
    text.join(" ")
}

#[test]
fn lu_is_a_loop_of_meshes() {
    let (nests, ..) = check(&mpi::lu(4, 4, 31, 30));
    let first = "MPI_Bcast root=0 ( #1 2-D mesh of 4 by 4 )^30 ";
    assert!(nests.iter().all(|nest| nest.starts_with(first)), "{nests:?}");
    assert_eq!(
        nests[15],
        format!("{first}MPI_Irecv src=11 MPI_Isend dest=11 MPI_Irecv src=14 MPI_Isend dest=14 MPI_Allreduce")
    );
}

#[test]
fn sp_is_a_loop_of_exchanges() {
    let (nests, ..) = check(&mpi::sp(40));
    let first =
        "( MPI_Bcast root=0 )^4 #1 all-to-all of 4 MPI_Barrier ( #1 all-to-all of 4 )^40 ( MPI_Irecv src=";
    assert!(nests.iter().all(|nest| nest.starts_with(first)), "{nests:?}");
}

#[test]
fn a_weather_model_is_exchanges_and_collectives() {
    let (nests, ..) = check(&mpi::weather(4, 4, 120));
    let expected = "( #3 collective operations )^20 MPI_Barrier ( #2 collective operations )^50 MPI_Allreduce \
                    ( #1 2-D mesh of 4 by 4 )^120 ( #3 collective operations )^40 MPI_Allreduce \
                    ( #2 collective operations )^66 MPI_Barrier";
    assert_eq!(nests, vec![expected; 16]);
}

#[test]
fn random_programs_are_abstracted_as_by_walking() {
    let mut rng = Rng::new(611);
    let (mut named, mut apart) = (0, 0);
    for _ in 0..2000 {
        let processes = rng.between(1, 5);
        let mut program = mpi::random(&mut rng, processes);
        // What recurs elsewhere, also in loops that are none of all processes.
        for _ in 0..rng.below(3) {
            let more = mpi::random(&mut rng, processes);
            let again = program.clone();
            mpi::repeat(&mut program, &more, 1);
            mpi::repeat(&mut program, &again, 1);
        }
        let (_, its_named, its_apart) = check(&program);
        (named, apart) = (named + its_named, apart + its_apart);
    }
    assert!(named > 10_000 && apart > 0, "{named} {apart}");
}
