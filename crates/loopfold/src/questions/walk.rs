//! Walking through a stream by its rules: every occurrence of every rule, in order.
//!
//! Cost: a few nanoseconds for every item each time it comes, which is at most once an
//! event, and memory for the depth of the rules. Nothing is unfolded further than to
//! the items, so who wants symbols should not walk but unfold.

use crate::fold::{Fold, Item, Target};
use crate::{Result, RuleId};

/// A loop of a fold: the items that repeat are numbered, rule by rule.
pub(super) type LoopNumber = usize;

/// What a walk comes by. `looped` is the loop whose iteration something is.
pub(super) trait Visitor {
    /// A rule begins, for the first time of `looped`.
    fn enter(&mut self, looped: Option<LoopNumber>, position: u64) -> Result<()>;

    /// Events that are the same, each an iteration of `looped`.
    fn events(&mut self, count: u64, looped: Option<LoopNumber>, position: u64) -> Result<()>;

    /// A rule ends. Unless that was the last iteration of `looped`, it begins again.
    fn leave(&mut self, rule: RuleId, looped: Option<LoopNumber>, last: bool, position: u64) -> Result<()>;
}

/// The loops of a fold by their numbers.
pub(super) struct Loops {
    /// For each rule the number of its first loop, and in the end that of all loops.
    first: Vec<LoopNumber>,
}

impl Loops {
    pub(super) fn of(fold: &Fold) -> Self {
        let mut first = Vec::with_capacity(fold.rules().len() + 1);
        first.push(0);
        let mut count = 0;
        for rule in fold.rules() {
            count += fold.body(rule).iter().filter(|item| item.times() > 1).count();
            first.push(count);
        }
        Self { first }
    }

    pub(super) fn count(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }

    /// All loops in the order of their numbers: the rule and the place in its body.
    pub(super) fn places(fold: &Fold) -> impl Iterator<Item = (RuleId, usize)> {
        fold.rules().flat_map(|rule| {
            let items = fold.body(rule).iter().enumerate();
            items.filter(|(_, item)| item.times() > 1).map(move |(index, _)| (rule, index))
        })
    }
}

struct Level<'a> {
    rule: RuleId,
    body: &'a [Item],
    next: usize,
    next_loop: LoopNumber,
    /// How often the rule is still to come after this time.
    again: u64,
    looped: Option<LoopNumber>,
}

/// Walks through what a rule unfolds to.
pub(super) fn walk(fold: &Fold, loops: &Loops, root: RuleId, visitor: &mut impl Visitor) -> Result<()> {
    let level = |rule: RuleId, again: u64, looped: Option<LoopNumber>| Level {
        rule,
        body: fold.body(rule),
        next: 0,
        next_loop: loops.first[rule.index()],
        again,
        looped,
    };
    let mut position = 0;
    visitor.enter(None, position)?;
    let mut open = vec![level(root, 0, None)];
    while let Some(top) = open.last_mut() {
        let Some(item) = top.body.get(top.next) else {
            let last = top.again == 0;
            visitor.leave(top.rule, top.looped, last, position)?;
            if last {
                open.pop();
            } else {
                *top = level(top.rule, top.again - 1, top.looped);
            }
            continue;
        };
        top.next += 1;
        let looped = (item.times() > 1).then_some(top.next_loop);
        top.next_loop += usize::from(looped.is_some());
        match item.target() {
            Target::Symbol(_) => {
                visitor.events(item.times(), looped, position)?;
                position += item.times();
            }
            Target::Rule(rule) => {
                visitor.enter(looped, position)?;
                open.push(level(rule, item.times() - 1, looped));
            }
        }
    }
    Ok(())
}
