//! The match summaries of all rules, and the cursor that they guide to where the query occurs.
//!
//! One pass over the rules makes the summaries. A rule without a symbol of the query costs one
//! test of each of its items and has no summary of its own; the others have one of 40 bytes,
//! and for queries of more than 64 events up to three eighths of a byte for each event besides.
//! A node refers to its summary by 4 bytes, so that the pass stays in the cache.
//!
//! The search keeps the suffix overlaps of what lies behind it, so it knows for every stretch
//! ahead how many occurrences end in it. Finding one occurrence costs at most the items of
//! the rules it enters, and O(log times) joins for each repeat; memory is O(depth).

use super::bits::Bits;
use super::summary::{MatchMonoid, MatchSummary};
use crate::fold::cursor::{Cursor, Guide};
use crate::fold::measure::bottom_up;
use crate::fold::{Fold, Grammar, Item, Measure, Node};
use crate::questions::query::Query;
use crate::{Error, Result, RuleId};
use std::borrow::Cow;

/// Machine words that the summaries of long queries may take: a gigabyte.
const MOST_WORDS: usize = 1 << 27;

/// The match summaries of all symbols and rules of a fold for one query.
pub(super) struct SummaryIndex<'a, B> {
    fold: &'a Fold,
    summaries: Summaries<B>,
    /// For each node its place in the table of summaries.
    indices: Vec<u32>,
}

/// The different summaries, as a table.
struct Summaries<B> {
    monoid: MatchMonoid<B>,
    /// That of what is irrelevant, then the different ones of the query's symbols, then of rules.
    table: Vec<MatchSummary<B>>,
}

/// The summary of what holds no symbol of the query.
const IRRELEVANT: u32 = 0;

impl<'a, B: Bits> SummaryIndex<'a, B> {
    /// One pass over the rules.
    pub(super) fn new(fold: &'a Fold, query: &Query) -> Result<Self> {
        let monoid = MatchMonoid::new(query);
        let mut symbols = vec![IRRELEVANT; fold.symbol_count()];
        for &(symbol, summary) in monoid.symbols() {
            // The query may have symbols that the fold does not.
            if let Some(index) = symbols.get_mut(symbol.index()) {
                *index = IRRELEVANT + 1 + summary;
            }
        }
        let table = std::iter::once(monoid.irrelevant()).chain(monoid.summaries()).cloned().collect();
        let mut summaries = Summaries { table, monoid };
        let mut words = 0;
        let indices = bottom_up(fold, symbols, |_, body, indices| {
            let index_of = |item: Item| indices[fold.item_node(item).index()];
            let Some(summary) = summaries.of_body(body, index_of) else { return Ok(IRRELEVANT) };
            words += summary.words();
            if words > MOST_WORDS {
                return Err(Error::limit(format_args!(
                    "looking for {} events in this fold takes more than a gigabyte of memory; look for fewer",
                    query.len()
                )));
            }
            // There are fewer than 2^31 nodes.
            summaries.table.push(summary);
            Ok(summaries.table.len() as u32 - 1)
        })?;
        Ok(Self { fold, summaries, indices })
    }

    fn of_node(&self, node: Node) -> &MatchSummary<B> {
        &self.summaries.table[self.indices[node.index()] as usize]
    }
}

impl<B: Bits> Summaries<B> {
    /// The summary of a body. Returns `None` if it is irrelevant.
    #[inline]
    fn of_body(&self, body: &[Item], index_of: impl Fn(Item) -> u32) -> Option<MatchSummary<B>> {
        let Some(first) = body.iter().position(|&item| index_of(item) != IRRELEVANT) else {
            return body.is_empty().then(|| self.monoid.empty());
        };
        let of_item = |item: Item| {
            let once = &self.table[index_of(item) as usize];
            match item.times() {
                1 => Cow::Borrowed(once),
                times => Cow::Owned(self.monoid.repeated(once, times)),
            }
        };
        let (mut summary, rest) = match first {
            0 => (of_item(body[0]).into_owned(), &body[1..]),
            _ => (self.monoid.irrelevant().clone(), &body[first..]),
        };
        for &item in rest {
            self.monoid.append(&mut summary, &of_item(item));
        }
        Some(summary)
    }
}

/// Where a query occurs in each rule.
pub(super) trait OccurrenceIndex: Send + Sync {
    /// How often the query occurs in a rule.
    fn count(&self, rule: RuleId) -> u64;

    /// A search from the beginning of a rule.
    fn search(&self, rule: RuleId) -> Box<dyn OccurrenceSearch + '_>;
}

/// A search through a rule from one occurrence to the next.
pub(super) trait OccurrenceSearch {
    /// Skips `skip` occurrences and returns the position of the last event of the next one. If
    /// there are fewer, it moves behind the last one, and `skip` is the number of occurrences
    /// that are missing.
    fn next_end(&mut self, skip: &mut u64) -> Option<u64>;

    /// Moves to a position and returns how many occurrences end before it.
    fn advance_to(&mut self, position: u64) -> u64;
}

impl<B: Bits> OccurrenceIndex for SummaryIndex<'_, B> {
    fn count(&self, rule: RuleId) -> u64 {
        self.of_node(self.fold.rule_node(rule)).count
    }

    fn search(&self, rule: RuleId) -> Box<dyn OccurrenceSearch + '_> {
        let guide = SummaryGuide { index: self, suffixes: B::default() };
        Box::new(GuidedSearch { cursor: Cursor::new(self.fold, rule), guide })
    }
}

struct GuidedSearch<'m, B> {
    cursor: Cursor<'m, Fold>,
    guide: SummaryGuide<'m, B>,
}

struct SummaryGuide<'m, B> {
    index: &'m SummaryIndex<'m, B>,
    /// The suffix overlaps of what lies behind.
    suffixes: B,
}

impl<'m, B: Bits> Guide<Item> for SummaryGuide<'m, B> {
    type Value = Cow<'m, MatchSummary<B>>;

    #[inline]
    fn once(&self, item: Item) -> Option<Self::Value> {
        Some(Cow::Borrowed(self.index.of_node(self.index.fold.item_node(item))))
    }

    fn repeated(&self, once: &Self::Value, times: u64) -> Option<Self::Value> {
        Some(Cow::Owned(self.index.summaries.monoid.repeated(once, times)))
    }

    #[inline]
    fn count(&self, summary: &Self::Value) -> u64 {
        summary.count_after(&self.suffixes)
    }

    #[inline]
    fn pass(&mut self, summary: &Self::Value) {
        self.index.summaries.monoid.follow(&mut self.suffixes, summary);
    }
}

impl<B: Bits> OccurrenceSearch for GuidedSearch<'_, B> {
    fn next_end(&mut self, skip: &mut u64) -> Option<u64> {
        let (position, item) = self.cursor.locate(&mut self.guide, skip)?;
        if let Some(last) = self.guide.once(item) {
            self.guide.pass(&last);
        }
        Some(position)
    }

    fn advance_to(&mut self, position: u64) -> u64 {
        let (guide, mut passed) = (&mut self.guide, 0u64);
        self.cursor.advance_to(position, |stretch| {
            let once = guide.index.of_node(guide.index.fold.item_node(stretch.item));
            let summary = Cow::Owned(guide.index.summaries.monoid.repeated(once, stretch.times));
            passed = passed.saturating_add(guide.count(&summary));
            guide.pass(&summary);
        });
        passed
    }
}
