//! The options that choose how traces are folded.

use clap::{Args, ValueEnum};

const FOLDING: &str = "Folding";

/// How to fold.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct FolderArgs {
    /// Fold with this algorithm [default: outermost for `loops` and `waits`, auto for other commands; without repair where no archive is written]
    #[arg(long, value_enum, value_name = "NAME", help_heading = FOLDING)]
    pub(crate) folder: Option<FolderName>,
    /// Choose between equally long loop bodies
    #[arg(long, value_enum, help_heading = FOLDING)]
    pub(crate) ties: Option<TiesName>,
    /// Fold only loops with at least this many iterations
    #[arg(long, value_name = "N", help_heading = FOLDING)]
    pub(crate) min_times: Option<u32>,
    /// Use this many threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = FOLDING)]
    pub(crate) threads: Option<usize>,
}

impl FolderArgs {
    /// Whether the user chose how loops are found.
    pub(crate) fn is_chosen(self) -> bool {
        self.folder.is_some() || self.ties.is_some() || self.min_times.is_some()
    }

    /// The same; where no folder is named, this one.
    pub(crate) fn or(self, folder: FolderName) -> Self {
        Self { folder: self.folder.or(Some(folder)), ..self }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FolderName {
    /// The longest loop body first
    #[default]
    Outermost,
    /// The shortest loop body first
    Innermost,
    /// The shortest first, leftmost, with bodies rotated to match known ones
    Guarded,
    /// The longest first, from left to right
    Halving,
    /// The smallest possible nest, for streams of up to 16,384 events
    Minimum,
    /// The most frequent pair of items first: the smallest archives
    Repair,
    /// SEQUITUR: an online grammar without counts
    Sequitur,
    /// The same, with one symbol of look-ahead
    Sequitur1,
    /// SEQUITUR with counted loops: online, so for traces of any length
    SequiturRuns,
    /// Repair, or outermost if rules would not make a stream smaller; sequitur-runs if there are
    /// more than 2^26 events
    Auto,
    /// The same without repair, for commands that only read: not for users to name
    #[value(skip)]
    AutoOnline,
    /// The smallest result of repair, sequitur-runs and outermost
    Smallest,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TiesName {
    /// The one with the most iterations, then the leftmost
    Iterations,
    /// The leftmost
    Left,
}
