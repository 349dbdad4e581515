//! A first look at a short path of a function that never calls itself: straight over all
//! rules, with nothing made of the function beforehand.
//!
//! All [words](word) lie in one list, sixteen bytes for each rule and symbol, and every item
//! costs one look into it; which items hold something of the function is not asked where no
//! processor could foresee it. One pass over all items, 1 to 4 ns each, whatever the share
//! that the function has of them. Once more paths of the function are asked for, a
//! [slice](super::slice) is worth its while.

mod walk;
mod word;

use super::PathQuery;
use super::back::{self, FrameLevels, Nesting};
use super::locate::{EmitBlock, PathEnds, PathMatcher};
use crate::RuleId;
use crate::fold::{Fold, Item, Target};
use walk::Walker;
use word::{Growing, Word};

/// A function is rare if it is in less than one in so many.
const RARE: usize = 8;

/// So many items of a long body are gone through in one way, by how so many of them look.
const STRETCH: usize = 1 << 12;
const SAMPLE: usize = 1 << 6;

/// The words of all rules and symbols.
pub(super) struct Direct<'a> {
    fold: &'a Fold,
    words: Words,
}

/// The words of all rules, then those of all symbols.
struct Words {
    all: Vec<Word>,
    rules: u32,
}

impl<'a> Direct<'a> {
    /// One pass over the rules; nothing if the function is not tame, or the path is long or
    /// has gaps.
    pub(super) fn new(fold: &'a Fold, query: &PathQuery) -> Option<Self> {
        if query.len() > Word::LONGEST || query.has_gaps() {
            return None;
        }
        let mut words = Words::of_symbols(fold, query)?;
        let mut held = 0;
        for (rule, body) in fold.bodies().enumerate() {
            let word = words.of_body(body, held < rule / RARE)?;
            held += usize::from(!word.is_foreign());
            words.all[rule] = word;
        }
        let mut roots = fold.streams().iter().map(|stream| words.get(Target::Rule(stream.root())));
        roots.all(|root| root.begins_outside()).then_some(Self { fold, words })
    }
}

impl Words {
    /// Rules have none yet.
    fn of_symbols(fold: &Fold, query: &PathQuery) -> Option<Self> {
        let (rules, symbols) = (fold.rules().len(), fold.alphabet().len());
        if rules + symbols >= Item::MOST_SLOTS {
            return None;
        }
        let mut all = vec![Word::FOREIGN; rules + symbols];
        for &(symbol, step) in query.steps() {
            *all.get_mut(rules + symbol.index())? = Word::of_symbol(query, symbol, step)?;
        }
        Some(Self { all, rules: rules as u32 })
    }

    fn get(&self, target: Target) -> Word {
        self.of(Item::new(target, 1)).copied().unwrap_or(Word::FOREIGN)
    }

    /// The word of one iteration; nothing for a symbol that is not in the alphabet.
    #[inline(always)]
    fn of(&self, item: Item) -> Option<&Word> {
        self.all.get(item.slot(self.rules))
    }

    /// The word of a body; nothing if the function is not tame.
    #[inline]
    fn of_body(&self, body: &[Item], is_rare: bool) -> Option<Word> {
        // Most rules of most folds are pairs.
        if let &[first, second] = body {
            let (one, other) = (self.of(first)?, self.of(second)?);
            if is_rare && one.is_foreign() && other.is_foreign() {
                return Some(Word::FOREIGN);
            }
            if one.is_same(first.times()) & other.is_same(second.times()) {
                return one.then(other);
            }
        }
        self.of_any_body(body)
    }

    fn of_any_body(&self, body: &[Item]) -> Option<Word> {
        let mut all = Word::FOREIGN;
        for (index, &item) in body.iter().enumerate() {
            let next = self.of(item)?;
            if next.is_foreign() {
                continue;
            }
            all = all.then(&next.repeated(item.times())?)?;
            if let Some(growing) = Growing::new(all) {
                return self.grown(growing, &body[index + 1..]);
            }
        }
        Some(all)
    }

    fn grown(&self, mut growing: Growing, items: &[Item]) -> Option<Word> {
        for stretch in items.chunks(STRETCH) {
            let grow = if self.is_rare_in(stretch) { Self::grow_by_few } else { Self::grow };
            growing = grow(self, growing, stretch)?;
        }
        growing.finish()
    }

    /// A guess by the first items.
    fn is_rare_in(&self, items: &[Item]) -> bool {
        let Some(first) = items.first_chunk::<SAMPLE>() else { return false };
        let holds = |item: &&Item| self.of(**item).is_some_and(|word| !word.is_foreign());
        first.iter().filter(holds).count() < SAMPLE / RARE
    }

    /// Where few items hold something, nothing is what the processor expects.
    fn grow_by_few(&self, mut growing: Growing, items: &[Item]) -> Option<Growing> {
        for &item in items {
            let next = self.of(item)?;
            if !next.is_foreign() {
                growing.append(next, item.times());
            }
        }
        Some(growing)
    }

    /// Otherwise nothing depends on whether they do.
    fn grow(&self, growing: Growing, items: &[Item]) -> Option<Growing> {
        items.iter().try_fold(growing, |mut growing, &item| {
            growing.append(self.of(item)?, item.times());
            Some(growing)
        })
    }
}

impl PathMatcher for Direct<'_> {
    fn count(&self, rule: RuleId) -> u64 {
        self.words.get(Target::Rule(rule)).count()
    }

    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_> {
        Box::new(Walker::new(self.fold, &self.words, rule))
    }

    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>) {
        back::blocks(self, self.fold, rule, position, emit);
    }
}

/// Only from inside a frame of a tame function does anyone look back: all that is met there
/// is in this frame, up to where it was entered.
impl Nesting for Direct<'_> {
    fn frames(&self, target: Target) -> Option<FrameLevels> {
        let word = self.words.get(target);
        let is_enter = matches!(target, Target::Symbol(_)) && word.is_enter();
        let levels = FrameLevels { leaves: 0, enters: is_enter.into(), has_block: !is_enter };
        (!word.is_foreign()).then_some(levels)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fold::{FoldBuilder, FoldedStream};
    use crate::questions::path::{Functions, PathFound};
    use crate::trace::{Alphabet, Event, Field, Role, Value};
    use crate::{Fold, Symbol};

    const ENTER: u32 = 0;
    const LEAVE: u32 = 1;
    const B0: u32 = 2;
    const B1: u32 = 3;
    const OTHER: u32 = 4;

    fn alphabet() -> Alphabet {
        let mut alphabet = Alphabet::default();
        let fields = &[Field { key: "function", value: Value::Text(b"f") }];
        let block = |name| Event { role: Role::Block, fields, ..Event::named(name) };
        let leave = Event { role: Role::Leave, fields, ..Event::named("return") };
        let enter = Event { role: Role::Enter, ..Event::named("f") };
        for event in [enter, leave, block("B0"), block("B1"), Event::named("other")] {
            alphabet.intern(&event, None).unwrap();
        }
        alphabet
    }

    fn fold_of(items: &[(u32, u64)]) -> Fold {
        let mut builder = FoldBuilder::new(alphabet());
        let item = |&(raw, times)| Item::new(Target::Symbol(Symbol::from_raw(raw)), times);
        let items: Vec<Item> = items.iter().map(item).collect();
        let root = builder.root_rule(items).unwrap();
        builder.stream(FoldedStream::new("main", "none", root));
        builder.finish()
    }

    fn query(blocks: &[u32]) -> PathQuery {
        let functions = Functions::of(&alphabet()).unwrap();
        let blocks = blocks.iter().map(|&raw| vec![Symbol::from_raw(raw)]).collect();
        PathQuery::new(&functions, functions.named(b"f").unwrap(), blocks).unwrap()
    }

    fn count(items: &[(u32, u64)], blocks: &[u32]) -> Option<u64> {
        let fold = fold_of(items);
        PathFound::directly(&fold, &query(blocks)).map(|found| found.count().unwrap())
    }

    #[test]
    fn short_paths_of_functions_that_never_call_themselves() {
        let call = [(ENTER, 1), (B0, 3), (OTHER, 9), (B0, 1), (B1, 2), (LEAVE, 1)];
        assert_eq!(count(&call, &[B0]), Some(4));
        assert_eq!(count(&call, &[B0, B0]), Some(3));
        assert_eq!(count(&call, &[B0, B0, B1]), Some(1));
        assert_eq!(count(&[call, call].concat(), &[B1, B1]), Some(2));
        assert_eq!(count(&call[..4], &[B0; 4]), Some(1));
        let many = [(ENTER, 1), (B0, 1 << 60), (OTHER, 1), (LEAVE, 1)];
        assert_eq!(count(&many, &[B0; 13]), Some((1 << 60) - 12));
    }

    #[test]
    fn all_else_is_left_to_others() {
        assert_eq!(count(&[(ENTER, 2), (B0, 1)], &[B0]), None);
        assert_eq!(count(&[(ENTER, 1), (B0, 1), (ENTER, 1)], &[B0]), None);
        assert_eq!(count(&[(ENTER, 1), (LEAVE, 2)], &[B0]), None);
        assert_eq!(count(&[(OTHER, 1), (B0, 1)], &[B0]), None);
        assert_eq!(count(&[(LEAVE, 1), (ENTER, 1)], &[B0]), None);
        assert_eq!(count(&[(ENTER, 1), (OTHER + 1, 1)], &[B0]), None);
        assert_eq!(count(&[(ENTER, 1), (B0, 20)], &[B0; 14]), None);
    }
}
