//! The scan for paths of few blocks: the state of a frame is a machine word, and calls are
//! processed like blocks, without a branch. A group of symbols that do nothing costs about a
//! nanosecond, any other symbol two.

use super::{BLOCK, Classes, ENTER, ENTER_OTHER, GROUP, LEAVE, NOTHING, Report};
use crate::Symbol;
use crate::questions::path::PathQuery;
use crate::questions::path::brackets::NestingLevels;
use crate::questions::path::functions::Step;
use hashbrown::HashMap;

/// Symbols that are skipped together if none is near those that matter.
const PART: usize = 64;

/// How far apart symbols may be for that.
const NEAR: u32 = 64;

/// The longest path whose state is a machine word.
const LONGEST: usize = 62;

/// A path of up to 62 blocks.
///
/// A state has its highest bit set if the last blocks of the frame are the whole path, and
/// the bit k below if they are all but the last k of it. So there is a bit for having
/// matched nothing, which is set in all frames of the function and in no other. The bit
/// below that, [`ShortPath::outside`], is always set: a call moves it up, as a block does
/// with others, and no case needs a branch.
#[derive(Clone, Debug)]
pub(super) struct ShortPath {
    classes: Classes<u8>,
    /// The first symbol that matters, and how far from it the last one is.
    near: (u32, u32),
    /// The effect of each class.
    effects: Box<[Effect; 256]>,
    /// The state where no frame of the function is the innermost.
    outside: u64,
    qualified: bool,
    state: u64,
    /// The states of the frames below, the first that of being in none; as many as are
    /// `open`, what follows means nothing.
    below: Vec<u64>,
    open: usize,
    depth: u64,
}

/// What a class does to the state; a return, if there is nothing below the frame that it
/// leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Effect {
    /// The bits that move up.
    moves: u64,
    /// The bits that stay.
    keeps: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ShortFrames {
    state: u64,
    pub(super) below: Vec<u64>,
    depth: u64,
}

impl ShortPath {
    /// `None` if the path is too long or has gaps, if blocks are of too many classes, or
    /// calls are blocks.
    pub(super) fn new(query: &PathQuery) -> Option<Self> {
        let call_is_block = |(_, step): &(Symbol, Step)| step.is_block() && step.is_enter();
        if query.len() > LONGEST || query.has_gaps() || query.steps().iter().any(call_is_block) {
            return None;
        }
        let outside = 1 << (LONGEST - query.len());
        let entered = outside << 1;
        let mut of_symbol: HashMap<Symbol, u64> = HashMap::new();
        for (place, block) in query.blocks().iter().enumerate() {
            block.iter().for_each(|&symbol| *of_symbol.entry(symbol).or_default() |= entered << place);
        }
        let mut effects = Box::new([Effect::default(); 256]);
        effects[usize::from(NOTHING)].keeps = u64::MAX;
        effects[usize::from(LEAVE)].keeps = outside;
        effects[usize::from(ENTER)] = Effect { moves: outside, keeps: outside };
        effects[usize::from(ENTER_OTHER)].keeps = outside;
        effects[usize::from(BLOCK)].keeps = outside | entered;
        let mut classes = Classes::new(query);
        let mut known: HashMap<u64, u8> = HashMap::new();
        for (symbol, moves) in of_symbol {
            let next = u8::try_from(usize::from(BLOCK) + 1 + known.len()).ok()?;
            let class = *known.entry(moves).or_insert(next);
            effects[usize::from(class)] = Effect { moves, keeps: outside | entered };
            classes.set(symbol, class);
        }
        let numbers = || query.symbols().map(Symbol::raw);
        let first = numbers().min().unwrap_or(0);
        Some(Self {
            classes,
            near: (first, numbers().max().unwrap_or(0) - first),
            effects,
            outside,
            qualified: query.is_qualified(),
            state: outside,
            below: vec![outside],
            open: 0,
            depth: 0,
        })
    }

    #[inline]
    pub(super) fn feed(
        &mut self,
        symbols: &[Symbol],
        report: &mut impl FnMut(usize, u32, &[u64; GROUP]) -> bool,
    ) -> bool {
        let (parts, rest) = symbols.as_chunks::<PART>();
        for (index, part) in parts.iter().enumerate() {
            if self.near.1 < NEAR && !self.is_near(part) {
                continue;
            }
            for (place, group) in part.as_chunks::<GROUP>().0.iter().enumerate() {
                if !self.feed_group(group, index * PART + place * GROUP, report) {
                    return false;
                }
            }
        }
        let mut rest = rest.chunks(GROUP).zip((parts.len() * PART..).step_by(GROUP));
        rest.all(|(group, offset)| self.nest(group, offset, report))
    }

    /// True if a symbol is among those between the first and the last that matter.
    #[inline]
    fn is_near(&self, part: &[Symbol; PART]) -> bool {
        let (first, span) = self.near;
        // No early end, so that many are compared at once.
        part.iter().fold(false, |any, symbol| any | (symbol.raw().wrapping_sub(first) <= span))
    }

    #[inline]
    fn feed_group(
        &mut self,
        group: &[Symbol; GROUP],
        offset: usize,
        report: &mut impl FnMut(usize, u32, &[u64; GROUP]) -> bool,
    ) -> bool {
        let table = &self.classes.table[..];
        let last = table.len().saturating_sub(1);
        let (mut any, mut all) = (NOTHING, 0);
        for symbol in group {
            any |= table[symbol.index() & last];
            all |= symbol.index();
        }
        if any == NOTHING {
            return true;
        }
        if !self.qualified || self.open > 1 || all > last {
            return self.nest(group, offset, report);
        }
        // In the function or not, no more: then a return needs no stack.
        let (mut state, mut hits, mut nested) = (self.state, 0, 0);
        for (place, symbol) in group.iter().enumerate() {
            let effect = &self.effects[usize::from(table[symbol.index() & last])];
            let moved = state & effect.moves;
            hits |= ((moved >> LONGEST) as u32) << place;
            nested |= moved & state >> 1;
            state = moved << 1 | state & effect.keeps;
        }
        if nested & self.outside != 0 {
            return self.nest(group, offset, report);
        }
        self.state = state;
        self.depth = u64::from(self.is_inside());
        self.open = self.depth as usize;
        self.below[0] = self.outside;
        report(offset, hits, &[1; GROUP])
    }

    /// Continues through up to a group of symbols, whatever they are.
    ///
    /// Whether a call comes next is hard to predict, so calls are processed like blocks: the
    /// state is always put on the stack, and stays there if it is a call.
    #[inline(never)]
    fn nest(&mut self, group: &[Symbol], offset: usize, report: &mut Report<'_>) -> bool {
        if self.below.len() <= self.open + GROUP {
            self.below.resize(2 * (self.open + GROUP), self.outside);
        }
        let (mut hits, mut depths) = (0, [0; GROUP]);
        for (place, &symbol) in group.iter().enumerate().take(GROUP) {
            let class = self.classes.of(symbol);
            if class == LEAVE {
                self.leave();
                continue;
            }
            let effect = &self.effects[usize::from(class)];
            self.below[self.open] = self.state;
            self.open += usize::from(class == ENTER || class == ENTER_OTHER);
            self.depth += u64::from(class == ENTER);
            let moved = self.state & effect.moves;
            hits |= ((moved >> LONGEST) as u32) << place;
            self.state = moved << 1 | self.state & effect.keeps;
            depths[place] = self.depth;
        }
        report(offset, hits, &depths)
    }

    /// True if the innermost frame is one of the function.
    fn is_inside(&self) -> bool {
        self.state & self.outside << 1 != 0
    }

    fn leave(&mut self) {
        self.depth -= u64::from(self.is_inside());
        (self.state, self.open) = match self.open.checked_sub(1) {
            Some(open) => (self.below[open], open),
            None => (self.outside, 0),
        };
    }

    pub(super) fn open_frames(&self) -> usize {
        self.open
    }

    pub(super) fn restart(&mut self) {
        (self.state, self.open, self.depth) = (self.outside, 0, 0);
    }

    pub(super) fn pass_over(&mut self, calls: &NestingLevels) {
        (0..calls.leaves.min(self.open as u64 + 1)).for_each(|_| self.leave());
        for _ in 0..calls.enters {
            self.below.truncate(self.open);
            self.below.push(self.state);
            self.open += 1;
            self.state = self.outside;
        }
    }

    pub(super) fn frames(&self) -> ShortFrames {
        ShortFrames { state: self.state, below: self.below[..self.open].to_vec(), depth: self.depth }
    }

    pub(super) fn set_frames(&mut self, frames: &ShortFrames) {
        self.below.clone_from(&frames.below);
        self.below.push(self.outside);
        (self.state, self.open, self.depth) = (frames.state, frames.below.len(), frames.depth);
    }

    pub(super) fn states(&self) -> Vec<Option<usize>> {
        // The lowest is that of being in no frame.
        let states = self.below[..self.open].iter().chain([&self.state]).skip(1);
        let matched = |state: &u64| (state.ilog2() - self.outside.ilog2()).checked_sub(1);
        states.map(|state| matched(state).map(|blocks| blocks as usize)).collect()
    }
}
