//! How traces are folded.

use clap::{Args, ValueEnum};

const FOLDING: &str = "Folding";

/// How to fold.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct FolderArgs {
    /// The algorithm [default: outermost for loops, auto for others]
    #[arg(long, value_enum, value_name = "NAME", help_heading = FOLDING)]
    pub(crate) folder: Option<FolderName>,
    /// Which of several equally long loop bodies is taken first
    #[arg(long, value_enum, help_heading = FOLDING)]
    pub(crate) ties: Option<TiesName>,
    /// Fold only what repeats at least this many times
    #[arg(long, value_name = "N", help_heading = FOLDING)]
    pub(crate) min_times: Option<u32>,
    /// How many threads to use [default: one per core]
    #[arg(long, value_name = "N", help_heading = FOLDING)]
    pub(crate) threads: Option<usize>,
}

impl FolderArgs {
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
    /// The smallest nest there is, for streams of up to 16,384 events
    Minimum,
    /// The most frequent pair of items first: the smallest archives
    Repair,
    /// A grammar without counts, symbol by symbol
    Sequitur,
    /// The same, with one symbol of look-ahead
    Sequitur1,
    /// Rules for all that repeats, with counted loops, while the trace arrives
    SequiturRuns,
    /// Chooses for each stream: sequitur-runs, or outermost where rules would not pay
    Auto,
    /// Tries repair, sequitur-runs and outermost and keeps the smallest
    Smallest,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TiesName {
    /// The one with the most iterations, then the leftmost
    Iterations,
    /// The leftmost
    Left,
}
