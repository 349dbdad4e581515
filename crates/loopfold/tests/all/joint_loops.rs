//! Communication patterns of thousands of small programs, beside looking at every message.
//!
//! *Sound*: every repetition of every pattern does the same, and has both ends of every message
//! in it, or says that messages cross its borders. *Complete*: the joint loop that a program has
//! by construction is found, and on tiny programs every joint loop that exists.

use crate::support::joint::Checking;
use crate::support::joint_enumerated::{self, Reported};
use crate::support::messages::Messages;
use crate::support::{folders, outermost, programs};
use loopfold::Fold;
use loopfold::folders::SequiturRuns;
use loopfold::questions::communication::{
    CommunicationPattern, Partners, Processes, TracePatterns, communication_patterns,
};
use loopfold::questions::patterns::{self, EventChoice, MemoryBudget};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{Call, Program};
use loopfold_testing::mpi_loops::{self, KnownProgram, OwnComms};

fn processes_of(fold: &Fold, budget: MemoryBudget) -> Processes<'_> {
    Processes::of(fold, &EventChoice::default(), budget, &outermost).unwrap()
}

/// The patterns from loops and from what else recurs, those of each group of processes apart.
fn all_patterns(processes: &Processes<'_>) -> Vec<CommunicationPattern> {
    let found = TracePatterns::of(processes, &patterns::Config::new()).unwrap().communication;
    let mut all: Vec<CommunicationPattern> = found.into_iter().flat_map(groups_apart).collect();
    all.sort_by_key(|pattern| std::cmp::Reverse(pattern.weight));
    all
}

/// The patterns of all groups, which have no process in common.
fn groups_apart(mut pattern: CommunicationPattern) -> Vec<CommunicationPattern> {
    let streams: Vec<_> = pattern.groups().flatten().map(|part| part.stream).collect();
    let distinct: std::collections::BTreeSet<_> = streams.iter().collect();
    assert_eq!(distinct.len(), streams.len());
    let others = std::mem::take(&mut pattern.other_groups);
    for other in &others {
        assert_eq!((other.count, other.events), (pattern.count, pattern.events));
        pattern.explains -= other.explains;
        pattern.weight -= other.weight;
    }
    pattern.crossing = pattern.occurrences.iter().map(|one| one.crossing).max().unwrap();
    std::iter::once(pattern).chain(others).collect()
}

/// The patterns from loops alone.
fn patterns_of_loops(processes: &Processes<'_>) -> Vec<CommunicationPattern> {
    let partners = Partners::of(processes).unwrap();
    communication_patterns(processes, &partners, &vec![Vec::new(); processes.traces().len()])
}

/// Checks all repetitions of all patterns, and returns how many they are.
fn check_sound(
    program: &Program,
    comms: &[OwnComms],
    processes: &Processes<'_>,
    patterns: &[CommunicationPattern],
) -> usize {
    let messages = Messages::of(program, comms);
    let checking = Checking { messages: &messages, processes, patterns };
    checking.all().unwrap_or_else(|wrong| panic!("{wrong}\n{}", text(program)))
}

fn text(program: &Program) -> String {
    let line = |calls: &Vec<Call>| calls.iter().map(Call::text).collect::<Vec<_>>().join("; ");
    program.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The heaviest pattern of just those who take part in a loop is its iteration, and all of them
/// together are as many as it has, with all messages inside. Exceptions:
///
/// - What is smaller than an iteration may be heavier: a part of it that occurs outside of the
///   loop as well.
/// - Equal events that are written in other loops, because something before or behind them is,
///   are another pattern. These are counted together.
/// - A generator says where there can be fewer iterations, more, or messages in flight.
fn check_complete(known: &KnownProgram, patterns: &[CommunicationPattern]) {
    for expected in &known.loops {
        let is_of_all = |pattern: &&CommunicationPattern| {
            let ranks = pattern.parts().iter().map(|part| part.stream.index());
            ranks.eq(expected.ranks.iter().copied()) && pattern.events >= expected.events
        };
        let mut of_all = patterns.iter().filter(is_of_all);
        let heaviest = of_all.next().map(|pattern| (pattern.events, pattern.crossing));
        let same = patterns.iter().filter(is_of_all).filter(|pattern| pattern.events == expected.events);
        let count = same.map(|pattern| pattern.count).sum();
        let is_right = heaviest.is_some_and(|(events, crossing)| {
            events == expected.events && (expected.may_cross || crossing == 0)
        });
        let is_right = is_right && (expected.fewest..=expected.most).contains(&count);
        assert!(is_right, "{} {expected:?}: {patterns:?}\n{}", known.kind, text(&known.program));
    }
}

/// Programs of each kind.
const PROGRAMS: u64 = 400;

#[test]
fn known_joint_loops_are_found_and_all_patterns_are_sound() {
    let (mut repetitions, mut loops) = (0, 0);
    for (kind, generator) in mpi_loops::GENERATORS.into_iter().enumerate() {
        for round in 0..PROGRAMS {
            let known = generator(&mut Rng::new(1_000_000 * kind as u64 + round));
            let fold = programs::fold_with(&known.program, &known.comms, &SequiturRuns);
            let processes = processes_of(&fold, MemoryBudget::default());
            let patterns = match round % 4 {
                0 => patterns_of_loops(&processes),
                _ => all_patterns(&processes),
            };
            repetitions += check_sound(&known.program, &known.comms, &processes, &patterns);
            check_complete(&known, &patterns);
            loops += known.loops.len();
        }
    }
    assert!(repetitions > 60_000 && loops > 6_000, "{repetitions} {loops}");
}

#[test]
fn patterns_are_sound_with_the_loops_of_every_folder() {
    let folders = folders();
    let stored = MemoryBudget { events: 0, ..MemoryBudget::default() };
    let mut repetitions = 0;
    for (kind, generator) in mpi_loops::GENERATORS.into_iter().enumerate() {
        for (round, folder) in (0..8).flat_map(|_| &folders).enumerate() {
            let known = generator(&mut Rng::new(1_000_000 * kind as u64 + 500_000 + round as u64));
            let fold = programs::fold_with(&known.program, &known.comms, &**folder);
            // Its own loops, and those that are found in what it unfolds to.
            for budget in [stored, MemoryBudget::default()] {
                let processes = processes_of(&fold, budget);
                let patterns = all_patterns(&processes);
                repetitions += check_sound(&known.program, &known.comms, &processes, &patterns);
            }
        }
    }
    assert!(repetitions > 20_000, "{repetitions}");
}

/// For every joint loop of a tiny program (see [`joint_enumerated`]) in which not every process
/// does one and the same, one is reported that has all of its iterations, or that is another
/// rotation of it with as many. Two kinds are counted, and few:
///
/// - Of two that overlap, only one is reported.
/// - Of two iterations in different rotations, less than one may be in the loops as written; then
///   a larger loop around the message in the middle can seem to fit, and does not.
#[test]
fn every_joint_loop_of_tiny_programs_is_reported() {
    let (mut found, mut overlapping, mut missing) = (0, 0, 0);
    for round in 0..8_000 {
        let program = mpi_loops::tiny(&mut Rng::new(50_000_000 + round), 14);
        let fold = programs::fold(&program, &SequiturRuns);
        let processes = processes_of(&fold, MemoryBudget::default());
        if !processes.communicate() {
            continue;
        }
        let comms = vec![Vec::new(); program.len()];
        let patterns = all_patterns(&processes);
        check_sound(&program, &comms, &processes, &patterns);
        let messages = Messages::of(&program, &comms);
        for members in joint_enumerated::joint_loops(&messages, &processes) {
            if joint_enumerated::is_operation(&messages, &members) {
                continue;
            }
            match joint_enumerated::reported(&patterns, &members) {
                Reported::Yes => found += 1,
                Reported::Overlapping => overlapping += 1,
                Reported::No => missing += 1,
            }
        }
    }
    assert!(found > 4_000, "{found}");
    assert!(overlapping * 100 < found && missing * 1_000 < found, "{found} {overlapping} {missing}");
}

/// A program from words such as `S1` and `R0`, a line for each process; a tag may follow, as in
/// `S1:7`.
fn program_of(lines: &[&str]) -> Program {
    let call = |word: &str| {
        let (peer, tag) = word[1..].split_once(':').unwrap_or((&word[1..], "0"));
        let (peer, tag) = (peer.parse().unwrap(), tag.parse().unwrap());
        if word.starts_with('S') { Call::Send(peer, tag, 8) } else { Call::Receive(peer, tag, 8) }
    };
    lines.iter().map(|line| line.split_whitespace().map(call).collect()).collect()
}

/// The patterns of a program, which are sound: count, events and messages that cross borders.
fn summaries(lines: &[&str]) -> Vec<(u64, u64, u64)> {
    let program = program_of(lines);
    let fold = programs::fold(&program, &SequiturRuns);
    let processes = processes_of(&fold, MemoryBudget::default());
    let patterns = all_patterns(&processes);
    check_sound(&program, &vec![Vec::new(); program.len()], &processes, &patterns);
    patterns.iter().map(|pattern| (pattern.count, pattern.events, pattern.crossing)).collect()
}

#[test]
fn a_loop_must_have_both_ends_of_messages_to_oneself() {
    assert_eq!(summaries(&["S1 R1 S1 R1 S1 R1", "R0 S0 S1 R0 S0 S1 R0 S0 S1 R1 R1 R1"]), []);
}

#[test]
fn loops_of_two_iterations_in_different_rotations_meet() {
    assert_eq!(summaries(&["R1 R1 S1 R1 S1", "S0 R0 S0 R0 S0"]), [(2, 4, 0)]);
}

#[test]
fn a_loop_that_something_splits_on_two_processes_keeps_all_iterations() {
    let line = ["S1 R1 ".repeat(3), "S2:7 ".to_string(), "S1 R1 ".repeat(2)].concat();
    let between = "R0 S0 R2 S2 ".repeat(5);
    let other = ["R1 S1 ".repeat(3), "R0:7 ".to_string(), "R1 S1 ".repeat(2)].concat();
    assert_eq!(summaries(&[&line, &between, &other]), [(5, 8, 0)]);
}

#[test]
fn messages_in_flight_around_an_inner_loop_cross_its_borders() {
    let sender = ["S1:1 ".to_string(), "S1:1 R1:2 S1:1 R1:2 R1:3 ".repeat(5)].concat();
    let receiver = ["S0:2 R0:1 S0:2 R0:1 S0:3 ".repeat(5), "R0:1".to_string()].concat();
    assert_eq!(summaries(&[&sender, &receiver])[..2], [(5, 10, 1), (10, 4, 1)]);
}

#[test]
fn an_inner_loop_begins_where_the_iteration_around_it_does() {
    let nested = "R1 R0 S0 R1 S1 R1 S1 R0 S0 R1 S1 R1 S1";
    assert_eq!(summaries(&[nested, "S0 R0 S0 R0 S0 R0 S0 R0 S0"]), [(2, 10, 0), (4, 4, 0)]);
}
