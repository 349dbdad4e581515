//! Sources: one file per format that other tools write. Each parses bytes and pushes events to a
//! sink; none opens files itself, and none knows what the sink does with the events.
//!
//! To add a source: write its file, and list it in [`ALL`]. Its options, and what help says of it,
//! are in its file as well.

mod babeltrace;
mod bytes;
mod call_log;
mod calls;
mod calls_binary;
mod chrome;
mod clock;
mod context;
mod csv;
mod decimal;
mod error;
mod execlog;
mod finstrument;
mod frames;
mod function_names;
mod globs;
mod guess;
mod input;
mod instructions;
mod integers;
mod interner;
mod lackey;
mod line_reader;
mod lines;
mod ltrace;
mod mask;
mod mpi;
mod mpi_text;
mod options;
mod perf;
mod spike;
mod strace;
mod streams;
mod symbols;
#[cfg(test)]
mod testing;

pub use context::{Context, Damage};
pub use error::{Error, Result};
pub use function_names::FunctionNames;
pub use globs::Globs;
pub use guess::{by_name, guess};
pub use input::{Compression, Input};
pub use mask::Mask;
pub use mpi::{MpiArgument, MpiCall, mpi_call_name, mpi_calls, mpi_role};
pub use options::{Options, SourceOption, Takes};
pub use symbols::{Addresses, SymbolNames};

use std::io::BufRead;

/// A format of traces.
pub trait Source: Sync {
    /// Its name after `--format`.
    fn name(&self) -> &'static str;

    /// One line for a list of formats.
    fn about(&self) -> &'static str;

    /// The fields that events can have beyond their names, for `--key`. Something like
    /// `args.*` stands for fields that the input names.
    fn fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// What events, streams and times are, and an example, for help.
    fn description(&self) -> Description;

    /// The options that only this format has, or that have a meaning of their own for it.
    fn options(&self) -> &'static [SourceOption] {
        &[]
    }

    /// How well the beginning of an input fits the format.
    fn fits(&self, head: &[u8]) -> Fit;

    /// Reads everything and pushes it to the sink.
    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()>;
}

/// What a format has, in a few words each.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// What an event is.
    pub event: &'static str,
    /// What a stream is.
    pub stream: &'static str,
    /// Which times events have; empty if none.
    pub times: &'static str,
    /// A command that reads such a trace.
    pub example: &'static str,
}

/// How well an input fits a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It is something else.
    No,
    /// It can be read as this format, like anything else.
    Possible,
    /// It looks like it.
    Likely,
    /// It has the format's magic bytes or an unmistakable form.
    Certain,
}

/// All sources, in the order in which a tie between them is decided.
pub static ALL: &[&dyn Source] = &[
    &chrome::Chrome,
    &spike::Spike,
    &execlog::Execlog,
    &lackey::Lackey,
    &babeltrace::Babeltrace,
    &perf::Perf,
    &strace::Strace,
    &ltrace::Ltrace,
    &finstrument::Finstrument,
    &mpi_text::MpiText,
    &calls::Calls,
    &calls_binary::CallsBinary,
    &csv::Csv,
    &bytes::Bytes,
    &integers::Integers::<1>,
    &integers::Integers::<2>,
    &integers::Integers::<4>,
    &integers::Integers::<8>,
    // Last, because it takes any text.
    &lines::Lines,
];
