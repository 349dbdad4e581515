//! The messages of a program one by one: which events of different processes belong together.

use loopfold_testing::mpi::{ANY, Call, Envelope, Message, NOBODY, Program};
use loopfold_testing::mpi_loops::{OwnComms, is_examined, without_envelope};
use std::collections::{BTreeMap, BTreeSet};

/// What belongs together in the order in which it happens at each end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    /// Messages from one process to another with a tag, or with any if one receive takes any.
    Messages { from: usize, to: usize, comm: u32, tag: i32 },
    /// Messages to a process that receives from anyone.
    Pool { to: usize, comm: u32, tag: i32 },
    /// Operations of a communicator, by its members.
    Collective { comm: u32, members: Vec<usize> },
}

/// Which end of a channel an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Send,
    Receive,
    Member,
}

/// An event as one end of a channel: the how-manieth of its process and side.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub channel: usize,
    pub side: Side,
    nth: usize,
}

/// A stretch of a process: its rank, where it begins, and where it ends.
pub type Stretch = (usize, u64, u64);

/// All messages of a program. Positions are those among events that are examined.
pub struct Messages {
    /// The events of each process, without tags and sizes.
    pub events: Vec<Vec<Call>>,
    ends: Vec<Vec<Vec<End>>>,
    /// For each channel where its ends are, by side and process.
    places: Vec<BTreeMap<(Side, usize), Vec<u64>>>,
}

/// What of some stretches has its other end elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Ends whose other end is not in the stretches.
    pub elsewhere: Vec<(usize, u64)>,
    /// Ends that have no other end at all.
    pub nowhere: Vec<(usize, u64)>,
    /// Channels with more ends of one side than of the other.
    pub unbalanced: BTreeSet<usize>,
    /// The same for messages that are received from anyone of several.
    pub unbalanced_pools: BTreeSet<usize>,
}

impl Messages {
    pub fn of(program: &Program, comms: &[OwnComms]) -> Self {
        let naming = Naming::of(program, comms);
        let mut messages = Self { events: Vec::new(), ends: Vec::new(), places: Vec::new() };
        let mut numbers: BTreeMap<Channel, usize> = BTreeMap::new();
        for (rank, calls) in program.iter().enumerate() {
            let examined: Vec<&Call> = calls.iter().filter(|call| is_examined(call)).collect();
            messages.events.push(examined.iter().map(|call| without_envelope(call)).collect());
            let mut of_rank = Vec::new();
            for (position, call) in examined.into_iter().enumerate() {
                let named = naming.ends(rank, call).into_iter();
                let ends = named.map(|(channel, side)| {
                    let next = numbers.len();
                    let channel = *numbers.entry(channel).or_insert(next);
                    if channel == messages.places.len() {
                        messages.places.push(BTreeMap::new());
                    }
                    let places = messages.places[channel].entry((side, rank)).or_default();
                    places.push(position as u64);
                    End { channel, side, nth: places.len() - 1 }
                });
                of_rank.push(ends.collect());
            }
            messages.ends.push(of_rank);
        }
        messages
    }

    /// The ends of channels that an event is.
    pub fn ends(&self, rank: usize, position: u64) -> &[End] {
        &self.ends[rank][position as usize]
    }

    /// How many processes use one side of a channel.
    fn users(&self, channel: usize, side: Side) -> usize {
        self.places[channel].keys().filter(|key| key.0 == side).count()
    }

    /// Whether the n-th of one end belongs to the n-th of the other.
    pub fn is_ordered(&self, channel: usize) -> bool {
        self.users(channel, Side::Send) <= 1 && self.users(channel, Side::Receive) <= 1
    }

    /// How many ends of a channel lie before a position of a process.
    pub fn before(&self, channel: usize, side: Side, rank: usize, position: u64) -> usize {
        self.places[channel].get(&(side, rank)).map_or(0, |all| all.partition_point(|&at| at < position))
    }

    /// The users of a channel.
    pub fn users_of(&self, channel: usize) -> impl Iterator<Item = (Side, usize)> + '_ {
        self.places[channel].keys().copied()
    }

    /// How many channels there are.
    pub fn channels(&self) -> usize {
        self.places.len()
    }

    /// The other ends of one: a process and a position, or `None` if there is none.
    fn others(&self, rank: usize, end: End) -> Vec<(usize, Option<u64>)> {
        let is_other = |&(&(side, other), _): &(&(Side, usize), &Vec<u64>)| match end.side {
            Side::Member => other != rank,
            Side::Send => side == Side::Receive,
            Side::Receive => side == Side::Send,
        };
        let mut others: Vec<_> = self.places[end.channel]
            .iter()
            .filter(is_other)
            .map(|(&(_, other), places)| (other, places.get(end.nth).copied()))
            .collect();
        if others.is_empty() && end.side != Side::Member {
            others.push((rank, None));
        }
        others
    }

    /// For each other end of what an event has, where it is, and where it is for another event
    /// of the same kind. Returns `None` if that has none.
    pub fn other_ends(&self, rank: usize, first: u64, later: u64) -> Option<Vec<(usize, u64, u64)>> {
        let mut both = Vec::new();
        for (&first, &later) in self.ends(rank, first).iter().zip(self.ends[rank].get(later as usize)?) {
            if !self.is_ordered(first.channel) || first.channel != later.channel {
                continue;
            }
            for ((other, first), (_, later)) in self.others(rank, first).iter().zip(self.others(rank, later))
            {
                both.extend(first.map(|first| Some((*other, first, later?))));
            }
        }
        both.into_iter().collect()
    }

    /// What some stretches leave open.
    pub fn open(&self, stretches: &[Stretch]) -> Open {
        let mut open = Open::default();
        let mut balance: BTreeMap<usize, i64> = BTreeMap::new();
        let is_inside = |rank: usize, position: u64| {
            stretches.iter().any(|&(other, start, end)| other == rank && (start..end).contains(&position))
        };
        for &(rank, start, end) in stretches {
            for position in start..end {
                for &end in self.ends(rank, position) {
                    match end.side {
                        Side::Send => *balance.entry(end.channel).or_default() += 1,
                        Side::Receive => *balance.entry(end.channel).or_default() -= 1,
                        Side::Member => {}
                    }
                    if !self.is_ordered(end.channel) {
                        continue;
                    }
                    for (other, at) in self.others(rank, end) {
                        match at {
                            None => open.nowhere.push((rank, position)),
                            Some(at) if !is_inside(other, at) => open.elsewhere.push((rank, position)),
                            Some(_) => {}
                        }
                    }
                }
            }
        }
        for (channel, _) in balance.into_iter().filter(|&(_, balance)| balance != 0) {
            let is_ordered = self.is_ordered(channel);
            if is_ordered { &mut open.unbalanced } else { &mut open.unbalanced_pools }.insert(channel);
        }
        open
    }
}

/// Which channel a message is on.
struct Naming<'a> {
    comms: &'a [OwnComms],
    processes: usize,
    /// What is received from anyone: by whom, on which communicator, with which tag.
    pools: BTreeSet<(usize, u32, i32)>,
    /// Who receives any tag from whom.
    any_tag: BTreeSet<(usize, usize, u32)>,
}

impl<'a> Naming<'a> {
    fn of(program: &Program, comms: &'a [OwnComms]) -> Self {
        let (pools, any_tag) = (BTreeSet::new(), BTreeSet::new());
        let mut naming = Self { comms, processes: program.len(), pools, any_tag };
        for (rank, calls) in program.iter().enumerate() {
            for call in calls {
                let Some(Message { comm, from: Some(from), .. }) = message(call) else { continue };
                if from.peer == ANY {
                    naming.pools.insert((rank, comm, from.tag));
                } else if let Some(peer) = naming.world(rank, comm, from.peer)
                    && from.tag == ANY
                {
                    naming.any_tag.insert((peer, rank, comm));
                }
            }
        }
        naming
    }

    fn members(&self, rank: usize, comm: u32) -> Option<&'a Vec<usize>> {
        self.comms[rank].iter().find(|own| own.0 == comm).map(|own| &own.1)
    }

    /// The process with a rank in a communicator, if there is such a process.
    fn world(&self, rank: usize, comm: u32, peer: i32) -> Option<usize> {
        let peer = usize::try_from(peer).ok()?;
        let peer = self.members(rank, comm).map_or(Some(peer), |members| members.get(peer).copied());
        peer.filter(|&peer| peer < self.processes)
    }

    fn channel(&self, from: usize, to: usize, comm: u32, tag: i32) -> Channel {
        if let Some(tag) = [tag, ANY].into_iter().find(|&tag| self.pools.contains(&(to, comm, tag))) {
            return Channel::Pool { to, comm, tag };
        }
        let tag = if self.any_tag.contains(&(from, to, comm)) { ANY } else { tag };
        Channel::Messages { from, to, comm, tag }
    }

    fn ends(&self, rank: usize, call: &Call) -> Vec<(Channel, Side)> {
        let mut ends = Vec::new();
        if let Some(Message { comm, to, from }) = message(call) {
            let envelope = |end: Option<Envelope>| end.filter(|end| end.peer != NOBODY);
            if let Some((to, tag)) =
                envelope(to).and_then(|to| Some((self.world(rank, comm, to.peer)?, to.tag)))
            {
                ends.push((self.channel(rank, to, comm, tag), Side::Send));
            }
            match envelope(from) {
                Some(Envelope { peer: ANY, tag }) => {
                    ends.push((Channel::Pool { to: rank, comm, tag }, Side::Receive));
                }
                Some(Envelope { peer, tag }) => {
                    let from = self.world(rank, comm, peer);
                    ends.extend(from.map(|from| (self.channel(from, rank, comm, tag), Side::Receive)));
                }
                None => {}
            }
        }
        if let Some(comm) = collective(call) {
            let everyone = || (0..self.processes).collect();
            let members = self.members(rank, comm).cloned().unwrap_or_else(everyone);
            ends.push((Channel::Collective { comm, members }, Side::Member));
        }
        ends
    }
}

/// What a call sends and receives.
fn message(call: &Call) -> Option<Message> {
    let envelope = |peer: u32, tag: u32| Some(Envelope { peer: peer as i32, tag: tag as i32 });
    match *call {
        Call::Send(to, tag, _) => Some(Message { comm: 0, to: envelope(to, tag), from: None }),
        Call::Receive(from, tag, _) => Some(Message { comm: 0, to: None, from: envelope(from, tag) }),
        Call::Message(message) => Some(message),
        _ => None,
    }
}

fn collective(call: &Call) -> Option<u32> {
    match *call {
        Call::Collective(..) => Some(0),
        Call::CollectiveOn(comm, _) => Some(comm),
        _ => None,
    }
}
