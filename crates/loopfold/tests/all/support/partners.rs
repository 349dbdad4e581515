//! Messages and their other ends, on a fold and one by one.

use super::outermost;
use loopfold::Fold;
use loopfold::questions::communication::{Partners, Processes};
use loopfold::questions::patterns::{EventChoice, MemoryBudget};
use loopfold::trace::Role;
use loopfold_testing::mpi::{self, Call, Program};
use std::collections::{BTreeMap, BTreeSet};

/// For each event of a stream, its index in what is shown; `None` if it is left out.
pub fn shown_indices(processes: &Processes<'_>, rank: usize, calls: &[Call]) -> Vec<Option<u32>> {
    let shown = processes.traces()[rank].shown();
    let mut written_out: Vec<u32> = Vec::new();
    // The positions of first occurrences, and loops, say which events are the same.
    fn write(
        shown: &loopfold::questions::patterns::LoopCollapsed,
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
    let indices: Vec<_> =
        program.iter().enumerate().map(|(rank, calls)| shown_indices(&processes, rank, calls)).collect();
    let expected: BTreeSet<((usize, u32), (usize, u32))> = pairs
        .iter()
        .flat_map(|&[a, b]| [(a, b), (b, a)])
        .map(|(a, b)| ((a.0, indices[a.0][a.1].unwrap()), (b.0, indices[b.0][b.1].unwrap())))
        .collect();
    let mut given = BTreeSet::new();
    for rank in 0..program.len() {
        let all = processes.traces()[rank].shown().symbols().len() as u32;
        for link in partners.between(rank, 0, all) {
            let symbol = processes.traces()[rank].shown().symbols()[link.index as usize];
            if processes.alphabet().meaning(symbol).role != Role::Collective {
                given.insert(((rank, link.index), (link.stream as usize, link.partner)));
            }
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
