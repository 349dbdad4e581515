//! The options of formats.
//!
//! A source lists its options with [`Source::options`](crate::Source::options), each with its name,
//! its help and the function that sets it. Command lines, help and errors are derived from these
//! lists, so that an option is written in the file of its format and in [`Options`], and nowhere else.

use crate::FunctionNames;
use std::path::PathBuf;
use std::sync::Arc;

/// The values of the options of all sources.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `lines`: a regular expression whose capture groups are the event.
    pub select: Option<String>,
    /// `lines`: a regular expression whose capture groups name the stream; `csv`: the column that
    /// does.
    pub stream_by: Option<String>,
    /// `lines`: write placeholders for times, numbers, addresses and the like.
    pub mask: bool,
    /// `csv`: the columns that make the event.
    pub event: Vec<String>,
    /// `csv`: the column with the start.
    pub start: Option<String>,
    /// `csv`: the column with the duration.
    pub duration: Option<String>,
    /// `csv`: columns with metrics.
    pub metric: Vec<String>,
    /// `csv`: the unit of times, where the column's name does not have one: `s`, `ms`, `us`, `ns`.
    pub time_unit: Option<String>,
    /// `chrome`: a slice is an enter and a leave.
    pub calls: bool,
    /// `chrome`: only slices of these categories.
    pub category: Vec<String>,
    /// `calls-binary`: the file with the names of functions. Sources open no files: the
    /// caller reads it into `functions`.
    pub names: Option<PathBuf>,
    /// `calls-binary`: the names of functions.
    pub functions: Arc<FunctionNames>,
    /// `otf2`: only MPI calls.
    pub mpi_only: bool,
    /// `otf2`: only regions whose names match one of these patterns with `*` and `?`.
    pub regions: Vec<String>,
    /// `mpi-text`: which rank the input is of.
    pub rank: Option<u64>,
    /// Continue past damage and report it, instead of stopping with an error.
    pub lenient: bool,
    /// `lines`: a last line without its end was cut off, which is damage.
    pub whole_lines: bool,
}

/// An option of a format.
#[derive(Clone, Copy, Debug)]
pub struct SourceOption {
    /// What users write after `--`.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What stands behind it on a command line, and how it is set.
    pub takes: Takes,
    /// True if giving it implies that the input is of this format.
    pub implies_format: bool,
}

/// What an option takes. The first text is the placeholder for it in help.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Nothing.
    Nothing(fn(&mut Options)),
    /// A text.
    Text(&'static str, fn(&mut Options, String)),
    /// One of some words.
    OneOf(&'static str, &'static [&'static str], fn(&mut Options, String)),
    /// Texts separated by commas; the option can be given several times. Set for each of them.
    List(&'static str, fn(&mut Options, String)),
    /// A text; the option can be given several times. Set for each of them.
    Repeated(&'static str, fn(&mut Options, String)),
    /// The path of a file.
    File(&'static str, fn(&mut Options, PathBuf)),
}

impl SourceOption {
    /// An option that the user writes as `--name`, with what it takes.
    ///
    /// ```
    /// use loopfold_sources::{Options, SourceOption, Takes};
    /// let set: fn(&mut Options) = |options| options.mask = true;
    /// let option = SourceOption::new("mask", "Write placeholders", Takes::Nothing(set));
    /// assert!(!option.implies_format && option.implying_format().implies_format);
    /// ```
    pub const fn new(name: &'static str, help: &'static str, takes: Takes) -> Self {
        Self { name, help, takes, implies_format: false }
    }

    /// The same; giving it implies that the input is of this format.
    pub const fn implying_format(self) -> Self {
        Self { implies_format: true, ..self }
    }
}
