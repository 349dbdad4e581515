//! `sequitur-runs`: SEQUITUR on counted items, online.
//!
//! SEQUITUR keeps a grammar in which no digram occurs twice and every rule is used twice.
//! A loop of n iterations then takes log n rules. Here an item carries how many times it
//! repeats, so the loop is one item, and the two properties are restated. When all that
//! was pushed is settled:
//!
//! * **neighbours differ**: no two items next to each other stand for the same thing;
//! * **digram uniqueness**: no pair of counted items, `a^m b^n` with these two counts,
//!   occurs twice in the grammar;
//! * **rule utility**: a rule has two items or more, and is used by two items or by one
//!   that repeats it.
//!
//! A test checks them after every symbol of thousands of small streams.
//!
//! # How it works
//!
//! The start rule's last item is *open* while it may still grow, and closed when its
//! digram with the item before it has been looked up. What makes it fast is the
//! **cursor**: after a match the next symbols are predicted from where the match was
//! found, and while predictions hold the grammar does not change: a symbol costs one
//! comparison and one step along a list. When a symbol s arrives and there is no cursor:
//!
//! 1. s is what the last item repeats: it repeats once more.
//! 2. The last item is open and is a rule that begins with s: a cursor enters the rule's
//!    body, and each full pass adds one to the item ([`Mode::Loop`]).
//! 3. The last item is open otherwise: it is closed. If its digram is known, both items are
//!    taken off and a cursor continues behind the place where it was found ([`Mode::Match`]);
//!    then s is examined again. If not, the digram is entered.
//! 4. The last item is closed, and its part's *hint*, where a match began lately, is an equal
//!    item whose successor begins with s: a cursor continues there ([`Mode::Hinted`]).
//! 5. Otherwise s becomes the last item, open.
//!
//! When a prediction fails, what matched becomes a use of a rule: of the rule whose whole body
//! it is, or of a new rule that takes the matched items over in constant time (the digrams
//! inside it stay in the index as they are). Items that matched only in part are *replayed*:
//! the items of that part go through the same five cases as symbols do. If the symbol that did
//! not match could continue the match's last item as a loop, that item is replayed as well,
//! unless only the first two matched, which would not come to an end.
//!
//! # Cost
//!
//! About 54 bytes an item. A symbol that was predicted costs about 1 ns, others a look-up
//! in a hash table. Replays can bring on replays: no proof bounds them; the worst stream
//! that a search found takes 2.5 steps a symbol.
//!
//! Counts have 32 bits here. A loop that would pass them ends its start rule, which
//! becomes the first item of a new one; in the fold, with its 64-bit counts, the two
//! halves of the loop are one item again.

mod cursor;
mod grammar;
#[cfg(test)]
mod tests;

use super::{FoldedRoot, Folder, Online};
use crate::fold::{Fold, FoldBuilder};
use crate::interrupt::blocks;
use crate::{Error, Result, RuleId, Symbol};
use cursor::{Cursor, Mode};
use grammar::{Grammar, Node, Part};

/// The folder `sequitur-runs`: online, each loop an item, whatever else repeats a rule.
///
/// ```
/// use loopfold::Symbol;
/// use loopfold::folders::{Folder, SequiturRuns};
///
/// let mut folding = SequiturRuns.online().unwrap();
/// for event in [0, 1, 1, 2].repeat(1000) {
///     folding.push(Symbol::new(event)?)?;
/// }
/// let (fold, folded) = folding.finish()?;
/// assert_eq!((fold.length(folded.root), fold.items()), (4000, 4));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SequiturRuns;

impl Folder for SequiturRuns {
    fn name(&self) -> &'static str {
        "sequitur-runs"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        let mut folding = Folding::new();
        folding.extend(stream)?;
        folding.settle();
        folding.rules(builder)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(begin())
    }
}

/// Begins to fold a stream.
pub(super) fn begin() -> Box<dyn Online> {
    Box::new(Folding::new())
}

/// A stream that is being folded.
#[derive(Clone)]
struct Folding {
    grammar: Grammar,
    cursor: Cursor,
    /// Whether the start rule's last item may still grow: its digram is not in the index.
    open: bool,
    /// The hint was just tried without success.
    hint_failed: bool,
    /// What must be replayed, the next one last. Each counts as a use of its rule.
    deferred: Vec<(Part, u32)>,
    /// Room for what matched in part.
    partial: Vec<(Part, u32)>,
    events: u64,
    /// The largest count; smaller in tests.
    most_times: u32,
}

impl Folding {
    fn new() -> Self {
        Self {
            grammar: Grammar::new(),
            cursor: Cursor::default(),
            open: false,
            hint_failed: false,
            deferred: Vec::new(),
            partial: Vec::new(),
            events: 0,
            most_times: u32::MAX,
        }
    }

    /// Takes a symbol that the cursor did not predict.
    fn push_unpredicted(&mut self, symbol: Part) -> Result<()> {
        self.grammar.check_room()?;
        self.step(symbol, 1);
        self.replay();
        Ok(())
    }

    /// After a symbol became the last item: takes those that only repeat it at once.
    fn take_repeats<'a>(&mut self, symbol: Symbol, rest: &'a [Symbol]) -> &'a [Symbol] {
        let is_last = Part::symbol(symbol) == Some(self.grammar.node(self.grammar.last()).part);
        if self.cursor.mode != Mode::None || !is_last {
            return rest;
        }
        let most = (self.most_times - 1) as usize;
        let repeats = rest.iter().take(most).take_while(|&&next| next == symbol).count();
        if repeats > 0 {
            self.repeat_last(repeats as u32);
            self.events += repeats as u64;
        }
        &rest[repeats..]
    }

    /// Takes some symbols; the grammar does not depend on how a stream is divided.
    fn extend_block(&mut self, symbols: &[Symbol]) -> Result<()> {
        let mut rest = symbols;
        loop {
            let predicted = self.cursor.follow(&mut self.grammar, rest, self.most_times);
            self.events += predicted as u64;
            let Some((&symbol, behind)) = rest[predicted..].split_first() else { return Ok(()) };
            self.push_unpredicted(Part::symbol(symbol).ok_or_else(too_many_symbols)?)?;
            self.events += 1;
            rest = self.take_repeats(symbol, behind);
        }
    }

    fn replay(&mut self) {
        while let Some((part, times)) = self.deferred.pop() {
            self.grammar.drop_use(part);
            self.step(part, times);
        }
    }

    fn defer(&mut self, part: Part, times: u32) {
        self.grammar.add_use(part);
        self.deferred.push((part, times));
    }

    /// One step of the five cases: takes an item, or defers it behind what must come
    /// before it.
    fn step(&mut self, part: Part, times: u32) {
        loop {
            if self.cursor.mode != Mode::None {
                if !self.cursor.advance(&mut self.grammar, part, times, self.most_times) {
                    self.defer(part, times);
                    self.settle_cursor(Some(part));
                }
                return;
            }
            let last = self.grammar.last();
            let Node { part: last_part, times: last_times, .. } = *self.grammar.node(last);
            if last_part == part {
                return self.repeat_last(times);
            }
            if self.open {
                let first = self.grammar.first(part);
                if self.grammar.is_rule_from(last_part, first) {
                    self.cursor.enter(Mode::Loop, last, self.grammar.head(last_part));
                } else {
                    self.close();
                }
                continue;
            }
            if !std::mem::take(&mut self.hint_failed) && !last_part.is_guard() {
                let hint = self.grammar.hint(last_part);
                if let Some(next) = self.hinted(hint, last_part, last_times, part) {
                    self.cursor.enter(Mode::Hinted, hint, next);
                    self.cursor.hide_last(&mut self.grammar);
                    continue;
                }
            }
            self.grammar.append(part, times);
            self.open = true;
            return;
        }
    }

    /// The item behind the hint, if the hint still is such an item and what follows it
    /// begins as `part` does.
    #[inline(always)]
    fn hinted(&self, hint: u32, last: Part, last_times: u32, part: Part) -> Option<u32> {
        if hint == grammar::NONE {
            return None;
        }
        let node = self.grammar.node(hint);
        if node.part != last || node.times != last_times {
            return None;
        }
        let follower = self.grammar.node(node.next).part;
        let fits = !follower.is_guard() && self.grammar.first(follower) == self.grammar.first(part);
        fits.then_some(node.next)
    }

    /// The last item repeats `times` times more.
    fn repeat_last(&mut self, times: u32) {
        let last = self.grammar.last();
        let Node { part, times: before, previous, .. } = *self.grammar.node(last);
        if self.most_times - before < times {
            self.grammar.restart();
            self.grammar.append(part, times);
        } else {
            if !self.open {
                self.grammar.remove_digram(previous);
            }
            self.grammar.node_mut(last).times += times;
        }
        self.open = true;
    }

    /// The last item will not grow any more: looks its digram up. If that is known, both
    /// items go and a cursor follows the place where it is known.
    fn close(&mut self) {
        self.open = false;
        let last = self.grammar.last();
        let left = self.grammar.node(last).previous;
        let Some(found) = self.grammar.find_or_insert_digram(left) else { return };
        let before = self.grammar.node(left).previous;
        self.grammar.remove_digram(before);
        self.grammar.drop_last();
        self.grammar.drop_last();
        let second = self.grammar.node(found).next;
        let behind = self.grammar.node(second).next;
        self.cursor.enter(Mode::Match, found, behind);
    }

    /// Ends the cursor: what it matched goes into the grammar, and what it matched in
    /// part is deferred. `part` is what it did not predict.
    fn settle_cursor(&mut self, part: Option<Part>) {
        self.cursor.show_last(&mut self.grammar);
        let mode = std::mem::replace(&mut self.cursor.mode, Mode::None);
        let mut partial = std::mem::take(&mut self.partial);
        partial.clear();
        let mut end = self.cursor.last_whole(&self.grammar);
        if mode != Mode::Loop && self.could_loop(mode, end, part) {
            let Node { part, times, previous, .. } = *self.grammar.node(end);
            partial.push((part, times));
            end = previous;
        }
        self.cursor.partial_items(&self.grammar, mode, &mut partial);
        for &(part, times) in partial.iter().rev() {
            self.defer(part, times);
        }
        self.partial = partial;
        match mode {
            Mode::Loop => self.close(),
            Mode::Hinted if end == self.cursor.begin => self.hint_failed = true,
            _ => self.take_match(mode, end),
        }
        self.cursor.leave();
    }

    /// Whether the last item that matched as a whole begins as `part` does, so that it might be
    /// repeated instead. Never the second item of a match: its digram would be found again,
    /// forever.
    fn could_loop(&self, mode: Mode, end: u32, part: Option<Part>) -> bool {
        let Some(part) = part else { return false };
        let begin = self.cursor.begin;
        let has_more = end != begin && (mode == Mode::Hinted || end != self.grammar.node(begin).next);
        let is_whole = self.cursor.is_between_items();
        has_more && is_whole && self.grammar.first(self.grammar.node(end).part) == self.grammar.first(part)
    }

    /// Puts a use of a rule for the items from where the match began to `end` at the end
    /// of the start rule.
    fn take_match(&mut self, mode: Mode, end: u32) {
        let begin = self.cursor.begin;
        if mode == Mode::Hinted {
            let before = self.grammar.node(self.grammar.last()).previous;
            self.grammar.remove_digram(before);
            self.grammar.drop_last();
        }
        let rule = match self.grammar.whole_rule(begin, end) {
            Some(rule) => rule,
            None => self.grammar.splice_out(begin, end),
        };
        if self.grammar.node(self.grammar.last()).part == rule {
            self.repeat_last(1);
        } else {
            self.grammar.append(rule, 1);
            self.open = true;
        }
        if mode == Mode::Match {
            self.grammar.set_hint(begin);
        }
        // The uses of the first two items went down by one; inside a rule they stand once.
        let second = self.grammar.node(begin).next;
        self.grammar.inline_if_used_once(begin);
        self.grammar.inline_if_used_once(second);
    }

    /// Brings everything into the grammar, as if the stream ended here. Pushing can continue.
    fn settle(&mut self) {
        loop {
            if self.cursor.mode != Mode::None {
                self.settle_cursor(None);
            } else if self.open {
                self.close();
            } else {
                return;
            }
            self.replay();
        }
    }

    /// The items of the start rule, then those that the cursor stands for.
    fn root_items(&self) -> Vec<(Part, u32)> {
        let mut items = Vec::new();
        let mut id = self.grammar.node(self.grammar.start).next;
        while id != self.grammar.start {
            let node = self.grammar.node(id);
            items.push((self.cursor.shown(node.part), node.times));
            id = node.next;
        }
        self.cursor.matched_items(&self.grammar, &mut items);
        items
    }
}

fn too_many_symbols() -> Error {
    Error::limit("online folders take up to 2^30 different events")
}

impl Online for Folding {
    #[inline]
    fn push(&mut self, symbol: Symbol) -> Result<()> {
        let part = Part::symbol(symbol).ok_or_else(too_many_symbols)?;
        if !self.cursor.predicts(&mut self.grammar, part, self.most_times) {
            self.push_unpredicted(part)?;
        }
        self.events += 1;
        Ok(())
    }

    fn extend(&mut self, symbols: &[Symbol]) -> Result<()> {
        blocks(symbols).try_for_each(|block| self.extend_block(block))
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        self.grammar.bytes()
    }

    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        self.grammar.emit(&self.root_items(), builder)
    }

    fn finish(mut self: Box<Self>) -> Result<(Fold, FoldedRoot)> {
        self.settle();
        self.so_far()
    }
}
