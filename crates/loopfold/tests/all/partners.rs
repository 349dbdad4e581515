//! Messages and collective operations find their partners on the fold as event by event.

use crate::support::partners::{check_partners, examined};
use crate::support::programs::fold;
use crate::support::{id, outermost};
use loopfold::folders;
use loopfold::questions::communication::{Partners, Processes};
use loopfold::questions::patterns::{EventChoice, MemoryBudget};
use loopfold::trace::{Collector, Event, Field, Projection, Role, Sink, TimesKept, Value};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{self, Call, Program};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_message_finds_its_other_end_for_every_folder() {
    let mut rng = Rng::new(11);
    let folders = crate::support::folders();
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
        let (links, unmatched) = check_partners(&fold, &program);
        linked += links;
        with_unmatched += usize::from(unmatched > 0);
    }
    assert!(with_unmatched > 100 && linked > 5000, "{with_unmatched} {linked}");
}

#[test]
fn members_that_disagree_on_an_operation_are_told() {
    let barrier = Call::Collective("MPI_Barrier", None);
    let bcast = |root| Call::Collective("MPI_Bcast", Some(root));
    let check = |program: Program| {
        let fold = fold(&program, &folders::SequiturRuns);
        let processes =
            Processes::of(&fold, &EventChoice::default(), MemoryBudget::default(), &outermost).unwrap();
        let partners = Partners::of(&processes).unwrap();
        let given: Vec<_> = partners
            .disagreements
            .iter()
            .map(|found| {
                (found.nth, found.seen.map(|(stream, at)| (stream, at.map(|(position, _)| position))))
            })
            .collect();
        given
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

/// What the receives of a process leave open.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Nothing,
    Sender,
    Tag,
    Both,
}

/// The messages of a program as a fold, where the receives of each process leave that open.
fn fold_with_open_receives(program: &Program, open: &[Open]) -> loopfold::Fold {
    let mut collector = Collector::new(Projection::default(), TimesKept::None);
    for (rank, calls) in program.iter().enumerate() {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        for call in calls {
            let (name, role, peer, at, tag) = match *call {
                Call::Send(to, tag, _) => ("MPI_Send", Role::Send, "dest", to.into(), tag.into()),
                Call::Receive(from, tag, _) => {
                    let from = if matches!(open[rank], Open::Sender | Open::Both) { -1 } else { from.into() };
                    let tag = if matches!(open[rank], Open::Tag | Open::Both) { -1 } else { tag.into() };
                    ("MPI_Recv", Role::Receive, "src", from, tag)
                }
                _ => continue,
            };
            let field = |key, value| Field { key, value: Value::Integer(value) };
            let fields = [field(peer, at), field("tag", tag)];
            collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(name) }).unwrap();
        }
    }
    folders::fold_trace(collector.finish().unwrap(), &folders::SequiturRuns, 1).unwrap()
}

#[test]
fn receives_that_leave_something_open_find_what_they_can_mean() {
    let mut rng = Rng::new(21);
    let (mut certain, mut uncertain) = (0, 0);
    for _ in 0..1500 {
        let size = rng.between(2, 4);
        let mut program = mpi::random(&mut rng, size);
        program
            .iter_mut()
            .for_each(|calls| calls.retain(|call| matches!(call, Call::Send(..) | Call::Receive(..))));
        let lost = rng.one_in(3);
        if lost {
            program.iter_mut().for_each(|calls| calls.truncate(calls.len().saturating_sub(1)));
        }
        let all = [Open::Nothing, Open::Sender, Open::Tag, Open::Both];
        let open: Vec<Open> = (0..size).map(|_| all[rng.below(4)]).collect();
        // The sends and receives that only each other can mean, in their order.
        let kind = |from: u32, to: usize, tag: u32| match open[to] {
            Open::Nothing => (Some(from), to, Some(tag)),
            Open::Sender => (None, to, Some(tag)),
            Open::Tag => (Some(from), to, None),
            Open::Both => (None, to, None),
        };
        let (mut sends, mut receives) = (BTreeMap::new(), BTreeMap::new());
        for (rank, calls) in program.iter().enumerate() {
            for (at, call) in calls.iter().enumerate() {
                match *call {
                    Call::Send(to, tag, _) => {
                        let kind = kind(rank as u32, to as usize, tag);
                        sends.entry(kind).or_insert_with(Vec::new).push((rank, at, tag));
                    }
                    Call::Receive(from, tag, _) => {
                        receives.entry(kind(from, rank, tag)).or_insert_with(Vec::new).push((rank, at));
                    }
                    _ => {}
                }
            }
        }
        let fold = fold_with_open_receives(&program, &open);
        let processes =
            Processes::of(&fold, &EventChoice::default(), MemoryBudget::default(), &outermost).unwrap();
        let partners = Partners::of(&processes).unwrap();
        let positions: Vec<_> = program.iter().map(|calls| examined(calls)).collect();
        let mut expected = BTreeSet::new();
        let (mut unresolved, mut unmatched) = (0, [0, 0]);
        let none = Vec::new();
        for kind in sends.keys().chain(receives.keys()).collect::<BTreeSet<_>>() {
            let sent = sends.get(kind).unwrap_or(&none);
            let received = receives.get(kind).map_or(&[][..], |received| &received[..]);
            let both = sent.len().min(received.len());
            unmatched[0] += sent.len() - both;
            unmatched[1] += received.len() - both;
            let senders: BTreeSet<_> = sent.iter().map(|&(rank, ..)| rank).collect();
            if senders.len() > 1 {
                unresolved += both;
                continue;
            }
            for (&(from, at, _), &(to, other)) in sent.iter().zip(received) {
                let ends = [(from, positions[from][at].unwrap()), (to, positions[to][other].unwrap())];
                expected.extend([(ends[0], ends[1]), (ends[1], ends[0])]);
            }
        }
        let mut given = BTreeSet::new();
        for (rank, positions) in positions.iter().enumerate() {
            for position in positions.iter().flatten() {
                let others = partners.of_event(&processes, id(rank), *position).into_iter();
                given.extend(others.map(|(stream, at)| ((rank, *position), (stream.index(), at))));
            }
        }
        assert_eq!(given, expected, "{program:?}");
        assert_eq!(partners.unresolved, unresolved as u64, "{program:?}");
        for (sent, count) in [true, false].into_iter().zip(unmatched) {
            let found = partners.unmatched.iter().filter(|unmatched| unmatched.sent == sent);
            assert_eq!(found.map(|unmatched| unmatched.count).sum::<u64>(), count as u64, "{program:?}");
        }
        assert!(lost || partners.unmatched.is_empty());
        certain += given.len();
        uncertain += unresolved;
    }
    assert!(certain > 3000 && uncertain > 3000, "{certain} {uncertain}");
}

#[test]
fn members_that_take_part_in_nothing_are_told() {
    let barrier = Call::Collective("MPI_Barrier", None);
    let program = vec![vec![barrier; 3], vec![Call::Wait], vec![barrier; 3]];
    let fold = fold(&program, &folders::SequiturRuns);
    let processes =
        Processes::of(&fold, &EventChoice::default(), MemoryBudget::default(), &outermost).unwrap();
    let partners = Partners::of(&processes).unwrap();
    let given: Vec<_> =
        partners.disagreements.iter().map(|found| (found.nth, found.seen.map(|seen| seen.0))).collect();
    assert_eq!(given, [(0, [0, 1])]);
    assert_eq!(partners.disagreements[0].seen[1].1, None);
}
