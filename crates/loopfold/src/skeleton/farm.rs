//! Task farms: a process that receives from anyone and replies to whoever sent.
//!
//! Which worker asks next has no order that repeats, so the recorded stream of a master is no
//! loop although its program is one. [`with_open_receives`] rewrites it: a receive from anyone
//! becomes `src=anyone`, and the messages that the process then sends to that sender become
//! `dest=sender`. What is left is a loop, which can be shortened.
//!
//! Definition. The receives of a process on a communicator are left open if
//!
//! - all of them are blocking receives or probes from anyone, or receives of the message that was
//!   just probed, and
//! - tags distinguish nothing: all that is sent to it has one tag or it receives any tag, and all
//!   that it sends has one tag or everybody receives any tag from it.
//!
//! Every such receive is followed by some messages to its sender before the process communicates
//! with anyone else; the least number of them is the number of *replies*, and the first so many
//! are written as such. So whatever the order in which messages arrive, everybody is sent as many
//! replies for each of its messages, and the same receives have a message: `simulate` executes
//! such programs in several orders, and `scale` may shorten every worker by itself.
//!
//! Cost: O(items) to find such processes, O(events) of their streams to rewrite them.

use crate::fold::reach::{UsesBelow, rule_uses};
use crate::fold::{Fold, FoldBuilder, FoldedStream, Grammar as _};
use crate::mpi::{Call, Calls, CommId, Communicators, Message, Peer};
use crate::questions::patterns::FoldStream;
use crate::trace::{Alphabet, Event, Field, Meaning, Name, Value};
use crate::{Result, RuleId, Symbol};
use hashbrown::{HashMap, HashSet};

/// In place of the rank of a sender: whoever sends.
pub(super) const ANYONE: &[u8] = b"anyone";

/// In place of a rank or a tag: that of the message that was received or probed from anyone last.
pub(super) const SENDER: &[u8] = b"sender";

/// In place of a tag, or of a sender that is not known.
pub(super) const ANY: &[u8] = b"any";

/// Longer streams are not rewritten.
const MOST_EVENTS: u64 = 1 << 26;

/// A recording in which receives from anyone are left open.
#[derive(Debug)]
pub struct OpenReceives {
    /// The recording. Times stay what they are.
    pub fold: Fold,
    /// Whether it is written with less than half of the items, since the order in which messages
    /// came does not repeat.
    pub is_simpler: bool,
}

/// A fold in which receives from anyone are left open, with the streams of the processes that
/// have such receives folded anew. Returns `None` if there are none.
pub fn with_open_receives(fold: &Fold, fold_stream: FoldStream<'_>) -> Result<Option<OpenReceives>> {
    let ends = Ends::of(fold);
    if ends.is_empty() {
        return Ok(None);
    }
    let farms = Farms::of(fold, &ends)?;
    if farms.replies.is_empty() {
        return Ok(None);
    }
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let rules = builder.append_rules(fold, Ok)?;
    let mut rewriter = Rewriter { fold, ends: &ends, farms: &farms, known: HashMap::new() };
    for (number, stream) in fold.streams().iter().enumerate() {
        let root = match farms.concerned[number] {
            false => rules[stream.root().index()],
            true => {
                let symbols = rewriter.stream(number, stream.root(), builder.alphabet_mut())?;
                fold_stream(&symbols, &mut builder)?
            }
        };
        builder.stream(FoldedStream { root, sums: None, ..stream.clone() });
    }
    let open = builder.finish();
    let is_simpler = 2 * items_used(&open)? < items_used(fold)?;
    Ok(Some(OpenReceives { fold: open, is_simpler }))
}

/// The items of all rules of which streams are made.
fn items_used(fold: &Fold) -> Result<usize> {
    let uses = rule_uses(fold)?;
    let used = fold.rule_bodies().zip(uses).filter(|(_, uses)| *uses > 0);
    Ok(used.map(|(body, _)| body.len()).sum())
}

/// What an event is to a farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It does not communicate.
    Nothing,
    /// A blocking receive or a probe from anyone, whose message came from this rank.
    FromAnyone { comm: CommId, source: u32, is_probe: bool },
    /// Another blocking receive or probe.
    From { comm: CommId, source: u32 },
    /// A message to one rank.
    To { comm: CommId, dest: u32 },
    /// Something else.
    Other,
}

/// What all symbols are to a farm.
struct Ends {
    calls: Calls,
    by_symbol: Vec<End>,
    /// Whether a receive takes any tag.
    takes_any_tag: Vec<bool>,
    /// The ranks and communicators of the streams.
    places: Communicators,
}

/// A process and one of its communicators.
type Place = (u32, CommId);

impl Ends {
    fn of(fold: &Fold) -> Self {
        let alphabet = fold.alphabet();
        let calls = Calls::of(alphabet);
        let (mut by_symbol, mut takes_any_tag) = (Vec::new(), Vec::new());
        for symbol in alphabet.symbols() {
            let meaning = alphabet.meaning(symbol);
            by_symbol.push(end(&meaning, calls.get(symbol), &calls));
            takes_any_tag.push(is_any(&meaning, b"tag"));
        }
        Self { calls, by_symbol, takes_any_tag, places: Communicators::of(fold) }
    }

    fn get(&self, symbol: Symbol) -> End {
        self.by_symbol[symbol.index()]
    }

    /// Whether nothing is received from anyone.
    fn is_empty(&self) -> bool {
        !self.by_symbol.iter().any(|end| matches!(end, End::FromAnyone { .. }))
    }

    /// The process that has a rank in a communicator of a stream.
    fn process(&self, stream: usize, comm: CommId, rank: u32) -> Option<u32> {
        self.places.world_rank(stream, self.calls.comm(comm), rank)
    }
}

/// Whether the source or the tag of a receive was a wildcard.
fn is_any(meaning: &Meaning<'_>, what: &[u8]) -> bool {
    match meaning.field("any") {
        Some(Value::Text(text)) => text.split(|&byte| byte == b',').any(|one| one == what),
        _ => false,
    }
}

fn end(meaning: &Meaning<'_>, call: Option<&Call>, calls: &Calls) -> End {
    let from = |comm: CommId, source: u32, is_probe: bool| match is_any(meaning, b"src") {
        true => End::FromAnyone { comm, source, is_probe },
        false => End::From { comm, source },
    };
    let Some(call) = call else {
        let is_probe = meaning.name == Name::Text(b"MPI_Probe");
        return match (meaning.field("from"), calls.comm_of(meaning)) {
            (Some(Value::Integer(source)), Some(comm)) if is_probe => {
                u32::try_from(source).map_or(End::Nothing, |source| from(comm, source, true))
            }
            _ => End::Nothing,
        };
    };
    match (&call.sends[..], &call.receives[..]) {
        ([Message { peer: Peer::Rank(dest), .. }], []) => End::To { comm: call.comm, dest: *dest },
        ([], [Message { peer: Peer::Rank(source), .. }]) if meaning.name == Name::Text(b"MPI_Recv") => {
            from(call.comm, *source, false)
        }
        _ => End::Other,
    }
}

/// What is sent and received, all streams together.
#[derive(Default)]
struct Traffic {
    /// Processes that receive from anyone, and whether always with any tag.
    open: HashMap<Place, bool>,
    /// Processes with receives that cannot be left open.
    closed: HashSet<Place>,
    /// The tags of what is sent to a process, and of what it sends.
    sent_to: HashMap<Place, HashSet<i64>>,
    sent_by: HashMap<Place, HashSet<i64>>,
    /// Processes from which somebody receives a certain tag.
    received_by_tag: HashSet<Place>,
}

impl Traffic {
    fn of(ends: &Ends, symbols: &[Vec<Symbol>]) -> Self {
        let mut traffic = Self::default();
        for (stream, symbols) in symbols.iter().enumerate() {
            symbols.iter().for_each(|&symbol| traffic.add(ends, stream, symbol));
        }
        traffic
    }

    fn add(&mut self, ends: &Ends, stream: usize, symbol: Symbol) {
        let own = ends.places.rank(stream);
        let takes_any_tag = ends.takes_any_tag[symbol.index()];
        match ends.get(symbol) {
            End::FromAnyone { comm, .. } => {
                let always = self.open.entry((own, comm)).or_insert(true);
                *always &= takes_any_tag;
            }
            // It may be of a message that was probed.
            End::From { .. } => {}
            _ => {
                let receives = ends.calls.get(symbol).filter(|call| !call.receives.is_empty());
                self.closed.extend(receives.map(|call| (own, call.comm)));
            }
        }
        let Some(call) = ends.calls.get(symbol) else { return };
        let peer = |message: &Message| match message.peer {
            Peer::Rank(rank) => ends.process(stream, call.comm, rank),
            Peer::Any => None,
        };
        for message in &call.sends {
            let tag = message.tag.unwrap_or(0);
            self.sent_by.entry((own, call.comm)).or_default().insert(tag);
            if let Some(dest) = peer(message) {
                self.sent_to.entry((dest, call.comm)).or_default().insert(tag);
            }
        }
        if !takes_any_tag {
            let sources = call.receives.iter().filter_map(peer);
            self.received_by_tag.extend(sources.map(|source| (source, call.comm)));
        }
    }

    /// Whether tags distinguish nothing, and no receive is posted.
    fn can_be_open(&self, place: Place) -> bool {
        let has_one =
            |tags: &HashMap<Place, HashSet<i64>>| tags.get(&place).is_none_or(|tags| tags.len() <= 1);
        let Some(&is_any_tag) = self.open.get(&place) else { return false };
        !self.closed.contains(&place)
            && (is_any_tag || has_one(&self.sent_to))
            && (has_one(&self.sent_by) || !self.received_by_tag.contains(&place))
    }
}

/// The processes whose receives are left open.
struct Farms {
    /// For each process and communicator the number of replies.
    replies: HashMap<Place, u64>,
    /// Streams that are rewritten.
    concerned: Vec<bool>,
}

impl Farms {
    fn of(fold: &Fold, ends: &Ends) -> Result<Self> {
        let mut uses = UsesBelow::new(fold);
        let mut symbols: Vec<Vec<Symbol>> = Vec::new();
        for stream in fold.streams() {
            uses.count(stream.root())?;
            let counts = uses.symbol_counts()?;
            symbols.push(fold.alphabet().symbols().filter(|symbol| counts[symbol.index()] > 0).collect());
        }
        let traffic = Traffic::of(ends, &symbols);
        let mut farms = Self { replies: HashMap::new(), concerned: Vec::new() };
        for (stream, folded) in fold.streams().iter().enumerate() {
            let own = ends.places.rank(stream);
            let is_open = |comm: CommId| traffic.can_be_open((own, comm));
            let has_any = ends.calls.comms().any(|(comm, _)| is_open(comm));
            if has_any && fold.length(folded.root()) <= MOST_EVENTS {
                let events = fold.unfold(folded.root()).map(|symbol| ends.get(symbol));
                let of_stream = replies_of(events, &is_open);
                farms.replies.extend(of_stream.into_iter().map(|(comm, least)| ((own, comm), least)));
            }
        }
        let is_concerned = |(stream, folded): (usize, &FoldedStream)| {
            let is_rewritten = |&symbol: &Symbol| match ends.get(symbol) {
                End::FromAnyone { comm, .. } => farms.replies(ends.places.rank(stream), comm).is_some(),
                _ => farms.answers_with_any_tag(ends, stream, symbol),
            };
            fold.length(folded.root()) <= MOST_EVENTS && symbols[stream].iter().any(is_rewritten)
        };
        farms.concerned = fold.streams().iter().enumerate().map(is_concerned).collect();
        Ok(farms)
    }

    /// How many replies a process sends, if its receives are open.
    fn replies(&self, process: u32, comm: CommId) -> Option<u64> {
        self.replies.get(&(process, comm)).copied()
    }

    /// Whether a symbol receives any tag from a process whose receives are open: replies come in
    /// another order, with other tags.
    fn answers_with_any_tag(&self, ends: &Ends, stream: usize, symbol: Symbol) -> bool {
        let End::From { comm, source } = ends.get(symbol) else { return false };
        let source = ends.process(stream, comm, source);
        ends.takes_any_tag[symbol.index()]
            && source.is_some_and(|source| self.replies(source, comm).is_some())
    }
}

/// Follows which sender a stream replies to.
#[derive(Default)]
struct Follower {
    /// The sender of the last message from anyone, with its communicator, while nobody else was
    /// communicated with; whether it was only probed, and the replies so far.
    last: Option<(CommId, u32, bool, u64)>,
}

/// What an event is in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    FromAnyone,
    FromProbed,
    /// The n-th message to the sender, from 0.
    Reply(u64),
    Else,
}

impl Follower {
    fn next(&mut self, end: End) -> Part {
        match (end, &mut self.last) {
            (End::Nothing, _) => Part::Else,
            (End::FromAnyone { comm, source, is_probe, .. }, last) => {
                *last = Some((comm, source, is_probe, 0));
                Part::FromAnyone
            }
            (End::From { comm, source }, Some((known, sender, probed @ true, _)))
                if (comm, source) == (*known, *sender) =>
            {
                *probed = false;
                Part::FromProbed
            }
            (End::To { comm, dest }, Some((known, sender, false, replies)))
                if (comm, dest) == (*known, *sender) =>
            {
                *replies += 1;
                Part::Reply(*replies - 1)
            }
            _ => {
                self.last = None;
                Part::Else
            }
        }
    }
}

/// For each communicator on which all receives are open, the least number of replies.
fn replies_of(ends: impl Iterator<Item = End>, is_open: &impl Fn(CommId) -> bool) -> HashMap<CommId, u64> {
    let mut least: HashMap<CommId, u64> = HashMap::new();
    let mut closed: HashSet<CommId> = HashSet::new();
    let mut follower = Follower::default();
    let mut count: Option<(CommId, u64)> = None;
    let mut note = |count: Option<(CommId, u64)>| {
        if let Some((comm, replies)) = count {
            least.entry(comm).and_modify(|least| *least = replies.min(*least)).or_insert(replies);
        }
    };
    for end in ends {
        let is_probed = follower.last.is_some_and(|(_, _, is_probed, _)| is_probed);
        match (follower.next(end), end) {
            (Part::FromAnyone, End::FromAnyone { comm, .. }) => {
                // What was only probed is still there.
                closed.extend(count.filter(|_| is_probed).map(|(comm, _)| comm));
                note(count.take());
                count = Some((comm, 0));
            }
            (Part::Reply(nth), _) => count = count.map(|(comm, _)| (comm, nth + 1)),
            (Part::Else, End::From { comm, .. }) => drop(closed.insert(comm)),
            (Part::Else, End::To { .. } | End::Other) if is_probed => {
                closed.extend(count.map(|(comm, _)| comm));
            }
            _ => {}
        }
    }
    note(count);
    least.retain(|comm, _| is_open(*comm) && !closed.contains(comm));
    least
}

struct Rewriter<'a> {
    fold: &'a Fold,
    ends: &'a Ends,
    farms: &'a Farms,
    known: HashMap<(Symbol, How), Symbol>,
}

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum How {
    Open,
    FromSender,
    Reply,
    AnyTag,
}

impl Rewriter<'_> {
    fn stream(&mut self, stream: usize, root: RuleId, alphabet: &mut Alphabet) -> Result<Vec<Symbol>> {
        let own = self.ends.places.rank(stream);
        let mut follower = Follower::default();
        let mut symbols = Vec::with_capacity(self.fold.length(root) as usize);
        for symbol in self.fold.unfold(root) {
            let part = follower.next(self.ends.get(symbol));
            symbols.push(match self.how(stream, own, symbol, part) {
                None => symbol,
                Some(how) => self.rewritten(symbol, how, alphabet)?,
            });
        }
        Ok(symbols)
    }

    fn how(&self, stream: usize, own: u32, symbol: Symbol, part: Part) -> Option<How> {
        let replies = |comm: CommId| self.farms.replies(own, comm);
        match (part, self.ends.get(symbol)) {
            (Part::FromAnyone, End::FromAnyone { comm, .. }) => replies(comm).map(|_| How::Open),
            (Part::FromProbed, End::From { comm, .. }) if replies(comm).is_some() => Some(How::FromSender),
            (Part::Reply(nth), End::To { comm, .. }) => {
                replies(comm).is_some_and(|replies| nth < replies).then_some(How::Reply)
            }
            _ => self.farms.answers_with_any_tag(self.ends, stream, symbol).then_some(How::AnyTag),
        }
    }

    fn rewritten(&mut self, symbol: Symbol, how: How, alphabet: &mut Alphabet) -> Result<Symbol> {
        if let Some(&known) = self.known.get(&(symbol, how)) {
            return Ok(known);
        }
        let meaning = self.fold.alphabet().meaning(symbol);
        let takes_any_tag = self.ends.takes_any_tag[symbol.index()];
        let field = |field: &Field<'_>| match (how, field.key) {
            (How::Open, "src" | "from") => Some(ANYONE),
            (How::FromSender, "src" | "tag") | (How::Reply, "dest") => Some(SENDER),
            (How::Open | How::AnyTag, "tag") if takes_any_tag => Some(ANY),
            _ => None,
        };
        // How long a message is depends on who sends it.
        let is_kept = |field: &&Field<'_>| field.key != "bytes" || how == How::Reply;
        let fields: Vec<Field<'_>> = meaning
            .fields
            .iter()
            .filter(is_kept)
            .map(|old| Field { value: field(old).map_or(old.value, Value::Text), ..*old })
            .collect();
        let new = alphabet.intern(&Event { fields: &fields, ..meaning.event() }, None)?;
        self.known.insert((symbol, how), new);
        Ok(new)
    }
}
