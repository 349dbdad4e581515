//! Executes a program by the rules of MPI, to be sure that it ends.
//!
//! The n-th send of a channel is received by its n-th receive, so that counters are enough: a
//! receive is complete when as many sends were posted, a send under strict semantics when as many
//! receives were. A process that has to wait is run again when the other side of one of its
//! channels moves. O(calls).
//!
//! Where processes receive from anyone (`farm`), what they receive depends on who is fast. Such a
//! program is executed twice: the message that came first is received, and the one that came last.

use super::operations::{NOBODY, Operation, OperationKind, Operations};
use super::program::{Program, Walk};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// When a send is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// When its receive was posted: the strictest case.
    Strict,
    /// At once.
    Buffered,
}

/// Which message is received from anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    First,
    Last,
}

/// How an execution ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// The most requests that a process had pending.
    pub(super) most_pending: usize,
    /// Channels on which not as much was sent as received, and operations that lack processes.
    pub(super) unmatched: usize,
}

/// What a process waits for: the channel, the side that it is on, and which one it is.
#[derive(Clone, Copy, Debug)]
struct Need {
    channel: usize,
    side: Side,
    nth: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Send,
    Receive,
    Collective,
}

struct Process<'a> {
    walk: Walk<'a>,
    pending: Vec<Vec<Need>>,
    needs: Vec<Need>,
    /// The mailbox in which a message has to be, and whether it is taken.
    mailbox: Option<(usize, bool)>,
    /// The channel of the last message from a mailbox.
    sender: Option<usize>,
    is_ended: bool,
}

struct Execution<'a> {
    operations: &'a Operations,
    sends: Sends,
    order: Order,
    /// The channels of the messages in each mailbox, as they came.
    arrived: HashMap<usize, VecDeque<usize>>,
    /// Sends and receives posted on each channel.
    posted: Vec<[u64; 2]>,
    /// For each collective channel and process, how many operations it has begun.
    begun: HashMap<(usize, usize), u64>,
    /// How many processes have begun each of the operations that are not complete, and how many
    /// are complete.
    complete: Vec<(u64, VecDeque<usize>)>,
    /// Processes that wait for a channel.
    waiting: Vec<Vec<usize>>,
    ready: Vec<usize>,
    ended: Ended,
}

/// Executes a program. Returns what keeps it from its end, if something does.
pub(super) fn execute(
    program: &Program,
    operations: &Operations,
    sends: Sends,
) -> std::result::Result<Ended, String> {
    let first = execute_in(Order::First, program, operations, sends)?;
    if operations.farms.is_empty() {
        return Ok(first);
    }
    let last = execute_in(Order::Last, program, operations, sends)?;
    Ok(Ended {
        most_pending: first.most_pending.max(last.most_pending),
        unmatched: first.unmatched.max(last.unmatched),
    })
}

fn execute_in(
    order: Order,
    program: &Program,
    operations: &Operations,
    sends: Sends,
) -> std::result::Result<Ended, String> {
    let channels = operations.channels();
    let mut execution = Execution {
        operations,
        sends,
        order,
        arrived: HashMap::new(),
        posted: vec![[0, 0]; channels],
        begun: HashMap::new(),
        complete: vec![Default::default(); channels],
        waiting: vec![Vec::new(); channels],
        ready: (0..program.processes).rev().collect(),
        ended: Ended::default(),
    };
    let process = |process| Process {
        walk: program.walk(process),
        pending: Vec::new(),
        needs: Vec::new(),
        mailbox: None,
        sender: None,
        is_ended: false,
    };
    let mut processes: Vec<Process<'_>> = (0..program.processes).map(process).collect();
    while let Some(next) = execution.ready.pop() {
        execution.run(next, &mut processes[next]);
    }
    if let Some(stuck) = processes.iter().position(|process| !process.is_ended) {
        return Err(format!("rank {stuck} would wait for ever"));
    }
    let messages = execution.posted.iter().filter(|[sends, receives]| sends != receives).count();
    let collectives = execution.complete.iter().filter(|(_, counts)| !counts.is_empty()).count();
    execution.ended.unmatched = messages + collectives;
    Ok(execution.ended)
}

impl Execution<'_> {
    /// Runs a process until it has to wait.
    fn run(&mut self, number: usize, process: &mut Process<'_>) {
        loop {
            process.needs.retain(|&need| !self.is_met(need));
            if let Some(need) = process.needs.first() {
                self.waiting[need.channel].push(number);
                return;
            }
            if let Some((mailbox, is_taken)) = process.mailbox {
                let Some(channel) = self.message_in(mailbox) else {
                    self.waiting[mailbox].push(number);
                    return;
                };
                (process.mailbox, process.sender) = (None, Some(channel));
                if is_taken {
                    self.take(channel);
                }
            }
            let Some((node, _)) = process.walk.next() else {
                process.is_ended = true;
                return;
            };
            if let Some(operation) = self.operations.get(node, number) {
                self.begin(number, process, operation);
            }
        }
    }

    fn is_met(&self, need: Need) -> bool {
        match need.side {
            _ if need.channel == NOBODY => true,
            Side::Send if self.sends == Sends::Buffered => true,
            Side::Send => self.posted[need.channel][1] > need.nth,
            Side::Receive => self.posted[need.channel][0] > need.nth,
            Side::Collective => self.complete[need.channel].0 > need.nth,
        }
    }

    fn begin(&mut self, number: usize, process: &mut Process<'_>, operation: &Operation) {
        let mut needs: Vec<Need> = Vec::new();
        needs.extend(operation.receives.iter().map(|&channel| self.post(channel, Side::Receive)));
        needs.extend(operation.sends.iter().map(|&channel| self.post(channel, Side::Send)));
        needs.extend(operation.collective.map(|channel| self.take_part(channel, number)));
        if let Some(farm) =
            operation.reply.and(process.sender).and_then(|sender| self.operations.farms.get(&sender))
        {
            needs.push(self.post(farm.back, Side::Send));
        }
        match &operation.kind {
            OperationKind::Blocking => process.needs = needs,
            OperationKind::Posting => process.pending.extend(needs.into_iter().map(|need| vec![need])),
            OperationKind::PostingOne => process.pending.push(needs),
            OperationKind::Waiting(count) => {
                let count = (*count).min(process.pending.len());
                process.needs = process.pending.drain(..count).flatten().collect();
            }
            OperationKind::WaitingFor(places) => {
                let mut place = 0;
                let needs = &mut process.needs;
                process.pending.retain(|request| {
                    place += 1;
                    let is_done = places.contains(&(place - 1));
                    needs.extend(request.iter().filter(|_| is_done));
                    !is_done
                });
            }
            OperationKind::Probing(channel) => {
                let nth = self.posted[*channel][1];
                process.needs = vec![Need { channel: *channel, side: Side::Receive, nth }];
            }
            OperationKind::ProbingAnyone(mailbox) => process.mailbox = Some((*mailbox, false)),
            OperationKind::TakingFromAnyone(mailbox) => process.mailbox = Some((*mailbox, true)),
            OperationKind::TakingProbed => {
                if let Some(channel) = process.sender {
                    self.take(channel);
                }
            }
        }
        self.ended.most_pending = self.ended.most_pending.max(process.pending.len());
    }

    /// The channel of the message that is received next.
    fn message_in(&self, mailbox: usize) -> Option<usize> {
        let arrived = self.arrived.get(&mailbox)?;
        match self.order {
            Order::First => arrived.front().copied(),
            Order::Last => arrived.back().copied(),
        }
    }

    /// Takes a message of a channel out of its mailbox.
    fn take(&mut self, channel: usize) {
        let Some(farm) = self.operations.farms.get(&channel) else { return };
        let Some(arrived) = self.arrived.get_mut(&farm.mailbox) else { return };
        let place = match self.order {
            Order::First => arrived.iter().position(|&one| one == channel),
            Order::Last => arrived.iter().rposition(|&one| one == channel),
        };
        arrived.remove(place.unwrap_or(arrived.len()));
        self.post(channel, Side::Receive);
    }

    fn post(&mut self, channel: usize, side: Side) -> Need {
        if channel == NOBODY {
            return Need { channel, side, nth: 0 };
        }
        if let Some(farm) = self.operations.farms.get(&channel).filter(|_| side == Side::Send) {
            self.arrived.entry(farm.mailbox).or_default().push_back(channel);
            self.ready.append(&mut self.waiting[farm.mailbox]);
        }
        let place = usize::from(side == Side::Receive);
        let nth = self.posted[channel][place];
        self.posted[channel][place] += 1;
        self.ready.append(&mut self.waiting[channel]);
        Need { channel, side, nth }
    }

    fn take_part(&mut self, channel: usize, number: usize) -> Need {
        let begun = self.begun.entry((channel, number)).or_insert(0);
        let nth = *begun;
        *begun += 1;
        let members = self.operations.members[channel].len();
        let (complete, counts) = &mut self.complete[channel];
        let place = (nth - *complete) as usize;
        if counts.len() <= place {
            counts.resize(place + 1, 0);
        }
        counts[place] += 1;
        while counts.front() == Some(&members) {
            counts.pop_front();
            *complete += 1;
        }
        self.ready.append(&mut self.waiting[channel]);
        Need { channel, side: Side::Collective, nth }
    }
}
