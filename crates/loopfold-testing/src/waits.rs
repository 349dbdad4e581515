//! Programs of processes that compute, send, receive and meet, with times and the waits that
//! these times contain by construction.
//!
//! The actions of a program are listed in an order in which they can be executed one after the
//! other, so that the clocks of the processes are all that a simulation needs. Messages and
//! operations take no time but that of waiting: a call leaves when what it waits for has happened.

use crate::Rng;

/// What kind of event a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any other call.
    Plain,
    /// A function is entered.
    Enter,
    /// A function is left.
    Leave,
    /// A message is sent.
    Send,
    /// A message is received.
    Receive,
    /// A collective operation.
    Collective,
}

/// A call of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedCall {
    /// Its name.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// Its arguments.
    pub fields: Vec<(&'static str, i64)>,
    /// When it is entered.
    pub start: i64,
    /// How long it lasts.
    pub duration: i64,
}

/// A wait of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrueWait {
    /// What is waited for.
    pub class: &'static str,
    /// The process that waits.
    pub waiting: usize,
    /// The process that it waits for.
    pub cause: usize,
    /// How long.
    pub time: i64,
    /// Which of its calls.
    pub call: usize,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// The calls of each process.
    pub calls: Vec<Vec<TimedCall>>,
    /// The members of each communicator.
    pub comms: Vec<Vec<usize>>,
    /// All waits.
    pub waits: Vec<TrueWait>,
}

/// What ends a wait: the class, the time and the process.
type End = Option<(&'static str, i64, usize)>;

/// A step of a program. Processes and communicators are numbers.
#[derive(Clone, Debug)]
pub enum Action {
    /// A process computes up to so long.
    Compute(usize, usize),
    /// A function is entered, or left.
    Function(usize, &'static str, bool),
    /// A message with a tag, from one to another; buffered, or not.
    Message(usize, usize, i64, bool),
    /// The same with a nonblocking send, receive, or both; the receive comes first.
    Nonblocking(usize, usize, i64, bool, bool),
    /// Two processes exchange messages in one call each.
    Exchange(usize, usize, i64),
    /// The oldest requests of a process complete, so many or all.
    Wait(usize, Option<usize>),
    /// The newest request completes.
    WaitNewest(usize),
    /// A collective operation on a communicator, with the index of its root; nonblocking, or not.
    Collective(&'static str, usize, usize, bool),
}

/// The state of a simulation.
#[derive(Debug, Default)]
struct Simulation {
    clocks: Vec<i64>,
    requests: Vec<Vec<End>>,
    done: Simulated,
}

/// Executes actions; `rng` gives the times of computing.
pub fn simulate(actions: &[Action], processes: usize, comms: Vec<Vec<usize>>, rng: &mut Rng) -> Simulated {
    let mut simulation = Simulation {
        clocks: vec![0; processes],
        requests: vec![Vec::new(); processes],
        done: Simulated { calls: vec![Vec::new(); processes], comms, waits: Vec::new() },
    };
    for action in actions {
        simulation.execute(action, rng);
    }
    simulation.done
}

impl Simulation {
    /// A call of a process, which waits for the last of these ends.
    fn call(
        &mut self,
        process: usize,
        (name, kind): (&'static str, Kind),
        fields: &[(&'static str, i64)],
        ends: &[End],
    ) {
        let enter = self.clocks[process];
        let mut longest: End = None;
        for &(class, time, cause) in ends.iter().flatten() {
            if time > longest.map_or(enter, |(_, longest, _)| longest) {
                longest = Some((class, time, cause));
            }
        }
        let leave = longest.map_or(enter, |(_, time, _)| time);
        if let Some((class, time, cause)) = longest {
            let call = self.done.calls[process].len();
            self.done.waits.push(TrueWait { class, waiting: process, cause, time: time - enter, call });
        }
        let fields = fields.to_vec();
        self.done.calls[process].push(TimedCall {
            name,
            kind,
            fields,
            start: enter,
            duration: leave - enter,
        });
        self.clocks[process] = leave;
    }

    fn execute(&mut self, action: &Action, rng: &mut Rng) {
        match *action {
            Action::Compute(process, most) => self.clocks[process] += rng.below(most + 1) as i64,
            Action::Function(process, name, enters) => {
                let kind = if enters { Kind::Enter } else { Kind::Leave };
                self.call(process, (name, kind), &[], &[]);
            }
            Action::Message(from, to, tag, buffered) => {
                let (sent, received) = (self.clocks[from], self.clocks[to]);
                let late_receiver = if buffered { None } else { Some(("late receiver", received, to)) };
                self.call(from, ("MPI_Send", Kind::Send), &message("dest", to, tag), &[late_receiver]);
                let late_sender = Some(("late sender", sent, from));
                self.call(to, ("MPI_Recv", Kind::Receive), &message("src", from, tag), &[late_sender]);
            }
            Action::Nonblocking(from, to, tag, isend, irecv) => self.nonblocking(from, to, tag, isend, irecv),
            Action::Exchange(a, b, tag) => {
                for (own, other, time) in [(a, b, self.clocks[b]), (b, a, self.clocks[a])] {
                    let fields = [("dest", other as i64), ("src", other as i64), ("tag", tag)];
                    let ends = [Some(("late sender", time, other)), Some(("late receiver", time, other))];
                    self.call(own, ("MPI_Sendrecv", Kind::Plain), &fields, &ends);
                }
            }
            Action::Wait(process, count) => {
                let pending = self.requests[process].len();
                let count = count.unwrap_or(pending).min(pending);
                let ends: Vec<End> = self.requests[process].drain(..count).collect();
                let fields = [("n", count as i64)];
                self.call(process, ("MPI_Waitall", Kind::Plain), &fields, &ends);
            }
            Action::WaitNewest(process) => {
                let Some(end) = self.requests[process].pop() else { return };
                let done = self.requests[process].len();
                let fields = [("n", 1), ("done", done as i64)];
                let fields = if done == 0 { &fields[..1] } else { &fields[..] };
                self.call(process, ("MPI_Wait", Kind::Plain), fields, &[end]);
            }
            Action::Collective(name, comm, root, nonblocking) => {
                self.collective(name, comm, root, nonblocking)
            }
        }
    }

    fn nonblocking(&mut self, from: usize, to: usize, tag: i64, isend: bool, irecv: bool) {
        let (sent, received) = (self.clocks[from], self.clocks[to]);
        let (late_sender, late_receiver) =
            (Some(("late sender", sent, from)), Some(("late receiver", received, to)));
        if irecv {
            self.call(to, ("MPI_Irecv", Kind::Receive), &message("src", from, tag), &[]);
            self.requests[to].push(late_sender);
        } else {
            self.call(to, ("MPI_Recv", Kind::Receive), &message("src", from, tag), &[late_sender]);
        }
        if isend {
            self.call(from, ("MPI_Isend", Kind::Send), &message("dest", to, tag), &[]);
            self.requests[from].push(late_receiver);
        } else {
            self.call(from, ("MPI_Send", Kind::Send), &message("dest", to, tag), &[late_receiver]);
        }
    }

    fn collective(&mut self, name: &'static str, comm: usize, root: usize, nonblocking: bool) {
        let members = self.done.comms[comm].clone();
        let root = root % members.len();
        let enters: Vec<i64> = members.iter().map(|&member| self.clocks[member]).collect();
        let last = |among: &[usize]| {
            let times = among.iter().map(|&index| (enters[index], members[index]));
            times.max_by_key(|&(time, rank)| (time, std::cmp::Reverse(rank)))
        };
        let everyone: Vec<usize> = (0..members.len()).collect();
        let others: Vec<usize> = everyone.iter().copied().filter(|&index| index != root).collect();
        let ends: Vec<End> = everyone
            .iter()
            .map(|&index| match name {
                "MPI_Barrier" | "MPI_Ibarrier" => {
                    last(&everyone).map(|(time, rank)| ("wait at barrier", time, rank))
                }
                "MPI_Allreduce" | "MPI_Ialltoall" => {
                    last(&everyone).map(|(time, rank)| ("wait at N×N", time, rank))
                }
                "MPI_Bcast" | "MPI_Ibcast" => {
                    (index != root).then(|| ("late broadcast", enters[root], members[root]))
                }
                "MPI_Reduce" => {
                    let first = others.iter().map(|&index| (enters[index], members[index])).min();
                    first.filter(|_| index == root).map(|(time, rank)| ("early reduce", time, rank))
                }
                _ => last(&everyone[..index]).map(|(time, rank)| ("early scan", time, rank)),
            })
            .collect();
        let has_root = matches!(name, "MPI_Bcast" | "MPI_Ibcast" | "MPI_Reduce");
        for (&member, &end) in members.iter().zip(&ends) {
            let mut fields = vec![("root", root as i64), ("bytes", 8), ("comm", comm as i64)];
            fields.drain(..usize::from(!has_root));
            match nonblocking {
                true => {
                    self.call(member, (name, Kind::Collective), &fields, &[]);
                    self.requests[member].push(end);
                }
                false => self.call(member, (name, Kind::Collective), &fields, &[end]),
            }
        }
        if name == "MPI_Reduce" {
            self.stay(members[root], enters.iter().copied().max().unwrap_or(0));
        }
    }

    /// The last call of a process leaves no earlier than this.
    fn stay(&mut self, process: usize, until: i64) {
        if let Some(call) = self.done.calls[process].last_mut() {
            call.duration = call.duration.max(until - call.start);
            self.clocks[process] = call.start + call.duration;
        }
    }
}

fn message(key: &'static str, peer: usize, tag: i64) -> Vec<(&'static str, i64)> {
    vec![(key, peer as i64), ("tag", tag), ("bytes", 8), ("comm", 0)]
}

/// A random program of loops in loops, in which all requests complete.
pub fn random(rng: &mut Rng) -> Simulated {
    let processes = rng.between(2, 5);
    let mut comms: Vec<Vec<usize>> = vec![(0..processes).collect()];
    let mut some: Vec<usize> = (0..processes).filter(|_| rng.one_in(2)).collect();
    if rng.one_in(2) {
        some.reverse();
    }
    if some.len() > 1 {
        comms.push(some);
    }
    let mut actions = Vec::new();
    for _ in 0..rng.between(1, 3) {
        let mut body = Vec::new();
        for _ in 0..rng.between(1, 3) {
            let inner: Vec<Action> =
                (0..rng.between(1, 3)).flat_map(|_| random_actions(rng, processes, comms.len())).collect();
            (0..rng.between(1, 3)).for_each(|_| body.extend_from_slice(&inner));
        }
        if rng.one_in(2) {
            body.extend((0..processes).map(|process| Action::Wait(process, None)));
        }
        (0..rng.between(1, 5)).for_each(|_| actions.extend_from_slice(&body));
    }
    actions.extend((0..processes).map(|process| Action::Wait(process, None)));
    simulate(&actions, processes, comms, rng)
}

fn random_actions(rng: &mut Rng, processes: usize, comms: usize) -> Vec<Action> {
    let from = rng.below(processes);
    let to = (from + rng.between(1, processes - 1)) % processes;
    let tag = rng.below(2) as i64;
    let mut actions: Vec<Action> = (0..processes).map(|process| Action::Compute(process, 50)).collect();
    match rng.below(10) {
        0 | 1 => actions.push(Action::Message(from, to, tag, rng.one_in(2))),
        2 | 3 => actions.push(Action::Nonblocking(from, to, tag, rng.one_in(2), rng.one_in(2))),
        4 => actions.push(Action::Exchange(from, to, tag)),
        5 => actions.push(Action::Wait(from, Some(rng.between(1, 3)))),
        6 => actions.push(Action::WaitNewest(from)),
        7 => actions.extend([
            Action::Function(from, "solve", true),
            Action::Message(from, to, tag, false),
            Action::Function(from, "solve", false),
        ]),
        8 => {
            let names = ["MPI_Ibarrier", "MPI_Ibcast", "MPI_Ialltoall"];
            actions.push(Action::Collective(names[rng.below(3)], rng.below(comms), rng.below(8), true));
        }
        _ => {
            let names = ["MPI_Barrier", "MPI_Allreduce", "MPI_Bcast", "MPI_Reduce", "MPI_Scan"];
            actions.push(Action::Collective(names[rng.below(5)], rng.below(comms), rng.below(8), false));
        }
    }
    actions
}

/// A stencil on a ring: in each step every process computes, exchanges messages with its
/// neighbours without blocking, and every tenth step ends with a reduction.
pub fn ring(processes: usize, steps: usize, rng: &mut Rng) -> Simulated {
    let mut actions = Vec::new();
    for step in 0..steps {
        actions.extend((0..processes).map(|process| Action::Compute(process, 1000)));
        for process in 0..processes {
            actions.push(Action::Nonblocking(process, (process + 1) % processes, 1, true, true));
        }
        for process in 0..processes {
            actions.push(Action::Nonblocking((process + 1) % processes, process, 2, true, true));
        }
        actions.extend((0..processes).map(|process| Action::Wait(process, None)));
        if step % 10 == 9 {
            actions.push(Action::Collective("MPI_Allreduce", 0, 0, false));
        }
    }
    simulate(&actions, processes, vec![(0..processes).collect()], rng)
}
