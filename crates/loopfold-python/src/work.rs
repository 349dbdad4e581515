//! Executes work in a thread of its own, while this one waits: without the lock of the interpreter,
//! with a look at signals and progress every 50 ms.
//!
//! Work that does not notice an interrupt continues to its end in its thread, and its result is
//! dropped; the caller gets the exception at once.

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
    std::thread::Builder::new().name("loopfold".to_string()).spawn(move || {
        // Nobody waits any more if the caller was interrupted.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    })?;
    let started = Instant::now();
    let mut reported = false;
    let outcome = loop {
        let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(STEP);
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
    if let Some(report) = report.filter(|_| reported) {
        report.call1((py.None(),))?;
    }
    outcome
}
