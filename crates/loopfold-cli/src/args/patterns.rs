//! The arguments of `patterns`.

use super::shared::{FINDING, Full, Hex, Json, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::{Args, ValueEnum};

const EVENTS: &str = "Events of patterns";

const PATTERNS_HELP: &str = "\
In a trace with sends, receives and collectives, patterns consist of these, and the envelope of a message does not \
count (tag, bytes, and other fields that do not say who communicates with whom), unless --envelope or --key asks for \
it. In other traces patterns consist of all events.

Each contiguous repetition is looked at once: what `loops` shows as a loop is no pattern because of that. Its \
iterations are added back where it is counted. An occurrence that is part of a longer pattern counts for that one.";

#[derive(Args, Debug)]
#[command(after_long_help = PATTERNS_HELP)]
#[command(mut_arg("top", Top::of_text("patterns", "20")))]
pub(crate) struct PatternsArgs {
    /// All events, not only sends, receives and collectives
    #[arg(long, help_heading = EVENTS)]
    pub(crate) all_events: bool,
    /// Tag, bytes and the other fields of calls count too
    #[arg(long, help_heading = EVENTS)]
    pub(crate) envelope: bool,
    /// Only messages, or only collective operations
    #[arg(long, value_enum, help_heading = EVENTS)]
    pub(crate) kind: Option<KindName>,
    /// How they are searched
    #[arg(long, value_enum, default_value_t, help_heading = FINDING)]
    pub(crate) method: PatternsMethod,
    /// The fewest occurrences of a pattern, in all streams together
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = FINDING)]
    pub(crate) min_count: u64,
    /// Which patterns come first
    #[arg(long, value_enum, default_value_t, help_heading = SHOWING)]
    pub(crate) rank_by: RankName,
    /// Show the patterns of single processes as well, where there are communication patterns
    #[arg(long, help_heading = SHOWING)]
    pub(crate) processes: bool,
    /// Print how many messages and bytes each process sends to each other, as CSV, and nothing else
    #[arg(long, conflicts_with = "json", help_heading = SHOWING)]
    pub(crate) matrix: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) full: Full,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) json: Json,
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
    /// One pass with growing n-grams: most of them, fast
    #[default]
    Ngrams,
    /// All maximal repeats
    Exact,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RankName {
    /// Those that most events belong to
    #[default]
    Events,
    /// Those that occur most often
    Count,
    /// The longest
    Length,
    /// Those of the most streams
    Processes,
}
