//! Patterns: sequences of events that repeat in a stream, though not one directly after the
//! other.

mod abridged;
mod exact;
mod ngram;
mod suffixes;

pub use abridged::{Abridged, AbridgedLoop};
pub use exact::{Repeat, Repeats};
pub use ngram::{NgramPattern, Ngrams};
