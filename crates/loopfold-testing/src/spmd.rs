//! Programs of one text for all processes, and their execution.
//!
//! A program is written as a sequence of phases that all processes enter in the same order, with
//! branches by rank, loops, loops whose number of iterations depends on the rank, boundary
//! processes, nonblocking and collective calls, and pipelines whose iterations are shifted. Each
//! is safe under the strictest semantics, where a send waits for its receive. [`calls`] gives what
//! each process calls, [`execute`] executes such calls by the rules of MPI, slowly and obviously.

use crate::Rng;
use std::collections::{BTreeMap, HashMap};

/// A call of a process, with its fields in the order in which a recorder writes them. Negative
/// ranks are nobody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpmdCall {
    /// The call.
    pub name: &'static str,
    /// Its fields.
    pub fields: Vec<(&'static str, i64)>,
}

/// No process.
pub const NOBODY: i64 = -2;

impl SpmdCall {
    fn new(name: &'static str, fields: &[(&'static str, i64)]) -> Self {
        Self { name, fields: fields.to_vec() }
    }

    /// The value of a field.
    pub fn field(&self, key: &str) -> Option<i64> {
        self.fields.iter().find(|(known, _)| *known == key).map(|&(_, value)| value)
    }

    /// As a line of text.
    pub fn text(&self) -> String {
        let field = |&(key, value): &(&str, i64)| match (key, value) {
            ("dest" | "src", NOBODY) => format!(" {key}=none"),
            _ => format!(" {key}={value}"),
        };
        format!("{}{}", self.name, self.fields.iter().map(field).collect::<String>())
    }
}

/// A phase of a program.
#[derive(Clone, Debug)]
pub enum Phase {
    /// `MPI_Sendrecv` around a ring, at a distance.
    Ring(i64, Bytes),
    /// `MPI_Sendrecv` along a line: the ends have nobody.
    Line(i64, Bytes),
    /// Nonblocking exchange with both neighbours of a line, which the ends leave out.
    Borders(Bytes),
    /// Blocking: receive from the process before, send to the one behind.
    Pipeline(Bytes),
    /// Blocking exchange with the process whose rank differs in a bit.
    Butterfly(i64),
    /// A collective call, rooted or not.
    Collective(&'static str, Option<i64>),
    /// All others send to one process.
    Collect(i64, Bytes),
    /// Even processes exchange with the odd one behind, as often as their rank says.
    Pairs(i64),
    /// What only some processes do, alone.
    Local(i64),
    /// Messages that are received one iteration later than they are expected.
    Shifted(i64),
    /// A loop.
    Repeat(i64, Vec<Phase>),
}

/// The bytes of a message.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {
    /// The same for all.
    Same(i64),
    /// So many for each rank of the sender.
    ByRank(i64),
}

impl Bytes {
    fn of(self, sender: i64) -> i64 {
        match self {
            Bytes::Same(bytes) => bytes,
            Bytes::ByRank(bytes) => bytes * (sender + 1),
        }
    }
}

/// A random program for a number of processes.
pub fn random(rng: &mut Rng, size: i64) -> Vec<Phase> {
    phases(rng, size, 3)
}

fn phases(rng: &mut Rng, size: i64, depth: usize) -> Vec<Phase> {
    (0..rng.between(1, 3)).map(|_| phase(rng, size, depth)).collect()
}

fn phase(rng: &mut Rng, size: i64, depth: usize) -> Phase {
    let bytes = if rng.one_in(3) { Bytes::ByRank(8) } else { Bytes::Same(8 << rng.below(4)) };
    let rank = |rng: &mut Rng| rng.below(size as usize) as i64;
    match rng.below(if depth > 0 { 15 } else { 10 }) {
        0 => Phase::Ring(1 + rng.below(size as usize - 1) as i64, bytes),
        1 => Phase::Line(1 + rng.below(2) as i64, bytes),
        2 => Phase::Borders(bytes),
        3 => Phase::Pipeline(bytes),
        4 if size.count_ones() == 1 => Phase::Butterfly(1 << rng.below(size.ilog2() as usize)),
        4 => Phase::Borders(bytes),
        5 => Phase::Collective("MPI_Allreduce", None),
        6 => Phase::Collective("MPI_Bcast", Some(rank(rng))),
        7 => Phase::Collect(if rng.one_in(2) { 0 } else { rank(rng) }, bytes),
        8 => Phase::Pairs(rng.between(1, 3) as i64),
        9 => Phase::Local(rng.between(2, 3) as i64),
        10 => Phase::Shifted(rng.between(2, 30) as i64),
        _ => Phase::Repeat(rng.between(2, 30) as i64, phases(rng, size, depth - 1)),
    }
}

/// The calls of a process.
pub fn calls(program: &[Phase], rank: i64, size: i64) -> Vec<SpmdCall> {
    let mut calls = vec![SpmdCall::new("MPI_Init", &[])];
    emit(program, rank, size, &mut 0, &mut calls);
    calls.push(SpmdCall::new("MPI_Finalize", &[]));
    calls
}

fn emit(program: &[Phase], rank: i64, size: i64, tag: &mut i64, out: &mut Vec<SpmdCall>) {
    for phase in program {
        // Every phase has a tag of its own, the same in every iteration.
        *tag += 1;
        match phase {
            Phase::Repeat(times, body) => {
                let first = *tag;
                for _ in 0..*times {
                    *tag = first;
                    emit(body, rank, size, tag, out);
                }
            }
            simple => emit_phase(simple, Here { rank, size, tag: *tag }, out),
        }
    }
}

#[derive(Clone, Copy)]
struct Here {
    rank: i64,
    size: i64,
    tag: i64,
}

impl Here {
    fn inside(self, rank: i64) -> Option<i64> {
        Some(rank).filter(|rank| (0..self.size).contains(rank))
    }

    fn send(self, name: &'static str, dest: i64, bytes: Bytes) -> SpmdCall {
        let fields = [("dest", dest), ("tag", self.tag), ("bytes", bytes.of(self.rank)), ("comm", 0)];
        SpmdCall::new(name, &fields)
    }

    fn receive(self, name: &'static str, src: i64, bytes: Bytes) -> SpmdCall {
        let fields = [("src", src), ("tag", self.tag), ("bytes", bytes.of(src)), ("comm", 0)];
        SpmdCall::new(name, &fields)
    }

    fn sendrecv(self, dest: Option<i64>, src: Option<i64>, bytes: Bytes) -> SpmdCall {
        let (dest, src) = (dest.unwrap_or(NOBODY), src.unwrap_or(NOBODY));
        let (tag, from) = (self.tag, src.max(0));
        let fields = [
            ("dest", dest),
            ("src", src),
            ("tag", tag),
            ("recvtag", tag),
            ("bytes", bytes.of(self.rank)),
            ("recvbytes", bytes.of(from)),
            ("comm", 0),
        ];
        SpmdCall::new("MPI_Sendrecv", &fields)
    }
}

fn wait(name: &'static str, count: i64) -> SpmdCall {
    SpmdCall::new(name, &[("n", count)])
}

fn emit_phase(phase: &Phase, here: Here, out: &mut Vec<SpmdCall>) {
    let Here { rank, size, .. } = here;
    let plain = Bytes::Same(16);
    match *phase {
        Phase::Ring(distance, bytes) => {
            let (next, before) = ((rank + distance) % size, (rank + size - distance) % size);
            out.push(here.sendrecv(Some(next), Some(before), bytes));
        }
        Phase::Line(distance, bytes) => {
            out.push(here.sendrecv(here.inside(rank + distance), here.inside(rank - distance), bytes));
        }
        Phase::Borders(bytes) => {
            let peers: Vec<i64> =
                [rank - 1, rank + 1].into_iter().filter_map(|peer| here.inside(peer)).collect();
            out.extend(peers.iter().map(|&peer| here.receive("MPI_Irecv", peer, bytes)));
            out.extend(peers.iter().map(|&peer| here.send("MPI_Isend", peer, bytes)));
            out.push(wait("MPI_Waitall", 2 * peers.len() as i64));
        }
        Phase::Pipeline(bytes) => {
            out.extend(here.inside(rank - 1).map(|peer| here.receive("MPI_Recv", peer, bytes)));
            out.extend(here.inside(rank + 1).map(|peer| here.send("MPI_Send", peer, bytes)));
        }
        Phase::Butterfly(bit) => pair_exchange(here, rank ^ bit, rank & bit == 0, out),
        Phase::Collective(name, root) => {
            let mut fields: Vec<(&'static str, i64)> = root.map(|root| ("root", root)).into_iter().collect();
            fields.extend([("bytes", 8), ("comm", 0)]);
            out.push(SpmdCall::new(name, &fields));
        }
        Phase::Collect(root, bytes) if rank == root => {
            let others = (0..size).filter(|&other| other != root);
            out.extend(others.map(|other| here.receive("MPI_Recv", other, bytes)));
        }
        Phase::Collect(root, bytes) => out.push(here.send("MPI_Send", root, bytes)),
        Phase::Pairs(most) => {
            let (peer, is_first) = (rank ^ 1, rank % 2 == 0);
            if here.inside(peer).is_some() {
                (0..=rank / 2 % most).for_each(|_| pair_exchange(here, peer, is_first, out));
            }
        }
        Phase::Local(divisor) => {
            if rank % divisor != 0 {
                (0..rank).for_each(|_| out.push(SpmdCall::new("MPI_Comm_rank", &[("comm", 0)])));
            }
        }
        Phase::Shifted(times) => {
            let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
            out.push(here.receive("MPI_Irecv", before, plain));
            for nth in 0..times {
                out.push(here.send("MPI_Isend", next, plain));
                out.push(wait("MPI_Wait", 1));
                if nth + 1 < times {
                    out.push(here.receive("MPI_Irecv", before, plain));
                }
                out.push(wait("MPI_Wait", 1));
            }
        }
        Phase::Repeat(..) => {}
    }
}

/// A blocking exchange: one sends first.
fn pair_exchange(here: Here, peer: i64, is_first: bool, out: &mut Vec<SpmdCall>) {
    let bytes = Bytes::Same(24);
    let both = [here.send("MPI_Send", peer, bytes), here.receive("MPI_Recv", peer, bytes)];
    let [send, receive] = both;
    out.extend(if is_first { [send, receive] } else { [receive, send] });
}

/// What a process waits for.
#[derive(Clone, Debug)]
struct Posted {
    is_send: bool,
    peer: i64,
    tag: i64,
    bytes: i64,
    is_done: bool,
}

/// A message that is posted: its process, and its place among those of the process.
type Place = (usize, usize);

/// A process that executes its calls.
#[derive(Default)]
struct Process {
    next: usize,
    /// Whether the call at `next` has posted its messages.
    is_posted: bool,
    /// All messages it posted.
    posted: Vec<Posted>,
    /// Requests that no call has completed, by their place among the posted.
    pending: Vec<usize>,
    /// What the current call waits for.
    waits: Vec<usize>,
    /// Collective calls that it has reached.
    collectives: usize,
}

/// Executes the calls of all processes: sends wait for their receives, receives for their sends,
/// collective calls for everybody. Calls that are not known do nothing. Returns how many messages
/// there were, or what went wrong: a deadlock, a message of which nobody has the other end, bytes
/// that differ, different collective calls.
pub fn execute(programs: &[Vec<SpmdCall>]) -> Result<usize, String> {
    let mut processes: Vec<Process> = programs.iter().map(|_| Process::default()).collect();
    let mut collectives: Vec<(SpmdCall, usize)> = Vec::new();
    loop {
        let mut moved = false;
        for rank in 0..programs.len() {
            while step(rank, programs, &mut processes, &mut collectives)? {
                moved = true;
                match_messages(&mut processes)?;
            }
        }
        if !moved {
            break;
        }
    }
    for (rank, process) in processes.iter().enumerate() {
        if let Some(call) = programs[rank].get(process.next) {
            return Err(format!("rank {rank} waits in {} ({})", process.next, call.text()));
        }
        if let Some(left) = process.posted.iter().find(|posted| !posted.is_done) {
            return Err(format!("rank {rank} has a message without another end: {left:?}"));
        }
    }
    Ok(processes.iter().map(|process| process.posted.len()).sum::<usize>() / 2)
}

/// Lets a process begin or end its call. Returns whether it could.
fn step(
    rank: usize,
    programs: &[Vec<SpmdCall>],
    processes: &mut [Process],
    collectives: &mut Vec<(SpmdCall, usize)>,
) -> Result<bool, String> {
    let process = &mut processes[rank];
    let Some(call) = programs[rank].get(process.next) else { return Ok(false) };
    let is_collective = ["MPI_Allreduce", "MPI_Bcast", "MPI_Barrier"].contains(&call.name);
    if !process.is_posted {
        begin(process, call);
        process.is_posted = true;
        if is_collective {
            let nth = process.collectives;
            process.collectives += 1;
            if nth == collectives.len() {
                collectives.push((call.clone(), 0));
            }
            if collectives[nth].0 != *call {
                return Err(format!(
                    "rank {rank} calls {}, others {}",
                    call.text(),
                    collectives[nth].0.text()
                ));
            }
            collectives[nth].1 += 1;
        }
        return Ok(true);
    }
    let is_ready = match is_collective {
        true => collectives[process.collectives - 1].1 == programs.len(),
        false => process.waits.iter().all(|&posted| process.posted[posted].is_done),
    };
    if is_ready {
        process.next += 1;
        process.is_posted = false;
        process.waits.clear();
    }
    Ok(is_ready)
}

fn begin(process: &mut Process, call: &SpmdCall) {
    let field = |key| call.field(key).unwrap_or(0);
    let mut post = |is_send: bool, peer: i64, tag: i64, bytes: i64| {
        if peer >= 0 {
            process.posted.push(Posted { is_send, peer, tag, bytes, is_done: false });
        } else {
            process.posted.push(Posted { is_send, peer, tag, bytes, is_done: true });
        }
        process.posted.len() - 1
    };
    match call.name {
        "MPI_Send" | "MPI_Isend" => {
            let posted = post(true, field("dest"), field("tag"), field("bytes"));
            if call.name == "MPI_Send" { process.waits.push(posted) } else { process.pending.push(posted) }
        }
        "MPI_Recv" | "MPI_Irecv" => {
            let posted = post(false, field("src"), field("tag"), field("bytes"));
            if call.name == "MPI_Recv" { process.waits.push(posted) } else { process.pending.push(posted) }
        }
        "MPI_Sendrecv" => {
            let send = post(true, field("dest"), field("tag"), field("bytes"));
            let receive = post(false, field("src"), field("recvtag"), field("recvbytes"));
            process.waits.extend([send, receive]);
        }
        "MPI_Wait" | "MPI_Waitall" => {
            let count = (field("n") as usize).min(process.pending.len());
            process.waits = process.pending.drain(..count).collect();
        }
        _ => {}
    }
}

/// Joins the ends of messages: the n-th of a sender, receiver and tag with the n-th.
fn match_messages(processes: &mut [Process]) -> Result<(), String> {
    let mut ends: BTreeMap<(i64, i64, i64), [Vec<Place>; 2]> = BTreeMap::new();
    for (rank, process) in processes.iter().enumerate() {
        for (place, posted) in process.posted.iter().enumerate().filter(|(_, posted)| !posted.is_done) {
            let (own, peer) = (rank as i64, posted.peer);
            let key = if posted.is_send { (own, peer, posted.tag) } else { (peer, own, posted.tag) };
            ends.entry(key).or_default()[usize::from(!posted.is_send)].push((rank, place));
        }
    }
    for [sends, receives] in ends.values() {
        for (&(from, sent), &(to, received)) in sends.iter().zip(receives) {
            let (send, receive) = (processes[from].posted[sent].bytes, processes[to].posted[received].bytes);
            if send != receive {
                return Err(format!("rank {from} sends {send} bytes to rank {to}, which expects {receive}"));
            }
            processes[from].posted[sent].is_done = true;
            processes[to].posted[received].is_done = true;
        }
    }
    Ok(())
}

/// How many messages each sender sends to each receiver under each tag, of what each process calls.
pub fn traffic(programs: &[Vec<SpmdCall>]) -> HashMap<(i64, i64, i64), usize> {
    let mut counts = HashMap::new();
    for (rank, calls) in programs.iter().enumerate() {
        for call in calls {
            if let (Some(dest), Some(tag)) = (call.field("dest"), call.field("tag")) {
                *counts.entry((rank as i64, dest, tag)).or_insert(0) += usize::from(dest >= 0);
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_safe_as_they_are_written() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let size = rng.between(2, 9) as i64;
            let program = random(&mut rng, size);
            let calls: Vec<Vec<SpmdCall>> = (0..size).map(|rank| calls(&program, rank, size)).collect();
            if calls.iter().map(Vec::len).sum::<usize>() < 5_000 {
                assert_eq!(execute(&calls).err(), None, "{seed}");
            }
        }
    }

    #[test]
    fn mistakes_are_found() {
        let call = |name, fields: &[(&'static str, i64)]| SpmdCall::new(name, fields);
        let send = |dest| call("MPI_Send", &[("dest", dest), ("tag", 0), ("bytes", 8)]);
        let receive = |src| call("MPI_Recv", &[("src", src), ("tag", 0), ("bytes", 8)]);
        assert_eq!(execute(&[vec![send(1)], vec![receive(0)]]), Ok(1));
        // Both send first: safe only if messages are buffered.
        assert!(execute(&[vec![send(1), receive(1)], vec![send(0), receive(0)]]).is_err());
        assert!(execute(&[vec![send(1)], vec![]]).is_err());
        let larger = call("MPI_Recv", &[("src", 0), ("tag", 0), ("bytes", 9)]);
        assert!(execute(&[vec![send(1)], vec![larger]]).is_err());
        let barrier = || call("MPI_Barrier", &[]);
        assert_eq!(execute(&[vec![barrier()], vec![barrier()]]), Ok(0));
        assert!(execute(&[vec![barrier()], vec![]]).is_err());
    }
}
