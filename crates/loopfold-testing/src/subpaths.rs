//! Hot subpaths by their definition, on unfolded streams, and figure 7 of "Whole Program
//! Paths" word for word.

use std::collections::{BTreeSet, HashMap};

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub struct Hot {
    /// The fewest events.
    pub min: usize,
    /// The most events.
    pub max: usize,
    /// The least count times cost of a hot subpath.
    pub limit: u128,
}

/// A subpath and how often it occurs.
pub type Counted = (Vec<u32>, u64);

/// How often each subpath of at most `max` events occurs in the streams.
fn counts(streams: &[Vec<u32>], max: usize) -> HashMap<&[u32], u64> {
    let mut counts = HashMap::new();
    for stream in streams {
        for start in 0..stream.len() {
            for end in start + 1..=stream.len().min(start + max) {
                *counts.entry(&stream[start..end]).or_insert(0) += 1;
            }
        }
    }
    counts
}

/// All hot subpaths, or those without a shorter hot prefix of at least `min` events;
/// the costliest first, then the shortest, then by their events.
pub fn hot(streams: &[Vec<u32>], cost: impl Fn(u32) -> u64, hot: Hot, all: bool) -> Vec<Counted> {
    let counts = counts(streams, hot.max);
    let total = |path: &[u32]| {
        let each: u128 = path.iter().map(|&event| u128::from(cost(event))).sum();
        u128::from(counts[path]) * each
    };
    let is_hot = |path: &[u32]| path.len() >= hot.min && total(path) >= hot.limit;
    let is_minimal = |path: &[u32]| (1..path.len()).all(|length| !is_hot(&path[..length]));
    let chosen = counts.keys().filter(|path| is_hot(path) && (all || is_minimal(path)));
    let mut chosen: Vec<Counted> = chosen.map(|path| (path.to_vec(), counts[path])).collect();
    chosen.sort_by_key(|(path, _)| (std::cmp::Reverse(total(path)), path.len(), path.clone()));
    chosen
}

/// How often a subpath occurs in a stream.
pub fn count(stream: &[u32], path: &[u32]) -> u64 {
    stream.windows(path.len()).filter(|window| *window == path).count() as u64
}

/// What stands in a rule of a grammar without counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An event.
    Event(u32),
    /// A rule, by its number.
    Rule(usize),
}

/// Figure 7: what it prints for a grammar without counts. `frequencies` says how often
/// each rule is unfolded; a rule's parts come before it.
///
/// Where the figure is silent: a full string drops its first symbol; `Freeze` leaves of
/// the prefix what lies before the find, and a prefix that is frozen, or that an inner
/// rule's prefix which does not cover its node was appended to, does not cover its node.
pub fn figure_seven(
    rules: &[Vec<Part>],
    frequencies: &[u64],
    cost: impl Fn(u32) -> u64,
    hot: Hot,
) -> BTreeSet<Vec<u32>> {
    let mut scan =
        Scan { rules, frequencies, cost, hot, done: vec![None; rules.len()], printed: BTreeSet::new() };
    for rule in 0..rules.len() {
        scan.report_hot_sub_paths(rule);
    }
    scan.printed
}

struct Scan<'a, C> {
    rules: &'a [Vec<Part>],
    frequencies: &'a [u64],
    cost: C,
    hot: Hot,
    done: Vec<Option<Node>>,
    printed: BTreeSet<Vec<u32>>,
}

/// A rule of the figure, with what it has read so far.
#[derive(Clone, Default)]
struct Node {
    prefix: Vec<u32>,
    frozen: bool,
    covers_node: bool,
    sub_path: Vec<u32>,
    /// How many events of the node were passed, to know where a find begins.
    passed: usize,
    length: usize,
}

impl<C: Fn(u32) -> u64> Scan<'_, C> {
    fn report_hot_sub_paths(&mut self, rule: usize) {
        if self.done[rule].is_some() || self.frequencies[rule] == 0 {
            return;
        }
        let mut node = Node { covers_node: true, ..Node::default() };
        for &part in &self.rules[rule] {
            match part {
                Part::Event(event) => self.append_terminal(rule, &mut node, event),
                Part::Rule(inner) => {
                    self.report_hot_sub_paths(inner);
                    let inner = self.done[inner].clone().unwrap_or_default();
                    let start = node.passed;
                    for &event in &inner.prefix {
                        self.append_terminal(rule, &mut node, event);
                    }
                    if !inner.covers_node {
                        node.sub_path = inner.sub_path;
                        node.frozen = true;
                        node.covers_node = false;
                    }
                    node.passed = start + inner.length;
                }
            }
        }
        node.length = node.passed;
        self.done[rule] = Some(node);
    }

    fn append_terminal(&mut self, rule: usize, node: &mut Node, event: u32) {
        node.passed += 1;
        if node.prefix.len() < self.hot.max && !node.frozen {
            node.prefix.push(event);
        } else {
            node.frozen = true;
            node.covers_node = false;
        }
        if node.sub_path.len() == self.hot.max {
            node.sub_path.remove(0);
        }
        node.sub_path.push(event);
        let each: u128 = node.sub_path.iter().map(|&event| u128::from((self.cost)(event))).sum();
        let expense = each * u128::from(self.frequencies[rule]);
        if self.hot.limit <= expense && self.hot.min <= node.sub_path.len() {
            self.printed.insert(node.sub_path.clone());
            node.prefix.truncate(node.passed - node.sub_path.len());
            node.frozen = true;
            node.covers_node = false;
            node.sub_path.clear();
        }
    }
}
