//! Messages and collective operations find their partners on the fold as event by event.

#![allow(clippy::unwrap_used)]

#[path = "support/programs.rs"]
mod programs;
mod support;

use loopfold::folders;
use loopfold::questions::communication::{Partners, Processes};
use loopfold::questions::{EventChoice, Room};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{self, Call, Program};
use programs::fold;
use std::collections::{BTreeMap, BTreeSet};

/// For each event of a stream, its index in what is shown; nothing if it is left out.
fn shown_indices(processes: &Processes<'_>, rank: usize, calls: &[Call]) -> Vec<Option<u32>> {
    let shown = processes.doings()[rank].shown();
    let mut written_out: Vec<u32> = Vec::new();
    // The positions of first occurrences, and loops, say which events are the same.
    fn write(
        shown: &loopfold::questions::Abridged,
        start: u32,
        end: u32,
        loops: &mut usize,
        out: &mut Vec<u32>,
    ) {
        let mut index = start;
        while index < end {
            match shown.loops().get(*loops) {
                Some(found) if found.start == index && found.end <= end => {
                    *loops += 1;
                    let before = *loops;
                    for _ in 0..found.times {
                        *loops = before;
                        write(shown, found.start, found.end, loops, out);
                    }
                    index = found.end;
                }
                _ => {
                    out.push(index);
                    index += 1;
                }
            }
        }
    }
    write(shown, 0, shown.symbols().len() as u32, &mut 0, &mut written_out);
    let mut next = written_out.into_iter();
    let is_shown = |call: &Call| matches!(call, Call::Send(..) | Call::Receive(..) | Call::Collective(..));
    let indices: Vec<Option<u32>> =
        calls.iter().map(|call| if is_shown(call) { Some(next.next().unwrap()) } else { None }).collect();
    assert_eq!(next.next(), None);
    indices
}

#[test]
fn every_message_finds_its_other_end_for_every_folder() {
    let mut rng = Rng::new(11);
    let folders = support::folders();
    let (mut with_unmatched, mut linked) = (0, 0);
    for round in 0..1200 {
        let size = rng.between(1, 5);
        let mut program = mpi::random(&mut rng, size);
        if rng.one_in(3) {
            // Some calls got lost.
            for calls in &mut program {
                let count = calls.len();
                if count > 0 {
                    calls.remove(rng.below(count));
                }
            }
        }
        let fold = fold(&program, &*folders[round % folders.len()]);
        let processes = Processes::of(&fold, &EventChoice::default(), Room::default()).unwrap();
        let partners = Partners::of(&processes).unwrap();
        let (pairs, unreceived, unsent) = mpi::partners(&program);
        let indices: Vec<_> =
            program.iter().enumerate().map(|(rank, calls)| shown_indices(&processes, rank, calls)).collect();
        let expected: BTreeSet<((usize, u32), (usize, u32))> = pairs
            .iter()
            .flat_map(|&[a, b]| [(a, b), (b, a)])
            .map(|(a, b)| ((a.0, indices[a.0][a.1].unwrap()), (b.0, indices[b.0][b.1].unwrap())))
            .collect();
        let mut told = BTreeSet::new();
        for rank in 0..size {
            let all = processes.doings()[rank].shown().symbols().len() as u32;
            for link in partners.between(rank, 0, all) {
                let label = processes
                    .alphabet()
                    .label(processes.doings()[rank].shown().symbols()[link.index as usize]);
                if !label.starts_with("MPI_B") {
                    told.insert(((rank, link.index), (link.stream as usize, link.partner)));
                }
            }
        }
        assert_eq!(told, expected, "{program:?}");
        linked += told.len();
        let count = |sent: bool| -> u64 {
            partners.unmatched.iter().filter(|unmatched| unmatched.sent == sent).map(|u| u.count).sum()
        };
        assert_eq!(count(true), unreceived.len() as u64, "{program:?}");
        assert_eq!(count(false), unsent.len() as u64, "{program:?}");
        with_unmatched += usize::from(!unreceived.is_empty() || !unsent.is_empty());
        for unmatched in &partners.unmatched {
            let (rank, position) = unmatched.first.unwrap();
            let all = if unmatched.sent { &unreceived } else { &unsent };
            assert!(all.contains(&(rank, position as usize)), "{unmatched:?} of {all:?}");
        }
        let mut matrix: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for (rank, calls) in program.iter().enumerate() {
            for call in calls {
                if let Call::Send(to, _, bytes) = *call {
                    let cell = matrix.entry((rank as u32, to)).or_default();
                    *cell = (cell.0 + 1, cell.1 + u64::from(bytes));
                }
            }
        }
        let told: BTreeMap<_, _> = partners
            .matrix
            .iter()
            .map(|(&pair, traffic)| (pair, (traffic.messages, traffic.bytes)))
            .collect();
        assert_eq!(told, matrix);
    }
    assert!(with_unmatched > 100 && linked > 5000, "{with_unmatched} {linked}");
}

#[test]
fn members_that_disagree_on_an_operation_are_told() {
    let barrier = Call::Collective("MPI_Barrier", None);
    let bcast = |root| Call::Collective("MPI_Bcast", Some(root));
    let check = |program: Program| {
        let fold = fold(&program, &folders::SequiturRuns);
        let processes = Processes::of(&fold, &EventChoice::default(), Room::default()).unwrap();
        let partners = Partners::of(&processes).unwrap();
        let told: Vec<_> = partners
            .disagreements
            .iter()
            .map(|found| {
                (found.nth, found.seen.map(|(stream, at)| (stream, at.map(|(position, _)| position))))
            })
            .collect();
        told
    };
    let agreed = vec![vec![barrier; 50], vec![barrier; 50]];
    assert_eq!(check(agreed.clone()), []);
    // One fewer, another root in a loop, another operation.
    let mut fewer = agreed.clone();
    fewer[1].pop();
    assert_eq!(check(fewer), [(49, [(0, Some(49)), (1, None)])]);
    let pairs = |root| [barrier, Call::Wait, bcast(root)].repeat(9);
    assert_eq!(check(vec![pairs(0), pairs(0), pairs(1)]), [(1, [(0, Some(2)), (2, Some(2))])]);
    let mut other = agreed;
    other[1][30] = Call::Collective("MPI_Allreduce", None);
    assert_eq!(check(other), [(30, [(0, Some(30)), (1, Some(30))])]);
}
