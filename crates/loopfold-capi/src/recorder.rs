//! Events that the caller pushes, folded while they come.

use crate::fold::{FoldHandle, folder};
use crate::status::{Failure, Status, guarded, place, reference, text};
use loopfold::StreamId;
use loopfold::folders::Folding;
use loopfold::trace::{Event, Projection, Sink as _, TimesKept, Timing};
use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

/// A time that is not known: `LOOPFOLD_UNKNOWN_TIME` of the header.
///
/// cbindgen:ignore
pub const UNKNOWN_TIME: i64 = i64::MIN;

/// Takes events.
#[derive(Debug)]
pub struct RecorderHandle(Mutex<State>);

#[derive(Debug)]
struct State {
    folding: Folding,
    streams: HashMap<String, StreamId>,
}

/// Makes a recorder; `folder_name` is the name of a folder as of the command, or null for `auto`.
///
/// # Safety
///
/// `folder_name` is null or ends with a zero byte; `recorder` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_recorder_new(
    folder_name: *const c_char,
    recorder: *mut *mut RecorderHandle,
) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let (folder, recorder) = unsafe { (folder(folder_name)?, place(recorder, "recorder")?) };
        let folding = Folding::with(folder, Projection::default(), TimesKept::All, 1)?;
        let state = State { folding, streams: HashMap::new() };
        *recorder = Box::into_raw(Box::new(RecorderHandle(Mutex::new(state))));
        Ok(Status::LOOPFOLD_OK)
    })
}

/// Appends an event to a stream, both by name. `start` and `duration` are nanoseconds, or
/// `LOOPFOLD_UNKNOWN_TIME`.
///
/// # Safety
///
/// `recorder` is neither finished nor freed; `stream` and `event` end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_push(
    recorder: *mut RecorderHandle,
    stream: *const c_char,
    event: *const c_char,
    start: i64,
    duration: i64,
) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let (recorder, stream, event) =
            unsafe { (reference(recorder, "recorder")?, text(stream, "stream")?, text(event, "event")?) };
        let mut state = recorder.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |time: i64| (time != UNKNOWN_TIME).then_some(time);
        let timing = Timing { start: known(start), duration: known(duration), ..Timing::UNKNOWN };
        let (stream, symbol) = (state.stream(stream)?, state.folding.intern(&Event::named(event))?);
        state.folding.push(stream, symbol, timing)?;
        Ok(Status::LOOPFOLD_OK)
    })
}

impl State {
    fn stream(&mut self, name: &str) -> Result<StreamId, Failure> {
        if let Some(&id) = self.streams.get(name) {
            return Ok(id);
        }
        let id = self.folding.stream(name)?;
        self.streams.insert(name.to_string(), id);
        Ok(id)
    }
}

/// Folds what a recorder took, and frees the recorder, also if that fails.
///
/// # Safety
///
/// `recorder` is used by nobody else, and not used again; `fold` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_recorder_finish(
    recorder: *mut RecorderHandle,
    fold: *mut *mut FoldHandle,
) -> Status {
    guarded(|| {
        if recorder.is_null() {
            return Err(Failure::invalid("recorder is a null pointer"));
        }
        // SAFETY: it came from `loopfold_recorder_new`, and this is its only owner.
        let RecorderHandle(state) = *unsafe { Box::from_raw(recorder) };
        // SAFETY: what the caller guarantees.
        let fold = unsafe { place(fold, "fold") }?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        *fold = FoldHandle::new(state.folding.finish()?);
        Ok(Status::LOOPFOLD_OK)
    })
}

/// Frees a recorder without folding what it took; null is ignored.
///
/// # Safety
///
/// `recorder` is null, or neither finished nor freed, and used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_recorder_free(recorder: *mut RecorderHandle) {
    if !recorder.is_null() {
        // SAFETY: it came from `loopfold_recorder_new`, and this is its only owner.
        drop(unsafe { Box::from_raw(recorder) });
    }
}
