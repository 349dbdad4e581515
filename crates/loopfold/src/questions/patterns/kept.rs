//! Where the events that patterns are made of are among all events of a stream, and the other
//! way round: a [`Rank`] by whether an event counts.

use crate::RuleId;
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
    /// `kept` says which symbols count.
    pub(in crate::questions) fn new(fold: &'a Fold, kept: &[bool]) -> Self {
        let weight = |symbol: usize| u64::from(kept.get(symbol).copied().unwrap_or(false));
        let all_count = kept.iter().all(|&kept| kept);
        Self { fold, rank: (!all_count).then(|| Rank::new(fold, |node| weight(node.index()))) }
    }

    fn root(&self, stream: usize) -> Option<RuleId> {
        Some(self.fold.streams().get(stream)?.root())
    }

    /// The position in a stream of its event number `index` that counts; `None` if there are
    /// not so many.
    pub fn of(&self, stream: usize, index: u64) -> Option<u64> {
        let root = self.root(stream)?;
        match &self.rank {
            Some(rank) => rank.position(root, index),
            None => (index < self.fold.length(root)).then_some(index),
        }
    }

    /// How many events that count a stream has before a position.
    pub fn before(&self, stream: usize, position: u64) -> Option<u64> {
        let root = self.root(stream)?;
        let position = position.min(self.fold.length(root));
        Some(self.rank.as_ref().map_or(position, |rank| rank.before_position(root, position)))
    }
}
