//! Loops with exceptions against their definition.

use crate::support::{fold_of, folders, outermost};
use loopfold::fold::FoldBuilder;
use loopfold::questions::near::{Change, Config, NearLoop, NearSearch, Part, near_nest};
use loopfold::questions::nest::{Nest, Node};
use loopfold::{Fold, Symbol};
use loopfold_testing::near::{self, Loops};
use loopfold_testing::{Rng, nest, streams};

fn tree(nest: &Nest, range: std::ops::Range<usize>) -> Vec<nest::Node> {
    let node = |at: usize| match nest.nodes[at] {
        Node::Event(symbol) => nest::Node::Event(symbol.raw()),
        Node::Loop { times, .. } => nest::Node::Loop(tree(nest, nest.body(at)), times),
        Node::Near { .. } | Node::LeftOut(_) => panic!("an exact and short nest"),
    };
    nest.children(range).map(node).collect()
}

fn numbers(symbols: &[Symbol]) -> Vec<u32> {
    symbols.iter().map(|symbol| symbol.raw()).collect()
}

fn plain(near: &NearLoop) -> near::NearLoop {
    let kind = |kind: &loopfold::questions::near::Kind| {
        (kind.count as usize, kind.first as usize, kind.iterations as usize, kind.change.written() as usize)
    };
    near::NearLoop {
        span: (near.start as usize, near.end as usize),
        body: numbers(&near.body),
        equal: near.equal as usize,
        kinds: near.kinds.iter().map(kind).collect(),
        exceptions: near.exceptions.iter().map(|gap| (gap.start as usize, gap.end as usize)).collect(),
        written: (near.written as usize, near.exact as usize),
    }
}

/// The events of a loop with exceptions, from its body and its kinds alone.
fn written_out(near: &NearLoop) -> Vec<u32> {
    let mut events = Vec::new();
    let mut exceptions = near.exceptions.iter();
    let mut next = exceptions.next();
    let mut equal = 0;
    while near.start + (events.len() as u64) < near.end {
        match next {
            Some(gap) if gap.start == near.start + events.len() as u64 => {
                let kind = &near.kinds[gap.kind];
                let gap_events = match &kind.change {
                    Change::Events(events) => numbers(events),
                    Change::Edits(edits) => {
                        let mut edited = numbers(&near.body.repeat(kind.iterations as usize));
                        for edit in edits.iter().rev() {
                            let range = edit.at..edit.at + edit.removed.len();
                            assert_eq!(edited[range.clone()], numbers(&edit.removed));
                            edited.splice(range, numbers(&edit.inserted));
                        }
                        edited
                    }
                };
                assert_eq!(gap_events.len() as u64, gap.end - gap.start);
                events.extend(gap_events);
                next = exceptions.next();
            }
            _ => {
                events.extend(numbers(&near.body));
                equal += 1;
            }
        }
    }
    assert_eq!((equal, next), (near.equal, None));
    events
}

/// The nest of a body.
fn folded(body: &[u32]) -> nest::Nest {
    let body: Vec<Symbol> = body.iter().map(|&symbol| Symbol::new(symbol as usize).unwrap()).collect();
    let mut builder = FoldBuilder::default();
    let root = outermost(&body, &mut builder).unwrap();
    let nest = builder.finish().nest(root, usize::MAX);
    nest::Nest(tree(&nest, 0..nest.nodes.len()))
}

/// Compares what is found in a fold of one stream with the definition; returns how many there are.
fn compare(fold: &Fold, stream: &[u32]) -> usize {
    let root = fold.streams()[0].root();
    let nest = fold.nest(root, usize::MAX);
    let expected = near::near_loops(&nest::Nest(tree(&nest, 0..nest.nodes.len())), &folded);
    let found = NearSearch::new(fold, Config::new(&outermost)).unwrap().loops(root).unwrap().unwrap();
    let plain: Vec<near::NearLoop> = found.iter().map(plain).collect();
    assert_eq!(plain, expected, "{stream:?}");
    for near in &found {
        assert_eq!(written_out(near), stream[near.start as usize..near.end as usize], "{stream:?}");
    }
    found.len()
}

#[test]
fn equal_the_definition_on_programs_with_odd_iterations() {
    let mut rng = Rng::new(1);
    let (folders, mut found) = (folders(), 0);
    for round in 0..10_000 {
        let loops = Loops {
            loops: rng.between(1, 3),
            iterations: rng.between(3, 40),
            longest: rng.between(1, 12),
            letters: rng.between(2, 8),
            odd: rng.between(0, 250),
        };
        let program = near::program(&mut rng, loops);
        // The nest to show most often, the others in turn.
        let folder = if round % 2 == 0 { 0 } else { round / 2 % folders.len() };
        if program.events.len() > 200 && folders[folder].name() == "minimum" {
            continue;
        }
        found += compare(&fold_of(std::slice::from_ref(&program.events), &*folders[folder]), &program.events);
    }
    assert!(found > 3000, "{found}");
}

/// Follows a nest with loops with exceptions along its stream.
struct Follower<'a> {
    nest: &'a Nest,
    stream: &'a [u32],
    position: usize,
    occurrences: Vec<u64>,
    /// For each loop with exceptions: occurrences, iterations, equal ones, and events.
    seen: Vec<[u64; 4]>,
}

impl Follower<'_> {
    fn body(&mut self, range: std::ops::Range<usize>) {
        for at in self.nest.children(range) {
            match self.nest.nodes[at] {
                Node::Event(symbol) => {
                    assert_eq!(
                        symbol.raw(),
                        self.stream[self.position],
                        "at {} of {:?}",
                        self.position,
                        self.stream
                    );
                    self.position += 1;
                }
                Node::Loop { times, length, .. } => {
                    let start = self.position;
                    (0..times).for_each(|_| self.body(self.nest.body(at)));
                    assert_eq!((self.position - start) as u64, times * length, "{:?}", self.stream);
                }
                Node::Near { near, .. } => self.near(at, near),
                Node::LeftOut(_) => panic!("a short nest is whole"),
            }
        }
    }

    fn near(&mut self, at: usize, index: usize) {
        let near = &self.nest.near[index];
        let start = self.position;
        let mut iterations = 0;
        for part in near.parts(self.occurrences[index]) {
            match *part {
                Part::Equal(times) => {
                    for _ in 0..times {
                        let start = self.position;
                        self.body(self.nest.body(at));
                        let length = (self.position - start) as u64;
                        assert!((near.lengths.0..=near.lengths.1).contains(&length));
                    }
                    self.seen[index][2] += times;
                    iterations += times;
                }
                Part::Exception(length, kind) => {
                    self.position += length as usize;
                    iterations += near.kinds[kind].iterations;
                }
            }
        }
        assert!((near.iterations.0..=near.iterations.1).contains(&iterations));
        assert!(self.occurrences[index] > 0 || near.start == start as u64);
        self.occurrences[index] += 1;
        self.seen[index][0] += 1;
        self.seen[index][1] += iterations;
        self.seen[index][3] += (self.position - start) as u64;
    }
}

/// Follows the nest of a stream; returns how many loops with exceptions it has.
fn follow(fold: &Fold, stream: &[u32]) -> usize {
    let root = fold.streams()[0].root();
    let Some(nest) = near_nest(fold, root, usize::MAX, Config::new(&outermost)).unwrap() else { return 0 };
    let count = nest.near.len();
    let mut follower =
        Follower { nest: &nest, stream, position: 0, occurrences: vec![0; count], seen: vec![[0; 4]; count] };
    follower.body(0..nest.nodes.len());
    assert_eq!(follower.position, stream.len());
    for (near, seen) in nest.near.iter().zip(follower.seen) {
        assert_eq!([near.occurrences, near.all_iterations, near.equal, near.events], seen, "{stream:?}");
        assert_eq!(near.odd(), near.kinds.iter().map(|kind| kind.count * kind.iterations).sum::<u64>());
    }
    count
}

/// Loops in loops with odd iterations and numbers of iterations that vary.
fn nested(rng: &mut Rng, depth: usize, letters: usize) -> Vec<u32> {
    let (least, more, odd) = (rng.between(1, 6), rng.below(4), rng.between(0, 100));
    let parts: Vec<Vec<u32>> = (0..rng.between(1, 3))
        .map(|_| (0..rng.between(1, 4)).map(|_| rng.below(letters) as u32).collect())
        .collect();
    let mut events = Vec::new();
    for _ in 0..if depth == 0 { rng.between(20, 40) } else { rng.between(least, least + more) } {
        for (index, part) in parts.iter().enumerate() {
            events.extend(part);
            if index == 0 && depth < 2 {
                let seed = rng.below(3) as u64;
                events.extend(nested(&mut Rng::new(depth as u64 * 7 + seed), depth + 1, letters));
            }
        }
        if rng.below(1000) < odd {
            events.push(rng.below(letters) as u32);
        }
    }
    events
}

#[test]
fn nests_unfold_to_the_stream() {
    let mut rng = Rng::new(3);
    let (folders, mut found) = (folders(), 0);
    for round in 0..2_000 {
        let letters = rng.between(2, 8);
        let stream = match round % 3 {
            0 => nested(&mut rng, 0, letters),
            1 => {
                let loops = Loops { loops: 2, iterations: 30, longest: 8, letters, odd: 100 };
                near::program(&mut rng, loops).events.repeat(2)
            }
            _ => streams::small(&mut rng, 300).iter().map(|event| event % 8).collect(),
        };
        let folder = if round % 2 == 0 { 0 } else { round / 2 % folders.len() };
        if stream.len() <= 200 || folders[folder].name() != "minimum" {
            found += follow(&fold_of(std::slice::from_ref(&stream), &*folders[folder]), &stream);
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn equal_the_definition_on_streams_of_all_kinds() {
    let mut rng = Rng::new(2);
    let folders = folders();
    for round in 0..3_000 {
        let stream: Vec<u32> = streams::small(&mut rng, 150).iter().map(|event| event % 8).collect();
        compare(&fold_of(std::slice::from_ref(&stream), &*folders[round % folders.len()]), &stream);
    }
}
