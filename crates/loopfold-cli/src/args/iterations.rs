//! The arguments of `iterations`.

use super::reading::with_query;
use super::shared::{FINDING, Form, Hex, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use anyhow::Context as _;
use clap::Args;

const LOOP_HELP: [&str; 2] = [
    "Traces and archives, or - for standard input; then the loop: its number in --list, or an event in it",
    "An event, by name or pattern as for `find`, stands for the innermost loop around its first place in the nest \
     that lies in one. Without a loop it is the one that \
     covers the most events of each class of streams. What is no file, behind an input, is a loop.",
];

const ITERATIONS_HELP: &str = "\
An iteration lasts until the next one begins; the last one of an occurrence to the latest end of its events, and is \
marked. Busy is for how much of that some event of the stream was open. The iterations of loops around it are given \
with the outermost first, all counted from 0. Loops with exceptions are as in `loops`; --table and --json give the place \
of the exception, that an iteration is or that follows it, among the kinds that `loops --json` has. --exact takes the \
loops of the exact nest.

Starts count from the start of the trace, as for --from. Above the rows, the medians of phases are printed where the \
program changed its pace: Pettitt's test finds a change, and medians differ by a fifth or more.

--iterations shows some of the iterations, by their numbers; with --within, it selects those of that loop instead, \
and iterations are counted from 0 again.

--slow compares the parts of a slow iteration, its events and inner loops, with their medians over all iterations: the \
time `in` a part, while its events were open, and the time `after` it until the next part began, in which nothing is \
known to have happened; without durations, the time `from` a part to the next one. All of these add up to the \
iteration. Gaps are the time in which no event was open. --slow 1 --iterations 30 explains that iteration.";

#[derive(Args, Debug)]
#[command(override_usage = "loopfold iterations [OPTIONS] <INPUT>... [LOOP]")]
#[command(after_long_help = ITERATIONS_HELP)]
#[command(mut_arg("inputs", |inputs| with_query(inputs, "LOOP", LOOP_HELP)))]
#[command(mut_arg("top", Top::of_data("iterations of a stream", "40")))]
#[command(mut_arg("rows", Form::of(&["iterations"])))]
pub(crate) struct IterationsArgs {
    /// List the loops with their numbers instead
    #[arg(long, conflicts_with_all = ["slow", "csv", "table"], help_heading = FINDING)]
    pub(crate) list: bool,
    /// Show the K slowest iterations and which of their parts grew
    #[arg(long, value_name = "K", conflicts_with = "csv", help_heading = FINDING)]
    pub(crate) slow: Option<usize>,
    /// Take the loops of the exact nest
    #[arg(long, help_heading = FINDING)]
    pub(crate) exact: bool,
    /// Print all iterations as comma-separated values, as `--table csv` does
    #[arg(long, conflicts_with_all = ["json", "table"], help_heading = SHOWING)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

impl IterationsArgs {
    /// The inputs, and the loop if there is one.
    pub(crate) fn split_loop(&self) -> anyhow::Result<(ReadArgs, Option<String>)> {
        let mut read = self.read.clone();
        let is_loop = |last: &mut std::path::PathBuf| !last.exists() && last.as_os_str() != "-";
        let chosen = if read.inputs.len() > 1 { read.inputs.pop_if(is_loop) } else { None };
        let text = |chosen: std::path::PathBuf| {
            chosen.to_str().map(str::to_string).context("the name of the loop is not text in UTF-8")
        };
        Ok((read, chosen.map(text).transpose()?))
    }
}
