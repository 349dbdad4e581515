//! Loopfold folds the repetition out of an execution trace without losing an
//! event, and answers questions on the folded form.
//!
//! Data flows through the crate in one direction:
//!
//! ```text
//! events → sink → trace → folder → fold → measure, question, archive
//! ```
//!
//! * [`trace`]: events, the alphabet that gives each kind of event a [`Symbol`], and the
//!   streams of symbols with their times.
//! * [`repeats`]: all maximal repetitions of a stream, in near-linear time.
//! * [`folders`]: the algorithms that convert a stream to rules of counted items.
//! * [`fold`]: those rules: unfolding, windows, random access, and measures.
//! * [`mpi`]: what events say of messages and communicators; peers relative to the own rank.
//! * [`questions`]: what can be asked of a fold.
//! * [`archive`]: a fold as a file.
//! * [`sections`]: what questions keep in an archive.
//! * [`export`]: a fold in the forms of other tools and of people.
//! * [`skeleton`]: a short MPI program that communicates as the recorded one does.
//! * [`interrupt`]: ends any of this before it is complete.
//!
//! From events to a file and back to an answer:
//!
//! ```
//! use loopfold::archive::{self, ReadConfig};
//! use loopfold::folders::{Outermost, fold_trace};
//! use loopfold::questions::query::Query;
//! use loopfold::trace::{Collector, Event, Sink};
//!
//! let mut collector = Collector::default();
//! let stream = collector.stream("main")?;
//! for name in ["init", "read", "write", "read", "write", "read", "write", "close"] {
//!     collector.push_event(stream, &Event::named(name))?;
//! }
//! let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
//! assert_eq!(fold.to_string(), "main: init (read write)^3 close\n");
//!
//! let mut file = Vec::new(); // or std::fs::File::create("x.fold")?
//! archive::write(&fold, &mut file)?;
//! let (fold, _) = archive::read(std::io::Cursor::new(file), &ReadConfig::new())?;
//! let found = fold.find(&Query::parse("write read", fold.alphabet())?)?;
//! assert_eq!(found.count()?, 2);
//! let place = found.first().expect("it occurs");
//! assert_eq!((fold.stream(place.stream).name().raw(), place.range()), ("main", 2..4));
//! # Ok::<(), loopfold::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | what it adds | dependencies |
//! | --- | --- | --- |
//! | `archive` (default) | [`archive`], [`sections`], stored chunks of [`questions::path`]; times are compressed in memory | `pco`, `zstd` |
//! | `mpi` (default) | [`mpi`], [`questions::communication`], [`questions::similar`], [`questions::logical`], [`skeleton`] | |
//! | `regex` (default) | regular expressions in [`trace::EventPattern`] | `regex` |
//!
//! Without them the library folds, unfolds and answers the other questions: enough for a
//! recorder or a binding that only folds.
#![forbid(unsafe_code)]
// Code that only archives or messages need is compiled without them too: one variant of the
// code, not four.
#![cfg_attr(not(all(feature = "archive", feature = "mpi")), allow(dead_code, unused_imports))]

/// Methods that set the fields of a configuration, one after the other.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty),+ $(,)?) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )+
    };
}

/// `Debug` that prints only the name of a type: some of its parts have no `Debug`, or are too
/// large.
macro_rules! opaque_debug {
    ($name:ident $(< $($parameter:tt),+ >)?) => {
        impl $(< $($parameter),+ >)? std::fmt::Debug for $name $(< $($parameter),+ >)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

#[cfg(feature = "archive")]
pub mod archive;
mod bytes;
pub mod emit;
mod error;
pub mod export;
pub mod fold;
pub mod folders;
mod ids;
pub mod interrupt;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(feature = "archive")]
mod packed;
mod parallel;
pub mod questions;
pub mod repeats;
#[cfg(feature = "archive")]
pub mod sections;
#[cfg(feature = "mpi")]
pub mod skeleton;
pub mod trace;

/// The code in the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use error::{Error, ErrorKind, Result};
pub use fold::Fold;
pub use ids::{RuleId, StreamId, Symbol};
pub use trace::Trace;
