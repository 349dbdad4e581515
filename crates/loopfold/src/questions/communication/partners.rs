//! Matches sends with receives, and the calls of a collective operation with each other.
//!
//! Messages from one process to another with the same communicator and tag are received in the
//! order in which they are sent, so the n-th send belongs to the n-th receive; the n-th
//! collective operation on a communicator is the same one for all of its members. A receive
//! with a wildcard source or tag takes what no other receive has taken; its partner is known
//! only if a single process can have sent it, in a single order.
//!
//! Both ends are compared with their loops ([`zip`]), so the cost is O(written events). Where
//! the lengths of loops do not fit each other, only the first messages are matched. Messages
//! that remain at one end were never completed, which is often the bug.

use super::processes::{DoneEvent, Processes};
use super::zip::{Node, Pair, Sequence, each_with_loops, events, zip};
use crate::fold::rank;
use crate::mpi::{Channel, CommId, Message, Peer, WORLD};
use crate::{Error, Result, Symbol};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// The messages between two processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many messages.
    pub messages: u64,
    /// How many bytes, of the events that state it.
    pub bytes: u64,
}

/// Messages of one kind that have no other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Sends that were never received, or receives without a send.
    pub sent: bool,
    /// The sender. `None` if it could be several.
    pub from: Option<u32>,
    /// The receiver.
    pub to: u32,
    /// The communicator.
    pub comm: String,
    /// The tag. `None` if it could be several.
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
    /// For both, the stream, the position and the event. `None` where a stream has ended.
    pub seen: [(usize, Option<(u64, Symbol)>); 2],
}

/// The partners of every event.
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
    /// Messages to or from processes without a stream.
    pub absent: u64,
    /// Receives from any source whose partner is unknown.
    pub unresolved: u64,
    /// True if some events have unknown partners, because the lengths of their loops do not fit
    /// each other.
    pub is_cut: bool,
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

/// Receives that leave something open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Wanted {
    to: u32,
    comm: CommId,
    /// Whoever it is, if nothing.
    from: Option<u32>,
    /// Any tag, if nothing.
    tag: Option<i64>,
}

impl Wanted {
    /// Receives with fewer wildcards take first.
    fn openness(&self) -> Openness {
        match (self.from, self.tag) {
            (_, Some(_)) => Openness::Sender,
            (Some(_), None) => Openness::Tag,
            (None, None) => Openness::Both,
        }
    }

    /// The wildcards of either.
    fn or(self, other: Self) -> Self {
        let from = self.from.filter(|_| self.from == other.from);
        Self { from, tag: self.tag.filter(|_| self.tag == other.tag), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Sender,
    Tag,
    Both,
}

/// What the streams do on a communicator; one of the same name can have other members in
/// other streams, and is another one then.
struct Group {
    comm: CommId,
    sequences: BTreeMap<usize, Sequence>,
}

struct Matching<'p, 'a> {
    processes: &'p Processes<'a>,
    /// Where the events of each stream begin if all are numbered through.
    first_events: Vec<u32>,
    /// Loops are numbered through as well.
    next_loop: u32,
    /// Whether there is a stream of each process.
    is_present: Vec<bool>,
    /// The streams of each process.
    streams_of: HashMap<u32, Vec<usize>>,
    sends: HashMap<Channel, Sequence>,
    receives: HashMap<Channel, Sequence>,
    wanted: BTreeMap<Wanted, Sequence>,
    groups: Vec<Group>,
    /// The groups by name and list of members. Equal lists are the same one.
    group_numbers: HashMap<(CommId, Option<*const u32>), usize>,
    /// How many ends of messages may still be put into channels.
    room: u64,
    /// How many steps may still be gone when messages are matched.
    steps: u64,
    /// For each stream, with how many links they are looked through for those that are equal.
    most_links: Vec<usize>,
    result: Partners,
}

/// Ends of messages, and steps to match them, beyond a number for each written event. An event
/// has one or two, unless it is a list; a pair of loops that iterate in lockstep takes a few
/// steps.
const MOST_MORE: u64 = 1 << 24;
const MOST_EACH: u64 = 64;

impl<'p, 'a> Matching<'p, 'a> {
    fn new(processes: &'p Processes<'a>) -> Result<Self> {
        let mut first_events = vec![0u32];
        for trace in processes.traces() {
            let last = first_events.last().copied().unwrap_or(0);
            let next = u32::try_from(trace.events.len()).ok().and_then(|more| last.checked_add(more));
            first_events
                .push(next.ok_or_else(|| Error::limit("more than 2^32 different places of messages"))?);
        }
        let streams = processes.traces().len();
        let written = u64::from(first_events.last().copied().unwrap_or(0));
        let most = MOST_MORE + MOST_EACH * written;
        let mut is_present = vec![false; processes.communicators.size() as usize];
        let mut streams_of: HashMap<u32, Vec<usize>> = HashMap::new();
        for stream in 0..streams {
            let rank = processes.communicators.rank(stream);
            is_present[rank as usize] = true;
            streams_of.entry(rank).or_default().push(stream);
        }
        Ok(Self {
            processes,
            first_events,
            next_loop: 0,
            is_present,
            streams_of,
            sends: HashMap::new(),
            receives: HashMap::new(),
            wanted: BTreeMap::new(),
            groups: Vec::new(),
            group_numbers: HashMap::new(),
            room: most,
            steps: most,
            most_links: vec![1 << 16; streams],
            result: Partners { links: vec![Vec::new(); streams], ..Partners::default() },
        })
    }

    fn run(mut self) -> Result<Partners> {
        for stream in 0..self.processes.traces().len() {
            self.gather(stream);
            if self.room == 0 {
                return Err(Error::limit("events that are lists of so many messages"));
            }
        }
        self.match_messages();
        self.match_collectives();
        for (links, trace) in self.result.links.iter_mut().zip(self.processes.traces()) {
            links.sort_unstable();
            links.dedup();
            links.shrink_to_fit();
            self.result.starts.push(starts(links, trace.shown().symbols().len()));
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
        let trace = &processes.traces()[stream];
        let first_event = self.first_events[stream];
        let mut next_loop = self.next_loop;
        each_with_loops(&trace.nest, &mut Vec::new(), &mut next_loop, &mut |index, around| {
            let Some(call) = calls.get(trace.events[index as usize].symbol) else { return };
            let times = around.iter().fold(1u64, |product, &(_, times)| product.saturating_mul(times));
            let event = first_event + index;
            self.room = self.room.saturating_sub((call.sends.len() + call.receives.len()) as u64);
            if self.room == 0 {
                return;
            }
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
                let peer = peer_of(message);
                let wanted = Wanted { to: rank, comm: call.comm, from: peer.flatten(), tag: message.tag };
                match peer {
                    None => self.wanted.entry(wanted).or_default().push(event, around),
                    Some(Some(from)) if self.is_present[from as usize] => match message.tag {
                        None => self.wanted.entry(wanted).or_default().push(event, around),
                        tag => {
                            let channel = Channel { from, to: rank, comm: call.comm, tag };
                            self.receives.entry(channel).or_default().push(event, around);
                        }
                    },
                    Some(from) => {
                        self.result.absent = self.result.absent.saturating_add(times);
                        from.into_iter().for_each(|from| self.count((from, rank), message, times));
                    }
                }
            }
            if call.collective.is_some() {
                let members = communicators.members(stream, comm).map(<[u32]>::as_ptr);
                let next = self.groups.len();
                let group = *self.group_numbers.entry((call.comm, members)).or_insert(next);
                if group == next {
                    self.groups.push(Group { comm: call.comm, sequences: BTreeMap::new() });
                }
                self.groups[group].sequences.entry(stream).or_default().push(event, around);
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
        (stream, self.processes.traces()[stream].events[(event - self.first_events[stream]) as usize])
    }

    fn link(&mut self, a: u32, b: u32) {
        let ((a_stream, a), (b_stream, b)) = (self.locate(a), self.locate(b));
        let (a, b) = (a.shown, b.shown);
        self.add_link(a_stream, Link { index: a, stream: b_stream as u32, partner: b });
        self.add_link(b_stream, Link { index: b, stream: a_stream as u32, partner: a });
    }

    fn add_link(&mut self, stream: usize, link: Link) {
        let links = &mut self.result.links[stream];
        links.push(link);
        if links.len() >= self.most_links[stream] {
            links.sort_unstable();
            links.dedup();
            self.most_links[stream] = self.most_links[stream].max(2 * links.len());
        }
    }

    /// Links what belongs together, as long as there are steps left.
    fn link_all(&mut self, left: &[Node], right: &[Node]) {
        let mut steps = self.steps;
        zip(left, right, &mut steps, &mut |pair: Pair| self.link(pair.left, pair.right));
        self.steps = steps;
        self.result.is_cut |= steps == 0;
    }

    fn match_messages(&mut self) {
        let finished = |open: HashMap<Channel, Sequence>| -> BTreeMap<Channel, Vec<Node>> {
            open.into_iter().map(|(channel, sequence)| (channel, sequence.finish())).collect()
        };
        let sends = finished(std::mem::take(&mut self.sends));
        let mut receives = finished(std::mem::take(&mut self.receives));
        let mut left = Vec::new();
        for (channel, sent) in &sends {
            let received = receives.remove(channel).unwrap_or_default();
            let all = events(sent);
            let taken = all.min(events(&received));
            self.link_all(sent, &received);
            if all > taken {
                left.push(Left { channel: *channel, sent, all, taken, is_certain: taken == 0 });
            }
            self.report(*channel, false, taken, events(&received));
        }
        for (channel, received) in receives {
            self.report(channel, false, 0, events(&received));
        }
        self.match_wanted(&mut left);
        for Left { channel, all, taken, .. } in left {
            self.report(channel, true, taken, all);
        }
    }

    /// Matches receives that leave something open with what specific receives have left over.
    fn match_wanted(&mut self, left: &mut [Left<'_>]) {
        let mut wanted: Vec<(Wanted, Vec<Node>)> = std::mem::take(&mut self.wanted)
            .into_iter()
            .map(|(wanted, open)| (wanted, open.finish()))
            .collect();
        wanted.sort_by_key(|(wanted, _)| wanted.openness());
        if wanted.is_empty() {
            return;
        }
        let kinds: HashSet<Wanted> = wanted.iter().map(|(wanted, _)| *wanted).collect();
        for left in left.iter_mut() {
            // Where receives of several kinds can mean it, none is known to.
            left.is_certain &= left.kinds().filter(|wanted| kinds.contains(wanted)).count() == 1;
        }
        let fitting = fitting(left);
        let mut undecided = Undecided::new();
        let with_tag = wanted.partition_point(|(wanted, _)| wanted.openness() == Openness::Sender);
        for (wanted, received) in &wanted[..with_tag] {
            self.match_open(left, &fitting, (wanted, received), None, &mut undecided);
        }
        let in_order = self.sends_in_order(left, &fitting, &wanted[with_tag..]);
        for (wanted, received) in &wanted[with_tag..] {
            self.match_open(left, &fitting, (wanted, received), in_order.get(wanted), &mut undecided);
        }
        for (wanted, count) in undecided.into_values().flatten() {
            self.report_open(wanted, true, 0, count);
        }
    }

    /// Matches receives that leave the same open; `in_order` is all that can be meant.
    fn match_open(
        &mut self,
        left: &mut [Left<'_>],
        fitting: &HashMap<Wanted, Vec<usize>>,
        (wanted, received): (&Wanted, &[Node]),
        in_order: Option<&Vec<Node>>,
        undecided: &mut Undecided,
    ) {
        let candidates = candidates(left, fitting, wanted);
        let sent = candidates.iter().fold(0u64, |sum, &at| sum.saturating_add(left[at].rest()));
        let asked = events(received);
        let pools = undecided.entry((wanted.to, wanted.comm)).or_insert([(*wanted, 0); 2]);
        let own_pool = usize::from(wanted.openness() > Openness::Sender);
        // What receives with less open have left, whichever it is.
        let usable = match wanted.openness() {
            Openness::Sender => 0,
            Openness::Tag => 1,
            Openness::Both => 2,
        };
        let pooled = pools[..usable].iter().fold(0u64, |sum, pool| sum.saturating_add(pool.1));
        let mut open = asked;
        match candidates[..] {
            [only] if left[only].is_certain && pooled == 0 => self.link_all(left[only].sent, received),
            _ => match in_order {
                Some(in_order) if pooled == 0 => self.link_all(in_order, received),
                _ => {
                    let unresolved = asked.min(sent.saturating_add(pooled));
                    self.result.unresolved = self.result.unresolved.saturating_add(unresolved);
                }
            },
        }
        if candidates.len() == 1 || asked >= sent {
            for at in candidates {
                let taken = left[at].rest().min(open);
                left[at].taken += taken;
                open -= taken;
            }
        } else {
            candidates.into_iter().for_each(|at| left[at].taken = left[at].all);
            let (known, count) = pools[own_pool];
            let of = if count > 0 { known.or(*wanted) } else { *wanted };
            pools[own_pool] = (of, count.saturating_add(sent - asked));
            open = 0;
        }
        for pool in &mut pools[..usable] {
            let taken = pool.1.min(open);
            pool.1 -= taken;
            open -= taken;
        }
        if open > 0 {
            self.report_open(*wanted, false, asked - open, open);
        }
    }

    /// What one process has sent to another, with all tags that are left, where that is
    /// requested.
    fn sends_in_order(
        &self,
        left: &[Left<'_>],
        fitting: &HashMap<Wanted, Vec<usize>>,
        wanted: &[(Wanted, Vec<Node>)],
    ) -> HashMap<Wanted, Vec<Node>> {
        let mut channels: HashSet<Channel> = HashSet::new();
        let mut senders: HashSet<u32> = HashSet::new();
        for (wanted, _) in wanted.iter().filter(|(wanted, _)| wanted.openness() == Openness::Tag) {
            let candidates = candidates(left, fitting, wanted);
            if candidates.len() > 1 && candidates.iter().all(|&at| left[at].is_certain) {
                senders.extend(wanted.from);
                channels.extend(candidates.iter().map(|&at| left[at].channel));
            }
        }
        let Processes { calls, communicators, .. } = self.processes;
        let mut sequences: HashMap<Wanted, Sequence> = HashMap::new();
        let mut next_loop = 0;
        for (stream, trace) in self.processes.traces().iter().enumerate() {
            let from = communicators.rank(stream);
            if !senders.contains(&from) {
                continue;
            }
            each_with_loops(&trace.nest, &mut Vec::new(), &mut next_loop, &mut |index, around| {
                let Some(call) = calls.get(trace.events[index as usize].symbol) else { return };
                for message in &call.sends {
                    let Peer::Rank(peer) = message.peer else { continue };
                    let to = communicators.world_rank(stream, calls.comm(call.comm), peer);
                    let channel = to.map(|to| Channel { from, to, comm: call.comm, tag: message.tag });
                    if let Some(channel) = channel.filter(|channel| channels.contains(channel)) {
                        let wanted = Wanted { to: channel.to, comm: call.comm, from: Some(from), tag: None };
                        let event = self.first_events[stream] + index;
                        sequences.entry(wanted).or_default().push(event, around);
                    }
                }
            });
        }
        sequences.into_iter().map(|(wanted, open)| (wanted, open.finish())).collect()
    }

    /// Reports what a channel has at one end from the first `matched` on.
    fn report(&mut self, channel: Channel, sent: bool, matched: u64, all: u64) {
        if all <= matched {
            return;
        }
        let (own, peer) = if sent { (channel.from, channel.to) } else { (channel.to, channel.from) };
        let first = self.find((own, channel.comm), sent, matched, |world_rank, message| {
            let Peer::Rank(rank) = message.peer else { return false };
            message.tag == channel.tag && world_rank(rank) == Some(peer)
        });
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

    /// Reports receives that leave something open from the first `matched` on, or sends that they
    /// left over, whichever these are.
    fn report_open(&mut self, wanted: Wanted, sent: bool, matched: u64, count: u64) {
        if count == 0 {
            return;
        }
        let is_same = |world_rank: &dyn Fn(u32) -> Option<u32>, message: &Message| match message.peer {
            _ if message.tag != wanted.tag => false,
            Peer::Any => wanted.from.is_none(),
            Peer::Rank(rank) => wanted.from.is_some() && world_rank(rank) == wanted.from,
        };
        let first = if sent { None } else { self.find((wanted.to, wanted.comm), false, matched, is_same) };
        let comm = self.processes.calls.comm(wanted.comm).to_string();
        let Wanted { from, to, tag, .. } = wanted;
        self.result.unmatched.push(Unmatched { sent, from, to, comm, tag, count, first });
    }

    /// The stream and position of the n-th message of a kind that a process sends or receives.
    /// Returns `None` if the limit of such searches is reached.
    fn find(
        &self,
        (own, comm): (u32, CommId),
        sent: bool,
        mut nth: u64,
        is_same: impl Fn(&dyn Fn(u32) -> Option<u32>, &Message) -> bool,
    ) -> Option<(usize, u64)> {
        if self.result.unmatched.len() >= MOST_LOCATED {
            return None;
        }
        let Processes { fold, calls, communicators, .. } = self.processes;
        for &stream in self.streams_of.get(&own)? {
            let world_rank = |rank| communicators.world_rank(stream, calls.comm(comm), rank);
            let weight = |symbol: Symbol| {
                let Some(call) = calls.get(symbol).filter(|call| call.comm == comm) else { return 0 };
                let messages = if sent { &call.sends } else { &call.receives };
                messages.iter().filter(|message| is_same(&world_rank, message)).count() as u64
            };
            match rank::nth(fold, fold.streams()[stream].root(), nth, weight) {
                Ok(position) => return Some((stream, position)),
                Err(all) => nth -= all,
            }
        }
        None
    }

    fn match_collectives(&mut self) {
        let mut idle = self.idle_members();
        for (number, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            let members = group.sequences.into_iter().map(|(stream, open)| (stream, open.finish()));
            // Members that never take part have no operations.
            let mut members = members.chain(idle.remove(&number).into_iter().flatten());
            let Some((first, reference)) = members.next() else { continue };
            let mut found = HashMap::new();
            for (stream, sequence) in members {
                let Some(nth) = self.match_collective(&reference, &sequence) else { continue };
                let in_first =
                    *found.entry(nth).or_insert_with(|| self.find_collective(first, group.comm, nth));
                let seen = [(first, in_first), (stream, self.find_collective(stream, group.comm, nth))];
                let comm = self.processes.calls.comm(group.comm).to_string();
                self.result.disagreements.push(Disagreement { comm, nth, seen });
            }
        }
    }

    /// For each group the streams of processes that are members and do nothing there, one for
    /// each of them, if the members are known.
    fn idle_members(&self) -> HashMap<usize, Vec<(usize, Vec<Node>)>> {
        let Processes { calls, communicators, .. } = self.processes;
        let mut ids: HashMap<&str, CommId> = HashMap::new();
        ids.extend(calls.comms().map(|(id, name)| (name, id)));
        let mut busy: HashSet<(usize, u32)> = HashSet::new();
        for (number, group) in self.groups.iter().enumerate() {
            busy.extend(group.sequences.keys().map(|&stream| (number, communicators.rank(stream))));
        }
        let mut idle: HashMap<usize, Vec<(usize, Vec<Node>)>> = HashMap::new();
        for stream in 0..self.processes.traces().len() {
            let world = communicators.members(stream, WORLD).is_none().then_some((WORLD, None));
            let others =
                communicators.of_stream(stream).map(|(comm, members)| (comm, Some(members.as_ptr())));
            for (comm, members) in world.into_iter().chain(others) {
                let group = ids.get(comm).and_then(|&id| self.group_numbers.get(&(id, members)));
                let is_member = communicators.own_rank(stream, comm).is_some();
                // Of the streams of a process one is enough.
                if let Some(&group) = group
                    && is_member
                    && busy.insert((group, communicators.rank(stream)))
                {
                    idle.entry(group).or_default().push((stream, Vec::new()));
                }
            }
        }
        idle
    }

    /// Links the operations of two members, and returns the first operation on which they
    /// disagree.
    fn match_collective(&mut self, first: &[Node], second: &[Node]) -> Option<u64> {
        let mut differs: Option<u64> = None;
        let mut steps = self.steps;
        zip(first, second, &mut steps, &mut |Pair { left, right, nth, .. }| {
            self.link(left, right);
            if differs.is_none() && !self.is_same_operation(left, right) {
                differs = Some(nth);
            }
        });
        self.steps = steps;
        self.result.is_cut |= steps == 0;
        let (in_first, in_second) = (events(first), events(second));
        differs.or((in_first != in_second).then_some(in_first.min(in_second)))
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
        let position = rank::nth(fold, root, nth, weight).ok()?;
        Some((position, fold.symbol_at(root, position)?))
    }
}

/// Where the links of each of this many events begin, and where the last ones end.
fn starts(links: &[Link], events: usize) -> Vec<u32> {
    let mut starts = vec![0u32; events + 1];
    links.iter().for_each(|link| starts[link.index as usize + 1] += 1);
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    starts
}

/// Sent messages, and how many of them receives have taken.
struct Left<'a> {
    channel: Channel,
    sent: &'a [Node],
    all: u64,
    taken: u64,
    /// True if no specific receive has taken any of it, and those of one kind alone can.
    is_certain: bool,
}

impl Left<'_> {
    fn rest(&self) -> u64 {
        self.all - self.taken
    }

    /// The kinds of receives that can mean it.
    fn kinds(&self) -> impl Iterator<Item = Wanted> + use<> {
        let Channel { from, to, comm, tag } = self.channel;
        let all = Wanted { to, comm, from: None, tag: None };
        let of_sender = Wanted { from: Some(from), ..all };
        let with_tag = tag.map(|tag| Wanted { tag: Some(tag), ..all });
        [all, of_sender].into_iter().chain(with_tag)
    }
}

/// For each process and communicator, how many sent messages are left, but not which: those
/// left by receives from any source, and those left by others.
type Undecided = BTreeMap<(u32, CommId), [(Wanted, u64); 2]>;

/// Which of what is left each kind of receive can mean.
fn fitting(left: &[Left<'_>]) -> HashMap<Wanted, Vec<usize>> {
    let mut fitting: HashMap<Wanted, Vec<usize>> = HashMap::new();
    for (at, left) in left.iter().enumerate() {
        left.kinds().for_each(|wanted| fitting.entry(wanted).or_default().push(at));
    }
    fitting
}

/// Those that have something left.
fn candidates(left: &[Left<'_>], fitting: &HashMap<Wanted, Vec<usize>>, wanted: &Wanted) -> Vec<usize> {
    let all = fitting.get(wanted).into_iter().flatten().copied();
    all.filter(|&at| left[at].rest() > 0).collect()
}

/// For more channels than this, the first unmatched message is not located.
const MOST_LOCATED: usize = 1000;
