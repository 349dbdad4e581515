//! Reads all locations in parallel, and pushes their events in an order that does not depend on
//! the number of threads.
//!
//! Locations are dealt to [`SLOTS`] slots: slot s has the locations s, s + SLOTS and so on,
//! one after the other. In each round every slot gives a batch of records' events. A thread
//! reads some of the slots and sends its batches through a bounded channel in exactly the order
//! in which the pushing thread asks for them; so there is no deadlock, and the events come
//! in the same order on one thread or many.
//!
//! Time: the library's, on all threads, and what the sink takes on one. Memory: the library's
//! buffers for a location of every slot, a few batches a thread, and what `calls` holds.

use crate::anchor;
use crate::calls::{Calls, Oddities, Wanted};
use crate::cut;
use crate::definitions::{Definitions, NamedLocation};
use crate::kinds::{EncodedEvent, Kind, KindTable};
use crate::library::Library;
use crate::reader::{Events, Reader};
use loopfold::{StreamId, Symbol};
use loopfold_sources::{Context, Error, Result};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How many locations are read at the same time, however many threads there are.
const SLOTS: usize = 64;
/// How many records of a location are read in one go.
const RECORDS: u64 = 1 << 14;
/// How many batches a thread may be ahead.
const LAG: usize = 4;

/// What a thread found in a location since the last time.
struct Batch {
    /// The kinds whose numbers follow those of the thread's earlier batches.
    new: Vec<Kind>,
    events: Vec<EncodedEvent>,
    end: Option<End>,
}

/// How a location ended.
struct End {
    odd: Oddities,
    /// How many records there were.
    records: u64,
    /// What was wrong.
    damage: Vec<String>,
}

/// Everything that threads share.
struct Task<'a> {
    library: &'static Library,
    anchor: &'a Path,
    definitions: &'a Definitions,
    locations: &'a [NamedLocation],
    wanted: &'a Wanted,
    threads: usize,
}

/// What was found in all locations together.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) mpi_calls: u64,
}

/// Reads the locations and pushes their events to the streams.
pub(crate) fn read(
    library: &'static Library,
    anchor: &Path,
    definitions: &Definitions,
    locations: &[NamedLocation],
    wanted: &Wanted,
    streams: &[StreamId],
    context: &mut Context<'_>,
) -> Result<Found> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(SLOTS).min(locations.len()).max(1);
    let task = Task { library, anchor, definitions, locations, wanted, threads };
    std::thread::scope(|scope| {
        let task = &task;
        let mut readers = Vec::new();
        for thread in 0..threads {
            let (batches, inbox) = sync_channel(LAG);
            scope.spawn(move || task.run(thread, &batches));
            readers.push(Inbox { batches: inbox, kinds: Vec::new() });
        }
        // Ends before the threads are joined; those that still send find the channel closed.
        push_all(task, readers, streams, context)
    })
}

/// The batches of a thread, on the side that takes them.
struct Inbox {
    batches: Receiver<Result<Batch, String>>,
    /// The thread's kinds by number, and their symbols once they were pushed: interned then,
    /// the alphabet is in the order of the events, also where these waited for others.
    kinds: Vec<(Kind, Option<Symbol>)>,
}

impl Inbox {
    fn symbol(&mut self, kind: u32, context: &mut Context<'_>) -> Result<Symbol> {
        let (kind, symbol) = self.kinds.get_mut(kind as usize).ok_or_else(stopped)?;
        match symbol {
            Some(symbol) => Ok(*symbol),
            None => Ok(*symbol.insert(kind.intern(context)?)),
        }
    }
}

fn stopped() -> Error {
    Error::option("a thread that reads the archive has stopped")
}

fn push_all(
    task: &Task<'_>,
    mut readers: Vec<Inbox>,
    streams: &[StreamId],
    context: &mut Context<'_>,
) -> Result<Found> {
    let mut found = Found::default();
    let mut slots: Vec<(usize, usize)> =
        (0..SLOTS.min(task.locations.len())).map(|slot| (slot, slot)).collect();
    while !slots.is_empty() {
        let mut outcome = Ok(());
        slots.retain_mut(|(slot, location)| {
            if outcome.is_err() {
                return true;
            }
            let reader = &mut readers[*slot % task.threads];
            match push_batch(reader, &task.locations[*location], streams[*location], context) {
                Ok(None) => {}
                Ok(Some(odd)) => {
                    found.mpi_calls += odd.mpi_calls;
                    *location += SLOTS;
                }
                Err(error) => outcome = Err(error),
            }
            *location < task.locations.len()
        });
        outcome?;
        context.check_interrupt()?;
    }
    Ok(found)
}

/// Pushes the next batch of a location; at its end, reports what was odd.
fn push_batch(
    reader: &mut Inbox,
    location: &NamedLocation,
    stream: StreamId,
    context: &mut Context<'_>,
) -> Result<Option<Oddities>> {
    let batch = reader.batches.recv().map_err(|_| stopped())?;
    let Batch { new, events, end } = batch.map_err(|reason| Error::damaged("archive", reason))?;
    reader.kinds.extend(new.into_iter().map(|kind| (kind, None)));
    for event in &events {
        let symbol = reader.symbol(event.kind, context)?;
        context.push(stream, symbol, event.timing())?;
    }
    let Some(End { odd, records, damage }) = end else { return Ok(None) };
    for damage in damage {
        context.damaged(&location.name, damage)?;
    }
    let other = records.saturating_sub(odd.records);
    for (key, count) in [
        ("open-calls", odd.open_calls),
        ("unmatched-returns", odd.unmatched_returns),
        ("abandoned-calls", odd.abandoned_calls),
        ("unfinished-requests", odd.unfinished_requests),
        ("unknown-records", odd.unknown_records),
        ("other-records", other),
    ] {
        if count > 0 {
            context.describe(stream, key, &count.to_string())?;
        }
    }
    Ok(Some(odd))
}

impl Task<'_> {
    /// The loop of a thread: reads its slots, round by round, until they are at their end or
    /// the channel is closed.
    fn run(&self, thread: usize, batches: &SyncSender<Result<Batch, String>>) {
        let outcome = self.read_slots(thread, batches);
        if let Err(reason) = outcome {
            // The channel may be closed.
            let _ = batches.send(Err(reason));
        }
    }

    fn read_slots(&self, thread: usize, batches: &SyncSender<Result<Batch, String>>) -> Result<(), String> {
        let own: Vec<usize> =
            (0..self.locations.len()).filter(|location| location % SLOTS % self.threads == thread).collect();
        let reader = Reader::open(self.library, self.anchor)?;
        let ids: Vec<u64> = own.iter().map(|&location| self.locations[location].location.id).collect();
        let mut wrong: Vec<Option<String>> = vec![None; self.locations.len()];
        for (&location, damage) in own.iter().zip(reader.prepare(&ids)?) {
            // Missing definitions were reported already.
            let id = self.locations[location].location.id;
            wrong[location] = damage.filter(|_| !anchor::lacks_definitions(self.anchor, id));
        }
        let kinds = Rc::new(RefCell::new(KindTable::default()));
        let mut slots: Vec<Slot<'_>> = own
            .iter()
            .filter(|&&location| location < SLOTS)
            .map(|&location| Slot { location, reading: None, records: 0, most: u64::MAX })
            .collect();
        while !slots.is_empty() {
            let mut nobody_listens = false;
            slots.retain_mut(|slot| {
                let batch = self.next_batch(slot, &reader, &kinds, &mut wrong);
                let is_end = batch.end.is_some();
                nobody_listens |= batches.send(Ok(batch)).is_err();
                if is_end {
                    slot.location += SLOTS;
                }
                slot.location < self.locations.len() && !nobody_listens
            });
        }
        Ok(())
    }

    fn next_batch<'t>(
        &'t self,
        slot: &mut Slot<'t>,
        reader: &Reader,
        kinds: &Rc<RefCell<KindTable>>,
        wrong: &mut [Option<String>],
    ) -> Batch {
        let NamedLocation { location, .. } = &self.locations[slot.location];
        let mut damage = Vec::new();
        if slot.reading.is_none() {
            slot.records = 0;
            let file = anchor::records_of(self.anchor, location.id);
            slot.most = cut::most_records(&file, reader.chunk_size()).unwrap_or(u64::MAX);
            damage.extend(wrong[slot.location].take().map(|reason| format!("its definitions: {reason}")));
            let calls = Calls::new(self.definitions, self.wanted, Rc::clone(kinds));
            match reader.events(location.id, calls) {
                Ok(events) => slot.reading = Some(events),
                Err(_) if location.records == 0 => {}
                Err(reason) => damage.push(reason),
            }
        }
        let Some(events) = &mut slot.reading else {
            let end = Some(End { odd: Oddities::default(), records: 0, damage });
            return Batch { new: Vec::new(), events: Vec::new(), end };
        };
        let asked = RECORDS.min(slot.most - slot.records);
        let read = if asked > 0 { events.read(asked) } else { Ok(0) };
        slot.records += *read.as_ref().unwrap_or(&0);
        let is_end = slot.records == slot.most || !matches!(read, Ok(RECORDS));
        let looked_at = events.visitor().looked_at();
        match read {
            Err(reason) => damage.push(format!("after {looked_at} records: {reason}")),
            Ok(_) if is_end && slot.records < location.records => damage.push(format!(
                "{} records are there, but there should be {}; its file was cut",
                slot.records, location.records
            )),
            Ok(_) => {}
        }
        let calls = events.visitor();
        let odd = is_end.then(|| calls.finish());
        if let Some(undefined) = odd.map(|odd| odd.undefined_regions).filter(|&undefined| undefined > 0) {
            damage.push(format!("{undefined} regions are not defined"));
        }
        let new_events = calls.take_events();
        let new_kinds = kinds.borrow_mut().take_new(self.definitions);
        if is_end {
            slot.reading = None;
        }
        let end = odd.map(|odd| End { odd, records: slot.records, damage });
        Batch { new: new_kinds, events: new_events, end }
    }
}

/// A location that is being read. Its events go before the reader does: they are dropped with
/// the slots, which are declared after it.
struct Slot<'t> {
    location: usize,
    reading: Option<Events<Calls<'t>>>,
    records: u64,
    /// More records cannot be there.
    most: u64,
}
