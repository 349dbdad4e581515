//! Converts records to events: an MPI call is one event with the fields of its records, any other
//! region is an enter and a leave.
//!
//! What a nonblocking call receives is known only when it completes, in another call. The
//! event of the first call waits for that, and later events queue behind it: up to
//! [`MOST_HELD`]. After that it is emitted without, and what was received is a part of the
//! call in which it completed. Nonblocking collectives wait likewise.
//!
//! A call that completes requests mostly completes the oldest ones, and `n` says how many; only
//! where it completes others, `done` has their indexes among the pending ones, so that loops
//! still fold.
//!
//! O(1) a record, O(pending requests) for one with `done`; memory is O(open regions + pending
//! requests + events held).

mod requests;

use crate::definitions::Definitions;
use crate::kinds::{
    Class, DONE_NONE, EncodedEvent, Key, KindCode, KindTable, STRAY, STRAY_COLLECTIVE, STRAY_IRECV,
    STRAY_ISEND, STRAY_RECEIVE, STRAY_SEND, UNKNOWN,
};
use crate::records::{Collective, Message, Record, Visitor};
use hashbrown::HashMap;
use loopfold_sources::Globs;
use requests::{Completed, PostedRequests};
use std::collections::VecDeque;
use std::rc::Rc;
use std::{cell::RefCell, mem};

/// How many events may wait for a receive to complete.
const MOST_HELD: usize = 1 << 16;

/// How many regions one leave can leave: a bound for a search that a damaged archive would
/// make for every record.
const DEEPEST_JUMP: usize = 4096;

const ROOT_NONE: u32 = u32::MAX;

/// Which events to emit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Only MPI calls.
    pub(crate) mpi_only: bool,
    /// Only regions whose names fit.
    pub(crate) regions: Globs,
    /// Whether MPI calls have the field `caller`.
    pub(crate) caller: bool,
    /// Whether collectives have the fields `sent` and `received`.
    pub(crate) sizes: bool,
}

/// What was odd about a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    pub(crate) open_calls: u64,
    pub(crate) unmatched_returns: u64,
    pub(crate) abandoned_calls: u64,
    pub(crate) unfinished_requests: u64,
    pub(crate) unknown_records: u64,
    pub(crate) undefined_regions: u64,
    pub(crate) mpi_calls: u64,
    /// The number of records.
    pub(crate) records: u64,
}

/// The events of one location.
pub(crate) struct Calls<'d> {
    definitions: &'d Definitions,
    wanted: &'d Wanted,
    /// Shared by all locations that a thread reads.
    kinds: Rc<RefCell<KindTable>>,
    treatments: HashMap<u32, Treatment, foldhash::fast::RandomState>,
    open: Vec<Frame>,
    /// The MPI calls that are open: the first `depth`; the others are there to be used again.
    calls: Vec<Call>,
    depth: usize,
    held: VecDeque<Held>,
    /// How many held events were emitted.
    released: u64,
    pending: HashMap<u64, Pending, foldhash::fast::RandomState>,
    posted: PostedRequests,
    /// The kind of the event in hand.
    code: KindCode,
    last: Option<u32>,
    events: Vec<EncodedEvent>,
    odd: Oddities,
}

/// What becomes of a region.
#[derive(Clone, Copy)]
struct Treatment {
    is_mpi: bool,
    /// Whether it completes requests, so that how many counts.
    completes: bool,
    is_wanted: bool,
}

struct Frame {
    region: u32,
    start: Option<i64>,
    treatment: Treatment,
}

/// What the records inside a call say.
#[derive(Default)]
struct Call {
    sends: Vec<Message>,
    /// In the order in which they were asked for; those that did not come yet are missing.
    receives: Vec<Option<Message>>,
    collective: Option<Collective>,
    new_comm: Option<u32>,
    completions: u64,
    cancelled: u64,
    /// Requests, each with its place in `receives`.
    requests: Vec<u64>,
    /// The requests of `sends`.
    sent_requests: Vec<u64>,
    /// The requests that are completed.
    completed: Vec<u64>,
    done: Completed,
}

impl Call {
    fn completes(&mut self, request: u64) {
        self.completions += 1;
        self.completed.push(request);
    }

    fn clear(&mut self) {
        self.sends.clear();
        self.receives.clear();
        self.requests.clear();
        self.sent_requests.clear();
        self.completed.clear();
        self.done = Completed::Oldest;
        (self.collective, self.new_comm, self.completions, self.cancelled) = (None, None, 0, 0);
    }
}

/// An event in the queue.
enum Held {
    Ready(EncodedEvent),
    Waiting(Box<Waiting>),
}

struct Waiting {
    what: What,
    call: Call,
    missing: usize,
    start: i64,
    duration: i64,
}

/// Which call.
#[derive(Clone, Copy)]
struct What {
    class: Class,
    region: u32,
    completes: bool,
    caller: Option<u32>,
}

/// Who asked for a request.
#[derive(Clone, Copy)]
enum Pending {
    /// The event with this number, counted from the first that was ever held.
    Event { held: u64, place: usize },
    /// A call that is not emitted.
    Nobody,
}

impl<'d> Calls<'d> {
    pub(crate) fn new(
        definitions: &'d Definitions,
        wanted: &'d Wanted,
        kinds: Rc<RefCell<KindTable>>,
    ) -> Self {
        Self {
            definitions,
            wanted,
            kinds,
            treatments: HashMap::default(),
            open: Vec::new(),
            calls: Vec::new(),
            depth: 0,
            held: VecDeque::new(),
            released: 0,
            pending: HashMap::default(),
            posted: PostedRequests::default(),
            code: KindCode::default(),
            last: None,
            events: Vec::new(),
            odd: Oddities::default(),
        }
    }

    /// The events since this was last called.
    pub(crate) fn take_events(&mut self) -> Vec<EncodedEvent> {
        let room = self.events.capacity();
        mem::replace(&mut self.events, Vec::with_capacity(room))
    }

    /// Handles the end of the records: emits the calls that are open with what is known of them.
    pub(crate) fn finish(&mut self) -> Oddities {
        self.odd.open_calls = self.open.iter().filter(|frame| frame.treatment.is_wanted).count() as u64;
        while let Some(frame) = self.open.pop() {
            if frame.treatment.is_mpi {
                self.end_call(&frame, None);
            }
        }
        self.odd.unfinished_requests = self.pending.len() as u64;
        while !self.held.is_empty() {
            self.release_first();
        }
        self.odd
    }

    /// How many records there were so far.
    pub(crate) fn looked_at(&self) -> u64 {
        self.odd.records
    }

    fn treatment(&mut self, region: u32) -> Treatment {
        if let Some(&known) = self.treatments.get(&region) {
            return known;
        }
        let (name, is_defined) = self.definitions.region_name(region);
        self.odd.undefined_regions += u64::from(!is_defined);
        let is_mpi = self.definitions.is_mpi(region);
        let treatment = Treatment {
            is_mpi,
            completes: name.starts_with(b"MPI_Wait") || name.starts_with(b"MPI_Test"),
            is_wanted: (is_mpi || !self.wanted.mpi_only) && self.wanted.regions.fit(&name),
        };
        self.treatments.insert(region, treatment);
        treatment
    }

    fn enter(&mut self, region: u32, time: Option<i64>) {
        let treatment = self.treatment(region);
        if treatment.is_mpi {
            if self.depth == self.calls.len() {
                self.calls.push(Call::default());
            }
            self.calls[self.depth].clear();
            self.depth += 1;
        } else if treatment.is_wanted {
            self.code.begin(Class::Enter, region);
            if let Some(caller) = self.innermost(|treatment| treatment.is_wanted) {
                self.code.field(Key::Caller, caller.into());
            }
            self.emit(time, None);
        }
        self.open.push(Frame { region, start: time, treatment });
    }

    /// The innermost open region that is not an MPI call and is of some kind.
    fn innermost(&self, is_such: impl Fn(Treatment) -> bool) -> Option<u32> {
        let mut frames = self.open.iter().rev().take(DEEPEST_JUMP);
        let found = frames.find(|frame| !frame.treatment.is_mpi && is_such(frame.treatment));
        found.map(|frame| frame.region)
    }

    fn leave(&mut self, region: u32, time: Option<i64>) {
        let inner = self.open.iter().rev().take(DEEPEST_JUMP).position(|frame| frame.region == region);
        let Some(inner) = inner else {
            self.odd.unmatched_returns += 1;
            let treatment = self.treatment(region);
            if !treatment.is_mpi && treatment.is_wanted {
                self.emit_leave(region, time);
            }
            return;
        };
        self.odd.abandoned_calls += inner as u64;
        for _ in 0..=inner {
            let Some(frame) = self.open.pop() else { break };
            if frame.treatment.is_mpi {
                self.end_call(&frame, time);
            } else if frame.treatment.is_wanted {
                self.emit_leave(frame.region, time);
            }
        }
    }

    fn emit_leave(&mut self, region: u32, time: Option<i64>) {
        self.code.begin(Class::Leave, region);
        self.emit(time, None);
    }

    /// Emits the call of a frame, which was just taken from the open ones.
    fn end_call(&mut self, frame: &Frame, end: Option<i64>) {
        self.depth = self.depth.saturating_sub(1);
        let mut call = mem::take(&mut self.calls[self.depth]);
        let caller = if self.wanted.caller { self.innermost(|_| true) } else { None };
        let completes = frame.treatment.completes;
        if completes && frame.treatment.is_wanted {
            call.done = self.posted.complete(&call.completed);
        }
        let what = What { class: Class::Call, region: frame.region, completes, caller };
        let duration = frame.start.zip(end).and_then(|(start, end)| end.checked_sub(start));
        let duration = duration.filter(|&duration| duration >= 0);
        self.calls[self.depth] = self.emit_call(what, call, frame.start, duration, frame.treatment.is_wanted);
    }

    /// Emits a call, now or when it is complete, and returns a call to use again.
    fn emit_call(
        &mut self,
        what: What,
        call: Call,
        start: Option<i64>,
        duration: Option<i64>,
        is_wanted: bool,
    ) -> Call {
        if is_wanted {
            self.posted.post(&call.sent_requests);
            self.posted.post(&call.requests);
        } else {
            for &request in &call.requests {
                self.pending.insert(request, Pending::Nobody);
            }
            return call;
        }
        self.odd.mpi_calls += 1;
        if call.requests.is_empty() {
            self.encode(what, &call);
            self.emit(start, duration);
            return call;
        }
        let held = self.released + self.held.len() as u64;
        for (place, &request) in call.requests.iter().enumerate() {
            self.pending.insert(request, Pending::Event { held, place });
        }
        let (start, duration) = (start.unwrap_or(UNKNOWN), duration.unwrap_or(UNKNOWN));
        let missing = call.requests.len();
        self.hold(Held::Waiting(Box::new(Waiting { what, call, missing, start, duration })));
        Call::default()
    }

    fn encode(&mut self, what: What, call: &Call) {
        let code = &mut self.code;
        code.begin(what.class, what.region);
        let sends = call.sends.iter();
        let receives = call.receives.iter().flatten();
        code.fields(Key::Dest, sends.clone().map(|message| message.peer.into()));
        code.fields(Key::Tag, sends.clone().map(|message| message.tag.into()));
        code.fields(Key::Bytes, sends.clone().map(|message| message.bytes));
        let (tag, bytes) = match call.sends.as_slice() {
            [] => (Key::Tag, Key::Bytes),
            _ => (Key::ReceivedTag, Key::ReceivedBytes),
        };
        code.fields(Key::Src, receives.clone().map(|message| message.peer.into()));
        code.fields(tag, receives.clone().map(|message| message.tag.into()));
        code.fields(bytes, receives.clone().map(|message| message.bytes));
        let collective = call.collective.iter();
        if let Some(collective) = call.collective {
            if collective.root != ROOT_NONE {
                code.field(Key::Root, collective.root.into());
            }
            let ranks = self.definitions.ranks_of(collective.comm);
            if let Some(bytes) = buffer_of(&collective, ranks) {
                code.field(Key::Bytes, bytes);
            }
        }
        let comms = sends.clone().chain(receives.clone()).map(|message| message.comm);
        let comms = comms.chain(collective.map(|collective| collective.comm));
        code.fields(Key::Comm, comms.map(u64::from));
        if let Some(comm) = call.new_comm {
            code.field(Key::NewComm, comm.into());
        }
        let messages = sends.len().max(receives.count()) as u64;
        if what.completes {
            code.field(Key::N, call.completions);
            match &call.done {
                Completed::Oldest => {}
                Completed::Others(none) if none.is_empty() => code.field(Key::Done, DONE_NONE),
                Completed::Others(indexes) => indexes.iter().for_each(|&index| code.field(Key::Done, index)),
            }
        } else if messages > 1 {
            code.field(Key::N, messages);
        }
        if call.cancelled > 0 {
            code.field(Key::Cancelled, call.cancelled);
        }
        if let Some(collective) = call.collective.filter(|_| self.wanted.sizes) {
            code.field(Key::Sent, collective.sent);
            code.field(Key::Received, collective.received);
        }
        if let Some(caller) = what.caller {
            code.field(Key::Caller, caller.into());
        }
    }

    /// Emits an event of the kind that was encoded, behind what waits.
    fn emit(&mut self, start: Option<i64>, duration: Option<i64>) {
        let kind = self.kinds.borrow_mut().number(&self.code, self.last);
        self.last = Some(kind);
        let (start, duration) = (start.unwrap_or(UNKNOWN), duration.unwrap_or(UNKNOWN));
        let event = EncodedEvent { kind, start, duration };
        if self.held.is_empty() {
            self.events.push(event);
        } else {
            self.hold(Held::Ready(event));
        }
    }

    fn hold(&mut self, held: Held) {
        self.held.push_back(held);
        if self.held.len() > MOST_HELD {
            self.release_first();
            self.release_ready();
        }
    }

    /// Emits events up to the first that still waits.
    fn release_ready(&mut self) {
        while let Some(first) = self.held.front() {
            if matches!(first, Held::Waiting(waiting) if waiting.missing > 0) {
                return;
            }
            self.release_first();
        }
    }

    /// Emits the first event of the queue, with what is known of it.
    fn release_first(&mut self) {
        let Some(first) = self.held.pop_front() else { return };
        self.released += 1;
        match first {
            Held::Ready(event) => self.events.push(event),
            Held::Waiting(waiting) => {
                let Waiting { what, call, missing, start, duration } = *waiting;
                if missing > 0 {
                    for request in &call.requests {
                        self.forget(*request, self.released - 1);
                    }
                    self.posted.forget(&call.requests);
                }
                self.encode(what, &call);
                let kind = self.kinds.borrow_mut().number(&self.code, None);
                self.events.push(EncodedEvent { kind, start, duration });
            }
        }
    }

    /// Forgets this request if this event posted it.
    fn forget(&mut self, request: u64, event: u64) {
        if matches!(self.pending.get(&request), Some(Pending::Event { held, .. }) if *held == event) {
            self.pending.remove(&request);
        }
    }

    /// Gives what completes a request to the event that waits for it. Returns whether that was
    /// still to be emitted.
    fn complete(&mut self, request: u64, take: impl FnOnce(&mut Call, usize)) -> bool {
        match self.pending.remove(&request) {
            None => false,
            Some(Pending::Nobody) => true,
            Some(Pending::Event { held, place }) => {
                let index = held.checked_sub(self.released).and_then(|index| usize::try_from(index).ok());
                if let Some(Held::Waiting(waiting)) = index.and_then(|index| self.held.get_mut(index)) {
                    take(&mut waiting.call, place);
                    waiting.missing = waiting.missing.saturating_sub(1);
                    if waiting.missing == 0 {
                        self.release_ready();
                    }
                }
                true
            }
        }
    }

    /// Adds a record to the innermost open MPI call; without one, the record is an event of its own
    /// if it has a name.
    fn in_call(&mut self, stray: Option<u32>, time: Option<i64>, take: impl FnOnce(&mut Call)) {
        if let Some(depth) = self.depth.checked_sub(1) {
            return take(&mut self.calls[depth]);
        }
        let Some(name) = stray else { return };
        let mut call = Call::default();
        take(&mut call);
        let caller = if self.wanted.caller { self.innermost(|_| true) } else { None };
        let what = What { class: Class::Stray, region: name, completes: false, caller };
        let is_wanted = self.wanted.regions.fit(STRAY.get(name as usize).copied().unwrap_or("").as_bytes());
        self.emit_call(what, call, time, None, is_wanted);
    }
}

impl Visitor for Calls<'_> {
    fn record(&mut self, time: u64, record: Record) {
        self.odd.records += 1;
        let at = self.definitions.nanoseconds(time);
        match record {
            Record::Enter(region) => self.enter(region, at),
            Record::Leave(region) => self.leave(region, at),
            Record::Send(message) => self.in_call(Some(STRAY_SEND), at, |call| call.sends.push(message)),
            Record::Isend(message, request) => self.in_call(Some(STRAY_ISEND), at, |call| {
                call.sends.push(message);
                call.sent_requests.push(request);
            }),
            Record::Receive(message) => {
                self.in_call(Some(STRAY_RECEIVE), at, |call| call.receives.push(Some(message)));
            }
            Record::Request(request) => self.in_call(Some(STRAY_IRECV), at, |call| {
                // Places of requests are those of what they receive.
                call.receives.resize(call.requests.len() + 1, None);
                call.requests.push(request);
            }),
            Record::Irecv(message, request) => {
                let is_known = self.complete(request, |call, place| {
                    if let Some(slot) = call.receives.get_mut(place) {
                        *slot = Some(message);
                    }
                });
                self.in_call((!is_known).then_some(STRAY_IRECV), at, |call| {
                    call.completes(request);
                    if !is_known {
                        call.receives.push(Some(message));
                    }
                });
            }
            Record::IsendComplete(request) => self.in_call(None, at, |call| call.completes(request)),
            Record::Cancelled(request) => {
                self.complete(request, |call, _| call.cancelled += 1);
                self.in_call(None, at, |call| call.completes(request));
            }
            Record::Collective(collective) => {
                let stray = u32::from(collective.operation).min(STRAY_COLLECTIVE);
                self.in_call(Some(stray), at, |call| call.collective = Some(collective));
            }
            Record::CollectiveComplete(collective, request) => {
                let is_known = self.complete(request, |call, _| call.collective = Some(collective));
                let stray = u32::from(collective.operation).min(STRAY_COLLECTIVE);
                self.in_call((!is_known).then_some(stray), at, |call| {
                    call.completes(request);
                    if !is_known {
                        call.collective = Some(collective);
                    }
                });
            }
            Record::NewCommunicator(comm) => self.in_call(None, at, |call| call.new_comm = Some(comm)),
            Record::Test | Record::Nothing => {}
            Record::Unknown => self.odd.unknown_records += 1,
        }
    }
}

/// The size of one process' buffer, as a program says it in the call: records have what goes
/// to and comes from all processes together. Returns `None` if there is no data.
fn buffer_of(collective: &Collective, ranks: Option<u64>) -> Option<u64> {
    let Collective { sent, received, .. } = *collective;
    match collective.operation {
        // Barrier; handles that are made or destroyed together.
        0 | 17..=22 => None,
        // Broadcast, scatter: what this process gets.
        1 | 4 | 5 => Some(received),
        // Allgather, alltoall, allreduce: the same to all.
        6 | 7 | 8 | 11 => {
            Some(ranks.filter(|&ranks| sent.is_multiple_of(ranks)).map_or(sent, |ranks| sent / ranks))
        }
        _ => Some(sent),
    }
}

#[cfg(test)]
mod tests;
