//! The n-gram filter: finds where a stretch has enough n-grams of a pattern.
//!
//! Every n-gram is one number, a rolling hash. Two different n-grams could have the same
//! number; then one more window is compared, and none is missed.

use super::letters::{Letter, Letters, OTHER};

/// Where the pattern has its n-grams.
#[derive(Clone, Debug)]
pub(super) struct Ngrams {
    /// How many events an n-gram has.
    size: usize,
    /// What each letter adds to the number of an n-gram as its last event, and what it has
    /// added when n more have come.
    added: Vec<(u64, u64)>,
    /// The numbers of the pattern's n-grams, each at the slot that its first bits say or at the
    /// next free one.
    slots: Vec<Slot>,
    /// How many bits a number has more than the number of a slot.
    shift: u32,
    places: Vec<u32>,
}

/// A number, and where in `places` its n-gram has its own; nowhere if the slot is free.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    number: u64,
    begin: u32,
    end: u32,
}

/// A pattern whose events may be so many things that it has more n-grams is not filtered.
const MOST: usize = 1 << 16;
/// An odd number without a pattern in its bits.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Ngrams {
    /// Nothing if there are too many.
    pub(super) fn of(letters: &Letters, size: usize) -> Option<Self> {
        let power = (0..size).fold(1u64, |power, _| power.wrapping_mul(FACTOR));
        let added = (0..letters.count() as u64).map(|letter| {
            let value = mixed(letter);
            (value, value.wrapping_mul(power))
        });
        let mut ngrams =
            Self { size, added: added.collect(), slots: Vec::new(), shift: 0, places: Vec::new() };
        let mut found: Vec<(u64, u32)> = Vec::new();
        for place in 0..(letters.events() + 1).saturating_sub(size) {
            let mut numbers = vec![0u64];
            for event in place..place + size {
                let longer = |&number: &u64| letters.at(event).map(move |letter| (number, letter));
                numbers = numbers
                    .iter()
                    .flat_map(longer)
                    .map(|(number, letter)| ngrams.longer(number, letter))
                    .take(MOST + 1)
                    .collect();
            }
            found.extend(numbers.into_iter().map(|number| (number, place as u32)));
            if found.len() > MOST {
                return None;
            }
        }
        found.sort_unstable();
        // Three of four slots are free, so that what is not there is known at once.
        let slots = (4 * found.len()).next_power_of_two().max(64);
        (ngrams.slots, ngrams.shift) = (vec![Slot::default(); slots], 64 - slots.ilog2());
        for group in found.chunk_by(|one, other| one.0 == other.0) {
            let begin = ngrams.places.len() as u32;
            ngrams.places.extend(group.iter().map(|&(_, place)| place));
            let slot = ngrams.slot(group[0].0);
            ngrams.slots[slot] = Slot { number: group[0].0, begin, end: ngrams.places.len() as u32 };
        }
        Some(ngrams)
    }

    /// The slot that a number has, or would have.
    #[inline]
    fn slot(&self, number: u64) -> usize {
        let mut at = (number >> self.shift) as usize;
        while self.slots[at].number != number && self.slots[at].end > 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    /// Where the pattern has the n-gram of this number.
    #[inline]
    fn places(&self, number: u64) -> &[u32] {
        let Slot { begin, end, .. } = self.slots[self.slot(number)];
        &self.places[begin as usize..end as usize]
    }

    /// The number of what has this letter behind it.
    fn longer(&self, number: u64, letter: Letter) -> u64 {
        number.wrapping_mul(FACTOR).wrapping_add(self.added[usize::from(letter)].0)
    }

    /// Reports where the n-grams of a stretch that the pattern has begin, and where the pattern
    /// has them.
    pub(super) fn each(&self, stretch: &[Letter], mut report: impl FnMut(usize, &[u32])) {
        let mut number = 0u64;
        // Events since the last that is none of the pattern's.
        let mut known = 0;
        for (at, &letter) in stretch.iter().enumerate() {
            if letter == OTHER {
                (number, known) = (0, 0);
                continue;
            }
            number = self.longer(number, letter);
            known += 1;
            if known > self.size {
                let first = stretch[at - self.size];
                number = number.wrapping_sub(self.added[usize::from(first)].1);
            }
            if known >= self.size {
                let places = self.places(number);
                if !places.is_empty() {
                    report(at + 1 - self.size, places);
                }
            }
        }
    }

    /// For each start the n-grams that a window which starts there could have in common
    /// with the pattern, each at most `edits` places from where the pattern has it.
    pub(super) fn votes(&self, stretch: &[Letter], starts: usize, edits: usize, votes: &mut Vec<i32>) {
        votes.clear();
        votes.resize(starts + 1, 0);
        self.each(stretch, |at, places| {
            for &place in places {
                let place = place as usize;
                let Some(last) = (at + edits).checked_sub(place) else { continue };
                let first = at.saturating_sub(place + edits);
                votes[first.min(starts)] += 1;
                votes[(last + 1).min(starts)] -= 1;
            }
        });
        let mut sum = 0;
        for vote in votes {
            sum += *vote;
            *vote = sum;
        }
    }
}

/// A letter's number with its bits spread (SplitMix64).
fn mixed(letter: u64) -> u64 {
    let mut mixed = letter.wrapping_add(1).wrapping_mul(FACTOR);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
