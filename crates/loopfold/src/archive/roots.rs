//! Codes the root of a stream: a new rule, the root of another stream, or any rule.

use super::bit_model::Flag;
use super::coder::Coder;
use super::weights::Weights;
use crate::{Result, RuleId};
use hashbrown::HashMap;

#[derive(Default)]
pub(super) struct Roots {
    is_new: Flag,
    is_another: Flag,
    /// The roots so far, by index, and how often each was one.
    roots: Vec<(RuleId, u32)>,
    indices: HashMap<RuleId, usize>,
    weights: Weights,
}

impl Roots {
    /// Codes the root of the next stream, one of so many known rules, or `None` for a new one.
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        known_rules: usize,
        root: Option<RuleId>,
    ) -> Result<Option<RuleId>> {
        if known_rules == 0 || self.is_new.code(coder, root.is_none()) {
            return Ok(None);
        }
        let index = root.and_then(|root| self.indices.get(&root).copied());
        let root = if self.is_another.code(coder, index.is_some()) {
            let index = self.weights.code(coder, index.unwrap_or(0), |index| self.roots[index].1)?;
            self.roots[index].0
        } else {
            let raw = coder.flat(known_rules as u32, root.map_or(0, RuleId::raw))?;
            RuleId::from_raw(raw)
        };
        self.learn(root)?;
        Ok(Some(root))
    }

    /// Learns the root of a stream.
    pub(super) fn learn(&mut self, root: RuleId) -> Result<()> {
        let index = *self.indices.entry(root).or_insert(self.roots.len());
        if index == self.roots.len() {
            self.roots.push((root, 0));
        }
        self.roots[index].1 += 1;
        self.weights.add(index, 1)
    }
}
