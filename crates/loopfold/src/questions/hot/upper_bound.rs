//! An upper bound on the cost of what follows the occurrences of a subpath within the
//! greatest length.
//!
//! Where events differ in cost, one rare and very expensive event would make every subpath look
//! as if it could become hot. So for every item the cost of the next events is known: those of
//! the rest of its rule, and if that is not long enough, of what follows the rule, averaged
//! over its uses, since the costs of all occurrences are added anyway. The bound may include
//! events a little beyond the greatest length; it omits none within it.
//!
//! Averages are floating-point numbers that are only added and multiplied, and rounded up in
//! the end. Cost: two passes over the rules, each of at most as many items as the greatest
//! length; 8 bytes an item and each class of successors.

use super::successors::{Place, SuccessorIndex};
use crate::fold::cursor::Cursor;
use crate::fold::measure::bottom_up;
use crate::fold::reach::top_down;
use crate::fold::{Fold, Grammar, Item, Node};
use crate::{Result, RuleId};

/// More than all that rounding can take away from a sum.
const SLACK: f64 = 1.0 + 1e-6;

/// Bounds on the cost of what follows the items of a fold.
pub(super) struct UpperBound<'a> {
    successors: &'a SuccessorIndex<'a>,
    longest: u64,
    limit: f64,
    /// The cost of the first events of each node, as many as may matter.
    prefixes: Vec<u128>,
    /// For each item, what the next events after it cost when its rule is unfolded once.
    after: Vec<f64>,
    /// For each class of successors, what its events and those after them cost.
    classes: Vec<f64>,
}

impl<'a> UpperBound<'a> {
    /// For subpaths of at most `longest` events that are hot from `limit` on; `costs`
    /// says what each event costs. `None` where all cost the same: there the number of
    /// events says it all.
    pub(super) fn new(
        successors: &'a SuccessorIndex<'a>,
        costs: &[u64],
        longest: usize,
        limit: u128,
    ) -> Result<Option<Self>> {
        if costs.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(None);
        }
        let mut bound = Self {
            successors,
            longest: longest as u64,
            limit: limit as f64 / SLACK,
            prefixes: prefix_costs(successors.fold, costs, longest as u64)?,
            after: vec![0.0; successors.fold.items()],
            classes: Vec::new(),
        };
        bound.find_after()?;
        for class in successors.all_classes() {
            let places = successors.places(class);
            let sum = places.map(|(place, node, count)| bound.of_place(place, node, count)).sum();
            bound.classes.push(sum);
        }
        Ok(Some(bound))
    }

    /// Whether a subpath that occurs `count` times and whose events cost `cost` can
    /// become hot with what is ahead of its occurrences.
    pub(super) fn suffices(&self, count: u64, cost: u128, ahead: f64) -> bool {
        count as f64 * cost as f64 + ahead >= self.limit
    }

    /// The cost of a class of successors and of what follows it.
    pub(super) fn of_class(&self, class: u32) -> f64 {
        self.classes[class as usize]
    }

    /// What the node at a place costs with all that comes after it, for the occurrences
    /// that have come to its first event.
    pub(super) fn of_place(&self, place: Place, node: Node, count: u64) -> f64 {
        let (occurrences, repeats) = self.successors.left(place);
        let again = occurrences as f64 * self.of_repeats(node, repeats) as f64;
        let leaving = occurrences.min(self.in_reach(node)) as f64 * self.after[place.item()];
        count as f64 * self.prefixes[node.index()] as f64 + place.uses() as f64 * (again + leaving)
    }

    /// The cost of the first events of a node that repeats.
    fn of_repeats(&self, node: Node, times: u64) -> u128 {
        self.prefixes[node.index()] * u128::from(times.min(self.in_reach(node)))
    }

    /// How many repetitions of a node begin within the greatest length.
    fn in_reach(&self, node: Node) -> u64 {
        self.longest.div_ceil(u64::from(self.successors.length(node)).max(1))
    }

    /// From the roots down: what follows a rule is known when all its uses are.
    fn find_after(&mut self) -> Result<()> {
        let fold = self.successors.fold;
        let mut follow = vec![0.0; fold.node_count()];
        top_down(fold, &mut follow, |rule, body, &own, before| {
            let rule = RuleId::from_raw(rule as u32);
            let uses = self.successors.uses(rule);
            if uses == 0 {
                return Ok(());
            }
            self.find_after_items(rule, own / uses as f64);
            for (at, &item) in fold.item_range(rule).zip(body) {
                let (node, times) = (fold.item_node(item), item.times());
                let again = times as f64 * self.of_repeats(node, times - 1) as f64;
                let leaving = times.min(self.in_reach(node)) as f64 * self.after[at];
                before[node.index()] += uses as f64 * (again + leaving);
            }
            Ok(())
        })
    }

    /// What comes after each item of a rule: the items that begin less than the greatest
    /// length behind it, and if the rule ends before that, what comes after the rule.
    fn find_after_items(&mut self, rule: RuleId, outside: f64) {
        let fold = self.successors.fold;
        let (body, ends) = (fold.body(rule), fold.item_ends(rule));
        let start = fold.item_range(rule).start;
        let (mut near, mut near_end) = (0, body.len());
        for at in (0..body.len()).rev() {
            while near_end > at + 1 && ends[near_end - 2] - ends[at] >= self.longest {
                near_end -= 1;
                near -= self.of_item(body[near_end]);
            }
            let leaves = fold.length(rule) - ends[at] < self.longest;
            self.after[start + at] = near as f64 + if leaves { outside } else { 0.0 };
            near += self.of_item(body[at]);
        }
    }

    fn of_item(&self, item: Item) -> u128 {
        self.of_repeats(self.successors.fold.item_node(item), item.times())
    }
}

/// The cost of the first events of each node, at most `longest` of them.
fn prefix_costs(fold: &Fold, costs: &[u64], longest: u64) -> Result<Vec<u128>> {
    let mut of_symbols: Vec<u128> = costs.iter().map(|&cost| cost.into()).collect();
    of_symbols.resize(fold.symbol_count(), 0);
    let Some(first) = fold.rules().next() else { return Ok(of_symbols) };
    // One cursor for all rules, so that its memory is used again.
    let mut cursor = Cursor::new(fold, first);
    bottom_up(fold, of_symbols, |rule, _, known| {
        cursor.restart(rule);
        let mut cost = 0;
        cursor.advance_to(longest, |stretch| {
            cost += u128::from(stretch.times) * known[fold.item_node(stretch.item).index()];
        });
        Ok(cost)
    })
}
