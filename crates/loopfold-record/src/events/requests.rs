//! Pending requests: what a call completes, and events that wait for what they receive.
//!
//! The event of a receive with a wildcard waits until the receive completes, and later events of
//! its thread queue behind it: up to [`MOST_HELD`], or until it has waited from one segment to the
//! next ([`Decoder::release_old`]); then it is emitted with the wildcard.
//!
//! A call that completes requests mostly completes the oldest ones, and `n` says how many; only
//! where it completes others, `done` has their indexes among the pending ones of the thread.
//! `MPI_Request_free` says so too of a request that is pending. A request that another thread
//! posted is found there, and is none of the own ones. A thread with more than [`MOST_PENDING`]
//! requests has them only counted by handle until all of them have completed: `n` is right, and
//! `done` is missing.
//!
//! A request is known by its handle while it is pending. MPI may give the same handle to several
//! that complete at once; the oldest of them is completed first.

use super::{ANY_SOURCE, ANY_TAG, Between, Decoder, Kind, Moment, Slot, Timed, received};
use crate::kind::DONE_NONE;
use crate::layout::{ANY, CANCELLED};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use loopfold::Result;
use std::collections::VecDeque;

/// How many events of a thread may wait for a receive to complete.
const MOST_HELD: usize = 1 << 16;

/// More pending requests than this are not followed.
pub(super) const MOST_PENDING: usize = 1 << 16;

/// A thread of a process.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) pending: VecDeque<Pending>,
    /// How many requests there are of each handle, when they are too many.
    pub(super) unfollowed: HashMap<i64, u32>,
    pub(super) held: VecDeque<Held>,
    /// How many held events were emitted.
    released: u64,
    /// How many were emitted or held when the last segment was written.
    old: u64,
    pub(super) regions: Vec<usize>,
    pub(super) continued: Vec<i64>,
    /// What is known of the time since the last event.
    pub(super) between: Between,
    /// Events that wait for nothing.
    pub(super) ready: Vec<Timed>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) handle: i64,
    /// The event that waits for it, counted from the first that was held.
    waiting: Option<u64>,
    comm: i64,
}

#[derive(Debug)]
pub(super) struct Held {
    kind: Kind,
    at: Moment,
    is_waiting: bool,
}

/// A request that a call posts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) handle: i64,
    pub(super) comm: i64,
    /// Whether the sender or the tag is a wildcard.
    pub(super) waits: bool,
}

/// What a call completes.
#[derive(Default)]
struct Completed {
    /// How many requests of the own thread.
    count: i64,
    /// Their indexes, if they are followed.
    indexes: Vec<i64>,
    is_elsewhere: bool,
    /// Requests that were given up, and whose event was emitted already.
    cancelled: i64,
}

impl Lane {
    pub(super) fn post(&mut self, posted: Posted) {
        let number = self.released + self.held.len() as u64;
        if !self.unfollowed.is_empty() {
            *self.unfollowed.entry(posted.handle).or_insert(0) += 1;
            return;
        }
        self.pending.push_back(Pending {
            handle: posted.handle,
            waiting: posted.waits.then_some(number),
            comm: posted.comm,
        });
        if self.pending.len() > MOST_PENDING {
            for one in std::mem::take(&mut self.pending) {
                *self.unfollowed.entry(one.handle).or_insert(0) += 1;
            }
            self.held.iter_mut().for_each(|held| held.is_waiting = false);
        }
    }

    /// Removes a request that is not followed, if it is one.
    fn forget(&mut self, handle: i64) -> bool {
        match self.unfollowed.entry(handle) {
            Entry::Occupied(mut entry) if *entry.get() > 1 => *entry.get_mut() -= 1,
            Entry::Occupied(entry) => {
                entry.remove();
            }
            Entry::Vacant(_) => return false,
        }
        true
    }

    fn held_event(&mut self, pending: Pending) -> Option<&mut Held> {
        let place = pending.waiting?.checked_sub(self.released)?;
        self.held.get_mut(place as usize)
    }
}

impl Decoder {
    /// Waits and tests: which of the pending requests they complete.
    pub(super) fn completion(&mut self, lane: usize, call: usize, payload: &[i64]) -> Kind {
        let handles = payload.as_chunks::<2>().0;
        let pending = &self.lanes[lane].pending;
        // The oldest ones complete most often, and in order.
        let in_order = handles.len() <= pending.len()
            && handles.iter().zip(pending).all(|(&[handle, _], pending)| handle == pending.handle);
        let completed = match in_order {
            true => self.complete_oldest(lane, handles),
            false => self.complete(lane, handles),
        };
        let mut kind = Kind::call(call);
        kind.push(Slot::N, completed.count);
        let are_oldest = completed.indexes.iter().enumerate().all(|(place, &index)| index == place as i64);
        if completed.count == 0 && completed.is_elsewhere {
            kind.push(Slot::Done, DONE_NONE);
        } else if !are_oldest {
            completed.indexes.iter().for_each(|&index| kind.push(Slot::Done, index));
        }
        if completed.cancelled > 0 {
            kind.push(Slot::Cancelled, completed.cancelled);
        }
        kind
    }

    fn complete_oldest(&mut self, lane: usize, handles: &[[i64; 2]]) -> Completed {
        let mut completed = Completed { count: handles.len() as i64, ..Completed::default() };
        for &[_, word] in handles {
            if let Some(pending) = self.lanes[lane].pending.pop_front() {
                completed.cancelled += self.resolve(lane, pending, word);
            }
        }
        completed
    }

    fn complete(&mut self, lane: usize, handles: &[[i64; 2]]) -> Completed {
        let mut completed = Completed::default();
        let mut taken = vec![false; self.lanes[lane].pending.len()];
        for &[handle, word] in handles {
            let pending = &self.lanes[lane].pending;
            let own = pending.iter().zip(&taken).position(|(one, taken)| !taken && one.handle == handle);
            if let Some(index) = own {
                taken[index] = true;
                completed.count += 1;
                completed.indexes.push(index as i64);
                let pending = pending[index];
                completed.cancelled += self.resolve(lane, pending, word);
            } else if self.lanes[lane].forget(handle) {
                completed.count += 1;
                completed.cancelled += i64::from(word == CANCELLED);
            } else if let Some((other, pending)) = self.take_elsewhere(lane, handle) {
                completed.is_elsewhere = true;
                completed.cancelled += match pending {
                    Some(pending) => self.resolve(other, pending, word),
                    None => i64::from(word == CANCELLED),
                };
            }
        }
        let mut place = 0;
        self.lanes[lane].pending.retain(|_| {
            place += 1;
            !taken[place - 1]
        });
        completed.indexes.sort_unstable();
        completed
    }

    /// Removes a request that another thread posted; nothing else is known of one that is not
    /// followed.
    fn take_elsewhere(&mut self, lane: usize, handle: i64) -> Option<(usize, Option<Pending>)> {
        for (number, other) in self.lanes.iter_mut().enumerate().filter(|&(number, _)| number != lane) {
            if let Some(index) = other.pending.iter().position(|one| one.handle == handle) {
                return Some((number, other.pending.remove(index)));
            }
            if other.forget(handle) {
                return Some((number, None));
            }
        }
        None
    }

    /// A request is complete: now the sender of a receive with a wildcard is known. Returns 1 if it
    /// was given up and its event cannot say so any more.
    fn resolve(&mut self, lane: usize, pending: Pending, word: i64) -> i64 {
        let (src, tag) = received(word);
        let src = self.peer(pending.comm, src);
        let Some(held) = self.lanes[lane].held_event(pending) else { return i64::from(word == CANCELLED) };
        held.is_waiting = false;
        let kind = &mut held.kind;
        let tag_slot = if kind.get(Slot::Dest).is_some() { Slot::RecvTag } else { Slot::Tag };
        if word == CANCELLED {
            kind.remove(Slot::Src);
            kind.remove(tag_slot);
            kind.push(Slot::Cancelled, 1);
            return 0;
        }
        let mut any = 0;
        if kind.get(Slot::Src) == Some(ANY) {
            kind.set(Slot::Src, src);
            any |= ANY_SOURCE;
        }
        if kind.get(tag_slot) == Some(ANY) {
            kind.set(tag_slot, tag);
            any |= ANY_TAG;
        }
        if any != 0 {
            kind.push(Slot::Any, any);
        }
        0
    }

    /// A request that is freed: it is no longer pending, as no call will complete it.
    pub(super) fn freed(&mut self, lane: usize, call: usize, payload: &[i64]) -> Kind {
        let mut kind = Kind::call(call);
        let Some(&handle) = payload.first() else { return kind };
        self.persistent.remove(&handle);
        let own = &mut self.lanes[lane];
        if let Some(index) = own.pending.iter().position(|one| one.handle == handle) {
            kind.push(Slot::N, 1);
            if index > 0 {
                kind.push(Slot::Done, index as i64);
            }
            if let Some(held) = own.pending.remove(index).and_then(|pending| own.held_event(pending)) {
                held.is_waiting = false;
            }
        } else if own.forget(handle) {
            kind.push(Slot::N, 1);
        } else if let Some((other, Some(pending))) = self.take_elsewhere(lane, handle)
            && let Some(held) = self.lanes[other].held_event(pending)
        {
            held.is_waiting = false;
        }
        kind
    }

    pub(super) fn emit(&mut self, lane: usize, kind: Kind, at: Moment, posted: &[Posted]) -> Result<()> {
        let own = &mut self.lanes[lane];
        posted.iter().for_each(|&one| own.post(one));
        let is_waiting = own.unfollowed.is_empty() && posted.iter().any(|one| one.waits);
        if own.held.is_empty() && !is_waiting {
            own.ready.push(at.of(self.kinds.symbol(&kind)?));
            return Ok(());
        }
        own.held.push_back(Held { kind, at, is_waiting });
        let most = own.released + own.held.len().saturating_sub(MOST_HELD) as u64;
        self.release(lane, most)
    }

    /// Emits the events that no longer wait, and in any case those up to a number.
    fn release(&mut self, lane: usize, until: u64) -> Result<()> {
        let Lane { held, released, ready, .. } = &mut self.lanes[lane];
        while held.front().is_some_and(|first| *released < until || !first.is_waiting) {
            if let Some(Held { kind, at, .. }) = held.pop_front() {
                *released += 1;
                ready.push(at.of(self.kinds.symbol(&kind)?));
            }
        }
        Ok(())
    }

    /// Emits what waits for nothing any more, since another thread has completed it.
    pub(crate) fn release_ready(&mut self) -> Result<()> {
        (0..self.lanes.len()).try_for_each(|lane| self.release(lane, 0))
    }

    /// A segment is due: emits what already waited when the last one was written.
    pub(crate) fn release_old(&mut self) -> Result<()> {
        for lane in 0..self.lanes.len() {
            self.release(lane, self.lanes[lane].old)?;
            let own = &mut self.lanes[lane];
            own.old = own.released + own.held.len() as u64;
        }
        Ok(())
    }

    /// Emits all events that still wait, at the end.
    pub(crate) fn finish(&mut self) -> Result<()> {
        (0..self.lanes.len()).try_for_each(|lane| self.release(lane, u64::MAX))
    }

    /// Whether events wait.
    pub(crate) fn has_held(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.held.is_empty())
    }
}
