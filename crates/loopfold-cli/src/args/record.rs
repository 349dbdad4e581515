//! The arguments of `record`.

use super::TimesName;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// What options are for.
const PATHS: &str = "Options for paths";
const MPI: &str = "Options for MPI programs";

#[derive(Args, Debug)]
#[command(
    after_help = "Every path of a program that loopfold-cc, loopfold-c++ or loopfold cargo compiled:\n  \
                  loopfold-cc -O2 -o app app.c\n  \
                  loopfold record -o run.fold ./app\n\n\
                  Calls of an MPI program, whatever compiled it, and its paths if loopfold-cc did; each of its processes \
                  is recorded by a process of its own:\n  \
                  mpirun -n 16 loopfold record --mpi -o run.fold ./app\n\n\
                  While an MPI program runs, its events are in the folder run.fold.parts, which every command reads \
                  like an archive; run.fold replaces it when MPI_Finalize is reached."
)]
pub(crate) struct RecordArgs {
    /// Record the calls of MPI; without it, only paths are recorded
    #[arg(long)]
    pub(crate) mpi: bool,
    /// Write this archive
    #[arg(short, long, value_name = "FILE", required_unless_present = "header")]
    pub(crate) output: Option<PathBuf>,
    /// Write what the program does to FILE.spool while it runs, and fold it afterwards: the program
    /// waits less, and nothing is lost if the recorder is killed
    #[arg(long, conflicts_with = "mpi", help_heading = PATHS)]
    pub(crate) spool: bool,
    /// Also measure the processor cycles of every path, as sums for each path and rule
    #[arg(long, conflicts_with = "mpi", help_heading = PATHS)]
    pub(crate) cycles: bool,
    /// Measure this counter of the kernel for every path, as sums for each path and rule: one that
    /// `perf list` has, such as instructions, cache-misses or page-faults
    #[arg(long, value_name = "NAME", conflicts_with_all = ["mpi", "spool", "cycles"], help_heading = PATHS)]
    pub(crate) counter: Option<String>,
    /// Which times to keep; paths have none
    #[arg(long, value_enum, value_name = "TIMES", default_value = "all", help_heading = MPI)]
    pub(crate) times: TimesName,
    /// Also record where each call comes from: function, file and line
    #[arg(long, help_heading = MPI)]
    pub(crate) callsites: bool,
    /// The form of what is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "fold", help_heading = MPI)]
    pub(crate) to: RecordName,
    /// Write what was recorded at least every so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, help_heading = MPI)]
    pub(crate) segment_seconds: f64,
    /// The compiler wrapper of the MPI that the program uses [default: the one that fits the program]
    #[arg(long, value_name = "PROGRAM", help_heading = MPI)]
    pub(crate) mpicc: Option<PathBuf>,
    /// Print the environment that makes an MPI program record, instead of starting one
    #[arg(long, conflicts_with = "header", help_heading = MPI)]
    pub(crate) print_env: bool,
    /// Print the C header by which a program marks its regions
    #[arg(long, help_heading = MPI)]
    pub(crate) header: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordName {
    /// An archive
    Fold,
    /// An OTF2 archive, for other tools; FILE is its folder
    Otf2,
}

impl RecordName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RecordName::Fold => "fold",
            RecordName::Otf2 => "otf2",
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=1e6).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0.01 on is expected".to_string())
}
