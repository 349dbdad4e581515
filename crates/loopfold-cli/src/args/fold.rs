//! The arguments of `fold`.

use super::shared::Json;
use super::{FolderArgs, OutputPath, ReadArgs};
use clap::{Args, ValueEnum};
use loopfold::questions::path::ChunkSize;

#[derive(Args, Debug)]
pub(crate) struct FoldArgs {
    /// Write this archive
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: OutputPath,
    /// Make the smallest archive, which takes several times longer: the same as --folder smallest
    #[arg(long, conflicts_with = "folder")]
    pub(crate) smallest: bool,
    /// Fold only part I of N of the streams; `merge` makes the whole archive of all N parts
    ///
    /// Streams are divided by their sizes: the files, or the locations of an OTF2 archive. So nodes can
    /// fold a trace together without MPI; with it, `loopfold-mpi` does both steps.
    #[arg(long, value_name = "I/N", value_parser = part, conflicts_with_all = ["smallest", "chunks", "index"])]
    pub(crate) part: Option<(usize, usize)>,
    /// Keep these times
    #[arg(long, value_enum, default_value_t)]
    pub(crate) times: TimesName,
    /// Also store the events themselves, in compressed chunks [without SIZE: 4M]
    ///
    /// SIZE is the number of bytes of a chunk before compression, such as 256k or 4M. Chunks are for
    /// the methods of `find` that scan.
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "4M")]
    #[arg(value_parser = chunk_size)]
    pub(crate) chunks: Option<ChunkSize>,
    /// Also store an index of the parts of the trace that contain each function [without RANGES: 128]
    ///
    /// RANGES is the approximate number of parts. `find` only searches the parts that contain a
    /// function. Traces of calls get such an index by default.
    #[arg(long, value_name = "RANGES", num_args = 0..=1, require_equals = true, default_missing_value = "128")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65536))]
    pub(crate) index: Option<usize>,
    /// Do not store an index of functions
    #[arg(long, conflicts_with = "index")]
    pub(crate) no_index: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimesName {
    /// Start, duration and metrics of every event
    #[default]
    All,
    /// Sums for each event, rule and loop, instead of every event's times
    Summary,
    /// None
    None,
}

/// A number of bytes, of KiB or of MiB.
fn chunk_size(text: &str) -> Result<ChunkSize, String> {
    let unit = |unit: char| text.strip_suffix([unit, unit.to_ascii_uppercase()]);
    let (digits, scale) = match (unit('k'), unit('m')) {
        (Some(digits), _) => (digits, 1 << 10),
        (_, Some(digits)) => (digits, 1 << 20),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(scale));
    let bytes = bytes.ok_or("a size is a number, such as 65536, 256k or 4M")?;
    ChunkSize::of_bytes(bytes).map_err(|error| error.to_string())
}

/// A part, such as 2/8, as its number from 0 and how many there are.
fn part(text: &str) -> Result<(usize, usize), String> {
    let parts =
        text.split_once('/').and_then(|(part, count)| Some((part.parse().ok()?, count.parse().ok()?)));
    match parts {
        Some((part, count)) if (1..=count).contains(&part) => Ok((part - 1, count)),
        _ => Err("a part is written as 2/8, the second of eight".to_string()),
    }
}
