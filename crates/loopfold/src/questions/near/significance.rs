//! Whether a random stream could show a loop with exceptions as well.
//!
//! A loop with exceptions is also a description of its span. In bits, for *n* events of *s*
//! distinct symbols: 4 log n for the place, the period p and the numbers of copies *c* and gaps
//! *g*; p log s for the body and log s for each event of a gap; log 3p for the length of a gap; and
//! the logarithm of c over g, at most g log(e c / g), for where the gaps are. Writing the span as
//! it is takes log s an event. In a uniformly random stream, some description saves b bits with a
//! probability of at most 2^-b (Kraft's inequality). [`LEAST_BITS`] asks for 7 of them: less than
//! one random stream in 100 passes. With the alphabets of real traces all but the shortest loops
//! do.

/// How many bits a description must save.
pub(super) const LEAST_BITS: f64 = 7.0;

/// A loop with exceptions has at least two copies more than so many for each gap.
pub(super) const COPIES_PER_GAP: usize = 2;

/// The numbers of a loop with exceptions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) period: usize,
    pub(super) copies: usize,
    pub(super) gaps: usize,
}

/// Whether a loop is more than what a random stream of so many events and distinct symbols shows.
pub(super) fn is_significant(shape: Shape, events: usize, symbols: usize) -> bool {
    let Shape { period, copies, gaps } = shape;
    let repeated = (copies as f64 - 1.0) * period as f64 * (symbols as f64).log2();
    let (copies, gaps) = (copies as f64, gaps as f64);
    let places = gaps * (std::f64::consts::E * copies.max(gaps) / gaps.max(1.0)).log2();
    let lengths = gaps * (3.0 * period as f64).log2();
    repeated - places - lengths - 4.0 * (events as f64).log2() >= LEAST_BITS
}

/// Whether any loop whose copies are consecutive ones of these, so many one directly after the
/// other, can be significant: the largest sum of what copies save and gaps cost at least. In random
/// streams none can, and groups need not be formed.
pub(super) fn can_be_significant(
    counts: impl Iterator<Item = usize>,
    period: usize,
    events: usize,
    symbols: usize,
) -> bool {
    let a_copy = period as f64 * (symbols as f64).log2();
    let a_gap = (std::f64::consts::E * COPIES_PER_GAP as f64).log2() + (3.0 * period as f64).log2();
    // Sums are rounded differently there.
    let least = (LEAST_BITS + a_copy + 4.0 * (events as f64).log2()) * 0.999;
    let mut saved = f64::NEG_INFINITY;
    counts.into_iter().any(|count| {
        saved = (saved - a_gap).max(0.0) + count as f64 * a_copy;
        saved >= least
    })
}
