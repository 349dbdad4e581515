//! Logical traces of generated programs: unfolding them gives every stream back, what follows a
//! rule is written as one, and the size does not grow with the number of processes.

use crate::support::spmd::{check, fold};
use crate::support::{folders, outermost};
use loopfold::Fold;
use loopfold::folders::Outermost;
use loopfold::questions::logical::{LogicalNode, LogicalTrace};
use loopfold_testing::Rng;
use loopfold_testing::spmd::{self, Bytes, Phase, SpmdCall};

fn logical(fold: &Fold) -> LogicalTrace {
    LogicalTrace::of(fold, &outermost).unwrap()
}

fn calls(program: &[Phase], size: i64) -> Vec<Vec<SpmdCall>> {
    (0..size).map(|rank| spmd::calls(program, rank, size)).collect()
}

/// A logical trace that was compared with the streams, as text.
fn text(program: &[Phase], size: i64) -> String {
    let fold = fold(&calls(program, size), &Outermost::default());
    let logical = logical(&fold);
    check(&logical, &fold);
    logical.to_string()
}

#[test]
fn unfolding_gives_every_stream_back() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let size = rng.between(2, 20) as i64;
        let calls = calls(&spmd::random(&mut rng, size), size);
        if calls.iter().map(Vec::len).sum::<usize>() > 100_000 {
            continue;
        }
        let folders = folders();
        // Mostly as `loops` folds.
        let other = &*folders[rng.below(folders.len())];
        let folder = if rng.one_in(8) && calls[0].len() < 2_000 { other } else { &Outermost::default() };
        let fold = fold(&calls, folder);
        let logical = logical(&fold);
        check(&logical, &fold);
    }
}

#[test]
fn streams_that_have_nothing_in_common_are_given_back_too() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let streams = crate::support::small_streams(&mut rng, 40);
        let fold = crate::support::fold_of(&streams, &Outermost::default());
        check(&logical(&fold), &fold);
    }
}

#[test]
fn rules_are_written_as_such() {
    let exchange =
        vec![Phase::Repeat(10, vec![Phase::Ring(1, Bytes::Same(8)), Phase::Pipeline(Bytes::ByRank(8))])];
    assert_eq!(
        text(&exchange, 8),
        "MPI_Init\n\
         10 ×\n  \
           MPI_Sendrecv dest=(rank + 1) % size src=(rank - 1) % size tag=2 recvtag=2 bytes=8 recvbytes=8 comm=0\n  \
           if rank != 0\n    \
             MPI_Recv src=rank - 1 tag=3 bytes=8 * rank comm=0\n  \
           if rank != size - 1\n    \
             MPI_Send dest=rank + 1 tag=3 bytes=8 * rank + 8 comm=0\n\
         MPI_Finalize\n"
    );
    let line = vec![Phase::Line(2, Bytes::Same(16)), Phase::Butterfly(4)];
    assert_eq!(
        text(&line, 16),
        "MPI_Init\n\
         MPI_Sendrecv dest=rank + 2 or none src=rank - 2 or none tag=1 recvtag=1 bytes=16 recvbytes=16 comm=0\n\
         if rank % 8 < 4\n  \
           MPI_Send dest=rank + 4 tag=2 bytes=24 comm=0\n\
         MPI_Recv src=rank ^ 4 tag=2 bytes=24 comm=0\n\
         if rank % 8 > 3\n  \
           MPI_Send dest=rank - 4 tag=2 bytes=24 comm=0\n\
         MPI_Finalize\n"
    );
}

#[test]
fn counts_may_depend_on_the_rank() {
    let local = |rank: i64| SpmdCall { name: "work", fields: vec![("part", rank % 3)] };
    let calls: Vec<Vec<SpmdCall>> = (0..9).map(|rank| vec![local(0); 5 + 2 * rank as usize]).collect();
    let fold = fold(&calls, &Outermost::default());
    let logical = logical(&fold);
    check(&logical, &fold);
    assert_eq!(logical.to_string(), "2 * rank + 5 × work part=0\n");
    // Tags that are ranks.
    let calls: Vec<Vec<SpmdCall>> = (0..9)
        .map(|rank| vec![SpmdCall { name: "MPI_Send", fields: vec![("dest", 0), ("tag", 100 + rank)] }; 3])
        .collect();
    let fold = crate::support::spmd::fold(&calls, &Outermost::default());
    let logical = LogicalTrace::of(&fold, &outermost).unwrap();
    check(&logical, &fold);
    assert_eq!(logical.to_string(), "3 × MPI_Send dest=0 tag=rank + 100\n");
}

#[test]
fn exceptions_are_listed() {
    let call = |bytes: i64| SpmdCall { name: "MPI_Send", fields: vec![("dest", 0), ("bytes", bytes)] };
    let odd = |rank: i64| if [3, 4, 7].contains(&rank) { 99 } else { 8 };
    let calls: Vec<Vec<SpmdCall>> = (0..9).map(|rank| vec![call(odd(rank)); 2]).collect();
    let fold = fold(&calls, &Outermost::default());
    let logical = logical(&fold);
    check(&logical, &fold);
    assert_eq!(logical.to_string(), "2 × MPI_Send dest=0 bytes={rank in 3-4,7: 99; else 8}\n");
    assert_eq!(logical.size().exceptions, 1);
}

#[test]
fn the_size_does_not_grow_with_the_processes() {
    let program = vec![Phase::Repeat(
        5,
        vec![
            Phase::Borders(Bytes::Same(64)),
            Phase::Repeat(4, vec![Phase::Pipeline(Bytes::Same(8)), Phase::Ring(2, Bytes::ByRank(8))]),
            Phase::Collective("MPI_Allreduce", None),
            Phase::Local(2),
        ],
    )];
    let size_of = |processes: i64| {
        let fold = fold(&calls(&program, processes), &Outermost::default());
        let logical = logical(&fold);
        if processes <= 256 {
            check(&logical, &fold);
        } else {
            logical.verify(&fold).unwrap();
        }
        logical.size()
    };
    let small = size_of(16);
    for processes in [64, 256, 1024] {
        assert_eq!(size_of(processes), small, "{processes}");
    }
}

#[test]
fn two_executions_have_no_logical_trace() {
    let call = |name| SpmdCall { name, fields: Vec::new() };
    let calls = vec![vec![call("a")], vec![call("b")]];
    let fold = fold(&calls, &Outermost::default());
    let mut twice = loopfold::fold::FoldBuilder::default();
    twice.join(&fold).unwrap();
    twice.join(&fold).unwrap();
    let error = LogicalTrace::of(&twice.finish(), &outermost).unwrap_err();
    assert!(error.to_string().contains("the same process"), "{error}");
}

#[test]
fn a_changed_trace_is_noticed() {
    let program = vec![Phase::Repeat(4, vec![Phase::Ring(1, Bytes::Same(8))])];
    let fold = fold(&calls(&program, 4), &Outermost::default());
    let mut logical = logical(&fold);
    let Some(LogicalNode::Loop { times, .. }) =
        logical.parts[0].nodes.iter_mut().find(|node| matches!(node, LogicalNode::Loop { .. }))
    else {
        panic!("{logical}")
    };
    *times = loopfold::questions::logical::Expression::number(5);
    assert!(logical.verify(&fold).is_err());
}
