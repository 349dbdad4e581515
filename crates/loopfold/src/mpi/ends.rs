//! The processes at both ends of a message, and its channel: the one place where the ranks that
//! an event names become processes.
//!
//! An event states the rank of its partner in a communicator, and which process that is depends
//! on the stream. Questions differ in what they match, so wildcards are passed on as the event
//! has them. O(1) for each message.

use super::{Call, Calls, CommId, Communicators, Message, Peer};
use crate::Symbol;

/// Messages that are received in the order in which they are sent. Processes have their
/// ranks in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Channel {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) comm: CommId,
    /// Any tag, if nothing.
    pub(crate) tag: Option<i64>,
}

/// A communicator of a stream: one of the same name with other members is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    comm: CommId,
    /// The address of the members, unless these are all processes: equal members are the same
    /// list.
    members: Option<usize>,
}

impl Group {
    /// From the members, unless these are all processes.
    pub(crate) fn new(comm: CommId, members: Option<&[u32]>) -> Self {
        Self { comm, members: members.map(|list| list.as_ptr() as usize) }
    }

    pub(crate) fn comm(&self) -> CommId {
        self.comm
    }
}

/// A message, as the event at one of its ends describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageEnd<'a> {
    pub(crate) message: &'a Message,
    pub(crate) is_send: bool,
    pub(crate) comm: CommId,
    /// The process of the event.
    pub(crate) own: u32,
    /// The other process, by its rank in the world. `None` if the communicator has no such
    /// member, and for a send to anyone.
    pub(crate) peer: Option<Peer>,
}

impl MessageEnd<'_> {
    /// The other process, if it is known.
    pub(crate) fn process(&self) -> Option<u32> {
        match self.peer {
            Some(Peer::Rank(process)) => Some(process),
            Some(Peer::Any) | None => None,
        }
    }

    /// The channel, if the other process is this one; with any tag or one.
    pub(crate) fn channel_with(&self, process: u32) -> Channel {
        let (from, to) = if self.is_send { (self.own, process) } else { (process, self.own) };
        Channel { from, to, comm: self.comm, tag: self.message.tag }
    }

    /// The channel. Returns `None` if the other process is not known.
    pub(crate) fn channel(&self) -> Option<Channel> {
        self.process().map(|process| self.channel_with(process))
    }

    /// The channel, if nothing is left open: its n-th send belongs to its n-th receive.
    pub(crate) fn exact_channel(&self) -> Option<Channel> {
        self.channel().filter(|channel| channel.tag.is_some())
    }
}

/// Gives the ends of messages of every event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageEnds<'a> {
    pub(crate) calls: &'a Calls,
    pub(crate) communicators: &'a Communicators,
}

impl<'a> MessageEnds<'a> {
    /// The messages of a symbol in a stream: those that it sends, then those that it receives.
    pub(crate) fn of(self, stream: usize, symbol: Symbol) -> impl Iterator<Item = MessageEnd<'a>> {
        self.calls.get(symbol).into_iter().flat_map(move |call| self.of_call(stream, call))
    }

    /// The messages of a call.
    pub(crate) fn of_call(self, stream: usize, call: &'a Call) -> impl Iterator<Item = MessageEnd<'a>> {
        let own = self.communicators.rank(stream);
        let name = self.calls.comm(call.comm);
        let end = move |(message, is_send): (&'a Message, bool)| {
            let peer = match message.peer {
                Peer::Rank(rank) => self.communicators.world_rank(stream, name, rank).map(Peer::Rank),
                Peer::Any => (!is_send).then_some(Peer::Any),
            };
            MessageEnd { message, is_send, comm: call.comm, own, peer }
        };
        let sends = call.sends.iter().map(|message| (message, true));
        sends.chain(call.receives.iter().map(|message| (message, false))).map(end)
    }

    /// A communicator of a stream.
    pub(crate) fn group(self, stream: usize, comm: CommId) -> Group {
        Group::new(comm, self.communicators.members(stream, self.calls.comm(comm)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::{Alphabet, Event, Field, Role, Value};

    /// What the events of the last stream say, with two processes in the world and one that only
    /// a communicator names.
    fn ends_of(fields: &[(&str, i64)]) -> Vec<(bool, Option<Peer>, Option<Channel>)> {
        let mut alphabet = Alphabet::default();
        let fields: Vec<Field<'_>> =
            fields.iter().map(|&(key, value)| Field { key, value: Value::Integer(value) }).collect();
        let event = Event { role: Role::Plain, fields: &fields, ..Event::named("x") };
        let symbol = alphabet.intern(&event, None).unwrap();
        let notes = [("comm 7".to_string(), "2,1".to_string())];
        let communicators = Communicators::new([("rank 0", &[][..]), ("rank 1", &notes[..])].into_iter());
        let ends = MessageEnds { calls: &Calls::of(&alphabet), communicators: &communicators };
        let all = ends.of(1, symbol).inspect(|end| assert_eq!(end.own, 1));
        all.map(|end| (end.is_send, end.peer, end.exact_channel())).collect()
    }

    #[test]
    fn ranks_of_a_communicator_become_processes() {
        let channel = |from, to, tag| Some(Channel { from, to, comm: CommId(0), tag: Some(tag) });
        let process = |process| Some(Peer::Rank(process));
        let both = ends_of(&[("comm", 7), ("dest", 0), ("src", 1), ("tag", 3), ("recvtag", 4)]);
        assert_eq!(both, [(true, process(2), channel(1, 2, 3)), (false, process(1), channel(1, 1, 4))]);
        assert_eq!(ends_of(&[("comm", 7), ("dest", 2)]), [(true, None, None)]);
        assert_eq!(ends_of(&[("dest", 2)]), [(true, process(2), channel(1, 2, 0))]);
        assert_eq!(ends_of(&[("dest", 3)]), [(true, None, None)]);
    }

    #[test]
    fn wildcards_have_no_exact_channel() {
        assert_eq!(ends_of(&[("src", -1), ("tag", 3)]), [(false, Some(Peer::Any), None)]);
        assert_eq!(ends_of(&[("src", 0), ("tag", -1)]), [(false, Some(Peer::Rank(0)), None)]);
    }
}
