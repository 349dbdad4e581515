//! The ends of messages whose partner is in another process: what travels from one to the other.
//!
//! A process walks along its own streams, merged by enter, and writes every end of a message for the
//! processes that have streams of the sender or the receiver. It writes when the end enters, when it comes
//! in the merge of all streams (the latest enter of its stream so far, which is the same unless the clock goes
//! back), and what it is, as a number: the first time that is followed by the stream, the event and the place
//! in it. So what one process sends to another is in the order of the merge, and takes some 4 bytes an end.
//!
//! The receiver merges these ends with its own streams and has, for each of its processes, all messages from
//! it and to it in the order in which one process alone would see them.

use super::clocks::Clocks;
use super::collective::{Member, Operation};
use super::division::Sharing;
use super::kinds::{Kind, Symbols};
use super::numbering::NumberCursor;
use super::plan::Resolver;
use super::reduction::PartialOperations;
use super::replay::Party;
use super::walk::{LoopNests, Seen, Walk};
use crate::bytes::{put_number, put_wide};
use crate::mpi::{Channel, Group};
use crate::questions::wire::Reader;
use crate::{Fold, Result, StreamId, Symbol};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// How the enter of an end is written.
const AS_MERGED: u64 = 0;
const UNKNOWN: u64 = 1;
const EARLIER: u64 = 2;
const FORMS: u64 = 3;

/// What the events of a symbol of a stream send to others.
#[derive(Default)]
struct Plan {
    /// For each end, in the order in which a replay takes them, the processes that get it and its code there.
    ends: Vec<Vec<(usize, u32)>>,
    /// The communicator, the operation and the own rank.
    collective: Option<(u32, Operation, u32)>,
}

/// A stream of this process.
struct Source<'a> {
    id: StreamId,
    rank: u32,
    walk: Walk<'a>,
    next: Option<Seen>,
    last_enter: Option<i64>,
    /// The latest enter so far.
    merged: i64,
    plans: HashMap<Symbol, Rc<Plan>, foldhash::fast::RandomState>,
}

/// The ends for one process.
struct EndWriter {
    bytes: Vec<u8>,
    /// How many codes there are, and how many of them were written.
    codes: u32,
    introduced: u32,
    merged: i64,
}

/// Writes the ends of the messages of this process.
pub(super) struct Outgoing<'a> {
    resolver: Resolver<'a>,
    sharing: &'a Sharing,
    sources: Vec<Source<'a>>,
    to: Vec<EndWriter>,
    operations: PartialOperations,
    nests: LoopNests,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(
        fold: &'a Fold,
        resolver: Resolver<'a>,
        sharing: &'a Sharing,
        clocks: &Clocks,
        operations: PartialOperations,
    ) -> Self {
        let source = |id: StreamId| {
            let rank = resolver.message_ends.communicators.rank(id.index());
            let walk = Walk::new(fold, id, clocks.offset(rank), NumberCursor::default()).without_durations();
            let plans = HashMap::default();
            Source { id, rank, walk, next: None, last_enter: None, merged: i64::MIN, plans }
        };
        let sources = sharing.own_streams(fold).map(source).collect();
        let mut to = Vec::new();
        let writer = || EndWriter { bytes: Vec::new(), codes: 0, introduced: 0, merged: i64::MIN };
        to.resize_with(sharing.processes, writer);
        Self { resolver, sharing, sources, to, operations, nests: LoopNests::default() }
    }

    /// The ends for each process, and the partial results of collective operations.
    pub(super) fn run(mut self) -> Result<(Vec<Vec<u8>>, PartialOperations)> {
        let mut queue = BinaryHeap::new();
        for source in 0..self.sources.len() {
            queue.extend(self.advance(source)?.map(|at| Reverse((at, source))));
        }
        while let Some(Reverse((_, source))) = queue.pop() {
            loop {
                self.step(source);
                let Some(at) = self.advance(source)? else { break };
                if queue.peek().is_some_and(|&Reverse(first)| first < (at, source)) {
                    queue.push(Reverse((at, source)));
                    break;
                }
            }
        }
        Ok((self.to.into_iter().map(|writer| writer.bytes).collect(), self.operations))
    }

    fn advance(&mut self, source: usize) -> Result<Option<i64>> {
        let source = &mut self.sources[source];
        source.next = source.walk.next(&mut self.nests)?;
        let Some(next) = source.next else { return Ok(None) };
        source.last_enter = next.enter.or(source.last_enter);
        source.merged = source.merged.max(source.last_enter.unwrap_or(i64::MIN));
        Ok(Some(source.merged))
    }

    fn step(&mut self, index: usize) {
        let source = &mut self.sources[index];
        let Some(seen) = source.next.take() else { return };
        let symbol = seen.site.symbol;
        let Kind::Communicates(_) = self.resolver.symbols.kinds[symbol.index()] else { return };
        let known = source.plans.get(&symbol).map(Rc::clone);
        let plan = known.unwrap_or_else(|| {
            let plan = Rc::new(self.plan(index, symbol));
            self.sources[index].plans.insert(symbol, Rc::clone(&plan));
            plan
        });
        let Source { merged, rank, id, .. } = self.sources[index];
        for (place, end) in plan.ends.iter().enumerate() {
            for &(process, code) in end {
                let new = Introduction { stream: id, symbol, place };
                self.to[process].put(code, merged, seen.enter, new);
            }
        }
        if let Some((group, operation, own)) = plan.collective {
            let member = Member { own, rank, enter: seen.enter, party: Party::Nobody };
            self.operations.join(group, operation, member);
        }
    }

    fn plan(&mut self, index: usize, symbol: Symbol) -> Plan {
        let stream = self.sources[index].id.index();
        let Some(call) = self.resolver.call(symbol) else { return Plan::default() };
        let mut plan = Plan::default();
        for (_, channel) in taken_ends(self.resolver, stream, symbol) {
            let mut processes = channel
                .map(|(_, channel)| self.sharing.others_with([channel.from, channel.to]))
                .unwrap_or_default();
            processes.sort_unstable();
            processes.dedup();
            let coded = processes.into_iter().map(|process| (process, self.to[process].next_code()));
            plan.ends.push(coded.collect());
        }
        plan.collective = self.resolver.operation(stream, symbol, call).map(|(operation, own)| {
            let sharing = self.sharing;
            let size = |members: &[u32]| sharing.own_members(members);
            let group = self.operations.number(self.resolver, (stream, call.comm), size);
            (group, operation, own)
        });
        plan
    }
}

/// The ends of the messages of an event in the order in which a replay takes them: whether it is a send, and
/// the channel. A nonblocking call posts its sends first.
fn taken_ends(
    resolver: Resolver<'_>,
    stream: usize,
    symbol: Symbol,
) -> Vec<(bool, Option<(Group, Channel)>)> {
    let Some(call) = resolver.call(symbol) else { return Vec::new() };
    let mut ends: Vec<_> = resolver.ends(stream, call).map(|end| (end.is_send, end.channel)).collect();
    let is_nonblocking = is_nonblocking(resolver.symbols, symbol);
    // The sort is stable.
    ends.sort_by_key(|&(is_send, _)| is_send != is_nonblocking);
    ends
}

fn is_nonblocking(symbols: &Symbols, symbol: Symbol) -> bool {
    matches!(&symbols.kinds[symbol.index()], Kind::Communicates(kind) if kind.is_nonblocking)
}

/// What a code stands for.
#[derive(Clone, Copy)]
struct Introduction {
    stream: StreamId,
    symbol: Symbol,
    /// Which of its ends.
    place: usize,
}

impl EndWriter {
    /// The code of another end. Ends are first put in the order of their codes.
    fn next_code(&mut self) -> u32 {
        self.codes += 1;
        self.codes - 1
    }

    fn put(&mut self, code: u32, merged: i64, enter: Option<i64>, new: Introduction) {
        let form = match enter {
            None => UNKNOWN,
            Some(enter) if enter == merged => AS_MERGED,
            Some(_) => EARLIER,
        };
        put_number(&mut self.bytes, u64::from(code) * FORMS + form);
        if code == self.introduced {
            self.introduced += 1;
            put_number(&mut self.bytes, new.stream.index() as u64);
            put_number(&mut self.bytes, new.symbol.index() as u64);
            put_number(&mut self.bytes, new.place as u64);
        }
        put_wide(&mut self.bytes, merged.abs_diff(self.merged).into());
        self.merged = merged;
        if let Some(enter) = enter.filter(|&enter| enter != merged) {
            put_wide(&mut self.bytes, merged.abs_diff(enter).into());
        }
    }
}

/// Reads the ends that another process has written.
#[derive(Default)]
pub(super) struct Arrivals {
    reader: Reader,
    codes: Vec<EndCode>,
    merged: i64,
    head: Option<RemoteEnd>,
}

/// What a code stands for, here.
#[derive(Clone, Copy)]
pub(super) struct EndCode {
    stream: u32,
    pub(super) channel: u32,
    pub(super) is_send: bool,
}

/// An end of a message in another process.
#[derive(Clone, Copy)]
pub(super) struct RemoteEnd {
    pub(super) code: EndCode,
    pub(super) enter: Option<i64>,
}

impl Arrivals {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { reader: Reader::new(bytes), merged: i64::MIN, ..Self::default() }
    }

    /// Reads the next end. Returns where it is in the merge. `channel` gives the number of a channel.
    pub(super) fn advance(
        &mut self,
        resolver: Resolver<'_>,
        channel: impl FnOnce(Group, Channel) -> u32,
    ) -> Result<Option<(i64, u32)>> {
        self.head = None;
        if self.reader.is_empty() {
            return Ok(None);
        }
        let number = self.reader.number()?;
        let (code, form) = ((number / FORMS) as usize, number % FORMS);
        if code == self.codes.len() {
            let (stream, symbol, place) = (self.reader.small()?, self.reader.small()?, self.reader.number()?);
            self.codes.push(introduced(resolver, (stream, symbol, place), channel)?);
        }
        let code = *self.codes.get(code).ok_or_else(|| Reader::damaged("an end of a message"))?;
        let since = self.reader.number()?;
        self.merged = self.merged.checked_add_unsigned(since).ok_or_else(|| Reader::damaged("a time"))?;
        let enter = match form {
            UNKNOWN => None,
            EARLIER => Some(self.reader.number()?),
            _ => Some(0),
        };
        let enter =
            enter.map(|by| self.merged.checked_sub_unsigned(by).ok_or_else(|| Reader::damaged("a time")));
        self.head = Some(RemoteEnd { code, enter: enter.transpose()? });
        Ok(Some((self.merged, code.stream)))
    }

    /// The end that was read last.
    pub(super) fn take(&mut self) -> Option<RemoteEnd> {
        self.head.take()
    }
}

fn introduced(
    resolver: Resolver<'_>,
    (stream, symbol, place): (u32, u32, u64),
    channel: impl FnOnce(Group, Channel) -> u32,
) -> Result<EndCode> {
    let unknown = || Reader::damaged("an end of a message");
    let is_known = (symbol as usize) < resolver.symbols.kinds.len() && (stream as usize) < resolver.streams;
    let ends =
        if is_known { taken_ends(resolver, stream as usize, Symbol::from_raw(symbol)) } else { Vec::new() };
    let &(is_send, found) = ends.get(place as usize).ok_or_else(unknown)?;
    let (group, found) = found.ok_or_else(unknown)?;
    Ok(EndCode { stream, channel: channel(group, found), is_send })
}
