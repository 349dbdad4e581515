//! Where every symbol and rule of a fold is used: from a function's symbols up to the roots,
//! without a look at anything else.
//!
//! Made once for a fold by two passes over its items, a few nanoseconds each; 8 bytes an
//! item and 4 a rule. What the fold holds of a function is then found at some twenty
//! nanoseconds for each item that holds something of it.

use super::functions::Step;
use super::projection::{Alike, Projection, Scratch};
use crate::fold::{Fold, Item, Target};
use crate::{Error, Result, RuleId, Symbol};

/// Where every symbol and rule of a fold is used.
#[derive(Debug)]
pub(super) struct Uses {
    symbols: usize,
    /// Where the places of each symbol, then of each rule, end.
    ends: Vec<u32>,
    /// Places among all items.
    places: Vec<u32>,
    /// The rule of each item.
    rules: Vec<RuleId>,
}

impl Uses {
    pub(super) fn of(fold: &Fold) -> Result<Self> {
        if u32::try_from(fold.items()).is_err() {
            return Err(Error::limit("a path can be looked for in at most 2^32 items"));
        }
        let symbols = fold.alphabet().len();
        let is_strange =
            |item: &Item| matches!(item.target(), Target::Symbol(symbol) if symbol.index() >= symbols);
        if fold.all_items().iter().any(is_strange) {
            return Err(Error::invalid("an event of the fold is not in its alphabet"));
        }
        let slot = |target: Target| match target {
            Target::Symbol(symbol) => symbol.index(),
            Target::Rule(rule) => symbols + rule.index(),
        };
        // One further on: how often each is used, then where its places begin, and as they
        // are filled in, where they end.
        let mut ends = vec![0u32; symbols + fold.rules().len() + 1];
        for item in fold.all_items() {
            ends[slot(item.target()) + 1] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut places = vec![0; fold.items()];
        let mut rules = Vec::with_capacity(fold.items());
        for rule in fold.rules() {
            for (item, place) in fold.body(rule).iter().zip(fold.item_range(rule)) {
                let next = &mut ends[slot(item.target())];
                places[*next as usize] = place as u32;
                *next += 1;
                rules.push(rule);
            }
        }
        Ok(Self { symbols, ends, places, rules })
    }

    fn places(&self, slot: usize) -> &[u32] {
        let start = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[start as usize..self.ends[slot] as usize]
    }

    /// How many items are these symbols.
    pub(super) fn of_symbols(&self, steps: &[(Symbol, Step)]) -> usize {
        steps.iter().map(|(symbol, _)| self.places(symbol.index()).len()).sum()
    }

    /// What the fold holds of a function; nothing if that is more than `most` items.
    pub(super) fn projection(
        &self,
        fold: &Fold,
        steps: &[(Symbol, Step)],
        scratch: &mut Scratch,
        most: usize,
    ) -> Result<Option<Projection>> {
        let mut held: Vec<u32> = Vec::new();
        if self.of_symbols(steps) > most {
            return Ok(None);
        }
        for (symbol, _) in steps {
            held.extend_from_slice(self.places(symbol.index()));
        }
        let mut next = 0;
        while let Some(&place) = held.get(next) {
            next += 1;
            let rule = self.rules[place as usize];
            if scratch.mark(rule) {
                held.extend_from_slice(self.places(self.symbols + rule.index()));
                if held.len() > most {
                    scratch.clear();
                    return Ok(None);
                }
            }
        }
        let visited = scratch.marked();
        scratch.clear();
        held.sort_unstable();
        let places = held.iter().map(|&place| (place, self.rules[place as usize]));
        Projection::of_places(fold, steps, places, scratch, Alike::Apart, visited).map(Some)
    }
}
