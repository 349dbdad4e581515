//! Figure 7 of the paper: hot subpaths by reading every rule from left to right.
//!
//! Each rule is read once, after the rules it is made of. While it is read, a string
//! grows event by event; when the string is long enough and its cost times the number of
//! uses of the rule reaches the limit, it is printed and begins anew. Of an inner rule
//! only its *prefix* is read, then the string becomes its *suffix*: the first and the
//! last events that are not part of a subpath found inside it, at most the greatest
//! length of each. So a subpath is found only where it does not overlap an earlier find,
//! and the selection depends on the rules.
//!
//! What the figure leaves open is settled so:
//! * a string that is as long as the greatest length drops its first event;
//! * a prefix ends before the first event of a find, and where the prefix of an inner
//!   rule ends before that rule does; then it does not cover the rule;
//! * an item that repeats is read as if it were written out. After a repetition the
//!   string is either the inner rule's suffix, or the last events of a periodic text, so
//!   that its length is all that matters: as soon as a length comes again the rest of
//!   the repetitions bring nothing new. The cost does not depend on their number.
//!
//! What is printed is counted by the exact search, and reported once. Cost: items times
//! length, times length again in the worst case for items that repeat; memory for the
//! prefixes and suffixes of rules that are still to be used.

use super::best::Best;
use super::costs::reaches;
use super::followers::Followers;
use super::search::{Search, Wanted};
use crate::Result;
use crate::fold::Target;
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;

/// Offers what figure 7 prints.
pub(super) fn scan(
    followers: &Followers<'_>,
    costs: &[u64],
    wanted: &Wanted,
    search: &mut Search<'_>,
    best: &mut Best,
) -> Result<()> {
    let cost = |events: &[u32]| events.iter().map(|&event| u128::from(costs[event as usize])).sum();
    for events in Scan::new(followers, costs, wanted).run() {
        best.offer(&events, search.count(&events)?, cost(&events));
    }
    Ok(())
}

/// The borders of a rule.
#[derive(Default)]
struct Border {
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// The prefix is the whole rule, and nothing was found inside.
    covers: bool,
}

struct Scan<'a> {
    followers: &'a Followers<'a>,
    costs: &'a [u64],
    wanted: &'a Wanted,
    borders: Vec<Border>,
    /// For each rule how many items are still to be read that repeat it.
    awaited: Vec<u32>,
    found: HashSet<Vec<u32>>,
}

impl<'a> Scan<'a> {
    fn new(followers: &'a Followers<'a>, costs: &'a [u64], wanted: &'a Wanted) -> Self {
        let mut awaited = vec![0; followers.fold.rules().len()];
        for rule in followers.used_rules() {
            for item in followers.fold.body(rule) {
                if let Target::Rule(inner) = item.target() {
                    awaited[inner.index()] += 1;
                }
            }
        }
        Self { followers, costs, wanted, borders: Vec::new(), awaited, found: HashSet::new() }
    }

    fn run(mut self) -> HashSet<Vec<u32>> {
        let fold = self.followers.fold;
        for rule in fold.rules() {
            let uses = self.followers.uses(rule);
            let mut reading = Reading::new(self.costs, self.wanted, uses, &mut self.found);
            for item in if uses == 0 { &[] } else { fold.body(rule) } {
                match item.target() {
                    Target::Symbol(symbol) => reading.repeat(&[symbol.raw()], item.times()),
                    Target::Rule(inner) => {
                        reading.inner(&self.borders[inner.index()], fold.length(inner), item.times());
                        self.awaited[inner.index()] -= 1;
                        if self.awaited[inner.index()] == 0 {
                            self.borders[inner.index()] = Border::default();
                        }
                    }
                }
            }
            let border = if self.awaited[rule.index()] > 0 { reading.finish() } else { Border::default() };
            self.borders.push(border);
        }
        self.found
    }
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

    /// Reads an item that is an inner rule of `length` events.
    fn inner(&mut self, border: &Border, length: u64, times: u64) {
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

    /// Reads the same events again and again.
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
