//! Approximate matching: finds the windows of a stream within an edit distance of a pattern.
//!
//! The pattern has m events, and up to k may be inserted, deleted or replaced; so a similar
//! window has m − k to m + k events. Of all such windows those with the smallest distance are
//! taken first, then those whose length is nearest to m, then the leftmost ones, then the
//! shorter; none overlaps another that was taken. The result is that of comparing every window,
//! for any size n of the n-grams of the filter.
//!
//! **The filter** (`ngrams`). A window within k edits of the pattern has at least m − n + 1 −
//! kn of the pattern's n-grams (Jokinen and Ukkonen), and each at most k places away from where
//! the pattern has it. So every n-gram of the stream votes for the windows that it could be a
//! part of, and only where there are enough votes an edit distance is computed. If m − n + 1 −
//! kn is less than 1, every window is examined.
//!
//! **The distance** (`distance`) of all windows that start at one place is one table, of
//! which a column is a machine word if m is at most 64.
//!
//! Exact occurrences, as in loops, are taken first and found by one scan; nothing that overlaps
//! them is compared. Time: some nanoseconds an event, and for each place with enough votes
//! about m steps, or m(2k + 1) of a long pattern; memory 6 bytes an event that is examined, and
//! 24 for each similar window. Streams of any length are searched in blocks (`blocks`).

mod blocks;
mod compared;
mod distance;
mod enclosing;
mod joined;
mod letters;
mod messages;
mod ngrams;
mod search;

pub use blocks::{SimilarPlace, find_similar};
pub use compared::{Compared, ProcessStreams, RolesAndPeers};
pub use enclosing::EnclosingPatterns;
pub use joined::{SimilarOccurrence, SimilarPartners, join_similar};
pub use messages::MessagesInOrder;
pub use search::{
    ComparedEvents, Config, EventSequence, JoinedOccurrences, SimilarFound, SimilarPattern, SimilarVariant,
    search_similar,
};

use crate::interrupt::Pace;
use crate::{Error, Result, Symbol};
use distance::Distances;
use letters::{Letter, Letters};
use ngrams::Ngrams;

/// What counts as similar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeness {
    /// How many edits there may be.
    pub edits: usize,
    /// The size of the n-grams of the filter.
    pub ngram: usize,
}

impl Likeness {
    const DEFAULT: Self = Self { edits: 1, ngram: 2 };
}

impl Default for Likeness {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A window that is similar to the pattern.
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
    letters: Letters,
    likeness: Likeness,
    /// Nothing if there are too many to be of use.
    ngrams: Option<Ngrams>,
}

impl LikePattern {
    /// The most events that a pattern can have.
    pub const LONGEST: usize = 1 << 14;

    /// A pattern of more events than there may be edits.
    pub fn new(pattern: &[Symbol], likeness: Likeness) -> Result<Self> {
        let events: Vec<Vec<Symbol>> = pattern.iter().map(|&symbol| vec![symbol]).collect();
        Self::of_events(&events, likeness)
    }

    /// A pattern whose events each may be one of several symbols, as in a
    /// [`Query`](super::query::Query), or none that there is.
    pub fn of_events(pattern: &[Vec<Symbol>], likeness: Likeness) -> Result<Self> {
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
        if pattern.len() > Self::LONGEST {
            return Err(Error::limit(format_args!(
                "a pattern of {} events; at most {} can be looked for",
                pattern.len(),
                Self::LONGEST
            )));
        }
        let letters = Letters::of(pattern)?;
        let ngrams = Ngrams::of(&letters, likeness.ngram);
        Ok(Self { letters, likeness, ngrams })
    }

    /// How many events the pattern has.
    #[allow(clippy::len_without_is_empty, reason = "a pattern is never empty")]
    pub fn len(&self) -> usize {
        self.letters.events()
    }

    /// The fewest n-grams that a similar window shares with the pattern. Below 1 it is no
    /// bound.
    pub fn threshold(&self) -> i64 {
        let (m, n, k) = (self.len() as i64, self.likeness.ngram as i64, self.likeness.edits as i64);
        m.saturating_add(1).saturating_sub(n).saturating_sub(k.saturating_mul(n))
    }

    /// How many n-grams of a window are among those of the pattern, as in the paper.
    pub fn shared_ngrams(&self, window: &[Symbol]) -> usize {
        let mut shared = 0;
        if let Some(ngrams) = &self.ngrams {
            ngrams.each(&self.letters_of(window), |_, _| shared += 1);
        }
        shared
    }

    /// How many edits make a window the pattern.
    pub fn distance(&self, window: &[Symbol]) -> usize {
        let window = self.letters_of(window);
        let mut row: Vec<usize> = (0..=window.len()).collect();
        for event in 0..self.len() {
            let mut diagonal = std::mem::replace(&mut row[0], event + 1);
            for (place, &other) in window.iter().enumerate() {
                let replaced = diagonal + usize::from(!self.letters.may_be(other, event));
                diagonal = row[place + 1];
                row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
            }
        }
        row[window.len()]
    }

    fn letters_of(&self, stream: &[Symbol]) -> Vec<Letter> {
        stream.iter().map(|&symbol| self.letters.of_symbol(symbol)).collect()
    }

    /// The windows of a stream that are similar to the pattern, in their order.
    ///
    /// ```
    /// use loopfold::Symbol;
    /// use loopfold::questions::similar::{LikePattern, Likeness, SimilarWindow};
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
        let mut search = Search::new(self);
        search.find(&self.letters_of(stream));
        let filtered = Filtered { places: stream.len() as u64, verified: search.verified };
        (search.taken, filtered)
    }
}

/// With more edits everything would be similar, and tables wide.
const MOST_EDITS: usize = 1000;

/// The search in a stretch, and what it needs again in the next one.
struct Search<'a> {
    pattern: &'a LikePattern,
    distances: Distances<'a>,
    votes: Vec<i32>,
    cluster: Cluster,
    /// The windows found, in order.
    taken: Vec<SimilarWindow>,
    /// A place near the end up to which nothing that may follow the stretch matters.
    settled: usize,
    /// Places where edit distances were computed.
    verified: u64,
}

impl<'a> Search<'a> {
    fn new(pattern: &'a LikePattern) -> Self {
        let distances = Distances::new(&pattern.letters, pattern.likeness.edits);
        let (votes, taken) = (Vec::new(), Vec::new());
        Self { pattern, distances, votes, cluster: Cluster::default(), taken, settled: 0, verified: 0 }
    }

    /// The most events of a window.
    fn longest(&self) -> usize {
        self.pattern.len() + self.pattern.likeness.edits
    }

    /// Finds the windows of a stretch. The stretch between two exact occurrences can be
    /// examined alone.
    fn find(&mut self, stretch: &[Letter]) {
        self.taken.clear();
        self.settled = stretch.len().saturating_sub(self.longest());
        let m = self.pattern.len();
        let mut begin = 0;
        for start in self.pattern.letters.exact(stretch) {
            self.look_between(stretch, begin, start);
            self.taken.push(SimilarWindow { start, length: m, distance: 0 });
            begin = start + m;
        }
        self.look_between(stretch, begin, stretch.len());
    }

    /// Takes windows that are similar to the pattern but not equal.
    fn look_between(&mut self, stretch: &[Letter], begin: usize, end: usize) {
        let (m, k) = (self.pattern.len(), self.pattern.likeness.edits);
        if k == 0 || end - begin + k < m {
            return;
        }
        let between = &stretch[begin..end];
        let starts = between.len() + k - m + 1;
        let threshold = self.pattern.threshold();
        let ngrams = self.pattern.ngrams.as_ref().filter(|_| threshold >= 1);
        if let Some(ngrams) = ngrams {
            ngrams.votes(between, starts, k, &mut self.votes);
        }
        let mut pace = Pace::default();
        for start in 0..starts.min(between.len()) {
            pace.step();
            if ngrams.is_some() && i64::from(self.votes[start]) < threshold {
                continue;
            }
            self.verified += 1;
            if self.cluster.reach <= begin + start {
                self.take();
            }
            self.distances.each(&between[start..], |length, distance| {
                self.cluster.add(SimilarWindow { start: begin + start, length, distance });
            });
        }
        self.take();
    }

    /// Takes what is best of the windows that overlap each other.
    fn take(&mut self) {
        if let Some(first) = self.cluster.windows.first()
            && first.start < self.settled
            && self.settled < self.cluster.reach
        {
            self.settled = first.start;
        }
        self.cluster.take(self.pattern.len(), &mut self.taken);
    }
}

/// Windows that overlap each other, directly or through others; so the choice among them does
/// not depend on the rest.
#[derive(Default)]
struct Cluster {
    /// In order.
    windows: Vec<SimilarWindow>,
    /// Where they end.
    reach: usize,
    /// A bit for each event that belongs to a window that was taken.
    busy: Vec<u64>,
}

impl Cluster {
    fn add(&mut self, window: SimilarWindow) {
        self.reach = self.reach.max(window.start + window.length);
        self.windows.push(window);
    }

    /// Takes windows, the best first, as long as they overlap none that was taken, adds them in
    /// order, and starts again.
    fn take(&mut self, m: usize, taken: &mut Vec<SimilarWindow>) {
        let windows = &mut self.windows;
        if let [only] = windows[..] {
            taken.push(only);
        } else if let Some(&first) = windows.first() {
            windows.sort_unstable_by_key(|window| {
                (window.distance, window.length.abs_diff(m), window.start, window.length)
            });
            self.busy.clear();
            self.busy.resize((self.reach - first.start).div_ceil(64), 0);
            let before = taken.len();
            for &window in windows.iter() {
                let begin = window.start - first.start;
                let is_free = words(begin, window.length).all(|(word, bits)| self.busy[word] & bits == 0);
                if is_free {
                    words(begin, window.length).for_each(|(word, bits)| self.busy[word] |= bits);
                    taken.push(window);
                }
            }
            taken[before..].sort_unstable();
        }
        windows.clear();
        self.reach = 0;
    }
}

/// The words that hold a range of bits, and their bits of it.
fn words(begin: usize, length: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = begin + length;
    (begin / 64..end.div_ceil(64)).map(move |word| {
        let from = begin.saturating_sub(word * 64);
        let to = (end - word * 64).min(64);
        (word, u64::MAX << from & u64::MAX >> (64 - to))
    })
}
