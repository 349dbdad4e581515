//! Finds a path of a function in a trace of calls, without unfolding (Zhang and Gupta), on any
//! fold.
//!
//! A path is a sequence of consecutive blocks of one invocation of a function. In the trace,
//! calls may lie between them: those that the invocation makes, with all their events, which
//! may be of the same function. Paths may overlap, and all count; the blocks of an invocation
//! that was not seen to be entered do not. A path may have gaps, where any blocks of the
//! invocation may come between.
//!
//! | module | what it is |
//! | --- | --- |
//! | `query` | what a path is, which symbols belong to which function, and the syntax of paths |
//! | `strategy` | how a path is searched, and why |
//! | `brackets` | how calls nest in a stretch: a monoid |
//! | `summary` | the matches of a path in a stretch: a measure |
//! | `slice` | the part of a fold that one function has |
//! | `locate` | where occurrences are: guides for a cursor, and a reverse scan to where they begin |
//! | `batch` | many short paths of one function at once |
//! | `blocks` | the basic blocks of recorded paths, with their lines |
//! | `index` | which ranges of the events hold which functions |
//! | `scan` | the search in symbols as they come, and in the chunks of a trace |
//! | `stored_chunks` | the chunks of a trace as archives have them |
//!
//! A short path of a non-recursive function costs one pass over the items of the fold, 1 to 4
//! ns each, and 16 bytes a rule. Other paths cost one pass to build the slice of the function,
//! and one over its items: a few nanoseconds each if the function is not recursive, some tens
//! if it is, times the levels of recursion that differ. After that a count costs nothing and a
//! place a descent of the rules. Memory: 4 bytes a rule, and 8 for each item and a summary for
//! each rule that holds a symbol of the function. [`PathSearcher`] needs less than a full pass
//! for each path; [`PathScan`] does the same on symbols as they come.

mod batch;
mod blocks;
mod brackets;
mod index;
mod locate;
mod query;
mod scan;
mod slice;
#[cfg(feature = "archive")]
mod stored_chunks;
mod strategy;
mod summary;

pub use blocks::{BlockLines, BlocksOfPath, PathBlocks};
pub use brackets::{
    Brackets, Deepest, DeepestLevel, LevelFact, Levels, LowestReturn, Nesting, NestingLevels,
};
pub use index::{IndexRange, PathIndex};
pub use locate::{CallStacks, PathFound, PathMemory, PathPlace, PathPlaces, PathStarts};
use query::functions;
pub use query::functions::{Function, Functions};
pub use query::{PathQuery, PathReader, is_path};
pub use scan::{PathScan, ScanConfig, TraceChunks};
#[cfg(feature = "archive")]
pub use stored_chunks::{Chunk, ChunkSize, ChunkTotals, Chunks, chunk_totals};
pub use strategy::{Effort, PathAnswer, PathOccurrences, PathSearcher, Scheme, Share, find_path};
