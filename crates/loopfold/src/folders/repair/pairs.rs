//! A priority queue of the pairs of neighbours by frequency, with their positions.
//!
//! A pair is known with all its positions from the moment its newer kind appears; from then on
//! it can only lose some. So its count is an upper bound that is checked when the pair comes
//! first, and a replacement elsewhere changes none of the lists. Pairs that occur once are not
//! kept.
//!
//! A position takes 4 bytes, and as much again while the lists are made; a pair 32. A
//! replacement adds at most two positions, and all lists are rebuilt, in the same memory, when
//! two thirds of the items are gone.

use super::by_left::{ByLeft, Member};
use super::neighbours::{Group, Neighbours};
use super::sequence::Sequence;
use crate::interrupt;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Two kinds that are neighbours in several places.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) left: u32,
    pub(super) right: u32,
    /// Where its positions begin in the list of all.
    start: usize,
    count: u32,
}

impl Pair {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.count as usize
    }
}

/// No number.
const NONE: u32 = u32::MAX;

/// All pairs.
#[derive(Default)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    /// The positions of their left items, pair after pair, ascending; and room.
    positions: Vec<u32>,
    /// How much of that is used.
    used: usize,
    /// The upper bound on the count of each pair, with its number.
    claims: BinaryHeap<u64>,
}

/// Pairs with the greatest count come first, among those the one that was found last.
fn claim(count: u32, pair: usize) -> u64 {
    u64::from(count) << 32 | pair as u64
}

impl Pairs {
    /// Finds all pairs of a sequence without holes, whose items are of `kinds` kinds.
    pub(super) fn find_all(&mut self, sequence: &Sequence, kinds: usize) {
        self.pairs.clear();
        self.used = 0;
        let by_left = ByLeft::sort(sequence, kinds, &mut self.positions);
        let mut numbers = vec![NONE; kinds];
        let mut members: Vec<Member> = Vec::new();
        for (left, list) in by_left.lists() {
            interrupt::poll();
            // The positions that are kept go where members were, never past this list.
            members.clear();
            members.extend_from_slice(&self.positions.as_chunks().0[list]);
            self.take_list(left, &members, &mut numbers);
        }
        let claims = self.pairs.iter().enumerate().map(|(number, pair)| claim(pair.count, number));
        self.claims = claims.collect::<Vec<u64>>().into();
    }

    /// Adds the pairs that begin with `left`. All `numbers` are none before and after.
    fn take_list(&mut self, left: u32, members: &[Member], numbers: &mut [u32]) {
        let first = self.pairs.len();
        for &[_, right] in members {
            let number = &mut numbers[right as usize];
            if *number == NONE {
                *number = self.pairs.len() as u32;
                self.pairs.push(Pair { left, right, start: 0, count: 0 });
            }
            self.pairs[*number as usize].count += 1;
        }
        let mut kept = first;
        for index in first..self.pairs.len() {
            let pair = self.pairs[index];
            let is_kept = pair.count > 1;
            numbers[pair.right as usize] = if is_kept { kept as u32 } else { NONE };
            if is_kept {
                self.pairs[kept] = Pair { start: self.used, count: 0, ..pair };
                kept += 1;
                self.used += pair.count as usize;
            }
        }
        self.pairs.truncate(kept);
        for &[at, right] in members {
            if let Some(pair) = self.pairs.get_mut(numbers[right as usize] as usize) {
                self.positions[pair.start + pair.count as usize] = at;
                pair.count += 1;
            }
        }
        self.pairs[first..].iter().for_each(|pair| numbers[pair.right as usize] = NONE);
    }

    /// Adds the pairs around a new rule: last those in which it is the left one, so that,
    /// all else being equal, a rule grows at its end.
    pub(super) fn add(&mut self, around: &mut Neighbours) {
        let first = self.pairs.len();
        for group in around.groups_mut().filter(|group| group.count > 1) {
            let &mut Group { left, right, count, .. } = group;
            self.pairs.push(Pair { left, right, start: self.used, count });
            group.next = Some(self.used);
            self.used += count as usize;
        }
        if self.positions.len() < self.used {
            self.positions.resize(self.used, 0);
        }
        around.distribute(&mut self.positions);
        self.pairs[first..].sort_by_key(|pair| pair.left > pair.right);
        let new = self.pairs[first..].iter().zip(first..);
        self.claims.extend(new.map(|(pair, number)| claim(pair.count, number)));
    }

    /// The most frequent pair.
    pub(super) fn most_frequent(&mut self, sequence: &Sequence) -> Option<Pair> {
        while let Some(next) = self.claims.pop() {
            interrupt::poll();
            let (claimed, number) = ((next >> 32) as u32, next as u32 as usize);
            let count = self.count_again(number, sequence);
            if count == claimed {
                return Some(self.pairs[number]);
            }
            if count > 1 {
                self.claims.push(claim(count, number));
            }
        }
        None
    }

    /// Drops the positions of a pair where it no longer is, and counts the others.
    fn count_again(&mut self, number: usize, sequence: &Sequence) -> u32 {
        let pair = &mut self.pairs[number];
        let positions = &mut self.positions[pair.range()];
        let mut kept = 0;
        for index in 0..positions.len() {
            let at = positions[index];
            positions[kept] = at;
            kept += usize::from(sequence.has_pair(at as usize, pair.left, pair.right));
        }
        pair.count = kept as u32;
        pair.count
    }

    /// Where a pair is.
    pub(super) fn positions(&self, pair: &Pair) -> &[u32] {
        &self.positions[pair.range()]
    }
}
