//! The n-gram detector of Alawneh and Hamou-Lhadj (section IV.B): finds patterns of a stream
//! online, in one pass.
//!
//! A pointer goes over the stream. A bi-gram that was not seen before is noted, and the pointer
//! moves on by one. One that was seen before grows, event by event, as long as what it has
//! grown to also occurs at an earlier position; the earlier positions grow with it. It rests
//! where no more fits, and the pointer continues at the event that did not fit. Every position
//! so rests at one n-gram, the longest it was ever seen to be; n-grams at which two or more
//! rest are the patterns. Contiguous repetitions ("tandem") of a bi-gram or of what has grown
//! from it are counted at once, and only the last of them grows further.
//!
//! The paper keeps a list of patterns and compares every position of a prefix with every
//! longer n-gram, which is quadratic. Here n-grams are the places of a compact trie, whose
//! edges refer to the stream. **A trie is enough because at a node no two positions that
//! could still grow have the same next event**: the second would have grown with the first.
//! So each such position is a leaf under its node, and what grows walks down the trie.
//! Positions that cannot grow (directly followed by themselves, so that they would overlap,
//! or at the end) are only noted. Where the paper is ambiguous, `loopfold-testing` says what
//! was chosen, and has the procedure as it is printed.
//!
//! **What it promises.** The paper calls what it finds maximal repeats. They are repeats, and
//! right-maximal: events that follow their positions are pairwise different, except for
//! positions that are directly followed by the pattern itself. They are parts of maximal
//! repeats, though not always such, since nothing compares what lies before a position; and a
//! bi-gram that was noted inside what became a longer pattern later stays where it is.
//!
//! **What it misses.** The pointer skips what a match covers. In `abc … bcd … abcd` the second
//! `bcd` begins inside the match of `abc`, where the pointer never stands, so that `bcd` is not
//! found, though it is a supermaximal repeat. [`Repeats`](super::Repeats) finds all there are.
//!
//! Time: linear except for comparisons of what may be a tandem repeat, which mostly differ at
//! once. Memory: 4 bytes an event for the stream itself, and about 50 for each place where the
//! pointer stood.

use crate::interrupt::Pace;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

/// A pattern that the n-gram detector found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NgramPattern {
    /// How many events it has.
    pub length: usize,
    /// Where it begins, at least twice, without overlaps, in order.
    pub positions: Vec<u32>,
}

/// Finds patterns while the events come.
///
/// ```
/// use loopfold::Symbol;
/// use loopfold::questions::patterns::{NgramPattern, Ngrams};
///
/// let mut ngrams = Ngrams::default();
/// for letter in "abcxabcyabc".bytes() {
///     ngrams.push(Symbol::new(letter.into())?)?;
/// }
/// let found = ngrams.finish();
/// assert_eq!(found, [NgramPattern { length: 3, positions: vec![0, 4, 8] }]);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ngrams {
    stream: Vec<Symbol>,
    detector: Detector,
}

impl Ngrams {
    /// Takes the next event.
    pub fn push(&mut self, symbol: Symbol) -> Result<()> {
        if self.stream.len() >= LONGEST {
            return Err(too_long(self.stream.len() + 1));
        }
        self.stream.push(symbol);
        self.detector.run(&self.stream, false);
        Ok(())
    }

    /// The patterns, by where each first begins, longer ones first.
    pub fn finish(mut self) -> Vec<NgramPattern> {
        self.detector.run(&self.stream, true);
        self.detector.patterns()
    }

    /// The patterns of a stream that is there already.
    pub fn of(stream: &[Symbol]) -> Result<Vec<NgramPattern>> {
        if stream.len() > LONGEST {
            return Err(too_long(stream.len()));
        }
        let mut detector = Detector::default();
        detector.run(stream, true);
        Ok(detector.patterns())
    }
}

/// Positions fit 32 bits, and so do twice as many nodes and edges.
const LONGEST: usize = 1 << 30;

fn too_long(events: usize) -> Error {
    Error::limit(format_args!(
        "a stream of {events} events, each repetition counted once; patterns are found in up to {LONGEST}"
    ))
}

/// An n-gram at which positions rest, or where the trie branches.
#[derive(Clone, Copy, Debug)]
struct Node {
    length: u32,
    /// One of its positions.
    position: u32,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The node above, or [`NONE`] for the edge of a bi-gram.
    node: u32,
    target: Target,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    /// A longer n-gram.
    Node(u32),
    /// A position that rests at the node above and could grow; at its bi-gram if there is
    /// none.
    Leaf(u32),
}

const NONE: u32 = u32::MAX;

/// What comes next. The events that are needed for it may still have to come.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A bi-gram is read.
    Bigram { at: usize },
    /// It is new; is it directly followed by itself? So many events of it are.
    New { at: usize, same: usize },
    /// An n-gram has a match, on an edge of the trie. Is it directly followed by itself?
    Matched { at: usize, length: usize, edge: u32, same: usize },
    /// It grows by an event, if that has a match.
    Grow { at: usize, length: usize, edge: u32 },
    /// It has none; but is it directly followed by itself with that event?
    Unmatched { at: usize, length: usize, node: u32, same: usize },
}

#[derive(Clone, Debug)]
struct Detector {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// The edges by their bi-gram, or by their node and the next event.
    index: HashMap<u64, u32>,
    /// Positions that rest at a node and cannot grow.
    rested: Vec<(u32, u32)>,
    step: Step,
    /// The position of the last bi-gram that was new.
    last_new: usize,
}

impl Default for Detector {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            index: HashMap::new(),
            rested: Vec::new(),
            step: Step::Bigram { at: 0 },
            last_new: usize::MAX - 1,
        }
    }
}

fn bigram_key(first: Symbol, second: Symbol) -> u64 {
    u64::from(first.raw()) << 32 | u64::from(second.raw())
}

/// Symbols have 31 bits, so that this is no bi-gram's.
fn child_key(node: u32, next: Symbol) -> u64 {
    1 << 63 | u64::from(node) << 32 | u64::from(next.raw())
}

impl Detector {
    /// Continues until more events are needed; to the end if no more will come.
    fn run(&mut self, stream: &[Symbol], finished: bool) {
        let mut pace = Pace::default();
        while let Some(next) = self.step(stream, finished) {
            pace.step();
            self.step = next;
        }
    }

    fn step(&mut self, stream: &[Symbol], finished: bool) -> Option<Step> {
        match self.step {
            Step::Bigram { at } => self.bigram(stream, at),
            Step::New { at, ref mut same } => {
                let times = tandem(stream, at, 2, same, finished)?;
                Some(self.note_new(stream, at, times))
            }
            Step::Matched { mut at, length, edge, ref mut same } => {
                let times = tandem(stream, at, length, same, finished)?;
                if times > 1 {
                    let node = self.split(stream, edge, length);
                    at = self.rest_all_but_last(node, at, length, times);
                }
                Some(Step::Grow { at, length, edge })
            }
            Step::Grow { at, length, edge } => match stream.get(at + length) {
                Some(&next) => Some(self.grow(stream, at, length, edge, next)),
                None if !finished => None,
                None => {
                    let node = self.split(stream, edge, length);
                    self.rested.push((node, at as u32));
                    Some(Step::Bigram { at: at + length })
                }
            },
            Step::Unmatched { at, length, node, ref mut same } => {
                let times = tandem(stream, at, length + 1, same, finished)?;
                let next = stream[at + length];
                if times == 1 {
                    self.put(node, next, Target::Leaf(at as u32));
                    return Some(Step::Bigram { at: at + length });
                }
                let longer = self.add_node(length + 1, at);
                let edge = self.put(node, next, Target::Node(longer));
                let at = self.rest_all_but_last(longer, at, length + 1, times);
                Some(Step::Grow { at, length: length + 1, edge })
            }
        }
    }

    fn bigram(&self, stream: &[Symbol], at: usize) -> Option<Step> {
        let &[first, second] = stream.get(at..at + 2)? else { return None };
        // `aa` at both places of `aaa` would overlap.
        if first == second && self.last_new + 1 == at && stream[self.last_new] == first {
            return Some(Step::Bigram { at: at + 1 });
        }
        Some(match self.index.get(&bigram_key(first, second)) {
            None => Step::New { at, same: 0 },
            Some(&edge) => Step::Matched { at, length: 2, edge, same: 0 },
        })
    }

    fn note_new(&mut self, stream: &[Symbol], at: usize, times: usize) -> Step {
        let edge = self.edges.len() as u32;
        self.edges.push(Edge { node: NONE, target: Target::Leaf(at as u32) });
        self.index.insert(bigram_key(stream[at], stream[at + 1]), edge);
        self.last_new = at;
        if times > 1 {
            let node = self.add_node(2, at);
            self.edges[edge as usize].target = Target::Node(node);
            self.last_new = self.rest_all_but_last(node, at, 2, times);
            self.rest(stream, node, self.last_new);
        }
        Step::Bigram { at: self.last_new + 1 }
    }

    /// The n-gram at a position has a match on an edge; has it one with the next event?
    fn grow(&mut self, stream: &[Symbol], at: usize, length: usize, edge: u32, next: Symbol) -> Step {
        let (edge, grows) = match self.edges[edge as usize].target {
            Target::Node(node) if self.nodes[node as usize].length as usize == length => {
                match self.index.get(&child_key(node, next)) {
                    None => return Step::Unmatched { at, length, node, same: 0 },
                    Some(&below) => match self.edges[below as usize].target {
                        Target::Leaf(other) if is_tandem(stream, other as usize, length) => {
                            self.rested.push((node, other));
                            return Step::Unmatched { at, length, node, same: 0 };
                        }
                        _ => (below, true),
                    },
                }
            }
            Target::Node(node) => {
                let other = self.nodes[node as usize].position as usize;
                (edge, stream[other + length] == next)
            }
            Target::Leaf(other) => {
                let other = other as usize;
                (edge, stream[other + length] == next && !is_tandem(stream, other, length))
            }
        };
        if grows {
            Step::Matched { at, length: length + 1, edge, same: 0 }
        } else {
            let node = self.split(stream, edge, length);
            Step::Unmatched { at, length, node, same: 0 }
        }
    }

    /// The node of this length on an edge, which may have to be made.
    fn split(&mut self, stream: &[Symbol], edge: u32, length: usize) -> u32 {
        let below = self.edges[edge as usize].target;
        let position = match below {
            Target::Node(node) if self.nodes[node as usize].length as usize == length => return node,
            Target::Node(node) => self.nodes[node as usize].position,
            Target::Leaf(position) => position,
        };
        let node = self.add_node(length, position as usize);
        self.edges[edge as usize].target = Target::Node(node);
        match below {
            Target::Node(_) => drop(self.put(node, stream[position as usize + length], below)),
            Target::Leaf(position) => self.rest(stream, node, position as usize),
        }
        node
    }

    fn add_node(&mut self, length: usize, position: usize) -> u32 {
        self.nodes.push(Node { length: length as u32, position: position as u32 });
        self.nodes.len() as u32 - 1
    }

    /// Sets what is below a node at the next event.
    fn put(&mut self, node: u32, next: Symbol, target: Target) -> u32 {
        let edges = &mut self.edges;
        let edge = *self.index.entry(child_key(node, next)).or_insert_with(|| {
            edges.push(Edge { node, target });
            edges.len() as u32 - 1
        });
        edges[edge as usize].target = target;
        edge
    }

    /// A position comes to rest at a node; it may grow later, if it can.
    fn rest(&mut self, stream: &[Symbol], node: u32, position: usize) {
        let length = self.nodes[node as usize].length as usize;
        match stream.get(position + length) {
            Some(&next) if !is_tandem(stream, position, length) => {
                self.put(node, next, Target::Leaf(position as u32));
            }
            _ => self.rested.push((node, position as u32)),
        }
    }

    /// Notes all repetitions but the last and returns its position.
    fn rest_all_but_last(&mut self, node: u32, at: usize, length: usize, times: usize) -> usize {
        let position = |repetition: usize| at + repetition * length;
        self.rested.extend((0..times - 1).map(|repetition| (node, position(repetition) as u32)));
        position(times - 1)
    }

    /// The nodes at which two or more positions rest.
    fn patterns(&self) -> Vec<NgramPattern> {
        let leaves = self.edges.iter().filter_map(|edge| match edge.target {
            Target::Leaf(position) if edge.node != NONE => Some((edge.node, position)),
            _ => None,
        });
        let resting = || leaves.clone().chain(self.rested.iter().copied());
        let mut counts = vec![0u32; self.nodes.len()];
        resting().for_each(|(node, _)| counts[node as usize] += 1);
        let mut chosen: Vec<(u32, u32)> = resting().filter(|&(node, _)| counts[node as usize] >= 2).collect();
        chosen.sort_unstable();
        let mut patterns: Vec<NgramPattern> = chosen
            .chunk_by(|one, other| one.0 == other.0)
            .map(|resting| NgramPattern {
                length: self.nodes[resting[0].0 as usize].length as usize,
                positions: resting.iter().map(|&(_, position)| position).collect(),
            })
            .collect();
        patterns.sort_unstable_by_key(|pattern| (pattern.positions[0], std::cmp::Reverse(pattern.length)));
        patterns
    }
}

/// How often what begins at a position is there, one directly after the other; `same` events
/// behind it are known to be the same. Returns `None` if that depends on events still to come.
fn tandem(stream: &[Symbol], at: usize, length: usize, same: &mut usize, finished: bool) -> Option<usize> {
    let behind = stream.get(at + length..).unwrap_or_default();
    let compared = *same;
    let more = stream[at + compared..].iter().zip(&behind[compared.min(behind.len())..]);
    *same += more.take_while(|(one, other)| one == other).count();
    if *same == behind.len() && !finished {
        return None;
    }
    Some(1 + *same / length)
}

/// Whether what begins at a position is directly followed by itself.
fn is_tandem(stream: &[Symbol], at: usize, length: usize) -> bool {
    let next = stream.get(at + length..at + 2 * length);
    next.is_some_and(|next| next[0] == stream[at] && next == &stream[at..at + length])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_are_looked_at_as_soon_as_they_decide_something() {
        let mut ngrams = Ngrams::default();
        for letter in "abcxabcyxabc".bytes() {
            ngrams.push(Symbol::new(letter.into()).unwrap()).unwrap();
        }
        // `xabc` at 8 has a match up to the end; whether it comes again is still open.
        let step = ngrams.detector.step;
        assert!(matches!(step, Step::Matched { at: 8, length: 4, .. }), "{step:?}");
    }
}
