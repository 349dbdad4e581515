//! Groups of hot subpaths that are parts of one loop.
//!
//! A loop of four hot events has four rotations, and as many pairs of neighbours, each as hot as
//! the others: a list of them has one loop in many rows. **Definition**: two subpaths of the same
//! number of events are related if one is a rotation of the other, or if one without its first event
//! is the other without its last one and their counts differ by at most a tenth of the larger one.
//! Groups are what is connected by that. Cost: O(events of the subpaths).

use super::HotSubpath;
use crate::Symbol;
use hashbrown::HashMap;

/// The groups, in the order of their first members, by the places of these in the list.
pub fn related(subpaths: &[HotSubpath]) -> Vec<Vec<usize>> {
    let mut groups = Groups { above: (0..subpaths.len()).collect() };
    let mut rotations: HashMap<Vec<Symbol>, usize> = HashMap::new();
    let mut by_beginning: HashMap<&[Symbol], Vec<usize>> = HashMap::new();
    for (index, subpath) in subpaths.iter().enumerate() {
        groups.join(*rotations.entry(least_rotation(&subpath.events)).or_insert(index), index);
        if let [beginning @ .., _] = &subpath.events[..] {
            by_beginning.entry(beginning).or_default().push(index);
        }
    }
    for (index, subpath) in subpaths.iter().enumerate() {
        let [_, end @ ..] = &subpath.events[..] else { continue };
        // Subpaths of one event overlap in nothing.
        let next = by_beginning.get(end).filter(|_| !end.is_empty());
        for &next in next.into_iter().flatten() {
            if are_close(subpath.count, subpaths[next].count) {
                groups.join(index, next);
            }
        }
    }
    groups.listed()
}

fn are_close(one: u64, other: u64) -> bool {
    let (least, most) = (one.min(other), one.max(other));
    u128::from(most - least) * 10 <= u128::from(most)
}

fn least_rotation(events: &[Symbol]) -> Vec<Symbol> {
    let mut events = events.to_vec();
    let by = crate::questions::near::least_rotation(&events);
    events.rotate_left(by);
    events
}

/// Disjoint sets, each known by its first member.
struct Groups {
    above: Vec<usize>,
}

impl Groups {
    fn first(&mut self, mut member: usize) -> usize {
        while self.above[member] != member {
            self.above[member] = self.above[self.above[member]];
            member = self.above[member];
        }
        member
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.above[one.max(other)] = one.min(other);
    }

    fn listed(mut self) -> Vec<Vec<usize>> {
        let mut place = HashMap::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for member in 0..self.above.len() {
            let first = self.first(member);
            let group = *place.entry(first).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(member);
        }
        groups
    }
}
