//! Maps symbols to the letters of a pattern: small numbers.
//!
//! An event of a pattern may be one of several symbols, as a bare name is. All symbols that
//! may be the same events of the pattern are one *letter*; all others are letter 0, which is
//! no event of the pattern. So a stream becomes letters by one look-up an event, and whether
//! a letter may be an event of the pattern is a bit in a table: a row of m bits a letter.

use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

/// The class of a symbol for a pattern.
pub(super) type Letter = u16;

/// Any symbol that is no event of the pattern.
pub(super) const OTHER: Letter = 0;

/// Which letters there are, and which events of the pattern each may be.
#[derive(Clone, Debug)]
pub(super) struct Letters {
    of_symbols: HashMap<Symbol, Letter>,
    /// How many events the pattern has.
    events: usize,
    /// Machine words of a row.
    words: usize,
    /// For each letter a bit for each event that it may be.
    rows: Vec<u64>,
}

impl Letters {
    /// The letters of a pattern whose events each may be one of several symbols, in order.
    pub(super) fn of(pattern: &[Vec<Symbol>]) -> Result<Self> {
        // Events that are written the same are examined once.
        let mut places: HashMap<&[Symbol], Vec<usize>> = HashMap::new();
        for (place, symbols) in pattern.iter().enumerate() {
            places.entry(symbols).or_default().push(place);
        }
        let mut sets: Vec<(&[Symbol], Vec<usize>)> = places.into_iter().collect();
        sets.sort_unstable_by_key(|(_, places)| places[0]);
        let mut sets_of: HashMap<Symbol, Vec<usize>> = HashMap::new();
        for (set, (symbols, _)) in sets.iter().enumerate() {
            symbols.iter().for_each(|&symbol| sets_of.entry(symbol).or_default().push(set));
        }
        let words = pattern.len().div_ceil(64);
        let mut letters =
            Self { of_symbols: HashMap::new(), events: pattern.len(), words, rows: vec![0; words] };
        let mut known: HashMap<Vec<usize>, Letter> = HashMap::new();
        // In order, so that the same pattern always has the same letters.
        let mut sets_of: Vec<(Symbol, Vec<usize>)> = sets_of.into_iter().collect();
        sets_of.sort_unstable();
        for (symbol, of) in sets_of {
            let letter = match known.get(&of) {
                Some(&letter) => letter,
                None => {
                    let letter = letters.add(of.iter().flat_map(|&set| &sets[set].1))?;
                    known.insert(of, letter);
                    letter
                }
            };
            letters.of_symbols.insert(symbol, letter);
        }
        Ok(letters)
    }

    /// A new letter that may be these events.
    fn add<'a>(&mut self, places: impl Iterator<Item = &'a usize>) -> Result<Letter> {
        let letter = Letter::try_from(self.rows.len() / self.words)
            .ok()
            .filter(|&letter| letter < Letter::MAX)
            .ok_or_else(|| Error::limit("a pattern of more than 65,534 different events"))?;
        let row = self.rows.len();
        self.rows.resize(row + self.words, 0);
        places.for_each(|place| self.rows[row + place / 64] |= 1 << (place % 64));
        Ok(letter)
    }

    /// The letter of a symbol.
    pub(super) fn of_symbol(&self, symbol: Symbol) -> Letter {
        self.of_symbols.get(&symbol).copied().unwrap_or(OTHER)
    }

    /// How many events the pattern has.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    /// How many letters there are, with the one for all others.
    pub(super) fn count(&self) -> usize {
        self.rows.len() / self.words
    }

    /// The bits of the events that a letter may be.
    pub(super) fn row(&self, letter: Letter) -> &[u64] {
        let begin = usize::from(letter) * self.words;
        &self.rows[begin..begin + self.words]
    }

    /// The bits of the events that each letter may be, where one word has room for them.
    pub(super) fn single_words(&self) -> Option<&[u64]> {
        (self.words == 1).then_some(&self.rows)
    }

    /// Whether a letter may be an event of the pattern.
    pub(super) fn may_be(&self, letter: Letter, place: usize) -> bool {
        self.rows[usize::from(letter) * self.words + place / 64] >> (place % 64) & 1 == 1
    }

    /// The letters that may be an event of the pattern.
    pub(super) fn at(&self, place: usize) -> impl Iterator<Item = Letter> + Clone {
        (1..self.count()).map(|letter| letter as Letter).filter(move |&letter| self.may_be(letter, place))
    }

    /// Where the pattern itself is in a stretch, leftmost and without overlaps: a bit for
    /// each beginning of the pattern that ends here.
    pub(super) fn exact(&self, stretch: &[Letter]) -> Vec<usize> {
        match self.single_words() {
            Some(rows) => exact_in_a_word(rows, self.events, stretch),
            None => self.exact_in_words(stretch),
        }
    }

    fn exact_in_words(&self, stretch: &[Letter]) -> Vec<usize> {
        let (last_word, last_bit) = ((self.events - 1) / 64, 1 << ((self.events - 1) % 64));
        let mut starts = Vec::new();
        let mut begun = vec![0u64; self.words];
        // Words behind this one are 0: long beginnings are rare.
        let mut top = 0;
        for (at, &letter) in stretch.iter().enumerate() {
            let row = self.row(letter);
            let mut carry = 1;
            let mut highest = 0;
            for word in 0..=(top + 1).min(last_word) {
                let bits = begun[word];
                begun[word] = (bits << 1 | carry) & row[word];
                carry = bits >> 63;
                if begun[word] != 0 {
                    highest = word;
                }
            }
            top = highest;
            if begun[last_word] & last_bit != 0 {
                starts.push(at + 1 - self.events);
                begun.fill(0);
                top = 0;
            }
        }
        starts
    }
}

fn exact_in_a_word(rows: &[u64], events: usize, stretch: &[Letter]) -> Vec<usize> {
    let last = 1u64 << (events - 1);
    let mut starts = Vec::new();
    let mut begun = 0u64;
    for (at, &letter) in stretch.iter().enumerate() {
        begun = (begun << 1 | 1) & rows[usize::from(letter)];
        if begun & last != 0 {
            starts.push(at + 1 - events);
            begun = 0;
        }
    }
    starts
}
