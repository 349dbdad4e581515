//! Which member of a symbol an item is: the symbol itself or one of the rules that begin
//! with it.
//!
//! The two members used last are asked for one by one. All others are weighed by their
//! uses: a rule that was used once will be used again, since folders keep no rule for one
//! use, but most are used no more than twice; so a rule weighs most before its second
//! use and least after it, and then more with every use.

use super::{Code, Kind, Model, RULE, context};
use crate::archive::chance::{Chance, Mixer, stretch};
use crate::archive::coder::Coder;
use crate::archive::weights::Weights;
use crate::{Result, RuleId};

/// The members of one symbol. Index 0 is the symbol itself, the others are rules in the
/// order in which they became known.
pub(super) struct Members {
    symbol_uses: u32,
    rules: Vec<RuleId>,
    /// Those used last, the last one first.
    recent: [Recent; RECENT],
    recents: usize,
    /// All others, by index; the recent ones weigh nothing here.
    others: Weights,
}

const RECENT: usize = 2;

/// A member that was used lately.
#[derive(Clone, Copy)]
struct Recent {
    code: Code,
    index: u32,
    uses: u32,
    /// When it was used last.
    clock: u32,
}

impl Recent {
    fn is_rule(&self) -> bool {
        self.code & RULE != 0
    }

    /// Which chance tells how likely it is: by its uses, how long ago the last one was,
    /// and whether it is a rule.
    fn age(&self, now: u32) -> usize {
        let uses = if self.uses < 8 { self.uses } else { (self.uses.ilog2() + 5).min(15) };
        let since = now.wrapping_sub(self.clock).saturating_add(1).ilog2();
        (uses * 32 + since) as usize * 2 + usize::from(self.is_rule())
    }
}

impl Members {
    /// Those of a new symbol: only itself.
    pub(super) fn new(symbol: Code, clock: u32) -> Self {
        let itself = Recent { code: symbol, index: 0, uses: 1, clock };
        Self {
            symbol_uses: 1,
            rules: Vec::new(),
            recent: [itself; RECENT],
            recents: 1,
            others: Weights::default(),
        }
    }

    fn len(&self) -> usize {
        self.rules.len() + 1
    }

    /// Puts a member at the head of the recent ones; the last of them becomes one of the
    /// others.
    fn make_recent(&mut self, member: Recent, eagerness: u8) -> Result<()> {
        if self.recents < RECENT {
            self.recents += 1;
        } else {
            let leaving = self.recent[RECENT - 1];
            self.others.grow_to(self.rules.len() + 1);
            self.others.add(leaving.index as usize, weight(leaving.uses, leaving.is_rule(), eagerness))?;
        }
        self.recent.rotate_right(1);
        self.recent[0] = member;
        Ok(())
    }
}

/// How much a member weighs after so many uses.
fn weight(uses: u32, is_rule: bool, eagerness: u8) -> u32 {
    match uses {
        0 | 1 if is_rule => eagerness.into(),
        0 | 1 => 2,
        _ => 2 * (uses - 1).min(1 << 12),
    }
}

/// What is known of picking members in general.
pub(super) struct Picks {
    mixer: Mixer<3>,
    by_age: Vec<Chance>,
}

impl Default for Picks {
    fn default() -> Self {
        Self { mixer: Mixer::new(RECENT, [35, 35, 80]), by_age: vec![Chance::default(); 16 * 32 * 2] }
    }
}

impl Model {
    /// Codes which of the members of `first` it is, and counts its use.
    pub(super) fn code_member(&mut self, coder: &mut impl Coder, first: Code, wanted: Code) -> Result<Code> {
        let members = &self.symbols[first as usize].members;
        let eagerness = self.settings.eagerness;
        let weights = members.recent.map(|recent| weight(recent.uses, recent.is_rule(), eagerness));
        let mut left = members.others.total();
        weights[..members.recents].iter().for_each(|&weight| left = left.saturating_add(weight));
        let recents = members.recents;
        for (rank, &weight) in weights.iter().enumerate().take(recents) {
            let members = &self.symbols[first as usize].members;
            let (recent, is_last) = (members.recent[rank], rank + 1 == members.len());
            if is_last || self.code_recent(coder, rank, recent, weight, left, recent.code == wanted) {
                self.use_recent(first, rank);
                return Ok(recent.code);
            }
            left = left.saturating_sub(weight);
        }
        let index = match wanted & RULE {
            0 => 0,
            _ => self.rules.get((wanted & !RULE) as usize).map_or(0, |rule| rule.index as usize),
        };
        let index = self.symbols[first as usize].members.others.code(coder, index)?;
        self.use_other(first, index)
    }

    /// Codes whether it is this recent member, whose share of what is left is known.
    #[inline]
    fn code_recent(
        &mut self,
        coder: &mut impl Coder,
        rank: usize,
        recent: Recent,
        weight: u32,
        left: u32,
        value: bool,
    ) -> bool {
        let after_symbol =
            self.chances.place(context(Kind::MemberAfterSymbol, self.last[0], recent.code.into()));
        let by_age = &mut self.picks.by_age[recent.age(self.clock)];
        let share = (weight << 16) / left.max(1);
        let opinions = [by_age.opinion(), self.chances.opinion(after_symbol), stretch(share)];
        let value = self.picks.mixer.code(coder, rank, opinions, value);
        by_age.learn(value);
        self.chances.learn(after_symbol, value);
        value
    }

    fn use_recent(&mut self, first: Code, rank: usize) {
        let members = &mut self.symbols[first as usize].members;
        members.recent[..=rank].rotate_right(1);
        let recent = &mut members.recent[0];
        recent.uses = recent.uses.saturating_add(1);
        recent.clock = self.clock;
        match recent.code & RULE {
            0 => members.symbol_uses = recent.uses,
            _ => self.rules[(recent.code & !RULE) as usize].uses = recent.uses,
        }
    }

    fn use_other(&mut self, first: Code, index: usize) -> Result<Code> {
        let eagerness = self.settings.eagerness;
        let members = &mut self.symbols[first as usize].members;
        let (code, uses) = match index.checked_sub(1) {
            None => (first, &mut members.symbol_uses),
            Some(rule) => {
                let rule = members.rules[rule];
                (rule.raw() | RULE, &mut self.rules[rule.index()].uses)
            }
        };
        members.others.subtract(index, weight(*uses, index > 0, eagerness));
        *uses = uses.saturating_add(1);
        let member = Recent { code, index: index as u32, uses: *uses, clock: self.clock };
        members.make_recent(member, eagerness)?;
        Ok(code)
    }

    /// Adds a rule to the members of the symbol it begins with and returns its index.
    pub(super) fn add_member(&mut self, first: Code, code: Code) -> Result<u32> {
        let members = &mut self.symbols[first as usize].members;
        let index = members.len() as u32;
        members.rules.push(RuleId::from_raw(code & !RULE));
        members.make_recent(Recent { code, index, uses: 1, clock: self.clock }, self.settings.eagerness)?;
        Ok(index)
    }
}
