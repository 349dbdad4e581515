//! Functions that never call themselves, as most: their frames need no levels.
//!
//! Where a function is tame (see [`way`](super::way)), one [`Word`] is all there is to know
//! of a part: the symbols of others do nothing, and where a frame begins or ends, nothing
//! goes on.
//!
//! One pass over the items of the parts, a few nanoseconds each. Memory: a word for each
//! part, of 24 bytes for paths of up to 32 blocks, of 40 for up to 64.

use super::PathQuery;
use super::back::Tell;
use super::frame::{FrameState, FrameWord as _, FrameWords as _, Word, Words};
use super::functions::Step;
use super::matcher::{End, Matching, Walk};
use super::projection::{Part, Projection, Stretch, Stretches};
use crate::RuleId;
use crate::fold::Fold;
use crate::questions::halves::pass_iterations;
use std::sync::Arc;

/// The words of all parts of a tame function for a path of it.
pub(super) struct Tame<'a, B: FrameState> {
    fold: &'a Fold,
    projection: Arc<Projection>,
    measure: Words<B>,
    words: Vec<Word<B>>,
}

/// Machine words that the words of long paths may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

impl<'a, B: FrameState> Tame<'a, B> {
    /// One pass over the parts; nothing if there is too much to keep.
    pub(super) fn new(fold: &'a Fold, projection: &Arc<Projection>, query: &PathQuery) -> Option<Self> {
        let measure = Words::<B>::new(query);
        let mut words = Vec::with_capacity(projection.len());
        words.extend(projection.steps().iter().map(|&(symbol, step)| match step {
            Step::Block => measure.symbol(symbol),
            // The others do not come in tame functions.
            _ => measure.seam().clone(),
        }));
        let (mut memory, empty) = (0, measure.empty());
        for body in projection.bodies(fold) {
            let mut all = empty.clone();
            for (part, times) in body {
                let once = &words[part.index()];
                match times {
                    1 => measure.append(&mut all, once),
                    times => measure.append(&mut all, &measure.repeated(once, times)),
                }
            }
            memory += all.words();
            if memory > MOST_WORDS {
                return None;
            }
            words.push(all);
        }
        Some(Self { fold, projection: projection.clone(), measure, words })
    }

    fn word(&self, part: Part) -> &Word<B> {
        &self.words[part.index()]
    }
}

impl<B: FrameState> Matching for Tame<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        match self.projection.part(rule) {
            Part::NONE => 0,
            part => self.word(part).count_after(&B::default()),
        }
    }

    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_> {
        let ahead = Stretches::of(self.fold, &self.projection, rule);
        Box::new(Walker { tame: self, ahead, endings: B::default() })
    }

    fn blocks_before(&self, rule: RuleId, position: u64, tell: &mut Tell<'_>) {
        let mut behind = Stretches::before(self.fold, &self.projection, rule, position);
        while let Some(stretch) = behind.next_back() {
            if let Some(position) = behind.enter_back(stretch) {
                // Before the frame itself is entered, there are no blocks of it.
                match self.projection.steps().get(stretch.part.index()) {
                    Some(&(symbol, Step::Block)) if tell(symbol, position) => {}
                    _ => return,
                }
            }
        }
    }
}

struct Walker<'m, B: FrameState> {
    tame: &'m Tame<'m, B>,
    ahead: Stretches<'m>,
    /// The endings of what lies behind in the frame.
    endings: B,
}

impl<B: FrameState> Walker<'_, B> {
    /// Passes over something if it has no more than `skip` occurrences.
    fn pass(&mut self, word: &Word<B>, skip: &mut u64) -> bool {
        let Some(rest) = skip.checked_sub(word.count_after(&self.endings)) else { return false };
        *skip = rest;
        self.tame.measure.follow(&mut self.endings, word);
        true
    }

    /// Passes over as many iterations as have no more than `skip` occurrences, and returns
    /// how many these are.
    fn pass_stretch(&mut self, stretch: Stretch, skip: &mut u64) -> u64 {
        let (tame, times) = (self.tame, stretch.times);
        let once = tame.word(stretch.part);
        if self.pass(&tame.measure.repeated(once, times), skip) {
            return times;
        }
        if times == 1 || once.count_after(&self.endings) > *skip {
            return 0;
        }
        let most = *skip;
        pass_iterations(
            self,
            times,
            once.clone(),
            |walk, word| word.count_after(&walk.endings) <= most,
            |_, word| {
                let mut twice = word.clone();
                tame.measure.append(&mut twice, word);
                Some(twice)
            },
            |walk, word, _| walk.pass(word, skip),
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
                self.tame.measure.follow(&mut self.endings, self.tame.word(stretch.part));
                return Some(End { position, depth: 1 });
            }
        }
        None
    }
}
