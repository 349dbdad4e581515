//! Selects the events that patterns are made of, and limits how much of a trace is unfolded to
//! find them.
//!
//! In a trace with communication these are sends, receives and collectives, without their
//! *envelope*: size and tag do not matter for who communicates with whom. In other traces every
//! event counts unchanged.

/// Fields of calls of MPI that do not say who communicates with whom.
pub const ENVELOPE: [&str; 9] =
    ["tag", "bytes", "recvtag", "recvbytes", "op", "n", "color", "key", "newcomm"];

/// Which events patterns are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventChoice {
    /// All, not only sends, receives and collectives.
    pub all_events: bool,
    /// Only some of the communication.
    pub only: Option<Only>,
    /// Fields that are left out, of a trace that has communication.
    pub left_out: Vec<String>,
}

/// A part of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Sends and receives.
    Messages,
    /// Collective operations.
    Collectives,
}

impl Default for EventChoice {
    fn default() -> Self {
        Self { all_events: false, only: None, left_out: ENVELOPE.map(String::from).to_vec() }
    }
}

/// Limits on what is held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// The most events of a stream that are held in memory.
    pub events: u64,
    /// The most symbols of a stream whose loops are taken as they are.
    pub symbols: usize,
    /// How many streams are processed at the same time.
    pub threads: usize,
}

impl Default for MemoryBudget {
    /// What fits in a gigabyte or two.
    fn default() -> Self {
        Self { events: 1 << 25, symbols: 1 << 25, threads: 1 }
    }
}
