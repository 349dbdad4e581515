//! Where the n-th of certain events is in a stream: one pass over the rules, and a walk down.

use crate::fold::{Fold, Target};
use crate::{RuleId, Symbol};

/// The position of the n-th (from 0) of what `weight` counts, where an event can count several
/// times; if there are not so many, how many there are.
pub(super) fn position_of_nth(
    fold: &Fold,
    root: RuleId,
    mut nth: u64,
    weight: impl Fn(Symbol) -> u64,
) -> std::result::Result<u64, u64> {
    let mut counts: Vec<u64> = Vec::with_capacity(root.index() + 1);
    let count = |counts: &[u64], target| match target {
        Target::Symbol(symbol) => weight(symbol),
        Target::Rule(rule) => counts[rule.index()],
    };
    for rule in fold.rules().take(root.index() + 1) {
        let sum = fold.body(rule).iter().fold(0u64, |sum, item| {
            sum.saturating_add(count(&counts, item.target()).saturating_mul(item.times()))
        });
        counts.push(sum);
    }
    let all = counts[root.index()];
    if nth >= all {
        return Err(all);
    }
    let (mut rule, mut position) = (root, 0);
    'down: loop {
        for &item in fold.body(rule) {
            let once = count(&counts, item.target());
            let all = once.saturating_mul(item.times());
            if nth >= all {
                nth -= all;
                position += fold.item_length(item);
                continue;
            }
            // Something is in this item, so an iteration of it is not empty.
            position += nth / once * fold.target_length(item.target());
            nth %= once;
            match item.target() {
                Target::Symbol(_) => return Ok(position),
                Target::Rule(inner) => rule = inner,
            }
            continue 'down;
        }
        return Err(all);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fold::FoldBuilder;
    use crate::folders::{Folder as _, SequiturRuns};
    use loopfold_testing::Rng;

    #[test]
    fn it_is_where_counting_finds_it() {
        let mut rng = Rng::new(9);
        for _ in 0..300 {
            let stream: Vec<Symbol> =
                (0..rng.below(200)).map(|_| Symbol::new(rng.below(3)).unwrap()).collect();
            let mut builder = FoldBuilder::default();
            let root = SequiturRuns.fold(&stream, &mut builder).unwrap();
            let fold = builder.finish();
            let weight = |symbol: Symbol| symbol.index() as u64;
            let mut expected = Vec::new();
            for (position, &symbol) in stream.iter().enumerate() {
                (0..weight(symbol)).for_each(|_| expected.push(position as u64));
            }
            for (nth, &position) in expected.iter().enumerate() {
                assert_eq!(position_of_nth(&fold, root, nth as u64, weight), Ok(position));
            }
            assert_eq!(
                position_of_nth(&fold, root, expected.len() as u64, weight),
                Err(expected.len() as u64)
            );
        }
    }
}
