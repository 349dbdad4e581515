//! Nests, classes of equal streams, sizes and counts, and streams with loops collapsed.

use super::Folded;
use crate::support::near::{compare as compare_near, follow as follow_near};
use crate::support::patterns::check_collapsed;
use loopfold::questions::align::{Align, align};
use loopfold::questions::classes::Class;
use loopfold::questions::nest::{Nest, Node};
use loopfold::questions::patterns::LoopCollapsed;

pub(super) fn nests(Folded { trace, fold, .. }: &Folded<'_>) {
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        let nest = fold.nest(folded.root(), usize::MAX);
        assert_eq!(nest.events(u64::MAX), stream.symbols);
        assert!(!nest.is_cut());
        // Cut, it still says how many events there are.
        for limit in [0, 1, 3, 10] {
            let cut = fold.nest(folded.root(), limit);
            assert_eq!(cut.length(0..cut.nodes.len()), stream.symbols.len() as u64);
            assert!(cut.is_cut() || cut == nest);
        }
    }
}

/// Loops that are rotated are the same events.
pub(super) fn aligned_nests(Folded { trace, fold, .. }: &Folded<'_>) {
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        let nest = fold.nest(folded.root(), usize::MAX);
        let some_event = stream.symbols.get(stream.symbols.len() / 2).copied().into_iter().collect();
        for how in [Align::Calls, Align::Gap, Align::Event(some_event), Align::Event(Vec::new())] {
            let aligned = align(&nest, &how, fold.alphabet(), folded.times()).unwrap();
            assert_eq!(aligned.events(u64::MAX), stream.symbols, "{how:?}");
        }
    }
}

/// Loops with exceptions are those of the definition, and their nests unfold to the stream.
pub(super) fn near_nests(Folded { trace, fold, .. }: &Folded<'_>) {
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        let symbols: Vec<u32> = stream.symbols.iter().map(|symbol| symbol.raw()).collect();
        compare_near(fold, folded.root(), &symbols);
        follow_near(fold, folded.root(), &symbols);
    }
}

/// How deep the loops of a range are nested.
fn depth(nest: &Nest, range: std::ops::Range<usize>) -> u32 {
    let of_node = |at: usize| match nest.nodes[at] {
        Node::Loop { .. } => 1 + depth(nest, nest.body(at)),
        _ => 0,
    };
    nest.children(range).map(of_node).max().unwrap_or(0)
}

pub(super) fn classes(Folded { streams, fold, .. }: &Folded<'_>) {
    let mut expected: Vec<Vec<usize>> = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        match expected.iter_mut().find(|class| streams[class[0]] == *stream) {
            Some(class) => class.push(index),
            None => expected.push(vec![index]),
        }
    }
    let classes = fold.classes().unwrap();
    let indices = |class: &Class| class.streams.iter().map(|stream| stream.index()).collect();
    let of_fold: Vec<Vec<usize>> = classes.iter().map(indices).collect();
    assert_eq!(of_fold, expected);
    for class in &classes {
        let nest = fold.nest(class.root, usize::MAX);
        assert_eq!(class.with_nest(&nest), *class);
        assert_eq!(class.events, streams[class.streams[0].index()].len() as u64);
        assert_eq!(class.depth, depth(&nest, 0..nest.nodes.len()));
    }
}

pub(super) fn statistics(Folded { trace, streams, fold, .. }: &Folded<'_>) {
    let statistics = fold.statistics().unwrap();
    assert_eq!(statistics.events, Some(trace.events()));
    let lengths = statistics.streams.iter().map(|stream| stream.events as usize);
    assert!(lengths.eq(streams.iter().map(Vec::len)));
    assert_eq!(statistics.alphabet, trace.alphabet.len());
    let items: usize = fold.rules().map(|rule| fold.body(rule).len()).sum();
    assert_eq!((statistics.rules, statistics.items), (fold.rules().len(), items));
    let nests = fold.streams().iter().map(|stream| fold.nest(stream.root(), usize::MAX));
    let deepest = nests.map(|nest| depth(&nest, 0..nest.nodes.len())).max();
    assert_eq!(statistics.depth, deepest.unwrap_or(0));
    let counts = statistics.counts.unwrap();
    assert!(counts.is_sorted_by_key(|&(symbol, count)| (std::cmp::Reverse(count), symbol)));
    for (symbol, count) in counts {
        let expected = streams.iter().flatten().filter(|&&other| other == symbol.raw()).count();
        assert_eq!(count, expected as u64);
    }
}

pub(super) fn loop_collapsed(Folded { trace, fold, .. }: &Folded<'_>) {
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        let collapsed = LoopCollapsed::of_rule(fold, folded.root(), stream.symbols.len()).unwrap();
        check_collapsed(&collapsed, &stream.symbols);
    }
}
