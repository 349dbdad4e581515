//! Codes which member of a symbol an item is: the symbol itself or one of the rules that begin
//! with it.
//!
//! First comes whether it is the member that was used last. All others are weighed by
//! their uses: a rule that was used once will be used again, since folders keep no rule
//! for one use, but most are used no more than twice; so a rule weighs most before its
//! second use, least after it, and then more with every use.

use super::{Code, Model, RULE};
use crate::Result;
use crate::archive::bit_model::{BitModel, Mixer, stretch};
use crate::archive::coder::{CERTAIN, Coder};
use crate::archive::weights::Weights;

/// The members of one symbol: itself, then the rules that begin with it in the order in
/// which they became known.
pub(super) struct Members {
    all: Vec<Member>,
    /// Which was used last, and when.
    latest: usize,
    clock: u32,
    /// How much each weighs; the latest weighs nothing.
    weights: Weights,
}

struct Member {
    code: Code,
    uses: u32,
}

impl Member {
    fn is_rule(&self) -> bool {
        self.code & RULE != 0
    }

    /// How likely it is, against others; `eagerness` if it is a rule that was used once.
    fn weight(&self, eagerness: u8) -> u32 {
        match self.uses {
            1 if self.is_rule() => eagerness.into(),
            uses => 2 * (uses - 1).clamp(1, 1 << 12),
        }
    }
}

impl Members {
    /// The members of a new symbol: only itself.
    pub(super) fn new(symbol: Code, clock: u32) -> Self {
        let all = vec![Member { code: symbol, uses: 1 }];
        Self { all, latest: 0, clock, weights: Weights::default() }
    }

    /// Adds a rule and returns its index. It counts as used.
    fn add(&mut self, code: Code, clock: u32, eagerness: u8) -> Result<usize> {
        self.all.push(Member { code, uses: 1 });
        self.become_latest(self.all.len() - 1, clock, eagerness)?;
        Ok(self.latest)
    }

    fn become_latest(&mut self, index: usize, clock: u32, eagerness: u8) -> Result<()> {
        self.weights.add(self.latest, self.all[self.latest].weight(eagerness))?;
        self.latest = index;
        self.clock = clock;
        Ok(())
    }

    /// Counts a use of the latest member.
    fn use_latest(&mut self, clock: u32) -> Code {
        let member = &mut self.all[self.latest];
        member.uses = member.uses.saturating_add(1);
        self.clock = clock;
        member.code
    }

    /// Counts a use of another member.
    fn use_other(&mut self, index: usize, clock: u32, eagerness: u8) -> Result<Code> {
        let member = &mut self.all[index];
        self.weights.subtract(index, member.weight(eagerness));
        member.uses = member.uses.saturating_add(1);
        let code = member.code;
        self.become_latest(index, clock, eagerness)?;
        Ok(code)
    }
}

/// The model of whether a member is the one used last.
pub(super) struct Latest {
    mixer: Mixer<2>,
    /// By the uses of the member, how long ago the last one was, and whether it is a rule.
    by_age: Vec<BitModel>,
}

impl Default for Latest {
    fn default() -> Self {
        Self { mixer: Mixer::new(1, [40, 80], 14), by_age: vec![BitModel::default(); 16 * 32 * 2] }
    }
}

impl Model {
    /// Codes which of the members of `first` it is, and counts its use.
    pub(super) fn code_member(&mut self, coder: &mut impl Coder, first: Code, wanted: Code) -> Result<Code> {
        let (clock, eagerness) = (self.clock, self.settings.eagerness);
        let members = &mut self.symbols[first as usize].members;
        let latest = &members.all[members.latest];
        let is_latest = latest.code == wanted;
        if members.all.len() == 1 || self.latest.code(coder, members, clock, eagerness, is_latest) {
            return Ok(members.use_latest(clock));
        }
        let index = match wanted & RULE {
            0 => 0,
            _ => self.beginnings.get((wanted & !RULE) as usize).map_or(0, |rule| rule.index as usize),
        };
        let index = members.weights.code(coder, index, |index| members.all[index].weight(eagerness))?;
        members.use_other(index, clock, eagerness)
    }

    /// Adds a rule to the members of the symbol it begins with and returns its index.
    pub(super) fn add_member(&mut self, first: Code, code: Code) -> Result<u32> {
        let members = &mut self.symbols[first as usize].members;
        Ok(members.add(code, self.clock, self.settings.eagerness)? as u32)
    }
}

impl Latest {
    /// Codes whether it is the member used last, for which the weights have a logit too.
    #[inline]
    fn code(
        &mut self,
        coder: &mut impl Coder,
        members: &Members,
        clock: u32,
        eagerness: u8,
        value: bool,
    ) -> bool {
        let latest = &members.all[members.latest];
        let weight = latest.weight(eagerness);
        let share = (weight << 16) / weight.saturating_add(members.weights.total());
        let uses = if latest.uses < 8 { latest.uses } else { (latest.uses.ilog2() + 5).min(15) };
        let ago = clock.wrapping_sub(members.clock).saturating_add(1).ilog2();
        let by_age = &mut self.by_age[(uses * 32 + ago) as usize * 2 + usize::from(latest.is_rule())];
        let logits = [by_age.logit(), stretch(share.min(CERTAIN - 1))];
        let value = self.mixer.code_logits(coder, 0, logits, value);
        by_age.learn(value);
        value
    }
}
