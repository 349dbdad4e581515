//! A cache of the first events of rules, unfolded lazily.
//!
//! Unfolded events do not move, so a walk through a rule does not look them up at every event.
//! When the memory limit is reached, events that are not in the cache are looked up one by one.

use crate::RuleId;
use crate::fold::{Fold, Target};
use std::ops::Range;

/// The most events that are kept, 4 bytes each.
const LARGEST: usize = 1 << 26;
/// The fewest events that are unfolded, since each access to a rule has a fixed cost.
const LEAST: u32 = 16;

/// The first events of rules.
pub(super) struct PrefixCache<'a> {
    fold: &'a Fold,
    largest: usize,
    /// No rule is examined beyond this many events.
    most: u32,
    /// For each rule the events that are known.
    known: Vec<Known>,
    events: Vec<u32>,
    /// The rules that are being unfolded, the lowest last.
    open: Vec<OpenRule>,
}

/// A rule that is being unfolded.
struct OpenRule {
    /// Its items that are still to come.
    items: Range<usize>,
    /// Where its events begin, and how often they are repeated after its end.
    start: usize,
    again: u64,
}

/// Events that are known: where they are, and how many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    start: u32,
    length: u32,
}

impl Known {
    /// Whether there are any.
    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Without the first `at` of them.
    pub(super) fn from(self, at: u32) -> Self {
        let passed = at.min(self.length);
        Self { start: self.start + passed, length: self.length - passed }
    }
}

impl<'a> PrefixCache<'a> {
    /// For rules whose first `most` events matter.
    pub(super) fn new(fold: &'a Fold, most: u32) -> Self {
        Self {
            fold,
            largest: LARGEST,
            most,
            known: vec![Known::default(); fold.rules().len()],
            events: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Leaves room for this many events.
    #[cfg(test)]
    pub(super) fn set_room(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// How many events of a rule matter at most.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// The first of some known events.
    pub(super) fn first(&self, known: Known) -> u32 {
        self.events[known.start as usize]
    }

    /// Some known events.
    pub(super) fn all(&self, known: Known) -> &[u32] {
        &self.events[known.start as usize..(known.start + known.length) as usize]
    }

    /// The events of a rule from number `at` on, as many as are wanted or more; the rule must
    /// have that many. Returns `None` if they cannot be kept.
    pub(super) fn from(&mut self, rule: RuleId, at: u32, wanted: u32) -> Option<Known> {
        if at + wanted > self.known[rule.index()].length && !self.unfold(rule, at + wanted) {
            return None;
        }
        Some(self.known[rule.index()].from(at))
    }

    /// Event number `at` of a rule, without keeping it.
    pub(super) fn look_up(&self, rule: RuleId, at: u32) -> u32 {
        self.fold.symbol_at(rule, at.into()).map_or(0, |symbol| symbol.raw())
    }

    /// Unfolds a rule further than it was. Returns whether there was room.
    fn unfold(&mut self, rule: RuleId, wanted: u32) -> bool {
        let length = self.fold.length(rule).min(self.most.into()) as u32;
        // The first time as many as needed, then twice as many: few rules are followed far.
        let known = self.known[rule.index()].length;
        let wanted = wanted.max(known.saturating_mul(2)).max(LEAST).min(length);
        if self.events.len() + wanted as usize > self.largest {
            return false;
        }
        let start = self.events.len() as u32;
        self.write(rule, start as usize + wanted as usize);
        self.known[rule.index()] = Known { start, length: wanted };
        true
    }

    /// Writes events of a rule until there are `end` in all; the rule must have that many. What
    /// is known of rules inside is copied.
    fn write(&mut self, rule: RuleId, end: usize) {
        let fold = self.fold;
        self.open.clear();
        self.open.push(OpenRule { items: fold.item_range(rule), start: self.events.len(), again: 0 });
        while self.events.len() < end
            && let Some(rule) = self.open.last_mut()
        {
            let Some(item) = rule.items.next().map(|at| fold.all_items()[at]) else {
                let OpenRule { start, again, .. } = *rule;
                let written = start..self.events.len();
                self.repeat(written, again, end);
                self.open.pop();
                continue;
            };
            match item.target() {
                Target::Symbol(symbol) => {
                    let times = item.times().min((end - self.events.len()) as u64) as usize;
                    self.events.extend(std::iter::repeat_n(symbol.raw(), times));
                }
                Target::Rule(inner) => {
                    let Known { start, length } = self.known[inner.index()];
                    let known = start as usize..(start + length) as usize;
                    if u64::from(length) == fold.length(inner) || known.len() >= end - self.events.len() {
                        self.repeat(known, item.times(), end);
                    } else {
                        let (items, start) = (fold.item_range(inner), self.events.len());
                        self.open.push(OpenRule { items, start, again: item.times() - 1 });
                    }
                }
            }
        }
    }

    /// Copies events to the end, so many times or until there are `end` in all.
    fn repeat(&mut self, written: Range<usize>, times: u64, end: usize) {
        for _ in 0..times {
            let room = end - self.events.len();
            if room == 0 {
                return;
            }
            self.events.extend_from_within(written.start..written.end.min(written.start + room));
        }
    }
}
