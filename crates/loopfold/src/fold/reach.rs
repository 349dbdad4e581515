//! Reach: what lies below and above symbols and rules.
//!
//! The traversal from the roots down. [`top_down`] is one pass over the rules, each after all
//! rules that use it: O(items). [`rule_uses`] and [`symbol_counts`] use it to count how often
//! each is unfolded. [`below`] visits only the rules that some others are made of.
//! [`UsesBelow`] counts uses below one rule after another, each in O(items of the rules below
//! it). [`UseIndex`] is the inverse: it lists where each node is used (8 bytes an item and 4 a
//! node, two passes), so that the rules above a few symbols are found in O(their items),
//! independent of the size of the fold.

use super::measure::{add, multiply};
use super::{Fold, Grammar, Node, Target};
use crate::interrupt::Pace;
use crate::{Error, Result, RuleId};
use std::ops::Range;

/// Passes values from rules to what they are made of: `pass` gets the number and the body of
/// each rule, its value, which is complete, and the values of all nodes before it.
pub fn top_down<G: Grammar, T>(
    grammar: &G,
    values: &mut [T],
    mut pass: impl FnMut(usize, &[G::Item], &T, &mut [T]) -> Result<()>,
) -> Result<()> {
    top_down_rows(grammar, 1, values, |rule, body, own, before| pass(rule, body, &own[0], before))
}

/// As [`top_down`] with a row of `width` values for each node, such as the words of a bit set:
/// `pass` gets the row of each rule, and those of all nodes before it, one after the other.
pub fn top_down_rows<G: Grammar, T>(
    grammar: &G,
    width: usize,
    values: &mut [T],
    mut pass: impl FnMut(usize, &[G::Item], &[T], &mut [T]) -> Result<()>,
) -> Result<()> {
    let symbols = grammar.symbol_count();
    let bodies = grammar.rule_bodies();
    let mut pace = Pace::default();
    for (rule, body) in bodies.enumerate().rev() {
        pace.steps(body.len());
        let (before, own) = values.split_at_mut((symbols + rule) * width);
        pass(rule, body, &own[..width], before)?;
    }
    Ok(())
}

/// How often each node is unfolded when the roots are, each as often as it is given.
pub fn node_uses<G: Grammar>(grammar: &G, roots: impl Iterator<Item = (Node, u64)>) -> Result<Vec<u64>> {
    let mut uses = vec![0u64; grammar.node_count()];
    for (root, count) in roots {
        let uses = &mut uses[root.index()];
        *uses = add(*uses, count)?;
    }
    top_down(grammar, &mut uses, |_, body, &own, before| {
        if own == 0 {
            return Ok(());
        }
        for &item in body {
            let inner = &mut before[grammar.item_node(item).index()];
            *inner = add(*inner, multiply(own, grammar.item_times(item))?)?;
        }
        Ok(())
    })?;
    Ok(uses)
}

/// How often each rule is unfolded when all streams are.
pub fn rule_uses(fold: &Fold) -> Result<Vec<u64>> {
    let mut uses = vec![0u64; fold.rules().len()];
    for stream in fold.streams() {
        let uses = &mut uses[stream.root().index()];
        *uses = add(*uses, 1)?;
    }
    for (rule, body) in fold.rule_bodies().enumerate().rev() {
        let own = uses[rule];
        if own == 0 {
            continue;
        }
        for item in body {
            if let Target::Rule(inner) = item.target() {
                let inner = &mut uses[inner.index()];
                *inner = add(*inner, multiply(own, item.times())?)?;
            }
        }
    }
    Ok(uses)
}

/// How often each symbol occurs in all streams together.
pub fn symbol_counts(fold: &Fold) -> Result<Vec<u64>> {
    let uses = rule_uses(fold)?;
    let mut counts = vec![0u64; fold.alphabet().len()];
    for (body, uses) in fold.rule_bodies().zip(uses) {
        for item in body {
            if let Target::Symbol(symbol) = item.target() {
                let count = &mut counts[symbol.index()];
                *count = add(*count, multiply(uses, item.times())?)?;
            }
        }
    }
    Ok(counts)
}

/// The rules that a rule is made of and itself, in order: each after those that it is made
/// of. What `goes_into` refuses is left out, with all that is only below it; it is asked once
/// for each use of a rule that was not visited before.
///
/// Time and memory are O(items of the rules visited).
pub fn below(
    fold: &Fold,
    root: RuleId,
    mut goes_into: impl FnMut(RuleId) -> Result<bool>,
) -> Result<Vec<RuleId>> {
    let mut visited: hashbrown::HashSet<RuleId, foldhash::fast::RandomState> = Default::default();
    below_marked(fold, vec![root], |rule| {
        let is_new = !visited.contains(&rule) && goes_into(rule)?;
        if is_new {
            visited.insert(rule);
        }
        Ok(is_new)
    })
}

/// As [`below`] several rules, for callers that have marks for rules: `is_new` marks a rule
/// and returns whether it was not marked yet.
pub fn below_marked(
    fold: &Fold,
    roots: Vec<RuleId>,
    mut is_new: impl FnMut(RuleId) -> Result<bool>,
) -> Result<Vec<RuleId>> {
    let (mut next, mut rules) = (roots, Vec::new());
    let mut pace = Pace::default();
    while let Some(rule) = next.pop() {
        if !is_new(rule)? {
            continue;
        }
        pace.steps(fold.body(rule).len());
        rules.push(rule);
        next.extend(fold.body(rule).iter().filter_map(|item| match item.target() {
            Target::Rule(inner) => Some(inner),
            Target::Symbol(_) => None,
        }));
    }
    rules.sort_unstable();
    Ok(rules)
}

/// How often rules are unfolded in one occurrence of a given rule, for one rule after another.
/// Memory is 8 bytes a rule.
#[derive(Clone, Debug)]
pub struct UsesBelow<'a> {
    fold: &'a Fold,
    uses: Vec<u64>,
    /// The rules that are, in order.
    reached: Vec<RuleId>,
}

impl<'a> UsesBelow<'a> {
    /// For rules of a fold; there is none yet.
    pub fn new(fold: &'a Fold) -> Self {
        Self { fold, uses: vec![0; fold.rules().len()], reached: Vec::new() }
    }

    /// How often a rule is unfolded in one occurrence of the rule that was counted last.
    pub fn uses(&self, rule: RuleId) -> u64 {
        self.uses[rule.index()]
    }

    /// The rules that are, in order, that rule among them.
    pub fn reached(&self) -> &[RuleId] {
        &self.reached
    }

    /// How often each symbol is in the rule that was counted last.
    pub fn symbol_counts(&self) -> Result<Vec<u64>> {
        let mut counts = vec![0u64; self.fold.alphabet().len()];
        for &rule in &self.reached {
            let own = self.uses(rule);
            for item in self.fold.body(rule) {
                if let Target::Symbol(symbol) = item.target() {
                    let count = &mut counts[symbol.index()];
                    *count = add(*count, multiply(own, item.times())?)?;
                }
            }
        }
        Ok(counts)
    }

    /// Counts the uses below another rule.
    pub fn count(&mut self, root: RuleId) -> Result<()> {
        self.reached.drain(..).for_each(|rule| self.uses[rule.index()] = 0);
        // Their uses serve as marks.
        let is_new = |rule: RuleId| Ok(std::mem::replace(&mut self.uses[rule.index()], 1) == 0);
        self.reached = below_marked(self.fold, vec![root], is_new)?;
        self.reached.iter().for_each(|rule| self.uses[rule.index()] = 0);
        self.uses[root.index()] = 1;
        // Rules refer to earlier ones, so each is complete when it is visited.
        for &rule in self.reached.iter().rev() {
            let own = self.uses[rule.index()];
            for item in self.fold.body(rule) {
                if let Target::Rule(inner) = item.target() {
                    let inner = &mut self.uses[inner.index()];
                    *inner = add(*inner, multiply(own, item.times())?)?;
                }
            }
        }
        Ok(())
    }
}

/// Where every symbol and rule of a fold is used.
#[derive(Clone, Debug)]
pub struct UseIndex {
    /// Where the places of each node begin, and where the last one's end.
    bounds: Vec<u32>,
    /// Items, by their places among those of all rules.
    places: Vec<u32>,
    /// The rule of each item.
    rules: Vec<RuleId>,
}

impl UseIndex {
    /// Two passes over the items.
    pub fn new(fold: &Fold) -> Result<Self> {
        if u32::try_from(fold.items()).is_err() {
            return Err(Error::limit("an index of uses can have at most 2^32 items"));
        }
        let mut next = vec![0u32; fold.node_count() + 1];
        for &item in fold.all_items() {
            next[fold.item_node(item).index() + 1] += 1;
        }
        let mut sum = 0;
        for end in &mut next {
            sum += *end;
            *end = sum;
        }
        let bounds = next.clone();
        let mut places = vec![0; fold.items()];
        let mut rules = Vec::with_capacity(fold.items());
        for rule in fold.rules() {
            for (&item, place) in fold.body(rule).iter().zip(fold.item_range(rule)) {
                let next = &mut next[fold.item_node(item).index()];
                places[*next as usize] = place as u32;
                *next += 1;
                rules.push(rule);
            }
        }
        Ok(Self { bounds, places, rules })
    }

    /// The items that repeat a node, by their places among those of all rules, in order.
    pub fn uses(&self, node: Node) -> &[u32] {
        let Range { start, end } = self.bounds[node.index()]..self.bounds[node.index() + 1];
        &self.places[start as usize..end as usize]
    }

    /// The rule that an item is in.
    pub fn rule(&self, place: u32) -> RuleId {
        self.rules[place as usize]
    }

    /// The items that hold some of these nodes, directly or below, in order. Returns `None` if
    /// they are more than `most`. `is_new` marks a rule and returns whether it was not marked
    /// yet.
    pub fn above(
        &self,
        fold: &Fold,
        nodes: impl Iterator<Item = Node> + Clone,
        most: usize,
        mut is_new: impl FnMut(RuleId) -> bool,
    ) -> Option<Vec<u32>> {
        if nodes.clone().map(|node| self.uses(node).len()).sum::<usize>() > most {
            return None;
        }
        let mut held: Vec<u32> = nodes.flat_map(|node| self.uses(node)).copied().collect();
        let mut next = 0;
        while let Some(&place) = held.get(next) {
            next += 1;
            let rule = self.rule(place);
            if is_new(rule) {
                held.extend_from_slice(self.uses(fold.rule_node(rule)));
                if held.len() > most {
                    return None;
                }
            }
        }
        held.sort_unstable();
        Some(held)
    }
}
