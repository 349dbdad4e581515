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

/// When a process enters, and its rank in the world.
pub(super) type Stamp = (i64, u32);

/// What ends the waits of the members of an operation.
pub(super) enum Ends {
    /// Nothing does.
    Nothing,
    /// The same for all members that wait.
    Same(Option<Stamp>),
    /// For each member, in the order of their ranks in the communicator.
    Each(Vec<Option<Stamp>>),
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

    /// Those that not all took part in, in order.
    pub(super) fn into_incomplete(self) -> impl Iterator<Item = Complete> {
        self.open.into_iter().map(|Open { operation, agree, members }| Complete { operation, agree, members })
    }
}

impl Complete {
    /// What ends the waits of these members, if they are all.
    pub(super) fn ends(&mut self) -> Ends {
        if !self.agree {
            return Ends::Nothing;
        }
        if self.operation.shape == Shape::Scan {
            self.sort();
            let mut last = None;
            let before = |member: &Member| {
                let before = last;
                last = later(last, member.stamp());
                before
            };
            return Ends::Each(self.members.iter().map(before).collect());
        }
        let operation = self.operation;
        Ends::Same(self.members.iter().fold(None, |end, member| operation.joined(end, member)))
    }

    /// Sorts the members by their ranks in the communicator.
    pub(super) fn sort(&mut self) {
        self.members.sort_unstable_by_key(|member| member.own);
    }

    /// Calls `end` with each member and what ends its wait, if it waits for anyone. If that differs from
    /// one to another, members must be sorted.
    pub(super) fn resolve(self, ends: &Ends, mut end: impl FnMut(Member, Option<Remote>)) {
        let operation = self.operation;
        for (index, member) in self.members.into_iter().enumerate() {
            let stamp = match ends {
                Ends::Nothing => None,
                Ends::Same(stamp) => *stamp,
                Ends::Each(stamps) => stamps.get(index).copied().flatten(),
            };
            let class = operation.class_of(member.rank);
            let remote = class.zip(stamp).map(|(class, (enter, cause))| Remote {
                class,
                enter: Some(enter),
                cause,
                is_wrong_order: false,
            });
            end(member, remote);
        }
    }
}

impl Member {
    pub(super) fn stamp(&self) -> Option<Stamp> {
        Some((self.enter?, self.rank))
    }
}

impl Operation {
    /// What a member waits for, if it waits.
    fn class_of(self, rank: u32) -> Option<Class> {
        let is_root = Some(rank) == self.root;
        match self.shape {
            Shape::Other => None,
            Shape::All(class) => Some(class),
            Shape::OneToAll => (!is_root).then_some(Class::LateBroadcast),
            Shape::AllToOne => is_root.then_some(Class::EarlyReduce),
            Shape::Scan => Some(Class::EarlyScan),
        }
    }

    /// What ends the waits of some members if another one takes part: the same in any order.
    pub(super) fn joined(self, end: Option<Stamp>, member: &Member) -> Option<Stamp> {
        let counts = match self.shape {
            Shape::All(_) => true,
            Shape::OneToAll => Some(member.rank) == self.root,
            Shape::AllToOne => Some(member.rank) != self.root,
            Shape::Other | Shape::Scan => false,
        };
        if counts { self.both(end, member.stamp()) } else { end }
    }

    /// What ends the waits of members of which each half has such an end.
    pub(super) fn both(self, one: Option<Stamp>, other: Option<Stamp>) -> Option<Stamp> {
        match self.shape {
            Shape::AllToOne => one.into_iter().chain(other).min(),
            _ => later(one, other),
        }
    }
}

/// The later enter; the lower rank of those that are equal.
pub(super) fn later(one: Option<Stamp>, other: Option<Stamp>) -> Option<Stamp> {
    one.into_iter().chain(other).max_by_key(|&(enter, rank)| (enter, std::cmp::Reverse(rank)))
}
