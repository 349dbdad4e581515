//! Recognises streams in which hardly anything repeats, while they arrive.
//!
//! A repeat that rules could use has several events, so windows of [`WINDOW`] events are
//! compared. Which of them are sampled is decided by their content: so a window that occurs again
//! is sampled again, however far away it is, and one in [`SAMPLED`] windows is enough. A block of
//! the stream repeats if a share of its samples was there before.
//!
//! Time: 2 ns an event. Memory: 8 to 16 bytes for each different sample, less than one an event.

use crate::Symbol;
use hashbrown::HashSet;

/// The events of a window.
const WINDOW: usize = 4;
/// One in so many windows is sampled.
const SAMPLED: u64 = 16;
/// A block repeats if one in so many samples was there before.
const ENOUGH: usize = 16;

/// The windows of a stream that were sampled so far.
#[derive(Default)]
pub(super) struct Novelty {
    seen: HashSet<u64, foldhash::fast::FixedState>,
}

impl Novelty {
    /// How many events are examined at once.
    pub(super) const BLOCK: usize = 1 << 14;

    /// Adds a block and returns whether it repeats itself or blocks before it. (A sample that
    /// happens to have the hash of another is too rare to matter.)
    pub(super) fn repeats(&mut self, block: &[Symbol]) -> bool {
        let (mut samples, mut known) = (0, 0);
        let mut hash = 0;
        for (at, symbol) in block.iter().enumerate() {
            // Symbols leave at the upper end after as many steps as a window has events.
            hash = (hash << (64 / WINDOW)) ^ spread(symbol.raw());
            let mixed = mix(hash);
            if at + 1 >= WINDOW && mixed.is_multiple_of(SAMPLED) {
                samples += 1;
                known += usize::from(!self.seen.insert(mixed));
            }
        }
        known * ENOUGH >= samples
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.allocation_size()
    }
}

/// A symbol as a number that differs in its upper bits too.
fn spread(symbol: u32) -> u64 {
    (u64::from(symbol) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Every bit of the result depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let folded = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (folded ^ folded >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ folded >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::streams;

    /// The first block that repeats, counted from 0.
    fn first_repeat(stream: &[u32]) -> Option<usize> {
        let symbols: Vec<Symbol> = stream.iter().map(|&raw| Symbol::from_raw(raw)).collect();
        let mut novelty = Novelty::default();
        symbols.chunks_exact(Novelty::BLOCK).position(|block| novelty.repeats(block))
    }

    #[test]
    fn random_numbers_do_not_repeat() {
        assert_eq!(first_repeat(&streams::random(1 << 20, 1 << 30, 1)), None);
        assert_eq!(first_repeat(&streams::random(1 << 20, 256, 2)), None);
        assert_eq!(first_repeat(&(0..1 << 20).collect::<Vec<u32>>()), None);
    }

    #[test]
    fn traces_repeat_at_once() {
        assert_eq!(first_repeat(&streams::control_flow(1 << 17, 3)), Some(0));
        assert_eq!(first_repeat(&streams::nests(1 << 17, 4)), Some(0));
        assert_eq!(first_repeat(&vec![5; 1 << 17]), Some(0));
    }

    /// However far away it is, and wherever it begins in a block.
    #[test]
    fn what_comes_again_much_later_is_noticed() {
        let part = streams::random(20 * Novelty::BLOCK, 1 << 30, 5);
        for gap in [0, 1, 1000, 3 * Novelty::BLOCK + 77] {
            let between = streams::random(gap, 1 << 30, 6);
            let stream = [&part[..], &between[..], &part[..]].concat();
            let expected = (part.len() + gap) / Novelty::BLOCK;
            let found = first_repeat(&stream).unwrap();
            assert!(found == expected || found == expected + 1, "{gap}: {found}, {expected}");
        }
    }

    /// One event in ten is the only thing that repeats: no rule could use it.
    #[test]
    fn single_events_that_repeat_are_not_enough() {
        let stream: Vec<u32> = (0..1u32 << 17).map(|at| if at % 10 == 0 { 0 } else { at + 1 }).collect();
        assert_eq!(first_repeat(&stream), None);
    }
}
