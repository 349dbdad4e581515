//! Computes the canonical form of a fold: unused parts are dropped, and symbols and rules are
//! numbered in the order of a walk over the streams.
//!
//! Walking each stream's root in order, a symbol is numbered when it is first met and
//! a rule when its body has been walked for the first time. Rules and symbols that no
//! stream uses are dropped. Two folds with the same streams and bodies thus have the
//! same canonical form, and the archive need not store a number at first use.
//!
//! Cost: O(items), a few nanoseconds an item, and memory for a second set of rules.

use super::cursor::{Cursor, Move, Stretch, Visitor};
use super::{Fold, FoldedStream, Item, RuleSums, Rules, StreamSums, Target};
use crate::trace::Alphabet;
use crate::{RuleId, Symbol};
use std::convert::Infallible;

/// The rules of a fold in canonical form, and the mappings to it.
pub(crate) struct Canonical {
    rules: Rules,
    /// For each new symbol the one of the fold.
    pub(crate) symbols: Vec<Symbol>,
    /// For each stream its root.
    pub(crate) roots: Vec<RuleId>,
    /// For each rule of the fold the new one, if it is still there.
    new_rules: Vec<u32>,
    /// For each symbol of the fold the new one, if it is still there.
    new_symbols: Vec<u32>,
}

impl Canonical {
    /// The canonical rules of a fold.
    pub(crate) fn of(fold: &Fold) -> Self {
        let roots: Vec<RuleId> = fold.streams.iter().map(|stream| stream.root).collect();
        Self::of_roots(fold, &roots)
    }

    /// The canonical form of the rules below these roots; the alphabet need not be there.
    pub(crate) fn of_roots(fold: &Fold, roots: &[RuleId]) -> Self {
        let symbols = fold.rules.items.iter().filter_map(|item| match item.target() {
            Target::Symbol(symbol) => Some(symbol.index() + 1),
            Target::Rule(_) => None,
        });
        let mut numbering = Numbering {
            fold,
            canonical: Self {
                rules: Rules::default(),
                symbols: Vec::new(),
                roots: Vec::new(),
                new_rules: vec![UNSEEN; fold.rules.len()],
                new_symbols: vec![UNSEEN; symbols.max().unwrap_or(0).max(fold.alphabet.len())],
            },
        };
        for &root in roots {
            let Ok(()) = Cursor::new(fold, root).visit(&mut numbering);
            let root = RuleId::from_raw(numbering.canonical.new_rules[root.index()]);
            numbering.canonical.roots.push(root);
        }
        numbering.canonical
    }

    /// The rules as a fold without alphabet and streams, the old symbol of each new one, and the
    /// roots.
    pub(crate) fn into_fold(self) -> (Fold, Vec<Symbol>, Vec<RuleId>) {
        let mut rules = self.rules;
        rules.symbols = self.symbols.len() as u32;
        (Fold::from_parts(Alphabet::default(), rules, Vec::new()), self.symbols, self.roots)
    }

    /// The number of items in all rules.
    pub(crate) fn items(&self) -> usize {
        self.rules.items.len()
    }

    /// The number of rules.
    pub(crate) fn rules(&self) -> usize {
        self.rules.len()
    }

    /// The items of a rule.
    pub(crate) fn body(&self, rule: RuleId) -> &[Item] {
        self.rules.body(rule)
    }

    /// The new identifier of a rule of the fold, if some stream uses it.
    pub(crate) fn new_rule(&self, rule: RuleId) -> Option<RuleId> {
        let number = self.new_rules[rule.index()];
        (number != UNSEEN).then(|| RuleId::from_raw(number))
    }

    /// The new identifier of a symbol of the fold, if some stream uses it.
    pub(crate) fn new_symbol(&self, symbol: Symbol) -> Option<Symbol> {
        let number = self.new_symbols[symbol.index()];
        (number != UNSEEN).then(|| Symbol::from_raw(number))
    }

    /// The sums of a stream by the new symbols.
    pub(crate) fn sums(&self, sums: &StreamSums) -> Option<StreamSums> {
        // Cannot fail: as no two symbols become one, nothing is added.
        sums.renamed(|symbol| self.new_symbol(symbol)).ok()
    }

    /// The sums of the rules by their new identifiers.
    pub(crate) fn rule_sums(&self, sums: &RuleSums) -> Option<RuleSums> {
        let mut renamed = RuleSums::default();
        renamed.join(sums, |rule| self.new_rule(rule)).ok()?;
        renamed.resize(self.rules());
        Some(renamed)
    }
}

const UNSEEN: u32 = u32::MAX;

/// Numbers rules and everything in them that has no number yet.
struct Numbering<'a> {
    fold: &'a Fold,
    canonical: Canonical,
}

impl Visitor<Item> for Numbering<'_> {
    type Error = Infallible;

    #[inline]
    fn stretch(&mut self, stretch: Stretch<Item>, _: (RuleId, usize)) -> Result<Move, Infallible> {
        match stretch.target {
            Target::Symbol(symbol) => self.meet(symbol),
            Target::Rule(inner) if self.canonical.new_rule(inner).is_none() => return Ok(Move::Enter),
            Target::Rule(_) => {}
        }
        Ok(Move::Skip)
    }

    fn end(&mut self, rule: RuleId, _: u64, _: u64) -> Result<Move, Infallible> {
        self.close(rule);
        Ok(Move::Skip)
    }
}

impl Numbering<'_> {
    fn meet(&mut self, symbol: Symbol) {
        let Canonical { symbols, new_symbols, .. } = &mut self.canonical;
        let number = &mut new_symbols[symbol.index()];
        if *number == UNSEEN {
            *number = symbols.len() as u32;
            symbols.push(symbol);
        }
    }

    /// Copies the body of a rule, all of whose parts have numbers. A root that was
    /// numbered before, as part of another stream or its root, stays as it is.
    fn close(&mut self, rule: RuleId) {
        let Canonical { rules, new_rules, new_symbols, .. } = &mut self.canonical;
        if new_rules[rule.index()] != UNSEEN {
            return;
        }
        new_rules[rule.index()] = rules.len() as u32;
        for item in self.fold.body(rule) {
            let target = match item.target() {
                Target::Symbol(symbol) => Target::Symbol(Symbol::from_raw(new_symbols[symbol.index()])),
                Target::Rule(inner) => Target::Rule(RuleId::from_raw(new_rules[inner.index()])),
            };
            rules.items.push(Item::new(target, item.times()));
        }
        rules.close(self.fold.length(rule));
    }
}

impl Fold {
    /// The same streams without unused rules and symbols; the others are numbered in the order
    /// in which a walk over the streams meets them. An archive stores this form.
    ///
    /// ```
    /// use loopfold::fold::{FoldBuilder, FoldedStream, Item};
    /// use loopfold::trace::{Alphabet, Event};
    ///
    /// let mut alphabet = Alphabet::default();
    /// let unused = alphabet.intern(&Event::named("unused"), None)?;
    /// let used = alphabet.intern(&Event::named("used"), Some(unused))?;
    /// let mut builder = FoldBuilder::new(alphabet);
    /// let root = builder.rule(&[Item::once(used)])?;
    /// builder.stream(FoldedStream::new("main", "by hand", root));
    /// let fold = builder.finish().canonical();
    /// assert_eq!(fold.alphabet().len(), 1);
    /// assert_eq!(fold.nest_text(fold.streams()[0].root()), "used");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn canonical(&self) -> Fold {
        let mut fold = self.canonical_without_times();
        for (stream, original) in fold.streams.iter_mut().zip(&self.streams) {
            stream.times.clone_from(&original.times);
        }
        fold
    }

    /// The same of a fold that is not needed any more, whose times are not copied.
    pub fn into_canonical(mut self) -> Fold {
        let mut fold = self.canonical_without_times();
        for (stream, original) in fold.streams.iter_mut().zip(&mut self.streams) {
            stream.times = std::mem::take(&mut original.times);
        }
        fold
    }

    /// The same without the times, whose columns may be long.
    pub(crate) fn canonical_without_times(&self) -> Fold {
        let canonical = Canonical::of(self);
        let mut alphabet = Alphabet::default();
        for &symbol in &canonical.symbols {
            // Cannot fail: these entries are distinct, and no more than there were.
            let _ = alphabet.intern_entry(self.alphabet.entry(symbol), None);
        }
        let streams = self.streams.iter().zip(&canonical.roots).map(|(stream, &root)| {
            let sums = stream.sums.as_ref().and_then(|sums| canonical.sums(sums));
            let bare = FoldedStream::new(&stream.name, &stream.folder, root);
            FoldedStream { sums, ..bare.with_notes(stream.notes.clone()) }
        });
        let streams = streams.collect();
        let rule_sums = self.rule_sums.as_ref().and_then(|sums| canonical.rule_sums(sums));
        Fold::from_parts(alphabet, canonical.rules, streams).with_rule_sums(rule_sums)
    }
}
