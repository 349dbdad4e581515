//! Scanning for paths chunk by chunk, stored or unfolded: the same as by rebuilding every
//! invocation's blocks, whatever is damaged.

use crate::support::paths::{self, FUNCTIONS, Form, small_traces};
use crate::support::{folders, id};
use loopfold::archive::{self, Archive, ReadConfig, SectionKind, SectionReader, Verified};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Measure, Target};
use loopfold::folders::{Folder, Outermost};
use loopfold::questions::path::{
    ChunkSize, Chunks, Functions, Levels, PathAnswer, PathPlace, PathQuery, PathScan, PathSearcher,
    ScanConfig, Scheme, TraceChunks, chunk_totals,
};
use loopfold::sections;
use loopfold::trace::{Alphabet, Event, Field, Role, Value};
use loopfold::{Fold, Symbol};
use loopfold_testing::Rng;
use loopfold_testing::calls::{self, Step};
use std::io::{Cursor, Read, Seek};
use std::sync::atomic::{AtomicU64, Ordering};

fn fold_of(traces: &[Vec<Step>], qualified: bool, folder: &dyn Folder) -> Fold {
    paths::fold_of(traces, if qualified { Form::Qualified } else { Form::Plain }, folder)
}

/// The path as a query. Returns `None` where the trace does not have such blocks.
fn query_of(alphabet: &Alphabet, function: u8, path: &[Vec<u8>]) -> Option<PathQuery> {
    let path = calls::Path { blocks: path.to_vec(), gaps: Vec::new() };
    paths::query_of(alphabet, FUNCTIONS[usize::from(function)], &path)
}

fn random_path(rng: &mut Rng, longest: usize) -> Vec<Vec<u8>> {
    let (length, kind) = (rng.between(1, longest), rng.below(3));
    (0..length)
        .map(|place| match kind {
            _ if rng.one_in(8) => vec![0, 1, 2, 3],
            0 => vec![(place % 2) as u8],
            1 => vec![(place % 3) as u8],
            _ => vec![rng.below(3) as u8],
        })
        .collect()
}

fn archive_of(fold: &Fold, symbols: u64) -> Vec<u8> {
    let size = ChunkSize::of_symbols(symbols).unwrap();
    let mut file = Vec::new();
    archive::write_with(fold, &mut file, &sections::write_config(None, Some(size))).unwrap();
    file
}

fn verify(file: &[u8]) -> loopfold::Result<Verified> {
    archive::verify_with(Cursor::new(file), &sections::CHECKS)
}

fn chunks_of<R: Read + Seek>(input: R) -> loopfold::Result<Chunks<SectionReader<R>>> {
    Ok(sections::chunks(Archive::open(input)?)?.unwrap())
}

fn open(file: &[u8]) -> (Fold, Chunks<SectionReader<Cursor<&[u8]>>>) {
    let (fold, _) = archive::read(Cursor::new(file), &ReadConfig::new()).unwrap();
    (fold, chunks_of(Cursor::new(file)).unwrap())
}

/// The places of a path, from the traces themselves.
fn expected(traces: &[Vec<Step>], function: u8, path: &[Vec<u8>]) -> Vec<Vec<PathPlace>> {
    let of = |(stream, trace): (usize, &Vec<Step>)| {
        let place = |found: &calls::Found| PathPlace {
            stream: id(stream),
            end: found.end as u64,
            depth: found.depth as u64,
        };
        calls::plain_paths(trace, function, path).iter().map(place).collect()
    };
    traces.iter().enumerate().map(of).collect()
}

/// How many chunks have an entry, a block or an exit of a function.
fn holding(traces: &[Vec<Step>], function: u8, size: usize) -> u64 {
    let mut chunks = 0;
    for trace in traces {
        let mut open = Vec::new();
        let mut last = None;
        for (position, step) in trace.iter().enumerate() {
            if let Step::Call(called) = step {
                open.push(*called);
            }
            if open.last() == Some(&function) && last != Some(position / size) {
                last = Some(position / size);
                chunks += 1;
            }
            if *step == Step::Return {
                open.pop();
            }
        }
    }
    chunks
}

fn scan_with<'a>(
    scheme: Scheme,
    fold: &'a Fold,
    chunks: Option<&'a dyn TraceChunks>,
    query: &PathQuery,
    config: &ScanConfig,
) -> loopfold::Result<PathAnswer<'a>> {
    let searcher = PathSearcher::new(fold, None)?.with_chunks(chunks).with_scan_config(*config);
    searcher.search(query, Some(scheme))
}

fn check(answer: &PathAnswer<'_>, expected: &[Vec<PathPlace>], rng: &mut Rng) {
    let found = &answer.found;
    assert_eq!(found.streams(), expected.len());
    let all: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(found.count_all().unwrap(), all as u64);
    assert_eq!(found.first_place().unwrap(), expected.iter().flatten().next().copied());
    for (stream, expected) in expected.iter().enumerate() {
        assert_eq!(found.count_in(id(stream)), expected.len() as u64);
        let skip = if rng.one_in(2) { 0 } else { rng.between(0, expected.len() + 1) };
        let most = if rng.one_in(2) { usize::MAX } else { rng.between(1, 4) };
        let mut given = Vec::new();
        found
            .each_in(id(stream), skip as u64, &mut |place| {
                given.push(place);
                given.len() < most
            })
            .unwrap();
        let wanted: Vec<_> = expected.iter().skip(skip).take(most).copied().collect();
        assert_eq!(given, wanted, "{most} of {stream} after {skip}");
    }
}

#[test]
fn scanning_equals_rebuilding_every_invocation_for_every_folder() {
    let mut rng = Rng::new(91);
    for round in 0..1_000 {
        let traces = small_traces(&mut rng, if round % 10 == 0 { 400 } else { 50 });
        let qualified = rng.one_in(2);
        for folder in folders() {
            let fold = fold_of(&traces, qualified, &*folder);
            let size = if rng.one_in(4) { 200 } else { rng.between(1, 12) };
            let (fold, chunks) = open_owned(archive_of(&fold, size as u64));
            let options = ScanConfig::new().range(size as u64);
            for _ in 0..2 {
                let path = random_path(&mut rng, if round % 4 == 0 { 80 } else { 4 });
                let function = rng.below(3) as u8;
                let Some(query) = query_of(fold.alphabet(), function, &path) else { continue };
                let expected = expected(&traces, function, &path);
                let all = traces.iter().map(|trace| trace.len().div_ceil(size) as u64).sum();
                let stored: &dyn TraceChunks = &chunks;
                for chunks in [None, Some(stored)] {
                    let found = scan_with(Scheme::Unfolded, &fold, chunks, &query, &options).unwrap();
                    check(&found, &expected, &mut rng);
                    let effort = found.effort.chunks.unwrap();
                    assert_eq!((effort.touched, effort.all), (all, all));
                    let found = scan_with(Scheme::Chunks, &fold, chunks, &query, &options).unwrap();
                    check(&found, &expected, &mut rng);
                    let effort = found.effort.chunks.unwrap();
                    assert_eq!(effort.all, all);
                    if chunks.is_some() || qualified {
                        assert_eq!(
                            effort.touched,
                            holding(&traces, function, size),
                            "{function} in {traces:?}"
                        );
                    }
                    assert_eq!(found.effort.decompressed_bytes > 0, chunks.is_some() && effort.touched > 0);
                }
            }
        }
    }
}

fn open_owned(file: Vec<u8>) -> (Fold, Chunks<SectionReader<Cursor<Vec<u8>>>>) {
    let (fold, _) = archive::read(Cursor::new(&file), &ReadConfig::new()).unwrap();
    (fold, chunks_of(Cursor::new(file)).unwrap())
}

/// Longer ones, so that scans go through more than one group and states of deep calls are
/// taken up again.
#[test]
fn scanning_deep_calls() {
    let mut rng = Rng::new(92);
    for round in 0..60 {
        let traces = small_traces(&mut rng, 6_000);
        let fold = fold_of(&traces, round % 2 == 0, &Outermost::default());
        let size = rng.between(50, 3_000) as u64;
        let (fold, chunks) = open_owned(archive_of(&fold, size));
        for longest in [3, 64, 100] {
            let path = random_path(&mut rng, longest);
            let Some(query) = query_of(fold.alphabet(), 0, &path) else { continue };
            let expected = expected(&traces, 0, &path);
            let options = ScanConfig::new().range(size);
            check(
                &scan_with(Scheme::Unfolded, &fold, Some(&chunks), &query, &options).unwrap(),
                &expected,
                &mut rng,
            );
            check(
                &scan_with(Scheme::Chunks, &fold, Some(&chunks), &query, &options).unwrap(),
                &expected,
                &mut rng,
            );
            check(&scan_with(Scheme::Chunks, &fold, None, &query, &options).unwrap(), &expected, &mut rng);
        }
    }
}

/// A function of which there is little, with long calls of another one between.
#[test]
fn scanning_for_rare_functions() {
    let mut rng = Rng::new(97);
    for _ in 0..300 {
        let (mut trace, calls) = (vec![Step::Call(2)], rng.between(2, 8));
        for _ in 0..rng.between(1, 40) {
            trace.push(match rng.below(calls) {
                0 => Step::Call(0),
                1 => Step::Return,
                _ => Step::Block(rng.below(3) as u8),
            });
            trace.push(Step::Call(1));
            trace.extend((0..rng.below(300)).map(|_| Step::Block(rng.below(4) as u8)));
            trace.push(Step::Return);
        }
        let fold = fold_of(std::slice::from_ref(&trace), true, &Outermost::default());
        let options = ScanConfig::new().range(rng.between(1, 1_000) as u64);
        let path = random_path(&mut rng, 3);
        let Some(query) = query_of(fold.alphabet(), 0, &path) else { continue };
        let expected = expected(&[trace], 0, &path);
        check(&scan_with(Scheme::Unfolded, &fold, None, &query, &options).unwrap(), &expected, &mut rng);
        check(&scan_with(Scheme::Chunks, &fold, None, &query, &options).unwrap(), &expected, &mut rng);
    }
}

#[test]
fn chunks_hold_the_symbols_in_order() {
    let mut rng = Rng::new(93);
    for _ in 0..300 {
        let traces = small_traces(&mut rng, 200);
        let fold = fold_of(&traces, rng.one_in(2), &Outermost::default());
        let size = rng.between(1, 70) as u64;
        let file = archive_of(&fold, size);
        let (fold, chunks) = open(&file);
        chunks.check(&fold).unwrap();
        let levels = Levels::new(fold.alphabet());
        let mut unfolded: Vec<Vec<Symbol>> = vec![Vec::new(); fold.streams().len()];
        for (number, chunk) in chunks.all().iter().enumerate() {
            let mut symbols = Vec::new();
            assert_eq!(chunks.read(number, &mut symbols).unwrap(), 4 * chunk.symbols());
            let of = symbols
                .iter()
                .fold(levels.empty(), |all, &symbol| levels.join(&all, &levels.symbol(symbol)).unwrap());
            assert_eq!(*chunk.levels(), of);
            let stream = &mut unfolded[chunk.stream()];
            assert_eq!((chunk.first(), chunk.symbols()), (stream.len() as u64, symbols.len() as u64));
            stream.extend(symbols);
        }
        for (stream, unfolded) in fold.streams().iter().zip(unfolded) {
            assert_eq!(fold.unfold(stream.root()).collect::<Vec<_>>(), unfolded);
        }
        let verified = verify(&file).unwrap().parts_of(SectionKind::Chunks);
        assert_eq!(verified, chunks.all().len() as u64);
        let sizes = archive::sizes(Cursor::new(&file)).unwrap();
        let totals = chunk_totals(&fold, ChunkSize::of_symbols(size).unwrap()).unwrap();
        assert_eq!((totals.chunks, totals.bytes), (verified, chunks.all().iter().map(|c| c.bytes()).sum()));
        assert!(totals.bytes + totals.directory < sizes.chunks && totals.index < totals.directory);
    }
}

/// Every byte of the section, flipped: the fold is read as ever, the damage is found and
/// named, and a lenient search loses nothing.
#[test]
fn every_damage_is_found() {
    let mut rng = Rng::new(94);
    let traces: Vec<_> = (0..2).map(|_| calls::small(&mut rng, 120)).collect();
    let traces = [traces, vec![[Step::Call(0), Step::Block(0), Step::Block(1)].repeat(9)]].concat();
    let file = archive_of(&fold_of(&traces, true, &Outermost::default()), 16);
    let (fold, intact) = open(&file);
    let path = [vec![0], vec![1]];
    let query = query_of(fold.alphabet(), 0, &path).unwrap();
    let expected = expected(&traces, 0, &path);
    assert!(expected.iter().any(|places| places.len() > 5));
    let archive = Archive::open(Cursor::new(&file)).unwrap();
    let sections = archive.segments()[0].sections();
    let section = sections.iter().find(|section| section.kind() == SectionKind::Chunks).unwrap();
    let contents: u64 = intact.all().iter().map(|chunk| chunk.bytes()).sum();
    let section_end = (section.offset() + section.length()) as usize;
    let contents_begin = section_end - contents as usize;
    let lenient = ScanConfig::new().lenient(true);
    for place in section.offset() as usize..section_end {
        for reseal in [false, true] {
            let mut damaged = file.clone();
            damaged[place] ^= 1 << rng.below(8);
            if reseal {
                archive::reseal(&mut damaged);
            }
            let (same, _) = archive::read(Cursor::new(&damaged), &ReadConfig::new()).unwrap();
            assert_eq!(same, fold);
            let error = verify(&damaged).unwrap_err().to_string();
            assert!(error.starts_with("segment 1, chunks"), "{error}");
            let chunks = chunks_of(Cursor::new(&damaged));
            if place < contents_begin {
                assert!(chunks.unwrap_err().kind() == loopfold::ErrorKind::Damaged);
                continue;
            }
            let chunks = chunks.unwrap();
            let mut end = contents_begin;
            let number = intact.all().iter().position(|chunk| {
                end += chunk.bytes() as usize;
                place < end
            });
            let name = format!("chunk {} of {}", number.unwrap() + 1, intact.all().len());
            assert!(error.contains(&name), "{error} is not {name}");
            let strict = scan_with(Scheme::Unfolded, &fold, Some(&chunks), &query, &ScanConfig::new());
            assert!(strict.err().unwrap().to_string().contains(&name));
            for scheme in [Scheme::Unfolded, Scheme::Chunks] {
                let found = scan_with(scheme, &fold, Some(&chunks), &query, &lenient).unwrap();
                check(&found, &expected, &mut rng);
                assert!(found.damage.iter().all(|damage| damage.contains(&name)));
            }
            let found = scan_with(Scheme::Unfolded, &fold, Some(&chunks), &query, &lenient).unwrap();
            assert_eq!(found.damage.len(), 1);
        }
    }
}

/// Chunks of another trace, with all checksums right.
#[test]
fn chunks_must_be_those_of_the_fold() {
    let trace = |blocks: [u8; 4]| {
        let blocks = blocks.map(Step::Block);
        vec![[&[Step::Call(0)][..], &blocks, &[Step::Return]].concat()]
    };
    let file = |blocks| archive_of(&fold_of(&trace(blocks), true, &Outermost::default()), 3);
    let section_of = |file: &[u8]| {
        let archive = Archive::open(Cursor::new(file)).unwrap();
        let sections = archive.segments()[0].sections();
        let section = sections.iter().find(|section| section.kind() == SectionKind::Chunks).unwrap();
        section.offset() as usize..(section.offset() + section.length()) as usize
    };
    let (mut mixed, other) = (file([0, 1, 1, 1]), file([0, 1, 0, 0]));
    let range = section_of(&mixed);
    mixed[range].copy_from_slice(&other[section_of(&other)]);
    archive::reseal(&mut mixed);
    let error = verify(&mixed).unwrap_err().to_string();
    assert!(error.contains("chunk 2 of 2") && error.contains("does not have the events"), "{error}");
    // Of another shape, they are not used.
    let (fold, _) = open(&mixed);
    let longer = fold_of(&[[trace([0; 4]), trace([0; 4])].concat().concat()], true, &Outermost::default());
    let longer = archive_of(&longer, 3);
    let query = query_of(fold.alphabet(), 0, &[vec![0]]).unwrap();
    let (_, chunks) = open(&longer);
    assert!(scan_with(Scheme::Chunks, &fold, Some(&chunks), &query, &ScanConfig::new()).is_err());
}

/// The example of section 4.3: chunk 4 has nothing of F and two calls that stay open.
#[test]
fn states_behind_a_chunk_that_is_passed_over() {
    let [f1, g, main] = [0, 1, 2];
    let (b1, b2, b3) = (Step::Block(1), Step::Block(2), Step::Block(3));
    let before = [
        vec![Step::Call(main), b1, Step::Call(f1), b1, b2],
        vec![Step::Call(f1), b1, b2, Step::Return, b3],
        vec![Step::Return, b3, b3, b3, b3],
    ]
    .concat();
    let fourth = vec![Step::Call(g), b1, b2, Step::Call(g), b2];
    let trace = [before.clone(), fourth].concat();
    let fold = fold_of(std::slice::from_ref(&trace), false, &Outermost::default());
    let file = archive_of(&fold, 5);
    let (fold, chunks) = open(&file);
    let query = query_of(fold.alphabet(), f1, &[vec![1], vec![2], vec![3]]).unwrap();
    let symbols: Vec<Symbol> = fold.unfold(fold.streams()[0].root()).collect();
    let mut scan = PathScan::new(&query);
    scan.feed(&symbols[..before.len()]);
    assert_eq!(scan.states(), [None]); // Q7
    let levels = chunks.all()[3].levels();
    assert_eq!((levels.leaves, levels.enters, levels.lowest_return()), (0, 2, None));
    scan.pass_over(5, levels);
    assert_eq!(scan.states(), [None, None, None]); // Q10
    // Frames that are left in a chunk that is passed over are gone, too.
    let levels = Levels::new(fold.alphabet());
    let leave = levels.symbol(symbols[8]);
    scan.pass_over(3, &levels.repeat(&leave, 7).unwrap());
    assert_eq!(scan.states(), []);
    let found = scan_with(Scheme::Chunks, &fold, Some(&chunks), &query, &ScanConfig::new()).unwrap();
    let effort = found.effort.chunks.unwrap();
    assert_eq!((effort.touched, effort.all), (3, 4));
    assert_eq!(found.found.first_place().unwrap(), Some(PathPlace { stream: id(0), end: 9, depth: 1 }));
}

/// A fold may claim any number of events: what is scanned has a limit, and what holds
/// nothing costs nothing.
#[test]
fn folds_of_too_many_events() {
    let (small, query) = {
        let trace = vec![Step::Call(0), Step::Block(0), Step::Return, Step::Call(1), Step::Block(1)];
        let fold = fold_of(&[trace], true, &Outermost::default());
        let query = query_of(fold.alphabet(), 0, &[vec![0]]).unwrap();
        (fold, query)
    };
    let symbols: Vec<Symbol> = small.unfold(small.streams()[0].root()).collect();
    let other = Item::new(Target::Symbol(symbols[4]), 1 << 60);
    let mut body: Vec<Item> = symbols.iter().map(|&symbol| Item::once(symbol)).collect();
    body.pop();
    body.push(other);
    body.extend(symbols[..3].iter().map(|&symbol| Item::once(symbol)));
    let mut builder = FoldBuilder::new(small.alphabet().clone());
    let root = builder.rule(&body).unwrap();
    builder.stream(FoldedStream::new("long", "by hand", root));
    let fold = builder.finish();
    let options = ScanConfig::new().most_symbols(1 << 22);
    assert!(
        scan_with(Scheme::Unfolded, &fold, None, &query, &options).err().unwrap().kind()
            == loopfold::ErrorKind::Limit
    );
    let found = scan_with(Scheme::Chunks, &fold, None, &query, &options).unwrap();
    assert_eq!(found.found.count_all().unwrap(), 2);
    let mut ends = Vec::new();
    let given = found.found.each_in(id(0), 0, &mut |place| {
        ends.push(place.end);
        true
    });
    given.unwrap();
    assert_eq!(ends, [1, (1 << 60) + 5]);
    let effort = found.effort.chunks.unwrap();
    assert_eq!((effort.touched, effort.all), (2, (1 << 40) + 1));
    let config = sections::write_config(None, Some(ChunkSize::default()));
    assert!(
        archive::write_with(&fold, std::io::sink(), &config).unwrap_err().kind()
            == loopfold::ErrorKind::Limit
    );
}

/// Symbols past the scan's table, which has 65,536, and blocks of more classes than fit a
/// byte.
#[test]
fn scanning_large_alphabets() {
    let mut rng = Rng::new(95);
    let mut alphabet = Alphabet::default();
    let owner = [Field { key: "function", value: Value::Text(b"f") }];
    let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("f") }, None).unwrap();
    let leave = Event { role: Role::Leave, fields: &owner, ..Event::named("return") };
    let leave = alphabet.intern(&leave, None).unwrap();
    let block = |number: u64, alphabet: &mut Alphabet| {
        let event = Event { role: Role::Block, fields: &owner, ..Event::integer(number) };
        alphabet.intern(&event, None).unwrap()
    };
    let mut blocks: Vec<Symbol> = (0..200).map(|number| block(number, &mut alphabet)).collect();
    let others: Vec<Symbol> =
        (0..70_000).map(|number| alphabet.intern(&Event::integer(number), None).unwrap()).collect();
    blocks.extend((200..256).map(|number| block(number, &mut alphabet)));
    let functions = Functions::of(&alphabet).unwrap();
    let function = functions.named(b"f").unwrap();
    // Every block stands for other places.
    let by_bits = |bit: usize| (0..=255u8).filter(|block| bit == 8 || block >> bit & 1 == 1).collect();
    let all_classes: Vec<Vec<u8>> = (0..9).map(by_bits).collect();
    for round in 0..400 {
        // In early rounds no symbol that matters lies past the table.
        let most = [3, 200, 256][round % 3];
        let path = if rng.one_in(2) { all_classes.clone() } else { vec![vec![0], vec![1], vec![0, 2]] };
        let path: Vec<Vec<u8>> = path
            .into_iter()
            .map(|any| any.into_iter().filter(|&b| usize::from(b) < most).collect())
            .collect();
        if path.iter().any(Vec::is_empty) {
            continue;
        }
        let (mut trace, mut symbols, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        let (calls, filled) = (rng.between(2, 40), rng.between(1, 5));
        for _ in 0..rng.between(1, 2_000) {
            let step = match rng.below(calls) {
                0 => Step::Call(0),
                1 => Step::Return,
                _ => Step::Block(rng.below(most) as u8),
            };
            positions.push(symbols.len() as u64);
            symbols.push(match step {
                Step::Call(_) => enter,
                Step::Return => leave,
                Step::Block(block) => blocks[usize::from(block)],
            });
            trace.push(step);
            symbols.extend((0..rng.below(filled)).map(|_| others[rng.below(others.len())]));
            if rng.one_in(50) {
                symbols.extend((0..200).map(|_| others[65_000 + rng.below(5_000)]));
            }
        }
        let of_blocks =
            path.iter().map(|any| any.iter().map(|&b| blocks[usize::from(b)]).collect()).collect();
        let query = PathQuery::new(&functions, function, of_blocks).unwrap();
        let (mut scan, mut ends) = (PathScan::new(&query), Vec::new());
        scan.feed_each(&symbols, |end, depth| ends.push((end, depth)));
        let found = calls::plain_paths(&trace, 0, &path);
        let expected: Vec<_> = found.iter().map(|found| (positions[found.end], found.depth as u64)).collect();
        assert_eq!(ends, expected);
        let mut counting = PathScan::new(&query);
        symbols.chunks(rng.between(1, 500)).for_each(|part| counting.feed(part));
        assert_eq!((counting.count(), counting.first()), (scan.count(), scan.first()));
    }
}

/// Opening reads the directory, and a search the chunks that it needs.
#[test]
fn chunks_are_read_when_they_are_asked_for() {
    struct Counting<'a>(Cursor<&'a [u8]>, &'a AtomicU64);
    impl std::io::Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1.fetch_add(read as u64, Ordering::Relaxed);
            Ok(read)
        }
    }
    impl std::io::Seek for Counting<'_> {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }
    let mut rng = Rng::new(96);
    let mut trace = vec![Step::Call(0), Step::Block(0), Step::Return, Step::Call(1)];
    trace.extend((0..100_000).map(|_| Step::Block(rng.below(4) as u8)));
    let file = archive_of(&fold_of(&[trace], true, &Outermost::default()), 10_000);
    let (fold, all) = open(&file);
    let query = query_of(fold.alphabet(), 0, &[vec![0]]).unwrap();
    let read = AtomicU64::new(0);
    let chunks = chunks_of(Counting(Cursor::new(&file), &read)).unwrap();
    assert!(read.load(Ordering::Relaxed) < 1_000 && file.len() > 20_000);
    let opened = read.load(Ordering::Relaxed);
    let found = scan_with(Scheme::Chunks, &fold, Some(&chunks), &query, &ScanConfig::new()).unwrap();
    assert_eq!(found.found.count_all().unwrap(), 1);
    assert_eq!(read.load(Ordering::Relaxed) - opened, all.all()[0].bytes());
    assert_eq!((found.effort.symbols, found.effort.decompressed_bytes), (10_000, 40_000));
}
