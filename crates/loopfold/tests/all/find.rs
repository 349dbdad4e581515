//! Finding sequences, their order and their context: on the fold as on the unfolded trace.

use crate::support::find::{check_context, check_find, check_order};
use crate::support::{fold_of, folders, id, odd_fold, small_streams};
use loopfold::Fold;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::questions::context::{Context, Neighbour};
use loopfold::questions::find::Place;
use loopfold::questions::query::Query;
use loopfold::trace::{Alphabet, Event, Field, Role, Value};
use loopfold_testing::{Rng, streams};

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

#[test]
fn long_queries_that_are_rare() {
    // Streams that hardly repeat, so that few places are to be compared; also at the very
    // beginning and end, and where only a part of the query stands there.
    let mut rng = Rng::new(77);
    for _ in 0..60 {
        let streams: Vec<Vec<u32>> = (0..rng.between(1, 3))
            .map(|_| streams::random(rng.between(1, 4_000), 8, rng.next_u64()))
            .collect();
        let fold = fold_of(&streams, &loopfold::folders::Outermost::default());
        for _ in 0..4 {
            let mut events = random_query(&mut rng, &streams, 400);
            let place = [0, events.len() - 1, rng.below(events.len())][rng.below(3)];
            match rng.below(4) {
                0 => events = streams[0].iter().take(200).map(|&symbol| vec![symbol]).collect(),
                1 => events.extend(events.clone()),
                2 => events[place] = vec![(events[place][0] + 1) % 8],
                _ => events.iter_mut().filter(|event| event.len() == 1).for_each(|event| event.push(7)),
            }
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
    let ask = |text: &str| fold.find(&Query::parse(text, fold.alphabet()).unwrap()).unwrap();
    let pairs = 1u64 << 40;
    let found = ask("b a");
    assert_eq!(found.count_in(id(0)), pairs - 1);
    assert_eq!(found.count().unwrap(), 2 * (pairs - 1));
    let nth = found.places().skip_to(pairs / 2).unwrap();
    assert_eq!((nth.stream, nth.start), (id(0), pairs + 1));
    assert_eq!(found.places().skip_to(pairs - 1).unwrap(), Place { stream: id(1), start: 1, end: 2 });
    assert_eq!(found.places().skip_to(2 * (pairs - 1)), None);
    assert_eq!(found.places().skip_to(u64::MAX), None);
    assert_eq!(found.first_from(id(0), u64::MAX), None);
    assert_eq!(ask("b c a a").first().unwrap().start, 2 * pairs - 1);
    let many = ask(&"a ".repeat(5_000));
    assert_eq!(many.count_in(id(1)), (1 << 59) - 4_999);
    assert_eq!(many.first().unwrap().start, 2 * pairs + 1);
    assert_eq!(many.last_in(id(0)).unwrap().end, 2 * pairs + (1 << 59));
    assert_eq!(many.count_before(id(0), 2 * pairs + 1 + 6_000), 1_001);
    assert_eq!(many.places().take(3).count(), 3);
    let mixed = ask(&"a b ".repeat(3_000));
    assert_eq!(mixed.count_in(id(0)), pairs - 2_999);
}

#[test]
fn order_equals_that_of_all_pairs() {
    let mut rng = Rng::new(74);
    for round in 0..3_000 {
        let (odd, unfolded) = odd_fold(&mut rng, 60);
        let streams = small_streams(&mut rng, 40);
        let folder = &folders()[round % folders().len()];
        for (fold, streams) in [(odd, unfolded), (fold_of(&streams, &**folder), streams)] {
            for _ in 0..3 {
                let query = random_query(&mut rng, &streams, 4);
                let other = random_query(&mut rng, &streams, 4);
                check_order(&fold, &streams, &query, &other);
            }
        }
    }
}

#[test]
fn order_of_claims_of_any_size() {
    let fold = giant();
    let query = |text: &str| Query::parse(text, fold.alphabet()).unwrap();
    let [order, again] = fold.order(&query("b a"), &query("a a")).unwrap()[..] else { panic!() };
    assert_eq!((order.count, order.before), ((1 << 40) - 1, (1 << 40) - 1));
    let (first, next) = order.first.unwrap();
    assert_eq!((first.start, next.start), (1, (1 << 41) + 1));
    assert_eq!(again.first.unwrap().1, Place { stream: id(1), ..next });
}

#[test]
fn context_equals_that_of_the_unfolded_streams_for_every_folder() {
    let mut rng = Rng::new(75);
    for round in 0..1_500 {
        let streams = small_streams(&mut rng, if round % 10 == 0 { 300 } else { 40 });
        let longest = if rng.one_in(4) { 20 } else { 3 };
        let query = random_query(&mut rng, &streams, longest);
        let depth = if rng.one_in(4) { rng.between(0, 20) } else { 3 };
        let contexts: Vec<Context> = folders()
            .iter()
            .map(|folder| check_context(&fold_of(&streams, &**folder), &streams, &query, depth))
            .collect();
        assert!(contexts.iter().all(|context| *context == contexts[0]));
    }
}

#[test]
fn context_on_folds_that_no_folder_makes() {
    let mut rng = Rng::new(76);
    for _ in 0..5_000 {
        let (fold, streams) = odd_fold(&mut rng, 300);
        let longest = if rng.one_in(3) { 12 } else { 2 };
        let query = random_query(&mut rng, &streams, longest);
        let depth = rng.between(0, 9);
        check_context(&fold, &streams, &query, depth);
    }
}

#[test]
fn context_in_long_bodies() {
    let mut rng = Rng::new(78);
    for _ in 0..40 {
        let streams = [streams::random(rng.between(2_000, 9_000), rng.between(2, 8), rng.next_u64())];
        let fold = fold_of(&streams, &loopfold::folders::Outermost::default());
        let query = random_query(&mut rng, &streams, 3);
        let depth = rng.between(1, 5);
        check_context(&fold, &streams, &query, depth);
    }
}

#[test]
fn context_of_claims_of_any_size() {
    let fold = giant();
    let ask = |text: &str| fold.context(&Query::parse(text, fold.alphabet()).unwrap(), 3).unwrap();
    let b = ask("b");
    assert_eq!(b.count, 1 << 41);
    let [a, c] = b.after.nearest() else { panic!("{b:?}") };
    assert_eq!((a.count, c.count), ((1 << 41) - 2, 2));
    let a = ask("a a");
    let [same, edge] = a.after.nearest() else { panic!("{a:?}") };
    assert_eq!((same.count, edge.count), (2 * ((1 << 59) - 2), 2));
    assert_eq!(edge.neighbour, Neighbour::Edge);
    let too_deep = fold.context(&Query::parse("a", fold.alphabet()).unwrap(), 64).unwrap_err();
    assert!(too_deep.kind() == loopfold::ErrorKind::Limit, "{too_deep}");
}

#[test]
fn queries_of_events_are_looked_up() {
    let mut alphabet = Alphabet::default();
    let fields = [Field { key: "dest", value: Value::Integer(1) }];
    let send = Event { role: Role::Send, fields: &fields, ..Event::named("send") };
    let odd = Event::named("it's \"odd\"");
    let symbols =
        [send, odd, Event::integer(7), Event::named("7")].map(|event| alphabet.intern(&event, None));
    let symbols = symbols.map(Result::unwrap);
    for (event, symbol) in [send, odd, 7.into(), "7".into()].iter().zip(symbols) {
        assert_eq!(alphabet.symbol(event), Some(symbol));
    }
    assert_eq!(alphabet.symbol(&Event::named("send")), None);
    let query = Query::of_events(&[odd, send], &alphabet).unwrap();
    assert_eq!(query, Query::of_symbols(&[symbols[1], symbols[0]]).unwrap());
    let error = Query::of_events(&["x".into()], &alphabet).unwrap_err();
    assert_eq!(error.kind(), loopfold::ErrorKind::NotFound);
    assert_eq!(Query::parse("x", &alphabet).unwrap().unknown(), ["x"]);
    assert_eq!(Query::parse("'x", &alphabet).unwrap_err().kind(), loopfold::ErrorKind::Invalid);
    // Quoted parts that touch are one name.
    let written = Query::parse("\"it's \"'\"odd\"'", &alphabet).unwrap();
    assert_eq!(written, Query::of_symbols(&[symbols[1]]).unwrap());
}
