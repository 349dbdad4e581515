//! Communication between processes: what traces of messages and collective operations say
//! about a program.

mod topology;

pub use topology::{Channels, Direction, Layout, Topology};
