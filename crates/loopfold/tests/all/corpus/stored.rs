//! Archives, grammars and graphs.

use super::{Folded, Unfolded};
use crate::support::archive::{read_back, written};
use crate::support::export::{check_round_trip, graph};
use crate::support::unfolded;
use loopfold::archive::{self, Archive};
use loopfold::emit::is_harmless;
use loopfold::export::grammar;
use loopfold::folders::fold_trace;
use loopfold::questions::path::ChunkSize;
use loopfold::questions::rule_sums::{rule_sums, summarize};
use loopfold::sections;
use loopfold::trace::Times;
use std::io::Cursor;

pub(super) fn archives(Folded { fold, .. }: &Folded<'_>) {
    let file = written(fold);
    let again = read_back(&file).unwrap();
    assert_eq!(again, fold.canonical());
    assert_eq!(written(&again), file);
    archive::verify(Cursor::new(&file)).unwrap();
}

/// With what paths keep in an archive, which changes nothing else.
pub(super) fn sections(Folded { fold, .. }: &Folded<'_>) {
    let size = ChunkSize::of_symbols(7).unwrap();
    let mut file = Vec::new();
    archive::write_with(fold, &mut file, &sections::write_config(Some(3), Some(size))).unwrap();
    let again = read_back(&file).unwrap();
    assert_eq!(again, fold.canonical());
    archive::verify_with(Cursor::new(&file), &sections::CHECKS).unwrap();
    sections::index(&mut Archive::open(Cursor::new(&file)).unwrap(), &again).unwrap();
    assert!(sections::chunks(Archive::open(Cursor::new(&file)).unwrap()).unwrap().is_some());
}

/// Sums instead of times say the same of what they are sums of.
pub(super) fn summaries(Folded { fold, .. }: &Folded<'_>) {
    let summary = summarize((*fold).clone()).unwrap();
    assert_eq!(summary.event_sums().unwrap(), fold.event_sums().unwrap());
    assert_eq!(rule_sums(&summary).unwrap(), rule_sums(fold).unwrap());
    let spans = |fold: &loopfold::Fold| {
        fold.statistics().unwrap().streams.into_iter().map(|s| s.span).collect::<Vec<_>>()
    };
    assert_eq!(spans(&summary), spans(fold));
    assert_eq!(read_back(&written(&summary)).unwrap(), summarize(fold.canonical()).unwrap());
}

/// As text, which has no times.
pub(super) fn grammars(Folded { trace, folder, .. }: &Folded<'_>) {
    let mut trace = (*trace).clone();
    trace.streams.iter_mut().for_each(|stream| stream.times = Times::default());
    check_round_trip(&fold_trace(trace, *folder, 1).unwrap());
}

/// Counts in graphs are those of the events, and no name leaves its quotes.
pub(super) fn graphs(Folded { streams, fold, .. }: &Folded<'_>) {
    let fold = fold.canonical();
    let graph = graph(&fold);
    assert!(graph.chars().all(|character| is_harmless(character) || character == '\n'), "{graph}");
    let all = unfolded(&fold).concat();
    assert_eq!(all.len(), streams.iter().map(Vec::len).sum::<usize>());
    for symbol in fold.alphabet().symbols() {
        let count = all.iter().filter(|&&other| other == symbol.raw()).count();
        let (start, end) =
            (format!("E{} [label=\"", symbol.index() + 1), format!("\\n{count}×\", shape=ellipse]"));
        let is_node = |line: &str| line.trim().starts_with(&start) && line.ends_with(&end);
        assert!(graph.lines().any(is_node), "{start} {end} is not in {graph}");
    }
}

/// What the corpus writes as a grammar without the library is read as the same trace.
pub(super) fn written_grammars(Unfolded { case, trace, .. }: &Unfolded<'_>) {
    let fold = grammar::read(case.grammar().as_bytes()).unwrap();
    assert_eq!(fold.streams().len(), trace.streams.len());
    for (folded, stream) in fold.streams().iter().zip(&trace.streams) {
        assert_eq!(folded.name().raw(), stream.name);
        let symbols: Vec<_> = fold.unfold(folded.root()).collect();
        assert_eq!(symbols.len(), stream.symbols.len());
        for (&read, &pushed) in symbols.iter().zip(&stream.symbols) {
            assert_eq!(fold.alphabet().meaning(read).event(), trace.alphabet.meaning(pushed).event());
        }
    }
}
