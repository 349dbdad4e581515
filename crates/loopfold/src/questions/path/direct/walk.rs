//! The walk to where a path occurs: over all items of the rules that it goes into, a
//! nanosecond for those without anything of the function.

use super::super::locate::{End, PathEnds};
use super::Words;
use super::word::Word;
use crate::RuleId;
use crate::fold::{Fold, Target};
use crate::questions::halves::pass_iterations;
use std::ops::Range;

/// What a walk has before it.
enum Ahead {
    /// Items of a rule that begins at a position, by their places among all items.
    Items(Range<usize>, u64),
    Stretch(Stretch),
}

/// Some iterations of an item.
#[derive(Clone, Copy)]
struct Stretch {
    target: Target,
    times: u64,
    /// Where they begin in the stream.
    position: u64,
}

pub(super) struct Walker<'m> {
    fold: &'m Fold,
    words: &'m Words,
    /// The nearest last.
    ahead: Vec<Ahead>,
    /// The endings of what lies behind.
    endings: u32,
}

impl<'m> Walker<'m> {
    /// A walk from the beginning of a rule that is a whole stream.
    pub(super) fn new(fold: &'m Fold, words: &'m Words, rule: RuleId) -> Self {
        let ahead = vec![Ahead::Items(fold.item_range(rule), 0)];
        Self { fold, words, ahead, endings: 0 }
    }

    /// Passes over something if it has no more than `skip` occurrences.
    #[inline]
    fn pass(&mut self, word: &Word, skip: &mut u64) -> bool {
        let Some(rest) = skip.checked_sub(word.count_after(self.endings)) else { return false };
        *skip = rest;
        self.endings = word.follow(self.endings);
        true
    }

    /// Passes over items that have no more than `skip` occurrences, up to the place of the
    /// first that has more.
    fn pass_items(&mut self, places: Range<usize>, skip: &mut u64) -> Option<usize> {
        for (place, &item) in places.clone().zip(&self.fold.all_items()[places]) {
            let word = self.words.of(item).filter(|word| !word.is_foreign());
            // The pass over the rules has repeated all of them.
            let Some(word) = word.and_then(|once| once.repeated(item.times())) else { continue };
            if !self.pass(&word, skip) {
                return Some(place);
            }
        }
        None
    }

    /// Passes over as many iterations as have no more than `skip` occurrences, and returns
    /// how many these are.
    fn pass_stretch(&mut self, stretch: Stretch, skip: &mut u64) -> u64 {
        let (once, most) = (self.words.get(stretch.target), *skip);
        if once.count_after(self.endings) > most {
            return 0;
        }
        pass_iterations(
            self,
            stretch.times,
            once,
            |walk, word| word.count_after(walk.endings) <= most,
            |_, word| word.then(word),
            |walk, word, _| walk.pass(word, skip),
        )
    }

    /// The item at a place, in a rule that begins at a position.
    fn stretch(&self, place: usize, base: u64) -> Stretch {
        let item = self.fold.all_items()[place];
        let length = self.fold.target_length(item.target());
        let position = base + (self.fold.item_end(place) - item.times() * length);
        Stretch { target: item.target(), times: item.times(), position }
    }
}

impl PathEnds for Walker<'_> {
    fn next(&mut self, skip: &mut u64) -> Option<End> {
        loop {
            let stretch = match self.ahead.pop()? {
                Ahead::Items(places, base) => {
                    let end = places.end;
                    let Some(place) = self.pass_items(places, skip) else { continue };
                    self.ahead.push(Ahead::Items(place + 1..end, base));
                    self.stretch(place, base)
                }
                Ahead::Stretch(stretch) => stretch,
            };
            let passed = self.pass_stretch(stretch, skip);
            let Some(rest) = (stretch.times - passed).checked_sub(1) else { continue };
            // The occurrence ends in the next iteration; those after it stay ahead.
            let length = self.fold.target_length(stretch.target);
            let position = stretch.position + passed * length;
            if rest > 0 {
                let position = position + length;
                self.ahead.push(Ahead::Stretch(Stretch { times: rest, position, ..stretch }));
            }
            match stretch.target {
                Target::Rule(rule) => self.ahead.push(Ahead::Items(self.fold.item_range(rule), position)),
                Target::Symbol(_) => {
                    self.endings = self.words.get(stretch.target).follow(self.endings);
                    return Some(End { position, depth: 1 });
                }
            }
        }
    }
}
