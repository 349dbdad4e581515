//! Stores the summaries of all rules compactly.
//!
//! A cache miss costs more than a join, so most summaries are small: 40 bytes for blocks of one
//! frame and nothing else, 64 for a few levels, one of them with blocks and one with a state.
//! The others take 40 bytes, 56 more for each run of blocks and 24 for each run of states. For
//! paths of more than 64 blocks each set takes memory besides.

use super::super::brackets::Brackets;
use super::frame::{FrameMonoid as _, FrameState, FrameSummary as _, MonoidOf, SummaryOf};
use super::runs::{Run, Runs};
use super::{NestedSummary, PathMonoid, SummaryView};
use crate::{Error, Result};
use std::borrow::Cow;

/// The summaries of many stretches: blocks of one frame, small ones, and others whose lists
/// are kept end to end.
#[derive(Debug)]
pub(in super::super) struct SummaryStore<S: FrameState> {
    single: Vec<SummaryOf<S>>,
    small: Vec<Small<S>>,
    heads: Vec<Head>,
    blocks: Vec<Run<SummaryOf<S>>>,
    states: Vec<Run<S>>,
    /// Machine words that sets of many places take besides.
    beside: usize,
}

/// Where [`SummaryStore`] keeps a summary: the upper bits say in which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct StoreIndex(u32);

impl StoreIndex {
    /// Where the summary is of what does nothing.
    pub(in super::super) const NOTHING: Self = Self(u32::MAX);
    const SINGLE: u32 = 0b01 << 30;
    const SMALL: u32 = 0b10 << 30;
    const HEAD: u32 = 0b00 << 30;
    const LIST: u32 = 0b11 << 30;

    /// The place of the last of so many in a list.
    fn last(count: usize, list: u32) -> Result<Self> {
        match u32::try_from(count - 1) {
            Ok(place) if place & Self::LIST == 0 => Ok(Self(place | list)),
            _ => Err(Error::limit("a path can be looked for in at most 2^30 rules")),
        }
    }

    fn place(self) -> usize {
        (self.0 & !Self::LIST) as usize
    }
}

/// A summary of few levels, at most one with blocks and one with a state.
#[derive(Clone, Debug)]
struct Small<S: FrameState> {
    blocks: SummaryOf<S>,
    state: S,
    count: u64,
    leaves: u8,
    enters: u8,
    /// The level of the blocks, or [`Small::NONE`].
    level: u8,
    /// The frame of the state, or [`Small::NONE`].
    frame: u8,
}

impl<S: FrameState> Small<S> {
    const NONE: u8 = u8::MAX;

    /// `None` if there are more levels than that.
    fn of(summary: &NestedSummary<S>, no_blocks: &SummaryOf<S>) -> Option<Self> {
        fn only<T: Clone>(runs: &[Run<T>], none: &T) -> Option<(T, u8)> {
            match runs {
                [] => Some((none.clone(), Small::<u64>::NONE)),
                [run] if run.levels == 1 => Some((run.value.clone(), few(run.first)?)),
                _ => None,
            }
        }
        fn few(levels: u64) -> Option<u8> {
            u8::try_from(levels).ok().filter(|&levels| levels < Small::<u64>::NONE)
        }
        let (blocks, level) = only(&summary.below, no_blocks)?;
        let (state, frame) = only(&summary.frames.states, &S::default())?;
        let Brackets { leaves, enters, .. } = summary.frames.brackets;
        let (leaves, enters) = (few(leaves)?, few(enters)?);
        Some(Self { blocks, state, count: summary.count, leaves, enters, level, frame })
    }

    #[inline]
    fn view(&self) -> SummaryView<'_, S> {
        let below = match self.level {
            Self::NONE => Runs::NONE,
            level => Runs::single(level.into(), &self.blocks),
        };
        let states = match self.frame {
            Self::NONE => Runs::NONE,
            frame => Runs::single(frame.into(), &self.state),
        };
        let brackets = Brackets::new(self.leaves.into(), self.enters.into(), ());
        SummaryView { brackets, count: self.count, below, states }
    }
}

#[derive(Clone, Copy, Debug)]
struct Head {
    brackets: Brackets,
    count: u64,
    /// Where its lists end.
    blocks: usize,
    states: usize,
}

impl<S: FrameState> Default for SummaryStore<S> {
    fn default() -> Self {
        let (single, small, heads, blocks, states) = Default::default();
        Self { single, small, heads, blocks, states, beside: 0 }
    }
}

impl<S: FrameState> SummaryStore<S> {
    /// Keeps a summary.
    pub(in super::super) fn add(
        &mut self,
        summary: &NestedSummary<S>,
        monoid: &MonoidOf<S>,
    ) -> Result<StoreIndex> {
        let NestedSummary { count, frames, below } = summary;
        match &below[..] {
            _ if summary.is_empty() => return Ok(StoreIndex::NOTHING),
            [blocks] if frames.brackets == Brackets::default() && *count == 0 => {
                return self.add_blocks(blocks.value.clone());
            }
            _ => {}
        }
        self.beside += below.iter().map(|run| run.value.heap_words()).sum::<usize>()
            + frames.states.iter().map(|run| run.value.heap_words()).sum::<usize>();
        if let Some(small) = Small::of(summary, monoid.reset()) {
            self.small.push(small);
            return StoreIndex::last(self.small.len(), StoreIndex::SMALL);
        }
        self.blocks.extend_from_slice(below);
        self.states.extend_from_slice(&frames.states);
        self.heads.push(Head {
            brackets: frames.brackets,
            count: *count,
            blocks: self.blocks.len(),
            states: self.states.len(),
        });
        StoreIndex::last(self.heads.len(), StoreIndex::HEAD)
    }

    /// Keeps the summary of stretches that are kept, one after the other, each with how often
    /// it repeats. `scratch` has memory to use.
    pub(in super::super) fn add_joined(
        &mut self,
        stretches: impl Iterator<Item = (StoreIndex, u64)>,
        monoid: &PathMonoid<S>,
        scratch: &mut NestedSummary<S>,
    ) -> Result<StoreIndex> {
        scratch.clear();
        // Blocks of the frame that is innermost at the end, since calls changed it.
        let mut blocks: Option<SummaryOf<S>> = None;
        for (index, times) in stretches.filter(|&(index, _)| index != StoreIndex::NOTHING) {
            if let Some(once) = self.blocks(index) {
                let next = match times {
                    1 => Cow::Borrowed(once),
                    times => Cow::Owned(monoid.blocks.repeated(once, times)),
                };
                match &mut blocks {
                    Some(blocks) => monoid.blocks.append(blocks, &next),
                    None => blocks = Some(next.into_owned()),
                }
                continue;
            }
            if let Some(blocks) = blocks.take() {
                scratch.append_blocks(&blocks, &monoid.blocks);
            }
            monoid.append(scratch, self.get(index), times)?;
        }
        match blocks {
            Some(blocks) if scratch.is_empty() => return self.add_blocks(blocks),
            Some(blocks) => scratch.append_blocks(&blocks, &monoid.blocks),
            None => {}
        }
        self.add(scratch, &monoid.blocks)
    }

    /// Keeps the summary of blocks of one frame.
    fn add_blocks(&mut self, blocks: SummaryOf<S>) -> Result<StoreIndex> {
        self.beside += blocks.heap_words();
        self.single.push(blocks);
        StoreIndex::last(self.single.len(), StoreIndex::SINGLE)
    }

    /// The blocks of a summary that is nothing else.
    #[inline]
    fn blocks(&self, index: StoreIndex) -> Option<&SummaryOf<S>> {
        (index.0 & StoreIndex::LIST == StoreIndex::SINGLE).then(|| &self.single[index.place()])
    }

    #[inline]
    pub(in super::super) fn get(&self, index: StoreIndex) -> SummaryView<'_, S> {
        let place = index.place();
        match index.0 & StoreIndex::LIST {
            StoreIndex::SMALL => self.small[place].view(),
            StoreIndex::SINGLE => {
                SummaryView { below: Runs::single(0, &self.single[place]), ..SummaryView::NOTHING }
            }
            StoreIndex::HEAD => self.large(place),
            _ => SummaryView::NOTHING,
        }
    }

    fn large(&self, place: usize) -> SummaryView<'_, S> {
        let head = &self.heads[place];
        let (blocks, states) = match place.checked_sub(1).map(|before| &self.heads[before]) {
            Some(before) => (before.blocks, before.states),
            None => (0, 0),
        };
        SummaryView {
            brackets: head.brackets,
            count: head.count,
            below: Runs::of(&self.blocks[blocks..head.blocks]),
            states: Runs::of(&self.states[states..head.states]),
        }
    }

    /// Machine words of memory for all levels.
    pub(in super::super) fn memory(&self) -> usize {
        const WORD: usize = size_of::<u64>();
        let blocks = self.blocks.len() * size_of::<Run<SummaryOf<S>>>() / WORD;
        blocks + self.states.len() * size_of::<Run<S>>() / WORD + self.beside
    }
}
