//! Segments and samples as arrays of numpy.

use crate::errors;
use loopfold::Fold;
use numpy::IntoPyArray as _;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The segments; the events of all are one array of symbols, with the offset at which each begins.
pub(crate) fn segments<'py>(py: Python<'py>, fold: &Fold) -> PyResult<Bound<'py, PyDict>> {
    let all = py.detach(|| fold.segments()).map_err(errors::of_library)?;
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
pub(crate) fn sample<'py>(py: Python<'py>, fold: &Fold, steady_state: u64) -> PyResult<Bound<'py, PyDict>> {
    let (all, symbols) = py
        .detach(|| {
            let all = fold.sample(steady_state)?;
            let mut symbols: Vec<u32> = Vec::new();
            for stretch in &all {
                let root = fold.stream(stretch.stream).root();
                let window = fold.window(root, stretch.start, stretch.start + stretch.length);
                symbols.extend(window.map(|symbol| symbol.raw()));
            }
            Ok((all, symbols))
        })
        .map_err(errors::of_library)?;
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
    let streams: Vec<&str> = fold.streams().iter().map(|stream| stream.name()).collect();
    columns.set_item("labels", labels)?;
    columns.set_item("streams", streams)?;
    columns.set_item("events", fold.events())
}
