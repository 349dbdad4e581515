//! What can be asked of a fold. A question never knows which folder made it.

mod align;
mod before;
mod classes;
mod clock;
#[cfg(feature = "mpi")]
pub mod communication;
mod context;
mod find;
mod hot;
mod iterations;
mod names;
mod nest;
mod path;
mod patterns;
mod query;
mod rule_sums;
mod run_time;
#[cfg(feature = "mpi")]
mod similar;
mod statistics;
mod sums;

pub use crate::fold::{DurationSum, MetricSpread, MetricSum, RuleSums, Spread, StreamSums};
pub use align::{Align, align};
pub use before::{Order, OrderTotal, order};
pub use classes::{Class, classes};
pub use clock::EventClock;
#[cfg(feature = "mpi")]
pub use communication::{Channels, Direction, KnownPattern, KnownVariant, Layout, Topology};
pub use context::{Context, ContextNode, ContextTree, Neighbour, context};
pub use find::{Found, Place, Places, find};
pub use hot::{EventCosts, HotSettings, HotSubpath, HotSubpaths, Limit, Selection, hot_subpaths};
pub use iterations::{LoopTimes, Slowest, StreamTimes, SummedTimes, loop_times, summed_times};
pub use names::{near_names, symbols_called};
pub use nest::{Nest, Node};
pub use path::{
    Brackets, CallStacks, Deepest, DeepestLevel, Effort, Function, Functions, IndexRange, LevelFact, Levels,
    LowestReturn, Nesting, NestingLevels, PathAnswer, PathFound, PathIndex, PathMemory, PathOccurrences,
    PathPlace, PathPlaces, PathQuery, PathReader, PathScan, PathSearcher, PathStarts, ScanOptions, Scheme,
    Share, TraceChunks, find_path, is_path,
};
#[cfg(feature = "archive")]
pub use path::{Chunk, ChunkSize, ChunkTotals, Chunks, chunk_totals};
pub use patterns::{
    CollapsedLoop, ENVELOPE, EventChoice, FoldStream, Holders, KeptPositions, LoopCollapsed, NgramPattern,
    Ngrams, Only, Pattern, PatternMethod, PatternPlace, PatternPlaces, PatternSettings, Patterns, RankBy,
    Repeat, Repeats, Room,
};
pub use query::Query;
pub use rule_sums::{rule_sums, summarize};
pub use run_time::run_time;
#[cfg(feature = "mpi")]
pub use similar::{
    Compared, ComparedEvents, EnclosingPatterns, EventSequence, Filtered, JoinedOccurrences, LikePattern,
    Likeness, MessagesInOrder, ProcessStreams, RolesAndPeers, SimilarFound, SimilarOccurrence,
    SimilarPartners, SimilarPattern, SimilarPlace, SimilarSettings, SimilarVariant, SimilarWindow,
    find_similar, join_similar, search_similar,
};
pub use statistics::{CallStatistics, Statistics, StreamStatistics, call_statistics, statistics};
pub use sums::{EventSums, event_sums};
