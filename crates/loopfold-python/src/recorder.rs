//! Takes events from Python code and folds them while they come.

use crate::asker::Native;
use crate::events::{default_threads, folder_called, symbol_of};
use crate::interned::Interned;
use crate::{errors, work};
use loopfold::StreamId;
use loopfold::folders::Folding;
use loopfold::trace::{Projection, Sink as _, TimesKept, Timing};
use loopfold_cli::Progress;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct State {
    folding: Folding,
    interned: Interned,
    streams: HashMap<String, StreamId>,
    events: u64,
}

/// A recorder of events.
#[pyclass(frozen, module = "loopfold._native")]
pub(crate) struct NativeRecorder(Mutex<Option<State>>);

/// A folding that takes events as they are, with their times.
pub(crate) fn folding(folder: &str, threads: Option<usize>) -> PyResult<Folding> {
    let folder = folder_called(folder)?;
    let threads = threads.unwrap_or_else(default_threads);
    Folding::with(folder, Projection::default(), TimesKept::All, threads).map_err(errors::of_library)
}

impl NativeRecorder {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the recorder has ended; make another one")
}

#[pymethods]
impl NativeRecorder {
    #[new]
    fn new(folder: &str, threads: Option<usize>) -> PyResult<Self> {
        let folding = folding(folder, threads)?;
        let state = State { folding, interned: Interned::default(), streams: HashMap::new(), events: 0 };
        Ok(Self(Mutex::new(Some(state))))
    }

    /// Appends an event to a stream; times are nanoseconds.
    #[pyo3(signature = (event, stream="main", start=None, duration=None))]
    fn push(
        &self,
        event: &Bound<'_, PyAny>,
        stream: &str,
        start: Option<i64>,
        duration: Option<i64>,
    ) -> PyResult<()> {
        let mut state = self.state();
        let state = state.as_mut().ok_or_else(ended)?;
        let symbol = symbol_of(event, &mut state.folding, &mut state.interned, state.events)?;
        let id = match state.streams.get(stream) {
            Some(&id) => id,
            None => {
                let id = state.folding.stream(stream).map_err(errors::of_library)?;
                state.streams.insert(stream.to_string(), id);
                id
            }
        };
        let timing = Timing { start, duration, ..Timing::UNKNOWN };
        state.folding.push(id, symbol, timing).map_err(errors::of_library)?;
        state.events += 1;
        Ok(())
    }

    /// Events so far.
    #[getter]
    fn events(&self) -> u64 {
        self.state().as_ref().map_or(0, |state| state.events)
    }

    /// The fold of all events.
    #[pyo3(signature = (report=None))]
    fn finish(&self, py: Python<'_>, report: Option<&Bound<'_, PyAny>>) -> PyResult<Native> {
        let state = self.state().take().ok_or_else(ended)?;
        let progress = Arc::new(Progress::default());
        progress.begin("folding", None);
        let fold =
            work::run(py, report, &progress, move || state.folding.finish().map_err(errors::of_library))?;
        Ok(Native::of_fold(fold))
    }
}
