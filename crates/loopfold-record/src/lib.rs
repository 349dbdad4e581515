//! Records MPI programs and folds their events while they run.
//!
//! Three programs work together. The command `loopfold record` ([`Launch`]) becomes the program,
//! with a small library preloaded that wraps the calls of MPI (`shim`). That library writes
//! records to rings in shared memory. A helper process for each rank ([`run_helper`]) reads them
//! (`ring`), merges those of several threads (`lanes`), converts them to events (`events`, `kind`),
//! joins them with the paths of the program (`joint`), folds them (`recorder`, `stream`) and appends
//! segments to a file (`parts`); when MPI ends, helpers merge their folds over a tree of ranks.
//!
//! Folding in another process costs a copy of each record, some tens of nanoseconds, and has
//! three advantages: what is preloaded is small C that any site can compile; a program that
//! crashes leaves its last events to the helper; and memory, signals and standard streams of the
//! program stay its own.
#![forbid(unsafe_code)]
#![cfg(unix)]

mod compile;
mod error;
mod events;
mod helper;
mod joint;
mod kind;
mod lanes;
mod launch;
mod layout;
mod parts;
mod paths;
mod recorder;
mod ring;
mod shim;
mod sites;
mod stream;
mod variables;

pub use compile::CompilerKind;
pub use error::{Error, Result};
pub use helper::{WriteOther, run as run_helper};
pub use launch::{Launch, is_mpi_program};
pub use parts::{Parts, folder_of, is_recording, read as read_parts};
pub use paths::{
    Counter, Loss, Partial, PathLaunch, PathRun, Recorded, Spooled, is_spool, read_spool, runtime_object,
};
pub use shim::Mpi;

/// The header for regions of the program: enter, leave and mark.
pub const HEADER: &str = include_str!("../loopfold.h");
