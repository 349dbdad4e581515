//! The arguments of `stats`.

use super::shared::{Hex, Json, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::Args;

#[derive(Args, Debug)]
#[command(mut_arg("top", Top::of("of the most frequent events and of the streams", "10")))]
pub(crate) struct StatsArgs {
    /// Only list all streams with their numbers
    #[arg(long, help_heading = SHOWING)]
    pub(crate) streams: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
