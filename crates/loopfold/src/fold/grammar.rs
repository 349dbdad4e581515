//! The traits through which the traversals access rules.
//!
//! The traversals of [`measure`](super::measure), [`cursor`](super::cursor),
//! [`rank`](super::rank), [`borders`](super::borders) and [`reach`](super::reach) work on a
//! [`Fold`] and on any other rules of counted items, such as the slice of a fold that belongs
//! to one function. They need two traits: [`Grammar`] for passes over all rules, [`Located`]
//! for walks along a stream.

use super::{Fold, Item, Target};
use crate::RuleId;

/// A symbol or a rule, numbered together: the symbols first, then the rules, each after the
/// rules it is made of.
///
/// Values of all nodes lie in one list, so that a look-up does not branch on whether an item is
/// a symbol or a rule, which no processor could predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u32);

impl Node {
    /// The node with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The node as an index into a list of values.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node as a number.
    pub const fn raw(self) -> u32 {
        self.0
    }
}

/// Rules of counted items, each after the rules it is made of.
pub trait Grammar {
    /// An item of a body.
    type Item: Copy;

    /// How many symbols there are: the first nodes.
    fn symbol_count(&self) -> usize;

    /// The bodies of all rules, in the order of their nodes.
    fn rule_bodies(&self) -> impl DoubleEndedIterator<Item = &[Self::Item]> + ExactSizeIterator;

    /// The node that an item repeats.
    fn item_node(&self, item: Self::Item) -> Node;

    /// How many times an item repeats it.
    fn item_times(&self, item: Self::Item) -> u64;

    /// How many nodes there are.
    fn node_count(&self) -> usize {
        self.symbol_count() + self.rule_bodies().len()
    }
}

/// Rules of counted items that have positions in the streams of a fold.
///
/// Items are those of the fold, or only some of them: what lies between two items of a body is
/// skipped.
pub trait Located {
    /// An item of a body.
    type Item: Copy;

    /// True if every item begins where the one before it ends, so that positions can be counted
    /// during a walk.
    const CONTIGUOUS: bool;

    /// The items of a rule.
    fn located_body(&self, rule: RuleId) -> &[Self::Item];

    /// What an item repeats.
    fn located_target(&self, item: Self::Item) -> Target;

    /// How many times.
    fn located_times(&self, item: Self::Item) -> u64;

    /// How many events one iteration of an item is.
    fn iteration_length(&self, item: Self::Item) -> u64;

    /// How many events of a rule lie before an item of its body, or before the end of the
    /// last one if `index` is their number.
    fn item_offset(&self, rule: RuleId, body: &[Self::Item], index: usize) -> u64;

    /// How many items of a rule end at an offset or before it.
    fn items_until(&self, rule: RuleId, offset: u64) -> usize;
}

impl Fold {
    /// The node of a symbol or a rule.
    pub fn node(&self, target: Target) -> Node {
        match target {
            Target::Symbol(symbol) => Node(symbol.raw()),
            Target::Rule(rule) => self.rule_node(rule),
        }
    }

    /// The node of a rule.
    pub fn rule_node(&self, rule: RuleId) -> Node {
        Node(self.rules.symbols + rule.raw())
    }

    /// The rule that a node is; `None` for a symbol.
    pub fn rule_of(&self, node: Node) -> Option<RuleId> {
        node.0.checked_sub(self.rules.symbols).map(RuleId::from_raw)
    }
}

impl Grammar for Fold {
    type Item = Item;

    fn symbol_count(&self) -> usize {
        self.rules.symbols as usize
    }

    #[inline]
    fn rule_bodies(&self) -> impl DoubleEndedIterator<Item = &[Item]> + ExactSizeIterator {
        self.rules.bounds.windows(2).map(|bounds| &self.rules.items[bounds[0]..bounds[1]])
    }

    #[inline]
    fn item_node(&self, item: Item) -> Node {
        item.node(self.rules.symbols)
    }

    #[inline]
    fn item_times(&self, item: Item) -> u64 {
        item.times()
    }
}

impl Located for Fold {
    type Item = Item;

    const CONTIGUOUS: bool = true;

    #[inline]
    fn located_body(&self, rule: RuleId) -> &[Item] {
        self.body(rule)
    }

    #[inline]
    fn located_target(&self, item: Item) -> Target {
        item.target()
    }

    #[inline]
    fn located_times(&self, item: Item) -> u64 {
        item.times()
    }

    #[inline]
    fn iteration_length(&self, item: Item) -> u64 {
        self.target_length(item.target())
    }

    fn item_offset(&self, rule: RuleId, _: &[Item], index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.item_ends(rule)[before])
    }

    fn items_until(&self, rule: RuleId, offset: u64) -> usize {
        self.item_ends(rule).partition_point(|&end| end <= offset)
    }
}
