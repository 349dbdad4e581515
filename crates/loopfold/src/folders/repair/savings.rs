//! Decides which rules save bytes in an archive, and which are better inlined.
//!
//! A rule that a single item uses, once, saves nothing. A rule of two items that two items use
//! saves no item either, but may save bytes: an item costs about the logarithm of how rare it
//! is, and a new rule costs a flag. A rule pays where two rare items become one, not where they
//! are frequent. On real control flow this leaves out up to a third of the rules and a few
//! bytes in a thousand; the number of items stays. Writing some rules in place makes other
//! items more frequent, so this is done a few times.
//!
//! Time and memory are O(items + rules). Logarithms are of integers, so that the outcome is the
//! same on every machine.

use super::kinds::{Kinds, Repeated};
use super::sequence::{END, Sequence};
use crate::interrupt;

/// For each rule whether it is written in place. The sequence has no holes.
pub(super) fn written_in_place(sequence: &Sequence, kinds: &Kinds) -> Vec<bool> {
    let mut in_place = vec![false; kinds.rules().len()];
    for _ in 0..ROUNDS {
        in_place = Uses::count(sequence, kinds, &in_place).too_dear(kinds);
    }
    in_place
}

const ROUNDS: usize = 3;

/// Costs are counted in parts of a bit.
const BIT: i64 = 256;

/// What a new rule costs beside its flag: its length, and one more choice for items that begin
/// with the same symbol. Determined on real traces; twice or half as much makes little
/// difference.
const NEW_RULE: i64 = 4 * BIT;

/// How often everything is written when some rules are written in place.
struct Uses {
    of_kinds: Vec<u64>,
    of_rules: Vec<u64>,
    /// The rules that some item repeats.
    repeated: Vec<bool>,
    /// The number of items.
    items: u64,
    /// The number of rules that are not written in place.
    rules: u64,
}

impl Uses {
    fn count(sequence: &Sequence, kinds: &Kinds, in_place: &[bool]) -> Self {
        let rules = kinds.rules().len();
        let mut uses = Self {
            of_kinds: vec![0; kinds.len()],
            of_rules: vec![0; rules],
            repeated: vec![false; rules],
            items: 0,
            rules: 0,
        };
        interrupt::poll();
        for &kind in sequence.cells().iter().filter(|&&kind| kind != END) {
            uses.add(kind, 1, kinds, in_place);
        }
        // A rule is used only by later ones, so its own uses are known when it comes.
        for (rule, body) in kinds.rules().iter().enumerate().rev() {
            let times = if in_place[rule] { uses.of_rules[rule] } else { 1 };
            uses.rules += u64::from(!in_place[rule]);
            body.iter().for_each(|&kind| uses.add(kind, times, kinds, in_place));
        }
        uses
    }

    fn add(&mut self, kind: u32, uses: u64, kinds: &Kinds, in_place: &[bool]) {
        self.of_kinds[kind as usize] += uses;
        let (repeated, times) = kinds.meaning(kind);
        if let Repeated::Rule(rule) = repeated {
            self.of_rules[rule] += uses;
            self.repeated[rule] |= times > 1;
            if in_place[rule] {
                return;
            }
        }
        self.items += uses;
    }

    /// The rules that save no item, and whose cost is more than that of what they
    /// replace.
    fn too_dear(&self, kinds: &Kinds) -> Vec<bool> {
        let mut in_place = Vec::with_capacity(kinds.rules().len());
        let new_rule = self.rarity(self.rules) + NEW_RULE;
        for (rule, body) in kinds.rules().iter().enumerate() {
            let is_longer = |&kind: &u32| match kinds.meaning(kind).0 {
                Repeated::Rule(inner) => in_place[inner],
                Repeated::Symbol(_) => false,
            };
            let uses = self.of_rules[rule];
            let saves_items = uses > 2 || uses == 2 && body.iter().any(is_longer);
            let cost: i64 = body.iter().map(|&kind| self.rarity(self.of_kinds[kind as usize])).sum();
            let pays = uses == 2 && cost - self.rarity(uses) > new_rule;
            in_place.push(!self.repeated[rule] && !saves_items && !pays);
        }
        in_place
    }

    /// The cost of an item with this many uses.
    fn rarity(&self, uses: u64) -> i64 {
        logarithm(self.items) - logarithm(uses)
    }
}

/// The binary logarithm, straight lines between powers of two.
fn logarithm(number: u64) -> i64 {
    let whole = i64::from(number.max(1).ilog2());
    let power = 1u128 << whole;
    let part = (u128::from(number.max(1)) - power) * BIT as u128 / power;
    whole * BIT + part as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms() {
        assert_eq!([0, 1, 2, 3, 4, 1 << 40].map(logarithm), [0, 0, BIT, BIT + BIT / 2, 2 * BIT, 40 * BIT]);
        assert!(logarithm(u64::MAX) < 64 * BIT);
    }
}
