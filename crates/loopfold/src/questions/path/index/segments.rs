//! Where segments are cut, which symbols each holds, and how calls are nested in it.

use super::Roots;
use crate::Result;
use crate::fold::{Fold, Item, Measure, Target, measure_rules};
use crate::questions::path::brackets::{Levels, NestingLevels};

/// Something that no segment need be cut in: iterations of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    item: Item,
    length: u64,
}

/// Where about so many segments end.
pub(super) fn cuts(fold: &Fold, roots: &Roots, segments: usize) -> Vec<u64> {
    let piece = |&item: &Item| Piece { item, length: fold.item_length(item) };
    let mut pieces: Vec<Piece> = roots.iter(fold).flat_map(|(root, _)| fold.body(root)).map(piece).collect();
    // Whatever is largest is divided, until there is enough. Each time all that are longer
    // than half of the longest are, so it is done at the latest after 64 rounds for each
    // level of rules.
    while pieces.len() < segments
        && let Some(longest) =
            pieces.iter().filter(|piece| can_divide(**piece)).map(|piece| piece.length).max()
    {
        let mut room = segments.saturating_sub(pieces.len());
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
    // As many pieces for each segment.
    let mut ends = Vec::with_capacity(segments);
    let (mut end, count) = (0u64, pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        end += piece.length;
        let segment = |index: usize| index as u128 * segments as u128 / count as u128;
        if index + 1 == count || segment(index) != segment(index + 1) {
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

/// Sets of segments, one for each symbol.
pub(super) struct Sets {
    pub(super) words: usize,
    bits: Vec<u64>,
}

impl Sets {
    pub(super) fn of(&self, slot: usize) -> &[u64] {
        &self.bits[slot * self.words..(slot + 1) * self.words]
    }
}

pub(super) fn has(bits: &[u64], segment: usize) -> bool {
    bits[segment / 64] >> (segment % 64) & 1 == 1
}

/// The segments that each symbol occurs in: from the roots down. A rule that lies within
/// segments gives them to what it is made of; one that is cut is looked at item by item,
/// once for each time that it is cut.
pub(super) fn segments_of_symbols(fold: &Fold, roots: &Roots, ends: &[u64]) -> Sets {
    let (words, symbols) = (ends.len().div_ceil(64), fold.alphabet().len());
    let mut bits = vec![0u64; words * (symbols + fold.rules().len())];
    let slot = |target: Target| match target {
        Target::Symbol(symbol) => symbol.index(),
        Target::Rule(rule) => symbols + rule.index(),
    };
    each_piece(fold, roots, ends, |segment, item| {
        bits[slot(item.target()) * words + segment / 64] |= 1 << (segment % 64);
    });
    for rule in fold.rules().rev() {
        let (below, own) = bits.split_at_mut((symbols + rule.index()) * words);
        let own = &own[..words];
        if own.iter().all(|&word| word == 0) {
            continue;
        }
        for item in fold.body(rule) {
            let place = slot(item.target()) * words;
            below[place..place + words].iter_mut().zip(own).for_each(|(bits, more)| *bits |= more);
        }
    }
    Sets { words, bits }
}

/// What comes next in a stream: some iterations, or the rest of a body.
enum Coming<'a> {
    Item(Item),
    Items(std::slice::Iter<'a, Item>),
}

/// Tells of each segment what it is made of, in order. What is cut is gone into.
fn each_piece(fold: &Fold, roots: &Roots, ends: &[u64], mut tell: impl FnMut(usize, Item)) {
    // The nearest last.
    let mut ahead: Vec<Coming<'_>> =
        roots.iter(fold).map(|(root, _)| Coming::Items(fold.body(root).iter())).collect();
    ahead.reverse();
    let (mut segment, mut position) = (0, 0u64);
    while let Some(next) = ahead.last_mut() {
        let item = match next {
            Coming::Item(item) => Some(*item),
            Coming::Items(items) => items.next().copied(),
        };
        if item.is_none() || matches!(next, Coming::Item(_)) {
            ahead.pop();
        }
        let Some(item) = item else { continue };
        while ends.get(segment).is_some_and(|&end| end <= position) {
            segment += 1;
        }
        let Some(&end) = ends.get(segment) else { return };
        let (target, length) = (item.target(), fold.target_length(item.target()));
        let whole = (end - position).checked_div(length).unwrap_or(u64::MAX).min(item.times());
        if whole > 0 {
            tell(segment, Item::new(target, whole));
            position += whole * length;
        }
        let cut = u64::from(whole == 0);
        if item.times() > whole + cut {
            ahead.push(Coming::Item(Item::new(target, item.times() - whole - cut)));
        }
        if let (1, Target::Rule(rule)) = (cut, target) {
            ahead.push(Coming::Items(fold.body(rule).iter()));
        }
    }
}

/// How calls are nested in each segment.
pub(super) fn levels_of(fold: &Fold, roots: &Roots, ends: &[u64]) -> Result<Vec<NestingLevels>> {
    let measure = Levels::new(fold.alphabet());
    let rules = measure_rules(fold, &measure)?;
    let mut levels = vec![measure.empty(); ends.len()];
    each_piece(fold, roots, ends, |segment, item| {
        let once = match item.target() {
            Target::Symbol(symbol) => measure.symbol(symbol),
            Target::Rule(rule) => rules[rule.index()],
        };
        levels[segment] = levels[segment].then(once.repeated(item.times()));
    });
    Ok(levels)
}
