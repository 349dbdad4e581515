//! What is read, and what counts as the same event.

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
    /// The format of the traces, instead of guessing it from their content
    #[arg(long, value_name = "NAME", help_heading = READING)]
    pub(crate) format: Option<String>,
    /// Continue past damage in the input, and report it
    #[arg(long, help_heading = READING)]
    pub(crate) lenient: bool,
    /// lines: the capture groups of this regular expression are the event
    #[arg(long, value_name = "REGEX", help_heading = READING)]
    pub(crate) select: Option<String>,
    /// lines: the capture groups of this regular expression name the stream; csv: the column that
    /// does; all others: only streams whose name contains this
    #[arg(long, value_name = "STREAM", help_heading = READING)]
    pub(crate) stream: Option<String>,
    /// lines: placeholders for times, numbers, hexadecimal, UUIDs, addresses and paths
    #[arg(long, help_heading = READING)]
    pub(crate) mask: bool,
    /// csv: the columns that make the event
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = READING)]
    pub(crate) event: Vec<String>,
    /// csv: the column with the start of each event
    #[arg(long, value_name = "COLUMN", help_heading = READING)]
    pub(crate) start: Option<String>,
    /// csv: the column with the duration of each event
    #[arg(long, value_name = "COLUMN", help_heading = READING)]
    pub(crate) duration: Option<String>,
    /// csv: columns with further measurements
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = READING)]
    pub(crate) metric: Vec<String>,
    /// csv: the unit of times, where the column's name does not have one
    #[arg(long, value_name = "UNIT", value_parser = ["s", "ms", "us", "ns"], help_heading = READING)]
    pub(crate) time_unit: Option<String>,
    /// chrome: a slice is an enter and a leave, not one event
    #[arg(long, help_heading = READING)]
    pub(crate) calls: bool,
    /// chrome: only slices of these categories
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = READING)]
    pub(crate) category: Vec<String>,
    /// otf2: only calls of MPI, each one event
    #[arg(long, help_heading = READING)]
    pub(crate) mpi_only: bool,
    /// otf2: only regions whose names fit this pattern with * and ?; can be given several times
    #[arg(long, value_name = "GLOB", help_heading = READING)]
    pub(crate) regions: Vec<String>,
    /// calls-binary: the JSON file with the names of functions, instead of the one beside the trace
    #[arg(long, value_name = "FILE", help_heading = READING)]
    pub(crate) names: Option<PathBuf>,
    /// What makes events the same: `name` and fields of the format, or `all`
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = SAME_EVENT)]
    pub(crate) key: Option<Vec<String>>,
    /// Fields that do not count
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = SAME_EVENT)]
    pub(crate) ignore: Vec<String>,
    /// A file of names and their classes, separated by a tab; a name may end in *
    #[arg(long, value_name = "FILE", help_heading = SAME_EVENT)]
    pub(crate) map: Option<PathBuf>,
    /// How the other end of a message is written: its rank, its distance from the own rank, or its
    /// offset in the process grid
    #[arg(long, value_enum, default_value_t, help_heading = SAME_EVENT)]
    pub(crate) peers: PeersName,
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
pub(super) fn with_query(inputs: Arg, query: &'static str, help: &'static str) -> Arg {
    // A path is never empty, but a query may be, and then has an error of its own.
    let any_text = clap::builder::OsStringValueParser::new().map(PathBuf::from);
    inputs.value_names(["INPUT", query]).value_parser(any_text).help(help)
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
