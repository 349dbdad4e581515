//! Groups of copies with short gaps, and what their gaps are.
//!
//! Cost: O(copies that are not adjacent + events of gaps), and that of the edits of each kind; a
//! group is given up as soon as it is known to be not worth it.

use super::copies::Copies;
use super::edits::edits;
use super::significance::{COPIES_PER_GAP, Shape, can_be_significant, is_significant};
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

/// Whether a stream of so many events and distinct symbols can have a loop with this body that is
/// significant. In random streams none can, and nothing else needs to be known of them.
pub(super) fn can_be_loops(word: &Word, events: usize, symbols: usize) -> bool {
    let counts = word.copies.iter().map(|copies| copies.count());
    can_be_significant(counts, word.body.len(), events, symbols)
}

/// The loops with exceptions with this body, in order.
pub(super) fn loops(searched: Searched<'_>, Word { body, copies, .. }: &Word) -> Result<Vec<NearLoop>> {
    let period = body.len();
    let groups = grouped(copies, period).into_iter();
    let groups = groups.map(|range| Group { searched, body, copies: &copies[range] });
    let promising: Vec<Group<'_>> = groups.filter(|group| group.is_worth_if(1)).collect();
    if promising.is_empty() {
        return Ok(Vec::new());
    }
    let folded = (searched.written_for)(body)?;
    Ok(promising.iter().filter_map(|group| group.near_loop(folded)).collect())
}

/// Gaps of up to so many periods never split a group.
const SHORT: usize = 3;
/// Longer ones do not, up to so many periods, if both sides are so many times as long.
const LONG: usize = 16;
const LONGER: usize = 16;

/// The copies of each group.
fn grouped(copies: &[Copies], period: usize) -> Vec<Range<usize>> {
    let gap = |next: usize| copies[next].start() - copies[next - 1].end(period);
    let splits: Vec<usize> = (1..copies.len()).filter(|&next| gap(next) > SHORT * period).collect();
    let mut long: Vec<usize> = (0..splits.len()).filter(|&at| gap(splits[at]) <= LONG * period).collect();
    long.sort_by_key(|&at| gap(splits[at]));
    let mut groups = Joined::new(copies.len(), &splits);
    for at in long {
        let span = |range: Range<usize>| copies[range.end - 1].end(period) - copies[range.start].start();
        let least = LONGER * gap(splits[at]);
        if span(groups.of(at)) >= least && span(groups.of(at + 1)) >= least {
            groups.join(at);
        }
    }
    groups.all()
}

/// Adjacent groups that are joined with each other, as disjoint sets: each knows its other end.
struct Joined {
    /// Where each group begins, and where the last one ends.
    bounds: Vec<usize>,
    /// For the first and the last of groups that are joined, the other one of these.
    other_end: Vec<usize>,
    is_joined: Vec<bool>,
}

impl Joined {
    fn new(copies: usize, splits: &[usize]) -> Self {
        let bounds: Vec<usize> = [0].iter().chain(splits).chain([&copies]).copied().collect();
        Self { other_end: (0..bounds.len()).collect(), is_joined: vec![false; bounds.len()], bounds }
    }

    /// The copies of the groups that are joined with this one, which is the first or the last.
    fn of(&self, group: usize) -> Range<usize> {
        let other = self.other_end[group];
        self.bounds[group.min(other)]..self.bounds[group.max(other) + 1]
    }

    /// Joins a group, which is the last of those it is joined with, with the next one.
    fn join(&mut self, group: usize) {
        let (first, last) = (self.other_end[group], self.other_end[group + 1]);
        (self.other_end[first], self.other_end[last]) = (last, first);
        self.is_joined[group] = true;
    }

    fn all(self) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        for group in 0..self.bounds.len() - 1 {
            match all.last_mut() {
                Some(last) if self.is_joined[group - 1] => last.end = self.bounds[group + 1],
                _ => all.push(self.bounds[group]..self.bounds[group + 1]),
            }
        }
        all.retain(|group| !group.is_empty());
        all
    }
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
        if gaps == 0 || equal < COPIES_PER_GAP * gaps + 2 || !is_dense {
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
