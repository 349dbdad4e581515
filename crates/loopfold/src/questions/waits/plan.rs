//! What the events of a symbol do in a stream: their channels, and their collective operation.
//!
//! Resolved once for each stream and symbol. A channel counts only if the processes at both of its ends
//! have a stream.

use super::collective::Operation;
use super::kinds::{Kind, Symbols};
use crate::Symbol;
use crate::mpi::{Call, Channel, CommId, Group, MessageEnds, Peer};
use hashbrown::HashSet;

/// Resolves what events say of their partners.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    pub(super) message_ends: MessageEnds<'a>,
    pub(super) symbols: &'a Symbols,
    /// Which processes have a stream.
    pub(super) present: &'a HashSet<u32>,
    /// How many streams there are.
    pub(super) streams: usize,
}

/// An end of a message.
pub(super) struct ResolvedEnd {
    pub(super) is_send: bool,
    /// `None` if the other end is not known.
    pub(super) channel: Option<(Group, Channel)>,
    /// Whether it is a receive from anyone or with any tag.
    pub(super) is_open: bool,
}

/// How many members a communicator has, and how many of them have a stream.
#[derive(Clone, Copy)]
pub(super) struct GroupSize {
    pub(super) all: usize,
    pub(super) present: usize,
}

impl<'a> Resolver<'a> {
    pub(super) fn call(self, symbol: Symbol) -> Option<&'a Call> {
        self.message_ends.calls.get(symbol)
    }

    /// The ends of messages of a call: sends, then receives.
    pub(super) fn ends(self, stream: usize, call: &'a Call) -> impl Iterator<Item = ResolvedEnd> + 'a {
        let group = self.message_ends.group(stream, call.comm);
        self.message_ends.of_call(stream, call).map(move |end| {
            let is_present = end.process().is_some_and(|process| self.present.contains(&process));
            let channel = end.exact_channel().filter(|_| is_present);
            ResolvedEnd {
                is_send: end.is_send,
                channel: channel.map(|channel| (group, channel)),
                is_open: !end.is_send && (end.message.peer == Peer::Any || end.message.tag.is_none()),
            }
        })
    }

    /// The operation of a call, and the own rank in its communicator.
    pub(super) fn operation(self, stream: usize, symbol: Symbol, call: &Call) -> Option<(Operation, u32)> {
        let root = call.collective?;
        let Kind::Communicates(kind) = &self.symbols.kinds[symbol.index()] else { return None };
        let MessageEnds { calls, communicators } = self.message_ends;
        let comm = calls.comm(call.comm);
        let own = communicators.own_rank(stream, comm)?;
        let root = root.and_then(|root| u32::try_from(root).ok());
        let root = root.and_then(|root| communicators.world_rank(stream, comm, root));
        Some((Operation { shape: kind.shape, root }, own))
    }

    /// The members of a communicator of a stream that have a stream, and how many it has in all.
    pub(super) fn members(self, stream: usize, comm: CommId) -> (usize, Vec<u32>) {
        let MessageEnds { calls, communicators } = self.message_ends;
        let comm = calls.comm(comm);
        match communicators.members(stream, comm) {
            Some(members) => {
                let distinct: HashSet<u32> = members.iter().copied().collect();
                (distinct.len(), distinct.intersection(self.present).copied().collect())
            }
            None => {
                let world = communicators.comm_size(stream, comm);
                (world as usize, self.present.iter().copied().filter(|&rank| rank < world).collect())
            }
        }
    }

    pub(super) fn group_size(self, stream: usize, comm: CommId) -> GroupSize {
        let (all, present) = self.members(stream, comm);
        GroupSize { all, present: present.len() }
    }
}
