//! The arguments of `hot`.

use super::shared::{FINDING, Form, Full, Hex, Top};
use super::{FolderArgs, ReadArgs};
use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
#[command(mut_arg("top", Top::of_data("subpaths, the most expensive first", "20")))]
#[command(mut_arg("rows", Form::of(&["hot"])))]
pub(crate) struct HotArgs {
    /// Find subpaths of at least this many events
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = FINDING)]
    pub(crate) min_length: usize,
    /// Find subpaths of at most this many events
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = FINDING)]
    pub(crate) max_length: usize,
    /// Find subpaths that cost at least this: a number, a share or a time
    ///
    /// The cost of a subpath is its count times the cost of its events. The limit is a number, a
    /// share of the whole cost such as 0.1%, or with --cost duration or self a time such as 20ms.
    #[arg(long, value_name = "COST", default_value = "0.1%", allow_hyphen_values = true, help_heading = FINDING)]
    pub(crate) min_cost: String,
    /// Set the cost of an event: `duration`, `self` time, a metric, or a file with costs [default: 1]
    ///
    /// With `duration`, `self` or a metric, the cost is the mean over all events that count as the
    /// same. Where events nest, as the slices of a profiler do, `duration` counts the time of an event
    /// also for those around it; `self` leaves out the events inside. A file has an event and a number
    /// on each line.
    #[arg(long, value_name = "self|duration|METRIC|FILE", help_heading = FINDING)]
    pub(crate) cost: Option<String>,
    /// Also find hot subpaths with a shorter hot prefix
    #[arg(long, help_heading = FINDING)]
    pub(crate) all: bool,
    /// Search with this method
    #[arg(long, value_enum, default_value_t, help_heading = FINDING)]
    pub(crate) method: HotMethod,
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

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HotMethod {
    /// All hot subpaths, independent of the folder
    #[default]
    Exact,
    /// Those that Larus' procedure finds in these rules: it restarts after each find
    Paper,
}
