//! Builds folds: adds rules such that the fold's invariants hold, and joins folds.
//!
//! Adding a rule costs a hash of its items. Joining folds (of streams folded in
//! parallel, of archives, of segments) costs that for every rule, and equal rules
//! become one. Adding rules polls for an [interrupt](crate::interrupt) now and then, so folders
//! need not while they do.

use super::{Fold, FoldedStream, Item, RuleSums, Rules, Target, summed_streams};
use crate::interrupt::Pace;
use crate::trace::Alphabet;
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::{HashMap, HashSet, HashTable};
use std::hash::BuildHasher;

/// One more than the largest symbol in a body, or 0.
fn symbols_of(body: &[Item]) -> u32 {
    let symbols = body.iter().filter_map(|item| match item.target() {
        Target::Symbol(symbol) => Some(symbol.raw() + 1),
        Target::Rule(_) => None,
    });
    symbols.max().unwrap_or(0)
}

/// Collects rules and streams into a [`Fold`].
#[derive(Default)]
pub struct FoldBuilder {
    alphabet: Alphabet,
    rules: Rules,
    streams: Vec<FoldedStream>,
    rule_sums: Option<RuleSums>,
    /// Whether there are streams with sums that are not in the sums of the rules.
    lacks_rule_sums: bool,
    index: HashTable<u32>,
    /// The last rule, if it is in no index yet: a long one takes long to hash, and mostly is a root that
    /// no other rule follows.
    not_indexed: Option<RuleId>,
    hasher: foldhash::fast::RandomState,
    /// Of the items of all rules.
    pace: Pace,
}

opaque_debug!(FoldBuilder);

impl FoldBuilder {
    /// A builder of folds over this alphabet.
    pub fn new(alphabet: Alphabet) -> Self {
        Self { alphabet, ..Self::default() }
    }

    /// The alphabet so far.
    pub fn alphabet_mut(&mut self) -> &mut Alphabet {
        &mut self.alphabet
    }

    /// The rule with this body: a new one, or the one that is there already.
    pub fn rule(&mut self, body: &[Item]) -> Result<RuleId> {
        self.pace.steps(body.len());
        if let Some(rule) = self.not_indexed.take() {
            self.index_rule(rule, self.hasher.hash_one(self.rules.body(rule)));
        }
        let hash = self.hasher.hash_one(body);
        if let Some(&found) = self.index.find(hash, |&rule| self.rules.body(RuleId::from_raw(rule)) == body) {
            return Ok(RuleId::from_raw(found));
        }
        let length = self.length_of(body)?;
        let rule = self.next_rule(symbols_of(body))?;
        self.rules.items.extend_from_slice(body);
        self.rules.close(length);
        self.index_rule(rule, hash);
        Ok(rule)
    }

    /// The rule with this body, which may be very long: instead of copying the body
    /// behind the other rules, they are moved in front of it.
    pub fn root_rule(&mut self, mut body: Vec<Item>) -> Result<RuleId> {
        if body.len() <= self.rules.items.len() {
            return self.rule(&body);
        }
        let length = self.length_of(&body)?;
        let rule = self.next_rule(symbols_of(&body))?;
        // No rule that is here already is that long, so none can be equal to it.
        body.reserve_exact(self.rules.items.len());
        body.splice(..0, self.rules.items.drain(..));
        self.rules.items = body;
        self.close_long(rule, length);
        Ok(rule)
    }

    /// The rule whose body `write` writes in place of so many items, for roots that are about as long
    /// as their stream: nothing of it is copied or read again. It unfolds to `length` events; `write`
    /// returns one more than the largest symbol among the items.
    pub(crate) fn written_rule(
        &mut self,
        items: usize,
        length: u64,
        write: impl FnOnce(&mut [Item]) -> u32,
    ) -> Result<RuleId> {
        let before = self.rules.items.len();
        if items <= before {
            let mut body = bytemuck::zeroed_vec(items);
            write(&mut body);
            return self.rule(&body);
        }
        // Memory that is zero already, so that whoever writes it is the first to touch it.
        let mut all = bytemuck::zeroed_vec(before + items);
        all[..before].copy_from_slice(&self.rules.items);
        let symbols = write(&mut all[before..]);
        let rule = self.next_rule(symbols)?;
        self.rules.items = all;
        self.close_long(rule, length);
        Ok(rule)
    }

    /// Ends a rule that is longer than all others.
    fn close_long(&mut self, rule: RuleId, length: u64) {
        if let Some(before) = self.not_indexed.replace(rule) {
            self.index_rule(before, self.hasher.hash_one(self.rules.body(before)));
        }
        self.rules.close(length);
    }

    /// The number of a new rule with symbols below this, which are known from now on.
    fn next_rule(&mut self, symbols: u32) -> Result<RuleId> {
        self.rules.symbols = self.rules.symbols.max(symbols);
        let symbols = self.alphabet.len().max(self.rules.symbols as usize);
        let rules = self.rules.len();
        if symbols + rules + 1 >= Item::MOST_SLOTS {
            return Err(Error::limit("more than 2^31 symbols and rules together are not supported"));
        }
        RuleId::new(rules)
    }

    fn index_rule(&mut self, rule: RuleId, hash: u64) {
        let (rules, hasher) = (&self.rules, &self.hasher);
        self.index
            .insert_unique(hash, rule.raw(), |&rule| hasher.hash_one(rules.body(RuleId::from_raw(rule))));
    }

    /// The item that repeats this body: nested loops whose body is a single loop are
    /// one loop, and a body of one item needs no rule.
    pub fn repeat(&mut self, body: &[Item], times: u64) -> Result<Item> {
        let too_long = || Error::limit("a loop repeats more often than can be counted");
        match body {
            [] => Err(Error::invalid("a loop without events")),
            [only] => {
                let times = only.times().checked_mul(times).ok_or_else(too_long)?;
                Ok(Item::new(only.target(), times))
            }
            _ => Ok(Item::new(Target::Rule(self.rule(body)?), times)),
        }
    }

    fn length_of(&self, body: &[Item]) -> Result<u64> {
        let mut length = 0u64;
        for item in body {
            let once = match item.target() {
                Target::Symbol(_) => 1,
                Target::Rule(rule) => *self
                    .rules
                    .lengths
                    .get(rule.index())
                    .ok_or_else(|| Error::damaged("rules", "a rule refers to one that is not there"))?,
            };
            length = item
                .times()
                .checked_mul(once)
                .and_then(|item| length.checked_add(item))
                .ok_or_else(|| Error::limit("a rule unfolds to more than 2^64 events"))?;
        }
        Ok(length)
    }

    /// The items of a rule added before.
    pub(crate) fn body(&self, rule: RuleId) -> &[Item] {
        self.rules.body(rule)
    }

    /// How many events a rule added before unfolds to.
    pub(crate) fn length(&self, rule: RuleId) -> u64 {
        self.rules.lengths[rule.index()]
    }

    /// Adds a stream. If it has sums, the sums of the rules are lost.
    pub fn stream(&mut self, stream: FoldedStream) {
        self.lacks_rule_sums |= stream.sums.is_some();
        self.streams.push(stream);
    }

    /// Adds a stream whose sums are in those of the rules already.
    pub(crate) fn known_stream(&mut self, stream: FoldedStream) {
        self.streams.push(stream);
    }

    /// Adds the rules of another fold and returns their new identifiers.
    pub fn append_rules(
        &mut self,
        fold: &Fold,
        mut symbol: impl FnMut(Symbol) -> Result<Symbol>,
    ) -> Result<Vec<RuleId>> {
        let mut renamed: Vec<RuleId> = Vec::with_capacity(fold.rules().len());
        let mut body = Vec::new();
        for rule in fold.rules() {
            body.clear();
            for item in fold.body(rule) {
                let target = match item.target() {
                    Target::Symbol(old) => Target::Symbol(symbol(old)?),
                    Target::Rule(old) => Target::Rule(renamed[old.index()]),
                };
                body.push(Item::new(target, item.times()));
            }
            renamed.push(self.rule(&body)?);
        }
        Ok(renamed)
    }

    /// Adds the rules and streams of another fold, whose symbols are given by `symbol`.
    pub fn append(&mut self, fold: &Fold, mut symbol: impl FnMut(Symbol) -> Result<Symbol>) -> Result<()> {
        let rules = self.append_rules(fold, &mut symbol)?;
        self.append_streams(fold, &rules, |old| symbol(old).ok())
    }

    /// Adds the rules and streams of another fold and the symbols they need.
    pub fn join(&mut self, fold: &Fold) -> Result<()> {
        let renamed = self.join_rules(fold)?;
        self.append_streams(fold, &renamed.rules, |old| renamed.symbol(old))
    }

    fn append_streams(
        &mut self,
        fold: &Fold,
        rules: &[RuleId],
        mut symbol: impl FnMut(Symbol) -> Option<Symbol>,
    ) -> Result<()> {
        for stream in fold.streams() {
            let root = rules[stream.root().index()];
            let sums = stream.sums().map(|sums| sums.renamed(&mut symbol)).transpose()?;
            self.streams.push(FoldedStream { root, sums, ..stream.clone() });
        }
        self.join_rule_sums(fold, rules)
    }

    /// Adds the sums of the rules of another fold, whose streams are added too.
    pub(crate) fn join_rule_sums(&mut self, fold: &Fold, rules: &[RuleId]) -> Result<()> {
        self.join_sums_of_rules(fold, |rule| rules.get(rule.index()).copied())
    }

    /// The same for those rules that have an identifier here.
    pub(crate) fn join_sums_of_rules(
        &mut self,
        fold: &Fold,
        rule: impl FnMut(RuleId) -> Option<RuleId>,
    ) -> Result<()> {
        let Some(sums) = fold.rule_sums() else {
            self.lacks_rule_sums |= summed_streams(fold.streams()) > 0;
            return Ok(());
        };
        self.rule_sums.get_or_insert_default().join(sums, rule)
    }

    /// The sums of the rules so far.
    pub(crate) fn rule_sums_mut(&mut self) -> Option<&mut RuleSums> {
        self.rule_sums.as_mut()
    }

    /// Adds the rules of another fold and the symbols they need, and returns their new
    /// identifiers.
    pub(crate) fn join_rules(&mut self, fold: &Fold) -> Result<Renamed> {
        let mut alphabet = std::mem::take(&mut self.alphabet);
        let renamed: Result<Vec<Symbol>> = fold
            .alphabet()
            .symbols()
            .map(|symbol| alphabet.intern_entry(fold.alphabet().entry(symbol), None))
            .collect();
        self.alphabet = alphabet;
        let symbols = renamed?;
        let rules = self.append_rules(fold, |symbol| Ok(symbols[symbol.index()]))?;
        Ok(Renamed { symbols, rules })
    }

    /// Numbers the streams whose names are taken: `main`, `main (2)`, `main (3)`.
    pub fn with_unique_stream_names(mut self) -> Self {
        let mut taken: HashSet<String> = HashSet::new();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for stream in &mut self.streams {
            let name = stream.name.clone();
            while !taken.insert(stream.name.clone()) {
                let count = counts.entry(name.clone()).or_insert(1);
                *count += 1;
                stream.name = format!("{name} ({count})");
            }
            let number = stream.name[name.len()..].to_string();
            if let Some((_, title)) = stream.notes.iter_mut().find(|(key, _)| key == "title") {
                title.push_str(&number);
            }
        }
        self
    }

    /// The fold.
    pub fn finish(mut self) -> Fold {
        let mut sums = self.rule_sums.take_if(|_| !self.lacks_rule_sums);
        if let Some(sums) = &mut sums {
            sums.resize(self.rules.len());
        }
        Fold::from_parts(self.alphabet, self.rules, self.streams).with_rule_sums(sums)
    }
}

/// The identifiers of a fold's symbols and rules in another fold.
pub(crate) struct Renamed {
    symbols: Vec<Symbol>,
    pub(crate) rules: Vec<RuleId>,
}

impl Renamed {
    pub(crate) fn symbol(&self, symbol: Symbol) -> Option<Symbol> {
        self.symbols.get(symbol.index()).copied()
    }
}
