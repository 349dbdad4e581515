//! The arguments of `export`.

use super::{FolderArgs, OutputPath, ReadArgs};
use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, ValueEnum};

/// `--to` is the form here, so that `--from` would have no counterpart.
#[derive(Args, Debug)]
#[command(mut_arg("to", form), mut_arg("from", |from| from.hide(true)))]
pub(crate) struct ExportArgs {
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<OutputPath>,
    /// weights: put an apostrophe before texts that a spreadsheet would execute
    ///
    /// These begin with =, +, - or @, after white space or not. Without the option, texts are exact.
    #[arg(long)]
    pub(crate) spreadsheet: bool,
    /// dot: draw at most this many nodes and edges
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// `--to` as the form to write.
fn form(to: Arg) -> Arg {
    let forms = ExportName::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    to.required(true)
        .value_name("FORM")
        .value_parser(PossibleValuesParser::new(forms))
        .help("Write this form")
        .long_help("Write this form")
        .help_heading(None::<&str>)
}

impl ExportArgs {
    /// The form to write, and what is read.
    pub(crate) fn split_form(&self) -> anyhow::Result<(ExportName, ReadArgs)> {
        let mut read = self.read.clone();
        if read.select.from.is_some() {
            anyhow::bail!(
                "export writes whole streams; --from selects a part for `fold`, whose archive can be exported"
            );
        }
        let form = read.select.to.take().and_then(|form| ExportName::from_str(&form, false).ok());
        let form = form.context("--to says which form to write")?;
        if self.spreadsheet && form != ExportName::Weights {
            anyhow::bail!("--spreadsheet is for --to weights");
        }
        Ok((form, read))
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportName {
    /// The graph of the rules, for Graphviz
    Dot,
    /// The rules as text, which every command reads like an archive; without times
    Grammar,
    /// Every distinct sequence of events without a loop, with the number of events it stands for, as CSV
    Weights,
    /// The same as a file of Parquet
    #[cfg(feature = "arrow")]
    Parquet,
    /// The same as tensors, for training
    Safetensors,
}

impl ExportName {
    /// What it is, if a terminal cannot show it.
    pub(crate) fn binary(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "arrow")]
            ExportName::Parquet => Some("--to parquet"),
            ExportName::Safetensors => Some("--to safetensors"),
            ExportName::Dot | ExportName::Grammar | ExportName::Weights => None,
        }
    }
}
