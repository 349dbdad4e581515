//! The questions on a fold: a module for each, with its own types.
//!
//! A question never knows which folder made the fold. The most common questions are also
//! methods of [`Fold`](crate::Fold).
//!
//! | question | module | on a fold |
//! | --- | --- | --- |
//! | Where does a sequence of events occur? | [`find`], [`query`] | [`Fold::find`](crate::Fold::find) |
//! | Which of two comes first? | [`before`] | [`Fold::order`](crate::Fold::order) |
//! | What comes before and after an event? | [`context`] | [`Fold::context`](crate::Fold::context) |
//! | Which sequences cost most? | [`hot`] | [`Fold::hot_subpaths`](crate::Fold::hot_subpaths) |
//! | Where does a path of a function occur? | [`path`] | [`PathSearcher`](path::PathSearcher) |
//! | What repeats, not directly after itself? | [`patterns`] | |
//! | Who communicates with whom, and how? | `communication` | |
//! | Which windows are similar to a pattern? | `similar` | |
//! | Who waits for whom, where and how long? | `waits` | |
//! | What is the loop nest? Which streams have the same? | [`nest`], [`classes`], [`align`] | [`Fold::nest`](crate::Fold::nest), [`Fold::classes`](crate::Fold::classes) |
//! | What is the one nest of all processes? | `logical` | |
//! | Which loops have an odd iteration now and then? | [`near`] | |
//! | Which loops cover most, wherever they are? | [`largest`] | |
//! | How long did loops, events and rules take? | [`iterations`], [`sums`], [`rule_sums`], [`clock`] | [`Fold::event_sums`](crate::Fold::event_sums) |
//! | What did events take without the events inside them? | [`self_time`] | [`Fold::self_sums`](crate::Fold::self_sums) |
//! | Only a part of a stream: between two times, or some iterations of a loop? | [`selection`] | [`Fold::parts`](crate::Fold::parts) |
//! | What is each distinct part of a nest, and how often does it occur? | [`segments`] | [`Fold::segments`](crate::Fold::segments), [`Fold::sample`](crate::Fold::sample) |
//! | How large is it? | [`statistics`] | [`Fold::statistics`](crate::Fold::statistics) |

pub mod align;
pub mod before;
pub mod classes;
pub mod clock;
#[cfg(feature = "mpi")]
pub mod communication;
pub mod context;
pub mod find;
pub mod hot;
pub mod iterations;
pub mod largest;
#[cfg(feature = "mpi")]
pub mod logical;
mod names;
pub mod near;
pub mod nest;
pub mod path;
pub mod patterns;
pub mod query;
pub mod rule_sums;
mod run_time;
pub mod segments;
pub mod selection;
pub mod self_time;
#[cfg(feature = "mpi")]
pub mod similar;
pub mod statistics;
pub mod sums;
#[cfg(feature = "mpi")]
pub mod waits;
mod wire;
