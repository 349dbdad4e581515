//! The words of all rules, and the walk that they guide to where the query occurs.
//!
//! Making the words is one pass over the rules. A rule without a symbol of the query
//! costs one look at each of its items and has no word of its own; the others have one
//! of 40 bytes, and for queries of more than 64 events up to three eighths of a byte for
//! each event besides.
//!
//! The walk keeps the suffixes of what lies behind it, so it knows for every stretch
//! ahead how many occurrences end in it. It passes over what holds none, bisects
//! repeats, and goes into the rest. Finding one occurrence costs at most the items of
//! the rules it goes into, and the logarithm of each repeat; the stack is as deep as the
//! rules are.

use super::bits::Bits;
use super::summary::{MatchMonoid, MatchSummary};
use crate::fold::{Fold, Item, Measure, Target};
use crate::questions::Query;
use crate::questions::halves::pass_iterations;
use crate::{Error, Result, RuleId};
use std::borrow::Cow;

/// Machine words that the words of long queries may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

/// The words of all symbols and rules of a fold for one query.
pub(super) struct Matcher<'a, B> {
    fold: &'a Fold,
    measure: MatchMonoid<B>,
    /// The word of what is irrelevant, then those of the query's symbols, then of rules.
    words: Vec<MatchSummary<B>>,
    /// The word of each symbol up to the query's last one, of any other symbol, and of
    /// each rule.
    indices: Vec<u32>,
    /// Where the rules begin in `indices`.
    first_rule: usize,
}

/// The index of the word of what holds no symbol of the query.
const IRRELEVANT: u32 = 0;

impl<'a, B: Bits> Matcher<'a, B> {
    /// One pass over the rules.
    pub(super) fn new(fold: &'a Fold, query: &Query) -> Result<Self> {
        let measure = MatchMonoid::new(query);
        let mut words = vec![measure.irrelevant().clone()];
        let first_rule = measure.symbols().map(|(symbol, _)| symbol.index() + 2).max().unwrap_or(1);
        let mut indices = Vec::with_capacity(first_rule + fold.rules().len());
        indices.resize(first_rule, IRRELEVANT);
        for (symbol, word) in measure.symbols() {
            indices[symbol.index()] = words.len() as u32;
            words.push(word.clone());
        }
        let mut matcher = Self { fold, measure, words, indices, first_rule };
        let mut memory = 0;
        for rule in fold.rules() {
            let index = matcher.index_of_body(fold.body(rule));
            matcher.indices.push(index);
            if index as usize + 1 == matcher.words.len() {
                memory += matcher.words[index as usize].words();
            }
            if memory > MOST_WORDS {
                return Err(Error::limit(format_args!(
                    "looking for {} events in this fold takes more than a gigabyte of memory; look for fewer",
                    query.len()
                )));
            }
        }
        Ok(matcher)
    }

    /// The word of a body, added if it is not irrelevant. All its rules have theirs.
    fn index_of_body(&mut self, body: &[Item]) -> u32 {
        let Some(first) = body.iter().position(|item| self.index(item.target()) != IRRELEVANT) else {
            return if body.is_empty() { self.add(self.measure.empty()) } else { IRRELEVANT };
        };
        let (mut word, rest) = match first {
            0 => (self.word_of(body[0]).into_owned(), body[1..].iter()),
            _ => (self.measure.irrelevant().clone(), body[first..].iter()),
        };
        for &item in rest {
            self.measure.append(&mut word, &self.word_of(item));
        }
        self.add(word)
    }

    fn add(&mut self, word: MatchSummary<B>) -> u32 {
        // There are fewer than 2^31 rules and symbols each.
        self.words.push(word);
        self.words.len() as u32 - 1
    }

    #[inline]
    fn index(&self, target: Target) -> u32 {
        let slot = match target {
            Target::Symbol(symbol) => symbol.index().min(self.first_rule - 1),
            Target::Rule(rule) => self.first_rule + rule.index(),
        };
        self.indices[slot]
    }

    #[inline]
    fn word(&self, target: Target) -> &MatchSummary<B> {
        &self.words[self.index(target) as usize]
    }

    #[inline]
    fn word_of(&self, item: Item) -> Cow<'_, MatchSummary<B>> {
        let once = self.word(item.target());
        match item.times() {
            1 => Cow::Borrowed(once),
            times => Cow::Owned(self.measure.repeated(once, times)),
        }
    }
}

/// What can be asked of a matcher, whatever the width of its sets.
pub(super) trait Matching: Send + Sync {
    /// How often the query occurs in a rule.
    fn count(&self, rule: RuleId) -> u64;

    /// A walk from the beginning of a rule.
    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_>;
}

impl<B: Bits> Matching for Matcher<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.word(Target::Rule(rule)).count
    }

    fn walk(&self, rule: RuleId) -> Box<dyn Walk + '_> {
        let whole = Ahead::Item(Item::new(Target::Rule(rule), 1));
        Box::new(Walker { matcher: self, ahead: vec![whole], suffixes: B::default(), position: 0 })
    }
}

/// A walk through a rule from one occurrence to the next.
pub(super) trait Walk {
    /// Passes over `skip` occurrences and returns where the last event of the next one
    /// is. When there are not so many, it ends up behind the last one, and `skip` is what
    /// there is still to pass over.
    fn next(&mut self, skip: &mut u64) -> Option<u64>;

    /// Goes on to a position and returns how many occurrences ended on the way.
    fn pass_until(&mut self, position: u64) -> u64;
}

struct Walker<'m, 'a, B> {
    matcher: &'m Matcher<'a, B>,
    /// What is still to come, the nearest last.
    ahead: Vec<Ahead<'a>>,
    /// The suffixes of what lies behind.
    suffixes: B,
    /// How many events lie behind.
    position: u64,
}

enum Ahead<'a> {
    /// One item.
    Item(Item),
    /// The rest of a body.
    Items(std::slice::Iter<'a, Item>),
}

impl<B: Bits> Walker<'_, '_, B> {
    fn next_item(&mut self) -> Option<Item> {
        loop {
            match self.ahead.last_mut()? {
                Ahead::Items(items) => {
                    if let Some(&item) = items.next() {
                        return Some(item);
                    }
                    self.ahead.pop();
                }
                Ahead::Item(item) => {
                    let item = *item;
                    self.ahead.pop();
                    return Some(item);
                }
            }
        }
    }

    /// Puts what repeats back in front.
    fn put_back(&mut self, target: Target, times: u64) {
        if times > 0 {
            self.ahead.push(Ahead::Item(Item::new(target, times)));
        }
    }

    /// Passes over events with this word.
    fn pass(&mut self, word: &MatchSummary<B>, events: u64) {
        self.matcher.measure.follow(&mut self.suffixes, word);
        self.position += events;
    }

    /// Passes over as many iterations of an item as have no more than `skip`
    /// occurrences, and returns how many iterations and occurrences that were.
    fn pass_item(&mut self, item: Item, skip: u64) -> (u64, u64) {
        let matcher = self.matcher;
        let length = matcher.fold.target_length(item.target());
        let mut passed = 0;
        let iterations = pass_iterations(
            self,
            item.times(),
            matcher.word(item.target()).clone(),
            |walk, word| word.count_after(&walk.suffixes) <= skip,
            |_, word| Some(matcher.measure.joined(word, word)),
            |walk, word, iterations| {
                let hits = word.count_after(&walk.suffixes);
                let fits = hits <= skip - passed;
                if fits {
                    walk.pass(word, iterations * length);
                    passed += hits;
                }
                fits
            },
        );
        (iterations, passed)
    }
}

impl<B: Bits> Walk for Walker<'_, '_, B> {
    fn next(&mut self, skip: &mut u64) -> Option<u64> {
        let fold = self.matcher.fold;
        while let Some(item) = self.next_item() {
            let (target, times) = (item.target(), item.times());
            let word = self.matcher.word_of(item);
            let hits = word.count_after(&self.suffixes);
            if hits <= *skip {
                *skip -= hits;
                self.pass(&word, fold.item_length(item));
                continue;
            }
            if times > 1 {
                let in_first = self.matcher.word(target).count_after(&self.suffixes);
                let (iterations, passed) =
                    if in_first > *skip { (0, 0) } else { self.pass_item(item, *skip) };
                *skip -= passed;
                self.put_back(target, times - iterations - 1);
                self.put_back(target, 1);
                continue;
            }
            match target {
                Target::Rule(rule) => self.ahead.push(Ahead::Items(fold.body(rule).iter())),
                Target::Symbol(_) => {
                    self.pass(&word, 1);
                    return Some(self.position - 1);
                }
            }
        }
        None
    }

    fn pass_until(&mut self, position: u64) -> u64 {
        let fold = self.matcher.fold;
        let mut passed = 0u64;
        while self.position < position
            && let Some(item) = self.next_item()
        {
            let (target, times) = (item.target(), item.times());
            let length = fold.target_length(target);
            let whole = (position - self.position).checked_div(length).unwrap_or(times).min(times);
            if whole > 0 {
                let word = self.matcher.measure.repeated(self.matcher.word(target), whole);
                passed = passed.saturating_add(word.count_after(&self.suffixes));
                self.pass(&word, whole * length);
            }
            if whole < times {
                self.put_back(target, times - whole - 1);
                match target {
                    Target::Rule(rule) if self.position < position => {
                        self.ahead.push(Ahead::Items(fold.body(rule).iter()));
                    }
                    _ => self.put_back(target, 1),
                }
            }
        }
        passed
    }
}
