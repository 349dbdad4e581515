//! The call of a library that a thread is executing, if it is not the command that is executed: what
//! would be printed is kept, progress is reported instead of drawn, and whoever called may interrupt.
//!
//! It belongs to the thread, so that commands need no further argument and several threads can ask
//! at once. Threads that a command starts for itself have none, and print nothing.

use crate::input::Kept;
use anyhow::Result;
use loopfold::Fold;
use loopfold::interrupt::Interrupt;
use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How far a call is; shared with the thread that waits for it, which may also interrupt it.
#[derive(Debug, Default)]
pub struct Progress {
    interrupt: Interrupt,
    done: AtomicU64,
    /// 0 if it is not known.
    total: AtomicU64,
    phase: Mutex<&'static str>,
}

impl Progress {
    /// Ends the call soon, in all its threads: reading, folding, questions and writing poll for it.
    pub fn interrupt(&self) {
        self.interrupt.request();
    }

    /// Does some work that [`Progress::interrupt`] ends, with an error of the kind
    /// [`Interrupted`](loopfold::ErrorKind::Interrupted).
    pub fn interruptible<T>(&self, work: impl FnOnce() -> T) -> loopfold::Result<T> {
        self.interrupt.catch(|| Ok(work()))
    }

    /// True after [`Progress::interrupt`].
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// What is being done, such as `reading`; bytes or events that are done, and how many there are
    /// in all if that is known.
    pub fn state(&self) -> (&'static str, u64, Option<u64>) {
        let phase = *self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let total = self.total.load(Ordering::Relaxed);
        (phase, self.done.load(Ordering::Relaxed), (total > 0).then_some(total))
    }

    /// Begins something.
    pub fn begin(&self, phase: &'static str, total: Option<u64>) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }

    /// How much of it is done.
    pub fn advance_to(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }
}

/// The call of a thread.
pub(crate) struct Call {
    pub(crate) progress: Arc<Progress>,
    pub(crate) kept: Option<Arc<Kept>>,
    /// What takes the place of every input.
    pub(crate) fold: Option<Arc<Fold>>,
    /// The width of lines of text.
    pub(crate) width: usize,
    pub(crate) output: Vec<u8>,
    pub(crate) notes: Vec<String>,
}

thread_local! {
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// Does something in a call that may be interrupted, and returns the call with what was printed.
pub(crate) fn within<T>(call: Call, work: impl FnOnce() -> Result<T>) -> (Result<T>, Call) {
    let progress = Arc::clone(&call.progress);
    let before = CALL.replace(Some(call));
    let result = progress.interruptible(work).unwrap_or_else(|error| Err(error.into()));
    let call = CALL.replace(before).unwrap_or_else(|| Call {
        progress,
        kept: None,
        fold: None,
        width: 0,
        output: Vec::new(),
        notes: Vec::new(),
    });
    (result, call)
}

/// Something of the call of this thread, if there is one.
pub(crate) fn with<T>(take: impl FnOnce(&mut Call) -> T) -> Option<T> {
    CALL.with_borrow_mut(|call| call.as_mut().map(take))
}

/// True in a call.
pub(crate) fn is_one() -> bool {
    with(|_| ()).is_some()
}

/// Writes to the output that the call of this thread keeps.
pub(crate) struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_interrupted = with(|call| {
            call.output.extend_from_slice(bytes);
            call.progress.is_interrupted()
        });
        if is_interrupted == Some(true) { Err(io::Error::other("interrupted")) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
