//! Finds whether a loop body is a rotation of one seen before.
//!
//! Rotations of a word share their smallest rotation, so a table of smallest rotations
//! finds the known one in time linear in the body.

use hashbrown::HashMap;

/// The bodies seen so far, one per class of rotations.
#[derive(Default)]
pub(super) struct KnownBodies {
    /// From the smallest rotation to where it begins in the body that is known.
    by_smallest: HashMap<Vec<u32>, usize>,
}

impl KnownBodies {
    /// By how many symbols `body` must be rotated to the left to be the known body of its
    /// class. A body without known rotations becomes known, and stays as it is. The body must
    /// not be a repetition itself.
    pub(super) fn shift(&mut self, body: &[u32]) -> usize {
        let smallest = smallest_rotation(body);
        let mut key = body[smallest..].to_vec();
        key.extend_from_slice(&body[..smallest]);
        let known = *self.by_smallest.entry(key).or_insert(smallest);
        (smallest + body.len() - known) % body.len()
    }
}

/// Where the lexicographically smallest rotation of a word begins.
fn smallest_rotation(word: &[u32]) -> usize {
    let length = word.len();
    let (mut best, mut rival, mut same) = (0, 1, 0);
    while best < length && rival < length && same < length {
        let (a, b) = (word[(best + same) % length], word[(rival + same) % length]);
        if a == b {
            same += 1;
            continue;
        }
        // Everything that was just compared starts with something larger, too.
        if a > b {
            best += same + 1;
        } else {
            rival += same + 1;
        }
        if best == rival {
            rival += 1;
        }
        same = 0;
    }
    best.min(rival)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::{Rng, streams};

    #[test]
    fn the_smallest_rotation_is_the_smallest() {
        let mut rng = Rng::new(5);
        for _ in 0..5000 {
            let word = streams::random(rng.between(1, 12), 3, rng.next_u64());
            let rotation = |shift: usize| [&word[shift..], &word[..shift]].concat();
            let smallest = (0..word.len()).map(rotation).min();
            assert_eq!(Some(rotation(smallest_rotation(&word))), smallest);
        }
    }

    #[test]
    fn a_rotation_is_turned_to_the_known_body() {
        let mut known = KnownBodies::default();
        assert_eq!(known.shift(&[1, 2, 3]), 0);
        assert_eq!(known.shift(&[3, 1, 2]), 1);
        assert_eq!(known.shift(&[2, 3, 1]), 2);
        assert_eq!(known.shift(&[1, 3, 2]), 0);
    }
}
