//! What events say of messages, and which processes these are between: what all questions on
//! communication share.
//!
//! [`Calls`] has the messages and the collective operation of each symbol, [`Communicators`]
//! the process of each stream and the members of communicators; `MessageEnds` has the channel
//! of a message from both. [`Channels`] gives the topology that messages form, [`KnownPattern`]
//! the messages of a topology. [`Peers`] is a projection of a trace: it rewrites the other ends
//! of messages relative to the process. [`RelativePeers`] is how recordings store them.

mod call;
mod communicators;
mod creation;
mod ends;
mod grid;
mod known;
mod peers;
mod relative;
mod reused;
mod topology;

pub(crate) use call::WORLD;
pub use call::{Call, Calls, CommId, Message, Peer};
pub use communicators::{Communicators, rank_of};
pub use creation::Creation;
pub(crate) use ends::{Channel, Group, MessageEnd, MessageEnds};
pub use grid::Grid;
pub use known::{KnownPattern, KnownVariant};
pub(crate) use peers::Grids as CommGrids;
pub use peers::{PeerGrid, PeerRewrite, Peers};
pub use relative::RelativePeers;
pub use reused::with_unique_communicators;
pub use topology::{Channels, Direction, Layout, Topology};
