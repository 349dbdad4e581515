//! Loopfold folds the repetition out of an execution trace without losing an
//! event, and answers questions on the folded form.
//!
//! Data flows one way through the crate:
//!
//! ```text
//! events → sink → trace → folder → fold → measure, question, archive
//! ```
//!
//! * [`trace`]: events, the alphabet that gives each kind of event a [`Symbol`], and the
//!   streams of symbols with their times.
//! * [`repeats`]: all maximal repetitions of a stream, in near-linear time.
//! * [`folders`]: the algorithms that turn a stream into rules of counted items.
//! * [`fold`]: those rules: unfolding, windows, random access, and measures.
//! * [`questions`]: what can be asked of a fold.
//! * [`archive`]: a fold as a file.
//! * [`sections`]: what questions keep in an archive.
//! * [`export`]: a fold in the forms of other tools and of people.
//!
//! ```
//! use loopfold::folders::{Folder, Outermost};
//! use loopfold::trace::{Collector, Event, Sink};
//!
//! let mut collector = Collector::default();
//! let stream = collector.stream("main")?;
//! for name in ["init", "read", "write", "read", "write", "read", "write", "close"] {
//!     collector.push_event(stream, &Event::named(name))?;
//! }
//! let fold = loopfold::folders::fold_trace(collector.finish()?, &Outermost::default(), 1)?;
//! assert_eq!(fold.nest_text(fold.streams()[0].root()), "init (read write)^3 close");
//! # Ok::<(), loopfold::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod archive;
mod bytes;
mod error;
pub mod export;
pub mod fold;
pub mod folders;
mod ids;
mod packed;
mod parallel;
pub mod questions;
pub mod repeats;
pub mod sections;
pub mod trace;

pub use error::{Error, Result};
pub use fold::Fold;
pub use ids::{RuleId, StreamId, Symbol};
pub use trace::Trace;
