//! Similar windows by looking at every window.

use loopfold::questions::similar::SimilarWindow;

/// The edit distance by its definition.
pub fn distance<T: Clone + PartialEq>(one: &[T], other: &[T]) -> usize {
    let one: Vec<Vec<T>> = one.iter().map(|letter| vec![letter.clone()]).collect();
    distance_of_sets(&one, other)
}

/// The same for events that each may be one of several.
pub fn distance_of_sets<T: PartialEq>(one: &[Vec<T>], other: &[T]) -> usize {
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            table[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(!one[i - 1].contains(&other[j - 1]));
                    replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                }
            };
        }
    }
    table[one.len()][other.len()]
}

/// Every window, the best first, without overlaps.
pub fn brute_force<T: Clone + PartialEq>(stream: &[T], pattern: &[T], edits: usize) -> Vec<SimilarWindow> {
    brute_force_by(stream, pattern.len(), edits, |window| distance(pattern, window))
}

pub fn brute_force_by<T>(
    stream: &[T],
    m: usize,
    edits: usize,
    distance: impl Fn(&[T]) -> usize,
) -> Vec<SimilarWindow> {
    let mut all = Vec::new();
    for length in m - edits..=m + edits {
        for start in 0..(stream.len() + 1).saturating_sub(length) {
            let distance = distance(&stream[start..start + length]);
            if distance <= edits {
                all.push(SimilarWindow { start, length, distance });
            }
        }
    }
    all.sort_by_key(|window| (window.distance, window.length.abs_diff(m), window.start, window.length));
    let mut taken: Vec<SimilarWindow> = Vec::new();
    for window in all {
        let overlaps = |other: &SimilarWindow| {
            window.start < other.start + other.length && other.start < window.start + window.length
        };
        if !taken.iter().any(overlaps) {
            taken.push(window);
        }
    }
    taken.sort();
    taken
}
