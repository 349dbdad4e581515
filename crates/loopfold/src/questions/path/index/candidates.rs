//! From index ranges to the items that can hold something of a function.
//!
//! A cursor goes along the events of the ranges. What lies wholly in them is passed over, and
//! looked at below with all rules that it is made of; what an end of a range cuts is entered,
//! and of such a rule only the items on the way are looked at. O(items found).
//!
//! Every function-bearing item of a rule lies in some range of the function, whichever
//! occurrence of the rule is looked at; so the items of one occurrence stand for all.

use super::{IndexRange, Roots};
use crate::fold::cursor::Cursor;
use crate::fold::reach::below_marked;
use crate::fold::{Fold, Target};
use crate::questions::path::slice::Scratch;
use crate::{Result, RuleId};
use std::ops::Range;

/// Ranges in order, neighbours as one.
pub(super) fn joined(ranges: impl Iterator<Item = IndexRange>) -> Vec<IndexRange> {
    let mut joined: Vec<IndexRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Items that can hold something.
#[derive(Default)]
pub(super) struct Candidates {
    /// Their places among all items, in any order and perhaps more than once, and their rule.
    places: Vec<(Range<usize>, RuleId)>,
    /// Rules that lie wholly in a range.
    whole: Vec<RuleId>,
}

impl Candidates {
    /// The items of some ranges, which are in order.
    pub(super) fn new(
        fold: &Fold,
        roots: &Roots,
        ranges: &[IndexRange],
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let mut candidates = Self::default();
        for (root, start) in roots.iter(fold) {
            let end = start + fold.length(root);
            let first = ranges.partition_point(|range| range.end <= start);
            for range in ranges[first..].iter().take_while(|range| range.start < end) {
                let (from, to) = (range.start.max(start), range.end.min(end));
                candidates.add_range(fold, root, from - start..to - start);
            }
        }
        let whole = std::mem::take(&mut candidates.whole);
        let below = below_marked(fold, whole, |rule| Ok(scratch.mark(fold.rule_node(rule))));
        scratch.clear();
        candidates.places.extend(below?.into_iter().map(|rule| (fold.item_range(rule), rule)));
        candidates.places.sort_unstable_by_key(|(places, _)| places.start);
        Ok(candidates)
    }

    /// Adds what lies in a range of a root.
    fn add_range(&mut self, fold: &Fold, root: RuleId, range: IndexRange) {
        if range == (0..fold.length(root)) {
            self.whole.push(root);
            return;
        }
        let place = |(rule, index): (RuleId, usize)| {
            let place = fold.item_range(rule).start + index;
            (place..place + 1, rule)
        };
        let mut cursor = Cursor::at(fold, root, range.start);
        self.places.extend(cursor.path().skip(1).map(place));
        while let Some(stretch) = cursor.peek()
            && stretch.position < range.end
        {
            self.places.extend(cursor.path().next().map(place));
            let room = range.end - stretch.position;
            match room.checked_div(stretch.length).unwrap_or(stretch.times).min(stretch.times) {
                0 => {
                    cursor.enter();
                }
                whole => {
                    if let Target::Rule(rule) = stretch.target {
                        self.whole.push(rule);
                    }
                    cursor.skip(whole);
                }
            }
        }
    }

    /// How many rules have some of the items.
    pub(super) fn rules(&self) -> usize {
        self.places.chunk_by(|(_, one), (_, other)| one == other).count()
    }

    /// The items, in order, each once and with its rule.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, RuleId)> + '_ {
        let mut next = 0;
        self.places.iter().flat_map(move |(places, rule)| {
            let new = places.start.max(next)..places.end;
            next = next.max(places.end);
            new.map(|place| (place as u32, *rule))
        })
    }
}
