//! Patterns of single streams: the n-gram detector is the paper's procedure, and what it finds
//! are repeats.

#![allow(missing_docs, clippy::unwrap_used)]

use loopfold::Symbol;
use loopfold::questions::Ngrams;
use loopfold_testing::patterns::{self, Repeats};
use loopfold_testing::{Rng, streams};

fn symbols(stream: &[u32]) -> Vec<Symbol> {
    stream.iter().map(|&symbol| Symbol::new(symbol as usize).unwrap()).collect()
}

fn ngrams(stream: &[u32]) -> Repeats {
    let mut found = Repeats::new();
    for pattern in Ngrams::of(&symbols(stream)).unwrap() {
        let positions: Vec<usize> = pattern.positions.iter().map(|&position| position as usize).collect();
        let events = stream[positions[0]..positions[0] + pattern.length].to_vec();
        assert!(found.insert(events, positions).is_none(), "a pattern was found twice");
    }
    found
}

/// A stream as abridged ones are: parts that come again, with something between them.
fn interspersed(rng: &mut Rng, longest: usize) -> Vec<u32> {
    let letters = rng.between(2, 12);
    let word =
        |rng: &mut Rng| -> Vec<u32> { (0..rng.between(1, 7)).map(|_| rng.below(letters) as u32).collect() };
    let words: Vec<Vec<u32>> = (0..rng.between(1, 5)).map(|_| word(rng)).collect();
    let length = rng.between(0, longest);
    let mut stream = Vec::new();
    while stream.len() < length {
        if rng.one_in(3) {
            stream.push(rng.below(letters + 3) as u32);
        } else {
            let word = &words[rng.below(words.len())];
            stream.extend_from_slice(&word[..rng.between(1, word.len())]);
        }
    }
    stream.truncate(length);
    stream
}

#[test]
fn the_detector_is_the_papers_procedure() {
    let mut rng = Rng::new(31);
    let mut found = 0;
    for round in 0..20_000 {
        let stream = if round % 2 == 0 { streams::small(&mut rng, 120) } else { interspersed(&mut rng, 120) };
        let expected = patterns::ngrams(&stream);
        assert_eq!(ngrams(&stream), expected, "{stream:?}");
        found += expected.len();
    }
    assert!(found > 20_000, "{found}");
}

#[test]
fn events_one_at_a_time_give_the_same() {
    let mut rng = Rng::new(32);
    for _ in 0..2_000 {
        let stream = symbols(&interspersed(&mut rng, 100));
        let mut online = Ngrams::default();
        stream.iter().for_each(|&symbol| online.push(symbol).unwrap());
        assert_eq!(online.finish(), Ngrams::of(&stream).unwrap());
    }
}
