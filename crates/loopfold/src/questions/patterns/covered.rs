//! Assigns occurrences to patterns: one that is part of a longer pattern's occurrence belongs
//! to that pattern, as in figure 8 of the paper.
//!
//! Time: O(log n) for each occurrence; memory 4 bytes a symbol of the loop-collapsed stream.

/// Intervals of a stream that were given to patterns.
#[derive(Clone, Debug)]
pub(super) struct CoveredIntervals {
    /// A Fenwick tree: the largest end of the intervals that start in a stretch.
    ends: Vec<u32>,
}

impl CoveredIntervals {
    /// None yet, in a stream of this length.
    pub(super) fn new(length: usize) -> Self {
        Self { ends: vec![0; length + 1] }
    }

    /// Gives an interval away.
    pub(super) fn add(&mut self, start: u32, end: u32) {
        let mut at = start as usize + 1;
        while let Some(largest) = self.ends.get_mut(at) {
            *largest = end.max(*largest);
            at += at & at.wrapping_neg();
        }
    }

    /// Whether an interval lies in one that was given away.
    pub(super) fn cover(&self, start: u32, end: u32) -> bool {
        let mut at = start as usize + 1;
        while at > 0 {
            if self.ends[at] >= end {
                return true;
            }
            at &= at - 1;
        }
        false
    }
}

/// The non-overlapping ones of sorted positions of a sequence, from the left.
pub(super) fn apart(positions: impl Iterator<Item = u32>, length: u32) -> impl Iterator<Item = u32> {
    let mut behind = 0;
    positions.filter(move |&position| {
        let is_apart = position >= behind;
        if is_apart {
            behind = position + length;
        }
        is_apart
    })
}
