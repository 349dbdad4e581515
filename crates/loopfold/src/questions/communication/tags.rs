//! Decides where the tags of messages matter for which send belongs to which receive.
//!
//! Messages from one process to another on a communicator are received in the order in which
//! they are sent, if their tags are. Then the n-th send belongs to the n-th receive whatever
//! the tags are, and a loop whose tags count its iterations is a loop. Where the order of the
//! tags differs at the two ends, or one end is missing, messages of different tags are
//! separate channels.
//!
//! The tags at an end are compared by a hash of their sequence, in which iterations of a loop are
//! a power: no stream is unfolded.
//!
//! Time: O(events of the streams, with loops as stored written once), if a process uses several
//! tags with a partner, else none. Memory: 16 bytes for each pair of processes with several tags,
//! and, for each thread and each open loop, for each end that an event has.

use super::sequence_hash::SequenceHash;
use crate::fold::cursor::{Cursor, Move, Stretch, Visitor};
use crate::fold::reach::below;
use crate::fold::{Fold, FoldedStream, Item, Target};
use crate::mpi::{Calls, CommId, Communicators, Message, Peer};
use crate::parallel::parallel_map;
use crate::questions::patterns::MemoryBudget;
use crate::{Result, RuleId, Symbol};
use hashbrown::{HashMap, HashSet};
use std::convert::Infallible;

/// Messages from one process to another on a communicator, by ranks of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PairOfProcesses {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) comm: CommId,
}

/// Which end of messages an event is, and with whom, as the event itself says.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct OwnEnd {
    is_send: bool,
    comm: CommId,
    /// The rank of the other end; anyone, if nothing.
    peer: Option<u32>,
}

/// Where tags matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags {
    /// Pairs of processes whose messages have several tags, in the same order at both ends.
    in_order: HashSet<PairOfProcesses>,
    /// The symbols whose partners get messages with other tags, in order.
    with_several: Vec<Symbol>,
    /// The processes that have a stream.
    present: HashSet<u32>,
}

impl Tags {
    pub(super) fn of(
        fold: &Fold,
        calls: &Calls,
        communicators: &Communicators,
        budget: MemoryBudget,
    ) -> Result<Self> {
        let several = ends_with_several(fold, calls);
        if several.is_empty() {
            return Ok(Self::default());
        }
        let slots: HashMap<OwnEnd, usize> =
            several.iter().enumerate().map(|(slot, &end)| (end, slot)).collect();
        let of_symbol: Vec<Vec<(usize, u64)>> =
            fold.alphabet().symbols().map(|symbol| tags_of(calls, symbol, &slots)).collect();
        // Several at a time use the same memory, which is as long as there are ends.
        let some: Vec<&[FoldedStream]> = fold.streams().chunks(AT_ONCE).collect();
        let hashes = parallel_map(&some, budget.threads, |streams| {
            let mut hashing = Hashing::new(&of_symbol, several.len());
            Ok(streams.iter().map(|stream| hashing.hashes(fold, stream, budget)).collect::<Vec<_>>())
        });
        let hashes = hashes.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten();
        let mut ends: HashMap<PairOfProcesses, [Option<SequenceHash>; 2]> = HashMap::new();
        let mut twice: HashSet<PairOfProcesses> = HashSet::new();
        for (stream, hashes) in hashes.enumerate() {
            let own = communicators.rank(stream);
            for (slot, sequence) in hashes {
                let end = several[slot];
                let world_rank = |peer| communicators.world_rank(stream, calls.comm(end.comm), peer);
                let Some(peer) = end.peer.and_then(world_rank) else { continue };
                let (from, to) = if end.is_send { (own, peer) } else { (peer, own) };
                let pair = PairOfProcesses { from, to, comm: end.comm };
                // Several streams of a process have no common order.
                let known = &mut ends.entry(pair).or_default()[usize::from(end.is_send)];
                if known.replace(sequence).is_some() {
                    twice.insert(pair);
                }
            }
        }
        let is_in_order = |(pair, [received, sent]): (PairOfProcesses, [Option<SequenceHash>; 2])| {
            (received.is_some() && received == sent && !twice.contains(&pair)).then_some(pair)
        };
        let in_order = ends.into_iter().filter_map(is_in_order).collect();
        let present = (0..fold.streams().len()).map(|stream| communicators.rank(stream)).collect();
        let symbols = fold.alphabet().symbols();
        let with_several = symbols.filter(|symbol| !of_symbol[symbol.index()].is_empty()).collect();
        Ok(Self { in_order, with_several, present })
    }

    /// Whether messages between two processes are one channel, whatever their tags.
    pub(super) fn are_in_order(&self, pair: PairOfProcesses) -> bool {
        self.in_order.contains(&pair)
    }

    /// The symbols of a stream whose tag may matter.
    pub(super) fn symbols_of(&self, fold: &Fold, root: RuleId) -> Result<Vec<Symbol>> {
        if self.with_several.is_empty() {
            return Ok(Vec::new());
        }
        let rules = below(fold, root, |_| Ok(true))?;
        let symbol = |item: &Item| match item.target() {
            Target::Symbol(symbol) => Some(symbol),
            Target::Rule(_) => None,
        };
        let symbols = rules.iter().flat_map(|&rule| fold.body(rule).iter().filter_map(symbol));
        let mut symbols: Vec<Symbol> =
            symbols.filter(|symbol| self.with_several.binary_search(symbol).is_ok()).collect();
        symbols.sort_unstable();
        symbols.dedup();
        Ok(symbols)
    }

    /// How much the tag of each of these symbols of a stream matters; only those where it does.
    pub(super) fn of_stream(
        &self,
        (stream, symbols): (usize, &[Symbol]),
        calls: &Calls,
        communicators: &Communicators,
    ) -> Vec<(Symbol, TagUse)> {
        let tag_use = |symbol: Symbol| {
            let Some(call) = calls.get(symbol) else { return TagUse::None };
            let of_message = |is_send: bool, message: &Message| {
                let Peer::Rank(peer) = message.peer else { return TagUse::Matters };
                let peer = communicators.world_rank(stream, calls.comm(call.comm), peer);
                // Who is not in the trace has no other end.
                let Some(peer) = peer.filter(|peer| self.present.contains(peer)) else {
                    return TagUse::None;
                };
                let own = communicators.rank(stream);
                let (from, to) = if is_send { (own, peer) } else { (peer, own) };
                match self.are_in_order(PairOfProcesses { from, to, comm: call.comm }) {
                    true => TagUse::Idle,
                    false => TagUse::Matters,
                }
            };
            let sends = call.sends.iter().map(|message| of_message(true, message));
            let receives = call.receives.iter().map(|message| of_message(false, message));
            sends.chain(receives).max().unwrap_or(TagUse::None)
        };
        let uses = symbols.iter().map(|&symbol| (symbol, tag_use(symbol)));
        uses.filter(|&(_, tag)| tag != TagUse::None).collect()
    }
}

/// How much a tag matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TagUse {
    /// The process has no other tags with this partner, or the partner is not in the trace.
    None,
    /// Messages are in the same order at both ends, whatever their tags.
    Idle,
    /// It decides which message is meant.
    Matters,
    /// More than any.
    Never,
}

/// The ends with more than one tag in the whole alphabet.
fn ends_with_several(fold: &Fold, calls: &Calls) -> Vec<OwnEnd> {
    let mut first: HashMap<OwnEnd, Option<i64>> = HashMap::new();
    let (mut several, mut known) = (Vec::new(), HashSet::new());
    for symbol in fold.alphabet().symbols() {
        for (end, tag) in ends_of(calls, symbol) {
            if *first.entry(end).or_insert(tag) != tag && known.insert(end) {
                several.push(end);
            }
        }
    }
    several
}

fn ends_of(calls: &Calls, symbol: Symbol) -> Vec<(OwnEnd, Option<i64>)> {
    let Some(call) = calls.get(symbol) else { return Vec::new() };
    let end = |is_send: bool| {
        move |message: &Message| {
            let peer = match message.peer {
                Peer::Rank(peer) => Some(peer),
                Peer::Any => None,
            };
            (OwnEnd { is_send, comm: call.comm, peer }, message.tag)
        }
    };
    call.sends.iter().map(end(true)).chain(call.receives.iter().map(end(false))).collect()
}

/// Which ends with several tags an event is, and the tags.
fn tags_of(calls: &Calls, symbol: Symbol, slots: &HashMap<OwnEnd, usize>) -> Vec<(usize, u64)> {
    let ends = ends_of(calls, symbol).into_iter();
    // A receive of any tag is in the order of nothing.
    let number = |tag: Option<i64>| tag.map_or(u64::MAX, |tag| tag.unsigned_abs());
    ends.filter_map(|(end, tag)| Some((*slots.get(&end)?, number(tag)))).collect()
}

/// Streams that are hashed one after the other.
const AT_ONCE: usize = 64;

/// Hashes the tags of a stream, loop by loop.
struct Hashing<'a> {
    of_symbol: &'a [Vec<(usize, u64)>],
    slots: usize,
    /// The tags of the stream and of one iteration of each open loop, then what was used before.
    frames: Vec<Frame>,
    depth: usize,
    /// The rules that are open, the outermost left out: how often those that are loops repeat.
    open: Vec<Option<u64>>,
}

struct Frame {
    sequences: Vec<SequenceHash>,
    /// The ends that have any.
    used: Vec<usize>,
}

impl<'a> Hashing<'a> {
    fn new(of_symbol: &'a [Vec<(usize, u64)>], slots: usize) -> Self {
        Self { of_symbol, slots, frames: Vec::new(), depth: 0, open: Vec::new() }
    }

    /// The tags of a stream at each of the ends that it has. None if it is too long.
    fn hashes(
        &mut self,
        fold: &Fold,
        stream: &FoldedStream,
        budget: MemoryBudget,
    ) -> Vec<(usize, SequenceHash)> {
        if fold.length(stream.root()) > budget.events {
            return Vec::new();
        }
        self.open_frame();
        let Ok(()) = Cursor::new(fold, stream.root()).visit(self);
        self.depth = 0;
        let Frame { sequences, used } = &mut self.frames[0];
        let take = |slot| (slot, std::mem::replace(&mut sequences[slot], SequenceHash::EMPTY));
        used.drain(..).map(take).collect()
    }

    fn open_frame(&mut self) {
        if self.depth == self.frames.len() {
            let sequences = vec![SequenceHash::EMPTY; self.slots];
            self.frames.push(Frame { sequences, used: Vec::new() });
        }
        self.depth += 1;
    }

    fn add(&mut self, slot: usize, more: SequenceHash) {
        let Frame { sequences, used } = &mut self.frames[self.depth - 1];
        if sequences[slot].is_empty() {
            used.push(slot);
        }
        sequences[slot] = sequences[slot].then(more);
    }

    /// Adds what is in the frame so often to the one around it.
    fn close_frame(&mut self, times: u64) {
        self.depth -= 1;
        while let Some(slot) = self.frames[self.depth].used.pop() {
            let one = std::mem::replace(&mut self.frames[self.depth].sequences[slot], SequenceHash::EMPTY);
            self.add(slot, one.repeated(times));
        }
    }

    fn add_symbol(&mut self, symbol: Symbol) {
        let of_symbol = self.of_symbol;
        for &(slot, tag) in &of_symbol[symbol.index()] {
            self.add(slot, SequenceHash::of(tag));
        }
    }
}

impl Visitor<Item> for Hashing<'_> {
    type Error = Infallible;

    #[inline]
    fn stretch(
        &mut self,
        Stretch { target, times, .. }: Stretch<Item>,
        _: (RuleId, usize),
    ) -> std::result::Result<Move, Infallible> {
        let is_loop = times > 1;
        match target {
            Target::Rule(_) => {
                self.open.push(is_loop.then_some(times));
                if is_loop {
                    self.open_frame();
                }
                return Ok(Move::Enter);
            }
            Target::Symbol(symbol) if self.of_symbol[symbol.index()].is_empty() => {}
            Target::Symbol(symbol) if is_loop => {
                self.open_frame();
                self.add_symbol(symbol);
                self.close_frame(times);
            }
            Target::Symbol(symbol) => self.add_symbol(symbol),
        }
        Ok(Move::Skip)
    }

    fn end(&mut self, _: RuleId, _: u64, _: u64) -> std::result::Result<Move, Infallible> {
        if let Some(times) = self.open.pop().flatten() {
            self.close_frame(times);
        }
        Ok(Move::Skip)
    }
}
