//! Decides where the tags of messages matter for which send belongs to which receive.
//!
//! Messages from one process to another on a communicator are received in the order in which
//! they are sent, if their tags are. Then the n-th send belongs to the n-th receive whatever
//! the tags are, and a loop whose tags count its iterations is a loop. Where the order of the
//! tags differs at the two ends, or one end is missing, messages of different tags are
//! separate channels.
//!
//! Time: one pass over the streams, if a process uses several tags with a partner, else none.
//! Memory: 24 bytes for each pair of processes with several tags.

use crate::fold::{Fold, FoldedStream};
use crate::mpi::{Calls, CommId, Communicators, Message, Peer};
use crate::parallel::parallel_map;
use crate::questions::patterns::MemoryBudget;
use crate::{Result, Symbol};
use hashbrown::{HashMap, HashSet};

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
        let streams: Vec<usize> = (0..fold.streams().len()).collect();
        let hashes = parallel_map(&streams, budget.threads, |&stream| {
            hashes(fold, &fold.streams()[stream], &of_symbol, several.len(), budget)
        });
        let hashes = hashes.into_iter().collect::<Result<Vec<_>>>()?;
        let mut ends: HashMap<PairOfProcesses, [Option<TagSequence>; 2]> = HashMap::new();
        let mut twice: HashSet<PairOfProcesses> = HashSet::new();
        for (stream, hashes) in hashes.into_iter().enumerate() {
            let own = communicators.rank(stream);
            for (end, sequence) in several.iter().zip(hashes) {
                let world_rank = |peer| communicators.world_rank(stream, calls.comm(end.comm), peer);
                let Some(peer) = end.peer.and_then(world_rank) else { continue };
                let (from, to) = if end.is_send { (own, peer) } else { (peer, own) };
                let pair = PairOfProcesses { from, to, comm: end.comm };
                if sequence.count > 0 {
                    // Several streams of a process have no common order.
                    let known = &mut ends.entry(pair).or_default()[usize::from(end.is_send)];
                    if known.replace(sequence).is_some() {
                        twice.insert(pair);
                    }
                }
            }
        }
        let is_in_order = |(pair, [received, sent]): (PairOfProcesses, [Option<TagSequence>; 2])| {
            (received.is_some() && received == sent && !twice.contains(&pair)).then_some(pair)
        };
        let in_order = ends.into_iter().filter_map(is_in_order).collect();
        let present = streams.iter().map(|&stream| communicators.rank(stream)).collect();
        let symbols = fold.alphabet().symbols();
        let with_several = symbols.filter(|symbol| !of_symbol[symbol.index()].is_empty()).collect();
        Ok(Self { in_order, with_several, present })
    }

    /// Whether messages between two processes are one channel, whatever their tags.
    pub(super) fn are_in_order(&self, pair: PairOfProcesses) -> bool {
        self.in_order.contains(&pair)
    }

    /// How much the tag of each symbol matters in a stream, by symbol; only those where it does.
    pub(super) fn of_stream(
        &self,
        stream: usize,
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
        let uses = self.with_several.iter().map(|&symbol| (symbol, tag_use(symbol)));
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

/// The tags of all messages at one end, as a hash.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct TagSequence {
    hash: u64,
    count: u64,
}

impl TagSequence {
    fn push(&mut self, tag: u64) {
        // An odd factor, so that nothing is lost, and a rotation, so that high bits come down.
        self.hash = (self.hash.rotate_left(23) ^ tag.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.count += 1;
    }
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

fn hashes(
    fold: &Fold,
    stream: &FoldedStream,
    of_symbol: &[Vec<(usize, u64)>],
    slots: usize,
    budget: MemoryBudget,
) -> Result<Vec<TagSequence>> {
    let mut sequences = vec![TagSequence::default(); slots];
    if fold.length(stream.root()) > budget.events {
        return Ok(Vec::new());
    }
    let mut page = vec![Symbol::new(0)?; PAGE];
    let mut unfold = fold.unfold(stream.root());
    loop {
        let filled = unfold.fill(&mut page);
        for &symbol in &page[..filled] {
            for &(slot, tag) in &of_symbol[symbol.index()] {
                sequences[slot].push(tag);
            }
        }
        if filled < page.len() {
            return Ok(sequences);
        }
    }
}

/// How many events are unfolded at once.
const PAGE: usize = 1 << 12;
