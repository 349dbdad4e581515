//! The section of recordings that says how the ends of messages are stored.
//!
//! What it holds, and how ranks are restored, is known to [`RelativePeers`](crate::mpi): this is
//! where a library without messages refuses such an archive.

use crate::{Fold, Result};

/// The fold with ranks, from one whose peers are relative.
#[cfg(feature = "mpi")]
pub(super) fn absolute(fold: &Fold, section: &[u8]) -> Result<Fold> {
    decode(section, fold)?.absolute(fold)
}

/// What restores the ranks of a fold.
#[cfg(feature = "mpi")]
pub(super) fn decode(section: &[u8], fold: &Fold) -> Result<crate::mpi::RelativePeers> {
    crate::mpi::RelativePeers::decode(section, fold.streams().len())
}

#[cfg(not(feature = "mpi"))]
pub(super) fn absolute(_: &Fold, _: &[u8]) -> Result<Fold> {
    Err(crate::Error::invalid(
        "this is a recording of messages, which the library reads with its feature mpi",
    ))
}
