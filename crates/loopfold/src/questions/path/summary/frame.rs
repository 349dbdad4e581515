//! The state of a path in one frame, and the effect of blocks on it.
//!
//! There are two kinds. For a path without gaps the state is a set of suffix overlaps, and the
//! effect of blocks is a [`MatchSummary`], a few machine words. For a path with gaps the state
//! is that of an automaton, and the effect is a table over all its states (see
//! [`gaps`](super::gaps)). All else, from levels to guides, is the same for both.

use super::super::PathQuery;
use crate::Symbol;
use crate::fold::Measure;
use crate::questions::find::bits::Bits;
use crate::questions::find::summary::{MatchMonoid, MatchSummary};
use std::fmt::Debug;

/// The state of a path in a frame; the default is the initial state of a frame.
pub(in super::super) trait FrameState:
    Clone + Debug + Default + PartialEq + Send + Sync
{
    /// The summary of blocks of one frame.
    type Summary: FrameSummary<Self>;
    /// How those are joined and repeated.
    type Monoid: FrameMonoid<Self>;

    /// Machine words of memory besides the value itself.
    fn heap_words(&self) -> usize;
}

pub(in super::super) type SummaryOf<S> = <S as FrameState>::Summary;

pub(in super::super) type MonoidOf<S> = <S as FrameState>::Monoid;

/// The effect of blocks of one frame on a state.
pub(in super::super) trait FrameSummary<S>: Clone + Debug + PartialEq + Send + Sync {
    /// How many occurrences end in the blocks, if they follow on a state.
    fn count_after(&self, state: &S) -> u64;

    /// Machine words of memory besides the value itself.
    fn heap_words(&self) -> usize;
}

/// The summaries of blocks of one path.
pub(in super::super) trait FrameMonoid<S: FrameState>: Clone + Debug + Send + Sync {
    fn new(query: &PathQuery) -> Self;

    /// The summary of no blocks.
    fn empty(&self) -> S::Summary;

    /// The summary of one block.
    fn symbol(&self, symbol: Symbol) -> S::Summary;

    /// The summary that resets every frame to its initial state: that of what lies between two
    /// frames.
    fn reset(&self) -> &S::Summary;

    /// Joins blocks to the end of others.
    fn append(&self, summary: &mut S::Summary, next: &S::Summary);

    /// Converts the state before some blocks to that behind them.
    fn follow(&self, state: &mut S, summary: &S::Summary);

    /// The summary of blocks repeated `times` times.
    fn repeated(&self, summary: &S::Summary, times: u64) -> S::Summary;

    /// How many blocks of the path are matched in a state, at most.
    fn matched(&self, state: &S) -> usize;

    /// Machine words of memory that a summary takes besides itself, at most.
    fn most_heap_words(&self) -> usize;
}

impl<B: Bits> FrameState for B {
    type Summary = MatchSummary<B>;
    type Monoid = MatchMonoid<B>;

    fn heap_words(&self) -> usize {
        self.words()
    }
}

impl<B: Bits> FrameSummary<B> for MatchSummary<B> {
    #[inline]
    fn count_after(&self, state: &B) -> u64 {
        self.count_after(state)
    }

    fn heap_words(&self) -> usize {
        self.words()
    }
}

impl<B: Bits> FrameMonoid<B> for MatchMonoid<B> {
    fn new(query: &PathQuery) -> Self {
        Self::new(query.pattern())
    }

    fn empty(&self) -> MatchSummary<B> {
        Measure::empty(self)
    }

    fn symbol(&self, symbol: Symbol) -> MatchSummary<B> {
        Measure::symbol(self, symbol)
    }

    fn reset(&self) -> &MatchSummary<B> {
        self.irrelevant()
    }

    #[inline]
    fn append(&self, summary: &mut MatchSummary<B>, next: &MatchSummary<B>) {
        self.append(summary, next);
    }

    #[inline]
    fn follow(&self, state: &mut B, summary: &MatchSummary<B>) {
        self.follow(state, summary);
    }

    #[inline]
    fn repeated(&self, summary: &MatchSummary<B>, times: u64) -> MatchSummary<B> {
        self.repeated(summary, times)
    }

    fn matched(&self, state: &B) -> usize {
        state.last().unwrap_or(0)
    }

    fn most_heap_words(&self) -> usize {
        3 * self.query_length().div_ceil(64)
    }
}
