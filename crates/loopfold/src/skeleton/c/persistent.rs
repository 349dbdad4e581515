//! Persistent requests: which call that starts them means which call that made them.
//!
//! A recording names the other end of a message where it is started, and not where the request is
//! made. So the two are joined by what both have: the direction, the tag, the bytes and the
//! communicator; the k-th of several equal ones with the k-th.

use super::super::program::{Node, NodeId, Program};
use super::expressions::expression;
use crate::emit::c::Code;
use crate::mpi::WORLD;
use crate::questions::logical::{Expression, LogicalEvent};
use hashbrown::HashMap;

/// The persistent requests of a program.
#[derive(Debug, Default)]
pub(super) struct Persistent {
    /// The place of each request, and its peer, by the call that makes it.
    inits: HashMap<NodeId, (usize, Code)>,
    /// The requests that a call starts.
    starts: HashMap<NodeId, Vec<usize>>,
    /// How many there are.
    count: usize,
}

/// What both calls have.
type Key = (bool, String, String, String);

/// A message that is started: what it is, and its peer.
struct Started {
    key: Key,
    peer: Expression,
}

impl Persistent {
    pub(super) fn of(program: &Program) -> Self {
        let mut made: HashMap<Key, Vec<usize>> = HashMap::new();
        let mut nodes: Vec<NodeId> = Vec::new();
        for (id, node) in program.nodes.iter().enumerate() {
            let Node::Call(event) = node else { continue };
            let Some(is_send) = direction(event) else { continue };
            made.entry(key(event, is_send, "tag", "bytes", 0)).or_default().push(nodes.len());
            nodes.push(id);
        }
        let mut peers: Vec<Option<Code>> = vec![None; nodes.len()];
        let mut result = Self { count: nodes.len(), ..Self::default() };
        for (id, node) in program.nodes.iter().enumerate() {
            let Node::Call(event) = node else { continue };
            if !matches!(event.text(), Some("MPI_Start" | "MPI_Startall")) || event.field("of").is_some() {
                continue;
            }
            if let Some(places) = assign(event, program.processes, &made, &mut peers) {
                result.starts.insert(id, places);
            }
        }
        for (place, (&node, peer)) in nodes.iter().zip(peers).enumerate() {
            result.inits.extend(peer.map(|peer| (node, (place, peer))));
        }
        result
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The request that a call makes, and its peer.
    pub(super) fn init(&self, node: NodeId) -> Option<(usize, Code)> {
        self.inits.get(&node).cloned()
    }

    /// The requests that a call starts, in the order in which they were made.
    pub(super) fn start(&self, node: NodeId) -> Option<&[usize]> {
        self.starts.get(&node).map(|places| &places[..])
    }
}

/// Whether a call makes a persistent send or receive.
fn direction(event: &LogicalEvent) -> Option<bool> {
    match event.text()? {
        "MPI_Send_init" | "MPI_Ssend_init" | "MPI_Bsend_init" | "MPI_Rsend_init" => Some(true),
        "MPI_Recv_init" => Some(false),
        _ => None,
    }
}

fn key(event: &LogicalEvent, is_send: bool, tag: &str, bytes: &str, nth: usize) -> Key {
    let value = |key: &str| {
        let values = event.field(key).map_or(&[][..], |field| &field.values);
        values.get(nth).or(values.first()).map_or_else(String::new, ToString::to_string)
    };
    (is_send, value(tag), value(bytes), event.comm.clone().unwrap_or_else(|| WORLD.to_string()))
}

/// The requests that a call starts. Returns `None` if they are not all known.
fn assign(
    event: &LogicalEvent,
    ranks: usize,
    made: &HashMap<Key, Vec<usize>>,
    peers: &mut [Option<Code>],
) -> Option<Vec<usize>> {
    let values = |key: &str| event.field(key).map_or(&[][..], |field| &field.values);
    let (dests, sources) = (values("dest"), values("src"));
    let both = !dests.is_empty() && !sources.is_empty();
    let (tag, bytes) = if both { ("recvtag", "recvbytes") } else { ("tag", "bytes") };
    let mut started: Vec<Started> = Vec::new();
    for (nth, peer) in dests.iter().enumerate() {
        started.push(Started { key: key(event, true, "tag", "bytes", nth), peer: peer.clone() });
    }
    for (nth, peer) in sources.iter().enumerate() {
        started.push(Started { key: key(event, false, tag, bytes, nth), peer: peer.clone() });
    }
    let comm = event.comm.as_deref().unwrap_or(WORLD);
    let mut taken: HashMap<&Key, usize> = HashMap::new();
    let mut places = Vec::new();
    for one in &started {
        let peer = expression(&one.peer, comm, ranks);
        let candidates = made.get(&one.key)?;
        let next = taken.entry(&one.key).or_insert(0);
        // The one with this peer, or the next one that has none so far.
        let is_known = |&&place: &&usize| peers[place].as_ref() == Some(&peer) && !places.contains(&place);
        let place = candidates.iter().find(is_known).or_else(|| {
            candidates
                .iter()
                .filter(|&&place| !places.contains(&place))
                .find(|&&place| peers[place].is_none())
        });
        let place = *place?;
        *next += 1;
        peers[place] = Some(peer);
        places.push(place);
    }
    places.sort_unstable();
    Some(places)
}
