//! Extends matches by direct comparison, sixteen symbols a step.

const STEP: usize = 16;

/// How many symbols two slices have in common at their beginnings.
#[inline]
pub(crate) fn common_prefix(left: &[u32], right: &[u32]) -> usize {
    let length = left.len().min(right.len());
    let (left, right) = (&left[..length], &right[..length]);
    // Most comparisons end at once.
    for at in 0..length.min(4) {
        if left[at] != right[at] {
            return at;
        }
    }
    let mut same = 0;
    for (a, b) in left.chunks_exact(STEP).zip(right.chunks_exact(STEP)) {
        if differ(a, b) {
            break;
        }
        same += STEP;
    }
    same + left[same..].iter().zip(&right[same..]).take_while(|(a, b)| a == b).count()
}

/// How many symbols two slices have in common at their ends.
#[inline]
pub(crate) fn common_suffix(left: &[u32], right: &[u32]) -> usize {
    let length = left.len().min(right.len());
    let (left, right) = (&left[left.len() - length..], &right[right.len() - length..]);
    for at in 0..length.min(4) {
        if left[length - 1 - at] != right[length - 1 - at] {
            return at;
        }
    }
    let mut same = 0;
    for (a, b) in left.rchunks_exact(STEP).zip(right.rchunks_exact(STEP)) {
        if differ(a, b) {
            break;
        }
        same += STEP;
    }
    let rest = length - same;
    same + left[..rest].iter().rev().zip(right[..rest].iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Compares without a branch per symbol, so that it becomes vector instructions.
#[inline(always)]
fn differ(a: &[u32], b: &[u32]) -> bool {
    let mut difference = 0;
    for at in 0..STEP {
        difference |= a[at] ^ b[at];
    }
    difference != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_every_place_of_a_difference() {
        for length in 0..70 {
            let base: Vec<u32> = (0..length).collect();
            assert_eq!(common_prefix(&base, &base), length as usize);
            assert_eq!(common_suffix(&base, &base), length as usize);
            for at in 0..length as usize {
                let mut other = base.clone();
                other[at] = 1000;
                assert_eq!(common_prefix(&base, &other), at);
                assert_eq!(common_suffix(&base, &other), length as usize - 1 - at);
            }
        }
    }
}
