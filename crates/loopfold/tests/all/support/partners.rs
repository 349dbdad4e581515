//! Messages and their other ends, on a fold and one by one.

use super::{id, outermost};
use loopfold::Fold;
use loopfold::questions::communication::{Partners, Processes};
use loopfold::questions::patterns::{EventChoice, MemoryBudget};
use loopfold_testing::mpi::{self, Call, Program};
use std::collections::{BTreeMap, BTreeSet};

/// For each event of a process its position among those that are examined; `None` if it is left
/// out.
pub fn examined(calls: &[Call]) -> Vec<Option<u64>> {
    let is_examined = |call: &Call| matches!(call, Call::Send(..) | Call::Receive(..) | Call::Collective(..));
    let mut next = 0;
    let position = |call: &Call| {
        let position = is_examined(call).then_some(next);
        next += u64::from(is_examined(call));
        position
    };
    calls.iter().map(position).collect()
}

/// Every message finds its other end as by looking for each send's receive, and what finds none
/// is listed. Returns the number of links and of messages that found none.
pub fn check_partners(fold: &Fold, program: &Program) -> (usize, usize) {
    let processes =
        Processes::of(fold, &EventChoice::default(), MemoryBudget::default(), &outermost).unwrap();
    let partners = Partners::of(&processes).unwrap();
    let (pairs, mut unreceived, mut unsent) = mpi::partners(program);
    // Whoever is not there is counted apart.
    let is_absent = |&(rank, at): &mpi::Place| match program[rank][at] {
        Call::Send(peer, ..) | Call::Receive(peer, ..) => peer as usize >= program.len(),
        _ => false,
    };
    let all = unreceived.len() + unsent.len();
    unreceived.retain(|place| !is_absent(place));
    unsent.retain(|place| !is_absent(place));
    assert_eq!(partners.absent, (all - unreceived.len() - unsent.len()) as u64);
    let positions: Vec<_> = program.iter().map(|calls| examined(calls)).collect();
    let expected: BTreeSet<((usize, u64), (usize, u64))> = pairs
        .iter()
        .flat_map(|&[a, b]| [(a, b), (b, a)])
        .map(|(a, b)| ((a.0, positions[a.0][a.1].unwrap()), (b.0, positions[b.0][b.1].unwrap())))
        .collect();
    let mut given = BTreeSet::new();
    for (rank, calls) in program.iter().enumerate() {
        for (call, position) in calls.iter().zip(&positions[rank]) {
            let Some(position) = position.filter(|_| !matches!(call, Call::Collective(..))) else { continue };
            let partners = partners.of_event(&processes, id(rank), position);
            given.extend(partners.into_iter().map(|(stream, at)| ((rank, position), (stream.index(), at))));
        }
    }
    assert_eq!(given, expected, "{program:?}");
    let linked = given.len();
    let count = |sent: bool| -> u64 {
        partners.unmatched.iter().filter(|unmatched| unmatched.sent == sent).map(|u| u.count).sum()
    };
    assert_eq!(count(true), unreceived.len() as u64, "{program:?}");
    assert_eq!(count(false), unsent.len() as u64, "{program:?}");
    for unmatched in &partners.unmatched {
        let (rank, position) = unmatched.first.unwrap();
        let all = if unmatched.sent { &unreceived } else { &unsent };
        assert!(all.contains(&(rank, position as usize)), "{unmatched:?} of {all:?}");
    }
    let mut matrix: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for (rank, calls) in program.iter().enumerate() {
        for call in calls {
            if let Call::Send(to, _, bytes) = *call
                && (to as usize) < program.len()
            {
                let cell = matrix.entry((rank as u32, to)).or_default();
                *cell = (cell.0 + 1, cell.1 + u64::from(bytes));
            }
        }
    }
    let given: BTreeMap<_, _> =
        partners.matrix.iter().map(|(&pair, traffic)| (pair, (traffic.messages, traffic.bytes))).collect();
    assert_eq!(given, matrix);
    (linked, unreceived.len() + unsent.len())
}
