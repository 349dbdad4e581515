//! Where a word and its rotations occur, and which rotation occurs most often.
//!
//! A window is looked up by a polynomial hash modulo 2^64 that rolls over the stream, and compared
//! on a hit; from there the stretch is extended by comparing events a period apart. Words of the
//! same length are searched together. Events that no word contains are passed over. Cost: O(n)
//! for each length, and O(p) for each word and each stretch.

use crate::Symbol;
use hashbrown::HashMap;

/// Consecutive windows that are rotations of a word. Positions take 32 bits, as texts are shorter.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u32,
    end: u32,
    /// By how many events the word is rotated in the first window.
    rotation: u32,
}

impl Stretch {
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

/// A number for each symbol, so that sums of products of them are hashes.
#[derive(Debug)]
pub(super) struct SymbolHashes(Vec<u64>);

/// The base of the polynomial: any odd number with well-mixed bits.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

impl SymbolHashes {
    pub(super) fn new(symbols: usize) -> Self {
        // The finaliser of MurmurHash3, which no two numbers share.
        let mixed = |symbol: usize| {
            let mut hash = (symbol as u64 + 1).wrapping_mul(BASE);
            hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            hash ^ (hash >> 33)
        };
        Self((0..symbols).map(mixed).collect())
    }

    fn of(&self, symbol: Symbol) -> u64 {
        self.0[symbol.index()]
    }
}

/// The rotations of some words of one length by their hashes, and which symbols are in them.
struct Rotations<'a> {
    period: usize,
    /// Each word twice.
    twice: Vec<Vec<Symbol>>,
    /// The word, and by how many events it is rotated.
    by_hash: HashMap<u64, (usize, usize), foldhash::fast::FixedState>,
    /// A bit for the first bits of each hash: most windows are none of the rotations.
    filter: Vec<u64>,
    contains: Vec<bool>,
    hashes: &'a SymbolHashes,
    /// The base to the power of the period.
    leaving: u64,
}

impl<'a> Rotations<'a> {
    fn new(words: &[&[Symbol]], period: usize, hashes: &'a SymbolHashes) -> Self {
        let mut rotations = Self {
            period,
            twice: words.iter().map(|word| [*word, *word].concat()).collect(),
            by_hash: HashMap::default(),
            filter: vec![0; (words.len() * period / 4).next_power_of_two()],
            contains: vec![false; hashes.0.len()],
            hashes,
            leaving: (0..period).fold(1u64, |power, _| power.wrapping_mul(BASE)),
        };
        for (index, word) in words.iter().enumerate() {
            rotations.add(index, word);
        }
        rotations
    }

    fn add(&mut self, index: usize, word: &[Symbol]) {
        let mut hash = self.hash(word);
        for (rotation, &first) in word.iter().enumerate() {
            self.contains[first.index()] = true;
            self.by_hash.entry(hash).or_insert((index, rotation));
            let (place, bit) = self.filter_bit(hash);
            self.filter[place] |= bit;
            hash = self.roll(hash, first, first);
        }
    }

    fn hash(&self, window: &[Symbol]) -> u64 {
        window.iter().fold(0, |hash, &symbol| self.push(hash, symbol))
    }

    fn push(&self, hash: u64, symbol: Symbol) -> u64 {
        hash.wrapping_mul(BASE).wrapping_add(self.hashes.of(symbol))
    }

    #[inline]
    fn roll(&self, hash: u64, out: Symbol, into: Symbol) -> u64 {
        self.push(hash, into).wrapping_sub(self.hashes.of(out).wrapping_mul(self.leaving))
    }

    #[inline]
    fn filter_bit(&self, hash: u64) -> (usize, u64) {
        let mixed = hash ^ (hash >> 32);
        ((mixed >> 6) as usize & (self.filter.len() - 1), 1 << (mixed & 63))
    }

    /// The word that a window is a rotation of, and by how much it is rotated.
    #[inline]
    fn find(&self, hash: u64, window: &[Symbol]) -> Option<(usize, usize)> {
        let (place, bit) = self.filter_bit(hash);
        if self.filter[place] & bit == 0 {
            return None;
        }
        let (word, rotation) = *self.by_hash.get(&hash)?;
        (self.twice[word][rotation..rotation + window.len()] == *window).then_some((word, rotation))
    }

    /// The stretches of each word.
    fn stretches(&self, text: &[Symbol]) -> Vec<Vec<Stretch>> {
        let mut found = vec![Vec::new(); self.twice.len()];
        let mut from = 0;
        while let Some((word, stretch)) = self.next_stretch(text, from) {
            found[word].push(stretch);
            // A window of this stretch is a rotation of this word, and so of no other one.
            from = stretch.end() - self.period + 1;
        }
        found
    }

    /// The first stretch whose first window begins at `from` or behind, and its word.
    fn next_stretch(&self, text: &[Symbol], from: usize) -> Option<(usize, Stretch)> {
        let (mut start, mut hash) = (from, 0);
        for (at, &symbol) in text.iter().enumerate().skip(from) {
            if !self.contains[symbol.index()] {
                (start, hash) = (at + 1, 0);
                continue;
            }
            let length = at - start;
            if length < self.period {
                hash = self.push(hash, symbol);
            } else {
                hash = self.roll(hash, text[start], symbol);
                start += 1;
            }
            if length + 1 >= self.period
                && let Some((word, rotation)) = self.find(hash, &text[start..=at])
            {
                let end = at + 1 + equal_events(&text[at + 1..], &text[start..]);
                let [start, end, rotation] = [start, end, rotation].map(|number| number as u32);
                return Some((word, Stretch { start, end, rotation }));
            }
        }
        None
    }
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
pub(super) fn copies(
    text: &[Symbol],
    searched: &[Searched<'_>],
    hashes: &SymbolHashes,
) -> Vec<(usize, Vec<Copies>)> {
    let period = searched.first().map_or(0, |searched| searched.word.len());
    let words: Vec<&[Symbol]> = searched.iter().map(|searched| searched.word).collect();
    let stretches = Rotations::new(&words, period, hashes).stretches(text);
    let placed_best = |(stretches, searched): (Vec<Stretch>, &Searched<'_>)| {
        let rotation = best_rotation(&stretches, period, searched.allowed);
        (rotation, placed(&stretches, rotation, period))
    };
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
