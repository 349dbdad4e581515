//! Traces of calls as folds, and paths of functions in them as by rebuilding every
//! invocation's blocks.

use crate::support::id;
use loopfold::archive::{self, Archive, ReadConfig};
use loopfold::folders::{Folder, fold_trace};
use loopfold::questions::path::{
    ChunkSize, Functions, PathIndex, PathMemory, PathOccurrences, PathPlace, PathQuery, PathScan,
    PathSearcher, PathStarts, ScanConfig, Scheme, find_path,
};
use loopfold::sections;
use loopfold::trace::{Alphabet, Collector, Event, Field, Name, Role, Sink, Value};
use loopfold::{Fold, Symbol};
use loopfold_testing::Rng;
use loopfold_testing::calls::{self, Path, Step, call_block};
use std::io::Cursor;

/// How a trace says whose exits and blocks are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Exits and blocks say whose they are; where that is not known, `?`.
    Qualified,
    /// They do not.
    Plain,
    /// They do, and calls are blocks of their callers.
    Calls,
    /// Calls are blocks of their callers, which nothing else says.
    PlainCalls,
}

impl Form {
    pub fn any(rng: &mut Rng) -> Self {
        [Form::Qualified, Form::Plain, Form::Calls, Form::PlainCalls][rng.below(4)]
    }

    pub fn is_qualified(self) -> bool {
        matches!(self, Form::Qualified | Form::Calls)
    }

    pub fn has_callers(self) -> bool {
        matches!(self, Form::Calls | Form::PlainCalls)
    }
}

/// The functions of generated traces.
pub const FUNCTIONS: [&str; 3] = ["f", "g", "h"];

/// Their blocks.
pub const BLOCKS: [&str; 4] = ["B0", "B1", "B2", "B3"];

/// Pushes a trace of calls as a source would.
pub fn push(collector: &mut Collector, name: &str, trace: &[Step], form: Form) {
    let stream = collector.stream(name).unwrap();
    let mut open: Vec<&str> = Vec::new();
    for step in trace {
        let innermost = open.last().copied().unwrap_or("?");
        let owner = [Field { key: "function", value: Value::Text(innermost.as_bytes()) }];
        let caller = [Field { key: "caller", ..owner[0] }];
        let fields = if form.is_qualified() { &owner[..] } else { &[] };
        let callers = if form.has_callers() && !open.is_empty() { &caller[..] } else { &[] };
        let event = match *step {
            Step::Call(function) => {
                open.push(FUNCTIONS[usize::from(function)]);
                let name = FUNCTIONS[usize::from(function)];
                Event { role: Role::Enter, fields: callers, ..Event::named(name) }
            }
            Step::Return => {
                open.pop();
                Event { role: Role::Leave, fields, ..Event::named("return") }
            }
            Step::Block(block) => {
                Event { role: Role::Block, fields, ..Event::named(BLOCKS[usize::from(block)]) }
            }
        };
        collector.push_event(stream, &event).unwrap();
    }
}

/// The fold of traces of calls.
pub fn fold_of(traces: &[Vec<Step>], form: Form, folder: &dyn Folder) -> Fold {
    let mut collector = Collector::default();
    for (index, trace) in traces.iter().enumerate() {
        push(&mut collector, &format!("thread {index}"), trace, form);
    }
    fold_trace(collector.finish().unwrap(), folder, 1).unwrap()
}

/// The path as a query. Returns `None` where the trace does not have such blocks.
pub fn query_of(alphabet: &Alphabet, function: &str, path: &Path) -> Option<PathQuery> {
    let functions = Functions::of(alphabet).unwrap();
    let function = functions.named(function.as_bytes())?;
    let known = functions.blocks_of(function);
    let symbol_of = |block: u8| {
        let name = match block.checked_sub(call_block(0)) {
            Some(function) => FUNCTIONS[usize::from(function)],
            None => BLOCKS[usize::from(block)],
        };
        let name = Name::Text(name.as_bytes());
        known.iter().copied().find(|&symbol| alphabet.meaning(symbol).name == name)
    };
    let blocks: Vec<Vec<Symbol>> =
        path.blocks.iter().map(|any| any.iter().filter_map(|&block| symbol_of(block)).collect()).collect();
    PathQuery::new(&functions, function, blocks).ok().map(|query| query.with_gaps(&path.gaps).unwrap())
}

/// A path of blocks, with any blocks before some of them.
pub fn path_of(blocks: &[u8], gaps: &[usize]) -> Path {
    Path { blocks: blocks.iter().map(|&block| vec![block]).collect(), gaps: gaps.to_vec() }
}

/// Where the oracle found a path.
pub fn place_of(stream: usize, found: &calls::Found) -> PathPlace {
    PathPlace { stream: id(stream), end: found.end as u64, depth: found.depth as u64 }
}

/// Compares all that can be asked with the traces themselves.
pub fn check_path(fold: &Fold, form: Form, traces: &[Vec<Step>], function: u8, path: &Path, rng: &mut Rng) {
    let what = || format!("{path:?} of {function} in {traces:?} folded as {fold:?}");
    let Some(query) = query_of(fold.alphabet(), FUNCTIONS[usize::from(function)], path) else {
        assert!(
            traces.iter().all(|trace| calls::paths(trace, function, path, form.has_callers()).is_empty()),
            "{}",
            what()
        );
        return;
    };
    let found = find_path(fold, &query).unwrap();
    let starts = PathStarts::new(fold, &query).unwrap();
    let (mut all, mut memory) = (Vec::new(), PathMemory::default());
    for (stream, trace) in traces.iter().enumerate() {
        let expected = calls::paths(trace, function, path, form.has_callers());
        let places: Vec<_> = expected.iter().map(|found| place_of(stream, found)).collect();
        assert_eq!(found.count_in(id(stream)), expected.len() as u64, "{}", what());
        assert_eq!(found.places_in(id(stream)).collect::<Vec<_>>(), places, "{}", what());
        for (place, expected) in places.iter().zip(&expected) {
            assert_eq!(found.start(place), Some(expected.start as u64), "{place:?}: {}", what());
            assert_eq!(starts.start(&query, place), Some(expected.start as u64), "{place:?}: {}", what());
            let remembered = starts.start_of(&query, place, &mut memory);
            assert_eq!(remembered, Some(expected.start as u64), "{place:?}: {}", what());
        }
        check_scan(fold, stream, &query, &places, rng);
        all.extend(places);
    }
    check_schemes(fold, &query, (FUNCTIONS[usize::from(function)], path), &all, rng);
    assert_eq!(found.count().unwrap(), all.len() as u64);
    assert_eq!(found.first(), all.first().copied(), "{}", what());
    let k = rng.between(0, all.len() + 1);
    let mut places = found.places();
    assert_eq!(places.skip_to(k as u64), all.get(k).copied(), "the {k}th: {}", what());
    let more = rng.between(0, 3);
    assert_eq!(places.nth(more), all.get(k + 1 + more).copied(), "{more} after the {k}th: {}", what());
}

/// All places, as each is visited.
pub fn all_places(found: &dyn PathOccurrences) -> Vec<PathPlace> {
    let mut places = Vec::new();
    for stream in 0..found.streams() {
        let visit = &mut |place| {
            places.push(place);
            true
        };
        found.each_in(id(stream), 0, visit).unwrap();
    }
    places
}

/// All schemes give the same places, with and without an index and chunks.
pub fn check_schemes(
    fold: &Fold,
    query: &PathQuery,
    (function, path): (&str, &Path),
    places: &[PathPlace],
    rng: &mut Rng,
) {
    let index = if rng.one_in(2) { PathIndex::of(fold, rng.between(1, 9)).unwrap() } else { None };
    let options = ScanConfig::new().range(rng.between(1, 20) as u64);
    let searcher = PathSearcher::new(fold, index.as_ref()).unwrap().with_scan_config(options);
    for scheme in
        [Some(Scheme::Indexed), None, Some(Scheme::Folded), Some(Scheme::Unfolded), Some(Scheme::Chunks)]
    {
        let answer = searcher.search(query, scheme).unwrap();
        assert!(scheme.is_none_or(|scheme| scheme == answer.scheme), "{}", answer.reason);
        assert_eq!(all_places(&*answer.found), places, "{}", answer.reason);
    }
    if rng.one_in(4) {
        let size = ChunkSize::of_symbols(rng.between(1, 20) as u64).unwrap();
        let mut file = Vec::new();
        archive::write_with(fold, &mut file, &sections::write_config(None, Some(size))).unwrap();
        let (fold, _) = archive::read(Cursor::new(&file), &ReadConfig::new()).unwrap();
        let chunks = sections::chunks(Archive::open(Cursor::new(&file)).unwrap()).unwrap().unwrap();
        // Symbols have other numbers there, and those that do not occur have none.
        let Some(query) = query_of(fold.alphabet(), function, path) else { return };
        let searcher = PathSearcher::new(&fold, None).unwrap().with_chunks(Some(&chunks));
        for scheme in [Scheme::Unfolded, Scheme::Chunks] {
            let answer = searcher.search(&query, Some(scheme)).unwrap();
            assert_eq!(all_places(&*answer.found), places, "{}", answer.reason);
        }
    }
}

/// The symbols as they come, in parts of any size.
pub fn check_scan(fold: &Fold, stream: usize, query: &PathQuery, places: &[PathPlace], rng: &mut Rng) {
    let symbols: Vec<Symbol> = fold.unfold(fold.streams()[stream].root()).collect();
    let most = rng.between(1, 200);
    let (mut scan, mut listing) = (PathScan::new(query), PathScan::new(query));
    let (mut rest, mut listed) = (&symbols[..], Vec::new());
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rng.between(0, rest.len().min(most)));
        scan.feed(part);
        listing.feed_each(part, |end, depth| listed.push(PathPlace { stream: id(stream), end, depth }));
        rest = after;
    }
    assert_eq!(listed, places);
    for scan in [scan, listing] {
        assert_eq!(scan.count(), places.len() as u64);
        assert_eq!(scan.first(), places.first().map(|place| place.end));
    }
}

/// One to three threads; sometimes two of them are equal.
pub fn small_traces(rng: &mut Rng, longest: usize) -> Vec<Vec<Step>> {
    let mut all: Vec<_> = (0..rng.between(1, 3)).map(|_| calls::small(rng, longest)).collect();
    if rng.one_in(4) {
        all.push(all[0].clone());
    }
    all
}
