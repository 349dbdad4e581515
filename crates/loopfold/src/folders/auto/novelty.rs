//! Recognises streams in which hardly anything repeats, while they arrive.
//!
//! A repeat that rules could use has several events, so windows of [`WINDOW`] events are
//! compared. Which of them are sampled is decided by their content: so a window that occurs again
//! is sampled again, however far away it is, and one in [`SAMPLED`] windows is enough. A block of
//! the stream repeats if a share of its samples was there before.
//!
//! Symbols count by the order in which the stream first has them, so that the samples, and with them
//! the choice of a folder, do not depend on how the alphabet is numbered, which depends on the other
//! streams. Windows with symbols beyond the first [`MOST_SYMBOLS`] are not sampled.
//!
//! Time: some nanoseconds an event. Memory: 8 to 16 bytes for each different sample, less than one an
//! event, and for each of these symbols.

use crate::Symbol;
use hashbrown::{HashMap, HashSet};

/// The events of a window.
const WINDOW: usize = 4;
/// One in so many windows is sampled.
const SAMPLED: u64 = 16;
/// A block repeats if one in so many samples was there before.
const ENOUGH: usize = 16;

/// The most symbols that are distinguished.
const MOST_SYMBOLS: usize = 1 << 20;

/// The windows of a stream that were sampled so far.
#[derive(Default)]
pub(super) struct Novelty {
    seen: HashSet<u64, foldhash::fast::FixedState>,
    /// The place of each symbol in the order in which they first occur.
    places: HashMap<Symbol, u32, foldhash::fast::FixedState>,
}

impl Novelty {
    /// How many events are examined at once.
    pub(super) const BLOCK: usize = 1 << 14;

    /// Adds a block and returns whether it repeats itself or blocks before it. (A sample that
    /// happens to have the hash of another is too rare to matter.)
    pub(super) fn repeats(&mut self, block: &[Symbol]) -> bool {
        let (mut samples, mut known) = (0, 0);
        // How many events there are since the last that is in no window.
        let (mut hash, mut since, mut are_all_known) = (0, 0, true);
        for &symbol in block {
            let Some(place) = self.place(symbol) else {
                (since, are_all_known) = (0, false);
                continue;
            };
            since += 1;
            // Symbols leave at the upper end after as many steps as a window has events.
            hash = (hash << (64 / WINDOW)) ^ spread(place);
            let mixed = mix(hash);
            if since >= WINDOW && mixed.is_multiple_of(SAMPLED) {
                samples += 1;
                known += usize::from(!self.seen.insert(mixed));
            }
        }
        known * ENOUGH >= samples && (samples > 0 || are_all_known)
    }

    /// The place of a symbol among those of the stream. Returns `None` beyond the most.
    fn place(&mut self, symbol: Symbol) -> Option<u32> {
        let next = self.places.len();
        match self.places.get(&symbol) {
            Some(&place) => Some(place),
            None if next < MOST_SYMBOLS => Some(*self.places.entry(symbol).or_insert(next as u32)),
            None => None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.allocation_size() + self.places.allocation_size()
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
    fn the_numbers_of_symbols_do_not_matter() {
        for seed in 0..200 {
            let stream = streams::nests(2 * Novelty::BLOCK, seed);
            let expected = first_repeat(&stream);
            for factor in [3, 17, 101] {
                let renumbered: Vec<u32> = stream.iter().map(|symbol| symbol * factor + 5).collect();
                assert_eq!(first_repeat(&renumbered), expected);
            }
        }
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
