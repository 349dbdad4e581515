//! The fold: rules of counted items, shared by all streams.
//!
//! A rule is a list of items; an item is a symbol or a rule and how many times it
//! repeats. Unfolding a stream's root rule gives its events back, one for one.
//!
//! Invariants, which the [`FoldBuilder`] keeps and every reader relies on:
//! * a rule refers only to rules before it, so there are no cycles and one pass in
//!   order sees every rule after the rules it is made of;
//! * no two rules are equal; a rule of a single item exists only as a root; only the
//!   root of an empty stream is empty;
//! * an item repeats at least once, and the length of every rule fits 64 bits.
//!
//! An item takes 12 bytes, a rule 24 besides its items.

pub mod borders;
mod builder;
mod canonical;
pub mod cursor;
mod grammar;
mod meanings;
pub mod measure;
mod part;
mod produced;
pub mod rank;
pub mod reach;
mod sums;
mod text;
mod unfold;
mod without;

pub use builder::FoldBuilder;
pub(crate) use canonical::Canonical;
pub use grammar::{Grammar, Located, Node};
pub use measure::{Coverage, Depth, Length, Measure, NestLength, Occurrences, measure_rules};
pub use part::StreamPart;
pub use produced::{ProducerCount, RecordedStream};
pub use reach::{rule_uses, symbol_counts};
pub(crate) use sums::Additive;
pub use sums::{DurationSum, IterationSpread, MetricSpread, MetricSum, RuleSums, Spread, StreamSums};
pub use unfold::Unfold;

use crate::emit::Text;
use crate::trace::{Alphabet, Times};
use crate::{Result, RuleId, StreamId, Symbol};
use std::sync::OnceLock;

/// The target of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An event.
    Symbol(Symbol),
    /// What a rule unfolds to.
    Rule(RuleId),
}

/// A symbol or a rule, and how many times it repeats.
///
/// Three words of 32 bits: folds of traces with little structure are as long as the
/// trace, and padding the count to 64 bits would cost them a third more.
#[derive(Clone, Copy, PartialEq, Eq, bytemuck::Zeroable)]
pub struct Item {
    target: u32,
    times_low: u32,
    times_high: u32,
}

const RULE_BIT: u32 = 1 << 31;

impl Item {
    /// An item that repeats `times` times, at least once.
    pub fn new(target: Target, times: u64) -> Self {
        debug_assert!(times > 0);
        let target = match target {
            Target::Symbol(symbol) => symbol.raw(),
            Target::Rule(rule) => rule.raw() | RULE_BIT,
        };
        Self { target, times_low: times as u32, times_high: (times >> 32) as u32 }
    }

    /// One event.
    pub fn once(symbol: Symbol) -> Self {
        Self::new(Target::Symbol(symbol), 1)
    }

    /// Its target.
    pub fn target(self) -> Target {
        if self.target & RULE_BIT == 0 {
            Target::Symbol(Symbol::from_raw(self.target))
        } else {
            Target::Rule(RuleId::from_raw(self.target & !RULE_BIT))
        }
    }

    /// There are fewer rules and symbols together than this, as [`FoldBuilder`] checks.
    pub(crate) const MOST_SLOTS: usize = RULE_BIT as usize;

    /// The node of its target, where this many symbols come before the rules. Without a branch,
    /// since no processor can predict which of the two it is.
    #[inline]
    fn node(self, symbols: u32) -> Node {
        // Of the two numbers, the wrong one has the highest bit set.
        Node::new(self.target.min((self.target ^ RULE_BIT).wrapping_add(symbols)))
    }

    /// How many times it repeats.
    pub fn times(self) -> u64 {
        u64::from(self.times_low) | u64::from(self.times_high) << 32
    }
}

impl std::hash::Hash for Item {
    /// As one number: bodies are hashed for every rule, and field by field takes longer.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let times = u128::from(self.times_low) << 32 | u128::from(self.times_high) << 64;
        state.write_u128(u128::from(self.target) | times);
    }
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}^{}", self.target(), self.times())
    }
}

/// A stream of a fold.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedStream {
    pub(crate) name: String,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) folder: String,
    pub(crate) root: RuleId,
    pub(crate) times: Times,
    pub(crate) sums: Option<StreamSums>,
}

impl FoldedStream {
    /// A stream that unfolds from `root`; its times come beside it.
    pub fn new(name: impl Into<String>, folder: impl Into<String>, root: RuleId) -> Self {
        let (name, folder) = (name.into(), folder.into());
        Self { name, notes: Vec::new(), folder, root, times: Times::default(), sums: None }
    }

    /// The name that the source gives the stream.
    pub fn name(&self) -> Text<'_> {
        Text::new(&self.name)
    }

    /// The name to show: the source's title when it gave one.
    pub fn title(&self) -> Text<'_> {
        self.note("title").unwrap_or(self.name())
    }

    /// The note of the source with this key.
    pub fn note(&self, key: &str) -> Option<Text<'_>> {
        self.notes.iter().find(|(known, _)| known == key).map(|(_, value)| Text::new(value))
    }

    /// Whether the source has noted this.
    pub fn has_note(&self, key: &str, value: &str) -> bool {
        self.note(key).is_some_and(|noted| noted == value)
    }

    /// All notes of the source, to be stored.
    pub fn notes(&self) -> &[(String, String)] {
        &self.notes
    }

    /// The folder that made the rules.
    pub fn folder(&self) -> Text<'_> {
        Text::new(&self.folder)
    }

    /// The rule that unfolds to the stream.
    pub fn root(&self) -> RuleId {
        self.root
    }

    /// The known times of its events.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The sums of times that are not kept for every event.
    pub fn sums(&self) -> Option<&StreamSums> {
        self.sums.as_ref()
    }

    /// Sets the notes.
    pub fn with_notes(mut self, notes: Vec<(String, String)>) -> Self {
        self.notes = notes;
        self
    }

    /// Sets the times.
    pub fn with_times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }
}

/// The folded form of a trace.
#[derive(Debug, Default)]
pub struct Fold {
    alphabet: Alphabet,
    rules: Rules,
    streams: Vec<FoldedStream>,
    /// The sums of the rules, over all streams that have sums.
    rule_sums: Option<RuleSums>,
    /// Where each item ends within its rule, in events; made when first needed.
    item_ends: OnceLock<Vec<u64>>,
}

impl Clone for Fold {
    fn clone(&self) -> Self {
        Self::from_parts(self.alphabet.clone(), self.rules.clone(), self.streams.clone())
            .with_rule_sums(self.rule_sums.clone())
    }
}

impl PartialEq for Fold {
    fn eq(&self, other: &Self) -> bool {
        self.alphabet == other.alphabet
            && self.rules == other.rules
            && self.streams == other.streams
            && self.rule_sums == other.rule_sums
    }
}

/// All rules, their items end to end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    items: Vec<Item>,
    /// Where the items of each rule begin, and where the last one's end.
    bounds: Vec<usize>,
    lengths: Vec<u64>,
    /// One more than the largest symbol, or as many as the alphabet has.
    symbols: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { items: Vec::new(), bounds: vec![0], lengths: Vec::new(), symbols: 0 }
    }
}

impl Rules {
    fn len(&self) -> usize {
        self.lengths.len()
    }

    fn range(&self, rule: RuleId) -> std::ops::Range<usize> {
        self.bounds[rule.index()]..self.bounds[rule.index() + 1]
    }

    /// Ends a rule whose items are the last ones.
    fn close(&mut self, length: u64) {
        self.bounds.push(self.items.len());
        self.lengths.push(length);
    }

    fn body(&self, rule: RuleId) -> &[Item] {
        &self.items[self.range(rule)]
    }
}

impl Fold {
    pub(crate) fn from_parts(alphabet: Alphabet, mut rules: Rules, streams: Vec<FoldedStream>) -> Self {
        rules.symbols = rules.symbols.max(alphabet.len() as u32);
        Self { alphabet, rules, streams, rule_sums: None, item_ends: OnceLock::new() }
    }

    pub(crate) fn with_rule_sums(mut self, sums: Option<RuleSums>) -> Self {
        self.rule_sums = sums;
        self
    }

    pub(crate) fn set_rule_sums(&mut self, sums: RuleSums) {
        self.rule_sums = Some(sums);
    }

    /// The alphabet: the meanings of the symbols.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The streams.
    pub fn streams(&self) -> &[FoldedStream] {
        &self.streams
    }

    /// A stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn stream(&self, id: StreamId) -> &FoldedStream {
        &self.streams[id.index()]
    }

    /// The streams with their identifiers, in order.
    pub fn stream_ids(&self) -> impl DoubleEndedIterator<Item = StreamId> + ExactSizeIterator + use<> {
        // A stream takes more than a byte, so their number fits.
        (0..self.streams.len() as u32).map(StreamId::from_raw)
    }

    /// Sets the times of a stream, which must have as many values as the stream has events.
    pub fn set_times(&mut self, stream: StreamId, times: Times) -> Result<()> {
        let stream = self.streams.get_mut(stream.index());
        let stream = stream.ok_or_else(|| crate::Error::invalid("there is no such stream"))?;
        let events = self.rules.lengths[stream.root.index()];
        if times.lengths().any(|length| length as u64 != events) {
            return Err(crate::Error::invalid("a stream does not have as many times as events"));
        }
        stream.times = times;
        Ok(())
    }

    /// Takes the times of a stream out of the fold, so that there is one copy of them.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn take_times(&mut self, stream: StreamId) -> Times {
        std::mem::take(&mut self.streams[stream.index()].times)
    }

    pub(crate) fn streams_mut(&mut self) -> &mut [FoldedStream] {
        &mut self.streams
    }

    /// The sums of the rules, over all streams that have [sums](FoldedStream::sums). Returns
    /// `None` if there are none, or if streams or rules have changed since.
    pub fn rule_sums(&self) -> Option<&RuleSums> {
        self.rule_sums.as_ref()
    }

    /// All rules, each after the rules it is made of.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleId> + DoubleEndedIterator + use<> {
        (0..self.rules.len() as u32).map(RuleId::from_raw)
    }

    /// The number of items in all rules.
    pub fn items(&self) -> usize {
        self.rules.items.len()
    }

    /// The items of a rule.
    pub fn body(&self, rule: RuleId) -> &[Item] {
        self.rules.body(rule)
    }

    /// The items of all rules, end to end.
    pub(crate) fn all_items(&self) -> &[Item] {
        &self.rules.items
    }

    /// Where the items of a rule lie among [`all_items`](Self::all_items).
    pub(crate) fn item_range(&self, rule: RuleId) -> std::ops::Range<usize> {
        self.rules.range(rule)
    }

    /// How many events a rule unfolds to.
    pub fn length(&self, rule: RuleId) -> u64 {
        self.rules.lengths[rule.index()]
    }

    /// How many events an item unfolds to.
    pub fn item_length(&self, item: Item) -> u64 {
        // The builder checked the length of the rule that this item is in.
        item.times() * self.target_length(item.target())
    }

    /// How many events one repetition of an item is.
    pub fn target_length(&self, target: Target) -> u64 {
        match target {
            Target::Symbol(_) => 1,
            Target::Rule(rule) => self.length(rule),
        }
    }

    /// The number of events in all streams. Returns `None` when that passes 64 bits.
    pub fn events(&self) -> Option<u64> {
        self.streams.iter().try_fold(0u64, |sum, stream| sum.checked_add(self.length(stream.root)))
    }

    /// The same rules over another alphabet: symbol `s` becomes `renamed[s]`.
    pub fn with_alphabet(&self, alphabet: Alphabet, renamed: &[Symbol]) -> Result<Fold> {
        let mut builder = FoldBuilder::new(alphabet);
        builder.append(self, |symbol| Ok(renamed[symbol.index()]))?;
        Ok(builder.finish())
    }

    /// The same fold with some of its streams only. All rules and their sums stay; sums that
    /// include other streams are marked as [`wider`](RuleSums::wider).
    pub fn with_streams(&self, chosen: impl Fn(StreamId) -> bool) -> Fold {
        let (kept, left_out): (Vec<_>, Vec<_>) = self.stream_ids().partition(|&id| chosen(id));
        let streams = kept.into_iter().map(|id| self.stream(id).clone()).collect();
        let mut sums = self.rule_sums.clone();
        if let Some(sums) = &mut sums {
            // Sums are of summed streams, so that others can be left out without a loss.
            let summed =
                left_out.into_iter().map(|id| self.stream(id)).filter(|stream| stream.sums.is_some());
            sums.wider.extend(self.rules_below(summed.map(|stream| stream.root)));
        }
        Self::from_parts(self.alphabet.clone(), self.rules.clone(), streams).with_rule_sums(sums)
    }

    /// These rules and all that they are made of.
    fn rules_below(&self, rules: impl Iterator<Item = RuleId>) -> Vec<RuleId> {
        let mut is_below = vec![false; self.rules().len()];
        rules.for_each(|rule| is_below[rule.index()] = true);
        // Rules refer only to rules before them.
        for rule in self.rules().rev() {
            if !is_below[rule.index()] {
                continue;
            }
            for item in self.body(rule) {
                if let Target::Rule(inner) = item.target() {
                    is_below[inner.index()] = true;
                }
            }
        }
        self.rules().filter(|rule| is_below[rule.index()]).collect()
    }

    /// The same fold without what is noted of its streams under this key.
    pub fn without_notes(mut self, key: &str) -> Fold {
        for stream in &mut self.streams {
            stream.notes.retain(|(known, _)| known != key);
        }
        self
    }

    /// Where the items of a rule end within it, in events.
    pub(crate) fn item_ends(&self, rule: RuleId) -> &[u64] {
        &self.all_item_ends()[self.rules.range(rule)]
    }

    /// Where an item ends within its rule, by its place among [all](Self::all_items).
    pub(crate) fn item_end(&self, place: usize) -> u64 {
        self.all_item_ends()[place]
    }

    fn all_item_ends(&self) -> &[u64] {
        self.item_ends.get_or_init(|| {
            let mut ends = Vec::with_capacity(self.items());
            for rule in self.rules() {
                let mut end = 0;
                for &item in self.body(rule) {
                    end += self.item_length(item);
                    ends.push(end);
                }
            }
            ends
        })
    }
}

/// How many streams have sums.
fn summed_streams(streams: &[FoldedStream]) -> usize {
    streams.iter().filter(|stream| stream.sums.is_some()).count()
}
