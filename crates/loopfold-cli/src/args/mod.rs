//! The arguments of every command, one file each; options that several commands have are groups
//! of their own: [`shared`] (what is shown), [`reading`], [`selection`], [`formats`] and [`folding`].

mod cat;
mod compile;
mod context;
mod export;
mod find;
mod fold;
mod folding;
mod formats;
mod hot;
mod iterations;
mod loops;
mod merge;
mod output;
mod patterns;
mod reading;
mod record;
mod selection;
mod shared;
mod similar;
mod skeleton;
mod stats;
mod verify;
mod waits;

pub(crate) use cat::CatArgs;
pub(crate) use compile::{CargoArgs, CompileArgs};
pub(crate) use context::ContextArgs;
pub(crate) use export::{ExportArgs, ExportName};
pub(crate) use find::{FindArgs, FindMethod, FindShown};
pub(crate) use fold::{FoldArgs, TimesName};
pub(crate) use folding::{FolderArgs, FolderName, TiesName};
pub(crate) use formats::{UselessOption, argument as format_argument};
pub(crate) use hot::{HotArgs, HotMethod};
pub(crate) use iterations::IterationsArgs;
pub(crate) use loops::LoopsArgs;
pub(crate) use merge::MergeArgs;
pub(crate) use output::{OutputPath, Outputs};
pub(crate) use patterns::{KindName, PatternsArgs, PatternsMethod, RankName};
pub(crate) use reading::{PeersName, ReadArgs};
pub(crate) use record::{RecordArgs, RecordName};
pub(crate) use selection::SelectArgs;
pub(crate) use shared::{Form, TableFormat, Top};
pub(crate) use similar::SimilarArgs;
pub(crate) use skeleton::SkeletonArgs;
pub(crate) use stats::StatsArgs;
pub(crate) use verify::VerifyArgs;
pub(crate) use waits::WaitsArgs;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Folds the repetition in execution traces and shows their loop nests.
#[derive(Parser, Debug)]
#[command(name = "loopfold", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "INPUT is a trace of any known format (see `loopfold formats` and `loopfold help FORMAT`), a .fold archive, a grammar \
                  that `export` wrote, or - for standard input; .gz, .zst and .xz are decompressed.\n\n\
                  Exit status: 0 done, 1 nothing was found or a check failed, 2 an error."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A command with what it will write.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) command: Command,
    pub(crate) outputs: Outputs,
}

/// Parses arguments, of which the first is the name of the program.
pub(crate) fn parse(
    program: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Parsed, clap::Error> {
    let parser = Arguments::command().name(program).bin_name(program);
    let matches = parser.try_get_matches_from(arguments)?;
    let outputs = Outputs::of(&matches);
    Ok(Parsed { command: Arguments::from_arg_matches(&matches)?.command, outputs })
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Show the loop nest of each class of streams
    Loops(LoopsArgs),
    /// Show every iteration of a loop, or the slowest ones and what grew in them
    Iterations(IterationsArgs),
    /// Fold traces into an archive
    Fold(FoldArgs),
    /// Show sizes, counts and the most frequent and most costly events
    Stats(StatsArgs),
    /// Print the events, all of them or a window
    Cat(CatArgs),
    /// Count and locate a sequence of events, or a path of a function
    Find(FindArgs),
    /// Show the events before and after an event, with counts
    Context(ContextArgs),
    /// Find event sequences within an edit distance of a pattern
    Similar(SimilarArgs),
    /// Find the most expensive event sequences
    Hot(HotArgs),
    /// Find event sequences that occur repeatedly, and communication patterns
    Patterns(PatternsArgs),
    /// Find who waits for whom in traces of messages, where and how long
    Waits(WaitsArgs),
    /// Write a short MPI program that communicates as the recorded one does
    Skeleton(SkeletonArgs),
    /// Run a program and fold its paths, or its calls of MPI, while it runs
    Record(RecordArgs),
    /// Compile C so that `record` can record the paths of the program, in place of the compiler
    Cc(CompileArgs),
    /// Compile C++ so that `record` can record the paths of the program, in place of the compiler
    #[command(name = "c++")]
    Cxx(CompileArgs),
    /// Build Rust programs whose paths `record` can record
    Cargo(CargoArgs),
    /// The process that folds what `record` records
    #[command(hide = true)]
    RecordHelper {
        /// It was started by itself
        #[arg(long)]
        detached: bool,
    },
    /// Check an archive from end to end
    Verify(VerifyArgs),
    /// Join archives and traces into one archive
    Merge(MergeArgs),
    /// Write the rules as a graph or as text
    Export(ExportArgs),
    /// List the formats of traces that can be read
    Formats,
    /// Show the help of a command, or the events and options of a format
    Help {
        /// A command or a format
        topic: Option<String>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Write them to this directory
        directory: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_option_has_the_same_meaning_in_every_command() {
        let command = Arguments::command();
        for (option, own_help) in
            [("json", false), ("table", false), ("hex", false), ("full", false), ("top", true)]
        {
            let definitions = command.get_subcommands().flat_map(clap::Command::get_arguments);
            let definitions: Vec<_> = definitions.filter(|it| it.get_long() == Some(option)).collect();
            assert!(definitions.len() > 2, "{option}");
            for other in &definitions[1..] {
                let first = definitions[0];
                assert_eq!(other.get_help_heading(), first.get_help_heading(), "{option}");
                assert_eq!(other.get_value_names(), first.get_value_names(), "{option}");
                assert!(own_help || other.get_help() == first.get_help(), "{option}");
            }
        }
    }
}
