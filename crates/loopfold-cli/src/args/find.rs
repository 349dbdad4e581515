//! The arguments of `find`.

use super::reading::with_query;
use super::shared::{FINDING, Form, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::{Args, ValueEnum};
use loopfold::questions::path::Scheme;
use std::path::PathBuf;

const QUERY_HELP: [&str; 2] = [
    "Traces and archives, or - for standard input; then the events to find, such as 'A B C', or a path \
     of a function, such as 'F: B1 B2'",
    "Events are found one directly after the other. They are separated by blanks, those with blanks inside in \
     quotes. A name stands for all events of that name, with fields for those that have them: 'MPI_Recv src=4'. \
     A number may be decimal or hexadecimal. If no event has that name, it is a pattern: 'MPI_*', with *, ? and \
     [a-z], or /re/, a regular expression that matches in the text of the event, as grep does. An event that does \
     not occur is a count of 0 and exit status 1.",
];
const PATH_HELP: &str = "\
Paths of functions: in a trace of calls, 'F: B1 B2 B3' finds blocks that one invocation of the function F executes \
one directly after the other, whatever it calls in between. The name of the function ends at the first colon \
followed by a blank, and may be quoted; with *, ? or [a-z] it stands for all functions that match and have the \
blocks, as does a regular expression /re/. Blocks are names, numbers or patterns likewise; * is any one block, and B1 .. B3 allows any blocks in between, or none: \
then distinct ends are counted. If the trace has only calls, the calls that a function makes are its blocks.

A query is a path if it has such a colon outside of quotes and the trace has functions, and a sequence of events \
otherwise. Quote an event whose name ends in a colon.";

#[derive(Args, Debug)]
#[command(
    override_usage = "loopfold find [OPTIONS] <INPUT>... <QUERY>\n       loopfold find [OPTIONS] <INPUT>... --queries <FILE>"
)]
#[command(after_long_help = PATH_HELP)]
#[command(mut_arg("inputs", |inputs| with_query(inputs, "QUERY", QUERY_HELP)))]
#[command(mut_arg("top", Top::of_rows("places or streams", "1000000")))]
#[command(mut_arg("rows", Form::of(&["find", "before", "queries"])))]
pub(crate) struct FindArgs {
    /// Find whether and when it first happens before this other query
    #[arg(long, value_name = "QUERY", help_heading = FINDING)]
    pub(crate) before: Option<String>,
    /// Find all queries of a file, one a line, and print a line of JSON, or a row of a table, for each
    ///
    /// - is standard input. Empty lines and those that begin with # are ignored.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["FindShown", "before"],
        help_heading = FINDING
    )]
    pub(crate) queries: Option<PathBuf>,
    /// Paths: search with this method. All methods give the same answer
    #[arg(long, value_enum, default_value_t, help_heading = FINDING)]
    pub(crate) method: FindMethod,
    /// Paths: print which method was used, and why
    #[arg(long, help_heading = FINDING)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) shown: FindShown,
    /// Paths: print the call stack of each place, the innermost call last
    #[arg(long, help_heading = SHOWING)]
    pub(crate) stacks: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// How paths are searched; the numbers are those of the schemes in the literature.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FindMethod {
    /// Choose the method that is likely to be the fastest
    #[default]
    Auto,
    /// Scheme 1: unfold everything and scan it
    #[value(alias = "1")]
    Unfolded,
    /// Scheme 2: visit every rule once, without unfolding
    #[value(alias = "2")]
    Folded,
    /// Scheme 3: unfold and scan the chunks that contain the function
    #[value(alias = "3")]
    Chunks,
    /// Scheme 4: search the parts of the fold that contain the function
    #[value(alias = "4")]
    Indexed,
}

impl FindMethod {
    /// The requested scheme. Returns `None` if it is to be chosen.
    pub(crate) fn wanted(self) -> Option<Scheme> {
        match self {
            FindMethod::Auto => None,
            FindMethod::Unfolded => Some(Scheme::Unfolded),
            FindMethod::Folded => Some(Scheme::Folded),
            FindMethod::Chunks => Some(Scheme::Chunks),
            FindMethod::Indexed => Some(Scheme::Indexed),
        }
    }
}

/// What to show of what was found, instead of a summary.
#[derive(Args, Debug, Clone, Copy)]
#[group(multiple = false)]
pub(crate) struct FindShown {
    /// Print the number of occurrences and nothing else
    #[arg(long, conflicts_with = "table", help_heading = SHOWING)]
    pub(crate) count: bool,
    /// Print the first place
    ///
    /// A place is the stream, the positions of the first and the last event, and the start in
    /// nanoseconds where the trace has times, separated by tabs.
    #[arg(long, conflicts_with = "table", help_heading = SHOWING)]
    pub(crate) first: bool,
    /// Print the K-th place, counted from 1
    #[arg(long, value_name = "K", conflicts_with = "table", help_heading = SHOWING)]
    pub(crate) nth: Option<u64>,
    /// Print all places
    #[arg(long, help_heading = SHOWING)]
    pub(crate) all: bool,
    /// Show the count and the first place in each stream
    #[arg(long, help_heading = SHOWING)]
    pub(crate) per_stream: bool,
}
