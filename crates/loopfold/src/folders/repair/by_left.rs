//! All places of a sequence sorted by the kind there, from which the lists of pairs are
//! made: the kind after it goes along, so that the sequence is read in order only.
//!
//! Takes 8 bytes an item and 4 a kind; two passes over the sequence.

use super::sequence::{END, Sequence};

/// Where a kind is, and the kind after it.
#[derive(Clone, Copy, Default)]
pub(super) struct Member {
    pub(super) at: u32,
    pub(super) right: u32,
}

/// The sorted places. Kinds that occur once are left out.
pub(super) struct ByLeft {
    members: Vec<Member>,
    /// Where the list of each kind ends.
    ends: Vec<u32>,
}

/// The kind is not listed.
const UNLISTED: u32 = u32::MAX;

impl ByLeft {
    /// Sorts a sequence without holes, whose items are of `kinds` kinds.
    pub(super) fn of(sequence: &Sequence, kinds: usize) -> Self {
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
            *end = if count > 1 { total } else { UNLISTED };
            total += if count > 1 { count } else { 0 };
        }
        let mut members = vec![Member::default(); total as usize];
        for (left, member) in neighbours() {
            let end = &mut ends[left as usize];
            if *end != UNLISTED {
                members[*end as usize] = member;
                *end += 1;
            }
        }
        Self { members, ends }
    }

    /// Each kind, and where it is, in order.
    pub(super) fn lists(&self) -> impl Iterator<Item = (u32, &[Member])> {
        let mut start = 0;
        let list = move |(&end, left): (&u32, u32)| {
            let list = if end == UNLISTED { &[] } else { &self.members[start..end as usize] };
            start += list.len();
            (left, list)
        };
        self.ends.iter().zip(0u32..).map(list)
    }
}
