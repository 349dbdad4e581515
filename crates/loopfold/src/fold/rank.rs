//! Rank and select by weight: the position of the k-th unit of weight, and the weight before a
//! position.
//!
//! What is counted is a weight of symbols: 1 for those that match and 0 for others, or any
//! number. [`Rank`] is for many look-ups: one pass and 8 bytes an item, then a look-up costs
//! the depth of the rules times the logarithm of their bodies. [`select`] is for one: it goes
//! down the rules by weights that the caller knows, past the items of one body at each level.
//! [`nth`] finds these weights first, in O(items) of the rules below one.

use super::measure::bottom_up;
use super::reach::below;
use super::{Fold, Grammar, Item, Located, Node, Target};
use crate::{RuleId, Symbol};
use hashbrown::HashMap;

/// How much lies before each item, by weight.
#[derive(Clone, Debug)]
pub struct Rank<'a> {
    fold: &'a Fold,
    /// For each item the weight of its rule up to its end.
    ends: Vec<u64>,
}

impl<'a> Rank<'a> {
    /// One pass over the rules. Weights that pass 64 bits are cut off there.
    pub fn new(fold: &'a Fold, weight: impl Fn(Node) -> u64) -> Self {
        let mut ends: Vec<u64> = Vec::with_capacity(fold.items());
        let symbols = (0..fold.symbol_count() as u32).map(|number| weight(Node::new(number))).collect();
        let weights = bottom_up(fold, symbols, |_, body, weights| {
            let mut end = 0u64;
            for &item in body {
                let once = weights[fold.item_node(item).index()];
                end = end.saturating_add(once.saturating_mul(item.times()));
                ends.push(end);
            }
            Ok(end)
        });
        // The closure has no errors.
        debug_assert!(weights.is_ok());
        Self { fold, ends }
    }

    /// The weight of a rule.
    pub fn weight(&self, rule: RuleId) -> u64 {
        self.fold.item_range(rule).last().map_or(0, |last| self.ends[last])
    }

    fn before(&self, rule: RuleId, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.ends[self.fold.item_range(rule).start + before])
    }

    /// The position in a rule of the event that has the unit of weight number `k`, from 0.
    /// Returns `None` if there are fewer.
    pub fn position(&self, mut rule: RuleId, mut k: u64) -> Option<u64> {
        let (fold, mut position) = (self.fold, 0);
        loop {
            let index = self.ends[fold.item_range(rule)].partition_point(|&end| end <= k);
            let body = fold.body(rule);
            let item = *body.get(index)?;
            let before = self.before(rule, index);
            let once = (self.before(rule, index + 1) - before) / item.times();
            k -= before;
            position += fold.item_offset(rule, body, index) + k / once * fold.iteration_length(item);
            k %= once;
            match item.target() {
                Target::Symbol(_) => return Some(position),
                Target::Rule(inner) => rule = inner,
            }
        }
    }

    /// The weight of the events of a rule that lie before a position.
    pub fn before_position(&self, mut rule: RuleId, position: u64) -> u64 {
        let (fold, mut rest, mut weight) = (self.fold, position, 0u64);
        loop {
            let index = fold.items_until(rule, rest);
            let before = self.before(rule, index);
            weight = weight.saturating_add(before);
            let body = fold.body(rule);
            let Some(&item) = body.get(index) else { return weight };
            rest -= fold.item_offset(rule, body, index);
            let once = (self.before(rule, index + 1) - before) / item.times();
            let length = fold.iteration_length(item);
            weight = weight.saturating_add(rest / length * once);
            rest %= length;
            match item.target() {
                // Nothing of an event lies before it.
                Target::Symbol(_) => return weight,
                Target::Rule(inner) => rule = inner,
            }
        }
    }
}

/// The position in a rule of the event that has the unit of weight number `k`, from 0, where
/// `weight` is that of one iteration of an item. Returns `None` if there are fewer.
pub fn select<L: Located>(
    located: &L,
    mut rule: RuleId,
    mut k: u64,
    weight: impl Fn(L::Item) -> u64,
) -> Option<u64> {
    let mut base = 0;
    'down: loop {
        let mut offset = 0;
        let body = located.located_body(rule);
        for (index, &item) in body.iter().enumerate() {
            let (once, times) = (weight(item), located.located_times(item));
            let all = once.saturating_mul(times);
            if k >= all {
                k -= all;
                // Without the positions of items, which for a fold would take a pass over all.
                offset += if L::CONTIGUOUS { times * located.iteration_length(item) } else { 0 };
                continue;
            }
            if !L::CONTIGUOUS {
                offset = located.item_offset(rule, body, index);
            }
            // Something is in this item, so an iteration of it is not empty.
            base += offset + k / once * located.iteration_length(item);
            k %= once;
            match located.located_target(item) {
                Target::Symbol(_) => return Some(base),
                Target::Rule(inner) => rule = inner,
            }
            continue 'down;
        }
        return None;
    }
}

/// The position in a rule of the event that has the unit of weight number `k`, from 0; the
/// weight of the whole rule if that is less.
pub fn nth(fold: &Fold, root: RuleId, k: u64, weight: impl Fn(Symbol) -> u64) -> Result<u64, u64> {
    let mut weights: HashMap<RuleId, u64, foldhash::fast::RandomState> = HashMap::default();
    let of_item = |weights: &HashMap<_, u64, _>, item: Item| match item.target() {
        Target::Symbol(symbol) => weight(symbol),
        Target::Rule(rule) => weights.get(&rule).copied().unwrap_or(0),
    };
    // Nothing is refused, so there are no errors.
    for rule in below(fold, root, |_| Ok(true)).unwrap_or_default() {
        let all =
            |sum: u64, &item: &Item| sum.saturating_add(of_item(&weights, item).saturating_mul(item.times()));
        let sum = fold.body(rule).iter().fold(0, all);
        weights.insert(rule, sum);
    }
    let all = weights.get(&root).copied().unwrap_or(0);
    select(fold, root, k, |item| of_item(&weights, item)).ok_or(all)
}
