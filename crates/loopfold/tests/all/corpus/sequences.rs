//! All events, windows, sequences, their order and context, and hot subpaths.

use super::Folded;
use crate::support::corpus::push;
use crate::support::find::{check_context, check_find, check_order};
use crate::support::hot::{Question, check_figure_seven};
use crate::support::{folders, unfolded};
use loopfold::fold::{FoldBuilder, StreamPart};
use loopfold::folders::{Folding, Guarded, fold_trace, refold};
use loopfold::questions::hot::{self, Limit};
use loopfold::trace::{Column, Projection, TimesKept};
use loopfold_testing::Rng;
use loopfold_testing::subpaths::Hot;
use std::collections::BTreeSet;

/// A sequence to look for: what each event may be.
type Sequence = Vec<Vec<u32>>;

pub(super) fn unfolding(Folded { trace, streams, fold, .. }: &Folded<'_>) {
    assert_eq!(unfolded(fold), *streams);
    assert_eq!(fold.events(), Some(trace.events()));
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        assert_eq!((folded.name().raw(), folded.times()), (stream.name.as_str(), &stream.times));
    }
    for symbol in trace.alphabet.symbols() {
        assert_eq!(fold.alphabet().meaning(symbol).event(), trace.alphabet.meaning(symbol).event());
    }
}

/// On several threads the same.
pub(super) fn threads(Folded { trace, folder, fold, .. }: &Folded<'_>) {
    assert_eq!(fold_trace((*trace).clone(), *folder, 3).unwrap(), **fold);
}

/// Events that are folded as they arrive, where the folder can.
pub(super) fn online(Folded { case, folder, fold, .. }: &Folded<'_>) {
    for threads in [1, 2] {
        let folder = folders().into_iter().find(|other| other.name() == folder.name()).unwrap();
        if folder.online().is_none() {
            continue;
        }
        let mut folding = Folding::with(folder, Projection::default(), TimesKept::All, threads).unwrap();
        push(case, &mut folding);
        assert_eq!(folding.so_far().unwrap().events(), fold.events());
        assert_eq!(folding.finish().unwrap().canonical(), fold.canonical());
    }
}

/// Folded again by another folder, it is what that makes of the trace.
pub(super) fn refolding(Folded { trace, fold, .. }: &Folded<'_>) {
    let other = Guarded::default();
    let again = refold(fold, &other, 1).unwrap();
    assert_eq!(again.canonical(), fold_trace((*trace).clone(), &other, 1).unwrap().canonical());
}

/// Two folds in one are the streams of both, and no rule more.
pub(super) fn joining(Folded { streams, fold, .. }: &Folded<'_>) {
    let mut builder = FoldBuilder::default();
    (0..2).for_each(|_| builder.join(fold).unwrap());
    let joined = builder.with_unique_stream_names().finish();
    assert_eq!(unfolded(&joined), [*streams, *streams].concat());
    assert_eq!(joined.rules().len(), fold.canonical().rules().len());
}

pub(super) fn windows(Folded { trace, fold, .. }: &Folded<'_>) {
    let mut rng = Rng::new(1);
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        let (root, all, length) = (folded.root(), &stream.symbols, stream.symbols.len());
        for (position, &symbol) in all.iter().enumerate() {
            assert_eq!(fold.symbol_at(root, position as u64), Some(symbol), "{position}");
        }
        assert_eq!(fold.symbol_at(root, length as u64), None);
        for _ in 0..200 {
            let start = rng.between(0, length);
            let end = rng.between(start, (start + 40).min(length));
            let window = fold.window(root, start as u64, end as u64);
            assert!(window.eq(all[start..end].iter().copied()), "{start} to {end}");
        }
        assert!(fold.window(root, 0, length as u64 + 9).eq(all.iter().copied()));
    }
}

/// Every symbol, and every pair of symbols that stand beside each other.
fn neighbours(streams: &[Vec<u32>]) -> Vec<Sequence> {
    let all: BTreeSet<&[u32]> =
        streams.iter().flat_map(|stream| stream.windows(1).chain(stream.windows(2))).collect();
    all.into_iter().map(|window| window.iter().map(|&symbol| vec![symbol]).collect()).collect()
}

/// The same, no more than so many of them, from all over the list.
fn some_neighbours(streams: &[Vec<u32>], most: usize) -> Vec<Sequence> {
    let all = neighbours(streams);
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}

pub(super) fn find(Folded { streams, fold, .. }: &Folded<'_>) {
    let mut rng = Rng::new(2);
    for sequence in neighbours(streams) {
        check_find(fold, streams, &sequence, &mut rng);
        // The other way round, with anything between, and longer than any loop body.
        let reversed: Sequence = sequence.iter().rev().cloned().collect();
        check_find(fold, streams, &reversed, &mut rng);
        let either: Sequence = vec![sequence.concat(); 3];
        check_find(fold, streams, &either, &mut rng);
        check_find(fold, streams, &[&sequence[..]; 6].concat(), &mut rng);
    }
    for stream in streams.iter().filter(|stream| !stream.is_empty()) {
        let whole: Sequence = stream.iter().map(|&symbol| vec![symbol]).collect();
        check_find(fold, streams, &whole, &mut rng);
    }
}

pub(super) fn order(Folded { streams, fold, .. }: &Folded<'_>) {
    let sequences = some_neighbours(streams, 9);
    for one in &sequences {
        for other in &sequences {
            check_order(fold, streams, one, other);
        }
    }
}

pub(super) fn context(Folded { streams, fold, .. }: &Folded<'_>) {
    for sequence in some_neighbours(streams, 20) {
        for depth in [0, 1, 4] {
            check_context(fold, streams, &sequence, depth);
        }
    }
}

/// Questions with costs that are all the same, and with some that differ much.
fn questions(streams: &[Vec<u32>]) -> Vec<Question> {
    let symbols = streams.iter().flatten().max().map_or(0, |&most| most + 1);
    let mut questions = Vec::new();
    for costs in [vec![1; symbols as usize], (0..symbols).map(|symbol| u64::from(symbol * symbol)).collect()]
    {
        let total: u64 = streams.iter().flatten().map(|&event| costs[event as usize]).sum();
        for (min, max, limit) in [(1, 6, total / 30 + 1), (2, 12, total / 8 + 1), (2, 3, 1)] {
            let settings =
                hot::Config::new().min_length(min).max_length(max).min_cost(Limit::Cost(limit as f64));
            let hot = Hot { min, max, limit: limit.into() };
            questions.push(Question { settings, hot, costs: costs.clone() });
        }
    }
    questions
}

pub(super) fn hot_subpaths(Folded { streams, fold, .. }: &Folded<'_>) {
    questions(streams).iter().for_each(|question| question.check(fold, streams));
}

pub(super) fn figure_seven(Folded { streams, fold, .. }: &Folded<'_>) {
    questions(streams).iter().for_each(|question| check_figure_seven(question, fold));
}

/// Parts of streams are those events, with their times and positions.
pub(super) fn parts(Folded { trace, fold, .. }: &Folded<'_>) {
    for (id, stream) in fold.stream_ids().zip(&trace.streams) {
        let length = stream.symbols.len() as u64;
        for range in [0..length, 0..length / 2, length / 3..length, length / 3..length / 2 + 1] {
            let part = StreamPart { stream: id, range: range.clone(), number: None };
            let part = fold.parts(&[part], None).unwrap();
            let only = &part.streams()[0];
            let events = part.unfold(only.root()).map(|symbol| part.alphabet().label(symbol));
            let end = range.end.min(length) as usize;
            let expected = stream.symbols[range.start as usize..end].iter();
            assert!(events.eq(expected.map(|&symbol| trace.alphabet.label(symbol))), "{range:?}");
            assert_eq!(only.first_position(), range.start);
            let starts =
                |column: &Option<Column<i64>>| column.as_ref().map(|column| column.values().unwrap());
            let expected = starts(&stream.times.starts).map(|all| all[range.start as usize..end].to_vec());
            assert_eq!(starts(&only.times().starts), expected);
        }
    }
}

/// Without an event the others are the same.
pub(super) fn dropping(Folded { trace, fold, .. }: &Folded<'_>) {
    for dropped in trace.alphabet.symbols().take(4) {
        let kept: Vec<bool> = trace.alphabet.symbols().map(|symbol| symbol != dropped).collect();
        let left = fold.without(&kept).unwrap();
        for (folded, stream) in left.streams().iter().zip(&trace.streams) {
            let events = left.unfold(folded.root()).map(|symbol| left.alphabet().label(symbol));
            let expected = stream.symbols.iter().filter(|&&symbol| symbol != dropped);
            assert!(events.eq(expected.map(|&symbol| trace.alphabet.label(symbol))));
        }
    }
}
