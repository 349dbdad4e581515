//! Finds the pattern of a trace that contains a window.
//!
//! Made by one pass over the places of all patterns, which are sorted by length; then a window
//! costs O(places in its stream) at most, and two look-ups of positions.

use super::SimilarPlace;
use crate::StreamId;
use crate::questions::communication::{Processes, TracePatterns};
use crate::questions::patterns::KeptPositions;

/// The patterns of a trace by where they are.
pub struct EnclosingPatterns<'p, 'a> {
    processes: &'p Processes<'a>,
    positions: KeptPositions<'a>,
    /// For each stream the stretches of patterns, the shortest first, and their numbers.
    stretches: Vec<Vec<(u32, u32, usize)>>,
}

opaque_debug!(EnclosingPatterns<'p, 'a>);

impl<'p, 'a> EnclosingPatterns<'p, 'a> {
    /// From the patterns that were found in these processes.
    pub fn of(processes: &'p Processes<'a>, patterns: &TracePatterns) -> Self {
        let stretches = patterns.stretches(processes);
        Self { processes, positions: processes.positions(), stretches }
    }

    /// The number of the smallest pattern that a window of a stream lies in and that has more
    /// events. Returns `None` if there is none.
    pub fn smallest_around(&self, stream: StreamId, window: SimilarPlace) -> Option<usize> {
        let stream = stream.index();
        let shown = self.processes.traces()[stream].shown();
        let index = |position| shown.index_at(self.positions.before(stream, position)?);
        let (first, last) = (index(window.start)? as u32, index(window.end)? as u32);
        let is_larger = |&&(start, end, _): &&(u32, u32, usize)| {
            start <= first && first <= last && last < end && {
                shown.events(start as usize, end as usize) > window.length as u64
            }
        };
        self.stretches[stream].iter().find(is_larger).map(|&(.., number)| number)
    }
}
