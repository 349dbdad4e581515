//! Sorts the places of a sequence by their kind, to build the lists of pairs. Each place
//! carries the kind after it, so that the sequence is read in order only.
//!
//! Takes 8 bytes an item, which the caller lends, and 4 a kind; two passes over the
//! sequence.

use super::sequence::{END, Sequence};
use std::ops::Range;

/// Where a kind is, and the kind after it.
pub(super) type Member = [u32; 2];

/// Where the places of each kind are among the sorted ones. Kinds that occur once are left
/// out.
pub(super) struct ByLeft {
    ends: Vec<u32>,
}

/// The kind is left out.
const LEFT_OUT: u32 = u32::MAX;

impl ByLeft {
    /// Sorts a sequence without holes, whose items are of `kinds` kinds. The room grows as
    /// it must, and what was in it is lost.
    pub(super) fn sort(sequence: &Sequence, kinds: usize, room: &mut Vec<u32>) -> Self {
        let mut ends = vec![0u32; kinds];
        neighbours(sequence).for_each(|(left, _)| ends[left as usize] += 1);
        let mut total = 0;
        for end in &mut ends {
            let count = *end;
            *end = if count > 1 { total } else { LEFT_OUT };
            total += if count > 1 { count } else { 0 };
        }
        if room.len() < 2 * total as usize {
            // Pages that are made zero when they are first touched cost less than any other.
            *room = Vec::new();
            *room = vec![0; 2 * total as usize];
        }
        let (members, _) = room.as_chunks_mut();
        for (left, member) in neighbours(sequence) {
            let end = &mut ends[left as usize];
            if *end != LEFT_OUT {
                members[*end as usize] = member;
                *end += 1;
            }
        }
        Self { ends }
    }

    /// Each kind, and which of the members in the room are its own.
    pub(super) fn lists(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        let mut start = 0;
        let list = move |(&end, left): (&u32, u32)| {
            let list = start..if end == LEFT_OUT { start } else { end as usize };
            start = list.end;
            (left, list)
        };
        self.ends.iter().zip(0u32..).map(list)
    }
}

/// Each place that has a neighbour to its right.
fn neighbours(sequence: &Sequence) -> impl Iterator<Item = (u32, Member)> {
    let windows = sequence.cells().windows(2).zip(0u32..);
    let members = windows.map(|(cells, at)| (cells[0], [at, cells[1]]));
    members.filter(|&(left, [_, right])| left != END && right != END)
}
