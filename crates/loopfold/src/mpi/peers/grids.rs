//! The grids of communicators: those that the trace states, and those inferred from messages.

use super::super::{Call, Calls, Channels, Communicators, Grid, Layout, Peer, Topology};
use super::PeerGrid;
use super::survey::Reach;
use crate::fold::Target;
use crate::trace::Trace;
use crate::{Fold, Result};
use hashbrown::HashSet;
use std::collections::BTreeMap;

/// The grids of all communicators with messages, by their names and sizes: splitting makes
/// many of one name, and those of one size are one kind.
#[derive(Default)]
pub(crate) struct Grids {
    by_name: BTreeMap<String, BTreeMap<u32, OfSize>>,
}

struct OfSize {
    /// Who sends to whom in those of this size, together.
    channels: Channels,
    grid: Option<Grid>,
    is_inferred: bool,
}

/// Larger communicators have no grid unless they are said to have one.
const LARGEST: u32 = 1 << 20;

impl Grids {
    /// The grids of the communicators of a fold.
    pub(crate) fn of(fold: &Fold, comms: &Communicators) -> Result<Self> {
        Self::find(comms, &Trace::default(), std::slice::from_ref(fold))
    }

    pub(crate) fn find(comms: &Communicators, trace: &Trace, folds: &[Fold]) -> Result<Self> {
        let mut grids = Self::default();
        let calls = Calls::of(&trace.alphabet);
        for (index, stream) in trace.streams.iter().enumerate() {
            let distinct: HashSet<u32> = stream.symbols.iter().map(|symbol| symbol.raw()).collect();
            for symbol in distinct {
                grids.add(&calls, calls.get(crate::Symbol::from_raw(symbol)), comms, index);
            }
        }
        let mut index = trace.streams.len();
        for fold in folds {
            let calls = Calls::of(fold.alphabet());
            let mut reach = Reach::new(fold);
            for stream in fold.streams() {
                for rule in reach.rules(index, stream.root())? {
                    for item in fold.body(rule) {
                        if let Target::Symbol(symbol) = item.target() {
                            grids.add(&calls, calls.get(symbol), comms, index);
                        }
                    }
                }
                index += 1;
            }
        }
        grids.decide(comms);
        Ok(grids)
    }

    /// Adds the channels of an event of a stream.
    fn add(&mut self, calls: &Calls, call: Option<&Call>, comms: &Communicators, stream: usize) {
        let Some(call) = call.filter(|call| !call.sends.is_empty() || !call.receives.is_empty()) else {
            return;
        };
        let comm = calls.comm(call.comm);
        let Some(own) = comms.own_rank(stream, comm) else { return };
        let channels = self.channels(comm, comms.comm_size(stream, comm));
        let rank = |peer: Peer| match peer {
            Peer::Rank(rank) => Some(rank as usize),
            Peer::Any => None,
        };
        for to in call.sends.iter().filter_map(|message| rank(message.peer)) {
            channels.add(own as usize, to);
        }
        for from in call.receives.iter().filter_map(|message| rank(message.peer)) {
            channels.add(from, own as usize);
        }
    }

    fn channels(&mut self, comm: &str, size: u32) -> &mut Channels {
        let sizes = self.by_name.entry(comm.to_string()).or_default();
        let new = || OfSize { channels: Channels::new(size as usize), grid: None, is_inferred: false };
        &mut sizes.entry(size).or_insert_with(new).channels
    }

    /// Takes the stated grid if it has as many places as there are processes; else the one that
    /// the messages show.
    fn decide(&mut self, comms: &Communicators) {
        for (comm, sizes) in &mut self.by_name {
            for (&size, known) in sizes {
                known.grid = comms.grid(comm).filter(|grid| grid.size() == Some(size)).cloned();
                if known.grid.is_none() && size <= LARGEST {
                    known.grid = known.channels.grid_topology().and_then(|shown| grid_of(&shown));
                    known.is_inferred = true;
                }
                known.channels = Channels::default();
            }
        }
    }

    pub(crate) fn get(&self, comm: &str, size: u32) -> Option<&Grid> {
        self.by_name.get(comm)?.get(&size)?.grid.as_ref()
    }

    /// All grids, and the communicators that have none.
    pub(super) fn known(&self) -> (Vec<PeerGrid>, Vec<String>) {
        let (mut known, mut without) = (Vec::new(), Vec::new());
        for (comm, sizes) in &self.by_name {
            for OfSize { grid, is_inferred, .. } in sizes.values() {
                match grid.clone() {
                    Some(grid) => {
                        known.push(PeerGrid { comm: comm.clone(), grid, is_inferred: *is_inferred })
                    }
                    None => without.push(comm.clone()),
                }
            }
        }
        without.dedup();
        (known, without)
    }
}

/// The grid of a topology that is one.
fn grid_of(topology: &Topology) -> Option<Grid> {
    let ends_meet = match topology.layout {
        Layout::Line | Layout::Mesh | Layout::Wavefront => false,
        // In a dimension of two, each is the other's neighbour in both directions.
        Layout::Ring | Layout::Torus | Layout::Hypercube | Layout::Butterfly => true,
        _ => return None,
    };
    let sides = topology.shape.iter().map(|&side| u32::try_from(side).ok()).collect::<Option<Vec<u32>>>()?;
    Some(Grid { periodic: vec![ends_meet; sides.len()], sides })
}
