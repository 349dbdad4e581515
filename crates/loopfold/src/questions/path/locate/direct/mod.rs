//! Finds a short path of a non-recursive function in one pass over all rules, without a slice
//! of the function.
//!
//! All [summaries](summary) lie in one list, sixteen bytes for each node of the fold, and every
//! item costs one look-up; there is no branch on whether an item contains a symbol of the
//! function where no processor could predict it. One pass over all items, 1 to 4 ns each,
//! independent of the function's share of them. For further paths of the function a
//! [slice](super::super::slice) pays.

mod summary;

use super::super::PathQuery;
use super::super::brackets::{Brackets, HasBlock};
use super::reverse_scan::{EmitBlock, blocks_before};
use super::{Locator, PathEnds, PathGuide, PathMatcher, inside_one_frame};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::measure::bottom_up;
use crate::fold::{Fold, Grammar as _, Item, Node, Target};
use crate::{Error, RuleId};
use summary::{DirectSummary, Growing};

/// A function is rare if it is in less than one in so many.
const RARE: usize = 8;

/// This many items of a long body are processed by one method, chosen by a sample of this many.
const STRETCH: usize = 1 << 12;
const SAMPLE: usize = 1 << 6;

/// The summaries of all nodes of a fold.
pub(super) struct DirectMatcher<'a> {
    fold: &'a Fold,
    summaries: Vec<DirectSummary>,
}

impl<'a> DirectMatcher<'a> {
    /// One pass over the rules. Returns `None` if the function is recursive, or the path is
    /// long or has gaps.
    pub(super) fn new(fold: &'a Fold, query: &PathQuery) -> Option<Self> {
        if query.len() > DirectSummary::LONGEST || query.has_gaps() {
            return None;
        }
        let mut symbols = vec![DirectSummary::IRRELEVANT; fold.symbol_count()];
        for &(symbol, step) in query.steps() {
            *symbols.get_mut(symbol.index())? = DirectSummary::of_symbol(query, symbol, step)?;
        }
        let mut held = 0;
        let of_rule = |rule: RuleId, body: &[Item], known: &[DirectSummary]| {
            let summary = Known { fold, summaries: known }.of_body(body, held < rule.index() / RARE);
            let summary = summary.ok_or_else(|| Error::invalid("the function is recursive"))?;
            held += usize::from(!summary.is_irrelevant());
            Ok(summary)
        };
        let summaries = bottom_up(fold, symbols, of_rule).ok()?;
        let matcher = Self { fold, summaries };
        let mut roots = fold.streams().iter().map(|stream| matcher.known().of(fold.rule_node(stream.root())));
        roots.all(|root| root.begins_outside()).then_some(matcher)
    }

    #[inline]
    fn known(&self) -> Known<'_> {
        Known { fold: self.fold, summaries: &self.summaries }
    }
}

/// The summaries of the first nodes of a fold.
#[derive(Clone, Copy)]
struct Known<'m> {
    fold: &'m Fold,
    summaries: &'m [DirectSummary],
}

impl<'m> Known<'m> {
    fn of(self, node: Node) -> &'m DirectSummary {
        &self.summaries[node.index()]
    }

    /// The summary of one iteration.
    #[inline(always)]
    fn once(self, item: Item) -> &'m DirectSummary {
        self.of(self.fold.item_node(item))
    }

    /// The summary of a body. Returns `None` if the function is recursive.
    #[inline]
    fn of_body(self, body: &[Item], is_rare: bool) -> Option<DirectSummary> {
        // Most rules of most folds are pairs.
        if let &[first, second] = body {
            let (one, other) = (self.once(first), self.once(second));
            if is_rare && one.is_irrelevant() && other.is_irrelevant() {
                return Some(DirectSummary::IRRELEVANT);
            }
            if one.is_same(first.times()) & other.is_same(second.times()) {
                return one.then(other);
            }
        }
        self.of_any_body(body)
    }

    fn of_any_body(self, body: &[Item]) -> Option<DirectSummary> {
        let mut all = DirectSummary::IRRELEVANT;
        for (index, &item) in body.iter().enumerate() {
            let next = self.once(item);
            if next.is_irrelevant() {
                continue;
            }
            all = all.then(&next.repeated(item.times())?)?;
            if let Some(growing) = Growing::new(all) {
                return self.grown(growing, &body[index + 1..]);
            }
        }
        Some(all)
    }

    fn grown(self, mut growing: Growing, items: &[Item]) -> Option<DirectSummary> {
        for stretch in items.chunks(STRETCH) {
            match self.is_rare_in(stretch) {
                true => self.grow_by_few(&mut growing, stretch),
                false => self.grow(&mut growing, stretch),
            }
        }
        growing.finish()
    }

    /// A guess by the first items.
    fn is_rare_in(self, items: &[Item]) -> bool {
        let Some(first) = items.first_chunk::<SAMPLE>() else { return false };
        first.iter().filter(|&&item| !self.once(item).is_irrelevant()).count() < SAMPLE / RARE
    }

    /// Where few items hold something, the processor expects none to.
    fn grow_by_few(self, growing: &mut Growing, items: &[Item]) {
        for &item in items {
            let next = self.once(item);
            if !next.is_irrelevant() {
                growing.append(next, item.times());
            }
        }
    }

    /// Otherwise no branch depends on whether they do.
    fn grow(self, growing: &mut Growing, items: &[Item]) {
        *growing = items.iter().fold(*growing, |mut growing, &item| {
            growing.append(self.once(item), item.times());
            growing
        });
    }
}

impl PathMatcher for DirectMatcher<'_> {
    fn count(&self, rule: RuleId) -> u64 {
        self.known().of(self.fold.rule_node(rule)).count()
    }

    fn ends(&self, rule: RuleId) -> Box<dyn PathEnds + '_> {
        Box::new(Locator::new(self.fold, rule, DirectGuide { known: self.known(), suffixes: 0 }))
    }

    fn blocks_before(&self, rule: RuleId, position: u64, emit: &mut EmitBlock<'_>) {
        let brackets = |item: Item| match self.known().once(item) {
            summary if summary.is_irrelevant() => Brackets::default(),
            summary if summary.is_enter() && matches!(item.target(), Target::Symbol(_)) => {
                Brackets::new(0, 1, HasBlock(false))
            }
            _ => inside_one_frame(),
        };
        blocks_before(Cursor::at(self.fold, rule, position), brackets, emit);
    }
}

struct DirectGuide<'m> {
    known: Known<'m>,
    /// The suffixes of what lies behind.
    suffixes: u32,
}

impl Guide<Item> for DirectGuide<'_> {
    type Value = DirectSummary;

    #[inline]
    fn once(&self, item: Item) -> Option<DirectSummary> {
        Some(*self.known.once(item)).filter(|summary| !summary.is_irrelevant())
    }

    fn pass_items(&mut self, items: &[Item], skip: &mut u64) -> usize {
        let mut pass = |item: Item| {
            // The pass over the rules has repeated all of them.
            let Some(all) = self.once(item).and_then(|once| once.repeated(item.times())) else { return true };
            let Some(rest) = skip.checked_sub(self.count(&all)) else { return false };
            *skip = rest;
            self.pass(&all);
            true
        };
        items.iter().position(|&item| !pass(item)).unwrap_or(items.len())
    }

    fn repeated(&self, once: &DirectSummary, times: u64) -> Option<DirectSummary> {
        once.repeated(times)
    }

    #[inline]
    fn count(&self, summary: &DirectSummary) -> u64 {
        summary.count_after(self.suffixes)
    }

    #[inline]
    fn pass(&mut self, summary: &DirectSummary) {
        self.suffixes = summary.follow(self.suffixes);
    }
}

impl PathGuide<Item> for DirectGuide<'_> {
    fn depth(&self) -> u64 {
        1
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
    fn short_paths_of_functions_that_are_not_recursive() {
        let call = [(ENTER, 1), (B0, 3), (OTHER, 9), (B0, 1), (B1, 2), (LEAVE, 1)];
        assert_eq!(count(&call, &[B0]), Some(4));
        assert_eq!(count(&call, &[B0, B0]), Some(3));
        assert_eq!(count(&call, &[B0, B0, B1]), Some(1));
        assert_eq!(count(&[call, call].concat(), &[B1, B1]), Some(2));
        assert_eq!(count(&call[..4], &[B0; 4]), Some(1));
        // A symbol that is not in the alphabet is irrelevant.
        assert_eq!(count(&[(ENTER, 1), (B0, 1), (OTHER + 1, 1), (B0, 1)], &[B0; 2]), Some(1));
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
        assert_eq!(count(&[(ENTER, 1), (B0, 20)], &[B0; 14]), None);
    }
}
