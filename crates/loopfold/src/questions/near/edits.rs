//! The shortest insertions and deletions that convert one sequence to another (Myers 1986).
//!
//! Cost: O((n + m) × edits) in the worst case, O(n + m + edits²) in the mean; 4 × edits² bytes, at
//! most [`MOST_EDITS`] of them.

use crate::Symbol;

/// Sequences that need more edits are written out.
pub const MOST_EDITS: usize = 256;

/// A place where a sequence differs from the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The event of the body, or of that many bodies in a row, at which it differs.
    pub at: usize,
    /// The events of the body that are missing from there on.
    pub removed: Vec<Symbol>,
    /// The events that are there instead.
    pub inserted: Vec<Symbol>,
}

impl Edit {
    /// How many events are written for it.
    pub(super) fn written(&self) -> u64 {
        (self.removed.len() + self.inserted.len()) as u64
    }
}

/// The edits from one sequence to another, adjacent ones as one. Returns `None` if there are more
/// than `most` insertions and deletions.
pub(super) fn edits(from: &[Symbol], to: &[Symbol], most: usize) -> Option<Vec<Edit>> {
    let same = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let (from_rest, to_rest) = (&from[same..], &to[same..]);
    let ending = from_rest.iter().rev().zip(to_rest.iter().rev());
    let same_end = ending.take_while(|(one, other)| one == other).count();
    let from = &from_rest[..from_rest.len() - same_end];
    let to = &to_rest[..to_rest.len() - same_end];
    let mut edits = Script { from, to }.shortest(most.min(MOST_EDITS))?;
    edits.iter_mut().for_each(|edit| edit.at += same);
    Some(edits)
}

struct Script<'a> {
    from: &'a [Symbol],
    to: &'a [Symbol],
}

impl Script<'_> {
    /// Breadth first over the number of edits: `reached[d][k]` is how far into `from` some `d`
    /// edits lead on the diagonal `k`, which has `from - to = 2 k - d` events.
    fn shortest(&self, most: usize) -> Option<Vec<Edit>> {
        if self.from.len().abs_diff(self.to.len()) > most {
            return None;
        }
        let mut reached: Vec<Vec<u32>> = Vec::new();
        for distance in 0..=most {
            let row: Vec<u32> =
                (0..=distance).map(|index| self.furthest(&reached, distance, index)).collect();
            reached.push(row);
            let (from, to) = (self.from.len() as i64, self.to.len() as i64);
            let diagonal = from - to + distance as i64;
            if diagonal >= 0 && diagonal % 2 == 0 {
                let index = (diagonal / 2) as usize;
                if reached[distance].get(index).is_some_and(|&x| i64::from(x) >= from) {
                    return Some(self.trace_back(&reached, index));
                }
            }
        }
        None
    }

    /// Whether the last edit on the way to a diagonal is a deletion.
    fn is_deletion(before: &[u32], index: usize) -> bool {
        // From the diagonal below by a deletion, from the one above by an insertion.
        index == before.len() || index > 0 && before[index - 1] >= before[index]
    }

    /// How far an edit leads before any equal events.
    fn stepped(before: &[u32], index: usize) -> u32 {
        if Self::is_deletion(before, index) { before[index - 1] + 1 } else { before[index] }
    }

    fn furthest(&self, reached: &[Vec<u32>], distance: usize, index: usize) -> u32 {
        let x = reached.last().map_or(0, |before| Self::stepped(before, index)) as usize;
        let Some(y) = (x + distance).checked_sub(2 * index) else { return x as u32 };
        if x > self.from.len() || y > self.to.len() {
            return x as u32;
        }
        let equal = self.from[x..].iter().zip(&self.to[y..]).take_while(|(one, other)| one == other);
        (x + equal.count()) as u32
    }

    /// The edits on the way, from the last to the first, then in order.
    fn trace_back(&self, reached: &[Vec<u32>], mut index: usize) -> Vec<Edit> {
        let mut edits: Vec<Edit> = Vec::new();
        for distance in (1..reached.len()).rev() {
            let before = &reached[distance - 1];
            let x = Self::stepped(before, index) as usize;
            let y = x + distance - 2 * index;
            let deleted = Self::is_deletion(before, index);
            let edit = if deleted {
                Edit { at: x - 1, removed: vec![self.from[x - 1]], inserted: Vec::new() }
            } else {
                Edit { at: x, removed: Vec::new(), inserted: vec![self.to[y - 1]] }
            };
            index -= usize::from(deleted);
            match edits.last_mut() {
                Some(next) if edit.at + edit.removed.len() == next.at => next.prepend(edit),
                _ => edits.push(edit),
            }
        }
        edits.reverse();
        for edit in &mut edits {
            edit.removed.reverse();
            edit.inserted.reverse();
        }
        edits
    }
}

impl Edit {
    /// Joins an edit directly before this one; both are written backwards still.
    fn prepend(&mut self, edit: Self) {
        self.at = edit.at;
        self.removed.extend(edit.removed);
        self.inserted.extend(edit.inserted);
    }
}
