//! What a frame knows of the path that is looked for in it, and what blocks do to that.
//!
//! There are two kinds. The path without gaps: the state is a set of endings, and what
//! blocks do is a [`Word`](summary::MatchSummary), a few machine words however long the path. The
//! path with gaps: the state is that of an automaton, and what blocks do is a table over
//! all its states (see [`gaps`](super::gaps)). All else, from levels to walks, is the same.

use super::PathQuery;
use crate::Symbol;
use crate::questions::find::bits::Bits;
use crate::questions::find::summary;
use std::fmt::Debug;

/// The state of a path in a frame; the default is that of a frame just entered.
pub(super) trait FrameState: Clone + Debug + Default + PartialEq + Send + Sync {
    type Word: FrameWord<Self>;
    type Words: FrameWords<Self>;

    /// Machine words of memory besides the value itself.
    fn words(&self) -> usize;
}

/// What blocks of one frame do to the path.
pub(super) type Word<S> = <S as FrameState>::Word;

/// The measure of those.
pub(super) type Words<S> = <S as FrameState>::Words;

/// What blocks of one frame do to a state.
pub(super) trait FrameWord<S>: Clone + Debug + PartialEq + Send + Sync {
    /// How many occurrences end in the blocks, if they follow on a state.
    fn count_after(&self, state: &S) -> u64;

    /// Machine words of memory besides the value itself.
    fn words(&self) -> usize;
}

/// Words of blocks, and how they are joined and repeated.
pub(super) trait FrameWords<S: FrameState>: Clone + Debug + Send + Sync {
    fn new(query: &PathQuery) -> Self;

    /// The word of no blocks.
    fn empty(&self) -> S::Word;

    /// The word of one block.
    fn symbol(&self, symbol: Symbol) -> S::Word;

    /// The word behind which nothing goes on from before it, and in which nothing begins:
    /// the seam between two frames.
    fn seam(&self) -> &S::Word;

    /// Joins blocks to the end of others.
    fn append(&self, word: &mut S::Word, next: &S::Word);

    /// Turns the state before some blocks into that behind them.
    fn follow(&self, state: &mut S, word: &S::Word);

    /// The word of blocks repeated `times` times.
    fn repeated(&self, word: &S::Word, times: u64) -> S::Word;

    /// How many blocks of the path are matched in a state, at the most.
    fn matched(&self, state: &S) -> usize;

    /// Machine words of memory that a word takes besides itself, at the most.
    fn memory(&self) -> usize;
}

impl<B: Bits> FrameState for B {
    type Word = summary::MatchSummary<B>;
    type Words = summary::MatchMonoid<B>;

    fn words(&self) -> usize {
        Bits::words(self)
    }
}

impl<B: Bits> FrameWord<B> for summary::MatchSummary<B> {
    #[inline]
    fn count_after(&self, state: &B) -> u64 {
        self.count_after(state)
    }

    fn words(&self) -> usize {
        self.words()
    }
}

impl<B: Bits> FrameWords<B> for summary::MatchMonoid<B> {
    fn new(query: &PathQuery) -> Self {
        Self::new(query.pattern())
    }

    fn empty(&self) -> summary::MatchSummary<B> {
        crate::fold::Measure::empty(self)
    }

    fn symbol(&self, symbol: Symbol) -> summary::MatchSummary<B> {
        crate::fold::Measure::symbol(self, symbol)
    }

    fn seam(&self) -> &summary::MatchSummary<B> {
        self.irrelevant()
    }

    #[inline]
    fn append(&self, word: &mut summary::MatchSummary<B>, next: &summary::MatchSummary<B>) {
        self.append(word, next);
    }

    #[inline]
    fn follow(&self, state: &mut B, word: &summary::MatchSummary<B>) {
        self.follow(state, word);
    }

    #[inline]
    fn repeated(&self, word: &summary::MatchSummary<B>, times: u64) -> summary::MatchSummary<B> {
        self.repeated(word, times)
    }

    fn matched(&self, state: &B) -> usize {
        state.last().unwrap_or(0)
    }

    fn memory(&self) -> usize {
        3 * self.query_length().div_ceil(64)
    }
}
