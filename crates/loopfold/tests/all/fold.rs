//! Folds: unfolding in all ways, and measures against counting on the unfolded stream.

use loopfold::fold::{
    Coverage, Depth, FoldBuilder, FoldedStream, Item, Length, Measure, NestLength, Occurrences, Target,
    measure_rules, rule_uses, symbol_counts,
};
use loopfold::folders::{Folder, Guarded, Innermost, Minimum, Outermost, Repair, Sequitur};
use loopfold::trace::{Alphabet, Event};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::{Rng, streams};

fn symbols(stream: &[u32]) -> (Alphabet, Vec<Symbol>) {
    let mut alphabet = Alphabet::default();
    let symbols =
        stream.iter().map(|&name| alphabet.intern(&Event::integer(name.into()), None).unwrap()).collect();
    (alphabet, symbols)
}

/// A small stream, and a fold of it by a folder chosen at random.
fn random_fold(rng: &mut Rng) -> (Vec<Symbol>, Fold, RuleId) {
    let (alphabet, stream) = symbols(&streams::small(rng, 80));
    let folders: [&dyn Folder; 6] = [
        &Outermost::default(),
        &Innermost::default(),
        &Guarded::default(),
        &Minimum::default(),
        &Repair,
        &Sequitur,
    ];
    let folder = folders[rng.below(folders.len())];
    let mut builder = FoldBuilder::new(alphabet);
    let root = folder.fold(&stream, &mut builder).unwrap();
    builder.stream(FoldedStream::new("s", folder.name(), root));
    (stream, builder.finish(), root)
}

#[test]
fn every_window_and_every_position_equal_the_stream() {
    let mut rng = Rng::new(61);
    for _ in 0..3000 {
        let (stream, fold, root) = random_fold(&mut rng);
        assert_eq!(fold.length(root), stream.len() as u64);
        assert!(fold.unfold(root).eq(stream.iter().copied()));
        let start = rng.between(0, stream.len());
        let end = rng.between(start, stream.len());
        let window: Vec<Symbol> = fold.window(root, start as u64, end as u64).collect();
        assert_eq!(window, &stream[start..end]);
        assert_eq!(fold.window(root, start as u64, u64::MAX).count(), stream.len() - start);
        let position = rng.between(0, stream.len() + 2);
        assert_eq!(fold.symbol_at(root, position as u64), stream.get(position).copied());
    }
}

#[test]
fn measures_count_what_unfolding_counts() {
    let mut rng = Rng::new(62);
    for _ in 0..2000 {
        let (stream, fold, root) = random_fold(&mut rng);
        assert_eq!(fold.measure(&Length, root).unwrap(), stream.len() as u64);
        let counts = symbol_counts(&fold).unwrap();
        for symbol in fold.alphabet().symbols() {
            let expected = stream.iter().filter(|&&other| other == symbol).count() as u64;
            assert_eq!(counts[symbol.index()], expected);
            assert_eq!(fold.measure(&Occurrences(symbol), root).unwrap(), expected);
        }
        let covered = fold.measure(&Coverage, root).unwrap();
        let text = fold.nest_text(root);
        assert_eq!(covered.events, stream.len() as u64);
        assert_eq!(covered.in_loops == 0, !text.contains(")^"), "{text}");
        assert!(covered.in_main_loop <= covered.in_loops && covered.in_loops <= covered.events);
        let deepest = text
            .chars()
            .scan(0, |depth, c| {
                *depth += i32::from(c == '(') - i32::from(c == ')');
                Some(*depth)
            })
            .max();
        assert_eq!(fold.measure(&Depth, root).unwrap(), deepest.unwrap_or(0) as u32);
        let written =
            text.split(['(', ')', ' ']).filter(|part| part.starts_with(|c: char| c.is_ascii_digit())).count();
        assert_eq!(fold.measure(&NestLength, root).unwrap(), written as u64, "{text}");
        let uses = rule_uses(&fold).unwrap();
        assert_eq!(uses[root.index()], 1);
    }
}

/// Joining must not depend on how a stream is divided, and repeating must be joining.
/// (Depth, NestLength and Coverage measure the fold, whose loops repeating makes.)
fn check_measure<M: Measure>(measure: &M, stream: &[Symbol], rng: &mut Rng)
where
    M::Value: PartialEq + std::fmt::Debug,
{
    let value = |part: &[Symbol]| {
        let join = |left, &symbol: &Symbol| measure.join(&left, &measure.symbol(symbol)).unwrap();
        part.iter().fold(measure.empty(), join)
    };
    let first = rng.between(0, stream.len());
    let second = rng.between(first, stream.len());
    let (a, b, c) = (value(&stream[..first]), value(&stream[first..second]), value(&stream[second..]));
    let left = measure.join(&measure.join(&a, &b).unwrap(), &c).unwrap();
    let right = measure.join(&a, &measure.join(&b, &c).unwrap()).unwrap();
    assert_eq!(left, right);
    assert_eq!(left, value(stream));
    assert_eq!(measure.join(&measure.empty(), &a).unwrap(), a);
    assert_eq!(measure.join(&a, &measure.empty()).unwrap(), a);
    let times = rng.between(1, 9) as u64;
    let joined = (1..times).fold(b.clone(), |joined, _| measure.join(&joined, &b).unwrap());
    assert_eq!(measure.repeat(&b, times).unwrap(), joined);
}

#[test]
fn measures_of_the_trace_are_associative() {
    let mut rng = Rng::new(63);
    for _ in 0..2000 {
        let (_, stream) = symbols(&streams::small(&mut rng, 40));
        check_measure(&Length, &stream, &mut rng);
        let symbol = stream.first().copied().unwrap_or(Symbol::new(0).unwrap());
        check_measure(&Occurrences(symbol), &stream, &mut rng);
        check_measure(&First(symbol), &stream, &mut rng);
    }
}

/// Where a symbol first occurs: uses the default way of repeating.
struct First(Symbol);

impl Measure for First {
    /// The length, and the first position.
    type Value = (u64, Option<u64>);
    fn empty(&self) -> Self::Value {
        (0, None)
    }
    fn symbol(&self, symbol: Symbol) -> Self::Value {
        (1, (symbol == self.0).then_some(0))
    }
    fn join(&self, left: &Self::Value, right: &Self::Value) -> loopfold::Result<Self::Value> {
        Ok((left.0 + right.0, left.1.or(right.1.map(|position| left.0 + position))))
    }
}

#[test]
fn a_measure_of_ones_own_works_on_rules() {
    let mut rng = Rng::new(64);
    for _ in 0..1000 {
        let (stream, fold, root) = random_fold(&mut rng);
        for symbol in fold.alphabet().symbols() {
            let expected = stream.iter().position(|&other| other == symbol).map(|position| position as u64);
            assert_eq!(measure_rules(&fold, &First(symbol)).unwrap()[root.index()].1, expected);
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_errors() {
    let symbol = Symbol::new(0).unwrap();
    let mut builder = FoldBuilder::default();
    let long = builder.rule(&[Item::new(Target::Symbol(symbol), u64::MAX)]).unwrap();
    let error = builder.rule(&[Item::new(Target::Rule(long), 2)]).unwrap_err();
    assert!(error.kind() == loopfold::ErrorKind::Limit, "{error}");
    assert!(builder.rule(&[Item::new(Target::Rule(long), 1), Item::once(symbol)]).is_err());
    builder.stream(FoldedStream::new("a", "x", long));
    builder.stream(FoldedStream::new("b", "x", long));
    let fold = builder.finish();
    assert_eq!(fold.events(), None);
    assert_eq!(fold.symbol_at(long, u64::MAX - 1), Some(symbol));
    assert_eq!(fold.symbol_at(long, u64::MAX), None);
}

#[test]
fn joining_folds_makes_equal_rules_one() {
    let mut rng = Rng::new(65);
    for _ in 0..500 {
        let (first, second) = (random_fold(&mut rng), random_fold(&mut rng));
        let mut builder = FoldBuilder::default();
        builder.join(&first.1).unwrap();
        builder.join(&second.1).unwrap();
        builder.join(&first.1).unwrap();
        let joined = builder.finish();
        let labels = |fold: &Fold, root: RuleId| -> Vec<String> {
            fold.unfold(root).map(|symbol| fold.alphabet().label(symbol)).collect()
        };
        assert_eq!(labels(&joined, joined.streams()[0].root()), labels(&first.1, first.2));
        assert_eq!(labels(&joined, joined.streams()[1].root()), labels(&second.1, second.2));
        assert_eq!(joined.streams()[0].root(), joined.streams()[2].root());
        let bodies: std::collections::HashSet<_> =
            joined.rules().map(|rule| joined.body(rule).to_vec()).collect();
        assert_eq!(bodies.len(), joined.rules().len());
    }
}

#[test]
fn folding_on_many_threads_changes_nothing() {
    use loopfold::folders::{fold_trace, refold};
    use loopfold::trace::{Collector, Sink};
    let mut rng = Rng::new(66);
    let mut collector = Collector::default();
    for number in 0..40 {
        let stream = collector.stream(&format!("thread {number}")).unwrap();
        let content = if number % 4 == 3 { vec![1, 2, 1, 2, 3] } else { streams::small(&mut rng, 200) };
        for symbol in content {
            collector.push_event(stream, &Event::integer(symbol.into())).unwrap();
        }
    }
    let trace = collector.finish().unwrap();
    let one = fold_trace(trace.clone(), &Outermost::default(), 1).unwrap();
    let many = fold_trace(trace.clone(), &Outermost::default(), 7).unwrap();
    assert_eq!(one, many);
    assert_eq!(one.streams()[3].root(), one.streams()[7].root());
    let inner = fold_trace(trace, &Innermost::default(), 3).unwrap();
    assert_eq!(refold(&inner, &Outermost::default(), 2).unwrap().canonical(), one.canonical());
}

#[test]
fn streams_get_names_of_their_own() {
    let mut builder = FoldBuilder::default();
    let root = builder.rule(&[]).unwrap();
    for name in ["a", "a", "a (2)", "a"] {
        builder.stream(FoldedStream::new(name, "x", root));
    }
    let fold = builder.with_unique_stream_names().finish();
    let names: Vec<&str> = fold.streams().iter().map(|stream| stream.name().raw()).collect();
    assert_eq!(names, ["a", "a (2)", "a (2) (2)", "a (3)"]);
}

#[test]
fn filling_pages_gives_the_same_as_one_event_after_the_other() {
    let mut rng = Rng::new(67);
    for _ in 0..6000 {
        let (stream, fold, root) = random_fold(&mut rng);
        let start = if rng.one_in(3) { rng.between(0, stream.len()) } else { 0 };
        let end = if rng.one_in(3) { rng.between(start, stream.len()) } else { stream.len() };
        let mut unfold = fold.window(root, start as u64, end as u64);
        let largest = rng.between(1, 90);
        let mut events = Vec::new();
        let mut page = vec![Symbol::new(0).unwrap(); largest];
        loop {
            // Now and then a few one by one, so that a page begins inside of rules.
            if rng.one_in(3) {
                events.extend(unfold.by_ref().take(rng.below(4)));
            }
            let room = rng.between(1, largest);
            let filled = unfold.fill(&mut page[..room]);
            assert_eq!(filled, room.min(end - start - events.len()));
            events.extend_from_slice(&page[..filled]);
            if filled == 0 {
                break;
            }
        }
        assert_eq!(events, &stream[start..end]);
    }
}

#[test]
fn filling_pages_copies_repeats_of_any_length() {
    let (alphabet, symbols) = symbols(&[0, 1, 2]);
    let item = |rule: RuleId, times: u64| Item::new(Target::Rule(rule), times);
    let mut builder = FoldBuilder::new(alphabet);
    let inner = builder.rule(&[Item::once(symbols[0]), Item::new(Target::Symbol(symbols[1]), 5)]).unwrap();
    let middle = builder.rule(&[item(inner, 7), Item::once(symbols[2]), item(inner, 1)]).unwrap();
    let root = builder.rule(&[item(middle, 1 << 50), Item::once(symbols[2]), item(inner, 3)]).unwrap();
    builder.stream(FoldedStream::new("s", "by hand", root));
    let fold = builder.finish();
    for room in [1, 5, 48, 49, 50, 97, 98, 1000, 4096] {
        let (mut pages, mut single) = (fold.unfold(root), fold.unfold(root));
        let mut page = vec![symbols[0]; room];
        for _ in 0..5 {
            assert_eq!(pages.fill(&mut page), room);
            assert!(page.iter().copied().eq(single.by_ref().take(room)));
        }
        let mut last = fold.window(root, fold.length(root) - room as u64, u64::MAX);
        assert_eq!(last.fill(&mut page), room);
        assert!(page.iter().copied().eq(fold.window(root, fold.length(root) - room as u64, u64::MAX)));
        assert_eq!(last.fill(&mut page), 0);
    }
}

#[test]
fn long_roots_are_found_again() {
    let (alphabet, symbols) = symbols(&[0, 1, 2]);
    let body =
        |length: usize| -> Vec<Item> { (0..length).map(|at| Item::once(symbols[at * at % 7 % 3])).collect() };
    let mut builder = FoldBuilder::new(alphabet);
    let roots: Vec<RuleId> = [10, 30, 90, 20].map(|length| builder.root_rule(body(length)).unwrap()).to_vec();
    let again: Vec<RuleId> = [10, 30, 90, 20].map(|length| builder.rule(&body(length)).unwrap()).to_vec();
    assert_eq!(roots, again);
    assert_eq!(builder.root_rule(body(90)).unwrap(), roots[2]);
    assert_eq!(builder.root_rule(body(500)).unwrap(), builder.rule(&body(500)).unwrap());
    let fold = builder.finish();
    for (root, length) in roots.iter().zip([10, 30, 90, 20]) {
        assert_eq!(fold.body(*root), body(length));
        assert_eq!(fold.length(*root), length as u64);
    }
}
