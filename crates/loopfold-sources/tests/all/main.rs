//! All tests of the sources: one program, so that it is linked once.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on should say where")]

mod control_flow;
mod regression;
mod text_sources;
mod tool_sources;
