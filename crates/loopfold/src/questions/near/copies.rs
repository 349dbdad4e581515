//! Where a word and its rotations occur, and which rotation occurs most often.
//!
//! All rotations of a word have the same sum of numbers for their symbols. Sums of windows of any
//! length are differences of two prefix sums, which are computed once, so that several windows are
//! compared at a time. Where the sum is right, the window is looked up among the rotations by a
//! polynomial hash modulo 2^64, and compared; from there the stretch is extended by comparing
//! events a period apart. Windows of the same sum that follow each other are rotations of each
//! other: so one of them is looked up. If that still takes too long, as most windows have the
//! symbols of a word in another order, the hash rolls over the stream instead. Cost: O(n) for each
//! word, and O(p) for each word and each stretch; 4 bytes an event.

use crate::Symbol;
use crate::interrupt::{self, Pace};
use hashbrown::HashMap;

/// Consecutive windows that are rotations of a word. Positions take 32 bits, as texts are shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: u32,
    end: u32,
    /// By how many events the word is rotated in the first window.
    rotation: u32,
}

impl Stretch {
    fn new(start: usize, end: usize, rotation: usize) -> Self {
        Self { start: start as u32, end: end as u32, rotation: rotation as u32 }
    }

    fn start(&self) -> usize {
        self.start as usize
    }

    fn end(&self) -> usize {
        self.end as usize
    }

    fn length(&self) -> usize {
        self.end() - self.start()
    }
}

/// Copies of a word, one directly after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    start: u32,
    count: u32,
}

impl Copies {
    /// Where the first one begins.
    pub(super) fn start(&self) -> usize {
        self.start as usize
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Where the last one ends.
    pub(super) fn end(&self, period: usize) -> usize {
        self.start() + self.count() * period
    }
}

/// The base of the polynomial: any odd number with well-mixed bits.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number for a symbol, which no two symbols share; sums of a few say which ones they are of.
#[inline]
fn mixed(symbol: Symbol) -> u64 {
    let mut hash = (symbol.index() as u64 + 1).wrapping_mul(BASE);
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[inline]
fn push(hash: u64, symbol: Symbol) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(mixed(symbol))
}

fn sum(word: &[Symbol]) -> u32 {
    word.iter().fold(0, |sum, &symbol| sum.wrapping_add(mixed(symbol) as u32))
}

/// A stream, and the sums modulo 2^32 of the numbers of all symbols before each of its events.
#[derive(Debug)]
pub(super) struct Text<'a> {
    events: &'a [Symbol],
    /// Also of all events.
    sums: Vec<u32>,
}

impl<'a> Text<'a> {
    pub(super) fn new(events: &'a [Symbol]) -> Self {
        let mut sums = Vec::with_capacity(events.len() + 1);
        sums.push(0);
        sums.extend(events.iter().scan(0u32, |sum, &symbol| {
            *sum = sum.wrapping_add(mixed(symbol) as u32);
            Some(*sum)
        }));
        Self { events, sums }
    }

    /// The next window of so many events with this sum.
    fn next_window(&self, from: usize, period: usize, sum: u32) -> Option<usize> {
        const STEP: usize = 16;
        const NEAR: usize = 4;
        let (before, behind) = (self.sums.get(from..)?, self.sums.get(from + period..)?);
        let is_right = |(before, behind): (&u32, &u32)| behind.wrapping_sub(*before) == sum;
        // Short words are everywhere in streams of few symbols.
        if let Some(place) = before.iter().zip(behind).take(NEAR).position(is_right) {
            return Some(from + place);
        }
        // Without a branch for each event, so that several are compared at a time.
        let has_none = |(before, behind): &(&[u32], &[u32])| {
            !before.iter().zip(*behind).map(is_right).fold(false, |found, is_right| found | is_right)
        };
        let chunks = before.chunks_exact(STEP).zip(behind.chunks_exact(STEP));
        let skipped = STEP * chunks.take_while(has_none).count();
        let place = before[skipped..].iter().zip(&behind[skipped..]).position(is_right)?;
        Some(from + skipped + place)
    }
}

/// The rotations of some words of one length by their hashes.
struct Rotations {
    period: usize,
    /// Each word twice.
    twice: Vec<Vec<Symbol>>,
    /// The word, and by how many events it is rotated.
    by_hash: HashMap<u64, (usize, usize), foldhash::fast::FixedState>,
    /// The sums of the words, each once.
    sums: Vec<u32>,
    /// The base to the power of the period.
    leaving: u64,
}

/// So many events of windows are looked up in vain, for each event of the stream, before the hash
/// rolls over it instead.
const MOST_IN_VAIN: usize = 4;

impl Rotations {
    fn new(words: &[&[Symbol]]) -> Self {
        let period = words.first().map_or(0, |word| word.len());
        let mut sums: Vec<u32> = words.iter().map(|word| sum(word)).collect();
        sums.sort_unstable();
        sums.dedup();
        let mut rotations = Self {
            period,
            twice: words.iter().map(|word| [*word, *word].concat()).collect(),
            by_hash: HashMap::default(),
            sums,
            leaving: (0..period).fold(1, |power: u64, _| power.wrapping_mul(BASE)),
        };
        for (index, word) in words.iter().enumerate() {
            rotations.add(index, word);
        }
        rotations
    }

    fn add(&mut self, index: usize, word: &[Symbol]) {
        let mut hash = hash(word);
        for (rotation, &first) in word.iter().enumerate() {
            self.by_hash.entry(hash).or_insert((index, rotation));
            hash = self.roll(hash, first, first);
        }
    }

    fn roll(&self, hash: u64, out: Symbol, into: Symbol) -> u64 {
        push(hash, into).wrapping_sub(mixed(out).wrapping_mul(self.leaving))
    }

    /// The word that a window is a rotation of, and by how much it is rotated.
    fn find(&self, hash: u64, window: &[Symbol]) -> Option<(usize, usize)> {
        let (word, rotation) = *self.by_hash.get(&hash)?;
        (self.twice[word][rotation..rotation + window.len()] == *window).then_some((word, rotation))
    }

    /// The stretches of each word.
    fn stretches(&self, text: &Text<'_>) -> Vec<Vec<Stretch>> {
        let mut found = vec![Vec::new(); self.twice.len()];
        let is_found = self.sums.iter().all(|&sum| self.with_sum(text, sum, &mut found));
        if !is_found {
            found.iter_mut().for_each(Vec::clear);
            self.roll_over(text.events, &mut found);
        }
        found
    }

    /// Finds the stretches of words with this sum. Returns `false` if that would take too long.
    fn with_sum(&self, text: &Text<'_>, sum: u32, found: &mut [Vec<Stretch>]) -> bool {
        let (mut from, mut in_vain) = (0, 0);
        interrupt::poll();
        let mut pace = Pace::default();
        while let Some(start) = text.next_window(from, self.period, sum) {
            pace.steps(self.period);
            let window = &text.events[start..start + self.period];
            let end = self.end_of_stretch(text.events, start);
            match self.find(hash(window), window) {
                Some((word, rotation)) => found[word].push(Stretch::new(start, end, rotation)),
                None => in_vain += self.period,
            }
            if in_vain > MOST_IN_VAIN * text.events.len() {
                return false;
            }
            from = end - self.period + 1;
        }
        true
    }

    /// Where the windows end that are rotations of one that begins here.
    fn end_of_stretch(&self, text: &[Symbol], start: usize) -> usize {
        let end = start + self.period;
        end + equal_events(&text[end..], &text[start..])
    }

    /// Finds the stretches of all words by looking up every window.
    fn roll_over(&self, text: &[Symbol], found: &mut [Vec<Stretch>]) {
        let mut next = 0;
        let mut pace = Pace::default();
        while next + self.period <= text.len() {
            let (mut start, mut its_hash) = (next, hash(&text[next..next + self.period]));
            let place = loop {
                pace.step();
                let end = start + self.period;
                if let Some(place) = self.find(its_hash, &text[start..end]) {
                    break place;
                }
                let Some(&into) = text.get(end) else { return };
                its_hash = self.roll(its_hash, text[start], into);
                start += 1;
            };
            let end = self.end_of_stretch(text, start);
            found[place.0].push(Stretch::new(start, end, place.1));
            // A window of this stretch is a rotation of this word, and so of no other one.
            next = end - self.period + 1;
        }
    }
}

/// Four symbols at a time, so that one multiplication does not wait for another.
fn hash(window: &[Symbol]) -> u64 {
    const POWERS: [u64; 5] = {
        let mut powers = [1u64; 5];
        let mut power = 1;
        while power < 5 {
            powers[power] = powers[power - 1].wrapping_mul(BASE);
            power += 1;
        }
        powers
    };
    let (fours, rest) = window.as_chunks::<4>();
    let of_fours = fours.iter().fold(0u64, |hash, &[a, b, c, d]| {
        let behind = mixed(b).wrapping_mul(POWERS[2]).wrapping_add(mixed(c).wrapping_mul(POWERS[1]));
        let four = mixed(a).wrapping_mul(POWERS[3]).wrapping_add(behind).wrapping_add(mixed(d));
        hash.wrapping_mul(POWERS[4]).wrapping_add(four)
    });
    rest.iter().fold(of_fours, |hash, &symbol| push(hash, symbol))
}

/// The copies of words of one symbol each: there is one rotation, and stretches are copies.
fn single_symbols(text: &[Symbol], searched: &[Searched<'_>]) -> Vec<(usize, Vec<Copies>)> {
    let mut found: Vec<(usize, Vec<Copies>)> = vec![(0, Vec::new()); searched.len()];
    let mut start = 0;
    for run in text.chunk_by(|one, other| one == other) {
        if let Some(word) = searched.iter().position(|searched| searched.word[0] == run[0]) {
            found[word].1.push(Copies { start: start as u32, count: run.len() as u32 });
        }
        start += run.len();
    }
    found
}

/// How many events two texts have in common from their starts on.
fn equal_events(one: &[Symbol], other: &[Symbol]) -> usize {
    const STEP: usize = 16;
    let chunks = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let skipped = STEP * chunks.take_while(|(one, other)| one == other).count();
    let rest = one[skipped..].iter().zip(&other[skipped..]);
    skipped + rest.take_while(|(one, other)| one == other).count()
}

/// A word whose copies are searched.
#[derive(Clone, Copy)]
pub(super) struct Searched<'a> {
    /// A primitive word.
    pub(super) word: &'a [Symbol],
    /// The rotations that are allowed; all are if none is.
    pub(super) allowed: &'a [bool],
}

/// For each of some words of one length the rotation that occurs most often, and its copies.
pub(super) fn copies(text: &Text<'_>, searched: &[Searched<'_>]) -> Vec<(usize, Vec<Copies>)> {
    let period = searched.first().map_or(0, |searched| searched.word.len());
    let placed_best = |(stretches, searched): (Vec<Stretch>, &Searched<'_>)| {
        let rotation = best_rotation(&stretches, period, searched.allowed);
        (rotation, placed(&stretches, rotation, period))
    };
    if period == 1 {
        return single_symbols(text.events, searched);
    }
    let words: Vec<&[Symbol]> = searched.iter().map(|searched| searched.word).collect();
    let stretches = Rotations::new(&words).stretches(text);
    stretches.into_iter().zip(searched).map(placed_best).collect()
}

/// How many events of a stretch come before the first copy of a rotation.
fn offset(stretch: &Stretch, rotation: usize, period: usize) -> usize {
    let ahead = rotation + period - stretch.rotation as usize;
    if ahead < period { ahead } else { ahead - period }
}

/// The rotation of which most copies fit into the stretches; of several the one that occurs first.
fn best_rotation(stretches: &[Stretch], period: usize, allowed: &[bool]) -> usize {
    // A stretch of q periods and a rest has q copies of each rotation that begins in the first
    // rest + 1 events, and q - 1 of the others: differences of neighbouring rotations.
    let mut more = vec![0i64; period + 1];
    for stretch in stretches {
        let rest = stretch.length() % period;
        let first = stretch.rotation as usize;
        let last = first + rest;
        more[first] += 1;
        if last < period {
            more[last + 1] -= 1;
        } else {
            more[period] -= 1;
            more[0] += 1;
            more[last - period + 1] -= 1;
        }
    }
    let mut count = 0;
    let mut counts: Vec<i64> = Vec::with_capacity(period);
    for more in &more[..period] {
        count += more;
        counts.push(count);
    }
    let is_allowed = |rotation: usize| !allowed.contains(&true) || allowed[rotation];
    let most = (0..period).filter(|&rotation| is_allowed(rotation)).map(|rotation| counts[rotation]).max();
    earliest(stretches, period, |rotation| Some(counts[rotation]) == most && is_allowed(rotation))
}

/// Which of some rotations occurs first.
fn earliest(stretches: &[Stretch], period: usize, is_wanted: impl Fn(usize) -> bool) -> usize {
    let mut best: Option<(usize, usize)> = None;
    for stretch in stretches {
        if best.is_some_and(|(start, _)| start <= stretch.start()) {
            break;
        }
        let starts = (stretch.length() - period + 1).min(period);
        let rotation = |offset: usize| (stretch.rotation as usize + offset) % period;
        if let Some(offset) = (0..starts).find(|&offset| is_wanted(rotation(offset))) {
            let found = (stretch.start() + offset, rotation(offset));
            best = Some(best.map_or(found, |best| best.min(found)));
        }
    }
    best.map_or(0, |(_, rotation)| rotation)
}

/// The copies of a rotation in the stretches, from the left, without overlap.
fn placed(stretches: &[Stretch], rotation: usize, period: usize) -> Vec<Copies> {
    let mut all: Vec<Copies> = Vec::new();
    let mut free = 0;
    for stretch in stretches {
        let mut start = stretch.start() + offset(stretch, rotation, period);
        if start < free {
            start += (free - start).next_multiple_of(period);
        }
        let count = stretch.end().saturating_sub(start) / period;
        if count > 0 {
            let copies = Copies { start: start as u32, count: count as u32 };
            free = copies.end(period);
            all.push(copies);
        }
    }
    all
}
