//! Archives that were changed and given good checksums again, so that every decoder sees
//! the damage: reading them gives an error or a fold that can be written and read back,
//! and takes little memory. It is a test program of its own: the peak it looks at is that
//! of the whole process, and tests of one program run side by side.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use loopfold::archive::{self, Archive, ReadConfig, SectionKind};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::questions::rule_sums::summarize;
use loopfold::trace::{Alphabet, Column, Event, Field, Role, Times, Value};
use loopfold::{Fold, Symbol};
use loopfold_testing::Rng;
use std::io::Cursor;

const ALL: ReadConfig = ReadConfig::new().times(true).lenient(false);
const KEPT: [&[u8]; 1] = [include_bytes!("data/v2.fold")];

fn written(fold: &Fold) -> Vec<u8> {
    let mut file = Vec::new();
    archive::write(fold, &mut file).unwrap();
    file
}

/// Reads a file in every way; returns whether it could be read.
fn survives(file: &[u8]) -> bool {
    let read = archive::read(Cursor::new(file), &ALL);
    let verified = archive::verify(Cursor::new(file));
    if let Ok((fold, _)) = &read
        && fold.events().is_some_and(|events| events < 1_000_000)
    {
        let again = written(fold);
        let (second, _) = archive::read(Cursor::new(&again), &ALL).unwrap();
        // What a file may say in another way than a writer would is said its way then.
        assert_eq!(written(&second), again);
    }
    assert!(verified.is_err() || read.is_ok());
    read.is_ok()
}

fn resealed(file: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut changed = file.to_vec();
    change(&mut changed);
    archive::reseal(&mut changed);
    changed
}

/// Small archives which together have every way of coding, each with the sections to be
/// damaged.
fn small_archives() -> Vec<Vec<u8>> {
    let names = |count: usize| -> (Alphabet, Vec<Symbol>) {
        let mut alphabet = Alphabet::default();
        let fields = [Field { key: "peer", value: Value::Integer(-6) }];
        let symbols = (0..count).map(|number| {
            let name = format!("exchange_{}_boundary", number * number);
            let event = match number % 4 {
                0 => Event { role: Role::Enter, ..Event::named(&name) },
                1 => Event::integer(0x40_0000 + 8 * number as u64),
                2 => Event { fields: &fields, role: Role::Send, ..Event::named(&name) },
                _ => Event::named(&name),
            };
            alphabet.intern(&event, None).unwrap()
        });
        let symbols = symbols.collect();
        (alphabet, symbols)
    };
    let noise = {
        let mut rng = Rng::new(1);
        let (alphabet, symbols) = names(30);
        let mut builder = FoldBuilder::new(alphabet);
        let body: Vec<Item> = (0..200).map(|_| Item::once(symbols[rng.below(30)])).collect();
        let root = builder.rule(&body).unwrap();
        for rank in 0..6 {
            let notes = vec![("host".to_string(), format!("node-{rank}.cluster.example"))];
            builder.stream(FoldedStream::new(format!("rank {rank}"), "by hand", root).with_notes(notes));
        }
        builder.finish()
    };
    let nest = |times: Times| {
        let (alphabet, symbols) = names(9);
        let mut builder = FoldBuilder::new(alphabet);
        let inner = builder.repeat(&[Item::once(symbols[0]), Item::new(Target::Symbol(symbols[1]), 2)], 3);
        let inner = inner.unwrap();
        let outer: Vec<Item> = symbols[2..].iter().flat_map(|&symbol| [Item::once(symbol), inner]).collect();
        let root = builder.rule(&outer).unwrap();
        builder.stream(FoldedStream::new("main", "outermost", root).with_times(times));
        let other = builder.rule(&[inner, outer[4]]).unwrap();
        builder.stream(FoldedStream::new("other", "outermost", other));
        builder.finish()
    };
    let usual = {
        let mut rng = Rng::new(2);
        let (alphabet, symbols) = names(30);
        let mut builder = FoldBuilder::new(alphabet);
        let mut place = 0;
        let next = |_| {
            place = (7 * place + 1 + rng.below(2)) % 30;
            Item::new(Target::Symbol(symbols[place]), if place == 8 { 3 } else { 1 })
        };
        let body: Vec<Item> = (0..400).map(next).collect();
        let mut rules = body.chunks(5).take(20).filter_map(|part| builder.rule(part).ok());
        let rules: Vec<Item> = rules.by_ref().map(|rule| Item::new(Target::Rule(rule), 1)).collect();
        let root = builder.rule(&[&body[100..], &rules, &rules[3..]].concat()).unwrap();
        builder.stream(FoldedStream::new("usual", "by hand", root));
        builder.finish()
    };
    let events = 70;
    let mut times = Times::default();
    let (mut starts, mut durations, mut metric) = (Column::default(), Column::default(), Column::default());
    for index in 0..events {
        starts.push(100 * index);
        durations.push(7 * index % 31 - 1);
        metric.push(index as f64 / 3.0);
    }
    times.starts = Some(starts);
    times.durations = Some(durations);
    times.metrics = vec![("flops".into(), metric)];
    let timed = nest(times);
    assert_eq!(timed.length(timed.streams()[0].root()), events as u64);
    let summed = summarize(timed.clone()).unwrap();
    vec![written(&noise), written(&usual), written(&timed), written(&summed)]
}

/// How much memory the process took at most, in kilobytes.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn damage_behind_good_checksums_does_no_harm() {
    let small = small_archives();
    check_ways(&small);
    let before = peak_memory();
    let survivors = every_bit(&small) + random_bytes(&small, 600);
    assert!(survivors > 100, "only {survivors} changed files could be read");
    random_bytes(&KEPT.map(<[u8]>::to_vec), 150);
    random_sections(&small);
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        println!("{before} kB before, {after} kB after");
        assert!(after - before < 64 << 10, "{before} kB before, {after} kB after");
    }
}

/// The small archives have what they are for.
fn check_ways(small: &[Vec<u8>]) {
    let first_bytes = |kind: SectionKind| -> Vec<u8> {
        let first = |file: &Vec<u8>| {
            let archive = Archive::open(Cursor::new(file)).unwrap();
            let sections = archive.segments()[0].sections().iter();
            let found: Vec<u8> = sections
                .filter(|section| section.kind() == kind)
                .map(|section| file[section.offset() as usize])
                .collect();
            found
        };
        small.iter().flat_map(first).collect()
    };
    assert!(first_bytes(SectionKind::Streams).contains(&2));
    assert!(first_bytes(SectionKind::Alphabet).contains(&2));
    let rules = first_bytes(SectionKind::Rules);
    assert!(rules.iter().any(|way| way & 0x80 == 0) && rules.iter().any(|way| way & 0x80 != 0), "{rules:?}");
    assert_eq!(first_bytes(SectionKind::Summary).len(), 1);
    assert_eq!(first_bytes(SectionKind::Metrics).len(), 1);
}

fn every_bit(files: &[Vec<u8>]) -> usize {
    let mut survivors = 0;
    for file in files {
        for bit in 8 * 8..8 * file.len() {
            let changed = resealed(file, |file| file[bit / 8] ^= 1 << (bit % 8));
            survivors += usize::from(survives(&changed));
        }
    }
    survivors
}

fn random_bytes(files: &[Vec<u8>], times: usize) -> usize {
    let mut rng = Rng::new(3);
    let mut survivors = 0;
    for file in files {
        for _ in 0..times {
            let changed = resealed(file, |file| {
                for _ in 0..rng.between(2, 12) {
                    let place = rng.between(8, file.len() - 1);
                    file[place] = rng.below(256) as u8;
                }
            });
            survivors += usize::from(survives(&changed));
        }
    }
    survivors
}

/// A section whose content is random behind its first bytes: nothing, extremes, or noise.
fn random_sections(files: &[Vec<u8>]) {
    let mut rng = Rng::new(4);
    for file in files {
        let archive = Archive::open(Cursor::new(file)).unwrap();
        for section in archive.segments()[0].sections() {
            for round in 0..60 {
                let start = section.offset() as usize + rng.below(4).min(section.length() as usize);
                let end = (section.offset() + section.length()) as usize;
                let changed = resealed(file, |file| {
                    for byte in &mut file[start..end] {
                        *byte = match round {
                            0 => 0,
                            1 => 0xff,
                            _ => rng.below(256) as u8,
                        };
                    }
                });
                survives(&changed);
            }
        }
    }
}
