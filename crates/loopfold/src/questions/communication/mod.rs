//! Communication between processes: what traces of messages and collective operations say
//! about a program.

mod call;
mod communicators;
mod known;
mod topology;
mod zip;

pub use call::{Call, Calls, CommId, Message, Peer};
pub use communicators::{Communicators, Creation, Grid, rank_of};
pub use known::{KnownPattern, KnownVariant};
pub use topology::{Channels, Direction, Layout, Topology};
