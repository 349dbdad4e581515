//! What all parts of a recording share: where tokens go, and what was lost.
//!
//! The program counts the tokens that it writes to each lane and those that it throws away; the
//! recorder counts what it has folded or spooled. Both are compared when a lane ends
//! ([`Session::end`]) and when a process does ([`Session::end_process`]).

use super::counters::Counter;
use super::folding::{Folding, LaneName, LiveLane, locked};
use super::memory::{Lane, Memory};
use super::process::Process;
use super::spool::{Spool, SpooledLane};
use crate::{Error, Result};
use loopfold::Fold;
use loopfold::fold::RecordedStream;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is done with the tokens.
#[derive(Debug)]
pub(super) enum Target {
    Fold(Folding),
    Spool(Arc<Spool>),
}

/// Events that a program has produced and that are not in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The stream, or the process if it is not known which.
    pub of: String,
    /// How many events are missing, and how many were produced in all.
    pub missing: u64,
    /// See `missing`; `None` if it is not known.
    pub produced: Option<u64>,
    /// More may be missing.
    pub is_at_least: bool,
}

impl Loss {
    /// What the streams of a recording lack.
    pub(super) fn of_all(recorded: &Fold) -> Vec<Self> {
        let incomplete = recorded.recorded_streams().into_iter().filter(RecordedStream::is_incomplete);
        let loss = |RecordedStream { name, counted, is_unfinished, .. }| Self {
            of: name,
            missing: counted.missing,
            produced: (!is_unfinished).then_some(counted.produced),
            is_at_least: is_unfinished,
        };
        incomplete.map(loss).collect()
    }
}

/// A recording that has not ended.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) target: Target,
    /// What is counted for every path instead of cycles.
    counter: Option<Counter>,
    /// Tokens are wanted no longer.
    is_stopped: AtomicBool,
    problems: Mutex<Vec<String>>,
    losses: Mutex<Vec<Loss>>,
    /// Readable when a lane has come to something that the listener waits for.
    progress: OwnedFd,
    /// Lanes wait for what others come to.
    is_awaited: AtomicBool,
}

impl Session {
    pub(super) fn new(target: Target, counter: Option<Counter>) -> Result<Self> {
        let progress = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(Error::new)?;
        let (problems, losses) = Default::default();
        let (is_stopped, is_awaited) = Default::default();
        Ok(Self { target, counter, is_stopped, problems, losses, progress, is_awaited })
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// What becomes readable with [`Self::say_progress`].
    pub(super) fn progress(&self) -> BorrowedFd<'_> {
        self.progress.as_fd()
    }

    pub(super) fn say_progress(&self) {
        // If the number is too large, the listener has been woken already.
        let _ = rustix::io::write(&self.progress, &1u64.to_ne_bytes());
    }

    pub(super) fn set_awaited(&self, is_awaited: bool) {
        self.is_awaited.store(is_awaited, Ordering::SeqCst);
    }

    pub(super) fn say_progress_if_awaited(&self) {
        if self.is_awaited.load(Ordering::SeqCst) {
            self.say_progress();
        }
    }

    pub(super) fn take_progress(&self) {
        let _ = rustix::io::read(&self.progress, &mut [0; 8]);
    }

    /// What went wrong so far, each once.
    pub(super) fn problems(&self) -> MutexGuard<'_, Vec<String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, problem: String) {
        let mut problems = self.problems();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Nothing more can be kept: the program goes on without being recorded.
    pub(super) fn fail(&self, error: &Error) {
        self.note(format!("{error}; the rest is not recorded"));
        self.stop();
    }

    /// The counter that was asked for is not there.
    pub(super) fn leave_out_counter(&self, error: &std::io::Error) {
        if let (Some(counter), Target::Fold(folding)) = (self.counter, &self.target) {
            folding.leave_out_metric();
            self.note(counter.missing(error));
        }
    }

    /// So many events are lost, or more. Where it is not known which process they are of, the archive has
    /// them as those of the first.
    pub(super) fn lose(&self, process: Option<usize>, of: String, missing: u64) {
        match &self.target {
            Target::Fold(folding) => folding.lose(process.unwrap_or(0), missing),
            Target::Spool(spool) => spool.lose(process.unwrap_or(0), missing),
        }
        self.losses().push(Loss { of, missing, produced: None, is_at_least: true });
    }

    /// What is lost so far, in the order in which it was found.
    pub(super) fn losses(&self) -> MutexGuard<'_, Vec<Loss>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether lanes of copies need the functions that were open when they began.
    pub(super) fn needs_open(&self) -> bool {
        matches!(self.target, Target::Fold(_))
    }

    /// How many tokens a chunk has.
    pub(super) fn tokens_in(&self, chunk: &[u32]) -> u64 {
        let is_timed = match &self.target {
            Target::Fold(folding) => folding.is_timed(),
            Target::Spool(spool) => spool.is_timed(),
        };
        let step = 1 + usize::from(is_timed);
        chunk.iter().step_by(step).take_while(|&&token| token != 0).count() as u64
    }

    /// Begins a lane, with the functions that were open when its process began.
    pub(super) fn lane(
        &self,
        process: &Arc<Process>,
        name: LaneName,
        mark: u32,
        open: &[u32],
    ) -> Result<LaneTarget> {
        match &self.target {
            Target::Fold(folding) => Ok(LaneTarget::Folded(folding.live_lane(process, name, open)?)),
            Target::Spool(spool) => Ok(LaneTarget::Spooled(Box::new(spool.lane(name, mark)?))),
        }
    }

    /// Ends a lane that has so many tokens, of which the target may have fewer.
    pub(super) fn end(&self, name: LaneName, target: Option<LaneTarget>, tokens: u64) {
        // What the program does after that is not recorded.
        let is_unfinished = self.is_stopped();
        let missing = tokens - target.as_ref().map_or(0, LaneTarget::tokens).min(tokens);
        let produced = match (&self.target, target) {
            (Target::Fold(folding), Some(LaneTarget::Folded(lane))) => {
                Some(folding.end_live(&lane, missing, is_unfinished))
            }
            (_, Some(LaneTarget::Spooled(lane))) => {
                lane.end(tokens, is_unfinished).unwrap_or_else(|error| self.fail(&error));
                None
            }
            _ => Some(missing),
        };
        if missing > 0 {
            self.losses().push(Loss { of: name.text(), missing, produced, is_at_least: false });
        }
    }

    /// All lanes of a process were read: says what it could not write. Of a memory of another version
    /// little is known, and nothing was read.
    pub(super) fn end_process(&self, number: usize, memory: &Memory, is_refused: bool) {
        let thrown = memory.thrown().unwrap_or(0);
        let of = format!("process {}", number + 1);
        if is_refused {
            return self.lose(Some(number), of, thrown.max(1));
        }
        let missed = memory.missed().unwrap_or(0);
        if missed > 0 {
            self.note(format!(
                "{missed} threads were not recorded, or not to their end: there were too many at once, or too \
                 little memory"
            ));
        }
        let gave_up = memory.gave_up().unwrap_or(false);
        if gave_up {
            self.note("events were thrown away, as nothing was read for a minute".to_string());
        }
        if let Ok(unnamed @ 1..) = memory.unnamed() {
            self.note(format!("{unnamed} modules could not be described: their functions are shown as ?"));
        }
        let missing = thrown.max(missed.into()).max(gave_up.into());
        if missing > 0 {
            self.lose(Some(number), of, missing);
        }
    }
}

/// Where the tokens of a lane go.
pub(super) enum LaneTarget {
    Folded(Arc<LiveLane>),
    Spooled(Box<SpooledLane>),
}

impl LaneTarget {
    /// Takes a chunk up to its first 0; returns how many tokens it has.
    pub(super) fn chunk(&mut self, tokens: &[u32]) -> Result<u64> {
        match self {
            Self::Folded(lane) => match &mut *locked(lane) {
                Some(lane) => lane.chunk(tokens),
                None => Err(Error::new("a lane has ended before")),
            },
            Self::Spooled(lane) => lane.chunk(tokens),
        }
    }

    /// How many it has taken.
    fn tokens(&self) -> u64 {
        match self {
            Self::Folded(lane) => locked(lane).as_ref().map_or(0, |lane| lane.tokens()),
            Self::Spooled(lane) => lane.tokens(),
        }
    }
}

impl LaneName {
    pub(super) fn of(process: &Process, lane: &Lane) -> Self {
        Self { process: process.number, thread: lane.thread, level: lane.level, usage: lane.begun }
    }
}
