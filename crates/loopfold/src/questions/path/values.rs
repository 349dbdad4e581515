//! Keeping the values of all rules.
//!
//! What does not fit the processor's caches costs more than joining it, so most values are
//! kept small: 40 bytes for a word and nothing else, 64 for a few levels with one word and
//! one state. The others take 40 bytes, 56 more for each run of words and 24 for each run of
//! states. For paths of more than 64 blocks each set takes memory besides.

use super::frame::{FrameState, FrameWord as _, FrameWords as _, Word, Words};
use super::runs::{Run, Runs};
use super::value::{Value, View};
use crate::{Error, Result};

/// The values of many stretches: words alone, small ones, and others whose lists are kept
/// end to end.
#[derive(Debug)]
pub(super) struct Values<B: FrameState> {
    single: Vec<Word<B>>,
    small: Vec<Small<B>>,
    heads: Vec<Head>,
    words: Vec<Run<Word<B>>>,
    states: Vec<Run<B>>,
    /// Machine words that sets of many places take besides.
    beside: usize,
}

/// Where [`Values`] keeps a value: the upper bits tell which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index(u32);

impl Index {
    /// Where a value is that does nothing.
    pub(super) const NOTHING: Self = Self(u32::MAX);
    const WORD: u32 = 0b01 << 30;
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

/// A value of few levels, at most one with a word and one with a state.
#[derive(Clone, Debug)]
struct Small<B: FrameState> {
    word: Word<B>,
    state: B,
    count: u64,
    leaves: u8,
    enters: u8,
    /// The level of the word, or [`Small::NONE`].
    level: u8,
    /// The frame of the state, or [`Small::NONE`].
    frame: u8,
}

impl<B: FrameState> Small<B> {
    const NONE: u8 = u8::MAX;

    /// Nothing if there are more levels than that.
    fn of(value: &Value<B>, no_word: &Word<B>) -> Option<Self> {
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
        let (word, level) = only(&value.words, no_word)?;
        let (state, frame) = only(&value.frames.states, &B::default())?;
        let (leaves, enters) = (few(value.leaves)?, few(value.frames.open)?);
        Some(Self { word, state, count: value.count, leaves, enters, level, frame })
    }

    #[inline]
    fn view(&self) -> View<'_, B> {
        let words = match self.level {
            Self::NONE => Runs::NONE,
            level => Runs::single(level.into(), &self.word),
        };
        let states = match self.frame {
            Self::NONE => Runs::NONE,
            frame => Runs::single(frame.into(), &self.state),
        };
        View { leaves: self.leaves.into(), enters: self.enters.into(), count: self.count, words, states }
    }
}

#[derive(Clone, Copy, Debug)]
struct Head {
    leaves: u64,
    enters: u64,
    count: u64,
    /// Where its lists end.
    words: usize,
    states: usize,
}

impl<B: FrameState> Default for Values<B> {
    fn default() -> Self {
        let (single, small, heads, words, states) = Default::default();
        Self { single, small, heads, words, states, beside: 0 }
    }
}

impl<B: FrameState> Values<B> {
    /// Keeps a value.
    pub(super) fn add(&mut self, value: &Value<B>, words: &Words<B>) -> Result<Index> {
        match &value.words[..] {
            _ if value.is_empty() => return Ok(Index::NOTHING),
            [word] if value.leaves == 0 && value.frames.open == 0 && value.count == 0 => {
                return self.add_word(word.value.clone());
            }
            _ => {}
        }
        self.beside += value.words.iter().map(|run| run.value.words()).sum::<usize>()
            + value.frames.states.iter().map(|run| run.value.words()).sum::<usize>();
        if let Some(small) = Small::of(value, words.seam()) {
            self.small.push(small);
            return Index::last(self.small.len(), Index::SMALL);
        }
        self.words.extend_from_slice(&value.words);
        self.states.extend_from_slice(&value.frames.states);
        self.heads.push(Head {
            leaves: value.leaves,
            enters: value.frames.open,
            count: value.count,
            words: self.words.len(),
            states: self.states.len(),
        });
        Index::last(self.heads.len(), Index::HEAD)
    }

    /// Keeps the value of something that happens in one frame.
    pub(super) fn add_word(&mut self, word: Word<B>) -> Result<Index> {
        self.beside += word.words();
        self.single.push(word);
        Index::last(self.single.len(), Index::WORD)
    }

    /// The word of a value that is nothing else.
    #[inline]
    pub(super) fn word(&self, index: Index) -> Option<&Word<B>> {
        (index.0 & Index::LIST == Index::WORD).then(|| &self.single[index.place()])
    }

    #[inline]
    pub(super) fn get(&self, index: Index) -> View<'_, B> {
        let place = index.place();
        match index.0 & Index::LIST {
            Index::SMALL => self.small[place].view(),
            Index::WORD => {
                let words = Runs::single(0, &self.single[place]);
                View { leaves: 0, enters: 0, count: 0, words, states: Runs::NONE }
            }
            Index::HEAD => self.large(place),
            _ => View { leaves: 0, enters: 0, count: 0, words: Runs::NONE, states: Runs::NONE },
        }
    }

    fn large(&self, place: usize) -> View<'_, B> {
        let head = &self.heads[place];
        let (words, states) = match place.checked_sub(1).map(|before| &self.heads[before]) {
            Some(before) => (before.words, before.states),
            None => (0, 0),
        };
        View {
            leaves: head.leaves,
            enters: head.enters,
            count: head.count,
            words: Runs::of(&self.words[words..head.words]),
            states: Runs::of(&self.states[states..head.states]),
        }
    }

    /// Machine words of memory for all levels.
    pub(super) fn memory(&self) -> usize {
        const WORD: usize = size_of::<u64>();
        let words = self.words.len() * size_of::<Run<Word<B>>>() / WORD;
        words + self.states.len() * size_of::<Run<B>>() / WORD + self.beside
    }
}
