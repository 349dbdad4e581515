//! `loopfold-mpi` in 1, 2, 4 and 8 processes: the same answers as in one, and errors that end all of
//! them.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on should say where")]

mod errors;
mod examples;
mod generated;
mod support;
