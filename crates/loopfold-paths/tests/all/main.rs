//! The tests of this crate.

mod descriptions;
mod paths;
