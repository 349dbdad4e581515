//! Similar windows, peers, and patterns of communication.

use super::Folded;
use crate::support::outermost;
use crate::support::partners::check_partners;
use crate::support::similar::brute_force;
use crate::support::waits::compare;
use loopfold::fold::FoldedStream;
use loopfold::mpi::Peers;
use loopfold::questions::communication::{Processes, TracePatterns};
use loopfold::questions::logical::LogicalTrace;
use loopfold::questions::patterns::{self, EventChoice, MemoryBudget, PatternMethod};
use loopfold::questions::similar::{
    self, Compared, ComparedEvents, Likeness, ProcessStreams, SimilarPattern, search_similar,
};
use loopfold::questions::waits::{self, Waits};
use loopfold::trace::{Role, Trace};
use loopfold::{ErrorKind, Symbol};
use loopfold_testing::corpus::{self, Case};
use loopfold_testing::mpi::{self, Call};

/// The logical trace unfolds to every stream.
pub(super) fn logical_traces(Folded { fold, .. }: &Folded<'_>) {
    match LogicalTrace::of(fold, &outermost) {
        Ok(logical) => crate::support::spmd::check(&logical, fold),
        Err(error) => assert!(error.to_string().contains("the same process"), "{error}"),
    }
}

/// The windows of all streams that are like four events from the middle of each.
pub(super) fn similar_windows(Folded { trace, fold, .. }: &Folded<'_>) {
    let compared = Compared::of(fold.alphabet(), &EventChoice::default()).unwrap();
    let as_compared = |symbol: &Symbol| compared.symbols()[symbol.index()];
    // The events that are compared, with their positions.
    let streams: Vec<Vec<(usize, Symbol)>> = trace
        .streams
        .iter()
        .map(|stream| {
            stream.symbols.iter().enumerate().filter_map(|(at, symbol)| Some((at, as_compared(symbol)?)))
        })
        .map(Iterator::collect)
        .collect();
    let events = ComparedEvents::Fields(compared.clone());
    for of_pattern in &streams {
        let middle = of_pattern.len() / 2;
        let pattern: Vec<Symbol> = of_pattern[middle..].iter().take(4).map(|&(_, symbol)| symbol).collect();
        if pattern.len() < 2 {
            continue;
        }
        for edits in 0..2 {
            let wanted = SimilarPattern::Everywhere(pattern.iter().map(|&symbol| vec![symbol]).collect());
            let settings = similar::Config::new().likeness(Likeness { edits, ngram: 2 });
            let found = search_similar(fold, &ProcessStreams::of(fold), &events, &wanted, &settings).unwrap();
            let mut expected = Vec::new();
            for (index, stream) in streams.iter().enumerate() {
                let symbols: Vec<Symbol> = stream.iter().map(|&(_, symbol)| symbol).collect();
                for window in brute_force(&symbols, &pattern, edits) {
                    let last = window.start + window.length - 1;
                    let [start, end] = [window.start, last].map(|at| stream[at].0 as u64);
                    expected.push((index, start, end, window.length, window.distance));
                }
            }
            let windows = found.matches.iter().map(|&(stream, at)| {
                assert!(at.start <= at.end);
                (stream.index(), at.start, at.end, at.length, at.distance)
            });
            assert_eq!(windows.collect::<Vec<_>>(), expected);
            assert_eq!(found.count, expected.len() as u64);
        }
    }
}

/// Name and role of every event: what stays the same whoever is at the other end.
fn kinds(trace: &Trace) -> Vec<Vec<(String, Role)>> {
    let kind = |&symbol: &Symbol| {
        let meaning = trace.alphabet.meaning(symbol);
        (format!("{:?}", meaning.name), meaning.role)
    };
    trace.streams.iter().map(|stream| stream.symbols.iter().map(kind).collect()).collect()
}

fn labels(trace: &Trace) -> Vec<Vec<String>> {
    let label = |&symbol: &Symbol| trace.alphabet.label(symbol);
    trace.streams.iter().map(|stream| stream.symbols.iter().map(label).collect()).collect()
}

/// Rewriting the peers of a fold and of its trace is the same, and changes nothing else.
pub(super) fn peers(Folded { trace, fold, .. }: &Folded<'_>) {
    for peers in [Peers::Relative, Peers::Cartesian] {
        let mut changed = (*trace).clone();
        let of_trace = peers.apply(&mut changed, &mut []);
        let mut folds = [(*fold).clone()];
        let of_fold = peers.apply(&mut Trace::default(), &mut folds);
        let (Ok(of_trace), Ok(of_fold)) = (&of_trace, &of_fold) else {
            // Without any grid there are no cartesian peers.
            assert!(peers == Peers::Cartesian && of_trace.is_err() && of_fold.is_err());
            continue;
        };
        assert_eq!(of_trace, of_fold);
        let unfold = |stream: &FoldedStream| folds[0].unfold(stream.root());
        let of_fold: Vec<Vec<String>> = folds[0]
            .streams()
            .iter()
            .map(|stream| unfold(stream).map(|symbol| folds[0].alphabet().label(symbol)).collect())
            .collect();
        assert_eq!(of_fold, labels(&changed));
        assert_eq!(kinds(&changed), kinds(trace));
    }
}

/// Every occurrence lies in its stream and is one.
pub(super) fn trace_patterns(Folded { fold, .. }: &Folded<'_>) {
    for room in [MemoryBudget::default(), MemoryBudget { events: 0, ..MemoryBudget::default() }] {
        let processes = Processes::of(fold, &EventChoice::default(), room, &outermost).unwrap();
        for method in [PatternMethod::Ngrams, PatternMethod::Exact] {
            let settings = patterns::Config::new().method(method);
            let found = TracePatterns::of(&processes, &settings).unwrap();
            let shown = processes.shown();
            for pattern in &found.process.patterns {
                assert!(pattern.count >= settings.min_count);
                for (stream, places) in found.process.streams_of(pattern) {
                    for place in places {
                        let symbols = &shown[stream].symbols()[place.start as usize..];
                        assert!(symbols.starts_with(&pattern.symbols));
                    }
                }
            }
            for pattern in &found.communication {
                let times: u64 = pattern.occurrences.iter().map(|occurrence| occurrence.times).sum();
                assert_eq!(pattern.count, times);
                assert!(pattern.events * pattern.count <= fold.events().unwrap() || pattern.explains > 0);
                for part in pattern.occurrences.iter().flat_map(|occurrence| &occurrence.parts) {
                    assert!(part.start < part.end);
                    assert!(part.end <= shown[part.stream.index()].length());
                }
            }
        }
    }
}

/// A case as a program, if its streams are ranks.
fn program(case: &Case) -> Option<mpi::Program> {
    let number = |event: &corpus::Event, key: &str| {
        let value = event.fields.iter().find(|(other, _)| other == key).map(|(_, value)| value);
        match value {
            None => 0,
            Some(corpus::Value::Integer(number)) => u32::try_from(*number).unwrap(),
            Some(corpus::Value::Text(text)) => panic!("{text:?} is no number"),
        }
    };
    let call = |event: &corpus::Event| match event.role {
        corpus::Role::Send => Call::Send(number(event, "dest"), number(event, "tag"), number(event, "bytes")),
        corpus::Role::Receive => {
            Call::Receive(number(event, "src"), number(event, "tag"), number(event, "bytes"))
        }
        corpus::Role::Collective => Call::Collective("any", None),
        _ => Call::Wait,
    };
    let is_rank = |(rank, stream): (usize, &corpus::Stream)| stream.name == format!("rank {rank}");
    let is_program = case.streams.iter().enumerate().all(is_rank);
    is_program.then(|| case.streams.iter().map(|stream| stream.events.iter().map(call).collect()).collect())
}

pub(super) fn partners(Folded { case, fold, .. }: &Folded<'_>) {
    let Some(program) = program(case) else { return };
    check_partners(fold, &program);
}

/// Waits, where there are times; compared with the definitions if all streams are ranks.
pub(super) fn waits(Folded { fold, .. }: &Folded<'_>) {
    let timed = fold.streams().iter().filter(|stream| stream.times().starts.is_some()).count();
    let waits = Waits::of(fold, &waits::Config::new());
    if timed == 0 && !fold.streams().is_empty() {
        assert_eq!(waits.unwrap_err().kind(), ErrorKind::Invalid);
        return;
    }
    let waits = waits.unwrap();
    let places = waits.places.iter().map(|place| place.sum.count).sum::<u64>();
    assert_eq!(waits.all().count, places);
    let are_ranks = fold.streams().iter().all(|stream| stream.name().raw().starts_with("rank "));
    if timed == fold.streams().len() && are_ranks {
        compare(fold);
    }
}
