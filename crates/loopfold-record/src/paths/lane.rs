//! A lane that is read while its program runs.
//!
//! The listener says up to where there is something to read ([`LaneReader::extend`]), after it has
//! taken all messages that were sent before; a worker reads it ([`LaneReader::run`]). So whatever
//! function occurs in what is read, its module is there.

use super::folding::LaneName;
use super::memory::{Lane, Memory};
use super::process::Process;
use super::session::{LaneTarget, Session};
use crate::Error;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many chunks are read before other lanes get their turn.
const TURN: usize = 64;

/// A lane of a process, in one use of it.
pub(super) struct LaneReader {
    session: Arc<Session>,
    process: Arc<Process>,
    memory: Arc<Memory>,
    number: usize,
    lane: Lane,
    /// How many chunks may be read, and whether all that follows may be.
    limit: AtomicU64,
    is_final: AtomicBool,
    /// It waits for a worker, or has one.
    is_scheduled: AtomicBool,
    reading: Mutex<Reading>,
    /// How many lanes of the process are not at their end.
    unfinished: Arc<AtomicUsize>,
}

struct Reading {
    /// `None` if nothing can be kept of it.
    target: Option<LaneTarget>,
    /// Nothing more is kept.
    is_cut: bool,
    tail: u64,
    tokens: u64,
    is_done: bool,
}

impl LaneReader {
    /// Begins to read a lane, with the functions that were open when its process began.
    pub(super) fn new(
        session: &Arc<Session>,
        process: &Arc<Process>,
        memory: &Arc<Memory>,
        (number, lane): (usize, Lane),
        open: &[u32],
        unfinished: &Arc<AtomicUsize>,
    ) -> Self {
        let target = session.lane(process, LaneName::of(process, &lane), lane.mark, open);
        let target = target.map_err(|error| session.fail(&error)).ok();
        let tail = memory.tail(number).unwrap_or(lane.head);
        unfinished.fetch_add(1, Ordering::Relaxed);
        Self {
            session: Arc::clone(session),
            process: Arc::clone(process),
            memory: Arc::clone(memory),
            number,
            lane,
            limit: AtomicU64::new(tail),
            is_final: AtomicBool::new(false),
            is_scheduled: AtomicBool::new(false),
            reading: Mutex::new(Reading { target, is_cut: false, tail, tokens: 0, is_done: false }),
            unfinished: Arc::clone(unfinished),
        }
    }

    /// Which use of the lane it is.
    pub(super) fn usage(&self) -> u32 {
        self.lane.begun
    }

    /// Up to where it may be read.
    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Says up to where it may be read, and whether that is all. Returns whether this is new.
    pub(super) fn extend(&self, head: u64, is_final: bool) -> bool {
        let before = self.limit.swap(head, Ordering::SeqCst);
        let was_final = self.is_final.fetch_or(is_final, Ordering::SeqCst);
        before < head || is_final && !was_final
    }

    /// Returns whether a worker is to be given it.
    pub(super) fn schedule(&self) -> bool {
        !self.is_scheduled.swap(true, Ordering::SeqCst)
    }

    /// Reads what may be read; true if there is more after a turn.
    pub(super) fn run(&self, tokens: &mut Vec<u32>) -> bool {
        loop {
            let has_more = self.turn(tokens);
            if has_more {
                return true;
            }
            self.is_scheduled.store(false, Ordering::SeqCst);
            // More may have been said since.
            if !self.has_work() || self.is_scheduled.swap(true, Ordering::SeqCst) {
                return false;
            }
        }
    }

    fn has_work(&self) -> bool {
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let is_final = self.is_final.load(Ordering::SeqCst);
        !reading.is_done && (is_final || reading.tail < self.limit.load(Ordering::SeqCst))
    }

    fn turn(&self, tokens: &mut Vec<u32>) -> bool {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.is_done {
            return false;
        }
        // In this order: what is there at the end is there after it.
        let is_final = self.is_final.load(Ordering::Acquire);
        let limit = match is_final {
            // The last head may have been read before the end was.
            true => self.memory.head(self.number).unwrap_or_else(|_| self.limit()),
            false => self.limit(),
        };
        let end = limit.min(reading.tail + TURN as u64);
        let read = self.read_to(&mut reading, end, tokens);
        if read.is_ok() && end < limit {
            return true;
        }
        if let Err(error) = &read {
            self.session.fail(&io::Error::new(error.kind(), error.to_string()).into());
        }
        if is_final || read.is_err() {
            self.finish(&mut reading, tokens, read.is_ok());
        } else {
            self.session.say_progress_if_awaited();
        }
        false
    }

    /// Takes complete chunks.
    fn read_to(&self, reading: &mut Reading, end: u64, tokens: &mut Vec<u32>) -> io::Result<()> {
        while reading.tail < end {
            self.memory.chunk(self.number, reading.tail, tokens)?;
            self.take(reading, tokens);
            reading.tail += 1;
            self.memory.set_tail(self.number, reading.tail)?;
        }
        Ok(())
    }

    fn take(&self, reading: &mut Reading, tokens: &[u32]) {
        let taken = match &mut reading.target {
            Some(target) if !reading.is_cut => target.chunk(tokens),
            _ => Ok(self.session.tokens_in(tokens)),
        };
        reading.tokens += taken.unwrap_or_else(|error| {
            self.session.fail(&error);
            reading.is_cut = true;
            self.session.tokens_in(tokens)
        });
    }

    /// Ends a lane that cannot be folded: what was folded of it is lost, too.
    pub(super) fn abandon(&self) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.is_done {
            return;
        }
        let name = LaneName::of(&self.process, &self.lane);
        self.session.fail(&Error::new(format!("{}: the recorder has failed", name.text())));
        reading.target = None;
        self.session.lose(Some(name.process), name.text(), reading.tokens.max(1));
        self.close(&mut reading);
    }

    /// Takes the chunk that is not complete, and compares what was written with what was read.
    fn finish(&self, reading: &mut Reading, tokens: &mut Vec<u32>, is_readable: bool) {
        if is_readable && self.memory.chunk(self.number, reading.tail, tokens).is_ok() {
            self.take(reading, tokens);
        }
        let written = self.memory.lane(self.number).map_or(0, |lane| lane.written);
        let name = LaneName::of(&self.process, &self.lane);
        self.session.end(name, reading.target.take(), written.max(reading.tokens));
        self.close(reading);
    }

    /// Nothing is read any more.
    fn close(&self, reading: &mut Reading) {
        // If the lane is lost, it is lost for the program, too.
        let _ = self.memory.set_drained(self.number, self.lane.begun);
        reading.is_done = true;
        self.unfinished.fetch_sub(1, Ordering::AcqRel);
        self.session.say_progress();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::paths::folding::Folding;
    use crate::paths::session::Target;
    use std::os::unix::fs::FileExt as _;

    /// A call in each of three chunks; the last is not complete, but its thread has ended.
    fn written() -> Arc<Memory> {
        let file = tempfile::tempfile().unwrap();
        file.set_len((1 << 18) + (1 << 20)).unwrap();
        let set = |at: u64, word: u32| file.write_all_at(&word.to_ne_bytes(), at).unwrap();
        set(8, 1);
        for (at, word) in [(0, 2), (8, 1), (12, 1), (32, 9)] {
            set(4096 + at, word);
        }
        for chunk in 0..3 {
            for (at, token) in [(0, 0x8000_0000), (4, 1), (8, u32::MAX)] {
                set((1 << 18) + (chunk << 16) + at, token);
            }
        }
        Arc::new(Memory::new(file))
    }

    /// A reader of it that knows what there was before the first chunk was complete.
    fn reader() -> LaneReader {
        let session = Arc::new(Session::new(Target::Fold(Folding::new(None, None)), None).unwrap());
        let (process, memory) = (Arc::new(Process::new(0, String::new())), written());
        let lane = Lane { head: 0, ..memory.lanes().unwrap()[0] };
        LaneReader::new(&session, &process, &memory, (0, lane), &[], &Arc::default())
    }

    #[test]
    fn chunks_that_were_complete_after_the_head_was_read_are_read() {
        let reader = reader();
        reader.extend(0, true);
        assert!(!reader.run(&mut Vec::new()));
        assert_eq!(*reader.session.losses(), []);
        assert_eq!(reader.unfinished.load(Ordering::Relaxed), 0);
        let Target::Fold(folding) = &reader.session.target else { panic!("it folds") };
        assert_eq!(folding.finish().unwrap().fold.streams().len(), 1);
    }

    #[test]
    fn a_lane_that_cannot_be_folded_ends() {
        let reader = reader();
        reader.abandon();
        assert_eq!(reader.unfinished.load(Ordering::Relaxed), 0);
        assert!(reader.session.is_stopped());
        assert!(reader.session.losses()[0].is_at_least);
    }
}
