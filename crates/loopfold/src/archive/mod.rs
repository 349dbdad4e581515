//! A fold as a file.
