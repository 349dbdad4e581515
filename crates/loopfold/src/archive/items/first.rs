//! The symbol that an item begins with.
//!
//! What followed before is what will follow. So up to four guesses are asked for one by
//! one: the symbols that followed the item before this one, that item's last part, the
//! last three symbols, and the last symbol. If it is none of them it is told bit by bit.
//! Symbols are numbered as they come up, so those near each other belong together, and
//! the bits of the last symbol tell something about those of the next.

use super::{Code, Kind, Model, NOTHING, RULE, context};
use crate::archive::chance::{self, Chance, Mixer};
use crate::archive::coder::Coder;
use crate::archive::weights::Weights;
use crate::{Error, Result};

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

/// A symbol that may come next.
struct Guess {
    symbol: Code,
    /// How many were asked for before it.
    number: usize,
    /// Which of the twelve followers it is.
    source: usize,
    /// What it is known by in general: its source, its trust, and who else proposes it.
    standing: usize,
}

/// How many guesses there are.
const GUESSES: usize = 4;
/// How many contexts propose followers.
const PROPOSERS: usize = 4;

/// What is known of first symbols in general.
pub(super) struct Firsts {
    /// What followed the last three symbols.
    after_three: Vec<Followers>,
    shift: u32,
    guess: Mixer<3>,
    by_standing: Vec<Chance>,
    rest: Mixer<3>,
    /// For each half of a range of symbols, by the number in its middle: whether it is in
    /// the upper half.
    upper: Vec<Chance>,
    near: [Chance; 32 * 8],
    /// Without context: how often each symbol was the first one.
    plain: Weights,
}

impl Firsts {
    pub(super) fn new(bits: u32) -> Self {
        Self {
            after_three: vec![Followers::default(); 1 << bits],
            shift: 64 - bits,
            guess: Mixer::new(GUESSES * PROPOSERS * 3, [35; 3]),
            by_standing: vec![Chance::default(); PROPOSERS * 3 * 8 * 16],
            rest: Mixer::new(32 * 4, [35; 3]),
            upper: Vec::new(),
            near: [Chance::default(); 32 * 8],
            plain: Weights::default(),
        }
    }

    /// Makes room for one more symbol, the last of so many.
    pub(super) fn add_symbol(&mut self, symbols: usize, is_plain: bool) -> Result<()> {
        if is_plain {
            self.plain.grow_to(symbols);
            return self.plain.add(symbols - 1, 1);
        }
        if self.upper.len() < symbols {
            self.upper.resize(symbols.next_power_of_two(), Chance::default());
        }
        Ok(())
    }

    /// Codes a symbol by how often it was the first one.
    fn code_plain(&mut self, coder: &mut impl Coder, wanted: Code) -> Result<Code> {
        const ENOUGH: u32 = 1 << 24;
        let index = self.plain.code(coder, wanted as usize)?;
        if self.plain.total() < ENOUGH {
            self.plain.add(index, 2)?;
        }
        Ok(index as Code)
    }
}

impl Model {
    /// Codes the symbol that an item begins with, which is known.
    pub(super) fn code_first(&mut self, coder: &mut impl Coder, wanted: Code) -> Result<Code> {
        match self.symbols.len() {
            0 => return Err(Error::damaged("rules", "an item before the first symbol")),
            1 => return Ok(0),
            _ if self.settings.plain => return self.firsts.code_plain(coder, wanted),
            _ => {}
        }
        let part = self.part();
        let proposers = [
            self.followers(self.item),
            self.followers(part),
            self.firsts.after_three[self.after_three()],
            self.followers(self.last[0]),
        ];
        let mut tried = [NOTHING; GUESSES];
        let mut number = 0;
        for (index, proposer) in proposers.iter().enumerate() {
            for (rank, &symbol) in proposer.symbols.iter().enumerate() {
                if symbol == NOTHING || number == GUESSES {
                    break;
                }
                if tried[..number].contains(&symbol) {
                    continue;
                }
                let source = index * 3 + rank;
                let trust = usize::from(proposer.trust[rank].min(7));
                let others = proposers.iter().enumerate().skip(index);
                let agree =
                    others.map(|(index, other)| usize::from(other.symbols.contains(&symbol)) << index);
                let standing = (source * 8 + trust) * 16 + agree.sum::<usize>();
                let guess = Guess { symbol, number, source, standing };
                if self.code_guess(coder, part, &guess, symbol == wanted) {
                    return Ok(symbol);
                }
                tried[number] = symbol;
                number += 1;
            }
        }
        Ok(self.code_rest(coder, wanted))
    }

    /// Codes whether a guess is right.
    #[inline]
    fn code_guess(&mut self, coder: &mut impl Coder, part: Code, guess: &Guess, value: bool) -> bool {
        let what = u64::from(guess.symbol) | (guess.number as u64) << 32;
        let after_symbol = self.chances.place(context(Kind::GuessAfterSymbol, self.last[0], what));
        let after_part = self.chances.place(match part {
            NOTHING => context(Kind::GuessAfterItem, self.item, what),
            part => context(Kind::GuessAfterPart, part, what),
        });
        let standing = &mut self.firsts.by_standing[guess.standing];
        let opinions =
            [standing.opinion(), self.chances.opinion(after_symbol), self.chances.opinion(after_part)];
        let situation = guess.number * PROPOSERS * 3 + guess.source;
        let value = self.firsts.guess.code(coder, situation, opinions, value);
        standing.learn(value);
        self.chances.learn(after_symbol, value);
        self.chances.learn(after_part, value);
        value
    }

    /// Codes a symbol bit by bit, the highest first, as far as there are symbols.
    fn code_rest(&mut self, coder: &mut impl Coder, wanted: Code) -> Code {
        let newest = self.symbols.len() as Code - 1;
        let last = self.last[0];
        let mut symbol = 0;
        for bit in (0..Code::BITS - newest.leading_zeros()).rev() {
            let middle = symbol + (1 << bit);
            if middle > newest {
                continue;
            }
            let is_near = |other: Code| other != NOTHING && other >> bit >> 1 == symbol >> bit >> 1;
            let (near_last, near_newest) = (is_near(last), is_near(newest));
            let last_bits = if near_last { 4 + (last << 1 >> bit & 3) } else { 0 };
            let near = &mut self.firsts.near[(bit * 8 + last_bits) as usize];
            let upper = &mut self.firsts.upper[middle as usize];
            let after_symbol = self.chances.place(context(Kind::RestAfterSymbol, last, middle.into()));
            let opinions = [upper.opinion(), self.chances.opinion(after_symbol), near.opinion()];
            let situation = bit as usize * 4 + usize::from(near_last) * 2 + usize::from(near_newest);
            let value = self.firsts.rest.code(coder, situation, opinions, wanted >= middle);
            upper.learn(value);
            self.chances.learn(after_symbol, value);
            near.learn(value);
            if value {
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
        let (item, part, last) = (self.item, self.part(), self.last[0]);
        self.learn_follower(item, symbol);
        self.learn_follower(part, symbol);
        if last != item && last != part {
            self.learn_follower(last, symbol);
        }
        let after_three = self.after_three();
        self.firsts.after_three[after_three].learn(symbol);
    }

    fn learn_follower(&mut self, code: Code, symbol: Code) {
        match code {
            NOTHING => {}
            code if code & RULE == 0 => self.symbols[code as usize].followers.learn(symbol),
            code => self.rules[(code & !RULE) as usize].followers.learn(symbol),
        }
    }

    fn followers(&self, code: Code) -> Followers {
        match code {
            NOTHING => Followers::default(),
            code if code & RULE == 0 => self.symbols[code as usize].followers,
            code => self.rules[(code & !RULE) as usize].followers,
        }
    }

    /// The last part of the item before this one, if that is a rule.
    fn part(&self) -> Code {
        match self.item {
            NOTHING => NOTHING,
            item if item & RULE == 0 => NOTHING,
            item => self.rules[(item & !RULE) as usize].part,
        }
    }

    /// Where the followers of the last three symbols are.
    fn after_three(&self) -> usize {
        let [last, second, third] = self.last.map(u64::from);
        (chance::context(chance::context(last, second), third) >> self.firsts.shift) as usize
    }
}
