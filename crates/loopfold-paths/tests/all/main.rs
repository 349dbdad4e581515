//! The tests of this crate.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod descriptions;
mod paths;
