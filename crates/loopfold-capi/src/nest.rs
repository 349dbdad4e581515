//! The walk over the loop nest of a stream: O(written nodes), each body once.

use crate::fold::FoldHandle;
use crate::status::{Failure, Status, guarded, reference};
use loopfold::questions::nest;
use std::ffi::{c_int, c_void};

/// What a node of a nest is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "they are called so in C")]
pub enum NodeKind {
    /// An event.
    LOOPFOLD_EVENT = 0,
    /// The beginning of a loop; its body follows.
    LOOPFOLD_LOOP = 1,
    /// The end of the innermost loop that has begun.
    LOOPFOLD_LOOP_END = 2,
    /// Events that are left out: the nest has more nodes than were asked for.
    LOOPFOLD_LEFT_OUT = 3,
}

/// A node of a nest.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// How many loops are around it.
    pub depth: u32,
    /// The symbol of an event; 0 otherwise.
    pub symbol: u32,
    /// The iterations of a loop; 1 otherwise.
    pub times: u64,
    /// The events of one iteration, or those that are left out; 1 for an event.
    pub length: u64,
}

/// A function of the caller that sees each node, in order; anything but 0 stops the walk.
pub type Visitor = Option<unsafe extern "C" fn(user: *mut c_void, node: *const Node) -> c_int>;

/// Visits the loop nest of a stream, of about `most` nodes at most, each loop body once.
///
/// # Safety
///
/// `fold` is open; `visitor` can be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loopfold_walk(
    fold: *const FoldHandle,
    stream: usize,
    most: usize,
    visitor: Visitor,
    user: *mut c_void,
) -> Status {
    guarded(|| {
        // SAFETY: what the caller guarantees.
        let handle = unsafe { reference(fold, "fold") }?;
        let Some(visitor) = visitor else { return Err(Failure::invalid("visitor is a null pointer")) };
        let nest = handle.fold.nest(handle.stream(stream)?.root(), most);
        // SAFETY: the caller's function, with the caller's pointer.
        let is_done = walk(&nest, |node| unsafe { visitor(user, &node) == 0 });
        Ok(if is_done { Status::LOOPFOLD_OK } else { Status::LOOPFOLD_STOPPED })
    })
}

/// Visits all nodes while the visitor wants more.
fn walk(nest: &nest::Nest, mut wants_more: impl FnMut(Node) -> bool) -> bool {
    let mut ends: Vec<usize> = Vec::new();
    let of = |kind, depth: usize| Node { kind, depth: depth as u32, symbol: 0, times: 1, length: 1 };
    for at in 0..=nest.nodes.len() {
        while ends.pop_if(|end| *end == at).is_some() {
            if !wants_more(of(NodeKind::LOOPFOLD_LOOP_END, ends.len())) {
                return false;
            }
        }
        let depth = ends.len();
        let node = match nest.nodes.get(at) {
            None => return true,
            Some(&nest::Node::Event(symbol)) => {
                Node { symbol: symbol.index() as u32, ..of(NodeKind::LOOPFOLD_EVENT, depth) }
            }
            Some(&nest::Node::Loop { times, length, end }) => {
                ends.push(end);
                Node { times, length, ..of(NodeKind::LOOPFOLD_LOOP, depth) }
            }
            Some(&nest::Node::LeftOut(length)) => Node { length, ..of(NodeKind::LOOPFOLD_LEFT_OUT, depth) },
            // A nest from `Fold::nest` is exact.
            Some(nest::Node::Near { .. }) => continue,
        };
        if !wants_more(node) {
            return false;
        }
    }
    true
}
