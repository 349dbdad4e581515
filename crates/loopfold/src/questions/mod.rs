//! What can be asked of a fold. A question never knows which folder made it.

mod align;
mod before;
mod classes;
mod context;
mod find;
mod hot;
mod iterations;
mod names;
mod nest;
mod path;
mod query;
mod rule_sums;
mod run_time;
mod statistics;
mod sums;
mod walk;

pub use crate::fold::{DurationSum, MetricSpread, MetricSum, RuleSums, Spread, StreamSums};
pub use align::{Align, align};
pub use before::{Order, order};
pub use classes::{Class, classes};
pub use context::{Context, ContextNode, ContextTree, Neighbour, context};
pub use find::{Found, Place, Places, find};
pub use hot::{EventCosts, HotSettings, HotSubpath, HotSubpaths, Limit, Selection, hot_subpaths};
pub use iterations::{LoopTimes, Slowest, StreamTimes, SummedTimes, loop_times, summed_times};
pub use names::{near_names, symbols_called};
pub use nest::{Nest, Node};
pub use path::{
    CallStacks, Effort, Function, Functions, Levels, NestingLevels, PathFound, PathMemory, PathOccurrences,
    PathPlace, PathPlaces, PathQuery, PathReader, PathScan, PathStarts, Scheme, Share, find_path, is_path,
};
pub use query::Query;
pub use rule_sums::{rule_sums, summarize};
pub use run_time::run_time;
pub use statistics::{Statistics, StreamStatistics, statistics};
pub use sums::{EventSums, event_sums};
