//! The streams during the replacement of pairs: one cell an item, and holes where items were.
//!
//! Positions do not change until [`Sequence::close_holes`], so that lists of them stay valid. A
//! hole stores its length in its first and in its last cell, so that either neighbour is one
//! step away. A cell takes 4 bytes.

/// Marks the cells of a hole; the rest of the cell is a length.
const HOLE: u32 = 1 << 31;

/// Stands before and after every stream, and is part of no pair.
pub(super) const END: u32 = HOLE - 1;

/// A longer hole is written as several adjacent ones. (Tests use a small limit.)
const LONGEST_HOLE: usize = if cfg!(test) { 5 } else { END as usize };

/// The kinds of all items in order.
pub(super) struct Sequence {
    cells: Vec<u32>,
    items: usize,
}

impl Sequence {
    /// No stream.
    pub(super) fn new() -> Self {
        Self { cells: vec![END], items: 0 }
    }

    /// Appends an item.
    pub(super) fn push(&mut self, kind: u32) {
        debug_assert!(kind < END);
        self.cells.push(kind);
        self.items += 1;
    }

    /// Ends a stream.
    pub(super) fn end_stream(&mut self) {
        self.cells.push(END);
    }

    /// All cells. Right after the holes were closed, none is in a hole.
    pub(super) fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// The items of each stream, right after the holes were closed.
    pub(super) fn streams(&self) -> impl Iterator<Item = &[u32]> {
        let ended = self.cells[1..].split_inclusive(|&kind| kind == END);
        ended.map(|stream| &stream[..stream.len() - 1])
    }

    /// The kind of the item at a position.
    pub(super) fn kind(&self, at: usize) -> u32 {
        self.cells[at]
    }

    /// The position of the item after the one at `at`.
    #[inline]
    pub(super) fn next(&self, at: usize) -> usize {
        let mut next = at + 1;
        while self.cells[next] & HOLE != 0 {
            next += (self.cells[next] & !HOLE) as usize;
        }
        next
    }

    /// The position of the item before the one at `at`.
    #[inline]
    pub(super) fn previous(&self, at: usize) -> usize {
        let mut previous = at - 1;
        while self.cells[previous] & HOLE != 0 {
            previous -= (self.cells[previous] & !HOLE) as usize;
        }
        previous
    }

    /// Whether these two items are still at `at`.
    #[inline]
    pub(super) fn has_pair(&self, at: usize, left: u32, right: u32) -> bool {
        self.cells[at] == left && self.cells[self.next(at)] == right
    }

    /// Takes two items away and returns the position of the item after them. The hole must be
    /// filled by [`Sequence::put`].
    #[inline]
    pub(super) fn take_pair(&mut self, at: usize) -> usize {
        let right = self.next(at);
        let after = self.next(right);
        // No list may take these for the items that were there.
        self.cells[at] = HOLE | 1;
        self.cells[right] = HOLE | 1;
        self.items -= 2;
        after
    }

    /// Puts one item where all between `at` and `after` was taken away.
    #[inline]
    pub(super) fn put(&mut self, at: usize, after: usize, kind: u32) {
        self.cells[at] = kind;
        self.items += 1;
        let mut start = at + 1;
        while start < after {
            let length = (after - start).min(LONGEST_HOLE);
            let cell = HOLE | length as u32;
            self.cells[start] = cell;
            self.cells[start + length - 1] = cell;
            start += length;
        }
    }

    /// Whether two thirds of the cells are in holes.
    pub(super) fn is_sparse(&self) -> bool {
        self.cells.len() > 3 * self.items + 4096
    }

    /// Moves all items together. Positions change.
    pub(super) fn close_holes(&mut self) {
        let (mut from, mut to) = (0, 0);
        while from + 1 < self.cells.len() {
            from = self.next(from);
            to += 1;
            self.cells[to] = self.cells[from];
        }
        self.cells.truncate(to + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(sequence: &Sequence) -> Vec<u32> {
        let (mut at, mut found) = (0, Vec::new());
        while at + 1 < sequence.cells.len() {
            at = sequence.next(at);
            found.push(sequence.kind(at));
        }
        found
    }

    #[test]
    fn holes_of_all_lengths_are_passed_in_both_directions() {
        for pairs in 1..20 {
            let mut sequence = Sequence::new();
            sequence.push(7);
            (0..pairs).for_each(|_| [1, 2].map(|kind| sequence.push(kind)).into_iter().collect());
            sequence.push(8);
            sequence.end_stream();
            let after = (0..pairs).fold(1 + 1, |at, _| sequence.take_pair(at));
            sequence.put(2, after, 9);
            assert_eq!(items(&sequence), [7, 9, 8, END]);
            assert_eq!((sequence.next(2), sequence.previous(after)), (after, 2));
            assert!(!sequence.has_pair(4.min(after), 1, 2));
            sequence.close_holes();
            assert_eq!(sequence.cells(), [END, 7, 9, 8, END]);
        }
    }
}
