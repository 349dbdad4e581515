//! Folds events from memory: arrays of numpy, columns of Arrow, and whatever can be iterated over.
//!
//! Arrays and columns are read where they lie, whatever their strides, in batches of symbols. So with
//! an online folder memory is O(distinct content) beside the array; other folders keep the symbols,
//! 4 bytes an event. Whoever changes an array while it is folded gets either value.

use crate::asker::Native;
use crate::interned::{Integer, Interned};
use crate::{direct, errors, work};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use loopfold::folders::{Folder, Folding, fold_trace};
use loopfold::trace::{Collector, Event, Projection, Sink, TimesKept};
use loopfold::{Fold, StreamId, Symbol};
use loopfold_cli::Progress;
use numpy::{
    PyArray1, PyArrayDescrMethods as _, PyArrayMethods as _, PyUntypedArray, PyUntypedArrayMethods as _,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};
use std::sync::Arc;

/// Symbols that are pushed at once.
const BATCH: usize = 1 << 14;
/// The note of a stream that has the type of the integers it was made of.
pub(crate) const DTYPE_NOTE: &str = "dtype";
const ADVICE: &str = "events are integers, str or bytes";

/// Folds events: an array, a column or an iterable.
#[pyfunction]
#[pyo3(signature = (events, folder, name, threads, report=None))]
pub(crate) fn fold_events(
    py: Python<'_>,
    events: &Bound<'_, PyAny>,
    folder: &str,
    name: &str,
    threads: Option<usize>,
    report: Option<&Bound<'_, PyAny>>,
) -> PyResult<Native> {
    let threads = threads.unwrap_or_else(default_threads);
    let (name, own) = (name.to_string(), folder_called(folder)?);
    let fold = if let Some(column) = Column::of(events)? {
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        work::run(py, report, &progress, move || {
            if let Some(fold) = column.fold_directly(&name, &*own, threads, &shared) {
                return fold.map_err(errors::of_library);
            }
            let mut intake = Intake::new(own, &name, threads)?;
            intake.take(&column, &shared)?;
            shared.begin("folding", None);
            intake.finish()
        })?
    } else {
        let mut intake = Intake::new(own, &name, threads)?;
        intake.iterate(events)?;
        let progress = Arc::new(Progress::default());
        progress.begin("folding", None);
        work::run(py, report, &progress, move || intake.finish())?
    };
    Ok(Native::of_fold(fold))
}

pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The folder that users call so.
pub(crate) fn folder_called(name: &str) -> PyResult<Box<dyn Folder>> {
    loopfold_cli::folder_called(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "no folder is called {name}; there are auto, outermost, innermost, guarded, halving, minimum, \
             repair, sequitur, sequitur1, sequitur-runs and smallest"
        ))
    })
}

/// Integers in memory that something else owns.
struct Block<O> {
    first: *const u8,
    length: usize,
    /// Bytes from one to the next.
    stride: isize,
    /// Keeps the memory.
    _owner: O,
}

// SAFETY: the memory is owned by `_owner`, which is kept as long as the block, and only read.
unsafe impl<O: Send> Send for Block<O> {}

impl<O> Block<O> {
    /// The integers as a slice, if they lie one after the other.
    fn as_slice<T: Integer>(&self) -> Option<&[T]> {
        let first = self.first.cast::<T>();
        let is_slice = self.stride == size_of::<T>() as isize && first.is_aligned() && !first.is_null();
        // SAFETY: so many integers lie there, as whoever made the block has checked, and they are aligned.
        is_slice.then(|| unsafe { std::slice::from_raw_parts(first, self.length) })
    }

    /// Calls `each` with every integer, in order.
    fn each<T: Integer>(&self, mut each: impl FnMut(T) -> PyResult<()>) -> PyResult<()> {
        for index in 0..self.length {
            // SAFETY: whoever made the block has checked that so many integers of this size lie at these
            // places. Strides of numpy need not be multiples of the size.
            let value =
                unsafe { self.first.offset(self.stride * index as isize).cast::<T>().read_unaligned() };
            each(value)?;
        }
        Ok(())
    }
}

/// A type of integers, as numpy calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dtype(&'static str);

const DTYPES: [&str; 8] = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"];

/// Calls a generic function with the type of a name.
macro_rules! with_integer {
    ($dtype:expr, $type:ident => $work:expr) => {
        match $dtype {
            "uint8" => {
                type $type = u8;
                $work
            }
            "uint16" => {
                type $type = u16;
                $work
            }
            "uint32" => {
                type $type = u32;
                $work
            }
            "int8" => {
                type $type = i8;
                $work
            }
            "int16" => {
                type $type = i16;
                $work
            }
            "int32" => {
                type $type = i32;
                $work
            }
            "int64" => {
                type $type = i64;
                $work
            }
            _ => {
                type $type = u64;
                $work
            }
        }
    };
}
pub(crate) use with_integer;

/// Events that lie in memory outside of the interpreter.
enum Column {
    Array(Dtype, Block<Py<PyAny>>),
    Arrow(Vec<ArrayRef>),
}

impl Column {
    /// Returns `None` for what must be iterated over.
    fn of(events: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(array) = events.cast::<PyUntypedArray>() {
            return Self::of_array(array);
        }
        if events.hasattr("__arrow_c_stream__")? || events.hasattr("__arrow_c_array__")? {
            let chunks = events.extract::<pyo3_arrow::input::AnyArray>()?.into_chunked_array()?;
            check_type(chunks.data_type())?;
            return Ok(Some(Self::Arrow(chunks.chunks().to_vec())));
        }
        Ok(None)
    }

    fn of_array(array: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Self>> {
        if array.ndim() != 1 {
            let message = format!(
                "an array of {} dimensions; events are one after the other: use ravel()",
                array.ndim()
            );
            return Err(PyValueError::new_err(message));
        }
        let dtype = array.dtype();
        let name = dtype.to_string();
        match dtype.kind() {
            b'O' | b'U' | b'S' | b'T' => return Ok(None),
            b'u' | b'i' => {}
            b'f' => {
                return Err(PyTypeError::new_err(format!(
                    "an array of {name}; {ADVICE}: round the numbers, or number their intervals"
                )));
            }
            _ => return Err(PyTypeError::new_err(format!("an array of {name}; {ADVICE}"))),
        }
        let known = DTYPES.into_iter().find(|&known| known == name);
        let Some(known) = known.filter(|_| dtype.is_native_byteorder() != Some(false)) else {
            let message = format!("an array of {name}, which has another byte order; astype() converts it");
            return Err(PyTypeError::new_err(message));
        };
        let first: *const u8 = with_integer!(known, T => array.cast::<PyArray1<T>>()?.data().cast());
        let (length, stride) = (array.len(), array.strides().first().copied().unwrap_or(0));
        let owner = array.as_any().clone().unbind();
        Ok(Some(Self::Array(Dtype(known), Block { first, length, stride, _owner: owner })))
    }

    /// Folds an array as it is, if that is possible.
    fn fold_directly(
        &self,
        name: &str,
        folder: &dyn Folder,
        threads: usize,
        progress: &Progress,
    ) -> Option<loopfold::Result<Fold>> {
        let Self::Array(Dtype("uint32"), block) = self else { return None };
        let numbers = block.as_slice::<u32>().filter(|_| folder.describe() == direct::FOLDER)?;
        progress.begin("folding", None);
        direct::fold(numbers, name, folder, threads)
    }

    fn length(&self) -> u64 {
        match self {
            Self::Array(_, block) => block.length as u64,
            Self::Arrow(chunks) => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
        }
    }
}

fn check_type(of: &DataType) -> PyResult<()> {
    match of {
        DataType::Dictionary(_, values) => check_type(values),
        of if of.is_integer() || of.is_string() || of.is_binary() => Ok(()),
        DataType::Struct(_) => Err(PyTypeError::new_err("a table; choose one of its columns")),
        of if of.is_floating() => {
            let message = format!("a column of {of}; {ADVICE}: round the numbers, or number their intervals");
            Err(PyTypeError::new_err(message))
        }
        of => Err(PyTypeError::new_err(format!("a column of {of}; {ADVICE}"))),
    }
}

/// Takes the events of one stream and folds them.
struct Intake {
    sink: SinkOf,
    folder: Option<Box<dyn Folder>>,
    threads: usize,
    stream: StreamId,
    interned: Interned,
    batch: Vec<Symbol>,
    taken: u64,
}

enum SinkOf {
    Folding(Folding),
    /// It interns; the symbols are kept beside it.
    Collector(Collector, Vec<Symbol>),
}

impl SinkOf {
    fn get(&mut self) -> &mut dyn Sink {
        match self {
            Self::Folding(folding) => folding,
            Self::Collector(collector, _) => collector,
        }
    }
}

impl Intake {
    fn new(folder: Box<dyn Folder>, name: &str, threads: usize) -> PyResult<Self> {
        let (mut sink, folder) = if folder.online().is_some() {
            let folding = Folding::with(folder, Projection::default(), TimesKept::None, threads);
            (SinkOf::Folding(folding.map_err(errors::of_library)?), None)
        } else {
            (
                SinkOf::Collector(Collector::new(Projection::default(), TimesKept::None), Vec::new()),
                Some(folder),
            )
        };
        let stream = sink.get().stream(name).map_err(errors::of_library)?;
        let (interned, batch) = (Interned::default(), Vec::with_capacity(BATCH));
        Ok(Self { sink, folder, threads, stream, interned, batch, taken: 0 })
    }

    fn take(&mut self, column: &Column, progress: &Progress) -> PyResult<()> {
        let phase = match &self.sink {
            SinkOf::Folding(_) => "folding",
            SinkOf::Collector(..) => "reading",
        };
        progress.begin(phase, Some(column.length()));
        match column {
            Column::Array(dtype, block) => {
                self.describe(dtype.0)?;
                with_integer!(dtype.0, T => self.integers::<T, _>(block, progress))?;
            }
            Column::Arrow(chunks) => {
                for chunk in chunks {
                    self.chunk(chunk, progress)?;
                }
            }
        }
        self.hand_over(progress)
    }

    fn describe(&mut self, dtype: &str) -> PyResult<()> {
        self.sink.get().describe(self.stream, DTYPE_NOTE, dtype).map_err(errors::of_library)
    }

    fn integers<T: Integer, O>(&mut self, block: &Block<O>, progress: &Progress) -> PyResult<()> {
        let Some(values) = block.as_slice::<T>() else {
            return block.each(|value: T| {
                let symbol = self.interned.symbol(value, self.sink.get()).map_err(errors::of_library)?;
                self.push(symbol, progress)
            });
        };
        for values in values.chunks(BATCH) {
            self.hand_over(progress)?;
            let interned = self.interned.symbols(values, self.sink.get(), &mut self.batch);
            interned.map_err(errors::of_library)?;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, symbol: Symbol, progress: &Progress) -> PyResult<()> {
        self.batch.push(symbol);
        if self.batch.len() == BATCH { self.hand_over(progress) } else { Ok(()) }
    }

    fn hand_over(&mut self, progress: &Progress) -> PyResult<()> {
        loopfold::interrupt::poll();
        match &mut self.sink {
            SinkOf::Folding(folding) => {
                folding.push_symbols(self.stream, &self.batch).map_err(errors::of_library)?;
            }
            SinkOf::Collector(_, symbols) => symbols.extend_from_slice(&self.batch),
        }
        self.taken += self.batch.len() as u64;
        progress.advance_to(self.taken);
        self.batch.clear();
        Ok(())
    }

    /// A chunk of a column.
    fn chunk(&mut self, chunk: &ArrayRef, progress: &Progress) -> PyResult<()> {
        if let Some(index) =
            chunk.logical_nulls().and_then(|nulls| (0..nulls.len()).find(|&i| nulls.is_null(i)))
        {
            let index = self.taken + self.batch.len() as u64 + index as u64;
            return Err(PyValueError::new_err(format!(
                "event {index} is null; drop nulls first, or fill them"
            )));
        }
        macro_rules! by_type {
            ($($name:ident: $type:ident, $dtype:literal, $native:ty);+) => {
                match chunk.data_type() {
                    $(DataType::$name => {
                        self.describe($dtype)?;
                        let values = chunk.as_primitive::<$type>().values();
                        self.values::<$native>(values, progress)
                    })+
                    DataType::Dictionary(keys, _) => match keys.as_ref() {
                        $(DataType::$name => self.dictionary::<$type>(chunk, progress),)+
                        other => Err(PyTypeError::new_err(format!("a dictionary with keys of {other}"))),
                    },
                    _ => {
                        for symbol in self.symbols_of(chunk)? {
                            self.push(symbol, progress)?;
                        }
                        Ok(())
                    }
                }
            };
        }
        by_type!(
            UInt8: UInt8Type, "uint8", u8; UInt16: UInt16Type, "uint16", u16; UInt32: UInt32Type, "uint32", u32;
            UInt64: UInt64Type, "uint64", u64; Int8: Int8Type, "int8", i8; Int16: Int16Type, "int16", i16;
            Int32: Int32Type, "int32", i32; Int64: Int64Type, "int64", i64
        )
    }

    fn values<T: Integer>(&mut self, values: &[T], progress: &Progress) -> PyResult<()> {
        let (first, stride) = (values.as_ptr().cast::<u8>(), size_of::<T>() as isize);
        self.integers::<T, _>(&Block { first, length: values.len(), stride, _owner: () }, progress)
    }

    /// Each entry of a dictionary is interned once, when it is first used.
    fn dictionary<K: ArrowDictionaryKeyType>(
        &mut self,
        chunk: &ArrayRef,
        progress: &Progress,
    ) -> PyResult<()> {
        let array = chunk.as_dictionary::<K>();
        let mut known: Vec<Option<Symbol>> = vec![None; array.values().len()];
        for index in 0..array.len() {
            let Some(key) = array.key(index) else { continue };
            let symbol = match known[key] {
                Some(symbol) => symbol,
                None => {
                    let symbols = self.symbols_of(&array.values().slice(key, 1))?;
                    *known[key].insert(symbols[0])
                }
            };
            self.push(symbol, progress)?;
        }
        Ok(())
    }

    /// The symbols of a few values, or of texts.
    fn symbols_of(&mut self, values: &ArrayRef) -> PyResult<Vec<Symbol>> {
        macro_rules! texts {
            ($array:expr, $bytes:expr) => {
                $array.iter().map(|text| self.text($bytes(text.unwrap_or_default()))).collect()
            };
        }
        macro_rules! numbers {
            ($type:ident) => {{
                let array = values.as_primitive::<$type>();
                let symbol =
                    |&value| self.interned.symbol(value, self.sink.get()).map_err(errors::of_library);
                array.values().iter().map(symbol).collect()
            }};
        }
        match values.data_type() {
            DataType::Utf8 => texts!(values.as_string::<i32>(), str::as_bytes),
            DataType::LargeUtf8 => texts!(values.as_string::<i64>(), str::as_bytes),
            DataType::Utf8View => texts!(values.as_string_view(), str::as_bytes),
            DataType::Binary => texts!(values.as_binary::<i32>(), |bytes| bytes),
            DataType::LargeBinary => texts!(values.as_binary::<i64>(), |bytes| bytes),
            DataType::BinaryView => texts!(values.as_binary_view(), |bytes| bytes),
            DataType::UInt8 => numbers!(UInt8Type),
            DataType::UInt16 => numbers!(UInt16Type),
            DataType::UInt32 => numbers!(UInt32Type),
            DataType::UInt64 => numbers!(UInt64Type),
            DataType::Int8 => numbers!(Int8Type),
            DataType::Int16 => numbers!(Int16Type),
            DataType::Int32 => numbers!(Int32Type),
            DataType::Int64 => numbers!(Int64Type),
            other => Err(PyTypeError::new_err(format!("a column of {other}; {ADVICE}"))),
        }
    }

    fn text(&mut self, text: &[u8]) -> PyResult<Symbol> {
        self.sink.get().intern(&Event::named(text)).map_err(errors::of_library)
    }

    /// Events that are objects of the interpreter.
    fn iterate(&mut self, events: &Bound<'_, PyAny>) -> PyResult<()> {
        if events.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "a str is one event; fold(list(text)) folds its characters, text.split() its words, and \
                 open(path) a file",
            ));
        }
        let iterator = events.try_iter().map_err(|_| {
            let what = events.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
            PyTypeError::new_err(format!("a {what} cannot be folded; pass a list, an array or a column"))
        })?;
        let progress = Progress::default();
        for (index, event) in iterator.enumerate() {
            let event = event?;
            let symbol = symbol_of(&event, self.sink.get(), &mut self.interned, index as u64)?;
            self.push(symbol, &progress)?;
            if index % (1 << 16) == 0 {
                events.py().check_signals()?;
            }
        }
        self.hand_over(&progress)
    }

    fn finish(self) -> PyResult<Fold> {
        let fold = match (self.sink, self.folder) {
            (SinkOf::Folding(folding), _) => folding.finish(),
            (SinkOf::Collector(collector, symbols), Some(folder)) => {
                collector.finish().and_then(|mut trace| {
                    if let Some(stream) = trace.streams.first_mut() {
                        stream.symbols = symbols;
                    }
                    fold_trace(trace, &*folder, self.threads)
                })
            }
            (SinkOf::Collector(..), None) => Ok(Fold::default()),
        };
        fold.map_err(errors::of_library)
    }
}

/// The symbol of an object.
pub(crate) fn symbol_of(
    event: &Bound<'_, PyAny>,
    sink: &mut dyn Sink,
    interned: &mut Interned,
    index: u64,
) -> PyResult<Symbol> {
    if let Ok(text) = event.cast::<PyString>() {
        let text = text.to_cow().map_err(|_| {
            let text =
                event.repr().map_or_else(|_| "?".to_string(), |text| text.to_string_lossy().into_owned());
            PyValueError::new_err(format!(
                "event {index} is {text}, which has a lone surrogate and is not text; pass bytes: \
                 event.encode('utf-8', 'surrogateescape')"
            ))
        })?;
        return sink.intern(&Event::named(text.as_ref())).map_err(errors::of_library);
    }
    if let Ok(bytes) = event.cast::<PyBytes>() {
        return sink.intern(&Event::named(bytes.as_bytes())).map_err(errors::of_library);
    }
    let is_number = !event.is_instance_of::<PyFloat>() && !event.is_instance_of::<PyBool>();
    let number = is_number.then(|| event.extract::<i128>());
    match number {
        Some(Ok(value)) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value) => {
            interned.symbol_of_large(value, sink).map_err(errors::of_library)
        }
        Some(Ok(_)) => {
            Err(PyValueError::new_err(format!("event {index} does not fit in 64 bits; pass str(event)")))
        }
        Some(Err(_)) if event.is_instance_of::<PyInt>() => {
            Err(PyValueError::new_err(format!("event {index} does not fit in 64 bits; pass str(event)")))
        }
        _ => {
            let what = event.get_type().name()?;
            Err(PyTypeError::new_err(format!("event {index} is a {what}; {ADVICE}")))
        }
    }
}
