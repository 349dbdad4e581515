//! Questions: the arguments of a command, and what it would print.

use crate::{errors, expand, segments, work};
use loopfold::Fold;
use loopfold_cli::{Asker, Progress};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

/// What can be asked: inputs that the arguments name, or a fold in memory.
#[pyclass(frozen, module = "loopfold._native")]
pub(crate) struct Native {
    /// `None` once it is closed.
    asker: Mutex<Option<Asker>>,
    fold: Mutex<Option<Arc<Fold>>>,
}

impl Native {
    pub(crate) fn of_fold(fold: Fold) -> Self {
        let fold = Arc::new(fold);
        Self { asker: Mutex::new(Some(Asker::of_fold(Arc::clone(&fold)))), fold: Mutex::new(Some(fold)) }
    }

    fn asker(&self) -> PyResult<Asker> {
        let asker = self.asker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        asker.ok_or_else(|| PyValueError::new_err("the trace is closed"))
    }

    /// The fold that the arguments of `cat` or `loops` select.
    fn fold(
        &self,
        py: Python<'_>,
        arguments: Vec<OsString>,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<Fold>> {
        let asker = self.asker()?;
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        work::run(py, report, &progress, move || {
            let fold = asker.fold(&arguments, &shared).map_err(|error| errors::of_command(&error))?;
            Ok(Arc::new(fold))
        })
    }

    /// The same, without a copy if it is the whole fold in memory as it is.
    fn whole(
        &self,
        py: Python<'_>,
        arguments: Option<Vec<OsString>>,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<Fold>> {
        self.asker()?;
        let kept = self.fold.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (kept, arguments) {
            (Some(fold), None) => Ok(fold),
            (None, None) => Err(PyValueError::new_err("the trace is closed")),
            (_, Some(arguments)) => self.fold(py, arguments, report),
        }
    }
}

#[pymethods]
impl Native {
    /// Asks about files.
    #[new]
    fn new() -> Self {
        Self { asker: Mutex::new(Some(Asker::new())), fold: Mutex::new(None) }
    }

    /// What a command prints, its notes, and whether something was found.
    #[pyo3(signature = (arguments, width, report=None))]
    fn ask<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<OsString>,
        width: usize,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<String>, bool)> {
        let asker = self.asker()?;
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let answer = work::run(py, report, &progress, move || {
            asker.ask(&arguments, width, &shared).map_err(|error| errors::of_command(&error))
        })?;
        Ok((PyBytes::new(py, &answer.output), answer.notes, answer.found))
    }

    /// The events as an array or a list; `arguments` are those of `cat`, or `None` for the whole of
    /// a fold in memory.
    #[pyo3(signature = (arguments, dtype=None, out=None, report=None))]
    fn expand<'py>(
        &self,
        py: Python<'py>,
        arguments: Option<Vec<OsString>>,
        dtype: Option<&str>,
        out: Option<&Bound<'py, PyAny>>,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fold = self.whole(py, arguments, report)?;
        expand::expand(py, &fold, dtype, out)
    }

    /// The segments of the streams that the arguments of `loops` select.
    #[pyo3(signature = (arguments, report=None))]
    fn segments<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<OsString>,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fold = self.fold(py, arguments, report)?;
        segments::segments(py, &fold, report)
    }

    /// The first iterations of each loop, with weights for the others.
    #[pyo3(signature = (arguments, steady_state, report=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<OsString>,
        steady_state: u64,
        report: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fold = self.fold(py, arguments, report)?;
        segments::sample(py, &fold, steady_state, report)
    }

    /// Forgets what is kept; every later call is an error.
    fn close(&self) {
        self.asker.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.fold.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Whether it is closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.asker.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}
