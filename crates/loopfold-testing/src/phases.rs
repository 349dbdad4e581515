//! Phases of iterations by their definition: every pair of times is compared.

/// The largest |U_k| and the first k that has it, of those with at least `least` times on both
/// sides. U_k is the sum of the signs of all differences between a time before and one behind.
fn change(times: &[i64], least: usize) -> Option<(u64, usize)> {
    let mut best: Option<(u64, usize)> = None;
    for k in least..=times.len().checked_sub(least)? {
        let (before, behind) = times.split_at(k);
        let pairs = before.iter().flat_map(|one| behind.iter().map(move |other| (one, other)));
        let sum: i64 = pairs.map(|(one, other)| (one > other) as i64 - (one < other) as i64).sum();
        if sum != 0 && best.is_none_or(|(largest, _)| sum.unsigned_abs() > largest) {
            best = Some((sum.unsigned_abs(), k));
        }
    }
    best
}

fn split(times: &[i64], offset: usize, least: usize, significant: f64, out: &mut Vec<usize>) {
    let Some((largest, k)) = change(times, least) else { return };
    let (u, m) = (largest as f64, times.len() as f64);
    if 2.0 * (-6.0 * u * u / (m * m * m + m * m)).exp() < significant {
        split(&times[..k], offset, least, significant, out);
        out.push(offset + k);
        split(&times[k..], offset + k, least, significant, out);
    }
}

fn median(times: &[i64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) as f64 / 2.0
}

/// Where phases begin, without the first: splits as long as a change is significant, then joins
/// neighbours, those whose medians differ least first, as long as there are more than `most` phases or
/// medians differ by less than a factor. Times are positive.
pub fn phase_starts(times: &[i64], least: usize, significant: f64, factor: f64, most: usize) -> Vec<usize> {
    if times.is_empty() {
        return Vec::new();
    }
    let mut borders = Vec::new();
    split(times, 0, least, significant, &mut borders);
    loop {
        let edges: Vec<usize> = [&[0][..], &borders, &[times.len()]].concat();
        let mut nearest: Option<(f64, usize)> = None;
        for at in 0..borders.len() {
            let one = median(&times[edges[at]..edges[at + 1]]);
            let other = median(&times[edges[at + 1]..edges[at + 2]]);
            let differ = one.max(other) / one.min(other);
            if nearest.is_none_or(|(least, _)| differ < least) {
                nearest = Some((differ, at));
            }
        }
        match nearest {
            Some((differ, at)) if differ < factor || borders.len() + 1 > most => drop(borders.remove(at)),
            _ => return borders,
        }
    }
}
