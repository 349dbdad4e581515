//! Unfolds a rule: all of its events, a window of them, or one.
//!
//! The iterator costs a few nanoseconds an event and memory for the depth of the rules.
//! Starting at a position costs the depth times the logarithm of the bodies. [`Unfold::fill`]
//! unfolds many events at once, for a fraction of a nanosecond each where rules repeat: what a
//! rule unfolded to before is copied.

use super::{Fold, Item, Target};
use crate::interrupt::Pace;
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
    /// Where each rule was last unfolded whole, counted in symbols handed out; made when
    /// [`Unfold::fill`] is first used.
    unfolded_at: Vec<u64>,
    handed_out: u64,
    /// Of the bodies that were begun.
    pace: Pace,
}

#[derive(Clone, Debug)]
struct Level<'a> {
    rule: RuleId,
    body: &'a [Item],
    /// The item to unfold next.
    next: usize,
    /// How often the whole body is still to be unfolded after this time.
    again: u64,
    /// Where this time began, counted as in [`Unfold::unfolded_at`].
    began: u64,
}

/// For events that [`Unfold::fill`] did not return, so that there is nothing to copy.
const NOWHERE: u64 = u64::MAX;

impl Fold {
    /// The events that a rule unfolds to.
    pub fn unfold(&self, rule: RuleId) -> Unfold<'_> {
        let mut unfold = Unfold::nothing(self);
        unfold.stack.push(Level { rule, body: self.body(rule), next: 0, again: 0, began: NOWHERE });
        unfold.remaining = self.length(rule);
        unfold
    }

    /// The events of a rule from position `start` to before `end`, clipped to the rule.
    pub fn window(&self, rule: RuleId, start: u64, end: u64) -> Unfold<'_> {
        let end = end.min(self.length(rule));
        let start = start.min(end);
        let mut unfold = Unfold::nothing(self);
        unfold.remaining = end - start;
        if start < end {
            unfold.descend(rule, start);
        }
        unfold
    }

    /// The event at a position. Returns `None` past the end.
    pub fn symbol_at(&self, rule: RuleId, position: u64) -> Option<Symbol> {
        self.window(rule, position, position.checked_add(1)?).next()
    }
}

impl<'a> Unfold<'a> {
    /// Goes to the events of a rule of the same fold from position `start` on. The table of
    /// where rules were unfolded is reused.
    pub(crate) fn seek(&mut self, rule: RuleId, start: u64) {
        self.stack.clear();
        self.symbol = None;
        self.remaining = self.fold.length(rule).saturating_sub(start);
        if self.remaining > 0 {
            self.descend(rule, start);
        }
    }

    fn nothing(fold: &'a Fold) -> Self {
        let (stack, unfolded_at) = (Vec::new(), Vec::new());
        Self { fold, stack, symbol: None, remaining: 0, unfolded_at, handed_out: 0, pace: Pace::default() }
    }

    /// Writes the next events to `out` and returns how many: all it has room for, or
    /// all there are. Takes 8 bytes of memory for each rule of the fold.
    pub fn fill(&mut self, out: &mut [Symbol]) -> usize {
        self.fill_with(out, |symbol| symbol)
    }

    /// The same with a value in place of each symbol, such as the number that it stands for.
    pub fn fill_with<T: Copy>(&mut self, out: &mut [T], value: impl Fn(Symbol) -> T) -> usize {
        if self.unfolded_at.is_empty() {
            self.unfolded_at = vec![NOWHERE; self.fold.rules().len()];
        }
        let room = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(out.len());
        let mut page = Page { out: &mut out[..room], value, filled: 0, first: self.handed_out };
        while page.filled < room {
            if let Some((symbol, times)) = self.symbol.take() {
                let now = page.fill(symbol, times);
                self.symbol = (now < times).then_some((symbol, times - now));
                continue;
            }
            let Some(level) = self.stack.last_mut() else { break };
            level.next += page.push_all(&level.body[level.next..]);
            if page.filled == room {
                break;
            }
            let Some(item) = level.body.get(level.next) else {
                self.end_body(&mut page);
                continue;
            };
            level.next += 1;
            match item.target() {
                Target::Symbol(symbol) => self.symbol = Some((symbol, item.times())),
                Target::Rule(rule) => self.begin_rule(rule, item.times(), &mut page),
            }
        }
        self.handed_out += page.filled as u64;
        self.remaining -= page.filled as u64;
        page.filled
    }

    /// Unfolds a rule from copies while there is room, and opens it for the rest.
    fn begin_rule<T: Copy, F: Fn(Symbol) -> T>(
        &mut self,
        rule: RuleId,
        times: u64,
        page: &mut Page<'_, T, F>,
    ) {
        self.pace.step();
        let copied = page.copy(self.unfolded_at[rule.index()], self.fold.length(rule), times);
        if copied < times {
            let (body, again) = (self.fold.body(rule), times - copied - 1);
            self.stack.push(Level { rule, body, next: 0, again, began: page.position() });
        }
    }

    /// Continues where a body has been unfolded: with the next time, or behind the rule.
    fn end_body<T: Copy, F: Fn(Symbol) -> T>(&mut self, page: &mut Page<'_, T, F>) {
        self.pace.step();
        let Some(level) = self.stack.last_mut() else { return };
        self.unfolded_at[level.rule.index()] = level.began;
        level.again -= page.copy(level.began, self.fold.length(level.rule), level.again);
        if level.again > 0 {
            level.again -= 1;
            level.next = 0;
            level.began = page.position();
        } else {
            self.stack.pop();
        }
    }

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
            let body = self.fold.body(rule);
            self.stack.push(Level { rule, body, next: index + 1, again, began: NOWHERE });
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

/// What [`Unfold::fill`] has written so far.
struct Page<'a, T, F> {
    out: &'a mut [T],
    /// What is written for a symbol.
    value: F,
    filled: usize,
    /// How many symbols were handed out before this page.
    first: u64,
}

/// What is copied at once stays in the cache: so many values, or one iteration.
const COPIED: usize = 1 << 14;

impl<T: Copy, F: Fn(Symbol) -> T> Page<'_, T, F> {
    /// How many symbols were handed out in all.
    fn position(&self) -> u64 {
        self.first + self.filled as u64
    }

    /// Writes the events with which some items begin, those that do not repeat, while there is room;
    /// returns how many. In a loop of its own, since they are most of what has no loops.
    fn push_all(&mut self, items: &[Item]) -> usize {
        let mut written = 0;
        for (out, item) in self.out[self.filled..].iter_mut().zip(items) {
            match item.target() {
                Target::Symbol(symbol) if item.times() == 1 => *out = (self.value)(symbol),
                _ => break,
            }
            written += 1;
        }
        self.filled += written;
        written
    }

    /// Writes a symbol up to `times` times; returns how often there was room for it.
    fn fill(&mut self, symbol: Symbol, times: u64) -> u64 {
        let now = times.min((self.out.len() - self.filled) as u64);
        let end = self.filled + now as usize;
        self.out[self.filled..end].fill((self.value)(symbol));
        self.filled = end;
        now
    }

    /// Writes the `length` symbols from a position on up to `times` times again; returns
    /// how often they fit. None do if they are not on this page.
    fn copy(&mut self, position: u64, length: u64, times: u64) -> u64 {
        if position < self.first || position == NOWHERE {
            return 0;
        }
        let copies = times.min((self.out.len() - self.filled) as u64 / length.max(1));
        if copies == 0 {
            return 0;
        }
        let (from, to, once) = ((position - self.first) as usize, self.filled, length as usize);
        self.out.copy_within(from..from + once, to);
        // What is written already is copied again: twice, four times, eight times as long.
        let (mut done, all) = (once, copies as usize * once);
        let most = once * (COPIED / once).max(1);
        while done < all {
            let more = done.min(most).min(all - done);
            self.out.copy_within(to..to + more, to + done);
            done += more;
        }
        self.filled += all;
        copies
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
                self.handed_out += 1;
                return Some(symbol);
            }
            let level = self.stack.last_mut()?;
            match level.body.get(level.next) {
                None if level.again > 0 => {
                    level.again -= 1;
                    level.next = 0;
                    level.began = NOWHERE;
                    self.pace.step();
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
                            let again = item.times() - 1;
                            self.stack.push(Level { rule, body, next: 0, again, began: NOWHERE });
                            self.pace.step();
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
