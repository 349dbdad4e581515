//! Matches the calls of collective operations, and computes for each member when its wait ends.
//!
//! The n-th operation on a communicator is the same one for all of its members. An operation is
//! kept until all members that have a stream take part; resolving it costs O(members), or
//! O(members × log members) for a scan.

use super::Class;
use super::kinds::Shape;
use super::replay::{Party, Remote};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// A member of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Its rank in the communicator.
    pub(super) own: u32,
    /// Its rank in the world.
    pub(super) rank: u32,
    pub(super) enter: Option<i64>,
    pub(super) party: Party,
}

/// What a call says of its operation: the shape, and the process that is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) shape: Shape,
    pub(super) root: Option<u32>,
}

/// The operations on one communicator.
pub(super) struct Operations {
    /// How many members have a stream.
    size: usize,
    /// Whether others have none.
    pub(super) is_partial: bool,
    /// In how many operations each process took part.
    done: HashMap<u32, u64, foldhash::fast::RandomState>,
    /// Those that not all take part in yet, and others behind the first of them.
    open: VecDeque<Open>,
    /// The number of the first of them.
    first: u64,
}

struct Open {
    operation: Operation,
    agree: bool,
    members: Vec<Member>,
}

/// An operation in which all take part.
pub(super) struct Complete {
    pub(super) operation: Operation,
    /// Whether all say the same of it.
    pub(super) agree: bool,
    pub(super) members: Vec<Member>,
}

impl Operations {
    /// Of so many members, of which so many have a stream.
    pub(super) fn new(members: usize, size: usize) -> Self {
        Self { size, is_partial: size < members, done: HashMap::default(), open: VecDeque::new(), first: 0 }
    }

    /// A member takes part in its next operation. Returns that if it is the last one to do so.
    pub(super) fn join(&mut self, operation: Operation, member: Member) -> Option<Complete> {
        let done = self.done.entry(member.rank).or_default();
        let index = (*done - self.first) as usize;
        *done += 1;
        if index == self.open.len() {
            self.open.push_back(Open { operation, agree: true, members: Vec::new() });
        }
        let open = &mut self.open[index];
        open.agree &= open.operation == operation;
        open.members.push(member);
        if open.members.len() < self.size {
            return None;
        }
        let (operation, agree) = (open.operation, open.agree);
        let members = std::mem::take(&mut open.members);
        // No process takes part in one before it took part in all that precede it.
        self.open.pop_front();
        self.first += 1;
        Some(Complete { operation, agree, members })
    }

    /// How many operations not all took part in.
    pub(super) fn incomplete(&self) -> u64 {
        self.open.len() as u64
    }
}

impl Complete {
    /// Calls `end` with each member and what ends its wait, if it waits for anyone.
    pub(super) fn resolve(mut self, mut end: impl FnMut(Member, Option<Remote>)) {
        let Operation { shape, root } = self.operation;
        let remote = |class, enter_of: Option<(i64, u32)>| {
            enter_of.map(|(enter, cause)| Remote { class, enter: Some(enter), cause, is_wrong_order: false })
        };
        match shape {
            _ if !self.agree => self.members.into_iter().for_each(|member| end(member, None)),
            Shape::Other => self.members.into_iter().for_each(|member| end(member, None)),
            Shape::All(class) => {
                let last = self.members.iter().fold(None, later);
                self.members.into_iter().for_each(|member| end(member, remote(class, last)));
            }
            Shape::OneToAll => {
                let first = self.members.iter().filter(|member| Some(member.rank) == root).fold(None, later);
                for member in self.members {
                    let waits = Some(member.rank) != root;
                    end(member, remote(Class::LateBroadcast, first.filter(|_| waits)));
                }
            }
            Shape::AllToOne => {
                let others = self.members.iter().filter(|member| Some(member.rank) != root);
                let first = others.filter_map(|member| Some((member.enter?, member.rank))).min();
                for member in self.members {
                    let waits = Some(member.rank) == root;
                    end(member, remote(Class::EarlyReduce, first.filter(|_| waits)));
                }
            }
            Shape::Scan => {
                self.members.sort_unstable_by_key(|member| member.own);
                let mut last = None;
                for member in self.members {
                    end(member, remote(Class::EarlyScan, last));
                    last = later(last, &member);
                }
            }
        }
    }
}

/// The later enter; the lower rank of those that are equal.
fn later(last: Option<(i64, u32)>, member: &Member) -> Option<(i64, u32)> {
    let Some(enter) = member.enter else { return last };
    match last {
        Some((latest, rank))
            if (latest, std::cmp::Reverse(rank)) >= (enter, std::cmp::Reverse(member.rank)) =>
        {
            last
        }
        _ => Some((enter, member.rank)),
    }
}
