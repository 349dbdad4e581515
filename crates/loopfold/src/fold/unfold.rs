//! Unfolding: all events of a rule, a window of them, or one.
//!
//! The iterator costs a few nanoseconds an event and memory for the depth of the
//! rules. Starting at a position costs the depth times the logarithm of the bodies.

use super::{Fold, Item, Target};
use crate::{RuleId, Symbol};

/// The events of a rule, from a position on. See [`Fold::unfold`].
#[derive(Clone, Debug)]
pub struct Unfold<'a> {
    fold: &'a Fold,
    /// Rules being unfolded, outermost first.
    stack: Vec<Level<'a>>,
    /// A symbol that repeats, and how often still.
    symbol: Option<(Symbol, u64)>,
    remaining: u64,
}

#[derive(Clone, Debug)]
struct Level<'a> {
    body: &'a [Item],
    /// The item to unfold next.
    next: usize,
    /// How often the whole body is still to be unfolded after this time.
    again: u64,
}

impl Fold {
    /// The events that a rule unfolds to.
    pub fn unfold(&self, rule: RuleId) -> Unfold<'_> {
        let level = Level { body: self.body(rule), next: 0, again: 0 };
        Unfold { fold: self, stack: vec![level], symbol: None, remaining: self.length(rule) }
    }

    /// The events of a rule from position `start` to before `end`, clipped to the rule.
    pub fn window(&self, rule: RuleId, start: u64, end: u64) -> Unfold<'_> {
        let end = end.min(self.length(rule));
        let start = start.min(end);
        let mut unfold = Unfold { fold: self, stack: Vec::new(), symbol: None, remaining: end - start };
        if start < end {
            unfold.descend(rule, start);
        }
        unfold
    }

    /// The event at a position, or nothing past the end.
    pub fn symbol_at(&self, rule: RuleId, position: u64) -> Option<Symbol> {
        self.window(rule, position, position.checked_add(1)?).next()
    }
}

impl Unfold<'_> {
    /// Prepares to unfold `rule` from `offset`, which lies inside it.
    fn descend(&mut self, rule: RuleId, mut offset: u64) {
        let (mut rule, mut again) = (rule, 0);
        loop {
            let ends = self.fold.item_ends(rule);
            let index = ends.partition_point(|&end| end <= offset);
            let item = self.fold.body(rule)[index];
            if index > 0 {
                offset -= ends[index - 1];
            }
            self.stack.push(Level { body: self.fold.body(rule), next: index + 1, again });
            match item.target() {
                Target::Symbol(symbol) => {
                    self.symbol = Some((symbol, item.times() - offset));
                    return;
                }
                Target::Rule(inner) => {
                    let length = self.fold.length(inner);
                    again = item.times() - 1 - offset / length;
                    offset %= length;
                    rule = inner;
                }
            }
        }
    }
}

impl Iterator for Unfold<'_> {
    type Item = Symbol;

    fn next(&mut self) -> Option<Symbol> {
        if self.remaining == 0 {
            return None;
        }
        loop {
            if let Some((symbol, times)) = &mut self.symbol {
                let symbol = *symbol;
                *times -= 1;
                if *times == 0 {
                    self.symbol = None;
                }
                self.remaining -= 1;
                return Some(symbol);
            }
            let level = self.stack.last_mut()?;
            match level.body.get(level.next) {
                None if level.again > 0 => {
                    level.again -= 1;
                    level.next = 0;
                }
                None => {
                    self.stack.pop();
                }
                Some(item) => {
                    level.next += 1;
                    match item.target() {
                        Target::Symbol(symbol) => self.symbol = Some((symbol, item.times())),
                        Target::Rule(rule) => {
                            let body = self.fold.body(rule);
                            self.stack.push(Level { body, next: 0, again: item.times() - 1 });
                        }
                    }
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.remaining) {
            Ok(remaining) => (remaining, Some(remaining)),
            Err(_) => (usize::MAX, None),
        }
    }
}
