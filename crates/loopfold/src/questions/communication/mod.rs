//! Communication between processes, from traces of messages and collective operations.
//!
//! [`Processes`] is the model: what each process does, in loops. [`Partners`] has the channels
//! between them, and what was never completed. From both come joint loops, and what several
//! processes do again elsewhere: [`communication_patterns`]. [`abstracted`] writes a trace with
//! their names instead of their events.

mod abstracted;
mod channels;
mod chosen;
mod description;
mod groups;
mod joint;
mod loop_links;
mod partners;
mod pattern;
mod processes;
mod recurring;
mod sequence_hash;
mod tags;
mod trace_patterns;

pub use abstracted::{AbstractedTrace, abstracted};
pub(super) use chosen::ChosenEvents;
pub use description::{Description, GroupLayout, Groups};
pub use partners::{Disagreement, Partners, Traffic, Unmatched};
pub use pattern::{CommunicationPattern, Occurrence, Part, RepeatedPart};
pub use processes::{ProcessTrace, Processes};
pub(super) use sequence_hash::SequenceHash;
pub use trace_patterns::{FirstPlace, TracePatterns, communication_patterns};
