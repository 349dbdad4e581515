//! All tests of the command: one program, so that it is linked once.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on should say where")]

mod bad_input;
mod builds;
mod calls;
mod chunks;
mod commands;
mod communication;
mod compile;
mod corpus;
mod export;
mod find;
mod follow;
mod hostile;
mod hostile_numbers;
mod hot;
mod index;
mod interrupted;
mod iterations;
mod json;
mod mpi;
mod options;
mod outputs;
mod parts;
mod paths;
mod patterns;
mod peers;
mod produced;
mod record;
#[cfg(target_os = "linux")]
mod record_paths;
mod regression;
mod selection;
mod similar;
mod sums;
mod support;
mod symbols;
mod tables;
mod texts;
mod waits;
