//! Adaptive models of binary decisions, and logistic mixing of several of them.
//!
//! A [`BitModel`] learns the probability of a yes in one context. A [`Mixer`] adds the logits
//! (logarithms of odds) of several models with weights, codes the decision with the
//! probability of the sum, and moves the weights towards the models that were right, as
//! context mixing does. A [`Flag`] is a model that codes by itself. All of it is integer
//! arithmetic, so that every machine reads what any other wrote.
//!
//! A mixed decision costs about 5 ns, and 3 for each logit, as long as the models are in the
//! cache.

use super::coder::{CERTAIN, Coder};

/// How likely a yes is in one context, for mixing: twelve bits of probability, and four for
/// how many answers it has learnt. A fresh one is even and has learnt none.
#[derive(Clone, Copy)]
pub(super) struct BitModel(u16);

impl Default for BitModel {
    fn default() -> Self {
        Self(EVEN)
    }
}

const EVEN: u16 = (CERTAIN / 2) as u16;
/// The bits of a [`BitModel`] that count answers; it never counts further.
const ANSWERS: u16 = 15;
/// A [`Flag`] never counts further.
const ANSWERS_OF_FLAGS: u16 = 250;

/// How far a probability moves towards an answer after so many others, in 65,536ths of the
/// distance: 1/1.5, 1/2.5, and so on.
static STEPS: [u32; ANSWERS_OF_FLAGS as usize + 1] = {
    let mut steps = [0; ANSWERS_OF_FLAGS as usize + 1];
    let mut answers = 0;
    while answers < steps.len() {
        steps[answers] = (2 << 16) / (2 * answers as u32 + 3);
        answers += 1;
    }
    steps
};

impl BitModel {
    /// The logarithm of its odds, in 256ths.
    #[inline]
    pub(super) fn logit(self) -> i32 {
        stretch(self.0.into())
    }

    /// A coarse logit: from 0, a sure no, to 7, a sure yes, or [`FRESH`].
    #[inline]
    pub(super) fn level(self) -> usize {
        if self.0 & ANSWERS == 0 { FRESH } else { ((self.logit() + LARGEST + 1) >> 9) as usize }
    }

    #[inline]
    pub(super) fn learn(&mut self, value: bool) {
        let answers = self.0 & ANSWERS;
        let moved = moved((self.0 - answers).into(), answers, value);
        self.0 = ((moved + 8) as u16 & !ANSWERS) | (answers + 1).min(ANSWERS);
    }
}

/// The level of a model that has learnt nothing, and how many levels there are.
const FRESH: usize = 8;
pub(super) const LEVELS: usize = 9;

/// About half of the logarithm of the odds that a level stands for.
fn odds_of(level: usize) -> i64 {
    if level == FRESH { 0 } else { 256 * (level as i64 - 4) }
}

/// A probability after an answer, when it has learnt so many others. It never becomes certain.
#[inline]
fn moved(probability: u32, answers: u16, value: bool) -> u32 {
    let step = STEPS[usize::from(answers)];
    if value {
        probability + (((CERTAIN - 1 - probability) * step) >> 16)
    } else {
        probability - ((probability * step) >> 16)
    }
}

/// A yes or no coded by its own probability alone, which is more precise and remembers longer.
#[derive(Clone, Copy)]
pub(super) struct Flag {
    probability: u16,
    answers: u16,
}

impl Default for Flag {
    fn default() -> Self {
        Self { probability: EVEN, answers: 0 }
    }
}

impl Flag {
    /// One for each level, which expects what the level says, with some doubt.
    pub(super) fn by_level() -> [Self; LEVELS] {
        std::array::from_fn(|level| Self::expecting(odds_of(level)))
    }

    /// One for each pair of levels, which expects what they say together.
    pub(super) fn by_levels() -> [[Self; LEVELS]; LEVELS] {
        std::array::from_fn(|one| std::array::from_fn(|other| Self::expecting(odds_of(one) + odds_of(other))))
    }

    fn expecting(odds: i64) -> Self {
        Self { probability: squash(odds) as u16, answers: 0 }
    }

    #[inline(always)]
    pub(super) fn code(&mut self, coder: &mut impl Coder, value: bool) -> bool {
        let value = coder.bit(self.probability.into(), value);
        self.learn(value);
        value
    }

    /// Codes an answer that is never taken for surer than `surest`, and so always costs
    /// something.
    #[inline(always)]
    pub(super) fn code_unsurely(&mut self, coder: &mut impl Coder, surest: u32, value: bool) -> bool {
        let probability = u32::from(self.probability).clamp(CERTAIN - surest, surest);
        let value = coder.bit(probability, value);
        self.learn(value);
        value
    }

    #[inline(always)]
    fn learn(&mut self, value: bool) {
        self.probability = moved(self.probability.into(), self.answers, value) as u16;
        self.answers = (self.answers + 1).min(ANSWERS_OF_FLAGS);
    }
}

/// The probabilities at odds of e^-8, e^-7.5, and so on to e^8.
const ODDS: [i32; 33] = [
    22, 36, 60, 98, 162, 267, 439, 720, 1179, 1920, 3108, 4971, 7812, 11956, 17626, 24743, 32768, 40793,
    47910, 53580, 57724, 60565, 62428, 63616, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514,
];

/// No logarithm of odds is larger, in 256ths.
const LARGEST: i32 = 2047;

/// The probability that belongs to a logarithm of odds, between two of [`ODDS`].
const fn between(odds: i32) -> i32 {
    let place = (odds + LARGEST + 1) as usize;
    let (index, part) = (place >> 7, (place & 127) as i32);
    (ODDS[index] * (128 - part) + ODDS[index + 1] * part) >> 7
}

/// All probabilities that odds can have, from the smallest odds on.
static SQUASHED: [u16; 2 * LARGEST as usize + 1] = {
    let mut squashed = [0; 2 * LARGEST as usize + 1];
    let mut odds = -LARGEST;
    while odds <= LARGEST {
        squashed[(odds + LARGEST) as usize] = between(odds) as u16;
        odds += 1;
    }
    squashed
};

/// The probability that belongs to a logarithm of odds in 256ths, which may be too large.
#[inline]
fn squash(odds: i64) -> i32 {
    let limit = i64::from(LARGEST);
    SQUASHED[(odds.clamp(-limit, limit) + limit) as usize].into()
}

/// The reverse for probabilities in 4,096ths: the smallest odds that reach it.
static STRETCHED: [i16; 4096] = {
    let mut stretched = [LARGEST as i16; 4096];
    let mut next = 0;
    let mut odds = -LARGEST;
    while odds <= LARGEST {
        let reached = (between(odds) >> 4) as usize;
        while next <= reached {
            stretched[next] = odds as i16;
            next += 1;
        }
        odds += 1;
    }
    stretched
};

/// The logarithm of the odds of a probability, in 256ths.
#[inline]
pub(super) fn stretch(probability: u32) -> i32 {
    i32::from(STRETCHED[(probability >> 4) as usize & 4095])
}

/// Mixes logits, with weights of their own for each of several situations.
pub(super) struct Mixer<const N: usize> {
    situations: Vec<Weighing<N>>,
    /// How slowly the weights move.
    pace: u32,
}

/// The weights of one situation, and of a logit that never changes.
#[derive(Clone, Copy)]
struct Weighing<const N: usize> {
    weights: [i32; N],
    bias: i32,
}

/// A weight of 1 is so much.
const WHOLE: i32 = 1 << 16;
/// The logit that never changes.
const BIAS: i32 = 256;

impl<const N: usize> Mixer<N> {
    /// All situations begin with the same weights, given in percent.
    pub(super) fn new(situations: usize, percent: [i32; N], pace: u32) -> Self {
        let weighing = Weighing { weights: percent.map(|percent| percent * WHOLE / 100), bias: 0 };
        Self { situations: vec![weighing; situations], pace }
    }

    /// Codes an answer by the logits of these models, and has all learn it.
    #[inline(always)]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        situation: usize,
        models: [&mut BitModel; N],
        value: bool,
    ) -> bool {
        let logits = std::array::from_fn(|index| models[index].logit());
        let value = self.code_logits(coder, situation, logits, value);
        models.into_iter().for_each(|model| model.learn(value));
        value
    }

    /// Codes an answer by these logits.
    #[inline(always)]
    pub(super) fn code_logits(
        &mut self,
        coder: &mut impl Coder,
        situation: usize,
        logits: [i32; N],
        value: bool,
    ) -> bool {
        let Weighing { weights, bias } = &mut self.situations[situation];
        let mut sum = i64::from(*bias) * i64::from(BIAS);
        for (&weight, logit) in weights.iter().zip(logits) {
            sum += i64::from(weight) * i64::from(logit);
        }
        let probability = squash(sum >> 16);
        let value = coder.bit(probability as u32, value);
        let error = if value { CERTAIN as i32 - probability } else { -probability };
        for (weight, logit) in weights.iter_mut().zip(logits) {
            adjust(weight, logit, error, self.pace);
        }
        adjust(bias, BIAS, error, self.pace);
        value
    }
}

/// Moves the weight of a logit, given by how much the mixed probability was too small.
#[inline]
fn adjust(weight: &mut i32, logit: i32, error: i32, pace: u32) {
    *weight = weight.wrapping_add((logit * error + (1 << (pace - 1))) >> pace);
}

/// Many models by context; contexts that fall on the same place share a model.
pub(super) struct BitModels {
    table: Vec<BitModel>,
    shift: u32,
}

impl BitModels {
    /// Room for `2^bits` contexts, `bits` from 1 to 32.
    pub(super) fn new(bits: u32) -> Self {
        Self { table: vec![BitModel::default(); 1 << bits], shift: 64 - bits }
    }

    /// The model of a [context](context).
    #[inline]
    pub(super) fn of(&mut self, context: u64) -> &mut BitModel {
        self.at(self.place(context))
    }

    /// Where the model of a context lies.
    #[inline]
    pub(super) fn place(&self, context: u64) -> usize {
        (context >> self.shift) as usize
    }

    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut BitModel {
        &mut self.table[place]
    }
}

/// The context of two numbers. Each kind of context has a key of its own, an odd number
/// in whose product all bits of both numbers reach the high bits.
#[inline]
pub(super) fn context(key: u64, first: u32, second: u32) -> u64 {
    (u64::from(first) << 32 | u64::from(second)).wrapping_mul(key)
}
