//! The busy time of a stream: how long some event was open before a given moment.
//!
//! If events come in the order of their starts, two numbers suffice: the measure of the union of
//! the intervals that were read, and its end. A moment that is asked for is the start of the
//! event that is read next, or the latest end of events that were read last. All intervals
//! that were read begin before it, so what the union covers after it is one piece, up to its end.
//! Where a clock goes back, the union is made first, O(events log events) and up to 80 bytes an
//! event.

use crate::Result;
use crate::questions::clock::{Interval, Starts};

pub(super) enum BusyTime {
    /// Of the intervals that were read.
    Running { covered: i128, end: Option<i128> },
    /// Of all intervals.
    Whole(Vec<Piece>),
}

/// A piece of the union, and the measure of those before it.
pub(super) struct Piece {
    start: i128,
    end: i128,
    before: i128,
}

impl BusyTime {
    /// Returns `None` if no durations are known.
    pub(super) fn of(starts: &mut Starts<'_>) -> Result<Option<Self>> {
        if !starts.has_durations() {
            return Ok(None);
        }
        if starts.is_sorted()? {
            return Ok(Some(Self::Running { covered: 0, end: None }));
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for Interval { start, end, .. } in starts.sorted_intervals()? {
            let start = i128::from(start);
            match pieces.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                last => {
                    let before = last.map_or(0, |last| last.before + last.end - last.start);
                    pieces.push(Piece { start, end, before });
                }
            }
        }
        Ok(Some(Self::Whole(pieces)))
    }

    /// Takes the next interval of the stream.
    pub(super) fn read(&mut self, start: i128, end: i128) {
        let Self::Running { covered, end: union_end } = self else { return };
        let from = union_end.map_or(start, |union_end| union_end.max(start));
        if end >= from {
            *covered += end - from;
            *union_end = Some(end);
        }
    }

    /// How long some event was open before a moment.
    pub(super) fn before(&self, time: i128) -> i128 {
        match self {
            Self::Running { covered, end } => covered - end.map_or(0, |end| (end - time).max(0)),
            Self::Whole(pieces) => {
                let begun = pieces.partition_point(|piece| piece.start <= time);
                let last = begun.checked_sub(1).map(|last| &pieces[last]);
                last.map_or(0, |last| last.before + last.end.min(time) - last.start)
            }
        }
    }
}
