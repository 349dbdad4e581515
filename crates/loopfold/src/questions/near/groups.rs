//! Groups of copies with short gaps, and what their gaps are.
//!
//! Cost: O(copies that are not adjacent + events of gaps), and that of the edits of each kind; a
//! group is given up as soon as it is known to be not worth it.

use super::copies::Copies;
use super::edits::edits;
use super::significance::{Shape, is_significant};
use super::written::Written;
use super::{Change, Exception, Kind, NearLoop, Word, is_worth};
use crate::{Result, Symbol};
use hashbrown::HashMap;
use std::ops::Range;

/// The stream that is searched.
#[derive(Clone, Copy)]
pub(super) struct Searched<'a> {
    pub(super) text: &'a [Symbol],
    /// How many distinct symbols it has.
    pub(super) symbols: usize,
    pub(super) written: &'a Written,
    /// How many events are written for a body.
    pub(super) written_for: &'a dyn Fn(&[Symbol]) -> Result<u64>,
}

/// The loops with exceptions with this body, in order.
pub(super) fn loops(searched: Searched<'_>, Word { body, copies, .. }: &Word) -> Result<Vec<NearLoop>> {
    let period = body.len();
    let is_near = |before: &Copies, next: &Copies| next.start() - before.end(period) <= 3 * period;
    let groups = copies.chunk_by(is_near).map(|copies| Group { searched, body, copies });
    let promising: Vec<Group<'_>> = groups.filter(|group| group.is_worth_if(1)).collect();
    if promising.is_empty() {
        return Ok(Vec::new());
    }
    let folded = (searched.written_for)(body)?;
    Ok(promising.iter().filter_map(|group| group.near_loop(folded)).collect())
}

struct Group<'a> {
    searched: Searched<'a>,
    body: &'a [Symbol],
    copies: &'a [Copies],
}

impl Group<'_> {
    fn span(&self) -> Range<usize> {
        let first = self.copies.first().map_or(0, |copies| copies.start());
        first..self.copies.last().map_or(0, |copies| copies.end(self.body.len()))
    }

    fn equal(&self) -> usize {
        self.copies.iter().map(|copies| copies.count()).sum()
    }

    /// What is written but for the kinds, if so much is written for the body.
    fn least(&self, folded: u64) -> u64 {
        folded + (self.copies.len() - 1) as u64 + self.searched.written.left_over(&self.span())
    }

    /// Whether it may be worth it, if so much is written for the body.
    fn is_worth_if(&self, folded: u64) -> bool {
        let (span, equal, gaps, period) = (self.span(), self.equal(), self.copies.len() - 1, self.body.len());
        let is_dense = 4 * equal * period >= 3 * span.len();
        if gaps == 0 || equal < 2 * gaps + 2 || !is_dense {
            return false;
        }
        let shape = Shape { period, copies: equal, gaps };
        is_worth(self.least(folded), self.searched.written.within(&span))
            && is_significant(shape, self.searched.text.len(), self.searched.symbols)
    }

    fn near_loop(&self, folded: u64) -> Option<NearLoop> {
        if !self.is_worth_if(folded) {
            return None;
        }
        let span = self.span();
        let exact = self.searched.written.within(&span);
        let (kinds, exceptions, written) = self.kinds(self.least(folded), exact)?;
        let (start, end, equal) = (span.start as u64, span.end as u64, self.equal() as u64);
        Some(NearLoop { start, end, body: self.body.to_vec(), equal, kinds, exceptions, written, exact })
    }

    fn gaps(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.copies.windows(2).map(|pair| pair[0].end(self.body.len())..pair[1].start())
    }

    /// The kinds of the gaps, in the order of their first ones, the gaps, and all that is written.
    /// Returns `None` if that is too much.
    fn kinds(&self, mut written: u64, exact: u64) -> Option<(Vec<Kind>, Vec<Exception>, u64)> {
        let mut kinds: Vec<Kind> = Vec::new();
        let mut exceptions = Vec::with_capacity(self.copies.len() - 1);
        let mut known: HashMap<&[Symbol], usize, foldhash::fast::FixedState> = HashMap::default();
        for gap in self.gaps() {
            let events = &self.searched.text[gap.clone()];
            let kind = *known.entry(events).or_insert(kinds.len());
            if kind == kinds.len() {
                kinds.push(self.kind(events, gap.start));
                written += kinds[kind].change.written();
                if !is_worth(written, exact) {
                    return None;
                }
            }
            kinds[kind].count += 1;
            exceptions.push(Exception { start: gap.start as u64, end: gap.end as u64, kind });
        }
        Some((kinds, exceptions, written))
    }

    fn kind(&self, events: &[Symbol], first: usize) -> Kind {
        let period = self.body.len();
        let is_added = 2 * events.len() < period;
        let iterations = if is_added { 0 } else { (2 * events.len() + period) / (2 * period) };
        let edits = if is_added { None } else { edits(&self.body.repeat(iterations), events, events.len()) };
        let change = edits.map_or_else(|| Change::Events(events.to_vec()), Change::Edits);
        Kind { count: 0, first: first as u64, iterations: iterations as u64, change }
    }
}
