//! Codes a number by its number of bits and its difference from the last one with as many.
//!
//! Addresses and identifiers of one kind have the same number of bits and lie near each
//! other. Each decision is coded by the levels of two models.

use crate::archive::bit_model::{BitModels, Flag, LEVELS, context};
use crate::archive::coder::Coder;
use crate::{Error, Result};

/// The model of numbers.
pub(super) struct Numbers {
    flags: Vec<[[Flag; LEVELS]; LEVELS]>,
    /// The last number with this many bits.
    last: [u64; 65],
    /// How many bits the last number had.
    width: u32,
    /// How many bits the last difference had, twice, and whether it was negative.
    step: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { flags: vec![Flag::by_levels(); SITUATIONS], last: [0; 65], width: 0, step: 0 }
    }
}

/// What a decision is about: the bits of the number, those of the difference, its sign,
/// and its bits, which have a situation for each of sixteen places.
#[derive(Clone, Copy)]
enum About {
    Width = 0,
    Step = 1,
    Sign = 2,
    Bits = 3,
}

const SITUATIONS: usize = About::Bits as usize + 16;

/// The keys of the contexts, two for each of what decisions are about.
const KEYS: [[u64; 2]; 4] = [
    [0x5899_65cc_7537_4cc3, 0x1d8e_4e27_c47d_124f],
    [0xeb44_acca_b455_d165, 0x9c6e_6877_736c_46e3],
    [0x6c9e_3a1f_2b47_d8a5, 0xc2b2_ae3d_27d4_eb4f],
    [0x1656_67b1_9e37_79f9, 0xff51_afd7_ed55_8ccd],
];

impl Numbers {
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        wanted: u64,
    ) -> Result<u64> {
        let width = self.code_width(coder, models, About::Width, self.width, bits_of(wanted))?;
        let last = self.last[width as usize];
        let difference = wanted.wrapping_sub(last) as i64;
        let wanted = difference.unsigned_abs();
        let bits = self.code_width(coder, models, About::Step, self.step, bits_of(wanted))?;
        let contexts = [bits, bits << 8 | self.step];
        let is_negative = bits > 0 && self.decide(coder, models, About::Sign, 0, contexts, difference < 0);
        let distance = self.code_distance(coder, models, bits, last as u32 & 15, is_negative, wanted);
        let number = if is_negative { last.wrapping_sub(distance) } else { last.wrapping_add(distance) };
        if bits_of(number) != width {
            return Err(Error::damaged("coded", "a number does not have as many bits as it should"));
        }
        self.last[width as usize] = number;
        self.width = width;
        self.step = bits << 1 | u32::from(is_negative);
        Ok(number)
    }

    /// Codes how many bits something has, given what came before.
    fn code_width(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        about: About,
        before: u32,
        wanted: u32,
    ) -> Result<u32> {
        let mut node = 1;
        for bit in (0..7).rev() {
            let contexts = [node, before << 8 | node];
            let value = self.decide(coder, models, about, 0, contexts, wanted >> bit & 1 == 1);
            node = node << 1 | u32::from(value);
        }
        let width = node & 127;
        if width > u64::BITS {
            return Err(Error::damaged("coded", "a number has too many bits"));
        }
        Ok(width)
    }

    /// Codes a distance of this many bits. Its highest bits are learnt, and its lowest four,
    /// given those of the number it starts from, since addresses are aligned.
    fn code_distance(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        bits: u32,
        from: u32,
        is_negative: bool,
        wanted: u64,
    ) -> u64 {
        let mut distance = u64::from(bits > 0);
        for bit in (0..bits.saturating_sub(1)).rev() {
            let value = wanted >> bit & 1 == 1;
            let known = bits - 1 - bit;
            let high = bits << 8 | if known <= 6 { distance as u32 } else { 128 | bit };
            let low = match bit {
                0..4 => (bit << 4 | from) << 4 | (distance as u32 & 7) << 1 | u32::from(is_negative),
                _ => 1 << 16 | bit,
            };
            let value = match known > 6 && bit >= 4 {
                true => coder.even(value),
                false => self.decide(coder, models, About::Bits, known.min(15), [high, low], value),
            };
            distance = distance << 1 | u64::from(value);
        }
        distance
    }

    fn decide(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        about: About,
        place: u32,
        contexts: [u32; 2],
        value: bool,
    ) -> bool {
        let [first, second] =
            [0, 1].map(|kind| models.place(context(KEYS[about as usize][kind], 0, contexts[kind])));
        let levels = (models.at(first).level(), models.at(second).level());
        let value = self.flags[about as usize + place as usize][levels.0][levels.1].code(coder, value);
        models.at(first).learn(value);
        models.at(second).learn(value);
        value
    }
}

fn bits_of(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}
