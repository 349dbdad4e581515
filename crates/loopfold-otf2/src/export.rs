//! Writes a fold of MPI calls as an OTF2 archive, for Vampir, Scalasca and other tools.
//!
//! A call becomes the enter and the leave of its region, with the records of its messages and of
//! its collective operation between them; what completes a request is in the call that does.
//! Requests get numbers in the order in which they are posted. Nonblocking collective operations
//! are regions only.
//!
//! O(events): the stream is unfolded.

use crate::kinds::STRAY;
use crate::writer::{Envelope, Record, Region, Writer};
use loopfold::mpi::{Calls, Communicators, Message, Peer, rank_of};
use loopfold::trace::{Meaning, Name, Role, Value};
use loopfold::{Fold, Symbol};
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// Writes a fold with times to a folder that does not exist yet.
pub fn write(fold: &Fold, folder: &Path) -> Result<(), String> {
    let mut export = Export::new(fold);
    let writer = Writer::create(folder)?;
    let (mut locations, mut end) = (Vec::new(), 0);
    for (index, stream) in fold.streams().iter().enumerate() {
        let rank =
            rank_of(stream.name().raw()).ok_or_else(|| format!("{} is no rank", stream.name().terminal()))?;
        let count = writer.location(index as u64, |put| export.stream(index, &mut end, put))?;
        locations.push((stream.name().raw().to_string(), rank, count));
    }
    let regions: Vec<Region<'_>> = export.regions.iter().map(Named::region).collect();
    writer.finish(end, &locations, &regions, &export.comms)
}

struct Named {
    name: String,
    role: Role,
    is_mpi: bool,
}

impl Named {
    fn region(&self) -> Region<'_> {
        let operation = self.name.trim_start_matches("MPI_").to_ascii_lowercase();
        let role = match (self.role, operation.trim_start_matches('i')) {
            _ if !self.is_mpi => 1,
            (_, "barrier") => 15,
            (Role::Collective, "bcast" | "scatter" | "scatterv") => 23,
            (Role::Collective, "reduce" | "gather" | "gatherv") => 24,
            (Role::Collective, "scan" | "exscan") => 26,
            (Role::Collective, _) => 25,
            (Role::Send | Role::Receive, _) => 28,
            _ => 1,
        };
        Region { name: &self.name, role, is_mpi: self.is_mpi }
    }
}

struct Export<'a> {
    fold: &'a Fold,
    calls: Calls,
    communicators: Communicators,
    regions: Vec<Named>,
    region_of: HashMap<String, u32>,
    comms: Vec<(String, Vec<u32>)>,
    comm_of: HashMap<(String, Vec<u32>), u32>,
}

/// A request that is pending.
#[derive(Clone, Copy)]
struct Pending {
    number: u64,
    received: Option<Envelope>,
}

type Put<'a> = dyn FnMut(u64, Record) -> Result<(), String> + 'a;

impl<'a> Export<'a> {
    fn new(fold: &'a Fold) -> Self {
        Self {
            fold,
            calls: Calls::of(fold.alphabet()),
            communicators: Communicators::of(fold),
            regions: Vec::new(),
            region_of: HashMap::new(),
            comms: Vec::new(),
            comm_of: HashMap::new(),
        }
    }

    fn region(&mut self, meaning: &Meaning<'_>) -> u32 {
        let name = match meaning.name {
            Name::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Name::Integer(number) => number.to_string(),
        };
        let next = self.regions.len() as u32;
        *self.region_of.entry(name.clone()).or_insert_with(|| {
            let is_mpi = name.starts_with("MPI_");
            self.regions.push(Named { name, role: meaning.role, is_mpi });
            next
        })
    }

    /// The number of a communicator of a stream; those of one name with other members are others.
    fn comm(&mut self, stream: usize, name: &str) -> u32 {
        let world: Vec<u32> = (0..self.communicators.size()).collect();
        let members = self.communicators.members(stream, name).map_or(world, <[u32]>::to_vec);
        let next = self.comms.len() as u32;
        *self.comm_of.entry((name.to_string(), members.clone())).or_insert_with(|| {
            let shown = if name == "0" { "MPI_COMM_WORLD".to_string() } else { format!("comm {name}") };
            self.comms.push((shown, members));
            next
        })
    }

    /// Emits the records of a stream.
    fn stream(&mut self, index: usize, end: &mut u64, put: &mut Put<'_>) -> Result<(), String> {
        let fold = self.fold;
        let stream = &fold.streams()[index];
        let (Some(starts), Some(durations)) = (&stream.times().starts, &stream.times().durations) else {
            return if fold.length(stream.root()) == 0 {
                Ok(())
            } else {
                Err("OTF2 needs times".to_string())
            };
        };
        let (mut starts, mut durations) = (starts.reader(), durations.reader());
        let (mut pending, mut posted): (VecDeque<Pending>, u64) = (VecDeque::new(), 0);
        let mut last = 0;
        for (place, symbol) in fold.unfold(stream.root()).enumerate() {
            let start = starts.get(place).map_err(|error| error.to_string())?;
            let duration = durations.get(place).map_err(|error| error.to_string())?;
            // Times of a location do not go back.
            let start = u64::try_from(start).unwrap_or(0).max(last);
            let stop = start + u64::try_from(duration).unwrap_or(0);
            last = stop;
            *end = stop.max(*end);
            self.event(index, symbol, (start, stop), &mut pending, &mut posted, put)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        stream: usize,
        symbol: Symbol,
        (start, stop): (u64, u64),
        pending: &mut VecDeque<Pending>,
        posted: &mut u64,
        put: &mut Put<'_>,
    ) -> Result<(), String> {
        let fold = self.fold;
        let meaning = fold.alphabet().meaning(symbol);
        let region = self.region(&meaning);
        match meaning.role {
            Role::Enter => return put(start, Record::Enter(region)),
            Role::Leave => return put(start, Record::Leave(region)),
            _ => {}
        }
        put(start, Record::Enter(region))?;
        let name = self.regions[region as usize].name.clone();
        let operation = name.strip_prefix("MPI_").unwrap_or("").to_ascii_lowercase();
        let is_posted = operation.starts_with('i') || operation.starts_with("start");
        if let Some(call) = self.calls.get(symbol).cloned() {
            let comm = self.calls.comm(call.comm).to_string();
            let comm = self.comm(stream, &comm);
            let mut number = || {
                *posted += 1;
                *posted - 1
            };
            for message in call.sends.iter().filter_map(|message| envelope(message, comm)) {
                if is_posted {
                    let number = number();
                    put(start, Record::Isend(message, number))?;
                    pending.push_back(Pending { number, received: None });
                } else {
                    put(start, Record::Send(message))?;
                }
            }
            for message in call.receives.iter().filter_map(|message| envelope(message, comm)) {
                if is_posted {
                    let number = number();
                    put(stop, Record::IrecvRequest(number))?;
                    pending.push_back(Pending { number, received: Some(message) });
                } else {
                    put(stop, Record::Receive(message))?;
                }
            }
            // Messages to nobody have requests, too.
            for _ in 0..if is_posted { nobodies(&meaning) } else { 0 } {
                pending.push_back(Pending { number: NO_REQUEST, received: None });
            }
            if let (Some(root), false) = (call.collective, is_posted) {
                self.collective(&name, &meaning, comm, root, (start, stop), put)?;
            }
        }
        if operation.starts_with("wait") || operation.starts_with("test") {
            complete(&meaning, pending, stop, put)?;
        }
        put(stop, Record::Leave(region))
    }

    fn collective(
        &self,
        name: &str,
        meaning: &Meaning<'_>,
        comm: u32,
        root: Option<i64>,
        (start, stop): (u64, u64),
        put: &mut Put<'_>,
    ) -> Result<(), String> {
        let Some(operation) = STRAY.iter().take(17).position(|known| *known == name) else { return Ok(()) };
        let bytes = match meaning.field("bytes") {
            Some(Value::Integer(bytes)) => u64::try_from(bytes).unwrap_or(0),
            _ => 0,
        };
        let all = bytes.saturating_mul(self.comms[comm as usize].1.len() as u64);
        let is_one_buffer = matches!(operation, 11 | 13..=16);
        let (sent, received) = if is_one_buffer { (bytes, bytes) } else { (all, all) };
        put(start, Record::CollectiveBegin)?;
        let root = root.and_then(|root| u32::try_from(root).ok());
        put(stop, Record::CollectiveEnd { operation: operation as u32, comm, root, sent, received })
    }
}

/// The number of a request that is no message.
const NO_REQUEST: u64 = u64::MAX;

/// How many peers of a call are nobody.
fn nobodies(meaning: &Meaning<'_>) -> usize {
    let words = |key| match meaning.field(key) {
        Some(Value::Text(list)) => list.split(|&byte| byte == b',').filter(|&word| word == b"none").count(),
        _ => 0,
    };
    words("dest") + words("src")
}

/// A message that has another end.
fn envelope(message: &Message, comm: u32) -> Option<Envelope> {
    let Peer::Rank(peer) = message.peer else { return None };
    let tag = message.tag.and_then(|tag| u32::try_from(tag).ok()).unwrap_or(0);
    Some(Envelope { peer, comm, tag, bytes: message.bytes.unwrap_or(0) })
}

/// The requests that a call completes: the oldest ones, or those with the indexes in `done`.
fn complete(
    meaning: &Meaning<'_>,
    pending: &mut VecDeque<Pending>,
    time: u64,
    put: &mut Put<'_>,
) -> Result<(), String> {
    let mut indexes: Vec<usize> = match (meaning.field("done"), meaning.field("n")) {
        (Some(Value::Integer(index)), _) => usize::try_from(index).into_iter().collect(),
        (Some(Value::Text(list)), _) => {
            String::from_utf8_lossy(list).split(',').filter_map(|index| index.parse().ok()).collect()
        }
        (None, Some(Value::Integer(count))) => {
            (0..usize::try_from(count).unwrap_or(0).min(pending.len())).collect()
        }
        _ => Vec::new(),
    };
    indexes.retain(|&index| index < pending.len());
    for &index in &indexes {
        let Pending { number, received } = pending[index];
        if number == NO_REQUEST {
            continue;
        }
        put(time, received.map_or(Record::IsendComplete(number), |message| Record::Irecv(message, number)))?;
    }
    for index in indexes.into_iter().rev() {
        pending.remove(index);
    }
    Ok(())
}
