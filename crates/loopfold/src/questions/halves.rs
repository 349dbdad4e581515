//! How many iterations of something repeated a walk can pass over: found by halves, with the
//! values of 1, 2, 4, … iterations. Twice the logarithm of their number in joins.

/// Passes over as many of `times` iterations as possible, and returns how many these are.
///
/// `can_pass` tells whether a walk could pass over a value from where it is, `twice` joins
/// one to itself, if that can be done, and `pass` passes over a value of so many iterations,
/// or does nothing and says so.
pub(super) fn pass_iterations<W, T>(
    walk: &mut W,
    times: u64,
    once: T,
    can_pass: impl Fn(&W, &T) -> bool,
    twice: impl Fn(&W, &T) -> Option<T>,
    mut pass: impl FnMut(&mut W, &T, u64) -> bool,
) -> u64 {
    let mut powers = vec![once];
    while let Some(last) = powers.last()
        && times.checked_shr(powers.len() as u32).is_some_and(|enough| enough > 0)
        && can_pass(walk, last)
        && let Some(square) = twice(walk, last)
    {
        powers.push(square);
    }
    let mut passed = 0;
    for (exponent, power) in powers.iter().enumerate().rev() {
        let iterations = 1u64 << exponent;
        if iterations <= times - passed && pass(walk, power, iterations) {
            passed += iterations;
        }
    }
    passed
}
