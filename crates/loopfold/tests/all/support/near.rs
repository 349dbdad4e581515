//! Loops with exceptions compared with their definition, and followed along the stream.

use super::outermost;
use loopfold::fold::FoldBuilder;
use loopfold::questions::near::{Change, Config, NearLoop, NearSearch, Part, near_nest};
use loopfold::questions::nest::{Nest, Node};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::{near, nest};

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
pub fn compare(fold: &Fold, root: RuleId, stream: &[u32]) -> usize {
    let nest = fold.nest(root, usize::MAX);
    let expected = near::near_loops(&nest::Nest(tree(&nest, 0..nest.nodes.len())), &folded);
    let found = NearSearch::new(fold, Config::new(&outermost)).unwrap().loops(root).unwrap();
    let plain: Vec<near::NearLoop> = found.iter().map(plain).collect();
    assert_eq!(plain, expected, "{stream:?}");
    for near in &found {
        assert_eq!(written_out(near), stream[near.start as usize..near.end as usize], "{stream:?}");
    }
    found.len()
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
pub fn follow(fold: &Fold, root: RuleId, stream: &[u32]) -> usize {
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
