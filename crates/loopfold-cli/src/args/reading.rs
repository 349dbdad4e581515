//! The options that choose what is read, and what counts as the same event.

use super::formats::FormatArgs;
use super::selection::SelectArgs;
use anyhow::Context as _;
use clap::builder::TypedValueParser as _;
use clap::{Arg, Args, ValueEnum};
use std::path::PathBuf;

const READING: &str = "Reading";
const SAME_EVENT: &str = "What counts as the same event";

/// What is read, and what counts as the same event.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ReadArgs {
    /// Traces and archives; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Select streams: by name, by a pattern with *, ? and [a-z], or by a number of `stats --streams`
    ///
    /// Can be given several times. A stream whose name is a number is selected by that name.
    #[arg(long, value_name = "STREAM", help_heading = READING)]
    pub(crate) stream: Vec<String>,
    /// Read traces as this format instead of guessing; `loopfold help FORMAT` shows its options
    ///
    /// The format is guessed from the content and the name of an input. `loopfold formats` lists all.
    #[arg(long, value_name = "FORMAT", help_heading = READING)]
    pub(crate) format: Option<String>,
    /// Replace addresses by functions of this program or library; can be given several times
    ///
    /// For traces of addresses (-finstrument-functions, lackey, Spike, QEMU, perf, integers): main+0x1c
    /// is an address in main. Names of C++ and Rust are demangled.
    #[arg(long, value_name = "BINARY", help_heading = READING)]
    pub(crate) symbols: Vec<PathBuf>,
    /// Continue past damage in the input, and report it
    #[arg(long, help_heading = READING)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Compare events by these: `name` and fields of the format, or `all`
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = SAME_EVENT)]
    pub(crate) key: Option<Vec<String>>,
    /// Ignore these fields
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = SAME_EVENT)]
    pub(crate) ignore: Vec<String>,
    /// Replace names by classes: a file of names and classes, separated by a tab; a name may end in *
    #[arg(long, value_name = "FILE", help_heading = SAME_EVENT)]
    pub(crate) map: Option<PathBuf>,
    /// Write the other end of a message as its rank, its distance from the own rank, or its offset in
    /// the process grid
    #[arg(long, value_enum, default_value_t, help_heading = SAME_EVENT)]
    pub(crate) peers: PeersName,
    #[command(flatten)]
    pub(crate) formats: FormatArgs,
}

/// How the other end of a message is written.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PeersName {
    /// dest=6, its rank
    #[default]
    Absolute,
    /// dest=+1, its distance from the own rank in the communicator
    Relative,
    /// dest=(0,+1), its offset in the grid that the communicator has or that its messages show
    Cartesian,
}

/// The inputs of a command with a query. The query is the last of the inputs: as an argument of its
/// own it could not stand behind an option.
pub(super) fn with_query(inputs: Arg, query: &'static str, [short, more]: [&'static str; 2]) -> Arg {
    // A path is never empty, but a query may be, and then has an error of its own.
    let any_text = clap::builder::OsStringValueParser::new().map(PathBuf::from);
    inputs
        .value_names(["INPUT", query])
        .value_parser(any_text)
        .help(short)
        .long_help(format!("{short}\n\n{more}"))
}

impl ReadArgs {
    /// The inputs, and the query that is the last argument.
    pub(crate) fn split_query(&self) -> anyhow::Result<(Self, String)> {
        let mut read = self.clone();
        let query = read.inputs.pop().filter(|_| !read.inputs.is_empty());
        let query = query.context("name an input, and then the events to find, such as 'A B C'")?;
        let query = query.to_str().context("the query is not text in UTF-8")?;
        Ok((read, query.to_string()))
    }
}
