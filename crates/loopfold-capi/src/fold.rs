//! Folds: from files or arrays, their streams and symbols, and back to events.

use crate::status::{Failure, Status, guarded, place, reference, text};
use loopfold::fold::FoldedStream;
use loopfold::folders::{Folder, fold_trace};
use loopfold::{Fold, Trace};
use loopfold_cli::{Asker, Progress, folder_called, save_archive};
use std::ffi::{CString, OsString, c_char, c_void};
use std::path::Path;
use std::sync::Arc;

/// A folded trace.
#[derive(Debug)]
pub struct FoldHandle {
    pub(crate) fold: Arc<Fold>,
    pub(crate) asker: Asker,
    streams: Vec<CString>,
    symbols: Vec<CString>,
}

impl FoldHandle {
    pub(crate) fn new(fold: Fold) -> *mut Self {
        let printable = |text: &str| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        let alphabet = fold.alphabet();
        let symbols = alphabet.symbols().map(|symbol| printable(&alphabet.label(symbol))).collect();
        let streams = fold.streams().iter().map(|stream| printable(stream.name().raw())).collect();
        let fold = Arc::new(fold);
        let asker = Asker::of_fold(Arc::clone(&fold));
        Box::into_raw(Box::new(Self { fold, asker, streams, symbols }))
    }

    pub(crate) fn stream(&self, stream: usize) -> Result<&FoldedStream, Failure> {
        let count = self.fold.streams().len();
        let missing = || Failure::invalid(format_args!("there is no stream {stream}; there are {count}"));
        self.fold.streams().get(stream).ok_or_else(missing)
    }
}

/// The folder that a name of the caller means: `auto` if it is null.
///
/// # Safety
///
/// `name` is null or ends with a zero byte.
pub(crate) unsafe fn folder(name: *const c_char) -> Result<Box<dyn Folder>, Failure> {
    // SAFETY: what the caller guarantees.
    let name = if name.is_null() { "auto" } else { unsafe { text(name, "folder") }? };
    folder_called(name).ok_or_else(|| Failure::invalid(format_args!("no folder is called {name:?}")))
}

/// Opens a trace of any format that the command reads, or an archive.
///
/// # Safety
///
/// `path` ends with a zero byte; `fold` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_open(path: *const c_char, fold: *mut *mut FoldHandle) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let (path, fold) = unsafe { (text(path, "path")?, place(fold, "fold")?) };
        // A path is a path, also if it begins with a dash.
        let arguments: Vec<OsString> = ["loops", "--", path].map(OsString::from).into();
        let opened = Asker::new().fold(&arguments, &Arc::new(Progress::default()))?;
        *fold = FoldHandle::new(opened);
        Ok(Status::LOOPFOLD_OK)
    })
}

/// Folds an array of `count` unsigned integers of `width` bytes each (1, 2, 4 or 8), as one stream;
/// `folder` is the name of a folder as of the command, or null for `auto`.
///
/// # Safety
///
/// `values` has so many integers; `folder` is null or ends with a zero byte; `fold` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_fold_array(
    values: *const c_void,
    count: usize,
    width: usize,
    folder_name: *const c_char,
    fold: *mut *mut FoldHandle,
) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let (folder, fold) = unsafe { (folder(folder_name)?, place(fold, "fold")?) };
        if values.is_null() && count > 0 {
            return Err(Failure::invalid("values is a null pointer"));
        }
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(Failure::invalid(format_args!("integers of {width} bytes; there are 1, 2, 4 and 8")));
        }
        let integer = |index: usize| {
            // SAFETY: the array has `count` integers of this width, and `index` is less.
            unsafe {
                let at = values.cast::<u8>().add(index * width);
                match width {
                    1 => u64::from(*at),
                    2 => u64::from(at.cast::<u16>().read_unaligned()),
                    4 => u64::from(at.cast::<u32>().read_unaligned()),
                    _ => at.cast::<u64>().read_unaligned(),
                }
            }
        };
        let trace = Trace::of_integers("array", (0..count).map(integer))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        *fold = FoldHandle::new(fold_trace(trace, &*folder, threads)?);
        Ok(Status::LOOPFOLD_OK)
    })
}

/// Writes a fold as an archive; a file that is there is replaced when the new one is complete.
///
/// # Safety
///
/// `fold` is open; `path` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_save(fold: *const FoldHandle, path: *const c_char) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let (handle, path) = unsafe { (reference(fold, "fold")?, text(path, "path")?) };
        save_archive(&handle.fold, Path::new(path))?;
        Ok(Status::LOOPFOLD_OK)
    })
}

/// Frees a fold, and the texts of its streams and symbols; null is ignored.
///
/// # Safety
///
/// `fold` is null, or open and used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_close(fold: *mut FoldHandle) {
    if !fold.is_null() {
        // SAFETY: it came from `FoldHandle::new`, and this is its only owner.
        drop(unsafe { Box::from_raw(fold) });
    }
}

/// How many streams a fold has; 0 of a null pointer.
///
/// # Safety
///
/// `fold` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_stream_count(fold: *const FoldHandle) -> usize {
    // SAFETY: what the caller guarantees.
    unsafe { fold.as_ref() }.map_or(0, |handle| handle.streams.len())
}

/// The name of a stream, or null if there is none; valid as long as the fold.
///
/// # Safety
///
/// `fold` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_stream_name(fold: *const FoldHandle, stream: usize) -> *const c_char {
    // SAFETY: what the caller guarantees.
    let name = unsafe { fold.as_ref() }.and_then(|handle| handle.streams.get(stream));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// How many events a stream has; 0 if there is no such stream.
///
/// # Safety
///
/// `fold` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_event_count(fold: *const FoldHandle, stream: usize) -> u64 {
    // SAFETY: what the caller guarantees.
    let handle = unsafe { fold.as_ref() };
    let events = handle.and_then(|handle| Some(handle.fold.length(handle.stream(stream).ok()?.root())));
    events.unwrap_or(0)
}

/// How many symbols there are: kinds of events.
///
/// # Safety
///
/// `fold` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_symbol_count(fold: *const FoldHandle) -> usize {
    // SAFETY: what the caller guarantees.
    unsafe { fold.as_ref() }.map_or(0, |handle| handle.symbols.len())
}

/// The event that a symbol stands for, as the command prints it, or null if there is none; valid as
/// long as the fold.
///
/// # Safety
///
/// `fold` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_symbol_name(fold: *const FoldHandle, symbol: u32) -> *const c_char {
    // SAFETY: what the caller guarantees.
    let name = unsafe { fold.as_ref() }.and_then(|handle| handle.symbols.get(symbol as usize));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Writes the symbols of `count` events of a stream from position `first` on.
///
/// # Safety
///
/// `fold` is open; `symbols` has room for `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_expand(
    fold: *const FoldHandle,
    stream: usize,
    first: u64,
    count: usize,
    symbols: *mut u32,
) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let handle = unsafe { reference(fold, "fold") }?;
        let root = handle.stream(stream)?.root();
        let length = handle.fold.length(root);
        let end = first.checked_add(count as u64).filter(|&end| end <= length);
        let Some(end) = end else {
            return Err(Failure::invalid(format_args!("stream {stream} has {length} events")));
        };
        if symbols.is_null() && count > 0 {
            return Err(Failure::invalid("symbols is a null pointer"));
        }
        for (at, symbol) in handle.fold.window(root, first, end).enumerate() {
            // SAFETY: there is room for `count`, and the window has as many.
            unsafe { symbols.add(at).write(symbol.index() as u32) };
        }
        Ok(Status::LOOPFOLD_OK)
    })
}
