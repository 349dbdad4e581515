//! Codes how often an item repeats: first whether it does, given the history of the target;
//! then the count, given the counts of the target, those after the symbol before it, and all
//! counts.

use super::number::{Decision, code_number};
use super::{Code, Model, RULE, code_of, keys};
use crate::archive::bit_model::{BitModel, Flag, LEVELS, Mixer, context};
use crate::archive::coder::Coder;
use crate::fold::Target;
use crate::{Error, Result};

/// Whether a target repeated before.
#[derive(Clone, Copy, Default)]
pub(super) struct Repeats {
    model: BitModel,
    /// The last four answers as bits, the last one lowest, below a one; once there were
    /// four, below 1 and 0. Nothing before the first.
    history: u8,
}

impl Repeats {
    fn learn(&mut self, value: bool) {
        self.model.learn(value);
        let history = self.history.max(1);
        self.history = (history << 1 | u8::from(value)) & 15 | if history >= 8 { 16 } else { 0 };
    }
}

/// The model of repeats.
pub(super) struct Times {
    /// By the history of the target, rules behind symbols, and the level of its model.
    repeats: [[Flag; LEVELS]; 64],
    count: Mixer<2>,
    /// For each decision on a count.
    counts: Vec<BitModel>,
}

/// So many bits of a count below the highest are learnt.
const LEARNT: u32 = 7;

impl Default for Times {
    fn default() -> Self {
        Self {
            repeats: [Flag::by_level(); 64],
            count: Mixer::new(64 + LEARNT as usize, [50; 2], 14),
            counts: vec![BitModel::default(); 128 << LEARNT],
        }
    }
}

impl Model {
    /// Codes how often a target repeats.
    pub(in crate::archive) fn code_times(
        &mut self,
        coder: &mut impl Coder,
        target: Target,
        times: u64,
    ) -> Result<u64> {
        let code = code_of(target);
        if !self.code_repeats(coder, code, times > 1) {
            return Ok(1);
        }
        let less_two = self.code_count(coder, code, times.wrapping_sub(2));
        let times = less_two.checked_add(2).ok_or_else(|| Error::damaged("rules", "a count is too large"))?;
        if code & RULE == 0 {
            (1..times.min(3)).for_each(|_| self.text.end = self.text.end.then(code));
        }
        Ok(times)
    }

    fn code_repeats(&mut self, coder: &mut impl Coder, code: Code, value: bool) -> bool {
        let (repeats, kind) = match code & RULE {
            0 => (&mut self.symbols[code as usize].repeats, 0),
            _ => (&mut self.rules[(code & !RULE) as usize].repeats, 32),
        };
        let flag = &mut self.times.repeats[kind + usize::from(repeats.history)][repeats.model.level()];
        let value = flag.code(coder, value);
        repeats.learn(value);
        value
    }

    fn code_count(&mut self, coder: &mut impl Coder, code: Code, count: u64) -> u64 {
        let Self { models, times, .. } = self;
        code_number(count, |decision, value| {
            let (situation, what) = match decision {
                Decision::More { bits } => (bits, bits),
                Decision::Bit { bits, depth, high } if depth < LEARNT => {
                    (64 + depth, 64 << LEARNT | bits << LEARNT | high as u32)
                }
                Decision::Bit { .. } => return coder.even(value),
            };
            let general = &mut times.counts[what as usize];
            let own = models.of(context(keys::COUNT_OF_TARGET, code, what));
            times.count.code(coder, situation as usize, [general, own], value)
        })
    }
}
