//! Programs are instrumented and executed, and their paths compared with blocks that were recorded
//! independently.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod errors;
mod support;
mod traces;
