//! Divides a fold into index ranges, and finds the symbols of each.
//!
//! A range is made of *pieces*: whole iterations of items, found by a cursor that enters only
//! what a range's end cuts. O(pieces + ranges × depth of the rules). The symbols of all ranges
//! are then one pass from the pieces down, with a bit for each range and node.

use super::Roots;
use crate::fold::cursor::{Cursor, Stretch};
use crate::fold::reach::top_down_rows;
use crate::fold::{Fold, Grammar as _, Item, Target};
use crate::{Result, Symbol};

/// Something that no range need end in: iterations of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    item: Item,
    length: u64,
}

/// Where about so many ranges end.
pub(super) fn range_ends(fold: &Fold, roots: &Roots, ranges: usize) -> Vec<u64> {
    let piece = |&item: &Item| Piece { item, length: fold.item_length(item) };
    let mut pieces: Vec<Piece> = roots.iter(fold).flat_map(|(root, _)| fold.body(root)).map(piece).collect();
    // Whatever is largest is divided, until there is enough. Each time all that are longer
    // than half of the longest are, so it is done at the latest after 64 rounds for each
    // level of rules.
    while pieces.len() < ranges
        && let Some(longest) =
            pieces.iter().filter(|piece| can_divide(**piece)).map(|piece| piece.length).max()
    {
        let mut room = ranges.saturating_sub(pieces.len());
        let mut divided = Vec::with_capacity(2 * pieces.len());
        for piece in pieces {
            if room == 0 || piece.length <= longest / 2 || !can_divide(piece) {
                divided.push(piece);
                continue;
            }
            let before = divided.len();
            divide(fold, piece, &mut divided);
            room = room.saturating_sub(divided.len() - before - 1);
        }
        pieces = divided;
    }
    // As many pieces for each range.
    let mut ends = Vec::with_capacity(ranges);
    let (mut end, count) = (0u64, pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        end += piece.length;
        let range = |index: usize| index as u128 * ranges as u128 / count as u128;
        if index + 1 == count || range(index) != range(index + 1) {
            ends.push(end);
        }
    }
    ends
}

fn can_divide(piece: Piece) -> bool {
    piece.item.times() > 1 || matches!(piece.item.target(), Target::Rule(_))
}

/// Half of the iterations and the rest, or the items of a rule.
fn divide(fold: &Fold, piece: Piece, divided: &mut Vec<Piece>) {
    let of = |item: Item| Piece { item, length: fold.item_length(item) };
    match (piece.item.target(), piece.item.times()) {
        (Target::Rule(rule), 1) => divided.extend(fold.body(rule).iter().map(|&item| of(item))),
        (target, times) => {
            divided.push(of(Item::new(target, times / 2)));
            divided.push(of(Item::new(target, times - times / 2)));
        }
    }
}

/// Sets of ranges, one for each node, as rows of bits.
pub(super) struct RangeSets {
    words: usize,
    bits: Vec<u64>,
}

impl RangeSets {
    /// The ranges in which some of these symbols occur, in order.
    pub(super) fn of_symbols(&self, symbols: impl Iterator<Item = Symbol>) -> impl Iterator<Item = u32> {
        let mut union = vec![0u64; self.words];
        for symbol in symbols {
            let row = &self.bits[symbol.index() * self.words..][..self.words];
            union.iter_mut().zip(row).for_each(|(bits, more)| *bits |= more);
        }
        (0..64 * self.words as u32).filter(move |&range| union[range as usize / 64] >> (range % 64) & 1 == 1)
    }
}

/// The ranges that each node occurs in. A rule that is a piece of ranges passes them to what
/// it is made of.
pub(super) fn ranges_of_nodes(fold: &Fold, roots: &Roots, ends: &[u64]) -> Result<RangeSets> {
    let words = ends.len().div_ceil(64);
    let mut bits = vec![0u64; words * fold.node_count()];
    each_piece(fold, roots, ends, |range, piece| {
        bits[fold.item_node(piece.item).index() * words + range / 64] |= 1 << (range % 64);
    });
    top_down_rows(fold, words, &mut bits, |_, body, own, before| {
        if own.iter().all(|&word| word == 0) {
            return Ok(());
        }
        for &item in body {
            let inner = &mut before[fold.item_node(item).index() * words..][..words];
            inner.iter_mut().zip(own).for_each(|(bits, more)| *bits |= more);
        }
        Ok(())
    })?;
    Ok(RangeSets { words, bits })
}

/// Calls `pass` with the pieces of each range, in order.
fn each_piece(fold: &Fold, roots: &Roots, ends: &[u64], mut pass: impl FnMut(usize, Stretch<Item>)) {
    let mut range = 0;
    for (root, start) in roots.iter(fold) {
        let mut cursor = Cursor::new(fold, root);
        let root_end = start + fold.length(root);
        while let Some(&end) = ends.get(range) {
            cursor.advance_to(end.min(root_end) - start, |piece| pass(range, piece));
            if end > root_end {
                break;
            }
            range += 1;
        }
    }
}
