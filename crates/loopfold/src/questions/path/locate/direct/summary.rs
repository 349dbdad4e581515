//! The match summary of a short path of a non-recursive function, in sixteen bytes.
//!
//! A [`MatchSummary`](crate::questions::find::summary) has places of the path as bits; here the
//! spare bits are marks for the frame's boundary, so that frames cost nothing more:
//! * a stretch that ends inside of a frame has that among its suffixes, one that ends outside
//!   of all has that;
//! * among its prefixes is the one of these two behind which it cannot come. So where a
//!   suffix meets a prefix, there is an occurrence, or else the function is recursive;
//! * among its prefixes is also whether repeating it changes anything, which is met by
//!   whatever repeats;
//! * a stretch with nothing of the function has all marks and places as its infixes: what lies
//!   before it continues behind it.

use super::super::super::PathQuery;
use super::super::super::functions::Step;
use crate::Symbol;

/// The mark of what changes if it is repeated.
const CHANGES: u16 = 1;
const INSIDE: u16 = 1 << 13;
const OUTSIDE: u16 = 1 << 14;
/// The mark of what holds nothing of the function.
const IRRELEVANT: u16 = 1 << 15;
const PLACES: u16 = INSIDE - 2;
/// Where these meet, the function is recursive.
const CLASHES: u32 = (INSIDE | OUTSIDE) as u32;

/// The match summary of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DirectSummary {
    /// How often the path occurs in it: never more than it has events, so no sum overflows.
    count: u64,
    suffixes: u16,
    prefixes: u16,
    infixes: u16,
    /// How many blocks it is; only with infixes does that mean anything.
    length: u16,
}

impl DirectSummary {
    /// The longest path that places are enough for.
    pub(super) const LONGEST: usize = 13;

    /// The summary of what holds nothing of the function.
    pub(super) const IRRELEVANT: Self =
        Self { count: 0, suffixes: 0, prefixes: 0, infixes: !CHANGES, length: 0 };

    /// The summary of a symbol. Returns `None` if a function with such symbols is recursive.
    pub(super) fn of_symbol(query: &PathQuery, symbol: Symbol, step: Step) -> Option<Self> {
        let edge = |mark| Self { count: 0, suffixes: mark, prefixes: mark, infixes: 0, length: 0 }.marked();
        match step {
            Step::Enter => Some(edge(INSIDE)),
            Step::Leave => Some(edge(OUTSIDE)),
            Step::Block => Some(Self::of_block(query, symbol)),
            Step::EnterOther | Step::BlockThenEnter | Step::BlockThenEnterOther => None,
        }
    }

    fn of_block(query: &PathQuery, symbol: Symbol) -> Self {
        let last = query.len() - 1;
        let mut summary = Self { count: 0, suffixes: INSIDE, prefixes: OUTSIDE, infixes: 0, length: 1 };
        let places = query.blocks().iter().enumerate().filter(|(_, block)| block.contains(&symbol));
        for (place, _) in places {
            match place {
                0 if last == 0 => summary.count = 1,
                0 => summary.suffixes |= 1 << 1,
                place if place == last => summary.prefixes |= 1 << last,
                place => summary.infixes |= 1 << place,
            }
        }
        summary.marked()
    }

    #[inline]
    pub(super) fn is_irrelevant(&self) -> bool {
        self.infixes & IRRELEVANT != 0
    }

    /// With the mark that says whether repeating it changes anything.
    #[inline]
    fn marked(self) -> Self {
        // The mark of what is irrelevant is the sign.
        let is_open = (self.infixes | self.suffixes & self.prefixes) as i16 > 0;
        let changes = u16::from(is_open | (self.count != 0));
        Self { prefixes: self.prefixes & !CHANGES | changes, ..self }
    }

    /// True if repeating it does not change it.
    #[inline]
    pub(super) fn is_same(&self, times: u64) -> bool {
        u16::from(times != 1) & self.prefixes == 0
    }

    /// The summary of a stretch and the next one. Returns `None` if the function is recursive.
    #[inline]
    pub(super) fn then(&self, next: &Self) -> Option<Self> {
        let met = u32::from(self.suffixes & next.prefixes);
        let mut count = self.count.wrapping_add(next.count);
        if met != 0 {
            if is_clash(met) {
                return None;
            }
            count = count.wrapping_add(occurrences(met));
        }
        let further = |set: u16| u32::from(set).wrapping_shr(self.length.into()) as u16;
        let summary = Self {
            count,
            suffixes: next.follow(self.suffixes.into()) as u16,
            prefixes: self.prefixes | self.infixes & further(next.prefixes),
            infixes: self.infixes & further(next.infixes),
            length: (self.length + next.length) % 16,
        };
        Some(summary.marked())
    }

    /// The suffixes behind the stretch, given those before it.
    #[inline(always)]
    pub(super) fn follow(&self, suffixes: u32) -> u32 {
        u32::from(self.suffixes) | (suffixes & u32::from(self.infixes)).wrapping_shl(self.length.into())
    }

    /// How often the path occurs when the stretch follows what left these suffixes.
    pub(super) fn count_after(&self, suffixes: u32) -> u64 {
        self.count.wrapping_add(occurrences(suffixes & u32::from(self.prefixes)))
    }

    /// The summary of a stretch repeated `times` times. Returns `None` if the function is
    /// recursive.
    pub(super) fn repeated(&self, times: u64) -> Option<Self> {
        if self.is_same(times) {
            return Some(*self);
        }
        let (mut square, mut rest) = (*self, times);
        let mut result = Self::IRRELEVANT;
        while square.infixes != 0 {
            if rest & 1 == 1 {
                result = result.then(&square)?;
            }
            rest >>= 1;
            if rest == 0 {
                return Some(result);
            }
            square = square.then(&square)?;
        }
        // Without infixes, each seam adds the same.
        let met = u32::from(square.suffixes & square.prefixes);
        if rest > 1 && is_clash(met) {
            return None;
        }
        let seams = occurrences(met).wrapping_mul(rest.wrapping_sub(1));
        square.count = square.count.wrapping_mul(rest).wrapping_add(seams);
        result.then(&square)
    }

    /// True if it can be a whole stream.
    pub(super) fn begins_outside(&self) -> bool {
        self.prefixes & OUTSIDE == 0
    }

    /// True if it is that of a symbol that enters the function.
    pub(super) fn is_enter(&self) -> bool {
        self.suffixes & self.prefixes & INSIDE != 0
    }

    /// How often the path occurs in it.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

fn is_clash(met: u32) -> bool {
    met & CLASHES != 0
}

#[inline]
fn occurrences(met: u32) -> u64 {
    (met & u32::from(PLACES)).count_ones().into()
}

/// A stretch without infixes that grows at its end: only that and the count change.
#[derive(Clone, Copy)]
pub(super) struct Growing {
    prefixes: u16,
    suffixes: u32,
    count: u64,
    /// All that was met.
    met: u32,
}

impl Growing {
    /// `None` if the stretch has infixes.
    pub(super) fn new(summary: DirectSummary) -> Option<Self> {
        let DirectSummary { count, suffixes, prefixes, infixes, .. } = summary;
        (infixes == 0).then_some(Self { prefixes, suffixes: suffixes.into(), count, met: 0 })
    }

    /// Joins a repeated stretch to the end. One branch, which is seldom taken.
    #[inline(always)]
    pub(super) fn append(&mut self, next: &DirectSummary, times: u64) {
        // A sum is one instruction less than a union.
        let met = self.suffixes.wrapping_add(u32::from(times > 1)) & u32::from(next.prefixes);
        if met == 0 {
            self.count = self.count.wrapping_add(next.count);
            self.suffixes = next.follow(self.suffixes);
        } else if met & u32::from(CHANGES) == 0 {
            self.meet(next);
        } else {
            match next.repeated(times) {
                Some(repeated) => self.meet(&repeated),
                None => self.met |= CLASHES,
            }
        }
    }

    #[inline(always)]
    fn meet(&mut self, next: &DirectSummary) {
        let met = self.suffixes & u32::from(next.prefixes);
        self.met |= met;
        self.count = self.count.wrapping_add(next.count).wrapping_add(occurrences(met));
        self.suffixes = next.follow(self.suffixes);
    }

    /// All of it. Returns `None` if the function is recursive.
    pub(super) fn finish(self) -> Option<DirectSummary> {
        let Self { prefixes, suffixes, count, met } = self;
        let summary = DirectSummary { count, suffixes: suffixes as u16, prefixes, infixes: 0, length: 0 };
        (!is_clash(met)).then(|| summary.marked())
    }
}
