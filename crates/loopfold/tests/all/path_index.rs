//! The index of functions and the searcher: all ways to look give what rebuilding every
//! invocation's blocks gives, and an index that is not of its fold is never used.

use crate::support::paths::{self, FUNCTIONS, Form};
use crate::support::{folders, id};
use loopfold::archive::{self, Archive, ReadConfig, SectionKind, Verified};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::folders::{Folder, Outermost, Repair};
use loopfold::questions::path::{
    Functions, PathAnswer, PathFound, PathIndex, PathPlace, PathQuery, PathSearcher, ScanConfig, Scheme,
    find_path,
};
use loopfold::sections;
use loopfold::{Fold, Symbol};
use loopfold_testing::Rng;
use loopfold_testing::calls::{self, Step};
use std::io::Cursor;

fn fold_of(traces: &[Vec<Step>], qualified: bool, folder: &dyn Folder) -> Fold {
    paths::fold_of(traces, if qualified { Form::Qualified } else { Form::Plain }, folder)
}

/// The path as a query. Returns `None` where the trace does not have such blocks.
fn query_of(fold: &Fold, function: u8, path: &[Vec<u8>]) -> Option<PathQuery> {
    let path = calls::Path { blocks: path.to_vec(), gaps: Vec::new() };
    paths::query_of(fold.alphabet(), FUNCTIONS[usize::from(function)], &path)
}

/// A path that is likely to occur.
fn random_path(rng: &mut Rng) -> Vec<Vec<u8>> {
    let longest = [2, 3, 4, 31, 33, 65, 70][rng.below(7)];
    let kind = rng.below(4);
    let block = |place: usize, rng: &mut Rng| match kind {
        _ if rng.one_in(8) => vec![0, 1, 2, 3],
        0 => vec![0],
        1 => vec![(place % 2) as u8],
        2 => vec![(place % 3) as u8],
        _ => vec![rng.below(3) as u8],
    };
    (0..rng.between(1, longest)).map(|place| block(place, rng)).collect()
}

/// A trace in which the three functions have parts of their own, so that an index can distinguish
/// them apart.
fn phases(rng: &mut Rng, longest: usize) -> Vec<Step> {
    let mut trace = Vec::new();
    for _ in 0..rng.between(1, 4) {
        let only = rng.below(3) as u8;
        let part = calls::small(rng, longest);
        let same = |step: Step| if let Step::Call(_) = step { Step::Call(only) } else { step };
        let part: Vec<Step> = if rng.one_in(3) { part } else { part.into_iter().map(same).collect() };
        (0..rng.between(1, 4)).for_each(|_| trace.extend_from_slice(&part));
    }
    trace
}

fn small_traces(rng: &mut Rng, longest: usize) -> Vec<Vec<Step>> {
    let mut all: Vec<_> = (0..rng.between(1, 3)).map(|_| phases(rng, longest)).collect();
    if rng.one_in(4) {
        all.push(all[0].clone());
    }
    all
}

/// Compares all that can be asked with the traces themselves.
fn check(found: &PathFound<'_>, traces: &[Vec<Step>], function: u8, path: &[Vec<u8>], rng: &mut Rng) {
    let what = || format!("{path:?} of {function} in {traces:?}");
    let mut all = Vec::new();
    for (stream, trace) in traces.iter().enumerate() {
        let expected = calls::plain_paths(trace, function, path);
        let place = |found: &calls::Found| PathPlace {
            stream: id(stream),
            end: found.end as u64,
            depth: found.depth as u64,
        };
        let places: Vec<_> = expected.iter().map(place).collect();
        assert_eq!(found.count_in(id(stream)), expected.len() as u64, "{}", what());
        assert_eq!(found.places_in(id(stream)).collect::<Vec<_>>(), places, "{}", what());
        for (place, expected) in places.iter().zip(&expected) {
            assert_eq!(found.start(place), Some(expected.start as u64), "{place:?}: {}", what());
        }
        all.extend(places);
    }
    assert_eq!(found.first(), all.first().copied(), "{}", what());
    let k = rng.between(0, all.len() + 1);
    assert_eq!(found.places().skip_to(k as u64), all.get(k).copied(), "the {k}th: {}", what());
}

#[test]
fn every_way_to_look_equals_rebuilding_every_invocation() {
    let mut rng = Rng::new(401);
    let (mut rare, mut by_index, mut kept) = (0, 0, 0);
    for round in 0..1_000 {
        let traces = small_traces(&mut rng, if round % 10 == 0 { 300 } else { 40 });
        let qualified = !rng.one_in(4);
        for folder in folders() {
            let fold = fold_of(&traces, qualified, &*folder);
            let ranges = [1, 3, 7, 16, 64, 128, 1000][rng.below(7)];
            let index = PathIndex::of(&fold, ranges).unwrap();
            if !qualified && Functions::of(fold.alphabet()).unwrap().is_qualified() {
                continue;
            }
            let searcher = PathSearcher::new(&fold, index.as_ref()).unwrap();
            if rng.one_in(2) {
                searcher.prepare().unwrap();
            }
            // More than a few of one function are looked for in what is kept of it.
            let (most, searches) = if rng.one_in(8) { (1, 12) } else { (3, 4) };
            for _ in 0..searches {
                let (function, path) = (rng.below(most) as u8, random_path(&mut rng));
                let Some(query) = query_of(&fold, function, &path) else { continue };
                if let Some(index) = &index {
                    // A first search looks in the ranges of a rare function.
                    let answer = index_search(&fold, index, &query);
                    check(answer.found.on_rules().unwrap(), &traces, function, &path, &mut rng);
                    assert!(answer.reason.contains("index ranges"), "{}", answer.reason);
                    if let Some(ranges) = answer.effort.ranges {
                        assert!(ranges.touched * 16 <= ranges.all && ranges.all == index.ranges() as u64);
                        rare += 1;
                    }
                }
                let scheme = [None, Some(Scheme::Folded), Some(Scheme::Indexed)][rng.below(3)];
                let answer = searcher.search(&query, scheme).unwrap();
                assert!(scheme.is_none_or(|scheme| scheme == answer.scheme), "{}", answer.reason);
                by_index += usize::from(answer.scheme == Scheme::Indexed);
                kept += usize::from(answer.reason.contains("earlier") && answer.scheme == Scheme::Folded);
                check(answer.found.on_rules().unwrap(), &traces, function, &path, &mut rng);
            }
        }
    }
    assert!(
        rare > 500 && by_index > 500 && kept > 500,
        "{rare} functions in few ranges, {by_index} searches by scheme 4, {kept} in what was kept"
    );
}

/// A first search, which looks in the ranges of a rare function.
fn index_search<'a>(fold: &'a Fold, index: &'a PathIndex, query: &PathQuery) -> PathAnswer<'a> {
    PathSearcher::new(fold, Some(index)).unwrap().search(query, None).unwrap()
}

/// The index by definition: the events of all different roots, one after the other, cut
/// where the ranges end.
fn check_index(fold: &Fold, index: &PathIndex) {
    let mut roots: Vec<_> = fold.streams().iter().map(|stream| stream.root()).collect();
    roots.sort_unstable();
    roots.dedup();
    let events: Vec<Symbol> = roots.iter().flat_map(|&root| fold.unfold(root)).collect();
    let functions = Functions::of(fold.alphabet()).unwrap();
    let mut next = 0;
    for number in 0..index.ranges() {
        let range = index.range(number).unwrap();
        assert!(range.start == next && range.end > next);
        next = range.end;
        let events = &events[range.start as usize..range.end as usize];
        for function in functions.all() {
            let its = [function.enters(), function.leaves(), function.blocks()].concat();
            let holds = events.iter().any(|event| its.contains(event));
            assert_eq!(index.holds(function.name(), number), holds);
        }
    }
    assert_eq!(next, events.len() as u64);
}

#[test]
fn ranges_hold_what_their_events_say() {
    let mut rng = Rng::new(402);
    let mut enough = 0;
    for _ in 0..600 {
        let traces = small_traces(&mut rng, 60);
        let events: usize = traces.iter().map(Vec::len).max().unwrap();
        for folder in folders() {
            let fold = fold_of(&traces, true, &*folder);
            let ranges = [1, 2, 5, 16, 128][rng.below(5)];
            let index = PathIndex::of(&fold, ranges).unwrap();
            let Some(index) = index else { continue };
            check_index(&fold, &index);
            assert!(index.ranges() <= ranges);
            // Folds of few items are cut deeper.
            enough += usize::from(index.ranges() == ranges && events > 4 * ranges);
            assert!(index.ranges() >= ranges.min(events).min(2), "{ranges} in {events}");
            assert!(index.is_right(&fold).unwrap());
        }
    }
    assert!(enough > 1_000, "{enough}");
}

/// A loop of 2^58 iterations has as many ranges as are asked for.
#[test]
fn claims_of_any_size_have_an_index() {
    let few = fold_of(
        &[vec![Step::Call(0), Step::Block(0), Step::Block(1), Step::Return]],
        true,
        &Outermost::default(),
    );
    let [call, b0, b1, leave] = [0, 1, 2, 3].map(|raw| Symbol::new(raw).unwrap());
    let mut builder = FoldBuilder::new(few.alphabet().clone());
    let times = 1u64 << 58;
    let inner = builder.rule(&[b0, b1].map(Item::once)).unwrap();
    let body = [Item::once(call), Item::new(Target::Rule(inner), 3), Item::once(leave)];
    let whole = builder.rule(&body).unwrap();
    let root = builder.rule(&[Item::new(Target::Rule(whole), times / 4)]).unwrap();
    builder.stream(FoldedStream::new("long", "x", root));
    let fold = builder.finish();
    let index = PathIndex::of(&fold, 100).unwrap().unwrap();
    assert_eq!(index.ranges(), 100);
    let query = query_of(&fold, 0, &[vec![1], vec![0]]).unwrap();
    let found = index_search(&fold, &index, &query);
    let found = found.found.on_rules().unwrap();
    assert_eq!(found.count().unwrap(), times / 2);
    assert_eq!(found.first(), Some(PathPlace { stream: id(0), end: 3, depth: 1 }));
    let last = found.places().skip_to(times / 2 - 1).unwrap();
    assert_eq!((last.end, found.start(&last)), (2 * times - 4 + 1, Some(2 * times - 4)));
    // So many streams of it cannot be numbered; then there is no index.
    let mut builder = FoldBuilder::new(few.alphabet().clone());
    let body = builder.rule(&[call, b0, leave].map(Item::once)).unwrap();
    for more in 0..8 {
        let root = builder.rule(&[Item::new(Target::Rule(body), (1 << 60) + more)]).unwrap();
        builder.stream(FoldedStream::new(format!("{more}"), "x", root));
    }
    let fold = builder.finish();
    assert_eq!(PathIndex::of(&fold, 100).unwrap(), None);
    assert!(PathSearcher::new(&fold, None).is_ok());
}

#[test]
fn many_searches_on_many_threads() {
    let mut rng = Rng::new(403);
    let traces: Vec<_> = (0..2).map(|_| phases(&mut rng, 2_000)).collect();
    let fold = fold_of(&traces, true, &Repair);
    let index = PathIndex::of(&fold, 128).unwrap();
    let searcher = PathSearcher::new(&fold, index.as_ref()).unwrap();
    let paths: Vec<_> = (0..200).map(|_| (rng.below(3) as u8, random_path(&mut rng))).collect();
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let (searcher, paths, fold, traces) = (&searcher, &paths, &fold, &traces);
            scope.spawn(move || {
                for (function, path) in paths.iter().skip(turn * 50).chain(&paths[..turn * 50]) {
                    let Some(query) = query_of(fold, *function, path) else { continue };
                    let count = searcher.search(&query, None).unwrap().found.count_all().unwrap();
                    assert_eq!(count, find_path(fold, &query).unwrap().count().unwrap());
                    let expected =
                        traces.iter().map(|trace| calls::plain_paths(trace, *function, path).len());
                    assert_eq!(count, expected.sum::<usize>() as u64);
                }
            });
        }
    });
}

/// A searcher has all schemes, and uses the one that it is asked for.
#[test]
fn schemes_are_used_when_asked_for() {
    let fold = fold_of(&[vec![Step::Call(0), Step::Block(0)]], true, &Outermost::default());
    let query = query_of(&fold, 0, &[vec![0]]).unwrap();
    let searcher = PathSearcher::new(&fold, None).unwrap();
    for scheme in Scheme::ALL {
        let answer = searcher.search(&query, Some(scheme)).unwrap();
        assert_eq!(answer.scheme, scheme);
        assert!(answer.reason.starts_with("it was asked for"), "{}", answer.reason);
        let is_scan = matches!(scheme, Scheme::Unfolded | Scheme::Chunks);
        assert_eq!((answer.found.on_rules().is_none(), answer.effort.symbols > 0), (is_scan, is_scan));
        assert_eq!(answer.found.first_place().unwrap(), Some(PathPlace { stream: id(0), end: 1, depth: 1 }));
    }
    let few = ScanConfig::new().most_symbols(1);
    let searcher = PathSearcher::new(&fold, None).unwrap().with_scan_config(few);
    assert!(
        searcher.search(&query, Some(Scheme::Unfolded)).err().unwrap().kind() == loopfold::ErrorKind::Limit
    );
}

fn archive_of(fold: &Fold, ranges: usize) -> Vec<u8> {
    let mut file = Vec::new();
    archive::write_with(fold, &mut file, &sections::write_config(Some(ranges), None)).unwrap();
    file
}

fn verify(file: &[u8]) -> loopfold::Result<Verified> {
    archive::verify_with(Cursor::new(file), &sections::CHECKS)
}

fn read(file: &[u8]) -> (Fold, loopfold::Result<Option<PathIndex>>) {
    let mut archive = Archive::open(Cursor::new(file)).unwrap();
    let (fold, _) = archive.read(&ReadConfig::new()).unwrap();
    let index = sections::index(&mut archive, &fold);
    (fold, index)
}

#[test]
fn indexes_come_back_from_archives() {
    let mut rng = Rng::new(404);
    for _ in 0..200 {
        let traces = small_traces(&mut rng, 60);
        for folder in folders() {
            let fold = fold_of(&traces, true, &*folder);
            let ranges = rng.between(1, 40);
            let file = archive_of(&fold, ranges);
            let (again, index) = read(&file);
            assert_eq!(index.unwrap(), PathIndex::of(&again, ranges).unwrap());
            let verified = verify(&file).unwrap().parts_of(SectionKind::Index);
            let known = PathIndex::of(&again, ranges).unwrap();
            assert_eq!(verified, known.map_or(0, |index| index.ranges() as u64));
            let sizes = archive::sizes(Cursor::new(&file)).unwrap();
            assert_eq!(sizes.index > 0, verified > 0);
        }
    }
}

#[test]
fn no_index_where_symbols_do_not_say_whose_they_are() {
    let trace = vec![Step::Call(0), Step::Block(0), Step::Return];
    let fold = fold_of(&[trace], false, &Outermost::default());
    assert_eq!(PathIndex::of(&fold, 4).unwrap(), None);
    assert!(!PathIndex::is_possible(&fold).unwrap());
    let (_, index) = read(&archive_of(&fold, 4));
    assert_eq!(index.unwrap(), None);
}

#[test]
fn the_index_of_another_fold_is_refused() {
    let mut rng = Rng::new(405);
    let mut refused = 0;
    for _ in 0..300 {
        let traces = small_traces(&mut rng, 40);
        let fold = fold_of(&traces, true, &Repair).canonical();
        let mut others = traces.clone();
        let which = rng.below(others.len());
        if others[which].is_empty() {
            continue;
        }
        // As long, with other blocks.
        let place = rng.below(others[which].len());
        others[which][place] = match others[which][place] {
            Step::Block(block) => Step::Block((block + 1) % 4),
            Step::Call(function) => Step::Call((function + 1) % 3),
            Step::Return => Step::Block(0),
        };
        let other = fold_of(&others, true, &Repair).canonical();
        let Some(index) = PathIndex::of(&other, 8).unwrap() else { continue };
        // What blocks are called is nothing to an index.
        let functions = |fold: &Fold| Functions::of(fold.alphabet()).unwrap().all().to_vec();
        let bodies = |fold: &Fold| fold.rules().map(|rule| fold.body(rule).to_vec()).collect::<Vec<_>>();
        let roots = |fold: &Fold| fold.streams().iter().map(|stream| stream.root()).collect::<Vec<_>>();
        if (functions(&fold), bodies(&fold), roots(&fold))
            == (functions(&other), bodies(&other), roots(&other))
        {
            assert!(index.fits(&fold).unwrap());
            continue;
        }
        assert!(!index.fits(&fold).unwrap() && !index.is_right(&fold).unwrap());
        assert!(PathSearcher::new(&fold, Some(&index)).is_err());
        refused += 1;
    }
    assert!(refused > 150, "{refused}");
}

/// The section of an archive: its kind, where it begins and how long it is.
fn section(file: &[u8], kind: SectionKind) -> (usize, usize) {
    let archive = Archive::open(Cursor::new(file)).unwrap();
    let section = archive.segments()[0].sections().iter().find(|section| section.kind() == kind).unwrap();
    (section.offset() as usize, section.length() as usize)
}

/// An archive with another's index, checksums in order: known by `verify`, and the rest can
/// be read.
#[test]
fn an_index_in_the_wrong_archive_is_found() {
    let trace = |block| vec![Step::Call(0), Step::Block(0), Step::Block(block), Step::Return, Step::Call(1)];
    let [mut one, other] = [1, 2].map(|block| {
        let long: Vec<Step> = [trace(1), trace(2), trace(block), trace(3)].concat();
        archive_of(&fold_of(&[long], true, &Repair), 2)
    });
    let ((at, length), (from, as_long)) =
        (section(&one, SectionKind::Index), section(&other, SectionKind::Index));
    assert_eq!(length, as_long, "the test needs indexes of the same length");
    assert!(verify(&one).is_ok());
    one[at..at + length].copy_from_slice(&other[from..from + length]);
    archive::reseal(&mut one);
    let (_, index) = read(&one);
    assert!(index.unwrap_err().to_string().contains("another fold"));
    let error = verify(&one).unwrap_err();
    assert!(error.to_string().contains("index"), "{error}");
}

/// Whatever a damaged index says, with checksums in order: it is an error or an index that
/// answers, and `verify` knows it unless it says what is right.
#[test]
fn damaged_indexes_never_panic() {
    let mut rng = Rng::new(406);
    let (mut errors, mut wrong) = (0, 0);
    for _ in 0..60 {
        let traces = small_traces(&mut rng, 60);
        let fold = fold_of(&traces, true, &Repair).canonical();
        let file = archive_of(&fold, rng.between(2, 150));
        if PathIndex::of(&fold, 2).unwrap().is_none() {
            continue;
        }
        let (start, length) = section(&file, SectionKind::Index);
        for _ in 0..200 {
            let mut damaged = file.clone();
            for _ in 0..rng.between(1, 3) {
                damaged[start + rng.below(length)] ^= 1 << rng.below(8);
            }
            assert!(damaged == file || verify(&damaged).is_err());
            archive::reseal(&mut damaged);
            let (again, index) = read(&damaged);
            assert_eq!(again, fold);
            let is_good = verify(&damaged).is_ok();
            let Ok(Some(index)) = index else {
                assert!(!is_good);
                errors += 1;
                continue;
            };
            assert_eq!(is_good, index.is_right(&fold).unwrap());
            wrong += usize::from(!is_good);
            let path = random_path(&mut rng);
            if let Some(query) = query_of(&fold, rng.below(3) as u8, &path) {
                let answer = index_search(&fold, &index, &query);
                answer.found.on_rules().unwrap().places().take(100).for_each(drop);
            }
        }
    }
    assert!(errors > 1_000 && wrong > 50, "{errors} errors, {wrong} wrong indexes");
}
