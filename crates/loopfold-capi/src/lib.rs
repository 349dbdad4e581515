//! Loopfold for C: open or fold, push events, walk the nest, ask, free.
//!
//! Each function checks its pointers, catches panics and returns a [`Status`]; the message of the
//! last failure belongs to the thread. Questions are those of the command, with its arguments
//! ([`loopfold_ask`]), so nothing has to be added here when a question gets an option.
//! `include/libloopfold.h` is generated from this crate.

mod ask;
mod fold;
mod nest;
mod recorder;
mod status;

pub use ask::{loopfold_ask, loopfold_text_free};
pub use fold::{
    FoldHandle, loopfold_close, loopfold_event_count, loopfold_expand, loopfold_fold_array, loopfold_open,
    loopfold_save, loopfold_stream_count, loopfold_stream_name, loopfold_symbol_count, loopfold_symbol_name,
};
pub use nest::{Node, NodeKind, Visitor, loopfold_walk};
pub use recorder::{
    RecorderHandle, UNKNOWN_TIME, loopfold_push, loopfold_recorder_finish, loopfold_recorder_free,
    loopfold_recorder_new,
};
pub use status::{Status, loopfold_message, loopfold_version};
