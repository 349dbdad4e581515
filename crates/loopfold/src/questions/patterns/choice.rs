//! Which events patterns are made of, and how much of a trace may be unfolded to find them.
//!
//! In a trace with communication these are sends, receives and collectives, without their
//! *envelope*: how much is sent, and how it is labelled, says nothing about who talks to whom.
//! Elsewhere every event counts as it is.

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

/// How much may be unfolded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The most events of a stream that are held in memory.
    pub events: u64,
    /// The most symbols of a stream whose loops are taken as they are.
    pub symbols: usize,
    /// How many streams are worked on at the same time.
    pub threads: usize,
}

impl Default for Room {
    /// What fits in a gigabyte or two.
    fn default() -> Self {
        Self { events: 1 << 25, symbols: 1 << 25, threads: 1 }
    }
}
