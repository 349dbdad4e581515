//! Cursor: a position in a stream that moves by items instead of events.
//!
//! A cursor stands between two *stretches*: some iterations of an item lie before it and some
//! behind it, on every level of the rules it is in. It moves forwards or backwards past any
//! number of iterations at a time, or enters one; the caller decides which, mostly by a
//! [measure](super::measure) of what is ahead. So a question enters only the rules that hold
//! the events it asks for and skips all others.
//!
//! Entering rules polls for an [interrupt](crate::interrupt) now and then, so questions that
//! go along a stream need not.
//!
//! A move costs O(1). Moving to a position costs the depth of the rules times the logarithm of
//! their bodies. Memory is O(depth). [`Cursor::locate`] is the search that sequences and paths
//! share; it costs the items of the rules it enters, and two joins for each doubling of a
//! repeat.
//!
//! [`Cursor::visit`] leads a [`Visitor`] along whole rules. [`Unfold`](super::Unfold) visits
//! every event.

use super::{Located, Target};
use crate::RuleId;
use crate::interrupt::Pace;

/// Some iterations of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<T> {
    /// The item.
    pub item: T,
    /// Its target.
    pub target: Target,
    /// How many iterations these are.
    pub times: u64,
    /// How many iterations of the item come before these.
    pub before: u64,
    /// How many events one iteration is.
    pub length: u64,
    /// Where the first of them begins.
    pub position: u64,
}

impl<T> Stretch<T> {
    /// Where the last of them ends.
    pub fn end(&self) -> u64 {
        self.position + self.times * self.length
    }
}

/// What lies next to a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Iterations of an item.
    Stretch(Stretch<T>),
    /// The end of the body of a rule, which is left.
    End {
        /// The rule.
        rule: RuleId,
        /// How many iterations of it follow directly.
        again: u64,
        /// Where it ends.
        position: u64,
    },
}

/// Where to go from a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Into the first of the iterations, past a single event; from the end of a rule into its
    /// next iteration, if there is one.
    Enter,
    /// Past all of the iterations; from the end of a rule past those that follow.
    Skip,
    /// To the end of the rule that the iterations are in.
    Leave,
}

/// Receives what [`Cursor::visit`] meets along a stream, and decides where to go.
pub trait Visitor<T> {
    /// The error type.
    type Error;

    /// Iterations come next, of the item with this index in this rule.
    fn stretch(&mut self, stretch: Stretch<T>, place: (RuleId, usize)) -> Result<Move, Self::Error>;

    /// A rule ends at a position; so many iterations of it follow directly.
    fn end(&mut self, rule: RuleId, again: u64, position: u64) -> Result<Move, Self::Error>;
}

/// One rule that the cursor is in.
#[derive(Clone, Debug)]
struct Level<'a, T> {
    rule: RuleId,
    body: &'a [T],
    /// Where the rule begins.
    base: u64,
    /// The item next to the cursor, or around it if there is a level inside.
    index: usize,
    /// Where that item begins.
    start: u64,
    /// How many of its iterations lie before the cursor, or before the one it is in.
    done: u64,
}

impl<T: Copy> Level<'_, T> {
    /// Moves past the item next to the cursor, all of it.
    #[inline]
    fn pass_item<L: Located<Item = T>>(&mut self, located: &L, item: T) {
        (self.index, self.done) = (self.index + 1, 0);
        self.start += located.located_times(item) * located.iteration_length(item);
        if !L::CONTIGUOUS && self.index < self.body.len() {
            self.start = self.base + located.item_offset(self.rule, self.body, self.index);
        }
    }
}

/// A position in what a rule unfolds to.
///
/// ```
/// use loopfold::fold::{FoldBuilder, Item, Target, cursor::Cursor};
/// # use loopfold::trace::{Alphabet, Event};
///
/// # let mut alphabet = Alphabet::default();
/// # let a = alphabet.intern(&Event::named("a"), None)?;
/// # let b = alphabet.intern(&Event::named("b"), None)?;
/// let mut builder = FoldBuilder::new(alphabet);
/// let pair = builder.rule(&[Item::once(a), Item::once(b)])?;
/// let root = builder.rule(&[Item::new(Target::Rule(pair), 1_000_000), Item::once(a)])?;
/// let fold = builder.finish();
/// let mut cursor = Cursor::new(&fold, root);
/// // Past all iterations but the last, and into that one.
/// let stretch = cursor.peek().unwrap();
/// cursor.skip(stretch.times - 1);
/// assert_eq!(cursor.enter(), None);
/// assert_eq!(cursor.peek().unwrap().position, 1_999_998);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a, L: Located> {
    located: &'a L,
    levels: Vec<Level<'a, L::Item>>,
    /// Of the rules that were entered.
    pace: Pace,
}

impl<'a, L: Located> Cursor<'a, L> {
    /// A cursor before the first event of a rule.
    pub fn new(located: &'a L, rule: RuleId) -> Self {
        let mut cursor = Self { located, levels: Vec::new(), pace: Pace::default() };
        cursor.push(rule, 0);
        cursor
    }

    /// A cursor before the event at a position of a rule, which is at most its length.
    pub fn at(located: &'a L, rule: RuleId, position: u64) -> Self {
        let mut cursor = Self { located, levels: Vec::new(), pace: Pace::default() };
        let (mut rule, mut base) = (rule, 0);
        loop {
            let body = located.located_body(rule);
            let index = located.items_until(rule, position - base);
            let Some(&item) = body.get(index) else {
                cursor.levels.push(Level { rule, body, base, index, start: position, done: 0 });
                break;
            };
            let start = base + located.item_offset(rule, body, index);
            let length = located.iteration_length(item);
            // Before the item, where there is a gap between items.
            let inside = position.saturating_sub(start);
            let done = inside.checked_div(length).unwrap_or(0);
            cursor.levels.push(Level { rule, body, base, index, start, done });
            match located.located_target(item) {
                Target::Rule(inner) if inside > done * length => {
                    (rule, base) = (inner, start + done * length)
                }
                _ => break,
            }
        }
        cursor
    }

    /// Goes to the first event of another rule.
    pub fn restart(&mut self, rule: RuleId) {
        self.levels.clear();
        self.push(rule, 0);
    }

    /// Enters a rule that begins at a position. Always inlined: entering rules is most of what
    /// some folds ask for.
    #[inline(always)]
    fn push(&mut self, rule: RuleId, base: u64) {
        self.pace.step();
        let body = self.located.located_body(rule);
        let start = match body {
            [_, ..] if !L::CONTIGUOUS => base + self.located.item_offset(rule, body, 0),
            _ => base,
        };
        self.levels.push(Level { rule, body, base, index: 0, start, done: 0 });
    }

    /// How many rules the cursor is in.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The rules that the cursor is in, the innermost first, each with the index of its item
    /// that the cursor is in or next to.
    pub fn path(&self) -> impl Iterator<Item = (RuleId, usize)> + '_ {
        self.levels.iter().rev().map(|level| (level.rule, level.index))
    }

    /// Iterations of the item at a level, from number `before` on.
    #[inline]
    fn stretch(&self, level: &Level<'a, L::Item>, before: u64, times: u64) -> Stretch<L::Item> {
        let item = level.body[level.index];
        let length = self.located.iteration_length(item);
        let target = self.located.located_target(item);
        Stretch { item, target, times, before, length, position: level.start + before * length }
    }

    /// What comes next: iterations, or the end of a rule, which is left with this call.
    #[inline]
    pub fn step(&mut self) -> Option<Step<L::Item>> {
        let located = self.located;
        let level = self.levels.last_mut()?;
        while let Some(&item) = level.body.get(level.index) {
            let times = located.located_times(item);
            if level.done < times {
                let before = level.done;
                let level = self.levels.last()?;
                return Some(Step::Stretch(self.stretch(level, before, times - before)));
            }
            level.pass_item(located, item);
        }
        let (rule, position) = (level.rule, level.start);
        self.leave();
        let again = self
            .levels
            .last()
            .map_or(0, |outer| self.located.located_times(outer.body[outer.index]) - outer.done);
        Some(Step::End { rule, again, position })
    }

    /// Leads a visitor to the end. The same as repeated [`step`](Self::step)s, but in half of
    /// the time for visitors that look at most items.
    #[inline]
    pub fn visit<V: Visitor<L::Item>>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        let located = self.located;
        'rules: while let Some(level) = self.levels.last_mut() {
            // As variables, they need not be written back for every item.
            let (rule, body) = (level.rule, level.body);
            let (mut index, mut start, mut done) = (level.index, level.start, level.done);
            while let Some(&item) = body.get(index) {
                let (times, length) = (located.located_times(item), located.iteration_length(item));
                if done < times {
                    let (target, position) = (located.located_target(item), start + done * length);
                    let rest = times - done;
                    let stretch = Stretch { item, target, times: rest, before: done, length, position };
                    match (visitor.stretch(stretch, (rule, index))?, target) {
                        (Move::Skip, _) => {}
                        (Move::Enter, Target::Rule(inner)) => {
                            (level.index, level.start, level.done) = (index, start, done);
                            self.push(inner, position);
                            continue 'rules;
                        }
                        (Move::Enter, Target::Symbol(_)) => {
                            done += 1;
                            continue;
                        }
                        (Move::Leave, _) => {
                            (level.index, level.start) = (index, start);
                            while let Some(&item) = body.get(level.index) {
                                level.pass_item(located, item);
                            }
                            start = level.start;
                            break;
                        }
                    }
                }
                (index, done) = (index + 1, 0);
                start += times * length;
                if !L::CONTIGUOUS && index < body.len() {
                    start = level.base + located.item_offset(rule, level.body, index);
                }
            }
            let again = match &self.levels[..] {
                [.., outer, _] => located.located_times(outer.body[outer.index]) - outer.done - 1,
                _ => 0,
            };
            let next = visitor.end(rule, again, start)?;
            self.leave();
            if again > 0 && next == Move::Enter {
                self.push(rule, start);
            } else {
                self.skip(again);
            }
        }
        Ok(())
    }

    /// Leaves the innermost rule at its end.
    #[inline(always)]
    fn leave(&mut self) {
        self.levels.pop();
        if let Some(outer) = self.levels.last_mut() {
            outer.done += 1;
        }
    }

    /// The iterations that come next, of whichever rule; `None` at the end.
    #[inline]
    pub fn peek(&mut self) -> Option<Stretch<L::Item>> {
        loop {
            match self.step()? {
                Step::Stretch(stretch) => return Some(stretch),
                Step::End { .. } => {}
            }
        }
    }

    /// Moves past iterations of what [`peek`](Self::peek) returned.
    #[inline]
    pub fn skip(&mut self, iterations: u64) {
        if let Some(level) = self.levels.last_mut() {
            level.done += iterations;
        }
    }

    /// Enters the first iteration of what [`peek`](Self::peek) returned. A single event is
    /// passed instead, and its position returned.
    #[inline]
    pub fn enter(&mut self) -> Option<u64> {
        let level = self.levels.last_mut()?;
        let &item = level.body.get(level.index)?;
        let base = level.start + level.done * self.located.iteration_length(item);
        match self.located.located_target(item) {
            Target::Rule(rule) => {
                self.push(rule, base);
                None
            }
            Target::Symbol(_) => {
                level.done += 1;
                Some(base)
            }
        }
    }

    /// The iterations that lie directly before the cursor; `None` at the beginning, and once
    /// the cursor has been moved past the end.
    pub fn peek_back(&mut self) -> Option<Stretch<L::Item>> {
        loop {
            let level = self.levels.last_mut()?;
            if level.done == 0 {
                let Some(index) = level.index.checked_sub(1) else {
                    self.levels.pop();
                    continue;
                };
                let item = level.body[index];
                (level.index, level.done) = (index, self.located.located_times(item));
                level.start = match L::CONTIGUOUS {
                    true => level.start - level.done * self.located.iteration_length(item),
                    false => level.base + self.located.item_offset(level.rule, level.body, index),
                };
            }
            let level = self.levels.last()?;
            return Some(self.stretch(level, 0, level.done));
        }
    }

    /// Moves back past the last iterations of what [`peek_back`](Self::peek_back) returned.
    pub fn skip_back(&mut self, iterations: u64) {
        if let Some(level) = self.levels.last_mut() {
            level.done -= iterations;
        }
    }

    /// Enters the last iteration of what [`peek_back`](Self::peek_back) returned, at its end.
    /// A single event is passed instead, and its position returned.
    pub fn enter_back(&mut self) -> Option<u64> {
        let level = self.levels.last_mut()?;
        let &item = level.body.get(level.index)?;
        level.done -= 1;
        let length = self.located.iteration_length(item);
        let base = level.start + level.done * length;
        match self.located.located_target(item) {
            Target::Rule(rule) => {
                let body = self.located.located_body(rule);
                let (index, start) = (body.len(), base + length);
                self.levels.push(Level { rule, body, base, index, start, done: 0 });
                None
            }
            Target::Symbol(_) => Some(base),
        }
    }

    /// Moves on to a position, and calls `pass` with every stretch before it, the last one cut
    /// at the position.
    pub fn advance_to(&mut self, position: u64, mut pass: impl FnMut(Stretch<L::Item>)) {
        loop {
            self.pass_items_until(position, &mut pass);
            let stretch = match self.step() {
                Some(Step::Stretch(stretch)) if stretch.position < position => stretch,
                Some(Step::End { .. }) => continue,
                _ => return,
            };
            let room = position - stretch.position;
            let whole = room.checked_div(stretch.length).unwrap_or(stretch.times).min(stretch.times);
            if whole > 0 {
                pass(Stretch { times: whole, ..stretch });
                self.skip(whole);
            } else {
                // An event has no inside, so this is a rule.
                self.enter();
            }
        }
    }

    /// The innermost rule, if the cursor stands between two of its items.
    #[inline]
    fn between_items(&mut self) -> Option<&mut Level<'a, L::Item>> {
        let level = self.levels.last_mut()?;
        if level.done > 0 {
            let &item = level.body.get(level.index)?;
            if level.done < self.located.located_times(item) {
                return None;
            }
            level.pass_item(self.located, item);
        }
        Some(level)
    }

    /// Moves past the whole items of the innermost rule that end at a position or before it:
    /// bodies can be long, and this is all that most of their items need.
    #[inline]
    fn pass_items_until(&mut self, position: u64, pass: &mut impl FnMut(Stretch<L::Item>)) {
        let located = self.located;
        let Some(level) = self.between_items() else { return };
        while let Some(&item) = level.body.get(level.index) {
            let (times, length) = (located.located_times(item), located.iteration_length(item));
            let start = level.start;
            if start >= position || start + times * length > position {
                return;
            }
            let target = located.located_target(item);
            pass(Stretch { item, target, times, before: 0, length, position: start });
            level.pass_item(located, item);
        }
    }
}

/// The state of a search along a stream. It computes how many occurrences end in the next
/// stretch.
pub trait Guide<T> {
    /// The value of a stretch.
    type Value;

    /// The value of one iteration of an item. Returns `None` if it changes nothing and holds no
    /// occurrence.
    fn once(&self, item: T) -> Option<Self::Value>;

    /// Skips an item if it has no more than `skip` occurrences, which are taken off it; returns
    /// whether it did.
    #[inline]
    fn pass_item(&mut self, item: T, times: u64, skip: &mut u64) -> bool {
        let Some(once) = self.once(item) else { return true };
        match times {
            1 => pass_value(self, &once, skip),
            times => self.repeated(&once, times).is_some_and(|all| pass_value(self, &all, skip)),
        }
    }

    /// Skips the first of these items and returns how many: for guides that can do better than
    /// item by item. Together they have no more than `skip` occurrences, which are taken off
    /// it.
    fn pass_items(&mut self, _items: &[T], _skip: &mut u64) -> usize {
        0
    }

    /// The value of several. Returns `None` if that is too much to know.
    fn repeated(&self, once: &Self::Value, times: u64) -> Option<Self::Value>;

    /// How many occurrences end in a stretch with this value, if it comes next.
    fn count(&self, value: &Self::Value) -> u64;

    /// Advances the state past a stretch with this value.
    fn pass(&mut self, value: &Self::Value);
}

impl<L: Located> Cursor<'_, L> {
    /// Skips `skip` occurrences and returns the position of the event with which the next one
    /// ends; the guide has not passed that event, the cursor has. If there are fewer, the
    /// cursor moves to the end, and `skip` is the number of occurrences that are missing.
    pub fn locate<G: Guide<L::Item>>(&mut self, guide: &mut G, skip: &mut u64) -> Option<(u64, L::Item)> {
        loop {
            self.pass_items(guide, skip);
            let level = self.levels.last_mut()?;
            let Some(&item) = level.body.get(level.index) else {
                self.leave();
                continue;
            };
            let passed = pass_iterations(guide, item, self.located.located_times(item), level.done, skip);
            level.done += passed;
            // If none can be passed, the occurrence ends in the first of them.
            if passed == 0
                && let Some(position) = self.enter()
            {
                return Some((position, item));
            }
        }
    }

    /// Moves past the whole items of the innermost rule that have no more than `skip`
    /// occurrences: bodies can be long, and this is all that most of their items need.
    #[inline]
    fn pass_items<G: Guide<L::Item>>(&mut self, guide: &mut G, skip: &mut u64) {
        let located = self.located;
        let Some(level) = self.between_items() else { return };
        let at_once = guide.pass_items(&level.body[level.index..], skip);
        if at_once > 0 {
            level.index += at_once;
            level.start = level.base + located.item_offset(level.rule, level.body, level.index);
        }
        while let Some(&item) = level.body.get(level.index)
            && guide.pass_item(item, located.located_times(item), skip)
        {
            level.pass_item(located, item);
        }
    }
}

/// Skips a stretch if it has no more than `skip` occurrences, which are taken off it.
#[inline]
fn pass_value<T, G: Guide<T> + ?Sized>(guide: &mut G, value: &G::Value, skip: &mut u64) -> bool {
    let Some(rest) = skip.checked_sub(guide.count(value)) else { return false };
    *skip = rest;
    guide.pass(value);
    true
}

/// Skips as many iterations of an item as have no more than `skip` occurrences, when some are
/// done, and returns how many: the rest of them at once if it can be (a whole item has been
/// tried already), else by the values of 1, 2, 4, … iterations, in two joins for each doubling.
#[inline]
fn pass_iterations<T: Copy, G: Guide<T>>(
    guide: &mut G,
    item: T,
    times: u64,
    done: u64,
    skip: &mut u64,
) -> u64 {
    if times == 1 {
        return 0;
    }
    let rest = times - done;
    if done > 0 && guide.pass_item(item, rest, skip) {
        return rest;
    }
    pass_doublings(guide, item, rest, skip)
}

fn pass_doublings<T: Copy, G: Guide<T>>(guide: &mut G, item: T, times: u64, skip: &mut u64) -> u64 {
    let Some(once) = guide.once(item) else { return times };
    if guide.count(&once) > *skip {
        return 0;
    }
    let mut powers = vec![once];
    while let Some(last) = powers.last()
        && times.checked_shr(powers.len() as u32).is_some_and(|enough| enough > 0)
        && guide.count(last) <= *skip
        && let Some(square) = guide.repeated(last, 2)
    {
        powers.push(square);
    }
    let mut passed = 0;
    for (exponent, value) in powers.iter().enumerate().rev() {
        let iterations = 1u64 << exponent;
        if iterations <= times - passed && pass_value(guide, value, skip) {
            passed += iterations;
        }
    }
    passed
}
