//! Stores the peers of a recording relative to the process, and gives them back as ranks.
//!
//! A recorder writes the other end of a message as its distance from the own rank, modulo the
//! size of the communicator. So the ranks of a ring, of a torus or inside of a mesh have equal
//! events, and their rules are stored once. [`RelativePeers`] has what is needed to reverse
//! that: for each communicator the rank of each stream, and the size. Unlike
//! [`Peers`](super::Peers), which is a view that users choose, this is an encoding: reading an
//! archive gives ranks back, and no question sees it.
//!
//! Ranks mostly grow by one from stream to stream, so they are stored as runs of equal
//! differences. Memory is O(section); reversing costs O(items that each stream reaches).

use super::peers::rules::{Renaming, rewrite};
use super::peers::symbols::{ENDS, comm_of, has_peers};
use crate::bytes::{Bytes, put_number, put_text};
use crate::trace::{Alphabet, Event, Field, Value};
use crate::{Fold, Result, Symbol};
use hashbrown::HashMap;
use std::sync::Arc;

/// The rank of each stream in each communicator, in a fold whose peers are relative.
///
/// ```
/// use loopfold::mpi::RelativePeers;
/// use loopfold::fold::{FoldBuilder, FoldedStream, Item};
/// use loopfold::trace::{Event, Field, Role, Value};
///
/// let mut builder = FoldBuilder::default();
/// let next = [Field { key: "dest", value: Value::Integer(1) }];
/// let send = Event { role: Role::Send, fields: &next, ..Event::named("MPI_Send") };
/// let send = builder.alphabet_mut().intern(&send, None)?;
/// let root = builder.rule(&[Item::once(send)])?;
/// let mut peers = RelativePeers::default();
/// for rank in 0..3 {
///     builder.stream(FoldedStream::new(format!("rank {rank}"), "", root));
///     peers.push("0", rank as usize, rank, 3);
/// }
/// let ring = peers.absolute(&builder.finish())?;
/// assert_eq!(ring.nest_text(ring.streams()[2].root()), "MPI_Send dest=0");
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelativePeers {
    comms: Vec<(String, Arc<Vec<Run>>)>,
    by_name: HashMap<String, usize>,
}

/// Streams whose ranks grow by the same difference, in communicators of the same size. A size of
/// 0 says that they are not in the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The first stream.
    first: usize,
    streams: usize,
    /// The rank of the first stream; -1 if there is none so far.
    own: i64,
    difference: i64,
    size: u32,
}

impl Run {
    fn rank(&self, stream: usize) -> i64 {
        self.own + self.difference * (stream - self.first) as i64
    }

    /// The rank of the last stream.
    fn last(&self) -> i64 {
        self.rank(self.first + self.streams - 1)
    }
}

/// A rank that no communicator has.
const TOO_LARGE: u32 = 1 << 31;

impl RelativePeers {
    /// A stream's rank in a communicator of a size. Streams come in their order; a stream that is
    /// left out is not in the communicator.
    ///
    /// # Panics
    /// If a stream comes before one of the same communicator that was there already.
    pub fn push(&mut self, comm: &str, stream: usize, own: u32, size: u32) {
        let next = self.comms.len();
        let index = *self.by_name.entry_ref(comm).or_insert(next);
        if index == next {
            self.comms.push((comm.to_string(), Arc::default()));
        }
        let runs = Arc::make_mut(&mut self.comms[index].1);
        let end = runs.last().map_or(0, |run| run.first + run.streams);
        assert!(stream >= end, "streams come in their order");
        if stream > end {
            let own = runs.last().map_or(-1, Run::last);
            runs.push(Run { first: end, streams: stream - end, own, difference: 0, size: 0 });
        }
        let difference = i64::from(own) - runs.last().map_or(-1, Run::last);
        match runs.last_mut() {
            Some(run) if run.size == size && run.difference == difference => run.streams += 1,
            _ => runs.push(Run { first: stream, streams: 1, own: own.into(), difference, size }),
        }
    }

    /// A stream's rank in a communicator, and the size of that. Returns `None` if it is not known
    /// to be a member.
    pub fn place(&self, comm: &str, stream: usize) -> Option<(u32, u32)> {
        let runs = &self.comms[*self.by_name.get(comm)?].1;
        let run = &runs[runs.partition_point(|run| run.first + run.streams <= stream)..].first()?;
        (run.size > 0).then(|| u32::try_from(run.rank(stream)).ok().map(|own| (own, run.size)))?
    }

    /// The streams of several recordings one after the other: those of `other` follow `streams`
    /// streams.
    pub fn append(&mut self, other: &Self, streams: usize, of_other: usize) {
        for (comm, _) in &other.comms {
            for stream in 0..of_other {
                if let Some((own, size)) = other.place(comm, stream) {
                    self.push(comm, streams + stream, own, size);
                }
            }
        }
    }

    /// A rank as it is stored.
    pub fn stored(own: u32, size: u32, rank: u32) -> u32 {
        if size == 0 { rank } else { (rank % size + size - own % size) % size }
    }

    /// The fold with ranks instead of distances, in canonical form.
    pub fn absolute(&self, fold: &Fold) -> Result<Fold> {
        let restoring = Restoring {
            peers: self,
            old: fold.alphabet(),
            new: Alphabet::default(),
            known: vec![None; fold.alphabet().len()],
        };
        Ok(rewrite(fold, 0, restoring)?.0.canonical())
    }

    /// As bytes; see `docs/archive.md`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.comms.len() as u64);
        for (index, (comm, runs)) in self.comms.iter().enumerate() {
            put_text(&mut out, comm.as_bytes());
            let same = self.comms[..index].iter().rposition(|(_, before)| before == runs);
            put_number(&mut out, same.map_or(0, |same| (index - same) as u64));
            if same.is_none() {
                put_number(&mut out, runs.len() as u64);
                for run in runs.iter() {
                    put_number(&mut out, run.streams as u64);
                    put_number(&mut out, run.size.into());
                    put_number(&mut out, ((run.difference << 1) ^ (run.difference >> 63)) as u64);
                }
            }
        }
        out
    }

    /// From bytes, for a fold of this many streams.
    pub(crate) fn decode(bytes: &[u8], streams: usize) -> Result<Self> {
        let mut bytes = Bytes::new(bytes, "peers");
        let mut peers = Self::default();
        for index in 0..bytes.number()? {
            let comm = bytes.string()?;
            let same = bytes.number()?;
            let runs = match usize::try_from(same).ok().filter(|&same| same > 0) {
                Some(same) if same <= peers.comms.len() => {
                    Arc::clone(&peers.comms[peers.comms.len() - same].1)
                }
                None if same == 0 => Arc::new(read_runs(&mut bytes, streams)?),
                _ => return Err(bytes.damaged("a communicator is like one that is not there")),
            };
            if peers.by_name.insert(comm.clone(), index as usize).is_some() {
                return Err(bytes.damaged("a communicator occurs twice"));
            }
            peers.comms.push((comm, runs));
        }
        bytes.finish()?;
        Ok(peers)
    }
}

fn read_runs(bytes: &mut Bytes<'_>, streams: usize) -> Result<Vec<Run>> {
    let (mut runs, mut first, mut last) = (Vec::new(), 0usize, -1i64);
    for _ in 0..bytes.number()? {
        let (count, size, difference) = (bytes.number()?, bytes.number()?, bytes.number()?);
        let difference = (difference >> 1) as i64 ^ -((difference & 1) as i64);
        let count = usize::try_from(count).ok().filter(|&count| count > 0 && count <= streams - first);
        let size = u32::try_from(size).ok().filter(|&size| size <= TOO_LARGE);
        let (Some(count), Some(size)) = (count, size) else {
            return Err(bytes.damaged("more streams or ranks than there are"));
        };
        // Those that are in no communicator keep the rank before them, which may be none.
        let first_rank = if size == 0 { -1 } else { 0 };
        let is_rank =
            |rank: Option<i64>| rank.filter(|rank| (first_rank..i64::from(TOO_LARGE)).contains(rank));
        let own = is_rank(last.checked_add(difference));
        let end = difference.checked_mul(count as i64).and_then(|all| last.checked_add(all));
        let (Some(own), Some(end)) = (own, is_rank(end)) else {
            return Err(bytes.damaged("a rank that there cannot be"));
        };
        runs.push(Run { first, streams: count, own, difference, size });
        (first, last) = (first + count, end);
    }
    Ok(runs)
}

/// Gives the symbols of each stream their ranks back.
struct Restoring<'a> {
    peers: &'a RelativePeers,
    old: &'a Alphabet,
    new: Alphabet,
    /// The new symbol, and the stream it is known for; of events without peers, for all.
    known: Vec<Option<(Option<usize>, Symbol)>>,
}

impl Renaming for Restoring<'_> {
    fn renamed(&mut self, symbol: Symbol, stream: usize) -> Result<Symbol> {
        match self.known[symbol.index()] {
            Some((of, new)) if of.is_none_or(|of| of == stream) => return Ok(new),
            _ => {}
        }
        let meaning = self.old.meaning(symbol);
        let (of, new) = if has_peers(&meaning) {
            let place = self.peers.place(&comm_of(&meaning), stream);
            let restored: Vec<Option<String>> = meaning
                .fields
                .iter()
                .map(|field| place.filter(|_| ENDS.contains(&field.key)).and_then(|at| list(at, field.value)))
                .collect();
            let mut fields: Vec<Field<'_>> = meaning.fields.clone();
            for (field, restored) in fields.iter_mut().zip(&restored) {
                match (restored, field.value) {
                    (Some(text), _) => field.value = Value::Text(text.as_bytes()),
                    (None, Value::Integer(stored)) if ENDS.contains(&field.key) => {
                        field.value = Value::Integer(place.map_or(stored, |place| rank(place, stored)));
                    }
                    _ => {}
                }
            }
            (Some(stream), self.new.intern(&Event { fields: &fields, ..meaning.event() }, None)?)
        } else {
            (None, self.new.intern_entry(self.old.entry(symbol), None)?)
        };
        self.known[symbol.index()] = Some((of, new));
        Ok(new)
    }

    fn note(&self, _: &mut Vec<(String, String)>) {}

    fn take_alphabet(&mut self) -> Alphabet {
        std::mem::take(&mut self.new)
    }
}

/// The rank of a peer that is stored as a distance.
fn rank((own, size): (u32, u32), stored: i64) -> i64 {
    match u32::try_from(stored) {
        Ok(stored) if size > 0 && stored < size => (i64::from(own) + i64::from(stored)) % i64::from(size),
        _ => stored,
    }
}

/// A list of peers, with ranks; words among them stay.
fn list(place: (u32, u32), value: Value<'_>) -> Option<String> {
    let Value::Text(text) = value else { return None };
    let text = std::str::from_utf8(text).ok().filter(|text| text.contains(','))?;
    let word =
        |word: &str| word.parse().map_or_else(|_| word.to_string(), |one| rank(place, one).to_string());
    Some(text.split(',').map(word).collect::<Vec<_>>().join(","))
}
