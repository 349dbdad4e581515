//! Where in a fold the next symbol is that matters for a path.
//!
//! Making it is one pass over the rules, with a byte for each rule. A step goes down the
//! rules once, and over the items that hold nothing.

use super::PathQuery;
use crate::fold::{Fold, Target};
use crate::{RuleId, Symbol};

/// Which symbols and rules hold something that matters.
pub(super) struct Holding<'a> {
    fold: &'a Fold,
    symbols: Vec<bool>,
    rules: Vec<bool>,
}

/// An item of a rule that the way to a position goes through.
struct Level {
    rule: RuleId,
    /// Where this occurrence of the rule begins.
    begins: u64,
    index: usize,
    /// Where the iteration after this one begins.
    next_iteration: u64,
    iterations_left: u64,
}

impl<'a> Holding<'a> {
    pub(super) fn new(fold: &'a Fold, query: &PathQuery) -> Self {
        let mut symbols = vec![false; query.symbols().map(|symbol| symbol.index() + 1).max().unwrap_or(0)];
        query.symbols().for_each(|symbol| symbols[symbol.index()] = true);
        let mut holding = Self { fold, symbols, rules: Vec::with_capacity(fold.rules().len()) };
        for rule in fold.rules() {
            let holds = fold.body(rule).iter().any(|item| holding.holds(item.target()));
            holding.rules.push(holds);
        }
        holding
    }

    fn holds(&self, target: Target) -> bool {
        let known = |list: &[bool], index: usize| list.get(index).copied().unwrap_or(false);
        match target {
            Target::Symbol(symbol) => known(&self.symbols, Symbol::index(symbol)),
            Target::Rule(rule) => known(&self.rules, rule.index()),
        }
    }

    /// The first position of a rule, from one on, that holds something.
    pub(super) fn next(&self, root: RuleId, from: u64) -> Option<u64> {
        if from >= self.fold.length(root) || !self.holds(Target::Rule(root)) {
            return None;
        }
        let mut way = Vec::new();
        let (mut rule, mut begins) = (root, 0);
        loop {
            let (body, ends) = (self.fold.body(rule), self.fold.item_ends(rule));
            let index = ends.partition_point(|&end| end <= from - begins);
            let item = *body.get(index)?;
            let item_begins = begins + before(ends, index);
            let length = self.fold.target_length(item.target());
            let iteration = (from - item_begins) / length.max(1);
            let next_iteration = item_begins + (iteration + 1) * length;
            let iterations_left = item.times() - iteration - 1;
            way.push(Level { rule, begins, index, next_iteration, iterations_left });
            match item.target() {
                target if !self.holds(target) => break,
                Target::Symbol(_) => return Some(from),
                Target::Rule(inner) => (rule, begins) = (inner, next_iteration - length),
            }
        }
        way.iter().rev().find_map(|level| self.next_behind(level))
    }

    /// The first position behind an iteration of an item, in the same rule.
    fn next_behind(&self, level: &Level) -> Option<u64> {
        let body = self.fold.body(level.rule);
        let target = body.get(level.index)?.target();
        if level.iterations_left > 0 && self.holds(target) {
            return self.first_in(target, level.next_iteration);
        }
        let next = level.index + 1;
        let index = next + body.get(next..)?.iter().position(|item| self.holds(item.target()))?;
        let begins = level.begins + before(self.fold.item_ends(level.rule), index);
        self.first_in(body[index].target(), begins)
    }

    /// The first position of something that holds something and begins here.
    fn first_in(&self, mut target: Target, mut begins: u64) -> Option<u64> {
        while let Target::Rule(rule) = target {
            let body = self.fold.body(rule);
            let index = body.iter().position(|item| self.holds(item.target()))?;
            begins += before(self.fold.item_ends(rule), index);
            target = body[index].target();
        }
        Some(begins)
    }
}

/// How many events the items before one have.
fn before(ends: &[u64], index: usize) -> u64 {
    index.checked_sub(1).map_or(0, |last| ends[last])
}
