//! What processes ask of each other once everything is read: process 0 asks, the others answer.
//!
//! | request | answer |
//! | --- | --- |
//! | chunks of times: the number of the first one, how many, and every how many-th | their bytes |
//! | streams to fold again, by their rules | their folds |
//! | sums of times | those of its streams |
//! | times of the loops of nests | samples of those in its streams |
//! | waits | all processes find them together |
//! | the end | traffic and peak memory |

use super::refold::{self, Refolded};
use super::share::OwnTimes;
use super::wire::{Message, Received};
use super::{Nodes, Served, Usage};
use super::{loops, sums, waits};
use anyhow::{Context as _, Result, bail};
use loopfold::trace::{ChunkStore, ChunkTable, Spill};
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

const END: u64 = 0;
const CHUNKS: u64 = 1;
const REFOLD: u64 = 2;
const SUMS: u64 = 3;
const WAITS: u64 = 4;
const LOOPS: u64 = 5;

/// Answers process 0 until the end; then there is nothing more to do here.
pub(crate) fn serve(nodes: &Nodes, own: &OwnTimes, refolded: &Refolded<'_>) -> anyhow::Error {
    match answer_all(nodes, own, refolded) {
        Ok(()) => Served.into(),
        Err(error) => error,
    }
}

fn answer_all(nodes: &Nodes, own: &OwnTimes, refolded: &Refolded<'_>) -> Result<()> {
    loop {
        let request = nodes.receive(0)?;
        let mut received = Received(&request);
        match received.number()? {
            END => return nodes.send(0, &Usage::of(nodes).encode()),
            CHUNKS => {
                nodes.send(0, &own.chunks([received.number()?, received.number()?, received.number()?])?)?
            }
            SUMS => nodes.send(0, &sums::answer(own)?)?,
            LOOPS => nodes.send(0, &loops::answer(&mut received, own)?)?,
            WAITS => waits::take_part(nodes, own)?,
            REFOLD => nodes.send(0, &refold::answer(&mut received, refolded)?)?,
            _ => bail!("a request that is not known; are all processes of the same version?"),
        }
    }
}

/// Ends the others and returns what each process has used.
pub(super) fn end(nodes: &Nodes) -> Result<Vec<Usage>> {
    for rank in 1..nodes.size() {
        nodes.send(rank, &Message::default().number(END).0)?;
    }
    let mut usages = Vec::new();
    for rank in 1..nodes.size() {
        usages.push(Usage::decode(&nodes.receive(rank)?)?);
    }
    usages.insert(0, Usage::of(nodes));
    Ok(usages)
}

pub(super) fn refold_request() -> Message {
    Message::default().number(REFOLD)
}

pub(super) fn sums_request() -> Message {
    Message::default().number(SUMS)
}

pub(super) fn loops_request() -> Message {
    Message::default().number(LOOPS)
}

pub(super) fn waits_request() -> Message {
    Message::default().number(WAITS)
}

/// The chunks of the times that this process has.
pub(super) fn here(chunks: &Arc<ChunkTable>) -> Arc<Spill> {
    Spill::to(Here(Arc::clone(chunks)))
}

/// The chunks of the times that another process has.
pub(super) fn there(nodes: &'static Nodes, owner: u64) -> Arc<Spill> {
    Spill::to(There { nodes, owner: owner as usize, ahead: HashMap::new(), last: 0, count: 1 })
}

thread_local! {
    /// Whether only the lengths of chunks matter.
    static ONLY_LENGTHS: Cell<bool> = const { Cell::new(false) };
}

/// Does something for which only the lengths of chunks matter, such as to count the bytes of an
/// archive: chunks of others are not read.
pub(crate) fn with_lengths_only<T>(work: impl FnOnce() -> T) -> T {
    ONLY_LENGTHS.set(true);
    let result = work();
    ONLY_LENGTHS.set(false);
    result
}

#[derive(Debug)]
struct Here(Arc<ChunkTable>);

/// Chunks that are mostly read in order, as an archive is written: a question takes longer than the answer, so
/// more and more of them are asked for at once.
#[derive(Debug)]
struct There {
    nodes: &'static Nodes,
    owner: usize,
    /// Those that were received and not read yet.
    ahead: HashMap<u64, Vec<u8>>,
    /// The one that was read last.
    last: u64,
    /// How many are asked for at once.
    count: u64,
}

/// The most chunks that are asked for at once, and the bytes after which no more are sent.
const MOST_AHEAD: u64 = 64;
pub(super) const MOST_BYTES: usize = 1 << 20;
/// How far a chunk may be from the one before it: those of the columns of a stream follow each other, and an
/// archive has one column of all streams after the other.
const NEAR: u64 = 4;

impl There {
    fn chunk(&mut self, number: u64) -> anyhow::Result<Vec<u8>> {
        let step = number.saturating_sub(self.last);
        let is_next = step > 0 && step <= NEAR;
        self.last = number;
        if let Some(chunk) = self.ahead.remove(&number) {
            return Ok(chunk);
        }
        self.count = if is_next { (self.count * 2).min(MOST_AHEAD) } else { 1 };
        // What was not read until now is not read soon.
        self.ahead.clear();
        let step = if is_next { step } else { 1 };
        let request = Message::default().number(CHUNKS).number(number).number(self.count).number(step);
        let answer = self.nodes.ask(self.owner, &request.0)?;
        let chunks = Received(&answer).list(|from| Ok(from.bytes()?.to_vec()))?;
        self.ahead.extend((number..).step_by(step as usize).zip(chunks));
        self.ahead.remove(&number).context("a chunk of times is not there")
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the times of other processes can only be read")
}

fn copy(chunk: &[u8], bytes: &mut [u8]) -> io::Result<()> {
    if chunk.len() != bytes.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk of times has another length"));
    }
    bytes.copy_from_slice(chunk);
    Ok(())
}

impl ChunkStore for Here {
    fn append(&mut self, _: &[u8]) -> io::Result<u64> {
        Err(read_only())
    }

    fn read(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()> {
        copy(&self.0.chunk(number).map_err(io::Error::other)?, bytes)
    }
}

impl ChunkStore for There {
    fn append(&mut self, _: &[u8]) -> io::Result<u64> {
        Err(read_only())
    }

    fn read(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()> {
        if ONLY_LENGTHS.get() {
            return Ok(());
        }
        copy(&self.chunk(number).map_err(io::Error::other)?, bytes)
    }
}
