//! Where the events that patterns are made of are among all events of a stream, and the other
//! way round.
//!
//! Made once by a pass over the items, 8 bytes each; then a look-up costs the depth of the rules
//! times the logarithm of their bodies.

use crate::RuleId;
use crate::fold::{Fold, Target};

/// Where events that count are among all events.
#[derive(Clone, Debug)]
pub struct KeptPositions<'a> {
    fold: &'a Fold,
    /// For each item of the fold how many events that count its rule has up to its end;
    /// nothing if all count.
    ends: Option<Vec<u64>>,
}

impl<'a> KeptPositions<'a> {
    pub(in crate::questions) fn new(fold: &'a Fold, kept: &[bool]) -> Self {
        if kept.iter().all(|&kept| kept) {
            return Self { fold, ends: None };
        }
        let mut ends: Vec<u64> = Vec::with_capacity(fold.items());
        for rule in fold.rules() {
            let mut end = 0;
            for &item in fold.body(rule) {
                let once = match item.target() {
                    Target::Symbol(symbol) => u64::from(kept[symbol.index()]),
                    Target::Rule(inner) => last_of(&ends, fold, inner),
                };
                // No more than the length of the rule, which the fold has checked.
                end += once * item.times();
                ends.push(end);
            }
        }
        Self { fold, ends: Some(ends) }
    }

    /// The position in a stream of its event number `index` that counts; nothing if there are
    /// not so many.
    pub fn of(&self, stream: usize, index: u64) -> Option<u64> {
        let mut rule = self.fold.streams().get(stream)?.root();
        let Some(ends) = &self.ends else { return (index < self.fold.length(rule)).then_some(index) };
        if index >= last_of(ends, self.fold, rule) {
            return None;
        }
        let (mut index, mut position) = (index, 0);
        loop {
            let range = self.fold.item_range(rule);
            let ends_here = &ends[range.clone()];
            let place = ends_here.partition_point(|&end| end <= index);
            if let Some(before) = place.checked_sub(1) {
                index -= ends_here[before];
                position += self.fold.item_end(range.start + before);
            }
            match self.fold.body(rule).get(place)?.target() {
                Target::Symbol(_) => return Some(position + index),
                Target::Rule(inner) => {
                    let once = last_of(ends, self.fold, inner);
                    position += index / once * self.fold.length(inner);
                    index %= once;
                    rule = inner;
                }
            }
        }
    }
}

impl KeptPositions<'_> {
    /// How many events that count a stream has before a position.
    pub fn before(&self, stream: usize, position: u64) -> Option<u64> {
        let mut rule = self.fold.streams().get(stream)?.root();
        let mut position = position.min(self.fold.length(rule));
        let Some(ends) = &self.ends else { return Some(position) };
        let mut count = 0;
        loop {
            let (range, ends_in_all) = (self.fold.item_range(rule), self.fold.item_ends(rule));
            let place = ends_in_all.partition_point(|&end| end <= position);
            let before = place.checked_sub(1);
            count += before.map_or(0, |before| ends[range.start + before]);
            position -= before.map_or(0, |before| ends_in_all[before]);
            let Some(item) = self.fold.body(rule).get(place) else { return Some(count) };
            let in_item = ends[range.start + place] - before.map_or(0, |before| ends[range.start + before]);
            let length = self.fold.target_length(item.target());
            count += position / length * (in_item / item.times());
            position %= length;
            match item.target() {
                // Nothing of an event lies before it.
                Target::Symbol(_) => return Some(count),
                Target::Rule(inner) => rule = inner,
            }
        }
    }
}

/// How many events that count a rule has.
fn last_of(ends: &[u64], fold: &Fold, rule: RuleId) -> u64 {
    fold.item_range(rule).last().map_or(0, |last| ends[last])
}
