//! The arguments of `loops`.

use super::shared::{Form, Full, Hex, SHOWING, Top};
use super::{FolderArgs, ReadArgs};
use clap::Args;

const LOOPS_HELP: &str = "\
A loop with an odd iteration now and then is shown as one, `≈ 200 × (20 events; 183 equal, 17 differ)`, with its \
exceptions by kind, where that is clearly shorter than the exact pieces; a number of iterations that varies is shown \
as {3..7}. --exact shows the exact nest, as do the options that choose a folder; --json has both.

With --patterns, events are sends, receives and collectives without their envelope, as in `patterns`, and each \
occurrence of a communication pattern is one event with the number and the name that it has there. Of patterns inside \
of each other the largest is shown. Patterns are those of all streams, also where --stream selects some.

With --logical, `dest=(rank + 1) % size` and `[row - 1, column]` are ranks of the communicator of the event; a step out \
of a grid is nobody. `rank in 3,5-7` and cases with it are exceptions that no rule describes. Unfolding the nest for \
every process gives its events back; that is checked before anything is printed.";

#[derive(Args, Debug)]
#[command(after_long_help = LOOPS_HELP)]
#[command(mut_arg("top", Top::of("classes, those with the most events first", "10")))]
#[command(mut_arg("rows", Form::of(&["loops"])))]
pub(crate) struct LoopsArgs {
    /// Show loops down to this depth
    #[arg(long, value_name = "N", help_heading = SHOWING)]
    pub(crate) depth: Option<usize>,
    /// Rotate loops so that an iteration begins at this event (a name or pattern as for `find`), at balanced
    /// `calls` (the default for control flow), after the longest `gap`, or `none`
    #[arg(long, value_name = "EVENT|calls|gap|none", help_heading = SHOWING)]
    pub(crate) align: Option<String>,
    /// Show the exact nest, without loops with exceptions
    #[arg(long, help_heading = SHOWING)]
    pub(crate) exact: bool,
    /// Show communication patterns as single events, in traces with sends, receives or collectives
    #[arg(long, conflicts_with = "peers", help_heading = SHOWING)]
    pub(crate) patterns: bool,
    /// Show one nest for all processes: peers and sizes as expressions of the rank or of the place in a
    /// grid, and what only some processes do as branches
    #[arg(long, conflicts_with_all = ["peers", "patterns", "align", "exact", "table"], help_heading = SHOWING)]
    pub(crate) logical: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) full: Full,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
