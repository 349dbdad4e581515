//! Finding sequences, their order and their context: on the fold as on the unfolded trace.

#![allow(clippy::unwrap_used)]

mod support;

use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::questions::{Place, Query, find};
use loopfold::trace::{Alphabet, Event};
use loopfold::{Fold, Symbol};
use loopfold_testing::{Rng, oracles, streams};
use support::{fold_of, folders, odd_fold, small_streams};

/// A query that is likely to occur: a part of a stream, sometimes with a symbol changed,
/// sometimes with several symbols to choose from.
fn random_query(rng: &mut Rng, streams: &[Vec<u32>], longest: usize) -> Vec<Vec<u32>> {
    let stream = &streams[rng.below(streams.len())];
    let length = rng.between(1, longest.min(stream.len().max(1)));
    let mut query: Vec<Vec<u32>> = match stream.len().checked_sub(length) {
        Some(room) => {
            let start = rng.between(0, room);
            stream[start..start + length].iter().map(|&symbol| vec![symbol]).collect()
        }
        None => vec![vec![0]],
    };
    if rng.one_in(5) {
        let place = rng.below(query.len());
        query[place] = vec![rng.below(4) as u32];
    }
    for event in &mut query {
        if rng.one_in(6) {
            event.push(rng.below(4) as u32);
        }
    }
    query
}

fn query_of(events: &[Vec<u32>]) -> Query {
    let symbols = |event: &Vec<u32>| event.iter().map(|&raw| Symbol::new(raw as usize).unwrap()).collect();
    Query::new(events.iter().map(symbols).collect()).unwrap()
}

fn places_in(stream: usize, starts: &[usize], length: usize) -> Vec<Place> {
    let place = |&start: &usize| Place { stream, start: start as u64, end: (start + length - 1) as u64 };
    starts.iter().map(place).collect()
}

/// Compares all that can be asked with the unfolded streams.
fn check_find(fold: &Fold, streams: &[Vec<u32>], events: &[Vec<u32>], rng: &mut Rng) {
    let context = || format!("{events:?} in {streams:?} folded as {fold:?}");
    let found = find(fold, &query_of(events)).unwrap();
    let mut all = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let expected = places_in(index, &oracles::occurrences(stream, events), events.len());
        assert_eq!(found.count_in(index), expected.len() as u64, "{}", context());
        assert_eq!(found.places_in(index).collect::<Vec<_>>(), expected, "{}", context());
        assert_eq!(found.last_in(index), expected.last().copied());
        let position = rng.between(0, stream.len() + 2) as u64;
        let from = expected.iter().find(|place| place.start >= position).copied();
        assert_eq!(found.first_from(index, position), from, "from {position}: {}", context());
        let before = expected.iter().filter(|place| place.end < position).count() as u64;
        assert_eq!(found.count_before(index, position), before, "before {position}: {}", context());
        all.extend(expected);
    }
    assert_eq!(found.count().unwrap(), all.len() as u64);
    assert_eq!(found.first(), all.first().copied());
    assert_eq!(found.places().collect::<Vec<_>>(), all);
    // The k-th from the beginning, and from there on.
    let k = rng.between(0, all.len() + 1);
    let mut places = found.places();
    assert_eq!(places.skip_to(k as u64), all.get(k).copied(), "the {k}th: {}", context());
    let more = rng.between(0, 3);
    assert_eq!(places.nth(more), all.get(k + 1 + more).copied(), "{more} after the {k}th: {}", context());
}

#[test]
fn finding_equals_searching_the_unfolded_streams_for_every_folder() {
    let mut rng = Rng::new(71);
    for round in 0..2_500 {
        let streams = small_streams(&mut rng, if round % 10 == 0 { 300 } else { 40 });
        for folder in folders() {
            let fold = fold_of(&streams, &*folder);
            for _ in 0..3 {
                let longest = if rng.one_in(3) { 40 } else { 6 };
                let events = random_query(&mut rng, &streams, longest);
                check_find(&fold, &streams, &events, &mut rng);
            }
        }
    }
}

#[test]
fn finding_on_folds_that_no_folder_makes() {
    let mut rng = Rng::new(72);
    for _ in 0..6_000 {
        let (fold, streams) = odd_fold(&mut rng, 400);
        for _ in 0..3 {
            let longest = [3, 12, 63, 64, 65, 130, 300][rng.below(7)];
            let events = random_query(&mut rng, &streams, longest);
            check_find(&fold, &streams, &events, &mut rng);
        }
    }
}

#[test]
fn long_queries_need_no_other_answer() {
    let mut rng = Rng::new(73);
    for _ in 0..40 {
        let mut stream = streams::nests(rng.between(3_000, 12_000), rng.next_u64());
        stream.iter_mut().for_each(|symbol| *symbol %= 2);
        let streams = [stream];
        let fold = fold_of(&streams, &loopfold::folders::Outermost::default());
        for _ in 0..4 {
            let events = random_query(&mut rng, &streams, 5_000);
            check_find(&fold, &streams, &events, &mut rng);
        }
    }
}

/// `(a b)^(2^40)`, a `c`, then `a^(2^59)`: more than could ever be unfolded.
fn giant() -> Fold {
    let mut alphabet = Alphabet::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| alphabet.intern(&Event::named(name), None).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let pair = Target::Rule(builder.rule(&[Item::once(a), Item::once(b)]).unwrap());
    let body = [Item::new(pair, 1 << 40), Item::once(c), Item::new(Target::Symbol(a), 1 << 59)];
    let root = builder.rule(&body).unwrap();
    builder.stream(FoldedStream::new("giant", "x", root));
    builder.stream(FoldedStream::new("again", "x", root));
    builder.finish()
}

#[test]
fn claims_of_any_size_are_answered_at_once() {
    let fold = giant();
    let ask = |text: &str| find(&fold, &Query::parse(text, fold.alphabet()).unwrap()).unwrap();
    let pairs = 1u64 << 40;
    let found = ask("b a");
    assert_eq!(found.count_in(0), pairs - 1);
    assert_eq!(found.count().unwrap(), 2 * (pairs - 1));
    let nth = found.places().skip_to(pairs / 2).unwrap();
    assert_eq!((nth.stream, nth.start), (0, pairs + 1));
    assert_eq!(found.places().skip_to(pairs - 1).unwrap(), Place { stream: 1, start: 1, end: 2 });
    assert_eq!(found.places().skip_to(2 * (pairs - 1)), None);
    assert_eq!(found.places().skip_to(u64::MAX), None);
    assert_eq!(found.first_from(0, u64::MAX), None);
    assert_eq!(ask("b c a a").first().unwrap().start, 2 * pairs - 1);
    let many = ask(&"a ".repeat(5_000));
    assert_eq!(many.count_in(1), (1 << 59) - 4_999);
    assert_eq!(many.first().unwrap().start, 2 * pairs + 1);
    assert_eq!(many.last_in(0).unwrap().end, 2 * pairs + (1 << 59));
    assert_eq!(many.count_before(0, 2 * pairs + 1 + 6_000), 1_001);
    assert_eq!(many.places().take(3).count(), 3);
    let mixed = ask(&"a b ".repeat(3_000));
    assert_eq!(mixed.count_in(0), pairs - 2_999);
}
