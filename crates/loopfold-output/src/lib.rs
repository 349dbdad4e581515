//! Writes files: every file of the project goes through this crate.
//!
//! A file that is replaced ([`Output`]) is written beside the old one and renamed when it is
//! complete and synced, so that a reader finds the old one or the new one, whatever happens. What
//! grows while a program runs ([`DataFolder`], [`Folder::create`]) is created exclusively and never
//! replaces anything. What other programs write goes to a folder of its own ([`PrivateFolder`]).
//!
//! Invariants the rest relies on:
//!
//! - The path that the user names is resolved once, when it is claimed; from then on files are
//!   reached through an open directory, and no symbolic link is followed.
//! - Temporary files have names that cannot be guessed, are created exclusively, and are removed:
//!   by whoever wrote them, by the thread that waits for signals ([`signals`]), or after SIGKILL by the
//!   next execution that writes to the same directory (see `temporary`).
//! - Devices, pipes and standard output are written to and never replaced; they are not locked.
//! - Nothing that a new file replaces is deleted before the file and its directory are synced.
//!
//! Cost: a file takes a lock file, a rename and two syncs, and its directory is listed once.
#![forbid(unsafe_code)]
#![cfg(unix)]

mod cache;
mod data;
mod error;
mod folder;
mod lock;
mod output;
mod place;
mod private;
pub mod signals;
mod target;
mod temporary;

pub use cache::Cache;
pub use data::{Claim, DataFolder, Job, partial_names};
pub use error::{Error, ErrorKind, Result};
pub use folder::{FileId, Folder};
pub use output::{Output, is_being_replaced, scratch};
pub use private::PrivateFolder;
pub use target::{Special, Target};
