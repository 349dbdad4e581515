//! Executes work in a thread of its own, while this one waits: without the lock of the interpreter,
//! with a look at signals and progress every 50 ms.
//!
//! A signal interrupts the work (`loopfold::interrupt`), and its exception is raised when the thread
//! has ended: then no thread of the library works on, and nothing that it held is in use. A second
//! signal does not wait, for work that never polls, such as opening a pipe that nobody writes to.

use crate::errors;
use loopfold_cli::Progress;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often signals are looked at.
const STEP: Duration = Duration::from_millis(50);
/// What takes no longer shows no progress.
const PATIENCE: Duration = Duration::from_millis(500);

/// Executes `work`; `report` is called with the name of the phase, what is done, and the total or
/// `None`, if it takes long, and with `None` at the end.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    report: Option<&Bound<'_, PyAny>>,
    progress: &Arc<Progress>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let shared = Arc::clone(progress);
    let thread = std::thread::Builder::new().name("loopfold".to_string()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| shared.interruptible(work)));
        let outcome = outcome.map(|outcome| outcome.unwrap_or_else(|error| Err(errors::of_library(error))));
        // Nobody listens if the caller was interrupted.
        let _ = sender.send(outcome);
    })?;
    let started = Instant::now();
    let mut reported = false;
    let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(STEP);
    let outcome = loop {
        match py.detach(wait) {
            Ok(Ok(outcome)) => break outcome,
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                break Err(errors::Error::new_err("an internal error; please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            progress.interrupt();
            break Err(signal);
        }
        if let Some(report) = report.filter(|_| started.elapsed() > PATIENCE) {
            reported = true;
            if let Err(error) = report.call1((progress.state(),)) {
                progress.interrupt();
                break Err(error);
            }
        }
    };
    let mut second = Ok(());
    while progress.is_interrupted() && !thread.is_finished() && second.is_ok() {
        // The result, which nobody wants any more, or the end.
        let _ = py.detach(wait);
        second = py.check_signals();
    }
    if second.is_ok() {
        let _ = py.detach(|| thread.join());
    }
    if let Some(report) = report.filter(|_| reported) {
        report.call1((py.None(),))?;
    }
    second.and(outcome)
}
