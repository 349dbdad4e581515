//! What processes ask of each other once everything is read: process 0 asks, the others answer.
//!
//! | request | answer |
//! | --- | --- |
//! | a chunk of times, by its number | its bytes |
//! | streams to fold again, by their rules | their folds |
//! | the end | traffic and peak memory |

use super::refold::{self, Refolded};
use super::wire::{Message, Received};
use super::{Nodes, Served, Usage};
use anyhow::{Result, bail};
use loopfold::trace::{ChunkStore, ChunkTable, Spill};
use std::io;
use std::sync::Arc;

const END: u64 = 0;
const CHUNK: u64 = 1;
const REFOLD: u64 = 2;

/// Answers process 0 until the end; then there is nothing more to do here.
pub(crate) fn serve(nodes: &Nodes, chunks: &ChunkTable, refolded: &Refolded<'_>) -> anyhow::Error {
    match answer_all(nodes, chunks, refolded) {
        Ok(()) => Served.into(),
        Err(error) => error,
    }
}

fn answer_all(nodes: &Nodes, chunks: &ChunkTable, refolded: &Refolded<'_>) -> Result<()> {
    loop {
        let request = nodes.receive(0)?;
        let mut received = Received(&request);
        match received.number()? {
            END => return nodes.send(0, &Usage::of(nodes).encode()),
            CHUNK => nodes.send(0, &chunks.chunk(received.number()?)?)?,
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

/// The chunks of the times that a process has.
pub(super) fn chunks_of(nodes: &'static Nodes, owner: u64, own: &mut Option<ChunkTable>) -> Arc<Spill> {
    match own.take_if(|_| owner as usize == nodes.rank()) {
        Some(own) => Spill::to(Here(own)),
        None => Spill::to(There { nodes, owner: owner as usize }),
    }
}

#[derive(Debug)]
struct Here(ChunkTable);

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
        let request = Message::default().number(CHUNK).number(number);
        let chunk = self.nodes.ask(self.owner, &request.0).map_err(io::Error::other)?;
        copy(&chunk, bytes)
    }
}
