//! The arguments of `patterns`.

use super::shared::{FINDING, Form, Full, Hex, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::{Args, ValueEnum};

const EVENTS: &str = "Events of patterns";
const FOLLOWING: &str = "Following";

const PATTERNS_HELP: &str = "\
In a trace with sends, receives and collectives, patterns consist of these, and the envelope of a message does not \
count (tag, bytes, and other fields that do not say who communicates with whom), unless --envelope or --key asks for \
it. In other traces patterns consist of all events.

Each loop is searched as one iteration, so a loop alone is not a pattern; `count` includes its iterations. An \
occurrence that is part of a longer pattern counts for the longer one.";

#[derive(Args, Debug)]
#[command(after_long_help = PATTERNS_HELP)]
#[command(mut_arg("top", Top::of_data("patterns", "20")))]
#[command(mut_arg("rows", Form::of(&["patterns"])))]
pub(crate) struct PatternsArgs {
    /// Use all events, not only sends, receives and collectives
    #[arg(long, help_heading = EVENTS)]
    pub(crate) all_events: bool,
    /// Also distinguish events by tag, bytes and the other fields of calls
    #[arg(long, help_heading = EVENTS)]
    pub(crate) envelope: bool,
    /// Use only messages, or only collective operations
    #[arg(long, value_enum, help_heading = EVENTS)]
    pub(crate) kind: Option<KindName>,
    /// Search with this method
    #[arg(long, value_enum, default_value_t, help_heading = FINDING)]
    pub(crate) method: PatternsMethod,
    /// Find patterns with at least this many occurrences, in all streams together
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = FINDING)]
    pub(crate) min_count: u64,
    /// Order patterns by this
    #[arg(long, value_enum, default_value_t, help_heading = SHOWING)]
    pub(crate) rank_by: RankName,
    /// Also show the patterns of single processes, if there are communication patterns
    #[arg(long, help_heading = SHOWING)]
    pub(crate) processes: bool,
    /// The processes are a grid of this shape, such as 4x4: name topologies in it
    #[arg(long, value_name = "SHAPE", help_heading = SHOWING)]
    pub(crate) grid: Option<String>,
    /// Print only the messages and bytes that each process sends to each other, as CSV
    #[arg(long, conflicts_with_all = ["json", "table"], help_heading = SHOWING)]
    pub(crate) matrix: bool,
    /// Follow inputs that are still being written, pipes or files, and report patterns as they appear
    ///
    /// A report shows new patterns, and how often known ones have occurred since; with --json, it is a line with all
    /// of them. The complete list comes when all pipes have ended, or after --idle. Following takes at most a tenth of
    /// the time for reports.
    #[arg(long, conflicts_with_all = ["matrix", "table"], help_heading = FOLLOWING)]
    pub(crate) follow: bool,
    /// Wait at least this long between reports
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, requires = "follow", help_heading = FOLLOWING)]
    pub(crate) every: f64,
    /// End when no file has grown for this long
    #[arg(long, value_name = "SECONDS", requires = "follow", help_heading = FOLLOWING)]
    pub(crate) idle: Option<f64>,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) full: Full,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindName {
    /// Sends and receives
    Messages,
    /// Collective operations
    Collectives,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PatternsMethod {
    /// Most maximal repeats, in one pass with growing n-grams
    #[default]
    Ngrams,
    /// All maximal repeats
    Exact,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RankName {
    /// Those that cover the most events first
    #[default]
    Events,
    /// The most frequent first
    Count,
    /// The longest first
    Length,
    /// Those in the most streams first
    Processes,
}
