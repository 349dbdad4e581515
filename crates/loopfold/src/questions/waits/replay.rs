//! Replays all streams together, matches messages, requests and collective operations, and
//! computes the wait of every event once all of its parts are known.
//!
//! The streams are merged by enter, so that a message is kept only while it is in flight; what is
//! computed does not depend on the order, except between streams of the same process. What an
//! event says of channels and communicators is resolved once for each stream and symbol.
//!
//! If the streams are divided among several processes, each replays its own ones together with the ends of
//! messages that the others have; see `division`.

use super::clocks::Clocks;
use super::collective::{Member, Operation, Operations};
use super::division::Sharing;
use super::ends::Arrivals;
use super::kinds::{Communication, Completes, Kind, Symbols};
use super::numbering::{Counted, NumberCursor};
use super::plan::Resolver;
use super::reduction::OperationEnds;
use super::slab::Slab;
use super::tally::{Tally, Wait};
use super::walk::{Seen, Site, Walk};
use super::{BackwardTimes, Class, LeftOut, Question};
use crate::interrupt::Pace;
use crate::mpi::{Channel, CommId, Group};
use crate::{Error, Result, StreamId, Symbol};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// Who waits for the other end of a message or for an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Party {
    Nobody,
    /// An event, and which of its parts this is.
    Event(u32, u32),
    Request(u32),
}

/// What ends a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    pub(super) class: Class,
    pub(super) enter: Option<i64>,
    pub(super) cause: u32,
    pub(super) is_wrong_order: bool,
}

/// What was found.
pub(super) struct Done {
    pub(super) tally: Tally,
    pub(super) clocks: Clocks,
    pub(super) total: u64,
    pub(super) messages: u64,
    pub(super) collectives: u64,
    pub(super) backward: Vec<BackwardTimes>,
    pub(super) left_out: LeftOut,
    /// When the trace began.
    pub(super) origin: Option<i64>,
}

/// What other processes have.
pub(super) struct Others<'a> {
    /// From each of them the ends of messages.
    pub(super) arrivals: Vec<Arrivals>,
    /// What ends the waits in collective operations.
    pub(super) operations: OperationEnds,
    pub(super) sharing: &'a Sharing,
}

/// The messages of a channel whose other end did not come yet.
struct InFlight {
    channel: Channel,
    /// Sends without a receive so far, or receives without a send.
    ends: VecDeque<End>,
    are_sends: bool,
}

#[derive(Clone, Copy)]
struct End {
    enter: Option<i64>,
    party: Party,
    /// Whether it is of a stream that is replayed here.
    is_own: bool,
}

impl End {
    fn own(enter: Option<i64>, party: Party) -> Self {
        Self { enter, party, is_own: true }
    }
}

/// An event that may wait.
struct Event {
    rank: u32,
    /// Whether it lies in a part that is asked about, and in a stream that is.
    is_counted: bool,
    is_chosen: bool,
    site: Site,
    enter: Option<i64>,
    leave: Option<i64>,
    has_duration: bool,
    /// Parts whose other end is not known yet.
    open: u32,
    longest: Option<Part>,
}

/// The part of an event that lasts longest so far.
struct Part {
    time: u64,
    index: u32,
    class: Class,
    cause: u32,
    is_wrong_order: bool,
}

/// A nonblocking send, receive or operation.
#[derive(Clone, Copy)]
enum Request {
    Pending,
    /// What ends the wait is known, or that nothing does.
    Met(Option<Remote>),
    /// An event waits for it, as one of its parts.
    Waited(u32, u32),
    /// No event will.
    Freed,
}

/// What the events of a symbol do in a stream.
#[derive(Default)]
struct Plan {
    /// The channels of messages; nothing if the other end is not known.
    receives: Vec<Option<u32>>,
    sends: Vec<Option<u32>>,
    /// How many of these have an unknown sender.
    unknown_senders: u64,
    /// How many of these are of a process that has no stream.
    absent: u64,
    /// The communicator, the operation and the own rank.
    collective: Option<(u32, Operation, u32)>,
}

/// The state of a stream.
struct Stream<'a> {
    id: StreamId,
    rank: u32,
    walk: Walk<'a>,
    next: Option<Seen>,
    plans: HashMap<Symbol, Rc<Plan>, foldhash::fast::RandomState>,
    /// Requests, the oldest first.
    pending: VecDeque<u32>,
    span: Option<(i64, i64)>,
    last_enter: Option<i64>,
    backward: BackwardTimes,
    /// Which positions count, and whether the next event does.
    counted: Counted,
    is_counted: bool,
    is_chosen: bool,
    /// The nest and iteration that was entered last, and its earliest enter so far.
    iteration: Option<(u32, u32, i64)>,
}

pub(super) struct Replay<'a> {
    resolver: Resolver<'a>,
    symbols: &'a Symbols,
    /// Which processes are asked about.
    chosen: HashSet<u32>,
    streams: Vec<Stream<'a>>,
    channels: Vec<InFlight>,
    channel_numbers: HashMap<(Group, Channel), u32>,
    groups: Vec<(Group, Operations)>,
    group_numbers: HashMap<Group, u32>,
    events: Slab<Event>,
    requests: Slab<Request>,
    /// For each process, how many messages to it are sent and their receives did not come yet.
    unreceived: HashMap<u32, u64, foldhash::fast::RandomState>,
    /// Ends of messages and members of operations that are kept.
    waiting_ends: usize,
    most_in_flight: usize,
    /// If the streams are divided among several processes.
    others: Option<Others<'a>>,
    done: Done,
}

impl<'a> Replay<'a> {
    /// Replays these streams: all of them, unless there are others.
    pub(super) fn new(
        question: &'a Question<'a>,
        resolver: Resolver<'a>,
        clocks: Clocks,
        own: Vec<StreamId>,
        others: Option<Others<'a>>,
    ) -> Result<Self> {
        let Question { fold, config, focus, ref communicators, .. } = *question;
        let is_chosen =
            |index: usize| focus.streams.as_ref().is_none_or(|chosen| chosen.get(index) == Some(&true));
        let stream = |id: StreamId| {
            let index = id.index();
            let rank = communicators.rank(index);
            let numbers = NumberCursor::new(focus.numbers.get(index).cloned());
            let walk = Walk::new(fold, id, clocks.offset(rank), numbers);
            let parts = focus.parts.as_ref().map(|parts| parts.get(index).cloned().unwrap_or_default());
            let mut stream = Stream::new(id, rank, walk);
            stream.counted = Counted::new(parts);
            stream.is_chosen = is_chosen(index);
            stream
        };
        let all = 0..fold.streams().len();
        Ok(Self {
            resolver,
            symbols: &question.symbols,
            chosen: all.filter(|&index| is_chosen(index)).map(|index| communicators.rank(index)).collect(),
            streams: own.into_iter().map(stream).collect(),
            others,
            channels: Vec::new(),
            channel_numbers: HashMap::new(),
            groups: Vec::new(),
            group_numbers: HashMap::new(),
            events: Slab::default(),
            requests: Slab::default(),
            unreceived: HashMap::default(),
            waiting_ends: 0,
            most_in_flight: config.most_in_flight,
            done: Done {
                tally: Tally::default(),
                clocks,
                total: 0,
                messages: 0,
                collectives: 0,
                backward: Vec::new(),
                left_out: LeftOut::default(),
                origin: None,
            },
        })
    }

    pub(super) fn run(mut self) -> Result<Done> {
        let mut queue = BinaryHeap::new();
        // What others have follows the own streams.
        let others = self.others.as_ref().map_or(0, |others| others.arrivals.len());
        for source in 0..self.streams.len() + others {
            queue.extend(self.advance(source)?.map(|at| Reverse((at, source))));
        }
        let mut pace = Pace::default();
        while let Some(Reverse((_, source))) = queue.pop() {
            // As long as it is the first, it need not be put back.
            loop {
                pace.step();
                self.step(source)?;
                let Some(at) = self.advance(source)? else { break };
                if queue.peek().is_some_and(|&Reverse((first, _))| first < at) {
                    queue.push(Reverse((at, source)));
                    break;
                }
            }
        }
        self.finish()
    }

    /// Reads the next event of a stream, or the next end of a message of another process. Returns where it is
    /// in the merge: its time, then its stream.
    fn advance(&mut self, source: usize) -> Result<Option<(i64, u32)>> {
        if source >= self.streams.len() {
            return self.advance_other(source - self.streams.len());
        }
        let stream = &mut self.streams[source];
        stream.next = stream.walk.next(&mut self.done.tally.nests)?;
        let Some(next) = stream.next else { return Ok(None) };
        if let Some(enter) = next.enter
            && stream.is_earliest(next.site, enter)
        {
            self.done.tally.begin(next.site, enter);
        }
        stream.observe(next);
        Ok(Some((stream.last_enter.unwrap_or(i64::MIN), stream.id.index() as u32)))
    }

    fn advance_other(&mut self, process: usize) -> Result<Option<(i64, u32)>> {
        let Some(others) = &mut self.others else { return Ok(None) };
        let mut arrivals = std::mem::take(&mut others.arrivals[process]);
        let at = arrivals.advance(self.resolver, |group, channel| self.channel(group, channel))?;
        if let Some(others) = &mut self.others {
            others.arrivals[process] = arrivals;
        }
        Ok(at)
    }

    fn step(&mut self, index: usize) -> Result<()> {
        if index >= self.streams.len() {
            let process = index - self.streams.len();
            let arrived = self.others.as_mut().and_then(|others| others.arrivals[process].take());
            let Some(arrived) = arrived else { return Ok(()) };
            let end = End { enter: arrived.enter, party: Party::Nobody, is_own: false };
            self.meet(Some(arrived.code.channel), arrived.code.is_send, end)?;
            return self.check_limit();
        }
        let symbols = self.symbols;
        let stream = &mut self.streams[index];
        let Some(seen) = stream.next.take() else { return Ok(()) };
        match &symbols.kinds[seen.site.symbol.index()] {
            Kind::Other => {}
            Kind::Communicates(kind) => self.communicate(index, seen, kind)?,
            Kind::Frees(freed) => self.free(index, freed),
            _ => stream.walk.follow(seen.site.symbol, symbols),
        }
        Ok(())
    }

    fn communicate(&mut self, stream: usize, seen: Seen, kind: &Communication) -> Result<()> {
        let plan = self.plan(stream, seen.site.symbol);
        let left_out = &mut self.done.left_out;
        left_out.without_start += u64::from(seen.enter.is_none());
        left_out.without_duration += u64::from(seen.enter.is_some() && !seen.has_duration);
        let Stream { rank, is_counted, is_chosen, .. } = self.streams[stream];
        if kind.is_nonblocking {
            if is_counted && is_chosen && seen.has_duration {
                let time = seen.enter.zip(seen.leave).map_or(0, |(enter, leave)| since(enter, leave));
                self.add_call(seen.site, rank, time)?;
            }
            return self.post(stream, seen, kind, &plan);
        }
        let event = self.events.insert(Event {
            rank,
            is_counted,
            is_chosen,
            site: seen.site,
            enter: seen.enter,
            leave: seen.leave,
            has_duration: seen.has_duration,
            // Released when all parts are there.
            open: 1,
            longest: None,
        });
        let mut parts = Parts { event, next: 0 };
        for &channel in &plan.receives {
            let party = parts.next(&mut self.events);
            self.meet(channel, false, End::own(seen.enter, party))?;
        }
        for &channel in &plan.sends {
            let party = if kind.is_buffered { Party::Nobody } else { parts.next(&mut self.events) };
            self.meet(channel, true, End::own(seen.enter, party))?;
        }
        if let Some(collective) = plan.collective {
            let party = parts.next(&mut self.events);
            self.join(stream, collective, End::own(seen.enter, party))?;
        }
        if let Some(completes) = &kind.completes {
            self.complete(stream, completes, &mut parts)?;
        }
        self.close_part(event)?;
        self.check_limit()
    }

    /// Posts the requests of a nonblocking call.
    fn post(&mut self, stream: usize, seen: Seen, kind: &Communication, plan: &Plan) -> Result<()> {
        for (channels, are_sends) in [(&plan.sends, true), (&plan.receives, false)] {
            for &channel in channels {
                let party = match are_sends && kind.is_buffered {
                    true => self.post_request(stream, Request::Met(None), Party::Nobody),
                    false => self.post_request(stream, Request::Pending, Party::Request(0)),
                };
                self.meet(channel, are_sends, End::own(seen.enter, party))?;
            }
        }
        if let Some(collective) = plan.collective {
            let party = self.post_request(stream, Request::Pending, Party::Request(0));
            self.join(stream, collective, End::own(seen.enter, party))?;
        }
        for _ in 0..kind.empty_requests {
            self.post_request(stream, Request::Met(None), Party::Nobody);
            self.check_limit()?;
        }
        self.check_limit()
    }

    fn post_request(&mut self, stream: usize, request: Request, party: Party) -> Party {
        let number = self.requests.insert(request);
        self.streams[stream].pending.push_back(number);
        match party {
            Party::Request(_) => Party::Request(number),
            other => other,
        }
    }

    /// An end of a message meets the other end, if that came before. `None` for messages whose
    /// other end is not known.
    fn meet(&mut self, channel: Option<u32>, is_send: bool, end: End) -> Result<()> {
        let Some(number) = channel else { return self.arrive(end.party, None) };
        let channel = &mut self.channels[number as usize];
        let Channel { from, to, .. } = channel.channel;
        if channel.are_sends == is_send || channel.ends.is_empty() {
            channel.are_sends = is_send;
            channel.ends.push_back(end);
            self.waiting_ends += 1;
            if is_send {
                *self.unreceived.entry(to).or_default() += 1;
            }
            return Ok(());
        }
        let Some(other) = channel.ends.pop_front() else { return Ok(()) };
        self.waiting_ends -= 1;
        let unreceived = self.unreceived.entry(to).or_default();
        *unreceived -= u64::from(!is_send);
        let is_wrong_order = is_send && *unreceived > 0;
        let (send, receive) = if is_send { (end, other) } else { (other, end) };
        // Where several processes see a message, the receiver counts it.
        self.done.messages += u64::from(receive.is_own);
        let late_sender = Remote { class: Class::LateSender, enter: send.enter, cause: from, is_wrong_order };
        let late_receiver =
            Remote { class: Class::LateReceiver, enter: receive.enter, cause: to, is_wrong_order: false };
        self.arrive(receive.party, Some(late_sender))?;
        self.arrive(send.party, Some(late_receiver))
    }

    fn join(
        &mut self,
        stream: usize,
        (group, operation, own): (u32, Operation, u32),
        end: End,
    ) -> Result<()> {
        let rank = self.streams[stream].rank;
        let member = Member { own, rank, enter: end.enter, party: end.party };
        self.waiting_ends += 1;
        let (group, operations) = &mut self.groups[group as usize];
        let Some(mut complete) = operations.join(operation, member) else { return Ok(()) };
        self.waiting_ends -= complete.members.len();
        let ends = match &mut self.others {
            Some(others) => {
                complete.sort();
                others.operations.next(*group, complete.operation, complete.members.len())?
            }
            None => {
                let left_out = &mut self.done.left_out;
                left_out.partial += u64::from(operations.is_partial && complete.agree);
                *(if complete.agree { &mut self.done.collectives } else { &mut left_out.disagreeing }) += 1;
                complete.ends()
            }
        };
        let mut failed = Ok(());
        complete.resolve(&ends, |member, remote| {
            if failed.is_ok() {
                failed = self.arrive(member.party, remote);
            }
        });
        failed
    }

    /// What ends a wait is known, or that nothing does.
    fn arrive(&mut self, party: Party, remote: Option<Remote>) -> Result<()> {
        match party {
            Party::Nobody => Ok(()),
            Party::Event(event, part) => self.resolve(event, part, remote),
            Party::Request(number) => match self.requests[number] {
                Request::Waited(event, part) => {
                    self.requests.remove(number);
                    self.resolve(event, part, remote)
                }
                Request::Freed => {
                    self.requests.remove(number);
                    Ok(())
                }
                Request::Pending | Request::Met(_) => {
                    self.requests[number] = Request::Met(remote);
                    Ok(())
                }
            },
        }
    }

    /// Requests are no longer pending, and nobody waits for them.
    fn free(&mut self, stream: usize, freed: &Completes) {
        for number in self.take_pending(stream, freed) {
            match self.requests[number] {
                Request::Met(_) => {
                    self.requests.remove(number);
                }
                _ => self.requests[number] = Request::Freed,
            }
        }
    }

    /// Removes requests from the pending ones of a stream.
    fn take_pending(&mut self, stream: usize, which: &Completes) -> Vec<u32> {
        let pending = &mut self.streams[stream].pending;
        let known = pending.len() as u64;
        match which {
            Completes::All => pending.drain(..).collect(),
            Completes::Oldest(count) => {
                self.done.left_out.unknown_requests += count.saturating_sub(known);
                pending.drain(..(*count).min(known) as usize).collect()
            }
            Completes::Listed(indexes) => {
                let inside = indexes.partition_point(|&index| index < known);
                self.done.left_out.unknown_requests += (indexes.len() - inside) as u64;
                // From the last one on, so that indexes stay those of the others.
                let mut taken: Vec<u32> = indexes[..inside]
                    .iter()
                    .rev()
                    .filter_map(|&index| pending.remove(index as usize))
                    .collect();
                taken.reverse();
                taken
            }
        }
    }

    /// An event completes requests of its stream.
    fn complete(&mut self, stream: usize, completes: &Completes, parts: &mut Parts) -> Result<()> {
        let completed = self.take_pending(stream, completes);
        for number in completed {
            let Party::Event(event, part) = parts.next(&mut self.events) else { continue };
            match self.requests[number] {
                Request::Met(remote) => {
                    self.requests.remove(number);
                    self.resolve(event, part, remote)?;
                }
                _ => self.requests[number] = Request::Waited(event, part),
            }
        }
        Ok(())
    }

    /// A part of an event is known.
    fn resolve(&mut self, number: u32, index: u32, remote: Option<Remote>) -> Result<()> {
        let event = &mut self.events[number];
        if let Some(Remote { class, enter: Some(end), cause, is_wrong_order }) = remote
            && let (Some(enter), Some(leave)) = (event.enter, event.leave)
        {
            if event.has_duration && class != Class::LateReceiver {
                self.done.clocks.observe(cause, event.rank, end, leave);
                if class == Class::LateSender {
                    self.done.clocks.message(cause, event.rank, end, leave);
                }
            }
            let time = match class {
                Class::LateReceiver if end > leave => 0,
                _ => since(enter, end.min(leave)),
            };
            let is_longer = |known: &Part| (time, Reverse(index)) > (known.time, Reverse(known.index));
            if time > 0 && event.longest.as_ref().is_none_or(is_longer) {
                event.longest = Some(Part { time, index, class, cause, is_wrong_order });
            }
        }
        self.close_part(number)
    }

    /// One part fewer is open; the last one completes the event.
    fn close_part(&mut self, number: u32) -> Result<()> {
        let event = &mut self.events[number];
        event.open -= 1;
        if event.open > 0 {
            return Ok(());
        }
        let event = self.events.remove(number);
        event.map_or(Ok(()), |event| self.add(&event))
    }

    fn add(&mut self, event: &Event) -> Result<()> {
        if !event.is_counted {
            return Ok(());
        }
        let (site, waiting) = (event.site, event.rank);
        let lasted = event.enter.zip(event.leave).filter(|_| event.has_duration);
        let lasted = lasted.map_or(0, |(enter, leave)| since(enter, leave));
        let Some(Part { time, class, cause, is_wrong_order, .. }) = event.longest else {
            return if event.is_chosen { self.add_call(site, waiting, lasted) } else { Ok(()) };
        };
        let wait = Wait { class: Some(class), site, waiting, cause, time, is_wrong_order };
        if event.is_chosen {
            let tally = &mut self.done.tally;
            tally.after_waits = tally.after_waits.saturating_add(lasted.saturating_sub(time));
            return tally.add(&wait);
        }
        if self.chosen.contains(&cause) {
            self.done.tally.add_other(&wait);
        }
        Ok(())
    }

    /// Adds a call that waited for nobody.
    fn add_call(&mut self, site: Site, rank: u32, time: u64) -> Result<()> {
        let (waiting, cause) = (rank, rank);
        self.done.tally.add(&Wait { class: None, site, waiting, cause, time, is_wrong_order: false })
    }

    fn check_limit(&self) -> Result<()> {
        let in_flight = self.waiting_ends + self.events.len() + self.requests.len();
        if in_flight > self.most_in_flight {
            return Err(Error::limit(format_args!(
                "more than {} messages and requests that wait for their other end",
                self.most_in_flight
            )));
        }
        Ok(())
    }

    /// What the events of a symbol do in a stream.
    fn plan(&mut self, stream: usize, symbol: Symbol) -> Rc<Plan> {
        let known = self.streams[stream].plans.get(&symbol).map(Rc::clone);
        let plan = known.unwrap_or_else(|| {
            let plan = Rc::new(self.new_plan(stream, symbol));
            self.streams[stream].plans.insert(symbol, Rc::clone(&plan));
            plan
        });
        self.done.left_out.unknown_senders += plan.unknown_senders;
        self.done.left_out.absent += plan.absent;
        plan
    }

    fn new_plan(&mut self, index: usize, symbol: Symbol) -> Plan {
        let mut plan = Plan::default();
        let (resolver, stream) = (self.resolver, self.streams[index].id.index());
        let Some(call) = resolver.call(symbol) else { return plan };
        for end in resolver.ends(stream, call) {
            let channel = end.channel.map(|(group, channel)| self.channel(group, channel));
            match channel {
                Some(_) => {}
                None if end.is_open => plan.unknown_senders += 1,
                None => plan.absent += 1,
            }
            (if end.is_send { &mut plan.sends } else { &mut plan.receives }).push(channel);
        }
        plan.collective = resolver
            .operation(stream, symbol, call)
            .map(|(operation, own)| (self.group(stream, call.comm), operation, own));
        plan
    }

    fn channel(&mut self, group: Group, channel: Channel) -> u32 {
        let next = self.channels.len() as u32;
        let number = *self.channel_numbers.entry((group, channel)).or_insert(next);
        if number == next {
            self.channels.push(InFlight { channel, ends: VecDeque::new(), are_sends: true });
        }
        number
    }

    fn group(&mut self, stream: usize, comm: CommId) -> u32 {
        let group = self.resolver.message_ends.group(stream, comm);
        if let Some(&known) = self.group_numbers.get(&group) {
            return known;
        }
        let (all, present) = self.resolver.members(stream, comm);
        let operations = match &self.others {
            Some(others) => {
                let own = others.sharing.own_members(&present);
                Operations::new(own, own)
            }
            None => Operations::new(all, present.len()),
        };
        let next = self.groups.len() as u32;
        self.group_numbers.insert(group, next);
        self.groups.push((group, operations));
        next
    }

    fn finish(mut self) -> Result<Done> {
        // The parts that are still open do not count.
        for event in self.events.take_all() {
            self.add(&event)?;
        }
        let Self { channels, groups, streams, others, mut done, .. } = self;
        for channel in &channels {
            let count = match channel.are_sends {
                true => &mut done.left_out.unreceived,
                false => &mut done.left_out.unsent,
            };
            *count += channel.ends.iter().filter(|end| end.is_own).count() as u64;
        }
        if others.is_none() {
            done.left_out.incomplete = groups.iter().map(|(_, operations)| operations.incomplete()).sum();
        }
        for stream in &streams {
            let time = stream.span.map_or(0, |(first, last)| last.abs_diff(first));
            done.total = done.total.saturating_add(time);
        }
        let backward = streams.iter().map(|stream| stream.backward);
        done.backward = backward.filter(|backward| backward.count > 0).collect();
        Ok(done)
    }
}

impl<'a> Stream<'a> {
    fn new(id: StreamId, rank: u32, walk: Walk<'a>) -> Self {
        Self {
            id,
            rank,
            walk,
            next: None,
            plans: HashMap::default(),
            pending: VecDeque::new(),
            span: None,
            last_enter: None,
            backward: BackwardTimes { stream: id, count: 0, first: 0 },
            counted: Counted::default(),
            is_counted: true,
            is_chosen: true,
            iteration: None,
        }
    }

    /// Whether no event of the iteration that the stream is in entered earlier. Mostly that is its
    /// first event; a clock may go back.
    #[inline]
    fn is_earliest(&mut self, site: Site, enter: i64) -> bool {
        match self.iteration {
            Some((nest, iteration, earliest))
                if (nest, iteration) == (site.nest, site.iteration) && earliest <= enter =>
            {
                false
            }
            _ => {
                self.iteration = Some((site.nest, site.iteration, enter));
                true
            }
        }
    }

    /// Notes the times of an event.
    fn observe(&mut self, seen: Seen) {
        self.is_counted = self.counted.contains(seen.position);
        let (Some(enter), Some(leave)) = (seen.enter, seen.leave) else { return };
        if self.is_counted && self.is_chosen {
            let (first, last) = self.span.unwrap_or((enter, leave));
            self.span = Some((first.min(enter), last.max(leave)));
        }
        if self.last_enter.is_some_and(|last| enter < last) {
            if self.backward.count == 0 {
                self.backward = BackwardTimes { stream: self.id, count: 0, first: seen.position };
            }
            self.backward.count += 1;
        }
        self.last_enter = Some(enter);
    }
}

/// Numbers the parts of an event.
struct Parts {
    event: u32,
    next: u32,
}

impl Parts {
    fn next(&mut self, events: &mut Slab<Event>) -> Party {
        let part = self.next;
        self.next += 1;
        events[self.event].open += 1;
        Party::Event(self.event, part)
    }
}

/// The time from one to the other.
fn since(from: i64, to: i64) -> u64 {
    to.saturating_sub(from).max(0) as u64
}
