//! Waits of streams whose times are in several processes: each replays its own streams, and gets from the
//! others what it needs of theirs.
//!
//! All processes have the same fold, without the times of others. They go through the same steps:
//!
//! 1. Each says which of its streams have times.
//! 2. Each walks along its streams and sends the ends of messages to the processes that have the other ends
//!    (`ends`), and what its members do in collective operations, reduced, to their homes (`reduction`).
//! 3. The homes answer what ends the waits in each operation.
//! 4. Each replays its own streams together with the ends that it got, which is what one process alone does,
//!    restricted to the messages of its own streams.
//! 5. The sums are added up over a tree, to process 0. All of them are integers, minima and maxima, so the
//!    order makes no difference.
//!
//! Correcting clocks takes steps 2 to 4 twice, with the least differences of clocks gathered at process 0, and
//! its offsets sent to all, in between.
//!
//! Only where streams of one rank lie in several processes and more than one of these takes part in collective
//! operations, their order within that rank is known to nobody; see [`can_be_divided`].
//!
//! Cost for each process: two walks along its own streams instead of one, the messages that cross processes
//! (some 4 bytes for each end), and all that `replay` takes, for its own streams.

use super::clocks::Clocks;
use super::ends::{Arrivals, Outgoing};
use super::exchange::{Exchange, all_to_all, broadcast, gather};
use super::plan::Resolver;
use super::reduction::{Joined, OperationEnds, PartialOperations, join_partials};
use super::replay::{Done, Others, Replay};
use super::{Config, Focus, Question, Waits};
use crate::bytes::put_number;
use crate::fold::{Measure, measure_rules};
use crate::mpi::{Calls, Communicators};
use crate::questions::clock::EventClock;
use crate::questions::wire::Reader;
use crate::{Fold, Result, StreamId, Symbol};
use hashbrown::{HashMap, HashSet};

/// The processes that have the times of some streams each.
#[derive(Clone, Copy)]
pub struct Division<'a> {
    /// How they exchange messages.
    pub exchange: &'a dyn Exchange,
    /// For each stream the process that has its times.
    pub owners: &'a [usize],
}

opaque_debug!(Division<'a>);

/// Who has which streams.
pub(super) struct Sharing {
    process: usize,
    pub(super) processes: usize,
    owners: Vec<usize>,
    /// For each rank the processes that have a stream of it.
    having: HashMap<u32, Vec<usize>>,
    /// For each rank the process that has its streams with collective operations.
    collective: HashMap<u32, usize>,
}

impl Sharing {
    /// `starts` says which streams have times.
    fn new(fold: &Fold, division: &Division<'_>, ranks: &Communicators, starts: &[bool]) -> Result<Self> {
        let mut having: HashMap<u32, Vec<usize>> = HashMap::new();
        for stream in (0..fold.streams().len()).filter(|&stream| starts[stream]) {
            let owners = having.entry(ranks.rank(stream)).or_default();
            if !owners.contains(&division.owners[stream]) {
                owners.push(division.owners[stream]);
            }
        }
        let collective = collective_owners(fold, division.owners, ranks, starts)?;
        let collective = collective.into_iter().filter_map(|(rank, owners)| Some((rank, *owners.first()?)));
        Ok(Self {
            process: division.exchange.rank(),
            processes: division.exchange.size(),
            owners: division.owners.to_vec(),
            collective: collective.collect(),
            having,
        })
    }

    pub(super) fn own_streams(&self, fold: &Fold) -> impl Iterator<Item = StreamId> + '_ {
        fold.stream_ids().zip(&self.owners).filter(|&(_, &owner)| owner == self.process).map(|(id, _)| id)
    }

    /// The other processes that have a stream of one of these ranks.
    pub(super) fn others_with(&self, ranks: [u32; 2]) -> Vec<usize> {
        let with = ranks.iter().filter_map(|rank| self.having.get(rank)).flatten().copied();
        with.filter(|&process| process != self.process).collect()
    }

    /// How many of these members take part in collective operations here.
    pub(super) fn own_members(&self, members: &[u32]) -> usize {
        members.iter().filter(|rank| self.collective.get(*rank) == Some(&self.process)).count()
    }
}

/// For each rank the processes that have its streams with collective operations; one that has none
/// belongs to the process of its first stream.
fn collective_owners(
    fold: &Fold,
    owners: &[usize],
    ranks: &Communicators,
    starts: &[bool],
) -> Result<HashMap<u32, Vec<usize>>> {
    let calls = Calls::of(fold.alphabet());
    let meets = measure_rules(fold, &Meets { calls: &calls })?;
    let mut all: HashMap<u32, Vec<usize>> = HashMap::new();
    let streams = || fold.streams().iter().enumerate().filter(|&(index, _)| starts[index]);
    for (index, _) in streams().filter(|(_, stream)| meets[stream.root().index()]) {
        let of_rank = all.entry(ranks.rank(index)).or_default();
        if !of_rank.contains(&owners[index]) {
            of_rank.push(owners[index]);
        }
    }
    for (index, _) in streams() {
        all.entry(ranks.rank(index)).or_insert_with(|| vec![owners[index]]);
    }
    Ok(all)
}

/// Whether a rule has a collective operation.
struct Meets<'a> {
    calls: &'a Calls,
}

impl Measure for Meets<'_> {
    type Value = bool;

    fn empty(&self) -> bool {
        false
    }

    fn symbol(&self, symbol: Symbol) -> bool {
        self.calls.get(symbol).is_some_and(|call| call.collective.is_some())
    }

    fn join(&self, left: &bool, right: &bool) -> Result<bool> {
        Ok(left | right)
    }
}

/// Whether [`Waits::divided`] finds the waits of a fold, if its streams belong to these processes: no rank has
/// collective operations in streams of several of them. Threads without such operations may be anywhere.
pub fn can_be_divided(fold: &Fold, owners: &[usize]) -> Result<bool> {
    let ranks = Communicators::of(fold);
    let starts = vec![true; fold.streams().len()];
    let all = owners.len() == starts.len();
    Ok(all && collective_owners(fold, owners, &ranks, &starts)?.values().all(|owners| owners.len() == 1))
}

impl Waits {
    /// Finds waits together with other processes. All of them call this with the same fold, settings and
    /// focus; each has the times of the streams that it owns. Returns the waits at process 0, the same as
    /// [`focused`](Self::focused) would in one process, and `None` at the others. The focus needs the numbers
    /// and parts of own streams only. The limit of what is in flight is that of each process.
    ///
    /// # Errors
    /// Those of [`focused`](Self::focused) and of the exchange, of which the other processes know nothing:
    /// whoever started them has to stop them.
    pub fn divided(
        fold: &Fold,
        config: &Config,
        focus: &Focus,
        division: &Division<'_>,
    ) -> Result<Option<Self>> {
        let question = Question::of(fold, config, focus)?;
        let starts = all_starts(fold, division)?;
        super::check_times(fold, starts.contains(&true))?;
        let sharing = Sharing::new(fold, division, &question.communicators, &starts)?;
        let present = ranks_with(&question.communicators, &starts);
        let resolver = question.resolver(&present);
        let divided =
            Divided { question: &question, resolver, sharing: &sharing, exchange: division.exchange };
        let clocks = if config.correct_clocks { divided.corrected()? } else { Clocks::default() };
        let done = divided.replay(clocks)?;
        Ok(divided.gather(done)?.map(|done| question.finish(done)))
    }
}

/// Which streams have times: every process knows that of its own ones.
fn all_starts(fold: &Fold, division: &Division<'_>) -> Result<Vec<bool>> {
    let mut own = Vec::new();
    for (index, stream) in fold.streams().iter().enumerate() {
        let is_own = division.owners.get(index) == Some(&division.exchange.rank());
        if is_own && stream.times().starts.is_some() {
            put_number(&mut own, index as u64);
        }
    }
    let mut starts = vec![false; fold.streams().len()];
    for message in all_to_all(division.exchange, vec![own; division.exchange.size()])? {
        let mut reader = Reader::new(message);
        while !reader.is_empty() {
            let index = reader.number()? as usize;
            *starts.get_mut(index).ok_or_else(|| Reader::damaged("a stream"))? = true;
        }
    }
    Ok(starts)
}

/// A question that several processes answer.
struct Divided<'a> {
    question: &'a Question<'a>,
    resolver: Resolver<'a>,
    sharing: &'a Sharing,
    exchange: &'a dyn Exchange,
}

impl Divided<'_> {
    /// Offsets of clocks from all messages.
    fn corrected(&self) -> Result<Clocks> {
        let measured = self.replay(Clocks::measuring())?.clocks;
        let whole = gather(self.exchange, measured, Clocks::encode, |clocks, bytes| {
            clocks.absorb(&mut Reader::new(bytes.to_vec()))
        })?;
        let offsets = whole.map(|clocks| clocks.corrected().encode_offsets()).unwrap_or_default();
        Clocks::with_offsets(&mut Reader::new(broadcast(self.exchange, offsets)?))
    }

    /// Replays the own streams, with what others send.
    fn replay(&self, clocks: Clocks) -> Result<Done> {
        let fold = self.question.fold;
        let operations = PartialOperations::new(self.exchange);
        let outgoing = Outgoing::new(fold, self.resolver, self.sharing, &clocks, operations);
        let (ends, operations) = outgoing.run()?;
        let arrivals = all_to_all(self.exchange, ends)?.into_iter().map(Arrivals::new).collect();
        let (partials, sent) = operations.finish();
        let (answers, joined) = join_partials(self.resolver, all_to_all(self.exchange, partials)?)?;
        let answers = all_to_all(self.exchange, answers)?;
        let operations = OperationEnds::new(sent, answers)?;
        let others = Others { arrivals, operations, sharing: self.sharing };
        let own: Vec<StreamId> = self.sharing.own_streams(fold).collect();
        let origin = origin_of(fold, &own)?;
        let mut done = Replay::new(self.question, self.resolver, clocks, own, Some(others))?.run()?;
        let Joined { collectives, left_out } = joined;
        done.collectives += collectives;
        done.left_out.disagreeing += left_out.disagreeing;
        done.left_out.incomplete += left_out.incomplete;
        done.left_out.partial += left_out.partial;
        done.origin = origin;
        Ok(done)
    }

    fn gather(&self, done: Done) -> Result<Option<Done>> {
        let shown = &self.question.shown;
        let encode = |done: &Done| done.encode(shown);
        let whole = gather(self.exchange, done, encode, |done, bytes| {
            done.absorb(&mut Reader::new(bytes.to_vec()), shown.len())
        })?;
        Ok(whole.map(|mut done| {
            done.backward.sort_unstable_by_key(|backward| backward.stream);
            done
        }))
    }
}

/// The least start of the first events of some streams.
pub(super) fn origin_of(fold: &Fold, streams: &[StreamId]) -> Result<Option<i64>> {
    let mut clock = EventClock::new(fold);
    let mut origin = None;
    for &stream in streams {
        let start = match fold.stream(stream).clock_zero() {
            Some(zero) => Some(zero),
            None => clock.start(stream, 0)?,
        };
        origin = [origin, start].into_iter().flatten().min();
    }
    Ok(origin)
}

/// The set of ranks of streams that have times.
pub(super) fn ranks_with(ranks: &Communicators, starts: &[bool]) -> HashSet<u32> {
    let with = starts.iter().enumerate().filter(|&(_, &has)| has);
    with.map(|(stream, _)| ranks.rank(stream)).collect()
}
