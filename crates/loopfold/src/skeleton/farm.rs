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

use crate::fold::reach::{below, below_marked};
use crate::fold::{Fold, FoldBuilder, FoldedStream, Target};
use crate::mpi::{Communicators, WORLD};
use crate::questions::patterns::FoldStream;
use crate::trace::{Alphabet, Event, Field, Meaning, Name, Value};
use crate::{Result, RuleId, Symbol};
use hashbrown::{HashMap, HashSet};

/// In place of the rank of a sender: whoever sends.
pub(super) const ANYONE: &[u8] = b"anyone";

/// In place of a rank or a tag: that of the message that was received or probed from anyone last.
pub(super) const SENDER: &[u8] = b"sender";

/// In place of a tag.
const ANY: &[u8] = b"any";

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
    let farms = Farms::of(fold, &ends)?;
    if farms.replies.is_empty() {
        return Ok(None);
    }
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let rules = builder.append_rules(fold, Ok)?;
    let mut rewriter = Rewriter { fold, ends: &ends, farms: &farms, known: HashMap::new() };
    for (number, stream) in fold.streams().iter().enumerate() {
        let root = match farms.concerns(number) && fold.length(stream.root()) <= MOST_EVENTS {
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
    let mut is_known = vec![false; fold.rules().len()];
    let roots = fold.streams().iter().map(FoldedStream::root).collect();
    let used = below_marked(fold, roots, |rule| Ok(!std::mem::replace(&mut is_known[rule.index()], true)))?;
    Ok(used.into_iter().map(|rule| fold.body(rule).len()).sum())
}

/// What an event communicates, as far as farms are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nothing.
    Nothing,
    /// A blocking receive or a probe from anyone, whose message came from this rank.
    FromAnyone { comm: u32, source: i64, is_any_tag: bool, is_probe: bool },
    /// Another receive.
    From { comm: u32, source: i64, is_any_tag: bool, is_blocking: bool },
    /// A message to one rank.
    To { comm: u32, dest: i64, tag: i64 },
    /// Something else.
    Other,
}

/// What all symbols communicate.
struct Ends {
    by_symbol: Vec<End>,
    comms: Vec<String>,
    /// The ranks and communicators of the streams.
    places: Communicators,
}

/// A process and one of its communicators.
type Place = (u32, u32);

impl Ends {
    fn of(fold: &Fold) -> Self {
        let alphabet = fold.alphabet();
        let mut comms: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut number = |comm: String| {
            *numbers.entry(comm).or_insert_with_key(|comm| {
                comms.push(comm.clone());
                comms.len() as u32 - 1
            })
        };
        let by_symbol = alphabet.symbols().map(|symbol| end(&alphabet.meaning(symbol), &mut number));
        Self { by_symbol: by_symbol.collect(), comms, places: Communicators::of(fold) }
    }

    fn get(&self, symbol: Symbol) -> &End {
        &self.by_symbol[symbol.index()]
    }

    /// The process that has a rank in a communicator of a stream.
    fn process(&self, stream: usize, comm: u32, rank: i64) -> Option<u32> {
        self.places.world_rank(stream, &self.comms[comm as usize], u32::try_from(rank).ok()?)
    }
}

fn end(meaning: &Meaning<'_>, number: &mut impl FnMut(String) -> u32) -> End {
    let Name::Text(name) = meaning.name else { return End::Nothing };
    let rank = |key: &str| match meaning.field(key) {
        Some(Value::Integer(rank)) => Some(rank),
        _ => None,
    };
    let has = |key: &str| meaning.field(key).is_some();
    let any = |what: &[u8]| match meaning.field("any") {
        Some(Value::Text(text)) => text.split(|&byte| byte == b',').any(|one| one == what),
        _ => false,
    };
    let mut comm = || number(meaning.field("comm").map_or_else(|| WORLD.to_string(), text));
    let source = rank("src").or(rank("from")).filter(|&source| source >= 0);
    match (rank("dest").filter(|&dest| dest >= 0), source) {
        (Some(dest), None) if !has("src") && !has("from") => {
            End::To { comm: comm(), dest, tag: rank("tag").unwrap_or(0) }
        }
        (None, Some(source)) if !has("dest") => {
            let (comm, is_any_tag, is_probe) = (comm(), any(b"tag"), name == b"MPI_Probe");
            let is_blocking = name == b"MPI_Recv" || is_probe;
            match is_blocking && any(b"src") {
                true => End::FromAnyone { comm, source, is_any_tag, is_probe },
                false => End::From { comm, source, is_any_tag, is_blocking },
            }
        }
        (None, None) if !has("dest") && !has("src") && !has("from") && !has("root") => match meaning.role {
            crate::trace::Role::Collective => End::Other,
            _ => End::Nothing,
        },
        _ => End::Other,
    }
}

fn text(value: Value<'_>) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
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
    fn of(fold: &Fold, ends: &Ends) -> Result<Self> {
        let mut traffic = Self::default();
        for (stream, folded) in fold.streams().iter().enumerate() {
            for symbol in symbols(fold, folded.root())? {
                traffic.add(ends, stream, ends.get(symbol));
            }
        }
        Ok(traffic)
    }

    fn add(&mut self, ends: &Ends, stream: usize, end: &End) {
        let own = ends.places.rank(stream);
        match *end {
            End::Nothing | End::Other => {}
            End::FromAnyone { comm, source, is_any_tag, .. } => {
                let always = self.open.entry((own, comm)).or_insert(true);
                *always &= is_any_tag;
                self.receive(ends.process(stream, comm, source), comm, is_any_tag);
            }
            End::From { comm, source, is_any_tag, is_blocking } => {
                // A blocking one may be of a message that was probed.
                if !is_blocking {
                    self.closed.insert((own, comm));
                }
                self.receive(ends.process(stream, comm, source), comm, is_any_tag);
            }
            End::To { comm, dest, tag } => {
                self.sent_by.entry((own, comm)).or_default().insert(tag);
                if let Some(dest) = ends.process(stream, comm, dest) {
                    self.sent_to.entry((dest, comm)).or_default().insert(tag);
                }
            }
        }
    }

    fn receive(&mut self, source: Option<u32>, comm: u32, is_any_tag: bool) {
        if let Some(source) = source.filter(|_| !is_any_tag) {
            self.received_by_tag.insert((source, comm));
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

/// The symbols of a rule.
fn symbols(fold: &Fold, root: RuleId) -> Result<HashSet<Symbol>> {
    let mut all = HashSet::new();
    for rule in below(fold, root, |_| Ok(true))? {
        for item in fold.body(rule) {
            if let Target::Symbol(symbol) = item.target() {
                all.insert(symbol);
            }
        }
    }
    Ok(all)
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
        let traffic = Traffic::of(fold, ends)?;
        let mut replies = HashMap::new();
        for (stream, folded) in fold.streams().iter().enumerate() {
            let own = ends.places.rank(stream);
            let is_open = |comm: u32| traffic.can_be_open((own, comm));
            let has_any = (0..ends.comms.len() as u32).any(is_open);
            if has_any && fold.length(folded.root()) <= MOST_EVENTS {
                let of_stream =
                    replies_of(fold.unfold(folded.root()).map(|symbol| ends.get(symbol)), &is_open);
                replies.extend(of_stream.into_iter().map(|(comm, least)| ((own, comm), least)));
            }
        }
        let is_concerned = |(stream, folded): (usize, &FoldedStream)| -> Result<bool> {
            let all = symbols(fold, folded.root())?;
            Ok(all.into_iter().any(|symbol| match *ends.get(symbol) {
                End::FromAnyone { comm, .. } => replies.contains_key(&(ends.places.rank(stream), comm)),
                End::From { comm, source, is_any_tag: true, .. } => ends
                    .process(stream, comm, source)
                    .is_some_and(|source| replies.contains_key(&(source, comm))),
                _ => false,
            }))
        };
        let concerned: Result<Vec<bool>> = fold.streams().iter().enumerate().map(is_concerned).collect();
        Ok(Self { concerned: concerned?, replies })
    }

    fn concerns(&self, stream: usize) -> bool {
        self.concerned[stream]
    }
}

/// Follows which sender a stream replies to.
#[derive(Default)]
struct Follower {
    /// The sender of the last message from anyone, with its communicator, while nobody else was
    /// communicated with; whether it was only probed, and the replies so far.
    last: Option<(u32, i64, bool, u64)>,
}

/// What an event is to a farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    FromAnyone,
    FromProbed,
    /// The n-th message to the sender, from 0.
    Reply(u64),
    Else,
}

impl Follower {
    fn next(&mut self, end: &End) -> Part {
        match (*end, &mut self.last) {
            (End::Nothing, _) => Part::Else,
            (End::FromAnyone { comm, source, is_probe, .. }, last) => {
                *last = Some((comm, source, is_probe, 0));
                Part::FromAnyone
            }
            (End::From { comm, source, is_blocking: true, .. }, Some((known, sender, probed @ true, _)))
                if (comm, source) == (*known, *sender) =>
            {
                *probed = false;
                Part::FromProbed
            }
            (End::To { comm, dest, .. }, Some((known, sender, false, replies)))
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
fn replies_of<'a>(ends: impl Iterator<Item = &'a End>, is_open: &impl Fn(u32) -> bool) -> HashMap<u32, u64> {
    let mut least: HashMap<u32, u64> = HashMap::new();
    let mut closed: HashSet<u32> = HashSet::new();
    let mut follower = Follower::default();
    let mut count: Option<(u32, u64)> = None;
    let mut note = |count: Option<(u32, u64)>| {
        if let Some((comm, replies)) = count {
            least.entry(comm).and_modify(|least| *least = replies.min(*least)).or_insert(replies);
        }
    };
    for end in ends {
        let is_probed = follower.last.is_some_and(|(_, _, is_probed, _)| is_probed);
        match (follower.next(end), end) {
            (Part::FromAnyone, &End::FromAnyone { comm, .. }) => {
                // What was only probed is still there.
                closed.extend(count.filter(|_| is_probed).map(|(comm, _)| comm));
                note(count.take());
                count = Some((comm, 0));
            }
            (Part::Reply(nth), _) => count = count.map(|(comm, _)| (comm, nth + 1)),
            (Part::Else, &End::From { comm, .. }) => drop(closed.insert(comm)),
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
            let end = self.ends.get(symbol);
            let part = follower.next(end);
            let how = self.how(stream, own, end, part);
            symbols.push(match how {
                None => symbol,
                Some(how) => self.rewritten(symbol, how, alphabet)?,
            });
        }
        Ok(symbols)
    }

    fn how(&self, stream: usize, own: u32, end: &End, part: Part) -> Option<How> {
        let replies = |comm: u32| self.farms.replies.get(&(own, comm)).copied();
        match (part, *end) {
            (Part::FromAnyone, End::FromAnyone { comm, .. }) if replies(comm).is_some() => Some(How::Open),
            (Part::FromProbed, End::From { comm, .. }) if replies(comm).is_some() => Some(How::FromSender),
            (Part::Reply(nth), End::To { comm, .. }) => {
                replies(comm).is_some_and(|replies| nth < replies).then_some(How::Reply)
            }
            // Replies come in another order, with other tags.
            (_, End::From { comm, source, is_any_tag: true, .. }) => {
                let source = self.ends.process(stream, comm, source)?;
                self.farms.replies.contains_key(&(source, comm)).then_some(How::AnyTag)
            }
            _ => None,
        }
    }

    fn rewritten(&mut self, symbol: Symbol, how: How, alphabet: &mut Alphabet) -> Result<Symbol> {
        if let Some(&known) = self.known.get(&(symbol, how)) {
            return Ok(known);
        }
        let meaning = self.fold.alphabet().meaning(symbol);
        let is_any_tag = match *self.ends.get(symbol) {
            End::FromAnyone { is_any_tag, .. } | End::From { is_any_tag, .. } => is_any_tag,
            _ => false,
        };
        let field = |field: &Field<'_>| match (how, field.key) {
            (How::Open, "src" | "from") => Some(ANYONE),
            (How::FromSender, "src" | "tag") | (How::Reply, "dest") => Some(SENDER),
            (How::Open | How::AnyTag, "tag") if is_any_tag => Some(ANY),
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
