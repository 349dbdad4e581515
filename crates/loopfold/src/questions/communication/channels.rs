//! The channels between processes, and where each message is: the n-th message of a channel in
//! the stream at either end, and how many lie before a position.
//!
//! Messages from one process to another with the same communicator and tag are received in the
//! order in which they are sent (`tags` says where tags matter), so the n-th send of a channel belongs
//! to its n-th receive. The n-th collective operation on a communicator is the same one for all
//! members, so a communicator is a channel too, with an end at every member. A communicator is
//! that of its members: one of the same name with other members is another one. What is
//! received from anyone comes from a *pool*, a channel with several senders.
//!
//! Both look-ups work on loops, without their iterations: O(log² n). Building takes O(written
//! events × depth of loops); memory is 12 bytes for each written end of a message, 56 for each
//! channel of each loop, and 40 for each loop.

use super::loop_links::link_loops;
use super::processes::{EventKind, ProcessTrace, Processes};
use super::tags::PairOfProcesses;
use crate::mpi::{Call, Channel, CommId, Group, MessageEnds, Peer};
use crate::questions::patterns::{CollapsedLoop, Located, LoopCollapsed, LoopInstance};
use crate::{Error, Result};
use hashbrown::{HashMap, HashSet};

/// What a channel connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ChannelKind {
    /// Messages of a pair of processes, with this tag or with any.
    Messages { pair: PairOfProcesses, tag: Option<i64> },
    /// Messages to a process that receives from anyone, with this tag or with any.
    Pool { to: u32, comm: CommId, tag: Option<i64> },
    /// Collective operations on a communicator.
    Collective(Group),
}

/// The side of a channel that an event is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Side {
    Send,
    Receive,
    Member,
}

/// A channel, and who uses it.
#[derive(Clone, Debug)]
pub(super) struct ChannelEnds {
    pub(super) kind: ChannelKind,
    /// The stream and the end's number there, of all that use it.
    pub(super) ends: Vec<(Side, u32, u32)>,
}

impl ChannelEnds {
    /// The other end, if the channel has one send and one receive end.
    pub(super) fn other(&self, side: Side) -> Option<(u32, u32)> {
        match self.ends[..] {
            [(a, a_stream, a_end), (b, b_stream, b_end)] if a != b => {
                Some(if a == side { (b_stream, b_end) } else { (a_stream, a_end) })
            }
            _ => None,
        }
    }

    /// Whether messages are matched by their number: a single sender and a single receiver, or
    /// the members of a communicator.
    pub(super) fn is_ordered(&self) -> bool {
        match self.kind {
            ChannelKind::Collective(_) => true,
            _ => {
                let of = |side| self.ends.iter().filter(|end| end.0 == side).count();
                of(Side::Send) <= 1 && of(Side::Receive) <= 1
            }
        }
    }
}

/// The messages of an end in a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopMessages {
    /// The loop, by its index.
    pub(super) found: u32,
    /// Where its messages begin among those of the end.
    slot: u32,
    /// How many are in one iteration.
    pub(super) each: u64,
    /// How many come before the first execution of the loop.
    pub(super) before: u64,
}

/// One end of a channel in a stream.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) channel: u32,
    pub(super) side: Side,
    /// Where its messages are: indices of events of the nest, in order. One that has several
    /// messages is there as often.
    at: Vec<u32>,
    /// How many messages come before the first occurrence of each.
    before: Vec<u64>,
    /// The loops that have any, by their indices.
    loops: Vec<LoopMessages>,
    /// How many messages there are.
    pub(super) total: u64,
}

impl End {
    fn new(channel: u32, side: Side) -> Self {
        Self { channel, side, at: Vec::new(), before: Vec::new(), loops: Vec::new(), total: 0 }
    }

    /// The messages of first occurrences of events: the events' indices, and the numbers of the
    /// messages.
    pub(super) fn first_occurrences(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.at.iter().copied().zip(self.before.iter().copied())
    }

    /// How many messages one iteration of a loop has.
    pub(super) fn each(&self, found: usize) -> u64 {
        self.in_loop(found).map_or(0, |messages| messages.each)
    }

    /// The messages in a loop. Returns `None` if it has none.
    pub(super) fn in_loop(&self, found: usize) -> Option<&LoopMessages> {
        let at = self.loops.binary_search_by_key(&(found as u32), |messages| messages.found);
        at.ok().map(|at| &self.loops[at])
    }

    /// The messages in all loops that have any, by their indices: by the number of the first
    /// message, and of those that begin with the same one the outermost first.
    pub(super) fn loops(&self) -> &[LoopMessages] {
        &self.loops
    }

    /// The events of the messages in one iteration of a loop in which none is, by their indices.
    pub(super) fn in_flat_loop(&self, messages: &LoopMessages) -> &[u32] {
        &self.at[messages.slot as usize..messages.slot as usize + messages.each as usize]
    }

    /// Adds where the messages in one iteration of a loop are, relative to its begin, in order. The
    /// caller knows that they are few.
    pub(super) fn add_offsets(&self, nest: &LoopCollapsed, messages: &LoopMessages, to: &mut Vec<u64>) {
        self.add_offsets_from(nest, messages.slot as usize, messages.found as usize, 0, to);
    }

    /// The same from a slot on, where the iteration begins at an offset. Returns the slot behind.
    fn add_offsets_from(
        &self,
        nest: &LoopCollapsed,
        mut slot: usize,
        found: usize,
        begin: u64,
        to: &mut Vec<u64>,
    ) -> usize {
        let CollapsedLoop { start, end, .. } = nest.loops()[found];
        let (mut inside, mut added) = (found + 1, 0);
        while let Some(&index) = self.at.get(slot).filter(|&&index| index < end) {
            // Loops that ended before have more events than are written.
            while let Some(ended) = nest.loops().get(inside).filter(|inside| inside.end <= index) {
                added += ended.times * nest.body_events(inside) - u64::from(ended.end - ended.start);
                let behind = |next: &&CollapsedLoop| next.start < ended.end;
                inside += nest.loops()[inside..].iter().take_while(behind).count();
            }
            let offset = |index: u32| begin + u64::from(index - start) + added;
            let Some(inner) = nest.loops().get(inside).filter(|inner| inner.start <= index) else {
                to.push(offset(index));
                slot += 1;
                continue;
            };
            let (first, body) = (slot, nest.body_events(inside));
            for times in 0..inner.times {
                slot = self.add_offsets_from(nest, first, inside, offset(inner.start) + times * body, to);
            }
        }
        slot
    }

    /// The loops around the n-th message, the outermost first: those that are located at its
    /// position, which is not needed for it. All of them have messages of this end.
    /// `near` is the place of a loop that begins near it.
    pub(super) fn loops_around<'e>(
        &'e self,
        nest: &'e LoopCollapsed,
        nth: u64,
        near: usize,
    ) -> LoopsAround<'e> {
        LoopsAround { end: self, nest, nth, near, outer: None, later_messages: 0, later_events: 0 }
    }

    /// How many loops begin with a message of at most this number: those with a number of their own
    /// begin near a place.
    fn loops_up_to(&self, nth: u64, near: usize) -> usize {
        let begins = |at: usize| self.loops[at].before <= nth;
        let (mut from, mut to, mut step) = (near.min(self.loops.len()), near.min(self.loops.len()), 1);
        while to < self.loops.len() && begins(to) {
            (from, to, step) = (to + 1, self.loops.len().min(to + step), 2 * step);
        }
        while from > 0 && !begins(from - 1) {
            (to, from, step) = (from - 1, from.saturating_sub(step), 2 * step);
        }
        from + self.loops[from..to.max(from)].partition_point(|messages| messages.before <= nth)
    }

    /// How many messages come before what is located.
    pub(super) fn before(&self, nest: &LoopCollapsed, located: &Located) -> u64 {
        let last = self.at.partition_point(|&index| (index as usize) < located.index);
        let before = last.checked_sub(1).map_or(0, |last| {
            let around = nest.around(self.at[last] as usize);
            let ended = around.take_while(|&found| nest.loops()[found].end as usize <= located.index);
            match ended.last().and_then(|found| Some((found, self.in_loop(found)?))) {
                Some((found, messages)) => messages.before + messages.each * nest.loops()[found].times,
                None => self.before[last] + 1,
            }
        });
        let later = located.around.iter().filter(|instance| instance.iteration > 0);
        before + later.map(|instance| instance.iteration * self.each(instance.found)).sum::<u64>()
    }

    /// The numbers of the messages from one event to another, by their indices, where no loop
    /// begins or ends between: from the first to behind the last, in the first iterations of the
    /// loops around. Returns `None` if there are none.
    pub(super) fn numbers_in(&self, first: u32, last: u32) -> Option<(u64, u64)> {
        let from = self.at.partition_point(|&index| index < first);
        let inside = self.at[from..].iter().take_while(|&&index| index <= last).count() as u64;
        (inside > 0).then(|| (self.before[from], self.before[from] + inside))
    }

    /// The same where loops may be between, but both events are at the borders of all loops that
    /// begin or end between them.
    pub(super) fn numbers_between(&self, first: u32, last: u32) -> (u64, u64) {
        let number = |slot: usize| self.before.get(slot).copied().unwrap_or(self.total);
        let from = self.at.partition_point(|&index| index < first);
        (number(from), number(from + self.at[from..].partition_point(|&index| index <= last)))
    }

    /// The first and the last message of some, as [`Self::event`]. Returns `None` if there are
    /// fewer.
    pub(super) fn first_and_last(
        &self,
        nest: &LoopCollapsed,
        first: u64,
        last: u64,
    ) -> Option<[(u64, u32); 2]> {
        let slot = self.before.partition_point(|&before| before < first);
        let at = |slot: usize| (nest.position(self.at[slot] as usize), self.at[slot]);
        if self.before.get(slot) != Some(&first) {
            return Some([self.event(nest, first)?, self.event(nest, last)?]);
        }
        // Without loops between, the last one is as many slots further as there are messages.
        let last_slot = usize::try_from(last - first).ok().and_then(|more| slot.checked_add(more));
        let last_slot = last_slot.filter(|&slot| self.before.get(slot) == Some(&last));
        Some([at(slot), last_slot.map_or_else(|| self.event(nest, last), |slot| Some(at(slot)))?])
    }

    /// The position of the n-th message. Returns `None` if there are fewer.
    pub(super) fn position(&self, nest: &LoopCollapsed, nth: u64) -> Option<u64> {
        self.event(nest, nth).map(|(position, _)| position)
    }

    /// The position of the n-th message, and its event by its index. Returns `None` if there are
    /// fewer.
    pub(super) fn event(&self, nest: &LoopCollapsed, nth: u64) -> Option<(u64, u32)> {
        if nth >= self.total {
            return None;
        }
        let (mut nth, mut shift) = (nth, 0);
        loop {
            let last = self.before.partition_point(|&before| before <= nth) - 1;
            let index = self.at[last];
            let found = |shift| (nest.position(index as usize) + shift, index);
            if self.before[last] == nth {
                return Some(found(shift));
            }
            // Behind the first iteration of a loop it is what it would be in the first; the
            // outermost loop comes last.
            let later = nest.around(index as usize).filter_map(|found| {
                let messages = self.in_loop(found)?;
                (nth - messages.before >= messages.each).then_some(messages)
            });
            let Some(&LoopMessages { found: around, each, before, .. }) = later.last() else {
                return Some(found(shift));
            };
            shift += (nth - before) / each * nest.body_events(around as usize);
            nth = before + (nth - before) % each;
        }
    }
}

/// The loops around a message.
pub(super) struct LoopsAround<'e> {
    end: &'e End,
    nest: &'e LoopCollapsed,
    /// Where its loops are among those of the end.
    near: usize,
    /// The message as it would be in the first iteration of the loops so far.
    nth: u64,
    /// The innermost of these.
    outer: Option<usize>,
    /// How many messages and events of this end lie between the first iterations of these and
    /// the ones with the message.
    later_messages: u64,
    later_events: u64,
}

/// The execution of a loop that has a message.
pub(super) struct MessageLoop {
    pub(super) instance: LoopInstance,
    /// How many messages one iteration has.
    pub(super) each: u64,
    /// How many come before this execution.
    pub(super) before: u64,
}

impl Iterator for LoopsAround<'_> {
    type Item = MessageLoop;

    fn next(&mut self) -> Option<MessageLoop> {
        let Self { end, nest, .. } = *self;
        // Loops that begin behind the message have none before it; of the others, the last one
        // is inside of all that have the message.
        self.near = end.loops_up_to(self.nth, self.near);
        let last = self.near.checked_sub(1)?;
        let mut found = end.loops[last].found as usize;
        while nest.outer(found) != self.outer {
            found = nest.outer(found)?;
        }
        let innermost = &end.loops[last];
        let &LoopMessages { each, before, .. } =
            if innermost.found as usize == found { innermost } else { end.in_loop(found)? };
        let (iteration, rest) = ((self.nth - before) / each, (self.nth - before) % each);
        if iteration >= nest.loops()[found].times {
            return None;
        }
        let instance = LoopInstance { found, start: nest.loop_first(found) + self.later_events, iteration };
        let around = MessageLoop { instance, each, before: before + self.later_messages };
        self.later_messages += iteration * each;
        self.later_events += iteration * nest.body_events(found);
        (self.nth, self.outer) = (before + rest, Some(found));
        Some(around)
    }
}

/// The ends of channels in one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamEnds {
    pub(super) ends: Vec<End>,
    /// For each kind of event the ends that it is, as often as it has messages there.
    of_kind: Vec<Vec<u32>>,
    /// The ends with messages in loops, those of a loop side by side.
    loop_ends: Vec<LoopEnd>,
    /// For each loop which of these, and what its nest says of it: both are looked at together.
    of_loop: Vec<LoopSummary>,
}

/// An end with messages in a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopEnd {
    /// The number of the end in its stream.
    pub(super) number: u32,
    pub(super) other: OtherLoop,
    pub(super) messages: LoopMessages,
}

/// The loop at the other end of a channel with two ends, if it has the same messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherLoop(u32);

impl OtherLoop {
    /// Nothing is known.
    pub(super) const NONE: Self = Self(0);
    const SAME: u32 = 1 << 31;

    pub(super) fn same(found: u32) -> Self {
        Self(found | Self::SAME)
    }

    /// There is none, but loops that begin near it are near this place among those at the end.
    pub(super) fn near(place: usize) -> Self {
        Self(place as u32 & !Self::SAME)
    }

    /// The loop with the same messages, by its index.
    pub(super) fn found(self) -> Option<usize> {
        (self.0 & Self::SAME != 0).then_some((self.0 & !Self::SAME) as usize)
    }

    /// A place among the loops at the other end, if there is none with the same messages.
    pub(super) fn place(self) -> usize {
        if self.0 & Self::SAME != 0 { 0 } else { self.0 as usize }
    }
}

/// A loop where it is executed first, and its ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoopSummary {
    /// The position of the first event.
    pub(super) first: u64,
    /// The events of an iteration.
    pub(super) body: u64,
    pub(super) times: u64,
    /// Where its ends are.
    slots: (u32, u32),
    /// Whether it has no loops inside.
    pub(super) is_flat: bool,
}

impl LoopSummary {
    fn of(nest: &LoopCollapsed, found: usize) -> Self {
        let CollapsedLoop { start, end, times } = nest.loops()[found];
        let (first, body) = (nest.loop_first(found), nest.body_events(found));
        Self { first, body, times, slots: (0, 0), is_flat: body == u64::from(end - start) }
    }
}

/// Ends of a loop that are searched one by one.
const FEW: usize = 16;

impl StreamEnds {
    /// The ends of a kind of event.
    pub(super) fn of_kind(&self, kind: usize) -> &[u32] {
        &self.of_kind[kind]
    }

    /// The ends with messages in a loop.
    pub(super) fn of_loop(&self, found: usize) -> &[LoopEnd] {
        let (start, end) = self.of_loop[found].slots;
        &self.loop_ends[start as usize..end as usize]
    }

    /// A loop, by its index.
    pub(super) fn summary(&self, found: usize) -> &LoopSummary {
        &self.of_loop[found]
    }

    /// Sets the loops at the other ends, from those of each end by its loops.
    pub(super) fn set_others(&mut self, of_ends: &[Vec<OtherLoop>]) {
        let mut next = vec![0; of_ends.len()];
        for summary in &self.of_loop {
            let (start, end) = summary.slots;
            for loop_end in &mut self.loop_ends[start as usize..end as usize] {
                let place = &mut next[loop_end.number as usize];
                loop_end.other = of_ends[loop_end.number as usize][*place];
                *place += 1;
            }
        }
    }

    /// The messages of an end in a loop: as [`End::in_loop`], but close to those of its other
    /// ends. Returns `None` if it has none.
    pub(super) fn in_loop(&self, found: usize, number: u32) -> Option<&LoopMessages> {
        match self.of_loop(found) {
            few if few.len() <= FEW => few.iter().find(|end| end.number == number).map(|end| &end.messages),
            _ => self.ends[number as usize].in_loop(found),
        }
    }

    /// How many messages of an end one iteration of a loop has.
    pub(super) fn each(&self, found: usize, number: u32) -> u64 {
        self.in_loop(found, number).map_or(0, |messages| messages.each)
    }
}

/// All channels of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct ChannelTable {
    pub(super) channels: Vec<ChannelEnds>,
    pub(super) streams: Vec<StreamEnds>,
}

/// Ends of messages beyond a number for each written event. An event has one or two, unless it
/// is a list.
const MOST_MORE: u64 = 1 << 24;
const MOST_EACH: u64 = 64;

impl ChannelTable {
    pub(super) fn of(processes: &Processes<'_>) -> Result<Self> {
        let written: u64 = processes.traces().iter().map(|trace| trace.nest().symbols().len() as u64).sum();
        let mut building = Building::new(processes);
        let mut room = MOST_MORE + MOST_EACH * written;
        for (stream, trace) in processes.traces().iter().enumerate() {
            let kinds = building.ends_of_kinds(stream, trace);
            let built = StreamBuilding::build(trace, kinds, &mut room)?;
            building.add(stream, built);
        }
        let mut table = Self { channels: building.channels, streams: building.streams };
        link_loops(processes, &mut table);
        Ok(table)
    }

    /// An end of a stream, by its number.
    pub(super) fn end(&self, stream: u32, end: u32) -> &End {
        &self.streams[stream as usize].ends[end as usize]
    }

    /// The channel of an end.
    pub(super) fn channel(&self, end: &End) -> &ChannelEnds {
        &self.channels[end.channel as usize]
    }
}

/// Numbers channels as the streams are looked at.
struct Building<'p, 'a> {
    processes: &'p Processes<'a>,
    message_ends: MessageEnds<'p>,
    present: HashSet<u32>,
    pools: HashSet<(u32, CommId, Option<i64>)>,
    /// Pairs with receives of any tag.
    any_tag: HashSet<PairOfProcesses>,
    numbers: HashMap<ChannelKind, u32>,
    channels: Vec<ChannelEnds>,
    streams: Vec<StreamEnds>,
}

/// What a kind of event is at which ends, by channels.
type KindEnds = Vec<(u32, Side)>;

impl<'p, 'a> Building<'p, 'a> {
    fn new(processes: &'p Processes<'a>) -> Self {
        let message_ends = processes.message_ends();
        let streams = 0..processes.traces().len();
        let present = streams.clone().map(|stream| processes.communicators.rank(stream)).collect();
        let (mut pools, mut any_tag) = (HashSet::new(), HashSet::new());
        for stream in streams {
            let kinds = processes.traces()[stream].event_kinds().iter();
            let ends = kinds.flat_map(|kind| message_ends.of(stream, kind.symbol));
            for end in ends.filter(|end| !end.is_send) {
                match (end.peer, end.message.tag) {
                    (Some(Peer::Any), tag) => {
                        pools.insert((end.own, end.comm, tag));
                    }
                    (Some(Peer::Rank(from)), None) => {
                        any_tag.insert(PairOfProcesses { from, to: end.own, comm: end.comm });
                    }
                    _ => {}
                }
            }
        }
        Self {
            processes,
            message_ends,
            present,
            pools,
            any_tag,
            numbers: HashMap::new(),
            channels: Vec::new(),
            streams: Vec::new(),
        }
    }

    fn number(&mut self, kind: ChannelKind) -> u32 {
        let next = self.channels.len() as u32;
        *self.numbers.entry(kind).or_insert_with(|| {
            self.channels.push(ChannelEnds { kind, ends: Vec::new() });
            next
        })
    }

    /// For each kind of event of a stream the ends that it is.
    fn ends_of_kinds(&mut self, stream: usize, trace: &ProcessTrace) -> Vec<KindEnds> {
        let calls = &self.processes.calls;
        let ends = |kind: &EventKind| {
            calls.get(kind.symbol).map_or_else(Vec::new, |call| self.ends_of_call(stream, call))
        };
        trace.event_kinds().iter().map(ends).collect()
    }

    /// The ends that a call of a stream is. Messages with processes that are not in the trace
    /// have no channel.
    fn ends_of_call(&mut self, stream: usize, call: &'p Call) -> KindEnds {
        let mut ends = Vec::new();
        for end in self.message_ends.of_call(stream, call) {
            let kind = match end.peer {
                Some(Peer::Any) => ChannelKind::Pool { to: end.own, comm: end.comm, tag: end.message.tag },
                Some(Peer::Rank(process)) if self.present.contains(&process) => {
                    self.messages(end.channel_with(process))
                }
                _ => continue,
            };
            ends.push((self.number(kind), if end.is_send { Side::Send } else { Side::Receive }));
        }
        if call.collective.is_some() {
            let kind = ChannelKind::Collective(self.message_ends.group(stream, call.comm));
            ends.push((self.number(kind), Side::Member));
        }
        ends
    }

    fn messages(&self, Channel { from, to, comm, tag }: Channel) -> ChannelKind {
        // A process that receives a tag from anyone takes all messages with it from there.
        for tag in [tag, None] {
            if self.pools.contains(&(to, comm, tag)) {
                return ChannelKind::Pool { to, comm, tag };
            }
        }
        let pair = PairOfProcesses { from, to, comm };
        let is_one = self.processes.tags.are_in_order(pair) || self.any_tag.contains(&pair);
        ChannelKind::Messages { pair, tag: tag.filter(|_| !is_one) }
    }

    fn add(&mut self, stream: usize, built: StreamEnds) {
        for (number, end) in built.ends.iter().enumerate() {
            self.channels[end.channel as usize].ends.push((end.side, stream as u32, number as u32));
        }
        self.streams.push(built);
    }
}

/// Counts the messages of a stream, loop by loop.
struct StreamBuilding {
    ends: Vec<End>,
    /// For each end the innermost open loop in which it is known to have messages.
    noted_in: Vec<u32>,
    open: Vec<OpenLoop>,
    loop_ends: Vec<LoopEnd>,
    of_loop: Vec<LoopSummary>,
}

/// A loop whose end is not reached.
struct OpenLoop {
    found: u32,
    ends: Vec<OpenEnd>,
}

/// An end with messages in an open loop.
struct OpenEnd {
    number: u32,
    /// How many messages came before the loop, and how many written ones.
    before: u64,
    slot: u32,
    /// The loop in which it was known to have some before.
    noted: u32,
}

/// No loop.
const NONE: u32 = u32::MAX;

impl StreamBuilding {
    fn build(trace: &ProcessTrace, kinds: Vec<KindEnds>, room: &mut u64) -> Result<StreamEnds> {
        let (ends, of_kind) = numbered(&kinds);
        let nest = trace.nest();
        let noted_in = vec![NONE; ends.len()];
        let of_loop = (0..nest.loops().len()).map(|found| LoopSummary::of(nest, found)).collect();
        let mut building = Self { ends, noted_in, open: Vec::new(), loop_ends: Vec::new(), of_loop };
        let mut next = 0;
        for index in 0..nest.symbols().len() as u32 {
            while building.open.last().is_some_and(|open| nest.loops()[open.found as usize].end <= index) {
                building.close(nest);
            }
            while nest.loops().get(next).is_some_and(|found| found.start == index) {
                building.open.push(OpenLoop { found: next as u32, ends: Vec::new() });
                next += 1;
            }
            let of_event = &of_kind[trace.kind(index as usize)];
            *room = room.saturating_sub(of_event.len() as u64);
            if *room == 0 {
                return Err(Error::limit("events that are lists of so many messages"));
            }
            of_event.iter().for_each(|&end| building.message(end, index));
        }
        while !building.open.is_empty() {
            building.close(nest);
        }
        for end in &mut building.ends {
            end.loops.sort_unstable_by_key(|messages| messages.found);
            end.loops.shrink_to_fit();
            end.at.shrink_to_fit();
            end.before.shrink_to_fit();
        }
        let Self { ends, mut loop_ends, of_loop, .. } = building;
        loop_ends.shrink_to_fit();
        Ok(StreamEnds { ends, of_kind, loop_ends, of_loop })
    }

    fn message(&mut self, number: u32, index: u32) {
        let end = &mut self.ends[number as usize];
        if let Some(open) = self.open.last_mut() {
            let noted = &mut self.noted_in[number as usize];
            if *noted != open.found {
                let slot = end.at.len() as u32;
                open.ends.push(OpenEnd { number, before: end.total, slot, noted: *noted });
                *noted = open.found;
            }
        }
        end.at.push(index);
        end.before.push(end.total);
        end.total = end.total.saturating_add(1);
    }

    fn close(&mut self, nest: &LoopCollapsed) {
        let Some(OpenLoop { found, ends }) = self.open.pop() else { return };
        let more = nest.loops()[found as usize].times - 1;
        let first = self.loop_ends.len();
        self.of_loop[found as usize].slots = (first as u32, (first + ends.len()) as u32);
        for OpenEnd { number, before, slot, noted } in ends {
            let end = &mut self.ends[number as usize];
            let each = end.total - before;
            let messages = LoopMessages { found, slot, each, before };
            end.loops.push(messages);
            self.loop_ends.push(LoopEnd { number, other: OtherLoop::NONE, messages });
            end.total = end.total.saturating_add(each.saturating_mul(more));
            self.noted_in[number as usize] = noted;
            if let Some(outer) = self.open.last_mut()
                && noted != outer.found
            {
                outer.ends.push(OpenEnd { number, before, slot, noted });
                self.noted_in[number as usize] = outer.found;
            }
        }
    }
}

/// The ends of a stream in the order in which they are met, and for each kind its ends by
/// their numbers.
fn numbered(kinds: &[KindEnds]) -> (Vec<End>, Vec<Vec<u32>>) {
    let mut ends = Vec::new();
    let mut numbers: HashMap<(u32, Side), u32> = HashMap::new();
    let mut number = |&(channel, side): &(u32, Side)| {
        let next = ends.len() as u32;
        *numbers.entry((channel, side)).or_insert_with(|| {
            ends.push(End::new(channel, side));
            next
        })
    };
    let of_kind = kinds.iter().map(|of_kind| of_kind.iter().map(&mut number).collect()).collect();
    (ends, of_kind)
}
