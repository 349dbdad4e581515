//! A trace that is folded in parts, joined in any order, becomes the fold of the whole.

use loopfold::Fold;
use loopfold::archive::{self, ReadConfig};
use loopfold::fold::FoldBuilder;
use loopfold::folders::{Auto, AutoOnline, Folder, Folding, SequiturRuns, finish_parts, with_streams_by};
use loopfold::trace::{Event, Projection, Sink, TimesKept, Timing};
use loopfold_testing::{Rng, streams};
use std::io::Cursor;

/// The streams of a trace; some are equal, some are equal but for their symbols.
fn generated(rng: &mut Rng) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = Vec::new();
    for _ in 0..rng.between(1, 8) {
        let stream = match (rng.below(4), all.first()) {
            (0, Some(first)) => first.clone(),
            (1, Some(first)) => first.iter().map(|symbol| symbol + 1).collect(),
            (2, _) => streams::nests(rng.between(1, 2_000), rng.next_u64()),
            _ => streams::small(rng, 500),
        };
        all.push(stream);
    }
    all
}

fn folding(folder: Box<dyn Folder>, streams: &[(usize, &Vec<u32>)]) -> Folding {
    let mut folding = Folding::with(folder, Projection::default(), TimesKept::All, 1).unwrap();
    for &(number, stream) in streams {
        let id = folding.stream(&format!("rank {number}")).unwrap();
        for (start, &symbol) in stream.iter().enumerate() {
            let symbol = folding.intern(&Event::integer(symbol.into())).unwrap();
            folding.push(id, symbol, Timing { start: Some(start as i64), ..Timing::UNKNOWN }).unwrap();
        }
    }
    folding
}

fn number(stream: &loopfold::fold::FoldedStream) -> usize {
    stream.name().raw()["rank ".len()..].parse().unwrap()
}

fn stored(fold: &Fold) -> Fold {
    let mut file = Vec::new();
    archive::write(fold, &mut file).unwrap();
    archive::read(Cursor::new(file), &ReadConfig::new()).unwrap().0
}

#[test]
fn parts_in_any_order_are_the_whole() {
    let mut rng = Rng::new(181);
    for round in 0..300 {
        let streams = generated(&mut rng);
        let folder = || -> Box<dyn Folder> {
            match round % 3 {
                0 => Box::new(Auto),
                1 => Box::new(AutoOnline),
                _ => Box::new(SequiturRuns),
            }
        };
        let all: Vec<(usize, &Vec<u32>)> = streams.iter().enumerate().collect();
        let whole = folding(folder(), &all).finish().unwrap().into_canonical();
        let mut parts: Vec<Vec<(usize, &Vec<u32>)>> = vec![Vec::new(); rng.between(1, 4)];
        for &stream in &all {
            let part = rng.below(parts.len());
            parts[part].push(stream);
        }
        let mut builder = FoldBuilder::default();
        for part in parts.iter().rev() {
            builder.join(&stored(&folding(folder(), part).finish_part().unwrap())).unwrap();
        }
        let joined = with_streams_by(builder.finish(), number).unwrap();
        assert_eq!(finish_parts(joined, &*folder()).unwrap(), whole, "{streams:?}");
    }
}

/// Whatever the numbers of symbols and rules are, `auto` makes the same rules of the same streams.
#[test]
fn the_numbers_of_symbols_do_not_matter() {
    let mut rng = Rng::new(182);
    for _ in 0..300 {
        let streams = generated(&mut rng);
        let all: Vec<(usize, &Vec<u32>)> = streams.iter().enumerate().collect();
        let one = folding(Box::new(Auto), &all).finish().unwrap().into_canonical();
        let mut renumbered = Folding::new(Auto).unwrap();
        for symbol in (0..2_000u64).rev() {
            renumbered.intern(&Event::integer(symbol)).unwrap();
        }
        for &(number, stream) in &all {
            let id = renumbered.stream(&format!("rank {number}")).unwrap();
            for (start, &symbol) in stream.iter().enumerate() {
                let symbol = renumbered.intern(&Event::integer(symbol.into())).unwrap();
                renumbered.push(id, symbol, Timing { start: Some(start as i64), ..Timing::UNKNOWN }).unwrap();
            }
        }
        assert_eq!(renumbered.finish().unwrap().into_canonical(), one);
    }
}
