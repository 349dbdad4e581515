//! The arguments of `similar`.

use super::reading::with_query;
use super::shared::{Form, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::Args;
use clap::builder::ArgPredicate;
use std::path::PathBuf;

const PATTERN: &str = "Pattern";
const SIMILARITY: &str = "Similarity";

const EVENTS_HELP: [&str; 2] = [
    "Traces and archives, or - for standard input; then the events of the pattern",
    "The pattern is written as for `find`, unless --pattern, --like or --number names it.",
];
const SIMILAR_HELP: &str = "\
In MPI traces, sends, receives and collectives are compared, without tags and sizes. A pattern of several \
processes (a file with lines such as `rank 0:`, or --like) is searched in the stream of each, and windows that \
exchange messages are one occurrence.";

#[derive(Args, Debug)]
#[command(
    override_usage = "loopfold similar [OPTIONS] <INPUT>... <PATTERN>\n       loopfold similar [OPTIONS] <INPUT>... --pattern <FILE>\n       loopfold similar [OPTIONS] <INPUT>... --like <NAME:SIZE>"
)]
#[command(after_long_help = SIMILAR_HELP)]
#[command(mut_arg("inputs", |inputs| with_query(inputs, "PATTERN", EVENTS_HELP)))]
#[command(mut_arg("top", |top| {
    top.help("Show this many places; 0 shows all, and by default --all, --json and --table show 1,000,000")
        .default_value("20")
        .default_value_ifs([
            ("all", "true".into(), "1000000"),
            ("json", "true".into(), "1000000"),
            ("table", ArgPredicate::IsPresent, "1000000"),
        ])
}))]
#[command(mut_arg("rows", Form::of(&["similar"])))]
pub(crate) struct SimilarArgs {
    /// Read the pattern from this file
    ///
    /// Each line is an event, as `cat` prints it. A line such as `rank 0:` begins the events of a
    /// process. Empty lines and those that begin with # are ignored.
    #[arg(long, value_name = "FILE", group = "given", help_heading = PATTERN)]
    pub(crate) pattern: Option<PathBuf>,
    /// Find a known communication pattern of a size, such as ring:8 or mesh:4x4
    ///
    /// Known are line:8, ring:8, mesh:4x4, torus:4x4x4, wavefront:4x4, star:8, binary-tree:15,
    /// binomial-tree:16, hypercube:16, butterfly:16, all-to-all:8.
    #[arg(
        long,
        value_name = "NAME:SIZE",
        group = "given",
        conflicts_with_all = ["all_events", "envelope"],
        help_heading = PATTERN
    )]
    pub(crate) like: Option<String>,
    /// Find the pattern of this number in the list of `patterns`
    #[arg(long, value_name = "N", group = "given", help_heading = PATTERN)]
    pub(crate) number: Option<usize>,
    /// Allow this many insertions, deletions and substitutions of events, in each process
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = SIMILARITY)]
    pub(crate) edits: usize,
    /// Filter windows by n-grams of this size; it does not change the answer
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = SIMILARITY)]
    pub(crate) ngram: usize,
    /// Patterns of several processes: allow edits of this share of the events of the pattern
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = SIMILARITY)]
    pub(crate) max_error: String,
    /// Compare all events, not only those of communication
    #[arg(long, help_heading = SIMILARITY)]
    pub(crate) all_events: bool,
    /// Also compare tags, sizes and the other fields of messages
    #[arg(long, help_heading = SIMILARITY)]
    pub(crate) envelope: bool,
    /// Print all places
    ///
    /// A place is the stream, the positions of the first and the last event, the number of events
    /// compared, and the edits, separated by tabs.
    #[arg(long, help_heading = SHOWING)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
