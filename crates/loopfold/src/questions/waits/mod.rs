//! Finds who waits for whom: late senders, late receivers and waiting at collective operations,
//! in the classes that Scalasca made known, with the place, the iteration and the process that
//! cause the waiting.
//!
//! # Definitions
//!
//! An event *enters* at its start and *leaves* at its start plus its duration. Differences of
//! times that are negative count as 0; arithmetic saturates in 64 bits. The process of a stream
//! and the members of communicators are those of [`Communicators`]; a communicator is its name
//! and its members. Where several streams belong to one process, their events are taken in the
//! order of a merge by enter (the lower stream first if equal; an event without a start directly
//! after the one before it).
//!
//! **Messages.** The n-th send from p to q on a communicator with a tag belongs to the n-th
//! receive of q from p there. A receive from anyone, or with any tag, has an unknown sender; it
//! and the messages of processes without a stream are counted and left out.
//!
//! **Requests.** A call is nonblocking if its MPI name begins with `i` or with `start`. Each of its
//! messages, first sends, then receives, and its collective operation posts a request. So do
//! `cancelled=k` (k of them), and one if the call names nobody as its partner; these
//! complete without waiting. `MPI_Wait*` and `MPI_Test*` complete the `n` oldest pending requests
//! of their stream, 1 if there is no field `n`, all in the case of `MPI_Waitall`; or those
//! whose indexes among the pending ones, from 0, are in the field `done`. `MPI_Request_free` with
//! one of these fields removes them from the pending ones, and does not wait.
//!
//! **Parts.** What an event waits for are its parts, in this order: the messages that it
//! receives, those that it sends, and its collective operation, unless it is nonblocking; and
//! the requests that it completes, oldest first. A part has a class, a partner, and the time T
//! that ends the wait. It lasts min(T, leave) − enter.
//!
//! | class | who waits | T, and the partner |
//! | --- | --- | --- |
//! | late sender | a receive | the send enters |
//! | late receiver | a send, except a buffered one, if T ≤ leave: otherwise it was buffered | the receive enters |
//! | wait at barrier | every member | the last member enters |
//! | wait at N×N | every member of an allreduce, allgather, alltoall or reduce-scatter | the last member enters |
//! | late broadcast | a member of a broadcast or scatter, except the root | the root enters |
//! | early reduce | the root of a reduce or gather | the first of the others enters |
//! | early scan | a member of a scan | the last member of lower rank enters |
//!
//! If several enter at the same time, the lowest rank is the partner. The n-th operation on a
//! communicator is the same one for all of its members that have a stream. It counts if all of
//! these take part and agree on its class and its root.
//!
//! **Waits.** The wait of an event is its longest part, the first of equal ones: a time is never
//! counted twice. Its cause is the partner. A wait for a late sender is *in wrong order* if
//! another message could have been received instead: in the merge of all streams, the send of
//! some message to the same process comes before the late send, and its receive after that, or
//! never; and the waiting receive comes before the late send.
//!
//! **Places.** The place of a wait is the call without its envelope ([`ENVELOPE`]), its partners
//! (`dest`, `src`) and `done`; the innermost function that is entered and not left; and the
//! times of the loops around it, in the rules of the fold. Its iteration is that of the outermost
//! loop. [`Focus::numbers`] can number the iterations of outermost loops as in another nest, such as
//! one with exceptions: then that loop is the outermost one, and of the loops of the rules around a
//! wait those count whose iterations are shorter. Iterations of loops of as many iterations have the
//! same numbers, so that processes that do the same are summed. Of a loop of more than 16,384
//! iterations, 2, 4, 8, … are taken as one.
//!
//! **Calls.** The time in a call that communicates, its duration, is its wait and what comes after
//! that, or the call waited for nobody: a nonblocking call, a send that is buffered, a message that
//! was there. So all of these add up.
//!
//! **Times.** The time of a stream reaches from its earliest enter to its latest leave; shares
//! are shares of the sum over all streams. An event without a start is matched, and nobody waits
//! in it or for it; one without a duration leaves as it enters. A stream without any starts is
//! not there.
//!
//! **Clocks.** A message that is received before it is sent, by the leave of the event that
//! receives or completes it, violates the clock condition. With
//! [`correct_clocks`](Config::correct_clocks) every process gets a constant offset; see
//! [`clocks`](Offsets).
//!
//! # Cost
//!
//! All streams are unfolded together, in the order of their enters, so that only messages in
//! flight are kept: O(events × log streams) time, O(messages in flight + places × pairs +
//! places × iterations) memory and two chunks of columns for each stream. An index in `done`
//! costs O(pending requests). Correcting clocks takes two passes.

mod clocks;
mod collective;
mod division;
mod ends;
mod exchange;
mod gathered;
mod kinds;
mod numbering;
mod plan;
mod reduction;
mod replay;
mod slab;
mod tally;
mod walk;

pub use clocks::{ClockViolation, Offsets};
pub use division::{Division, can_be_divided};
pub use exchange::{Exchange, broadcast};
pub use numbering::{Focus, IterationNumbers};
pub use tally::{CallTime, Pair, PlaceWaits, RankWaits, Sum, WorstIteration};

use crate::mpi::{Calls, Communicators, MessageEnds};
use crate::questions::patterns::ENVELOPE;
use crate::trace::{Alphabet, Projection};
use crate::{Error, Fold, Result, StreamId};
use clocks::Clocks;
use division::{origin_of, ranks_with};
use hashbrown::HashSet;
use kinds::Symbols;
use plan::Resolver;
use replay::{Done, Replay};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A receive waits for its send.
    LateSender,
    /// A send waits for its receive.
    LateReceiver,
    /// A member of a barrier waits for the last one.
    Barrier,
    /// A member of an operation from all to all waits for the last one.
    AllToAll,
    /// A member of an operation from one to all waits for the root.
    LateBroadcast,
    /// The root of an operation from all to one waits for the first of the others.
    EarlyReduce,
    /// A member of a scan waits for those before it.
    EarlyScan,
}

impl Class {
    /// All classes, in their order.
    pub const ALL: [Class; 7] = [
        Class::LateSender,
        Class::LateReceiver,
        Class::Barrier,
        Class::AllToAll,
        Class::LateBroadcast,
        Class::EarlyReduce,
        Class::EarlyScan,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::LateSender => "late sender",
            Class::LateReceiver => "late receiver",
            Class::Barrier => "wait at barrier",
            Class::AllToAll => "wait at N×N",
            Class::LateBroadcast => "late broadcast",
            Class::EarlyReduce => "early reduce",
            Class::EarlyScan => "early scan",
        }
    }

    /// Its name for programs: lower case letters and `_`.
    pub fn id(self) -> &'static str {
        match self {
            Class::LateSender => "late_sender",
            Class::LateReceiver => "late_receiver",
            Class::Barrier => "wait_at_barrier",
            Class::AllToAll => "wait_at_nxn",
            Class::LateBroadcast => "late_broadcast",
            Class::EarlyReduce => "early_reduce",
            Class::EarlyScan => "early_scan",
        }
    }
}

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Whether the clocks of processes are shifted so that no message is received before it is
    /// sent.
    pub correct_clocks: bool,
    /// The most messages, requests and calls of collectives in flight. More are an error.
    pub most_in_flight: usize,
}

impl Config {
    /// The defaults.
    pub const fn new() -> Self {
        Self { correct_clocks: false, most_in_flight: 1 << 23 }
    }

    setters! {
        /// Whether the clocks of processes are shifted so that no message is received before it
        /// is sent.
        correct_clocks: bool,
        /// The most messages, requests and calls of collectives in flight. More are an error.
        most_in_flight: usize,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// What was left out, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Receives whose sender or tag is not stated.
    pub unknown_senders: u64,
    /// Messages from or to processes that have no stream.
    pub absent: u64,
    /// Sends without a receive.
    pub unreceived: u64,
    /// Receives without a send.
    pub unsent: u64,
    /// Collective operations in which not all members take part.
    pub incomplete: u64,
    /// Collective operations whose members disagree on the class or the root.
    pub disagreeing: u64,
    /// Collective operations of members of which some have no stream: waits for these are missing.
    pub partial: u64,
    /// Requests that a call completes and none has posted.
    pub unknown_requests: u64,
    /// Communication without a start.
    pub without_start: u64,
    /// Communication without a duration.
    pub without_duration: u64,
}

/// Times that decrease within a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackwardTimes {
    /// The stream.
    pub stream: StreamId,
    /// How many events enter before the one before them.
    pub count: u64,
    /// The position of the first.
    pub first: u64,
}

/// Who waits for whom, where, and for how long. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Waits {
    /// The time of all streams together.
    pub total: u64,
    /// How many messages were matched.
    pub messages: u64,
    /// How many collective operations were matched.
    pub collectives: u64,
    /// For each class, in the order of [`Class::ALL`].
    pub classes: [Sum; Class::ALL.len()],
    /// Those of the class [`Class::LateSender`] that are in wrong order.
    pub wrong_order: Sum,
    /// The places of each class, the longest waits first.
    pub places: Vec<PlaceWaits>,
    /// The processes that wait or cause waits, those that cause most first.
    pub ranks: Vec<RankWaits>,
    /// For each number of iterations of an outermost loop, the iteration with the most waiting;
    /// the longest first.
    pub iterations: Vec<WorstIteration>,
    /// By the processes that wait and that cause it, at all places, the longest first.
    pub pairs: Vec<Pair>,
    /// The time in calls after their waits, such as that of the transfer.
    pub after_waits: u64,
    /// The places of calls that waited for nobody, the longest first.
    pub calls: Vec<CallTime>,
    /// Messages that are received before they are sent, by sender and receiver, most first.
    pub violations: Vec<ClockViolation>,
    /// The offsets of clocks, if they were asked for.
    pub offsets: Option<Offsets>,
    /// Streams whose times decrease.
    pub backward: Vec<BackwardTimes>,
    /// What was left out.
    pub left_out: LeftOut,
    /// When the trace began: the least start of the streams' first events.
    pub origin: Option<i64>,
    /// The calls of places.
    alphabet: Alphabet,
    functions: Vec<String>,
}

impl Waits {
    /// Finds the waits of a fold that has the times of every event.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::questions::waits::{Class, Config, Waits};
    /// use loopfold::trace::{Collector, Event, Field, Role, Sink, Timing, Value};
    ///
    /// let mut collector = Collector::default();
    /// let streams = [collector.stream("rank 0")?, collector.stream("rank 1")?];
    /// let fields = |key| [Field { key, value: Value::Integer(if key == "dest" { 1 } else { 0 }) }];
    /// let send = Event { role: Role::Send, fields: &fields("dest"), ..Event::named("MPI_Send") };
    /// let receive = Event { role: Role::Receive, fields: &fields("src"), ..Event::named("MPI_Recv") };
    /// let (send, receive) = (collector.intern(&send)?, collector.intern(&receive)?);
    /// let at = |start, duration| Timing { start: Some(start), duration: Some(duration), ..Timing::UNKNOWN };
    /// // The receive enters 70 ns before the send.
    /// collector.push(streams[0], send, at(100, 10))?;
    /// collector.push(streams[1], receive, at(30, 90))?;
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let waits = Waits::of(&fold, &Config::new())?;
    /// assert_eq!(waits.classes[Class::LateSender as usize].time, 70);
    /// assert_eq!((waits.ranks[0].rank, waits.ranks[0].caused.time), (0, 70));
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn of(fold: &Fold, config: &Config) -> Result<Self> {
        Self::focused(fold, config, &Focus::default())
    }

    /// The same with other numbers of iterations, or of a part of the fold; messages are matched in
    /// all of it.
    pub fn focused(fold: &Fold, config: &Config, focus: &Focus) -> Result<Self> {
        let question = Question::of(fold, config, focus)?;
        let starts: Vec<bool> = fold.streams().iter().map(|stream| stream.times().starts.is_some()).collect();
        check_times(fold, starts.contains(&true))?;
        let present = ranks_with(&question.communicators, &starts);
        let all: Vec<StreamId> = fold.stream_ids().collect();
        let replay =
            |clocks| Replay::new(&question, question.resolver(&present), clocks, all.clone(), None)?.run();
        let clocks = match config.correct_clocks {
            true => replay(Clocks::measuring())?.clocks.corrected(),
            false => Clocks::default(),
        };
        let mut done = replay(clocks)?;
        done.origin = origin_of(fold, &all)?;
        Ok(question.finish(done))
    }

    /// All waits together.
    pub fn all(&self) -> Sum {
        self.classes.iter().fold(Sum::default(), |all, class| all.plus(*class))
    }

    /// The calls that waited for nobody.
    pub fn without_waits(&self) -> Sum {
        self.calls.iter().fold(Sum::default(), |all, call| all.plus(call.sum))
    }

    /// The time in all calls that communicate: waits, what comes after them in the same calls, and
    /// calls that waited for nobody.
    pub fn in_calls(&self) -> u64 {
        let waits = self.all().time.saturating_add(self.after_waits);
        waits.saturating_add(self.without_waits().time)
    }

    /// The share of a time in that of all streams.
    pub fn share(&self, time: u64) -> f64 {
        if self.total == 0 { 0.0 } else { time as f64 / self.total as f64 }
    }

    /// The alphabet of the calls of places.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The function of a place.
    pub fn function(&self, place: &PlaceWaits) -> Option<&str> {
        self.functions.get(place.function? as usize).map(String::as_str)
    }

    /// The function of calls.
    pub fn function_of(&self, calls: &CallTime) -> Option<&str> {
        self.functions.get(calls.function? as usize).map(String::as_str)
    }
}

/// What is asked, and what it needs of the fold besides its streams.
struct Question<'a> {
    fold: &'a Fold,
    config: &'a Config,
    focus: &'a Focus,
    calls: Calls,
    communicators: Communicators,
    symbols: Symbols,
    /// The calls of places, and which of them each symbol is.
    alphabet: Alphabet,
    shown: Vec<crate::Symbol>,
}

impl<'a> Question<'a> {
    fn of(fold: &'a Fold, config: &'a Config, focus: &'a Focus) -> Result<Self> {
        let calls = Calls::of(fold.alphabet());
        let communicators = Communicators::of(fold);
        let symbols = Symbols::of(fold.alphabet(), &calls);
        let (alphabet, shown) = places_alphabet(fold)?;
        Ok(Self { fold, config, focus, calls, communicators, symbols, alphabet, shown })
    }

    /// `present` are the ranks that have a stream.
    fn resolver<'b>(&'b self, present: &'b HashSet<u32>) -> Resolver<'b> {
        let message_ends = MessageEnds { calls: &self.calls, communicators: &self.communicators };
        Resolver { message_ends, symbols: &self.symbols, present, streams: self.fold.streams().len() }
    }

    fn finish(&self, done: Done) -> Waits {
        let after_waits = done.tally.after_waits;
        let tally = done.tally.finish(&self.shown);
        let offsets = self.config.correct_clocks.then(|| done.clocks.offsets());
        Waits {
            total: done.total,
            messages: done.messages,
            collectives: done.collectives,
            classes: tally.classes,
            wrong_order: tally.wrong_order,
            places: tally.places,
            ranks: tally.ranks,
            iterations: tally.iterations,
            pairs: tally.pairs,
            after_waits,
            calls: tally.calls,
            violations: done.clocks.violations(),
            offsets,
            backward: done.backward,
            left_out: done.left_out,
            origin: done.origin,
            alphabet: self.alphabet.clone(),
            functions: self.symbols.functions.clone(),
        }
    }
}

/// Fails unless some stream has starts.
fn check_times(fold: &Fold, has_starts: bool) -> Result<()> {
    if has_starts || fold.streams().is_empty() {
        return Ok(());
    }
    let reason = match fold.streams().iter().any(|stream| stream.sums().is_some()) {
        true => "there are only sums of times",
        false => "there are none",
    };
    Err(Error::invalid(format_args!("waits are found by the times of every event, and {reason}")))
}

/// The calls of places, and which of them each symbol is.
fn places_alphabet(fold: &Fold) -> Result<(Alphabet, Vec<crate::Symbol>)> {
    let ignore =
        ENVELOPE.iter().chain(&["dest", "src", "done", "cancelled"]).map(ToString::to_string).collect();
    Projection { ignore, ..Projection::default() }.of_alphabet(fold.alphabet())
}
