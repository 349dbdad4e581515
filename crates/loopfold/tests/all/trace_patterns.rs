//! The list of all patterns of a trace, the windows that lie within them, and how often functions
//! are called, beside looking at every event.

use crate::support::{folders, id, outermost, programs};
use loopfold::Fold;
use loopfold::folders::SequiturRuns;
use loopfold::questions::communication::{FirstPlace, Part, Processes, TracePatterns};
use loopfold::questions::patterns::{self, EventChoice, MemoryBudget, RankBy};
use loopfold::questions::similar::{EnclosingPatterns, SimilarPattern, SimilarPlace};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{self, Call, Program};

/// A program that calls functions around some of what it does.
fn random_program(rng: &mut Rng) -> Program {
    let processes = rng.between(1, 4);
    let mut program = mpi::random(rng, processes);
    let more = mpi::random(rng, processes);
    for name in ["f", "g"] {
        let wrapped: Vec<Call> = Vec::from([Call::Enter(name), Call::Leave(name)]);
        for (calls, more) in program.iter_mut().zip(&more) {
            for _ in 0..rng.below(3) {
                calls.extend_from_slice(&wrapped[..1]);
                calls.extend_from_slice(&more[..rng.below(more.len() + 1)]);
                calls.extend_from_slice(&wrapped[1..]);
            }
        }
    }
    program
}

fn processes_of(fold: &Fold, budget: MemoryBudget) -> Processes<'_> {
    Processes::of(fold, &EventChoice::default(), budget, &outermost).unwrap()
}

#[test]
fn calls_are_counted_as_events_are() {
    let mut rng = Rng::new(601);
    let mut counted = 0;
    for _ in 0..60 {
        let program = random_program(&mut rng);
        for folder in folders() {
            let fold = programs::fold(&program, &*folder);
            // Unfolded, and with the loops that the fold has.
            for budget in [MemoryBudget::default(), MemoryBudget { events: 0, ..MemoryBudget::default() }] {
                let processes = processes_of(&fold, budget);
                if !processes.communicate() {
                    continue;
                }
                for (stream, calls) in program.iter().enumerate() {
                    for name in ["f", "g", "h"] {
                        let is_entry = |call: &&Call| matches!(call, Call::Enter(known) if *known == name);
                        let expected = calls.iter().filter(is_entry).count() as u64;
                        assert_eq!(processes.calls(id(stream), name), expected);
                        counted += expected;
                    }
                }
            }
        }
    }
    assert!(counted > 1_000, "{counted}");
}

/// The stretches of a pattern, from its places.
fn stretches(processes: &Processes<'_>, patterns: &TracePatterns, number: usize) -> Vec<Part> {
    if let Some(pattern) = patterns.communication.get(number - 1) {
        return pattern.occurrences.iter().flat_map(|occurrence| occurrence.parts.clone()).collect();
    }
    let pattern = &patterns.process.patterns[number - 1 - patterns.communication.len()];
    let of_stream = |(stream, places): (usize, &[loopfold::questions::patterns::PatternPlace])| -> Vec<Part> {
        let shown = processes.traces()[stream].shown();
        let part = |start: usize| {
            let (first, end) =
                (shown.first(start, start + pattern.symbols.len()), start + pattern.symbols.len());
            Part { stream: id(stream), start: first, end: first + shown.events(start, end) }
        };
        places.iter().map(|place| part(place.start as usize)).collect()
    };
    patterns.process.streams_of(pattern).flat_map(of_stream).collect()
}

#[test]
fn windows_lie_within_the_smallest_pattern_that_holds_them() {
    let mut rng = Rng::new(602);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..150 {
        let program = random_program(&mut rng);
        let fold = programs::fold(&program, &SequiturRuns);
        let processes = processes_of(&fold, MemoryBudget::default());
        let patterns = TracePatterns::of(&processes, &patterns::Config::new()).unwrap();
        let enclosing = EnclosingPatterns::of(&processes, &patterns);
        let positions = processes.positions();
        for stream in 0..program.len() {
            let shown = processes.traces()[stream].shown();
            if shown.length() == 0 {
                continue;
            }
            let first = rng.below(shown.length() as usize) as u64;
            let last = (first + rng.below(4) as u64).min(shown.length() - 1);
            let [start, end] = [first, last].map(|index| positions.of(stream, index).unwrap());
            let window = SimilarPlace { start, end, length: (last - first + 1) as usize, distance: 0 };
            let [from, to] = [first, last].map(|index| shown.index_at(index).unwrap() as u32);
            // From the first to behind the last index that a stretch has.
            let indices = |part: Part| {
                let all: Vec<u32> =
                    (part.start..part.end).map(|at| shown.index_at(at).unwrap() as u32).collect();
                (*all.iter().min().unwrap(), *all.iter().max().unwrap() + 1)
            };
            let holds = |&(start, end): &(u32, u32)| {
                start <= from
                    && from <= to
                    && to < end
                    && shown.events(start as usize, end as usize) > window.length as u64
            };
            let holding = (1..=patterns.count()).flat_map(|number| {
                let parts = stretches(&processes, &patterns, number).into_iter();
                let intervals = parts.filter(|part| part.stream == id(stream)).map(indices).filter(holds);
                intervals.map(move |(start, end)| (end - start, number)).collect::<Vec<_>>()
            });
            let expected = holding.min().map(|(_, number)| number);
            assert_eq!(enclosing.smallest_around(id(stream), window), expected);
            inside += usize::from(expected.is_some());
            outside += usize::from(expected.is_none());
        }
    }
    assert!(inside > 50 && outside > 50, "{inside} {outside}");
}

#[test]
fn the_list_is_ranked_and_numbered() {
    let mut rng = Rng::new(603);
    let mut both = 0;
    for _ in 0..100 {
        let fold = programs::fold(&random_program(&mut rng), &SequiturRuns);
        let processes = processes_of(&fold, MemoryBudget::default());
        for rank_by in [RankBy::Events, RankBy::Count, RankBy::Length, RankBy::Processes] {
            let settings = patterns::Config::new().rank_by(rank_by);
            let patterns = TracePatterns::of(&processes, &settings).unwrap();
            let key = |pattern: &loopfold::questions::communication::CommunicationPattern| match rank_by {
                RankBy::Events => pattern.weight,
                RankBy::Count => pattern.count,
                RankBy::Length => pattern.events,
                RankBy::Processes => pattern.parts().len() as u64,
            };
            assert!(patterns.communication.is_sorted_by(|one, next| key(one) >= key(next)));
            assert!(patterns.communication.iter().all(|pattern| pattern.count >= settings.min_count));
            let several = patterns.communication.len();
            both += usize::from(several > 0 && several < patterns.count());
            for number in 0..patterns.count() + 2 {
                let first = patterns.first_place(&processes, number);
                assert_eq!(first.is_some(), (1..=patterns.count()).contains(&number));
                match first {
                    None => {
                        assert_eq!(SimilarPattern::numbered(&processes, &patterns, number).unwrap(), None)
                    }
                    Some(FirstPlace::Communication(parts)) => {
                        assert!(number <= several);
                        assert_eq!(parts, patterns.communication[number - 1].parts());
                    }
                    Some(FirstPlace::Process(part)) => {
                        assert!(number > several && stretches(&processes, &patterns, number).contains(&part));
                    }
                }
            }
            // What a pattern lies within is larger, and holds all stretches of a place of it.
            for pattern in &patterns.communication {
                if let Some(number) = patterns.within(pattern) {
                    let around = &patterns.communication[number - 1];
                    assert!(around.events > pattern.events);
                    let holds = |part: &Part, inside: &Part| {
                        part.stream == inside.stream && part.start <= inside.start && inside.end <= part.end
                    };
                    let is_held = pattern.occurrences.iter().any(|inside| {
                        around.occurrences.iter().any(|place| {
                            inside
                                .parts
                                .iter()
                                .all(|part| place.parts.iter().any(|around| holds(around, part)))
                        })
                    });
                    assert!(is_held);
                }
            }
        }
    }
    assert!(both > 50, "{both}");
}
