//! The arguments of `cat`.

use super::ReadArgs;
use super::shared::{Form, Hex, SHOWING};
use clap::Args;

#[derive(Args, Debug)]
#[command(mut_arg("rows", Form::of(&["cat"])))]
pub(crate) struct CatArgs {
    /// Print start and duration in nanoseconds before each event
    #[arg(long, help_heading = SHOWING)]
    pub(crate) times: bool,
    /// Print the basic blocks of recorded paths in place of the paths
    #[arg(long, conflicts_with_all = ["raw", "times"], help_heading = SHOWING)]
    pub(crate) blocks: bool,
    /// Write integers or tokens as bytes, as they were read
    ///
    /// Integers are as wide as they were read (u8 to u64). What was read as calls-binary is written
    /// as tokens; if its functions had names, --names FILE maps these back to numbers.
    #[arg(long, conflicts_with_all = ["json", "table", "times", "hex"], help_heading = SHOWING)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
