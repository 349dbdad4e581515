//! What tests of questions share: every folder, and folds of generated streams.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod archive;
pub mod corpus;
pub mod export;
pub mod find;
pub mod hot;
pub mod iterations;
pub mod joint;
pub mod joint_enumerated;
pub mod messages;
pub mod near;
pub mod partners;
pub mod paths;
pub mod patterns;
pub mod programs;
pub mod similar;
pub mod spmd;
pub mod sums;
pub mod waits;

use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::folders::{Folder, Halving, MinTimes, Outermost, fold_trace};
use loopfold::trace::{Alphabet, Collector, Event, Sink};
use loopfold::{Fold, RuleId, StreamId, Symbol};
use loopfold_testing::{Rng, streams};

/// The stream with this index.
pub fn id(index: usize) -> StreamId {
    StreamId::new(index).unwrap()
}

/// Every folder: a question gives the same answer on each one's fold.
pub fn folders() -> Vec<Box<dyn Folder>> {
    let at_least_four = MinTimes::new(4).unwrap();
    let mut folders = loopfold::folders::all(loopfold::archive::coded_size);
    folders.push(Box::new(Outermost::default().min_times(at_least_four)));
    folders.push(Box::new(Halving::default().min_times(MinTimes::new(3).unwrap())));
    folders
}

/// The way to fold that questions with loops of their own are given.
pub fn outermost(stream: &[Symbol], builder: &mut FoldBuilder) -> loopfold::Result<RuleId> {
    Outermost::default().fold(stream, builder)
}

/// The fold of streams whose symbols are the numbers themselves, up to 8 of them.
pub fn fold_of(streams: &[Vec<u32>], folder: &dyn Folder) -> Fold {
    let mut collector = Collector::default();
    // All events once, in order, so that symbol n is the event n.
    let scratch = collector.stream("scratch").unwrap();
    (0..8).for_each(|number| collector.push_event(scratch, &Event::integer(number)).unwrap());
    for (index, symbols) in streams.iter().enumerate() {
        let stream = collector.stream(&format!("s{index}")).unwrap();
        symbols
            .iter()
            .for_each(|&symbol| collector.push_event(stream, &Event::integer(symbol.into())).unwrap());
    }
    let mut trace = collector.finish().unwrap();
    trace.streams.remove(0);
    fold_trace(trace, folder, 1).unwrap()
}

/// The streams that a fold unfolds to, as numbers.
pub fn unfolded(fold: &Fold) -> Vec<Vec<u32>> {
    let unfold = |root: RuleId| fold.unfold(root).map(|symbol| symbol.raw()).collect();
    fold.streams().iter().map(|stream| unfold(stream.root())).collect()
}

/// Numbers as symbols.
pub fn symbols(stream: &[u32]) -> Vec<Symbol> {
    stream.iter().map(|&symbol| Symbol::new(symbol as usize).unwrap()).collect()
}

/// One to three small streams; sometimes two of them are equal.
pub fn small_streams(rng: &mut Rng, longest: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = (0..rng.between(1, 3)).map(|_| streams::small(rng, longest)).collect();
    for stream in &mut all {
        stream.iter_mut().for_each(|symbol| *symbol %= 8);
    }
    if rng.one_in(4) {
        all.push(all[0].clone());
    }
    all
}

/// A random fold that no folder would make: nested repeats and rules in rules, together
/// with the streams that it unfolds to.
pub fn odd_fold(rng: &mut Rng, longest: usize) -> (Fold, Vec<Vec<u32>>) {
    odd_fold_of(3, rng, longest)
}

/// The same of up to 8 symbols.
pub fn odd_fold_of(different: usize, rng: &mut Rng, longest: usize) -> (Fold, Vec<Vec<u32>>) {
    let mut alphabet = Alphabet::default();
    let symbols: Vec<_> = (0..8).map(|n| alphabet.intern(&Event::integer(n), None).unwrap()).collect();
    let mut builder = FoldBuilder::new(alphabet);
    let mut rules: Vec<(Target, u64)> =
        symbols.iter().take(different).map(|&s| (Target::Symbol(s), 1)).collect();
    for _ in 0..rng.between(2, 8) {
        let (mut body, mut length) = (Vec::new(), 0);
        for _ in 0..rng.between(1, 4) {
            let (target, once) = rules[rng.below(rules.len())];
            let times = if rng.one_in(2) { 1 } else { rng.between(2, 9) as u64 };
            if length + times * once <= longest as u64 {
                length += times * once;
                body.push(Item::new(target, times));
            }
        }
        if !body.is_empty() {
            rules.push((Target::Rule(builder.rule(&body).unwrap()), length));
        }
    }
    for index in 0..rng.between(1, 3) {
        let body: Vec<Item> = match rules[rules.len() - 1 - rng.below(rules.len() - different)] {
            (Target::Rule(rule), _) => vec![Item::new(Target::Rule(rule), 1)],
            _ => Vec::new(),
        };
        let root = builder.rule(&body).unwrap();
        builder.stream(FoldedStream::new(format!("s{index}"), "odd", root));
    }
    let fold = builder.finish();
    let unfolded = unfolded(&fold);
    (fold, unfolded)
}
