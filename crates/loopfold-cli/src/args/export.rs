//! The arguments of `export`.

use super::{FolderArgs, ReadArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Write this form
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) to: ExportName,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// dot: draw at most this many nodes and edges
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportName {
    /// The graph of the rules, for Graphviz
    Dot,
    /// The rules as text, which every command reads like an archive; without times
    Grammar,
}
