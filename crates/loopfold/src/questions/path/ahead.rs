//! What a walk through a rule has still before it, item by item.

use crate::RuleId;
use crate::fold::{Fold, Item, Target};

/// The items ahead, the nearest last.
pub(super) struct Forwards<'a> {
    fold: &'a Fold,
    ahead: Vec<Ahead<'a>>,
}

enum Ahead<'a> {
    /// One item.
    Item(Item),
    /// The rest of a body.
    Items(std::slice::Iter<'a, Item>),
}

impl<'a> Forwards<'a> {
    /// All of a rule.
    pub(super) fn new(fold: &'a Fold, rule: RuleId) -> Self {
        Self { fold, ahead: vec![Ahead::Item(Item::new(Target::Rule(rule), 1))] }
    }

    pub(super) fn next(&mut self) -> Option<Item> {
        loop {
            match self.ahead.last_mut()? {
                Ahead::Items(items) => {
                    if let Some(&item) = items.next() {
                        return Some(item);
                    }
                    self.ahead.pop();
                }
                Ahead::Item(item) => {
                    let item = *item;
                    self.ahead.pop();
                    return Some(item);
                }
            }
        }
    }

    /// Goes into the first of some iterations; the others stay ahead. True if that is a
    /// single event.
    pub(super) fn enter(&mut self, target: Target, times: u64) -> bool {
        if times > 1 {
            self.ahead.push(Ahead::Item(Item::new(target, times - 1)));
        }
        match target {
            Target::Rule(rule) => self.ahead.push(Ahead::Items(self.fold.body(rule).iter())),
            Target::Symbol(_) => return true,
        }
        false
    }
}
