//! The canonical form of a fold: what does not matter is gone, and every number is
//! the one that walking the streams hands out.
//!
//! Walking each stream's root in order, a symbol is numbered when it is first met and
//! a rule when its body has been walked for the first time. Rules and symbols that no
//! stream uses are dropped. Two folds with the same streams and bodies thus have the
//! same canonical form, and the archive need not store a number at first use.
//!
//! The walk keeps its own stack, so the depth of the rules does not matter; it costs
//! a few nanoseconds an item and memory for a second set of rules.

use super::{Fold, FoldedStream, Item, Rules, Target};
use crate::trace::Alphabet;
use crate::{RuleId, Symbol};

/// The rules of a fold in canonical form, and how to get there.
pub(crate) struct Canonical {
    rules: Rules,
    /// For each new symbol the one of the fold.
    pub(crate) symbols: Vec<Symbol>,
    /// For each stream its root.
    pub(crate) roots: Vec<RuleId>,
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
        let mut walk = Walk {
            fold,
            new_symbols: vec![UNSEEN; symbols.max().unwrap_or(0)],
            new_rules: vec![UNSEEN; fold.rules.ends.len()],
            canonical: Self { rules: Rules::default(), symbols: Vec::new(), roots: Vec::new() },
        };
        for &root in roots {
            walk.visit(root);
            walk.canonical.roots.push(RuleId::from_raw(walk.new_rules[root.index()]));
        }
        walk.canonical
    }

    /// The number of items in all rules.
    pub(crate) fn items(&self) -> usize {
        self.rules.items.len()
    }

    /// The number of rules.
    pub(crate) fn rules(&self) -> usize {
        self.rules.ends.len()
    }

    /// The items of a rule.
    pub(crate) fn body(&self, rule: RuleId) -> &[Item] {
        self.rules.body(rule)
    }
}

const UNSEEN: u32 = u32::MAX;

struct Walk<'a> {
    fold: &'a Fold,
    new_symbols: Vec<u32>,
    new_rules: Vec<u32>,
    canonical: Canonical,
}

impl Walk<'_> {
    /// Numbers a rule and everything in it that has no number yet.
    fn visit(&mut self, root: RuleId) {
        let mut open = vec![(root, 0)];
        while let Some((rule, next)) = open.last_mut() {
            let Some(item) = self.fold.body(*rule).get(*next) else {
                let rule = *rule;
                open.pop();
                self.close(rule);
                continue;
            };
            *next += 1;
            match item.target() {
                Target::Symbol(symbol) => self.meet(symbol),
                Target::Rule(inner) if self.new_rules[inner.index()] == UNSEEN => open.push((inner, 0)),
                Target::Rule(_) => {}
            }
        }
    }

    fn meet(&mut self, symbol: Symbol) {
        let number = &mut self.new_symbols[symbol.index()];
        if *number == UNSEEN {
            *number = self.canonical.symbols.len() as u32;
            self.canonical.symbols.push(symbol);
        }
    }

    /// Copies the body of a rule, all of whose parts have numbers. A root that was
    /// numbered before, as part of another stream or its root, stays as it is.
    fn close(&mut self, rule: RuleId) {
        if self.new_rules[rule.index()] != UNSEEN {
            return;
        }
        let rules = &mut self.canonical.rules;
        self.new_rules[rule.index()] = rules.ends.len() as u32;
        for item in self.fold.body(rule) {
            let target = match item.target() {
                Target::Symbol(symbol) => Target::Symbol(Symbol::from_raw(self.new_symbols[symbol.index()])),
                Target::Rule(inner) => Target::Rule(RuleId::from_raw(self.new_rules[inner.index()])),
            };
            rules.items.push(Item::new(target, item.times()));
        }
        rules.ends.push(rules.items.len());
        rules.lengths.push(self.fold.length(rule));
    }
}

impl Fold {
    /// The same streams with all that no stream uses left out, and symbols and rules
    /// numbered in the order in which walking the streams meets them. This is what an
    /// archive stores.
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

    /// The same, for those who have no use for the times: columns may be long.
    pub(crate) fn canonical_without_times(&self) -> Fold {
        let Canonical { rules, symbols, roots } = Canonical::of(self);
        let mut alphabet = Alphabet::default();
        for symbol in symbols {
            // Cannot fail: these entries are distinct, and no more than there were.
            let _ = alphabet.intern_entry(self.alphabet.entry(symbol), None);
        }
        let streams = self.streams.iter().zip(roots).map(|(stream, root)| {
            FoldedStream::new(&stream.name, &stream.folder, root).with_notes(stream.notes.clone())
        });
        Fold::from_parts(alphabet, rules, streams.collect())
    }
}
