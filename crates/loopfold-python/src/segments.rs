//! Segments and samples as arrays of numpy.

use crate::{errors, work};
use loopfold::Fold;
use loopfold_cli::Progress;
use numpy::IntoPyArray as _;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The segments; the events of all are one array of symbols, with the offset at which each begins.
pub(crate) fn segments<'py>(
    py: Python<'py>,
    fold: &Arc<Fold>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let shared = Arc::clone(fold);
    let all = work::run(py, report, &Arc::new(Progress::default()), move || {
        shared.segments().map_err(errors::of_library)
    })?;
    let columns = PyDict::new(py);
    let mut offsets: Vec<i64> = vec![0];
    let mut symbols: Vec<u32> = Vec::new();
    for segment in &all {
        symbols.extend(segment.events.iter().map(|symbol| symbol.raw()));
        offsets.push(symbols.len() as i64);
    }
    let column =
        |of: fn(&loopfold::questions::segments::Segment) -> u64| -> Vec<u64> { all.iter().map(of).collect() };
    columns.set_item("stream", column(|it| it.stream.index() as u64).into_pyarray(py))?;
    columns.set_item("start", column(|it| it.start).into_pyarray(py))?;
    columns.set_item("length", column(|it| it.events.len() as u64).into_pyarray(py))?;
    columns.set_item("depth", column(|it| it.depth.into()).into_pyarray(py))?;
    columns.set_item("times", column(|it| it.times).into_pyarray(py))?;
    columns.set_item("weight", column(|it| it.weight()).into_pyarray(py))?;
    columns.set_item("offsets", offsets.into_pyarray(py))?;
    columns.set_item("symbols", symbols.into_pyarray(py))?;
    describe(&columns, fold)?;
    Ok(columns)
}

/// The stretches of a sample, with their events.
pub(crate) fn sample<'py>(
    py: Python<'py>,
    fold: &Arc<Fold>,
    steady_state: u64,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let shared = Arc::clone(fold);
    let (all, symbols) = work::run(py, report, &Arc::new(Progress::default()), move || {
        let all = shared.sample(steady_state).map_err(errors::of_library)?;
        let mut symbols: Vec<u32> = Vec::new();
        for stretch in &all {
            let root = shared.stream(stretch.stream).root();
            let window = shared.window(root, stretch.start, stretch.start + stretch.length);
            symbols.extend(window.map(|symbol| symbol.raw()));
        }
        Ok((all, symbols))
    })?;
    let columns = PyDict::new(py);
    let column =
        |of: fn(&loopfold::questions::segments::Stretch) -> u64| -> Vec<u64> { all.iter().map(of).collect() };
    columns.set_item("stream", column(|it| it.stream.index() as u64).into_pyarray(py))?;
    columns.set_item("start", column(|it| it.start).into_pyarray(py))?;
    columns.set_item("length", column(|it| it.length).into_pyarray(py))?;
    columns.set_item("weight", column(|it| it.weight).into_pyarray(py))?;
    columns.set_item("symbols", symbols.into_pyarray(py))?;
    describe(&columns, fold)?;
    Ok(columns)
}

/// What symbols and streams stand for.
fn describe(columns: &Bound<'_, PyDict>, fold: &Fold) -> PyResult<()> {
    let labels: Vec<String> = fold.alphabet().symbols().map(|symbol| fold.alphabet().label(symbol)).collect();
    let streams: Vec<&str> = fold.streams().iter().map(|stream| stream.name().raw()).collect();
    columns.set_item("labels", labels)?;
    columns.set_item("streams", streams)?;
    columns.set_item("events", fold.events())
}
