//! The phases of a loop: consecutive iterations that took about the same time, where the program
//! changed its pace.
//!
//! **Definition**, for the times x₁ … x_m of iterations that can be compared, in order:
//!
//! - *Change point* (Pettitt's test): U_k is the sum of sgn(x_i − x_j) over all i ≤ k < j. The
//!   change point is the first k with the largest |U_k| of those that leave at least
//!   [`LEAST_ITERATIONS`] on both sides, and a [64th](LEAST_PART) of all times; it is significant if 2·exp(−6·U_k² ∕ (m³ + m²)) <
//!   [`SIGNIFICANT`]. The test compares ranks, so single slow iterations do not matter.
//! - *Splitting*: the times are split at a significant change point, and both sides again.
//! - *Joining*: as long as the medians of two neighbours differ by less than a factor of
//!   [`LEAST_FACTOR`], or there are more than [`MOST_PHASES`], the two neighbours whose medians
//!   differ by the smallest factor (the first of equal ones) are joined.
//!
//! A steady program has one phase. Significance alone would not do: with thousands of iterations
//! a difference of a part in a hundred is significant, and means nothing to the reader.
//!
//! Why ranks: Σ_{i ≤ k} Σ_{j > k} sgn(x_i − x_j) is the sum over i ≤ k of how many of all times are
//! smaller, less how many are larger, since pairs on the same side cancel out. So one sort gives
//! all U_k.
//!
//! Cost: O(m log m) for each split, of which there are at most 63 and mostly a few. Of a loop of more
//! than 2¹⁸ iterations, an even sample is taken.

use super::samples::median_of;

/// A phase has at least so many iterations.
pub const LEAST_ITERATIONS: usize = 5;
/// And at least this part of all iterations: times that grow steadily would otherwise be split into
/// as many phases as iterations allow, only to be joined again.
pub const LEAST_PART: usize = 64;
/// The largest probability of a change point in times that do not change.
pub const SIGNIFICANT: f64 = 0.001;
/// The medians of neighbouring phases differ by at least this factor.
pub const LEAST_FACTOR: f64 = 1.2;
/// The most phases.
pub const MOST_PHASES: usize = 6;

/// Iterations that took about the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The number of its first iteration.
    pub first: u64,
    /// The number of its last iteration.
    pub last: u64,
    /// The median of the times that can be compared, in nanoseconds.
    pub median: f64,
}

/// Where the phases of these times begin, without the first; none if there is one phase.
///
/// ```
/// use loopfold::questions::iterations::phase_starts;
/// let mut times = vec![90; 20];
/// times.extend([30; 10]);
/// assert_eq!(phase_starts(&times), [20]);
/// assert_eq!(phase_starts(&[90; 30]), []);
/// ```
pub fn phase_starts(times: &[i64]) -> Vec<usize> {
    let least = LEAST_ITERATIONS.max(times.len().div_ceil(LEAST_PART));
    let mut starts = vec![0];
    let mut unsplit = vec![(0, times.len())];
    while let Some((start, end)) = unsplit.pop() {
        if let Some(change) = change_point(&times[start..end], least) {
            let middle = start + change;
            starts.push(middle);
            unsplit.extend([(start, middle), (middle, end)]);
        }
    }
    starts.sort_unstable();
    joined(times, starts).split_off(1)
}

/// The significant change point of some times that leaves at least so many on both sides: the number
/// of those before it.
fn change_point(times: &[i64], least: usize) -> Option<usize> {
    let count = times.len();
    let allowed = least..(count + 1).checked_sub(least)?;
    let mut sum = 0i64;
    let mut best = (0u64, 0);
    for (before, difference) in (1..).zip(rank_differences(times)) {
        sum += difference;
        if allowed.contains(&before) && sum.unsigned_abs() > best.0 {
            best = (sum.unsigned_abs(), before);
        }
    }
    let (largest, count) = (best.0 as f64, count as f64);
    let probability = 2.0 * (-6.0 * largest * largest / (count.powi(3) + count.powi(2))).exp();
    (best.0 > 0 && probability < SIGNIFICANT).then_some(best.1)
}

/// For each time how many are smaller, less how many are larger.
fn rank_differences(times: &[i64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_unstable_by_key(|&at| times[at]);
    let mut differences = vec![0; times.len()];
    let mut smaller = 0;
    for equal in order.chunk_by(|&one, &other| times[one] == times[other]) {
        let larger = times.len() - smaller - equal.len();
        equal.iter().for_each(|&at| differences[at] = smaller as i64 - larger as i64);
        smaller += equal.len();
    }
    differences
}

/// Joins neighbours whose medians hardly differ. `starts` begins with 0.
fn joined(times: &[i64], mut starts: Vec<usize>) -> Vec<usize> {
    let median = |start: usize, end: usize| median_of(&mut times[start..end].to_vec()).unwrap_or(0.0);
    let end = |starts: &[usize], at: usize| starts.get(at + 1).copied().unwrap_or(times.len());
    let mut medians: Vec<f64> = (0..starts.len()).map(|at| median(starts[at], end(&starts, at))).collect();
    loop {
        let factors = medians.windows(2).map(|pair| factor(pair[0], pair[1])).enumerate();
        let Some((at, least)) = factors.min_by(|one, other| one.1.total_cmp(&other.1)) else { break };
        if least >= LEAST_FACTOR && starts.len() <= MOST_PHASES {
            break;
        }
        starts.remove(at + 1);
        medians.remove(at + 1);
        medians[at] = median(starts[at], end(&starts, at));
    }
    starts
}

/// By which factor two times differ; times that are not positive differ by any factor from those
/// that are.
fn factor(one: f64, other: f64) -> f64 {
    let (less, more) = if one < other { (one, other) } else { (other, one) };
    match less > 0.0 {
        true => more / less,
        false if more > 0.0 => f64::INFINITY,
        false => 1.0,
    }
}

/// The phases of iterations, by their numbers and times in order, up to the last iteration of the
/// loop. Empty if there is only one phase.
pub(super) fn phases(compared: &[(u64, i64)], last: u64) -> Vec<Phase> {
    let times: Vec<i64> = compared.iter().map(|&(_, time)| time).collect();
    let changes = phase_starts(&times);
    if changes.is_empty() {
        return Vec::new();
    }
    let starts: Vec<usize> = std::iter::once(0).chain(changes).collect();
    let phase = |(at, &start): (usize, &usize)| {
        let next = starts.get(at + 1).copied();
        let end = next.unwrap_or(times.len());
        Phase {
            first: if at == 0 { 0 } else { compared[start].0 },
            last: next.map_or(last, |next| compared[next].0.saturating_sub(1)),
            median: median_of(&mut times[start..end].to_vec()).unwrap_or(0.0),
        }
    };
    starts.iter().enumerate().map(phase).collect()
}
