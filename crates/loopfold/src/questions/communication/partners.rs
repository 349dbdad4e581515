//! Matches sends with receives, and the calls of a collective operation with each other.
//!
//! Messages from one process to another with the same communicator and tag are received in the
//! order in which they are sent, so the n-th send belongs to the n-th receive; the n-th
//! collective operation on a communicator is the same one for all of its members. A receive
//! with a wildcard source or tag takes what no other receive has taken; its partner is known
//! only if a single process can have sent it, in a single order. Messages that remain at one
//! end were never completed, which is often the bug.
//!
//! What is left is a matter of counts, and these come from the rules: O(items) for each stream.
//! The partner of an event is looked up in the [channels](ChannelTable). Where members of a
//! communicator disagree, their streams are walked up to the first difference.

use super::channels::{ChannelKind, ChannelTable, Side};
use super::processes::Processes;
use super::sequence_hash::SequenceHash;
use crate::fold::Fold;
use crate::fold::{Measure, measure_rules, rank, reach};
use crate::mpi::{Channel, CommId, Group, MessageEnd, MessageEnds, Peer, WORLD};
use crate::trace::Name;
use crate::{Result, StreamId, Symbol};
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
    pub(super) table: ChannelTable,
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
}

impl Partners {
    /// Matches all messages and collective operations.
    pub fn of(processes: &Processes<'_>) -> Result<Self> {
        Matching::new(processes)?.run()
    }

    /// The events that an event belongs together with: the other ends of its messages, and the
    /// calls of the other members of a collective operation. Positions are those among the
    /// events that are examined. Receives from anyone have none, nor what was never completed.
    pub fn of_event(
        &self,
        processes: &Processes<'_>,
        stream: StreamId,
        position: u64,
    ) -> Vec<(StreamId, u64)> {
        let trace = &processes.traces()[stream.index()];
        let Some(located) = trace.nest().locate(position) else { return Vec::new() };
        let mut partners = Vec::new();
        let numbers = self.table.streams[stream.index()].of_kind(trace.kind(located.index));
        for (at, &number) in numbers.iter().enumerate() {
            let end = self.table.end(stream.index() as u32, number);
            let channel = self.table.channel(end);
            // An event can have several messages of a channel.
            let earlier = numbers[..at].iter().filter(|&&other| other == number).count() as u64;
            let nth = end.before(trace.nest(), &located) + earlier;
            let others = channel.ends.iter().filter(|&&(side, other, _)| {
                side != end.side || side == Side::Member && other as usize != stream.index()
            });
            for &(_, other, number) in others.filter(|_| channel.is_ordered()) {
                let nest = processes.nest(other);
                let found = self.table.end(other, number).position(nest, nth);
                partners.extend(found.and_then(|found| Some((StreamId::new(other as usize).ok()?, found))));
            }
        }
        partners
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
    fn of(end: &MessageEnd<'_>) -> Self {
        Self { to: end.own, comm: end.comm, from: end.process(), tag: end.message.tag }
    }

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

/// The name of a collective operation, and its root, if it has one.
type Operation<'a> = (Name<'a>, Option<i64>);

struct Matching<'p, 'a> {
    processes: &'p Processes<'a>,
    message_ends: MessageEnds<'p>,
    /// The streams of each process.
    streams_of: HashMap<u32, Vec<usize>>,
    sends: BTreeMap<Channel, u64>,
    receives: BTreeMap<Channel, u64>,
    wanted: BTreeMap<Wanted, u64>,
    result: Partners,
}

impl<'p, 'a> Matching<'p, 'a> {
    fn new(processes: &'p Processes<'a>) -> Result<Self> {
        let mut streams_of: HashMap<u32, Vec<usize>> = HashMap::new();
        for stream in 0..processes.traces().len() {
            streams_of.entry(processes.communicators.rank(stream)).or_default().push(stream);
        }
        Ok(Self {
            processes,
            message_ends: processes.message_ends(),
            streams_of,
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            wanted: BTreeMap::new(),
            result: Partners { table: ChannelTable::of(processes)?, ..Partners::default() },
        })
    }

    fn run(mut self) -> Result<Partners> {
        let fold = self.processes.fold;
        let mut uses = reach::UsesBelow::new(fold);
        let mut known: Option<(crate::RuleId, Vec<u64>)> = None;
        for (stream, folded) in fold.streams().iter().enumerate() {
            // Equal streams mostly follow each other.
            let counts = match known.take() {
                Some((root, counts)) if root == folded.root() => counts,
                _ => {
                    uses.count(folded.root())?;
                    uses.symbol_counts()?
                }
            };
            for symbol in fold.alphabet().symbols() {
                let times = counts[symbol.index()];
                if times > 0 && self.processes.is_taken(symbol) {
                    self.gather(stream, symbol, times);
                }
            }
            known = Some((folded.root(), counts));
        }
        self.match_messages();
        self.compare_collectives()?;
        self.result
            .unmatched
            .sort_by(|a, b| b.count.cmp(&a.count).then(a.to.cmp(&b.to)).then(a.from.cmp(&b.from)));
        Ok(self.result)
    }

    /// Counts the messages of an event that a stream has this often.
    fn gather(&mut self, stream: usize, symbol: Symbol, times: u64) {
        for end in self.message_ends.of(stream, symbol) {
            let channel = end.channel();
            let is_present = end.process().is_some_and(|process| self.streams_of.contains_key(&process));
            // What is sent in the trace counts where it is sent.
            if let Some(channel) = channel.filter(|_| end.is_send || !is_present) {
                let traffic = self.result.matrix.entry((channel.from, channel.to)).or_default();
                add(&mut traffic.messages, times);
                add(&mut traffic.bytes, end.message.bytes.unwrap_or(0).saturating_mul(times));
            }
            let sum = match (end.peer, channel.filter(|_| is_present)) {
                (_, Some(channel)) if end.is_send => self.sends.entry(channel).or_default(),
                (_, Some(channel)) if channel.tag.is_some() => self.receives.entry(channel).or_default(),
                (Some(Peer::Any), _) | (_, Some(_)) => self.wanted.entry(Wanted::of(&end)).or_default(),
                _ => &mut self.result.absent,
            };
            add(sum, times);
        }
    }

    fn match_messages(&mut self) {
        let mut receives = std::mem::take(&mut self.receives);
        let mut left = Vec::new();
        for (channel, all) in std::mem::take(&mut self.sends) {
            let received = receives.remove(&channel).unwrap_or(0);
            let taken = all.min(received);
            if all > taken {
                left.push(Left { channel, all, taken, is_certain: taken == 0 });
            }
            self.report(channel, false, taken, received);
        }
        for (channel, received) in receives {
            self.report(channel, false, 0, received);
        }
        self.match_wanted(&mut left);
        for Left { channel, all, taken, .. } in left {
            self.report(channel, true, taken, all);
        }
    }

    /// Matches receives that leave something open with what specific receives have left over.
    fn match_wanted(&mut self, left: &mut [Left]) {
        let mut wanted: Vec<(Wanted, u64)> = std::mem::take(&mut self.wanted).into_iter().collect();
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
        for &(wanted, received) in &wanted {
            self.match_open(left, &fitting, (wanted, received), &mut undecided);
        }
        for (wanted, count) in undecided.into_values().flatten() {
            self.report_open(wanted, true, 0, count);
        }
    }

    /// Matches receives that leave the same open.
    fn match_open(
        &mut self,
        left: &mut [Left],
        fitting: &HashMap<Wanted, Vec<usize>>,
        (wanted, asked): (Wanted, u64),
        undecided: &mut Undecided,
    ) {
        let candidates = candidates(left, fitting, &wanted);
        let sent = candidates.iter().fold(0u64, |sum, &at| sum.saturating_add(left[at].rest()));
        let pools = undecided.entry((wanted.to, wanted.comm)).or_insert([(wanted, 0); 2]);
        let own_pool = usize::from(wanted.openness() > Openness::Sender);
        // What receives with less open have left, whichever it is.
        let usable = match wanted.openness() {
            Openness::Sender => 0,
            Openness::Tag => 1,
            Openness::Both => 2,
        };
        let pooled = pools[..usable].iter().fold(0u64, |sum, pool| sum.saturating_add(pool.1));
        let mut open = asked;
        // One sender's messages come in their order, whatever their tags.
        let is_in_order =
            candidates.windows(2).all(|two| left[two[0]].channel.from == left[two[1]].channel.from);
        let is_known = is_in_order && pooled == 0 && candidates.iter().all(|&at| left[at].is_certain);
        if candidates.is_empty() || !is_known {
            let unresolved = asked.min(sent.saturating_add(pooled));
            self.result.unresolved = self.result.unresolved.saturating_add(unresolved);
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
            let of = if count > 0 { known.or(wanted) } else { wanted };
            pools[own_pool] = (of, count.saturating_add(sent - asked));
            open = 0;
        }
        for pool in &mut pools[..usable] {
            let taken = pool.1.min(open);
            pool.1 -= taken;
            open -= taken;
        }
        if open > 0 {
            self.report_open(wanted, false, asked - open, open);
        }
    }

    /// Reports what a channel has at one end from the first `matched` on.
    fn report(&mut self, channel: Channel, sent: bool, matched: u64, all: u64) {
        if all <= matched {
            return;
        }
        let own = if sent { channel.from } else { channel.to };
        let first = self.find((own, channel.comm), sent, matched, |end| end.channel() == Some(channel));
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
        let is_same = |end: &MessageEnd<'_>| end.peer.is_some() && Wanted::of(end) == wanted;
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
        is_same: impl Fn(&MessageEnd<'_>) -> bool,
    ) -> Option<(usize, u64)> {
        if self.result.unmatched.len() >= MOST_LOCATED {
            return None;
        }
        let (fold, ends) = (self.processes.fold, self.message_ends);
        for &stream in self.streams_of.get(&own)? {
            let weight = |symbol: Symbol| {
                let call = ends.calls.get(symbol).filter(|call| call.comm == comm);
                let messages = call.into_iter().flat_map(|call| ends.of_call(stream, call));
                messages.filter(|end| end.is_send == sent && is_same(end)).count() as u64
            };
            match rank::nth(fold, fold.streams()[stream].root(), nth, weight) {
                Ok(position) => return Some((stream, position)),
                Err(all) => nth -= all,
            }
        }
        None
    }

    /// Compares the operations of all members of each communicator with those of the first.
    fn compare_collectives(&mut self) -> Result<()> {
        let fold = self.processes.fold;
        let mut idle = self.idle_members();
        let mut hashes: HashMap<CommId, Vec<SequenceHash>> = HashMap::new();
        for number in 0..self.result.table.channels.len() {
            let channel = &self.result.table.channels[number];
            let ChannelKind::Collective(group) = channel.kind else { continue };
            let comm = group.comm();
            if !hashes.contains_key(&comm) {
                hashes.insert(comm, measure_rules(fold, &self.operation_hash(comm))?);
            }
            let hash = |stream: usize| hashes[&comm][fold.streams()[stream].root().index()];
            let busy = channel.ends.iter().map(|&(_, stream, _)| stream as usize);
            // Members that never take part have no operations.
            let members: Vec<usize> = busy.chain(idle.remove(&number).into_iter().flatten()).collect();
            let Some((&first, others)) = members.split_first() else { continue };
            let differing = others.iter().filter(|&&stream| hash(stream) != hash(first));
            let found: Vec<Disagreement> =
                differing.filter_map(|&stream| self.first_difference(comm, [first, stream])).collect();
            self.result.disagreements.extend(found);
        }
        Ok(())
    }

    /// For each channel of a communicator the streams of processes that are members and do
    /// nothing there, one for each of them, if the members are known.
    fn idle_members(&self) -> HashMap<usize, Vec<usize>> {
        let Processes { calls, communicators, .. } = self.processes;
        let ids: HashMap<&str, CommId> = calls.comms().map(|(id, name)| (name, id)).collect();
        let mut groups: HashMap<Group, usize> = HashMap::new();
        let mut busy: HashSet<(usize, u32)> = HashSet::new();
        for (number, channel) in self.result.table.channels.iter().enumerate() {
            let ChannelKind::Collective(group) = channel.kind else { continue };
            groups.insert(group, number);
            let ends = channel.ends.iter();
            busy.extend(ends.map(|&(_, stream, _)| (number, communicators.rank(stream as usize))));
        }
        let mut idle: HashMap<usize, Vec<usize>> = HashMap::new();
        for stream in 0..self.processes.traces().len() {
            let world = communicators.members(stream, WORLD).is_none().then_some((WORLD, None));
            let others = communicators.of_stream(stream);
            let others = others.map(|(comm, members)| (comm, Some(members)));
            for (comm, members) in world.into_iter().chain(others) {
                let group = ids.get(comm).and_then(|&id| groups.get(&Group::new(id, members)));
                let is_member = communicators.own_rank(stream, comm).is_some();
                // Of the streams of a process one is enough.
                if let Some(&group) = group
                    && is_member
                    && busy.insert((group, communicators.rank(stream)))
                {
                    idle.entry(group).or_default().push(stream);
                }
            }
        }
        idle
    }

    /// Numbers the operations on a communicator.
    fn operation_hash(&self, comm: CommId) -> OperationHash {
        let mut known: HashMap<Operation<'a>, u64> = HashMap::new();
        let number = |symbol: Symbol| {
            let operation = self.operation(symbol, comm)?;
            let next = known.len() as u64 + 1;
            Some(*known.entry(operation).or_insert(next))
        };
        let symbols = self.processes.fold.alphabet().symbols();
        OperationHash { numbers: symbols.map(number).map(Option::unwrap_or_default).collect() }
    }

    /// An operation on a communicator: what has the same name and root is the same.
    fn operation(&self, symbol: Symbol, comm: CommId) -> Option<Operation<'a>> {
        let call = self.processes.calls.get(symbol).filter(|call| call.comm == comm)?;
        let fold: &'a Fold = self.processes.fold;
        Some((fold.alphabet().meaning(symbol).name, call.collective?))
    }

    /// The first operation on which two streams disagree.
    fn first_difference(&self, comm: CommId, streams: [usize; 2]) -> Option<Disagreement> {
        let fold = self.processes.fold;
        let operations = streams.map(|stream| {
            let events = (0u64..).zip(fold.unfold(fold.streams()[stream].root()));
            events.filter_map(move |(position, symbol)| {
                Some(((position, symbol), self.operation(symbol, comm)?))
            })
        });
        let [mut first, mut second] = operations;
        for nth in 0.. {
            let seen = [first.next(), second.next()];
            let [one, other] = &seen;
            let is_same = one.map(|(_, operation)| operation) == other.map(|(_, operation)| operation);
            match (one, other) {
                (None, None) => return None,
                _ if is_same => {}
                _ => {
                    let [one, other] = seen.map(|seen| seen.map(|(at, _)| at));
                    let comm = self.processes.calls.comm(comm).to_string();
                    return Some(Disagreement { comm, nth, seen: [(streams[0], one), (streams[1], other)] });
                }
            }
        }
        None
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Hashes the operations on a communicator.
struct OperationHash {
    /// For each symbol the number of its operation, or 0.
    numbers: Vec<u64>,
}

impl Measure for OperationHash {
    type Value = SequenceHash;

    fn empty(&self) -> SequenceHash {
        SequenceHash::EMPTY
    }

    fn symbol(&self, symbol: Symbol) -> SequenceHash {
        match self.numbers[symbol.index()] {
            0 => SequenceHash::EMPTY,
            number => SequenceHash::of(number),
        }
    }

    fn join(&self, left: &SequenceHash, right: &SequenceHash) -> Result<SequenceHash> {
        Ok(left.then(*right))
    }
}

/// Sent messages, and how many of them receives have taken.
struct Left {
    channel: Channel,
    all: u64,
    taken: u64,
    /// True if no specific receive has taken any of it, and those of one kind alone can.
    is_certain: bool,
}

impl Left {
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
fn fitting(left: &[Left]) -> HashMap<Wanted, Vec<usize>> {
    let mut fitting: HashMap<Wanted, Vec<usize>> = HashMap::new();
    for (at, left) in left.iter().enumerate() {
        left.kinds().for_each(|wanted| fitting.entry(wanted).or_default().push(at));
    }
    fitting
}

/// Those that have something left.
fn candidates(left: &[Left], fitting: &HashMap<Wanted, Vec<usize>>, wanted: &Wanted) -> Vec<usize> {
    let all = fitting.get(wanted).into_iter().flatten().copied();
    all.filter(|&at| left[at].rest() > 0).collect()
}

/// For more channels than this, the first unmatched message is not located.
const MOST_LOCATED: usize = 1000;
