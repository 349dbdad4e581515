//! The kinds of items, and the rules of two items each that were made so far.
//!
//! Items with the same target and the same count are of one kind, and a pair of neighbours
//! is a pair of kinds. A kind takes 8 bytes, a rule 8; while the streams are read, a
//! symbol takes 4 more, and so does every kind that repeats one, with some for finding it.

use super::sequence::END;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What an item repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    Symbol(Symbol),
    /// The rule with this number, in the order in which they were made.
    Rule(usize),
}

/// All kinds and all rules.
#[derive(Default)]
pub(super) struct Kinds {
    /// The number of a symbol, which is less than 2^31, or of a rule with a bit set, and a count.
    kinds: Vec<(u32, u32)>,
    /// The kinds of the two items of each rule.
    rules: Vec<[u32; 2]>,
    /// The kinds that repeat the last rule, by count.
    of_last_rule: Map<u32, u32>,
}

const RULE: u32 = 1 << 31;

impl Kinds {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// What items of a kind repeat, and how often.
    pub(super) fn meaning(&self, kind: u32) -> (Repeated, u32) {
        let (target, times) = self.kinds[kind as usize];
        let repeated = match target & RULE {
            0 => Repeated::Symbol(Symbol::from_raw(target)),
            _ => Repeated::Rule((target & !RULE) as usize),
        };
        (repeated, times)
    }

    /// The rules, each made of kinds that were there before it.
    pub(super) fn rules(&self) -> &[[u32; 2]] {
        &self.rules
    }

    /// Makes a rule and returns the kind of an item that is the rule once.
    pub(super) fn add_rule(&mut self, left: u32, right: u32) -> Result<u32> {
        self.of_last_rule.clear();
        // A rule is a kind too, so that there are fewer than `END` of them.
        let kind = self.add(self.rules.len() as u32 | RULE, 1)?;
        self.rules.push([left, right]);
        Ok(kind)
    }

    /// The kind of the rule that was made last, repeated.
    pub(super) fn of_last_rule(&mut self, times: u32) -> Result<u32> {
        if let Some(&kind) = self.of_last_rule.get(&times) {
            return Ok(kind);
        }
        let kind = self.add((self.rules.len() as u32 - 1) | RULE, times)?;
        self.of_last_rule.insert(times, kind);
        Ok(kind)
    }

    fn add(&mut self, target: u32, times: u32) -> Result<u32> {
        let kind = self.kinds.len() as u32;
        if kind >= END {
            return Err(Error::limit("the folder repair takes streams with fewer than 2^31 kinds of items"));
        }
        self.kinds.push((target, times));
        Ok(kind)
    }
}

/// The kinds of symbols, while the streams are read.
pub(super) struct SymbolKinds {
    /// Of symbols that stand alone, by their number.
    once: Vec<u32>,
    /// Of symbols that are repeated or have a number beyond those.
    others: Map<(u32, u32), u32>,
}

const UNKNOWN: u32 = u32::MAX;

impl SymbolKinds {
    /// Symbols below `symbols` take 4 bytes each, others a place in a hash table.
    pub(super) fn new(symbols: usize) -> Self {
        Self { once: vec![UNKNOWN; symbols], others: Map::default() }
    }

    /// The kind of a symbol that occurs `times` times in a row.
    #[inline]
    pub(super) fn kind(&mut self, symbol: u32, times: u32, kinds: &mut Kinds) -> Result<u32> {
        let known = match self.once.get_mut(symbol as usize) {
            Some(known) if times == 1 => known,
            _ => self.others.entry((symbol, times)).or_insert(UNKNOWN),
        };
        if *known == UNKNOWN {
            *known = kinds.add(symbol, times)?;
        }
        Ok(*known)
    }
}
