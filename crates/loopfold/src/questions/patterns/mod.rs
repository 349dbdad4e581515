//! Patterns: sequences of events that repeat in a stream, though not one directly after the
//! other.

mod abridged;

pub use abridged::{Abridged, AbridgedLoop};
