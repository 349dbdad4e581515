//! What processes ask of each other once everything is read: process 0 asks, the others answer.
//!
//! | request | answer |
//! | --- | --- |
//! | a chunk of times, by its number | its bytes |
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
use anyhow::{Result, bail};
use loopfold::trace::{ChunkStore, ChunkTable, Spill};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

const END: u64 = 0;
const CHUNK: u64 = 1;
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
            CHUNK => nodes.send(0, &own.chunk(received.number()?)?)?,
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
    Spill::to(There { nodes, owner: owner as usize })
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

#[derive(Debug)]
struct There {
    nodes: &'static Nodes,
    owner: usize,
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
        let request = Message::default().number(CHUNK).number(number);
        let chunk = self.nodes.ask(self.owner, &request.0).map_err(io::Error::other)?;
        copy(&chunk, bytes)
    }
}
