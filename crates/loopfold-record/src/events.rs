//! From records to events: what a call completes, which message a wildcard matched, and peers
//! relative to the own rank.
//!
//! What a nonblocking receive with a wildcard matches is known only when it completes, in another
//! call, maybe of another thread; [`requests`] says how events wait for that, and what a call that
//! completes requests says about them. So events are those of the source `otf2`.
//!
//! Records come in an order in which each follows those that it depends on ([`crate::lanes`]), so
//! communicators, messages and requests are known when they are used, whichever thread made them.
//!
//! The number of a communicator may be used again. Where the recorder has listed its members, and
//! these are others than before, the later one is called `2.2`, `2.3` and so on, as readers call
//! those whose members follow from the calls.
//!
//! Most records are known: their words alone determine the event, and one look-up finds its symbol.
//!
//! O(1) a record; O(pending requests) for one that does not complete the oldest.

mod requests;
#[cfg(test)]
mod tests;

use crate::kind::Kinds;
use crate::kind::{ANY_SOURCE, ANY_TAG, Kind, Slot};
use crate::layout::{
    ANY, CANCELLED, COMMUNICATOR, CONTINUED, ENTER, LEAVE, MARK, NOBODY, OFF_CPU, RECORDING, Word, length_of,
    words_of,
};
use crate::paths::Shared;
use crate::sites::Sites;
use hashbrown::HashMap;
use loopfold::mpi::RelativePeers;
use loopfold::trace::Role;
use loopfold::{Result, Symbol};
use loopfold_sources::{MpiArgument, mpi_calls};
use requests::{Lane, MOST_PENDING, Posted};
use std::sync::Arc;

/// An event with its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) symbol: Symbol,
    /// In nanoseconds of the clock of the process.
    pub(crate) start: i64,
    /// Negative if it is not known.
    pub(crate) duration: i64,
    /// The use of a lane of paths that has a mark for it, or 0.
    pub(crate) paths: u32,
    pub(crate) between: Between,
}

/// What is known of the time between an event and the one before, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Between {
    /// In which the thread did not run.
    pub(crate) off_cpu: u64,
    /// What recording the event before took, if that was measured.
    pub(crate) recording: Option<u64>,
}

/// When an event was, and where among the paths of its thread.
#[derive(Clone, Copy, Debug)]
struct Moment {
    start: i64,
    duration: i64,
    paths: u32,
    between: Between,
}

impl Moment {
    fn of(self, symbol: Symbol) -> Timed {
        let Self { start, duration, paths, between } = self;
        Timed { symbol, start, duration, paths, between }
    }
}

/// A communicator as the process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Communicator {
    pub(crate) own: u32,
    /// 0 if peers are of another group.
    pub(crate) size: u32,
    /// The members as ranks of the world, if they do not follow from the call that makes it.
    pub(crate) members: Vec<u32>,
}

/// Converts the records of a process.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) kinds: Kinds,
    lanes: Vec<Lane>,
    /// By name: the number, and above its bits how many other lists of members it had before.
    pub(crate) communicators: HashMap<i64, Communicator>,
    /// The names by number and members.
    names: HashMap<(i64, Vec<u32>), i64>,
    /// How many names a number has.
    name_counts: HashMap<i64, i64>,
    /// The names in force, where they are not the numbers.
    in_force: HashMap<i64, i64>,
    persistent: HashMap<i64, Persistent>,
    messages: HashMap<i64, Matched>,
    layouts: Vec<Vec<Word>>,
    shapes: Vec<Shape>,
    /// The symbols of records by their words, where these alone determine the event.
    known: HashMap<Box<[i64]>, Symbol, foldhash::fast::RandomState>,
    key: Vec<i64>,
    specials: Specials,
    sites: Option<Sites>,
}

/// A persistent request: what is sent or received each time it is started.
#[derive(Clone, Copy, Debug)]
struct Persistent {
    call: usize,
    dest: Option<i64>,
    src: Option<i64>,
    root: Option<i64>,
    op: Option<i64>,
    tag: i64,
    bytes: Option<i64>,
    comm: i64,
}

/// A message that was matched by a probe.
#[derive(Clone, Copy, Debug)]
struct Matched {
    src: i64,
    tag: i64,
    comm: i64,
    any: i64,
}

/// The numbers of calls that have records of their own form.
#[derive(Clone, Copy, Debug)]
struct Specials {
    start: usize,
    startall: usize,
    request_free: usize,
    abort: usize,
    comm_free: usize,
    comm_disconnect: usize,
    completing: [usize; 8],
}

impl Specials {
    fn find() -> Self {
        let of = |name: &str| mpi_calls().iter().position(|call| call.name == name).unwrap_or(usize::MAX);
        Self {
            start: of("MPI_Start"),
            startall: of("MPI_Startall"),
            request_free: of("MPI_Request_free"),
            abort: of("MPI_Abort"),
            comm_free: of("MPI_Comm_free"),
            comm_disconnect: of("MPI_Comm_disconnect"),
            completing: [
                "MPI_Wait",
                "MPI_Waitall",
                "MPI_Waitany",
                "MPI_Waitsome",
                "MPI_Test",
                "MPI_Testall",
                "MPI_Testany",
                "MPI_Testsome",
            ]
            .map(of),
        }
    }
}

/// What else than the words of a record an event depends on.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    /// Nothing: the same words are the same event.
    is_simple: bool,
    /// Where the request is that it posts.
    request: Option<usize>,
    /// Where the sender and the tag of a receive are, which may be wildcards.
    ends: [Option<usize>; 2],
    completes: bool,
    /// Where the communicator is.
    communicator: Option<usize>,
}

impl Shape {
    fn of(number: usize, specials: &Specials) -> Self {
        let call = &mpi_calls()[number];
        let layout = words_of(call);
        let place = |wanted: Word| layout.iter().position(|&word| word == wanted);
        let remembers = [Word::Message, Word::ReceivedMessage, Word::NewCommunicator, Word::Grid];
        let is_message = call.role != Role::Plain || call.has(MpiArgument::Destination);
        let posts_message =
            place(Word::Request).is_none() || is_message && !call.has(MpiArgument::PersistentRequest);
        let tag = if call.has(MpiArgument::Destination) { Word::ReceiveTag } else { Word::Tag };
        let receives = place(Word::Request).is_some() && call.has(MpiArgument::Source);
        Self {
            is_simple: !call.is_special
                && posts_message
                && remembers.iter().all(|&word| place(word).is_none()),
            request: place(Word::Request),
            ends: if receives { [place(Word::Source), place(tag)] } else { [None; 2] },
            completes: specials.completing.contains(&number),
            communicator: place(Word::Communicator),
        }
    }
}

/// The sender and the tag of what was received.
fn received(word: i64) -> (i64, i64) {
    (word >> 32, i64::from(word as u32 as i32))
}

impl Decoder {
    /// Symbols are interned in an alphabet that others use, too.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let specials = Specials::find();
        Self {
            kinds: Kinds::new(shared),
            lanes: Vec::new(),
            communicators: HashMap::new(),
            names: HashMap::new(),
            name_counts: HashMap::new(),
            in_force: HashMap::new(),
            persistent: HashMap::new(),
            messages: HashMap::new(),
            layouts: mpi_calls().iter().map(words_of).collect(),
            shapes: (0..mpi_calls().len()).map(|call| Shape::of(call, &specials)).collect(),
            known: HashMap::default(),
            key: Vec::new(),
            specials,
            sites: None,
        }
    }

    /// Records have the places that they come from.
    pub(crate) fn with_sites(&mut self, sites: Sites) {
        self.sites = Some(sites);
    }

    /// Converts the records of a lane; words behind the last complete one are an error of the
    /// writer, and dropped.
    pub(crate) fn read(&mut self, lane: usize, mut words: &[i64]) -> Result<()> {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        while let Some(&head) = words.first() {
            let length = length_of(head);
            let Some((record, rest)) = words.split_at_checked(length).filter(|_| length >= 3) else {
                return Ok(());
            };
            words = rest;
            self.record(lane, head as u64 & 0xffff, record)?;
        }
        Ok(())
    }

    /// How many threads there are.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The events of a thread that wait for nothing.
    pub(crate) fn ready(&mut self, lane: usize) -> &mut Vec<Timed> {
        &mut self.lanes[lane].ready
    }

    fn record(&mut self, lane: usize, call: u64, record: &[i64]) -> Result<()> {
        let (site, payload) = match (&self.sites, &record[3..]) {
            (Some(_), [site, payload @ ..]) => (Some(*site as u64), payload),
            (_, payload) => (None, payload),
        };
        let time = || payload.first().map_or(0, |&time| time.max(0) as u64);
        match call {
            CONTINUED => self.lanes[lane].continued.extend_from_slice(payload),
            OFF_CPU => self.lanes[lane].between.off_cpu += time(),
            RECORDING => self.lanes[lane].between.recording = Some(time()),
            _ => return self.whole_record(lane, call, record, site, payload),
        }
        Ok(())
    }

    /// A record that no others follow.
    fn whole_record(
        &mut self,
        lane: usize,
        call: u64,
        record: &[i64],
        site: Option<u64>,
        payload: &[i64],
    ) -> Result<()> {
        let paths = (record[0] as u64 >> 32) as u32;
        // A communicator is no event.
        let between = match call {
            COMMUNICATOR => Between::default(),
            _ => std::mem::take(&mut self.lanes[lane].between),
        };
        let at = Moment { start: record[1], duration: record[2], paths, between };
        let joined;
        let payload = if self.lanes[lane].continued.is_empty() {
            payload
        } else {
            let mut all = std::mem::take(&mut self.lanes[lane].continued);
            all.extend_from_slice(payload);
            joined = all;
            &joined
        };
        match call {
            COMMUNICATOR => {
                self.communicator(payload);
                Ok(())
            }
            ENTER | LEAVE | MARK => self.region(lane, call, payload, at),
            _ => {
                let call = call as usize;
                if call >= self.layouts.len() {
                    return Ok(());
                }
                if !self.take_key(lane, call, site, payload) {
                    return self.build(lane, call, site, payload, at);
                }
                if let Some(&symbol) = self.known.get(&self.key[..]) {
                    self.post(lane, call, payload);
                    self.lanes[lane].ready.push(at.of(symbol));
                    return Ok(());
                }
                let key = self.key.clone().into_boxed_slice();
                let before = self.lanes[lane].ready.len();
                self.build(lane, call, site, payload, at)?;
                if let [one] = self.lanes[lane].ready[before..] {
                    self.known.insert(key, one.symbol);
                }
                Ok(())
            }
        }
    }

    /// Makes `key` the words that determine the event of a record. False if others do, too.
    fn take_key(&mut self, lane: usize, call: usize, site: Option<u64>, payload: &[i64]) -> bool {
        let Shape { is_simple, request, ends, completes, .. } = self.shapes[call];
        let Lane { held, pending, unfollowed, .. } = &self.lanes[lane];
        if !held.is_empty() || !unfollowed.is_empty() || pending.len() >= MOST_PENDING {
            return false;
        }
        self.key.clear();
        self.key.extend([call as i64, site.map_or(-1, |site| site as i64)]);
        if completes {
            // The oldest ones, none of which waits for its sender as nothing is held.
            let handles = payload.as_chunks::<2>().0;
            let are_oldest = handles.len() <= pending.len()
                && handles
                    .iter()
                    .zip(pending)
                    .all(|(&[handle, word], pending)| handle == pending.handle && word != CANCELLED);
            self.key.push(handles.len() as i64);
            return are_oldest;
        }
        let is_wildcard = ends.iter().flatten().any(|&place| payload.get(place) == Some(&ANY));
        match request {
            Some(place) if place < payload.len() => {
                self.key.extend_from_slice(&payload[..place]);
                self.key.extend_from_slice(&payload[place + 1..]);
            }
            _ => self.key.extend_from_slice(payload),
        }
        is_simple && !is_wildcard && self.knows_communicator(call, payload)
    }

    /// Whether peers can be stored; if not now, then maybe later, for the same words.
    fn knows_communicator(&self, call: usize, payload: &[i64]) -> bool {
        let place = self.shapes[call].communicator;
        place
            .and_then(|place| payload.get(place))
            .is_none_or(|&comm| comm < 0 || self.communicators.contains_key(&comm))
    }

    /// What a record that is known does to the requests.
    fn post(&mut self, lane: usize, call: usize, payload: &[i64]) {
        let Shape { request, completes, communicator, .. } = self.shapes[call];
        if completes {
            self.lanes[lane].pending.drain(..payload.len() / 2);
        } else if let Some(&handle) = request.and_then(|place| payload.get(place)) {
            let comm = communicator.and_then(|place| payload.get(place)).copied().unwrap_or(0);
            let comm = self.name(comm);
            self.lanes[lane].post(Posted { handle, comm, waits: false });
        }
    }

    fn build(
        &mut self,
        lane: usize,
        call: usize,
        site: Option<u64>,
        payload: &[i64],
        at: Moment,
    ) -> Result<()> {
        let (mut kind, posted) = self.event(lane, call, payload);
        if let (Some(sites), Some(site)) = (&mut self.sites, site) {
            let text = sites.name(site);
            kind.push(Slot::Site, self.kinds.texts.number(&text) as i64);
        }
        self.emit(lane, kind, at, &posted)
    }

    fn communicator(&mut self, payload: &[i64]) {
        let [number, own, size, _, members @ ..] = payload else { return };
        let rank = |&rank: &i64| u32::try_from(rank).unwrap_or(0);
        let made =
            Communicator { own: rank(own), size: rank(size), members: members.iter().map(rank).collect() };
        self.call_it(*number, made);
    }

    /// Gives a communicator its name: that of the same number with the same members, or a new one.
    fn call_it(&mut self, number: i64, made: Communicator) {
        let count = self.name_counts.entry(number).or_insert(0);
        let name = *self.names.entry((number, made.members.clone())).or_insert_with(|| {
            *count += 1;
            number | (*count - 1) << 32
        });
        self.communicators.entry(name).or_insert(made);
        let before = match name == number {
            true => self.in_force.remove(&number),
            false => self.in_force.insert(number, name),
        };
        if before.unwrap_or(number) != name {
            // Words have another meaning now.
            self.known.clear();
        }
    }

    /// The name of the communicator that has a number now.
    fn name(&self, number: i64) -> i64 {
        self.in_force.get(&number).copied().unwrap_or(number)
    }

    fn region(&mut self, lane: usize, call: u64, payload: &[i64], at: Moment) -> Result<()> {
        let [length, text @ ..] = payload else { return Ok(()) };
        let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = String::from_utf8_lossy(&bytes[..bytes.len().min(*length as usize)]).into_owned();
        let name = self.kinds.texts.number(&name);
        let regions = &mut self.lanes[lane].regions;
        let kind = match call {
            ENTER => {
                let around = regions.last().copied();
                regions.push(name);
                Kind::region(Role::Enter, name, around)
            }
            LEAVE => {
                if let Some(place) = regions.iter().rposition(|&open| open == name) {
                    regions.truncate(place);
                }
                Kind::region(Role::Leave, name, None)
            }
            _ => Kind::region(Role::Plain, name, None),
        };
        self.emit(lane, kind, Moment { duration: if call == MARK { 0 } else { -1 }, ..at }, &[])
    }

    /// A peer as it is stored.
    fn peer(&self, comm: i64, rank: i64) -> i64 {
        match (u32::try_from(rank), self.communicators.get(&comm)) {
            (Ok(rank), Some(at)) if rank < at.size => RelativePeers::stored(at.own, at.size, rank).into(),
            _ => rank,
        }
    }

    /// The event of a call, and the requests that it posts; those that wait for their sender.
    fn event(&mut self, lane: usize, call: usize, payload: &[i64]) -> (Kind, Vec<Posted>) {
        let special = self.specials;
        if special.completing.contains(&call) {
            return (self.completion(lane, call, payload), Vec::new());
        }
        if call == special.start || call == special.startall {
            return self.started(call, payload);
        }
        let mut kind = Kind::call(call);
        if call == special.request_free {
            return (self.freed(lane, call, payload), Vec::new());
        }
        if [special.abort, special.comm_free, special.comm_disconnect].contains(&call) {
            payload.iter().take(1).for_each(|&comm| kind.push(Slot::Comm, self.name(comm)));
        } else if !mpi_calls()[call].is_special {
            return self.plain(call, payload);
        }
        (kind, Vec::new())
    }

    /// A call whose record is what the table says.
    fn plain(&mut self, call: usize, payload: &[i64]) -> (Kind, Vec<Posted>) {
        let layout = &self.layouts[call];
        let word = |wanted: Word| {
            layout.iter().position(|&word| word == wanted).and_then(|place| payload.get(place)).copied()
        };
        let known = &mpi_calls()[call];
        let mut kind = Kind::call(call);
        let mut put =
            |slot: Slot, value: Option<i64>| value.into_iter().for_each(|value| kind.push(slot, value));
        let message = word(Word::ReceivedMessage).and_then(|handle| self.messages.remove(&handle));
        let comm =
            word(Word::Communicator).map(|comm| self.name(comm)).or(message.map(|message| message.comm));
        let is_persistent = known.has(MpiArgument::PersistentRequest);
        let mut ends = Ends {
            src: word(Word::Source).or(word(Word::From)).or(message.map(|message| message.src)),
            tag: if word(Word::Destination).is_some() { word(Word::ReceiveTag) } else { word(Word::Tag) }
                .or(message.map(|message| message.tag)),
            any: message.map_or(0, |message| message.any),
        };
        let is_there = word(Word::Flag) != Some(0);
        if let Some(status) = word(Word::Received).filter(|_| is_there) {
            ends.match_with(received(status), known.has(MpiArgument::ReceivedMessage));
        }
        let at = comm.unwrap_or(0);
        if !is_persistent {
            put(Slot::Dest, word(Word::Destination).map(|rank| self.peer(at, rank)));
            let src = ends.src.map(|rank| self.peer(at, rank));
            put(if known.has(MpiArgument::From) { Slot::From } else { Slot::Src }, src);
        }
        put(Slot::Target, word(Word::Target));
        put(Slot::Root, word(Word::Root));
        put(Slot::Op, word(Word::Operation));
        if word(Word::Destination).is_some() {
            put(Slot::Tag, word(Word::Tag));
            put(Slot::RecvTag, ends.tag);
        } else {
            put(Slot::Tag, ends.tag);
        }
        put(Slot::Bytes, word(Word::Bytes));
        put(Slot::RecvBytes, word(Word::ReceiveBytes));
        put(Slot::Comm, comm);
        put(Slot::Color, word(Word::Color));
        put(Slot::Key, word(Word::Key));
        if let Some(place) = layout.iter().position(|&word| word == Word::Grid) {
            let grid = payload.get(place..).unwrap_or_default();
            let sides = grid.first().map_or(0, |&sides| sides.max(0) as usize);
            grid.iter().skip(1).take(sides).for_each(|&side| put(Slot::Dims, Some(side)));
            grid.iter().skip(1 + sides).take(sides).for_each(|&side| put(Slot::Periods, Some(side)));
        }
        let made = word(Word::NewCommunicator).filter(|&made| made >= 0);
        put(Slot::NewComm, made.map(|made| self.name(made)));
        put(Slot::Part, word(Word::Part));
        put(Slot::Flag, word(Word::Flag));
        put(Slot::Any, Some(ends.any).filter(|&any| any != 0));
        if let Some(handle) = word(Word::Message).filter(|_| is_there) {
            let matched = Matched {
                src: ends.src.unwrap_or(ANY),
                tag: ends.tag.unwrap_or(ANY),
                comm: at,
                any: ends.any,
            };
            self.messages.insert(handle, matched);
        }
        let Some(handle) = word(Word::Request) else { return (kind, Vec::new()) };
        if is_persistent {
            let request = Persistent {
                call,
                dest: word(Word::Destination),
                src: word(Word::Source),
                root: word(Word::Root),
                op: word(Word::Operation),
                tag: word(Word::Tag).unwrap_or(0),
                bytes: word(Word::Bytes),
                comm: at,
            };
            self.persistent.insert(handle, request);
            return (kind, Vec::new());
        }
        let is_message = known.role != Role::Plain || known.has(MpiArgument::Destination);
        let posted = Posted { handle, comm: at, waits: ends.src == Some(ANY) || ends.tag == Some(ANY) };
        (kind, if is_message { vec![posted] } else { Vec::new() })
    }

    /// Persistent requests that are started.
    fn started(&mut self, call: usize, handles: &[i64]) -> (Kind, Vec<Posted>) {
        let mut kind = Kind::call(call);
        let started: Vec<(i64, Persistent)> =
            handles.iter().filter_map(|handle| Some((*handle, *self.persistent.get(handle)?))).collect();
        let both = started.iter().any(|(_, one)| one.dest.is_some())
            && started.iter().any(|(_, one)| one.src.is_some());
        let mut posted = Vec::new();
        for (handle, one) in &started {
            let is_message = one.dest.is_some() || one.src.is_some();
            if let Some(dest) = one.dest {
                kind.push(Slot::Dest, self.peer(one.comm, dest));
            }
            if let Some(src) = one.src {
                kind.push(Slot::Src, self.peer(one.comm, src));
            }
            let (tag, bytes) = if both && one.src.is_some() {
                (Slot::RecvTag, Slot::RecvBytes)
            } else {
                (Slot::Tag, Slot::Bytes)
            };
            if is_message {
                kind.push(tag, one.tag);
            } else {
                one.root.into_iter().for_each(|root| kind.push(Slot::Root, root));
                one.op.into_iter().for_each(|op| kind.push(Slot::Op, op));
                kind.push(Slot::Of, one.call as i64);
            }
            one.bytes.into_iter().for_each(|size| kind.push(bytes, size));
            kind.push(Slot::Comm, one.comm);
            // Of several that are started together it could not be said which one it was.
            let waits = started.len() == 1 && (one.src == Some(ANY) || one.src.is_some() && one.tag == ANY);
            posted.push(Posted { handle: *handle, comm: one.comm, waits });
        }
        (kind, posted)
    }
}

/// Sender and tag of what is received.
struct Ends {
    src: Option<i64>,
    tag: Option<i64>,
    any: i64,
}

impl Ends {
    /// What came instead of wildcards; all of it for a message that no probe is known for.
    fn match_with(&mut self, (src, tag): (i64, i64), is_matched: bool) {
        if is_matched && self.src.is_none() && src != NOBODY {
            (self.src, self.tag) = (Some(src), Some(tag));
        }
        if self.src == Some(ANY) {
            self.src = Some(src);
            self.any |= ANY_SOURCE;
        }
        if self.tag == Some(ANY) {
            self.tag = Some(tag);
            self.any |= ANY_TAG;
        }
    }
}
