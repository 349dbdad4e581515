//! What each call does for each process: the messages it sends and receives, the collective
//! operation it takes part in, and what it waits for.

use super::farm::{ANYONE, SENDER};
use super::program::{Node, Program};
use crate::emit::Terminal;
use crate::mpi::Communicators;
use crate::questions::logical::{LogicalEvent, LogicalField, Place, Token};
use crate::trace::Role;
use crate::{Error, Fold, Result, StreamId};
use hashbrown::HashMap;
use std::sync::Arc;

/// The processes of each communicator that a process knows, as ranks of the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    by_process: Vec<HashMap<String, Arc<Vec<u32>>>>,
}

impl Members {
    /// Those of the streams of a fold.
    pub(super) fn of(fold: &Fold, streams: &[StreamId]) -> Self {
        let communicators = Communicators::of(fold);
        let mut shared: HashMap<Vec<u32>, Arc<Vec<u32>>> = HashMap::new();
        let mut of_stream = |id: &StreamId| {
            let own = communicators.of_stream(id.index());
            own.map(|(comm, members)| {
                let share = || Arc::new(members.to_vec());
                (comm.to_string(), Arc::clone(shared.entry(members.to_vec()).or_insert_with(share)))
            })
            .collect()
        };
        Self { by_process: streams.iter().map(&mut of_stream).collect() }
    }

    /// None beside the world.
    pub(super) fn of_world(processes: usize) -> Self {
        Self { by_process: vec![HashMap::new(); processes] }
    }

    pub(super) fn set(&mut self, process: usize, comm: &str, members: &Arc<Vec<u32>>) {
        self.by_process[process].insert(comm.to_string(), Arc::clone(members));
    }

    /// The members of a communicator that is not simply the world.
    pub(super) fn get(&self, process: usize, comm: &str) -> Option<&Arc<Vec<u32>>> {
        self.by_process[process].get(comm)
    }

    fn process(&self, process: usize, comm: &str, rank: i64) -> Option<u32> {
        let rank = usize::try_from(rank).ok()?;
        match self.get(process, comm) {
            Some(members) => members.get(rank).copied(),
            None if comm == SELF => Some(process as u32).filter(|_| rank == 0),
            None => (rank < self.by_process.len()).then_some(rank as u32),
        }
    }
}

/// The communicator of a process alone, as the recorder numbers it.
const SELF: &str = "1";

/// A message's channel, or a collective operation's members, as a number.
pub(super) type ChannelId = usize;

/// What a call does.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    /// Channels on which it sends, and whether the send waits for its receive at most.
    pub(super) sends: Vec<ChannelId>,
    pub(super) receives: Vec<ChannelId>,
    /// The members with which it takes part in an operation.
    pub(super) collective: Option<ChannelId>,
    /// The mailbox to whose last sender it sends.
    pub(super) reply: Option<ChannelId>,
    pub(super) kind: OperationKind,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// It returns when its messages are complete.
    #[default]
    Blocking,
    /// It posts a request for each of its messages, or one for its operation.
    Posting,
    /// It posts one request for all of its messages.
    PostingOne,
    /// It completes so many of the oldest requests.
    Waiting(usize),
    /// It completes these requests, by their places among the pending.
    WaitingFor(Vec<usize>),
    /// It waits until a message could be received.
    Probing(ChannelId),
    /// It waits until a message is in a mailbox, and remembers the sender.
    ProbingAnyone(ChannelId),
    /// The same, and takes the message.
    TakingFromAnyone(ChannelId),
    /// It takes the message that was probed last.
    TakingProbed,
}

impl OperationKind {
    /// The mailbox of which it takes a message: at once, or after probing it.
    pub(super) fn mailbox(&self) -> Option<ChannelId> {
        match *self {
            Self::TakingFromAnyone(mailbox) | Self::ProbingAnyone(mailbox) => Some(mailbox),
            _ => None,
        }
    }
}

/// The operations of all nodes and processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Operations {
    /// For each node and process, where it communicates.
    by_node: Vec<Vec<Option<Operation>>>,
    /// The processes of collective operations; empty for messages.
    pub(super) members: Vec<Vec<u32>>,
    /// For messages to a process that receives from anyone: its mailbox, and the channel back.
    pub(super) farms: HashMap<ChannelId, Farm>,
    /// For each mailbox, how many replies there are to a message.
    pub(super) replies: HashMap<ChannelId, u64>,
}

/// Where a message to a process that receives from anyone goes, and replies to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Farm {
    /// All messages that the process receives from anyone, as a channel of their own.
    pub(super) mailbox: ChannelId,
    pub(super) back: ChannelId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Channel {
    Message { comm: usize, from: u32, to: u32, tag: i64 },
    Collective { comm: usize },
    Mailbox { comm: usize, of: u32 },
}

/// Tags do not distinguish messages of a process that receives from anyone.
const NO_TAG: i64 = i64::MIN;

/// Numbers channels and communicators.
struct Numbering<'a> {
    members: &'a Members,
    processes: usize,
    groups: HashMap<(String, Option<Vec<u32>>), usize>,
    channels: HashMap<Channel, ChannelId>,
    operations: Operations,
}

impl Operations {
    pub(super) fn of(program: &Program, members: &Members) -> Result<Self> {
        let mut numbering = Numbering {
            members,
            processes: program.processes,
            groups: HashMap::new(),
            channels: HashMap::new(),
            operations: Operations::default(),
        };
        let executions: Vec<Vec<u64>> =
            (0..program.processes).map(|process| program.executions(process)).collect();
        numbering.mailboxes(program, &executions);
        for (id, node) in program.nodes.iter().enumerate() {
            let mut of_node = Vec::new();
            if let Node::Call(event) = node {
                for (process, executions) in executions.iter().enumerate() {
                    // What a process does not execute need not make sense for it.
                    let is_executed = executions[id] > 0;
                    of_node.push(match is_executed {
                        true => numbering.operation(event, process, program)?,
                        false => None,
                    });
                }
            }
            numbering.operations.by_node.push(of_node);
        }
        numbering.farms();
        numbering.operations.count_replies(&executions);
        Ok(numbering.operations)
    }

    fn count_replies(&mut self, executions: &[Vec<u64>]) {
        let mut counts: HashMap<ChannelId, (u64, u64)> = HashMap::new();
        for (id, of_node) in self.by_node.iter().enumerate() {
            for (process, operation) in of_node.iter().enumerate() {
                let Some(operation) = operation else { continue };
                let times = executions[process][id];
                if let Some(mailbox) = operation.reply {
                    counts.entry(mailbox).or_default().0 += times;
                }
                if let Some(mailbox) = operation.kind.mailbox() {
                    counts.entry(mailbox).or_default().1 += times;
                }
            }
        }
        self.replies =
            counts.into_iter().map(|(mailbox, (replies, taken))| (mailbox, replies / taken.max(1))).collect();
    }

    /// What a call does for a process.
    pub(super) fn get(&self, node: usize, process: usize) -> Option<&Operation> {
        self.by_node[node].get(process)?.as_ref()
    }

    /// How many channels and communicators there are.
    pub(super) fn channels(&self) -> usize {
        self.members.len()
    }
}

impl Numbering<'_> {
    /// Numbers the mailboxes first, since tags of messages to them do not matter.
    fn mailboxes(&mut self, program: &Program, executions: &[Vec<u64>]) {
        for (id, node) in program.nodes.iter().enumerate() {
            let Node::Call(event) = node else { continue };
            let source = event.field("src").or(event.field("from")).and_then(|field| field.values.first());
            let Some(source) = source else { continue };
            let comm = event.comm.as_deref().unwrap_or(crate::mpi::WORLD);
            for (process, executions) in executions.iter().enumerate() {
                let is_open = || source.value(program.places.at(process, Some(comm))).is_word(ANYONE);
                if executions[id] > 0 && is_open() {
                    self.mailbox(process, comm);
                }
            }
        }
    }

    fn mailbox(&mut self, process: usize, comm: &str) -> ChannelId {
        let comm = self.group(process, comm);
        self.channel(Channel::Mailbox { comm, of: process as u32 }, Vec::new())
    }

    /// The mailboxes of all channels that lead to one, and the channels back.
    fn farms(&mut self) {
        let channels: Vec<(Channel, ChannelId)> =
            self.channels.iter().map(|(channel, &id)| (channel.clone(), id)).collect();
        for (channel, id) in channels {
            let Channel::Message { comm, from, to, tag: NO_TAG } = channel else { continue };
            if let Some(&mailbox) = self.channels.get(&Channel::Mailbox { comm, of: to }) {
                let back = Channel::Message { comm, from: to, to: from, tag: NO_TAG };
                let back = self.channel(back, Vec::new());
                self.operations.farms.insert(id, Farm { mailbox, back });
            }
        }
    }

    fn operation(
        &mut self,
        event: &LogicalEvent,
        process: usize,
        program: &Program,
    ) -> Result<Option<Operation>> {
        let Some(name) = event.text() else { return Ok(None) };
        let comm = event.comm.as_deref().unwrap_or(crate::mpi::WORLD);
        let at = program.places.at(process, Some(comm));
        let values = |key: &str| {
            let values = event.field(key).map_or(&[][..], |field: &LogicalField| &field.values);
            values.iter().map(|value| value.value(at)).collect::<Vec<Token>>()
        };
        let mut operation = Operation::default();
        if event.role == Role::Collective {
            operation.collective = self.collective(process, comm);
            if name.starts_with("MPI_I") || event.field("of").is_some() {
                operation.kind = OperationKind::PostingOne;
            }
            return Ok(Some(operation));
        }
        if creates(name) {
            operation.collective = self.collective(process, comm);
            return Ok(Some(operation));
        }
        if let Some(&Token::Number(count)) = values("n").first() {
            operation.kind = waiting(count, &values("done"));
            return Ok(Some(operation));
        }
        if name.starts_with("MPI_Wait") {
            // How many it completes is not known.
            operation.kind = OperationKind::Waiting(if name == "MPI_Wait" { 1 } else { usize::MAX });
            return Ok(Some(operation));
        }
        if let [from, ..] = &values("from")[..] {
            if from.is_word(ANYONE) {
                operation.kind = OperationKind::ProbingAnyone(self.mailbox(process, comm));
                return Ok(Some(operation));
            }
            let tags = values("tag");
            let tag = tags.first();
            let channel = self.message(process, comm, from, tag, false, at.comm)?;
            operation.kind = channel.map_or(OperationKind::Blocking, OperationKind::Probing);
            return Ok(channel.map(|_| operation));
        }
        let (mut dests, sources) = (values("dest"), values("src"));
        match &sources[..] {
            [source] if source.is_word(ANYONE) => {
                operation.kind = OperationKind::TakingFromAnyone(self.mailbox(process, comm));
                return Ok(Some(operation));
            }
            [source] if source.is_word(SENDER) => {
                operation.kind = OperationKind::TakingProbed;
                return Ok(Some(operation));
            }
            _ => {}
        }
        if let [dest] = &dests[..]
            && dest.is_word(SENDER)
        {
            operation.reply = Some(self.mailbox(process, comm));
            dests.clear();
        }
        let tags = values("tag");
        let receive_tags = if dests.is_empty() { Vec::new() } else { values("recvtag") };
        let nth = |values: &[Token], nth: usize| values.get(nth).or(values.first()).cloned();
        for (place, peer) in dests.iter().enumerate() {
            let tag = nth(&tags, place);
            operation.sends.extend(self.message(process, comm, peer, tag.as_ref(), true, at.comm)?);
        }
        for (place, peer) in sources.iter().enumerate() {
            let tag = nth(if receive_tags.is_empty() { &tags } else { &receive_tags }, place);
            operation.receives.extend(self.message(process, comm, peer, tag.as_ref(), false, at.comm)?);
        }
        operation.kind = match name {
            "MPI_Isendrecv" | "MPI_Isendrecv_replace" => OperationKind::PostingOne,
            "MPI_Start" | "MPI_Startall" => OperationKind::Posting,
            _ if name.starts_with("MPI_I") => OperationKind::Posting,
            _ => OperationKind::Blocking,
        };
        // A message with nobody is a request all the same.
        let nobody = dests.len() + sources.len() - operation.sends.len() - operation.receives.len();
        let is_posting = operation.kind == OperationKind::Posting;
        operation.sends.extend(std::iter::repeat_n(NOBODY, if is_posting { nobody } else { 0 }));
        let is_message =
            !operation.sends.is_empty() || !operation.receives.is_empty() || operation.reply.is_some();
        Ok(is_message.then_some(operation))
    }

    /// The number of a communicator.
    fn group(&mut self, process: usize, comm: &str) -> usize {
        let members = match self.members.get(process, comm) {
            Some(members) => Some(members.to_vec()),
            None if comm == SELF => Some(vec![process as u32]),
            None => None,
        };
        let next = self.groups.len();
        *self.groups.entry((comm.to_string(), members)).or_insert(next)
    }

    fn channel(&mut self, channel: Channel, members: Vec<u32>) -> ChannelId {
        let next = self.channels.len();
        let id = *self.channels.entry(channel).or_insert(next);
        if id == next {
            self.operations.members.push(members);
        }
        id
    }

    fn collective(&mut self, process: usize, comm: &str) -> Option<ChannelId> {
        let group = self.group(process, comm);
        let members = match self.members.get(process, comm) {
            Some(members) => members.to_vec(),
            None if comm == SELF => return None,
            None => (0..self.processes as u32).collect(),
        };
        Some(self.channel(Channel::Collective { comm: group }, members))
    }

    /// The channel of a message. Returns `None` if it is with nobody.
    fn message(
        &mut self,
        process: usize,
        comm: &str,
        peer: &Token,
        tag: Option<&Token>,
        is_send: bool,
        place: &Place,
    ) -> Result<Option<ChannelId>> {
        let rank = match peer {
            Token::Number(rank) if *rank >= 0 => *rank,
            Token::Number(_) => return Ok(None),
            none if none.is_none() => return Ok(None),
            Token::Word(_) => {
                return Err(Error::invalid("a message whose sender is not known cannot be replayed"));
            }
        };
        let Some(peer) = self.members.process(process, comm, rank) else {
            return Err(Error::invalid(format_args!(
                "rank {} of the communicator {} has no rank {rank}",
                place.rank,
                Terminal::of(comm)
            )));
        };
        let tag = match tag {
            Some(Token::Number(tag)) => *tag,
            Some(Token::Word(_)) => -1,
            None => 0,
        };
        let own = process as u32;
        let (from, to) = if is_send { (own, peer) } else { (peer, own) };
        let comm = self.group(process, comm);
        let is_open = |of: u32| self.channels.contains_key(&Channel::Mailbox { comm, of });
        let tag = if is_open(from) || is_open(to) { NO_TAG } else { tag };
        Ok(Some(self.channel(Channel::Message { comm, from, to, tag }, Vec::new())))
    }
}

/// A request of a message with nobody.
pub(super) const NOBODY: ChannelId = usize::MAX;

fn waiting(count: i64, done: &[Token]) -> OperationKind {
    let place = |token: &Token| match token {
        Token::Number(place) => usize::try_from(*place).ok(),
        Token::Word(_) => None,
    };
    match done {
        [] => OperationKind::Waiting(usize::try_from(count).unwrap_or(0)),
        [none] if none.is_none() => OperationKind::Waiting(0),
        places => OperationKind::WaitingFor(places.iter().filter_map(place).collect()),
    }
}

/// Whether a call creates a communicator, together with all processes of another one.
pub(super) fn creates(name: &str) -> bool {
    matches!(
        name,
        "MPI_Comm_dup"
            | "MPI_Comm_dup_with_info"
            | "MPI_Comm_split"
            | "MPI_Comm_split_type"
            | "MPI_Comm_create"
            | "MPI_Cart_create"
            | "MPI_Cart_sub"
            | "MPI_Graph_create"
            | "MPI_Dist_graph_create"
            | "MPI_Dist_graph_create_adjacent"
    )
}
