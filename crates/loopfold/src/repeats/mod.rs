//! All maximal repetitions of a stream.
