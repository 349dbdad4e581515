//! Computes the edit distances of all windows that start at one place.
//!
//! Patterns of up to 64 events have a bit for each in a machine word: a column of the table
//! is a few operations (Myers; Hyyrö's form for distances from a fixed start). Longer ones
//! have a band of 2k + 1 entries an event.

use super::letters::{Letter, Letters};

/// Tables for distances from many places.
pub(super) struct Distances<'a> {
    letters: &'a Letters,
    edits: usize,
    /// A row of the band: entry j is for j − k more events of the window than of the
    /// pattern.
    band: Vec<usize>,
}

impl<'a> Distances<'a> {
    pub(super) fn new(letters: &'a Letters, edits: usize) -> Self {
        Self { letters, edits, band: vec![0; 2 * edits + 1] }
    }

    /// Reports the lengths from m − k to m + k, at least 1, of the windows at the beginning of
    /// a stretch that are at most k edits away, and their distances.
    pub(super) fn each(&mut self, stretch: &[Letter], report: impl FnMut(usize, usize)) {
        let longest = (self.letters.events() + self.edits).min(stretch.len());
        match self.letters.single_words() {
            Some(rows) => self.by_words(rows, &stretch[..longest], report),
            None => self.by_band(&stretch[..longest], report),
        }
    }

    fn by_words(&self, rows: &[u64], stretch: &[Letter], mut report: impl FnMut(usize, usize)) {
        let (m, k) = (self.letters.events(), self.edits);
        let last = 1u64 << (m - 1);
        // Where a column of the table is one more, or one less, than the entry above.
        let (mut more, mut less) = (u64::MAX, 0u64);
        let mut distance = m;
        for (at, &letter) in stretch.iter().enumerate() {
            let same = rows[usize::from(letter)];
            let below = same | less;
            let across = ((same & more).wrapping_add(more) ^ more) | same;
            let (up, down) = (less | !(across | more), more & across);
            distance += usize::from(up & last != 0);
            distance -= usize::from(down & last != 0);
            let (up, down) = (up << 1 | 1, down << 1);
            more = down | !(below | up);
            less = up & below;
            let length = at + 1;
            if distance <= k && length + k >= m {
                report(length, distance);
            }
            // Each event more can make it one less.
            if distance + length > m + 2 * k {
                return;
            }
        }
    }

    fn by_band(&mut self, stretch: &[Letter], mut report: impl FnMut(usize, usize)) {
        let (m, k) = (self.letters.events(), self.edits);
        const FAR: usize = usize::MAX / 2;
        for (entry, distance) in self.band.iter_mut().enumerate() {
            *distance = if entry >= k { entry - k } else { FAR };
        }
        for place in 0..m {
            let mut least = FAR;
            for entry in 0..=2 * k {
                // The window up to here has place + 1 + entry − k events.
                let Some(length) = (place + 1 + entry).checked_sub(k) else { continue };
                let lost = if entry < 2 * k { self.band[entry + 1] + 1 } else { FAR };
                let distance = if length == 0 {
                    lost
                } else {
                    let same =
                        stretch.get(length - 1).is_some_and(|&event| self.letters.may_be(event, place));
                    let replaced = self.band[entry] + usize::from(!same);
                    let inserted = if entry > 0 { self.band[entry - 1] + 1 } else { FAR };
                    replaced.min(lost).min(inserted)
                };
                self.band[entry] = distance;
                least = least.min(distance);
            }
            if least > k {
                return;
            }
        }
        for (entry, &distance) in self.band.iter().enumerate() {
            let length = m + entry - k;
            if distance <= k && length > 0 && length <= stretch.len() {
                report(length, distance);
            }
        }
    }
}
