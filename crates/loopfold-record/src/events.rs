//! From records to events: what a call completes, which message a wildcard matched, and peers
//! relative to the own rank.
//!
//! What a nonblocking receive with a wildcard matches is known only when it completes, in another
//! call. Its event waits for that, and later events of its thread queue behind it: up to
//! [`MOST_HELD`]; after that it is emitted with the wildcard. A call that completes requests mostly
//! completes the oldest ones, and `n` says how many; only where it completes others, `done` has
//! their indexes among the pending ones of the thread. So events are those of the source `otf2`.
//!
//! A request is known by its handle while it is pending. MPI may give the same handle to several
//! that complete at once; the oldest of them is completed first.
//!
//! Most records are known: their words alone determine the event, and one look-up finds its symbol.
//!
//! O(1) a record; O(pending requests) for one that does not complete the oldest.

use crate::kind::Kinds;
use crate::kind::{ANY_SOURCE, ANY_TAG, DONE_NONE, Kind, Slot};
use crate::layout::{ANY, COMMUNICATOR, CONTINUED, ENTER, LEAVE, MARK, NOBODY, Word, words_of};
use crate::sites::Sites;
use hashbrown::HashMap;
use loopfold::mpi::RelativePeers;
use loopfold::trace::Role;
use loopfold::{Result, Symbol};
use loopfold_sources::{MpiArgument, mpi_calls};
use std::collections::VecDeque;

/// How many events of a thread may wait for a receive to complete.
const MOST_HELD: usize = 1 << 16;

/// More pending requests than this are not followed.
const MOST_PENDING: usize = 1 << 16;

/// A handle that no request has.
const FREED: i64 = i64::MIN;

/// An event with its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) symbol: Symbol,
    /// In nanoseconds of the clock of the process.
    pub(crate) start: i64,
    /// Negative if it is not known.
    pub(crate) duration: i64,
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
    /// By number; of a number that is used again the first.
    pub(crate) communicators: HashMap<i64, Communicator>,
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

/// The threads of a process.
#[derive(Debug, Default)]
struct Lane {
    pending: VecDeque<Pending>,
    is_lost: bool,
    held: VecDeque<Held>,
    /// How many held events were emitted.
    released: u64,
    regions: Vec<usize>,
    continued: Vec<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    handle: i64,
    /// The event that waits for it, counted from the first that was held.
    waiting: Option<u64>,
    comm: i64,
}

#[derive(Debug)]
struct Held {
    kind: Kind,
    start: i64,
    duration: i64,
    is_waiting: bool,
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
        }
    }
}

/// The sender and the tag of what was received.
fn received(word: i64) -> (i64, i64) {
    (word >> 32, i64::from(word as u32 as i32))
}

impl Decoder {
    pub(crate) fn new(sites: Option<Sites>) -> Self {
        let specials = Specials::find();
        Self {
            kinds: Kinds::default(),
            lanes: Vec::new(),
            communicators: HashMap::new(),
            persistent: HashMap::new(),
            messages: HashMap::new(),
            layouts: mpi_calls().iter().map(words_of).collect(),
            shapes: (0..mpi_calls().len()).map(|call| Shape::of(call, &specials)).collect(),
            known: HashMap::default(),
            key: Vec::new(),
            specials,
            sites,
        }
    }

    /// Converts the records of a lane; words behind the last complete one are an error of the
    /// writer, and dropped.
    pub(crate) fn read(&mut self, lane: usize, mut words: &[i64], out: &mut Vec<Timed>) -> Result<()> {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        while let Some(&head) = words.first() {
            let length = (head as u64 >> 16) as usize & 0xffff;
            let Some((record, rest)) = words.split_at_checked(length).filter(|_| length >= 3) else {
                return Ok(());
            };
            words = rest;
            self.record(lane, head as u64 & 0xffff, record, out)?;
        }
        Ok(())
    }

    fn record(&mut self, lane: usize, call: u64, record: &[i64], out: &mut Vec<Timed>) -> Result<()> {
        let (start, duration) = (record[1], record[2]);
        let (site, payload) = match (&self.sites, &record[3..]) {
            (Some(_), [site, payload @ ..]) => (Some(*site as u64), payload),
            (_, payload) => (None, payload),
        };
        if call == CONTINUED {
            self.lanes[lane].continued.extend_from_slice(payload);
            return Ok(());
        }
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
            ENTER | LEAVE | MARK => self.region(lane, call, payload, start, out),
            _ => {
                let call = call as usize;
                if call >= self.layouts.len() {
                    return Ok(());
                }
                if self.take_key(lane, call, site, payload) {
                    if let Some(&symbol) = self.known.get(&self.key[..]) {
                        self.post(lane, call, payload);
                        out.push(Timed { symbol, start, duration });
                        return Ok(());
                    }
                    let key = self.key.clone().into_boxed_slice();
                    let before = out.len();
                    self.build(lane, call, site, payload, (start, duration), out)?;
                    if let [one] = out[before..] {
                        self.known.insert(key, one.symbol);
                    }
                    return Ok(());
                }
                self.build(lane, call, site, payload, (start, duration), out)
            }
        }
    }

    /// Makes `key` the words that determine the event of a record. False if others do, too.
    fn take_key(&mut self, lane: usize, call: usize, site: Option<u64>, payload: &[i64]) -> bool {
        let Shape { is_simple, request, ends, completes } = self.shapes[call];
        let Lane { held, pending, is_lost, .. } = &self.lanes[lane];
        if !held.is_empty() || *is_lost || pending.len() >= MOST_PENDING {
            return false;
        }
        self.key.clear();
        self.key.extend([call as i64, site.map_or(-1, |site| site as i64)]);
        if completes {
            // The oldest ones, none of which waits for its sender as nothing is held.
            let handles = payload.as_chunks::<2>().0;
            let are_oldest = handles.len() <= pending.len()
                && handles.iter().zip(pending).all(|(&[handle, _], pending)| handle == pending.handle);
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
        is_simple && !is_wildcard
    }

    /// What a record that is known does to the requests.
    fn post(&mut self, lane: usize, call: usize, payload: &[i64]) {
        let Shape { request, completes, .. } = self.shapes[call];
        let comm = self.layouts[call].iter().position(|&word| word == Word::Communicator);
        let pending = &mut self.lanes[lane].pending;
        if completes {
            pending.drain(..payload.len() / 2);
        } else if let Some(&handle) = request.and_then(|place| payload.get(place)) {
            let comm = comm.and_then(|place| payload.get(place)).copied().unwrap_or(0);
            pending.push_back(Pending { handle, waiting: None, comm });
        }
    }

    fn build(
        &mut self,
        lane: usize,
        call: usize,
        site: Option<u64>,
        payload: &[i64],
        (start, duration): (i64, i64),
        out: &mut Vec<Timed>,
    ) -> Result<()> {
        let (mut kind, posted) = self.event(lane, call, payload);
        if let (Some(sites), Some(site)) = (&mut self.sites, site) {
            let text = sites.name(site);
            kind.push(Slot::Site, self.kinds.texts.number(&text) as i64);
        }
        self.emit(lane, kind, start, duration, &posted, out)
    }

    fn communicator(&mut self, payload: &[i64]) {
        let [number, own, size, _, members @ ..] = payload else { return };
        let rank = |&rank: &i64| u32::try_from(rank).unwrap_or(0);
        let made =
            Communicator { own: rank(own), size: rank(size), members: members.iter().map(rank).collect() };
        self.communicators.entry(*number).or_insert(made);
    }

    fn region(
        &mut self,
        lane: usize,
        call: u64,
        payload: &[i64],
        start: i64,
        out: &mut Vec<Timed>,
    ) -> Result<()> {
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
        self.emit(lane, kind, start, if call == MARK { 0 } else { -1 }, &[], out)
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
            self.freed(payload);
        } else if [special.abort, special.comm_free, special.comm_disconnect].contains(&call) {
            payload.iter().take(1).for_each(|&comm| kind.push(Slot::Comm, comm));
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
        let comm = word(Word::Communicator).or(message.map(|message| message.comm));
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
        put(Slot::NewComm, word(Word::NewCommunicator).filter(|&made| made >= 0));
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

    /// Waits and tests: which of the pending requests they complete.
    fn completion(&mut self, lane: usize, call: usize, payload: &[i64]) -> Kind {
        let mut kind = Kind::call(call);
        let mut indexes = Vec::new();
        let mut elsewhere = false;
        let completed: Vec<(i64, i64)> =
            payload.as_chunks::<2>().0.iter().map(|&[handle, word]| (handle, word)).collect();
        // The oldest ones complete most often, and in order.
        let in_order = completed.len() <= self.lanes[lane].pending.len()
            && completed
                .iter()
                .zip(&self.lanes[lane].pending)
                .all(|(&(handle, _), pending)| handle == pending.handle);
        if in_order {
            for (_, word) in &completed {
                if let Some(pending) = self.lanes[lane].pending.pop_front() {
                    self.resolve(lane, pending, *word);
                }
            }
            kind.push(Slot::N, completed.len() as i64);
            return kind;
        }
        let mut taken = vec![false; self.lanes[lane].pending.len()];
        for &(handle, word) in &completed {
            let own = self.lanes[lane]
                .pending
                .iter()
                .zip(&taken)
                .position(|(one, taken)| !taken && one.handle == handle);
            if let Some(index) = own {
                taken[index] = true;
                indexes.push(index as i64);
                let pending = self.lanes[lane].pending[index];
                self.resolve(lane, pending, word);
            } else {
                elsewhere |= self.complete_elsewhere(lane, handle, word);
            }
        }
        let mut place = 0;
        self.lanes[lane].pending.retain(|_| {
            place += 1;
            !taken[place - 1]
        });
        indexes.sort_unstable();
        let are_oldest = indexes.iter().enumerate().all(|(place, &index)| index == place as i64);
        kind.push(Slot::N, indexes.len() as i64);
        if indexes.is_empty() && elsewhere {
            kind.push(Slot::Done, DONE_NONE);
        } else if !are_oldest {
            indexes.iter().for_each(|&index| kind.push(Slot::Done, index));
        }
        kind
    }

    /// A request that another thread posted.
    fn complete_elsewhere(&mut self, lane: usize, handle: i64, word: i64) -> bool {
        for other in (0..self.lanes.len()).filter(|&other| other != lane) {
            let found = self.lanes[other].pending.iter().position(|one| one.handle == handle);
            if let Some(pending) = found.and_then(|index| self.lanes[other].pending.remove(index)) {
                self.resolve(other, pending, word);
                return true;
            }
        }
        false
    }

    /// A receive with a wildcard is complete: now its sender is known.
    fn resolve(&mut self, lane: usize, pending: Pending, word: i64) {
        let Some(event) = pending.waiting else { return };
        let (src, tag) = received(word);
        let src = self.peer(pending.comm, src);
        let Lane { held, released, .. } = &mut self.lanes[lane];
        let Some(held) = event.checked_sub(*released).and_then(|place| held.get_mut(place as usize)) else {
            return;
        };
        let mut any = 0;
        let tag_slot = if held.kind.get(Slot::Dest).is_some() { Slot::RecvTag } else { Slot::Tag };
        if held.kind.get(Slot::Src) == Some(ANY) {
            held.kind.set(Slot::Src, src);
            any |= ANY_SOURCE;
        }
        if held.kind.get(tag_slot) == Some(ANY) {
            held.kind.set(tag_slot, tag);
            any |= ANY_TAG;
        }
        if any != 0 {
            held.kind.push(Slot::Any, any);
        }
        held.is_waiting = false;
    }

    fn freed(&mut self, payload: &[i64]) {
        let Some(handle) = payload.first() else { return };
        self.persistent.remove(handle);
        let pending = self.lanes.iter_mut().flat_map(|lane| &mut lane.pending);
        // It stays among the pending ones, since no call completes it.
        if let Some(one) = pending.into_iter().find(|one| one.handle == *handle) {
            one.handle = FREED;
        }
    }

    fn emit(
        &mut self,
        lane: usize,
        kind: Kind,
        start: i64,
        duration: i64,
        posted: &[Posted],
        out: &mut Vec<Timed>,
    ) -> Result<()> {
        let Lane { pending, is_lost, held, released, .. } = &mut self.lanes[lane];
        let is_waiting = posted.iter().any(|one| one.waits);
        let number = *released + held.len() as u64;
        for one in posted.iter().filter(|_| !*is_lost) {
            pending.push_back(Pending {
                handle: one.handle,
                waiting: one.waits.then_some(number),
                comm: one.comm,
            });
        }
        if pending.len() > MOST_PENDING {
            *is_lost = true;
            pending.clear();
        }
        if held.is_empty() && !is_waiting {
            out.push(Timed { symbol: self.kinds.symbol(&kind)?, start, duration });
            return Ok(());
        }
        held.push_back(Held { kind, start, duration, is_waiting });
        let is_full = held.len() > MOST_HELD;
        self.release(lane, is_full, out)
    }

    /// Emits the events that no longer wait; the first in any case if there is no more room.
    fn release(&mut self, lane: usize, is_full: bool, out: &mut Vec<Timed>) -> Result<()> {
        let Lane { held, released, .. } = &mut self.lanes[lane];
        let mut must = is_full;
        while held.front().is_some_and(|first| must || !first.is_waiting) {
            must = false;
            if let Some(Held { kind, start, duration, .. }) = held.pop_front() {
                *released += 1;
                out.push(Timed { symbol: self.kinds.symbol(&kind)?, start, duration });
            }
        }
        Ok(())
    }

    /// Emits all events that still wait, at the end.
    pub(crate) fn finish(&mut self, lane: usize, out: &mut Vec<Timed>) -> Result<()> {
        while self.lanes.get(lane).is_some_and(|lane| !lane.held.is_empty()) {
            self.release(lane, true, out)?;
        }
        Ok(())
    }
}

/// A request that a call posts.
#[derive(Clone, Copy, Debug)]
struct Posted {
    handle: i64,
    comm: i64,
    /// Whether the sender or the tag is a wildcard.
    waits: bool,
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
