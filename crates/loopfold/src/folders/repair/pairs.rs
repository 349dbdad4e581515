//! Which pairs of neighbours there are, where, and which is the most frequent.
//!
//! A pair is known with all its positions from the moment its newer kind appears; from
//! then on it can only lose some. So its count is a claim that is checked when the pair
//! comes first, and no pair needs to be found by its name: what is replaced elsewhere
//! touches none of the lists. Pairs that occur once are not kept.
//!
//! A position takes 4 bytes, a pair 32. A replacement adds at most two positions, and all
//! lists are made anew when half of the items are gone, so there are at most
//! two positions an item.

use super::sequence::{END, Sequence};
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

/// All pairs.
#[derive(Default)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    /// The positions of their left items, pair after pair, ascending.
    positions: Vec<u32>,
    /// What each pair claims to be its count, with its number.
    claims: BinaryHeap<u64>,
}

/// Pairs with the greatest count come first, among those the one that was found last.
fn claim(count: u32, pair: usize) -> u64 {
    u64::from(count) << 32 | pair as u64
}

impl Pairs {
    /// All pairs of a sequence without holes, whose items are of `kinds` kinds.
    pub(super) fn find_all(&mut self, sequence: &Sequence, kinds: usize) {
        self.pairs.clear();
        self.positions.clear();
        let by_left = ByLeft::of(sequence, kinds);
        let mut numbers = vec![NONE; kinds];
        for (left, members) in by_left.lists() {
            self.take_list(left, members, &mut numbers);
        }
        let claims = self.pairs.iter().enumerate().map(|(number, pair)| claim(pair.count, number));
        self.claims = claims.collect::<Vec<u64>>().into();
    }

    /// Adds the pairs that begin with `left`. All `numbers` are none before and after.
    fn take_list(&mut self, left: u32, members: &[Member], numbers: &mut [u32]) {
        let first = self.pairs.len();
        for member in members {
            let number = &mut numbers[member.right as usize];
            if *number == NONE {
                *number = self.pairs.len() as u32;
                self.pairs.push(Pair { left, right: member.right, start: 0, count: 0 });
            }
            self.pairs[*number as usize].count += 1;
        }
        let (mut kept, mut start) = (first, self.positions.len());
        for index in first..self.pairs.len() {
            let pair = self.pairs[index];
            let is_kept = pair.count > 1;
            numbers[pair.right as usize] = if is_kept { kept as u32 } else { NONE };
            if is_kept {
                self.pairs[kept] = Pair { start, count: 0, ..pair };
                kept += 1;
                start += pair.count as usize;
            }
        }
        self.pairs.truncate(kept);
        self.positions.resize(start, 0);
        for member in members {
            if let Some(pair) = self.pairs.get_mut(numbers[member.right as usize] as usize) {
                self.positions[pair.start + pair.count as usize] = member.at;
                pair.count += 1;
            }
        }
        self.pairs[first..].iter().for_each(|pair| numbers[pair.right as usize] = NONE);
    }

    /// Takes over the groups that occur more than once, with their positions
    /// from `start` on, and returns where those end.
    fn take_groups(&mut self, groups: &mut Groups, mut start: usize) -> usize {
        for group in &mut groups.groups {
            if group.count < 2 {
                group.next = usize::MAX;
                continue;
            }
            self.pairs.push(Pair { left: group.left, right: group.right, start, count: group.count });
            group.next = start;
            start += group.count as usize;
        }
        if self.positions.len() < start {
            self.positions.resize(start, 0);
        }
        for &(group, at) in &groups.members {
            let next = &mut groups.groups[group as usize].next;
            if *next != usize::MAX {
                self.positions[*next] = at;
                *next += 1;
            }
        }
        groups.clear();
        start
    }

    /// Adds the pairs around a new rule.
    pub(super) fn add(&mut self, groups: &mut Groups) {
        let first = self.pairs.len();
        self.take_groups(groups, self.positions.len());
        let new = self.pairs[first..].iter().zip(first..);
        self.claims.extend(new.map(|(pair, number)| claim(pair.count, number)));
    }

    /// The most frequent pair.
    pub(super) fn most_frequent(&mut self, sequence: &Sequence) -> Option<Pair> {
        while let Some(next) = self.claims.pop() {
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

/// No group.
pub(super) const NONE: u32 = u32::MAX;

/// Positions that are being grouped by the pair that is there.
#[derive(Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// Groups and positions, in the order in which they were found.
    members: Vec<(u32, u32)>,
}

struct Group {
    left: u32,
    right: u32,
    count: u32,
    /// Where its next position goes.
    next: usize,
}

impl Groups {
    /// Adds a position of a pair, whose group is `number` if it has one.
    #[inline]
    pub(super) fn add(&mut self, number: &mut u32, (left, right): (u32, u32), at: u32) {
        if *number == NONE {
            *number = self.groups.len() as u32;
            self.groups.push(Group { left, right, count: 0, next: 0 });
        }
        self.groups[*number as usize].count += 1;
        self.members.push((*number, at));
    }

    /// The pairs that were found.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.groups.iter().map(|group| (group.left, group.right))
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.members.clear();
    }
}

/// Where a kind is, and the kind after it.
#[derive(Clone, Copy, Default)]
struct Member {
    at: u32,
    right: u32,
}

/// All places of a sequence, sorted by the kind there. Kinds that occur once are left out.
struct ByLeft {
    members: Vec<Member>,
    /// Where the list of each kind ends.
    ends: Vec<u32>,
}

impl ByLeft {
    fn of(sequence: &Sequence, kinds: usize) -> Self {
        let neighbours = || {
            let windows = sequence.cells().windows(2).zip(0u32..);
            let members = windows.map(|(cells, at)| (cells[0], Member { at, right: cells[1] }));
            members.filter(|&(left, member)| left != END && member.right != END)
        };
        let mut ends = vec![0u32; kinds];
        neighbours().for_each(|(left, _)| ends[left as usize] += 1);
        let mut total = 0;
        for end in &mut ends {
            let count = *end;
            *end = if count > 1 { total } else { NONE };
            total += if count > 1 { count } else { 0 };
        }
        let mut members = vec![Member::default(); total as usize];
        for (left, member) in neighbours() {
            let end = &mut ends[left as usize];
            if *end != NONE {
                members[*end as usize] = member;
                *end += 1;
            }
        }
        Self { members, ends }
    }

    fn lists(&self) -> impl Iterator<Item = (u32, &[Member])> {
        let mut start = 0;
        let list = move |(&end, left): (&u32, u32)| {
            let list = if end == NONE { &[] } else { &self.members[start..end as usize] };
            start += list.len();
            (left, list)
        };
        self.ends.iter().zip(0u32..).map(list)
    }
}
