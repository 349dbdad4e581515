//! How often an item repeats: whether at all, by what the target did before; then the
//! count, by the counts of the target, those after the symbol before it, and all.

use super::number::{Decision, code_number};
use super::{Code, Kind, Model, RULE, code_of, context};
use crate::archive::chance::{Chance, Mixer};
use crate::archive::coder::Coder;
use crate::fold::Target;
use crate::{Error, Result};

/// Whether a target repeated before.
#[derive(Clone, Copy, Default)]
pub(super) struct Repeats {
    chance: Chance,
    /// The last four answers as bits, the last one lowest, below a one; once there were
    /// four, below 1 and 0. Nothing before the first.
    history: u8,
}

impl Repeats {
    /// How much the history tells: nothing, something, all of it.
    fn situation(self) -> usize {
        usize::from(self.history > 0) + usize::from(self.history >= 16)
    }

    fn learn(&mut self, value: bool) {
        self.chance.learn(value);
        let history = self.history.max(1);
        self.history = (history << 1 | u8::from(value)) & 15 | if history >= 8 { 16 } else { 0 };
    }
}

/// What is known of repeating in general.
pub(super) struct Times {
    flag: Mixer<2>,
    /// By the history of the target; rules come behind symbols.
    after_history: [Chance; 64],
    count: Mixer<3>,
}

/// So many bits of a count below the highest are learnt.
const LEARNT: u32 = 8;

impl Default for Times {
    fn default() -> Self {
        Self {
            flag: Mixer::new(3, [50; 2]),
            after_history: [Chance::default(); 64],
            count: Mixer::new(64 + LEARNT as usize, [35; 3]),
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
            self.last = [code, code, if times > 2 { code } else { self.last[1] }];
        }
        Ok(times)
    }

    fn code_repeats(&mut self, coder: &mut impl Coder, code: Code, value: bool) -> bool {
        let (repeats, kind) = match code & RULE {
            0 => (&mut self.symbols[code as usize].repeats, 0),
            _ => (&mut self.rules[(code & !RULE) as usize].repeats, 32),
        };
        let general = &mut self.times.after_history[kind + usize::from(repeats.history)];
        let opinions = [repeats.chance.opinion(), general.opinion()];
        let value = self.times.flag.code(coder, repeats.situation(), opinions, value);
        general.learn(value);
        repeats.learn(value);
        value
    }

    fn code_count(&mut self, coder: &mut impl Coder, code: Code, count: u64) -> u64 {
        let before = self.before_item;
        let (chances, mixer) = (&mut self.chances, &mut self.times.count);
        code_number(count, |decision, value| {
            let (situation, what) = match decision {
                Decision::More { bits } => (bits, u64::from(bits)),
                Decision::Bit { bits, depth, high } if depth < LEARNT => {
                    (64 + depth, 1 << 32 | u64::from(bits) << 16 | high)
                }
                Decision::Bit { .. } => return coder.even(value),
            };
            let places = [
                chances.place(context(Kind::Count, 0, what)),
                chances.place(context(Kind::CountOfTarget, code, what)),
                chances.place(context(Kind::CountAfterSymbol, before, what)),
            ];
            let opinions = places.map(|place| chances.opinion(place));
            let value = mixer.code(coder, situation as usize, opinions, value);
            places.into_iter().for_each(|place| chances.learn(place, value));
            value
        })
    }
}
