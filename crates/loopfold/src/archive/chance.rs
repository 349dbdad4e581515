//! How likely a yes is, learnt from what came before, and how several opinions on that
//! are mixed into one.
//!
//! A [`Chance`] is learnt in one context. Opinions from several contexts are mixed the
//! way context mixing does: each is a logarithm of odds, they are added with weights,
//! and the sum is a chance again; then the weights move towards the opinions that were
//! right. All of it is done in integers, so that every machine reads what any other
//! wrote. A mixed decision costs about 5 ns, and 3 for each opinion, as long as the
//! chances are in the cache.

use super::coder::{CERTAIN, Coder};

/// How likely a yes is in one context, for mixing: twelve bits of chance, and four for
/// how many answers it has learnt. Zero bits are a fresh one: even, with nothing learnt.
#[derive(Clone, Copy, Default)]
pub(super) struct Chance(u16);

/// The high bit is kept inverted, so that an even chance is 0.
const INVERTED: u16 = 1 << 15;
/// Of the bits of a [`Chance`] those that count answers; it never counts further.
const ANSWERS: u16 = 15;
/// A [`Flag`] never counts further.
const ANSWERS_OF_FLAGS: u16 = 250;

/// How far a chance moves towards an answer after so many others, in 65,536ths of the
/// way: 1/1.5, 1/2.5, and so on.
static STEPS: [i32; ANSWERS_OF_FLAGS as usize + 1] = {
    let mut steps = [0; ANSWERS_OF_FLAGS as usize + 1];
    let mut answers = 0;
    while answers < steps.len() {
        steps[answers] = (2 << 16) / (2 * answers as i32 + 3);
        answers += 1;
    }
    steps
};

impl Chance {
    /// The logarithm of its odds, in 256ths.
    #[inline]
    pub(super) fn opinion(self) -> i32 {
        stretch(u32::from(self.0 ^ INVERTED))
    }

    #[inline]
    pub(super) fn learn(&mut self, value: bool) {
        let answers = self.0 & ANSWERS;
        let chance = i32::from((self.0 ^ INVERTED) & !ANSWERS);
        let moved = moved(chance, answers, value);
        let rounded = ((moved + 8) as u32).min(CERTAIN - 1) as u16 & !ANSWERS;
        self.0 = (rounded ^ INVERTED) | (answers + 1).min(ANSWERS);
    }
}

/// A chance after an answer, when it has learnt so many others.
#[inline]
fn moved(chance: i32, answers: u16, value: bool) -> i32 {
    let goal = if value { CERTAIN as i32 - 1 } else { 0 };
    chance + (((goal - chance) * STEPS[usize::from(answers)]) >> 16)
}

/// A yes or no coded by its own chance alone, which is more precise and remembers longer.
#[derive(Clone, Copy)]
pub(super) struct Flag {
    chance: u16,
    answers: u16,
}

/// What a mixed chance may at most be when it is coded, and at least, from the other end.
const SUREST: u32 = CERTAIN - 32;

impl Default for Flag {
    fn default() -> Self {
        Self { chance: INVERTED, answers: 0 }
    }
}

impl Flag {
    #[inline]
    pub(super) fn code(&mut self, coder: &mut impl Coder, value: bool) -> bool {
        self.code_unsurely(coder, SUREST, value)
    }

    /// Codes an answer that is never taken for surer than `surest`, and so always costs
    /// something.
    #[inline]
    pub(super) fn code_unsurely(&mut self, coder: &mut impl Coder, surest: u32, value: bool) -> bool {
        let chance = u32::from(self.chance).clamp(CERTAIN - surest, surest);
        let value = coder.bit(chance, value);
        self.chance = moved(self.chance.into(), self.answers, value) as u16;
        self.answers = (self.answers + 1).min(ANSWERS_OF_FLAGS);
        value
    }
}

/// The chances at odds of e^-8, e^-7.5, and so on to e^8.
const ODDS: [i32; 33] = [
    22, 36, 60, 98, 162, 267, 439, 720, 1179, 1920, 3108, 4971, 7812, 11956, 17626, 24743, 32768, 40793,
    47910, 53580, 57724, 60565, 62428, 63616, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514,
];

/// No logarithm of odds is larger, in 256ths.
const LARGEST: i32 = 2047;

/// The chance that belongs to a logarithm of odds, between two of [`ODDS`].
#[inline]
const fn squash(odds: i32) -> i32 {
    let place = (odds + LARGEST + 1) as usize;
    let (index, part) = (place >> 7, (place & 127) as i32);
    (ODDS[index] * (128 - part) + ODDS[index + 1] * part) >> 7
}

/// The reverse of [`squash`] for chances in 4,096ths: the smallest odds that reach it.
static STRETCHED: [i16; 4096] = {
    let mut stretched = [LARGEST as i16; 4096];
    let mut next = 0;
    let mut odds = -LARGEST;
    while odds <= LARGEST {
        let reached = (squash(odds) >> 4) as usize;
        while next <= reached {
            stretched[next] = odds as i16;
            next += 1;
        }
        odds += 1;
    }
    stretched
};

/// The logarithm of the odds of a chance, in 256ths.
#[inline]
pub(super) fn stretch(chance: u32) -> i32 {
    i32::from(STRETCHED[(chance >> 4) as usize & 4095])
}

/// Mixes `N` opinions, with weights of their own for each of several situations.
pub(super) struct Mixer<const N: usize> {
    situations: Vec<Weighing<N>>,
}

/// The weights of one situation, and of an opinion that never changes.
#[derive(Clone, Copy)]
struct Weighing<const N: usize> {
    weights: [i32; N],
    bias: i32,
}

/// A weight of 1 in percent of it.
const fn percent(percent: i32) -> i32 {
    (percent << 16) / 100
}

/// No weight is larger, in either direction.
const HEAVIEST: i32 = 16 << 16;
/// The opinion that never changes.
const BIAS: i32 = 256;

impl<const N: usize> Mixer<N> {
    /// All situations begin with the same weights, given in percent.
    pub(super) fn new(situations: usize, weights: [i32; N]) -> Self {
        let weighing = Weighing { weights: weights.map(percent), bias: 0 };
        Self { situations: vec![weighing; situations] }
    }

    /// Codes an answer by these opinions.
    #[inline]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        situation: usize,
        opinions: [i32; N],
        value: bool,
    ) -> bool {
        let Weighing { weights, bias } = &mut self.situations[situation];
        let mut sum = i64::from(*bias) * i64::from(BIAS);
        for (&weight, opinion) in weights.iter().zip(opinions) {
            sum += i64::from(weight) * i64::from(opinion);
        }
        let odds = (sum >> 16).clamp(-i64::from(LARGEST), i64::from(LARGEST)) as i32;
        let chance = squash(odds);
        let value = coder.bit((chance as u32).clamp(CERTAIN - SUREST, SUREST), value);
        let error = if value { CERTAIN as i32 - chance } else { -chance };
        for (weight, opinion) in weights.iter_mut().zip(opinions) {
            adjust(weight, opinion, error);
        }
        adjust(bias, BIAS, error);
        value
    }
}

/// Moves the weight of an opinion, given by how much the mixed chance was too small.
#[inline]
fn adjust(weight: &mut i32, opinion: i32, error: i32) {
    *weight = (*weight + ((opinion * error + (1 << 13)) >> 14)).clamp(-HEAVIEST, HEAVIEST);
}

/// Many chances by context; contexts that fall on the same place share a chance.
pub(super) struct Chances {
    /// Bare numbers, since large memory of zeros is had for nothing.
    table: Vec<u16>,
    shift: u32,
}

impl Chances {
    /// Room for `2^bits` contexts, `bits` from 1 to 32.
    pub(super) fn new(bits: u32) -> Self {
        Self { table: vec![0; 1 << bits], shift: 64 - bits }
    }

    /// Where the chance of a [context](context) lies.
    #[inline]
    pub(super) fn place(&self, context: u64) -> usize {
        (context >> self.shift) as usize
    }

    #[inline]
    pub(super) fn opinion(&self, place: usize) -> i32 {
        Chance(self.table[place]).opinion()
    }

    #[inline]
    pub(super) fn learn(&mut self, place: usize, value: bool) {
        let mut chance = Chance(self.table[place]);
        chance.learn(value);
        self.table[place] = chance.0;
    }
}

/// One number for two, spread over all 64 bits.
#[inline]
pub(super) fn context(first: u64, second: u64) -> u64 {
    let mixed = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ second.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32).wrapping_mul(0xa076_1d64_78bd_642f)
}
