//! What can be asked of a fold. A question never knows which folder made it.

mod align;
mod classes;
mod iterations;
mod nest;
mod statistics;
mod sums;

pub use crate::fold::{DurationSum, MetricSum};
pub use align::{Align, align};
pub use classes::{Class, classes};
pub use iterations::{LoopTimes, StreamTimes, loop_times};
pub use nest::{Nest, Node};
pub use statistics::{Statistics, StreamStatistics, statistics};
pub use sums::{EventSums, event_sums};
