//! The arguments of `verify`.

use super::shared::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The archives
    #[arg(required = true, value_name = "ARCHIVE")]
    pub(crate) archives: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}
