//! Patterns of single streams: the n-gram detector is the paper's procedure, and what it finds
//! are repeats.

use crate::support::patterns::{expected_repeats, ngrams, repeats};
use crate::support::symbols;
use loopfold::questions::patterns::Ngrams;
use loopfold_testing::patterns::{self, Repeats};
use loopfold_testing::{Rng, streams};
use std::collections::BTreeSet;

/// A stream as collapsed ones are: parts that come again, with something between them.
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
    for round in 0..4_000 {
        let stream = if round % 2 == 0 { streams::small(&mut rng, 100) } else { interspersed(&mut rng, 100) };
        let stream = symbols(&stream);
        let mut online = Ngrams::default();
        stream.iter().for_each(|&symbol| online.push(symbol).unwrap());
        assert_eq!(online.finish(), Ngrams::of(&stream).unwrap());
    }
}

#[test]
fn exact_repeats_are_those_of_all_substrings() {
    let mut rng = Rng::new(33);
    let (mut found, mut supermaximal) = (0, 0);
    for round in 0..6_000 {
        let stream = if round % 2 == 0 { streams::small(&mut rng, 40) } else { interspersed(&mut rng, 60) };
        let expected = expected_repeats(&stream);
        found += expected.len();
        supermaximal += expected.values().filter(|(_, is_supermaximal)| *is_supermaximal).count();
        assert_eq!(repeats(&stream), expected, "{stream:?}");
    }
    assert!(found > 10_000 && supermaximal > 2_000, "{found} {supermaximal}");
}

/// What holds between the two: each pattern of the n-gram detector occurs where it says, at
/// least twice and without overlaps, and is part of a maximal repeat (whose occurrences may
/// overlap: `ab` in `ababa` is part of `aba`); each position belongs to one pattern, and what
/// follows them is pairwise different.
#[test]
fn patterns_are_parts_of_maximal_repeats() {
    let mut rng = Rng::new(34);
    let (mut maximal, mut all) = (0, 0);
    for round in 0..5_000 {
        let stream = if round % 2 == 0 { streams::small(&mut rng, 60) } else { interspersed(&mut rng, 60) };
        let repeats = patterns::maximal_repeats(&stream);
        let mut taken = Vec::new();
        for (pattern, positions) in ngrams(&stream) {
            assert!(positions.len() >= 2 && pattern.len() >= 2);
            assert!(positions.windows(2).all(|pair| pair[1] - pair[0] >= pattern.len()));
            assert!(positions.iter().all(|&at| stream[at..at + pattern.len()] == pattern[..]));
            let is_followed_by_itself = |at: usize| stream[at + pattern.len()..].starts_with(&pattern);
            let free = positions.iter().filter(|&&at| !is_followed_by_itself(at));
            let behind: Vec<Option<&u32>> = free.map(|&at| stream.get(at + pattern.len())).collect();
            let different: BTreeSet<_> = behind.iter().collect();
            assert_eq!(different.len(), behind.len(), "{stream:?} {pattern:?}");
            let is_maximal = repeats.contains_key(&pattern);
            assert!(is_maximal || patterns::is_part_of_another(&pattern, &repeats), "{stream:?} {pattern:?}");
            maximal += usize::from(is_maximal);
            all += 1;
            taken.extend(positions);
        }
        let positions = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), positions);
    }
    assert!(maximal < all);
}

/// The trace of figure 5 with positions from 1. As printed, row 7 has R4 for S4, and row 9 has
/// the positions 8 and 12 of `S2 S3`, which occurs at neither: by then 1, 5, 8 and 11 belong to
/// `S2 S3 R2`, so that only 15 is left (algorithm 2 itself would still have 5 there, or 11, as
/// the pointers moved). So rows 7 and 9 are compared for what is right.
#[test]
fn figure_5() {
    let [s2, s3, s4, s5, r2] = [2, 3, 4, 5, 12];
    let stream = [s2, s3, r2, s5, s2, s3, r2, s2, s3, r2, s2, s3, r2, s4, s2, s3, r2];
    let row = |pattern: &[u32], new, tandem, positions: &[usize]| patterns::Row {
        pattern: pattern.to_vec(),
        new,
        tandem,
        positions: positions.iter().map(|position| position - 1).collect(),
    };
    let expected = [
        row(&[s2, s3], true, false, &[1]),
        row(&[s3, r2], true, false, &[2]),
        row(&[r2, s5], true, false, &[3]),
        row(&[s5, s2], true, false, &[4]),
        row(&[s2, s3], false, false, &[1, 5]),
        row(&[s2, s3, r2], true, true, &[1, 5, 8, 11]),
        row(&[s2, s3, r2, s4], true, false, &[11]),
        row(&[s4, s2], true, false, &[14]),
        row(&[s2, s3], false, false, &[15]),
        row(&[s2, s3, r2], false, false, &[1, 5, 8, 11, 15]),
    ];
    assert_eq!(patterns::ngram_rows(&stream), expected);
    let result = Repeats::from([(vec![s2, s3, r2], vec![0, 4, 7, 10, 14])]);
    assert_eq!(patterns::ngrams(&stream), result);
    assert_eq!(ngrams(&stream), result);
}

fn text(stream: &str) -> Vec<u32> {
    streams::letters(stream)
}

/// The text's example of the three kinds of repeats: `ABC` at the first, second and fourth
/// place, the second a tandem repeat; `ABCD` at the third and fifth, supermaximal.
#[test]
fn tandem_maximal_and_supermaximal_repeats() {
    let stream = text("ABCABCxABCDyABCzABCD");
    let expected = Repeats::from([(text("ABC"), vec![0, 3, 12]), (text("ABCD"), vec![7, 16])]);
    assert_eq!(ngrams(&stream), expected);
    let exact = repeats(&stream);
    assert_eq!(exact[&text("ABC")], (vec![0, 3, 7, 12, 16], false));
    assert_eq!(exact[&text("ABCD")], (vec![7, 16], true));
    assert_eq!(exact.len(), 2);
}

/// Figure 8: the shorter pattern is the beginning of the longer one, and counts where it is
/// not part of that.
#[test]
fn what_is_part_of_a_longer_pattern_belongs_to_it() {
    let stream = text("bgvgs1bgv2bgvgs3bgv4bgv5");
    let expected = Repeats::from([(text("bgv"), vec![6, 16, 20]), (text("bgvgs"), vec![0, 10])]);
    assert_eq!(ngrams(&stream), expected);
}

/// What the n-gram detector misses: a repeat that begins inside an earlier match.
#[test]
fn repeats_that_begin_inside_a_match_are_passed_over() {
    let stream = text("abc.bcd,abcd");
    // Of `bc` it has the place at which it was first seen, which became a part of `abc` later.
    let expected = Repeats::from([(text("abc"), vec![0, 8]), (text("bc"), vec![1, 4])]);
    assert_eq!(ngrams(&stream), expected);
    let exact: Vec<Vec<u32>> = repeats(&stream).into_keys().collect();
    assert_eq!(exact, [text("abc"), text("bc"), text("bcd")]);
}
