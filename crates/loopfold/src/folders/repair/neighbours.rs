//! Collects the pairs around a new rule.
//!
//! Nearly always the rule is not repeated, and a table indexed by the kind of its neighbour
//! gives the pair; the rest are found by their hash. Takes 8 bytes a kind, and 8 a place until
//! the pairs are complete.

use super::sequence::END;
use hashbrown::HashMap;

/// A pair, one of which is the new rule.
pub(super) struct Group {
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) count: u32,
    /// Where its next position goes, if it is kept.
    pub(super) next: Option<usize>,
}

/// No group.
const NONE: u32 = u32::MAX;

/// The pairs around a rule, and where they are.
#[derive(Default)]
pub(super) struct Neighbours {
    groups: Vec<Group>,
    /// Groups and positions, in order.
    places: Vec<(u32, u32)>,
    /// The kind of the rule when it stands there once.
    once: u32,
    /// The group of each kind that stands before or after that.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The groups of pairs with the rule repeated.
    of_repeated: HashMap<(u32, u32), u32, foldhash::fast::RandomState>,
}

impl Neighbours {
    /// Begins with a rule that is newer than all other kinds.
    pub(super) fn begin(&mut self, once: u32) {
        self.once = once;
        let kinds = once as usize + 1;
        if self.before.len() < kinds {
            let room = kinds + kinds / 2;
            self.before.resize(room, NONE);
            self.after.resize(room, NONE);
        }
    }

    /// Adds a position of a pair; one of the two is the rule, perhaps repeated.
    #[inline]
    pub(super) fn add(&mut self, left: u32, right: u32, at: usize) {
        if left == END || right == END {
            return;
        }
        let number = if right == self.once {
            &mut self.before[left as usize]
        } else if left == self.once {
            &mut self.after[right as usize]
        } else {
            self.of_repeated.entry((left, right)).or_insert(NONE)
        };
        if *number == NONE {
            *number = self.groups.len() as u32;
            self.groups.push(Group { left, right, count: 0, next: None });
        }
        self.groups[*number as usize].count += 1;
        self.places.push((*number, at as u32));
    }

    /// The pairs that were found.
    pub(super) fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut()
    }

    /// Writes the positions of those pairs that are kept to their places, and forgets
    /// everything.
    pub(super) fn distribute(&mut self, positions: &mut [u32]) {
        for (group, at) in self.places.drain(..) {
            if let Some(next) = &mut self.groups[group as usize].next {
                positions[*next] = at;
                *next += 1;
            }
        }
        for group in self.groups.drain(..) {
            // One of the two is the rule, which has no entry here.
            for (table, kind) in [(&mut self.before, group.left), (&mut self.after, group.right)] {
                if let Some(number) = table.get_mut(kind as usize) {
                    *number = NONE;
                }
            }
        }
        if self.of_repeated.capacity() > 1024 {
            // To clear it would cost as much after every rule to come.
            self.of_repeated = HashMap::default();
        }
        self.of_repeated.clear();
    }
}
