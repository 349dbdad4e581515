//! What can be asked of a fold. A question never knows which folder made it.

mod align;
mod classes;
mod hot;
mod iterations;
mod nest;
mod run_time;
mod statistics;

pub use align::{Align, align};
pub use classes::{Class, classes};
pub use hot::{EventCosts, HotSettings, HotSubpath, HotSubpaths, Limit, Selection, hot_subpaths};
pub use iterations::{LoopTimes, StreamTimes, loop_times};
pub use nest::{Nest, Node};
pub use run_time::run_time;
pub use statistics::{Statistics, StreamStatistics, statistics};
