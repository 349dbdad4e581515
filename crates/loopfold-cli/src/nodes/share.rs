//! What one process has folded, and how such shares become the fold of the whole.
//!
//! A share is a fold without times, as the bytes of an archive (tens of bytes a stream, once rules
//! are common), and an outline of the times of each stream, whose chunks stay in the process that
//! read them. Shares are joined over a binary tree: in round k, process i + 2^k sends all that it
//! has to process i, where i is a multiple of 2^(k+1). Equal rules become one at every step, so that
//! what arrives at process 0 is O(folded size), not O(events), and it takes log2 n rounds.

use super::Nodes;
use super::serve::{MOST_BYTES, here, there};
use super::sums::SharedTimes;
use super::wire::{Message, Received};
use anyhow::{Result, bail};
use loopfold::Fold;
use loopfold::archive::{self, ReadConfig};
use loopfold::fold::FoldBuilder;
use loopfold::folders::with_streams_by;
use loopfold::trace::{ChunkTable, Times};
use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::sync::Arc;

/// What one process, or several together, have read.
#[derive(Default)]
pub(crate) struct Share {
    fold: Fold,
    /// The streams of the fold, in its order.
    streams: Vec<OwnStream>,
    pub(crate) remarks: Remarks,
}

/// What is known of a stream besides the fold.
struct OwnStream {
    /// The input, and the place in it.
    input: u64,
    place: u64,
    /// The process that has its times, and their outline.
    owner: u64,
    outline: Vec<u8>,
}

/// The streams of a process with their times, as it has read them.
pub(crate) struct OwnTimes {
    fold: Fold,
    pub(super) outlines: Vec<Vec<u8>>,
    pub(super) chunks: Arc<ChunkTable>,
}

impl OwnTimes {
    /// A process that has read nothing.
    pub(crate) fn nothing() -> Self {
        Self { fold: Fold::default(), outlines: Vec::new(), chunks: Arc::default() }
    }

    /// Chunks of the times: the number of the first, how many at most, and every how many-th. It is one at
    /// least.
    pub(super) fn chunks(&self, [first, count, step]: [u64; 3]) -> Result<Vec<u8>> {
        let mut chunks = vec![self.chunks.chunk(first)?];
        let mut bytes = chunks[0].len();
        while (chunks.len() as u64) < count && bytes < MOST_BYTES {
            let next = first.saturating_add(step.saturating_mul(chunks.len() as u64));
            let Ok(chunk) = self.chunks.chunk(next) else { break };
            bytes += chunk.len();
            chunks.push(chunk);
        }
        Ok(Message::default().list(&chunks, |to, chunk| to.bytes(chunk)).0)
    }

    /// The fold of these streams, with times.
    pub(super) fn fold_with_times(&self) -> Result<Fold> {
        let (mut fold, here) = (self.fold.clone(), here(&self.chunks));
        for (stream, outline) in fold.stream_ids().zip(&self.outlines) {
            fold.set_times(stream, Times::from_outline(outline, &here)?)?;
        }
        Ok(fold)
    }
}

/// What is found while reading, for messages to the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// For each input that was read its format.
    pub(crate) formats: Vec<(u64, String)>,
    /// Notes, by input.
    pub(crate) notes: Vec<(u64, String)>,
    /// The fields that no event has.
    pub(crate) unseen: Vec<String>,
    /// The words of `--only` and `--drop` that stand for no event.
    pub(crate) unfitted: [Vec<String>; 2],
}

impl Remarks {
    /// Those of two processes: a field is unseen if neither has seen it.
    fn join(&mut self, other: Self) {
        self.formats.extend(other.formats);
        self.notes.extend(other.notes);
        self.unseen.retain(|field| other.unseen.contains(field));
        for (words, others) in self.unfitted.iter_mut().zip(&other.unfitted) {
            words.retain(|word| others.contains(word));
        }
    }

    fn put(&self, message: Message) -> Message {
        let texts = |message: Message, texts: &[String]| message.list(texts, |to, text| to.text(text));
        let noted = |message: Message, notes: &[(u64, String)]| {
            message.list(notes, |to, (input, text)| to.number(*input).text(text))
        };
        let message = noted(noted(message, &self.formats), &self.notes);
        let message = texts(message, &self.unseen);
        texts(texts(message, &self.unfitted[0]), &self.unfitted[1])
    }

    fn take(received: &mut Received<'_>) -> Result<Self> {
        let noted = |received: &mut Received<'_>| received.list(|from| Ok((from.number()?, from.text()?)));
        let (formats, notes) = (noted(received)?, noted(received)?);
        let unseen = received.list(Received::text)?;
        Ok(Self {
            formats,
            notes,
            unseen,
            unfitted: [received.list(Received::text)?, received.list(Received::text)?],
        })
    }
}

impl Share {
    /// The share of this process: those streams of a fold whose input is known; and their times.
    pub(crate) fn of(
        mut fold: Fold,
        inputs: &[Option<usize>],
        rank: usize,
        remarks: Remarks,
    ) -> (Self, OwnTimes) {
        let mut chunks = ChunkTable::default();
        let is_own = |place: usize| inputs.get(place).copied().flatten();
        let mut streams = Vec::new();
        for stream in fold.stream_ids() {
            let times = fold.take_times(stream);
            let Some(input) = is_own(stream.index()) else { continue };
            let (input, place, owner) = (input as u64, stream.index() as u64, rank as u64);
            streams.push(OwnStream { input, place, owner, outline: chunks.outline(times) });
        }
        let fold = fold.with_streams(|stream| is_own(stream.index()).is_some()).into_canonical();
        let outlines = streams.iter().map(|stream| stream.outline.clone()).collect();
        let own = OwnTimes { fold: fold.clone(), outlines, chunks: Arc::new(chunks) };
        (Self { fold, streams, remarks }, own)
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut fold = Vec::new();
        archive::write(&self.fold, &mut fold)?;
        let message = Message::default().bytes(&fold).list(&self.streams, |to, stream| {
            to.number(stream.input).number(stream.place).number(stream.owner).bytes(&stream.outline)
        });
        Ok(self.remarks.put(message).0)
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut received = Received(bytes);
        let (fold, _) = archive::read(Cursor::new(received.bytes()?), &ReadConfig::new())?;
        let streams = received.list(|from| {
            let (input, place, owner) = (from.number()?, from.number()?, from.number()?);
            Ok(OwnStream { input, place, owner, outline: from.bytes()?.to_vec() })
        })?;
        Ok(Self { fold, streams, remarks: Remarks::take(&mut received)? })
    }

    fn join(self, other: Self) -> Result<Self> {
        let mut builder = FoldBuilder::default();
        builder.join(&self.fold)?;
        builder.join(&other.fold)?;
        let (mut streams, mut remarks) = (self.streams, self.remarks);
        streams.extend(other.streams);
        remarks.join(other.remarks);
        Ok(Self { fold: builder.finish(), streams, remarks })
    }

    /// Joins the shares of all processes over a tree. Returns the whole at process 0, and `None` at
    /// the others.
    pub(crate) fn gather(mut self, nodes: &Nodes) -> Result<Option<Self>> {
        let (rank, size) = (nodes.rank(), nodes.size());
        let mut distance = 1;
        while distance < size {
            if rank % (2 * distance) != 0 {
                nodes.send(rank - distance, &self.encode()?)?;
                return Ok(None);
            }
            if rank + distance < size {
                let other = Self::decode(&nodes.receive(rank + distance)?)?;
                self = self.join(other)?;
            }
            distance *= 2;
        }
        Ok(Some(self))
    }

    /// The fold of the whole, with its streams in their order, as `finish` ends it, and with times
    /// that are read from the processes that have them.
    pub(crate) fn into_fold(
        self,
        nodes: &'static Nodes,
        own: OwnTimes,
        finish: impl FnOnce(Fold) -> Result<Fold>,
    ) -> Result<(Fold, Remarks, SharedTimes)> {
        let Self { fold, mut streams, remarks } = self;
        let mut keys = streams.iter().map(|stream| (stream.input, stream.place));
        let ordered = with_streams_by(fold, |_| keys.next())?;
        streams.sort_by_key(|stream| (stream.input, stream.place));
        check_names(&ordered)?;
        let mut fold = finish(ordered)?;
        let mut stores = HashMap::from([(0, here(&own.chunks))]);
        for (id, stream) in fold.stream_ids().zip(&streams) {
            let store = stores.entry(stream.owner).or_insert_with(|| there(nodes, stream.owner));
            fold.set_times(id, Times::from_outline(&stream.outline, store)?)?;
        }
        let owners = streams.iter().map(|stream| stream.owner as usize).collect();
        let names = fold.streams().iter().map(|stream| stream.name().raw().to_string()).collect();
        let times = SharedTimes { nodes, owners, names, own: Arc::new(own), is_as_read: false };
        Ok((fold, remarks, times))
    }
}

/// One stream cannot be read by two processes.
fn check_names(fold: &Fold) -> Result<()> {
    let mut names = HashSet::new();
    for stream in fold.streams() {
        if !names.insert(stream.name()) {
            bail!(
                "the stream {} is in several inputs, which one process must read: run `loopfold` instead of \
                 `loopfold-mpi`",
                stream.title().terminal()
            );
        }
    }
    Ok(())
}
