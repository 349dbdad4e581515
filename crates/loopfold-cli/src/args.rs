//! The arguments of every command.

use anyhow::Context as _;
use clap::builder::TypedValueParser as _;
use clap::{Args, Parser, Subcommand, ValueEnum};
use loopfold::questions::{ChunkSize, Scheme};
use std::path::PathBuf;

/// Folds the repetition out of execution traces and shows the loops that made them.
#[derive(Parser, Debug)]
#[command(name = "loopfold", version, max_term_width = 100)]
#[command(
    after_help = "INPUT is a trace of any known format (see `loopfold formats`), a .fold archive, a grammar \
                        that `export` wrote, or - for standard input; .gz, .zst and .xz are opened as they are.\n\nExit status: 0 done, 1 nothing was found \
                        or a check failed, 2 an error."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Show the loop nest of each class of streams
    Loops(LoopsArgs),
    /// Fold traces into an archive
    Fold(FoldArgs),
    /// Show sizes and counts
    Stats(StatsArgs),
    /// Unfold: print the events, all of them or a window
    Cat(CatArgs),
    /// Find a sequence of events, or a path of a function: how often it occurs, and where
    #[command(
        override_usage = "loopfold find [OPTIONS] <INPUT>... <QUERY>\n       loopfold find [OPTIONS] <INPUT>... --queries <FILE>"
    )]
    #[command(after_help = PATH_HELP)]
    #[command(mut_arg("inputs", |inputs| with_query(inputs, "QUERY", QUERY_HELP)))]
    Find(FindArgs),
    /// Show what comes before and after an event, with counts
    #[command(override_usage = "loopfold context [OPTIONS] <INPUT>... <EVENT>")]
    #[command(mut_arg("inputs", |inputs| with_query(inputs, "EVENT", EVENT_HELP)))]
    Context(ContextArgs),
    /// Find places that are like a pattern, within an edit distance
    #[command(
        override_usage = "loopfold similar [OPTIONS] <INPUT>... <PATTERN>\n       loopfold similar [OPTIONS] <INPUT>... --pattern <FILE>\n       loopfold similar [OPTIONS] <INPUT>... --like <NAME:SIZE>"
    )]
    #[command(after_help = SIMILAR_HELP)]
    #[command(mut_arg("inputs", |inputs| with_query(inputs, "PATTERN", EVENTS_HELP)))]
    Similar(SimilarArgs),
    /// Find the sequences of events on which most of the cost falls
    Hot(HotArgs),
    /// Find sequences of events that come again and again, though not one directly after the other
    #[command(after_help = PATTERNS_HELP)]
    Patterns(PatternsArgs),
    /// Check an archive from end to end
    Verify(VerifyArgs),
    /// Join archives and traces into one archive
    Merge(MergeArgs),
    /// Write the rules in another form
    Export(ExportArgs),
    /// List the formats of traces that can be read
    Formats,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// The folder to write them to
        directory: PathBuf,
    },
}

// A query is the last of the inputs: as an argument of its own it could not stand behind an option.
const QUERY_HELP: &str = "Traces and archives; - is standard input. Then the events to look for, one directly after \
                          the other: names or labels with blanks between them, those with blanks inside in quotes; a \
                          name stands for all events of that name, a number may be decimal or hexadecimal";
const PATH_HELP: &str = "\
Paths of functions: in a trace of calls, 'F: B1 B2 B3' are blocks that one invocation of the function F runs \
through, one directly after the other there, whatever it calls in between. The name of the function ends at \
the first colon with a blank behind it, and may be quoted; with *, ? or [a-z] it stands for all functions that fit \
and have the blocks. Blocks are names, labels or numbers; * is any one block, and B1 .. B3 leaves any blocks \
between, or none: then what counts is distinct ends. Where the trace has only calls, those that a function makes \
are its blocks.

A query is a path if it has such a colon outside of quotes and the trace has functions, and a sequence of events \
otherwise: an event whose name ends in a colon can be quoted.";
const EVENT_HELP: &str =
    "Traces and archives; - is standard input. Then the event, or a sequence of events as for `find`";

const EVENTS_HELP: &str = "Traces and archives; - is standard input. Then, unless --pattern or --like says so, the events of \
                           the pattern as for `find`";
const SIMILAR_HELP: &str = "\
In traces of MPI, sends, receives and collectives are compared, without tags and sizes. A pattern of several \
processes (a file with lines such as `rank 0:`, or --like) is looked for in the stream of each, and windows that \
exchange messages are one occurrence.";
const PATTERNS_HELP: &str = "\
In a trace with sends, receives and collectives, patterns are made of these, and the envelope of a message does not \
count (tag, bytes, and what else does not say who communicates with whom), unless --envelope or --key asks for it. \
In other traces patterns are made of all events.

Each contiguous repetition is looked at once: what `loops` shows as a loop is no pattern because of that. Its \
iterations are added back where it is counted. An occurrence that is part of a longer pattern counts for that one.";

fn with_query(inputs: clap::Arg, query: &'static str, help: &'static str) -> clap::Arg {
    // A path is never empty, but a query may be, and then has an error of its own.
    let any_text = clap::builder::OsStringValueParser::new().map(PathBuf::from);
    inputs.value_names(["INPUT", query]).value_parser(any_text).help(help)
}

impl ReadArgs {
    /// The inputs, and the query that is the last argument.
    pub(crate) fn split_query(&self) -> anyhow::Result<(Self, String)> {
        let mut read = self.clone();
        let query = read.inputs.pop().filter(|_| !read.inputs.is_empty());
        let query = query.context("name an input, and then the events to look for, such as 'A B C'")?;
        let query = query.to_str().context("the query is not text in UTF-8")?;
        Ok((read, query.to_string()))
    }
}

/// What is read, and what counts as the same event.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ReadArgs {
    /// Traces and archives; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The format of the traces, instead of guessing it from their content
    #[arg(long, value_name = "NAME", help_heading = "Reading")]
    pub(crate) format: Option<String>,
    /// Go on past damage in the input, and report it
    #[arg(long, help_heading = "Reading")]
    pub(crate) lenient: bool,
    /// lines: the capture groups of this regular expression are the event
    #[arg(long, value_name = "REGEX", help_heading = "Reading")]
    pub(crate) select: Option<String>,
    /// lines: the capture groups of this regular expression name the stream; csv: the column that
    /// does; all others: only streams whose name contains this
    #[arg(long, value_name = "STREAM", help_heading = "Reading")]
    pub(crate) stream: Option<String>,
    /// lines: placeholders for times, numbers, hexadecimal, UUIDs, addresses and paths
    #[arg(long, help_heading = "Reading")]
    pub(crate) mask: bool,
    /// csv: the columns that make the event
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = "Reading")]
    pub(crate) event: Vec<String>,
    /// csv: the column with the start of each event
    #[arg(long, value_name = "COLUMN", help_heading = "Reading")]
    pub(crate) start: Option<String>,
    /// csv: the column with the duration of each event
    #[arg(long, value_name = "COLUMN", help_heading = "Reading")]
    pub(crate) duration: Option<String>,
    /// csv: columns with further measurements
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = "Reading")]
    pub(crate) metric: Vec<String>,
    /// csv: the unit of times, where the column's name does not tell
    #[arg(long, value_name = "UNIT", value_parser = ["s", "ms", "us", "ns"], help_heading = "Reading")]
    pub(crate) time_unit: Option<String>,
    /// chrome: a slice is an enter and a leave, not one event
    #[arg(long, help_heading = "Reading")]
    pub(crate) calls: bool,
    /// chrome: only slices of these categories
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Reading")]
    pub(crate) category: Vec<String>,
    /// otf2: only calls of MPI, each one event
    #[arg(long, help_heading = "Reading")]
    pub(crate) mpi_only: bool,
    /// otf2: only regions whose names fit this pattern with * and ?; can be given several times
    #[arg(long, value_name = "GLOB", help_heading = "Reading")]
    pub(crate) regions: Vec<String>,
    /// calls-binary: the JSON file with the names of functions, instead of the one beside the trace
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    pub(crate) names: Option<PathBuf>,
    /// What makes events the same: `name` and fields of the format, or `all`
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "What counts as the same event")]
    pub(crate) key: Option<Vec<String>>,
    /// Fields that do not count
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "What counts as the same event")]
    pub(crate) ignore: Vec<String>,
    /// A file of names and their classes, a tab between them; a name may end in *
    #[arg(long, value_name = "FILE", help_heading = "What counts as the same event")]
    pub(crate) map: Option<PathBuf>,
    /// How the other end of a message is told: by its rank, by its distance from the own one, or by the
    /// way to it in the grid of processes
    #[arg(long, value_enum, default_value_t, help_heading = "What counts as the same event")]
    pub(crate) peers: PeersName,
}

/// How the other end of a message is told.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PeersName {
    /// By its rank
    #[default]
    Absolute,
    /// dest=+1, by the distance from the own rank in the communicator
    Relative,
    /// dest=(0,+1), in the grid that the communicator has or that its messages show
    Cartesian,
}

/// How to fold.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct FolderArgs {
    /// The algorithm [default: outermost for loops, auto for others]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Folding")]
    pub(crate) folder: Option<FolderName>,
    /// Which of several equally long loop bodies is taken first
    #[arg(long, value_enum, help_heading = "Folding")]
    pub(crate) ties: Option<TiesName>,
    /// Leave repeats with fewer iterations written out
    #[arg(long, value_name = "N", help_heading = "Folding")]
    pub(crate) min_times: Option<u32>,
    /// How many streams to fold at the same time [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Folding")]
    pub(crate) threads: Option<usize>,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FolderName {
    /// The longest loop body first
    #[default]
    Outermost,
    /// The shortest loop body first
    Innermost,
    /// The shortest first, leftmost, rotations of known bodies turned to match
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
    /// Rules for all that repeats, loops as such, while the trace arrives
    SequiturRuns,
    /// Looks at each stream: sequitur-runs, or outermost where rules would not pay
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

impl FolderArgs {
    /// The same; where no folder is named, this one.
    pub(crate) fn or(self, folder: FolderName) -> Self {
        Self { folder: self.folder.or(Some(folder)), ..self }
    }
}

#[derive(Args, Debug)]
pub(crate) struct LoopsArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Show everything, however long
    #[arg(long, help_heading = "Showing")]
    pub(crate) full: bool,
    /// Show loops down to this depth
    #[arg(long, value_name = "N", help_heading = "Showing")]
    pub(crate) depth: Option<usize>,
    /// Show this many classes, those with the most events first; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Showing")]
    pub(crate) top: usize,
    /// Turn loops so that an iteration begins at this event, at balanced `calls`, or after the longest `gap`
    #[arg(long, value_name = "EVENT|calls|gap", help_heading = "Showing")]
    pub(crate) align: Option<String>,
    /// Integers in hexadecimal
    #[arg(long, help_heading = "Showing")]
    pub(crate) hex: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Showing")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FoldArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// The archive to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The smallest archive, though it takes several times longer: the same as --folder smallest
    #[arg(long, conflicts_with = "folder")]
    pub(crate) smallest: bool,
    /// Which times to keep
    #[arg(long, value_enum, default_value_t)]
    pub(crate) times: TimesName,
    /// Also keep the events themselves, in compressed chunks of this many bytes before compression,
    /// such as 256k or 4M: for the schemes of `find` that scan [default without SIZE: 4M]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "4M")]
    #[arg(value_parser = chunk_size)]
    pub(crate) chunks: Option<ChunkSize>,
    /// Also store which parts of the trace hold which functions, for `find`: about SEGMENTS parts
    /// [default without SEGMENTS: 128; on by itself for traces of calls]
    #[arg(long, value_name = "SEGMENTS", num_args = 0..=1, require_equals = true, default_missing_value = "128")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65536))]
    pub(crate) index: Option<usize>,
    /// Do not store that
    #[arg(long, conflicts_with = "index")]
    pub(crate) no_index: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Show this many of the most frequent events and of the streams; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Integers in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// The first event to print, from 0
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    pub(crate) from: u64,
    /// The event to stop before
    #[arg(long, value_name = "POSITION")]
    pub(crate) to: Option<u64>,
    /// Print start and duration in nanoseconds before each event
    #[arg(long)]
    pub(crate) times: bool,
    /// Write integers as bytes again, as wide as they were read; calls-binary: write tokens again, with
    /// --names if it had names
    #[arg(long, conflicts_with_all = ["json", "times", "hex"])]
    pub(crate) raw: bool,
    /// Integers in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Whether and when it first happens before this, which is written like a query
    #[arg(long, value_name = "QUERY", help_heading = "Finding")]
    pub(crate) before: Option<String>,
    /// Look for all queries of a file, one a line, and print a line of JSON for each; - is standard
    /// input. Empty lines and those that begin with # are passed over
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["FindShown", "before"],
        help_heading = "Finding"
    )]
    pub(crate) queries: Option<PathBuf>,
    /// Paths: how to look for them. All give the same answer
    #[arg(long, value_enum, value_name = "SCHEME", default_value_t, help_heading = "Finding")]
    pub(crate) scheme: SchemeName,
    /// Paths: say what was done to find them, and why
    #[arg(long, help_heading = "Finding")]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) shown: FindShown,
    /// Paths: print with each place the calls that are open there, the innermost last
    #[arg(long, help_heading = "Showing")]
    pub(crate) stacks: bool,
    /// Show this many places or streams; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 1_000_000, help_heading = "Showing")]
    pub(crate) top: u64,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Print one JSON object
    #[arg(long, help_heading = "Showing")]
    pub(crate) json: bool,
}

/// The ways to look for a path; their numbers are those of the literature.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SchemeName {
    /// Whichever is likely to be the fastest
    #[default]
    Auto,
    /// Scheme 1: unfold everything and scan it
    #[value(alias = "1")]
    Unfolded,
    /// Scheme 2: every rule once, nothing is unfolded
    #[value(alias = "2")]
    Folded,
    /// Scheme 3: unfold and scan chunks that hold something of the function
    #[value(alias = "3")]
    Chunks,
    /// Scheme 4: parts of the fold that hold something of the function
    #[value(alias = "4")]
    Indexed,
}

impl SchemeName {
    /// The way that is asked for; `None` if it is to be chosen.
    pub(crate) fn wanted(self) -> Option<Scheme> {
        match self {
            SchemeName::Auto => None,
            SchemeName::Unfolded => Some(Scheme::Unfolded),
            SchemeName::Folded => Some(Scheme::Folded),
            SchemeName::Chunks => Some(Scheme::Chunks),
            SchemeName::Indexed => Some(Scheme::Indexed),
        }
    }
}

/// What to show of what was found, instead of a summary.
#[derive(Args, Debug, Clone, Copy)]
#[group(multiple = false)]
pub(crate) struct FindShown {
    /// Print the number of occurrences and nothing else
    #[arg(long, help_heading = "Showing")]
    pub(crate) count: bool,
    /// Print the first place: stream, position of the first and the last event, and the start in
    /// nanoseconds where the trace has times, with tabs between them
    #[arg(long, help_heading = "Showing")]
    pub(crate) first: bool,
    /// Print the K-th place, from 1, in the same way
    #[arg(long, value_name = "K", help_heading = "Showing")]
    pub(crate) nth: Option<u64>,
    /// Print all places in the same way
    #[arg(long, help_heading = "Showing")]
    pub(crate) all: bool,
    /// Show the count and the first place in each stream
    #[arg(long, help_heading = "Showing")]
    pub(crate) per_stream: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ContextArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// How many events to look at on either side
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Showing")]
    pub(crate) depth: usize,
    /// Show this many of the events that can follow, the most frequent first; 0 shows all [default: 5, with
    /// --json all]
    #[arg(long, value_name = "N", help_heading = "Showing")]
    pub(crate) top: Option<usize>,
    /// Integers in hexadecimal
    #[arg(long, help_heading = "Showing")]
    pub(crate) hex: bool,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Print one JSON object
    #[arg(long, help_heading = "Showing")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SimilarArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// A file with the pattern: an event a line, as `cat` prints it; a line such as `rank 0:` begins
    /// the events of a process. Empty lines and those that begin with # are passed over
    #[arg(long, value_name = "FILE", group = "given", help_heading = "What is looked for")]
    pub(crate) pattern: Option<PathBuf>,
    /// A known pattern of communication and its size: line:8, ring:8, mesh:4x4, torus:4x4x4,
    /// wavefront:4x4, star:8, binary-tree:15, binomial-tree:16, hypercube:16, butterfly:16, all-to-all:8
    #[arg(
        long,
        value_name = "NAME:SIZE",
        group = "given",
        conflicts_with_all = ["all_events", "envelope"],
        help_heading = "What is looked for"
    )]
    pub(crate) like: Option<String>,
    /// The pattern of this number in the list of `patterns`
    #[arg(long, value_name = "N", group = "given", help_heading = "What is looked for")]
    pub(crate) number: Option<usize>,
    /// How many events may be inserted, lost or other ones, in each process
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "What is alike")]
    pub(crate) edits: usize,
    /// The size of the n-grams by which windows are passed over; it changes no answer
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "What is alike")]
    pub(crate) ngram: usize,
    /// Patterns of several processes: the most edits, as a share of the events of the pattern
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = "What is alike")]
    pub(crate) max_error: String,
    /// Compare all events, not only those of communication
    #[arg(long, help_heading = "What is alike")]
    pub(crate) all_events: bool,
    /// Compare tags, sizes and the like of messages as well
    #[arg(long, help_heading = "What is alike")]
    pub(crate) envelope: bool,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Print all places: stream, position of the first and the last event, events compared, and
    /// edits, with tabs between them
    #[arg(long, help_heading = "Showing")]
    pub(crate) all: bool,
    /// Show this many places with --all or --json; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 1_000_000, help_heading = "Showing")]
    pub(crate) top: u64,
    /// Print one JSON object
    #[arg(long, help_heading = "Showing")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct HotArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// The fewest events of a subpath
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "What is hot")]
    pub(crate) min_length: usize,
    /// The most events of a subpath
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "What is hot")]
    pub(crate) max_length: usize,
    /// A subpath is hot if its count times the cost of its events is at least this: a number, a
    /// share of the whole cost such as 0.1%, or with --cost duration a time such as 20ms
    #[arg(
        long,
        value_name = "COST",
        default_value = "0.1%",
        allow_hyphen_values = true,
        help_heading = "What is hot"
    )]
    pub(crate) min_cost: String,
    /// What an event costs: `duration` or a metric, the mean over all events that count as the
    /// same, or a file with an event and a number on each line [default: 1]
    #[arg(long, value_name = "duration|METRIC|FILE", help_heading = "What is hot")]
    pub(crate) cost: Option<String>,
    /// Also hot subpaths that begin with a shorter one
    #[arg(long, help_heading = "What is hot")]
    pub(crate) all: bool,
    /// How to look for them
    #[arg(long, value_enum, default_value_t, help_heading = "What is hot")]
    pub(crate) scan: ScanName,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Show this many, the costliest first; 0 shows all [default: 20, and all with --json]
    #[arg(long, value_name = "N", help_heading = "Showing")]
    pub(crate) top: Option<usize>,
    /// Show all events of every subpath, however many
    #[arg(long, help_heading = "Showing")]
    pub(crate) full: bool,
    /// Integers in hexadecimal
    #[arg(long, help_heading = "Showing")]
    pub(crate) hex: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Showing")]
    pub(crate) json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScanName {
    /// All there are, whatever folder made the rules
    #[default]
    Exact,
    /// What Larus' procedure prints for these rules: it begins anew after each find
    Paper,
}

#[derive(Args, Debug)]
pub(crate) struct PatternsArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// All events, not only sends, receives and collectives
    #[arg(long, help_heading = "What patterns are made of")]
    pub(crate) all_events: bool,
    /// Tag, bytes and the other fields of calls count too
    #[arg(long, help_heading = "What patterns are made of")]
    pub(crate) envelope: bool,
    /// Only messages, or only collective operations
    #[arg(long, value_enum, help_heading = "What patterns are made of")]
    pub(crate) only: Option<OnlyName>,
    /// How to look for them
    #[arg(long, value_enum, default_value_t, help_heading = "Finding")]
    pub(crate) method: MethodName,
    /// Only patterns that occur at least so often, in all streams together
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Finding")]
    pub(crate) min_count: u64,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Which patterns come first
    #[arg(long, value_enum, default_value_t, help_heading = "Showing")]
    pub(crate) rank_by: RankName,
    /// Show this many; 0 shows all [default: 20, and all with --json]
    #[arg(long, value_name = "N", help_heading = "Showing")]
    pub(crate) top: Option<usize>,
    /// Show the patterns of single processes as well, where there are communication patterns
    #[arg(long, help_heading = "Showing")]
    pub(crate) processes: bool,
    /// Print how many messages and bytes each process sends to each other, as CSV, and nothing else
    #[arg(long, conflicts_with = "json", help_heading = "Showing")]
    pub(crate) matrix: bool,
    /// Show all events of every pattern, however many
    #[arg(long, help_heading = "Showing")]
    pub(crate) full: bool,
    /// Integers in hexadecimal
    #[arg(long, help_heading = "Showing")]
    pub(crate) hex: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Showing")]
    pub(crate) json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnlyName {
    /// Sends and receives
    Messages,
    /// Collective operations
    Collectives,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MethodName {
    /// One pass with growing n-grams: most of them, fast
    #[default]
    Ngrams,
    /// All maximal repeats
    Exact,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RankName {
    /// Those that most events belong to
    #[default]
    Events,
    /// Those that occur most often
    Count,
    /// The longest
    Length,
    /// Those of the most streams
    Processes,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The archives
    #[arg(required = true, value_name = "ARCHIVE")]
    pub(crate) archives: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// The archive to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportName {
    /// The graph of the rules, for Graphviz
    Dot,
    /// The rules as text, which every command reads like an archive; without times
    Grammar,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// The form to write
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) to: ExportName,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// dot: the most nodes and edges to draw
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
}
