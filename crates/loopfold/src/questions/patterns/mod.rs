//! Patterns: sequences of events that repeat in a stream, though not one directly after the
//! other.

mod abridged;
mod ngram;

pub use abridged::{Abridged, AbridgedLoop};
pub use ngram::{NgramPattern, Ngrams};
