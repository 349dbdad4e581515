//! The arguments of `merge`.

use super::shared::Json;
use super::{FolderArgs, OutputPath, ReadArgs};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// Write this archive
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: OutputPath,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
