//! Loops with exceptions by their definition, window by window.

use crate::Rng;
use crate::nest::{Nest, Node};
use std::collections::BTreeMap;

/// A loop some of whose iterations differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearLoop {
    /// Where it begins and ends.
    pub span: (usize, usize),
    /// Its body.
    pub body: Vec<u32>,
    /// How many iterations are equal to the body.
    pub equal: usize,
    /// The kinds of exceptions, in the order of their first ones.
    pub kinds: Vec<Kind>,
    /// Where the exceptions begin and end.
    pub exceptions: Vec<(usize, usize)>,
    /// How many events are written, and how many in the exact nest.
    pub written: (usize, usize),
}

/// The exceptions of one kind: how many there are, where the first one begins, how many iterations
/// each is, and how many events are written for it.
pub type Kind = (usize, usize, usize, usize);

/// The most edits of an exception that are written as such.
const MOST_EDITS: usize = 256;

/// The loops with exceptions of a stream with this exact nest. `fold` makes the nest of a body.
pub fn near_loops(nest: &Nest, fold: &dyn Fn(&[u32]) -> Nest) -> Vec<NearLoop> {
    let text = nest.unfold();
    let mut found = Vec::new();
    for word in candidates(nest, text.len()) {
        let (body, copies) = copies(&text, &word);
        let folded = fold(&body).folded();
        for group in groups(&copies, body.len()) {
            found.extend(near_loop(nest, &text, &body, folded, &group));
        }
    }
    let saved = |near: &NearLoop| near.written.1 - near.written.0;
    let length = |near: &NearLoop| near.span.1 - near.span.0;
    found.sort_by_key(|near| {
        (usize::MAX - saved(near), usize::MAX - length(near), near.span, near.body.len())
    });
    let mut chosen: Vec<NearLoop> = Vec::new();
    for near in found {
        if chosen.iter().all(|other| other.span.1 <= near.span.0 || near.span.1 <= other.span.0) {
            chosen.push(near);
        }
    }
    chosen.sort_by_key(|near| near.span);
    chosen
}

/// The words whose exact loops cover 2 %, and are short enough.
fn candidates(nest: &Nest, events: usize) -> Vec<Vec<u32>> {
    type Words = BTreeMap<Vec<u32>, (usize, usize)>;
    fn collect(nodes: &[Node], uses: usize, events: usize, all: &mut Words) {
        for node in nodes {
            let Node::Loop(body, times) = node else { continue };
            let body = Nest(body.clone());
            let text = body.unfold();
            let covered = uses * text.len() * *times as usize;
            if text.len() <= events / 3 {
                let word = rotations(&root(&text)).into_iter().min().unwrap_or_default();
                let folded = body.folded().min(word.len());
                let entry = all.entry(word).or_insert((0, usize::MAX));
                *entry = (entry.0 + covered, entry.1.min(folded));
            }
            collect(&body.0, uses * *times as usize, events, all);
        }
    }
    let mut all = BTreeMap::new();
    collect(&nest.0, 1, events, &mut all);
    let exact = nest.folded();
    all.retain(|_, (covered, folded)| 50 * *covered >= events && is_worth(*folded + 2, exact));
    all.into_keys().collect()
}

fn is_worth(written: usize, exact: usize) -> bool {
    5 * written <= 4 * exact && exact >= written + 8
}

fn root(word: &[u32]) -> Vec<u32> {
    let length = (1..=word.len())
        .find(|&length| {
            word.len().is_multiple_of(length) && word.chunks(length).all(|part| *part == word[..length])
        })
        .unwrap_or(word.len());
    word[..length].to_vec()
}

fn rotations(word: &[u32]) -> Vec<Vec<u32>> {
    (0..word.len()).map(|by| [&word[by..], &word[..by]].concat()).collect()
}

/// The rotation that occurs most often, and where its copies begin.
fn copies(text: &[u32], word: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let period = word.len();
    let rotations = rotations(word);
    let is_window: Vec<bool> =
        text.windows(period).map(|window| rotations.iter().any(|rotation| rotation == window)).collect();
    // Stretches: from the first of consecutive windows to the end of the last.
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (start, _) in is_window.iter().enumerate().filter(|(_, is)| **is) {
        match stretches.last_mut() {
            Some((_, end)) if *end == start + period - 1 && is_window[start - 1] => *end = start + period,
            _ => stretches.push((start, start + period)),
        }
    }
    let placed = |rotation: &Vec<u32>, overlapping: bool| {
        let mut copies: Vec<usize> = Vec::new();
        let mut free = 0;
        for &(start, end) in &stretches {
            let mut at = start;
            let mut next = start;
            while at + period <= end {
                let is_free = if overlapping { at >= next } else { at >= free };
                if is_free && text[at..at + period] == rotation[..] {
                    copies.push(at);
                    (free, next) = (at + period, at + period);
                    at += period;
                } else {
                    at += 1;
                }
            }
        }
        copies
    };
    let best = rotations.iter().min_by_key(|rotation| {
        let copies = placed(rotation, true);
        (usize::MAX - copies.len(), copies.iter().min().copied())
    });
    let body = best.cloned().unwrap_or_default();
    let copies = placed(&body, false);
    (body, copies)
}

fn groups(copies: &[usize], period: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &copy in copies {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|last| copy - (last + period) <= 3 * period) => {
                group.push(copy)
            }
            _ => groups.push(vec![copy]),
        }
    }
    // The gaps between groups by the copies beside them, the shortest first.
    let mut gaps: Vec<(usize, usize)> =
        groups.windows(2).map(|pair| (pair[0][pair[0].len() - 1], pair[1][0])).collect();
    gaps.sort_by_key(|(before, next)| next - before);
    for (before, next) in gaps {
        let gap = next - (before + period);
        let Some(left) = groups.iter().position(|group| group.last() == Some(&before)) else { continue };
        let span = |group: &[usize]| group[group.len() - 1] + period - group[0];
        let is_short = gap <= 16 * period;
        if is_short && span(&groups[left]) >= 16 * gap && span(&groups[left + 1]) >= 16 * gap {
            let right = groups.remove(left + 1);
            groups[left].extend(right);
        }
    }
    groups
}

fn near_loop(nest: &Nest, text: &[u32], body: &[u32], folded: usize, copies: &[usize]) -> Option<NearLoop> {
    let period = body.len();
    let span = (*copies.first()?, copies.last()? + period);
    let gaps: Vec<(usize, usize)> = copies
        .windows(2)
        .map(|pair| (pair[0] + period, pair[1]))
        .filter(|(start, end)| start < end)
        .collect();
    let covers = 4 * copies.len() * period >= 3 * (span.1 - span.0);
    if gaps.is_empty() || copies.len() < 2 * gaps.len() + 2 || !covers {
        return None;
    }
    let mut kinds: Vec<(&[u32], Kind)> = Vec::new();
    for &(start, end) in &gaps {
        let events = &text[start..end];
        match kinds.iter_mut().find(|(known, _)| *known == events) {
            Some((_, kind)) => kind.0 += 1,
            None => {
                let (iterations, written) = exception(body, events);
                kinds.push((events, (1, start, iterations, written)));
            }
        }
    }
    let kinds: Vec<_> = kinds.into_iter().map(|(_, kind)| kind).collect();
    let (exact, left_over) = exact(nest, span);
    let written = folded + gaps.len() + kinds.iter().map(|kind| kind.3).sum::<usize>() + left_over;
    let worth = is_worth(written, exact) && bits_saved(text, period, copies.len(), gaps.len()) >= 7.0;
    let equal = copies.len();
    worth.then(|| NearLoop {
        span,
        body: body.to_vec(),
        equal,
        kinds,
        exceptions: gaps,
        written: (written, exact),
    })
}

/// How many iterations an exception is, and how many events are written for it.
fn exception(body: &[u32], events: &[u32]) -> (usize, usize) {
    if events.len() * 2 < body.len() {
        return (0, events.len());
    }
    let iterations = (2 * events.len() + body.len()) / (2 * body.len());
    let edits = distance(&body.repeat(iterations), events);
    (iterations, if edits <= events.len().min(MOST_EDITS) { edits } else { events.len() })
}

/// The fewest insertions and deletions from one sequence to another.
fn distance(from: &[u32], to: &[u32]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, one) in from.iter().enumerate() {
        let mut next = vec![above + 1];
        for (left, other) in to.iter().enumerate() {
            next.push(if one == other { row[left] } else { 1 + next[left].min(row[left + 1]) });
        }
        row = next;
    }
    row[to.len()]
}

/// The events written for what lies in a span, even partly, and for what is left over of its first
/// and last loops.
fn exact(nest: &Nest, span: (usize, usize)) -> (usize, usize) {
    let (mut at, mut written, mut left_over) = (0, 0, 0);
    for node in &nest.0 {
        let part = Nest(vec![node.clone()]);
        let end = at + part.unfold().len();
        if at < span.1 && end > span.0 {
            written += part.folded();
            left_over += span.0.saturating_sub(at).min(2 * part.folded());
            left_over += end.saturating_sub(span.1).min(2 * part.folded());
        }
        at = end;
    }
    (written, left_over)
}

/// How many bits the description of a loop with exceptions saves, in a random stream.
fn bits_saved(text: &[u32], period: usize, copies: usize, gaps: usize) -> f64 {
    let mut letters = text.to_vec();
    letters.sort_unstable();
    letters.dedup();
    let letter = (letters.len() as f64).log2();
    let (period, copies, gaps) = (period as f64, copies as f64, gaps as f64);
    let places = gaps * (std::f64::consts::E * copies.max(gaps) / gaps).log2();
    (copies - 1.0) * period * letter
        - places
        - gaps * (3.0 * period).log2()
        - 4.0 * (text.len() as f64).log2()
}

/// A program of known loops.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its events.
    pub events: Vec<u32>,
    /// Where each loop begins and ends, and how long its body is.
    pub loops: Vec<(usize, usize, usize)>,
}

/// How the loops of a program are.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    /// How many there are.
    pub loops: usize,
    /// How many iterations each has.
    pub iterations: usize,
    /// The longest body.
    pub longest: usize,
    /// How many distinct events there are.
    pub letters: usize,
    /// How many in a thousand iterations are odd.
    pub odd: usize,
}

/// A program of loops with fixed bodies, one after the other, with some other events between them.
/// An odd iteration has some events more, less or in place of others, or lacks its end.
pub fn program(rng: &mut Rng, Loops { loops, iterations, longest, letters, odd }: Loops) -> Program {
    let mut program = Program { events: Vec::new(), loops: Vec::new() };
    let some = |rng: &mut Rng, most: usize| -> Vec<u32> {
        (0..rng.below(most + 1)).map(|_| rng.below(letters) as u32).collect()
    };
    for _ in 0..loops {
        program.events.extend(some(rng, 5));
        let start = program.events.len();
        let body: Vec<u32> = (0..rng.between(1, longest)).map(|_| rng.below(letters) as u32).collect();
        for _ in 0..iterations {
            let mut iteration = body.clone();
            if rng.below(1000) < odd {
                make_odd(rng, &mut iteration, letters);
            }
            program.events.extend(iteration);
        }
        program.loops.push((start, program.events.len(), body.len()));
    }
    program.events.extend(some(rng, 5));
    program
}

fn make_odd(rng: &mut Rng, iteration: &mut Vec<u32>, letters: usize) {
    let at = rng.below(iteration.len());
    let other = rng.below(letters) as u32;
    match rng.below(5) {
        0 => iteration.insert(at, other),
        1 => iteration[at] = other,
        2 => drop(iteration.remove(at)),
        3 => iteration.truncate(at),
        _ => iteration.extend((0..rng.between(1, 3)).map(|_| rng.below(letters) as u32)),
    }
}
