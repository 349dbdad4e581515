//! The arguments of `skeleton`.

use super::shared::Json;
use super::{FolderArgs, OutputPath, ReadArgs};
use clap::{Args, ValueEnum};
use loopfold::skeleton::{Scale, Wildcards};
use std::ffi::OsString;

const SKELETON_HELP: &str = "\
The skeleton communicates as the recorded program does: loops as loops, peers as expressions of the rank or of the \
place in a grid, messages of the recorded sizes. What is computed between calls becomes busy work of the same mean \
length. With --scale 1/50, of loops that communicate with each other together every 50th iteration is kept, the loops \
that span most time first, and the computation is shortened by what remains; its time divided by the scale predicts \
that of the program. Compile it with mpicc.

Before it is written, the skeleton is executed by the rules of MPI: none is written in which a process would wait for \
ever. Calls that are left out or replaced, such as file access and one-sided communication, are noted.

--check compiles it with mpicc, starts the program and the skeleton by --launcher, both recorded, and prints the times \
and the nests: loopfold skeleton run.fold --scale 1/50 --check --launcher 'mpirun -n 4' -- ./app 1000";

#[derive(Args, Debug)]
#[command(after_long_help = SKELETON_HELP)]
pub(crate) struct SkeletonArgs {
    /// Write the C program to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<OutputPath>,
    /// How much shorter it is than the program, such as 1/50
    #[arg(long, value_name = "FRACTION", default_value = "1")]
    pub(crate) scale: Scale,
    /// Draw the lengths of computation from the recorded ones, instead of taking their mean
    #[arg(long)]
    pub(crate) noise: bool,
    /// Touch this much memory while computing, such as 64M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) touch_memory: Option<u64>,
    /// How to replay messages that were received from anyone [default: as recorded, or open where only that
    /// makes it as short as --scale]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) wildcards: Option<WildcardsName>,
    /// Write it for another number of processes than was recorded
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) ranks: Option<u32>,
    /// Run the program and the skeleton, and print their times and nests
    #[arg(long, requires_all = ["launcher", "program"])]
    pub(crate) check: bool,
    /// --check: the command that starts processes, such as 'mpirun -n 4'
    #[arg(long, value_name = "COMMAND")]
    pub(crate) launcher: Option<String>,
    /// --check: run both this many times, in turns, and compare the fastest of each
    ///
    /// Where processes are not bound to cores, or share them, which of them run side by side is
    /// decided by chance for a whole execution, and may change its time by a third.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// --check: the compiler of the skeleton
    #[arg(long, value_name = "COMMAND", default_value = "mpicc -O2")]
    pub(crate) compiler: String,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// --check: the program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// What `--wildcards` takes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WildcardsName {
    /// From the process that was recorded, in the recorded order
    Recorded,
    /// From anyone again, with replies to whoever sent
    Open,
}

impl From<WildcardsName> for Wildcards {
    fn from(name: WildcardsName) -> Self {
        match name {
            WildcardsName::Recorded => Wildcards::Recorded,
            WildcardsName::Open => Wildcards::Open,
        }
    }
}

/// A number of bytes, such as `64M`.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err("a number of bytes such as 64M is expected".to_string()),
    };
    let number: u64 = digits.parse().map_err(|_| "a number of bytes such as 64M is expected".to_string())?;
    number.checked_shl(shift).filter(|bytes| bytes >> shift == number).ok_or_else(|| "too large".to_string())
}
