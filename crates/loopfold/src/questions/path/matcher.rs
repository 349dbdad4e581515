//! The values of all parts of a function, and the walk that they guide to where the path
//! occurs.
//!
//! Making the values is one pass over the items of the parts; see
//! [`values`](super::values) for what they take.
//!
//! The walk keeps the frames that are open, so it knows for every stretch ahead how many
//! occurrences end in it. It passes over what holds none, bisects repeats, and goes into
//! the rest. Finding one occurrence costs at most the items of the rules it goes into that
//! hold something of the function and the logarithm of each repeat, times the levels of
//! their values.

use super::PathQuery;
use super::back::{Pending, Tell};
use super::frame::{FrameState, FrameWords as _, Word};
use super::projection::{Part, Projection, Stretch, Stretches};
use super::value::{Frames, Paths, Value, View};
use super::values::{Index, Values};
use crate::fold::{Fold, Measure as _};
use crate::questions::halves::pass_iterations;
use crate::{Error, Result, RuleId};
use std::borrow::Cow;
use std::sync::Arc;

/// Machine words that the levels of all rules may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

/// The values of all parts of a function for one path of it.
pub(super) struct Matcher<'a, B: FrameState> {
    fold: &'a Fold,
    projection: Arc<Projection>,
    paths: Paths<B>,
    values: Values<B>,
    /// Where the value of each part is.
    indices: Vec<Index>,
}

impl<'a, B: FrameState> Matcher<'a, B> {
    /// One pass over the parts.
    pub(super) fn new(fold: &'a Fold, projection: &Arc<Projection>, query: &PathQuery) -> Result<Self> {
        let paths = Paths::new(query);
        let mut values = Values::default();
        let mut indices = Vec::with_capacity(projection.len());
        for &(symbol, _) in projection.steps() {
            indices.push(values.add(&paths.symbol(symbol), &paths.words)?);
        }
        let mut matcher = Self { fold, projection: projection.clone(), paths, values, indices };
        let mut value = Value::default();
        for body in projection.bodies(fold) {
            let index = matcher.index_of_body(body, &mut value)?;
            matcher.indices.push(index);
        }
        Ok(matcher)
    }

    /// The value of a body, added if it does something. All its parts have theirs.
    fn index_of_body(
        &mut self,
        body: impl Iterator<Item = (Part, u64)>,
        value: &mut Value<B>,
    ) -> Result<Index> {
        let words = &self.paths.words;
        value.clear();
        // What happens in the frame that is current at the end, since calls changed it.
        let mut word: Option<Word<B>> = None;
        for (part, times) in body {
            let index = self.indices[part.index()];
            if index == Index::NOTHING {
                continue;
            }
            if let Some(once) = self.values.word(index) {
                let next = match times {
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
            self.paths.append(value, self.values.get(index), times)?;
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

    /// The value of a part; nothing if that does nothing.
    fn value(&self, part: Part) -> Option<View<'_, B>> {
        if part == Part::NONE {
            return None;
        }
        match self.indices[part.index()] {
            Index::NOTHING => None,
            index => Some(self.values.get(index)),
        }
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

    /// Tells the blocks that lie before a position in the frame that is innermost there, from
    /// the last to the first. Blocks that do nothing to the path may be left out.
    fn blocks_before(&self, rule: RuleId, position: u64, tell: &mut Tell<'_>);
}

impl<B: FrameState> Matching for Matcher<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.value(self.projection.part(rule)).map_or(0, |value| value.count)
    }

    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_> {
        let ahead = Stretches::of(self.fold, &self.projection, rule);
        Box::new(Walker { matcher: self, ahead, frames: Frames::default() })
    }

    fn blocks_before(&self, rule: RuleId, position: u64, tell: &mut Tell<'_>) {
        let mut behind = Stretches::before(self.fold, &self.projection, rule, position);
        let mut pending = Pending::default();
        while let Some(stretch) = behind.next_back() {
            let Some(value) = self.value(stretch.part) else { continue };
            let (leaves, enters) = (value.leaves, value.enters);
            let passed = pending.pass(leaves, enters, stretch.times);
            if passed > 0 {
                behind.pass_back(stretch, passed);
            } else if pending.frames() == enters && !value.reaches_lowest() {
                // Nothing happens in the frame itself; if the stretch is as deep before as
                // behind, then nor does it in the other iterations.
                let passed = if leaves == enters { stretch.times } else { 1 };
                pending.take(leaves, enters, passed);
                behind.pass_back(stretch, passed);
            } else if let Some(position) = behind.enter_back(stretch) {
                // Before the frame itself is entered, there are no blocks of it.
                let Some((symbol, _)) = self.projection.steps().get(stretch.part.index()) else { return };
                if pending.frames() != enters || !tell(*symbol, position) {
                    return;
                }
                pending.take(leaves, enters, 1);
            }
        }
    }
}

/// A walk through a stream from one occurrence to the next.
pub(super) trait Walk {
    /// Passes over `skip` occurrences and returns where the next one ends. When there are
    /// not so many, it ends up behind the last one, and `skip` is what there is still to
    /// pass over.
    fn next(&mut self, skip: &mut u64) -> Option<End>;
}

struct Walker<'m, B: FrameState> {
    matcher: &'m Matcher<'m, B>,
    ahead: Stretches<'m>,
    /// The frames that are open.
    frames: Frames<B>,
}

impl<B: FrameState> Walker<'_, B> {
    /// Passes over something if it has no more than `skip` occurrences.
    fn pass(&mut self, value: View<'_, B>, skip: &mut u64) -> bool {
        let Some(rest) = skip.checked_sub(self.frames.count_in(value)) else { return false };
        *skip = rest;
        self.frames.follow(value, &self.matcher.paths.words);
        true
    }

    /// Passes over as many iterations as have no more than `skip` occurrences, and returns
    /// how many these are.
    fn pass_stretch(&mut self, stretch: Stretch, skip: &mut u64) -> u64 {
        let (matcher, times) = (self.matcher, stretch.times);
        let Some(once) = matcher.value(stretch.part) else { return times };
        if times == 1 {
            return u64::from(self.pass(once, skip));
        }
        // The pass over the parts has made all these powers, so none is too large now.
        if let Ok(all) = matcher.paths.repeated(once, times)
            && self.pass(all.view(), skip)
        {
            return times;
        }
        if self.frames.count_in(once) > *skip {
            return 0;
        }
        let Ok(first) = matcher.paths.repeated(once, 1) else { return 0 };
        let most = *skip;
        pass_iterations(
            self,
            times,
            first,
            |walk, value| walk.frames.count_in(value.view()) <= most,
            |_, value| matcher.paths.squared(value).ok(),
            |walk, value, _| walk.pass(value.view(), skip),
        )
    }
}

impl<B: FrameState> Walk for Walker<'_, B> {
    fn next(&mut self, skip: &mut u64) -> Option<End> {
        while let Some(stretch) = self.ahead.next() {
            let passed = self.pass_stretch(stretch, skip);
            // The occurrence ends in the next iteration, if any is left.
            if passed < stretch.times
                && let Some(position) = self.ahead.enter(stretch, passed)
            {
                // A block that also enters is not yet in its own call.
                let depth = self.frames.depth();
                if let Some(block) = self.matcher.value(stretch.part) {
                    self.frames.follow(block, &self.matcher.paths.words);
                }
                return Some(End { position, depth });
            }
        }
        None
    }
}
