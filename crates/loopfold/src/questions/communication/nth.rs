//! Where the n-th of certain events is in a stream: one pass over the rules that it reaches, and
//! a walk down.

use crate::fold::{Fold, Target};
use crate::{RuleId, Symbol};
use hashbrown::{HashMap, HashSet};

/// The position of the n-th (from 0) of what `weight` counts, where an event can count several
/// times; if there are not so many, how many there are.
pub(super) fn position_of_nth(
    fold: &Fold,
    root: RuleId,
    mut nth: u64,
    weight: impl Fn(Symbol) -> u64,
) -> std::result::Result<u64, u64> {
    type Counts = HashMap<RuleId, u64, foldhash::fast::RandomState>;
    let mut counts = Counts::default();
    let count = |counts: &Counts, target| match target {
        Target::Symbol(symbol) => weight(symbol),
        Target::Rule(rule) => counts.get(&rule).copied().unwrap_or(0),
    };
    for rule in reached(fold, root) {
        let sum = fold.body(rule).iter().fold(0u64, |sum, item| {
            sum.saturating_add(count(&counts, item.target()).saturating_mul(item.times()))
        });
        counts.insert(rule, sum);
    }
    let all = counts.get(&root).copied().unwrap_or(0);
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

/// The rules that a rule is made of, each after those that it is made of itself.
fn reached(fold: &Fold, root: RuleId) -> Vec<RuleId> {
    let mut reached: HashSet<RuleId, foldhash::fast::RandomState> = HashSet::default();
    let mut next = vec![root];
    while let Some(rule) = next.pop() {
        if !reached.insert(rule) {
            continue;
        }
        next.extend(fold.body(rule).iter().filter_map(|item| match item.target() {
            Target::Rule(inner) => Some(inner),
            Target::Symbol(_) => None,
        }));
    }
    let mut reached: Vec<RuleId> = reached.into_iter().collect();
    reached.sort_unstable();
    reached
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
