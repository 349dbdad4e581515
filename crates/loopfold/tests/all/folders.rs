//! Every folder against its oracle and against the papers' worked examples.

use loopfold::fold::{FoldBuilder, FoldedStream, Target};
use loopfold::folders::{
    Folder, Guarded, Halving, Innermost, MinTimes, Minimum, Outermost, Repair, Sequitur, Sequitur1, Ties,
    fold_trace,
};
use loopfold::trace::{Alphabet, Collector, Event, Sink};
use loopfold::{Fold, Symbol};
use loopfold_testing::{Nest, Rng, grammars, oracles, streams};

/// How many generated streams each comparison sees.
const STREAMS: usize = 10_000;

/// The fold of a stream whose symbols are called by their numbers.
fn fold(stream: &[u32], folder: &dyn Folder) -> Fold {
    let mut alphabet = Alphabet::default();
    let symbols: Vec<Symbol> =
        stream.iter().map(|&name| alphabet.intern(&Event::integer(name.into()), None).unwrap()).collect();
    let mut builder = FoldBuilder::new(alphabet);
    let root = folder.fold(&symbols, &mut builder).unwrap();
    builder.stream(FoldedStream::new("s", folder.name(), root));
    let fold = builder.finish();
    assert!(fold.unfold(root).eq(symbols.iter().copied()), "{} loses events of {stream:?}", folder.name());
    fold
}

fn nest_text(stream: &[u32], folder: &dyn Folder) -> String {
    let fold = fold(stream, folder);
    fold.nest_text(fold.streams()[0].root())
}

/// The nest of a text of letters, written without blanks.
fn nest_of(text: &str, folder: &dyn Folder) -> String {
    let mut alphabet = Alphabet::default();
    let symbols: Vec<Symbol> =
        text.chars().map(|c| alphabet.intern(&Event::named(&c.to_string()), None).unwrap()).collect();
    let mut builder = FoldBuilder::new(alphabet);
    let root = folder.fold(&symbols, &mut builder).unwrap();
    let fold = builder.finish();
    assert!(fold.unfold(root).eq(symbols));
    fold.nest_text(root).replace(' ', "")
}

fn min_times(times: usize) -> MinTimes {
    MinTimes::new(times as u32).unwrap()
}

fn compare(
    seed: u64,
    longest: usize,
    count: usize,
    folder: impl Fn(usize) -> Box<dyn Folder>,
    oracle: impl Fn(&[u32], usize) -> Nest,
) {
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let stream = streams::small(&mut rng, longest);
        let times = if rng.one_in(4) { rng.between(2, 5) } else { 2 };
        let expected = oracle(&stream, times);
        let folder = folder(times);
        assert_eq!(
            nest_text(&stream, &*folder),
            expected.to_string(),
            "{} of {stream:?}, at least {times} times",
            folder.name()
        );
    }
}

fn outermost(ties: Ties, times: usize) -> Box<dyn Folder> {
    Box::new(Outermost::default().ties(ties).min_times(min_times(times)))
}

#[test]
fn outermost_equals_its_oracle() {
    for (longest, count) in [(50, STREAMS), (150, STREAMS / 20)] {
        compare(
            21,
            longest,
            count,
            |times| outermost(Ties::Iterations, times),
            |stream, times| oracles::outermost(stream, oracles::Ties::Iterations, times),
        );
        compare(
            22,
            longest,
            count,
            |times| outermost(Ties::Left, times),
            |stream, times| oracles::outermost(stream, oracles::Ties::Left, times),
        );
    }
}

#[test]
fn halving_equals_its_oracle() {
    compare(
        23,
        50,
        STREAMS,
        |times| Box::new(Halving::default().min_times(min_times(times))),
        oracles::halving,
    );
}

#[test]
fn outermost_equals_the_quadratic_procedure_on_long_streams() {
    let mut rng = Rng::new(24);
    for _ in 0..60 {
        let stream = streams::nests(rng.between(500, 3000), rng.next_u64());
        let fold = fold(&stream, &Outermost::default());
        let loops = oracles::outermost_by_levels(&stream);
        let text = fold.nest_text(fold.streams()[0].root());
        assert_eq!(text.matches(")^").count(), loops.len(), "{stream:?}");
    }
}

#[test]
fn examples_of_the_papers_on_outermost() {
    let outermost = Outermost::default();
    for (text, nest) in [
        ("abababab", "(ab)^4"),
        ("abcdabcdabcdabcda", "(abcd)^4a"),
        ("EababababFEababababFEababababF", "(E(ab)^4F)^3"),
        ("abaababaabaab", "(ab(a)^2b)^2(a)^2b"),
        ("abaababaababaabaab", "(ab(a)^2b)^3(a)^2b"),
        ("aaabab", "(a)^2(ab)^2"),
        ("aabab", "a(ab)^2"),
        ("ababcbcbc", "aba(bc)^3"),
    ] {
        assert_eq!(nest_of(text, &outermost), nest, "{text}");
    }
    let left = Outermost::default().ties(Ties::Left);
    assert_eq!(nest_of("ababcbcbc", &left), "(ab)^2(cb)^2c");
    let section_seven = "abcabcabcdbcdbcdbcdacdacdacdabdabd".repeat(5);
    assert_eq!(nest_of(&section_seven, &left), "((abc)^3(dbc)^3(dac)^3(dab)^2d)^5");
}

#[test]
fn table_one_of_the_first_paper() {
    let stream: String = streams::lu(160, 249).iter().map(|&letter| letter as u8 as char).collect();
    let expected = "(V)^3(W)^2X(W)^3(QJYQHYQEYQCY)^2RU((NKID)^160(MLGB)^160QJYQHYQEYQCY)^249\
                    (NKID)^160(MLGB)^160RQJYQHYQEYQCYRSRPYAOYF(T)^3";
    assert_eq!(nest_of(&stream, &Outermost::default()), expected);
}

fn innermost(ties: Ties, times: usize) -> Box<dyn Folder> {
    Box::new(Innermost::default().ties(ties).min_times(min_times(times)))
}

#[test]
fn innermost_equals_its_oracle() {
    for (longest, count) in [(50, STREAMS), (200, STREAMS / 20)] {
        compare(
            41,
            longest,
            count,
            |times| innermost(Ties::Iterations, times),
            |stream, times| oracles::innermost(stream, oracles::Ties::Iterations, times),
        );
        compare(
            42,
            longest,
            count,
            |times| innermost(Ties::Left, times),
            |stream, times| oracles::innermost(stream, oracles::Ties::Left, times),
        );
    }
}

#[test]
fn guarded_equals_its_oracle() {
    for (longest, count) in [(50, STREAMS), (200, STREAMS / 20)] {
        compare(
            43,
            longest,
            count,
            |times| Box::new(Guarded::default().min_times(min_times(times))),
            oracles::guarded,
        );
    }
}

#[test]
fn examples_of_the_papers_on_innermost() {
    let innermost = Innermost::default();
    for (text, nest) in [
        ("abaababaabaab", "ab(a)^2ba(b(a)^2)^2b"),
        ("abaababaababaabaab", "(ab(a)^2b)^2a(b(a)^2)^2b"),
        ("aabab", "(a)^2bab"),
    ] {
        assert_eq!(nest_of(text, &innermost), nest, "{text}");
    }
    let lu: String = streams::lu(160, 249).iter().map(|&letter| letter as u8 as char).collect();
    assert_eq!(nest_of(&lu, &innermost), nest_of(&lu, &Outermost::default()));
}

#[test]
fn section_seven_of_the_first_paper() {
    let text = "abcabcabcdbcdbcdbcdacdacdacdabdabd".repeat(5);
    let left = Innermost::default().ties(Ties::Left);
    let lost = nest_of(&text, &left);
    assert!(lost.starts_with("(abc)^3(dbc)^3(dac)^3(dab)^3(cab)^2") && !lost.contains(")^5"), "{lost}");
    assert_eq!(
        nest_of(&text, &Guarded::default()),
        "(abc)^3((dbc)^3(dac)^3(dab)^3c(abc)^2)^4(dbc)^3(dac)^3(dab)^2d"
    );
    // With ties by iterations nothing is lost in the first place.
    assert!(nest_of(&text, &Innermost::default()).contains(")^5"));
}

#[test]
fn few_iterations_stay_written_out() {
    let at_least_four = Guarded::default().min_times(min_times(4));
    assert_eq!(nest_of("xaaaybbbb", &at_least_four), "xaaay(b)^4");
    assert_eq!(nest_of("ababab", &Outermost::default().min_times(min_times(4))), "ababab");
}

#[test]
fn minimum_is_as_small_as_its_oracle_says() {
    let mut rng = Rng::new(51);
    for _ in 0..STREAMS {
        let stream = streams::small(&mut rng, 40);
        let times = if rng.one_in(4) { rng.between(2, 5) } else { 2 };
        let fold = fold(&stream, &Minimum::default().min_times(min_times(times)));
        let folded = fold.measure(&loopfold::fold::NestLength, fold.streams()[0].root()).unwrap();
        assert_eq!(
            folded as usize,
            oracles::minimum_folded(&stream, times),
            "{stream:?}, at least {times} times"
        );
    }
}

#[test]
fn minimum_is_never_larger_than_the_others_and_refuses_what_is_too_long() {
    let mut rng = Rng::new(52);
    for _ in 0..30 {
        let stream = streams::nests(2000, rng.next_u64());
        let size = |folder: &dyn Folder| {
            let fold = fold(&stream, folder);
            fold.measure(&loopfold::fold::NestLength, fold.streams()[0].root()).unwrap()
        };
        let least = size(&Minimum::default());
        for other in [
            &Outermost::default() as &dyn Folder,
            &Innermost::default(),
            &Guarded::default(),
            &Halving::default(),
        ] {
            assert!(least <= size(other));
        }
    }
    let long = vec![Symbol::new(0).unwrap(); 20_000];
    let error = Minimum::default().fold(&long, &mut FoldBuilder::default()).unwrap_err();
    assert!(error.kind() == loopfold::ErrorKind::Limit && error.to_string().contains("16384"), "{error}");
}

#[test]
fn repair_equals_its_oracle() {
    for (longest, count) in [(50, STREAMS), (200, STREAMS / 20)] {
        compare(71, longest, count, |_| Box::new(Repair), |stream, _| grammars::repair(stream));
    }
}

#[test]
fn loops_come_out_of_repair_as_loops() {
    for (text, nest) in [
        ("abcabcabcabcabc", "(abc)^5"),
        ("abababab", "(ab)^4"),
        ("aaaa", "(a)^4"),
        ("EababababFEababababFEababababF", "(E(ab)^4F)^3"),
        ("", ""),
        ("a", "a"),
    ] {
        assert_eq!(nest_of(text, &Repair), nest, "{text}");
    }
    let lu: String = streams::lu(160, 249).iter().map(|&letter| letter as u8 as char).collect();
    assert!(nest_of(&lu, &Repair).contains(")^249"));
}

#[test]
fn a_stream_folds_to_the_same_rules_on_any_number_of_threads() {
    let mut rng = Rng::new(79);
    for round in 0..2_000 {
        let length = if round % 50 == 0 { 5_000 } else { 80 };
        let stream = streams::small(&mut rng, length);
        let trace = loopfold::Trace::of_integers("s", stream.iter().copied()).unwrap();
        for folder in [&Outermost::default() as &dyn Folder, &Halving::default()] {
            let [one, two, many] =
                [1, 2, 7].map(|threads| fold_trace(trace.clone(), folder, threads).unwrap());
            let rules = |fold: &Fold| fold.rules().map(|rule| fold.body(rule).to_vec()).collect::<Vec<_>>();
            assert_eq!(rules(&one), rules(&two), "{stream:?}");
            assert_eq!(rules(&one), rules(&many), "{stream:?}");
        }
    }
}

const GRAMMARS: [&dyn Folder; 3] = [&Repair, &Sequitur, &Sequitur1];

/// Long streams, so that holes are closed and lists are rebuilt many times.
#[test]
fn grammars_of_long_streams_lose_nothing() {
    let kinds: [fn(usize, u64) -> Vec<u32>; 5] = [
        streams::nests,
        |length, seed| streams::random(length, 2 + seed as usize, seed),
        |length, seed| streams::random(length, 5000, seed),
        |length, seed| streams::periodic(length, 700 + seed as usize, 3, seed),
        |length, seed| streams::adversarial(seed as usize, length),
    ];
    for kind in kinds {
        for seed in 0..6 {
            let stream = kind(30_000, seed);
            let [repair, sequitur, _] = GRAMMARS.map(|folder| fold(&stream, folder).items());
            // Without structure a little more, since runs of different lengths are different.
            assert!(10 * repair <= 11 * sequitur, "repair {repair} items, sequitur {sequitur}");
        }
    }
    for family in streams::FAMILIES {
        let stream = family.make(50_000);
        GRAMMARS.iter().for_each(|&folder| drop(fold(&stream, folder)));
    }
}

#[test]
fn rules_of_repair_are_of_use() {
    let mut rng = Rng::new(72);
    for _ in 0..2000 {
        let stream = streams::small(&mut rng, 200);
        let fold = fold(&stream, &Repair);
        let root = fold.streams()[0].root();
        let mut uses = vec![0; fold.rules().len()];
        for item in fold.rules().flat_map(|rule| fold.body(rule)) {
            if let Target::Rule(rule) = item.target() {
                uses[rule.index()] += item.times();
            }
        }
        for rule in fold.rules().filter(|&rule| rule != root) {
            assert!(uses[rule.index()] > 1 && fold.body(rule).len() > 1, "{stream:?}");
        }
        for body in fold.rules().map(|rule| fold.body(rule)) {
            assert!(body.windows(2).all(|pair| pair[0].target() != pair[1].target()), "{stream:?}");
        }
    }
}

#[test]
fn repair_finds_what_streams_have_in_common() {
    let mut rng = Rng::new(74);
    for _ in 0..100 {
        // The same parts in each stream, in another order and with other symbols between them.
        let parts: Vec<Vec<u32>> = (0..10).map(|_| streams::random(40, 30, rng.next_u64())).collect();
        let mut collector = Collector::default();
        let mut expected: Vec<Vec<u64>> = Vec::new();
        for name in ["a", "b", "c", "d"] {
            let stream = collector.stream(name).unwrap();
            let mut symbols = Vec::new();
            for _ in 0..rng.between(0, 12) {
                symbols.extend(parts[rng.below(parts.len())].iter().copied().map(u64::from));
                symbols.push(100 + rng.below(50) as u64);
            }
            symbols.iter().for_each(|&name| collector.push_event(stream, &Event::integer(name)).unwrap());
            expected.push(symbols);
        }
        let trace = collector.finish().unwrap();
        let apart: usize = trace.streams.iter().map(|stream| items_of(&stream.symbols)).sum();
        let together = fold_trace(trace, &Repair, 1).unwrap();
        for (stream, expected) in together.streams().iter().zip(&expected) {
            let labels = together.unfold(stream.root()).map(|symbol| together.alphabet().label(symbol));
            assert!(labels.eq(expected.iter().map(u64::to_string)));
        }
        assert!(together.items() <= apart, "{} items, {apart} apart", together.items());
    }
}

fn items_of(stream: &[Symbol]) -> usize {
    let mut builder = FoldBuilder::default();
    Repair.fold(stream, &mut builder).unwrap();
    builder.finish().items()
}
