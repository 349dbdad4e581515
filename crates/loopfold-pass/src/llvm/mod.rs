//! A thin, safe layer over the C interface of LLVM: the only unsafe code of this program.
//!
//! A [`Context`] owns everything. A [`Module`] borrows it; types, values and blocks are pointers
//! that borrow the module. What is not checked by a type: a value that was erased must not be used
//! again. The C interface aborts on wrong use rather than corrupting memory in most cases, but
//! callers still must pass values of the kind that a method names.
#![allow(unsafe_code, reason = "a C interface")]

mod builder;
mod machine;
mod module;
mod value;

pub(crate) use builder::Builder;
pub(crate) use machine::{CodeModel, Machine, Relocation};
pub(crate) use module::{Context, Module};
pub(crate) use value::{Block, Call, Linkage, Opcode, TailCall, Type, Value};

use std::ffi::{CStr, CString, c_char};

/// A text as C takes it, up to its first zero byte.
fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Copies a text of LLVM, and frees it.
///
/// # Safety
///
/// The text must be one that `LLVMDisposeMessage` frees, or null.
unsafe fn message(text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a text of LLVM ends with a zero byte, and is ours to free.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        llvm_sys::core::LLVMDisposeMessage(text);
        copy
    }
}

/// Copies a text of known length that LLVM keeps.
///
/// # Safety
///
/// The pointer must be null or that of a text of this length.
unsafe fn text_of(text: *const c_char, length: usize) -> String {
    if text.is_null() || length == 0 {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// The version that the bindings are for.
pub(crate) const MAJOR: u32 = 22;

/// The version of LLVM that is linked.
pub(crate) fn version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the pointers are those of variables.
    unsafe { llvm_sys::core::LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}")
}
