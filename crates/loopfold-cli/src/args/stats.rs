//! The arguments of `stats`.

use super::shared::{Form, Full, Hex, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::Args;

const STATS_HELP: &str = "\
The share of an event is that of its time in the time of all events: where events nest, its self time, the duration \
without the events inside, in that of all events; among the most frequent events it is that of its number. Metrics \
have the same. --full prints whole names; otherwise names of C++ lose the type that is returned, arguments, namespaces \
and template arguments as far as needed, and different names of a table look different.";

#[derive(Args, Debug)]
#[command(after_long_help = STATS_HELP)]
#[command(mut_arg("top", Top::of("of the most frequent events and of the streams", "10")))]
#[command(mut_arg("rows", Form::of(&["stats"])))]
pub(crate) struct StatsArgs {
    /// Only list all streams with their numbers
    #[arg(long, help_heading = SHOWING)]
    pub(crate) streams: bool,
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
