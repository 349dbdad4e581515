//! The rings that a recorded process writes its records to, one lane for each of its threads.
//!
//! The shared memory is read and written through its file, not mapped: a read copies a whole
//! stretch of a lane at the cost of one system call, and there is no memory here that another
//! process changes. A lane belongs to one writer; `head` is how many words it has written, `tail`
//! how many were read. What lies between the two is complete records. A head that is just being
//! written may be copied in two halves, so it is read until two readings agree.
//!
//! Beside the head a writer has the number of events that it has had, recorded or not; and there is
//! one of events of threads without a lane. The helper writes how many events are in its file: so the
//! program can say what is lost if the helper dies.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

// The same numbers are in runtime.c.
const LANES: usize = 128;
const WORDS: u64 = 1 << 17;
const DATA: u64 = 1 << 16;
const COUNT: u64 = 1 << 15;
const OTHERS: u64 = COUNT + 128;
const SAVED: u64 = COUNT + 256;
/// The bytes of a lane's head, events and tail, and where the last two are among them.
const LANE: u64 = 128;
const EVENTS: u64 = 8;
const TAIL: u64 = 64;

/// How many events the threads of a process have had, as they count them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// By lane.
    pub(crate) lanes: Vec<u64>,
    /// Those of threads without a lane.
    pub(crate) others: u64,
}

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
        let read = || {
            let mut bytes = [0; 8];
            self.memory.read_exact_at(&mut bytes, at)?;
            io::Result::Ok(u64::from_ne_bytes(bytes))
        };
        agreed(read)
    }

    /// How far each thread has written, of those that have written so far.
    pub(crate) fn heads(&mut self) -> io::Result<Vec<u64>> {
        let count = self.number(COUNT)?.min(LANES as u64) as usize;
        self.tails.resize(count.max(self.tails.len()), 0);
        (0..self.tails.len()).map(|lane| self.number(lane as u64 * LANE)).collect()
    }

    /// What the threads have counted. Read behind their records, it is no less than these.
    pub(crate) fn counted(&self) -> io::Result<Counted> {
        let lanes = 0..self.tails.len() as u64;
        let lanes = lanes.map(|lane| self.number(lane * LANE + EVENTS)).collect::<io::Result<_>>()?;
        Ok(Counted { lanes, others: self.number(OTHERS)? })
    }

    /// Shows the program how many events are in the file.
    pub(crate) fn set_saved(&self, events: u64) -> io::Result<()> {
        self.memory.write_all_at(&events.to_ne_bytes(), SAVED)
    }

    /// Appends the words of a lane that were not taken yet, up to a head that was read, and returns
    /// whether there were any.
    pub(crate) fn take(&mut self, lane: usize, head: u64, words: &mut Vec<i64>) -> io::Result<bool> {
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
        self.memory.write_all_at(&head.to_ne_bytes(), lane as u64 * LANE + TAIL)?;
        Ok(true)
    }
}

/// What two readings in a row agree on.
pub(crate) fn agreed<E>(mut read: impl FnMut() -> Result<u64, E>) -> Result<u64, E> {
    let mut value = read()?;
    loop {
        let again = read()?;
        if again == value {
            return Ok(value);
        }
        value = again;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn half_of_a_number_is_read_again() {
        let mut readings = [0x1_0000_ffff, 0x1_0001_0000, 0x1_0001_0007, 0x1_0001_0007].into_iter();
        assert_eq!(agreed(|| readings.next().ok_or(())), Ok(0x1_0001_0007));
    }

    #[test]
    fn words_are_taken_up_to_the_head_that_was_read() {
        let memory = tempfile::tempfile().unwrap();
        memory.set_len(DATA + WORDS * 8).unwrap();
        let set = |at: u64, value: u64| memory.write_all_at(&value.to_ne_bytes(), at).unwrap();
        set(COUNT, 1);
        set(0, 3);
        for word in 0..5 {
            set(DATA + word * 8, word);
        }
        let mut rings = Rings::new(memory.try_clone().unwrap());
        let first = rings.heads().unwrap();
        set(0, 5);
        let mut words = Vec::new();
        assert!(rings.take(0, first[0], &mut words).unwrap());
        assert!(!rings.take(0, first[0], &mut words).unwrap());
        assert_eq!(words, [0, 1, 2]);
        let second = rings.heads().unwrap();
        assert!(rings.take(0, second[0], &mut words).unwrap());
        assert_eq!(words, [0, 1, 2, 3, 4]);
        set(EVENTS, 9);
        set(OTHERS, 2);
        assert_eq!(rings.counted().unwrap(), Counted { lanes: vec![9], others: 2 });
    }
}
