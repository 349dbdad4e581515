//! An archive as an earlier program wrote it, which later programs must go on reading.
//!
//! `data/v2.fold` is made from [`version_2`] by `LOOPFOLD_MAKE_KEPT_ARCHIVE=1 cargo test -p loopfold
//! --test all kept_archives`, and never again once the format is released.

use crate::support::archive::{read_back, real, segments, whole};
use loopfold::archive::{self, Archive, SectionKind};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Spread, StreamSums, Target};
use loopfold::questions::rule_sums::summarize;
use loopfold::trace::{Alphabet, Event, Field, Role, Times, Value};
use loopfold::{Fold, Result, Symbol};
use loopfold_testing::Rng;
use std::io::Cursor;

#[test]
fn a_file_of_version_1_is_refused_with_what_to_do() {
    let error = Archive::open(Cursor::new(b"\x89fold\r\n\x01E\x00")).unwrap_err();
    assert_eq!(error.kind(), loopfold::ErrorKind::Version);
    let text = error.to_string();
    assert!(
        text.contains("version 1")
            && text.contains("never released")
            && text.contains("fold the trace again")
    );
    let newer = Archive::open(Cursor::new(b"\x89fold\r\n\x03E\x00")).unwrap_err().to_string();
    assert!(newer.contains("version 3") && newer.contains("newer"), "{newer}");
}

/// What `data/v2.fold` holds: everything that the format has.
fn version_2() -> Result<[Fold; 5]> {
    Ok([a_program()?, long_texts()?, without_structure()?, measured()?, at_last()?])
}

/// Rules in rules with counts of all sizes, roots of every kind, modelled names, fields and
/// numbers, times of more than a chunk.
fn a_program() -> Result<Fold> {
    let mut rng = Rng::new(2);
    let mut alphabet = Alphabet::default();
    let mut symbols: Vec<Symbol> = Vec::new();
    for number in 0..40 {
        let name = format!("{}_{}", ["solve", "exchange", "norm", "Wört"][number % 4], number / 4);
        let role = [Role::Enter, Role::Leave, Role::Plain, Role::Block][number / 4 % 4];
        symbols.push(alphabet.intern(&Event { role, ..Event::named(&name) }, None)?);
        let address = 0x40_1000 + 24 * number as u64 * (1 + number as u64 % 3);
        symbols.push(alphabet.intern(&Event::integer(address), None)?);
    }
    let fields = [
        Field { key: "peer", value: Value::Integer(-6) },
        Field { key: "comm", value: Value::Text(b"world\xff") },
    ];
    for role in [Role::Send, Role::Receive, Role::Collective] {
        symbols.push(alphabet.intern(&Event { role, fields: &fields, ..Event::named("MPI") }, None)?);
    }
    symbols.push(alphabet.intern(&Event { fields: &fields[..1], ..Event::integer(u64::MAX) }, None)?);
    symbols.push(alphabet.intern(&Event::integer(0), None)?);

    let mut builder = FoldBuilder::new(alphabet);
    let mut targets: Vec<Target> = symbols.iter().map(|&symbol| Target::Symbol(symbol)).collect();
    let mut rules = Vec::new();
    for _ in 0..120 {
        // Symbols mostly follow the one before.
        let mut place = rng.below(targets.len());
        let mut body = Vec::new();
        for _ in 0..rng.between(2, 5) {
            place = if rng.one_in(4) { rng.below(targets.len()) } else { (place + 1) % targets.len() };
            let times = if rng.one_in(6) { 2 + (rng.below(1 << 20) as u64 >> rng.below(20)) } else { 1 };
            body.push(Item::new(targets[place], times));
        }
        if let Ok(rule) = builder.rule(&body) {
            rules.push(rule);
            targets.push(Target::Rule(rule));
        }
    }
    let long = builder.rule(&[Item::new(targets[0], 39_998), Item::new(targets[1], 2)])?;
    let times = Times {
        starts: Some(whole(40_000, |index| 1_000_000 + 17 * index)),
        durations: Some(whole(40_000, |index| if index == 3 { -1 } else { index % 5 })),
        metrics: vec![("flops".into(), real(40_000, |index| index / 4.0))],
    };
    let notes = vec![("title".to_string(), "rank 0 of 2".to_string()), ("of".into(), "chrome".into())];
    builder.stream(FoldedStream::new("rank 0", "sequitur-runs", long).with_notes(notes).with_times(times));
    for number in 1..9 {
        // Most rules are used in two streams.
        let body = (0..rules.len()).map(|place| rules[place * number % rules.len()]);
        let body: Vec<Item> = body.map(|rule| Item::new(Target::Rule(rule), 1)).collect();
        let root = match number {
            3 | 4 => long,
            8 => builder.rule(&body[..9])?,
            5 => rules[7],
            6 => builder.rule(&[])?,
            7 => builder.rule(&[Item::new(targets[9], 1 << 60)])?,
            _ => builder.rule(&body)?,
        };
        let folder = if number % 2 == 0 { "sequitur-runs" } else { "of its own" };
        let notes = vec![("of".to_string(), format!("node-{}.cluster.example", number % 3))];
        builder.stream(FoldedStream::new(format!("rank {number}"), folder, root).with_notes(notes));
    }
    Ok(builder.finish())
}

/// Texts that are too long to be modelled.
fn long_texts() -> Result<Fold> {
    let mut rng = Rng::new(7);
    let mut alphabet = Alphabet::default();
    let symbols = (0..6000).map(|number| alphabet.intern(&Event::integer((1 << 33) + 4 * number), None));
    let symbols: Vec<Symbol> = symbols.collect::<Result<_>>()?;
    let mut builder = FoldBuilder::new(alphabet);
    let items: Vec<Item> = symbols.iter().map(|&symbol| Item::once(symbol)).collect();
    let root = builder.rule(&items)?;
    let line = |rng: &mut Rng| (0..60).map(|_| char::from(b'a' + rng.below(26) as u8)).collect::<String>();
    let lines: Vec<String> = (0..16).map(|_| line(&mut rng)).collect();
    let story = (0..560).map(|_| lines[rng.below(16)].as_str()).collect::<Vec<_>>().join("\n");
    let notes = vec![("story".to_string(), story)];
    builder.stream(FoldedStream::new("line", "repair", root).with_notes(notes));
    Ok(builder.finish())
}

/// Symbols in random order, for which there is no context.
fn without_structure() -> Result<Fold> {
    let mut rng = Rng::new(9);
    let mut alphabet = Alphabet::default();
    let symbols = (0..90).map(|number| alphabet.intern(&Event::integer(number * number), None));
    let symbols: Vec<Symbol> = symbols.collect::<Result<_>>()?;
    let mut builder = FoldBuilder::new(alphabet);
    let mut items: Vec<Item> = symbols.iter().map(|&symbol| Item::once(symbol)).collect();
    items.extend((0..1500).map(|_| Item::once(symbols[rng.below(symbols.len())])));
    let root = builder.rule(&items)?;
    builder.stream(FoldedStream::new("noise", "repair", root));
    Ok(builder.finish())
}

/// Sums instead of times.
fn measured() -> Result<Fold> {
    let mut alphabet = Alphabet::default();
    let [a, b] = ["tick", "tock"].map(|name| alphabet.intern(&Event::named(name), None));
    let (a, b) = (a?, b?);
    let mut builder = FoldBuilder::new(alphabet);
    let pair = builder.repeat(&[Item::once(a), Item::once(b)], 9)?;
    let root = builder.rule(&[pair, Item::new(Target::Symbol(b), 3)])?;
    let times = Times {
        starts: Some(whole(21, |index| 10 * index - 50)),
        durations: Some(whole(21, |index| if index == 5 { -1 } else { 3 + index % 4 })),
        metrics: vec![("joules".into(), real(21, |index| index / 8.0)), ("hits".into(), real(21, |x| -x))],
    };
    builder.stream(FoldedStream::new("clock", "minimum", root).with_times(times));
    let starts = Times { starts: Some(whole(21, |index| 1000 + index)), ..Times::default() };
    builder.stream(FoldedStream::new("second clock", "minimum", root).with_times(starts));
    summarize(builder.finish())
}

/// One more event, with which a stream goes on.
fn at_last() -> Result<Fold> {
    let mut alphabet = Alphabet::default();
    let last = alphabet.intern(&Event { role: Role::Leave, ..Event::named("main") }, None)?;
    let mut builder = FoldBuilder::new(alphabet);
    let root = builder.rule(&[Item::once(last)])?;
    let times = Times { starts: Some(whole(1, |_| 2_000_000)), ..Times::default() };
    builder.stream(FoldedStream::new("rank 0", "outermost", root).with_times(times));
    Ok(builder.finish())
}

/// Makes the kept file of the newest version, when asked to.
#[test]
fn a_kept_file_is_made_only_when_asked() {
    if std::env::var_os("LOOPFOLD_MAKE_KEPT_ARCHIVE").is_none() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/v2.fold");
    std::fs::write(path, segments(&version_2().unwrap())).unwrap();
}

#[test]
fn a_file_of_version_2_is_read_for_ever() {
    let file = include_bytes!("../data/v2.fold");
    assert!(file.starts_with(b"\x89fold\r\n\x02"));
    let fold = read_back(file).unwrap();
    let now = read_back(&segments(&version_2().unwrap())).unwrap();
    // The program that wrote the file kept no self times.
    let described = |stream: &FoldedStream| {
        let sums = stream.sums().map(|sums| StreamSums { self_times: None, ..sums.clone() });
        let about =
            (stream.name().raw().to_string(), stream.folder().raw().to_string(), stream.notes().to_vec());
        (about, stream.root(), stream.times().clone(), sums)
    };
    assert!(fold.streams().iter().map(described).eq(now.streams().iter().map(described)));
    assert_eq!(fold.alphabet(), now.alphabet());
    assert!(fold.rules().eq(now.rules()) && fold.rules().all(|rule| fold.body(rule) == now.body(rule)));
    // Nor did it keep last iterations apart.
    let (sums, sums_now) = (fold.rule_sums().unwrap(), now.rule_sums().unwrap());
    assert_eq!((&sums.durations, &sums.metrics), (&sums_now.durations, &sums_now.metrics));
    assert_eq!(sums.loops.keys().collect::<Vec<_>>(), sums_now.loops.keys().collect::<Vec<_>>());
    for (times, now) in sums.loops.values().zip(sums_now.loops.values()) {
        let mut all = now.others;
        all.join(&now.lasts).unwrap();
        assert_eq!((times.others, times.lasts), (all, Spread::default()));
    }
    assert_eq!(archive::verify(Cursor::new(file)).unwrap().segments, 6);
    // In case the two of them should go wrong together.
    let nest = |name: &str| {
        let stream = fold.streams().iter().find(|stream| stream.name() == name).unwrap();
        (fold.length(stream.root()), fold.nest_text(stream.root()))
    };
    let enter = "enter solve_0";
    assert_eq!(nest("rank 0"), (40_001, format!("({enter})^39998 (4198400)^2 leave main")));
    assert_eq!(nest("rank 4"), (40_000, format!("({enter})^39998 (4198400)^2")));
    assert_eq!(nest("rank 6"), (0, String::new()));
    assert_eq!(nest("rank 7").0, 1 << 60);
    assert_eq!(nest("clock").1, "(tick tock)^9 (tock)^3");
    assert!(nest("line").1.starts_with("8589934592 8589934596 8589934600 "));
    assert!(nest("noise").1.starts_with("0 1 4 9 16 25 36 49 64 "));
    let starts = fold.streams()[0].times().starts.as_ref().unwrap().values().unwrap();
    assert_eq!((starts[0], starts[39_999], starts[40_000]), (1_000_000, 1_679_983, 2_000_000));
    let clock = fold.streams().iter().find(|stream| stream.name() == "clock").unwrap();
    let sums = clock.sums().unwrap();
    assert_eq!((sums.began, sums.ended), (Some(-50), Some(153)));
    let joules: f64 = sums.metrics[0].1.iter().map(|(_, sum)| sum.total).sum();
    assert_eq!((sums.metrics[0].0.as_str(), joules), ("joules", 26.25));
}

#[test]
fn the_file_of_version_2_has_every_way_of_coding() {
    let file = include_bytes!("../data/v2.fold");
    let archive = Archive::open(Cursor::new(file)).unwrap();
    let of_kind = |kind: SectionKind| -> Vec<u8> {
        let sections = archive.segments().iter().flat_map(|segment| segment.sections());
        sections
            .filter(|section| section.kind() == kind)
            .map(|section| file[section.offset() as usize])
            .collect()
    };
    for kind in [SectionKind::Streams, SectionKind::Alphabet] {
        assert!([0, 1, 2].iter().all(|way| of_kind(kind).contains(way)), "{kind}: {:?}", of_kind(kind));
    }
    let plain: Vec<bool> = of_kind(SectionKind::Rules).iter().map(|&way| way & 0x80 != 0).collect();
    assert_eq!(plain[..3], [false, true, true]);
    let kinds = [SectionKind::Starts, SectionKind::Durations, SectionKind::Metrics, SectionKind::Summary];
    assert!(kinds.into_iter().all(|kind| !of_kind(kind).is_empty()));
    assert!(file.len() < 9000, "{}", file.len());
}
