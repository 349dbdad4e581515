//! Looking back from a position: which calls were open, and how many frames lie between
//! there and the beginning of a path.
//!
//! The walk goes from item to item towards the beginning and knows how many frames have
//! ended that must begin first: as long as there are any, or nothing happens in the frame
//! it looks for, it passes over whole items and repeats, with a division instead of a step
//! for each iteration. It goes into what holds a block it looks for, or a call that is
//! open: a way down the rules for each of those.

use super::levels::{Levels, NestingLevels};
use super::locate::EmitBlock;
use crate::fold::{Fold, Item, Target, measure_rules};
use crate::{Result, RuleId, Symbol};

/// What lies before a position, from there to the beginning.
struct Backwards<'a> {
    fold: &'a Fold,
    /// What is still to come, the nearest last.
    behind: Vec<Behind<'a>>,
    /// Where what was passed begins.
    position: u64,
}

enum Behind<'a> {
    Item(Item),
    /// The first items of a body.
    Items(&'a [Item]),
}

impl<'a> Backwards<'a> {
    fn new(fold: &'a Fold, rule: RuleId, position: u64) -> Self {
        let position = position.min(fold.length(rule));
        let mut backwards = Self { fold, behind: Vec::new(), position };
        let (mut rule, mut rest) = (rule, position);
        while rest > 0 {
            let body = fold.body(rule);
            let ends = fold.item_ends(rule);
            let index = ends.partition_point(|&end| end <= rest);
            backwards.behind.push(Behind::Items(&body[..index]));
            let Some(&item) = body.get(index) else { break };
            rest -= index.checked_sub(1).map_or(0, |before| ends[before]);
            let length = fold.target_length(item.target());
            let iterations = rest.checked_div(length).unwrap_or(0);
            backwards.put_back(item.target(), iterations);
            rest -= iterations * length;
            match item.target() {
                Target::Rule(inner) => rule = inner,
                Target::Symbol(_) => break,
            }
        }
        backwards
    }

    fn next(&mut self) -> Option<Item> {
        loop {
            match self.behind.last_mut()? {
                Behind::Items(items) => {
                    if let Some((&last, before)) = items.split_last() {
                        *items = before;
                        return Some(last);
                    }
                    self.behind.pop();
                }
                Behind::Item(item) => {
                    let item = *item;
                    self.behind.pop();
                    return Some(item);
                }
            }
        }
    }

    fn put_back(&mut self, target: Target, times: u64) {
        if times > 0 {
            self.behind.push(Behind::Item(Item::new(target, times)));
        }
    }

    /// Passes over the last iterations of an item.
    fn pass(&mut self, item: Item, iterations: u64) {
        self.position -= iterations * self.fold.target_length(item.target());
        self.put_back(item.target(), item.times() - iterations);
    }

    /// Goes into the last iteration of an item, or returns its symbol, which is passed.
    fn enter(&mut self, item: Item) -> Option<Symbol> {
        match item.target() {
            Target::Rule(rule) => {
                self.put_back(item.target(), item.times() - 1);
                self.behind.push(Behind::Items(self.fold.body(rule)));
                None
            }
            Target::Symbol(symbol) => {
                self.pass(item, 1);
                Some(symbol)
            }
        }
    }
}

/// How many frames have ended, seen from behind, that have not yet begun.
#[derive(Default)]
pub(super) struct Pending(u64);

impl Pending {
    pub(super) fn frames(&self) -> u64 {
        self.0
    }

    /// How many of the last of `times` iterations of a stretch lie in frames that have
    /// ended; these are passed.
    pub(super) fn pass(&mut self, leaves: u64, enters: u64, times: u64) -> u64 {
        let Some(room) = self.0.checked_sub(enters).filter(|&room| room > 0) else { return 0 };
        let iterations = match enters.checked_sub(leaves) {
            None | Some(0) => times,
            Some(fewer) => room.div_ceil(fewer).min(times),
        };
        self.take(leaves, enters, iterations);
        iterations
    }

    /// Passes over iterations, which all lie in frames that have ended or the one below.
    pub(super) fn take(&mut self, leaves: u64, enters: u64, iterations: u64) {
        self.0 = match leaves.checked_sub(enters) {
            Some(more) => self.0.saturating_add(more.saturating_mul(iterations)),
            None => self.0.saturating_sub((enters - leaves).saturating_mul(iterations)),
        };
    }
}

/// What a stretch does to the frames of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLevels {
    /// Frames that are left but not entered.
    pub(super) leaves: u64,
    /// Frames that are entered but not left.
    pub(super) enters: u64,
    /// True if there is a block in the lowest frame, after all that it leaves.
    pub(super) has_block: bool,
}

/// What the stretches of a fold do to the frames of one function.
pub(super) trait Nesting {
    /// Nothing if there is nothing of the function in it.
    fn frames(&self, target: Target) -> Option<FrameLevels>;
}

/// Emits the blocks that lie before a position in the frame that is innermost there, from
/// the last to the first. Blocks that do nothing to the path may be left out.
pub(super) fn blocks(
    nesting: &impl Nesting,
    fold: &Fold,
    rule: RuleId,
    position: u64,
    emit: &mut EmitBlock<'_>,
) {
    let mut backwards = Backwards::new(fold, rule, position);
    let mut pending = Pending::default();
    while let Some(item) = backwards.next() {
        let Some(FrameLevels { leaves, enters, has_block }) = nesting.frames(item.target()) else {
            backwards.pass(item, item.times());
            continue;
        };
        let passed = pending.pass(leaves, enters, item.times());
        if passed > 0 {
            backwards.pass(item, passed);
        } else if pending.0 == enters && !has_block {
            // Nothing happens in the frame itself; if the stretch is as deep before as
            // behind, then nor does it in the other iterations.
            let passed = if leaves == enters { item.times() } else { 1 };
            pending.take(leaves, enters, passed);
            backwards.pass(item, passed);
        } else if let Some(symbol) = backwards.enter(item) {
            // Before the frame itself is entered, there are no blocks of it.
            if pending.0 != enters || !emit(symbol, backwards.position) {
                return;
            }
            pending.take(leaves, enters, 1);
        }
    }
}

/// Which calls are open at a position, for any number of positions of a fold.
///
/// Making it is one pass over the rules, with 32 bytes for each. A stack costs a way down
/// the rules for each open call.
pub struct CallStacks<'a> {
    fold: &'a Fold,
    levels: Levels,
    rules: Vec<NestingLevels>,
}

impl<'a> CallStacks<'a> {
    /// Measures the nesting of all rules.
    pub fn new(fold: &'a Fold) -> Result<Self> {
        let levels = Levels::new(fold.alphabet());
        let rules = measure_rules(fold, &levels)?;
        Ok(Self { fold, levels, rules })
    }

    /// The calls that are open where an event happens, as the symbols that entered them,
    /// the innermost first and no more than `most` of them. An event that enters is not
    /// yet in its own call, one that leaves still is.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn at(&self, stream: usize, position: u64, most: usize) -> Vec<Symbol> {
        let mut stack = Vec::new();
        let mut backwards = Backwards::new(self.fold, self.fold.streams()[stream].root(), position);
        let mut pending = Pending::default();
        while stack.len() < most
            && let Some(item) = backwards.next()
        {
            let NestingLevels { leaves, enters, .. } = self.levels_of(item.target());
            let passed = pending.pass(leaves, enters, item.times());
            if passed > 0 {
                backwards.pass(item, passed);
            } else if enters <= pending.0 {
                // Calls that are open are only before this.
                let passed = if leaves >= enters { item.times() } else { 1 };
                pending.take(leaves, enters, passed);
                backwards.pass(item, passed);
            } else if let Some(symbol) = backwards.enter(item) {
                stack.push(symbol);
            }
        }
        stack
    }

    /// How many calls are open where an event happens, as far as they are known: exits of
    /// calls that were not seen to begin count for nothing.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn depth_at(&self, stream: usize, position: u64) -> u64 {
        let mut backwards = Backwards::new(self.fold, self.fold.streams()[stream].root(), position);
        let (mut pending, mut depth) = (0u64, 0u64);
        while let Some(item) = backwards.next() {
            let NestingLevels { leaves, enters, .. } =
                self.levels.repeated(self.levels_of(item.target()), item.times());
            depth = depth.saturating_add(enters.saturating_sub(pending));
            pending = pending.saturating_sub(enters).saturating_add(leaves);
            backwards.pass(item, item.times());
        }
        depth
    }

    fn levels_of(&self, target: Target) -> NestingLevels {
        match target {
            Target::Symbol(symbol) => self.levels.of_symbol(symbol),
            Target::Rule(rule) => self.rules[rule.index()],
        }
    }
}
