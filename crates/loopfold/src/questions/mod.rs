//! What can be asked of a fold. A question never knows which folder made it.

mod align;
mod before;
mod classes;
mod context;
mod find;
mod iterations;
mod names;
mod nest;
mod query;
mod statistics;

pub use align::{Align, align};
pub use before::{Order, order};
pub use classes::{Class, classes};
pub use context::{Context, ContextNode, ContextTree, Neighbour, context};
pub use find::{Found, Place, Places, find};
pub use iterations::{LoopTimes, StreamTimes, loop_times};
pub use names::{near_names, symbols_called};
pub use nest::{Nest, Node};
pub use query::Query;
pub use statistics::{Statistics, StreamStatistics, statistics};
