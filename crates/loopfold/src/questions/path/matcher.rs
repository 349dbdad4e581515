//! The values of all rules, and the walk that they guide to where the path occurs.
//!
//! Making the values is one pass over the rules. A rule without a symbol of the function
//! costs one look at each of its items and has no value of its own; see
//! [`values`](super::values) for what the others take.
//!
//! The walk keeps the frames that are open, so it knows for every stretch ahead how many
//! occurrences end in it. It passes over what holds none, bisects repeats, and goes into
//! the rest. Finding one occurrence costs at most the items of the rules it goes into and
//! the logarithm of each repeat, times the levels of their values.

use super::PathQuery;
use super::ahead::Forwards;
use super::back::{self, FrameLevels, Nesting, Tell};
use super::frame::{FrameState, FrameWords as _, Word};
use super::value::{Frames, Paths, Value, View};
use super::values::{Index, Values};
use crate::fold::{Fold, Item, Target};
use crate::{Error, Result, RuleId};
use std::borrow::Cow;

/// Machine words that the levels of all rules may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

/// The values of all symbols and rules of a fold for one path.
pub(super) struct Matcher<'a, B: FrameState> {
    pub(super) fold: &'a Fold,
    paths: Paths<B>,
    values: Values<B>,
    /// The value of each symbol up to the last one that does something, of any other
    /// symbol, and of each rule.
    indices: Vec<Index>,
    /// Where the rules begin in `indices`.
    first_rule: usize,
}

impl<'a, B: FrameState> Matcher<'a, B> {
    /// One pass over the rules.
    pub(super) fn new(fold: &'a Fold, query: &PathQuery) -> Result<Self> {
        let paths = Paths::new(query);
        let mut values = Values::default();
        let first_rule = paths.symbols().map(|(symbol, _)| symbol.index() + 2).max().unwrap_or(1);
        let mut indices = Vec::with_capacity(first_rule + fold.rules().len());
        indices.resize(first_rule, Index::NOTHING);
        for (symbol, value) in paths.symbols() {
            indices[symbol.index()] = values.add(value, &paths.words)?;
        }
        let mut matcher = Self { fold, paths, values, indices, first_rule };
        let mut value = Value::default();
        for rule in fold.rules() {
            let index = matcher.index_of_body(fold.body(rule), &mut value)?;
            matcher.indices.push(index);
        }
        Ok(matcher)
    }

    /// The value of a body, added if it does something. All its rules have theirs.
    fn index_of_body(&mut self, body: &[Item], value: &mut Value<B>) -> Result<Index> {
        let words = &self.paths.words;
        value.clear();
        // What happens in the frame that is current at the end, since calls changed it.
        let mut word: Option<Word<B>> = None;
        for item in body {
            let index = self.index(item.target());
            if index == Index::NOTHING {
                continue;
            }
            if let Some(once) = self.values.word(index) {
                let next = match item.times() {
                    1 => Cow::Borrowed(once),
                    times => Cow::Owned(words.repeated(once, times)),
                };
                match &mut word {
                    Some(word) => words.append(word, &next),
                    None => word = Some(next.into_owned()),
                }
                continue;
            }
            if let Some(word) = word.take() {
                value.append_word(&word, words);
            }
            self.paths.append(value, self.values.get(index), item.times())?;
        }
        match word {
            Some(word) if value.is_empty() => return self.values.add_word(word),
            Some(word) => value.append_word(&word, words),
            None => {}
        }
        let index = self.values.add(value, words)?;
        if self.values.memory() > MOST_WORDS {
            return Err(Error::limit(
                "calls are nested so deep that looking for this path takes more than a gigabyte of memory",
            ));
        }
        Ok(index)
    }

    #[inline]
    fn index(&self, target: Target) -> Index {
        let slot = match target {
            Target::Symbol(symbol) => symbol.index().min(self.first_rule - 1),
            Target::Rule(rule) => self.first_rule + rule.index(),
        };
        self.indices[slot]
    }

    /// The value of what a target unfolds to; nothing if that does nothing.
    #[inline]
    pub(super) fn value(&self, target: Target) -> Option<View<'_, B>> {
        match self.index(target) {
            Index::NOTHING => None,
            index => Some(self.values.get(index)),
        }
    }
}

impl<B: FrameState> Nesting for Matcher<'_, B> {
    fn frames(&self, target: Target) -> Option<FrameLevels> {
        let value = self.value(target)?;
        Some(FrameLevels { leaves: value.leaves, enters: value.enters, has_block: value.reaches_lowest() })
    }
}

/// Where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The position of the last block.
    pub(super) position: u64,
    /// How many frames of the function are open there.
    pub(super) depth: u64,
}

/// What can be asked of a matcher, whatever the width of its sets.
pub(super) trait Matching: Send + Sync {
    /// How often the path occurs in a rule that is a whole stream.
    fn count(&self, rule: RuleId) -> u64;

    /// A walk from the beginning of a rule that is a whole stream.
    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_>;

    /// Tells the blocks that lie before a position in its frame, see [`back::blocks`].
    fn blocks_before(&self, rule: RuleId, position: u64, tell: &mut Tell<'_>);
}

impl<B: FrameState> Matching for Matcher<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.value(Target::Rule(rule)).map_or(0, |value| value.count)
    }

    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_> {
        let ahead = Forwards::new(self.fold, rule);
        Box::new(Walker { matcher: self, ahead, frames: Frames::default(), position: 0 })
    }

    fn blocks_before(&self, rule: RuleId, position: u64, tell: &mut Tell<'_>) {
        back::blocks(self, self.fold, rule, position, tell);
    }
}

/// A walk through a stream from one occurrence to the next.
pub(super) trait Walk {
    /// Passes over `skip` occurrences and returns where the next one ends. When there are
    /// not so many, it ends up behind the last one, and `skip` is what there is still to
    /// pass over.
    fn next(&mut self, skip: &mut u64) -> Option<End>;
}

struct Walker<'m, 'a, B: FrameState> {
    matcher: &'m Matcher<'a, B>,
    ahead: Forwards<'a>,
    /// The frames that are open.
    frames: Frames<B>,
    /// How many events lie behind.
    position: u64,
}

impl<B: FrameState> Walker<'_, '_, B> {
    /// Passes over a stretch if it has no more than `skip` occurrences.
    fn pass(&mut self, stretch: View<'_, B>, events: u64, skip: &mut u64) -> bool {
        let Some(rest) = skip.checked_sub(self.frames.count_in(stretch)) else { return false };
        *skip = rest;
        self.frames.follow(stretch, &self.matcher.paths.words);
        self.position += events;
        true
    }

    /// Passes over an item, or over as many of its iterations as have no more than `skip`
    /// occurrences. Returns how many are left.
    fn pass_item(&mut self, item: Item, skip: &mut u64) -> u64 {
        let (matcher, length) = (self.matcher, self.matcher.fold.target_length(item.target()));
        let Some(once) = matcher.value(item.target()) else {
            self.position += item.times() * length;
            return 0;
        };
        let mut rest = item.times();
        if rest == 1 {
            return if self.pass(once, length, skip) { 0 } else { 1 };
        }
        // The pass over the rules has made all these powers, so none is too large now.
        if let Ok(all) = matcher.paths.repeated(once, rest)
            && self.pass(all.view(), rest * length, skip)
        {
            return 0;
        }
        if self.frames.count_in(once) > *skip {
            return rest;
        }
        // Values of 1, 2, 4, … iterations.
        let Ok(first) = matcher.paths.repeated(once, 1) else { return rest };
        let mut powers = vec![first];
        while let Some(last) = powers.last()
            && rest.checked_shr(powers.len() as u32).is_some_and(|enough| enough > 0)
            && self.frames.count_in(last.view()) <= *skip
            && let Ok(square) = matcher.paths.squared(last)
        {
            powers.push(square);
        }
        for (exponent, power) in powers.iter().enumerate().rev() {
            let iterations = 1u64 << exponent;
            if iterations <= rest && self.pass(power.view(), iterations * length, skip) {
                rest -= iterations;
            }
        }
        rest
    }
}

impl<B: FrameState> Walk for Walker<'_, '_, B> {
    fn next(&mut self, skip: &mut u64) -> Option<End> {
        while let Some(item) = self.ahead.next() {
            let target = item.target();
            let rest = self.pass_item(item, skip);
            // The occurrence ends in the next iteration, if any is left.
            if rest > 0 && self.ahead.enter(target, rest) {
                // A block that also enters is not yet in its own call.
                let depth = self.frames.depth();
                if let Some(block) = self.matcher.value(target) {
                    self.frames.follow(block, &self.matcher.paths.words);
                }
                self.position += 1;
                return Some(End { position: self.position - 1, depth });
            }
        }
        None
    }
}
