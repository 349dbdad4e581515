//! Functions that never call themselves, as most: their frames need no levels.
//!
//! A function is *tame* in a fold if, in every stream, it is entered only while it is not
//! open, and its blocks and exits come only while it is. Then a path is a plain sequence of
//! its own symbols: those of others do nothing, and where a frame begins or ends, nothing
//! goes on. One [`Word`] of 40 bytes is all there is to know of a rule, besides what it
//! does to the frame, which is told along the way in four bits: where it leads from outside
//! of the function and from inside of it. If that is ever wrong in a whole stream, the
//! function is not tame, and [`Matcher`](super::matcher::Matcher) is needed.
//!
//! One pass over the items, a few nanoseconds each; 4 bytes a rule and a word for each that
//! holds a symbol of the function.

use super::PathQuery;
use super::ahead::Forwards;
use super::back::{Backwards, Tell};
use super::frame::{FrameState, FrameWord as _, FrameWords as _, Word, Words};
use super::functions::Step;
use super::matcher::{End, Matching, Walk};
use crate::RuleId;
use crate::fold::{Fold, Item, Target};
use std::borrow::Cow;

/// Where a stretch leads: the lower two bits from outside of the function, the upper two
/// from inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way(u32);

const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;
/// Once wrong, always wrong.
const WRONG: u32 = 2;

impl Way {
    const NONE: Self = Self::new(OUTSIDE, INSIDE);
    const ENTER: Self = Self::new(INSIDE, WRONG);
    const LEAVE: Self = Self::new(WRONG, OUTSIDE);
    const BLOCK: Self = Self::new(WRONG, INSIDE);
    const LOST: Self = Self::new(WRONG, WRONG);

    const fn new(from_outside: u32, from_inside: u32) -> Self {
        Self(from_outside | from_inside << 2)
    }

    fn from(self, place: u32) -> u32 {
        if place == WRONG { WRONG } else { self.0 >> (2 * place) & 3 }
    }

    #[inline]
    fn then(self, next: Self) -> Self {
        if next == Self::NONE {
            return self;
        }
        Self::new(next.from(self.from(OUTSIDE)), next.from(self.from(INSIDE)))
    }

    /// The first symbol of the function is wrong outside or wrong inside, so a way leads on
    /// from one of the two at the most: what goes well twice always does.
    #[inline]
    fn repeated(self, times: u64) -> Self {
        match times {
            0 => Self::NONE,
            1 => self,
            _ => self.then(self),
        }
    }
}

/// The words of all symbols and rules of a fold for a path of a tame function.
pub(super) struct Tame<'a, B: FrameState> {
    fold: &'a Fold,
    measure: Words<B>,
    /// The word of what does nothing, then those of symbols, then of rules.
    words: Vec<Word<B>>,
    /// The way and the word of each symbol up to the last one that does something, of any
    /// other symbol, and of each rule.
    entries: Vec<Entry>,
    /// Where the rules begin in `entries`.
    first_rule: usize,
}

/// A way in the upper four bits, the index of a word in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u32);

impl Entry {
    const NOTHING: Self = Self(Way::NONE.0 << 28);

    /// Nothing if there are too many words.
    fn new(way: Way, word: usize) -> Option<Self> {
        let word = u32::try_from(word).ok().filter(|word| word >> 28 == 0)?;
        Some(Self(way.0 << 28 | word))
    }

    fn way(self) -> Way {
        Way(self.0 >> 28)
    }

    fn word(self) -> usize {
        (self.0 & 0x0fff_ffff) as usize
    }
}

/// Machine words that the words of long paths may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

impl<'a, B: FrameState> Tame<'a, B> {
    /// One pass over the rules; nothing if the function is not tame, or there is too much
    /// to keep.
    pub(super) fn new(fold: &'a Fold, query: &PathQuery) -> Option<Self> {
        let measure = Words::<B>::new(query);
        let mut tame =
            Self { fold, words: vec![measure.empty()], measure, entries: Vec::new(), first_rule: 1 };
        tame.add_symbols(query)?;
        let mut memory = 0;
        for rule in fold.rules() {
            let words = tame.words.len();
            let entry = tame.entry_of_body(fold.body(rule))?;
            if entry.way() == Way::LOST {
                return None;
            }
            tame.entries.push(entry);
            memory += tame.words[words..].iter().map(|word| word.words()).sum::<usize>();
            if memory > MOST_WORDS {
                return None;
            }
        }
        let mut roots = fold.streams().iter().map(|stream| tame.entry(Target::Rule(stream.root())));
        roots.all(|root| root.way().from(OUTSIDE) != WRONG).then_some(tame)
    }

    fn add_symbols(&mut self, query: &PathQuery) -> Option<()> {
        self.first_rule = query.symbols().map(|symbol| symbol.index() + 2).max().unwrap_or(1);
        self.entries.resize(self.first_rule, Entry::NOTHING);
        for &(symbol, step) in query.steps() {
            let (way, word) = match step {
                Step::Enter => (Way::ENTER, self.measure.seam().clone()),
                Step::Leave => (Way::LEAVE, self.measure.seam().clone()),
                Step::Block => (Way::BLOCK, self.measure.symbol(symbol)),
                // Frames of others are told apart only by order.
                Step::EnterOther | Step::BlockThenEnterOther => return None,
                // It calls itself.
                Step::BlockThenEnter => return None,
            };
            self.entries[symbol.index()] = Entry::new(way, self.words.len())?;
            self.words.push(word);
        }
        Some(())
    }

    /// The entry of a body. All its rules have theirs.
    fn entry_of_body(&mut self, body: &[Item]) -> Option<Entry> {
        let mut all: Option<(Way, Word<B>)> = None;
        for item in body {
            let entry = self.entry(item.target());
            if entry == Entry::NOTHING {
                continue;
            }
            let (mut next_way, mut next) = (entry.way(), Cow::Borrowed(&self.words[entry.word()]));
            if item.times() > 1 {
                next_way = next_way.repeated(item.times());
                next = Cow::Owned(self.measure.repeated(&next, item.times()));
            }
            match &mut all {
                Some((way, word)) => {
                    *way = way.then(next_way);
                    self.measure.append(word, &next);
                }
                None => all = Some((next_way, next.into_owned())),
            }
        }
        let Some((way, word)) = all else { return Some(Entry::NOTHING) };
        self.words.push(word);
        Entry::new(way, self.words.len() - 1)
    }

    #[inline]
    fn entry(&self, target: Target) -> Entry {
        let slot = match target {
            Target::Symbol(symbol) => symbol.index().min(self.first_rule - 1),
            Target::Rule(rule) => self.first_rule + rule.index(),
        };
        self.entries[slot]
    }

    #[inline]
    fn word(&self, target: Target) -> &Word<B> {
        &self.words[self.entry(target).word()]
    }

    #[inline]
    fn word_of(&self, item: Item) -> Cow<'_, Word<B>> {
        let once = self.word(item.target());
        match item.times() {
            1 => Cow::Borrowed(once),
            times => Cow::Owned(self.measure.repeated(once, times)),
        }
    }
}

impl<B: FrameState> Matching for Tame<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.word(Target::Rule(rule)).count_after(&B::default())
    }

    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_> {
        let ahead = Forwards::new(self.fold, rule);
        Box::new(Walker { tame: self, ahead, endings: B::default(), position: 0 })
    }

    fn blocks_before(&self, rule: RuleId, position: u64, tell: &mut Tell<'_>) {
        let mut backwards = Backwards::new(self.fold, rule, position);
        while let Some(item) = backwards.next() {
            let entry = self.entry(item.target());
            if entry == Entry::NOTHING {
                backwards.pass(item, item.times());
            } else if let Some(symbol) = backwards.enter(item)
                && (entry.way() != Way::BLOCK || !tell(symbol, backwards.position()))
            {
                return;
            }
        }
    }
}

struct Walker<'m, 'a, B: FrameState> {
    tame: &'m Tame<'a, B>,
    ahead: Forwards<'a>,
    /// The endings of what lies behind in the frame.
    endings: B,
    /// How many events lie behind.
    position: u64,
}

impl<B: FrameState> Walker<'_, '_, B> {
    /// Passes over a stretch if it has no more than `skip` occurrences.
    fn pass(&mut self, stretch: &Word<B>, events: u64, skip: &mut u64) -> bool {
        let Some(rest) = skip.checked_sub(stretch.count_after(&self.endings)) else { return false };
        *skip = rest;
        self.tame.measure.follow(&mut self.endings, stretch);
        self.position += events;
        true
    }

    /// Passes over an item, or over as many of its iterations as have no more than `skip`
    /// occurrences. Returns how many are left.
    fn pass_item(&mut self, item: Item, skip: &mut u64) -> u64 {
        let (tame, length) = (self.tame, self.tame.fold.target_length(item.target()));
        let mut rest = item.times();
        if tame.entry(item.target()) == Entry::NOTHING {
            self.position += rest * length;
            return 0;
        }
        if self.pass(&tame.word_of(item), rest * length, skip) {
            return 0;
        }
        let once = tame.word(item.target());
        if rest == 1 || once.count_after(&self.endings) > *skip {
            return rest;
        }
        // Words of 1, 2, 4, … iterations.
        let mut powers = vec![once.clone()];
        while let Some(last) = powers.last()
            && rest.checked_shr(powers.len() as u32).is_some_and(|enough| enough > 0)
            && last.count_after(&self.endings) <= *skip
        {
            let mut square = last.clone();
            tame.measure.append(&mut square, last);
            powers.push(square);
        }
        for (exponent, power) in powers.iter().enumerate().rev() {
            let iterations = 1u64 << exponent;
            if iterations <= rest && self.pass(power, iterations * length, skip) {
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
                self.tame.measure.follow(&mut self.endings, self.tame.word(target));
                self.position += 1;
                return Some(End { position: self.position - 1, depth: 1 });
            }
        }
        None
    }
}
