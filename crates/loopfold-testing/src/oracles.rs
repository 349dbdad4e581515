//! The papers' procedures, word for word where that is possible, and definitions
//! made into loops. Slow (quadratic to quartic) and short on purpose.

use crate::nest::{Nest, Node};
use std::collections::HashMap;

/// A stretch `start..end` with a shortest period `period`, at least two periods long,
/// that cannot be extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// Where it begins.
    pub start: usize,
    /// Where it ends (not included).
    pub end: usize,
    /// Its shortest period.
    pub period: usize,
}

/// All runs, by their definition: for every period, every longest stretch with it.
pub fn runs(stream: &[u32]) -> Vec<Run> {
    let length = stream.len();
    let mut found = Vec::new();
    for period in 1..=length / 2 {
        let mut start = 0;
        for end in period..=length {
            if end == length || stream[end] != stream[end - period] {
                if end - start >= 2 * period && is_primitive(&stream[start..start + period]) {
                    found.push(Run { start, end, period });
                }
                start = end + 1 - period;
            }
        }
    }
    found
}

/// True when a word is not a repetition of a shorter one.
pub fn is_primitive(word: &[u32]) -> bool {
    let length = word.len();
    (1..length)
        .all(|part| !length.is_multiple_of(part) || (part..length).any(|at| word[at] != word[at - part]))
}

/// Which of several loops with equally long bodies is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one with the most iterations, then the leftmost.
    Iterations,
    /// The leftmost.
    Left,
}

/// Xu's PM-triples with bodies of `body` symbols: (start, iterations) of primitive
/// bodies repeated as often as they are, not preceded by the same body.
fn pm_triples<T: PartialEq>(
    stream: &[T],
    body: usize,
    primitive: impl Fn(&[T]) -> bool,
) -> Vec<(usize, usize)> {
    let mut triples = Vec::new();
    for start in 0..(stream.len() + 1).saturating_sub(2 * body) {
        let word = &stream[start..start + body];
        if start >= body && &stream[start - body..start] == word {
            continue;
        }
        let times = stream[start..].chunks_exact(body).take_while(|chunk| *chunk == word).count();
        if times >= 2 && primitive(word) {
            triples.push((start, times));
        }
    }
    triples
}

fn choose(triples: &[(usize, usize)], ties: Ties) -> Option<(usize, usize)> {
    match ties {
        Ties::Left => triples.first().copied(),
        Ties::Iterations => {
            triples.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
        }
    }
}

/// Section IV of the first paper: the longest loop body first; then the same inside
/// one copy of the body and in what lies to its left and right.
pub fn outermost(stream: &[u32], ties: Ties, min_times: usize) -> Nest {
    fn nest(stream: &[u32], ties: Ties, min_times: usize, out: &mut Vec<Node>) {
        for body in (1..=stream.len() / 2).rev() {
            let mut triples = pm_triples(stream, body, is_primitive);
            triples.retain(|&(_, times)| times >= min_times);
            if let Some((start, times)) = choose(&triples, ties) {
                nest(&stream[..start], ties, min_times, out);
                let mut inner = Vec::new();
                nest(&stream[start..start + body], ties, min_times, &mut inner);
                out.push(Nest::looped(inner, times as u64));
                nest(&stream[start + body * times..], ties, min_times, out);
                return;
            }
        }
        out.extend(stream.iter().map(|&symbol| Node::Event(symbol)));
    }
    let mut out = Vec::new();
    nest(stream, ties, min_times, &mut out);
    Nest(out)
}

/// The second paper's decomposition with primitive bodies: body lengths from half the
/// input downwards; all repetitions of that length from left to right; then the same
/// inside each body and in each gap.
pub fn halving(stream: &[u32], min_times: usize) -> Nest {
    fn nest(stream: &[u32], min_times: usize, out: &mut Vec<Node>) {
        for body in (1..=stream.len() / 2).rev() {
            let (mut gap, mut at, mut any) = (0, 0, false);
            while at + 2 * body <= stream.len() {
                let word = &stream[at..at + body];
                let times = stream[at..].chunks_exact(body).take_while(|chunk| *chunk == word).count();
                if times < min_times || !is_primitive(word) {
                    at += 1;
                    continue;
                }
                nest(&stream[gap..at], min_times, out);
                let mut inner = Vec::new();
                nest(word, min_times, &mut inner);
                out.push(Nest::looped(inner, times as u64));
                at += times * body;
                (gap, any) = (at, true);
            }
            if any {
                nest(&stream[gap..], min_times, out);
                return;
            }
        }
        out.extend(stream.iter().map(|&symbol| Node::Event(symbol)));
    }
    let mut out = Vec::new();
    nest(stream, min_times, &mut out);
    Nest(out)
}

/// Figure 1 of the first paper: the shortest loop body first; all loops of that
/// length are replaced by one symbol per body and count; then again from length 1.
pub fn innermost(stream: &[u32], ties: Ties, min_times: usize) -> Nest {
    reduce(stream, ties, min_times, false)
}

/// Section VII of the first paper: as innermost, leftmost first, and a loop whose body
/// is a rotation of the body of an earlier loop is rotated to match it.
pub fn guarded(stream: &[u32], min_times: usize) -> Nest {
    reduce(stream, Ties::Left, min_times, true)
}

fn reduce(stream: &[u32], ties: Ties, min_times: usize, rotate: bool) -> Nest {
    let mut current: Vec<Node> = stream.iter().map(|&symbol| Node::Event(symbol)).collect();
    let mut known: Vec<Vec<Node>> = Vec::new();
    let mut body = 1;
    while body <= current.len() / 2 {
        let mut chosen = Vec::new();
        let mut gaps: Vec<std::ops::Range<usize>> = std::iter::once(0..current.len()).collect();
        while let Some(gap) = gaps.pop() {
            let mut triples = pm_triples(&current[gap.clone()], body, |word| is_primitive(&numbered(word)));
            triples.retain(|&(_, times)| times >= min_times);
            let Some((start, mut times)) = choose(&triples, ties) else { continue };
            let mut start = gap.start + start;
            if rotate {
                let shift = shift_to_known(&current[start..start + body], &mut known);
                let word = &current[start + shift..start + shift + body];
                let rotated = current[start + shift..gap.end]
                    .chunks_exact(body)
                    .take_while(|chunk| *chunk == word)
                    .count();
                if rotated >= min_times {
                    (start, times) = (start + shift, rotated);
                }
            }
            gaps.push(start + times * body..gap.end);
            gaps.push(gap.start..start);
            chosen.push((start, times));
        }
        if chosen.is_empty() {
            body += 1;
            continue;
        }
        chosen.sort_unstable();
        let mut reduced = Vec::new();
        let mut copied = 0;
        for (start, times) in chosen {
            reduced.extend_from_slice(&current[copied..start]);
            reduced.push(Nest::looped(current[start..start + body].to_vec(), times as u64));
            copied = start + times * body;
        }
        reduced.extend_from_slice(&current[copied..]);
        current = reduced;
        body = 1;
    }
    Nest(current)
}

/// How far a body must be rotated to be the first known one of its rotations; a body
/// with no known rotation becomes known.
fn shift_to_known(word: &[Node], known: &mut Vec<Vec<Node>>) -> usize {
    for candidate in known.iter().filter(|candidate| candidate.len() == word.len()) {
        let shift = (0..word.len())
            .find(|&shift| (0..word.len()).all(|at| word[(at + shift) % word.len()] == candidate[at]));
        if let Some(shift) = shift {
            return shift;
        }
    }
    known.push(word.to_vec());
    0
}

fn numbered(word: &[Node]) -> Vec<u32> {
    let mut numbers: HashMap<&Node, u32> = HashMap::new();
    word.iter()
        .map(|node| {
            let next = numbers.len() as u32;
            *numbers.entry(node).or_insert(next)
        })
        .collect()
}

/// The fewest events in which any nest of this stream can be written, by trying every
/// division and every repetition of every stretch.
pub fn minimum_folded(stream: &[u32], min_times: usize) -> usize {
    let length = stream.len();
    let mut least = vec![vec![0; length + 1]; length + 1];
    for span in 1..=length {
        for start in 0..=length - span {
            let end = start + span;
            let mut best = if span == 1 { 1 } else { usize::MAX };
            let divided = (start + 1..end).map(|middle| least[start][middle] + least[middle][end]);
            best = divided.min().unwrap_or(best).min(best);
            for body in (1..span).filter(|body| span.is_multiple_of(*body) && span / body >= min_times) {
                if (start + body..end).all(|at| stream[at] == stream[at - body]) {
                    best = best.min(least[start][start + body]);
                }
            }
            least[start][end] = best;
        }
    }
    least[0][length]
}

/// The first paper's outermost order at its own cost: one pass over the stream for
/// every body length from half the stream down, once more for every gap and body.
/// Gives the same loops as [`outermost`] with ties by iterations, as (start, body,
/// iterations); for timing.
pub fn outermost_by_levels(stream: &[u32]) -> Vec<(usize, usize, usize)> {
    fn level(stream: &[u32], low: usize, high: usize, out: &mut Vec<(usize, usize, usize)>) {
        for body in (1..=(high - low) / 2).rev() {
            let mut best: Option<(usize, usize)> = None;
            let mut start = low;
            for end in low + body..=high {
                if end == high || stream[end] != stream[end - body] {
                    let times = (end - start) / body;
                    if times >= 2
                        && best.is_none_or(|(most, _)| times > most)
                        && is_primitive(&stream[start..start + body])
                    {
                        best = Some((times, start));
                    }
                    start = end + 1 - body;
                }
            }
            if let Some((times, start)) = best {
                level(stream, low, start, out);
                out.push((start, body, times));
                level(stream, start, start + body, out);
                level(stream, start + body * times, high, out);
                return;
            }
        }
    }
    let mut out = Vec::new();
    level(stream, 0, stream.len(), &mut out);
    out
}

/// The first paper's greedy order at its own cost: one pass for every body length
/// from 1, starting over after each reduction. Returns the length of what is left.
pub fn innermost_by_levels(stream: &[u32]) -> usize {
    let mut current = stream.to_vec();
    let mut names: HashMap<(Vec<u32>, usize), u32> = HashMap::new();
    let mut next_name = stream.iter().max().map_or(0, |&symbol| symbol + 1);
    let mut body = 1;
    while body <= current.len() / 2 {
        let mut reduced = Vec::with_capacity(current.len());
        let (mut copied, mut start) = (0, 0);
        for end in body..=current.len() {
            if end == current.len() || current[end] != current[end - body] {
                let start_here = start.max(copied);
                let times = (end - start_here) / body;
                if end > start_here && times >= 2 {
                    reduced.extend_from_slice(&current[copied..start_here]);
                    let key = (current[start_here..start_here + body].to_vec(), times);
                    reduced.push(*names.entry(key).or_insert_with(|| {
                        next_name += 1;
                        next_name
                    }));
                    copied = start_here + times * body;
                }
                start = end + 1 - body;
            }
        }
        if copied == 0 {
            body += 1;
            continue;
        }
        reduced.extend_from_slice(&current[copied..]);
        current = reduced;
        body = 1;
    }
    current.len()
}

/// The second paper's procedure at its own cost: hashes of all windows of one length,
/// contracted by one for the next; equal neighbours compared in full. Returns the
/// number of repetitions found.
pub fn halving_by_hashes(stream: &[u32]) -> usize {
    const BASE: u64 = 1_000_003;
    const MODULUS: u64 = (1 << 61) - 1;
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(MODULUS)) as u64;
    let length = stream.len();
    let mut body = length / 2;
    if body == 0 {
        return 0;
    }
    let mut power = (1..body).fold(1, |power, _| times(power, BASE));
    let hash_of = |word: &[u32]| {
        word.iter().fold(0, |hash, &symbol| (times(hash, BASE) + u64::from(symbol) + 1) % MODULUS)
    };
    let mut hashes = vec![hash_of(&stream[..body])];
    for start in 1..=length - body {
        let dropped = times(u64::from(stream[start - 1]) + 1, power);
        let rest = (hashes[start - 1] + MODULUS - dropped) % MODULUS;
        hashes.push((times(rest, BASE) + u64::from(stream[start + body - 1]) + 1) % MODULUS);
    }
    let inverse = inverse_of(BASE, MODULUS);
    while body > 0 {
        let (mut at, mut found, mut gap) = (0, 0, 0);
        while at + 2 * body <= length {
            if hashes[at] == hashes[at + body]
                && stream[at..at + body] == stream[at + body..at + 2 * body]
                && is_primitive(&stream[at..at + body])
            {
                let word = &stream[at..at + body];
                let count = stream[at..].chunks_exact(body).take_while(|chunk| *chunk == word).count();
                found += 1 + halving_by_hashes(&stream[gap..at]) + halving_by_hashes(word);
                at += count * body;
                gap = at;
            } else {
                at += 1;
            }
        }
        if found > 0 {
            return found + halving_by_hashes(&stream[gap..]);
        }
        // Shorten every window by its last symbol, and add the one window more.
        for start in 0..hashes.len() {
            let last = u64::from(stream[start + body - 1]) + 1;
            hashes[start] = times((hashes[start] + MODULUS - last) % MODULUS, inverse);
        }
        body -= 1;
        if body > 0 {
            power = times(power, inverse);
            hashes.push(hash_of(&stream[length - body..]));
        }
    }
    0
}

fn inverse_of(value: u64, modulus: u64) -> u64 {
    let (mut result, mut square, mut exponent) = (1u128, u128::from(value), modulus - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % u128::from(modulus);
        }
        square = square * square % u128::from(modulus);
        exponent >>= 1;
    }
    result as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, streams};

    #[test]
    fn the_oracles_lose_nothing() {
        let mut rng = Rng::new(1);
        for _ in 0..300 {
            let stream = streams::small(&mut rng, 40);
            for nest in [
                outermost(&stream, Ties::Iterations, 2),
                outermost(&stream, Ties::Left, 3),
                innermost(&stream, Ties::Iterations, 2),
                innermost(&stream, Ties::Left, 2),
                guarded(&stream, 2),
                halving(&stream, 2),
            ] {
                assert_eq!(nest.unfold(), stream, "{nest}");
                assert!(nest.folded() >= minimum_folded(&stream, 2));
            }
        }
    }

    #[test]
    fn the_timed_procedures_find_the_same() {
        let mut rng = Rng::new(2);
        for _ in 0..300 {
            let stream = streams::small(&mut rng, 40);
            let folded = outermost(&stream, Ties::Iterations, 2);
            fn loops(nodes: &[Node]) -> usize {
                nodes
                    .iter()
                    .map(|node| if let Node::Loop(body, _) = node { 1 + loops(body) } else { 0 })
                    .sum()
            }
            assert_eq!(outermost_by_levels(&stream).len(), loops(&folded.0), "{folded}");
            assert_eq!(halving_by_hashes(&stream), loops(&halving(&stream, 2).0));
            assert_eq!(innermost_by_levels(&stream), innermost(&stream, Ties::Left, 2).0.len());
        }
    }
}

/// Where a sequence of events occurs in a stream: all starts, overlaps included. Each
/// event of the query may be one of several symbols.
pub fn occurrences(stream: &[u32], query: &[Vec<u32>]) -> Vec<usize> {
    let fits = |window: &[u32]| window.iter().zip(query).all(|(symbol, event)| event.contains(symbol));
    let windows = stream.windows(query.len()).enumerate();
    windows.filter(|(_, window)| fits(window)).map(|(start, _)| start).collect()
}

/// How the occurrences of one sequence stand to those of another in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many of the first are before some of the second: they end before it begins.
    pub before: usize,
    /// Where the first one begins that is before another, and where that other begins.
    pub first: Option<(usize, usize)>,
    /// Where the first of the second begins, if it is before all of the first.
    pub earlier: Option<usize>,
}

/// The order of two sequences, pair by pair.
pub fn order(stream: &[u32], query: &[Vec<u32>], other: &[Vec<u32>]) -> Order {
    let (found, others) = (occurrences(stream, query), occurrences(stream, other));
    let after = |start: usize| others.iter().copied().find(|&other| start + query.len() <= other);
    let is_before_all = |start: &usize| found.iter().all(|&own| start + other.len() <= own);
    Order {
        before: found.iter().filter(|&&start| after(start).is_some()).count(),
        first: found.iter().find_map(|&start| Some((start, after(start)?))),
        earlier: others.iter().copied().find(|start| !found.is_empty() && is_before_all(start)),
    }
}

/// What stands beside every occurrence of a sequence, the nearest first, up to a depth,
/// with counts: `None` is the beginning or the end of a stream. Each list comes with all its
/// prefixes.
pub fn contexts(
    streams: &[Vec<u32>],
    query: &[Vec<u32>],
    depth: usize,
    after: bool,
) -> HashMap<Vec<Option<u32>>, u64> {
    let mut counts = HashMap::new();
    for stream in streams {
        for start in occurrences(stream, query) {
            let mut path = Vec::new();
            for distance in 1..=depth {
                let neighbour = if after {
                    stream.get(start + query.len() - 1 + distance)
                } else {
                    start.checked_sub(distance).map(|position| &stream[position])
                };
                path.push(neighbour.copied());
                *counts.entry(path.clone()).or_insert(0) += 1;
                if neighbour.is_none() {
                    break;
                }
            }
        }
    }
    counts
}
