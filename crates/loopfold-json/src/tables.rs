//! The tables of answers: which parts of an answer are rows, and which values are their columns.
//!
//! This is the only list of them. The formats of `--table`, the tables of the Python package and
//! `docs/tables.md` come from it, and a value is the one that the JSON has at that place; so names and
//! meanings are those of `docs/json.md`.

use std::fmt;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// Integers from 0 to 2⁶⁴ − 1.
    Unsigned,
    /// Integers of 64 bits with a sign.
    Signed,
    /// Numbers of 64 bits with a point.
    Float,
    /// Truth values.
    Bool,
    /// Lists of texts.
    Texts,
    /// Lists of integers from 0 to 2⁶⁴ − 1.
    Numbers,
}

impl Kind {
    /// Its name, as Arrow has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Unsigned => "uint64",
            Kind::Signed => "int64",
            Kind::Float => "float64",
            Kind::Bool => "bool",
            Kind::Texts => "list<string>",
            Kind::Numbers => "list<uint64>",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a column lies in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// In the row: keys, separated by points.
    Row(&'static str),
    /// In something around the rows: keys from the top of the answer, separated by points.
    Around(&'static str),
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its values are; each may be null.
    pub kind: Kind,
    /// Where it lies in the answer.
    pub from: From,
    /// What it means.
    pub meaning: &'static str,
}

impl Column {
    /// The keys of its place, from the top of the answer.
    pub(crate) fn keys(&self, table: &Table) -> Vec<&'static str> {
        match self.from {
            From::Row(keys) => table.rows.split('.').chain(keys.split('.')).collect(),
            From::Around(keys) => keys.split('.').collect(),
        }
    }
}

/// A table of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name among the tables of the command.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Where its rows lie in the answer: keys, separated by points.
    pub rows: &'static str,
    /// Whether `left_out` of the answer counts rows that are missing.
    pub is_limited: bool,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// The commands with tables; `streams` is `stats --streams`, `before` and `queries` are options of `find`,
/// `segments` is what `export` writes.
pub const COMMANDS: [&str; 14] = [
    "loops",
    "iterations",
    "stats",
    "streams",
    "find",
    "before",
    "queries",
    "context",
    "similar",
    "hot",
    "patterns",
    "waits",
    "cat",
    "segments",
];

/// The tables of a command, the default one first; none if it has no rows.
pub fn tables(command: &str) -> Vec<Table> {
    match command {
        "loops" => vec![classes()],
        "iterations" => vec![iterations(), slow()],
        "stats" => vec![counts(), durations(), metrics(), stream_list()],
        "streams" => vec![streams()],
        "find" => vec![places(), found_streams()],
        "before" => vec![ordered_streams()],
        "queries" => vec![queries()],
        "context" => vec![neighbours()],
        "similar" => vec![matches(), occurrences()],
        "hot" => vec![subpaths()],
        "patterns" => vec![patterns(), matrix(), unmatched()],
        "waits" => {
            vec![wait_places(), wait_calls(), wait_pairs(), wait_ranks(), wait_iterations(), wait_classes()]
        }
        "cat" => vec![events()],
        "segments" => vec![segments()],
        _ => Vec::new(),
    }
}

/// The table with a name, or the default one.
pub fn table(command: &str, name: Option<&str>) -> Option<Table> {
    tables(command).into_iter().find(|table| name.is_none_or(|name| table.name == name))
}

/// A column that has the name of its key.
const fn own(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, from: From::Row(name), meaning }
}

/// A column inside of an object of the row.
const fn inner(name: &'static str, keys: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, from: From::Row(keys), meaning }
}

/// A column of something around the rows.
const fn around(name: &'static str, keys: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, from: From::Around(keys), meaning }
}

fn whole(name: &'static str, about: &'static str, rows: &'static str, columns: Vec<Column>) -> Table {
    Table { name, about, rows, is_limited: false, columns }
}

/// A table whose rows `--top` limits.
fn limited(name: &'static str, about: &'static str, columns: Vec<Column>) -> Table {
    Table { name, about, rows: name, is_limited: true, columns }
}

const STREAM: Column = own("stream", Kind::Text, "the name of the stream");
const TITLE: Column = own("stream", Kind::Text, "the title of the stream");
const START: Column = own("start", Kind::Unsigned, "the position of the first event");
const END: Column = own("end", Kind::Unsigned, "the position of the last event");
const START_NS: Column = own("start_ns", Kind::Signed, "when it begins, as the source has it");
const SINCE_START: Column =
    own("since_start_ns", Kind::Signed, "when it begins, since the start of the trace");
const EVENT: Column = own("event", Kind::Text, "the event");

fn classes() -> Table {
    let columns = vec![
        own("class", Kind::Unsigned, "the number that `--class` takes"),
        own("streams", Kind::Texts, "the titles of its streams"),
        own("events", Kind::Unsigned, "the events of one stream"),
        own("folded", Kind::Unsigned, "the events that are written in the nest"),
        own("ratio", Kind::Float, "`events` / `folded`"),
        own("covered", Kind::Float, "the share of events inside some loop"),
        own("main_share", Kind::Float, "the share of events inside the loop that spans most"),
    ];
    whole("classes", "a class of streams with equal nests", "classes", columns)
}

/// What an iteration has, slow or not.
fn iteration_columns() -> [Column; 11] {
    [
        own("outer", Kind::Numbers, "the iterations of the loops around it, the outermost first"),
        own("iteration", Kind::Unsigned, "its number within its occurrence of the loop"),
        own("iterations", Kind::Unsigned, "how many iterations it is: several may be one exception"),
        own("first_event", Kind::Unsigned, "the position of its first event"),
        own("events", Kind::Unsigned, "how many events it has"),
        START_NS,
        SINCE_START,
        own("duration_ns", Kind::Signed, "until the next one begins, or its last event ends"),
        own("busy_ns", Kind::Signed, "for how much of that some event of the stream was open"),
        own("last", Kind::Bool, "whether it is the last one of its occurrence"),
        own(
            "exception",
            Kind::Unsigned,
            "the exception that it is or that follows it, by its place in `kinds`",
        ),
    ]
}

const LOOP: Column = around("loop", "loops.loop", Kind::Unsigned, "the number of the loop in `--list`");

fn iterations() -> Table {
    let mut columns = vec![around("stream", "loops.stream", Kind::Text, "the title of the stream"), LOOP];
    columns.extend(iteration_columns());
    whole("iterations", "an iteration of the loop", "loops.iterations", columns)
}

fn slow() -> Table {
    let mut columns = vec![TITLE, LOOP];
    columns.extend(iteration_columns());
    columns.extend([
        around("median_ns", "loops.median_ns", Kind::Float, "the median of all iterations"),
        around("busy_median_ns", "loops.busy_median_ns", Kind::Float, "that of their busy times"),
        around("gap_median_ns", "loops.gap_median_ns", Kind::Float, "that of the rest"),
    ]);
    whole("slow", "one of the slowest iterations (`--slow K`)", "loops.slow", columns)
}

fn counts() -> Table {
    let columns = vec![EVENT, own("count", Kind::Unsigned, "how often it occurs")];
    whole("counts", "an event, the most frequent first", "counts", columns)
}

fn durations() -> Table {
    let columns = vec![
        EVENT,
        own("known", Kind::Unsigned, "how many durations are known"),
        own("total_ns", Kind::Signed, "their sum"),
        own("mean_ns", Kind::Float, "their mean"),
        own("self_ns", Kind::Signed, "their sum without the events inside"),
        own("share", Kind::Float, "its share in the time of all events"),
    ];
    whole("durations", "an event with durations, the most costly first", "durations.events", columns)
}

fn metrics() -> Table {
    let columns = vec![
        around("metric", "metrics.metric", Kind::Text, "the name of the metric"),
        EVENT,
        own("known", Kind::Unsigned, "how many values are known"),
        own("total", Kind::Float, "their sum"),
        own("mean", Kind::Float, "their mean"),
        own("share", Kind::Float, "its share in all events"),
    ];
    whole("metrics", "an event with values of a metric, the most costly first", "metrics.events", columns)
}

fn stream_list() -> Table {
    let columns = vec![
        STREAM,
        own("events", Kind::Unsigned, "how many events it has"),
        own("span_ns", Kind::Signed, "from its first start to its last end"),
        own("folder", Kind::Text, "the folder that made its rules"),
    ];
    whole("stream_list", "a stream", "stream_list", columns)
}

fn streams() -> Table {
    let columns = vec![
        own("number", Kind::Unsigned, "the number that `--stream` takes"),
        STREAM,
        own("title", Kind::Text, "its title"),
        own("events", Kind::Unsigned, "how many events it has"),
        own("format", Kind::Text, "the format it was read from"),
    ];
    whole("stream_list", "a stream (`--streams`)", "stream_list", columns)
}

fn places() -> Table {
    let columns = vec![
        STREAM,
        START,
        END,
        START_NS,
        own("depth", Kind::Unsigned, "paths: how many calls are open"),
        own("function", Kind::Text, "paths: the function, if several were asked for"),
        own("stack", Kind::Texts, "paths: the calls that are open, the innermost last (`--stacks`)"),
        own("stack_depth", Kind::Unsigned, "paths: how many there are in all (`--stacks`)"),
    ];
    limited("all", "a place (`--all`, the default)", columns)
}

fn found_streams() -> Table {
    let columns = vec![
        STREAM,
        own("count", Kind::Unsigned, "how often it occurs in the stream"),
        inner("first_start", "first.start", Kind::Unsigned, "the position at which it first begins"),
        inner("first_end", "first.end", Kind::Unsigned, "the position at which that one ends"),
        inner("first_start_ns", "first.start_ns", Kind::Signed, "when that one begins"),
    ];
    whole("streams", "a stream (`--per-stream`)", "streams", columns)
}

fn ordered_streams() -> Table {
    let columns = vec![
        STREAM,
        own("count", Kind::Unsigned, "how often the query occurs in the stream"),
        own("others", Kind::Unsigned, "how often the other query does"),
        own("before_count", Kind::Unsigned, "how many of the query end before some of the other begins"),
        inner(
            "first_start",
            "first.start",
            Kind::Unsigned,
            "the position at which the first of those begins",
        ),
        inner("first_end", "first.end", Kind::Unsigned, "the position at which it ends"),
        inner("first_start_ns", "first.start_ns", Kind::Signed, "when it begins"),
        inner(
            "next_start",
            "first.next.start",
            Kind::Unsigned,
            "the position at which the other then begins",
        ),
        inner("next_end", "first.next.end", Kind::Unsigned, "the position at which that ends"),
        inner("next_start_ns", "first.next.start_ns", Kind::Signed, "when that begins"),
        inner(
            "earlier_start",
            "earlier.start",
            Kind::Unsigned,
            "the position of an occurrence of the other before the first of the query",
        ),
        inner("earlier_end", "earlier.end", Kind::Unsigned, "the position at which that ends"),
        inner("earlier_start_ns", "earlier.start_ns", Kind::Signed, "when that begins"),
    ];
    whole("streams", "a stream (`find --before`)", "streams", columns)
}

fn queries() -> Table {
    let columns = vec![
        own("line", Kind::Unsigned, "the line of the query, from 1"),
        own("query", Kind::Text, "the query"),
        own("count", Kind::Unsigned, "how often it occurs"),
        own("streams", Kind::Unsigned, "in how many streams"),
        inner("first_stream", "first.stream", Kind::Text, "the stream of the first place"),
        inner("first_start", "first.start", Kind::Unsigned, "the position of its first event"),
        inner("first_end", "first.end", Kind::Unsigned, "the position of its last event"),
        inner("first_start_ns", "first.start_ns", Kind::Signed, "when it begins"),
        inner("first_depth", "first.depth", Kind::Unsigned, "paths: how many calls are open"),
        own("function", Kind::Text, "paths: the function, if there is one"),
        own("scheme", Kind::Text, "how it was searched for"),
        own("error", Kind::Text, "why there is no answer"),
    ];
    whole("queries", "a query of the file (`find --queries`)", "queries", columns)
}

fn neighbours() -> Table {
    let columns = vec![
        own("side", Kind::Text, "`after` or `before` the query"),
        own("distance", Kind::Unsigned, "how far from the query it is; 1 is next to it"),
        own("event", Kind::Text, "the event; null is the end of the stream, or its start"),
        own("events", Kind::Texts, "the events from the one next to the query to this one"),
        own("count", Kind::Unsigned, "how many occurrences of the query have these"),
    ];
    limited("neighbours", "an event that far after or before the query, given those between", columns)
}

fn matches() -> Table {
    let columns = vec![
        STREAM,
        START,
        END,
        own("length", Kind::Unsigned, "how many of its events are compared"),
        own("distance", Kind::Unsigned, "the edits"),
        own("within", Kind::Unsigned, "the smallest pattern around it, by its number in `patterns`"),
    ];
    limited("matches", "a window that is similar", columns)
}

fn occurrences() -> Table {
    let columns = vec![
        own("distance", Kind::Unsigned, "the edits of all processes"),
        own("error", Kind::Float, "`distance` as a share of the events of the pattern"),
        own("events", Kind::Unsigned, "how many events of its windows are compared"),
    ];
    whole("occurrences", "an occurrence of a pattern of several processes", "occurrences", columns)
}

fn subpaths() -> Table {
    let columns = vec![
        own("events", Kind::Texts, "its events"),
        own("count", Kind::Unsigned, "how often it occurs, in all streams"),
        own("cost", Kind::Float, "`count` times the cost of its events"),
        own("share", Kind::Float, "`cost` as a share of the cost of all events"),
        own("streams", Kind::Texts, "the titles of the streams in which it occurs"),
        own("stream_counts", Kind::Numbers, "how often in each"),
    ];
    limited("subpaths", "a hot subpath, the costliest first", columns)
}

fn patterns() -> Table {
    let columns = vec![
        own("id", Kind::Unsigned, "its number, from 1"),
        own("kind", Kind::Text, "`communication` or `process`"),
        own("count", Kind::Unsigned, "how often it occurs"),
        own("places", Kind::Unsigned, "at how many places"),
        own("length", Kind::Unsigned, "the events of the first occurrence"),
        own("share", Kind::Float, "the share of its occurrences in all events"),
        own("processes", Kind::Texts, "the titles of the streams that have it"),
        own("events", Kind::Texts, "the events of a `process` pattern"),
        own("inside", Kind::Unsigned, "`process`: further occurrences, inside longer patterns"),
        own("supermaximal", Kind::Bool, "`process`: whether no longer repeat contains it (`--method exact`)"),
        own("collective", Kind::Bool, "`communication`: whether it has only collective operations"),
        own("within", Kind::Unsigned, "`communication`: the smallest pattern that it is a part of"),
        own("crossing", Kind::Unsigned, "`communication`: messages in flight at its borders, at most"),
        inner("topology", "topology.name", Kind::Text, "`communication`: the topology it is nearest to"),
        inner("topology_shape", "topology.shape", Kind::Numbers, "processes in each dimension of that"),
        inner("topology_departure", "topology.departure", Kind::Float, "the share of channels that differ"),
    ];
    limited("patterns", "a pattern", columns)
}

fn matrix() -> Table {
    let columns = vec![
        own("from", Kind::Unsigned, "the rank of the sender"),
        own("to", Kind::Unsigned, "the rank of the receiver"),
        own("messages", Kind::Unsigned, "how many messages it sends"),
        own("bytes", Kind::Unsigned, "their bytes"),
    ];
    whole("matrix", "two processes that exchange messages", "matrix", columns)
}

fn unmatched() -> Table {
    let columns = vec![
        own("kind", Kind::Text, "`send` or `receive`"),
        own("from", Kind::Unsigned, "the rank of the sender; null is anyone"),
        own("to", Kind::Unsigned, "the rank of the receiver"),
        own("comm", Kind::Text, "the communicator"),
        own("tag", Kind::Signed, "the tag; null is any"),
        own("count", Kind::Unsigned, "how many there are"),
        inner("first_stream", "first.stream", Kind::Text, "the stream of the first one"),
        inner("first_start", "first.start", Kind::Unsigned, "its position"),
    ];
    whole("unmatched", "sends without a receive, or receives without a send", "unmatched", columns)
}

/// Time, share and count of what is waited.
fn sum() -> [Column; 3] {
    [
        own("time_ns", Kind::Unsigned, "the time"),
        own("share", Kind::Float, "its share in the time of all selected streams"),
        own("count", Kind::Unsigned, "in how many calls"),
    ]
}

/// A call of MPI, and the loops around it.
fn call() -> [Column; 3] {
    [
        own("call", Kind::Text, "the call without tag, bytes and partners"),
        own("function", Kind::Text, "the innermost function"),
        own("loops", Kind::Numbers, "the iterations of the loops around it, the outermost first"),
    ]
}

/// The iteration of the outermost loop with the most of it.
fn worst() -> [Column; 5] {
    [
        inner("worst_times", "worst.times", Kind::Unsigned, "the iterations of the outermost loop"),
        inner(
            "worst_first",
            "worst.first",
            Kind::Unsigned,
            "the one with the most time, or the first of several",
        ),
        inner("worst_last", "worst.last", Kind::Unsigned, "the same one, or the last of several"),
        inner("worst_time_ns", "worst.time_ns", Kind::Unsigned, "the time in it"),
        inner("worst_start_ns", "worst.start_ns", Kind::Signed, "when it begins, as the source has it"),
    ]
}

fn wait_places() -> Table {
    let mut columns = vec![own("class", Kind::Text, "the class of the waits, such as `late_sender`")];
    columns.extend(call());
    columns.extend(sum());
    columns.extend([
        inner("wrong_order_time_ns", "wrong_order.time_ns", Kind::Unsigned, "of that, in wrong order"),
        inner("wrong_order_count", "wrong_order.count", Kind::Unsigned, "in how many calls"),
    ]);
    columns.extend(worst());
    limited("places", "a place at which processes wait, the longest waits first", columns)
}

fn wait_calls() -> Table {
    let mut columns = call().to_vec();
    columns.extend(sum());
    columns.extend(worst());
    whole("calls", "calls that waited for nobody, by place", "calls", columns)
}

fn wait_pairs() -> Table {
    let mut columns = vec![
        own("waiting", Kind::Unsigned, "the rank of the process that waits"),
        own("cause", Kind::Unsigned, "the rank of the process that ends the wait"),
    ];
    columns.extend(sum());
    whole("pairs", "who waits for whom, at all places", "pairs", columns)
}

fn wait_ranks() -> Table {
    let columns = vec![
        own("rank", Kind::Unsigned, "the process"),
        inner("caused_time_ns", "caused.time_ns", Kind::Unsigned, "the time that others wait for it"),
        inner("caused_share", "caused.share", Kind::Float, "its share in the time of all selected streams"),
        inner("caused_count", "caused.count", Kind::Unsigned, "in how many calls"),
        inner("waited_time_ns", "waited.time_ns", Kind::Unsigned, "the time that it waits itself"),
        inner("waited_share", "waited.share", Kind::Float, "its share in the time of all selected streams"),
        inner("waited_count", "waited.count", Kind::Unsigned, "in how many calls"),
    ];
    whole("ranks", "a process, those that cause most first", "ranks", columns)
}

fn wait_iterations() -> Table {
    let columns = vec![
        own("times", Kind::Unsigned, "the iterations of the outermost loop"),
        own("first", Kind::Unsigned, "the one with the most waiting, or the first of several"),
        own("last", Kind::Unsigned, "the same one, or the last of several"),
        own("time_ns", Kind::Unsigned, "the time that is waited in it"),
        START_NS,
        SINCE_START,
    ];
    whole(
        "iterations",
        "the iteration with the most waiting, of all loops with so many",
        "iterations",
        columns,
    )
}

fn wait_classes() -> Table {
    let mut columns = vec![own("class", Kind::Text, "the class")];
    columns.extend(sum());
    whole("classes", "a class of waits", "classes", columns)
}

fn events() -> Table {
    let columns = vec![
        STREAM,
        own("position", Kind::Unsigned, "its position in the stream"),
        EVENT,
        START_NS,
        own("duration_ns", Kind::Signed, "how long it takes"),
    ];
    whole("events", "an event; its times are there with `--times`", "events", columns)
}

fn segments() -> Table {
    let columns = vec![
        own("stream", Kind::Text, "the stream of its first occurrence"),
        own("start", Kind::Unsigned, "the position of that"),
        own("length", Kind::Unsigned, "how many events it has"),
        own("depth", Kind::Unsigned, "how many loops are around it"),
        own("times", Kind::Unsigned, "how often it occurs"),
        own("weight", Kind::Unsigned, "how many events it stands for: `length` × `times`"),
        own("events", Kind::Texts, "its events"),
    ];
    whole(
        "segments",
        "a sequence of events without a loop (`export --to weights` and `parquet`)",
        "segments",
        columns,
    )
}
