//! Windows of a stream that are like a pattern, within an edit distance.
//!
//! The pattern has m events, and up to k of them may be inserted, lost or other ones; so a
//! window that is like it has m − k to m + k events. Of all such windows those with the
//! smallest distance are taken first, then those whose length is nearest to m, then the
//! leftmost ones, then the shorter; none overlaps another that was taken. That is what looking at every
//! window would give, whatever the size n of the n-grams by which most are passed over.
//!
//! **The filter.** A window within k edits of the pattern has at least m − n + 1 − kn of
//! the pattern's n-grams (Jokinen and Ukkonen), and each at most k places away from where
//! the pattern has it. So every n-gram of the stream votes for the windows that it could be
//! a part of, and only where there are enough votes an edit distance is computed. If
//! m − n + 1 − kn is less than 1, every window is looked at.
//!
//! **The distance** of all windows that start at one place is one table of m by 2k + 1.
//!
//! Where the pattern itself occurs, again and again as in loops, nothing else is looked at:
//! those windows are taken first and found by one scan. Time: a few nanoseconds an event,
//! and m(2k + 1) steps for each place with enough votes; memory 4 bytes an event that is
//! looked at, and 16 for each window that is like the pattern.

use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

/// What counts as alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeness {
    /// How many edits there may be.
    pub edits: usize,
    /// The size of the n-grams by which windows are passed over.
    pub ngram: usize,
}

impl Default for Likeness {
    fn default() -> Self {
        Self { edits: 1, ngram: 2 }
    }
}

/// A window that is like the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimilarWindow {
    /// Where it starts in the stream.
    pub start: usize,
    /// How many events it has.
    pub length: usize,
    /// How many edits make it the pattern.
    pub distance: usize,
}

/// How much the filter left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Places where a window could start.
    pub places: u64,
    /// Those where edit distances were computed.
    pub verified: u64,
}

/// A pattern to compare with.
#[derive(Clone, Debug)]
pub struct LikePattern {
    pattern: Vec<Symbol>,
    likeness: Likeness,
    /// Where the pattern has each of its n-grams.
    places: HashMap<Vec<Symbol>, Vec<usize>>,
}

impl LikePattern {
    /// A pattern of more events than there may be edits.
    pub fn new(pattern: &[Symbol], likeness: Likeness) -> Result<Self> {
        if pattern.len() <= likeness.edits {
            return Err(Error::invalid(format_args!(
                "everything is like a pattern of {} within {} edits",
                pattern.len(),
                likeness.edits
            )));
        }
        if likeness.ngram == 0 || likeness.edits > MOST_EDITS {
            return Err(Error::invalid(format_args!(
                "n-grams have at least 1 event, and there are at most {MOST_EDITS} edits"
            )));
        }
        let mut places: HashMap<Vec<Symbol>, Vec<usize>> = HashMap::new();
        for (place, ngram) in pattern.windows(likeness.ngram).enumerate() {
            places.entry(ngram.to_vec()).or_default().push(place);
        }
        Ok(Self { pattern: pattern.to_vec(), likeness, places })
    }

    /// The fewest n-grams that a window which is like the pattern has in common with it.
    /// Below 1 it says nothing.
    pub fn threshold(&self) -> i64 {
        let (m, n, k) = (self.pattern.len() as i64, self.likeness.ngram as i64, self.likeness.edits as i64);
        m - n + 1 - k * n
    }

    /// How many n-grams of a window are among those of the pattern, as in the paper.
    pub fn shared_ngrams(&self, window: &[Symbol]) -> usize {
        window.windows(self.likeness.ngram).filter(|&ngram| self.places.contains_key(ngram)).count()
    }

    /// How many edits make a window the pattern.
    pub fn distance(&self, window: &[Symbol]) -> usize {
        let mut row: Vec<usize> = (0..=window.len()).collect();
        for (above, event) in self.pattern.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], above + 1);
            for (place, other) in window.iter().enumerate() {
                let replaced = diagonal + usize::from(event != other);
                diagonal = row[place + 1];
                row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
            }
        }
        row[window.len()]
    }

    /// The windows of a stream that are like the pattern, in their order.
    ///
    /// ```
    /// use loopfold::Symbol;
    /// use loopfold::questions::{LikePattern, Likeness, SimilarWindow};
    ///
    /// let events = |text: &str| -> Vec<Symbol> {
    ///     text.bytes().map(|letter| Symbol::new(letter.into()).unwrap()).collect()
    /// };
    /// let pattern = LikePattern::new(&events("abcdef"), Likeness { edits: 1, ngram: 2 })?;
    /// let (found, filtered) = pattern.find_in(&events("xabcxefyyyyyyyyyy"));
    /// assert_eq!(found, [SimilarWindow { start: 1, length: 6, distance: 1 }]);
    /// assert!(filtered.verified < 4);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn find_in(&self, stream: &[Symbol]) -> (Vec<SimilarWindow>, Filtered) {
        let mut taken = self.exact(stream);
        let mut filtered = Filtered::default();
        let mut candidates = Vec::new();
        let mut begin = 0;
        let ends: Vec<usize> = taken.iter().map(|window| window.start).chain([stream.len()]).collect();
        let behind: Vec<usize> = taken.iter().map(|window| window.start + window.length).collect();
        for (index, end) in ends.into_iter().enumerate() {
            if end - begin + self.likeness.edits >= self.pattern.len() {
                self.look_at(&stream[begin..end], begin, &mut candidates, &mut filtered);
            }
            begin = behind.get(index).copied().unwrap_or(end);
        }
        filtered.places = stream.len() as u64;
        take(&mut taken, candidates, self.pattern.len());
        (taken, filtered)
    }

    /// Where the pattern itself is, leftmost and without overlaps (Knuth, Morris, Pratt).
    fn exact(&self, stream: &[Symbol]) -> Vec<SimilarWindow> {
        let (pattern, m) = (&self.pattern, self.pattern.len());
        let borders = borders(pattern);
        let mut windows = Vec::new();
        let mut matched = 0;
        for (at, event) in stream.iter().enumerate() {
            while matched > 0 && pattern[matched] != *event {
                matched = borders[matched - 1];
            }
            matched += usize::from(pattern[matched] == *event);
            if matched == m {
                windows.push(SimilarWindow { start: at + 1 - m, length: m, distance: 0 });
                matched = 0;
            }
        }
        windows
    }

    /// Adds all windows of a stretch that are like the pattern but not the same.
    fn look_at(
        &self,
        stretch: &[Symbol],
        begin: usize,
        candidates: &mut Vec<SimilarWindow>,
        filtered: &mut Filtered,
    ) {
        let (m, k) = (self.pattern.len(), self.likeness.edits);
        let last_start = stretch.len() + k - m;
        let votes = (self.threshold() >= 1).then(|| self.votes(stretch, last_start + 1));
        let mut distances = Distances::new(k);
        for start in 0..=last_start.min(stretch.len()) {
            if votes.as_ref().is_some_and(|votes| i64::from(votes[start]) < self.threshold()) {
                continue;
            }
            filtered.verified += 1;
            let window = &stretch[start..(start + m + k).min(stretch.len())];
            for (length, distance) in distances.of(&self.pattern, window) {
                if (1..=k).contains(&distance) {
                    candidates.push(SimilarWindow { start: begin + start, length, distance });
                }
            }
        }
    }

    /// For each start the n-grams that a window which starts there could have in common
    /// with the pattern, each at most k places from where the pattern has it.
    fn votes(&self, stretch: &[Symbol], starts: usize) -> Vec<i32> {
        let k = self.likeness.edits;
        let mut votes = vec![0i32; starts + 1];
        for (at, ngram) in stretch.windows(self.likeness.ngram).enumerate() {
            let Some(places) = self.places.get(ngram) else { continue };
            for &place in places {
                let Some(last) = (at + k).checked_sub(place) else { continue };
                let first = at.saturating_sub(place + k);
                votes[first.min(starts)] += 1;
                votes[(last + 1).min(starts)] -= 1;
            }
        }
        let mut sum = 0;
        for vote in &mut votes {
            sum += *vote;
            *vote = sum;
        }
        votes
    }
}

/// For each beginning of a pattern the length of the longest that is also its end.
fn borders(pattern: &[Symbol]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    for at in 1..pattern.len() {
        let mut border: usize = borders[at - 1];
        while border > 0 && pattern[border] != pattern[at] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(pattern[border] == pattern[at]);
    }
    borders
}

/// More edits than these make everything alike, and tables wide.
const MOST_EDITS: usize = 1000;

/// The distances of all windows that start at one place.
struct Distances {
    edits: usize,
    /// A row of the table: entry j is for j − k more events of the window than of the
    /// pattern.
    row: Vec<usize>,
}

impl Distances {
    fn new(edits: usize) -> Self {
        Self { edits, row: vec![0; 2 * edits + 1] }
    }

    /// The lengths from m − k to m + k that the stretch has, with their distances; a
    /// distance above k may be too large.
    fn of<'a>(
        &'a mut self,
        pattern: &[Symbol],
        stretch: &[Symbol],
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let (m, k, available) = (pattern.len(), self.edits, stretch.len());
        const FAR: usize = usize::MAX / 2;
        for (entry, distance) in self.row.iter_mut().enumerate() {
            *distance = if entry >= k { entry - k } else { FAR };
        }
        for (above, event) in pattern.iter().enumerate() {
            for entry in 0..=2 * k {
                // The window up to here has above + 1 + entry − k events.
                let Some(length) = (above + 1 + entry).checked_sub(k) else { continue };
                let lost = if entry < 2 * k { self.row[entry + 1] + 1 } else { FAR };
                let distance = if length == 0 {
                    lost
                } else {
                    let same = stretch.get(length - 1) == Some(event);
                    let replaced = self.row[entry] + usize::from(!same);
                    let inserted = if entry > 0 { self.row[entry - 1] + 1 } else { FAR };
                    replaced.min(lost).min(inserted)
                };
                self.row[entry] = distance;
            }
        }
        let lengths = (0..=2 * k).map(move |entry| (m + entry - k, self.row[entry]));
        lengths.filter(move |&(length, _)| length > 0 && length <= available)
    }
}

/// Takes windows, the best first, as long as they overlap none that was taken.
fn take(taken: &mut Vec<SimilarWindow>, mut candidates: Vec<SimilarWindow>, m: usize) {
    candidates
        .sort_by_key(|window| (window.distance, window.length.abs_diff(m), window.start, window.length));
    let mut starts: std::collections::BTreeMap<usize, usize> =
        taken.iter().map(|window| (window.start, window.length)).collect();
    for window in candidates {
        let end = window.start + window.length;
        let before = starts.range(..end).next_back();
        if before.is_none_or(|(&start, &length)| start + length <= window.start) {
            starts.insert(window.start, window.length);
            taken.push(window);
        }
    }
    taken.sort_unstable();
}
