//! Codes the symbol that an item begins with.
//!
//! Up to four guesses are coded one by one: the symbols that followed the item before this one,
//! that item's last part, the last three symbols, and the last symbol. If all are wrong, the
//! symbol is coded bit by bit. Symbols are numbered at first use, so those with near numbers
//! are related, and the bits of the last symbol predict those of the next.

use super::{Code, End, Model, NOTHING, RULE, Text, keys};
use crate::Result;
use crate::archive::bit_model::{BitModel, Flag, LEVELS, Mixer, context};
use crate::archive::coder::Coder;
use crate::archive::weights::Weights;

/// The symbols that followed in one context, the one to expect first.
#[derive(Clone, Copy)]
pub(super) struct Followers {
    symbols: [Code; 3],
    trust: [u8; 3],
}

impl Default for Followers {
    fn default() -> Self {
        Self { symbols: [NOTHING; 3], trust: [0; 3] }
    }
}

impl Followers {
    #[inline]
    fn learn(&mut self, symbol: Code) {
        match self.symbols.iter().position(|&known| known == symbol) {
            Some(0) => self.trust[0] = self.trust[0].saturating_add(1),
            Some(rank) => self.confirm(rank),
            None => self.add(symbol),
        }
    }

    /// One of the later ones followed: it moves forward if it is trusted as much.
    fn confirm(&mut self, rank: usize) {
        self.trust[rank] = self.trust[rank].saturating_add(1);
        self.doubt();
        if self.trust[rank] >= self.trust[rank - 1] {
            self.swap(rank, rank - 1);
        }
    }

    /// A new one takes the first free place, or the last; the first if that one was not
    /// trusted.
    fn add(&mut self, symbol: Code) {
        let free = self.symbols.iter().position(|&known| known == NOTHING);
        let rank = free.unwrap_or(2);
        self.symbols[rank] = symbol;
        self.trust[rank] = 1;
        match rank {
            0 => {}
            _ if self.trust[0] > 1 => self.doubt(),
            _ => {
                self.symbols[..=rank].rotate_right(1);
                self.trust[..=rank].rotate_right(1);
            }
        }
    }

    /// The first one did not follow: it loses a quarter of its trust.
    fn doubt(&mut self) {
        self.trust[0] -= self.trust[0] / 4;
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.symbols.swap(one, other);
        self.trust.swap(one, other);
    }
}

/// How many guesses there are.
const GUESSES: usize = 4;
/// How many contexts propose followers.
const PROPOSERS: usize = 4;
/// How far trust matters.
const TRUSTS: usize = 4;

/// The model of first symbols.
pub(super) struct Firsts {
    /// What followed the last three symbols.
    after_three: Vec<Followers>,
    shift: u32,
    /// Whether a guess is right: by who proposes it, with which trust, how many others
    /// do, and the level of its model after the last symbol.
    guess: [[[[Flag; LEVELS]; PROPOSERS]; TRUSTS]; PROPOSERS],
    /// Whether it is a new symbol: by whether the last one was, how long ago that was, and
    /// the level of the model after the last symbol.
    is_new: [[[Flag; LEVELS]; 8]; 2],
    rest: Mixer<2>,
    /// For each half of a range of symbols, by the number in its middle: whether it is in
    /// the upper half.
    upper: Vec<BitModel>,
    /// Without context: by how often each symbol was the first one.
    plain: Weights,
    counts: Vec<u32>,
}

impl Firsts {
    pub(super) fn new(bits: u32) -> Self {
        Self {
            after_three: vec![Followers::default(); 1 << bits],
            shift: 64 - bits,
            guess: [[[Flag::by_level(); PROPOSERS]; TRUSTS]; PROPOSERS],
            is_new: [[Flag::by_level(); 8]; 2],
            rest: Mixer::new(32 * 6, [50; 2], 14),
            upper: Vec::new(),
            plain: Weights::default(),
            counts: Vec::new(),
        }
    }

    /// Makes room for one more symbol, the last of so many.
    pub(super) fn add_symbol(&mut self, symbols: usize, is_plain: bool) -> Result<()> {
        if is_plain {
            self.counts.push(1);
            return self.plain.add(symbols - 1, 1);
        }
        if self.upper.len() < symbols {
            self.upper.resize(symbols.next_power_of_two(), BitModel::default());
        }
        Ok(())
    }

    /// Codes a symbol by how often it was the first one.
    fn code_plain(&mut self, coder: &mut impl Coder, wanted: Code) -> Result<Code> {
        const ENOUGH: u32 = 1 << 24;
        let index = self.plain.code(coder, wanted as usize, |index| self.counts[index])?;
        if self.plain.total() < ENOUGH {
            self.counts[index] += 2;
            self.plain.add(index, 2)?;
        }
        Ok(index as Code)
    }
}

impl Model {
    /// Codes the symbol that an item begins with. One that is not known becomes known.
    pub(super) fn code_first(&mut self, coder: &mut impl Coder, wanted: Code) -> Result<Code> {
        if self.settings.plain {
            return match self.code_new_symbol(coder, wanted) {
                true => self.add_symbol(),
                false => self.firsts.code_plain(coder, wanted),
            };
        }
        let proposers = [
            self.text.after_item,
            self.text.after_part,
            self.firsts.after_three[self.after_three()],
            self.followers(self.text.end.symbol),
        ];
        let mut tried = [NOTHING; GUESSES];
        let mut number = 0;
        for (index, proposer) in proposers.iter().enumerate() {
            for (rank, &symbol) in proposer.symbols.iter().enumerate() {
                if symbol == NOTHING || number == GUESSES {
                    break;
                }
                if tried.contains(&symbol) {
                    continue;
                }
                let trust = usize::from(proposer.trust[rank]).min(TRUSTS - 1);
                let others = proposers[index + 1..].iter();
                let agree = others.map(|other| usize::from(other.symbols.contains(&symbol))).sum();
                let standing = (index, trust, agree);
                if self.code_guess(coder, symbol, number, standing, symbol == wanted) {
                    return Ok(symbol);
                }
                tried[number] = symbol;
                number += 1;
            }
        }
        match self.code_new_symbol(coder, wanted) {
            true => self.add_symbol(),
            false => Ok(self.code_rest(coder, wanted)),
        }
    }

    /// Codes whether it is a new symbol, if there is a choice.
    fn code_new_symbol(&mut self, coder: &mut impl Coder, wanted: Code) -> bool {
        let known = self.symbols.len();
        if known == 0 || known == self.alphabet {
            return known == 0;
        }
        let last = self.text.end.symbol as usize;
        let after_newest = usize::from(last == known - 1);
        let since = self.clock.wrapping_sub(self.newest_clock).max(1).ilog2().min(7) as usize;
        let mut unknown = BitModel::default();
        let own = self.symbols.get_mut(last).map_or(&mut unknown, |symbol| &mut symbol.before_new);
        let flag = &mut self.firsts.is_new[after_newest][since][own.level()];
        let value = flag.code(coder, wanted as usize == known);
        own.learn(value);
        value
    }

    /// Codes whether a guess is right, given how many were wrong, who proposes it, with
    /// which trust, and how many others do.
    #[inline]
    fn code_guess(
        &mut self,
        coder: &mut impl Coder,
        symbol: Code,
        number: usize,
        (proposer, trust, agree): (usize, usize, usize),
        value: bool,
    ) -> bool {
        let what = symbol ^ (number as Code) << 30;
        let after_symbol = self.models.of(context(keys::GUESS_AFTER_SYMBOL, self.text.end.symbol, what));
        let flag = &mut self.firsts.guess[proposer][trust][agree][after_symbol.level()];
        let value = flag.code(coder, value);
        after_symbol.learn(value);
        value
    }

    /// Codes a symbol bit by bit, the highest first, without bits that no symbol can have. It
    /// matters whether it may still be one near the last symbol, or near the newest.
    fn code_rest(&mut self, coder: &mut impl Coder, wanted: Code) -> Code {
        let Self { symbols, models, firsts, text, .. } = self;
        let newest = symbols.len().saturating_sub(1) as Code;
        let last = text.end.symbol;
        let mut symbol = 0;
        for bit in (0..Code::BITS - newest.leading_zeros()).rev() {
            let middle = symbol + (1 << bit);
            if middle > newest {
                continue;
            }
            let is_near = |other: Code| usize::from((other ^ symbol) >> bit < 2);
            let near_last = is_near(last) * (1 + (last >> bit & 1) as usize);
            let situation = bit as usize * 6 + near_last * 2 + is_near(newest);
            let upper = &mut firsts.upper[middle as usize];
            let after_symbol = models.of(context(keys::REST_AFTER_SYMBOL, last, middle));
            if firsts.rest.code(coder, situation, [upper, after_symbol], wanted >= middle) {
                symbol = middle;
            }
        }
        symbol
    }

    /// Learns which symbol came next.
    pub(super) fn learn_first(&mut self, symbol: Code) {
        if self.settings.plain {
            return;
        }
        let Text { item, part, end: End { symbol: last, .. }, .. } = self.text;
        self.learn_follower(item, symbol);
        self.learn_follower(part, symbol);
        if last != item && last != part {
            self.learn_follower(last, symbol);
        }
        let after_three = self.after_three();
        self.firsts.after_three[after_three].learn(symbol);
    }

    #[inline]
    fn learn_follower(&mut self, code: Code, symbol: Code) {
        match code {
            NOTHING => {}
            code if code & RULE == 0 => self.symbols[code as usize].followers.learn(symbol),
            code => self.rules[(code & !RULE) as usize].followers.learn(symbol),
        }
    }

    /// What followed a target so far.
    #[inline]
    pub(super) fn followers(&self, code: Code) -> Followers {
        match code {
            NOTHING => Followers::default(),
            code if code & RULE == 0 => self.symbols[code as usize].followers,
            code => self.rules[(code & !RULE) as usize].followers,
        }
    }

    /// Where the followers of the last three symbols are.
    fn after_three(&self) -> usize {
        (context(keys::THREE_SYMBOLS, 0, self.text.end.three) >> self.firsts.shift) as usize
    }
}
