//! The archive: what is written is read back, damage is found, and nothing that a file
//! claims is believed. `kept_archives.rs` reads files of every version, and
//! `damaged_archives.rs` changes what checksums would hide.

use crate::support::archive::{real, segments, whole, written};
use loopfold::archive::{self, Archive, ReadConfig, SectionKind};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Column, Event, Field, Name, Role, Times, Value};
use loopfold::{Error, Fold, Result, RuleId, Symbol};
use loopfold_testing::Rng;
use std::io::Cursor;

const ALL: ReadConfig = ReadConfig::new().times(true).lenient(false);
const LENIENT: ReadConfig = ReadConfig::new().times(true).lenient(true);

fn read(file: &[u8], options: &ReadConfig) -> Result<Fold> {
    archive::read(Cursor::new(file), options).map(|(fold, _)| fold)
}

fn alphabet(size: usize) -> (Alphabet, Vec<Symbol>) {
    let mut alphabet = Alphabet::default();
    let symbols = (0..size).map(|index| alphabet.intern(&Event::named(&format!("event {index}")), None));
    let symbols = symbols.collect::<Result<_>>().unwrap();
    (alphabet, symbols)
}

/// A fold with rules in rules, counts of all sizes, shared and empty roots, times.
fn random_fold(random: &mut Rng) -> Fold {
    let (alphabet, symbols) = random_alphabet(random);
    let mut builder = FoldBuilder::new(alphabet);
    let mut rules: Vec<RuleId> = Vec::new();
    for _ in 0..random.below(12) {
        let body = random_body(random, &symbols, &rules, 2);
        rules.extend(builder.rule(&body).ok());
    }
    let mut roots: Vec<RuleId> = Vec::new();
    for index in 0..random.below(5) {
        let root = match roots.last() {
            Some(&root) if random.one_in(3) => root,
            _ if random.one_in(8) => builder.rule(&[]).unwrap(),
            _ if !rules.is_empty() && random.one_in(4) => rules[random.below(rules.len())],
            _ => {
                let body = random_body(random, &symbols, &rules, 1);
                builder.rule(&body).unwrap_or_else(|_| builder.rule(&[]).unwrap())
            }
        };
        roots.push(root);
        let name = if random.one_in(5) { "twin".to_string() } else { format!("rank {index}") };
        let folder = ["outermost", "sequitur", &"long".repeat(30)][random.below(3)].to_string();
        let notes = (0..random.below(3)).map(|note| (format!("note {note}"), "väl".repeat(note))).collect();
        builder.stream(FoldedStream::new(name, folder, root).with_notes(notes));
    }
    with_random_times(builder.finish(), random)
}

fn random_alphabet(random: &mut Rng) -> (Alphabet, Vec<Symbol>) {
    let mut alphabet = Alphabet::default();
    let mut symbols = Vec::new();
    for index in 0..1 + random.below(9) {
        let text = [b'a' + index as u8, 0xff];
        let fields = [Field { key: "peer", value: Value::Integer(index as i64 - 3) }];
        let name = match random.below(3) {
            0 => Name::Integer(random.next_u64() >> random.below(64)),
            _ => Name::Text(&text[..1 + random.below(2)]),
        };
        let fields = &fields[..random.below(2)];
        let role = if random.one_in(2) { Role::Plain } else { Role::Send };
        symbols.push(alphabet.intern(&Event { name, role, fields }, None).unwrap());
    }
    (alphabet, symbols)
}

fn random_body(random: &mut Rng, symbols: &[Symbol], rules: &[RuleId], least: usize) -> Vec<Item> {
    let length = least + random.below(6);
    (0..length)
        .map(|_| {
            let target = if !rules.is_empty() && random.one_in(3) {
                Target::Rule(rules[random.below(rules.len())])
            } else {
                Target::Symbol(symbols[random.below(symbols.len())])
            };
            let times = if random.one_in(3) { 1 + (random.next_u64() >> (24 + random.below(40))) } else { 1 };
            Item::new(target, times)
        })
        .collect()
}

/// Gives times to streams that are short enough.
fn with_random_times(fold: Fold, random: &mut Rng) -> Fold {
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let renamed = builder.append_rules(&fold, Ok).unwrap();
    for stream in fold.streams() {
        let events = fold.length(stream.root());
        let mut times = Times::default();
        if events < 1000 && random.one_in(2) {
            times.starts = random.one_in(2).then(|| whole(events, |index| index * 100));
            times.durations = random.one_in(2).then(|| whole(events, |index| index % 7 - 1));
            if random.one_in(2) {
                times.metrics.push(("flops".into(), real(events, |index| index / 3.0)));
            }
        }
        let copy =
            FoldedStream::new(stream.name().raw(), stream.folder().raw(), renamed[stream.root().index()]);
        builder.stream(copy.with_notes(stream.notes().to_vec()).with_times(times));
    }
    builder.finish()
}

fn one_stream(alphabet: Alphabet, build: impl FnOnce(&mut FoldBuilder) -> RuleId) -> Fold {
    let mut builder = FoldBuilder::new(alphabet);
    let root = build(&mut builder);
    builder.stream(FoldedStream::new("main", "outermost", root));
    builder.finish()
}

#[test]
fn random_folds_come_back_in_canonical_form() {
    for seed in 0..4000 {
        let fold = random_fold(&mut Rng::new(seed));
        let file = written(&fold);
        let again = read(&file, &ALL).unwrap();
        assert_eq!(again, fold.canonical(), "seed {seed}");
        assert_eq!(written(&again), file, "seed {seed}");
        for (old, new) in fold.streams().iter().zip(again.streams()) {
            assert_eq!(fold.length(old.root()), again.length(new.root()));
            if fold.length(old.root()) < 1000 {
                let labels = |fold: &Fold, rule| -> Vec<String> {
                    fold.unfold(rule).map(|symbol| fold.alphabet().label(symbol)).collect()
                };
                assert_eq!(labels(&fold, old.root()), labels(&again, new.root()), "seed {seed}");
            }
        }
    }
}

#[test]
fn the_smallest_folds() {
    assert_eq!(read(&written(&Fold::default()), &ALL).unwrap(), Fold::default());
    assert_eq!(written(&Fold::default()).len(), 14);
    let (names, symbols) = alphabet(3);
    let empty = one_stream(names.clone(), |builder| builder.rule(&[]).unwrap());
    assert_eq!(read(&written(&empty), &ALL).unwrap(), empty.canonical());
    assert_eq!(empty.canonical().alphabet().len(), 0);
    let one = one_stream(names, |builder| builder.rule(&[Item::once(symbols[1])]).unwrap());
    let again = read(&written(&one), &ALL).unwrap();
    assert_eq!(again.nest_text(again.streams()[0].root()), "event 1");
    assert_eq!(again.alphabet().len(), 1);
}

#[test]
fn an_item_that_repeats_nothing_is_refused() {
    let fold = one_stream(Alphabet::default(), |builder| {
        let empty = builder.rule(&[]).unwrap();
        builder.rule(&[Item::new(Target::Rule(empty), 2)]).unwrap()
    });
    assert!(archive::write(&fold, Vec::new()).is_err());
}

#[test]
fn a_hundred_thousand_rules_deep() {
    let (names, symbols) = alphabet(2);
    let fold = one_stream(names, |builder| {
        let mut rule = builder.rule(&[Item::once(symbols[0]), Item::once(symbols[1])]).unwrap();
        for depth in 0..100_000 {
            let symbol = symbols[depth % 2];
            rule = builder.rule(&[Item::new(Target::Rule(rule), 1), Item::once(symbol)]).unwrap();
        }
        rule
    });
    let file = written(&fold);
    assert_eq!(read(&file, &ALL).unwrap(), fold.canonical());
}

/// The nest of LU as the papers print it, in spirit: 69 symbols, 30 names, two levels.
fn lu_like() -> Fold {
    let mut alphabet = Alphabet::default();
    let names: Vec<Symbol> =
        (b'A'..=b'^').map(|letter| alphabet.intern(&Event::named(&[letter]), None).unwrap()).collect();
    assert_eq!(names.len(), 30);
    one_stream(alphabet, |builder| {
        let mut random = Rng::new(8);
        let mut some = |count: usize| -> Vec<Item> {
            (0..count).map(|_| Item::once(names[random.below(names.len())])).collect()
        };
        let sweep = some(2);
        let sweep = builder.repeat(&sweep, 100).unwrap();
        let mut step = some(10);
        step.push(sweep);
        step.extend(some(4));
        let step = builder.repeat(&step, 249).unwrap();
        let mut root: Vec<Item> = names.iter().map(|&name| Item::once(name)).collect();
        root.push(step);
        root.extend(some(21));
        builder.rule(&root).unwrap()
    })
}

#[test]
fn a_small_nest_makes_a_small_file() {
    let fold = lu_like();
    let file = written(&fold);
    let sizes = archive::sizes(Cursor::new(&file)).unwrap();
    println!("{} items: {sizes:?}", fold.items());
    assert!(file.len() < 220, "{}", file.len());
    assert_eq!(sizes.total, file.len() as u64);
    assert!(sizes.framing < 40);
}

#[test]
fn streams_that_share_a_root_cost_almost_nothing() {
    let (names, symbols) = alphabet(20);
    let with_streams = |count: usize| {
        let mut builder = FoldBuilder::new(names.clone());
        let mut random = Rng::new(1);
        let roots: Vec<RuleId> =
            (0..4).map(|_| builder.rule(&random_body(&mut random, &symbols, &[], 20)).unwrap()).collect();
        (0..count).for_each(|index| builder.stream(FoldedStream::new("", "", roots[index % 4])));
        archive::sizes(Cursor::new(written(&builder.finish()))).unwrap().rules
    };
    let (few, many) = (with_streams(4), with_streams(4004));
    assert!(many - few < 1100, "{few} {many}");
}

#[test]
fn random_events_take_little_more_than_their_entropy() {
    for kinds in [2, 3, 100, 256, 1000, 5000] {
        let (names, symbols) = alphabet(kinds);
        let count = 100_000;
        let mut random = Rng::new(kinds as u64);
        let body: Vec<Item> = (0..count).map(|_| Item::once(symbols[random.below(kinds)])).collect();
        let fold = one_stream(names, |builder| builder.rule(&body).unwrap());
        let rules = archive::sizes(Cursor::new(written(&fold))).unwrap().rules;
        let entropy = count as f64 * (kinds as f64).log2() / 8.0;
        println!("{kinds} kinds: {rules} bytes, entropy {entropy:.0}");
        assert!(rules as f64 <= 1.02 * entropy + 200.0, "{kinds} kinds: {rules} bytes, entropy {entropy:.0}");
    }
}

/// A fold that has everything in it and still is small.
fn varied(seed: u64) -> Fold {
    let mut random = Rng::new(seed);
    loop {
        let fold = random_fold(&mut random);
        let has_all = fold.streams().iter().any(|stream| {
            let times = stream.times();
            times.starts.is_some() && times.durations.is_some() && !times.metrics.is_empty()
        });
        let is_short = fold.events().is_some_and(|events| events < 10_000);
        if has_all && is_short && fold.streams().len() > 1 && fold.rules().len() > 3 {
            return fold;
        }
    }
}

#[test]
fn every_changed_bit_is_found() {
    let (first, second) = (varied(1), varied(2));
    let file = segments(&[&first, &second]);
    assert!(read(&file, &ALL).is_ok());
    for position in 0..file.len() {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[position] ^= 1 << bit;
            let error = read(&changed, &ALL).expect_err("a changed bit");
            assert!(
                matches!(error.kind(), loopfold::ErrorKind::Damaged | loopfold::ErrorKind::Version),
                "byte {position}: {error}"
            );
            assert!(archive::verify(Cursor::new(&changed)).is_err());
            if let Ok((_, report)) = archive::read(Cursor::new(&changed), &LENIENT) {
                assert!(report.damage.is_some());
            }
        }
    }
}

#[test]
fn every_cut_is_found_and_what_comes_before_can_be_read() {
    let (first, second) = (varied(3), varied(4));
    let file = segments(&[&first, &second]);
    let end_of_first = segments(&[&first]).len() - 6;
    let end_of_second = file.len() - 6;
    let both = read(&file, &ALL).unwrap();
    for length in 0..file.len() {
        let cut = &file[..length];
        assert!(read(cut, &ALL).unwrap_err().kind() == loopfold::ErrorKind::Damaged, "{length}");
        if length < 8 {
            assert!(read(cut, &LENIENT).is_err());
            continue;
        }
        let (fold, report) = archive::read(Cursor::new(cut), &LENIENT).unwrap();
        let damage = report.damage.expect("a diagnosis");
        let complete = usize::from(length >= end_of_first) + usize::from(length >= end_of_second);
        assert_eq!(report.segments, complete, "{length}: {damage}");
        assert!(damage.to_string().starts_with(&format!("segment {}", complete + 1)), "{damage}");
        match complete {
            0 => assert_eq!(fold, Fold::default()),
            1 => assert_eq!(fold, first.canonical()),
            _ => assert_eq!(fold, both),
        }
    }
}

#[test]
fn errors_name_the_segment_and_the_section() {
    let mut file = segments(&[&varied(5), &varied(6)]);
    let archive = Archive::open(Cursor::new(&file)).unwrap();
    let sections = archive.segments()[1].sections();
    let section = *sections.iter().find(|section| section.kind() == SectionKind::Rules).unwrap();
    file[section.offset() as usize] ^= 0x10;
    let error = read(&file, &ALL).unwrap_err().to_string();
    assert_eq!(error, "segment 2, rules: its checksum does not fit its content");
    file.push(0);
    let error = read(&file, &ALL).unwrap_err().to_string();
    assert_eq!(error, "segment 3: there is something after the end of the last segment");
}

#[test]
fn another_version_is_not_called_damage() {
    let mut file = written(&lu_like());
    assert!(archive::looks_like(&file));
    file[7] = 3;
    assert!(archive::looks_like(&file));
    let error = read(&file, &ALL).unwrap_err().to_string();
    assert_eq!(error, "this archive is of format version 3; this program reads version 2: use a newer one");
    assert!(!archive::looks_like(b"#!/bin/sh"));
    assert!(!archive::looks_like(b""));
}

/// A file of one segment with a section of this kind after its own sections.
fn with_section(fold: &Fold, kind: u8) -> Vec<u8> {
    let file = written(fold);
    let rows = usize::from(file[9]);
    let mut changed = file[..10 + rows].to_vec();
    changed[9] += 6;
    changed.extend_from_slice(&[kind, 3, 0, 0, 0, 0]);
    changed.extend_from_slice(&file[10 + rows..]);
    changed.extend_from_slice(b"new");
    archive::reseal(&mut changed);
    changed
}

#[test]
fn unknown_sections_are_passed_over_only_if_that_is_allowed() {
    let fold = lu_like();
    let optional = with_section(&fold, 0xff);
    assert_eq!(read(&optional, &ALL).unwrap(), fold.canonical());
    assert_eq!(archive::sizes(Cursor::new(&optional)).unwrap().unknown, 3);
    assert!(archive::verify(Cursor::new(&optional)).is_ok());
    let mut damaged = optional;
    *damaged.last_mut().unwrap() ^= 1;
    assert!(archive::verify(Cursor::new(&damaged)).is_err());
    let error = read(&with_section(&fold, 9), &ALL).unwrap_err().to_string();
    assert_eq!(error, "segment 1, section of kind 9: this program does not know what it is");
    assert!(read(&with_section(&fold, 1), &ALL).unwrap_err().to_string().contains("twice"));
}

#[test]
fn times_are_read_only_when_wanted() {
    /// Counts the bytes that are read.
    struct Counting<'a>(Cursor<&'a [u8]>, &'a std::cell::Cell<usize>);
    impl std::io::Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }
    impl std::io::Seek for Counting<'_> {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }
    let (names, symbols) = alphabet(1);
    let mut builder = FoldBuilder::new(names);
    let events = 100_000;
    let root = builder.rule(&[Item::new(Target::Symbol(symbols[0]), events)]).unwrap();
    let mut random = Rng::new(1);
    let noise: Vec<i64> = (0..events).map(|_| (random.next_u64() >> 40) as i64).collect();
    let times = Times { durations: Some(whole(events, |index| noise[index as usize])), ..Times::default() };
    builder.stream(FoldedStream::new("main", "outermost", root).with_times(times));
    let fold = builder.finish();
    let file = written(&fold);
    assert!(file.len() > 200_000);
    let read_bytes = std::cell::Cell::new(0);
    let counting = Counting(Cursor::new(&file), &read_bytes);
    let (without, _) = archive::read(counting, &ReadConfig::new().times(false)).unwrap();
    assert!(without.streams()[0].times().is_empty());
    assert!(read_bytes.get() < 1000, "{}", read_bytes.get());
    let with = read(&file, &ALL).unwrap();
    assert_eq!(with, fold);
    let before = |fold: &Fold, index| {
        fold.streams()[0].times().durations.as_ref().unwrap().reader().sum_before(index).unwrap().whole
    };
    for index in [0, 5, 32_768, 70_000, 100_000] {
        assert_eq!(before(&with, index), noise[..index].iter().map(|&value| i128::from(value)).sum::<i128>());
    }
    let verified = archive::verify(Cursor::new(&file)).unwrap();
    assert_eq!((verified.values, verified.events), (100_000, Some(100_000)));
}

#[test]
fn two_hundred_bytes_may_claim_two_to_the_sixty_events() {
    let (names, symbols) = alphabet(2);
    let fold = one_stream(names, |builder| {
        let mut item = Item::once(symbols[0]);
        for _ in 0..6 {
            item = builder.repeat(&[item, Item::once(symbols[1])], 1000).unwrap();
        }
        builder.rule(&[Item::new(item.target(), 1000), Item::once(symbols[1])]).unwrap()
    });
    let file = written(&fold);
    assert!(file.len() <= 200, "{}", file.len());
    let again = read(&file, &ALL).unwrap();
    assert!(again.events().unwrap() > 1 << 59);
    assert_eq!(again, fold.canonical());
    assert_eq!(archive::verify(Cursor::new(&file)).unwrap().events, again.events());
}

#[test]
fn segments_are_joined_stream_by_stream() {
    let part = |names: &[&str], streams: &[&str], start: i64| {
        let mut alphabet = Alphabet::default();
        let body: Vec<Item> = names
            .iter()
            .map(|name| Item::once(alphabet.intern(&Event::named(name), None).unwrap()))
            .collect();
        let mut builder = FoldBuilder::new(alphabet);
        let loops = builder.repeat(&body, 3).unwrap();
        let root = builder.rule(&[loops, body[0]]).unwrap();
        let events = 3 * names.len() as u64 + 1;
        for stream in streams {
            let times = Times { starts: Some(whole(events, |index| start + index)), ..Times::default() };
            let notes = vec![("start".to_string(), start.to_string())];
            builder.stream(FoldedStream::new(*stream, "outermost", root).with_notes(notes).with_times(times));
        }
        builder.finish()
    };
    let first = part(&["a", "b"], &["main", "early"], 0);
    let second = part(&["b", "c"], &["main", "late"], 100);
    let third = part(&["a", "b"], &["main", "early"], 200);
    let fold = read(&segments(&[&first, &second, &third, &third]), &ALL).unwrap();
    let names: Vec<&str> = fold.streams().iter().map(|stream| stream.name().raw()).collect();
    assert_eq!(names, ["main", "early", "late"]);
    let nest = |index: usize| fold.nest_text(fold.streams()[index].root());
    assert_eq!(nest(0), "(a b)^3 a (b c)^3 b ((a b)^3 a)^2");
    assert_eq!(nest(1), "((a b)^3 a)^3");
    assert_eq!(nest(2), "(b c)^3 b");
    assert!(fold.streams()[0].has_note("start", "200"));
    let starts = fold.streams()[0].times().starts.as_ref().unwrap().values().unwrap();
    let expected = [0, 100, 200, 200].into_iter().flat_map(|start| start..start + 7);
    assert_eq!(starts, expected.collect::<Vec<i64>>());
    assert_eq!(fold, fold.canonical());
    assert_eq!(read(&written(&fold), &ALL).unwrap(), fold);
}

#[test]
fn joined_segments_unfold_to_the_same_events() {
    for seed in 0..300 {
        let mut random = Rng::new(seed);
        let folds: Vec<Fold> = (0..3).map(|_| random_fold(&mut random)).collect();
        let joined = read(&segments(&folds.iter().collect::<Vec<_>>()), &ReadConfig::new().times(false));
        let Ok(joined) = joined else { continue };
        assert_eq!(joined, joined.canonical());
        for stream in joined.streams().iter().filter(|stream| stream.name() != "twin") {
            if joined.length(stream.root()) > 2000 {
                continue;
            }
            let labels = |fold: &Fold, stream: &FoldedStream| -> Vec<String> {
                fold.unfold(stream.root()).map(|symbol| fold.alphabet().label(symbol)).collect()
            };
            let parts = folds.iter().flat_map(|fold| fold.streams().iter().map(move |part| (fold, part)));
            let parts = parts.filter(|(_, part)| part.name() == stream.name());
            let expected: Vec<String> = parts.flat_map(|(fold, part)| labels(fold, part)).collect();
            assert_eq!(labels(&joined, stream), expected);
        }
    }
}

#[test]
fn times_missing_in_a_segment_are_filled_up() {
    let (names, symbols) = alphabet(1);
    let part = |events: u64, times: Times| {
        let mut builder = FoldBuilder::new(names.clone());
        let root = builder.rule(&[Item::new(Target::Symbol(symbols[0]), events)]).unwrap();
        builder.stream(FoldedStream::new("main", "outermost", root).with_times(times));
        builder.finish()
    };
    let durations = Times { durations: Some(whole(2, |index| index)), ..Times::default() };
    let metrics = Times { metrics: vec![("m".into(), real(1, |_| 8.0))], ..Times::default() };
    let fold = read(&segments(&[&part(3, Times::default()), &part(2, durations), &part(1, metrics)]), &ALL);
    let fold = fold.unwrap();
    let times = fold.streams()[0].times();
    assert_eq!(times.durations.as_ref().unwrap().values().unwrap(), [-1, -1, -1, 0, 1, -1]);
    assert_eq!(times.metrics[0].1.values().unwrap()[5], 8.0);
    assert!(times.metrics[0].1.values().unwrap()[..5].iter().all(|value| value.is_nan()));
    assert_eq!(fold.nest_text(fold.streams()[0].root()), "(event 0)^6");
    let endless = part(1 << 60, Times::default());
    let durations = Times { durations: Some(whole(2, |index| index)), ..Times::default() };
    assert!(
        read(&segments(&[&endless, &part(2, durations)]), &ALL).unwrap_err().kind()
            == loopfold::ErrorKind::Limit
    );
}

/// An empty stream with as many notes and metrics.
fn with_many_names(count: usize) -> Fold {
    let mut builder = FoldBuilder::new(Alphabet::default());
    let root = builder.rule(&[]).unwrap();
    let notes = (0..count).map(|number| (format!("key {number}"), number.to_string())).collect();
    let metrics = (0..count).map(|number| (format!("metric {number}"), Column::default())).collect();
    let times = Times { metrics, ..Times::default() };
    builder.stream(FoldedStream::new("main", "outermost", root).with_notes(notes).with_times(times));
    builder.finish()
}

/// Searching each of them among all others would take minutes.
#[test]
fn many_notes_and_metrics_are_joined() {
    let fold = read(&segments(&[&with_many_names(50_000), &with_many_names(100_000)]), &ALL).unwrap();
    assert_eq!(fold, with_many_names(100_000));
}

/// Sums are a list with a place for every rule, so those of many metrics from one segment
/// and many rules from another would fill the memory.
#[test]
fn many_metrics_of_many_rules_are_refused() {
    let (names, symbols) = alphabet(2);
    let many_rules = |count: usize| {
        one_stream(names.clone(), |builder| {
            let rules = 2..2 + count as u64;
            let body: Vec<Item> = rules.map(|times| Item::new(Target::Symbol(symbols[0]), times)).collect();
            let pairs = body.iter().map(|&item| builder.rule(&[item, Item::once(symbols[1])]).unwrap());
            let pairs: Vec<Item> = pairs.map(|rule| Item::new(Target::Rule(rule), 1)).collect();
            builder.rule(&pairs).unwrap()
        })
    };
    let many_metrics = |count: usize| {
        let mut builder = FoldBuilder::new(names.clone());
        let root = builder.rule(&[Item::once(symbols[0])]).unwrap();
        let metrics = (0..count).map(|number| (number.to_string(), real(1, |_| 1.5))).collect();
        let times = Times { metrics, ..Times::default() };
        builder.stream(FoldedStream::new("measured", "outermost", root).with_times(times));
        loopfold::questions::rule_sums::summarize(builder.finish()).unwrap()
    };
    let joined = |rules, metrics| read(&segments(&[&many_rules(rules), &many_metrics(metrics)]), &ALL);
    assert_eq!(joined(100, 100).unwrap().rule_sums().unwrap().metrics.len(), 100);
    assert!(joined(20_000, 1000).unwrap_err().kind() == loopfold::ErrorKind::Limit);
}

#[test]
fn a_fold_with_too_few_times_is_not_written() {
    let (names, symbols) = alphabet(1);
    let mut builder = FoldBuilder::new(names);
    let root = builder.rule(&[Item::once(symbols[0])]).unwrap();
    let times = Times { starts: Some(whole(2, |index| index)), ..Times::default() };
    builder.stream(FoldedStream::new("main", "outermost", root).with_times(times));
    assert!(archive::write(&builder.finish(), Vec::new()).is_err());
}

#[test]
fn changed_sections_with_good_checksums_never_panic() {
    let mut survivors = 0;
    for seed in 0..60 {
        let mut random = Rng::new(seed);
        let file = segments(&[&varied(seed), &varied(seed + 1000)]);
        for _ in 0..150 {
            let mut changed = file.clone();
            for _ in 0..1 + random.below(3) {
                let position = 8 + random.below(changed.len() - 8);
                changed[position] = random.next_u64() as u8;
            }
            archive::reseal(&mut changed);
            if let Ok(fold) = read(&changed, &ALL) {
                survivors += 1;
                if fold.events().is_some_and(|events| events < 1_000_000) {
                    assert_eq!(read(&written(&fold), &ALL).unwrap(), fold);
                }
            }
            let _ = archive::verify(Cursor::new(&changed));
            let _ = archive::read(Cursor::new(&changed), &LENIENT);
        }
    }
    assert!(survivors > 100, "only {survivors} changed files could be read");
}

#[test]
fn random_bytes_never_panic() {
    let head = &written(&Fold::default())[..8];
    for seed in 0..3000 {
        let mut random = Rng::new(seed);
        let length = random.below(200);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        assert!(read(&bytes, &ALL).is_err());
        bytes.splice(..0, head.iter().copied());
        assert!(read(&bytes, &ALL).is_err());
        // As one section of each kind.
        for kind in 1..=6 {
            let mut file = head.to_vec();
            file.extend_from_slice(&[b'E', 7, kind]);
            file.extend_from_slice(&[length as u8 | 0x80, (length >> 7) as u8]);
            file.extend_from_slice(&[0; 8]);
            file.extend_from_slice(&bytes[8..]);
            archive::reseal(&mut file);
            let _ = read(&file, &ALL);
        }
    }
}

/// A file of one segment with these sections, as `docs/archive.md` says.
fn by_hand(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut file = b"\x89fold\r\n".to_vec();
    file.extend_from_slice(&[2, b'E', 6 * sections.len() as u8]);
    for &(kind, content) in sections {
        file.extend_from_slice(&[kind, content.len() as u8, 0, 0, 0, 0]);
    }
    file.extend_from_slice(&[0; 4]);
    sections.iter().for_each(|(_, content)| file.extend_from_slice(content));
    archive::reseal(&mut file);
    file
}

#[test]
fn claims_are_not_believed() {
    const HUGE: [u8; 9] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let claim = |before: &[u8]| [before, &HUGE, &[1, 2, 3]].concat();
    let one_stream: &[u8] = &[0, 1, 1, b'f', 1, 1, b'm', 1, 0];
    // A frame that says it is a run of 2^24 zero bytes.
    let run = [1, 0xa0, 0, 0, 0, 1, 0x03, 0, 0x40, 0];
    // A byte for how the rules are coded: with context, and without.
    let refused = |sections: &[(u8, &[u8])], expected: &str| {
        let error = read(&by_hand(sections), &ALL).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&[(1, &claim(&[0]))], "streams: it ends too early");
    refused(&[(1, &claim(&[0, 0]))], "streams: it ends too early");
    refused(&[(1, &[0, 0, 1, 1, b'm', 99])], "streams: a word that is not there");
    refused(&[(1, &run)], "streams: ");
    refused(&[(2, &claim(&[0]))], "alphabet: it ends too early");
    for way in [4, 0x84] {
        let too_many = "rules: more items are claimed than these bytes can hold";
        refused(&[(1, one_stream), (3, &claim(&[way]))], too_many);
        refused(&[(1, one_stream), (3, &[way, 9, 1, 2, 3])], "rules: ");
        let empty: &[u8] = &[way, 0];
        let read = read(&by_hand(&[(1, one_stream), (3, empty)]), &ALL);
        assert_eq!(read.unwrap().events(), Some(0));
        refused(&[(1, one_stream), (3, empty), (4, &claim(&[0]))], "starts: it ends too early");
        let metrics = claim(&[0, 1, b'x']);
        refused(&[(1, one_stream), (3, empty), (6, &metrics)], "metrics: it ends too early");
    }
    refused(&[(1, one_stream), (3, &[0, 0])], "an unknown coding");
    refused(&[(1, &claim(&[2]))], "more text is claimed");
    refused(&[(2, &claim(&[2, 1]))], "more text is claimed");
    // No text of more than 2^15 bytes is modelled, whatever the length of the section.
    let long = |length: u8| [&[2, 1, 0x80, 0x80, length][..], &[7; 100]].concat();
    let error = |length| read(&by_hand(&[(2, &long(length))]), &ALL).unwrap_err().to_string();
    assert!(error(3).contains("more text is claimed"), "{}", error(3));
    assert!(!error(2).contains("more text is claimed"), "{}", error(2));
}

/// Grows rules of rules of symbols, each symbol mostly followed by one of a few, as the
/// grammar of a long trace has them.
struct Grower {
    random: Rng,
    symbols: Vec<Symbol>,
    /// For each symbol, by index, what begins with it: target, last symbol, length.
    beginnings: Vec<Vec<(Target, usize, u64)>>,
}

impl Grower {
    fn item(&mut self, previous: usize) -> (Item, usize, u64) {
        let kinds = self.symbols.len();
        let usual = (previous * 7 + self.random.below(4) * self.random.below(3)) % kinds;
        let first = if self.random.one_in(10) { self.random.below(kinds) } else { usual };
        let times = if self.random.one_in(8) { 2 + self.random.below(20) as u64 } else { 1 };
        let choices = &self.beginnings[first];
        let (target, last, length) = choices[self.random.below(choices.len())];
        (Item::new(target, times), last, times * length)
    }

    fn rule(&mut self, builder: &mut FoldBuilder) -> Item {
        let first = self.random.below(self.symbols.len());
        let mut body = vec![Item::once(self.symbols[first])];
        let (mut last, mut events) = (first, 1);
        for _ in 0..1 + self.random.below(4) {
            let (item, its_last, length) = self.item(last);
            body.push(item);
            last = its_last;
            events += length;
        }
        let target = Target::Rule(builder.rule(&body).unwrap());
        if events < 1 << 30 {
            self.beginnings[first].push((target, last, events));
        }
        Item::new(target, 1)
    }
}

fn large_fold(rules: usize) -> Fold {
    let (names, symbols) = alphabet(2000);
    let beginnings = symbols.iter().enumerate();
    let beginnings = beginnings.map(|(index, &symbol)| vec![(Target::Symbol(symbol), index, 1)]).collect();
    let mut grower = Grower { random: Rng::new(42), symbols, beginnings };
    one_stream(names, |builder| {
        let root: Vec<Item> = (0..rules).map(|_| grower.rule(builder)).collect();
        builder.rule(&root).unwrap()
    })
}

#[test]
fn a_large_fold_comes_back() {
    let fold = large_fold(20_000);
    assert!(fold.items() > 50_000);
    assert_eq!(read(&written(&fold), &ALL).unwrap(), fold.canonical());
}

#[test]
fn errors_of_the_output_are_passed_on() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error: Error = archive::write(&lu_like(), Full).unwrap_err();
    assert_eq!(error.io().unwrap().kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_long_name_of_one_letter_comes_back() {
    for length in (1..3000).chain((29_000..33_000).step_by(37)) {
        let name = "a".repeat(length);
        let mut alphabet = Alphabet::default();
        let symbol = alphabet.intern(&Event::named(&name), None).unwrap();
        let mut builder = FoldBuilder::new(alphabet);
        let root = builder.rule(&[Item::once(symbol)]).unwrap();
        builder.stream(FoldedStream::new(name, "outermost", root));
        let fold = builder.finish();
        assert_eq!(read(&written(&fold), &ALL).unwrap(), fold, "{length}");
    }
}
