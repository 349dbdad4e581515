//! Programs of a few processes whose joint loop is known by construction: how often it
//! iterates, which processes take part, and how many events one iteration has.
//!
//! Each is a *round*, in which all that is sent is received, repeated between a prologue and an
//! epilogue that differ among the processes. All sends and receives are nonblocking, so their
//! order within a round is free.

use crate::Rng;
use crate::mpi::{ANY, Call, Envelope, Message, NOBODY, Program, repeat};

/// The communicators of a process beside that of all: the number of each, and its members.
pub type OwnComms = Vec<(u32, Vec<usize>)>;

/// A program with what is known of it.
#[derive(Clone, Debug)]
pub struct KnownProgram {
    /// What kind of program it is.
    pub kind: &'static str,
    /// The calls of each process.
    pub program: Program,
    /// The communicators of each process.
    pub comms: Vec<OwnComms>,
    /// Its joint loops that share no process. None if the random round turned out to be no
    /// single loop.
    pub loops: Vec<TrueLoop>,
}

/// A joint loop of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueLoop {
    /// The processes that take part.
    pub ranks: Vec<usize>,
    /// How often it iterates, at least.
    pub fewest: u64,
    /// At most: what surrounds it may complete an iteration more.
    pub most: u64,
    /// The sends, receives and collective operations in an iteration, of all processes.
    pub events: u64,
    /// Whether messages may be in flight at the borders of all iterations.
    pub may_cross: bool,
}

/// A generator of programs.
pub type Generator = fn(&mut Rng) -> KnownProgram;

/// Every kind of program.
pub const GENERATORS: [Generator; 19] = [
    mesh,
    odd_even,
    multigrid,
    wavefront,
    shifted_pipeline,
    shifted_sweeps,
    split_communicators,
    one_sender_to_anyone,
    several_senders_to_anyone,
    any_order,
    rotated,
    lost_before,
    lost_within,
    cut_off,
    split_by_local_event,
    counting_tags,
    tags_out_of_order,
    two_groups,
    messages_to_oneself,
];

fn send(to: usize, tag: u32) -> Call {
    Call::Send(to as u32, tag, 8)
}

fn receive(from: usize, tag: u32) -> Call {
    Call::Receive(from as u32, tag, 8)
}

/// Whether a call is a send, a receive or a collective operation. A call that does both with
/// nobody does nothing.
pub fn is_examined(call: &Call) -> bool {
    match call {
        Call::Send(..) | Call::Receive(..) | Call::Collective(..) | Call::CollectiveOn(..) => true,
        Call::Message(message) => {
            [message.to, message.from].into_iter().flatten().count() == 1
                || [message.to, message.from].into_iter().flatten().any(|end| end.peer != NOBODY)
        }
        Call::Wait | Call::Enter(_) | Call::Leave(_) => false,
    }
}

/// A call as it is compared: without tags and sizes.
pub fn without_envelope(call: &Call) -> Call {
    let bare = |end: Envelope| Envelope { tag: 0, ..end };
    match *call {
        Call::Send(to, ..) => Call::Send(to, 0, 0),
        Call::Receive(from, ..) => Call::Receive(from, 0, 0),
        Call::Message(message) => {
            Call::Message(Message { to: message.to.map(bare), from: message.from.map(bare), ..message })
        }
        other => other,
    }
}

/// A message that is appended to what both of its processes do.
fn exchange(round: &mut Program, from: usize, to: usize, tag: u32) {
    round[from].push(send(to, tag));
    round[to].push(receive(from, tag));
}

fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    (1..items.len()).rev().for_each(|last| items.swap(last, rng.below(last + 1)));
}

/// What a process compares of one iteration.
fn compared(calls: &[Call]) -> Vec<Call> {
    calls.iter().filter(|call| is_examined(call)).map(without_envelope).collect()
}

/// Whether a sequence is no repetition of a shorter one.
fn is_primitive(calls: &[Call]) -> bool {
    let length = calls.len();
    let repeats =
        |period: usize| length.is_multiple_of(period) && calls[period..] == calls[..length - period];
    length > 0 && !(1..=length / 2).any(repeats)
}

/// Whether a round is one joint iteration, which no shorter one repeats: the processes with any
/// calls are connected by them, and what one of them does is no repetition. One event of each is
/// an operation, not a pattern.
fn is_one_iteration(round: &Program) -> bool {
    let size = round.len();
    let mut group: Vec<usize> = (0..size).collect();
    let mut unite = |a: usize, b: usize| {
        let (from, to) = (group[a], group[b]);
        group.iter_mut().filter(|of| **of == from).for_each(|of| *of = to);
    };
    for (rank, calls) in round.iter().enumerate() {
        for call in calls {
            match *call {
                Call::Send(peer, ..) | Call::Receive(peer, ..) => unite(rank, peer as usize),
                Call::Collective(..) => (0..size).for_each(|other| unite(rank, other)),
                _ => {}
            }
        }
    }
    let active: Vec<usize> = (0..size).filter(|&rank| round[rank].iter().any(is_examined)).collect();
    active.len() > 1
        && active.iter().any(|&rank| compared(&round[rank]).len() > 1)
        && active.iter().all(|&rank| group[rank] == group[active[0]])
        && active.iter().any(|&rank| is_primitive(&compared(&round[rank])))
}

fn true_loop(round: &Program, fewest: usize, most: usize) -> TrueLoop {
    let events = |calls: &Vec<Call>| calls.iter().filter(|call| is_examined(call)).count();
    TrueLoop {
        ranks: (0..round.len()).filter(|&rank| events(&round[rank]) > 0).collect(),
        fewest: fewest as u64,
        most: most as u64,
        events: round.iter().map(events).sum::<usize>() as u64,
        may_cross: false,
    }
}

fn no_comms(size: usize) -> Vec<OwnComms> {
    vec![Vec::new(); size]
}

/// Something before or behind a loop: a collective operation, messages of some processes with
/// themselves, or nothing.
fn surroundings(rng: &mut Rng, size: usize) -> Program {
    let mut calls = vec![Vec::new(); size];
    match rng.below(4) {
        0 => calls.iter_mut().for_each(|calls| calls.push(Call::Collective("MPI_Bcast", Some(0)))),
        1 => {
            for (rank, calls) in calls.iter_mut().enumerate() {
                (0..rng.below(3)).for_each(|_| calls.extend([send(rank, 60), receive(rank, 60)]));
            }
        }
        2 => {
            let (from, to) = (rng.below(size), rng.below(size));
            exchange(&mut calls, from, to, 50);
        }
        _ => {}
    }
    calls
}

/// A round that is repeated, with something around it. What surrounds it may be equal to how an
/// iteration begins or ends; so that together they may be one more.
fn framed(rng: &mut Rng, kind: &'static str, round: &Program) -> KnownProgram {
    let size = round.len();
    let times = rng.between(2, 7);
    let mut program = surroundings(rng, size);
    repeat(&mut program, round, times);
    repeat(&mut program, &surroundings(rng, size), 1);
    let loops = Vec::from_iter(is_one_iteration(round).then(|| true_loop(round, times, times + 1)));
    KnownProgram { kind, program, comms: no_comms(size), loops }
}

/// Sides of a grid of 2 to 9 processes.
fn grid(rng: &mut Rng) -> (usize, usize) {
    let rows = rng.between(1, 3);
    (rows, rng.between(if rows == 1 { 2 } else { 1 }, 3 + usize::from(rows < 3)))
}

/// Pairs of neighbours in a grid, the smaller first.
fn neighbours((rows, columns): (usize, usize)) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for rank in 0..rows * columns {
        if rank % columns + 1 < columns {
            pairs.push((rank, rank + 1));
        }
        if rank + columns < rows * columns {
            pairs.push((rank, rank + columns));
        }
    }
    pairs
}

/// An exchange of all neighbours in a grid without wrapping around, so processes at its borders
/// do less; sometimes several times in an iteration, or with a reduction.
pub fn mesh(rng: &mut Rng) -> KnownProgram {
    let sides = grid(rng);
    let mut once = vec![Vec::new(); sides.0 * sides.1];
    for (a, b) in neighbours(sides) {
        exchange(&mut once, a, b, 1);
        exchange(&mut once, b, a, 1);
    }
    once.iter_mut().for_each(|calls| shuffle(rng, calls));
    once.iter_mut().for_each(|calls| calls.push(Call::Wait));
    let mut round = vec![Vec::new(); once.len()];
    repeat(&mut round, &once, rng.between(1, 3));
    if rng.one_in(2) {
        round.iter_mut().for_each(|calls| calls.push(Call::Collective("MPI_Allreduce", None)));
    }
    framed(rng, "mesh", &round)
}

/// A line whose even and odd pairs of neighbours exchange in turns.
pub fn odd_even(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 9);
    let mut round = vec![Vec::new(); size];
    for phase in 0..2 {
        let mut once = vec![Vec::new(); size];
        for left in (phase..size - 1).step_by(2) {
            exchange(&mut once, left, left + 1, phase as u32);
            exchange(&mut once, left + 1, left, phase as u32);
        }
        repeat(&mut round, &once, rng.between(1, 2));
    }
    framed(rng, "odd_even", &round)
}

/// Cycles over two or three grids: all exchange with their neighbours in a ring, then random
/// subsets of them work on coarser grids, whose results they send to all neighbours.
pub fn multigrid(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(3, 8);
    let mut round = vec![Vec::new(); size];
    let fine = ring(&(0..size).collect::<Vec<_>>(), size, 1);
    repeat(&mut round, &fine, rng.between(1, 4));
    let mut members: Vec<usize> = (0..size).collect();
    for level in 2..=rng.between(2, 3) as u32 {
        shuffle(rng, &mut members);
        members.truncate(rng.between(1, members.len()));
        repeat(&mut round, &ring(&members, size, 2 * level), rng.between(1, 3));
        for &member in &members {
            exchange(&mut round, member, (member + 1) % size, 2 * level + 1);
            exchange(&mut round, member, (member + size - 1) % size, 2 * level + 1);
        }
    }
    repeat(&mut round, &fine, rng.between(0, 5));
    framed(rng, "multigrid", &round)
}

/// Everyone of a list receives from both neighbours in it, and sends to both.
fn ring(members: &[usize], size: usize, tag: u32) -> Program {
    let mut round = vec![Vec::new(); size];
    let count = members.len();
    for (index, &member) in members.iter().enumerate().filter(|_| count > 1) {
        let both = [members[(index + count - 1) % count], members[(index + 1) % count]];
        round[member].extend(both.map(|other| receive(other, tag)));
        round[member].extend(both.map(|other| send(other, tag)));
        round[member].push(Call::Wait);
    }
    round
}

/// Sweeps over planes through a grid, from its first corner to the last one, and sometimes back.
pub fn wavefront(rng: &mut Rng) -> KnownProgram {
    let sides = grid(rng);
    let size = sides.0 * sides.1;
    let mut round = vec![Vec::new(); size];
    for backwards in [false, true].into_iter().take(rng.between(1, 2)) {
        let mut plane = vec![Vec::new(); size];
        let mut sends = vec![Vec::new(); size];
        for (a, b) in neighbours(sides) {
            let (from, to) = if backwards { (b, a) } else { (a, b) };
            plane[to].push(receive(from, 3));
            sends[from].push(send(to, 3));
        }
        repeat(&mut plane, &sends, 1);
        repeat(&mut round, &plane, rng.between(1, 4));
    }
    if rng.one_in(2) {
        round.iter_mut().for_each(|calls| calls.push(Call::Collective("MPI_Barrier", None)));
    }
    framed(rng, "wavefront", &round)
}

/// A line in which the first process is some sends ahead: they come before the loop, and the
/// last receives behind it. Where nothing comes back, there are empty cuts, which are as many
/// iterations fewer; where something does, as many messages are in flight at each, if the order
/// of calls allows for no rotation without. Most iterations are common to both ends.
pub fn shifted_pipeline(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 5);
    let ahead = rng.between(1, 3);
    let times = rng.between(2 * ahead + 1, 9);
    let acknowledged = rng.one_in(2);
    let mut round = vec![Vec::new(); size];
    for rank in 1..size {
        exchange(&mut round, rank - 1, rank, 1);
        if acknowledged {
            exchange(&mut round, rank, rank - 1, 2);
        }
    }
    // Something that makes iterations of all longer than a single event.
    exchange(&mut round, size - 1, size - 1, 9);
    exchange(&mut round, 0, 0, 9);
    round.iter_mut().for_each(|calls| shuffle(rng, calls));
    let mut program = vec![Vec::new(); size];
    program[0].extend(vec![send(1, 1); ahead]);
    repeat(&mut program, &round, times);
    program[1].extend(vec![receive(0, 1); ahead]);
    let found = TrueLoop { may_cross: acknowledged, ..true_loop(&round, times - ahead, times + 1) };
    KnownProgram { kind: "shifted_pipeline", program, comms: no_comms(size), loops: vec![found] }
}

/// The same with several messages in an inner loop of each iteration.
pub fn shifted_sweeps(rng: &mut Rng) -> KnownProgram {
    let times = rng.between(5, 8);
    let mut inner = vec![Vec::new(); 2];
    exchange(&mut inner, 0, 1, 1);
    if rng.one_in(2) {
        exchange(&mut inner, 1, 0, 2);
    }
    if rng.one_in(2) {
        exchange(&mut inner, 0, 0, 9);
        exchange(&mut inner, 1, 1, 9);
    }
    inner.iter_mut().for_each(|calls| shuffle(rng, calls));
    let mut round = vec![Vec::new(); 2];
    repeat(&mut round, &inner, rng.between(2, 4));
    exchange(&mut round, 1, 0, 3);
    let mut program = vec![vec![send(1, 1)], Vec::new()];
    repeat(&mut program, &round, times);
    program[1].push(receive(0, 1));
    let found = TrueLoop { may_cross: true, ..true_loop(&round, times - 1, times + 1) };
    KnownProgram { kind: "shifted_sweeps", program, comms: no_comms(2), loops: vec![found] }
}

/// A grid with communicators for its rows and its columns, which all processes call by the same
/// numbers: messages and reductions in both.
pub fn split_communicators(rng: &mut Rng) -> KnownProgram {
    let (rows, columns) = (rng.between(2, 3), rng.between(2, 3));
    let size = rows * columns;
    let mut comms = no_comms(size);
    let mut round = vec![Vec::new(); size];
    let (in_rows, in_columns) = (rng.between(1, 3), rng.between(0, 2));
    for rank in 0..size {
        let (row, column) = (rank / columns, rank % columns);
        comms[rank].push((1, (0..columns).map(|column| row * columns + column).collect()));
        comms[rank].push((2, (0..rows).map(|row| row * columns + column).collect()));
        let ring = |comm, own: usize, count: usize| {
            let envelope = |peer: usize| Some(Envelope { peer: peer as i32, tag: 1 });
            let (to, from) = (envelope((own + 1) % count), envelope((own + count - 1) % count));
            [Message { comm, to, from: None }, Message { comm, to: None, from }].map(Call::Message)
        };
        (0..in_rows).for_each(|_| round[rank].extend(ring(1, column, columns)));
        round[rank].push(Call::CollectiveOn(1, "MPI_Allreduce"));
        (0..in_columns).for_each(|_| round[rank].extend(ring(2, row, rows)));
        round[rank].push(Call::CollectiveOn(2, "MPI_Allreduce"));
    }
    let times = rng.between(2, 6);
    let mut program = vec![vec![Call::Collective("MPI_Bcast", Some(0))]; size];
    repeat(&mut program, &round, times);
    let loops = vec![true_loop(&round, times, times)];
    KnownProgram { kind: "split_communicators", program, comms, loops }
}

fn from_anyone(tag: i32) -> Call {
    Call::Message(Message { comm: 0, to: None, from: Some(Envelope { peer: ANY, tag }) })
}

/// Pairs in which one receives from anyone, though only one other process sends; all of them
/// reduce, or are apart.
pub fn one_sender_to_anyone(rng: &mut Rng) -> KnownProgram {
    let pairs = rng.between(1, 3);
    let mut round = vec![Vec::new(); 2 * pairs];
    let messages = rng.between(1, 3);
    for pair in 0..pairs {
        let (from, to) = (2 * pair, 2 * pair + 1);
        let tag = if rng.one_in(4) { ANY } else { 1 };
        for _ in 0..messages {
            round[from].push(send(to, 1));
            round[to].push(from_anyone(tag));
        }
        exchange(&mut round, to, from, 2);
    }
    round.iter_mut().for_each(|calls| calls.push(Call::Collective("MPI_Allreduce", None)));
    KnownProgram { kind: "one_sender_to_anyone", ..framed(rng, "", &round) }
}

/// A process that receives from all others in whatever order, and answers them.
pub fn several_senders_to_anyone(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(3, 6);
    let mut round = vec![Vec::new(); size];
    for worker in 1..size {
        round[worker].push(send(0, 1));
        round[0].push(from_anyone(1));
    }
    for worker in 1..size {
        exchange(&mut round, 0, worker, 2);
    }
    framed(rng, "several_senders_to_anyone", &round)
}

fn random_round(rng: &mut Rng, size: usize, tags: usize, most: usize) -> Program {
    let mut round = vec![Vec::new(); size];
    for _ in 0..rng.between(1, most) {
        let (from, to) = (rng.below(size), rng.below(size));
        exchange(&mut round, from, to, rng.below(tags) as u32);
    }
    for calls in &mut round {
        shuffle(rng, calls);
        (0..rng.below(2)).for_each(|_| calls.push(Call::Wait));
    }
    round
}

/// Random messages of random processes, in any order on each; some exchange with nobody as well.
pub fn any_order(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 5);
    let mut round = random_round(rng, size, 2, 6);
    if rng.one_in(3) {
        let nobody = Some(Envelope { peer: NOBODY, tag: 5 });
        let to_nobody = Message { comm: 0, to: nobody, from: None };
        let rank = rng.below(size);
        if !round[rank].is_empty() {
            round[rank].push(Call::Message(to_nobody));
        }
    }
    framed(rng, "any_order", &round)
}

/// Two rounds in turns, with the second before the loop or the first behind it, or both: the
/// loops of processes with no part in one of them are written in another rotation.
pub fn rotated(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 5);
    let (first, second) = (random_round(rng, size, 1, 6), random_round(rng, size, 1, 6));
    let mut round = first.clone();
    repeat(&mut round, &second, 1);
    let times = rng.between(2, 6);
    let (before, behind) = (rng.below(2), rng.below(2));
    let mut program = vec![Vec::new(); size];
    repeat(&mut program, &second, before);
    repeat(&mut program, &round, times);
    repeat(&mut program, &first, behind);
    let most = times + 1;
    let loops = Vec::from_iter(is_one_iteration(&round).then(|| true_loop(&round, times, most)));
    KnownProgram { kind: "rotated", program, comms: no_comms(size), loops }
}

/// A ring in which everyone sends on, with something else in each iteration.
fn plain_ring(rng: &mut Rng, size: usize) -> Program {
    let mut round = ring(&(0..size).collect::<Vec<_>>(), size, 1);
    exchange(&mut round, 0, size - 1, 2);
    if rng.one_in(2) {
        exchange(&mut round, 1, 0, 2);
    }
    round
}

/// A message of the loop's channels before it that was never received: from then on the n-th
/// receive belongs to the send one earlier. An iteration may be lost, or one message be in flight.
pub fn lost_before(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 5);
    let round = plain_ring(rng, size);
    let times = rng.between(3, 7);
    let mut program = vec![Vec::new(); size];
    program[0].push(send(size - 1, if rng.one_in(2) { 1 } else { 2 }));
    repeat(&mut program, &round, times);
    let found = TrueLoop { may_cross: true, ..true_loop(&round, times - 1, times) };
    KnownProgram { kind: "lost_before", program, comms: no_comms(size), loops: vec![found] }
}

/// One call in the middle of a loop is missing.
pub fn lost_within(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 4);
    let mut program = vec![Vec::new(); size];
    let round = plain_ring(rng, size);
    repeat(&mut program, &round, rng.between(3, 8));
    let rank = rng.below(size);
    let at = rng.below(program[rank].len());
    program[rank].remove(at);
    KnownProgram { kind: "lost_within", program, comms: no_comms(size), loops: Vec::new() }
}

/// The trace of one process ends early. As much of the loop is left as it has iterations.
pub fn cut_off(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 4);
    let mut program = vec![Vec::new(); size];
    let round = plain_ring(rng, size);
    let times = rng.between(4, 8);
    repeat(&mut program, &round, times);
    let rank = rng.below(size);
    let left = rng.between(2 * round[rank].len(), program[rank].len());
    program[rank].truncate(left);
    let full = left / round[rank].len();
    let found = TrueLoop { may_cross: true, ..true_loop(&round, full, full + 1) };
    KnownProgram { kind: "cut_off", program, comms: no_comms(size), loops: vec![found] }
}

/// Something between two iterations that only one process or two do: a message to oneself, or an
/// exchange. The loops before and behind it have all iterations, if both have two.
pub fn split_by_local_event(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 5);
    let round = plain_ring(rng, size);
    let (before, behind) = (rng.between(2, 5), rng.between(2, 5));
    let mut program = vec![Vec::new(); size];
    repeat(&mut program, &round, before);
    let (from, to) = (rng.below(size), rng.below(size));
    // They name their communicator, so they are equal to nothing in the loop.
    let end = |peer: usize| Some(Envelope { peer: peer as i32, tag: 7 });
    program[from].push(Call::Message(Message { comm: 0, to: end(to), from: None }));
    program[to].push(Call::Message(Message { comm: 0, to: None, from: end(from) }));
    repeat(&mut program, &round, behind);
    let loops = vec![true_loop(&round, before + behind, before + behind)];
    KnownProgram { kind: "split_by_local_event", program, comms: no_comms(size), loops }
}

/// Tags that count the iterations.
pub fn counting_tags(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 6);
    let round = plain_ring(rng, size);
    let times = rng.between(3, 9);
    let mut program = vec![Vec::new(); size];
    for iteration in 0..times as u32 {
        let with_tag = |call: &Call| match *call {
            Call::Send(to, tag, bytes) => Call::Send(to, 10 * iteration + tag, bytes),
            Call::Receive(from, tag, bytes) => Call::Receive(from, 10 * iteration + tag, bytes),
            other => other,
        };
        for (calls, round) in program.iter_mut().zip(&round) {
            calls.extend(round.iter().map(with_tag));
        }
    }
    let loops = vec![true_loop(&round, times, times)];
    KnownProgram { kind: "counting_tags", program, comms: no_comms(size), loops }
}

/// Messages of several tags that are received in another order than they are sent.
pub fn tags_out_of_order(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 4);
    let tags: Vec<u32> = (0..rng.between(2, 3) as u32).collect();
    let mut round = vec![Vec::new(); size];
    for rank in 0..size {
        let next = (rank + 1) % size;
        let (mut sent, mut received) = (tags.clone(), tags.clone());
        shuffle(rng, &mut sent);
        shuffle(rng, &mut received);
        round[rank].extend(sent.into_iter().map(|tag| send(next, tag)));
        round[next].extend(received.into_iter().map(|tag| receive(rank, tag)));
    }
    framed(rng, "tags_out_of_order", &round)
}

/// Two groups of processes that never communicate, with loops of their own.
pub fn two_groups(rng: &mut Rng) -> KnownProgram {
    let generators: [Generator; 3] = [odd_even, counting_tags, rotated];
    let mut one = generators[rng.below(3)](rng);
    let mut other = generators[rng.below(3)](rng);
    // A collective operation is one of all processes.
    for program in [&mut one.program, &mut other.program] {
        let is_collective = |call: &Call| matches!(call, Call::Collective(..));
        program.iter_mut().for_each(|calls| calls.retain(|call| !is_collective(call)));
    }
    let first = one.program.len() as u32;
    let moved = |call: Call| match call {
        Call::Send(to, tag, bytes) => Call::Send(to + first, tag, bytes),
        Call::Receive(from, tag, bytes) => Call::Receive(from + first, tag, bytes),
        other => other,
    };
    one.program.extend(other.program.into_iter().map(|calls| calls.into_iter().map(moved).collect()));
    for mut found in other.loops {
        found.ranks.iter_mut().for_each(|rank| *rank += first as usize);
        one.loops.push(found);
    }
    KnownProgram { kind: "two_groups", comms: no_comms(one.program.len()), ..one }
}

/// Messages to oneself within iterations, or that are received only behind the loop: then no
/// iteration is closed.
pub fn messages_to_oneself(rng: &mut Rng) -> KnownProgram {
    let size = rng.between(2, 4);
    let round = plain_ring(rng, size);
    let times = rng.between(2, 6);
    let mut with_self = round.clone();
    let rank = rng.below(size);
    let received_behind = rng.one_in(2);
    with_self[rank].push(send(rank, 3));
    if !received_behind {
        with_self[rank].push(receive(rank, 3));
    }
    let mut program = vec![Vec::new(); size];
    repeat(&mut program, &with_self, times);
    if received_behind {
        program[rank].extend(vec![receive(rank, 3); times]);
    }
    let loops = Vec::from_iter((!received_behind).then(|| true_loop(&with_self, times, times)));
    KnownProgram { kind: "messages_to_oneself", program, comms: no_comms(size), loops }
}

/// A tiny program of two or three processes for enumerations: small loops of random rounds, where
/// sometimes a call is missing. All tags are equal.
pub fn tiny(rng: &mut Rng, longest: usize) -> Program {
    loop {
        let size = rng.between(2, 3);
        let mut program = vec![Vec::new(); size];
        for _ in 0..rng.between(1, 3) {
            let mut round = random_round(rng, size, 1, 3);
            if rng.one_in(3) {
                let inner = random_round(rng, size, 1, 2);
                repeat(&mut round, &inner, rng.between(2, 3));
            }
            repeat(&mut program, &round, rng.between(1, 4));
        }
        program.iter_mut().for_each(|calls| calls.retain(is_examined));
        if rng.one_in(4) {
            let calls = &mut program[rng.below(size)];
            if !calls.is_empty() {
                calls.remove(rng.below(calls.len()));
            }
        }
        if program.iter().all(|calls| calls.len() <= longest) {
            return program;
        }
    }
}
