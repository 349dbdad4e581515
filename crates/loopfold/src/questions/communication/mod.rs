//! Communication between processes, from traces of messages and collective operations.

mod call;
mod communicators;
mod description;
mod join;
mod known;
mod partners;
mod peers;
mod processes;
mod topology;
mod trace_patterns;
mod zip;

pub(super) use call::Channel;
pub use call::{Call, Calls, CommId, Message, Peer};
pub use communicators::{Communicators, Creation, Grid, rank_of};
pub use description::Description;
pub use join::{CommunicationPattern, Occurrence, Part, communication_patterns};
pub use known::{KnownPattern, KnownVariant};
pub use partners::{Disagreement, Link, Partners, Traffic, Unmatched};
pub use peers::{PeerGrid, PeerRewrite, Peers};
pub use processes::{ProcessTrace, Processes};
pub use topology::{Channels, Direction, Layout, Topology};
pub use trace_patterns::{FirstPlace, TracePatterns};
