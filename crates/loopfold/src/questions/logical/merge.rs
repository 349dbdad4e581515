//! Merges the trees of classes into one: what classes share is one node, what only some do keeps
//! its members and becomes a branch.
//!
//! Two bodies are aligned by dynamic programming over pairs of nodes; of long ones the common
//! beginning and end are found by hashes first. Events match if their shapes are equal, loops if they have
//! most shapes in common, and a loop also matches its body written once, which is how a process
//! that iterates once has it. Larger bodies than the table allows are aligned at events that
//! occur once in both. Whatever is aligned, unfolding gives every class its own nodes in order:
//! a poor alignment costs size, not truth.

use super::tree::{Kind, TreeNode};
use crate::Symbol;
use hashbrown::HashMap;

/// Cells of all tables at most; beyond it nothing is aligned.
const MOST_CELLS: u64 = 1 << 28;
/// Cells of one table at most.
const MOST_CELLS_ONCE: u64 = 1 << 22;

/// Cells of a table that is not made smaller by common ends.
const SMALL: u64 = 1 << 12;

/// Merges trees, one after the other.
pub(super) struct Merger<'a> {
    cells_left: u64,
    /// How similar two symbols of two classes are that have the same shape.
    likeness: &'a dyn Fn((u32, Symbol), (u32, Symbol)) -> u32,
}

/// A step of an alignment: how many nodes of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    First,
    Second,
    Both,
    /// A loop of the first, and its body once in the second.
    LoopAndBody(usize),
    /// The body once in the first, and the loop in the second.
    BodyAndLoop(usize),
}

impl<'a> Merger<'a> {
    pub(super) fn new(likeness: &'a dyn Fn((u32, Symbol), (u32, Symbol)) -> u32) -> Self {
        Self { cells_left: MOST_CELLS, likeness }
    }

    /// Two bodies of different classes as one.
    pub(super) fn merge(&mut self, mut one: Vec<TreeNode>, mut other: Vec<TreeNode>) -> Vec<TreeNode> {
        let same = |(one, other): &(&TreeNode, &TreeNode)| one.hash == other.hash;
        // Where the table is small, it decides also which of several equal shapes match.
        let is_small = (one.len() * other.len()) as u64 <= SMALL;
        let begin = if is_small { 0 } else { one.iter().zip(&other).take_while(same).count() };
        let rest = if is_small { 0 } else { (one.len() - begin).min(other.len() - begin) };
        let end = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(same).count();
        let one_end = one.split_off(one.len() - end);
        let other_end = other.split_off(other.len() - end);
        let one_middle = one.split_off(begin);
        let other_middle = other.split_off(begin);
        let mut merged: Vec<TreeNode> = Vec::with_capacity(one.len() + one_middle.len() + one_end.len());
        merged.extend(one.into_iter().zip(other).map(|(one, other)| self.pair(one, other)));
        let steps = self.align(&one_middle, &other_middle);
        self.follow(&steps, one_middle, other_middle, &mut merged);
        merged.extend(one_end.into_iter().zip(other_end).map(|(one, other)| self.pair(one, other)));
        merged
    }

    fn follow(
        &mut self,
        steps: &[Step],
        one: Vec<TreeNode>,
        other: Vec<TreeNode>,
        merged: &mut Vec<TreeNode>,
    ) {
        let (mut one, mut other) = (one.into_iter(), other.into_iter());
        for step in steps {
            match *step {
                Step::First => merged.extend(one.next()),
                Step::Second => merged.extend(other.next()),
                Step::Both => {
                    let both = one.next().zip(other.next());
                    merged.extend(both.map(|(one, other)| self.pair(one, other)));
                }
                Step::LoopAndBody(length) => {
                    let body: Vec<TreeNode> = other.by_ref().take(length).collect();
                    merged.extend(one.next().map(|one| self.pair(one, once(body))));
                }
                Step::BodyAndLoop(length) => {
                    let body: Vec<TreeNode> = one.by_ref().take(length).collect();
                    merged.extend(other.next().map(|other| self.pair(once(body), other)));
                }
            }
        }
    }

    /// Two nodes that match as one.
    fn pair(&mut self, one: TreeNode, other: TreeNode) -> TreeNode {
        let is_event = |node: &TreeNode| matches!(node.kind, Kind::Event { .. });
        if is_event(&one) != is_event(&other) {
            let as_loop = |node: TreeNode| if is_event(&node) { once(vec![node]) } else { node };
            return self.pair(as_loop(one), as_loop(other));
        }
        match (one.kind, other.kind) {
            (Kind::Event { shape, symbols }, Kind::Event { symbols: more, .. }) => {
                let (members, symbols) = zipped(one.members, symbols, other.members, more);
                TreeNode::event(members, shape, symbols)
            }
            (Kind::Loop { times, body, .. }, Kind::Loop { times: more, body: inner, .. }) => {
                let (members, times) = zipped(one.members, times, other.members, more);
                let body = self.merge(body, inner);
                TreeNode::repeated(members, times, body)
            }
            // Both are of one kind.
            (kind, _) => TreeNode { members: one.members, hash: one.hash, kind },
        }
    }

    /// How to match two bodies.
    fn align(&mut self, one: &[TreeNode], other: &[TreeNode]) -> Vec<Step> {
        let cells = (one.len() as u64 + 1) * (other.len() as u64 + 1);
        if one.is_empty() || other.is_empty() || cells > self.cells_left {
            return apart(one.len(), other.len());
        }
        if cells > MOST_CELLS_ONCE {
            return self.align_at_anchors(one, other);
        }
        self.cells_left -= cells;
        Table::new(one, other, self.likeness).steps()
    }

    /// Aligns at nodes that occur once in both bodies, in the longest order that both have.
    fn align_at_anchors(&mut self, one: &[TreeNode], other: &[TreeNode]) -> Vec<Step> {
        let anchors = anchors(one, other);
        let (mut steps, mut first, mut second) = (Vec::new(), 0, 0);
        for &(in_one, in_other) in &anchors {
            let cells = ((in_one - first) as u64 + 1) * ((in_other - second) as u64 + 1);
            let (before, beside) = (&one[first..in_one], &other[second..in_other]);
            steps.extend(match cells <= MOST_CELLS_ONCE {
                true => self.align(before, beside),
                false => apart(before.len(), beside.len()),
            });
            steps.push(Step::Both);
            (first, second) = (in_one + 1, in_other + 1);
        }
        let (one, other) = (&one[first..], &other[second..]);
        let cells = (one.len() as u64 + 1) * (other.len() as u64 + 1);
        steps.extend(match cells <= MOST_CELLS_ONCE {
            true => self.align(one, other),
            false => apart(one.len(), other.len()),
        });
        steps
    }
}

fn apart(one: usize, other: usize) -> Vec<Step> {
    let mut steps = vec![Step::First; one];
    steps.resize(one + other, Step::Second);
    steps
}

/// A body as a loop that iterates once.
fn once(body: Vec<TreeNode>) -> TreeNode {
    let members = body.first().map_or_else(Vec::new, |node| node.members.clone());
    let times = vec![1; members.len()];
    TreeNode::repeated(members, times, body)
}

/// The members of both, in order, with what each has.
fn zipped<T>(one: Vec<u32>, values: Vec<T>, other: Vec<u32>, more: Vec<T>) -> (Vec<u32>, Vec<T>) {
    let mut all: Vec<(u32, T)> = one.into_iter().zip(values).chain(other.into_iter().zip(more)).collect();
    all.sort_by_key(|&(member, _)| member);
    all.into_iter().unzip()
}

/// Nodes that occur once in both bodies, increasing in both.
fn anchors(one: &[TreeNode], other: &[TreeNode]) -> Vec<(usize, usize)> {
    let unique = |nodes: &[TreeNode]| {
        let mut places: HashMap<u64, Option<usize>> = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            places.entry(node.hash).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let in_other = unique(other);
    let mut pairs: Vec<(usize, usize)> = unique(one)
        .into_iter()
        .filter_map(|(hash, place)| Some((place?, (*in_other.get(&hash)?)?)))
        .collect();
    pairs.sort_unstable();
    longest_increasing(&pairs)
}

/// The most pairs whose second numbers increase.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair that ends the chain with the least second number.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chain = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        chain.push(pairs[at]);
        next = before[at];
    }
    chain.reverse();
    chain
}

/// The table of dynamic programming over two bodies.
struct Table<'a> {
    one: &'a [TreeNode],
    other: &'a [TreeNode],
    /// The best score of what follows each pair of places.
    scores: Vec<u32>,
    likeness: &'a dyn Fn((u32, Symbol), (u32, Symbol)) -> u32,
}

impl<'a> Table<'a> {
    fn new(
        one: &'a [TreeNode],
        other: &'a [TreeNode],
        likeness: &'a dyn Fn((u32, Symbol), (u32, Symbol)) -> u32,
    ) -> Self {
        let scores = vec![0; (one.len() + 1) * (other.len() + 1)];
        let mut table = Self { one, other, scores, likeness };
        for first in (0..one.len()).rev() {
            for second in (0..other.len()).rev() {
                let best = table.options(first, second).map(|(_, score)| score).max();
                let at = table.at(first, second);
                table.scores[at] = best.unwrap_or(0);
            }
        }
        table
    }

    fn at(&self, first: usize, second: usize) -> usize {
        first * (self.other.len() + 1) + second
    }

    /// The steps from two places, each with the score of what then follows.
    fn options(&self, first: usize, second: usize) -> impl Iterator<Item = (Step, u32)> {
        let (one, other) = (&self.one[first], &self.other[second]);
        let score = |first: usize, second: usize| self.scores[self.at(first, second)];
        let both = self.match_score(one, other).map(|more| (Step::Both, more + score(first + 1, second + 1)));
        let unrolled = body_at(one, &self.other[second..])
            .map(|length| (Step::LoopAndBody(length), 6 * length as u32 + score(first + 1, second + length)));
        let rolled = body_at(other, &self.one[first..])
            .map(|length| (Step::BodyAndLoop(length), 6 * length as u32 + score(first + length, second + 1)));
        let skipped = [(Step::First, score(first + 1, second)), (Step::Second, score(first, second + 1))];
        both.into_iter().chain(unrolled).chain(rolled).chain(skipped)
    }

    /// How well two nodes match. `None` if they do not.
    fn match_score(&self, one: &TreeNode, other: &TreeNode) -> Option<u32> {
        match (&one.kind, &other.kind) {
            (Kind::Event { shape, symbols }, Kind::Event { shape: there, symbols: others }) => (shape
                == there)
                .then(|| 6 + (self.likeness)((one.members[0], symbols[0]), (other.members[0], others[0]))),
            (Kind::Loop { shapes, times, .. }, Kind::Loop { shapes: there, times: others, .. }) => {
                let common = common(shapes, there);
                let is_most = common * 4 > shapes.len() + there.len();
                let is_joint = common > 0 && times[0] == others[0];
                let is_equal = one.hash == other.hash;
                (is_most || is_joint)
                    .then(|| 4 * common as u32 + u32::from(is_equal) + u32::from(times[0] == others[0]))
            }
            (Kind::Event { shape, .. }, Kind::Loop { body, .. })
            | (Kind::Loop { body, .. }, Kind::Event { shape, .. }) => match &body[..] {
                [TreeNode { kind: Kind::Event { shape: there, .. }, .. }] => (shape == there).then_some(3),
                _ => None,
            },
        }
    }

    fn steps(&self) -> Vec<Step> {
        let (mut first, mut second, mut steps) = (0, 0, Vec::new());
        while first < self.one.len() && second < self.other.len() {
            let wanted = self.scores[self.at(first, second)];
            let step = self.options(first, second).find(|&(_, score)| score == wanted);
            let step = step.map_or(Step::First, |(step, _)| step);
            (first, second) = match step {
                Step::First => (first + 1, second),
                Step::Second => (first, second + 1),
                Step::Both => (first + 1, second + 1),
                Step::LoopAndBody(length) => (first + 1, second + length),
                Step::BodyAndLoop(length) => (first + length, second + 1),
            };
            steps.push(step);
        }
        steps.extend(apart(self.one.len() - first, self.other.len() - second));
        steps
    }
}

/// How many numbers two lists in order have in common.
fn common(one: &[u32], other: &[u32]) -> usize {
    let (mut first, mut second, mut count) = (0, 0, 0);
    while first < one.len() && second < other.len() {
        match one[first].cmp(&other[second]) {
            std::cmp::Ordering::Less => first += 1,
            std::cmp::Ordering::Greater => second += 1,
            std::cmp::Ordering::Equal => {
                count += 1;
                first += 1;
                second += 1;
            }
        }
    }
    count
}

/// How long the body of a loop is, if these nodes begin with it. Of several nodes: a single one
/// matches by itself.
fn body_at(node: &TreeNode, nodes: &[TreeNode]) -> Option<usize> {
    let Kind::Loop { body, .. } = &node.kind else { return None };
    let members = &nodes.first()?.members;
    let is_body = body.len() > 1
        && body.len() <= nodes.len()
        && body.iter().zip(nodes).all(|(one, other)| one.hash == other.hash && other.members == *members);
    is_body.then_some(body.len())
}
