//! The shared memory of a recorded process: a lane for each of its threads, a ring of chunks.
//!
//! It is read and written through its file, not mapped, as the rings of the MPI recorder are: there
//! is no memory here that another process changes. A chunk costs one system call. What the numbers
//! of a lane mean is described in `runtime/layout.h` and `runtime/lanes.h`.

use crate::ring::agreed;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

// The same numbers are in runtime/layout.h.
const CHUNKS: u64 = 16;
const CHUNK_BYTES: usize = 1 << 16;
const LANES_AT: u64 = 4096;
const DATA_AT: u64 = 1 << 18;
const LANE: usize = 128;
const MOST_LANES: usize = 1024;
const VERSION: u32 = 2;
/// Where this is in every version from 2 on.
const THROWN_AT: u64 = 24;
const UNNAMED_AT: u64 = 32;
/// Where this is in every version.
const STOP_AT: u64 = 64;
/// Where what the recorder writes is in a lane.
const TAIL_AT: u64 = 64;
const DRAINED_AT: u64 = 72;

/// A lane as its process describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// How many chunks are complete.
    pub(super) head: u64,
    /// The number of the present use.
    pub(super) begun: u32,
    /// The number of the last use that has ended.
    pub(super) ended: u32,
    /// The number of the thread; 0 is the first one.
    pub(super) thread: u32,
    /// 0, or which of the handlers that run inside each other.
    pub(super) level: u32,
    /// The mark in the parent's lane at which this process began, or 0.
    pub(super) mark: u32,
    /// How many tokens the complete chunks have, and the open one if it was counted; all of its tokens
    /// once the use has ended.
    pub(super) written: u64,
}

impl Lane {
    fn of(bytes: &[u8; LANE]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| bytes[at + index]));
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| bytes[at + index]));
        Self {
            head: long(0),
            begun: word(8),
            ended: word(12),
            thread: word(16),
            level: word(20),
            mark: word(24),
            written: long(32).saturating_add(word(28).into()),
        }
    }
}

/// The memory of a process.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
}

impl Memory {
    pub(super) fn new(file: File) -> Self {
        Self { file }
    }

    /// Whether it is of this version of the run-time library. Of others only the version, what was
    /// thrown away, and [`Self::stop`] are known.
    pub(super) fn is_understood(&self) -> bool {
        self.word(0).is_ok_and(|version| version == VERSION)
    }

    fn word(&self, at: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn long(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// All lanes that were ever used.
    pub(super) fn lanes(&self) -> io::Result<Vec<Lane>> {
        let count = (self.word(8)? as usize).min(MOST_LANES);
        let mut bytes = vec![0; count * LANE];
        self.file.read_exact_at(&mut bytes, LANES_AT)?;
        Ok(bytes.as_chunks().0.iter().map(Lane::of).collect())
    }

    /// One lane.
    pub(super) fn lane(&self, number: usize) -> io::Result<Lane> {
        let mut bytes = [0; LANE];
        self.file.read_exact_at(&mut bytes, lane_at(number))?;
        Ok(Lane { head: self.head(number)?, ..Lane::of(&bytes) })
    }

    /// How many chunks of a lane are complete, while that may change: a reading may find half of a
    /// number.
    pub(super) fn head(&self, number: usize) -> io::Result<u64> {
        agreed(|| self.long(lane_at(number)))
    }

    /// How many threads, or chunks of them, found no lane or no memory.
    pub(super) fn missed(&self) -> io::Result<u32> {
        self.word(12)
    }

    /// How many modules could not be described.
    pub(super) fn unnamed(&self) -> io::Result<u32> {
        self.word(UNNAMED_AT)
    }

    /// How many processes were to begin as copies of this one that it could not promise.
    pub(super) fn forks(&self) -> io::Result<u32> {
        self.word(16)
    }

    /// Whether a ring was given up, as it was not read for too long.
    pub(super) fn gave_up(&self) -> io::Result<bool> {
        Ok(self.word(20)? != 0)
    }

    /// How many tokens were thrown away, at least. 0 for version 1, which does not count them.
    pub(super) fn thrown(&self) -> io::Result<u64> {
        self.long(THROWN_AT)
    }

    /// How many chunks of a lane were read so far.
    pub(super) fn tail(&self, lane: usize) -> io::Result<u64> {
        self.long(lane_at(lane) + TAIL_AT)
    }

    /// The words of a chunk. What was written of it ends with a 0, or with the chunk.
    pub(super) fn chunk(&self, lane: usize, number: u64, tokens: &mut Vec<u32>) -> io::Result<()> {
        let mut bytes = [0; CHUNK_BYTES];
        let lane_bytes = CHUNKS * CHUNK_BYTES as u64;
        let at = DATA_AT + lane as u64 * lane_bytes + number % CHUNKS * CHUNK_BYTES as u64;
        self.file.read_exact_at(&mut bytes, at)?;
        tokens.clear();
        tokens.extend(bytes.as_chunks().0.iter().map(|&word| u32::from_ne_bytes(word)));
        Ok(())
    }

    /// Gives chunks back: all before this one were read.
    pub(super) fn set_tail(&self, lane: usize, tail: u64) -> io::Result<()> {
        self.file.write_all_at(&tail.to_ne_bytes(), lane_at(lane) + TAIL_AT)
    }

    /// Gives a lane back whose use has ended.
    pub(super) fn set_drained(&self, lane: usize, usage: u32) -> io::Result<()> {
        self.file.write_all_at(&usage.to_ne_bytes(), lane_at(lane) + DRAINED_AT)
    }

    /// From here on the process throws its tokens away.
    pub(super) fn stop(&self) -> io::Result<()> {
        self.file.write_all_at(&1u32.to_ne_bytes(), STOP_AT)
    }
}

fn lane_at(number: usize) -> u64 {
    LANES_AT + (number * LANE) as u64
}
