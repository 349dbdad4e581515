//! Paths of functions: on the fold and on symbols as they come, as by rebuilding every
//! invocation's blocks.

use crate::support::paths::{BLOCKS, FUNCTIONS, Form, check_path, fold_of, path_of, query_of, small_traces};
use crate::support::{folders, id, odd_fold_of};
use loopfold::Symbol;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Measure, Target};
use loopfold::folders::{Folder, Outermost, SequiturRuns};
use loopfold::questions::path::{
    CallStacks, Deepest, Functions, Levels, PathPlace, PathQuery, PathScan, PathSearcher, find_path,
};
use loopfold::trace::{Alphabet, Event, Field, Name, Role, Value};
use loopfold_testing::Rng;
use loopfold_testing::calls::{self, Path, Step, call_block};

/// A path that is likely to occur.
fn random_path(rng: &mut Rng, longest: usize, form: Form) -> Path {
    let length = rng.between(1, longest);
    let kind = rng.below(4);
    let calls = form.has_callers();
    let any: Vec<u8> = [0, 1, 2, 3].into_iter().chain((0..3).filter(|_| calls).map(call_block)).collect();
    let gaps = if rng.one_in(2) { Vec::new() } else { (1..length).filter(|_| rng.one_in(3)).collect() };
    // With gaps, many `*` together make many states.
    let stars = if gaps.is_empty() || length < 12 { 8 } else { 1000 };
    let blocks = (0..length)
        .map(|place| match kind {
            _ if rng.one_in(stars) => any.clone(),
            _ if calls && rng.one_in(3) => vec![call_block(rng.below(3) as u8)],
            0 => vec![0],
            1 => vec![(place % 2) as u8],
            2 => vec![(place % 3) as u8],
            _ => vec![rng.below(3) as u8],
        })
        .collect();
    Path { blocks, gaps }
}

#[test]
fn finding_equals_rebuilding_every_invocation_for_every_folder() {
    let mut rng = Rng::new(81);
    for round in 0..2_000 {
        let traces = small_traces(&mut rng, if round % 10 == 0 { 400 } else { 50 });
        let form = Form::any(&mut rng);
        for folder in folders() {
            let fold = fold_of(&traces, form, &*folder);
            for _ in 0..3 {
                let longest = if rng.one_in(4) { 30 } else { 4 };
                let path = random_path(&mut rng, longest, form);
                check_path(&fold, form, &traces, rng.below(3) as u8, &path, &mut rng);
            }
        }
    }
}

/// A trace in which no function calls itself, and all calls are seen to begin.
fn without_recursion(trace: &[Step]) -> Vec<Step> {
    let (mut open, mut left_out, mut without_recursion) = (Vec::new(), 0, Vec::new());
    for &step in trace {
        match step {
            Step::Call(function) if left_out > 0 || open.contains(&function) => left_out += 1,
            Step::Return if left_out > 0 => left_out -= 1,
            _ if left_out > 0 => {}
            Step::Call(function) => {
                open.push(function);
                without_recursion.push(step);
            }
            Step::Return if open.pop().is_some() => without_recursion.push(step),
            Step::Block(_) if !open.is_empty() => without_recursion.push(step),
            _ => {}
        }
    }
    without_recursion
}

/// Many calls one after the other, some stretches of them without those of one function.
fn long_trace_without_recursion(rng: &mut Rng, length: usize) -> Vec<Step> {
    let mut all = Vec::new();
    while all.len() < length {
        let other = rng.one_in(2).then(|| rng.below(3) as u8);
        for _ in 0..rng.below(200) {
            let piece: Vec<Step> = calls::small(rng, 60)
                .into_iter()
                .map(|step| match step {
                    Step::Call(function) if Some(function) == other => Step::Call((function + 1) % 3),
                    step => step,
                })
                .collect();
            let piece = without_recursion(&piece);
            let depth = piece.iter().fold(0usize, |depth, step| match step {
                Step::Call(_) => depth + 1,
                Step::Return => depth - 1,
                _ => depth,
            });
            all.extend(piece);
            all.extend(std::iter::repeat_n(Step::Return, depth));
        }
    }
    all
}

#[test]
fn finding_in_functions_that_never_call_themselves() {
    let mut rng = Rng::new(92);
    for round in 0..1_000 {
        let traces = small_traces(&mut rng, if round % 10 == 0 { 400 } else { 50 });
        let traces: Vec<Vec<Step>> = traces.iter().map(|trace| without_recursion(trace)).collect();
        let form = Form::any(&mut rng);
        for folder in folders() {
            let fold = fold_of(&traces, form, &*folder);
            let longest = if rng.one_in(4) { 16 } else { 4 };
            let path = random_path(&mut rng, longest, form);
            check_path(&fold, form, &traces, rng.below(3) as u8, &path, &mut rng);
        }
    }
    // Bodies of many thousand items, in which a function may be rare.
    for _ in 0..6 {
        let traces = [long_trace_without_recursion(&mut rng, 30_000)];
        for folder in [&Outermost::default() as &dyn Folder, &SequiturRuns] {
            let fold = fold_of(&traces, Form::Qualified, folder);
            let longest = fold.rules().map(|rule| fold.body(rule).len()).max().unwrap();
            assert!(longest > 5_000, "{longest} items");
            for function in 0..3 {
                let path = random_path(&mut rng, 3, Form::Qualified);
                check_path(&fold, Form::Qualified, &traces, function, &path, &mut rng);
            }
        }
    }
}

/// Many paths at once have the counts and first places that each has alone.
#[test]
fn many_paths_at_once_equal_each_alone() {
    let mut rng = Rng::new(91);
    let mut together = 0;
    for round in 0..4_000 {
        let traces = small_traces(&mut rng, if round % 10 == 0 { 400 } else { 60 });
        let traces: Vec<Vec<Step>> = traces.iter().map(|trace| without_recursion(trace)).collect();
        let form = Form::any(&mut rng);
        let all = folders();
        let fold = fold_of(&traces, form, &*all[rng.below(all.len())]);
        let function = rng.below(3) as u8;
        let mut queries = Vec::new();
        for _ in 0..rng.between(1, 40) {
            let longest = if rng.one_in(4) { 12 } else { 4 };
            let path = random_path(&mut rng, longest, form);
            queries.extend(query_of(fold.alphabet(), FUNCTIONS[usize::from(function)], &path));
        }
        let mut searcher = PathSearcher::new(&fold, None).unwrap();
        searcher.search_together(&queries).unwrap();
        for query in &queries {
            let answer = searcher.search(query, None).unwrap();
            let found = find_path(&fold, query).unwrap();
            for stream in 0..fold.streams().len() {
                let places: Vec<PathPlace> = found.places_in(id(stream)).collect();
                assert_eq!(answer.found.count_in(id(stream)), places.len() as u64, "{query:?} in {traces:?}");
                let (skip, mut first) = (rng.below(2), None);
                let visit = &mut |place| {
                    first = Some(place);
                    false
                };
                answer.found.each_in(id(stream), skip as u64, visit).unwrap();
                assert_eq!(first, places.get(skip).copied(), "{query:?} in {traces:?}");
            }
            assert_eq!(answer.found.first_place().unwrap(), found.first());
            together += usize::from(answer.reason.contains("together"));
        }
    }
    assert!(together > 2_500, "{together}");
}

/// What the symbols of folds mean that no folder makes.
const ODD: [Step; 6] =
    [Step::Call(0), Step::Return, Step::Block(0), Step::Block(1), Step::Block(2), Step::Call(1)];

/// The alphabet of [`ODD`]: all exits and blocks are those of `f` as far as they say.
fn odd_alphabet(form: Form) -> Alphabet {
    let mut alphabet = Alphabet::default();
    let owner = [Field { key: "function", value: Value::Text(b"f") }];
    let fields = if form == Form::Qualified { &owner[..] } else { &[] };
    for step in ODD {
        let event = match step {
            Step::Call(f) => Event { role: Role::Enter, ..Event::named(FUNCTIONS[usize::from(f)]) },
            Step::Return => Event { role: Role::Leave, fields, ..Event::named("return") },
            Step::Block(b) => Event { role: Role::Block, fields, ..Event::named(BLOCKS[usize::from(b)]) },
        };
        alphabet.intern(&event, None).unwrap();
    }
    alphabet
}

#[test]
fn finding_on_folds_that_no_folder_makes() {
    let mut rng = Rng::new(82);
    for _ in 0..8_000 {
        // Where exits say whose they are, those of `g` would too.
        let (form, different) = if rng.one_in(2) { (Form::Qualified, 5) } else { (Form::Plain, 6) };
        let (numbers, streams) = odd_fold_of(rng.between(3, different), &mut rng, 500);
        // Which steps the numbers are.
        let turn = rng.below(different);
        let kind = |raw: usize| if raw < different { (raw + turn) % different } else { 0 };
        let renamed: Vec<Symbol> = (0..8).map(|raw| Symbol::new(kind(raw)).unwrap()).collect();
        let fold = numbers.with_alphabet(odd_alphabet(form), &renamed).unwrap();
        let traces: Vec<Vec<Step>> = streams
            .iter()
            .map(|stream| stream.iter().map(|&raw| ODD[kind(raw as usize)]).collect())
            .collect();
        for _ in 0..3 {
            let longest = [1, 3, 12, 63, 64, 65, 130][rng.below(7)];
            let path = random_path(&mut rng, longest, form);
            check_path(&fold, form, &traces, 0, &path, &mut rng);
        }
    }
}

#[test]
fn long_paths_in_deep_calls() {
    let mut rng = Rng::new(83);
    for _ in 0..30 {
        let traces: Vec<_> = (0..2).map(|_| calls::small(&mut rng, 6_000)).collect();
        let form = Form::any(&mut rng);
        let fold = fold_of(&traces, form, &Outermost::default());
        for longest in [2, 64, 400] {
            let path = random_path(&mut rng, longest, form);
            check_path(&fold, form, &traces, 0, &path, &mut rng);
        }
    }
}

#[test]
fn call_stacks_are_those_of_the_trace() {
    let mut rng = Rng::new(84);
    for round in 0..1_000 {
        let traces = small_traces(&mut rng, 100);
        let form = Form::any(&mut rng);
        let fold = fold_of(&traces, form, &*folders()[round % folders().len()]);
        let stacks = CallStacks::new(&fold).unwrap();
        for (stream, trace) in traces.iter().enumerate() {
            for _ in 0..5 {
                let position = rng.between(0, trace.len());
                let expected: Vec<&[u8]> = calls::stack(trace, position)
                    .into_iter()
                    .map(|function| FUNCTIONS[usize::from(function)].as_bytes())
                    .collect();
                let most = if rng.one_in(3) { rng.below(4) } else { usize::MAX };
                let stack = stacks.at(id(stream), position as u64, most);
                let names: Vec<_> =
                    stack.iter().map(|&symbol| fold.alphabet().meaning(symbol).name).collect();
                let first: Vec<_> = expected.iter().take(most).map(|name| Name::Text(name)).collect();
                assert_eq!(names, first, "at {position} of {trace:?}");
                assert_eq!(stacks.depth_at(id(stream), position as u64), expected.len() as u64);
            }
        }
    }
}

/// The example of section 4.1: `main` calls F1, which in its block B2 calls itself, and
/// returns to B3.
#[test]
fn states_of_the_example() {
    let [main, f1] = [2, 0];
    let (b1, b2, b3) = (Step::Block(1), Step::Block(2), Step::Block(3));
    let before_e2 = vec![Step::Call(main), b1, Step::Call(f1), b1, b2];
    let to_e3 = vec![Step::Call(f1), b1, b2, b1, b2];
    let rest = vec![Step::Return, b3, Step::Return, b3, Step::Return];
    let trace = [before_e2.clone(), to_e3.clone(), rest].concat();
    let path = path_of(&[1, 2, 3], &[]);
    for form in [Form::Plain, Form::Qualified] {
        let fold = fold_of(std::slice::from_ref(&trace), form, &Outermost::default());
        let query = query_of(fold.alphabet(), "f", &path).unwrap();
        let symbols: Vec<Symbol> = fold.unfold(fold.streams()[0].root()).collect();
        let state_before = |position: usize| {
            let mut scan = PathScan::new(&query);
            scan.feed(&symbols[..position]);
            let states: Vec<i64> =
                scan.states().into_iter().map(|state| state.map_or(-1, |k| k as i64)).collect();
            states
        };
        // A frame of another function has a state of its own only where exits do not say
        // whose they are.
        let expect = |position: usize, states: &[i64]| {
            let known = if form == Form::Plain { states } else { &states[1..] };
            assert_eq!(state_before(position), known, "before {position} of {form:?}");
        };
        let (e2, e3) = (before_e2.len(), before_e2.len() + to_e3.len());
        expect(e2, &[-1, 2]); // Q3
        expect(e2 + 1, &[-1, 2, 0]); // Q4
        expect(e3, &[-1, 2, 2]); // Qx
        expect(e3 + 1, &[-1, 2]); // Q5
        expect(e3 + 2, &[-1, 3]); // Q6
        expect(e3 + 3, &[-1]); // Q8
        let found = find_path(&fold, &query).unwrap();
        let places: Vec<_> = found.places().collect();
        assert_eq!(places, [PathPlace { stream: id(0), end: e3 as u64 + 1, depth: 1 }]);
        assert_eq!(found.start(&places[0]), Some(3));
    }
}

/// `aEbEcFdFgFh`, the example of section 4.2.
#[test]
fn levels_of_the_example() {
    let mut alphabet = Alphabet::default();
    let mut symbol = |letter: char| {
        let (role, name) = match letter {
            'E' => (Role::Leave, "return".to_string()),
            'F' => (Role::Enter, "F".to_string()),
            block => (Role::Block, block.to_string()),
        };
        alphabet.intern(&Event { role, ..Event::named(&name) }, None).unwrap()
    };
    let symbols: Vec<Symbol> = "aEbEcFdFgFh".chars().map(&mut symbol).collect();
    let levels = Levels::new(&alphabet);
    let of = |symbols: &[Symbol]| {
        symbols.iter().fold(levels.empty(), |all, &symbol| levels.join(&all, &levels.symbol(symbol)).unwrap())
    };
    let whole = of(&symbols);
    assert_eq!((whole.entry(), whole.exit(), whole.lowest_return()), (3, 4, Some(2)));
    for middle in 0..=symbols.len() {
        assert_eq!(levels.join(&of(&symbols[..middle]), &of(&symbols[middle..])).unwrap(), whole);
    }
    // A block, an entry and an exit, as in figure 4.
    for (letter, entry, exit, returns) in [(0, 1, 1, None), (5, 1, 2, None), (1, 2, 1, Some(2))] {
        let one = of(&symbols[letter..=letter]);
        assert_eq!((one.entry(), one.exit(), one.lowest_return()), (entry, exit, returns));
    }
}

/// The deepest and the lowest levels, one step after the other.
#[test]
fn levels_are_those_of_single_steps() {
    let mut rng = Rng::new(85);
    for _ in 0..3_000 {
        let trace = calls::small(&mut rng, 60);
        let folders = folders();
        let fold = fold_of(std::slice::from_ref(&trace), Form::Plain, &*folders[rng.below(folders.len())]);
        let levels = Levels::new(fold.alphabet());
        let (mut level, mut lowest, mut highest, mut returns) = (0i64, 0i64, 0i64, None::<i64>);
        for step in &trace {
            match step {
                Step::Call(_) => level += 1,
                Step::Return => {
                    returns = Some(returns.unwrap_or(level).min(level));
                    level -= 1;
                }
                Step::Block(_) => {}
            }
            lowest = lowest.min(level);
            highest = highest.max(level);
        }
        let value = fold.measure(&levels, fold.streams()[0].root()).unwrap();
        let above = |level: i64| (level - lowest + 1) as u64;
        let expected = (above(0), above(level), returns.map(above));
        assert_eq!((value.entry(), value.exit(), value.lowest_return()), expected, "{trace:?}");
        let nesting = fold.measure(&Deepest::new(fold.alphabet()), fold.streams()[0].root()).unwrap();
        assert_eq!(nesting.deepest(), (highest - lowest) as u64, "{trace:?}");
    }
}

/// `enter f, B0, B1` many times over, then as many returns with a B2 before each: calls
/// nested deeper than could ever be unfolded.
#[test]
fn claims_of_any_size_are_answered_at_once() {
    let alphabet = odd_alphabet(Form::Qualified);
    let [call, leave, b0, b1, b2] = [0, 1, 2, 3, 4].map(|raw| Symbol::new(raw).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let times = 1u64 << 58;
    let down = builder.rule(&[call, b0, b1].map(Item::once)).unwrap();
    let up = builder.rule(&[b2, leave].map(Item::once)).unwrap();
    let body = [Item::new(Target::Rule(down), times), Item::new(Target::Rule(up), times), Item::once(b2)];
    let root = builder.rule(&body).unwrap();
    builder.stream(FoldedStream::new("deep", "x", root));
    let fold = builder.finish();
    let path = |path: &[u8]| {
        find_path(&fold, &query_of(fold.alphabet(), "f", &path_of(path, &[])).unwrap()).unwrap()
    };
    let found = path(&[0, 1, 2]);
    assert_eq!(found.count().unwrap(), times);
    let first = found.first().unwrap();
    assert_eq!(first, PathPlace { stream: id(0), end: 3 * times, depth: times });
    assert_eq!(found.start(&first), Some(3 * times - 2));
    let nth = found.places().skip_to(times / 2 + 1).unwrap();
    assert_eq!(nth, PathPlace { stream: id(0), end: 4 * times + 2, depth: times / 2 - 1 });
    assert_eq!(found.start(&nth), Some(3 * (times / 2 - 2) + 1));
    assert_eq!(found.places().skip_to(times), None);
    assert_eq!(path(&[1, 2]).count_in(id(0)), times);
    assert_eq!(path(&[2, 0]).count_in(id(0)), 0);
    let stacks = CallStacks::new(&fold).unwrap();
    assert_eq!(stacks.depth_at(id(0), 4 * times), times / 2);
    assert_eq!(stacks.at(id(0), nth.end, 3), [call; 3]);
    let symbol = fold.symbol_at(root, nth.end);
    assert_eq!(symbol, Some(b2));
}

/// Levels that all differ cannot be kept short: there is a limit.
#[test]
fn levels_that_differ_have_a_limit() {
    let alphabet = odd_alphabet(Form::Qualified);
    let [call, b0, b1] = [0, 2, 3].map(|raw| Symbol::new(raw).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let pair = builder.rule(&[call, b0, call, b1].map(Item::once)).unwrap();
    let root = builder.rule(&[Item::new(Target::Rule(pair), 1 << 50)]).unwrap();
    builder.stream(FoldedStream::new("deep", "x", root));
    let fold = builder.finish();
    let query = query_of(fold.alphabet(), "f", &path_of(&[0, 1], &[])).unwrap();
    let error = find_path(&fold, &query).err().unwrap();
    assert!(error.kind() == loopfold::ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("calls of f are nested too deep"), "{error}");
}

/// Gaps over any number of blocks and levels, and in how many states a path may be.
#[test]
fn gaps_may_be_any_length_but_not_any_number_of_states() {
    let alphabet = odd_alphabet(Form::Qualified);
    let [call, leave, b0, b1, b2] = [0, 1, 2, 3, 4].map(|raw| Symbol::new(raw).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let times = 1u64 << 57;
    // Each frame: B0, a call of the same, then B1 B2 twice.
    let down = builder.rule(&[call, b0].map(Item::once)).unwrap();
    let up = builder.rule(&[b1, b2, b1, b2, leave].map(Item::once)).unwrap();
    let long = Item::new(Target::Symbol(b1), times);
    let (down, up) = (Item::new(Target::Rule(down), times), Item::new(Target::Rule(up), times));
    let last = [Item::once(call), Item::once(b0), long, Item::once(b2), Item::once(leave)];
    let root = builder.rule(&[&[down, up][..], &last].concat()).unwrap();
    builder.stream(FoldedStream::new("deep", "x", root));
    let fold = builder.finish();
    let find = |blocks: &[u8], gaps: &[usize]| {
        find_path(&fold, &query_of(fold.alphabet(), "f", &path_of(blocks, gaps)).unwrap()).unwrap()
    };
    let found = find(&[0, 2], &[1]);
    assert_eq!(found.count().unwrap(), 2 * times + 1);
    let first = found.first().unwrap();
    assert_eq!((first.end, first.depth), (2 * times + 1, times));
    assert_eq!(found.start(&first), Some(2 * times - 1));
    let last = found.places().skip_to(2 * times).unwrap();
    assert_eq!((last.end, last.depth), (8 * times + 2, 1));
    // What lies between does nothing to this path; to the next one it does.
    assert_eq!(found.start(&last), Some(7 * times + 1));
    assert_eq!(find(&[0, 1, 1], &[2]).count_in(id(0)), 2 * times - 1);
    let found = find(&[0, 1, 2], &[1]);
    assert_eq!(found.count_in(id(0)), 2 * times + 1);
    assert_eq!(found.start(&last), None, "that is too far to look");
    assert_eq!(found.start(&first), Some(2 * times - 1));
    assert_eq!(found.start(&PathPlace { end: 1, ..first }), None);
    // Twenty blocks after a B0, whatever they are: 2^20 ways to be among them.
    let functions = Functions::of(fold.alphabet()).unwrap();
    let function = functions.named(b"f").unwrap();
    let any = function.blocks().to_vec();
    let blocks: Vec<_> = [vec![b0], vec![b0]].into_iter().chain(vec![any; 20]).chain([vec![b1]]).collect();
    let query = PathQuery::new(&functions, function, blocks).unwrap();
    assert!(query.clone().with_gaps(&[1]).unwrap_err().kind() == loopfold::ErrorKind::Limit);
    for wrong in [&[0][..], &[23], &[2, 1], &[3, 3]] {
        assert!(query.clone().with_gaps(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(query.clone().with_gaps(&[]).unwrap(), query);
}
