//! The rings that a recorded process writes its records to, one lane for each of its threads.
//!
//! The shared memory is read and written through its file, not mapped: a read copies a whole
//! stretch of a lane at the cost of one system call, and there is no memory here that another
//! process changes. A lane belongs to one writer; `head` is how many words it has written, `tail`
//! how many were read. What lies between the two is complete records.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

// The same numbers are in runtime.c.
const LANES: usize = 128;
const WORDS: u64 = 1 << 17;
const DATA: u64 = 1 << 16;
const COUNT: u64 = 1 << 15;
/// The bytes of a lane's head and tail, and where the tail is among them.
const LANE: u64 = 128;
const TAIL: u64 = 64;

/// The rings of a process.
#[derive(Debug)]
pub(crate) struct Rings {
    memory: File,
    tails: Vec<u64>,
    bytes: Vec<u8>,
}

impl Rings {
    pub(crate) fn new(memory: File) -> Self {
        Self { memory, tails: Vec::new(), bytes: Vec::new() }
    }

    fn number(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// How many threads have written so far.
    pub(crate) fn lanes(&mut self) -> io::Result<usize> {
        let count = self.number(COUNT)?.min(LANES as u64) as usize;
        self.tails.resize(count.max(self.tails.len()), 0);
        Ok(self.tails.len())
    }

    /// Appends the words of a lane that were not taken yet, and returns whether there were any.
    pub(crate) fn take(&mut self, lane: usize, words: &mut Vec<i64>) -> io::Result<bool> {
        let base = lane as u64 * LANE;
        let head = self.number(base)?;
        let tail = self.tails[lane];
        let count = head.wrapping_sub(tail);
        if count == 0 || count > WORDS {
            return Ok(false);
        }
        let data = DATA + lane as u64 * WORDS * 8;
        let first = count.min(WORDS - tail % WORDS);
        for (from, count) in [(tail % WORDS, first), (0, count - first)] {
            self.bytes.resize(count as usize * 8, 0);
            self.memory.read_exact_at(&mut self.bytes, data + from * 8)?;
            let (cells, _) = self.bytes.as_chunks();
            words.extend(cells.iter().map(|&cell| i64::from_ne_bytes(cell)));
        }
        self.tails[lane] = head;
        self.memory.write_all_at(&head.to_ne_bytes(), base + TAIL)?;
        Ok(true)
    }
}
