//! Figure 7 of the paper: hot subpaths by reading every rule from left to right.
//!
//! Each rule is read once, after the rules it is made of. While it is read, a string grows
//! event by event; when the string is long enough and its cost times the number of uses of the
//! rule reaches the limit, it is printed and starts again. Of an inner rule only its *prefix*
//! is read, then the string becomes its *suffix*: the first and the last events that are not
//! part of a subpath found inside it, at most the greatest length of each. So a subpath is
//! found only where it does not overlap an earlier find, and the selection depends on the
//! rules.
//!
//! The figure leaves these points open:
//! * a string that is as long as the greatest length drops its first event;
//! * a prefix ends before the first event of a find, and where the prefix of an inner
//!   rule ends before that rule does; then it does not cover the rule;
//! * an item that repeats is read as if it were written out. After a repetition the string is
//!   either the inner rule's suffix, or the last events of a periodic text, so that its length
//!   is all that matters: as soon as a length recurs, the other repetitions add nothing new.
//!   The cost does not depend on their number.
//!
//! What is printed is counted by the exact search, and reported once. Cost: items times
//! length, times length again in the worst case for items that repeat; memory for the
//! prefixes and suffixes of rules that are still to be used.

use super::best::Best;
use super::costs::reaches;
use super::search::{Search, Wanted};
use super::successors::SuccessorIndex;
use crate::Result;
use crate::fold::Grammar;
use crate::fold::measure::bottom_up;
use hashbrown::{HashMap, HashSet};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Offers what figure 7 prints.
pub(super) fn scan(
    successors: &SuccessorIndex<'_>,
    costs: &[u64],
    wanted: &Wanted,
    search: &mut Search<'_>,
    best: &mut Best,
) -> Result<()> {
    let cost = |events: &[u32]| events.iter().map(|&event| u128::from(costs[event as usize])).sum();
    for events in prints(successors, costs, wanted)? {
        best.offer(&events, search.count(&events)?, cost(&events));
    }
    Ok(())
}

/// The borders of a node: here, of its events that are not part of a subpath found inside it.
#[derive(Default)]
struct Border {
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// The prefix is the whole rule, and nothing was found inside.
    covers: bool,
}

impl Border {
    fn of_symbol(symbol: u32) -> Self {
        Self { prefix: vec![symbol], suffix: vec![symbol], covers: true }
    }
}

/// The output of the figure.
fn prints(successors: &SuccessorIndex<'_>, costs: &[u64], wanted: &Wanted) -> Result<HashSet<Vec<u32>>> {
    let fold = successors.fold;
    let mut awaited = items_left(successors);
    let mut found = HashSet::new();
    let of_symbols = (0..fold.symbol_count() as u32).map(|symbol| RefCell::new(Border::of_symbol(symbol)));
    bottom_up(fold, of_symbols.collect(), |rule, body, borders| {
        let uses = successors.uses(rule);
        let mut reading = Reading::new(costs, wanted, uses, &mut found);
        for &item in if uses == 0 { &[] } else { body } {
            let node = fold.item_node(item).index();
            reading.item(&borders[node].borrow(), fold.target_length(item.target()), item.times());
            awaited[node] -= 1;
            if awaited[node] == 0 {
                borders[node].take();
            }
        }
        // Nobody reads the border of a root.
        let is_awaited = awaited[fold.rule_node(rule).index()] > 0;
        Ok(if is_awaited { RefCell::new(reading.finish()) } else { RefCell::default() })
    })?;
    Ok(found)
}

/// For each node how many items there are to be read that repeat it.
fn items_left(successors: &SuccessorIndex<'_>) -> Vec<u32> {
    let fold = successors.fold;
    let mut items = vec![0; fold.node_count()];
    let used = successors.used_rules().flat_map(|rule| fold.body(rule));
    used.for_each(|&item| items[fold.item_node(item).index()] += 1);
    items
}

/// A rule while it is read.
struct Reading<'a> {
    costs: &'a [u64],
    wanted: &'a Wanted,
    uses: u64,
    found: &'a mut HashSet<Vec<u32>>,
    prefix: Vec<u32>,
    /// The prefix is all that was read, and nothing was found.
    covers: bool,
    /// How many events of the rule lie before this point.
    position: u64,
    string: VecDeque<u32>,
    string_cost: u128,
}

impl<'a> Reading<'a> {
    fn new(costs: &'a [u64], wanted: &'a Wanted, uses: u64, found: &'a mut HashSet<Vec<u32>>) -> Self {
        let (prefix, string) = (Vec::new(), VecDeque::new());
        Self { costs, wanted, uses, found, prefix, covers: true, position: 0, string, string_cost: 0 }
    }

    fn finish(self) -> Border {
        Border { prefix: self.prefix, suffix: self.string.into(), covers: self.covers }
    }

    /// Reads an item of a node with this border and `length` events.
    fn item(&mut self, border: &Border, length: u64, times: u64) {
        if border.covers {
            return self.repeat(&border.prefix, times);
        }
        let start = self.position;
        // The second repetition begins with the suffix of the first, as all others do.
        for done in 1..=times.min(2) {
            self.read(&border.prefix);
            self.covers = false;
            self.string = border.suffix.iter().copied().collect();
            self.string_cost = self.string.iter().map(|&event| self.cost(event)).sum();
            self.position = start + done * length;
        }
        self.position = start + times * length;
    }

    /// Reads the same events repeatedly.
    fn repeat(&mut self, events: &[u32], times: u64) {
        let length = events.len() as u64;
        let mut ends: HashMap<usize, u64> = HashMap::new();
        let mut done = 0;
        while done < times && length > 0 {
            self.read(events);
            done += 1;
            // Until they are dropped, events from before the item make a difference.
            if self.covers || self.string.len() as u64 > done * length {
                continue;
            }
            if let Some(before) = ends.insert(self.string.len(), done) {
                let skipped = (times - done) / (done - before) * (done - before);
                self.position += skipped * length;
                done += skipped;
                ends.clear();
            }
        }
    }

    fn read(&mut self, events: &[u32]) {
        events.iter().for_each(|&event| self.read_event(event));
    }

    fn read_event(&mut self, event: u32) {
        self.position += 1;
        self.covers &= self.prefix.len() < self.wanted.longest;
        if self.covers {
            self.prefix.push(event);
        }
        if self.string.len() == self.wanted.longest
            && let Some(dropped) = self.string.pop_front()
        {
            self.string_cost -= self.cost(dropped);
        }
        self.string.push_back(event);
        self.string_cost += self.cost(event);
        if self.string.len() >= self.wanted.shortest
            && reaches(self.uses, self.string_cost, self.wanted.limit)
        {
            self.find();
        }
    }

    fn find(&mut self) {
        let start = self.position - self.string.len() as u64;
        self.prefix.truncate(usize::try_from(start).unwrap_or(usize::MAX));
        self.covers = false;
        let found = self.string.make_contiguous();
        if !self.found.contains(found) {
            self.found.insert(found.to_vec());
        }
        self.string.clear();
        self.string_cost = 0;
    }

    fn cost(&self, event: u32) -> u128 {
        u128::from(self.costs[event as usize])
    }
}
