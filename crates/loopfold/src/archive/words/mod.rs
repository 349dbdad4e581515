//! A context-mixing model of names and numbers. It makes a short list smaller than a general
//! compressor does, but takes many times as long, so long lists are not modelled.
//!
//! A name is coded letter by letter. The letter that followed the last five bytes, or else the
//! last three, is a guess; if that is wrong, the letter is coded as the bits of a fixed Huffman
//! code ([`letters`]). Each bit has three logits: in the context of the last byte, of the last
//! two, and of the two bytes at this place of the name before, since similar names are aligned
//! in columns. A number is coded by its number of bits, and its difference from the last one
//! with as many ([`numbers`]).
//!
//! A letter takes two to four decisions, 50 to 100 ns, a number about 200 ns. Memory is
//! 200 to 500 bytes for a byte of text, and 2.5 MB at most, as no longer texts are modelled.

mod letters;
mod numbers;

use self::letters::Letter;
use self::numbers::Numbers;
use super::bit_model::{BitModels, Flag, LEVELS, Mixer, context};
use super::coder::Coder;
use crate::{Error, Result};

/// The model of names and numbers.
pub(super) struct Words {
    models: BitModels,
    names: Names,
    numbers: Numbers,
}

/// The model of names.
struct Names {
    /// What followed five bytes, and three.
    after_five: Vec<Expected>,
    after_three: Vec<Expected>,
    shift: u32,
    /// Whether it is what was expected: after five bytes or three, with which trust,
    /// whether both expect it, and the level of its model after the last byte.
    guess: [[[[Flag; LEVELS]; 2]; TRUSTS]; 2],
    bits: Mixer<3>,
    /// The last eight bytes, the last one lowest. A name ends with a zero.
    last: u64,
    /// The name before this one.
    above: Vec<u8>,
}

/// The expected letter in one context.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// The letter, if there is trust.
    letter: Letter,
    trust: u8,
}

/// How far trust matters.
const TRUSTS: usize = 4;

impl Expected {
    fn learn(&mut self, letter: Letter) {
        if self.letter == letter {
            self.trust = self.trust.saturating_add(1);
        } else if self.trust > 1 {
            self.trust -= self.trust.div_ceil(4);
        } else {
            *self = Self { letter, trust: 1 };
        }
    }
}

/// The keys of the kinds of contexts.
mod keys {
    pub(super) const FIVE_BYTES: u64 = 0x9e37_79b9_7f4a_7c15;
    pub(super) const THREE_BYTES: u64 = 0xd6e8_feb8_6659_fd93;
    pub(super) const GUESS: u64 = 0xbf58_476d_1ce4_e5b9;
    pub(super) const BITS: [u64; 3] = [0x94d0_49bb_1331_11eb, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    pub(super) const KNOWN_BITS: u64 = 0x8ebc_6af0_9c88_c6e3;
}

impl Words {
    /// A model for about this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let bits = usize::BITS - bytes.leading_zeros();
        let slots = bits.clamp(6, 18);
        Self {
            models: BitModels::new((bits + 7).clamp(10, 20)),
            names: Names {
                after_five: vec![Expected::default(); 1 << slots],
                after_three: vec![Expected::default(); 1 << slots],
                shift: u64::BITS - slots,
                guess: [[[Flag::by_level(); 2]; TRUSTS]; 2],
                bits: Mixer::new(1, [40; 3], 15),
                last: 0,
                above: Vec::new(),
            },
            numbers: Numbers::default(),
        }
    }

    /// Codes a name of no more than `most` bytes.
    pub(super) fn code_name(&mut self, coder: &mut impl Coder, name: &[u8], most: usize) -> Result<Vec<u8>> {
        let mut coded = Vec::new();
        loop {
            let wanted = name.get(coded.len()).map_or(Letter::END, |&byte| Letter::from(byte));
            let letter = self.names.code_letter(coder, &mut self.models, coded.len(), wanted);
            let Some(byte) = letter.byte() else { break };
            if coded.len() == most {
                return Err(Error::damaged("coded", "a text is longer than it may be"));
            }
            coded.push(byte);
        }
        self.names.above.clone_from(&coded);
        Ok(coded)
    }

    /// Codes a number.
    pub(super) fn code_number(&mut self, coder: &mut impl Coder, number: u64) -> Result<u64> {
        self.numbers.code(coder, &mut self.models, number)
    }
}

impl Names {
    /// Codes a letter at a place of a name.
    fn code_letter(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        place: usize,
        wanted: Letter,
    ) -> Letter {
        let last = self.last as u32;
        let five = (context(keys::FIVE_BYTES, last, (self.last >> 32) as u32 & 0xff) >> self.shift) as usize;
        let three = (context(keys::THREE_BYTES, last & 0xff_ffff, 0) >> self.shift) as usize;
        let letter = match self.code_guess(coder, models, five, three, wanted) {
            Some(letter) => letter,
            None => self.code_bits(coder, models, place, wanted),
        };
        self.after_five[five].learn(letter);
        self.after_three[three].learn(letter);
        self.last = self.last << 8 | u64::from(letter.byte().unwrap_or(0));
        letter
    }

    /// Codes whether a letter is what is expected, and returns it if it is.
    fn code_guess(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        five: usize,
        three: usize,
        wanted: Letter,
    ) -> Option<Letter> {
        let (after_five, after_three) = (self.after_five[five], self.after_three[three]);
        let (source, expected) = if after_five.trust > 0 { (0, after_five) } else { (1, after_three) };
        if expected.trust == 0 {
            return None;
        }
        let agree = usize::from(after_five.letter == after_three.letter);
        let what = expected.letter.number() << 8 | self.last as u32 & 0xff;
        let model = models.of(context(keys::GUESS, what, 0));
        let trust = usize::from(expected.trust).min(TRUSTS - 1);
        let flag = &mut self.guess[source][trust][agree][model.level()];
        let value = flag.code(coder, expected.letter == wanted);
        model.learn(value);
        value.then_some(expected.letter)
    }

    /// Codes a letter by the bits of its code.
    fn code_bits(
        &mut self,
        coder: &mut impl Coder,
        models: &mut BitModels,
        place: usize,
        wanted: Letter,
    ) -> Letter {
        let contexts = self.contexts(place);
        let (code, length) = wanted.code();
        let mut known = letters::Known::default();
        loop {
            let left = length.saturating_sub(known.length() + 1);
            let bits = u64::from(known.bits()).wrapping_mul(keys::KNOWN_BITS);
            let places = contexts.map(|context| models.place(context.wrapping_add(bits)));
            let logits = places.map(|place| models.at(place).logit());
            let bit = self.bits.code_logits(coder, 0, logits, code >> left & 1 == 1);
            places.into_iter().for_each(|place| models.at(place).learn(bit));
            if let Some(letter) = known.learn(bit) {
                return letter;
            }
        }
    }

    /// What lies before a letter: a byte, two bytes, and two of the name above.
    fn contexts(&self, place: usize) -> [u64; 3] {
        let above = |place: usize| self.above.get(place).map_or(0, |&byte| u32::from(byte) + 1);
        let last = self.last as u32;
        let before = [last & 0xff, last & 0xffff, above(place) << 16 | above(place + 1)];
        std::array::from_fn(|kind| {
            let context = context(keys::BITS[kind], before[kind], 0);
            (context ^ context >> 29).wrapping_mul(keys::KNOWN_BITS)
        })
    }
}
