//! Communication between processes, from traces of messages and collective operations.

mod description;
mod join;
mod partners;
mod processes;
mod trace_patterns;
mod zip;

pub use description::Description;
pub use join::{CommunicationPattern, Occurrence, Part, communication_patterns};
pub use partners::{Disagreement, Link, Partners, Traffic, Unmatched};
pub use processes::{ProcessTrace, Processes};
pub use trace_patterns::{FirstPlace, TracePatterns};
