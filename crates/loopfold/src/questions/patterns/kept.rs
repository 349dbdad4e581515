//! Converts positions between the events that patterns are made of and all events of a stream.
//!
//! A [`Rank`] of the fold: one pass over the items, 8 bytes each; then a look-up costs the
//! depth of the rules times the logarithm of their bodies.

use crate::fold::Fold;
use crate::fold::rank::Rank;

/// Where events that count are among all events.
#[derive(Clone, Debug)]
pub struct KeptPositions<'a> {
    fold: &'a Fold,
    /// `None` if all count.
    rank: Option<Rank<'a>>,
}

impl<'a> KeptPositions<'a> {
    pub(in crate::questions) fn new(fold: &'a Fold, kept: &[bool]) -> Self {
        let is_kept = |index: usize| kept.get(index).copied().unwrap_or(false);
        let all = kept.iter().all(|&kept| kept);
        let rank = (!all).then(|| Rank::new(fold, |node| is_kept(node.index()).into()));
        Self { fold, rank }
    }

    /// The position in a stream of its event number `index` that counts. Returns `None` if
    /// there are fewer.
    pub fn of(&self, stream: usize, index: u64) -> Option<u64> {
        let root = self.fold.streams().get(stream)?.root();
        match &self.rank {
            Some(rank) => rank.position(root, index),
            None => (index < self.fold.length(root)).then_some(index),
        }
    }

    /// How many events that count a stream has before a position.
    pub fn before(&self, stream: usize, position: u64) -> Option<u64> {
        let root = self.fold.streams().get(stream)?.root();
        let position = position.min(self.fold.length(root));
        Some(self.rank.as_ref().map_or(position, |rank| rank.before_position(root, position)))
    }
}
