//! Scans backwards from a position: emits the blocks of the frame that is open there, and the
//! open calls.
//!
//! The scan moves from item to item towards the beginning and counts the frames whose end it
//! has passed but not their begin. While there are any, or nothing happens in the frame it
//! looks for, it skips whole items and repeats, with a division instead of a step for each
//! iteration. It enters items with a block it looks for, or an open call: a descent of the
//! rules for each of those.

use super::super::brackets::{Brackets, HasBlock, LevelFact, Nesting};
use crate::fold::cursor::Cursor;
use crate::fold::measure::Measured;
use crate::fold::{Fold, Located, Target};
use crate::{Result, StreamId, Symbol};

/// How many frames have ended, seen from behind, that have not yet begun.
#[derive(Default)]
struct Pending(u64);

impl Pending {
    /// How many of the last of `times` iterations of a stretch lie in frames that have
    /// ended; these are passed.
    fn pass<F: LevelFact>(&mut self, once: Brackets<F>, times: u64) -> u64 {
        let Some(room) = self.0.checked_sub(once.enters).filter(|&room| room > 0) else { return 0 };
        let iterations = match once.enters.checked_sub(once.leaves) {
            None | Some(0) => times,
            Some(fewer) => room.div_ceil(fewer).min(times),
        };
        self.take(once, iterations);
        iterations
    }

    /// Skips iterations of a stretch, none of which begins a frame that is searched for.
    fn take<F: LevelFact>(&mut self, once: Brackets<F>, iterations: u64) {
        self.0 = match once.leaves.checked_sub(once.enters) {
            Some(more) => self.0.saturating_add(more.saturating_mul(iterations)),
            None => self.0.saturating_sub((once.enters - once.leaves).saturating_mul(iterations)),
        };
    }
}

/// A visitor of the symbol and the position of a block; returns false to stop.
pub(in super::super) type EmitBlock<'a> = dyn FnMut(Symbol, u64) -> bool + 'a;

/// Emits the blocks that lie before a cursor in the frame that is innermost there, from the
/// last to the first, where `brackets` are those of one iteration of an item. Blocks that do
/// nothing to a path may have none.
pub(in super::super) fn blocks_before<L: Located>(
    mut cursor: Cursor<'_, L>,
    brackets: impl Fn(L::Item) -> Brackets<HasBlock>,
    emit: &mut EmitBlock<'_>,
) {
    let mut pending = Pending::default();
    while let Some(stretch) = cursor.peek_back() {
        let once = brackets(stretch.item);
        let passed = pending.pass(once, stretch.times);
        if passed > 0 {
            cursor.skip_back(passed);
        } else if pending.0 == once.enters && !once.has_block() {
            // Nothing happens in the frame itself; if the stretch is as deep before as
            // behind, then nor does it in the other iterations.
            let passed = if once.leaves == once.enters { stretch.times } else { 1 };
            pending.take(once, passed);
            cursor.skip_back(passed);
        } else if let Some(position) = cursor.enter_back() {
            let Target::Symbol(symbol) = stretch.target else { return };
            // Before the frame itself is entered, there are no blocks of it.
            if pending.0 != once.enters || !emit(symbol, position) {
                return;
            }
            pending.take(once, 1);
        }
    }
}

/// Which calls are open at a position, for any number of positions of a fold.
///
/// Building it takes one pass over the rules, with 16 bytes for each. A stack costs a descent
/// of the rules for each open call.
pub struct CallStacks<'a> {
    fold: &'a Fold,
    nesting: Measured<Nesting<()>>,
}

opaque_debug!(CallStacks<'a>);

impl<'a> CallStacks<'a> {
    /// Measures the nesting of all rules.
    pub fn new(fold: &'a Fold) -> Result<Self> {
        Ok(Self { fold, nesting: Measured::new(fold, Nesting::new(fold.alphabet()))? })
    }

    /// A cursor before an event of a stream.
    fn cursor(&self, stream: StreamId, position: u64) -> Cursor<'a, Fold> {
        let root = self.fold.stream(stream).root();
        Cursor::at(self.fold, root, position.min(self.fold.length(root)))
    }

    /// The calls that are open where an event happens, as the symbols that entered them,
    /// the innermost first and no more than `most` of them. An event that enters is not
    /// yet in its own call, one that leaves still is.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn at(&self, stream: StreamId, position: u64, most: usize) -> Vec<Symbol> {
        let mut stack = Vec::new();
        let mut cursor = self.cursor(stream, position);
        let mut pending = Pending::default();
        while stack.len() < most
            && let Some(stretch) = cursor.peek_back()
        {
            let once = self.nesting.of(stretch.target);
            let passed = pending.pass(once, stretch.times);
            if passed > 0 {
                cursor.skip_back(passed);
            } else if once.enters <= pending.0 {
                // Calls that are open are only before this.
                let passed = if once.leaves >= once.enters { stretch.times } else { 1 };
                pending.take(once, passed);
                cursor.skip_back(passed);
            } else if cursor.enter_back().is_some()
                && let Target::Symbol(symbol) = stretch.target
            {
                stack.push(symbol);
            }
        }
        stack
    }

    /// How many known calls are open where an event happens: exits of calls that were not seen
    /// to begin do not count.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn depth_at(&self, stream: StreamId, position: u64) -> u64 {
        let mut cursor = self.cursor(stream, position);
        let (mut pending, mut depth) = (0u64, 0u64);
        while let Some(stretch) = cursor.peek_back() {
            let Brackets { leaves, enters, .. } = self.nesting.of(stretch.target).repeated(stretch.times);
            depth = depth.saturating_add(enters.saturating_sub(pending));
            pending = pending.saturating_sub(enters).saturating_add(leaves);
            cursor.skip_back(stretch.times);
        }
        depth
    }
}
