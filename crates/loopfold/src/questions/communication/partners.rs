//! Partners: which send is which receive, and which calls are the same collective operation.
//!
//! Messages from one process to another with the same communicator and tag are received in
//! the order in which they are sent, so the n-th send belongs to the n-th receive; the n-th
//! collective operation on a communicator is the same one for all of its members. A receive
//! from whoever sends takes what no other receive has taken; its partner is known only where
//! one process alone can have sent it.
//!
//! Both ends are compared with their loops ([`zip`]), so the cost goes with what is written.
//! What is left over at one end is communication that never came to an end: often the bug.

use super::call::{CommId, Message, Peer};
use super::nth::position_of_nth;
use super::processes::{DoneEvent, Processes};
use super::zip::{Node, Pair, Sequence, each_with_loops, events, zip};
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// What is between two processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many messages.
    pub messages: u64,
    /// How many bytes, as far as events say so.
    pub bytes: u64,
}

/// Messages of one kind that have no other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Sends that nobody received, or receives that nobody sent to.
    pub sent: bool,
    /// Who sends; nothing if it could be several.
    pub from: Option<u32>,
    /// Who receives.
    pub to: u32,
    /// The communicator.
    pub comm: String,
    /// The tag; nothing if it could be several.
    pub tag: Option<i64>,
    /// How many there are.
    pub count: u64,
    /// The stream and position of the first of them, where that is known.
    pub first: Option<(usize, u64)>,
}

/// A collective operation that two members of a communicator see differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The communicator.
    pub comm: String,
    /// Which of its operations is the first that they disagree on, from 0.
    pub nth: u64,
    /// For both, the stream, the position and the event; nothing where a stream has ended.
    pub seen: [(usize, Option<(u64, Symbol)>); 2],
}

/// Who communicates with whom, event by event.
#[derive(Clone, Debug, Default)]
pub struct Partners {
    /// For each stream: shown events, and the stream and shown event at the other end;
    /// sorted.
    links: Vec<Vec<Link>>,
    /// For each stream: where the links of each shown event begin.
    starts: Vec<Vec<u32>>,
    /// Messages and bytes from one process to another.
    pub matrix: BTreeMap<(u32, u32), Traffic>,
    /// Messages without another end, most first.
    pub unmatched: Vec<Unmatched>,
    /// Collective operations that members disagree on, the first for each communicator and member.
    pub disagreements: Vec<Disagreement>,
    /// Messages to or from processes of which there is no stream.
    pub absent: u64,
    /// Receives from whoever sends whose partner is not known.
    pub unresolved: u64,
}

/// A shown event and its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The event's index in its shown stream.
    pub index: u32,
    /// The partner's stream.
    pub stream: u32,
    /// The partner's index there.
    pub partner: u32,
}

impl Partners {
    /// Matches all messages and collective operations.
    pub fn of(processes: &Processes<'_>) -> Result<Self> {
        Matching::new(processes)?.run()
    }

    /// The partners of the events of a stream from `start` to before `end`.
    pub fn between(&self, stream: usize, start: u32, end: u32) -> &[Link] {
        let starts = &self.starts[stream];
        &self.links[stream][starts[start as usize] as usize..starts[end as usize] as usize]
    }
}

/// Messages that are received in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Channel {
    from: u32,
    to: u32,
    comm: CommId,
    tag: Option<i64>,
}

/// The members of a communicator, which may have different members in different streams.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Group {
    comm: CommId,
    members: Option<Vec<u32>>,
}

struct Matching<'p, 'a> {
    processes: &'p Processes<'a>,
    /// Where the events of each stream begin if all are numbered through.
    first_events: Vec<u32>,
    /// Loops are numbered through as well.
    next_loop: u32,
    /// Whether there is a stream of each process.
    is_present: Vec<bool>,
    sends: HashMap<Channel, Sequence>,
    receives: HashMap<Channel, Sequence>,
    /// Receives from whoever sends.
    anyone: BTreeMap<(u32, CommId), Sequence>,
    collectives: BTreeMap<Group, BTreeMap<usize, Sequence>>,
    result: Partners,
}

impl<'p, 'a> Matching<'p, 'a> {
    fn new(processes: &'p Processes<'a>) -> Result<Self> {
        let mut first_events = vec![0u32];
        for doing in processes.doings() {
            let last = first_events.last().copied().unwrap_or(0);
            let next = u32::try_from(doing.events.len()).ok().and_then(|more| last.checked_add(more));
            first_events
                .push(next.ok_or_else(|| Error::limit("more than 2^32 different places of messages"))?);
        }
        let streams = processes.doings().len();
        let mut is_present = vec![false; processes.communicators.size() as usize];
        (0..streams).for_each(|stream| is_present[processes.communicators.rank(stream) as usize] = true);
        Ok(Self {
            processes,
            first_events,
            next_loop: 0,
            is_present,
            sends: HashMap::new(),
            receives: HashMap::new(),
            anyone: BTreeMap::new(),
            collectives: BTreeMap::new(),
            result: Partners { links: vec![Vec::new(); streams], ..Partners::default() },
        })
    }

    fn run(mut self) -> Result<Partners> {
        for stream in 0..self.processes.doings().len() {
            self.gather(stream);
        }
        self.match_messages();
        self.match_collectives();
        for (links, doing) in self.result.links.iter_mut().zip(self.processes.doings()) {
            links.sort_unstable();
            links.dedup();
            links.shrink_to_fit();
            self.result.starts.push(starts(links, doing.shown().symbols().len()));
        }
        self.result
            .unmatched
            .sort_by(|a, b| b.count.cmp(&a.count).then(a.to.cmp(&b.to)).then(a.from.cmp(&b.from)));
        Ok(self.result)
    }

    /// Puts the events of a stream into the channels they belong to.
    fn gather(&mut self, stream: usize) {
        let processes = self.processes;
        let Processes { calls, communicators, .. } = processes;
        let rank = communicators.rank(stream);
        let doing = &processes.doings()[stream];
        let first_event = self.first_events[stream];
        let mut next_loop = self.next_loop;
        each_with_loops(&doing.nest, &mut Vec::new(), &mut next_loop, &mut |index, around| {
            let Some(call) = calls.get(doing.events[index as usize].symbol) else { return };
            let times = around.iter().fold(1u64, |product, &(_, times)| product.saturating_mul(times));
            let event = first_event + index;
            let comm = calls.comm(call.comm);
            let peer_of = |message: &Message| match message.peer {
                Peer::Rank(peer) => Some(communicators.world_rank(stream, comm, peer)),
                Peer::Any => None,
            };
            for message in &call.sends {
                let Some(Some(to)) = peer_of(message) else {
                    self.result.absent = self.result.absent.saturating_add(times);
                    continue;
                };
                self.count((rank, to), message, times);
                if !self.is_present[to as usize] {
                    self.result.absent = self.result.absent.saturating_add(times);
                    continue;
                }
                let channel = Channel { from: rank, to, comm: call.comm, tag: message.tag };
                self.sends.entry(channel).or_default().push(event, around);
            }
            for message in &call.receives {
                match peer_of(message) {
                    None => self.anyone.entry((rank, call.comm)).or_default().push(event, around),
                    Some(Some(from)) if self.is_present[from as usize] => {
                        let channel = Channel { from, to: rank, comm: call.comm, tag: message.tag };
                        self.receives.entry(channel).or_default().push(event, around);
                    }
                    Some(from) => {
                        self.result.absent = self.result.absent.saturating_add(times);
                        from.into_iter().for_each(|from| self.count((from, rank), message, times));
                    }
                }
            }
            if call.collective.is_some() {
                let members = communicators.members(stream, comm).map(<[u32]>::to_vec);
                let group = self.collectives.entry(Group { comm: call.comm, members }).or_default();
                group.entry(stream).or_default().push(event, around);
            }
        });
        self.next_loop = next_loop;
    }

    fn count(&mut self, pair: (u32, u32), message: &Message, times: u64) {
        let traffic = self.result.matrix.entry(pair).or_default();
        traffic.messages = traffic.messages.saturating_add(times);
        traffic.bytes = traffic.bytes.saturating_add(message.bytes.unwrap_or(0).saturating_mul(times));
    }

    /// The stream of an event, and what it is.
    fn locate(&self, event: u32) -> (usize, DoneEvent) {
        let stream = self.first_events.partition_point(|&first| first <= event) - 1;
        (stream, self.processes.doings()[stream].events[(event - self.first_events[stream]) as usize])
    }

    fn link(&mut self, a: u32, b: u32) {
        let ((a_stream, a), (b_stream, b)) = (self.locate(a), self.locate(b));
        let (a, b) = (a.shown, b.shown);
        self.result.links[a_stream].push(Link { index: a, stream: b_stream as u32, partner: b });
        self.result.links[b_stream].push(Link { index: b, stream: a_stream as u32, partner: a });
    }

    fn match_messages(&mut self) {
        let finished = |open: HashMap<Channel, Sequence>| -> BTreeMap<Channel, Vec<Node>> {
            open.into_iter().map(|(channel, sequence)| (channel, sequence.finish())).collect()
        };
        let sends = finished(std::mem::take(&mut self.sends));
        let mut receives = finished(std::mem::take(&mut self.receives));
        // What specific receives have left over.
        let mut left: BTreeMap<(u32, CommId), Vec<Left<'_>>> = BTreeMap::new();
        for (channel, sent) in &sends {
            let received = receives.remove(channel).unwrap_or_default();
            let matched = events(sent).min(events(&received));
            zip(sent, &received, &mut |pair: Pair| self.link(pair.left, pair.right));
            if events(sent) > matched {
                left.entry((channel.to, channel.comm)).or_default().push((*channel, sent, matched));
            }
            self.report(*channel, false, matched, events(&received));
        }
        // Tags that are not known on one side make channels of their own.
        for (channel, received) in receives {
            match channel.tag {
                None => self.anyone.entry((channel.to, channel.comm)).or_default().append(received),
                Some(_) => self.report(channel, false, 0, events(&received)),
            }
        }
        let mut anyone: BTreeMap<(u32, CommId), Vec<Node>> =
            std::mem::take(&mut self.anyone).into_iter().map(|(key, open)| (key, open.finish())).collect();
        for ((to, comm), left) in left {
            match anyone.remove(&(to, comm)) {
                Some(received) => self.match_anyone(to, comm, &left, &received),
                None => left.iter().for_each(|&(channel, sent, matched)| {
                    self.report(channel, true, matched, events(sent));
                }),
            }
        }
        for ((to, comm), received) in anyone {
            self.report_anyone(to, comm, false, events(&received));
        }
    }

    /// Matches receives from whoever sends with what is left over.
    fn match_anyone(&mut self, to: u32, comm: CommId, left: &[Left<'_>], received: &[Node]) {
        let sent =
            left.iter().fold(0u64, |sum, (_, sent, matched)| sum.saturating_add(events(sent) - matched));
        let wanted = events(received);
        match left {
            [(_, only, 0)] => zip(only, received, &mut |pair: Pair| self.link(pair.left, pair.right)),
            _ => self.result.unresolved = self.result.unresolved.saturating_add(wanted.min(sent)),
        }
        match (sent.checked_sub(wanted), left) {
            (Some(0), _) => {}
            (Some(_), &[(channel, only, matched)]) => {
                self.report(channel, true, matched.saturating_add(wanted), events(only));
            }
            (Some(more), _) => self.report_anyone(to, comm, true, more),
            (None, _) => self.report_anyone(to, comm, false, wanted - sent),
        }
    }

    /// Reports what a channel has at one end from the first `matched` on.
    fn report(&mut self, channel: Channel, sent: bool, matched: u64, all: u64) {
        if all <= matched {
            return;
        }
        let first =
            if self.result.unmatched.len() < MOST_LOCATED { self.find(channel, sent, matched) } else { None };
        self.result.unmatched.push(Unmatched {
            sent,
            from: Some(channel.from),
            to: channel.to,
            comm: self.processes.calls.comm(channel.comm).to_string(),
            tag: channel.tag,
            count: all - matched,
            first,
        });
    }

    fn report_anyone(&mut self, to: u32, comm: CommId, sent: bool, count: u64) {
        let comm = self.processes.calls.comm(comm).to_string();
        self.result.unmatched.push(Unmatched { sent, from: None, to, comm, tag: None, count, first: None });
    }

    /// The stream and position of the n-th message at one end of a channel.
    fn find(&self, channel: Channel, sent: bool, mut nth: u64) -> Option<(usize, u64)> {
        let Processes { fold, calls, communicators, .. } = self.processes;
        let (own, peer) = if sent { (channel.from, channel.to) } else { (channel.to, channel.from) };
        for (stream, folded) in fold.streams().iter().enumerate() {
            if communicators.rank(stream) != own {
                continue;
            }
            let comm = calls.comm(channel.comm);
            let is_same = |message: &&Message| {
                let Peer::Rank(rank) = message.peer else { return false };
                message.tag == channel.tag && communicators.world_rank(stream, comm, rank) == Some(peer)
            };
            let weights: Vec<u64> = fold
                .alphabet()
                .symbols()
                .map(|symbol| {
                    let Some(call) = calls.get(symbol).filter(|call| call.comm == channel.comm) else {
                        return 0;
                    };
                    let messages = if sent { &call.sends } else { &call.receives };
                    messages.iter().filter(is_same).count() as u64
                })
                .collect();
            let weight = |symbol: Symbol| weights[symbol.index()];
            match position_of_nth(fold, folded.root(), nth, weight) {
                Ok(position) => return Some((stream, position)),
                Err(all) => nth -= all,
            }
        }
        None
    }

    fn match_collectives(&mut self) {
        for (group, members) in std::mem::take(&mut self.collectives) {
            let mut members = members.into_iter().map(|(stream, open)| (stream, open.finish()));
            let Some((first, reference)) = members.next() else { continue };
            for (stream, sequence) in members {
                self.match_collective(group.comm, (first, &reference), (stream, &sequence));
            }
        }
    }

    fn match_collective(&mut self, comm: CommId, first: (usize, &[Node]), second: (usize, &[Node])) {
        let mut differs: Option<u64> = None;
        zip(first.1, second.1, &mut |Pair { left, right, nth, .. }| {
            self.link(left, right);
            if differs.is_none() && !self.is_same_operation(left, right) {
                differs = Some(nth);
            }
        });
        let (in_first, in_second) = (events(first.1), events(second.1));
        if differs.is_none() && in_first != in_second {
            differs = Some(in_first.min(in_second));
        }
        let Some(nth) = differs else { return };
        let seen = [first.0, second.0].map(|stream| (stream, self.find_collective(stream, comm, nth)));
        let comm = self.processes.calls.comm(comm).to_string();
        self.result.disagreements.push(Disagreement { comm, nth, seen });
    }

    /// Whether two calls are the same operation with the same root.
    fn is_same_operation(&self, a: u32, b: u32) -> bool {
        let Processes { fold, calls, .. } = self.processes;
        let of = |event| {
            let symbol = self.locate(event).1.symbol;
            (symbol, calls.get(symbol).and_then(|call| call.collective))
        };
        let ((a, a_root), (b, b_root)) = (of(a), of(b));
        a == b || (a_root == b_root && fold.alphabet().meaning(a).name == fold.alphabet().meaning(b).name)
    }

    fn find_collective(&self, stream: usize, comm: CommId, nth: u64) -> Option<(u64, Symbol)> {
        let Processes { fold, calls, .. } = self.processes;
        let root = fold.streams()[stream].root();
        let weight = |symbol| {
            u64::from(calls.get(symbol).is_some_and(|call| call.collective.is_some() && call.comm == comm))
        };
        let position = position_of_nth(fold, root, nth, weight).ok()?;
        Some((position, fold.symbol_at(root, position)?))
    }
}

/// Where the links of each of so many events begin, and where the last ones end.
fn starts(links: &[Link], events: usize) -> Vec<u32> {
    let mut starts = vec![0u32; events + 1];
    links.iter().for_each(|link| starts[link.index as usize + 1] += 1);
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    starts
}

/// A channel, what was sent, and how much of it specific receives have taken.
type Left<'a> = (Channel, &'a [Node], u64);

/// Of more channels it is not said where their first message without another end is.
const MOST_LOCATED: usize = 1000;
