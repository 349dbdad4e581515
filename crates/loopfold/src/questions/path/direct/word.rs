//! What a stretch does to a short path of a tame function, in sixteen bytes.
//!
//! A [`Word`](crate::questions::find::word) has places of the path as bits; here the bits
//! that no place needs are marks, so that what is to be known of frames costs nothing more:
//! * a stretch that ends inside of a frame has that among its endings, one that ends outside
//!   of all has that;
//! * among its beginnings is the one of these two behind which it cannot come. So where an
//!   ending meets a beginning, there is an occurrence, or else the function is not tame;
//! * among its beginnings is also whether repeating it changes anything, which is met by
//!   whatever repeats;
//! * a stretch with nothing of the function has all marks and places as its insides: what
//!   lies before it goes on behind it.

use super::super::PathQuery;
use super::super::functions::Step;
use crate::Symbol;

/// The mark of what changes if it is repeated.
const CHANGES: u16 = 1;
const INSIDE: u16 = 1 << 13;
const OUTSIDE: u16 = 1 << 14;
/// The mark of what holds nothing of the function.
const FOREIGN: u16 = 1 << 15;
const PLACES: u16 = INSIDE - 2;
/// Where these meet, the function is not tame.
const CLASHES: u32 = (INSIDE | OUTSIDE) as u32;

/// What a stretch does to a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Word {
    /// How often the path occurs in it: never more than it has events, so no sum overflows.
    count: u64,
    endings: u16,
    beginnings: u16,
    insides: u16,
    /// How many blocks it is; only with insides does that mean anything.
    length: u16,
}

impl Word {
    /// The longest path that places are enough for.
    pub(super) const LONGEST: usize = 13;

    /// The word of what holds nothing of the function.
    pub(super) const FOREIGN: Self =
        Self { count: 0, endings: 0, beginnings: 0, insides: !CHANGES, length: 0 };

    /// The word of a symbol; nothing if a function with such symbols is not tame.
    pub(super) fn of_symbol(query: &PathQuery, symbol: Symbol, step: Step) -> Option<Self> {
        let edge = |mark| Self { count: 0, endings: mark, beginnings: mark, insides: 0, length: 0 }.marked();
        match step {
            Step::Enter => Some(edge(INSIDE)),
            Step::Leave => Some(edge(OUTSIDE)),
            Step::Block => Some(Self::of_block(query, symbol)),
            Step::EnterOther | Step::BlockThenEnter | Step::BlockThenEnterOther => None,
        }
    }

    fn of_block(query: &PathQuery, symbol: Symbol) -> Self {
        let last = query.len() - 1;
        let mut word = Self { count: 0, endings: INSIDE, beginnings: OUTSIDE, insides: 0, length: 1 };
        let places = query.blocks().iter().enumerate().filter(|(_, block)| block.contains(&symbol));
        for (place, _) in places {
            match place {
                0 if last == 0 => word.count = 1,
                0 => word.endings |= 1 << 1,
                place if place == last => word.beginnings |= 1 << last,
                place => word.insides |= 1 << place,
            }
        }
        word.marked()
    }

    #[inline]
    pub(super) fn is_foreign(&self) -> bool {
        self.insides & FOREIGN != 0
    }

    /// With the mark that tells whether repeating it changes anything.
    #[inline]
    fn marked(self) -> Self {
        // The mark of what is foreign is the sign.
        let is_open = (self.insides | self.endings & self.beginnings) as i16 > 0;
        let changes = u16::from(is_open | (self.count != 0));
        Self { beginnings: self.beginnings & !CHANGES | changes, ..self }
    }

    /// True if repeating it does not change it.
    #[inline]
    pub(super) fn is_same(&self, times: u64) -> bool {
        u16::from(times != 1) & self.beginnings == 0
    }

    /// The word of a stretch and the next one; nothing if the function is not tame.
    #[inline]
    pub(super) fn then(&self, next: &Self) -> Option<Self> {
        let met = u32::from(self.endings & next.beginnings);
        let mut count = self.count.wrapping_add(next.count);
        if met != 0 {
            if is_clash(met) {
                return None;
            }
            count = count.wrapping_add(occurrences(met));
        }
        let further = |set: u16| u32::from(set).wrapping_shr(self.length.into()) as u16;
        let word = Self {
            count,
            endings: next.follow(self.endings.into()) as u16,
            beginnings: self.beginnings | self.insides & further(next.beginnings),
            insides: self.insides & further(next.insides),
            length: (self.length + next.length) % 16,
        };
        Some(word.marked())
    }

    /// The endings behind the stretch, given those before it.
    #[inline(always)]
    pub(super) fn follow(&self, endings: u32) -> u32 {
        u32::from(self.endings) | (endings & u32::from(self.insides)).wrapping_shl(self.length.into())
    }

    /// How often the path occurs when the stretch follows what left these endings.
    pub(super) fn count_after(&self, endings: u32) -> u64 {
        self.count.wrapping_add(occurrences(endings & u32::from(self.beginnings)))
    }

    /// The word of a stretch repeated `times` times; nothing if the function is not tame.
    pub(super) fn repeated(&self, times: u64) -> Option<Self> {
        if self.is_same(times) {
            return Some(*self);
        }
        let (mut square, mut rest) = (*self, times);
        let mut result = Self::FOREIGN;
        while square.insides != 0 {
            if rest & 1 == 1 {
                result = result.then(&square)?;
            }
            rest >>= 1;
            if rest == 0 {
                return Some(result);
            }
            square = square.then(&square)?;
        }
        // Without insides, each seam adds the same.
        let met = u32::from(square.endings & square.beginnings);
        if rest > 1 && is_clash(met) {
            return None;
        }
        let seams = occurrences(met).wrapping_mul(rest.wrapping_sub(1));
        square.count = square.count.wrapping_mul(rest).wrapping_add(seams);
        result.then(&square)
    }

    /// True if it can be a whole stream.
    pub(super) fn begins_outside(&self) -> bool {
        self.beginnings & OUTSIDE == 0
    }

    /// True if it is that of a symbol that enters the function.
    pub(super) fn is_enter(&self) -> bool {
        self.endings & self.beginnings & INSIDE != 0
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

/// A stretch without insides that grows at its end: only that and the count change.
#[derive(Clone, Copy)]
pub(super) struct Growing {
    beginnings: u16,
    endings: u32,
    count: u64,
    /// All that was met.
    met: u32,
}

impl Growing {
    /// Nothing if the stretch has insides.
    pub(super) fn new(word: Word) -> Option<Self> {
        let Word { count, endings, beginnings, insides, .. } = word;
        (insides == 0).then_some(Self { beginnings, endings: endings.into(), count, met: 0 })
    }

    /// Joins a stretch, repeated so often, to the end. One branch, which is seldom taken.
    #[inline(always)]
    pub(super) fn append(&mut self, next: &Word, times: u64) {
        // A sum is one instruction less than a union.
        let met = self.endings.wrapping_add(u32::from(times > 1)) & u32::from(next.beginnings);
        if met == 0 {
            self.count = self.count.wrapping_add(next.count);
            self.endings = next.follow(self.endings);
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
    fn meet(&mut self, next: &Word) {
        let met = self.endings & u32::from(next.beginnings);
        self.met |= met;
        self.count = self.count.wrapping_add(next.count).wrapping_add(occurrences(met));
        self.endings = next.follow(self.endings);
    }

    /// All of it; nothing if the function is not tame.
    pub(super) fn finish(self) -> Option<Word> {
        let Self { beginnings, endings, count, met } = self;
        let word = Word { count, endings: endings as u16, beginnings, insides: 0, length: 0 };
        (!is_clash(met)).then(|| word.marked())
    }
}
