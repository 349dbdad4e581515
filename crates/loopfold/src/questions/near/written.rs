//! How many events the exact nest writes for a stretch of the stream.
//!
//! Only the loops of the outermost level are stored: all other events there are written as they
//! are. Cost: O(items of the outermost level); a query O(log loops).

use crate::fold::cursor::{Cursor, Move, Stretch, Visitor};
use crate::fold::{Fold, Item, Target};
use crate::{Error, Result, RuleId};
use std::ops::Range;

/// A loop of the outermost level.
#[derive(Clone, Copy, Debug)]
struct Loop {
    start: u32,
    end: u32,
    /// The events that this loop and those before it span, and the events written for them.
    spanned: u32,
    written: u32,
}

/// The outermost level of a nest.
#[derive(Debug)]
pub(super) struct Written {
    loops: Vec<Loop>,
}

struct Collector<'a> {
    folded: &'a [u64],
    loops: Vec<Loop>,
}

impl Visitor<Item> for Collector<'_> {
    type Error = Error;

    fn stretch(&mut self, stretch: Stretch<Item>, _: (RuleId, usize)) -> Result<Move> {
        let Stretch { target, times, length, position, .. } = stretch;
        if times == 1 {
            return Ok(if matches!(target, Target::Rule(_)) { Move::Enter } else { Move::Skip });
        }
        let small = |number: u64| u32::try_from(number).map_err(|_| Error::limit("too many events"));
        let written = match target {
            Target::Symbol(_) => 1,
            Target::Rule(rule) => self.folded[rule.index()],
        };
        let before = self.loops.last().map_or((0, 0), |last| (last.spanned, last.written));
        self.loops.push(Loop {
            start: small(position)?,
            end: small(stretch.end())?,
            spanned: before.0 + small(times * length)?,
            written: before.1 + small(written)?,
        });
        Ok(Move::Skip)
    }

    fn end(&mut self, _: RuleId, _: u64, _: u64) -> Result<Move> {
        Ok(Move::Skip)
    }
}

impl Written {
    /// Of a rule of less than 2^32 events. `folded` has the events written for each rule.
    pub(super) fn new(fold: &Fold, folded: &[u64], rule: RuleId) -> Result<Self> {
        let mut collector = Collector { folded, loops: Vec::new() };
        Cursor::new(fold, rule).visit(&mut collector)?;
        Ok(Self { loops: collector.loops })
    }

    /// The events written for what a loop with exceptions does not cover of the loops in which it
    /// begins and ends: what is left of each, or its body twice, for iterations that are whole and
    /// one that is cut.
    pub(super) fn left_over(&self, range: &Range<usize>) -> u64 {
        let first = self.loops.partition_point(|found| found.end as usize <= range.start);
        let last = self.loops.partition_point(|found| (found.start as usize) < range.end);
        let cost = |at: usize, left: usize| (left as u64).min(2 * self.written_of(at));
        let left_of = |at: usize| cost(at, range.start.saturating_sub(self.loops[at].start as usize));
        let right_of = |at: usize| cost(at, (self.loops[at].end as usize).saturating_sub(range.end));
        if first < last { left_of(first) + right_of(last - 1) } else { 0 }
    }

    fn written_of(&self, at: usize) -> u64 {
        let before = at.checked_sub(1).map_or(0, |before| self.loops[before].written);
        (self.loops[at].written - before).into()
    }

    /// The events written for what lies in a range, even partly.
    pub(super) fn within(&self, range: &Range<usize>) -> u64 {
        let first = self.loops.partition_point(|found| found.end as usize <= range.start);
        let after = self.loops.partition_point(|found| (found.start as usize) < range.end);
        if first >= after {
            return range.len() as u64;
        }
        let before = first
            .checked_sub(1)
            .map_or((0, 0), |before| (self.loops[before].spanned, self.loops[before].written));
        let (first, last) = (self.loops[first], self.loops[after - 1]);
        let outside =
            range.start.saturating_sub(first.start as usize) + (last.end as usize).saturating_sub(range.end);
        let in_loops = (last.spanned - before.0) as usize - outside;
        (range.len() - in_loops) as u64 + u64::from(last.written - before.1)
    }
}
