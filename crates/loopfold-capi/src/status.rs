//! How a call ended, and the message of the last failure in each thread.

use loopfold::ErrorKind;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "they are called so in C")]
pub enum Status {
    /// Done.
    LOOPFOLD_OK = 0,
    /// Nothing was found, or a check failed; there is an answer that says so.
    LOOPFOLD_NOTHING = 1,
    /// An argument is wrong.
    LOOPFOLD_INVALID = 2,
    /// The input is damaged.
    LOOPFOLD_DAMAGED = 3,
    /// A file cannot be read or written.
    LOOPFOLD_IO = 4,
    /// There is more than memory or a limit allows.
    LOOPFOLD_LIMIT = 5,
    /// An error in the library itself.
    LOOPFOLD_INTERNAL = 6,
    /// The function of the caller asked to stop.
    LOOPFOLD_STOPPED = 7,
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why a call did not succeed.
pub(crate) struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl std::fmt::Display) -> Self {
        Self { status, message: message.to_string() }
    }

    pub(crate) fn invalid(message: impl std::fmt::Display) -> Self {
        Self::new(Status::LOOPFOLD_INVALID, message)
    }
}

impl From<loopfold::Error> for Failure {
    fn from(error: loopfold::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Damaged => Status::LOOPFOLD_DAMAGED,
            ErrorKind::Io => Status::LOOPFOLD_IO,
            ErrorKind::Limit => Status::LOOPFOLD_LIMIT,
            _ => Status::LOOPFOLD_INVALID,
        };
        Self::new(status, error)
    }
}

impl From<loopfold_cli::Error> for Failure {
    fn from(error: loopfold_cli::Error) -> Self {
        let status = match error.kind() {
            loopfold_cli::ErrorKind::Damaged => Status::LOOPFOLD_DAMAGED,
            loopfold_cli::ErrorKind::Arguments => Status::LOOPFOLD_INVALID,
            _ => Status::LOOPFOLD_IO,
        };
        Self::new(status, error)
    }
}

/// Runs what a function of the interface does; keeps the message if it fails.
pub(crate) fn guarded(work: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let outcome = outcome
        .unwrap_or_else(|_| Err(Failure::new(Status::LOOPFOLD_INTERNAL, "an error in the library itself")));
    outcome.unwrap_or_else(|failure| {
        // A message with a zero byte in it ends there.
        let text: Vec<u8> = failure.message.into_bytes().into_iter().take_while(|&byte| byte != 0).collect();
        MESSAGE.with_borrow_mut(|message| *message = CString::new(text).unwrap_or_default());
        failure.status
    })
}

/// A text of the caller.
///
/// # Safety
///
/// `text` is null or ends with a zero byte.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::invalid(format_args!("{what} is a null pointer")));
    }
    // SAFETY: not null, and it ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid(format_args!("{what} is not UTF-8")))
}

/// What a pointer of the caller points to.
///
/// # Safety
///
/// `pointer` is null or valid for reading as long as `'a`.
pub(crate) unsafe fn reference<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: what the caller guarantees.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::invalid(format_args!("{what} is a null pointer")))
}

/// Where to write a result.
///
/// # Safety
///
/// `pointer` is null or valid for writing as long as `'a`.
pub(crate) unsafe fn place<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: what the caller guarantees.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::invalid(format_args!("{what} is a null pointer")))
}

/// Why the last call of this thread that failed did so; valid until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn loopfold_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn loopfold_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
