//! The first events of rules, unfolded when they are first looked at and only as far.
//!
//! Memory stays below a limit: when it is reached, everything is forgotten and unfolded
//! anew when it is needed again.

use crate::RuleId;
use crate::fold::Fold;

/// Events kept at the most, 4 bytes each.
const LARGEST: usize = 1 << 26;
/// Events unfolded at the least: looking at a rule at all has its price.
const LEAST: u32 = 16;

/// The first events of rules.
pub(super) struct Heads<'a> {
    fold: &'a Fold,
    /// No rule is looked at beyond this many events.
    most: u32,
    /// For each rule where its first events are, and how many are known.
    known: Vec<(u32, u32)>,
    events: Vec<u32>,
}

impl<'a> Heads<'a> {
    /// For rules of which at most `most` events matter.
    pub(super) fn new(fold: &'a Fold, most: u32) -> Self {
        Self { fold, most, known: vec![(0, 0); fold.rules().len()], events: Vec::new() }
    }

    /// Event number `at` of a rule.
    pub(super) fn event(&mut self, rule: RuleId, at: u32) -> u32 {
        let (start, known) = self.known[rule.index()];
        if at < known {
            return self.events[(start + at) as usize];
        }
        self.unfold(rule, at + 1);
        self.events[(self.known[rule.index()].0 + at) as usize]
    }

    fn unfold(&mut self, rule: RuleId, wanted: u32) {
        let length = self.fold.length(rule).min(u64::from(self.most)) as u32;
        let wanted = wanted.saturating_mul(2).max(LEAST).min(length);
        if self.events.len() + wanted as usize > LARGEST {
            self.events.clear();
            self.known.fill((0, 0));
        }
        let start = self.events.len() as u32;
        self.events.extend(self.fold.unfold(rule).take(wanted as usize).map(|symbol| symbol.raw()));
        self.known[rule.index()] = (start, wanted);
    }
}
