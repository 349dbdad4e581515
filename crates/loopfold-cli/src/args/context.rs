//! The arguments of `context`.

use super::reading::with_query;
use super::shared::{Form, Hex, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::Args;

const EVENT_HELP: [&str; 2] = [
    "Traces and archives, or - for standard input; then the event",
    "The event may be a sequence of events, as for `find`.",
];

#[derive(Args, Debug)]
#[command(override_usage = "loopfold context [OPTIONS] <INPUT>... <EVENT>")]
#[command(mut_arg("inputs", |inputs| with_query(inputs, "EVENT", EVENT_HELP)))]
#[command(mut_arg("rows", Form::of(&["context"])))]
#[command(mut_arg("top", Top::of_data("of the events that can follow, the most frequent first", "5")))]
pub(crate) struct ContextArgs {
    /// Show this many events on either side
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = SHOWING)]
    pub(crate) depth: usize,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
