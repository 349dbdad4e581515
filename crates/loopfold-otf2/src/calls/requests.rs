//! The requests of a location that are pending, in the order in which they were posted.
//!
//! Completing the oldest ones costs O(1) each, others O(pending requests).

use std::collections::VecDeque;

/// More requests than this are not followed: what completes them is not in the trace.
const MOST_POSTED: usize = 1 << 16;

/// Which requests a call completes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Completed {
    /// As many of the oldest as it says, as far as there are any.
    #[default]
    Oldest,
    /// Those with these indexes, sorted.
    Others(Vec<u64>),
}

/// The pending requests of emitted calls.
#[derive(Default)]
pub(super) struct PostedRequests {
    pending: VecDeque<u64>,
    /// Whether there were too many.
    is_lost: bool,
}

impl PostedRequests {
    pub(super) fn post(&mut self, requests: &[u64]) {
        if !self.is_lost {
            self.pending.extend(requests);
            self.is_lost = self.pending.len() > MOST_POSTED;
        }
    }

    /// Requests that turn out not to be stated by the calls that posted them.
    pub(super) fn forget(&mut self, requests: &[u64]) {
        if !self.is_lost {
            self.pending.retain(|request| !requests.contains(request));
        }
    }

    /// A call completes requests, among them some that are not known.
    pub(super) fn complete(&mut self, completed: &[u64]) -> Completed {
        let count = completed.len().min(self.pending.len());
        if self.is_lost || count == 0 {
            return Completed::Oldest;
        }
        if self.pending.iter().take(count).eq(completed) || self.are_oldest(completed, count) {
            self.pending.drain(..count);
            return Completed::Oldest;
        }
        let mut indexes = Vec::new();
        for (index, request) in (0u64..).zip(&self.pending) {
            if completed.contains(request) {
                indexes.push(index);
            }
        }
        self.pending.retain(|request| !completed.contains(request));
        Completed::Others(indexes)
    }

    /// Whether these are the oldest requests, in any order.
    fn are_oldest(&self, completed: &[u64], count: usize) -> bool {
        let mut oldest: Vec<u64> = self.pending.range(..count).copied().collect();
        let mut completed = completed.to_vec();
        oldest.sort_unstable();
        completed.sort_unstable();
        oldest.iter().all(|request| completed.binary_search(request).is_ok())
    }
}
