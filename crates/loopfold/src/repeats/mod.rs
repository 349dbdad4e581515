//! Repeats of a stream: all its maximal repetitions ("runs").
//!
//! A run is a stretch with a shortest period, at least two periods long, that cannot
//! be extended to either side. There are fewer runs than symbols, and every tandem
//! repeat of the stream lies in exactly one run of its period, so the runs are all
//! that a folder needs to know.

mod extend;
mod runs;

pub(crate) use extend::{common_prefix, common_suffix};
pub(crate) use runs::{Entry, SHORTEST_SHARED};
pub use runs::{Run, Runs};
