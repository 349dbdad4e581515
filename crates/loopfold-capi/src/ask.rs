//! Questions: the arguments of the command, and what it would print.

use crate::fold::FoldHandle;
use crate::status::{Failure, Status, guarded, place, reference, text};
use loopfold_cli::Progress;
use std::ffi::{CString, OsString, c_char};
use std::sync::Arc;

/// The input that stands for the fold in arguments.
const INPUT: &str = "fold";
/// The width of text.
const WIDTH: usize = 80;

/// Asks what the command would answer: `arguments` are a command and its options, without an input,
/// such as `{"hot", "--top", "5", "--json"}`. The answer is freed by `loopfold_text_free`.
///
/// # Safety
///
/// `fold` is open; `arguments` has `count` texts that end with a zero byte; `answer` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_ask(
    fold: *const FoldHandle,
    count: usize,
    arguments: *const *const c_char,
    answer: *mut *mut c_char,
) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let (handle, answer) = unsafe { (reference(fold, "fold")?, place(answer, "answer")?) };
        if arguments.is_null() || count == 0 {
            return Err(Failure::invalid("there are no arguments"));
        }
        // SAFETY: the array has `count` pointers.
        let given = unsafe { std::slice::from_raw_parts(arguments, count) };
        let mut words: Vec<OsString> = Vec::with_capacity(count + 1);
        for &word in given {
            // SAFETY: each ends with a zero byte.
            words.push(OsString::from(unsafe { text(word, "an argument") }?));
        }
        // Options of some commands take any number of words, so the input comes first.
        words.insert(1, OsString::from(INPUT));
        let answered = handle.asker.ask(&words, WIDTH, &Arc::new(Progress::default()))?;
        let output: Vec<u8> = answered.output.into_iter().filter(|&byte| byte != 0).collect();
        *answer = CString::new(output).unwrap_or_default().into_raw();
        Ok(if answered.found { Status::LOOPFOLD_OK } else { Status::LOOPFOLD_NOTHING })
    })
}

/// Frees an answer; null is ignored.
///
/// # Safety
///
/// `answer` is null, or came from `loopfold_ask` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_text_free(answer: *mut c_char) {
    if !answer.is_null() {
        // SAFETY: it came from `CString::into_raw`.
        drop(unsafe { CString::from_raw(answer) });
    }
}
