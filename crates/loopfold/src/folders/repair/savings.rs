//! Which rules save something in an archive, and which are better written in place.
//!
//! A rule that a single item uses, once, saves nothing. Of the others, what an
//! archive pays is estimated: an item costs the logarithm of how rare its kind is; the first
//! use of a rule costs telling that it is new, and its body; every further use costs an
//! item instead of the body. Writing some rules in place makes other items more
//! frequent, so this is done twice. Beside taking every rule that saves an item, on real
//! control flow this leaves a third of the rules out, makes the archive smaller by up to a
//! hundredth and adds a few items in a thousand.
//!
//! Time and memory go with the items and rules. Logarithms are of whole numbers, so that
//! the outcome is the same on every machine.

use super::kinds::{Kinds, Repeated};
use super::sequence::{END, Sequence};

/// For each rule whether it is written in place. The sequence has no holes.
pub(super) fn written_in_place(sequence: &Sequence, kinds: &Kinds) -> Vec<bool> {
    let mut in_place = vec![false; kinds.rules().len()];
    for round in 0..=ROUNDS {
        let uses = Uses::count(sequence, kinds, &in_place);
        in_place = if round == 0 { uses.single() } else { uses.too_dear(kinds, &in_place) };
    }
    in_place
}

const ROUNDS: usize = 2;

/// Costs are counted in parts of a bit.
const BIT: i64 = 256;

/// What a new rule costs beside telling that it is new: its length, and one more choice for
/// items that begin alike. Tried out on real traces; twice or half as much makes little
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

    /// The rules that a single item uses, once.
    fn single(&self) -> Vec<bool> {
        self.of_rules.iter().zip(&self.repeated).map(|(&uses, &repeated)| uses < 2 && !repeated).collect()
    }

    /// The rules that cost more than they save.
    fn too_dear(&self, kinds: &Kinds, in_place: &[bool]) -> Vec<bool> {
        let mut costs: Vec<i64> = Vec::with_capacity(in_place.len());
        let mut too_dear = Vec::with_capacity(in_place.len());
        let new_rule = self.rarity(self.rules) + NEW_RULE;
        for (rule, body) in kinds.rules().iter().enumerate() {
            let cost_of = |kind: u32| match kinds.meaning(kind).0 {
                Repeated::Rule(inner) if too_dear[inner] => costs[inner],
                _ => self.rarity(self.of_kinds[kind as usize]),
            };
            let cost = cost_of(body[0]).saturating_add(cost_of(body[1]));
            let uses = self.of_rules[rule];
            let further_uses = i64::try_from(uses).unwrap_or(i64::MAX).saturating_sub(1);
            let saved = (cost - self.rarity(uses)).saturating_mul(further_uses);
            too_dear.push(!self.repeated[rule] && saved <= new_rule);
            costs.push(cost);
        }
        too_dear
    }

    /// The cost of an item that is used so often.
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
