//! Unfolds a stream to an array of the integers it was made of, or to a list of texts.
//!
//! Loops are copied, not unfolded again, so an array is written about as fast as one is copied; on
//! several threads where the stream is long. Signals are looked at between pieces of it.

use crate::errors;
use crate::events::{DTYPE_NOTE, default_threads, with_integer};
use crate::interned::Integer;
use loopfold::emit::Text;
use loopfold::fold::FoldedStream;
use loopfold::trace::{Name, Role};
use loopfold::{Fold, Symbol};
use numpy::{
    Element, PyArray1, PyArrayMethods as _, PyReadwriteArray1, PyUntypedArray, PyUntypedArrayMethods as _,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::sync::Arc;

/// Streams that are not longer are unfolded by one thread.
const LONG: usize = 1 << 20;
/// Events between two looks at signals: some tenths of a second.
const PIECE: usize = 1 << 26;

/// The events of the only stream.
pub(crate) fn expand<'py>(
    py: Python<'py>,
    fold: &Arc<Fold>,
    dtype: Option<&str>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let [stream] = fold.streams() else {
        let count = fold.streams().len();
        return Err(PyValueError::new_err(format!(
            "there are {count} streams; choose one with stream=, by its name or its number in streams()"
        )));
    };
    let Some(values) = integers(fold) else {
        if dtype.is_some() || out.is_some() {
            return Err(PyTypeError::new_err("the events are not integers; expand() gives them as a list"));
        }
        return texts(py, fold, stream);
    };
    let dtype = dtype.map_or_else(|| own_dtype(stream, &values), str::to_string);
    with_integer!(dtype.as_str(), T => numbers::<T>(py, fold, &values, &dtype, out))
}

/// The integers that the symbols stand for; none if some stand for something else.
fn integers(fold: &Fold) -> Option<Vec<i128>> {
    let alphabet = fold.alphabet();
    let value = |symbol| {
        let meaning = alphabet.meaning(symbol);
        let is_plain = meaning.role == Role::Plain && meaning.fields.is_empty();
        match meaning.name {
            Name::Integer(number) if is_plain => Some(i128::from(number)),
            Name::Text(text) if is_plain => negative(text),
            _ => None,
        }
    };
    alphabet.symbols().map(value).collect()
}

/// A negative integer as text, as an array of signed integers has it.
fn negative(text: &[u8]) -> Option<i128> {
    let value: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (value < 0 && text.first() == Some(&b'-')).then(|| i128::from(value))
}

/// The type that the integers had.
fn own_dtype(stream: &FoldedStream, values: &[i128]) -> String {
    if let Some(noted) = stream.note(DTYPE_NOTE) {
        return noted.raw().to_string();
    }
    let of_format = match stream.note("format").map(Text::raw) {
        Some("u8" | "bytes") => Some("uint8"),
        Some("u16") => Some("uint16"),
        Some("u32") => Some("uint32"),
        _ => None,
    };
    let signed = values.iter().any(|&value| value < 0);
    of_format.unwrap_or(if signed { "int64" } else { "uint64" }).to_string()
}

fn numbers<'py, T: Integer + Element + Sync>(
    py: Python<'py>,
    fold: &Arc<Fold>,
    values: &[i128],
    dtype: &str,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let of_symbols: Option<Vec<T>> = values.iter().map(|&value| T::narrow(value)).collect();
    let misfit = || PyValueError::new_err(format!("some events do not fit in {dtype}; choose another dtype"));
    let of_symbols = of_symbols.ok_or_else(misfit)?;
    let root = fold.streams()[0].root();
    let length = usize::try_from(fold.length(root))
        .map_err(|_| errors::Error::new_err("the stream is longer than memory; select a window"))?;
    if let Some(out) = out {
        let mut borrowed = writable::<T>(out, length, dtype)?;
        let slice = borrowed.as_slice_mut().map_err(|_| not_contiguous())?;
        fill(py, fold, slice, &of_symbols)?;
        return Ok(out.clone());
    }
    if u64::try_from(isize::MAX)
        .is_ok_and(|most| (length as u64).saturating_mul(size_of::<T>() as u64) > most)
    {
        return Err(errors::Error::new_err("the stream is longer than memory; select a window"));
    }
    // SAFETY: every element is written below, or the array is dropped, before anybody can see it.
    let array = unsafe { PyArray1::<T>::new(py, length, false) };
    {
        // SAFETY: nobody else has the array yet.
        let slice = unsafe { array.as_slice_mut() }.map_err(|_| not_contiguous())?;
        fill(py, fold, slice, &of_symbols)?;
    }
    Ok(array.into_any())
}

fn not_contiguous() -> PyErr {
    PyValueError::new_err("out is not contiguous; numpy.empty() makes an array that is")
}

/// The array to write to, checked.
fn writable<'py, T: Element>(
    out: &Bound<'py, PyAny>,
    length: usize,
    dtype: &str,
) -> PyResult<PyReadwriteArray1<'py, T>> {
    let untyped =
        out.cast::<PyUntypedArray>().map_err(|_| PyTypeError::new_err("out is not an array of numpy"))?;
    let Ok(array) = out.cast::<PyArray1<T>>() else {
        let has = untyped.dtype();
        return Err(PyTypeError::new_err(format!("out is an array of {has}; one of {dtype} is needed")));
    };
    if array.len() != length {
        let has = array.len();
        return Err(PyValueError::new_err(format!("out has room for {has} events; there are {length}")));
    }
    if !array.is_c_contiguous() {
        return Err(not_contiguous());
    }
    array.try_readwrite().map_err(|error| match error {
        numpy::BorrowError::NotWriteable => PyValueError::new_err("out is read-only"),
        _ => PyValueError::new_err("out is in use by another thread"),
    })
}

/// Writes the value of every event of the first stream.
fn fill<T: Copy + Send + Sync>(py: Python<'_>, fold: &Fold, out: &mut [T], values: &[T]) -> PyResult<()> {
    for (index, piece) in out.chunks_mut(PIECE).enumerate() {
        py.detach(|| fill_piece(fold, piece, values, index * PIECE));
        py.check_signals()?;
    }
    Ok(())
}

fn fill_piece<T: Copy + Send + Sync>(fold: &Fold, out: &mut [T], values: &[T], start: usize) {
    let threads = if out.len() > LONG { default_threads() } else { 1 };
    let part = out.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for (index, out) in out.chunks_mut(part).enumerate() {
            scope.spawn(move || fill_part(fold, out, values, (start + index * part) as u64));
        }
    });
}

fn fill_part<T: Copy>(fold: &Fold, out: &mut [T], values: &[T], start: u64) {
    let end = start.saturating_add(out.len() as u64);
    fold.window(fold.streams()[0].root(), start, end).fill_with(out, |symbol| values[symbol.index()]);
}

/// The labels of all events; equal events are the same object.
fn texts<'py>(py: Python<'py>, fold: &Fold, stream: &FoldedStream) -> PyResult<Bound<'py, PyAny>> {
    let alphabet = fold.alphabet();
    let labels: Vec<Bound<'_, PyString>> =
        alphabet.symbols().map(|symbol| PyString::new(py, &alphabet.label(symbol))).collect();
    let list = PyList::empty(py);
    for (index, symbol) in fold.unfold(stream.root()).enumerate() {
        list.append(label(&labels, symbol))?;
        if index % (1 << 18) == 0 {
            py.check_signals()?;
        }
    }
    Ok(list.into_any())
}

fn label<'a, 'py>(labels: &'a [Bound<'py, PyString>], symbol: Symbol) -> &'a Bound<'py, PyString> {
    &labels[symbol.index()]
}
